"""The built-in agent's output beside what tmux and xterm.js make of it; it is recorded by the test itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.comparing import beside_tmux, frame_differences, replayed, tmux_differences
from tests.terminal.dummy_recording import record
from tests.terminal.headless import frames

pytestmark = [
    pytest.mark.parametrize("screen", [(), ("--alt-screen",)], ids=["main", "alternate"]),
]


@pytest.mark.tmux
async def test_the_screen_is_that_of_tmux(screen: tuple[str, ...], tmp_path: Path) -> None:
    recording = await record(tmp_path, *screen)
    folder = tmp_path / "tmux"
    folder.mkdir()
    wrong = [
        f"{step.place}: {what}"
        for step, terminal, tmux in beside_tmux(recording, folder)
        if screen or step.size is None  # resized, tmux wraps its own way until it is all drawn anew
        for what in tmux_differences(terminal, tmux)
    ]
    assert wrong == []


@pytest.mark.headless
async def test_the_screen_is_that_of_xterm_js(screen: tuple[str, ...], tmp_path: Path) -> None:
    recording = await record(tmp_path, *screen)
    pairs = zip(replayed(recording), frames(recording), strict=True)
    wrong = [
        f"{step.place}: {what}"
        for (step, terminal), frame in pairs
        for what in frame_differences(terminal, frame)
    ]
    assert wrong == []
