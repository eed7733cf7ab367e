"""What the outer terminal tells about itself, and what is said to it in return."""

from __future__ import annotations

from dataclasses import replace

import pytest

from synapse_tui.driver.outer import (
    QUERY_COLORS,
    UNDO_ALL,
    Handshake,
    OuterTerminal,
    Reaction,
    keyboard,
    parse_color,
    queries,
)

XTERM = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("text", "color"),
    [
        ("rgb:ffff/8080/0000", (255, 128, 0)),
        ("rgb:ff/80/00", (255, 128, 0)),
        ("rgb:f/8/0", (255, 136, 0)),
        ("rgb:fff/800/000", (255, 128, 0)),
        ("rgba:ffff/8080/0000/ffff", (255, 128, 0)),
        ("#ff8000", (255, 128, 0)),
        ("", None),
        ("red", None),
        ("rgb:1/2", None),
        ("rgb:12345/0/0", None),
    ],
)
def test_colors(text, color):
    assert parse_color(text) == color


@pytest.mark.parametrize(
    ("reply", "name", "value"),
    [
        (b"\x1b]10;rgb:ff/ff/ff\x07", "foreground", (255, 255, 255)),
        (b"\x1b]11;#102030\x1b\\", "background", (16, 32, 48)),
        (b"\x1b]12;rgb:0/0/0\x1b\\", "cursor", (0, 0, 0)),
        (b"\x1b[?2026;2$y", "modes", {2026: 2}),
        (b"\x1b[?997;2n", "scheme_dark", False),
        (b"\x1bP>|xterm(390)\x1b\\", "version", "xterm(390)"),
        *(
            (reply, "", None)
            for reply in (b"\x1b[>41;390;0c", b"\x1b[24;80R", b"\x1b]11;nonsense\x07", b"\x1b]99;1;x\x07")
        ),
        *((reply, "", None) for reply in (b"\x1b]52;c;aGVsbG8=\x07", b"\x1b[?1;2;3n")),
    ],
)
def test_replies(reply, name, value):
    outer = OuterTerminal()
    Handshake(XTERM, mouse=True, outer=outer).take(reply)
    assert outer == (replace(OuterTerminal(), **{name: value}) if name else OuterTerminal())


def test_dark_by_its_word_or_its_background():
    outer = OuterTerminal()
    assert outer.dark is None
    outer.background = (250, 250, 250)
    assert outer.dark is False
    outer.background = (20, 20, 40)
    assert outer.dark is True
    outer.scheme_dark = False
    assert outer.dark is False


def test_settable_modes():
    outer = OuterTerminal(modes={1: 1, 2: 2, 3: 3, 4: 4, 5: 0})
    assert [number for number in range(1, 7) if outer.settable(number)] == [1, 2]


class TestHandshake:
    def start(self, environ: dict[str, str] = XTERM, *, mouse: bool = True) -> tuple[Handshake, str]:
        outer = OuterTerminal()
        handshake = Handshake(environ, mouse=mouse, outer=outer)
        return handshake, handshake.begin()

    def test_what_is_set_is_undone_in_reverse(self):
        handshake, begin = self.start()
        end = handshake.end()
        assert begin.startswith("\x1b[?1049h")
        assert end.endswith("\x1b[?1049l")
        for mode in ("1000", "1002", "1003", "1006", "1004", "2004"):
            assert f"\x1b[?{mode}h" in begin
            assert f"\x1b[?{mode}l" in end
            assert f"\x1b[?{mode}l".encode() in UNDO_ALL
        assert handshake.end() == ""

    def test_kitty_is_pushed_once_and_only_on_its_answer(self):
        handshake, begin = self.start()
        assert "\x1b[>" not in begin.replace("\x1b[>q", "")
        assert handshake.take(b"\x1b[?0u") == Reaction("\x1b[>5u")
        assert handshake.take(b"\x1b[?5u") == Reaction("")
        assert handshake.take(b"\x1b[?62c") == Reaction("")
        assert handshake.end().count("\x1b[<u") == 1

    def test_other_keys_when_kitty_is_unknown(self):
        handshake, _ = self.start()
        assert handshake.waiting
        assert handshake.take(b"\x1b[?64c") == Reaction("\x1b[>4;1m")
        assert not handshake.waiting
        assert handshake.take(b"\x1b[?64c") == Reaction("")  # answers a question that is not ours
        assert "\x1b[>4m" in handshake.end()

    def test_modes_that_it_knows(self):
        handshake, _ = self.start()
        assert handshake.take(b"\x1b[?2026;2$y") == Reaction(synchronized=True)
        assert handshake.take(b"\x1b[?2031;2$y") == Reaction("\x1b[?2031h")
        assert handshake.take(b"\x1b[?2026;0$y") == Reaction()
        assert "\x1b[?2031l" in handshake.end()

    def test_colours_are_asked_again_when_the_scheme_changes(self):
        handshake, _ = self.start()
        assert handshake.take(b"\x1b[?997;1n") == Reaction(colors=True)
        assert handshake.take(b"\x1b[?997;1n") == Reaction(colors=True)
        assert handshake.take(b"\x1b[?997;2n") == Reaction(QUERY_COLORS, colors=True)

    def test_keys_for_the_child(self):
        handshake, _ = self.start()
        assert handshake.keyboard(3) == ""  # not pushed yet, but remembered
        assert handshake.take(b"\x1b[?0u") == Reaction("\x1b[>7u")
        assert handshake.keyboard(7) == ""
        assert handshake.keyboard(0) == "\x1b[=5u"
        assert handshake.resume() == "\x1b[=5u"

    def test_missed_settings_are_made_up_for_by_the_last_of_each_kind(self):
        handshake, _ = self.start()
        handshake.missed("x\x1b[?25l\x1b[2 q\x1b]22;text\x07")
        handshake.missed("\x1b[?25h\x1b]2;title\x07 and text")
        assert handshake.resume() == "\x1b[?25h\x1b[2 q\x1b]22;text\x07\x1b]2;title\x07"
        assert handshake.resume() == ""

    def test_without_mouse(self):
        _, begin = self.start(mouse=False)
        assert "1000" not in begin

    def test_limited_terminal(self):
        handshake, begin = self.start({"TERM": "linux"})
        assert not handshake.waiting
        assert "]" not in begin + handshake.end()
        assert (
            handshake.fit("a\x1b]8;;http://x\x1b\\b\x1b]22;text\x07\x1b[ q\x1b[2 qc\x1b[1m") == "abc\x1b[1m"
        )
        handshake, _ = self.start()
        assert handshake.fit("\x1b]22;text\x07") == "\x1b]22;text\x07"


@pytest.mark.parametrize(
    ("child", "outer"), [(0, 5), (1, 5), (2, 7), (7, 7), (8, 29), (15, 31), (31, 31), (16, 5), (4, 5)]
)
def test_keyboard_flags(child, outer):
    assert keyboard(child) == outer


def test_questions():
    assert queries(XTERM).endswith("\x1b[c")
    assert queries({"TERM": "dumb"}) == ""
    assert "$p" not in queries({**XTERM, "TERM_PROGRAM": "Apple_Terminal"})
