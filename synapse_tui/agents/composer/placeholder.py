"""Tells a suggestion that an agent shows in its empty composer from a draft."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from synapse_tui.agents.profiles.profile import ComposerRules, PlaceholderStyle

from .box import Box

if TYPE_CHECKING:
    from synapse_tui.terminal import Style, Terminal

_RGB = 1 << 24
_GREY_PALETTE = range(232, 256)
"""The 24 greys of the 256-colour palette, from rgb 8,8,8 in steps of 10 (xterm's 256colres)."""
_DARKEST, _BRIGHTEST = 0x50, 0xB8
"""A suggestion's grey lies between these; darker is text on a light screen, brighter on a dark one."""
_COLORLESS = 0x1A
"""Channels of a grey differ by less."""


def is_placeholder(terminal: Terminal, rules: ComposerRules, box: Box, texts: Sequence[str]) -> bool:
    """Whether what stands in the composer is a suggestion.

    Args:
        terminal: For the styles and the cursor, which stands before a suggestion.
        rules: How a suggestion is drawn.
        box: Where the composer stands.
        texts: The draft's rows as they are read.
    """
    style = rules.placeholder
    text = " ".join(texts).strip()
    if not text or box.scrolled:
        return False
    if rules.cursor and (terminal.cursor.x, terminal.cursor.y) != (box.column, box.first):
        return False
    if style.text is not None and not style.text.search(text):
        return False
    return all(_faint(found, style) for found in _styles(terminal, box))


def _styles(terminal: Terminal, box: Box) -> Iterator[Style]:
    """Styles of the draft's visible characters; the one under the cursor may be drawn as the cursor."""
    cursor = terminal.cursor
    for y in range(box.first, box.last + 1):
        for x in range(box.column, terminal.columns):
            cell = terminal.cell(x, y)
            if cell.text.strip() and (x, y) != (cursor.x, cursor.y):
                yield cell.style


def _faint(style: Style, wanted: PlaceholderStyle) -> bool:
    return (wanted.dim and style.dim) or (wanted.grey and _grey(style.fg))


def _grey(color: int) -> bool:
    if color == 8:  # "bright black"
        return True
    if color in _GREY_PALETTE:
        return _DARKEST <= 8 + 10 * (color - 232) <= _BRIGHTEST
    if color < _RGB:
        return False
    channels = (color >> 16 & 255, color >> 8 & 255, color & 255)
    return max(channels) - min(channels) < _COLORLESS and _DARKEST <= sum(channels) / 3 <= _BRIGHTEST
