"""SGR (ECMA-48 8.3.117, xterm ctlseqs): parameters to a change of a packed style, and back."""

from __future__ import annotations

from typing import NamedTuple

from .style import (
    BG,
    BG_SHIFT,
    BLINK,
    BOLD,
    COLOR,
    DIM,
    EVERYTHING,
    FG,
    FG_SHIFT,
    HIDDEN,
    ITALIC,
    OVERLINE,
    RENDITION,
    REVERSE,
    RGB,
    STRIKE,
    UNDERLINE,
    UNDERLINE_COLOR,
    UNDERLINE_COLOR_SHIFT,
    UNDERLINE_SHIFT,
)

Change = tuple[int, int]
"""What a sequence does to a packed style: `style & change[0] | change[1]`."""

_KEPT = 4096


def _but(field: int) -> int:
    """A mask that keeps all but a field."""
    return EVERYTHING & ~field


def _build_simple() -> dict[str, Change]:
    def put(name: int, field: int, value: int) -> None:
        table[str(name)] = (_but(field), value)

    table: dict[str, Change] = {"": (_but(RENDITION), 0), "0": (_but(RENDITION), 0)}
    for code, bit in ((1, BOLD), (2, DIM), (3, ITALIC), (5, BLINK), (6, BLINK), (7, REVERSE), (8, HIDDEN)):
        put(code, 0, bit)
    for code, bit in ((9, STRIKE), (53, OVERLINE)):
        put(code, 0, bit)
    for code, field in (
        (22, BOLD | DIM),
        (23, ITALIC),
        (24, UNDERLINE),
        (25, BLINK),
        (27, REVERSE),
        (28, HIDDEN),
    ):
        put(code, field, 0)
    for code, field in ((29, STRIKE), (55, OVERLINE), (39, FG), (49, BG), (59, UNDERLINE_COLOR)):
        put(code, field, 0)
    put(4, UNDERLINE, 1 << UNDERLINE_SHIFT)
    put(21, UNDERLINE, 2 << UNDERLINE_SHIFT)
    for color in range(8):
        put(30 + color, FG, color + 1 << FG_SHIFT)
        put(40 + color, BG, color + 1 << BG_SHIFT)
        put(90 + color, FG, color + 9 << FG_SHIFT)
        put(100 + color, BG, color + 9 << BG_SHIFT)
    return table


class _Color(NamedTuple):
    """Where the colour of 38, 48 or 58 goes in a packed style; its parts come shifted from tables.

    Attributes:
        mask: Keeps all but this colour.
        shift: Of a palette colour.
        base: Of a 24-bit colour, without its parts.
        reds: Decimal digits to red.
        greens: Likewise.
        blues: Likewise.
    """

    mask: int
    shift: int
    base: int
    reds: dict[str, int]
    greens: dict[str, int]
    blues: dict[str, int]


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
    """Parses the parameters of SGR sequences, remembering the recent ones."""

    def __init__(self) -> None:
        self.known: dict[str, Change] = {}

    def change(self, parameters: str) -> Change:
        """What a sequence does.

        Args:
            parameters: What stands between `CSI` and `m`: digits, `;` and `:`.
        """
        known = self.known.get(parameters)
        return self.learn(parameters) if known is None else known

    def learn(self, parameters: str) -> Change:
        """Parse a sequence that is not among the known ones."""
        if len(self.known) >= _KEPT:
            self.known.clear()
        result = self.known[parameters] = parse(parameters)
        return result


def parse(parameters: str) -> Change:
    """Parse the parameters of one SGR sequence into the change that it makes."""
    items = parameters.split(";")
    count = len(items)
    if count == 10:
        return _both_colors(items) or _any(items)
    return (_color_and_one(items) if count == 6 else None) or _any(items)


def _color_and_one(items: list[str]) -> Change | None:
    """`38;2;r;g;b` and one more parameter, such as 49; None for anything else."""
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
    """`38;2;r;g;b;48;2;r;g;b`, which painting programs send for every cell; None for anything else."""
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
    """A colour with its `5;n` or `2;r;g;b`, or a parameter that is written in an uncommon way.

    Args:
        items: The parameters.
        index: Of the one after it.

    Returns:
        What it does, and where to go on: at the end after a colour that cannot be made out.
    """
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
    """A packed 24-bit colour."""
    return (RGB | _byte(red) << 16 | _byte(green) << 8 | _byte(blue)) + 1


def _byte(text: str) -> int:
    """A colour component or palette index; what is out of range is cut to 255."""
    digits = text.lstrip("0") or "0"
    return min(int(digits), 255) if len(digits) < 10 and digits.isdecimal() else 255


def _odd(item: str) -> Change:
    """A parameter with sub-parameters, or one with leading zeros; what is unknown changes nothing."""
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
    """Colour of `38:5:n`, `38:2::r:g:b` (ITU T.416) or `38:2:r:g:b` (as older programs send it)."""
    if parts[0] == "5" and len(parts) > 1:
        return _byte(parts[1]) + 1
    if parts[0] == "2" and len(parts) > 3:
        return _direct(*(parts[2:5] if len(parts) > 4 else parts[1:4]))
    return None


_ON = ((BOLD, "1"), (DIM, "2"), (ITALIC, "3"), (BLINK, "5"), (REVERSE, "7"), (HIDDEN, "8"), (STRIKE, "9"))


def unparse(style: int) -> str:
    """SGR parameters that make a packed style from the default one, as DECRQSS reports them."""
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
