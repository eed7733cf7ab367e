"""Styles: one integer per cell inside the core, an interned `Style` outside.

A packed style holds the colours, attributes and link of a cell in bit fields, so that every SGR sequence is
one `style & keep | add`, comparing two cells is comparing two integers, and 0 is the default style.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import NamedTuple

from pyte.graphics import FG_BG_256

from synapse_tui.system.dataclass import dataclass

RGB = 1 << 24  # Flag in a `Style` colour that is 24-bit: `RGB | 0xRRGGBB`

BOLD, DIM, ITALIC, BLINK, REVERSE, HIDDEN, STRIKE, OVERLINE = (1 << bit for bit in range(8))
UNDERLINE_SHIFT = 8
UNDERLINE = 0b111 << UNDERLINE_SHIFT
PROTECTED = 1 << 11  # Protected from selective erase (DECSCA)

COLOR = (1 << 26) - 1
"""A packed colour is a `Style` colour plus one: 0 default, 1 to 256 palette, `RGB + 1 + 0xRRGGBB`."""
FG_SHIFT, BG_SHIFT, UNDERLINE_COLOR_SHIFT, LINK_SHIFT = 12, 38, 64, 90
FG = COLOR << FG_SHIFT
BG = COLOR << BG_SHIFT
UNDERLINE_COLOR = COLOR << UNDERLINE_COLOR_SHIFT
ATTRIBUTES = (1 << 11) - 1
RENDITION = ATTRIBUTES | FG | BG | UNDERLINE_COLOR
"""Everything that SGR 0 resets; excludes protection and link."""
NO_LINK = (1 << LINK_SHIFT) - 1
EVERYTHING = (1 << 128) - 1
"""All bits of a packed style. Masks derive from it, as Python is slower with negative integers."""

_STYLES_KEPT = 16384
_LINKS_KEPT = 65536
_LINK_BYTES_KEPT = 4_000_000


class Style:
    """How a cell looks. Equal styles of one terminal are the same object and can key caches.

    Attributes:
        fg: Foreground: -1 default, 0-255 palette, `RGB | 0xRRGGBB`.
        bg: Background, likewise.
        underline: 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed (SGR 4, 4:n, 21).
        underline_color: Colour of the underline (SGR 58); -1 follows the foreground.
        link: URI of the hyperlink (OSC 8).
    """

    __slots__ = (
        "bg",
        "blink",
        "bold",
        "dim",
        "fg",
        "hidden",
        "italic",
        "link",
        "overline",
        "packed",
        "reverse",
        "strike",
        "underline",
        "underline_color",
    )

    def __init__(self, packed: int = 0, link: str | None = None) -> None:
        self.packed = packed
        self.link = link
        self.fg = (packed >> FG_SHIFT & COLOR) - 1
        self.bg = (packed >> BG_SHIFT & COLOR) - 1
        self.underline_color = (packed >> UNDERLINE_COLOR_SHIFT & COLOR) - 1
        self.underline = packed >> UNDERLINE_SHIFT & 0b111
        self.bold = bool(packed & BOLD)
        self.dim = bool(packed & DIM)
        self.italic = bool(packed & ITALIC)
        self.blink = bool(packed & BLINK)
        self.reverse = bool(packed & REVERSE)
        self.hidden = bool(packed & HIDDEN)
        self.strike = bool(packed & STRIKE)
        self.overline = bool(packed & OVERLINE)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Style):
            return NotImplemented
        return self.packed == other.packed and self.link == other.link

    def __hash__(self) -> int:
        return hash((self.packed, self.link))

    def __repr__(self) -> str:
        shown = [
            f"{name}={value!r}"
            for name in self.__slots__
            if name != "packed" and (value := getattr(self, name)) not in (-1, 0, None)
        ]
        return f"Style({', '.join(shown)})"


DEFAULT_STYLE = Style()


class StyleTable:
    """Maps packed styles to `Style` objects and links to numbers, for one terminal."""

    def __init__(self) -> None:
        self._styles: dict[int, Style] = {0: DEFAULT_STYLE}
        self._links: dict[int, tuple[str, str]] = {}
        self._link_ids: dict[tuple[str, str], int] = {}
        self._link_bytes = 0
        self._oldest_link = self._next_link = 1

    def style(self, packed: int) -> Style:
        """Return the `Style` of a packed style; the same object for the same number while it is in use."""
        style = self._styles.get(packed)
        if style is None:
            if len(self._styles) >= _STYLES_KEPT:
                self._styles = {0: DEFAULT_STYLE}
            style = self._styles[packed] = Style(packed, self.target(packed >> LINK_SHIFT)[0] or None)
        return style

    def target(self, link: int) -> tuple[str, str]:
        return self._links.get(link, ("", ""))

    def link(self, uri: str, group: str = "") -> int:
        """Return a number for a link, to be shifted by `LINK_SHIFT`; OSC 8 `id` is the `group`."""
        key = (group, uri)
        number = self._link_ids.get(key)
        if number is None:
            number = self._link_ids[key] = self._next_link
            self._next_link += 1
            self._links[number] = (uri, group)
            self._link_bytes += len(uri) + len(group)
            while len(self._links) > _LINKS_KEPT or self._link_bytes > _LINK_BYTES_KEPT:
                self._forget_oldest_link()
        return number

    def _forget_oldest_link(self) -> None:
        """Numbers are ordered: finding the first key of a dictionary becomes slower with each removal."""
        uri, group = self._links.pop(self._oldest_link)
        self._oldest_link += 1
        self._link_bytes -= len(uri) + len(group)
        del self._link_ids[group, uri]


def erased(style: int) -> int:
    """The style left by erasing: only the background (back colour erase)."""
    return style & BG


Change = tuple[int, int]  # The effect of a sequence on a packed style: `style & change[0] | change[1]`

_KEPT = 4096


def _but(field: int) -> int:
    return EVERYTHING & ~field


def _build_simple() -> dict[str, Change]:
    def put(name: int, field: int, value: int) -> None:
        table[str(name)] = (_but(field), value)

    table: dict[str, Change] = {"": (_but(RENDITION), 0), "0": (_but(RENDITION), 0)}
    for code, bit in ((1, BOLD), (2, DIM), (3, ITALIC), (5, BLINK), (6, BLINK), (7, REVERSE), (8, HIDDEN)):
        put(code, 0, bit)
    for code, bit in ((9, STRIKE), (53, OVERLINE)):
        put(code, 0, bit)
    for code, bits in (
        (22, BOLD | DIM),
        (23, ITALIC),
        (24, UNDERLINE),
        (25, BLINK),
        (27, REVERSE),
        (28, HIDDEN),
    ):
        put(code, bits, 0)
    for code, bits in ((29, STRIKE), (55, OVERLINE), (39, FG), (49, BG), (59, UNDERLINE_COLOR)):
        put(code, bits, 0)
    put(4, UNDERLINE, 1 << UNDERLINE_SHIFT)
    put(21, UNDERLINE, 2 << UNDERLINE_SHIFT)
    for color in range(8):
        put(30 + color, FG, color + 1 << FG_SHIFT)
        put(40 + color, BG, color + 1 << BG_SHIFT)
        put(90 + color, FG, color + 9 << FG_SHIFT)
        put(100 + color, BG, color + 9 << BG_SHIFT)
    return table


class _Color(NamedTuple):
    mask: int  # Clears this colour
    shift: int  # For a palette colour
    base: int  # A 24-bit colour without its parts
    reds: dict[str, int]  # Decimal digits to red
    greens: dict[str, int]  # Likewise
    blues: dict[str, int]  # Likewise


def _color(field: int, shift: int) -> _Color:
    reds, greens, blues = (
        {str(value): value << part + shift for value in range(256)} | {"": 0} for part in (16, 8, 0)
    )
    return _Color(_but(field), shift, RGB + 1 << shift, reds, greens, blues)


_SIMPLE = _build_simple()
_COLORS = {"38": _color(FG, FG_SHIFT), "48": _color(BG, BG_SHIFT)}
_COLORS["58"] = _color(UNDERLINE_COLOR, UNDERLINE_COLOR_SHIFT)
_NOTHING: Change = (EVERYTHING, 0)


class SgrParser:
    def __init__(self) -> None:
        self.known: dict[str, Change] = {}

    def change(self, parameters: str) -> Change:
        known = self.known.get(parameters)
        return self.learn(parameters) if known is None else known

    def learn(self, parameters: str) -> Change:
        if len(self.known) >= _KEPT:
            self.known.clear()
        result = self.known[parameters] = parse(parameters)
        return result


def parse(parameters: str) -> Change:
    items = parameters.split(";")
    count = len(items)
    if count == 10:
        return _both_colors(items) or _any(items)
    return (_color_and_one(items) if count == 6 else None) or _any(items)


def _color_and_one(items: list[str]) -> Change | None:
    """Parse `38;2;r;g;b` and one more parameter, such as 49; None for anything else."""
    first, kind, red, green, blue, more = items
    if kind != "2":
        return None
    try:
        mask, _, base, reds, greens, blues = _COLORS[first]
        keep, add = _SIMPLE[more]
        value = base + reds[red] + greens[green] + blues[blue]
    except KeyError:
        return None
    return mask & keep, value & keep | add


def _both_colors(items: list[str]) -> Change | None:
    """Parse `38;2;r;g;b;48;2;r;g;b`, which drawing programs send for every cell; None for anything else."""
    first, kind, red, green, blue, second, other, red2, green2, blue2 = items
    if kind != "2" or other != "2" or first == second:
        return None
    try:
        mask, _, base, reds, greens, blues = _COLORS[first]
        mask2, _, base2, reds2, greens2, blues2 = _COLORS[second]
        add = base + reds[red] + greens[green] + blues[blue]
        return mask & mask2, add + base2 + reds2[red2] + greens2[green2] + blues2[blue2]
    except KeyError:
        return None


def _any(items: list[str]) -> Change:
    keep, add = EVERYTHING, 0
    index = 0
    while index < len(items):
        change = _SIMPLE.get(items[index])
        index += 1
        if change is None:
            change, index = _unusual(items, index)
        mask, value = change
        keep &= mask
        add = add & mask | value
    return keep, add


def _unusual(items: list[str], index: int) -> tuple[Change, int]:
    """Parse a colour with its `5;n` or `2;r;g;b`, or an uncommon parameter. Returns the next index too."""
    color = _COLORS.get(items[index - 1])
    if color is None:
        return _odd(items[index - 1]), index
    mask, shift, base, reds, greens, blues = color
    following = items[index : index + 4]
    if len(following) == 4 and following[0] == "2":
        _, red, green, blue = following
        try:
            value = base + reds[red] + greens[green] + blues[blue]
        except KeyError:
            value = _direct(red, green, blue) << shift
        return (mask, value), index + 4
    if len(following) > 1 and following[0] == "5":
        return (mask, _byte(following[1]) + 1 << shift), index + 2
    return _NOTHING, len(items)


def _direct(red: str, green: str, blue: str) -> int:
    return (RGB | _byte(red) << 16 | _byte(green) << 8 | _byte(blue)) + 1


def _byte(text: str) -> int:
    digits = text.lstrip("0") or "0"
    return min(int(digits), 255) if len(digits) < 10 and digits.isdecimal() else 255


def _odd(item: str) -> Change:
    if ":" not in item:
        return _SIMPLE.get(item.lstrip("0") or "0", _NOTHING)
    name, *rest = item.split(":")
    if name == "4":
        kind = _byte(rest[0]) if rest[0] else 1
        return (_but(UNDERLINE), kind << UNDERLINE_SHIFT) if kind <= 5 else _NOTHING
    color = _COLORS.get(name)
    value = _sub_color(rest)
    return _NOTHING if color is None or value is None else (color.mask, value << color.shift)


def _sub_color(parts: list[str]) -> int | None:
    """Parse the colour of `38:5:n`, `38:2::r:g:b` (ITU T.416) or `38:2:r:g:b` (older programs)."""
    if parts[0] == "5" and len(parts) > 1:
        return _byte(parts[1]) + 1
    if parts[0] == "2" and len(parts) > 3:
        return _direct(*(parts[2:5] if len(parts) > 4 else parts[1:4]))
    return None


_ON = ((BOLD, "1"), (DIM, "2"), (ITALIC, "3"), (BLINK, "5"), (REVERSE, "7"), (HIDDEN, "8"), (STRIKE, "9"))


def unparse(style: int) -> str:
    parts = ["0", *(code for bit, code in _ON if style & bit)]
    underline = style >> UNDERLINE_SHIFT & 7
    if underline:
        parts.append("4" if underline == 1 else "21" if underline == 2 else f"4:{underline}")
    if style & OVERLINE:
        parts.append("53")
    parts += _color_codes(style >> FG_SHIFT & COLOR, 30)
    parts += _color_codes(style >> BG_SHIFT & COLOR, 40)
    parts += _color_codes(style >> UNDERLINE_COLOR_SHIFT & COLOR, 50)
    return ";".join(parts)


def _color_codes(packed: int, base: int) -> list[str]:
    if packed == 0:
        return []
    color = packed - 1
    if color & RGB:
        return [f"{base + 8}:2::{color >> 16 & 255}:{color >> 8 & 255}:{color & 255}"]
    if base != 50 and color < 16:
        return [str(base + color if color < 8 else base + 52 + color)]
    return [f"{base + 8}:5:{color}"]


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
