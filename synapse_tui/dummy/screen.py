"""The transcript as rows, wrapped to the width of the terminal."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Literal

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .editor import DummyComposer
from .script import ScriptedDialog
from .widths import clip, printable, width, wrap

BlockKind = Literal["user", "agent", "tool", "output", "note", "raw"]

KEPT_BLOCKS = 500

_LIMITS = {"user": 12, "output": 200}  # Rows shown of a block, by its kind


class AnsiStyle:
    """Character attributes, readable without colour."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def accent(self, text: str) -> str:
        return self._sgr("36", text)

    def warn(self, text: str) -> str:
        return self._sgr("33", text)

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[22m"

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[22m" if text else ""

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[39m" if self._color else text


@dataclass(slots=True)
class Block:
    kind: BlockKind
    text: str
    closed: bool = True  # Whether it is complete


_MARKS = {"user": "> ", "agent": "● ", "tool": "● ", "output": "  ⎿  ", "note": "  ", "raw": ""}


class DummyTranscript:
    """All blocks of the conversation, and how many of their rows are final on the screen."""

    def __init__(self, style: AnsiStyle, name: str, hello: str = "") -> None:
        self._style = style
        self._name = name
        self._hello = hello  # shown instead of the banner
        self._folder = _folder()  # as it was at the start: it may be removed
        self._blocks: deque[Block] = deque(maxlen=KEPT_BLOCKS)
        self._waiting: deque[Block] = deque()
        self._banner = True
        self._rows_out = 0

    def add(self, kind: BlockKind, text: str, *, closed: bool = True) -> Block:
        self.close()
        block = Block(kind, text, closed)
        self._blocks.append(block)
        self._waiting.append(block)
        return block

    def close(self) -> None:
        if self._blocks:
            self._blocks[-1].closed = True

    def clear(self) -> None:
        self._blocks.clear()
        self.replay()

    def replay(self) -> None:
        """Return all rows again from the next `take`: the screen is empty."""
        self._waiting = deque(self._blocks)
        self._banner = True
        self._rows_out = 0

    def take(self, columns: int) -> tuple[list[str], list[str]]:
        finished = self._beginning(columns) if self._banner else []
        self._banner = False
        while self._waiting:
            block = self._waiting[0]
            rows = self._rows(block, columns)
            if not block.closed:
                finished += rows[self._rows_out : -1]
                self._rows_out = max(len(rows) - 1, self._rows_out)
                return finished, rows[-1:]
            finished += rows[self._rows_out :]
            self._rows_out = 0
            self._waiting.popleft()
        return finished, []

    def _beginning(self, columns: int) -> list[str]:
        if not self._hello:
            return banner(self._style, self._name, self._folder, columns)
        return ["", *wrap(self._hello, min(columns, 60))]

    def _rows(self, block: Block, columns: int) -> list[str]:
        mark = _MARKS[block.kind]
        if block.kind == "raw":
            return block.text.split("\n")
        indent = " " * width(mark)
        rows = _wrapped(block.text, columns - len(indent), _LIMITS.get(block.kind, 0))
        drawn = [self._drawn(block.kind, row) for row in rows]
        marked = self._style.accent(mark) if block.kind == "agent" else self._style.dim(mark)
        body = [f"{marked if index == 0 else indent}{row}" for index, row in enumerate(drawn)]
        return body if block.kind == "output" else ["", *body]

    def _drawn(self, kind: BlockKind, row: str) -> str:
        if kind == "tool":
            return self._style.bold(row)
        return self._style.dim(row) if kind in ("user", "note", "output") else row


def _wrapped(text: str, cells: int, limit: int) -> list[str]:
    start = printable(text[: cells * limit] if limit else text)
    rows = wrap(start, cells)
    if not limit or (len(rows) <= limit and cells * limit >= len(text)):
        return rows
    return [*rows[: limit - 1], tr(f"… {text.count(chr(10)) + 1} lines in all")]


def banner(style: AnsiStyle, name: str, folder: str, columns: int) -> list[str]:
    lines = [
        (f"✻ {name}", tr("· scripted agent, no model")),
        ("  /help", tr("for things to try")),
        ("  cwd", folder),
    ]
    if columns < 44:
        return [style.accent(clip(f"✻ {name} · /help", columns))]
    inner = min(columns - 4, 56)
    rows = [style.dim(f"╭{'─' * (inner + 2)}╮")]
    for strong, weak in lines:
        note = clip(weak, inner - width(strong) - 1)
        space = " " * (inner - width(strong) - 1 - width(note))
        shown = style.accent(style.bold(strong)) if strong.startswith("✻") else style.dim(strong)
        rows.append(f"{style.dim('│')} {shown} {style.dim(note)}{space} {style.dim('│')}")
    rows.append(style.dim(f"╰{'─' * (inner + 2)}╯"))
    return rows


def _folder() -> str:
    try:
        path = os.getcwd()  # noqa: PTH109 - pathlib would double the start time
    except OSError:
        return tr("(removed)")
    home = os.environ.get("HOME", "")
    return "~" + path[len(home) :] if home and (path + "/").startswith(home.rstrip("/") + "/") else path


@dataclass(frozen=True, slots=True)
class Frame:
    lines: Sequence[str]  # Bottom rows that may change, at most as wide as the terminal
    cursor: tuple[int, int] | None = None  # Column and row in `lines`; None hides the cursor


class MainScreenPainter:
    """Draws on the main screen with relative moves; finished rows scroll into the scrollback."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._rows: list[str] = []
        self._y = 0
        self._cursor: tuple[int, int] | None = None

    def begin(self) -> None:
        """The main screen needs no preparation."""

    def end(self) -> None:
        self._write(self._move(len(self._rows) - 1) + "\r\n\x1b[?25h")

    def paint(self, finished: Sequence[str], frame: Frame) -> None:
        parts: list[str] = []
        if finished:
            parts.append(self._move(0) + "\r\x1b[J")
            parts += [f"{row}\r\n" for row in finished]
            self._rows = []
            self._y = 0
        parts += self._changed(frame.lines)
        if not parts and frame.cursor == self._cursor:
            return
        if frame.cursor is not None:
            x, y = frame.cursor
            parts.append(f"{self._move(y)}\x1b[{x + 1}G\x1b[?25h")
        self._cursor = frame.cursor
        self._write("\x1b[?2026h\x1b[?25l" + "".join(parts) + "\x1b[?2026l")

    def restart(self) -> None:
        """Forget and clear the screen and the scrollback, after a resize or foreign output."""
        self._write("\x1b[2J\x1b[3J\x1b[H")
        self._rows = []
        self._y = 0
        self._cursor = None

    def _changed(self, rows: Sequence[str]) -> list[str]:
        parts: list[str] = []
        for index, row in enumerate(rows):
            if index < len(self._rows) and self._rows[index] == row:
                continue
            parts.append(f"{self._move(index)}\r\x1b[2K{row}")
        if len(rows) < len(self._rows):
            parts.append(f"{self._move(len(rows) - 1)}\r\n\x1b[J")
            self._y = len(rows)
        self._rows = list(rows)
        return parts

    def _move(self, row: int) -> str:
        """Move to another row; a new one is created by a line feed, which scrolls at the bottom."""
        row = max(row, 0)
        known = max(len(self._rows) - 1, self._y)
        sequence = ""
        if row > known:
            sequence = self._move(known) + "\r\n" * (row - known)
        elif row > self._y:
            sequence = f"\x1b[{row - self._y}B"
        elif row < self._y:
            sequence = f"\x1b[{self._y - row}A"
        self._y = row
        return sequence


class AlternateScreenPainter:
    """Draws on the alternate screen with absolute moves; the transcript is truncated to the space left."""

    def __init__(self, write: Callable[[str], None], height: Callable[[], int]) -> None:
        self._write = write
        self._height = height
        self._above: list[str] = []
        self._rows: list[str] = []
        self._cursor: tuple[int, int] | None = None

    def begin(self) -> None:
        self._write("\x1b[?1049h\x1b[2J\x1b[H")

    def end(self) -> None:
        self._write("\x1b[?1049l\x1b[?25h")

    def paint(self, finished: Sequence[str], frame: Frame) -> None:
        height = self._height()
        self._above = [*self._above, *finished][-height:]
        room = height - len(frame.lines)
        above = self._above[-room:] if room > 0 else []
        rows = [*above, *[""] * (room - len(above)), *frame.lines] if room > 0 else list(frame.lines)
        parts = [
            f"\x1b[{index + 1};1H\x1b[2K{row}"
            for index, row in enumerate(rows)
            if index >= len(self._rows) or self._rows[index] != row
        ]
        self._rows = rows
        if frame.cursor is not None:
            x, y = frame.cursor
            parts.append(f"\x1b[{max(room, 0) + y + 1};{x + 1}H\x1b[?25h")
        elif not parts:
            return
        self._write("\x1b[?2026h\x1b[?25l" + "".join(parts) + "\x1b[?2026l")

    def restart(self) -> None:
        """Forget and clear the screen, after a resize or foreign output."""
        self._write("\x1b[2J\x1b[H")
        self._above = []
        self._rows = []


Painter = MainScreenPainter | AlternateScreenPainter


PROMPT = "❯ "
SPINNER = "·✢✳✶✻✽✻✶✳✢"


@dataclass(slots=True)
class PanelView:
    composer: DummyComposer
    placeholder: str = ""  # Shown in the empty composer
    dialog: ScriptedDialog | None = None  # Replaces the composer while it is open
    working: float | None = None  # Seconds that the turn has run; None if there is none
    step: int = 0
    queued: Sequence[str] = ()  # Messages waiting for the end of the turn
    notice: str = ""  # Temporarily replaces the footer
    tail: list[str] = field(default_factory=list)  # Row of the transcript that is still growing
    name: str = ""  # Shown in the footer
    state: str = "ready"  # One word at the right end of the footer


def panel(view: PanelView, style: AnsiStyle, columns: int, lines: int) -> Frame:
    """Lay out the bottom rows, which fit into the terminal from 20x5 on."""
    if view.dialog is not None:
        rows = _dialog(view.dialog, style, columns, lines)
        return Frame([*_fitting(view.tail, lines - len(rows)), *rows], None)
    rows, x, y = _composer(view, style, columns, lines)
    above = [*view.tail, *_activity(view, style, columns)]
    above = _fitting(above, lines - len(rows))
    return Frame([*above, *rows], (x, y + len(above)))


def _fitting(rows: list[str], room: int) -> list[str]:
    return rows[len(rows) - room :] if len(rows) > room else rows


def _activity(view: PanelView, style: AnsiStyle, columns: int) -> list[str]:
    rows: list[str] = []
    if view.working is not None:
        mark = SPINNER[view.step % len(SPINNER)]
        text = clip(tr(f" Working… ({int(view.working)}s · esc to interrupt)"), columns - 1)
        rows += ["", style.accent(mark) + style.dim(text)]
    rows += [
        style.dim(clip(tr(f"  ↳ queued: {' '.join(printable(text[:columns]).split())}"), columns))
        for text in view.queued[-3:]
    ]
    return [*rows, ""]


def _composer(view: PanelView, style: AnsiStyle, columns: int, lines: int) -> tuple[list[str], int, int]:
    layout = view.composer.layout(columns - len(PROMPT))
    room = max(1, min(lines - 4, max(lines // 2, 3)))
    top = max(0, min(layout.y - room + 1, len(layout.rows) - room))
    top = min(top, layout.y)
    shown = layout.rows[top : top + room]
    if view.composer.empty:
        shown = [style.dim(clip(view.placeholder, columns - len(PROMPT)))]
    rule = style.dim("─" * columns)
    prompt = style.accent(PROMPT)
    body = [f"{prompt if index == 0 else '  '}{row}" for index, row in enumerate(shown)]
    return [rule, *body, rule, _footer(view, style, columns)], layout.x + len(PROMPT), layout.y - top + 1


def _footer(view: PanelView, style: AnsiStyle, columns: int) -> str:
    word = tr(view.state)
    state = f"{clip(view.name, max(columns - width(word) - 6, 0))} · {word}"
    room = columns - width(state) - 5
    if view.notice:
        left, drawn = clip(view.notice, room), style.warn
    else:
        left, drawn = _hints(_keys(works=view.working is not None), room), style.dim
    space = " " * (columns - 3 - width(left) - width(state))
    return f"  {drawn(left) if left else ''}{space}{style.dim(state)}"


def _keys(*, works: bool) -> Sequence[str]:
    if works:
        return (tr("esc interrupts"), tr("enter queues"), "/help")
    return (tr("enter sends"), tr("shift+enter new line"), "/help")


def _hints(hints: Sequence[str], room: int) -> str:
    shown = list(hints)
    while shown and width(" · ".join(shown)) > room:
        shown.pop()
    return " · ".join(shown)


def _dialog(dialog: ScriptedDialog, style: AnsiStyle, columns: int, lines: int) -> list[str]:
    """Title, body, question, options and keys; truncated from the top."""
    options = [_option(dialog, index, style, columns) for index in range(len(dialog.options))]
    keys = style.dim(clip(tr(" Esc to cancel · Enter to select"), columns))
    needed = [
        style.bold(clip(f" {row}", columns)) for row in wrap(printable(dialog.question), columns - 1)[:3]
    ]
    head = [style.warn("─" * columns), style.warn(style.bold(clip(f" {dialog.title}", columns)))]
    body = (
        [clip(f"   {row}", columns) for row in wrap(printable(dialog.body), columns - 3)[:8]]
        if dialog.body
        else []
    )
    optional = [*head, *body, ""]
    room = lines - len(needed) - len(options) - len(keys.splitlines())
    if room < 0:
        needed = needed[:1]
        options = options[: max(lines - 2, 1)]
    spaced = ["", keys] if room > len(optional) else [keys]
    return [*optional[: max(room, 0)], *needed, *options, *spaced]


def _option(dialog: ScriptedDialog, index: int, style: AnsiStyle, columns: int) -> str:
    text = f"{index + 1}. {dialog.options[index]}"
    if index == dialog.selected:
        return style.accent(clip(f" ❯ {text}", columns))
    return clip(f"   {text}", columns)
