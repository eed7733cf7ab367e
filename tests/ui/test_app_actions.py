import subprocess
import sys
from pathlib import Path

import pytest

from synapse_tui.actions import (
    ACTIONS,
    GROUPS,
)
from synapse_tui.keymap import Keymap, Leader, Step, key_label, leader_label, textual_key
from synapse_tui.screens.commands import Commands

KEYS = Keymap()
find_action = KEYS.find
DOCS = Path(__file__).parents[2] / "docs" / "keys.md"


def test_every_action_can_be_done():
    for action in ACTIONS:
        assert callable(getattr(Commands, f"do_{action.id}")), action.id


def test_keys_are_unique():
    keys = [key for action in ACTIONS for key in action.keys]
    leaders = [key for action in ACTIONS for key in action.leader]

    assert len(set(keys)) == len(keys)
    assert len(set(leaders)) == len(leaders)
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)


def test_every_function_key_has_a_leader_twin():
    assert [action.keys for action in KEYS.with_keys()] == [(f"f{n}",) for n in range(1, 11)]
    assert all(action.leader for action in KEYS.with_keys())


def test_every_action_is_in_a_group_and_explained():
    for action in ACTIONS:
        assert action.group in GROUPS
        assert action.title
        assert action.help.endswith(".")


def test_docs_list_what_the_table_has():
    assert KEYS.markdown() in DOCS.read_text(encoding="utf-8"), "docs/keys.md is made by Keymap().markdown()"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("ctrl+]", "ctrl+right_square_bracket"),
        ("ctrl+\\", "ctrl+backslash"),
        ("ctrl+a", "ctrl+a"),
        ("ctrl+space", "ctrl+space"),
        ("f12", "f12"),
        ("alt++", "alt+plus"),
    ],
)
def test_leader_is_named_as_textual_does(key, name):
    assert textual_key(key) == name


def test_labels():
    assert key_label("ctrl+]") == "^]"
    assert key_label("f10") == "F10"
    assert leader_label(find_action("go_to_agent")) == "1-9"
    assert leader_label(find_action("next_agent")) == "→"
    assert KEYS.by_leader_key("R") is find_action("restart_agent")
    assert KEYS.by_leader_key("r") is find_action("rename_agent")
    with pytest.raises(KeyError):
        find_action("no such action")


class TestLeader:
    LEADER = "ctrl+right_square_bracket"

    def test_a_key_after_it_is_a_command(self):
        leader = Leader(KEYS)

        assert leader.take("z", "z").step is Step.PASS
        assert leader.take(self.LEADER, None).step is Step.WAIT
        verdict = leader.take("upper_n", "n")
        assert verdict.step is Step.DO
        assert verdict.action is find_action("new_agent")
        assert leader.take("n", "n").step is Step.PASS

    def test_digits_say_which_agent(self):
        leader = Leader(KEYS)
        leader.take(self.LEADER, None)

        assert leader.take("7", "7").argument == "7"

    def test_twice_goes_to_the_agent(self):
        leader = Leader(KEYS)
        leader.take(self.LEADER, None)

        assert leader.take(self.LEADER, None).step is Step.LITERAL
        assert not leader.pending

    @pytest.mark.parametrize("key", ["left_shift", "shift+right_shift", "iso_level3_shift"])
    def test_a_modifier_alone_changes_nothing(self, key):
        leader = Leader(KEYS)
        assert leader.take(key, None).step is Step.PASS
        leader.take(self.LEADER, None)

        assert leader.take(key, None).step is Step.WAIT
        assert leader.take("R", "R").action is find_action("restart_agent")

    def test_escape_gives_up_and_unknown_keys_are_not_passed_on(self):
        leader = Leader(KEYS)
        leader.take(self.LEADER, None)
        assert leader.take("escape", "\x1b").step is Step.CANCEL
        leader.take(self.LEADER, None)
        assert leader.take("ö", "ö").step is Step.UNKNOWN

    @pytest.mark.parametrize("key", ["f5", "f12", "ctrl+f3"])
    def test_a_function_key_after_it_goes_to_the_agent(self, key):
        leader = Leader(KEYS)
        leader.take(self.LEADER, None)

        assert leader.take(key, None).step is Step.LITERAL
        assert not leader.pending
        assert leader.take(key, None).step is Step.PASS


def test_the_application_imports_nothing_heavy():
    code = (
        "import sys, synapse_tui.app; "
        "heavy = {'fastapi', 'uvicorn', 'httpx', 'sqlmodel', 'sqlalchemy', 'pydantic'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
