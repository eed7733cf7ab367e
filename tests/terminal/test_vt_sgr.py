"""SGR (ECMA-48 8.3.117, xterm ctlseqs "Character Attributes", ITU T.416) and the styles it makes."""

from __future__ import annotations

import pytest

from synapse_tui.terminal import DEFAULT_STYLE, RGB, Style, Terminal
from tests.terminal.terminal_kit import fed, look

ORANGE = RGB | 255 << 16 | 128 << 8

STYLES = [
    ("1", {"bold": True}),
    ("2", {"dim": True}),
    ("3", {"italic": True}),
    ("4", {"underline": 1}),
    ("5", {"blink": True}),
    ("6", {"blink": True}),
    ("7", {"reverse": True}),
    ("8", {"hidden": True}),
    ("9", {"strike": True}),
    ("21", {"underline": 2}),
    ("53", {"overline": True}),
    ("1;2;3;4;7;9;53;0", {}),
    ("1;2;22", {}),
    ("3;23", {}),
    ("4:3;24", {}),
    ("5;25", {}),
    ("7;27", {}),
    ("8;28", {}),
    ("9;29", {}),
    ("53;55", {}),
    ("31", {"fg": 1}),
    ("91", {"fg": 9}),
    ("42", {"bg": 2}),
    ("105", {"bg": 13}),
    ("31;39", {}),
    ("41;49", {}),
    ("38;5;208", {"fg": 208}),
    ("48;5;3", {"bg": 3}),
    ("38;5;999", {"fg": 255}),
    ("38;2;255;128;0", {"fg": ORANGE}),
    ("48;2;255;128;0", {"bg": ORANGE}),
    ("38;2;255;128;0;48;2;0;0;1", {"fg": ORANGE, "bg": RGB | 1}),
    ("38;2;255;128;0;38;2;0;0;1", {"fg": RGB | 1}),
    ("38;2;;;", {"fg": RGB}),
    ("38;2;255;128;0;49", {"fg": ORANGE}),
    ("48;2;255;128;0;1", {"bg": ORANGE, "bold": True}),
    ("38;2;255;128;0;39", {}),
    ("38;2;255;128;0;0", {}),
    ("38;2;255;128;0;38", {"fg": ORANGE}),
    ("38;2;255;128;0;4:3", {"fg": ORANGE, "underline": 3}),
    ("38;2;999;128;0;1", {"fg": ORANGE, "bold": True}),
    ("1;2;255;128;0;1", {"bold": True}),
    ("38:5:208", {"fg": 208}),
    ("38:2:255:128:0", {"fg": ORANGE}),
    ("38:2::255:128:0", {"fg": ORANGE}),
    ("38:2:1:255:128:0", {"fg": ORANGE}),
    ("48:2::255:128:0", {"bg": ORANGE}),
    ("58;2;255;128;0;4", {"underline_color": ORANGE, "underline": 1}),
    ("58;2;31;1;7", {"underline_color": RGB | 31 << 16 | 1 << 8 | 7}),
    ("58;5;31", {"underline_color": 31}),
    ("58:2::255:128:0", {"underline_color": ORANGE}),
    ("58;5;31;59", {}),
    ("4:0", {}),
    ("4:1", {"underline": 1}),
    ("4:2", {"underline": 2}),
    ("4:3", {"underline": 3}),
    ("4:4", {"underline": 4}),
    ("4:5", {"underline": 5}),
    ("4:9", {}),
    ("4:", {"underline": 1}),
    ("", {}),
    (";31", {"fg": 1}),
    ("1;;31", {"fg": 1}),
    ("01;031", {"bold": True, "fg": 1}),
    ("38;5", {}),
    ("38", {}),
    ("38;9;1", {}),
    ("38:9:1;1", {"bold": True}),
    ("99;1", {"bold": True}),
    ("38;2;300;0;0", {"fg": RGB | 255 << 16}),
    (";".join(["1"] * 100), {"bold": True}),
]


@pytest.mark.parametrize(("parameters", "wanted"), STYLES, ids=[parameters[:30] for parameters, _ in STYLES])
def test_style(parameters: str, wanted: dict[str, int]) -> None:
    style = look(fed(f"\x1b[{parameters}mx"), 0, 0)
    fields = [name for name in Style.__slots__ if name not in ("packed", "link")]
    given = {name: getattr(style, name) for name in fields if getattr(style, name) not in (-1, 0)}
    assert given == wanted


def test_a_private_m_is_no_sgr() -> None:
    for data in ("\x1b[>4;1m", "\x1b[?4m", "\x1b[=1m", "\x1b[<1m", "\x1b[1 m"):
        assert look(fed(data + "x"), 0, 0) is DEFAULT_STYLE


def test_equal_styles_are_one_object() -> None:
    terminal = fed("\x1b[1;31ma\x1b[0mb\x1b[31;1mc")
    assert look(terminal, 0, 0) is look(terminal, 2, 0)
    assert look(terminal, 1, 0) is DEFAULT_STYLE


def test_styles_of_two_terminals_compare_by_value() -> None:
    one, other = look(fed("\x1b[1ma"), 0, 0), look(fed("\x1b[1ma"), 0, 0)
    assert one == other
    assert hash(one) == hash(other)
    assert one != DEFAULT_STYLE


def test_styles_are_bounded() -> None:
    terminal = Terminal(80, 24)
    for start in range(0, 20_000, 1000):
        terminal.feed(b"".join(b"\x1b[38;2;%d;%d;1mx" % divmod(n, 256) for n in range(start, start + 1000)))
        for y in range(24):
            terminal.line(y).runs()
    assert len(terminal.screen.table._styles) <= 16384
    assert len(terminal.screen.sgr.known) <= 4096


def test_xtpushsgr() -> None:
    """Xterm ctlseqs."""
    terminal = fed("\x1b[1;31m\x1b[#{\x1b[0ma\x1b[#}b")
    assert not look(terminal, 0, 0).bold
    assert look(terminal, 1, 0).bold


@pytest.mark.parametrize(
    ("parts", "bold", "underline", "fg", "bg"),
    [
        ("", True, 1, 1, 2),
        ("1", True, 0, -1, -1),
        ("4;30", False, 1, 1, -1),
        ("21;11", False, 1, -1, 2),
        ("99", False, 0, -1, -1),
    ],
)
def test_xtpushsgr_of_some_parts(parts: str, bold: bool, underline: int, fg: int, bg: int) -> None:
    """Xterm ctlseqs: the parameters say what XTPOPSGR is to take back."""
    style = look(fed(f"\x1b[1;4;31;42m\x1b[{parts}#{{\x1b[0m\x1b[#}}a"), 0, 0)
    assert (style.bold, style.underline, style.fg, style.bg) == (bold, underline, fg, bg)


def test_runs() -> None:
    terminal = fed("ab\x1b[1mcd\x1b[0m 漢")
    bold = look(terminal, 2, 0)
    assert terminal.line(0).runs() == [
        ("ab", DEFAULT_STYLE, 2),
        ("cd", bold, 2),
        (" 漢   ", DEFAULT_STYLE, 6),
    ]
    assert sum(count for _, _, count in terminal.line(1).runs()) == 10
    assert terminal.line(0).text == "abcd 漢"


@pytest.mark.parametrize(
    "data", ["abc", "ab漢\x1b[1mc", "\x1b[4Ge\u0301x", "\x1b[44m\x1b[Kab", "abcdef\x1b[2Gx\x1b[31my"]
)
def test_runs_and_cells_say_the_same(data: str) -> None:
    terminal = fed(data)
    for y in range(terminal.lines):
        line = terminal.line(y)
        cells = [line.cell(x) for x in range(10)]
        styles = [style for _, style, count in line.runs() for _ in range(count)]
        assert [cell.style for cell in cells] == styles
        assert "".join(cell.text for cell in cells) == "".join(text for text, _, _ in line.runs())
        assert sum(cell.width for cell in cells) == 10
