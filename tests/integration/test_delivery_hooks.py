"""Messages to an agent whose hooks tell of a dialog before its screen shows it, and of its turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.agents.state import HOOKED
from synapse_tui.core.events import Event, TaskChanged
from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from synapse_tui.hooks import HookKind
from tests.bench import dialogs
from tests.integration.session_rig import open_rig, until

QUICK = ("--word-delay", "0", "--reply", "ok")


async def test_a_message_is_held_the_moment_a_dialog_is_announced_and_goes_when_none_came(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        rig.session.hooked(HookKind.ASKED, "a")
        task = rig.send("not into the dialog")
        held = rig.session.tasks.get(task.id)
        assert (held.delivery, held.reason) == (DeliveryState.HELD, "permission dialog open")
        rig.session.hooked(HookKind.POST, "a")
        await rig.done(task)
        assert rig.submitted == ["not into the dialog"]


async def test_no_enter_is_pressed_when_a_dialog_is_announced_right_before_it(tmp_path: Path) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        asked: list[str] = []

        def announce(event: Event) -> None:
            if (
                isinstance(event, TaskChanged)
                and event.task.delivery is DeliveryState.SUBMITTING
                and not asked
            ):
                asked.append(event.task.id)
                rig.session.hooked(HookKind.ASKED, "a")

        rig.events.subscribe(announce)
        task = rig.send("half way")
        await until(lambda: asked, "the last step before Enter")
        await rig.delivery(task, DeliveryState.HELD, "permission dialog open")
        assert rig.records("submit") == []
        rig.session.hooked(HookKind.POST, "a")
        await rig.done(task)
        assert rig.submitted == ["half way"], "it stands there still and goes once"


async def test_hooks_of_a_whole_turn_change_nothing_of_its_answer(tmp_path: Path) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        task = rig.send("hello")
        await until(lambda: rig.records("submit"), "Enter")
        rig.session.hooked(HookKind.PROMPT)
        rig.session.hooked(HookKind.PRE, "a")
        rig.session.hooked(HookKind.POST, "a")
        rig.session.hooked(HookKind.IDLE)
        done = await rig.done(task)
        assert done.state is TaskState.COMPLETED
        assert done.answer == "ok"


async def test_a_prompt_of_the_persons_own_holds_messages_before_the_screen_shows_work(
    tmp_path: Path,
) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        rig.session.hooked(HookKind.PROMPT)
        assert (rig.session.report.state, rig.session.report.rule) == (AgentState.PROCESSING, HOOKED)
        task = rig.send("behind it")
        assert rig.session.tasks.get(task.id).reason == "working"
        rig.session.hooked(HookKind.IDLE)
        await rig.done(task)
        assert rig.submitted == ["behind it"]


@pytest.mark.parametrize("kind", dialogs.KINDS)
async def test_no_enter_falls_into_a_dialog_that_opens_in_that_moment(kind):
    tries = 4 if kind == "working" else 8
    tally = await dialogs.run(kind, tries, agents=2)
    assert tally.wrong == []
    assert tally.answers.keys() == {"escape"}
    assert len(tally.opened) == tally.tries == tries
