"""`@agent message` at the keyboard, key by key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.core.addresses import Address, agent_id_for
from synapse_tui.messages.mention import (
    NO_TYPES,
    Intercepted,
    Mention,
    MentionInterceptor,
    MentionView,
    Pasted,
)
from synapse_tui.terminal.input import KeyEvent
from synapse_tui.widgets.mention_overlay import draw_mention


def agent(
    kind: str, port: int, name: str = "", *, local: bool = True, aliases: Sequence[str] = ()
) -> Address:
    return Address(agent_id_for(kind, port), kind, name, port, "", local, "", tuple(aliases))


CLAUDE = agent("claude", 8100, aliases=["ClaudeCode"])
GEMINI = agent("gemini", 8110)
CODEX = agent("codex", 8120, "reviewer")
CODEX_2 = agent("codex", 8121)


@dataclass
class Composer:
    visible: bool = True
    draft: str = ""
    vi_normal: bool = False


class Keyboard:
    """A person at the pane of Claude: types, and collects what reaches the child."""

    NAMED: ClassVar = {
        "⏎": "enter",
        "⇥": "tab",
        "⌫": "backspace",
        "⎋": "escape",
        "↑": "up",
        "↓": "down",
        "←": "left",
        "→": "right",
    }

    def __init__(
        self, *agents: Address, sender: Address = CLAUDE, types: Mapping[str, bool] = NO_TYPES
    ) -> None:
        self.agents = [CLAUDE, GEMINI, CODEX, *agents]
        self.now = 100.0
        self.composer = Composer()
        self.mentions: MentionInterceptor[KeyEvent] = MentionInterceptor(
            addresses=lambda: self.agents,
            sender=sender.agent_id,
            clock=lambda: self.now,
            types=types,
        )
        self.child: list[KeyEvent | Pasted] = []
        self.sent: list[Mention] = []

    @property
    def events(self) -> list[KeyEvent]:
        """The keys that reached the child."""
        return [item for item in self.child if isinstance(item, KeyEvent)]

    def take(self, outcome: Intercepted[KeyEvent]) -> None:
        self.child.extend(outcome.forward)
        if outcome.message:
            self.sent.append(outcome.message)

    def press(self, event: KeyEvent) -> None:
        self.take(self.mentions.key(event, event, self.composer))

    def type(self, text: str) -> None:
        """Type characters, and keys by sign or name (`[ctrl+u]`); `{text}` pastes, `·` waits two seconds."""
        for part in re.findall(r"\[[a-z_0-9+@]+\]|\{[^}]*\}|.", text, re.DOTALL):
            if len(part) > 1 and part[0] == "[":
                *held, name = part[1:-1].split("+")
                modifiers: dict[str, Any] = dict.fromkeys(held, True)
                self.press(KeyEvent(name, **modifiers))
            elif len(part) > 1:
                self.take(self.mentions.paste(part[1:-1]))
            elif part == "·":
                self.now += 2
            else:
                self.press(KeyEvent(self.NAMED[part]) if part in self.NAMED else KeyEvent.of_text(part))

    def settle(self) -> None:
        for outcome in self.mentions.settle(self.composer):
            self.take(outcome)

    @property
    def view(self) -> MentionView:
        """What the overlay shows; asked only while there is one."""
        view = self.mentions.view
        assert view is not None
        return view

    @property
    def typed(self) -> str:
        """What the child was given, as text."""
        return "".join(
            f"<{item.text}>" if isinstance(item, Pasted) else item.text or f"[{item.key}]"
            for item in self.child
        )


@pytest.fixture
def keyboard():
    return Keyboard()


@pytest.mark.parametrize(
    ("typed", "target", "text"),
    [
        ("@gemini review this⏎", GEMINI, "review this"),
        ("@GEMINI hi⏎", GEMINI, "hi"),
        ("@synapse-gemini-8110 hi⏎", GEMINI, "hi"),
        ("@gemini-8110 hi⏎", GEMINI, "hi"),
        ("@Reviewer hi⏎", CODEX, "hi"),
        ("@codex hi⏎", CODEX, "hi"),
        ("＠gemini hi⏎", GEMINI, "hi"),
        ("＠gemini\u3000これを見て⏎", GEMINI, "これを見て"),
        ("＠ｇｅｍｉｎｉ\u3000hi⏎", GEMINI, "hi"),
        ("@gemini   spaces  ⏎", GEMINI, "spaces"),
        ("@gemini @codex both⏎", GEMINI, "@codex both"),
        ("@ge⇥hi⏎", GEMINI, "hi"),
        ("@ge⌫⌫rev⇥hi⏎", CODEX, "hi"),
        ("@↓⏎hi⏎", CODEX, "hi"),
        ("@gemini x⌫⌫⌫⌫⌫⌫⌫⌫codex hi⏎", CODEX, "hi"),
        ("@gemini one[shift+enter]two⏎", GEMINI, "one\ntwo"),
        ("@gemini one[alt+enter]two⏎", GEMINI, "one\ntwo"),
        ("@gemini one[ctrl+enter]two⏎", GEMINI, "one\ntwo"),
        ("@gemini one[ctrl+j]two⏎", GEMINI, "one\ntwo"),
        ("@gemini see {a\nb\n}!⏎", GEMINI, "see a\nb\n!"),
        # a composer that was empty still is after these
        ("[ctrl+u]@gemini hi⏎", GEMINI, "hi"),
        ("[ctrl+w]@gemini hi⏎", GEMINI, "hi"),
        ("[ctrl+c]@gemini hi⏎", GEMINI, "hi"),
        ("⌫@gemini hi⏎", GEMINI, "hi"),
        ("[delete]@gemini hi⏎", GEMINI, "hi"),
        ("[alt+backspace]@gemini hi⏎", GEMINI, "hi"),
    ],
)
def test_a_message_goes_to_the_agent_and_nothing_to_the_child(keyboard, typed, target, text):
    keyboard.type(typed)
    (message,) = keyboard.sent
    assert (message.address, message.targets) == (target.agent_id, (target,))
    assert (message.text, message.priority) == (text, 3)
    assert [event for event in keyboard.events if event.text] == []
    assert not keyboard.mentions.active


@pytest.mark.parametrize(
    ("typed", "child"),
    [
        # no mention
        *((text, text) for text in ("hello", "@README.md", "@c/", "@.", "@@gemini", "@ x", "a@gemini b")),
        *((text, text) for text in ("@claude hi", "@gem hi", "@geminix", "@rea", "@vibe")),
        # a key that cannot belong to an address: all that was held, then the key
        ("@gemini⏎", "@gemini[enter]"),
        ("@ge⏎", "@ge[enter]"),
        ("@↓g⏎", "@g[enter]"),  # typing takes the choice back
        *((f"@ge[{key}]", f"@ge[{key}]") for key in ("left", "right", "home", "end", "page_up", "f5")),
        ("[alt+@]", "[@]"),
        ("[ctrl+@]", "[@]"),
        ("@gem{ini hi}", "@gem<ini hi>"),
        ("{@gemini hi\n}@", "<@gemini hi\n>@"),
        # Escape gives back, by the very keys; Ctrl+C and Backspace throw away
        ("@ge⎋", "@ge"),
        ("@GE⇥hi⎋", "@GE<mini >hi"),
        ("@gemini fixx⌫ {that\nthis}[shift+enter]ok⎋", "@gemini fix <that\nthis>[enter]ok"),
        ("@ge[ctrl+c]", ""),
        ("@gemini secret[ctrl+c]", ""),
        ("@g⌫⌫", ""),
        ("@g⌫⌫⌫", "[backspace]"),
        ("@ge⌫⌫revx", "@revx"),
        # the composer may not be empty: its text is not on the screen yet
        ("a@gemini", "a@gemini"),
        ("ab⏎@", "ab[enter]@"),
        ("a[ctrl+u]@", "a[u]@"),
        # a message, then the same Enter again, which must not answer a dialog
        ("@gemini x⏎⏎", ""),
        ("@gemini x⏎y⏎", "y[enter]"),
        ("@gemini x⏎·⏎", "[enter]"),
    ],
)
def test_what_reaches_the_child(keyboard, typed, child):
    keyboard.agents.append(agent("vibe", 9000, local=False))
    keyboard.type(typed)
    assert keyboard.typed == child
    assert not keyboard.mentions.active


def test_all(keyboard):
    keyboard.type("@all stop⏎@all ")
    assert (keyboard.sent[0].address, keyboard.sent[0].targets) == ("all", (GEMINI, CODEX))
    assert keyboard.view.target == "all (2)"
    keyboard.type("⎋")
    keyboard.agents = [CLAUDE]
    keyboard.type("·@all x")
    assert keyboard.typed == "@all @all x"


@pytest.mark.parametrize(
    ("typed", "priority", "text"),
    [
        ("!5 stop", 5, "stop"),
        ("!1 fyi", 1, "fyi"),
        ("！４ hi", 4, "hi"),
        ("!important", 3, "!important"),
        (" !2 x", 2, "x"),
    ],
)
def test_priority(keyboard, typed, priority, text):
    keyboard.type(f"@gemini {typed}")
    assert keyboard.view.priority == priority
    keyboard.type("⏎")
    assert (keyboard.sent[0].priority, keyboard.sent[0].text) == (priority, text)


@pytest.mark.parametrize("typed", ["!9 x", "!0 x", "!55 x", "", "   ", "!5 "])
def test_enter_sends_no_wrong_priority_and_no_empty_message(keyboard, typed):
    keyboard.type(f"@gemini {typed}")
    assert bool(keyboard.view.problem) is ("x" in typed)
    keyboard.type("⏎")
    assert (keyboard.sent, keyboard.child) == ([], [])
    assert keyboard.view.problem
    keyboard.type("[ctrl+u]hi⏎")
    assert keyboard.sent[0].text == "hi"


@pytest.mark.parametrize("repeat", [KeyEvent("enter", kind="repeat"), KeyEvent("enter")])
def test_a_held_enter_sends_once_and_does_not_reach_the_child(keyboard, repeat):
    keyboard.type("@gemini x⏎")
    for _ in range(30):
        keyboard.now += 0.5
        keyboard.press(repeat)
    assert (len(keyboard.sent), keyboard.child) == (1, [])


def test_a_held_enter_that_chose_does_not_send(keyboard):
    keyboard.type("@↓⏎")
    keyboard.press(KeyEvent("enter", kind="repeat"))
    assert keyboard.view.composing
    assert keyboard.view.problem == ""


@pytest.mark.parametrize("typed", ["@gem", "@gemini hi"])
def test_a_change_of_focus_gives_back(keyboard, typed):
    keyboard.type(typed)
    keyboard.take(keyboard.mentions.give_back())
    assert (keyboard.typed, keyboard.sent) == (typed, [])
    assert keyboard.mentions.give_back().forward == ()


@pytest.mark.parametrize(
    "composer", [Composer(draft="look at "), Composer(visible=False), Composer(vi_normal=True)]
)
def test_not_inside_a_draft_nor_without_a_composer(keyboard, composer):
    keyboard.composer = composer
    keyboard.type("@gemini hi⏎")
    assert keyboard.typed == "@gemini hi[enter]"


@pytest.mark.parametrize("key", ["", "⏎"])
def test_again_once_the_agent_has_shown_what_was_typed_and_is_empty(keyboard, key):
    keyboard.type("a")
    keyboard.composer.draft = "a"
    keyboard.type(key)
    keyboard.mentions.observe(keyboard.composer)
    keyboard.composer.draft = ""
    keyboard.type("@")
    assert keyboard.mentions.active


def test_again_after_a_while_when_nothing_was_shown(keyboard):
    keyboard.type("a·@")
    assert keyboard.mentions.active


class TestProbation:
    """After a key that types nothing but may bring up a draft: history, a suggestion."""

    @pytest.mark.parametrize("key", ["up", "down", "left", "right", "home", "end", "escape", "f5", "tab"])
    def test_enter_waits_until_the_composer_has_proved_empty(self, keyboard, key):
        keyboard.type(f"[{key}]@gemini one⏎@codex two⏎")
        assert keyboard.mentions.doubtful
        keyboard.settle()
        assert (keyboard.typed, keyboard.sent) == (f"[{key}]", [])
        keyboard.now += 0.16
        keyboard.settle()
        assert [message.text for message in keyboard.sent] == ["one", "two"]
        assert keyboard.typed == f"[{key}]"
        assert not keyboard.mentions.doubtful

    def test_a_draft_that_shows_up_gets_all_that_was_held_in_order(self, keyboard):
        keyboard.type("↑@gemini hello⏎x{y}z")
        assert keyboard.typed == "[up]"
        keyboard.composer.draft = "from the history"
        keyboard.settle()
        assert keyboard.typed == "[up]@gemini hello[enter]x<y>z"
        assert keyboard.sent == []

    def test_a_draft_that_is_seen_with_the_next_key_ends_it_too(self, keyboard):
        keyboard.type("↑@ge")
        keyboard.composer.draft = "from the history"
        keyboard.type("m")
        assert keyboard.typed == "[up]@gem"

    def test_what_waits_is_given_back_with_the_rest(self, keyboard):
        keyboard.type("↑@gemini one⏎")
        keyboard.take(keyboard.mentions.give_back())
        assert keyboard.typed == "[up]@gemini one[enter]"


class TestView:
    def test_a_completion_of_another_form_replaces_what_was_typed(self, keyboard):
        keyboard.agents.append(CODEX_2)
        keyboard.type("@codex↓↑⏎x⏎@↑⇥x⏎")
        assert keyboard.sent[0].targets == (CODEX,)
        assert keyboard.sent[1].address == "all"


class TestAmbiguous:
    @pytest.fixture
    def keyboard(self):
        return Keyboard(CODEX_2)

    def test_asks_and_never_guesses(self, keyboard):
        keyboard.type("@codex fix it⏎")
        assert keyboard.sent == []
        view = keyboard.view
        assert [completion.text for completion in view.completions] == ["reviewer", "codex-8121"]
        assert (view.selected, view.target) == (-1, "")
        assert "could be" in view.problem
        keyboard.mentions.choose(1)
        assert keyboard.view.target == "codex-8121"

    @pytest.mark.parametrize(
        ("keys", "target"), [("↓", CODEX), ("↓↓", CODEX_2), ("↑", CODEX_2), ("⇥", CODEX), ("⇥⇥⇥", CODEX)]
    )
    def test_a_choice_sends(self, keyboard, keys, target):
        keyboard.type(f"@codex fix it{keys}⏎")
        assert (keyboard.sent[0].address, keyboard.sent[0].text) == (target.agent_id, "fix it")


class TestShell:
    """A shell beside Claude, which would run a message."""

    @pytest.fixture
    def keyboard(self):
        return Keyboard(replace(agent("shell", 8290, "term"), receives=False))

    def test_it_is_not_offered(self, keyboard):
        keyboard.type("@")
        assert [each.text for each in keyboard.view.completions] == ["gemini", "reviewer", "all"]

    def test_what_is_typed_for_it_stays_with_the_reason(self, keyboard):
        keyboard.type("@term ls⏎")
        assert (keyboard.sent, keyboard.child) == ([], [])
        assert keyboard.view.problem.startswith("term takes no messages")
        assert keyboard.view.text == "ls"

    @pytest.mark.parametrize("address", ["@term", "@shell-8290", "@shell-8299"])
    def test_nothing_is_kept_for_one_that_is_closed(self, address):
        """It would be refused when it is back; others are offered."""
        closed = replace(agent("shell", 8290, "term"), receives=False, live=False)
        keyboard = Keyboard(closed, types={"shell": False, "codex": True})
        keyboard.type(f"{address} ls")
        assert [each.text for each in keyboard.view.completions] == ["send it here", "gemini", "reviewer"]
        keyboard.type("↑⏎")
        assert (keyboard.sent[0].targets, keyboard.sent[0].text) == ((CODEX,), "ls")

    def test_nothing_is_kept_for_one_that_ends_meanwhile(self, keyboard):
        keyboard.type("@term ls")
        keyboard.agents[-1] = replace(keyboard.agents[-1], live=False)
        keyboard.type("⏎")
        assert [each.text for each in keyboard.view.completions] == ["send it here", "gemini", "reviewer"]

    def test_nothing_is_held_where_only_it_is_there(self, keyboard):
        keyboard.agents = [CLAUDE, keyboard.agents[-1]]
        keyboard.type("@")
        assert keyboard.typed == "@"


class TestGone:
    def test_an_agent_that_has_gone_meanwhile(self, keyboard):
        keyboard.type("@gemini hello")
        keyboard.agents.remove(GEMINI)
        keyboard.type("⏎")
        assert keyboard.sent == []
        assert "gemini" in keyboard.view.problem
        keyboard.type("⎋")
        assert keyboard.typed == "@gemini hello"

    @pytest.mark.parametrize(("typed", "key"), [("@ge", "↑"), ("@gemini", " ")])
    def test_an_agent_that_has_gone_before_its_address_was_complete(self, keyboard, typed, key):
        keyboard.type(typed)
        keyboard.agents.remove(GEMINI)
        keyboard.type(key)
        assert keyboard.typed == typed + key.replace("↑", "[up]")

    @pytest.mark.parametrize("address", ["@gemini", "@gemini-8110", "@synapse-gemini-8110"])
    def test_an_agent_that_has_exited_gets_nothing_before_its_restart(self, keyboard, address):
        keyboard.agents[1] = replace(GEMINI, live=False)
        keyboard.type(f"{address} wake up⏎")
        assert (keyboard.sent, keyboard.child) == ([], [])
        assert "has ended" in keyboard.view.problem
        keyboard.agents[1] = GEMINI
        keyboard.type("⏎")
        assert keyboard.sent[0].targets == (GEMINI,)

    def test_an_agent_that_exits_meanwhile_is_named_at_once(self, keyboard):
        keyboard.type("@codex hi")
        keyboard.agents[2] = replace(CODEX, live=False)
        assert "reviewer has ended" in keyboard.view.problem
        keyboard.type("⏎⎋·@")
        assert keyboard.sent == []
        assert [completion.text for completion in keyboard.view.completions] == ["gemini"]


class TestAbsent:
    """An address of an agent that does not run."""

    @pytest.fixture(params=["@codex-8121", "@synapse-codex-8121", "＠ｃｏｄｅｘ-8121", "@vibe-9000", "@bob"])
    def keyboard(self, request):
        keyboard = Keyboard(types=dict.fromkeys(("claude", "codex", "gemini", "vibe"), True))
        keyboard.agents.append(replace(agent("dummy", 8190, "bob"), live=False))
        keyboard.type(f"{request.param} stop")
        return keyboard

    def test_it_is_held_with_a_choice(self, keyboard):
        keyboard.type("⏎")
        assert (keyboard.sent, keyboard.child) == ([], [])
        view = keyboard.view
        assert re.search("no agent .* is running|has ended", view.problem)
        assert [len(choice.targets) for choice in view.completions] == [0, 1, 1, 0]
        assert (view.selected, view.target) == (-1, "")

    def test_what_enter_does_once_it_is_chosen_by_a_click_is_said(self, keyboard):
        keyboard.type("⏎")
        assert keyboard.view.problem
        title = "".join(piece.text for piece in draw_mention(keyboard.view, 64, 12).lines[0])
        assert f"→ {keyboard.view.address.removeprefix('@')} " in title
        keyboard.mentions.choose(3)
        assert not keyboard.view.problem
        assert keyboard.view.keeps

    def test_it_goes_here_if_chosen(self, keyboard):
        keyboard.type("↓⏎")
        assert keyboard.sent == []
        assert keyboard.typed.endswith(" stop[enter]")
        assert keyboard.typed[0] in "@＠"

    def test_it_goes_to_another_agent_if_chosen(self, keyboard):
        keyboard.type("↓↓⏎")
        assert (keyboard.sent[0].targets, keyboard.sent[0].text) == ((GEMINI,), "stop")
        assert keyboard.child == []

    def test_it_is_kept_if_chosen(self, keyboard):
        keyboard.type("↑⏎")
        (message,) = keyboard.sent
        assert (message.targets, message.text) == ((), "stop")
        assert message.address in ("codex-8121", "synapse-codex-8121", "vibe-9000", "bob")
        assert keyboard.child == []

    @pytest.mark.parametrize("gone", ["closed", "exited"])
    @pytest.mark.parametrize("typed", ["@codex-8120 stop", "@reviewer stop", "@codex stop"])
    def test_it_is_held_too_if_its_agent_ends_before_enter(self, typed, gone):
        keyboard = Keyboard(types=dict.fromkeys(("claude", "codex", "gemini", "vibe"), True))
        keyboard.type(typed)
        assert keyboard.view.problem == ""
        keyboard.agents[2:] = [] if gone == "closed" else [replace(CODEX, live=False)]
        keyboard.type("⏎")
        assert (keyboard.sent, keyboard.child) == ([], [])
        view = keyboard.view
        assert view.problem.endswith("choose what to do with it")
        assert [len(choice.targets) for choice in view.completions] == [0, 1, 0]
        keyboard.type("↑⏎")
        (message,) = keyboard.sent
        assert (message.targets, message.text) == ((), "stop")
        assert message.address == typed[1:].partition(" ")[0]

    def test_an_agent_that_starts_before_enter_gets_it(self, keyboard):
        keyboard.agents[3:] = [CODEX_2, agent("vibe", 9000), agent("dummy", 8190, "bob")]
        assert (keyboard.view.problem, keyboard.view.completions) == ("", ())
        keyboard.type("⏎")
        assert keyboard.sent[0].targets[0] in keyboard.agents[3:]

    @pytest.mark.parametrize(
        "typed",
        [
            "@codex-8121.md x",
            "@codex-12 x",
            "@codex-08121 x",
            "@codex-812100 x",
            "@issue-8121 x",
            "@codex-80a x",
            "@codex-/ x",
            "@README.md x",
            "@claude-8100 x",
            "@vibe x",
            "@synapse-tui/README.md x",
        ],
    )
    def test_every_other_word_goes_to_the_child(self, typed):
        keyboard = Keyboard(types=dict.fromkeys(("claude", "codex", "gemini", "vibe"), True))
        keyboard.type(typed)
        assert keyboard.typed == typed
        assert not keyboard.mentions.active


@pytest.mark.parametrize(
    ("key", "text", "cursor"),
    [
        ("ctrl+a", "one two three", 0),
        ("ctrl+e", "one two three", 13),
        ("ctrl+left", "one two three", 4),
        ("alt+b", "one two three", 4),
        ("ctrl+right", "one two three", 7),
        ("alt+f", "one two three", 7),
        ("ctrl+b", "one two three", 4),
        ("ctrl+f", "one two three", 6),
        ("ctrl+k", "one t", 5),
        ("ctrl+u", "wo three", 0),
        ("ctrl+w", "one wo three", 4),
        ("alt+backspace", "one wo three", 4),
        ("alt+d", "one t three", 5),
        ("ctrl+d", "one to three", 5),
        ("ctrl+h", "one wo three", 4),
        ("kp_left", "one two three", 4),
        ("delete", "one to three", 5),
        ("backspace", "one wo three", 4),
        ("home", "one two three", 0),
        ("end", "one two three", 13),
        ("f7", "one two three", 5),
        ("page_up", "one two three", 5),
        ("ctrl+x", "one two three", 5),
    ],
)
def test_line_editing(keyboard, key, text, cursor):
    keyboard.type("@gemini one two three")
    keyboard.type("←" * 8 + f"[{key}]")
    view = keyboard.view
    assert (view.text, view.cursor) == (text, cursor)
    assert keyboard.child == []


def test_moving_between_lines(keyboard):
    keyboard.type("@gemini long line[shift+enter]ab[shift+enter]third")
    for keys, cursor in [("↑", 12), ("↑", 2), ("↑", 2), ("[end]", 9), ("↓", 12), ("[home]↓", 13), ("↓", 13)]:
        keyboard.type(keys)
        assert keyboard.view.cursor == cursor


@pytest.mark.parametrize("character", ["👩‍🚀", "e\u0301", "👍🏽"])
def test_characters_of_several_code_points_are_one(keyboard, character):
    keyboard.type(f"@gemini a{character}←")
    assert keyboard.view.cursor == 1
    keyboard.type("→⌫")
    assert keyboard.view.text == "a"


class TestReleases:
    """The keyboard of a terminal that reports releases and modifiers."""

    def stroke(self, keyboard: Keyboard, text: str) -> None:
        for character in text:
            event = (
                KeyEvent.of_text(character)
                if character not in keyboard.NAMED
                else KeyEvent(keyboard.NAMED[character])
            )
            keyboard.press(event)
            keyboard.press(replace(event, text="", kind="release"))

    def test_a_sent_message_leaves_none_behind(self, keyboard):
        self.stroke(keyboard, "@gemini hi⏎")
        assert keyboard.sent[0].text == "hi"
        assert keyboard.child == []

    def test_given_back_in_order(self, keyboard):
        self.stroke(keyboard, "@gx")
        assert [(event.key, event.kind) for event in keyboard.events] == [
            (key, kind) for key in "@gx" for kind in ("press", "release")
        ]

    def test_of_a_key_pressed_before_goes_on(self, keyboard):
        keyboard.press(KeyEvent("enter"))
        keyboard.composer.draft = ""
        keyboard.type("@")
        keyboard.press(KeyEvent("enter", kind="release"))
        assert [event.kind for event in keyboard.events] == ["press", "release"]
        assert keyboard.mentions.active

    def test_modifiers_do_not_end_the_address(self, keyboard):
        keyboard.press(KeyEvent("left_shift"))
        keyboard.press(KeyEvent("2", "@", shift=True))
        keyboard.press(KeyEvent("left_shift", kind="release"))
        keyboard.press(KeyEvent("2", kind="release"))
        keyboard.press(KeyEvent("right_shift", shift=True))
        assert keyboard.mentions.active
        keyboard.type("gemini hi⏎")
        assert keyboard.sent[0].text == "hi"
        assert [event.key for event in keyboard.events] == ["left_shift", "left_shift"]

    def test_escape_is_released_into_nothing(self, keyboard):
        self.stroke(keyboard, "@g⎋")
        assert [event.key for event in keyboard.events if event.kind == "press"] == ["@", "g"]
        assert all(event.key != "escape" for event in keyboard.events)

    def test_of_a_consumed_key_that_never_came_does_not_eat_a_later_one(self, keyboard):
        keyboard.type("@gemini hi⏎")
        keyboard.now += 1
        self.stroke(keyboard, "⏎")
        assert [event.kind for event in keyboard.events] == ["press", "release"]


@given(st.lists(st.sampled_from([*"@geminicodx /!5.⇥⌫↑↓←→⎋⏎", "paste", "focus"]), max_size=40), st.booleans())
def test_every_key_is_sent_given_or_taken_back_by_the_user(keys, visible):
    keyboard = Keyboard(CODEX_2)
    keyboard.composer.visible = visible
    for key in keys:
        if key == "paste":
            keyboard.type("{pasted}")
        elif key == "focus":
            keyboard.take(keyboard.mentions.give_back())
        else:
            keyboard.type(key)
        assert (keyboard.mentions.view is not None) is keyboard.mentions.active
        if not visible:
            assert not keyboard.mentions.active
    keyboard.take(keyboard.mentions.give_back())
    if not visible:
        assert len(keyboard.child) == sum(key != "focus" for key in keys)
    for message in keyboard.sent:
        assert message.text.strip()
        assert CLAUDE not in message.targets


@given(st.text(alphabet="@gemini x/", max_size=30))
def test_without_commands_nothing_is_lost(text):
    keyboard = Keyboard()
    keyboard.type(text)
    keyboard.take(keyboard.mentions.give_back())
    assert keyboard.typed == text
