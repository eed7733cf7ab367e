"""Recorded output of real agents, painted in both ways, gives the picture that the agent's terminal has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.ui.terminal_view_kit import FakeSession, PanesApp, looks, running, settle

SHARED = Path(os.environ.get("SYNAPSE_SHARED", Path(__file__).parents[3] / "shared"))
CAPTURES = sorted((SHARED / "captures").glob("*.bin"))
CHUNK = 6000


@pytest.mark.skipif(not CAPTURES, reason="the recordings of the agents are not here (SYNAPSE_SHARED)")
@pytest.mark.parametrize("direct", [True, False], ids=["direct", "compositor"])
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
async def test_recordings(capture, direct):
    session = FakeSession(100, 32)
    app = PanesApp(session)
    data = capture.read_bytes()[:180_000]
    async with running(app, (100, 32)) as pilot:
        app.stage.direct = direct
        for number, start in enumerate(range(0, len(data), CHUNK)):
            session.output(data[start : start + CHUNK])
            await pilot.pause()
            if number % 10 == 9:
                await settle(pilot)
                assert looks(app.picture()) == looks(session.terminal), start
