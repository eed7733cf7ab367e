"""The user's bytes on their way to the agent."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from synapse_tui.agents.delivery.gate import ANNOUNCED
from synapse_tui.agents.dialogs import FLICKER, AgentDialog
from synapse_tui.agents.keyboard import (
    DELIBERATE,
    END_GAP,
    KEY_GAP,
    OPENS,
    QUIET,
    QUIET_BLIND,
    DialogGuard,
    Keyboard,
    is_shortcut,
    presses_enter,
    presses_stop,
)


class Time:
    """A clock, and what is to be called later."""

    def __init__(self) -> None:
        self.now = 50.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        self._due.append((self.now + seconds, callback))

    def passes(self, seconds: float) -> None:
        """Let time pass, and what is due happen in its order."""
        end = self.now + seconds
        while due := sorted((entry for entry in self._due if entry[0] <= end), key=lambda entry: entry[0]):
            self._due.remove(due[0])
            self.now = max(self.now, due[0][0])
            due[0][1]()
        self.now = end


BASH = AgentDialog("permission", "Bash command · make all")
OTHER = AgentDialog("permission", "Bash command · make clean")
CHOICE = AgentDialog("choice", "Which one?", "question")


class Screen:
    """Which dialog is open, and what was kept because of one."""

    def __init__(self) -> None:
        self.open: AgentDialog | None = None
        self.kept = 0

    def __call__(self) -> AgentDialog | None:
        return self.open

    def keeps(self) -> None:
        self.kept += 1


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def dialog() -> Screen:
    return Screen()


@pytest.fixture
def sent() -> list[bytes]:
    return []


@pytest.fixture
def keyboard(clock, sent, dialog) -> Keyboard:
    return Keyboard(
        sent.append,
        clock,
        guard=DialogGuard(clock, dialog, opens_menu=lambda data: data == b"/\r", kept=dialog.keeps),
        later=clock.later,
    )


def opens(keyboard: Keyboard, dialog: Screen, which: AgentDialog | None = BASH) -> None:
    dialog.open = which
    keyboard.shown()


def test_it_tells_when_all_that_was_held_back_has_followed(clock: Time) -> None:
    told: list[bool] = []
    keys = Keyboard(lambda _data: None, clock, later=clock.later, followed=lambda: told.append(keys.holding))
    keys.hold()
    for key in (b"h", b"i", b"\r"):
        keys.press(key)
        clock.passes(0.1)
    keys.release()
    assert keys.holding
    assert not told
    clock.passes(2 * END_GAP + KEY_GAP)
    assert told == [False]


def test_held_bytes_come_out_in_order_and_once(keyboard, clock, sent):
    keyboard.hold()
    keyboard.press(b"a")
    keyboard.press(b"b")
    assert sent == []
    keyboard.release()
    keyboard.release()
    keyboard.press(b"c")
    clock.passes(END_GAP)
    assert sent == [b"a", b"b", b"c"]
    clock.passes(END_GAP)
    assert not keyboard.holding


def test_keys_that_were_held_back_follow_in_their_time(keyboard, clock, sent):
    keyboard.hold()
    for key in (b"h", b"i", b"\r"):
        keyboard.press(key)
        clock.passes(0.5)
    keyboard.release()
    assert (sent, keyboard.holding) == ([b"h"], True)
    clock.passes(KEY_GAP)
    assert sent == [b"h", b"i"]
    clock.passes(KEY_GAP)
    assert sent == [b"h", b"i"]
    clock.passes(END_GAP)
    assert (sent, keyboard.holding) == ([b"h", b"i", b"\r"], True)
    clock.passes(END_GAP)
    assert not keyboard.holding


def test_enter_follows_once_the_agent_has_taken_what_stands_before_it(clock, sent):
    waits: list[Callable[[], None]] = []
    keyboard = Keyboard(sent.append, clock, later=clock.later, taken=waits.append)
    keyboard.hold()
    for key in (b"a", b"b", b"\r", b"c"):
        keyboard.press(key)
        clock.passes(1)
    keyboard.release()
    clock.passes(5)
    assert sent == [b"a", b"b"]
    waits.pop()()
    assert sent == [b"a", b"b", b"\r"]
    clock.passes(5)
    assert sent[3:] == []
    waits.pop()()
    assert sent[3:] == [b"c"]
    assert waits == []


def test_a_key_that_is_typed_after_an_enter_that_followed_waits_until_the_agent_has_taken_it(clock, sent):
    waits: list[Callable[[], None]] = []
    keyboard = Keyboard(sent.append, clock, later=clock.later, taken=waits.append)
    keyboard.hold()
    keyboard.press(b"\r")
    keyboard.release()
    clock.passes(END_GAP)
    keyboard.press(b"c")
    clock.passes(END_GAP)
    assert (sent, keyboard.holding) == ([b"\r"], True)
    for follow in waits:
        follow()
    assert sent == [b"\r", b"c"]
    clock.passes(END_GAP)
    assert not keyboard.holding


class BusyAgent:
    """Reads what it is offered only when a test lets it, or draws first and so never gets it."""

    def __init__(self) -> None:
        self.reads: list[bytes] = []
        self.offered: list[bytes] = []

    def offer(
        self, data: bytes, may: Callable[[], bool], read: Callable[[], None], done: Callable[[bool], None]
    ) -> "BusyAgent":
        self.offered.append(data)
        self._may, self._read, self._done = may, read, done
        return self

    def withdraw(self) -> None:
        self.offered.clear()

    def read(self) -> None:
        if self.offered:
            self.reads.append(self.offered.pop())
            self._read()
            self._done(True)

    def draw(self) -> None:
        """Draw before reading: the keys were taken back, and are judged again."""
        if not self._may():
            self.offered.clear()
            self._done(False)


@pytest.mark.parametrize("end", [b"\r", b"\x1b"])
def test_a_busy_agent_reads_enter_and_escape_by_themselves(clock, end):
    agent = BusyAgent()
    keyboard = Keyboard(agent.reads.append, clock, later=clock.later, offer=agent.offer)
    for key in (b"a", b"b", end, b"c", b"d"):
        keyboard.press(key)
        clock.passes(0.1)
    for _ in range(4):
        agent.read()
        clock.passes(0.5)
    assert agent.reads == [b"a", b"b", end, b"cd"]
    assert not keyboard.holding


def test_what_is_typed_to_an_agent_that_does_not_read_waits_in_order(clock):
    agent = BusyAgent()
    keyboard = Keyboard(agent.reads.append, clock, later=clock.later, offer=agent.offer)
    for key in (b"a", b"b", b"c", b"\r"):
        keyboard.press(key)
        clock.passes(60)
    assert (agent.reads, agent.offered, keyboard.held) == ([], [b"a"], (b"a", b"b", b"c", b"\r"))
    for _ in range(3):
        agent.read()
        clock.passes(END_GAP)
    assert agent.reads == [b"a", b"bc", b"\r"]
    assert not keyboard.holding


@pytest.mark.parametrize(
    ("keys", "kept"),
    [((b"a", b"b", b"\r"), b"ab\r"), ((b"\r",), b""), ((b"\x1b", b"x"), b"x"), ((b"\x1b[<0;1;1M",), b"")],
)
def test_a_dialog_that_is_drawn_before_a_key_is_read_does_not_get_it(clock, dialog, keys, kept):
    agent, guard = BusyAgent(), DialogGuard(clock, dialog, kept=dialog.keeps)
    keyboard = Keyboard(agent.reads.append, clock, guard=guard, later=clock.later, offer=agent.offer)
    for key in keys:
        keyboard.press(key)
        clock.passes(0.1)
    dialog.open = BASH
    agent.draw()
    clock.passes(5)
    assert (agent.reads, b"".join(keyboard.held), keyboard.holding) == ([], kept, bool(kept))
    assert dialog.kept == 1
    keyboard.press(b"1")
    assert agent.reads == [b"1"]
    opens(keyboard, dialog, None)
    keyboard.release()
    for _ in range(len(keys)):
        agent.read()
        clock.passes(1)
    assert b"".join(agent.reads) == b"1" + kept


def test_an_answer_to_a_dialog_does_not_wait_until_keys_are_read(clock, dialog, sent):
    agent, guard = BusyAgent(), DialogGuard(clock, dialog)
    keyboard = Keyboard(sent.append, clock, guard=guard, later=clock.later, offer=agent.offer)
    keyboard.press(b"a")
    opens(keyboard, dialog)
    clock.passes(DELIBERATE)
    keyboard.press(b"\x1b[B")
    keyboard.press(b"\r")
    assert sent == [b"\x1b[B", b"\r"]


def test_keys_that_wait_for_a_busy_agent_can_be_held_back(clock):
    agent = BusyAgent()
    keyboard = Keyboard(agent.reads.append, clock, later=clock.later, offer=agent.offer)
    for key in (b"a", b"\r", b"b"):
        keyboard.press(key)
    keyboard.hold()
    agent.read()
    clock.passes(1)
    assert (agent.reads, keyboard.held) == ([], (b"a", b"\r", b"b"))
    keyboard.release()
    for _ in range(4):
        clock.passes(1)
        agent.read()
    assert agent.reads == [b"a", b"\r", b"b"]


def test_what_is_held_again_while_the_agent_takes_a_key_does_not_follow(clock, sent):
    waits: list[Callable[[], None]] = []
    keyboard = Keyboard(sent.append, clock, later=clock.later, taken=waits.append)
    keyboard.hold()
    keyboard.press(b"a")
    clock.passes(1)
    keyboard.press(b"\r")
    keyboard.release()
    clock.passes(5)
    keyboard.hold()
    waits.pop()()
    assert sent == [b"a"]
    keyboard.release()
    assert sent == [b"a", b"\r"]


def test_a_key_typed_just_after_an_escape_that_followed_is_apart_from_it(keyboard, clock, sent):
    keyboard.hold()
    keyboard.press(b"\x1b")
    clock.passes(1)
    keyboard.release()
    clock.passes(0.01)
    keyboard.press(b"a")
    clock.passes(0.01)
    assert sent == [b"\x1b"]
    clock.passes(END_GAP)
    assert sent == [b"\x1b", b"a"]


def test_an_enter_typed_just_after_text_that_followed_is_apart_from_it(keyboard, clock, sent):
    keyboard.hold()
    keyboard.press(b"a")
    clock.passes(0.1)
    keyboard.release()
    clock.passes(0.01)
    keyboard.press(b"\r")
    clock.passes(0.09)
    assert sent == [b"a"]
    clock.passes(0.02)
    assert sent == [b"a", b"\r"]


def test_a_dialog_that_opens_stops_what_follows(keyboard, clock, dialog, sent):
    keyboard.hold()
    for key in (b"y", b"\r"):
        keyboard.press(key)
        clock.passes(1)
    keyboard.release()
    opens(keyboard, dialog)
    clock.passes(1)
    assert (sent, keyboard.holding, dialog.kept) == ([b"y"], True, 1)
    dialog.open = None
    keyboard.release()
    assert sent == [b"y", b"\r"]


def test_an_answer_to_a_dialog_passes_those_that_wait(keyboard, clock, dialog, sent):
    keyboard.hold()
    keyboard.press(b"h")
    opens(keyboard, dialog)
    clock.passes(DELIBERATE)
    keyboard.press(b"1")
    assert sent == [b"1"]
    dialog.open = None
    keyboard.release()
    assert sent == [b"1", b"h"]


@pytest.mark.parametrize("delivering", [True, False])
def test_typing_that_goes_on_as_a_dialog_opens_does_not_answer_it(keyboard, clock, dialog, sent, delivering):
    if delivering:
        keyboard.hold()
    keyboard.press(b"a")
    clock.passes(0.3)
    opens(keyboard, dialog)
    for key in (b"y", b"\x1b[B", b"\x1b[200~1\r\x1b[201~", b"1", b"\r"):
        clock.passes(DELIBERATE - 0.01)
        keyboard.press(key)
    clock.passes(20)
    keyboard.shown()
    assert b"".join(sent) == (b"" if delivering else b"a")
    assert (dialog.kept, keyboard.holding) == (1, True)
    keyboard.press(b"2")
    assert sent[-1] == b"2"
    opens(keyboard, dialog, None)
    keyboard.release()
    clock.passes(20)
    assert b"".join(sent) == (b"2ay" if delivering else b"a2y") + b"\x1b[B\x1b[200~1\r\x1b[201~1\r"


@pytest.mark.parametrize("key", [b"y", b"1", b"\r", b"\x1b", b"\x03", b"\x1b[B"])
def test_a_key_that_comes_as_a_dialog_opens_does_not_answer_it(keyboard, clock, dialog, sent, key):
    opens(keyboard, dialog)
    clock.passes(DELIBERATE - 0.01)
    keyboard.press(key)
    assert (sent, dialog.kept) == ([], 1)
    assert keyboard.guard.answers_in(clock.now) == pytest.approx(DELIBERATE)
    clock.passes(DELIBERATE)
    keyboard.press(key)
    assert sent == [key]


def test_what_would_stop_or_send_something_else_is_dropped(keyboard, clock, dialog, sent):
    opens(keyboard, dialog)
    for key in (b"\r", b"\x1b", b"\x03"):
        keyboard.press(key)
    assert (keyboard.held, dialog.kept) == ((), 1)
    opens(keyboard, dialog, None)
    keyboard.press(b"a")
    assert sent == [b"a"]


@pytest.mark.parametrize(
    "keys", [[b"\r"] * 3, [b"\r\r"], [b"\x1b[13u"] * 2, [b"\x1b[B", b"\r"], [b"\x1b", b"\r"]]
)
def test_impatient_enters_do_not_send_a_draft_later(keyboard, clock, dialog, sent, keys):
    for letter in b"half":
        keyboard.press(bytes([letter]))
    clock.passes(1.5)
    opens(keyboard, dialog)
    for key in keys:
        clock.passes(0.5)
        keyboard.press(key)
    assert not [key for key in keyboard.held if presses_enter(key)]
    clock.passes(DELIBERATE)
    keyboard.press(b"2")
    opens(keyboard, dialog, None)
    keyboard.release()
    clock.passes(20)
    assert b"".join(sent) == b"half2" + (b"\x1b[B" if b"\x1b[B" in keys else b"")


@pytest.mark.parametrize("keys", [[b"1", b"\r"], [b"1\r"], [b"\x1b[B", b"1", b"1", b"\r"]])
def test_an_early_answer_does_not_send_a_draft_later(keyboard, clock, dialog, keys):
    opens(keyboard, dialog)
    for key in keys:
        clock.passes(0.3)
        keyboard.press(key)
    assert b"1" in keyboard.held
    assert not [key for key in keyboard.held if presses_enter(key)]


@pytest.mark.parametrize("before", [b"", b"please"])
def test_an_enter_behind_text_of_the_same_typing_is_kept_once(keyboard, clock, dialog, before):
    if before:
        keyboard.press(before)
    opens(keyboard, dialog)
    for key in (b"y", b"es", b"\r", b"\r")[2 if before else 0 :]:
        clock.passes(0.1)
        keyboard.press(key)
    assert b"".join(keyboard.held) == (b"\r" if before else b"yes\r")


def test_a_dialog_that_was_drawn_just_before_the_key_is_seen(clock, dialog, sent):
    def read() -> None:
        dialog.open = BASH if sent else None

    keyboard = Keyboard(sent.append, clock, guard=DialogGuard(clock, dialog, read=read), later=clock.later)
    keyboard.press(b"a")
    keyboard.press(b"\r")
    assert (sent, keyboard.held) == ([b"a"], (b"\r",))


def test_a_deliberate_choice_takes_every_key_at_once(keyboard, clock, dialog, sent):
    opens(keyboard, dialog)
    clock.passes(DELIBERATE)
    for key in (b"\x1b[B", b"\x1b[B", b"\x1b[A", b"\r"):
        keyboard.press(key)
        clock.passes(0.05)
        opens(keyboard, dialog, None if key == b"\r" else replace(BASH, title=f"{key!r} moved"))
    assert sent == [b"\x1b[B", b"\x1b[B", b"\x1b[A", b"\r"]
    assert (keyboard.holding, dialog.kept) == (False, 0)


@pytest.mark.parametrize("before", [None, BASH], ids=["first", "next"])
def test_no_key_is_meant_for_a_dialog_that_is_not_drawn_yet(keyboard, clock, dialog, sent, before):
    opens(keyboard, dialog, before)
    clock.passes(10 * FLICKER)
    opens(keyboard, dialog, ANNOUNCED)
    clock.passes(2 * DELIBERATE)
    keyboard.press(b"y")
    assert sent == []
    assert dialog.kept == 0
    opens(keyboard, dialog)
    assert dialog.kept == 1
    keyboard.press(b"e")
    clock.passes(2 * DELIBERATE)
    keyboard.press(b"2")
    assert sent == [b"2"]
    assert keyboard.held == (b"y", b"e")


def test_a_dialog_that_is_drawn_anew_behind_its_composer_is_the_same(keyboard, clock, dialog, sent):
    opens(keyboard, dialog)
    clock.passes(2 * DELIBERATE)
    opens(keyboard, dialog, ANNOUNCED)
    clock.passes(FLICKER / 2)
    opens(keyboard, dialog)
    keyboard.press(b"2")
    assert sent == [b"2"]


def test_a_question_takes_the_text_that_is_typed_into_it(keyboard, clock, dialog, sent):
    opens(keyboard, dialog, CHOICE)
    clock.passes(DELIBERATE)
    typed = (b"8", b"0", "日本".encode(), b"a run", b"\x1b[200~paste\x1b[201~", b"\r")
    for key in typed:
        keyboard.press(key)
        keyboard.shown()
        clock.passes(0.1)
    assert sent == list(typed)


@pytest.mark.parametrize(
    ("data", "held"),
    [(b"yes\r", b"yes\r"), (b"1\r", b"1"), (b"\x1b[200~1\r\x1b[201~", b"\x1b[200~1\r\x1b[201~")],
)
def test_no_permission_is_given_by_several_keys_at_once(keyboard, clock, dialog, sent, data, held):
    opens(keyboard, dialog)
    clock.passes(5)
    keyboard.press(data)
    assert (sent, keyboard.held) == ([], (held,))


@pytest.mark.parametrize("answer", [b"\r", b"1", b"\x1b"])
@pytest.mark.parametrize("following", [BASH, OTHER])
@pytest.mark.parametrize("shown", [True, False])
def test_the_next_dialog_is_not_answered_by_the_keys_after_an_answer(
    keyboard, clock, dialog, sent, answer, following, shown
):
    opens(keyboard, dialog)
    clock.passes(DELIBERATE)
    keyboard.press(answer)
    dialog.open = following
    for key in (b"\r", b"1"):
        clock.passes(0.2)
        if shown:
            keyboard.shown()
        keyboard.press(key)
    assert (sent, keyboard.held) == ([answer], (b"1",))
    clock.passes(DELIBERATE)
    keyboard.press(b"3")
    assert sent == [answer, b"3"]


def test_the_same_dialog_once_more_is_another_one(keyboard, clock, dialog, sent):
    opens(keyboard, dialog)
    clock.passes(5)
    opens(keyboard, dialog, None)
    clock.passes(2 * FLICKER)
    opens(keyboard, dialog)
    keyboard.press(b"\r")
    assert sent == []


@pytest.mark.parametrize("between", [None, AgentDialog()])
def test_a_dialog_that_is_drawn_anew_is_the_same(keyboard, clock, dialog, sent, between):
    opens(keyboard, dialog)
    clock.passes(DELIBERATE)
    keyboard.press(b"k")
    opens(keyboard, dialog, between)
    clock.passes(FLICKER / 2)
    opens(keyboard, dialog)
    keyboard.press(b"\r")
    assert sent == [b"k", b"\r"]


def test_a_menu_that_the_user_asked_for_takes_all_keys_at_once(keyboard, clock, dialog, sent):
    keyboard.press(b"/\r")
    clock.passes(0.2)
    opens(keyboard, dialog, CHOICE)
    keyboard.press(b"\x1b[B")
    keyboard.press(b"\r")
    opens(keyboard, dialog, replace(CHOICE, title="Which of these?"))
    keyboard.press(b"\r")
    assert sent == [b"/\r", b"\x1b[B", b"\r", b"\r"]
    assert dialog.kept == 0


def test_a_permission_is_never_what_the_user_asked_for(keyboard, clock, dialog, sent):
    keyboard.press(b"/\r")
    clock.passes(0.5)
    opens(keyboard, dialog)
    for key in (b"y", b"\r"):
        clock.passes(0.05)
        keyboard.press(key)
    assert sent == [b"/\r"]
    assert dialog.kept == 1


@pytest.mark.parametrize("since", ["work", "message", "text", "time"])
def test_what_opens_later_is_no_menu_that_the_user_asked_for(keyboard, clock, dialog, sent, since):
    keyboard.press(b"/\r")
    if since == "work":
        keyboard.guard.expect_no_menu()
    elif since == "message":
        keyboard.hold()
    elif since == "text":
        keyboard.press(b"x")
    else:
        clock.passes(OPENS)
    opens(keyboard, dialog)
    before = len(sent)
    keyboard.press(b"\r")
    assert len(sent) == before


def test_keys_that_wait_for_a_composer_let_a_deliberate_key_pass(keyboard, clock, sent):
    keyboard.hold()
    keyboard.press(b"a")
    keyboard.set_aside()
    for seconds in (0.3, DELIBERATE - 0.01, DELIBERATE):
        clock.passes(seconds)
        keyboard.set_aside()
        keyboard.press(b"q")
    assert (sent, keyboard.held) == ([b"q"], (b"a", b"q", b"q"))
    keyboard.release()
    clock.passes(1)
    assert sent == [b"q", b"a", b"q", b"q"]


@pytest.mark.parametrize("report", [b"\x1b[<0;10;5M", b"\x1b[I"])
def test_the_mouse_and_the_focus_reach_a_dialog_at_once(keyboard, dialog, sent, report):
    keyboard.hold()
    keyboard.press(b"a")
    opens(keyboard, dialog)
    keyboard.press(report)
    assert (sent, keyboard.held) == ([report], (b"a",))


def test_enters_can_be_taken_out_of_what_is_held_back(keyboard):
    keyboard.hold()
    for data in (b"a", b"\r", b"b\r", b"\x1b[13u", b"c\x1b[200~d\re\x1b[201~\r", b"\x1b[13;2u"):
        keyboard.press(data)
    keyboard.drop_enters()
    assert keyboard.held == (b"a", b"b", b"c\x1b[200~d\re\x1b[201~", b"\x1b[13;2u")


def test_a_new_start_forgets_what_was_held(keyboard, clock, dialog, sent):
    keyboard.hold()
    keyboard.press(b"a")
    opens(keyboard, dialog)
    keyboard.press(b"1")
    keyboard.reset()
    clock.passes(1)
    assert (sent, keyboard.holding, keyboard.held) == ([], False, ())


def test_the_user_is_quiet_a_moment_after_the_last_key(keyboard, clock):
    assert keyboard.quiet_in(clock.now) == 0
    keyboard.press(b"a")
    keyboard.shown()
    assert keyboard.quiet_in(clock.now) == pytest.approx(QUIET)
    assert keyboard.quiet_in(clock.now + QUIET) == 0


def test_keys_that_the_agent_has_not_shown_yet_count_longer(keyboard, clock):
    keyboard.press(b"a")
    assert keyboard.quiet_in(clock.now + QUIET) == pytest.approx(QUIET_BLIND - QUIET)


def test_what_the_agent_put_out_before_a_key_does_not_show_it(clock, sent):
    def read() -> None:
        fresh.shown()

    fresh = Keyboard(sent.append, clock, guard=DialogGuard(clock, read=read))
    fresh.press(b"a")
    assert fresh.quiet_in(clock.now + QUIET) == pytest.approx(QUIET_BLIND - QUIET)


@pytest.mark.parametrize(
    "report", [b"\x1b[<35;10;5M", b"\x1b[M !!", b"\x1b[32;4;5M", b"\x1b[I", b"\x1b[<0;1;1M\x1b[<0;1;1m"]
)
def test_the_mouse_and_the_focus_are_no_typing(keyboard, clock, sent, report):
    keyboard.press(report)
    assert sent == [report]
    assert keyboard.quiet_in(clock.now) == 0
    assert not keyboard.drafting


@pytest.mark.parametrize(
    ("keys", "drafting"),
    [(b"a", True), (b"a\r", False), (b"a\x15", False), (b"a\x03b", True), (b" ", False), (b"\x1b[I", False)],
)
def test_counting_keys_of_a_draft(keyboard, keys, drafting):
    keyboard.press(keys)
    assert keyboard.drafting is drafting


@pytest.mark.parametrize("data", [b"\r", b"abc\r", b"\x1b[13u", b"\x1b[13;1:1u"])
def test_enter_in_any_encoding(data):
    assert presses_enter(data)


@pytest.mark.parametrize("data", [b"abc", b"\x1b[200~one\rtwo\x1b[201~", b"\x1b[13;2u", b"\x1b[13;1:3u"])
def test_what_is_no_enter(data):
    assert not presses_enter(data)


@pytest.mark.parametrize("data", [b"\x1b", b"\x03", b"\x1b[27u", b"\x1b[27;1:1u", b"\x1b[99;5u"])
def test_stop_keys_in_any_encoding(data):
    assert presses_stop(data)


@pytest.mark.parametrize("data", [b"\x1b[A", b"\x1b\r", b"c", b"\x1b[27;1:3u"])
def test_what_stops_nothing(data):
    assert not presses_stop(data)


@pytest.mark.parametrize("data", [b"\x1b", b"\x12", b"\x1b[A", b"\t", b"\x1b[15~"])
def test_shortcuts(data):
    assert is_shortcut(data)


@pytest.mark.parametrize("data", [b"a", b"\r", "日".encode(), b"\x1b[200~a\x1b[201~", b"\x7f", b"\x1b[13u"])
def test_what_is_no_shortcut(data):
    assert not is_shortcut(data)
