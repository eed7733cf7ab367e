"""The built-in agent's output beside what tmux and xterm.js make of it; it is recorded by the test itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.comparing import beside_tmux, frame_differences, replayed, tmux_differences
from tests.terminal.dummy_recording import SIZES, record
from tests.terminal.headless import HEADLESS, frames
from tests.terminal.tmux_screen import TMUX

UNDRAWN = {f"after a resize to {columns}x{lines}" for columns, lines in SIZES}
"""Where tmux's own way of wrapping shows until the program has drawn its screen anew."""

pytestmark = [
    pytest.mark.parametrize("screen", [(), ("--alt-screen",)], ids=["main", "alternate"]),
]


@pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
async def test_the_screen_is_that_of_tmux(screen: tuple[str, ...], tmp_path: Path) -> None:
    recording = await record(tmp_path, *screen)
    folder = tmp_path / "tmux"
    folder.mkdir()
    wrong = [
        f"{step.place}: {what}"
        for step, terminal, tmux in beside_tmux(recording, folder)
        if screen or step.place not in UNDRAWN
        for what in tmux_differences(terminal, tmux)
    ]
    assert wrong == []


@pytest.mark.skipif(not HEADLESS, reason="XTERM_HEADLESS names no @xterm/headless")
async def test_the_screen_is_that_of_xterm_js(screen: tuple[str, ...], tmp_path: Path) -> None:
    recording = await record(tmp_path, *screen)
    pairs = zip(replayed(recording), frames(recording), strict=True)
    wrong = [
        f"{step.place}: {what}"
        for (step, terminal), frame in pairs
        for what in frame_differences(terminal, frame)
    ]
    assert wrong == []
