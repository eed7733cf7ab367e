"""`@agent message` at the keyboard, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.addresses import Address, agent_id_for
from synapse_tui.mention import Mention, MentionInterceptor, MentionView, Outcome, Pasted
from synapse_tui.terminal.input import KeyEvent


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

    def __init__(self, *agents: Address) -> None:
        self.agents = [CLAUDE, GEMINI, CODEX, *agents]
        self.now = 100.0
        self.composer = Composer()
        self.mentions: MentionInterceptor[KeyEvent] = MentionInterceptor(
            addresses=lambda: self.agents, sender=CLAUDE.agent_id, clock=lambda: self.now
        )
        self.child: list[KeyEvent | Pasted] = []
        self.sent: list[Mention] = []

    @property
    def events(self) -> list[KeyEvent]:
        """The keys that reached the child."""
        return [item for item in self.child if isinstance(item, KeyEvent)]

    def take(self, outcome: Outcome[KeyEvent]) -> None:
        self.child.extend(outcome.forward)
        if outcome.message:
            self.sent.append(outcome.message)

    def press(self, event: KeyEvent) -> None:
        self.take(self.mentions.key(event, event, self.composer))

    def type(self, text: str) -> Self:
        for character in text:
            if character in self.NAMED:
                self.press(KeyEvent(self.NAMED[character]))
            else:
                self.press(KeyEvent.of_text(character))
        return self

    def paste(self, text: str) -> None:
        self.take(self.mentions.paste(text))

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


class TestSending:
    def test_a_message_goes_to_the_agent_and_nothing_to_the_child(self, keyboard):
        keyboard.type("@gemini review this⏎")
        (message,) = keyboard.sent
        assert (message.address, message.targets) == ("synapse-gemini-8110", (GEMINI,))
        assert (message.text, message.priority) == ("review this", 3)
        assert keyboard.child == []
        assert not keyboard.mentions.active

    @pytest.mark.parametrize(
        ("typed", "target", "text"),
        [
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
        ],
    )
    def test_ways_to_write_it(self, keyboard, typed, target, text):
        keyboard.type(typed)
        (message,) = keyboard.sent
        assert message.targets == (target,)
        assert message.text == text
        assert keyboard.child == []

    def test_alias_of_the_profile(self):
        keyboard = Keyboard()
        keyboard.mentions = MentionInterceptor(
            addresses=lambda: keyboard.agents, sender=GEMINI.agent_id, clock=lambda: 0.0
        )
        keyboard.type("@ClaudeCode hi⏎")
        assert keyboard.sent[0].targets == (CLAUDE,)

    def test_all(self, keyboard):
        keyboard.type("@all stop⏎")
        (message,) = keyboard.sent
        assert (message.address, message.targets) == ("all", (GEMINI, CODEX))
        keyboard.type("@all ")
        assert keyboard.view.target == "all (2)"

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
    def test_priority(self, keyboard, typed, priority, text):
        keyboard.type(f"@gemini {typed}")
        assert keyboard.view.priority == priority
        keyboard.type("⏎")
        assert (keyboard.sent[0].priority, keyboard.sent[0].text) == (priority, text)

    @pytest.mark.parametrize("typed", ["!9 x", "!0 x", "!55 x"])
    def test_a_wrong_priority_is_told_and_not_sent(self, keyboard, typed):
        keyboard.type(f"@gemini {typed}⏎")
        assert keyboard.sent == []
        assert "priority" in keyboard.view.problem
        keyboard.type("y")
        assert "priority" in keyboard.view.problem
        keyboard.press(KeyEvent("u", ctrl=True))
        assert keyboard.view.problem == ""

    def test_a_wrong_priority_is_told_before_enter(self, keyboard):
        keyboard.type("@gemini !9 foo")
        assert "priority" in keyboard.view.problem
        assert "9" in keyboard.view.problem
        keyboard.type("⌫" * 5 + "4 foo")
        assert (keyboard.view.problem, keyboard.view.priority) == ("", 4)

    @pytest.mark.parametrize("typed", ["@gemini ⏎", "@gemini    ⏎", "@gemini !5 ⏎"])
    def test_nothing_is_not_sent(self, keyboard, typed):
        keyboard.type(typed)
        assert keyboard.sent == []
        assert keyboard.child == []
        assert keyboard.view.problem

    def test_an_agent_that_has_gone_meanwhile(self, keyboard):
        keyboard.type("@gemini hello")
        keyboard.agents.remove(GEMINI)
        keyboard.type("⏎")
        assert keyboard.sent == []
        assert "gemini" in keyboard.view.problem
        keyboard.type("⎋")
        assert keyboard.typed == "@gemini hello"

    def test_a_held_enter_sends_once_and_does_not_reach_the_child(self, keyboard):
        keyboard.type("@gemini x⏎")
        for _ in range(3):
            keyboard.now += 2
            keyboard.press(KeyEvent("enter", kind="repeat"))
        assert len(keyboard.sent) == 1
        assert keyboard.child == []

    def test_nor_that_of_a_terminal_that_does_not_tell_repetitions(self, keyboard):
        keyboard.type("@gemini x⏎")
        for _ in range(30):
            keyboard.now += 0.5
            keyboard.type("⏎")
        assert keyboard.child == []
        keyboard.now += 0.8
        keyboard.type("⏎")
        assert keyboard.typed == "[enter]"

    def test_another_key_ends_the_repetition(self, keyboard):
        keyboard.type("@gemini x⏎y⏎")
        assert keyboard.typed == "y[enter]"

    def test_enter_that_chose_does_not_send_when_held(self, keyboard):
        keyboard.type("@↓⏎")
        keyboard.press(KeyEvent("enter", kind="repeat"))
        assert keyboard.view.composing
        assert keyboard.view.problem == ""


class TestPassingOn:
    @pytest.mark.parametrize(
        "typed",
        [
            "hello",
            "@README.md",
            "@c/",
            "@.",
            "@@gemini",
            "@ x",
            "a@gemini b",
            "@claude hi",
            "@gem hi",
            "@gemini⏎",
            "@geminix",
        ],
    )
    def test_what_is_no_mention_reaches_the_child_in_order(self, keyboard, typed):
        keyboard.type(typed)
        assert keyboard.typed == typed.replace("⏎", "[enter]")
        assert keyboard.sent == []
        assert not keyboard.mentions.active

    def test_the_very_keys_are_given_back(self, keyboard):
        events = [KeyEvent.of_text(character) for character in "@reX"]
        for event in events:
            keyboard.press(event)
        assert all(given is event for given, event in zip(keyboard.child, events, strict=True))

    def test_at_the_moment_it_cannot_be_an_address(self, keyboard):
        keyboard.type("@re")
        assert keyboard.child == []
        keyboard.type("a")
        assert keyboard.typed == "@rea"

    @pytest.mark.parametrize("key", ["left", "right", "home", "end", "page_up", "delete", "f5"])
    def test_other_keys_give_back_and_follow(self, keyboard, key):
        keyboard.type("@ge")
        keyboard.press(KeyEvent(key))
        assert keyboard.typed == f"@ge[{key}]"

    def test_arrows_without_completions_give_back(self, keyboard):
        keyboard.type("@ge")
        keyboard.agents.remove(GEMINI)
        keyboard.type("↑")
        assert keyboard.typed == "@ge[up]"

    def test_a_dead_agent(self, keyboard):
        keyboard.type("@gemini")
        keyboard.agents.remove(GEMINI)
        keyboard.type(" hi")
        assert keyboard.typed == "@gemini hi"

    def test_nobody_else_is_there(self, keyboard):
        keyboard.agents = [CLAUDE]
        keyboard.type("@all x")
        assert keyboard.typed == "@all x"

    def test_focus_change_gives_back(self, keyboard):
        keyboard.type("@gem")
        keyboard.take(keyboard.mentions.give_back())
        assert keyboard.typed == "@gem"
        assert keyboard.mentions.give_back().forward == ()

    def test_focus_change_gives_back_a_message(self, keyboard):
        keyboard.type("@gemini hi")
        keyboard.take(keyboard.mentions.give_back())
        assert keyboard.typed == "@gemini hi"
        assert keyboard.sent == []

    def test_modified_at_is_no_mention(self, keyboard):
        for event in (KeyEvent("@", alt=True), KeyEvent("@", ctrl=True), KeyEvent("@", super=True)):
            keyboard.press(event)
        assert not keyboard.mentions.active
        assert len(keyboard.child) == 3

    def test_shifted_at_is_one(self, keyboard):
        keyboard.press(KeyEvent("2", "@", shift=True))
        assert keyboard.mentions.active


class TestWhere:
    def test_not_inside_a_draft(self, keyboard):
        keyboard.composer.draft = "look at "
        keyboard.type("@gemini hi⏎")
        assert keyboard.typed == "@gemini hi[enter]"

    def test_not_where_the_composer_is_not_known(self, keyboard):
        keyboard.composer.visible = False
        keyboard.type("@gemini hi⏎")
        assert keyboard.typed == "@gemini hi[enter]"

    def test_not_while_the_agent_has_not_shown_what_was_typed(self, keyboard):
        keyboard.type("a")
        keyboard.now += 0.4
        keyboard.type("@gemini")
        assert keyboard.typed == "a@gemini"

    def test_again_when_it_has_shown_it_and_is_empty(self, keyboard):
        keyboard.type("a")
        keyboard.composer.draft = "a"
        keyboard.mentions.observe(keyboard.composer)
        keyboard.composer.draft = ""
        keyboard.type("@")
        assert keyboard.mentions.active

    def test_at_once_after_a_message_was_submitted(self, keyboard):
        keyboard.type("h")
        keyboard.composer.draft = "h"
        keyboard.type("⏎")
        keyboard.composer.draft = ""
        keyboard.type("@")
        assert keyboard.mentions.active

    def test_again_after_a_while_when_nothing_was_shown(self, keyboard):
        keyboard.type("a")
        keyboard.now += 1.1
        keyboard.type("@")
        assert keyboard.mentions.active

    def test_enter_does_not_make_unseen_text_seen(self, keyboard):
        keyboard.type("ab⏎@")
        assert not keyboard.mentions.active

    @pytest.mark.parametrize(
        "key", ["ctrl+u", "ctrl+k", "ctrl+w", "ctrl+c", "backspace", "delete", "alt+backspace"]
    )
    def test_at_once_after_a_key_that_can_only_empty(self, keyboard, key):
        *held, name = key.split("+")
        modifiers: dict[str, Any] = dict.fromkeys(held, True)
        keyboard.press(KeyEvent(name, **modifiers))
        keyboard.child.clear()
        keyboard.type("@gemini hello⏎")
        assert keyboard.sent[0].text == "hello"
        assert keyboard.child == []

    def test_not_when_such_a_key_follows_unseen_text(self, keyboard):
        keyboard.type("a")
        keyboard.press(KeyEvent("u", ctrl=True))
        keyboard.type("@")
        assert not keyboard.mentions.active

    @pytest.mark.parametrize("key", ["up", "down", "left", "right", "home", "end", "escape", "f5", "tab"])
    def test_on_probation_after_a_key_that_may_bring_up_a_draft(self, keyboard, key):
        keyboard.press(KeyEvent(key))
        keyboard.child.clear()
        keyboard.type("@gemini hello⏎")
        assert keyboard.mentions.doubtful
        assert (keyboard.child, keyboard.sent) == ([], [])
        keyboard.settle()
        assert keyboard.sent == []
        keyboard.now += 0.16
        keyboard.settle()
        assert keyboard.sent[0].text == "hello"
        assert keyboard.child == []
        assert not keyboard.mentions.doubtful

    def test_a_draft_that_shows_up_gets_all_that_was_held_in_order(self, keyboard):
        keyboard.type("↑@gemini hello⏎x")
        keyboard.paste("y")
        keyboard.type("z")
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

    def test_two_messages_that_waited_both_go_in_order(self, keyboard):
        keyboard.type("↑@gemini one⏎@codex two⏎")
        keyboard.now += 0.2
        keyboard.settle()
        assert [message.text for message in keyboard.sent] == ["one", "two"]
        assert keyboard.typed == "[up]"

    def test_what_waits_is_given_back_with_the_rest(self, keyboard):
        keyboard.type("↑@gemini one⏎")
        keyboard.take(keyboard.mentions.give_back())
        assert keyboard.typed == "[up]@gemini one[enter]"

    def test_a_paste_is_never_one(self, keyboard):
        keyboard.paste("@gemini hi\n")
        assert keyboard.child == [Pasted("@gemini hi\n")]
        keyboard.type("@")
        assert keyboard.typed == "<@gemini hi\n>@"

    def test_a_paste_into_an_address_ends_it(self, keyboard):
        keyboard.type("@gem")
        keyboard.paste("ini hi")
        assert keyboard.typed == "@gem<ini hi>"


class TestAddress:
    def test_view(self, keyboard):
        keyboard.type("@")
        view = keyboard.view
        assert (view.composing, view.address, view.cursor, view.target) == (False, "@", 1, "")
        assert [completion.text for completion in view.completions] == ["gemini", "reviewer", "all"]
        assert view.selected == 0
        keyboard.type("ge")
        assert keyboard.view.address == "@ge"
        assert [completion.text for completion in keyboard.view.completions] == ["gemini"]

    def test_backspace_edits(self, keyboard):
        keyboard.type("@ge⌫⌫rev")
        assert keyboard.view.address == "@rev"
        assert keyboard.child == []
        keyboard.type("x")
        assert keyboard.typed == "@revx"

    def test_backspace_past_the_at_ends_and_nothing_reaches_the_child(self, keyboard):
        keyboard.type("@g⌫⌫")
        assert not keyboard.mentions.active
        assert keyboard.child == []
        keyboard.type("⌫")
        assert keyboard.typed == "[backspace]"

    def test_tab_completes(self, keyboard):
        keyboard.type("@ge⇥")
        assert (keyboard.view.composing, keyboard.view.target) == (True, "gemini")
        keyboard.type("hi⏎")
        assert keyboard.sent[0].text == "hi"
        assert keyboard.sent[0].targets == (GEMINI,)

    def test_completed_text_is_given_back_after_the_typed_keys(self, keyboard):
        keyboard.type("@GE⇥hi⎋")
        assert keyboard.typed == "@GE<mini >hi"

    def test_up_and_down_choose(self, keyboard):
        keyboard.type("@")
        assert keyboard.view.selected == 0
        keyboard.type("↓")
        assert keyboard.view.selected == 1
        keyboard.type("⏎")
        assert keyboard.view.target == "reviewer"
        keyboard.type("hi⏎")
        assert keyboard.sent[0].targets == (CODEX,)
        keyboard.type("@↑⇥x⏎")
        assert keyboard.sent[1].address == "all"

    def test_enter_without_a_choice_goes_to_the_child(self, keyboard):
        keyboard.type("@ge⏎")
        assert keyboard.typed == "@ge[enter]"

    def test_typing_takes_the_choice_back(self, keyboard):
        keyboard.type("@↓g⏎")
        assert keyboard.typed == "@g[enter]"

    def test_a_completion_of_another_form_replaces_what_was_typed(self, keyboard):
        keyboard.agents.append(CODEX_2)
        keyboard.type("@codex↓↑⏎")
        assert keyboard.view.target == "reviewer"
        keyboard.type("x⏎")
        assert keyboard.sent[0].targets == (CODEX,)

    def test_a_click_chooses(self, keyboard):
        keyboard.type("@")
        keyboard.mentions.choose(1)
        assert keyboard.view.target == "reviewer"

    def test_escape_gives_back(self, keyboard):
        keyboard.type("@ge⎋")
        assert keyboard.typed == "@ge"

    def test_control_c_throws_away(self, keyboard):
        keyboard.type("@ge")
        keyboard.press(KeyEvent("c", ctrl=True))
        assert keyboard.child == []
        assert not keyboard.mentions.active

    def test_agents_of_other_projects_by_their_exact_id(self, keyboard):
        keyboard.agents.append(agent("vibe", 9000, local=False))
        keyboard.type("@vibe")
        assert keyboard.typed == "@vibe"
        keyboard.now += 2
        keyboard.type("@synapse-vibe-9000 hi⏎")
        assert keyboard.sent[0].address == "synapse-vibe-9000"


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

    @pytest.mark.parametrize(
        ("keys", "target"), [("↓", CODEX), ("↓↓", CODEX_2), ("↑", CODEX_2), ("⇥", CODEX), ("⇥⇥⇥", CODEX)]
    )
    def test_a_choice_sends(self, keyboard, keys, target):
        keyboard.type(f"@codex fix it{keys}⏎")
        assert keyboard.sent[0].targets == (target,)
        assert keyboard.sent[0].address == target.agent_id
        assert keyboard.sent[0].text == "fix it"

    def test_a_click_chooses(self, keyboard):
        keyboard.type("@codex fix it")
        keyboard.mentions.choose(1)
        assert keyboard.view.target == "codex-8121"

    def test_the_only_other_one_of_ones_own_type_is_meant(self):
        keyboard = Keyboard(agent("claude", 8101))
        keyboard.type("@claude hi⏎")
        assert keyboard.sent[0].address == "synapse-claude-8101"


class TestEnded:
    """An agent that has exited and is still on the screen."""

    @pytest.fixture
    def keyboard(self):
        keyboard = Keyboard()
        keyboard.agents = [CLAUDE, replace(GEMINI, live=False), CODEX]
        return keyboard

    @pytest.mark.parametrize("address", ["@gemini", "@gemini-8110", "@synapse-gemini-8110"])
    def test_is_told_and_never_typed_to_the_child(self, keyboard, address):
        keyboard.type(f"{address} to dead")
        assert keyboard.view.composing
        assert keyboard.view.problem == "synapse-gemini-8110 has ended; restart it in its pane"
        keyboard.type("⏎")
        assert (keyboard.sent, keyboard.child) == ([], [])
        assert "has ended" in keyboard.view.problem
        keyboard.type("⎋")
        assert keyboard.typed == f"{address} to dead"

    def test_can_be_sent_to_after_its_restart(self, keyboard):
        keyboard.type("@gemini wake up")
        keyboard.agents[1] = GEMINI
        assert keyboard.view.problem == ""
        keyboard.type("⏎")
        assert (keyboard.sent[0].address, keyboard.sent[0].targets) == ("synapse-gemini-8110", (GEMINI,))

    def test_that_ends_meanwhile_is_told_at_once(self, keyboard):
        keyboard.type("@codex hi")
        keyboard.agents[2] = replace(CODEX, live=False)
        assert "synapse-codex-8120 has ended" in keyboard.view.problem
        keyboard.type("⏎")
        assert keyboard.sent == []

    def test_is_no_completion(self, keyboard):
        keyboard.type("@")
        assert [completion.text for completion in keyboard.view.completions] == ["reviewer"]


class TestComposer:
    def edit(self, keyboard: Keyboard, *keys: str) -> MentionView:
        for key in keys:
            *held, name = key.split("+")
            modifiers: dict[str, Any] = dict.fromkeys(held, True)
            keyboard.press(KeyEvent(name, **modifiers))
        return keyboard.view

    def test_view(self, keyboard):
        keyboard.type("@gemini review")
        view = keyboard.view
        assert (view.composing, view.address, view.text, view.cursor) == (True, "@gemini", "review", 6)
        assert (view.target, view.completions, view.priority, view.problem) == ("gemini", (), 3, "")

    def test_moving_and_deleting(self, keyboard):
        keyboard.type("@gemini one two")
        assert self.edit(keyboard, "left", "left").cursor == 5
        assert self.edit(keyboard, "home").cursor == 0
        assert self.edit(keyboard, "left", "left").cursor == 0
        assert self.edit(keyboard, "delete").text == "ne two"
        assert self.edit(keyboard, "end").cursor == 6
        assert self.edit(keyboard, "right").cursor == 6
        assert self.edit(keyboard, "backspace").text == "ne tw"
        assert self.edit(keyboard, "ctrl+w").text == "ne "
        assert self.edit(keyboard, "ctrl+u").text == ""

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
            ("f7", "one two three", 5),
            ("page_up", "one two three", 5),
            ("ctrl+x", "one two three", 5),
        ],
    )
    def test_line_editing(self, keyboard, key, text, cursor):
        keyboard.type("@gemini one two three")
        self.edit(keyboard, *["left"] * 8)
        view = self.edit(keyboard, key)
        assert (view.text, view.cursor) == (text, cursor)
        assert keyboard.child == []

    @pytest.mark.parametrize("key", ["shift+enter", "alt+enter", "ctrl+enter", "ctrl+j"])
    def test_new_line(self, keyboard, key):
        keyboard.type("@gemini one")
        self.edit(keyboard, key)
        keyboard.type("two⏎")
        assert keyboard.sent[0].text == "one\ntwo"

    def test_moving_between_lines(self, keyboard):
        keyboard.type("@gemini long line")
        self.edit(keyboard, "shift+enter")
        keyboard.type("ab")
        self.edit(keyboard, "shift+enter")
        keyboard.type("third")
        assert self.edit(keyboard, "up").cursor == 12
        assert self.edit(keyboard, "up").cursor == 2
        assert self.edit(keyboard, "up").cursor == 2
        assert self.edit(keyboard, "end").cursor == 9
        assert self.edit(keyboard, "down").cursor == 12
        assert self.edit(keyboard, "home", "down").cursor == 13
        assert self.edit(keyboard, "down").cursor == 13

    def test_paste_is_inserted_and_sends_nothing(self, keyboard):
        keyboard.type("@gemini see ")
        keyboard.paste("a\nb\n")
        assert keyboard.view.text == "see a\nb\n"
        keyboard.type("!⏎")
        assert keyboard.sent[0].text == "see a\nb\n!"

    def test_escape_gives_the_text_back_key_by_key(self, keyboard):
        keyboard.type("@gemini fixx⌫ ")
        keyboard.paste("that\nthis")
        self.edit(keyboard, "shift+enter")
        keyboard.type("ok⎋")
        assert keyboard.typed == "@gemini fix <that\nthis>[enter]ok"
        assert keyboard.child[-3] == KeyEvent("enter", shift=True)
        assert keyboard.sent == []

    def test_control_c_throws_the_message_away(self, keyboard):
        keyboard.type("@gemini secret")
        keyboard.press(KeyEvent("c", ctrl=True))
        assert (keyboard.child, keyboard.sent, keyboard.mentions.view) == ([], [], None)

    def test_backspace_before_an_empty_message_goes_back_to_the_address(self, keyboard):
        keyboard.type("@gemini x⌫⌫")
        assert (keyboard.view.composing, keyboard.view.address) == (False, "@gemini")
        keyboard.type("⌫⌫⌫⌫⌫⌫codex hi⏎")
        assert keyboard.sent[0].targets == (CODEX,)
        keyboard.type("@gemini x←⌫")
        assert keyboard.view.text == "x"

    def test_characters_of_several_code_points_are_one(self, keyboard):
        keyboard.type("@gemini a👩‍🚀")
        assert self.edit(keyboard, "left").cursor == 1
        self.edit(keyboard, "right")
        assert self.edit(keyboard, "backspace").text == "a"
        keyboard.type("e\u0301")
        assert self.edit(keyboard, "backspace").text == "a"
        keyboard.type("👍🏽")
        assert self.edit(keyboard, "backspace").text == "a"


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

    def test_after_the_message_was_sent(self, keyboard):
        keyboard.type("@gemini hi⏎")
        keyboard.press(KeyEvent("i", kind="release"))
        keyboard.press(KeyEvent("enter", kind="release"))
        assert keyboard.child == []

    def test_of_a_consumed_key_that_never_came_does_not_eat_a_later_one(self, keyboard):
        keyboard.type("@gemini hi⏎")
        keyboard.now += 1
        self.stroke(keyboard, "⏎")
        assert [event.kind for event in keyboard.events] == ["press", "release"]

    def test_repeats_type(self, keyboard):
        keyboard.type("@gemini ")
        keyboard.press(KeyEvent("a", "a"))
        keyboard.press(KeyEvent("a", "a", kind="repeat"))
        assert keyboard.view.text == "aa"


@given(st.lists(st.sampled_from([*"@geminicodx /!5.⇥⌫↑↓←→⎋⏎", "paste", "focus"]), max_size=40), st.booleans())
def test_every_key_is_sent_given_or_taken_back_by_the_user(keys, visible):
    keyboard = Keyboard(CODEX_2)
    keyboard.composer.visible = visible
    for key in keys:
        if key == "paste":
            keyboard.paste("pasted")
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
