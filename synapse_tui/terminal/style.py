"""Styles: one whole number per cell inside the core, an interned `Style` for those who read.

A packed style is a number with the colours, attributes and link of a cell in bit fields, so that every SGR
sequence is one `style & keep | add`, comparing two cells is comparing two numbers, and 0 is the default
style.
"""

from __future__ import annotations

RGB = 1 << 24
"""Set in a colour of a `Style` that is 24-bit: `RGB | 0xRRGGBB`."""

BOLD, DIM, ITALIC, BLINK, REVERSE, HIDDEN, STRIKE, OVERLINE = (1 << bit for bit in range(8))
UNDERLINE_SHIFT = 8
UNDERLINE = 0b111 << UNDERLINE_SHIFT
PROTECTED = 1 << 11
"""Protected from selective erase (DECSCA)."""

COLOR = (1 << 26) - 1
"""A packed colour is the colour of `Style` plus one: 0 default, 1 to 256 palette, `RGB + 1 + 0xRRGGBB`."""
FG_SHIFT, BG_SHIFT, UNDERLINE_COLOR_SHIFT, LINK_SHIFT = 12, 38, 64, 90
FG = COLOR << FG_SHIFT
BG = COLOR << BG_SHIFT
UNDERLINE_COLOR = COLOR << UNDERLINE_COLOR_SHIFT
ATTRIBUTES = (1 << 11) - 1
RENDITION = ATTRIBUTES | FG | BG | UNDERLINE_COLOR
"""Everything that SGR 0 resets: neither protection nor link."""
NO_LINK = (1 << LINK_SHIFT) - 1
EVERYTHING = (1 << 128) - 1
"""All bits of a packed style: masks are cut out of it, as Python is slower with negative numbers."""

_STYLES_KEPT = 16384
_LINKS_KEPT = 65536
_LINK_BYTES_KEPT = 4_000_000


class Style:
    """How a cell looks; equal styles of one terminal are one object, so painters may key caches by it.

    Attributes:
        fg: Foreground: -1 default, 0-255 palette, `RGB | 0xRRGGBB`.
        bg: Background, likewise.
        bold: SGR 1.
        dim: SGR 2.
        italic: SGR 3.
        blink: SGR 5 or 6.
        reverse: SGR 7.
        hidden: SGR 8.
        strike: SGR 9.
        overline: SGR 53.
        underline: 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed (SGR 4, 4:n, 21).
        underline_color: Colour of the underline (SGR 58), -1 for the foreground's.
        link: URI of the hyperlink (OSC 8), None for none.
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
    """Turns packed styles into `Style` objects and links into numbers, for one terminal."""

    def __init__(self) -> None:
        self._styles: dict[int, Style] = {0: DEFAULT_STYLE}
        self._links: dict[int, tuple[str, str]] = {}
        self._link_ids: dict[tuple[str, str], int] = {}
        self._link_bytes = 0
        self._oldest_link = self._next_link = 1

    def style(self, packed: int) -> Style:
        """The `Style` of a packed style; the same object for the same number while it is in use."""
        style = self._styles.get(packed)
        if style is None:
            if len(self._styles) >= _STYLES_KEPT:
                self._styles = {0: DEFAULT_STYLE}
            style = self._styles[packed] = Style(packed, self.target(packed >> LINK_SHIFT)[0] or None)
        return style

    def target(self, link: int) -> tuple[str, str]:
        """Where a link leads, and its group; both empty for no link and for one that is forgotten."""
        return self._links.get(link, ("", ""))

    def link(self, uri: str, group: str = "") -> int:
        """Number a link.

        Args:
            uri: Where it leads.
            group: The `id` parameter of OSC 8: cells of one group are one link.

        Returns:
            A number to be shifted to `LINK_SHIFT`.
        """
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
        """Numbers go in their order; to look for the first key of a dictionary takes longer each time."""
        uri, group = self._links.pop(self._oldest_link)
        self._oldest_link += 1
        self._link_bytes -= len(uri) + len(group)
        del self._link_ids[group, uri]


def erased(style: int) -> int:
    """The style that erasing leaves behind: the background only (back colour erase)."""
    return style & BG
