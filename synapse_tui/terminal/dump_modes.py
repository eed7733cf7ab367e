"""Everything of a terminal that is neither text nor cursor, as the sequences that set it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from .charsets import ASCII
from .colors import color_spec
from .dump_text import Pen
from .mode_ops import (
    ANSI_MODES,
    ANSI_REMEMBERED,
    MOUSE_ENCODINGS,
    PRIVATE_MODES,
    REMEMBERED,
    SCREEN_MODES,
)
from .modes import Modes
from .screen import Screen
from .state import SavedCursor
from .style import PROTECTED

DEFAULTS = {field.name: field.default for field in fields(Modes)}
LATE = (6, 7, 69, 2026, 2027)
"""Private modes that change how the rest of a dump is drawn: these come last."""
_SRM = 12
"""Local echo off: the one remembered mode that is set from the start."""
_SHIFTS = ("\x0f", "\x0e", "\x1bn", "\x1bo")


def switch(number: int, on: bool) -> str:
    """DECSET or DECRST."""
    return f"\x1b[?{number}{'h' if on else 'l'}"


def before_text(screen: Screen) -> Iterator[str]:
    """What goes before all text: settings without an effect on it, and the stacks."""
    if screen.attribute_extent:
        yield f"\x1b[{screen.attribute_extent}*x"
    if screen.level != 4:
        yield f'\x1b[{60 + screen.level};1"p'  # a soft reset, so nothing else may come before it
    if screen.eight_bit_replies:
        yield "\x1b G"
    if screen.checksum_flags:
        yield f"\x1b[{screen.checksum_flags}#y"
    for number, on in screen.saved_modes.items():
        yield from _saved_mode(number, on)
    for number in sorted(REMEMBERED):
        if number << 5 in screen.mode:
            yield switch(number, True)
    yield from _titles(screen)
    yield from _colors(screen)


def _saved_mode(number: int, on: bool) -> Iterator[str]:
    """XTSAVE keeps the value that a mode has at that moment; then it is as it was."""
    if number in SCREEN_MODES:
        change, back = switch(47, on), switch(47, False)
    else:
        change = switch(number, on)
        back = switch(number, bool(DEFAULTS.get(PRIVATE_MODES.get(number, ""), False)))
    yield f"{change}\x1b[?{number}s{back}"


def _titles(screen: Screen) -> Iterator[str]:
    for code, which, stack, name in (
        (1, 1, screen.icon_stack, screen.icon_name),
        (2, 2, screen.title_stack, screen.title),
    ):
        for kept in stack:
            yield f"\x1b]{code};{kept}\x1b\\\x1b[22;{which}t"
        if stack or name:
            yield f"\x1b]{code};{name}\x1b\\"


def _colors(screen: Screen) -> Iterator[str]:
    for number, color in screen.colors.own.items():
        yield f"\x1b]{number};{color_spec(color)}\x1b\\"
    for index, color in screen.colors.palette.items():
        yield f"\x1b]4;{index};{color_spec(color)}\x1b\\"


def renditions(screen: Screen, pen: Pen) -> None:
    """The stack of XTPUSHSGR."""
    for style, parts in zip(screen.saved_styles, screen.saved_parts, strict=True):
        pen.rendition(style)
        pen.parts.append(f"\x1b[{';'.join(map(str, parts))}#{{")
    pen.rendition(0)


def keyboard(stack: Sequence[int]) -> Iterator[str]:
    """The kitty keyboard stack of the screen that is shown."""
    if stack[0]:
        yield f"\x1b[={stack[0]}u"
    for flags in stack[1:]:
        yield f"\x1b[>{flags}u"


def charsets(codes: Sequence[str], shift: int) -> str:
    """Designations of G0 to G3, and which of them is in use; from the state after a reset."""
    designations = [f"\x1b{mode}{code}" for mode, code in zip("()*+", codes, strict=True) if code != ASCII]
    return "".join(designations) + (_SHIFTS[shift] if shift else "")


def saved_cursor(saved: SavedCursor, columns: int, lines: int, pen: Pen) -> None:
    """DECSC at a place that is painted afterwards, since a pending wrap needs a character there."""
    if saved == SavedCursor():
        return
    add = pen.parts.append
    pending = saved.x >= columns
    add(switch(6, True) if saved.origin else "")
    add(f"\x1b[{min(saved.y, lines - 1) + 1};{min(saved.x, columns - 1) + 1}H{'x' if pending else ''}")
    add(charsets(saved.charsets, saved.shift))
    pen.rendition(saved.style)
    add("\x1b7")
    pen.rendition(0)
    add(charsets_reset(saved.charsets, saved.shift))
    add(switch(6, False) if saved.origin else "")


def charsets_reset(codes: Sequence[str], shift: int) -> str:
    """ASCII everywhere again after `charsets`."""
    designations = [f"\x1b{mode}{ASCII}" for mode, code in zip("()*+", codes, strict=True) if code != ASCII]
    return "".join(designations) + (_SHIFTS[0] if shift else "")


def tab_stops(screen: Screen) -> Iterator[str]:
    """Tab stops that are not those of a reset; they move the cursor."""
    usual = set(range(8, max(screen.columns, 1024), 8))
    if screen.tabstops == usual:
        return
    kept = {stop for stop in usual if stop >= screen.columns}
    if kept <= screen.tabstops:
        for stop in sorted(usual - kept - screen.tabstops):
            yield f"\x1b[{stop + 1}G\x1b[g"
    else:
        yield "\x1b[3g"
        usual = set()
    for stop in sorted(screen.tabstops - usual):
        if stop < screen.columns:
            yield f"\x1b[{stop + 1}G\x1bH"


def after_text(screen: Screen) -> Iterator[str]:
    """Modes that neither move the cursor nor change what is drawn."""
    modes = screen.modes
    for number, name in PRIVATE_MODES.items():
        value = getattr(modes, name)
        if number not in LATE and value != DEFAULTS[name]:
            yield switch(number, value)
    encodings = [number for number, name in MOUSE_ENCODINGS.items() if name == modes.mouse_encoding]
    for number in (modes.mouse, *encodings):
        yield switch(number, True) if number else ""
    for number in ANSI_REMEMBERED:
        if (number in screen.mode) != (number == _SRM):
            yield f"\x1b[{number}{'h' if number in screen.mode else 'l'}"
    yield f"\x1b[>4;{modes.modify_other_keys}m" if modes.modify_other_keys else ""
    yield f"\x1b[{screen.cursor_shape} q" if screen.cursor_shape else ""


def region(screen: Screen) -> Iterator[str]:
    """Margins and origin mode; the cursor goes home with each."""
    if screen.modes.margins:
        yield switch(69, True)
    if (screen.left, screen.right) != (0, screen.columns - 1):
        yield f"\x1b[{screen.left + 1};{screen.right + 1}s"
    if (screen.top, screen.bottom) != (0, screen.lines - 1):
        yield f"\x1b[{screen.top + 1};{screen.bottom + 1}r"
    if screen.modes.origin:
        yield switch(6, True)


def drawing(screen: Screen, pen: Pen) -> None:
    """How the next text is drawn; the cursor stays where it is."""
    add = pen.parts.append
    if screen.iso_protection:
        add("\x1bV")
        if not screen.style & PROTECTED:
            add("\x1bW")
        pen.assume(screen.style & PROTECTED)
    pen.rendition(screen.style)
    add(charsets(screen.charsets, screen.shift))
    for number, name in ANSI_MODES.items():
        if getattr(screen.modes, name):
            add(f"\x1b[{number}h")
    for number in (7, 2027, 2026):
        value = getattr(screen.modes, PRIVATE_MODES[number])
        if value != DEFAULTS[PRIVATE_MODES[number]]:
            add(switch(number, value))
    if screen.single_shift:
        add("\x1bN" if screen.single_shift == 2 else "\x1bO")
