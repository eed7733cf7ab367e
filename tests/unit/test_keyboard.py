"""The user's bytes on their way to the agent."""

import pytest

from synapse_tui.agents.keyboard import QUIET, QUIET_BLIND, Keyboard, presses_enter, presses_stop


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sent() -> list[bytes]:
    return []


@pytest.fixture
def keyboard(clock, sent) -> Keyboard:
    return Keyboard(sent.append, clock)


def test_bytes_pass_in_order(keyboard, sent):
    keyboard.press(b"a")
    keyboard.press(b"\x1b[200~b\x1b[201~")
    assert sent == [b"a", b"\x1b[200~b\x1b[201~"]


def test_held_bytes_come_out_in_order_and_once(keyboard, sent):
    keyboard.hold()
    keyboard.press(b"a")
    keyboard.press(b"b")
    assert sent == []
    keyboard.release()
    keyboard.release()
    keyboard.press(b"c")
    assert b"".join(sent) == b"abc"


def test_an_answer_to_a_dialog_passes_those_that_wait(keyboard, sent):
    keyboard.hold()
    keyboard.press(b"h")
    keyboard.press(b"1", past=True)
    keyboard.release()
    assert sent == [b"1", b"h"]


def test_the_user_is_quiet_a_moment_after_the_last_key(keyboard, clock):
    assert keyboard.quiet_in(clock.now) == 0
    keyboard.press(b"a")
    keyboard.shown()
    assert keyboard.quiet_in(clock.now) == pytest.approx(QUIET)
    assert keyboard.quiet_in(clock.now + QUIET) == 0


def test_keys_that_the_agent_has_not_shown_yet_count_longer(keyboard, clock):
    keyboard.press(b"a")
    assert keyboard.quiet_in(clock.now + QUIET) == pytest.approx(QUIET_BLIND - QUIET)


@pytest.mark.parametrize(
    "report", [b"\x1b[<35;10;5M", b"\x1b[M !!", b"\x1b[32;4;5M", b"\x1b[I", b"\x1b[<0;1;1M\x1b[<0;1;1m"]
)
def test_the_mouse_and_the_focus_are_no_typing(keyboard, clock, sent, report):
    keyboard.press(report)
    assert sent == [report]
    assert keyboard.quiet_in(clock.now) == 0
    assert not keyboard.drafting


def test_released_bytes_count_as_typed(keyboard, clock):
    keyboard.hold()
    keyboard.press(b"a")
    clock.now += 10
    keyboard.release()
    assert keyboard.quiet_in(clock.now) > 0


def test_how_long_a_user_waits(keyboard, clock):
    keyboard.hold()
    assert keyboard.waiting_since is None
    clock.now += 1
    keyboard.press(b"a")
    clock.now += 1
    keyboard.press(b"b")
    assert keyboard.waiting_since == 51.0


@pytest.mark.parametrize(
    ("keys", "drafting"),
    [(b"a", True), (b"a\r", False), (b"a\x15", False), (b"a\x03b", True), (b" ", False), (b"\x1b[I", False)],
)
def test_counting_keys_of_a_draft(keyboard, keys, drafting):
    keyboard.press(keys)
    assert keyboard.drafting is drafting


def test_a_draft_goes_on_over_several_writes(keyboard):
    keyboard.press(b"a")
    keyboard.press(b" ")
    assert keyboard.drafting
    keyboard.press(b"\r")
    assert not keyboard.drafting


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
