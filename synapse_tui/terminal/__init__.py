"""The terminal core on pyte: bytes in; damage, replies and events out; no I/O."""

from .damage import Damage, Scroll
from .dump import TerminalSnapshot, capture_history, newest_lines
from .events import (
    Bell,
    ClipboardSet,
    ColorsChanged,
    LineScrolled,
    Modes,
    Notification,
    PointerShape,
    ProgramStatus,
    ProgressChanged,
    PromptMark,
    ScreenSwitched,
    ScrollbackCleared,
    TerminalEvent,
    TitleChanged,
    WorkingDirectory,
)
from .input import KeyEvent, MouseEvent, encode_focus, encode_key, encode_mouse, encode_paste
from .row import Cell, Line
from .scrollback import Scrollback
from .style import DEFAULT_STYLE, RGB, Colors, Style
from .terminal import CursorView, Terminal

__all__ = [
    "DEFAULT_STYLE",
    "RGB",
    "Bell",
    "Cell",
    "ClipboardSet",
    "Colors",
    "ColorsChanged",
    "CursorView",
    "Damage",
    "KeyEvent",
    "Line",
    "LineScrolled",
    "Modes",
    "MouseEvent",
    "Notification",
    "PointerShape",
    "ProgramStatus",
    "ProgressChanged",
    "PromptMark",
    "ScreenSwitched",
    "Scroll",
    "Scrollback",
    "ScrollbackCleared",
    "Style",
    "Terminal",
    "TerminalEvent",
    "TerminalSnapshot",
    "TitleChanged",
    "WorkingDirectory",
    "capture_history",
    "encode_focus",
    "encode_key",
    "encode_mouse",
    "encode_paste",
    "newest_lines",
]
