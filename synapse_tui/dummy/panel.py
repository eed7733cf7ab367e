"""The rows at the bottom: spinner, queued messages, composer or dialog, footer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .composer import Composer
from .dialogs import Dialog
from .painter import Frame
from .screen import Style
from .widths import clip, printable, width, wrap

PROMPT = "❯ "
SPINNER = "·✢✳✶✻✽✻✶✳✢"
KEYS = ("enter sends", "shift+enter new line", "/help")
WORKING_KEYS = ("esc interrupts", "enter queues", "/help")


@dataclass(slots=True)
class PanelView:
    """What the bottom rows show.

    Attributes:
        composer: The draft.
        placeholder: Shown in the empty composer.
        dialog: Takes the composer's place while it is open.
        working: Seconds that the turn has run; None when none runs.
        step: Counts the spinner's frames.
        queued: Messages that wait for the end of the turn.
        notice: Takes the footer's place for a moment.
        tail: Row of the transcript that still grows.
        name: The agent's name, shown in the footer.
        state: One word for the right end of the footer.
    """

    composer: Composer
    placeholder: str = ""
    dialog: Dialog | None = None
    working: float | None = None
    step: int = 0
    queued: Sequence[str] = ()
    notice: str = ""
    tail: list[str] = field(default_factory=list)
    name: str = ""
    state: str = "ready"


def panel(view: PanelView, style: Style, columns: int, lines: int) -> Frame:
    """Lay the bottom rows out; they never need more than the terminal has, from 20x5 on.

    Args:
        view: What to show.
        style: How.
        columns: Width of the terminal.
        lines: Height of the terminal.
    """
    if view.dialog is not None:
        rows = _dialog(view.dialog, style, columns, lines)
        return Frame([*_fitting(view.tail, lines - len(rows)), *rows], None)
    rows, x, y = _composer(view, style, columns, lines)
    above = [*view.tail, *_activity(view, style, columns)]
    above = _fitting(above, lines - len(rows))
    return Frame([*above, *rows], (x, y + len(above)))


def _fitting(rows: list[str], room: int) -> list[str]:
    return rows[len(rows) - room :] if len(rows) > room else rows


def _activity(view: PanelView, style: Style, columns: int) -> list[str]:
    rows: list[str] = []
    if view.working is not None:
        mark = SPINNER[view.step % len(SPINNER)]
        text = clip(f" Working… ({int(view.working)}s · esc to interrupt)", columns - 1)
        rows += ["", style.accent(mark) + style.dim(text)]
    rows += [
        style.dim(clip(f"  ↳ queued: {' '.join(printable(text[:columns]).split())}", columns))
        for text in view.queued[-3:]
    ]
    return [*rows, ""]


def _composer(view: PanelView, style: Style, columns: int, lines: int) -> tuple[list[str], int, int]:
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


def _footer(view: PanelView, style: Style, columns: int) -> str:
    state = f"{clip(view.name, max(columns - len(view.state) - 6, 0))} · {view.state}"
    room = columns - width(state) - 5
    if view.notice:
        left, drawn = clip(view.notice, room), style.warn
    else:
        left, drawn = _hints(KEYS if view.working is None else WORKING_KEYS, room), style.dim
    space = " " * (columns - 3 - width(left) - width(state))
    return f"  {drawn(left) if left else ''}{space}{style.dim(state)}"


def _hints(hints: Sequence[str], room: int) -> str:
    """As many of the hints as there is room for."""
    shown = list(hints)
    while shown and width(" · ".join(shown)) > room:
        shown.pop()
    return " · ".join(shown)


def _dialog(dialog: Dialog, style: Style, columns: int, lines: int) -> list[str]:
    """Title, body, question, options and keys; what has no room goes first from the top."""
    options = [_option(dialog, index, style, columns) for index in range(len(dialog.options))]
    keys = style.dim(clip(" Esc to cancel · Enter to select", columns))
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


def _option(dialog: Dialog, index: int, style: Style, columns: int) -> str:
    text = f"{index + 1}. {dialog.options[index]}"
    if index == dialog.selected:
        return style.accent(clip(f" ❯ {text}", columns))
    return clip(f"   {text}", columns)
