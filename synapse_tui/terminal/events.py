"""Events of a terminal, emitted during `feed`: frozen, with all text bounded and free of controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from synapse_tui.system.dataclass import dataclass

if TYPE_CHECKING:
    from .row import Line


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """The window title was set (OSC 0, OSC 2) or restored from the title stack (XTWINOPS 23)."""

    title: str


@dataclass(frozen=True, slots=True)
class Bell:
    """BEL outside of a string."""


@dataclass(frozen=True, slots=True)
class ClipboardSet:
    """The child wrote to a selection (OSC 52)."""

    # Letters of the selections (`c` clipboard, `p` primary, ...); `c` if the child named none
    selection: str
    text: str  # Empty clears the selection


@dataclass(frozen=True, slots=True)
class Notification:
    """The child wants the user's attention (OSC 9, OSC 99, OSC 777)."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class ProgressChanged:
    """A progress report (OSC 9;4 of ConEmu)."""

    state: int  # 0 none, 1 a value, 2 error, 3 indeterminate, 4 paused
    value: int  # 0 to 100; 0 if none was given


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """The Program Status Protocol (OSC 7501)."""

    state: str  # `idle`, `working`, `blocked`, `done`, `error`, `clear` or another word
    # Other keys (`kind`, `app`, `id`, `title`, `msg`); `title` and `msg` are decoded from base64
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WorkingDirectory:
    """The child reported its working folder (OSC 7)."""

    url: str  # As sent, usually `file://host/path`


@dataclass(frozen=True, slots=True)
class PromptMark:
    """A semantic mark of a shell (OSC 133)."""

    kind: str  # `A` prompt, `B` input, `C` output, `D` end of the command, or another letter
    fields: Mapping[str, str]  # What followed the letter; the exit status of `D` is `status`


@dataclass(frozen=True, slots=True)
class ScreenSwitched:
    """The main or the alternate screen is shown now (DECSET/DECRST 47, 1047, 1049)."""

    alternate: bool


@dataclass(frozen=True, slots=True)
class LineScrolled:
    """A line left the top of the main or the alternate screen; sent only on request."""

    line: Line


@dataclass(frozen=True, slots=True)
class ScrollbackCleared:
    """The child removed its scrollback (ED 3, RIS); sent only on request, as `LineScrolled` is."""


@dataclass(frozen=True, slots=True)
class PointerShape:
    """The child named a mouse pointer shape (OSC 22), such as `text` or `pointer`; empty for the default."""

    name: str


@dataclass(frozen=True, slots=True)
class ColorsChanged:
    """The child set or reset colours (OSC 4, 10 to 19, 104, 110 to 119)."""


TerminalEvent = (
    TitleChanged
    | Bell
    | ClipboardSet
    | Notification
    | ProgressChanged
    | ProgramStatus
    | WorkingDirectory
    | PromptMark
    | ScreenSwitched
    | LineScrolled
    | ScrollbackCleared
    | PointerShape
    | ColorsChanged
)
Emit = Callable[[TerminalEvent], None]


def ignore(_event: TerminalEvent) -> None:
    """The default listener."""


MouseMode = Literal[0, 9, 1000, 1002, 1003]
MouseEncoding = Literal["x10", "utf8", "sgr", "urxvt", "sgr-pixels"]


@dataclass(slots=True)
class Modes:
    application_cursor: bool = False  # DECCKM (?1): cursor keys send SS3
    application_keypad: bool = False  # DECKPAM/DECNKM (?66): the keypad sends SS3
    bracketed_paste: bool = False  # ?2004
    focus_events: bool = False  # ?1004
    alternate_screen: bool = False  # The alternate screen is shown (?47, ?1047, ?1049)
    alternate_scroll: bool = False  # ?1007: the wheel sends cursor keys on the alternate screen
    synchronized: bool = False  # ?2026: a frame is incomplete
    autowrap: bool = True  # DECAWM (?7)
    origin: bool = False  # DECOM (?6)
    insert: bool = False  # IRM (4)
    newline: bool = False  # LNM (20): Enter sends CR LF
    backarrow: bool = False  # DECBKM (?67): Backspace sends BS instead of DEL
    reverse_video: bool = False  # DECSCNM (?5): default colours are swapped
    reverse_wrap: bool = False  # ?45: backspace moves over the left edge into a wrapped row
    extended_reverse_wrap: bool = False  # ?1045: likewise, into any row and from the top to the bottom
    margins: bool = False  # DECLRMM (?69): left and right margins may be set
    cursor_visible: bool = True  # DECTCEM (?25)
    color_scheme_updates: bool = False  # ?2031: the child wants dark and light reports
    in_band_resize: bool = False  # ?2048: the child wants `CSI 48 t` when the size changes
    grapheme_clusters: bool = True  # ?2027: a cluster is one character; initially on
    mouse: MouseMode = 0  # The mouse events that the child wants
    mouse_encoding: MouseEncoding = "x10"
    kitty_flags: int = 0  # Flags on top of the shown screen's kitty keyboard stack
    modify_other_keys: int = 0  # XTMODKEYS resource 4: 0, 1 or 2
