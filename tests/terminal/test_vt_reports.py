"""What the child is answered."""

from __future__ import annotations

import pytest

from tests.terminal.terminal_kit import answer, fed

ANSWERS = [
    ("DA1, DEC STD 070 4-18", "\x1b[c", "\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c"),
    ("DA1 with 0", "\x1b[0c", "\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c"),
    ("DA1 with another parameter", "\x1b[1c", ""),
    ("DECID", "\x1bZ", "\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c"),
    ("DA2, xterm ctlseqs", "\x1b[>c", "\x1b[>41;380;0c"),
    ("DA3, xterm ctlseqs", "\x1b[=c", "\x1bP!|00000000\x1b\\"),
    ("XTVERSION, xterm ctlseqs", "\x1b[>q", "\x1bP>|synapse-tui\x1b\\"),
    ("XTVERSION 0", "\x1b[>0q", "\x1bP>|synapse-tui\x1b\\"),
    ("DSR 5, ECMA-48 8.3.35", "\x1b[5n", "\x1b[0n"),
    ("CPR, ECMA-48 8.3.14", "\x1b[2;3H\x1b[6n", "\x1b[2;3R"),
    ("CPR while a wrap is pending", "abcdefghij\x1b[6n", "\x1b[1;10R"),
    ("CPR in origin mode", "\x1b[2;3r\x1b[?6h\x1b[6n", "\x1b[1;1R"),
    ("DECXCPR, DEC STD 070", "\x1b[2;3H\x1b[?6n", "\x1b[?2;3;1R"),
    ("printer", "\x1b[?15n", "\x1b[?13n"),
    ("user defined keys", "\x1b[?25n", "\x1b[?20n"),
    ("keyboard", "\x1b[?26n", "\x1b[?27;1;0;0n"),
    ("locator", "\x1b[?55n", "\x1b[?53n"),
    ("macro space", "\x1b[?62n", "\x1b[0000*{"),
    ("memory checksum", "\x1b[?63;7n", "\x1bP7!~0000\x1b\\"),
    ("data integrity", "\x1b[?75n", "\x1b[?70n"),
    ("colour scheme", "\x1b[?996n", "\x1b[?997;1n"),
    ("window size in pixels", "\x1b[14t", "\x1b[4;64;80t"),
    ("cell size in pixels", "\x1b[16t", "\x1b[6;16;8t"),
    ("size in cells", "\x1b[18t", "\x1b[8;4;10t"),
    ("size of the screen in cells", "\x1b[19t", "\x1b[9;4;10t"),
    ("the title is not told", "\x1b]2;secret\x07\x1b[21t", "\x1b]l\x1b\\"),
    (
        "DECRQSS SGR, DEC STD 070",
        "\x1b[1;4:3;31;48;5;200m\x1bP$qm\x1b\\",
        "\x1bP1$r0;1;4:3;31;48:5:200m\x1b\\",
    ),
    ("DECRQSS SGR in 24 bits", "\x1b[38;2;1;2;3m\x1bP$qm\x1b\\", "\x1bP1$r0;38:2::1:2:3m\x1b\\"),
    ("DECRQSS DECSTBM", "\x1b[2;3r\x1bP$qr\x1b\\", "\x1bP1$r2;3r\x1b\\"),
    ("DECRQSS DECSLRM", "\x1bP$qs\x1b\\", "\x1bP1$r1;10s\x1b\\"),
    ("DECRQSS DECSCUSR", "\x1b[5 q\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\"),
    ("DECRQSS DECSCA", '\x1b[1"q\x1bP$q"q\x1b\\', '\x1bP1$r1"q\x1b\\'),
    ("DECRQSS DECSCL", '\x1bP$q"p\x1b\\', '\x1bP1$r64;1"p\x1b\\'),
    ("DECRQSS of what is unknown", "\x1bP$qz\x1b\\", "\x1bP0$r\x1b\\"),
    ("XTGETTCAP Co", "\x1bP+q436f\x1b\\", "\x1bP1+r436f=323536\x1b\\"),
    ("XTGETTCAP of what is unknown", "\x1bP+q4d73;zz\x1b\\", "\x1bP1+r4d73="),
    ("DECRQDE", '\x1b["v', '\x1b[4;10;1;1;1"w'),
    ("XTREPORTSGR, xterm ctlseqs", "\x1b[1;4;31mab\x1b[1;1;1;2#|", "\x1b[0;1;4;31m"),
    ("XTREPORTSGR of what is common", "\x1b[1;3;31ma\x1b[23;42mb\x1b[1;1;1;2#|", "\x1b[0;1;31m"),
    ("XTREPORTSGR of the screen", "\x1b[1ma\x1b[#|", "\x1b[0m"),
    ("DECTABSR", "\x1b[2$w", "\x1bP2$u9\x1b\\"),
    ("DECCIR", "\x1b[2;3H\x1b[1m\x1b[1$w", "\x1bP1$u2;3;1;A;@;@;0;2;@;BBBB\x1b\\"),
    ("OSC 10", "\x1b]10;?\x1b\\", "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"),
    ("OSC 11, ended by BEL", "\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x07"),
    ("OSC 12", "\x1b]12;?\x07", "\x1b]12;rgb:e5e5/e5e5/e5e5\x07"),
    (
        "OSC 10 with two questions",
        "\x1b]10;?;?\x07",
        "\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b]11;rgb:0000/0000/0000\x07",
    ),
    ("OSC 4", "\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
    (
        "OSC 4 with two questions",
        "\x1b]4;0;?;15;?\x07",
        "\x1b]4;0;rgb:0000/0000/0000\x07\x1b]4;15;rgb:ffff/ffff/ffff\x07",
    ),
    ("OSC 4 of a special colour", "\x1b]4;257;?\x07", "\x1b]4;257;rgb:e5e5/e5e5/e5e5\x07"),
    ("OSC 4 of no colour", "\x1b]4;261;?\x07", ""),
    ("OSC 5", "\x1b]5;0;red;0;?\x07", "\x1b]5;0;rgb:ffff/0000/0000\x07"),
    (
        "OSC 5 and OSC 4 mean the same",
        "\x1b]5;4;red\x07\x1b]4;260;?\x07",
        "\x1b]4;260;rgb:ffff/0000/0000\x07",
    ),
    ("OSC 105", "\x1b]5;0;red\x07\x1b]105;0\x07\x1b]5;0;?\x07", "\x1b]5;0;rgb:e5e5/e5e5/e5e5\x07"),
    ("OSC 105 of all", "\x1b]5;1;red\x07\x1b]105\x07\x1b]5;1;?\x07", "\x1b]5;1;rgb:e5e5/e5e5/e5e5\x07"),
    ("OSC 7501", "\x1b]7501;?\x07", "\x1b]7501;?\x07"),
    ("ENQ is not answered", "\x05", ""),
    ("kitty graphics are not answered", "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", ""),
]


@pytest.mark.parametrize(("data", "reply"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS])
def test_answer(data: str, reply: str) -> None:
    given = answer(data)
    assert given.startswith(reply) if reply.endswith("=") else given == reply


def test_answers_are_given_once() -> None:
    terminal = fed("\x1b[5n")
    assert terminal.take_replies() == b"\x1b[0n"
    assert terminal.take_replies() == b""


def test_eight_bit_answers() -> None:
    """S8C1T, DEC STD 070; the control is one byte, also where text is UTF-8 (xterm, `unparseputc1`)."""
    assert fed("\x1b G\x1b[5n").take_replies() == b"\x9b0n"
    assert fed("\x1b G\x1bP$qr\x1b\\").take_replies() == b"\x901$r1;4r\x9c"
    assert answer('\x1b[64;1"p\x1b[5n') == "\x1b[0n"
    assert answer("\x1b G\x1b F\x1b[5n") == "\x1b[0n"


def test_the_owner_sets_the_colors_that_are_told() -> None:
    terminal = fed("")
    terminal.colors.foreground = (1, 2, 3)
    terminal.feed(b"\x1b]10;?\x07")
    assert terminal.take_replies() == b"\x1b]10;rgb:0101/0202/0303\x07"
    terminal.feed(b"\x1b]10;#ffffff\x07\x1b]10;?\x07")
    assert terminal.take_replies() == b"\x1b]10;rgb:ffff/ffff/ffff\x07"
    terminal.feed(b"\x1b]110\x07\x1b]10;?\x07")
    assert terminal.take_replies() == b"\x1b]10;rgb:0101/0202/0303\x07"


@pytest.mark.parametrize(
    ("spec", "color"),
    [
        ("rgb:12/34/56", (0x12, 0x34, 0x56)),
        ("rgb:f/0/8", (255, 0, 136)),
        ("rgb:1234/5678/9abc", (0x12, 0x56, 0x9A)),
        ("#123456", (0x12, 0x34, 0x56)),
        ("#f80", (0xF0, 0x80, 0)),
        ("red", (255, 0, 0)),
    ],
)
def test_color_specifications(spec: str, color: tuple[int, int, int]) -> None:
    """XParseColor, as xterm reads OSC 4."""
    assert fed(f"\x1b]4;1;{spec}\x07").colors.palette == {1: color}


def test_a_broken_color_changes_nothing() -> None:
    assert fed("\x1b]4;1;rgb:zz/0/0\x07\x1b]4;x;red\x07\x1b]4\x07").colors.palette == {}
    assert fed("\x1b]4;1;red;2;blue\x07\x1b]104;1\x07").colors.palette == {2: (0, 0, 255)}
    assert fed("\x1b]4;1;red;2;blue\x07\x1b]104\x07").colors.palette == {}


def test_a_soft_reset_takes_the_palette_back() -> None:
    """xterm: `ReallyReset` resets the indexed and special colours, but not those of text and background."""
    terminal = fed("\x1b]4;1;blue\x07\x1b]5;0;blue\x07\x1b]10;blue\x07")
    damage = terminal.feed(b"\x1b[!p")
    assert damage.full
    assert terminal.colors.palette == {}
    assert terminal.colors.own == {10: (0, 0, 255)}
