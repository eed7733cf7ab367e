"""Agents without a shipped profile work with what `synapse profile new` alone wrote for them.

python -m tests.lab.run cn -- pytest -c $PWD/pyproject.toml $PWD/tests/lab/test_lab_new_profile.py -k cn -s
"""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from synapse_tui.core.model import AgentState
from tests.lab.agents import AGENTS
from tests.lab.lab_kit import PROFILES, open_lab, squeezed

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1500),
]

TEN_MINUTES = 600.0
UNKNOWN = [name for name in AGENTS if name not in PROFILES.profiles]
ONE = "Use no tools. Reply with exactly two lines: {} in the first one, {} in the second one."
TEN = """\
Use no tools. This message has several lines. Reply with exactly one line: its two codes, joined by a hyphen.
first code: {}
日本語の行です。
    an indented line; quotes " ' ` and $HOME

the sixth line
the seventh line
the eighth line
the ninth line
second code: {}"""
RUN = "Run exactly this command with your shell tool, once. Say whether it was allowed, then stop. touch {}"


@pytest.mark.parametrize("agent", UNKNOWN)
async def test_an_unknown_agent_works_within_ten_minutes(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not installed in the lab")
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)  # some agents do not ask under pytest
    begun = time.monotonic()
    process = await asyncio.create_subprocess_exec("synapse", "profile", "new", "--yes", agent)
    await asyncio.wait_for(process.wait(), TEN_MINUTES)
    print(f"{agent}: proposed and proved in {time.monotonic() - begun:.0f} s, status {process.returncode}")
    async with open_lab(agent, tmp_path) as lab:
        for text, codes, answer in (
            (ONE, ("Q7RKA", "B3MXT"), "Q7RKA\nB3MXT"),
            (TEN, ("W4HNP", "J9DCE"), "W4HNP-J9DCE"),
        ):
            sent = text.format(*codes)
            done = await lab.done(lab.send(sent))
            assert squeezed(sent) in squeezed(await lab.once(codes[0]))
            assert [artifact.text for artifact in done.artifacts] == [answer]
            lab.note(f"{sent.count(chr(10)) + 1} lines arrived; the answer is {done.artifacts[0].text!r}")

        marker = tmp_path / "made"
        lab.send(RUN.format(marker))
        await lab.state(AgentState.WAITING)
        waiting = lab.send(ONE.format("K2VZS", "H8GFY"))
        await lab.until(lambda: "dialog open" in lab.session.tasks.get(waiting.id).reason, "a held message")
        await asyncio.sleep(4)
        assert lab.session.report.state is AgentState.WAITING, lab.screen()
        assert not lab.model.requests("K2VZS")
        await lab.deny()
        await lab.done(waiting)
        lab.note("the message waited for the dialog, and was delivered once it was denied")

        lab.send(RUN.format(marker))
        await lab.state(AgentState.WAITING)
        urgent = await lab.done(lab.send(ONE.format("C5TUL", "P6WJX"), 5))
        assert [artifact.text for artifact in urgent.artifacts] == ["C5TUL\nP6WJX"]
        assert not marker.exists()
        lab.note("priority 5 denied the dialog")
