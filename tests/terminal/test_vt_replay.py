"""Recordings of real agents beside what tmux and xterm.js make of the same bytes.

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
from tests.terminal.headless import HEADLESS, frames
from tests.terminal.recordings import AGENTS, captures, load
from tests.terminal.tmux_screen import TMUX

CAPTURES = captures()

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

pytestmark = [
    pytest.mark.skipif(CAPTURES is None, reason="no recordings of agents beside the repository"),
    pytest.mark.timeout(300),
]
with_tmux = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
with_headless = pytest.mark.skipif(not HEADLESS, reason="XTERM_HEADLESS names no @xterm/headless")


@with_tmux
@pytest.mark.parametrize("agent", AGENTS)
def test_the_screen_is_that_of_tmux(agent: str, tmp_path: Path) -> None:
    assert CAPTURES is not None
    wrong = [
        f"{step.place}: {what}"
        for step, terminal, tmux in beside_tmux(load(CAPTURES, agent), tmp_path)
        if step.place not in DEVIATIONS.get(agent, {})
        for what in tmux_differences(terminal, tmux)
    ]
    assert wrong == []


@with_headless
@pytest.mark.parametrize("agent", AGENTS)
def test_the_screen_is_that_of_xterm_js(agent: str) -> None:
    assert CAPTURES is not None
    recording = load(CAPTURES, agent)
    alone = ALONE.get(agent, set())
    wrong, parted = [], False
    for (step, terminal), frame in zip(replayed(recording), frames(recording), strict=True):
        parted = parted or step.place in alone
        if step.place not in alone:
            found = frame_differences(terminal, frame, above=not parted)
            wrong += [f"{step.place}: {what}" for what in found]
    assert wrong == []


@with_headless
def test_where_the_cursor_of_xterm_js_leaves_its_text_all_text_up_to_it_is_the_same() -> None:
    assert CAPTURES is not None
    recording = load(CAPTURES, "gemini")
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


@with_tmux
def test_where_nobody_agrees_the_frame_around_the_cursor_is_that_of_tmux(tmp_path: Path) -> None:
    assert CAPTURES is not None
    compared = 0
    for step, terminal, tmux in beside_tmux(load(CAPTURES, "gemini"), tmp_path):
        if step.place in ALONE["gemini"]:
            (x, y), cursor = tmux.cursor(), terminal.cursor
            assert cursor.x == x
            ours = characters(terminal)[cursor.y - FRAME : cursor.y + 1]
            assert list(row_differences(ours, tmux.rows()[y - FRAME : y + 1], "tmux")) == []
            compared += 1
    assert compared == len(ALONE["gemini"])


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
