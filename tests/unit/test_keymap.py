"""Keys of actions as the settings give them: names of keys, what cannot be, and what holds then."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.keys import _character_to_key

from synapse_tui.settings.actions import ACTIONS, BOARD_KEYS, DIGITS, GROUPS, PLACES
from synapse_tui.settings.keymap import (
    Keymap,
    key_label,
    leader_label,
    read_bindings,
    read_key,
    read_leader,
    textual_key,
)
from synapse_tui.terminal.events import Modes
from synapse_tui.terminal.input import KeyEvent, encode_key
from synapse_tui.ui.screens.keyboard import KeyRole, Leader
from synapse_tui.widgets.driver.input_events import textual_name
from synapse_tui.widgets.driver.tokenizer import decode_key

_KITTY = {"pageup": "page_up", "pagedown": "page_down"}
_NAMED = ["up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete"]
_NAMED += [f"f{number}" for number in range(1, 13)]
_CHARACTERS = st.characters(min_codepoint=33, max_codepoint=126)
words = st.one_of(
    _CHARACTERS,
    st.sampled_from([*_NAMED, "enter", "tab", "escape", "space", "backspace", "shift+tab"]),
    st.builds(lambda held, key: f"{held}+{key}", st.sampled_from(["ctrl", "alt", "ctrl+alt"]), _CHARACTERS),
    st.builds(
        lambda held, key: "+".join([*held, key]),
        st.lists(st.sampled_from(["ctrl", "alt", "shift"]), unique=True),
        st.sampled_from([*_NAMED, "enter", "space", "tab"]),
    ),
)


def sent(key: str) -> bytes:
    """What a terminal sends for a key, in its default modes."""
    held, name = key.split("+")[:-1], key.rsplit("+", 1)[-1]
    if key == "+" or key.endswith("++"):
        held, name = key[:-1].rstrip("+").split("+") if len(key) > 1 else [], "+"
    event = KeyEvent.of_text(name) if len(name) == 1 else KeyEvent(_KITTY.get(name, name))
    if name == "space":
        event = KeyEvent.of_text(" ")
    event = replace(event, **dict.fromkeys([each for each in held if each != "shift"], True))  # type: ignore[arg-type]
    if "shift" in held:
        event = replace(event, shift=True)
    return encode_key(replace(event, text="") if event.modified else event, Modes())


@given(words)
def test_what_can_be_named_can_be_sent_and_is_understood(word: str) -> None:
    try:
        key = read_key(word)
    except ValueError:
        return
    event = decode_key(sent(key))
    assert textual_name(event) == textual_key(key), (word, sent(key))
    assert read_key(key) == key, "the one spelling stays"


@pytest.mark.parametrize("character", [chr(code) for code in range(33, 127)])
def test_characters_have_the_names_that_textual_gives(character: str) -> None:
    assert textual_key(character) == _character_to_key(character)


@pytest.mark.parametrize(
    ("word", "key", "label"),
    [
        ("Ctrl+G", "ctrl+g", "^G"),
        ("control+]", "ctrl+]", "^]"),
        ("F5", "f5", "F5"),
        ("alt+shift+Left", "alt+shift+left", "Alt+Shift+←"),
        ("PgDn", "pagedown", "PgDn"),
        ("comma", ",", ","),
        ("+", "+", "+"),
        ("alt++", "alt++", "Alt++"),
        ("Z", "Z", "Z"),
        ("あ", "あ", "あ"),
        ("return", "enter", "Enter"),
    ],
)
def test_keys_have_one_spelling_and_one_label(word: str, key: str, label: str) -> None:
    assert read_key(word) == key
    assert key_label(key) == label


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("", "'': a key is missing"),
        ("ctrl+", "the name of the key is missing"),
        ("cmd+k", "no terminal sends cmd, use ctrl, alt or shift"),
        ("hyper+x", "no terminal sends hyper"),
        ("f21", "no terminal sends it, function keys are f1 to f20"),
        ("ctrl+i", "in a terminal that is Tab"),
        ("ctrl+m", "in a terminal that is Enter"),
        ("ctrl+[", "in a terminal that is Esc"),
        ("shift+enter", "in a terminal that is Enter"),
        ("ctrl+1", "no terminal sends it"),
        ("ctrl+shift+a", "terminals cannot report Shift"),
        ("shift+a", "write the character that it types"),
        ("alt+[", "no terminal sends it"),
        ("spce", "no such key, did you mean 'space'?"),
        ("x+y", "'x' is not a modifier"),
        ("\x07", "no such key"),
    ],
)
def test_what_no_terminal_sends_is_refused(word: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_key(word)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({}, {}),
        ({"zoom": "f11"}, {"zoom": ["f11"]}),
        ({"zoom": "F11 , Leader Z, f11"}, {"zoom": ["f11", "leader Z"]}),
        ({"zoom": ["leader ,"], "settings": ""}, {"zoom": ["leader ,"], "settings": []}),
        ({"zoom": "f5", "layout": "f11"}, {"zoom": ["f5"], "layout": ["f11"]}),
        ({"zoom": ""}, {"zoom": []}),
    ],
)
def test_bindings_are_read(value: object, read: object) -> None:
    assert read_bindings(value) == read


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("f11", "must be a table of actions and their keys"),
        ({"zoom": 5}, "for 'zoom'"),
        ({"zom": "f11"}, "names 'zom', which is not an action: did you mean 'zoom'?"),
        ({"xyzzy": "f11"}, "names 'xyzzy', which is not an action; docs/keys.md lists them"),
        ({DIGITS: "f11"}, "its keys are the digits"),
        ({"zoom": "f5"}, "gives 'f5' to 'zoom', but it is the key of 'layout'"),
        ({"zoom": "leader n"}, "gives 'leader n' to 'zoom', but it is the key of 'new_agent'"),
        ({"zoom": "f11", "layout": "f11"}, "gives 'f11' to"),
        ({"zoom": "leader 3"}, f"but it is the key of '{DIGITS}'"),
        ({"zoom": "z"}, "'z': it belongs to the agents"),
        ({"zoom": "enter"}, "it belongs to the agents"),
        ({"zoom": "ctrl+c"}, "it belongs to the agents"),
        ({"zoom": "leader esc"}, "cancels the leader"),
        ({"zoom": "leader f5"}, "goes to the agent"),
        ({"zoom": "leader"}, "a key is missing"),
        ({"zoom": "cmd+z"}, "cannot give 'zoom' the key 'cmd+z': no terminal sends cmd"),
    ],
)
def test_bindings_that_cannot_be_say_why(value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_bindings(value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (5, "must be a string"),
        ("ctrl+i", "cannot be 'ctrl+i': in a terminal that is Tab"),
        ("a", "cannot be 'a': it belongs to the agents"),
        ("ctrl+c", "cannot be 'ctrl+c': it belongs to the agents"),
    ],
)
def test_a_leader_that_cannot_be_says_why(value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_leader(value)


KEYS = Keymap()
find_action = KEYS.find
DOCS = Path(__file__).parents[2] / "docs" / "keys.md"


def test_the_table_of_actions_is_sound() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    leaders = [key for action in ACTIONS for key in action.leader]
    assert len(set(keys)) == len(keys)
    assert len(set(leaders)) == len(leaders)
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    assert [action.keys for action in KEYS.with_keys()] == [(f"f{n}",) for n in range(1, 11)]
    assert all(action.leader for action in KEYS.with_keys()), "every function key has a leader twin"


def test_docs_list_what_the_table_has() -> None:
    docs = DOCS.read_text(encoding="utf-8")
    for group in GROUPS:
        rows = [
            "",
            f"## {group}",
            "",
            "| Key | After `ctrl+]` | Action | What it does | Name |",
            "|---|---|---|---|---|",
        ]
        for action in KEYS.in_group(group):
            own = ", ".join(f"`{key_label(key)}`" for key in action.keys)
            fixed = action.takes_key
            after = [leader_label(action)] if fixed else [key_label(key) for key in action.leader]
            name = "" if fixed else f"`{action.id}`"
            after_cell = ", ".join(f"`{key}`" for key in after).replace("|", "\\|")
            rows.append(f"| {own} | {after_cell} | {action.title} | {action.help} | {name} |")
        assert "\n".join([*rows, ""]) in docs, f"docs/keys.md differs in {group}"


@pytest.mark.parametrize("name", PLACES)
def test_docs_list_the_keys_of_each_place(name: str) -> None:
    place, docs = PLACES[name], DOCS.read_text(encoding="utf-8")
    rows = ["| Key | What it does |", "|---|---|"]
    for keys, means in place.keys:
        plain = keys in ("arrows", "letters")
        labels = keys if plain else ", ".join(f"`{label}`" for label in keys.split(", "))
        rows.append(f"| {labels} | {means} |")
    section = docs.partition(f"## {place.title}\n")[2].partition("\n## ")[0]
    assert "\n".join([*rows, ""]) in section


def test_no_two_keys_of_the_board_are_the_same() -> None:
    keys = [key for each in BOARD_KEYS for key in each.keys]
    assert len(set(keys)) == len(keys)


def test_what_the_settings_say_holds_everywhere() -> None:
    keymap = Keymap.of("ctrl+g", read_bindings({"zoom": "f11, leader Z", "layout": "alt+l", "help": ""}))
    assert keymap.by_key("f11") == keymap.find("zoom")
    assert keymap.by_key("alt+l") == keymap.find("layout")
    assert keymap.by_key("f5") is None
    assert keymap.by_leader_key("Z") == keymap.find("zoom")
    assert keymap.by_leader_key("z") is None
    assert keymap.way("zoom") == "F11"
    assert keymap.way("new_agent") == "^G n"
    assert keymap.way("help") == "the command palette"
    assert leader_label(keymap.find("zoom")) == "Z"


def test_the_leader_wins_over_an_action_and_that_is_told() -> None:
    keymap = Keymap.of("f11", read_bindings({"zoom": "f11, leader Z"}))
    assert keymap.find("zoom").keys == ()
    assert keymap.problem == "'f11' is the leader, so it is not a key of 'zoom'"
    usual = Keymap.of("f5", {})
    assert usual.by_key("f5") is None
    assert not usual.problem


def test_keys_after_the_leader_are_found_as_they_are_typed() -> None:
    keymap = Keymap.of(
        "ctrl+g", read_bindings({"zoom": "leader space, leader ctrl+o, leader pgdn, leader ["})
    )
    for name, character in ((" ", " "), ("ctrl+o", None), ("pagedown", None), ("left_square_bracket", "[")):
        leader = Leader(keymap)
        leader.take("ctrl+g", None)
        verdict = leader.take(name, character)
        assert verdict.step is KeyRole.DO
        assert verdict.action == keymap.find("zoom")


class TestLeader:
    LEADER = "ctrl+right_square_bracket"

    @pytest.mark.parametrize("key", ["left_shift", "shift+right_shift", "iso_level3_shift"])
    def test_a_modifier_alone_changes_nothing(self, key):
        leader = Leader(KEYS)
        assert leader.take(key, None).step is KeyRole.PASS
        leader.take(self.LEADER, None)

        assert leader.take(key, None).step is KeyRole.WAIT
        assert leader.take("R", "R").action is find_action("restart_agent")

    def test_escape_gives_up_and_unknown_keys_are_not_passed_on(self) -> None:
        leader = Leader(KEYS)
        leader.take(self.LEADER, None)
        assert leader.take("escape", "\x1b").step is KeyRole.CANCEL
        leader.take(self.LEADER, None)
        assert leader.take("ö", "ö").step is KeyRole.UNKNOWN


def test_keys_of_one_kind_of_agent() -> None:
    keymap = Keymap.of("ctrl+]", read_bindings({"zoom": "f11", "codex.compose": "leader m", "my-x.zoom": ""}))
    assert keymap.way("compose") == "F2"
    codex = keymap.within("codex")
    assert codex.way("compose") == "^] m"
    assert codex.way("zoom") == "F11", "the others are as everywhere"
    assert keymap.within("my-x").by_key("f11") is None
    assert keymap.within("claude") is keymap


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"codex.compse": "f2"}, "did you mean 'codex.compose'"),
        ({"codex.compose": "f4"}, "gives 'f4' to 'codex.compose', but it is the key of 'next_agent'"),
        ({"zoom": "f11", "codex.compose": "f11"}, "it is the key of 'zoom'"),
        ({".compose": "f2"}, "is not an action"),
    ],
)
def test_keys_of_one_kind_of_agent_are_checked(value: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        read_bindings(value)
