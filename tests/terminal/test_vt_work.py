"""The work for hostile output, counted in lines of Python."""

from __future__ import annotations

import pytest

from synapse_tui.terminal import Terminal, core
from tests.work import work

pytestmark = pytest.mark.skipif(
    core.scan is not None,
    reason="the compiled core runs few lines: see test_vt_compiled.py",
)

PLAIN = b"an ordinary line of what a program prints, as wide as most of them are\r\n" * 600
HOSTILE = {
    "marks": "\u0301",
    "marks after a character": "a" + "\u0301" * 500,
    "tabs": "\t",
    "ESC": "\x1b",
    "ESC before a sequence": "\x1b" * 99 + "[m",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_byte_of_hostile_output_is_as_much_work_as_one_of_plain_output(name: str) -> None:
    data = HOSTILE[name].encode()
    plain, hostile = (feed(each) for each in (PLAIN, data * (len(PLAIN) // len(data) or 1)))
    assert hostile <= 3 * plain, f"{plain} lines for plain output, {hostile} for this"


def feed(data: bytes) -> int:
    terminal = Terminal(80, 24)
    with work() as counted:
        for index in range(0, len(data), 4096):
            terminal.feed(data[index : index + 4096])
    return counted.lines


REPEATED = {
    "a narrow character": "x",
    "a wide character": "漢",
    "a cluster": "e\u0301",
    "an emoji": "👩\u200d👩",
}
MARGINS = {
    "no margins": "",
    "side margins": "\x1b[?69h\x1b[2;79s",
    "narrow margins": "\x1b[?69h\x1b[2;3s\x1b[1;2H",
}


@pytest.mark.parametrize("margins", MARGINS)
@pytest.mark.parametrize("character", REPEATED)
def test_a_huge_repeat_is_as_much_work_as_writing_the_rows_it_fills(character: str, margins: str) -> None:
    mode, cells = MARGINS[margins].encode(), 2 if margins == "narrow margins" else 70
    plain = feed(mode + (b"y" * cells + b"\r\n") * 24 * 20)
    repeated = feed(mode + f"{REPEATED[character]}\x1b[99999b".encode() * 20)
    most = 3 if len(REPEATED[character]) == 1 else 20  # clusters are drawn one by one where a row ends
    assert repeated <= most * plain, f"{plain} lines to write 20 screens of rows, {repeated} to repeat"
