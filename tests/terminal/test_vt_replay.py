"""Recordings of programs beside what tmux and xterm.js make of the same bytes.

tmux decides. Where it shows something else, the place stands in `DEVIATIONS` with its cause, and
@xterm/headless must agree with the core there, as at all other places, if it is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.terminal import Terminal
from tests.terminal.comparing import (
    beside_tmux,
    characters,
    frame_differences,
    replayed,
    row_differences,
    text_of,
    tmux_differences,
)
from tests.terminal.headless import frames
from tests.terminal.recordings import AGENTS, RECORDED, Step, load

BLANKS = "tmux wraps blanks that were written over or erased as if they were text"
PULLED = "grown, tmux takes lines back from its history although there are rows below the cursor"
DEVIATIONS: dict[str, dict[str, str]] = {
    "claude": {
        "byte 144865, after a resize to 70x20": BLANKS,
        "byte 147868, after a resize to 130x40": PULLED,
    },
    "gemini": {
        "byte 2014690, after a resize to 70x20": BLANKS,
        "byte 2017344, before a resize": BLANKS,
        "byte 2017344, after a resize to 130x40": PULLED,
        "byte 2019574, before a resize": PULLED,
        "byte 2019574, after a resize to 100x32": PULLED,
        "byte 2023056": PULLED,
    },
}
"""For each recording the places where tmux shows something else, and why."""

NARROWED, REDRAWN = "byte 2019574, after a resize to 100x32", "byte 2023056"
ALONE = {"gemini": {NARROWED, REDRAWN}}
"""Where xterm.js shows something else too: when lines below the cursor are wrapped, it leaves the cursor in
its row while the text moves up; its own marker for that text shows it. There parts are compared."""
FRAME = 4
"""Rows of gemini's frame from its top to the cursor."""

pytestmark = pytest.mark.timeout(300)


def unsettled(name: str, step: Step) -> bool:
    """Whether a step leaves what each terminal wraps its own way, until the next output.

    Recordings of real agents name such places in `DEVIATIONS` and `ALONE`; others may be made again.
    """
    return name not in AGENTS and step.size is not None


@pytest.mark.tmux
@pytest.mark.parametrize("name", RECORDED)
def test_the_screen_is_that_of_tmux(name: str, tmp_path: Path) -> None:
    wrong = [
        f"{step.place}: {what}"
        for step, terminal, tmux in beside_tmux(load(name), tmp_path)
        if step.place not in DEVIATIONS.get(name, {}) and not unsettled(name, step)
        for what in tmux_differences(terminal, tmux)
    ]
    assert wrong == []


@pytest.mark.headless
@pytest.mark.parametrize("name", RECORDED)
def test_the_screen_is_that_of_xterm_js(name: str) -> None:
    recording = load(name)
    alone = ALONE.get(name, set())
    wrong, parted = [], False
    for (step, terminal), frame in zip(replayed(recording), frames(recording), strict=True):
        apart = step.place in alone or unsettled(name, step)
        parted = parted or apart
        if not apart:
            found = frame_differences(terminal, frame, above=not parted)
            wrong += [f"{step.place}: {what}" for what in found]
    assert wrong == []


@pytest.mark.captures
@pytest.mark.headless
def test_where_the_cursor_of_xterm_js_leaves_its_text_all_text_up_to_it_is_the_same() -> None:
    recording = load("gemini")
    for (step, terminal), frame in zip(replayed(recording), frames(recording), strict=True):
        if step.place == NARROWED:
            ours = [line.text for line in terminal.scrollback] + [row.rstrip() for row in terminal.display]
            theirs = frame.scrollback + [text_of(row) for row in frame.rows]
            end = frame.above + frame.marker + 1
            assert len(terminal.scrollback) + terminal.cursor.y + 1 == end
            assert ours[:end] == theirs[:end]
            assert frame.marker != frame.cursor[1]
            return
    pytest.fail(f"nothing at {NARROWED}")


@pytest.mark.captures
@pytest.mark.tmux
def test_where_nobody_agrees_the_frame_around_the_cursor_is_that_of_tmux(tmp_path: Path) -> None:
    compared = 0
    for step, terminal, tmux in beside_tmux(load("gemini"), tmp_path):
        if step.place in ALONE["gemini"]:
            ((x, y), rows), cursor = tmux.shown(), terminal.cursor
            assert cursor.x == x
            ours = characters(terminal)[cursor.y - FRAME : cursor.y + 1]
            assert list(row_differences(ours, rows[y - FRAME : y + 1], "tmux")) == []
            compared += 1
    assert compared == len(ALONE["gemini"])


@pytest.mark.parametrize("name", RECORDED)
def test_pieces_make_no_difference(name: str) -> None:
    recording = load(name)
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
