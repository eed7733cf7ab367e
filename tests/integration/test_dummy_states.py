"""The rules of the dummy's profile see each of its states, whichever of its signals are on."""

from __future__ import annotations

import pytest

from synapse_tui.model import AgentState
from tests.integration.dummy_rig import DummyRig
from tests.integration.pty_harness import until

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


@pytest.mark.parametrize(("options", "size"), VARIANTS.values(), ids=VARIANTS.keys())
async def test_every_state_is_seen(tmp_path, options, size):
    rig = DummyRig(tmp_path, "--word-delay", "40", *options, **size)
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
            if size["lines"] > 5:
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
