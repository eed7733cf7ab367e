"""Strings from the child that become events: titles, clipboard, notices, status, folders, links."""

from __future__ import annotations

import base64

import pytest

from synapse_tui.terminal import (
    Bell,
    ClipboardSet,
    ColorsChanged,
    Notification,
    PointerShape,
    ProgramStatus,
    ProgressChanged,
    PromptMark,
    TerminalEvent,
    TitleChanged,
    WorkingDirectory,
)
from tests.terminal.terminal_kit import fed, look, make, rows


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


EVENTS = [
    ("BEL, ECMA-48 8.3.3", "\x07", [Bell()]),
    ("OSC 0", "\x1b]0;hi\x07", [TitleChanged("hi")]),
    ("OSC 2 ended by ST", "\x1b]2;hi\x1b\\", [TitleChanged("hi")]),
    ("OSC 2 as C1", "\x9d2;hi\x9c", [TitleChanged("hi")]),
    ("a title with semicolons and more than ASCII", "\x1b]2;a;b ✳ 漢\x07", [TitleChanged("a;b ✳ 漢")]),
    ("the same title again", "\x1b]2;a\x07\x1b]2;a\x07", [TitleChanged("a")]),
    ("controls in a title", "\x1b]2;a\x01\nb\x07", [TitleChanged("ab")]),
    ("OSC 1 is the icon's", "\x1b]1;hi\x07", []),
    ("OSC 21, 104, 133 are no titles", "\x1b]21;x=?\x07", []),
    ("OSC 22, xterm", "\x1b]22;pointer\x07", [PointerShape("pointer")]),
    ("OSC 7", "\x1b]7;file://h/tmp\x07", [WorkingDirectory("file://h/tmp")]),
    ("OSC 1337 CurrentDir, iTerm2", "\x1b]1337;CurrentDir=/tmp\x07", [WorkingDirectory("file:///tmp")]),
    ("OSC 1337 anything else", "\x1b]1337;SetMark\x07", []),
    ("OSC 52, xterm", f"\x1b]52;c;{b64('hé')}\x07", [ClipboardSet("c", "hé")]),
    ("OSC 52 without a selection", f"\x1b]52;;{b64('x')}\x07", [ClipboardSet("c", "x")]),
    ("OSC 52 clearing", "\x1b]52;p;\x07", [ClipboardSet("p", "")]),
    ("OSC 52 must not read", "\x1b]52;c;?\x07", []),
    ("OSC 9, iTerm2", "\x1b]9;done\x07", [Notification("", "done")]),
    ("OSC 9;4, ConEmu", "\x1b]9;4;1;50\x07", [ProgressChanged(1, 50)]),
    ("OSC 9;4 without a value", "\x1b]9;4;3\x07", [ProgressChanged(3, 0)]),
    ("OSC 9;4 off", "\x1b]9;4;0;\x07", [ProgressChanged(0, 0)]),
    ("OSC 9;4 out of range", "\x1b]9;4;1;999\x07", [ProgressChanged(1, 100)]),
    ("OSC 9;2 of ConEmu is no notice", "\x1b]9;2;x\x07", []),
    ("OSC 777, urxvt", "\x1b]777;notify;t;b;c\x07", [Notification("t", "b;c")]),
    ("OSC 99, kitty", "\x1b]99;;hello\x07", [Notification("hello", "")]),
    ("OSC 99 body in base64", f"\x1b]99;e=1:p=body;{b64('hi')}\x07", [Notification("", "hi")]),
    (
        "OSC 99 in pieces",
        "\x1b]99;i=1:d=0;he\x07\x1b]99;i=1:d=0;llo\x07\x1b]99;i=1:p=body;you\x07",
        [Notification("hello", "you")],
    ),
    ("OSC 99 of buttons", "\x1b]99;i=1:p=buttons;x\x07", []),
    ("OSC 133 A, FinalTerm", "\x1b]133;A\x07", [PromptMark("A", {})]),
    ("OSC 133 D", "\x1b]133;D;1\x07", [PromptMark("D", {"status": "1"})]),
    ("OSC 133 with fields", "\x1b]133;A;aid=7;cl=m\x07", [PromptMark("A", {"aid": "7", "cl": "m"})]),
    ("OSC 7501", "\x1b]7501;state=working\x1b\\", [ProgramStatus("working", {})]),
    (
        "OSC 7501 with fields",
        f"\x1b]7501;state=blocked:kind=permission:msg={b64('rm?')}\x1b\\",
        [ProgramStatus("blocked", {"kind": "permission", "msg": "rm?"})],
    ),
    ("OSC 10 set", "\x1b]10;red\x07", [ColorsChanged()]),
    ("an unknown OSC", "\x1b]9999;x\x07", []),
    ("an OSC without a number", "\x1b]x\x07", []),
    ("an OSC broken off by CAN", "\x1b]2;hi\x18", []),
    ("an OSC broken off by a new sequence", "\x1b]2;hi\x1b[m", []),
]


@pytest.mark.parametrize(("data", "told"), [case[1:] for case in EVENTS], ids=[case[0] for case in EVENTS])
def test_event(data: str, told: list[TerminalEvent]) -> None:
    terminal, heard = make()
    terminal.feed(data.encode())
    assert list(heard) == told
    terminal.feed(b"ok")
    assert rows(terminal) == ["ok"], "nothing of the string is shown"


def test_events_are_the_same_however_the_input_is_cut() -> None:
    for _, data, told in EVENTS:
        terminal, heard = make()
        for byte in data.encode():
            terminal.feed(bytes([byte]))
        assert list(heard) == told


def test_titles_are_bounded() -> None:
    assert len(fed("\x1b]2;" + "x" * 100_000 + "\x07").title) == 1024


def test_title_stack() -> None:
    """XTWINOPS 22 and 23."""
    terminal, heard = make()
    terminal.feed(b"\x1b]2;one\x07\x1b[22;2t\x1b]2;two\x07\x1b[23;2t\x1b[23;2t")
    assert [event.title for event in heard if isinstance(event, TitleChanged)] == ["one", "two", "one"]
    terminal.feed(b"\x1b[22;0t" * 1000)
    assert len(terminal.screen.title_stack) <= 10


def test_long_clipboard() -> None:
    terminal, heard = make()
    text = "x" * 1_000_000
    terminal.feed(f"\x1b]52;c;{b64(text)}\x07".encode())
    assert list(heard) == [ClipboardSet("c", text)]


def test_a_string_without_end_is_not_kept_forever() -> None:
    terminal, heard = make()
    for _ in range(5):
        terminal.feed(b"\x1b]52;c;" + b"A" * 1_000_000 if _ == 0 else b"A" * 1_000_000)
    terminal.feed(b"\x07ok")
    assert list(heard) == []
    assert rows(terminal) == ["ok"]


def test_links() -> None:
    """OSC 8."""
    terminal = fed("\x1b]8;;http://a/\x1b\\ab\x1b]8;;\x1b\\c")
    assert look(terminal, 0, 0).link == "http://a/"
    assert look(terminal, 1, 0) is look(terminal, 0, 0)
    assert look(terminal, 2, 0).link is None
    assert rows(terminal) == ["abc"]


def test_sgr_0_does_not_end_a_link() -> None:
    assert look(fed("\x1b]8;;http://a/\x1b\\\x1b[0ma"), 0, 0).link == "http://a/"


def test_a_link_that_is_too_long_is_none() -> None:
    assert look(fed("\x1b]8;;http://" + "a" * 3000 + "\x1b\\a"), 0, 0).link is None


def test_many_links_are_bounded() -> None:
    terminal = fed("".join(f"\x1b]8;;http://{'y' * 1900}/{number}\x1b\\a" for number in range(2200)), 80, 4)
    table = terminal.screen.table
    assert sum(map(len, table._links.values())) <= 4_000_000
    assert look(terminal, 0, 0) is not None
