"""Mouse reports of the outer terminal (xterm ctlseqs, "Mouse Tracking"), and Textual's events for them."""

from __future__ import annotations

import re
from typing import Final

from textual import events

from synapse_tui.terminal.input import MouseEvent, MouseKind

_SGR = re.compile(rb"\x1b\[<(-?\d+);(-?\d+);(-?\d+)([Mm])")
_WHEELS: Final[tuple[MouseKind, ...]] = ("wheel_up", "wheel_down", "wheel_left", "wheel_right")
_CLASSES: Final[dict[MouseKind, type[events.MouseEvent]]] = {
    "press": events.MouseDown,
    "release": events.MouseUp,
    "move": events.MouseMove,
    "wheel_up": events.MouseScrollUp,
    "wheel_down": events.MouseScrollDown,
    "wheel_left": events.MouseScrollLeft,
    "wheel_right": events.MouseScrollRight,
}


def decode_mouse(raw: bytes) -> MouseEvent | None:
    """The event of one report.

    Args:
        raw: `CSI < b ; x ; y M` or `m` (?1006), or `CSI M` and three bytes (?1000).

    Returns:
        The event; None when it is outside of the screen.
    """
    if match := _SGR.fullmatch(raw):
        code, x, y = (int(field) for field in match.groups()[:3])
        return _event(code, x - 1, y - 1, released=match[4] == b"m")
    code, x, y = (byte - 32 for byte in raw[3:6])
    return _event(code, x - 1, y - 1, released=code & 0b11 == 3 and not code & 0b1110_0000)


def _event(code: int, x: int, y: int, *, released: bool) -> MouseEvent | None:
    if x < 0 or y < 0:
        return None
    low = code & 0b11
    kind: MouseKind = "release" if released else "press"
    if code & 128:
        button = 8 + low
    elif code & 64:
        kind, button = _WHEELS[low], 0
    else:
        button = 0 if low == 3 else low + 1
    if code & 32 or (kind == "press" and not button):
        kind = "move"
    return MouseEvent(x, y, button, kind, shift=bool(code & 4), alt=bool(code & 8), ctrl=bool(code & 16))


def textual_mouse(event: MouseEvent, previous: tuple[int, int]) -> events.MouseEvent:
    """Textual's event of a mouse event.

    Args:
        event: The event in cells of the screen.
        previous: Column and row of the event before.
    """
    return _CLASSES[event.kind](
        None,
        event.x,
        event.y,
        event.x - previous[0],
        event.y - previous[1],
        event.button,
        event.shift,
        event.alt,
        event.ctrl,
        screen_x=event.x,
        screen_y=event.y,
    )
