"""How a person is called: in whose words, how often, and with what of an agent's text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time

import pytest

from synapse_tui.ui.screens.attention import GAP_SECONDS, LONGEST_GAP, Attention, is_quiet
from synapse_tui.widgets.driver.synapse_driver import can_notify, notification

XTERM = {"TERM": "xterm-256color"}


def shown(version: str = "", environ: dict[str, str] = XTERM, title: str = "synapse: claude") -> str:
    return notification(title, "permission: Bash", version=version, environ=environ, serial=7)


@pytest.mark.parametrize(
    ("version", "environ", "expected"),
    [
        ("XTerm(390)", XTERM, "\x1b]9;synapse: claude: permission: Bash\x07"),
        ("", {**XTERM, "TERM_PROGRAM": "iTerm.app"}, "\x1b]9;synapse: claude: permission: Bash\x07"),
        ("ghostty 1.2.0", XTERM, "\x1b]777;notify;synapse: claude;permission: Bash\x07"),
        ("", {"TERM": "foot"}, "\x1b]777;notify;synapse: claude;permission: Bash\x07"),
        ("", {"TERM": "rxvt-unicode-256color"}, "\x1b]777;notify;synapse: claude;permission: Bash\x07"),
        ("", {**XTERM, "VTE_VERSION": "7600"}, "\x1b]777;notify;synapse: claude;permission: Bash\x07"),
        (
            "kitty(0.36.4)",
            {"TERM": "xterm-kitty"},
            "\x1b]99;i=synapse-7:d=0;synapse: claude\x1b\\\x1b]99;i=synapse-7:p=body;permission: Bash\x1b\\",
        ),
        (
            "tmux 3.4",
            {"TERM": "tmux-256color"},
            "\x1bPtmux;\x1b\x1b]9;synapse: claude: permission: Bash\x07\x1b\\",
        ),
        ("", {"TERM": "screen"}, "\x1bP\x1b]9;synapse: claude: permission: Bash\x07\x1b\\"),
        ("", {"TERM": "linux"}, ""),
        ("", {}, ""),
    ],
)
def test_each_terminal_is_told_in_its_own_words(version: str, environ: dict[str, str], expected: str) -> None:
    assert shown(version, environ) == expected


@pytest.mark.parametrize("version", ["XTerm(390)", "ghostty 1.2.0", "kitty(0.36.4)", "tmux 3.4"])
def test_no_text_ends_the_sequence_or_begins_another(version: str) -> None:
    clean = shown(version)
    written = notification(
        "synapse: cl\x1b\\au\x07de", "a\x1b]0;x\x07\x9c\r\nb", version=version, environ=XTERM, serial=7
    )
    assert written.count("\x1b") == clean.count("\x1b")
    assert written.count("\x07") == clean.count("\x07")
    assert not {"\r", "\n", "\x9c"} & set(written)


class Desk:
    """A person's desk: what rang and what was shown on it, with a clock that the test moves."""

    def __init__(self, mode: str = "both") -> None:
        self.mode = mode
        self.now = 100.0
        self.bells = 0
        self.shown: list[tuple[str, str]] = []
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.attention = Attention(
            mode=lambda: self.mode,
            bell=self.ring,
            notify=lambda title, text: self.shown.append((title, text)),
            clock=lambda: self.now,
            later=lambda seconds, work: self.due.append((self.now + seconds, work)),
        )

    def ring(self) -> None:
        self.bells += 1

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.due and min(self.due, key=lambda each: each[0])[0] <= end:
            first = min(self.due, key=lambda each: each[0])
            self.due.remove(first)
            self.now = first[0]
            first[1]()
        self.now = end


def test_the_first_is_told_at_once_and_those_behind_it_as_one() -> None:
    desk = Desk("desktop")
    for name in ("claude", "codex", "gemini", "codex"):
        desk.attention.call(name, "has finished")
    assert desk.shown == [("synapse: claude", "has finished")]
    desk.wait(GAP_SECONDS)
    assert desk.shown[1:] == [("synapse: 2 agents", "codex, gemini")]


def test_an_agent_that_asks_and_rings_calls_once() -> None:
    desk = Desk("desktop")
    desk.attention.call("claude", "permission: Bash")
    desk.attention.call("claude", "Claude needs your permission")
    desk.wait(60)
    assert len(desk.shown) == 1
    desk.attention.call("claude", "permission: Bash")
    assert len(desk.shown) == 2, "after a while it is another one"


def test_a_flood_is_told_less_and_less_and_a_rest_ends_that() -> None:
    desk = Desk("desktop")
    for second in range(600):
        desk.attention.call(f"agent-{second % 7}", f"news {second}")
        desk.wait(1)
    assert len(desk.shown) <= 600 / LONGEST_GAP + 6
    count = len(desk.shown)
    desk.wait(200)
    desk.attention.call("claude", "permission: Bash")
    assert desk.shown[-1] == ("synapse: claude", "permission: Bash")
    assert len(desk.shown) <= count + 2


def test_text_of_agents_is_cleaned_and_cut() -> None:
    desk = Desk("desktop")
    desk.attention.call("cl\x1baude", "a\n\x1b[31mb\u202e" + "x" * 500)
    [(title, text)] = desk.shown
    assert title == "synapse: cl aude"
    assert text.startswith("a [31mb x")
    assert len(text) == 100


@pytest.mark.parametrize(
    ("hours", "now", "quiet"),
    [
        ("", "03:00", False),
        ("22:00-08:00", "23:30", True),
        ("22:00-08:00", "07:59", True),
        ("22:00-08:00", "08:00", False),
        ("12:00-13:00", "12:30", True),
        ("12:00-13:00", "13:00", False),
        ("12:00-13:00", "03:00", False),
    ],
)
def test_quiet_hours_may_span_midnight(hours: str, now: str, quiet: bool) -> None:
    assert is_quiet(hours, time.fromisoformat(now)) is quiet


@pytest.mark.parametrize(
    ("version", "environ", "can"),
    [
        ("kitty(0.38.1)", {}, True),
        ("iTerm2 3.5.10", {}, True),
        ("", {"VTE_VERSION": "7600", "TERM": "xterm-256color"}, True),
        ("XTerm(390)", {"TERM": "xterm-256color"}, False),
        ("tmux 3.4", {"TERM": "tmux-256color"}, False),
    ],
)
def test_terminals_that_show_them_are_known(version: str, environ: dict[str, str], can: bool) -> None:
    assert can_notify(version, environ) is can
