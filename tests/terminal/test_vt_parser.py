"""Sequences that are broken, strange, cut off, or hostile."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.dump import dump
from tests.terminal.terminal_kit import answer, at, fed, look, rows

SHOWN = [
    ("DCS is not shown", "AB\x1bPq#0;2~~\x1b\\CD"),
    ("APC is not shown", "AB\x1b_hello\x1b\\CD"),
    ("PM is not shown", "AB\x1b^hello\x1b\\CD"),
    ("SOS is not shown", "AB\x1bXhello\x1b\\CD"),
    ("BEL is no end of DCS, xterm", "AB\x1bPx\x07y\x1b\\CD"),
    ("C1 DCS and ST", "AB\x90hello\x9cCD"),
    ("an empty OSC", "AB\x1b]\x07CD"),
    ("CSI with an unknown final", "AB\x1b[5yCD"),
    ("CSI with unknown intermediates", "AB\x1b[&wCD"),
    ("DECSCL", 'AB\x1b[61;1"pCD'),
    ("private parameters", "AB\x1b[>5s\x1b[=5u\x1b[<5M\x1b[?5$pCD"),
    ("a private marker in the wrong place", "AB\x1b[1?hCD"),
    ("CAN breaks a sequence off", "AB\x1b[31\x18CD"),
    ("SUB breaks a sequence off", "AB\x1b[31\x1aCD"),
    ("ESC breaks a sequence off", "AB\x1b[31\x1b[mCD"),
    ("ESC ESC", "AB\x1b\x1b[mCD"),
    ("DEL in a sequence is ignored", "AB\x1b[\x7fmCD"),
    ("something beyond ASCII in a sequence is ignored", "AB\x1b[²mCD"),
    ("an escape sequence without a meaning", "AB\x1b!xCD"),
    ("an escape sequence with three intermediates", "AB\x1b #!xCD"),
    ("many parameters", "AB\x1b[" + "1;" * 500 + "mCD"),
    ("a control sequence that is too long", "AB\x1b[" + "1;" * 3000 + "mCD"),
    ("too long with CAN", "AB\x1b[" + "1;" * 3000 + "\x18CD"),
    ("kitty graphics", "AB\x1b_Gi=31,s=1;AAAA\x1b\\CD"),
]


@pytest.mark.parametrize("data", [case[1] for case in SHOWN], ids=[case[0] for case in SHOWN])
def test_only_the_text_is_shown(data: str) -> None:
    assert rows(fed(data)) == ["ABCD"]
    terminal = fed("")
    for byte in data.encode():
        terminal.feed(bytes([byte]))
    assert rows(terminal) == ["ABCD"]


def test_controls_inside_a_sequence_are_carried_out() -> None:
    """DEC STD 070 3-30: as if they stood before it."""
    terminal = fed("AB\x1b[3\r\n1mC")
    assert rows(terminal) == ["AB", "C"]
    assert look(terminal, 0, 1).fg == 1
    assert at(fed("\x1b\n[2;3H")) == (2, 1)
    assert rows(fed("\x1b(\n0q")) == ["", "─"]


def test_sequences_may_be_cut_anywhere() -> None:
    data = "a\x1b[1;31mb\x1b]2;t\x1b\\c\x1bP$qm\x1b\\\x1b(0q\x1b(B\x1b[?25l漢\x1b[2;3He"
    whole = fed(data, 20, 4)
    for cut in range(len(data.encode())):
        terminal = Terminal(20, 4)
        terminal.feed(data.encode()[:cut])
        terminal.feed(data.encode()[cut:])
        assert terminal.display == whole.display, cut
        assert terminal.title == "t"
        assert at(terminal) == at(whole)


def test_an_unknown_string_does_not_answer() -> None:
    assert answer("\x1bP$z\x1b\\\x1bPxyz\x1b\\\x1b]999;?\x07") == ""


def feed_in_pieces(data: bytes, size: int = 4096) -> float:
    terminal = Terminal(80, 24)
    start = time.process_time()
    for index in range(0, len(data), size):
        terminal.feed(data[index : index + size])
    return time.process_time() - start


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "long OSC": lambda n: b"\x1b]52;c;" + b"A" * n + b"\x07",
    "DCS without end": lambda n: b"\x1bP" + b"x" * n,
    "parameters without end": lambda n: b"\x1b[" + b"1;" * (n // 2),
    "intermediates without end": lambda n: b"\x1b" + b"(" * n,
    "marks without end": lambda n: b"a" + "\u0301".encode() * (n // 2),
    "joiners without end": lambda n: "👩\u200d".encode() * (n // 7),
    "viramas without end": lambda n: "क्".encode() * (n // 6),
    "controls in a sequence": lambda n: (b"\x1b[" + b"\t" * 100) * (n // 102),
    "escapes": lambda n: b"\x1b" * n,
    "one line": lambda n: b"y" * n,
    "wide line": lambda n: "漢".encode() * (n // 3),
    "repetition": lambda n: b"x\x1b[99999b" * (n // 900),
    "insertion": lambda n: b"\x1b[9999@" * (n // 7),
    "lines": lambda n: b"\x1b[9999L" * (n // 7),
    "alternation": lambda n: b"\x1b[?1049h\x1b[?1049l" * (n // 1600),
    "malformed characters": lambda n: b"\xff\xe3\x81\xc0" * (n // 4),
    "checksums": lambda n: b"\x1b[1;1;1;1;24;80*y" * (n // 1700),
    "saved modes": lambda n: b"".join(b"\x1b[?%ds" % number for number in range(n // 8)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_takes_linear_time(name: str) -> None:
    """Four times the input must not take more than some eight times the time, on a busy machine too."""
    make = HOSTILE[name]
    small, large = make(30_000), make(120_000)
    base = min(feed_in_pieces(small) for _ in range(2))
    assert any(feed_in_pieces(large) < 8 * max(base, 0.02) for _ in range(4))


def test_input_in_single_bytes_is_linear() -> None:
    for data in (b"\x1b[" + b"1;" * 8000, b"\x1b]0;" + b"x" * 16_000):
        assert any(feed_in_pieces(data, 1) < 5 for _ in range(4))


@pytest.mark.parametrize("cut", [1, 3, 7, 1000])
def test_costly_output_is_taken_in_over_several_calls_with_the_same_result(cut):
    ticks = iter(range(1_000_000))
    text = (
        "漢字\x1b[2;1Hab\x1b[1;1;1;4;1;2;3$v\x1b[1;1*y\x1b[31mc\x1b[3b\x1b]2;a title\x07\x1b[1;1;2;2;4$r"
        "\x9b2;2*y\x1b[?\x0825ld\x1bc\x1b[1\x1b[5;5Hx\x1b[2b\x1b#8\x1b[1;2;2;3$z\x1b[4*yé\x1b[3;3Hend\x1b[2b"
    ).encode()
    whole, paced = Terminal(10, 4), Terminal(10, 4, clock=lambda: float(next(ticks)))
    whole.feed(text)
    pauses = 0
    for start in range(0, len(text), cut):
        paced.feed(text[start : start + cut], 3)
        while paced.paused:
            pauses += 1
            paced.feed(b"", 3)
    assert paced.display == whole.display
    assert (at(paced), paced.title) == (at(whole), whole.title)
    assert paced.take_replies() == whole.take_replies()
    assert pauses > 5 or cut < 1000
    assert [look(paced, x, y) for y in range(4) for x in range(10)] == [
        look(whole, x, y) for y in range(4) for x in range(10)
    ]


CHEAP = {
    "LF": "\n",
    "VT": "\v",
    "tab": "\t",
    "SO and SI": "\x0e漢\x0f",
    "BS": "ab\b",
    "BEL": "\x07",
    "marks": "e\u0301\r",
    "marks of one character": "e" + "\u0301" * 50,
    "wide text": "漢字",
    "lines": "ab\r\n",
    "SGR": "\x1b[31ma",
    "SGR lines": "\x1b[31ma\r\n",
    "CUP": "\x1b[2;3Ha",
    "controls in a sequence": "\x1b[" + "\n" * 19_000 + "A",
    "CUP and SGR": "\x1b[2;3H\x1b[1mb漢",
}


@pytest.mark.parametrize("name", CHEAP)
def test_output_of_many_cheap_parts_is_paused_too(name):
    """Each costs little; 64 kB of them may cost a hundred times what is meant to be spent at once."""
    text = CHEAP[name]
    data = (text * (20_000 // len(text))).encode()
    ticks = iter(range(1_000_000))
    whole, paced = Terminal(10, 4), Terminal(10, 4, clock=lambda: float(next(ticks)))
    whole.feed(data)
    paced.feed(data, 3)
    pauses = 0
    while paced.paused:
        pauses += 1
        paced.feed(b"", 3)
    assert pauses >= 4
    assert paced.display == whole.display
    assert at(paced) == at(whole)
    assert [look(paced, x, y) for y in range(4) for x in range(10)] == [
        look(whole, x, y) for y in range(4) for x in range(10)
    ]
    assert paced.take_replies() == whole.take_replies()


def test_what_waits_after_a_pause_is_handed_to_another_terminal():
    ticks = iter(range(1_000_000))
    terminal = Terminal(10, 4, clock=lambda: float(next(ticks)))
    terminal.feed("\x1b[*y\x1b[*y\x1b[*y\x1b[2;2Hend 漢".encode() + b"\xe6", 3)
    assert terminal.paused
    successor = Terminal(10, 4)
    successor.feed(dump(terminal))
    assert rows(successor) == ["", " end 漢"]
    successor.feed("字".encode()[1:])
    terminal.feed("字".encode()[1:])
    assert rows(successor) == rows(terminal)
