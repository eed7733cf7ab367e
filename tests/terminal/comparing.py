"""The core beside tmux and @xterm/headless: what each of them shows otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from synapse_tui.terminal import Terminal
from tests.terminal.headless import Frame
from tests.terminal.recordings import Recording, Step
from tests.terminal.tmux_screen import Look, Seen, TmuxScreen

_NAMES = ("bold", "dim", "italic", "blink", "reverse", "hidden", "strike", "overline")


def replayed(recording: Recording) -> Iterator[tuple[Step, Terminal]]:
    """The core after each step of a recording."""
    terminal = Terminal(recording.columns, recording.lines)
    for step in recording.steps:
        terminal.feed(step.data)
        if step.size is not None:
            terminal.resize(*step.size)
        yield step, terminal


def beside_tmux(recording: Recording, folder: Path) -> Iterator[tuple[Step, Terminal, TmuxScreen]]:
    """The core and tmux after each step of a recording.

    Args:
        recording: None of its steps may end in the midst of a sequence.
        folder: An empty folder.
    """
    with TmuxScreen(folder, recording.columns, recording.lines) as tmux:
        for step, terminal in replayed(recording):
            tmux.feed(step.data)
            if step.size is not None:
                tmux.resize(*step.size)
            yield step, terminal, tmux


def cells(terminal: Terminal) -> list[list[Seen]]:
    """All cells, one a column; the right half of a wide character has no text."""
    rows = []
    for y in range(terminal.lines):
        row = []
        for cell in map(terminal.line(y).cell, range(terminal.columns)):
            style = cell.style
            attributes = frozenset(name for name in _NAMES if getattr(style, name))
            row.append(Seen(cell.text, Look(style.fg, style.bg, attributes, style.underline)))
        rows.append(row)
    return rows


def characters(terminal: Terminal) -> list[list[Seen]]:
    """Code points with their looks, as tmux tells them."""
    return [[Seen(char, cell.look) for cell in row for char in cell.text] for row in cells(terminal)]


def text_of(row: Iterable[Seen]) -> str:
    """The text of some cells without blanks at the end."""
    return "".join(cell.text for cell in row).rstrip()


def tmux_differences(terminal: Terminal, tmux: TmuxScreen) -> list[str]:
    """What tmux shows otherwise; it does not tell the looks of cells that were only erased."""
    (column, row), rows = tmux.shown()
    cursor = (min(column, terminal.columns - 1), row)
    ours = (terminal.cursor.x, terminal.cursor.y)
    found = [] if ours == cursor else [f"cursor {ours}, tmux {cursor}"]
    return found + list(row_differences(characters(terminal), rows, "tmux"))


def frame_differences(terminal: Terminal, frame: Frame, *, above: bool = True) -> list[str]:
    """What xterm.js shows otherwise, also backgrounds of erased cells.

    Args:
        terminal: The core.
        frame: What xterm.js shows.
        above: Compare the lines above the screen too.
    """
    pairs: list[tuple[str, object, object]] = [
        ("cursor", (terminal.cursor.x, terminal.cursor.y), frame.cursor),
        ("wraps", [terminal.line(y).wrapped for y in range(terminal.lines)], frame.wrapped),
    ]
    if above:
        pairs.append(("lines above", len(terminal.scrollback), frame.above))
    if above and frame.scrollback:
        pairs.append(("scrollback", [line.text for line in terminal.scrollback], frame.scrollback))
    found = [f"{what}: {ours}, xterm.js {theirs}" for what, ours, theirs in pairs if ours != theirs]
    return found + list(row_differences(cells(terminal), frame.rows, "xterm.js"))


def row_differences(rows: list[list[Seen]], others: list[list[Seen]], whose: str) -> Iterator[str]:
    """How rows differ; cells that only one side tells count for nothing."""
    for y, (row, other) in enumerate(zip(rows, others, strict=True)):
        text, theirs = text_of(row), text_of(other)
        if text != theirs:
            yield f"row {y}: {text!r}, {whose} {theirs!r}"
            continue
        for x, (cell, wanted) in enumerate(zip(row, other, strict=False)):
            if cell.look != wanted.look:
                yield f"row {y}, {x}. character {cell.text!r}: {cell.look}, {whose} {wanted.look}"
                break
