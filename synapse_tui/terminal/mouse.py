"""Mouse to bytes: what a terminal reports to its child (xterm ctlseqs, "Mouse Tracking")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .modes import Modes

MouseKind = Literal["press", "release", "move", "wheel_up", "wheel_down", "wheel_left", "wheel_right"]

_WHEEL = {"wheel_up": 64, "wheel_down": 65, "wheel_left": 66, "wheel_right": 67}
_WHEEL_ROWS = 3
_ONE_BYTE_LIMIT = 222
_TWO_BYTE_LIMIT = 2014


@dataclass(frozen=True, slots=True)
class MouseEvent:
    """One report of the mouse.

    Attributes:
        x: Column of the cell, from 0.
        y: Row of the cell, from 0.
        button: 1 left, 2 middle, 3 right, 8 to 11 the further ones; 0 for none (a move with no button held, a
            wheel).
        kind: What happened.
    """

    x: int
    y: int
    button: int = 0
    kind: MouseKind = "press"
    shift: bool = False
    alt: bool = False
    ctrl: bool = False


def encode_mouse(event: MouseEvent, modes: Modes, *, cell_size: tuple[int, int] = (8, 16)) -> bytes:
    """The bytes a child is sent for a mouse event.

    Args:
        event: What happened, in cells of the child's screen.
        modes: The child's modes.
        cell_size: Width and height of a cell in pixels, for a child that asked for pixels (?1016): the same
            that it is told when it asks for the size.

    Returns:
        The report; cursor keys for the wheel on the alternate screen with ?1007; empty when the child did not
        ask for the event, or its encoding cannot tell a place so far out.
    """
    if not modes.mouse:
        return _alternate_scroll(event, modes)
    if not _wanted(event, modes.mouse):
        return b""
    code = _button_code(event)
    if modes.mouse != 9:
        code += 4 * event.shift + 8 * event.alt + 16 * event.ctrl
    return _encode(event, code, modes, cell_size)


def _wanted(event: MouseEvent, mode: int) -> bool:
    if mode == 9:
        return event.kind == "press" and 1 <= event.button <= 3
    if event.kind == "move":
        return mode == 1003 or (mode == 1002 and event.button > 0)
    return True


def _button_code(event: MouseEvent) -> int:
    if event.kind in _WHEEL:
        return _WHEEL[event.kind]
    move = 32 if event.kind == "move" else 0
    if event.button >= 8:
        return 128 + event.button - 8 + move
    return (event.button - 1 if event.button else 3) + move


def _encode(event: MouseEvent, code: int, modes: Modes, cell_size: tuple[int, int]) -> bytes:
    x, y = event.x + 1, event.y + 1
    if modes.mouse_encoding in {"sgr", "sgr-pixels"}:
        if modes.mouse_encoding == "sgr-pixels":
            width, height = cell_size
            x, y = event.x * width + width // 2 + 1, event.y * height + height // 2 + 1
        return f"\x1b[<{code};{x};{y}{'m' if event.kind == 'release' else 'M'}".encode()
    if event.kind == "release":
        code = code & ~0b11 & 0x3F | 3  # these encodings do not tell which button it was
    if modes.mouse_encoding == "urxvt":
        return f"\x1b[{code + 32};{x};{y}M".encode()
    limit = _TWO_BYTE_LIMIT if modes.mouse_encoding == "utf8" else _ONE_BYTE_LIMIT
    if max(event.x, event.y) > limit:
        return b""
    encoding = "utf-8" if modes.mouse_encoding == "utf8" else "latin-1"
    return b"\x1b[M" + f"{chr(code + 32)}{chr(x + 32)}{chr(y + 32)}".encode(encoding)


def _alternate_scroll(event: MouseEvent, modes: Modes) -> bytes:
    if not (modes.alternate_scroll and modes.alternate_screen) or event.kind not in {
        "wheel_up",
        "wheel_down",
    }:
        return b""
    final = "A" if event.kind == "wheel_up" else "B"
    return f"\x1b{'O' if modes.application_cursor else '['}{final}".encode() * _WHEEL_ROWS
