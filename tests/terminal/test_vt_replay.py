"""Recordings of real agents beside what tmux makes of the same bytes: text, cursor, colours, attributes.

After a change of size tmux wraps the main screen in its own way: it counts blanks that were erased as text,
    and takes
lines back from its history also when there are rows below the cursor. Where tmux differs after a resize,
@xterm/headless decides, if it is installed. The one place where neither agrees is in `DIFFERENT`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.terminal import Terminal
from tests.terminal.headless import Look as HeadlessLook
from tests.terminal.headless import looks
from tests.terminal.recordings import AGENTS, captures, load
from tests.terminal.tmux_screen import TMUX, Look, Seen, TmuxScreen

CAPTURES = captures()
NAMES = ("bold", "dim", "italic", "blink", "reverse", "hidden", "strike", "overline")
MAIN_SCREEN = ("claude", "gemini")
"""Agents on the main screen: what is above their own frame after a resize depends on the way of wrapping."""
DIFFERENT = {"gemini": "after a resize to 100x32"}
"""From here on not compared: @xterm/headless leaves the cursor in its row although the text under it moves,
and tmux has taken back more lines before; here the cursor stays with its text."""

pytestmark = [
    pytest.mark.skipif(CAPTURES is None, reason="no recordings of agents beside the repository"),
    pytest.mark.timeout(300),
]


def seen(terminal: Terminal) -> list[list[Seen]]:
    rows = []
    for y in range(terminal.lines):
        cells = [terminal.line(y).cell(x) for x in range(terminal.columns)]
        row = []
        for cell in cells:
            style = cell.style
            attributes = frozenset(name for name in NAMES if getattr(style, name))
            look = Look(style.fg, style.bg, attributes, style.underline)
            row += [Seen(char, look) for char in cell.text]
        rows.append(row)
    return rows


def differences(terminal: Terminal, tmux: TmuxScreen) -> list[str]:
    """What tmux shows otherwise; it does not tell the colours of cells that were only erased."""
    found = []
    cursor = tmux.cursor()
    ours = (terminal.cursor.x, terminal.cursor.y)
    if ours != (min(cursor[0], terminal.columns - 1), cursor[1]):
        found.append(f"cursor {ours}, tmux {cursor}")
    for y, (row, other) in enumerate(zip(seen(terminal), tmux.rows(), strict=True)):
        text, theirs = ("".join(cell.text for cell in cells).rstrip() for cells in (row, other))
        if text != theirs:
            found.append(f"row {y}: {text!r}, tmux {theirs!r}")
            continue
        for x, (cell, wanted) in enumerate(zip(row, other, strict=False)):
            if cell.look != wanted.look:
                found.append(f"row {y}, character {x} {cell.text!r}: {cell.look}, tmux {wanted.look}")
                break
    return found


def agrees(terminal: Terminal, look: HeadlessLook) -> bool:
    """Whether @xterm/headless shows the same text and cursor."""
    rows = [row.rstrip() for row in terminal.display]
    return rows == look.rows and (terminal.cursor.x, terminal.cursor.y) == look.cursor


@pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
@pytest.mark.parametrize("agent", AGENTS)
def test_the_screen_is_that_of_tmux(agent: str, tmp_path: Path) -> None:
    assert CAPTURES is not None
    recording = load(CAPTURES, agent)
    umpire = looks(recording) if agent in MAIN_SCREEN else None
    terminal = Terminal(recording.columns, recording.lines)
    wrong, resized, open_bytes = [], False, b""
    with TmuxScreen(tmp_path, recording.columns, recording.lines) as tmux:
        for number, step in enumerate(recording.steps):
            terminal.feed(step.data)
            open_bytes += step.data
            if terminal.stream.incomplete:
                continue
            tmux.feed(open_bytes)
            open_bytes = b""
            if step.size is not None:
                terminal.resize(*step.size)
                tmux.resize(*step.size)
                resized = True
            if step.place.endswith(DIFFERENT.get(agent, "nowhere")):
                break
            if resized and agent in MAIN_SCREEN and (umpire is None or agrees(terminal, umpire[number])):
                continue
            wrong += [f"{step.place}: {what}" for what in differences(terminal, tmux)]
    assert wrong == []


@pytest.mark.parametrize("agent", AGENTS)
def test_pieces_make_no_difference(agent: str) -> None:
    assert CAPTURES is not None
    recording = load(CAPTURES, agent)
    whole, pieces = (Terminal(recording.columns, recording.lines) for _ in range(2))
    for number, step in enumerate(recording.steps):
        whole.feed(step.data)
        size = 7 + number % 97
        for index in range(0, len(step.data), size):
            pieces.feed(step.data[index : index + size])
        if step.size is not None:
            whole.resize(*step.size)
            pieces.resize(*step.size)
        assert pieces.display == whole.display
        assert pieces.cursor == whole.cursor
    assert [line.text for line in pieces.scrollback] == [line.text for line in whole.scrollback]
    assert pieces.take_replies() == whole.take_replies()
