"""Characters of all widths and the clusters they form (UAX #11, UAX #29, mode 2027)."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.stream import Utf8Decoder
from tests.terminal.terminal_kit import at, fed, rows

WIDTHS = [
    ("a", 1),
    ("é", 1),
    ("e\u0301", 1),
    ("漢", 2),
    ("한", 2),
    ("ᄒ\u1161\u11ab", 2),
    ("カ\u3099", 2),
    ("😀", 2),
    ("⚠", 1),
    ("⚠️", 2),
    ("✈️", 2),
    ("⌚", 2),
    ("⌚\ufe0e", 1),
    ("1️⃣", 2),
    ("#️⃣", 2),
    ("👍🏽", 2),
    ("☝🏻", 1),
    ("🕵🏻\u200d♀️", 2),
    ("👩\u200d💻", 2),
    ("👨\u200d👩\u200d👧\u200d👦", 2),
    ("🧑🏻\u200d❤️\u200d🧑🏼", 2),
    ("👁️\u200d🗨️", 2),
    ("🏳️\u200d🌈", 2),
    ("🇩🇪", 2),
    ("🇩🇪🇫🇷", 4),
    ("🏴\U000e0067\U000e0062\U000e007f", 2),
    ("\u00ad", 1),
    ("│", 1),
    ("⠋", 1),
    ("\ue0b0", 1),
    ("נָ", 1),
    ("ที่", 1),
    ("को", 2),
    ("क्षि", 2),
    ("ñ", 1),
]


@pytest.mark.parametrize(("text", "width"), WIDTHS, ids=[text for text, _ in WIDTHS])
def test_width(text: str, width: int) -> None:
    whole, cut = fed(f"AB{text}CD"), fed("")
    for byte in f"AB{text}CD".encode():
        cut.feed(bytes([byte]))
    for terminal in (whole, cut):
        assert at(terminal)[0] == 4 + width
        assert rows(terminal) == [terminal.line(0).text] == [f"AB{text}CD"]


@pytest.mark.parametrize("char", ["\u200b", "\ufeff", "\u2060", "\u200d", "\ufe0f", "\u0300", "\u061c"])
def test_what_has_no_width_eats_no_text(char: str) -> None:
    assert rows(fed(f"AB{char}CD"))[0].replace(char, "") == "ABCD"
    assert at(fed(f"AB{char}CD")) == (4, 0)
    assert rows(fed(f"{char}ABCD")) == ["ABCD"], "with nothing before it, it is dropped"


def test_cells_of_wide_characters() -> None:
    terminal = fed("a漢b")
    assert [terminal.cell(x, 0).text for x in range(4)] == ["a", "漢", "", "b"]
    assert [terminal.cell(x, 0).width for x in range(4)] == [1, 2, 0, 1]


def test_a_wide_character_does_not_fit_into_the_last_column() -> None:
    terminal = fed("abcdefghi漢x")
    assert rows(terminal) == ["abcdefghi", "漢x"]
    assert terminal.line(1).wrapped
    assert rows(fed("\x1b[?7labcdefghi漢")) == ["abcdefghi"], "without autowrap it is dropped, as by xterm"


def test_a_wide_character_that_is_half_overwritten_leaves_a_blank() -> None:
    assert rows(fed("a漢b\x1b[1;2Hx")) == ["ax b"]
    assert rows(fed("a漢b\x1b[1;3Hx")) == ["a xb"]
    assert rows(fed("漢字\x1b[1;2H漢")) == [" 漢"]


def test_a_sign_stays_when_a_program_that_takes_it_for_narrow_writes_over_its_second_cell() -> None:
    """Vim does: to it, and to terminals without mode 2027, U+FE0F changes nothing."""
    terminal = fed(" a⚠️")
    terminal.feed(b"\x1b[1;4H warn")
    assert rows(terminal) == [" a⚠ warn"]
    assert [terminal.cell(x, 0).width for x in range(4)] == [1] * 4


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\x1b[1;3Hx", "a⚠xb"),
        ("\x1b[1;3H漢", "a⚠漢"),
        ("\x1b[1;3H\x1b[X", "a⚠ b"),
        ("\x1b[1;3H\x1b[K", "a⚠"),
        ("\x1b[1;3H\x1b[P", "a⚠b"),
        ("\x1b[1;3H\x1b[@", "a⚠  b"),
        ("\x1b[4h\x1b[1;3Hx", "a⚠x b"),
        ("\x1b[1;3;1;3$z", "a⚠ b"),
        ("\x1b[120;1;3;1;3$x", "a⚠xb"),
        ("\x1b[1;3;1;3${", "a⚠ b"),
        ("\x1b[1;1;1;1;1;1;3$v", "a⚠ab"),
        ("\x1b[1;1;1;2;1;1;6$v", "a⚠️b a⚠"),
        ("\x1b[?69h\x1b[3;9s\x1b[S", "a⚠"),
        ("\x1b[?69h\x1b[3;9s\x1b[1;3H\x1b['}", "a⚠  b"),
        ("\x1b[?69h\x1b[1;2s\x1b[1;1H\x1b[P", "⚠  b"),
        ("\x1b[1;2Hx", "ax b"),
        ("\x1b[1;2H漢", "a漢b"),
        ("\x1b[1;2H\x1b[X", "a  b"),
        ("\x1b[1;2H\x1b[P", "a b"),
        ("\x1b[1;3H\x1b[1K", "   b"),
    ],
)
def test_a_sign_that_loses_its_second_cell_is_narrow_and_one_that_loses_its_first_is_gone(
    data: str, shown: str
) -> None:
    terminal = fed("a⚠️b" + data)
    assert rows(terminal) == [shown]
    assert sum(terminal.cell(x, 0).width for x in range(10)) == 10


def test_attributes_of_an_area_take_a_wide_character_whole() -> None:
    terminal = fed("a漢b漢c\x1b[1;3;1;5;7$r")
    assert [terminal.cell(x, 0).style.reverse for x in range(7)] == [False] * 3 + [True] * 3 + [False]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\x1b[1;3H\x1b[K", "a"),
        ("\x1b[1;3H\x1b[1K", "    b"[1:]),
        ("\x1b[1;2H\x1b[X", "a  b"),
        ("\x1b[1;3H\x1b[P", "a b"),
        ("\x1b[1;3H\x1b[@", "a   b"),
        ("\x1b[1;2H\x1b[P", "a b"),
    ],
)
def test_editing_through_a_wide_character(data: str, shown: str) -> None:
    assert rows(fed("a漢b" + data)) == [shown]


def test_insertion_pushes_half_a_wide_character_out() -> None:
    assert rows(fed("abcdefgh漢\x1b[1;1H\x1b[@")) == [" abcdefgh"]


def test_combining_marks_pile_up_only_so_far() -> None:
    terminal = fed("a" + "\u0301" * 1000 + "b")
    assert len(terminal.cell(0, 0).text) == 32
    assert terminal.cell(1, 0).text == "b"


def test_a_mark_after_the_last_column_belongs_to_it() -> None:
    terminal = fed("abcdefghie")
    terminal.feed("\u0301x".encode())
    assert rows(terminal) == ["abcdefghie\u0301", "x"]


def test_a_character_that_becomes_too_wide_for_its_row_moves_on() -> None:
    terminal = fed("abcdefghi⚠")
    terminal.feed("️x".encode())
    assert rows(terminal) == ["abcdefghi", "⚠️x"]
    assert rows(fed("abcdefghi⚠️x")) == ["abcdefghi", "⚠️x"]


def test_without_mode_2027_every_code_point_stands_alone() -> None:
    assert at(fed("\x1b[?2027l👩\u200d💻"))[0] == 4
    assert at(fed("\x1b[?2027l⚠️"))[0] == 1
    assert rows(fed("\x1b[?2027le\u0301x")) == ["e\u0301x"]


def test_a_cluster_that_has_no_room_to_grow_stays_on_its_row() -> None:
    """Without autowrap what would make it wide at the edge is dropped, as a wide character is."""
    terminal = fed("\x1b[?7lab", columns=2)
    terminal.feed("\u200d\U0001f44d\U0001f3fd\x1b[Hc".encode())
    assert [terminal.cell(x, 0).text for x in range(2)] == ["c", "b\u200d"]
    assert [len(row.cells or "") for row in terminal.screen.rows] == [2, 0, 0, 0]


def test_the_input_stays_utf_8() -> None:
    """ESC % @ (ECMA-35 15.4) is ignored, as by xterm in a UTF-8 locale: it would spoil a session."""
    assert rows(fed("\x1b%@é\x1b%G")) == ["é"]


@pytest.mark.parametrize("char", ["\x00", "\x7f", "\x05", "\x01", "\x1c"])
def test_controls_without_a_meaning_show_nothing(char: str) -> None:
    assert rows(fed(f"ab{char}cd")) == ["abcd"]


BYTES = b" A\x80\x9b\xa0\xbf\xc0\xc3\xe0\xe3\xed\xf0\xf4\xf5\xf8\xfc\xfe\xff"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xc3\xa9\xe3\x81\x82\xf0\x9f\x91\x8d", "\u00e9\u3042\U0001f44d"),
        (b"\xc2!\xe0!\xe0\xa0!", "\ufffd!\ufffd!\ufffd!"),
        (b"\xc2\xc3\xa9\xe0\xc3\xa9", "\ufffd\u00e9\ufffd\u00e9"),
        (b"\xc0\x80\xc1\xbf", "\ufffd\ufffd"),
        (b"\xe0\x80\x80\xe0\x9f\xbf", "\ufffd\ufffd"),
        (b"\xf0\x80\x80\x80\xf0\x8f\xbf\xbf", "\ufffd\ufffd"),
        (b"\xed\xa0\x80\xed\xbf\xbf", "\ufffd\ufffd"),
        (b"\xf7\xbf\xbf\xbf\xf8\x88\x80\x80\x80", "\ufffd\ufffd"),
        (b"\x80\x80\xfe\xffa", "\ufffd\ufffd\ufffd\ufffda"),
    ],
)
def test_decoding(data: bytes, shown: str) -> None:
    """xterm, ptydata.c `decodeUtf8`: overlong forms, surrogates and too great numbers are one character."""
    assert Utf8Decoder().decode(data, final=True) == shown
    assert "".join(rows(fed(data, columns=40))) == shown


@given(strategies.binary(max_size=40))
def test_what_is_well_formed_is_as_python_has_it(data: bytes) -> None:
    try:
        expected = data.decode()
    except UnicodeDecodeError:
        expected = Utf8Decoder().decode(data, final=True)
        assert "\ufffd" in expected
    assert Utf8Decoder().decode(data, final=True) == expected


@given(strategies.lists(strategies.lists(strategies.sampled_from(BYTES), max_size=6).map(bytes), max_size=8))
def test_pieces_are_as_the_whole(pieces: list[bytes]) -> None:
    decoder = Utf8Decoder()
    text = "".join(decoder.decode(piece) for piece in pieces) + decoder.decode(b"", final=True)
    assert text == Utf8Decoder().decode(b"".join(pieces), final=True)


def test_the_bytes_of_an_open_character_are_kept() -> None:
    decoder = Utf8Decoder()
    assert decoder.decode(b"a\xe3\x81") == "a"
    assert decoder.getstate()[0] == b"\xe3\x81"
    assert decoder.decode(b"\x82") == "\u3042"


_BLANK = "\x1b[39;49m \x1b[39;48;2;30;30;30m"
RATATUI = (
    f"\x1b[2;1H어\x1b[2;3H ⚠️{_BLANK} 한\x1b[2;9H국\x1b[2;11H어\x1b[2;13H ❤️{_BLANK} € "
    f"🏳️\u200d🌈{_BLANK} end\x1b[2;25H 1️⃣\x1b[2;28H ."
)
"""What ratatui wrote when it had drawn something else on that row before."""
ROW = "어 ⚠️ 한국어 ❤️ € 🏳️\u200d🌈 end 1️⃣ ."


def shown(output: str, size: int, *, half_blanks: bool = True) -> list[str]:
    """What a terminal shows of a program's output that comes in pieces of so many bytes."""
    terminal = Terminal(40, 4)
    terminal.half_blanks = half_blanks
    data = output.encode()
    for place in range(0, len(data), size):
        terminal.feed(data[place : place + size])
    return rows(terminal)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_row_of_ratatui_stands_in_its_place(size: int) -> None:
    assert shown(RATATUI, size) == ["", ROW]


def test_it_is_shifted_for_a_terminal_that_does_not_know() -> None:
    assert shown(RATATUI, 1000, half_blanks=False) != ["", ROW]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("output", "row"),
    [
        ("⚠️ a", "⚠️a"),
        ("⚠️  a", "⚠️ a"),
        ("⚠️\x1b[1;3H a", "⚠️ a"),  # the cursor was moved: it is the next cell
        ("⚠️\x1b[1m a", "⚠️a"),
        ("🎉 a", "🎉 a"),  # no variation selector: it writes nothing for the second cell
        ("⚠ a", "⚠ a"),
        ("a\ufe0f b", "a\ufe0f b"),  # that makes no emoji of it, so it has no second cell
        ("⚠️\r\n a", "⚠️"),
    ],
)
def test_only_the_blank_right_after_such_an_emoji_is_its_second_cell(
    output: str, row: str, size: int
) -> None:
    assert shown(output, size)[0] == row


def test_titles_are_left_alone() -> None:
    terminal = Terminal(40, 4)
    terminal.half_blanks = True
    terminal.feed("\x1b]2;⚠️ a title\x07".encode())
    assert terminal.title == "⚠️ a title"


def test_other_programs_keep_their_blanks() -> None:
    assert shown("⚠️ a ❤️  b", 1000, half_blanks=False) == ["⚠️ a ❤️  b"]
