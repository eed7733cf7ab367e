"""The terminal core on pyte, fast and complete: bytes in; damage, replies and events out; no I/O."""

from .colors import Colors
from .damage import Damage, Scroll
from .dump_text import History, capture_history, newest_lines
from .events import (
    Bell,
    ClipboardSet,
    ColorsChanged,
    LineScrolled,
    Notification,
    PointerShape,
    ProgramStatus,
    ProgressChanged,
    PromptMark,
    ScreenSwitched,
    TerminalEvent,
    TitleChanged,
    WorkingDirectory,
)
from .keys import KeyEvent, encode_key
from .line import Cell, Line
from .modes import Modes
from .mouse import MouseEvent, encode_mouse
from .paste import encode_focus, encode_paste
from .scrollback import Scrollback
from .style import DEFAULT_STYLE, RGB, Style
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
    "History",
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
    "Style",
    "Terminal",
    "TerminalEvent",
    "TitleChanged",
    "WorkingDirectory",
    "capture_history",
    "encode_focus",
    "encode_key",
    "encode_mouse",
    "encode_paste",
    "newest_lines",
]
