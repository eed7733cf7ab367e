"""The rules of the dummy's profile see each of its states, whichever of its signals are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from synapse_tui.core.model import AgentState
from tests.integration.dummy_rig import DummyRig
from tests.integration.pty_harness import until
from tests.integration.session_rig import Rig, open_rig
from tests.waiting import at_once

SIGNALS = {
    "title": ("--no-status",),
    "status": ("--no-title",),
    "progress": ("--no-title", "--no-status", "--progress"),
    "screen": ("--no-title", "--no-status"),
}
STANDARD = {"columns": 80, "lines": 24}
VARIANTS = {
    **{name: (options, STANDARD) for name, options in SIGNALS.items()},
    "screen-small": (SIGNALS["screen"], {"columns": 20, "lines": 5}),
    "screen-alternate": ((*SIGNALS["screen"], "--alt-screen"), STANDARD),
}


async def test_every_state_is_seen(tmp_path):
    for name in VARIANTS:
        (tmp_path / name).mkdir()
    await at_once(VARIANTS, lambda name: _every_state_is_seen(tmp_path / name, *VARIANTS[name]))


async def _every_state_is_seen(folder: Path, options: Sequence[str], size: Mapping[str, int]) -> None:
    columns, lines = size["columns"], size["lines"]
    rig = DummyRig(folder, "--word-delay", "15", *options, columns=columns, lines=lines)
    try:
        await rig.reaches(AgentState.READY)
        assert rig.reading.empty
        await rig.submit("%%hang:60%%")
        await rig.reaches(AgentState.PROCESSING)
        rig.press("\x1b")
        await rig.reaches(AgentState.READY)
        for directive, kind in (("%%perm:make%%", "permission"), ("%%ask:Which?|red|blue%%", "question")):
            await rig.submit(directive)
            await rig.reaches(AgentState.WAITING)
            await until(lambda: rig.reading.dialog, "the dialog on the screen")
            assert not rig.reading.visible
            if lines > 5:
                assert rig.reading.dialog_kind == kind
                assert rig.reading.dialog_title
            rig.press("\r")
            await rig.reaches(AgentState.READY)
        await rig.submit("%%error:no model%%")
        await rig.reaches(AgentState.ERROR)
        await rig.submit("back to work")
        await rig.reaches(AgentState.READY)
        await rig.submit("%%exit:7%%")
        assert (await rig.ends()).code == 7
        assert AgentState.UNKNOWN not in rig.states
        work, ready, wait = AgentState.PROCESSING, AgentState.READY, AgentState.WAITING
        turn = (work, wait, work, ready)
        assert rig.states == [ready, work, ready, *turn, *turn, work, AgentState.ERROR, work, ready, work]
    finally:
        await rig.close()


@pytest.mark.parametrize("signals", [(), SIGNALS["screen"]], ids=["all", "screen"])
async def test_a_streamed_answer_reads_as_one_turn(tmp_path, signals):
    rig = DummyRig(tmp_path, *signals)
    try:
        await rig.reaches(AgentState.READY)
        await rig.submit("%%slow:1.5%%")
        await rig.reaches(AgentState.PROCESSING)
        rig.press("typing meanwhile")
        await rig.reaches(AgentState.READY)
        assert rig.events("turn-end")
        assert rig.states == [AgentState.READY, AgentState.PROCESSING, AgentState.READY]
        await until(lambda: rig.reading.draft == "typing meanwhile", "the draft")
    finally:
        await rig.close()


async def test_a_dialog_that_opens_during_a_turn_is_waited_for_when_the_turn_has_ended(tmp_path):
    rig = DummyRig(tmp_path, "--word-delay", "0", "--dialog-after-paste", "100")
    try:
        await rig.reaches(AgentState.READY)
        await rig.submit("%%hang:0.3%%")
        await rig.reaches(AgentState.WAITING)
        await rig.logs("turn-end")
        assert rig.state is AgentState.WAITING
        await rig.submit("%%perm%%")
        assert (await rig.logs("dialog-answer"))["body"] == "touch surprise"
        await rig.reaches(AgentState.READY)
        assert rig.submitted == ["%%hang:0.3%%"]
    finally:
        await rig.close()


async def test_long_names_hide_no_state(tmp_path):
    rig = DummyRig(tmp_path, *SIGNALS["screen"], "--name", "a-very-long-name-of-an-agent", columns=30)
    try:
        await rig.reaches(AgentState.READY)
    finally:
        await rig.close()


QUICK = ("--word-delay", "0")
SAYS = "synapse-claude-8100 says: "


async def answer(rig: Rig, text: str, *keys: str) -> str:
    task = rig.send(text)
    for key in keys:
        await rig.answer(key)
    (artifact,) = (await rig.done(task)).artifacts
    assert not artifact.truncated
    return artifact.text


@pytest.mark.parametrize(
    "message",
    [
        "\n".join(f"line {number} of it" for number in range(1, 21)),
        "\n\n".join(f"paragraph {number}" for number in range(1, 21)),
        "word " * 200,
        "日本語の行👍と絵文字👩‍💻です " * 60,
        "\n".join(f"● item {number}" for number in range(1, 41)),
    ],
)
async def test_a_long_message_leaves_nothing_of_its_echo(tmp_path: Path, message: str) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        text = await answer(rig, message)
        # It says the first 160 characters again, wrapped.
        assert "".join(text.split()).startswith("".join((SAYS + message[:60]).split()))
        assert text.splitlines()[-1].startswith("(")


async def test_pieces_of_an_answer_have_no_bullets(tmp_path: Path) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        ran = await answer(rig, "%%perm:make all%% done", "1")
        assert ran.startswith("Bash(make all)\n⎿  allowed")
        assert f"\n\n{SAYS}done\n(" in ran
        raw = await answer(rig, "%%invalid%% done")
        assert raw.startswith("bytes that are no text: ")
        assert f"\n\n{SAYS}done\n(" in raw
