"""What the outer terminal tells about itself, and what is said to it in return."""

from __future__ import annotations

from dataclasses import replace

import pytest

from synapse_tui.driver.outer import (
    QUERY_COLORS,
    Handshake,
    OuterTerminal,
    Reaction,
    keyboard,
    parse_color,
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


class TestHandshake:
    def start(self, environ: dict[str, str] = XTERM, *, mouse: bool = True) -> tuple[Handshake, str]:
        outer = OuterTerminal()
        handshake = Handshake(environ, mouse=mouse, outer=outer)
        return handshake, handshake.begin()

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


@pytest.mark.parametrize(
    ("child", "outer"), [(0, 5), (1, 5), (2, 7), (7, 7), (8, 29), (15, 31), (31, 31), (16, 5), (4, 5)]
)
def test_keyboard_flags(child, outer):
    assert keyboard(child) == outer
