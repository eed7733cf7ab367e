"""The colours that a child may query and set (OSC 4, 10, 11, 12 and their resets)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pyte.graphics import FG_BG_256

Rgb = tuple[int, int, int]  # Each 0 to 255

_HEX_PARTS = re.compile(r"rgb:([0-9a-f]{1,4})/([0-9a-f]{1,4})/([0-9a-f]{1,4})\Z", re.IGNORECASE)
_HASH = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{9}|[0-9a-f]{12})\Z", re.IGNORECASE)
_NAMED: dict[str, Rgb] = {
    "black": (0, 0, 0),
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "magenta": (255, 0, 255),
    "cyan": (0, 255, 255),
    "white": (255, 255, 255),
    "gray": (190, 190, 190),
    "grey": (190, 190, 190),
}


STANDARD_PALETTE: tuple[Rgb, ...] = tuple(
    (int(name[0:2], 16), int(name[2:4], 16), int(name[4:6], 16)) for name in FG_BG_256
)
FOREGROUND, BACKGROUND, CURSOR, HIGHLIGHT = 10, 11, 12, 17
SPECIAL = range(256, 261)
"""Numbers in OSC 4 of OSC 5's colours: for bold, underlined, blinking, reversed and italic text."""
DYNAMIC = range(10, 20)
"""Numbers of the dynamic colours: text, background, cursor, and others without an effect."""


@dataclass(slots=True)
class Colors:
    """Colours reported to the child; the first three come from the outer terminal."""

    foreground: Rgb = (229, 229, 229)
    background: Rgb = (0, 0, 0)
    cursor: Rgb = (229, 229, 229)
    dark: bool | None = None  # None decides by the background
    # Set by the child: number of the OSC (10 text, 11 background, 12 cursor, ...) → colour
    own: dict[int, Rgb] = field(default_factory=dict)
    # Indexed and special colours set by the child (OSC 4, OSC 5)
    palette: dict[int, Rgb] = field(default_factory=dict)

    def reset(self) -> None:
        self.own.clear()
        self.palette.clear()

    @property
    def is_dark(self) -> bool:
        """Whether the scheme is dark, as `CSI ? 996 n` reports it."""
        if self.dark is not None:
            return self.dark
        red, green, blue = self.background
        return 299 * red + 587 * green + 114 * blue < 128_000

    def dynamic(self, number: int) -> Rgb:
        own = self.own.get(number)
        if own is not None:
            return own
        if number in (CURSOR, 18):
            return self.cursor
        return self.background if number in (BACKGROUND, 14, 16, HIGHLIGHT) else self.foreground

    def indexed(self, index: int) -> Rgb:
        """Return the colour for OSC 4; special ones default to the text's."""
        own = self.palette.get(index)
        if own is not None:
            return own
        return STANDARD_PALETTE[index] if index < len(STANDARD_PALETTE) else self.foreground


def parse_color(text: str) -> Rgb | None:
    """Parse a colour like XParseColor: `rgb:r/g/b`, `#rgb` with 1 to 4 digits each, some names."""
    found = _HEX_PARTS.match(text)
    if found:
        red, green, blue = (int(part, 16) * 255 // (16 ** len(part) - 1) for part in found.groups())
        return red, green, blue
    found = _HASH.match(text)
    if found:
        digits = found.group(1)
        size = len(digits) // 3
        red, green, blue = (int((digits[i : i + size] + "0")[:2], 16) for i in range(0, 3 * size, size))
        return red, green, blue
    return _NAMED.get(text.strip().lower())


def color_spec(color: Rgb) -> str:
    """Return a colour as xterm reports it: `rgb:rrrr/gggg/bbbb`."""
    return "rgb:" + "/".join(f"{part:02x}{part:02x}" for part in color)
