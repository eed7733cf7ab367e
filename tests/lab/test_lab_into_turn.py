"""Messages of priority 4 to real agents at work: some queue them, Codex is steered, others let them wait."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from synapse_tui.core.model import AgentState, DeliveryState, Task, TaskState
from tests.lab.lab_kit import AGENTS, Lab, open_lab
from tests.profiles import shipped

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
]

HOLDS = [agent for agent in AGENTS if shipped().find(agent).working_input == "hold"]
TAKES = [agent for agent in AGENTS if agent not in HOLDS]
QUEUES = [agent for agent in TAKES if shipped().find(agent).working_input == "queue"]


def token() -> str:
    return f"tok{uuid4().hex[:10]}"


def answer(lab: Lab, task: Task) -> str:
    artifacts = lab.session.tasks.get(task.id).artifacts
    return artifacts[0].text if artifacts else ""


async def begun(lab: Lab, text: str) -> Task:
    task = lab.send(text)
    await lab.until(lambda: lab.model.requests(text.split(maxsplit=1)[0]), "the request")
    await lab.state(AgentState.PROCESSING)
    return task


async def given(lab: Lab, text: str, running: Task | str) -> Task:
    """Send a message of priority 4 and wait until the agent has taken it, in the midst of its turn."""
    task = lab.send(text, 4)
    await lab.until(
        lambda: lab.session.tasks.get(task.id).delivery is DeliveryState.SUBMITTED,
        f"{lab.session.tasks.get(task.id)} to be submitted",
        30,
    )
    assert lab.session.report.state is AgentState.PROCESSING, lab.screen()
    if isinstance(running, Task):
        assert lab.session.tasks.get(running.id).state is TaskState.WORKING, lab.screen()
    else:
        assert lab.session.turns.queues(task.id) or lab.profile.working_input == "steer", lab.screen()
    return task


async def in_order(lab: Lab, *tokens: str) -> None:
    """Wait until the model has each text; each must be there once, in this order."""
    for each in tokens:
        await lab.once(each)
    places = [
        next(place for place, prompt in enumerate(lab.model.prompts()) if each in prompt) for each in tokens
    ]
    assert places == sorted(places), lab.model.prompts()


@pytest.mark.parametrize("agent", TAKES)
async def test_it_is_given_to_the_agent_in_its_turn_and_has_its_own_answer(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        for work in ("%%hang:12%%", "%%slow:12%%"):
            first, second, third = token(), token(), token()
            running = await begun(lab, f"{first} {work}")
            text = f"{second} and this\nin two lines 日本語"
            if "hang" in work:
                urged = await given(lab, text, running)
            else:
                urged = lab.send(text, 4)  # while text comes in, not every agent ever rests
            later = lab.send(f"{third} in its time")
            for task in (running, urged, later):
                await lab.done(task)
            await in_order(lab, first, second, third)
            answers = [answer(lab, task) for task in (running, urged, later)]
            lab.note(f"{work}: {answers}")
            assert second in answers[1]
            assert third in answers[2]
            assert third not in answers[1]
            if lab.profile.working_input == "queue":
                assert first in answers[0]
                assert second not in answers[0]
                assert first not in answers[1]


async def prompted(lab: Lab, text: str) -> None:
    """Write something at the keyboard that is no message."""
    for char in text:
        lab.type(char)
        await asyncio.sleep(0.02)
    await lab.until(lambda: text.split(maxsplit=1)[0] in lab.session.reading().draft, "the prompt")
    await asyncio.sleep(0.5)
    lab.type("\r")


@pytest.mark.parametrize("agent", TAKES)
async def test_into_a_turn_of_the_users_and_never_into_a_draft(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        mine, draft, first, second = token(), token(), token(), token()
        await prompted(lab, f"{mine} %%hang:15%%")
        await lab.until(lambda: lab.model.requests(mine), "the request")
        await lab.state(AgentState.PROCESSING)
        urged = await given(lab, f"{first} and this", mine)
        lab.type(draft)
        await lab.until(lambda: lab.session.reading().draft == draft, "the draft")
        held = lab.send(f"{second} not into the draft", 4)
        await lab.done(urged)
        await asyncio.sleep(2)
        assert lab.session.reading().draft == draft
        assert lab.session.tasks.get(held.id).reason == "you have a draft"
        await lab.clear_draft()
        await lab.done(held)
        await in_order(lab, mine, first, second)
        assert not lab.model.requests(draft)
        assert first in answer(lab, urged)


@pytest.mark.parametrize("agent", TAKES)
async def test_a_dialog_holds_it_and_a_command_that_runs_does_not(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        first, second, third = token(), token(), token()
        escalate = " %%esc%%" if agent == "codex" else ""
        running = lab.send(f"{first} %%run:touch made-{agent}; sleep 8%%{escalate}")
        await lab.state(AgentState.WAITING)
        urged = lab.send(f"{second} and this", 4)
        await asyncio.sleep(3)
        assert lab.session.report.state is AgentState.WAITING, lab.screen()
        assert lab.session.tasks.get(urged.id).delivery is DeliveryState.HELD
        assert not lab.model.requests(second)
        lab.type("\r")
        for task in (running, urged):
            await lab.done(task)
        await lab.done(lab.send(f"{third} then this"))
        await in_order(lab, first, second, third)
        lab.note(f"{[answer(lab, task) for task in (running, urged)]}")
        answers = [answer(lab, task) for task in (running, urged)]
        if lab.profile.working_input == "steer":
            # A model that was steered answers the last text, and so does the fake one.
            assert all(second in each for each in answers)
        else:
            # Whose answer the end of a turn is that has taken in a message, the agent's own file tells. If it
            # hands the message over with the result, the fake model answers the message.
            assert any("TOOL-RESULT" in each or second in each for each in answers)
            assert all(answers)


@pytest.mark.parametrize("agent", HOLDS)
async def test_an_agent_that_never_rests_in_its_turn_is_given_nothing_there(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        first, second = token(), token()
        running = await begun(lab, f"{first} %%hang:8%%")
        urged = lab.send(f"{second} and this", 4)
        assert lab.session.tasks.get(urged.id).reason == "working"
        while not lab.session.tasks.get(running.id).state.final:
            assert second not in lab.session.reading().draft, lab.screen()
            await asyncio.sleep(0.02)
        await lab.done(urged)
        await in_order(lab, first, second)


@pytest.mark.parametrize("agent", TAKES)
async def test_an_interrupt_loses_nothing_that_waits_in_the_agents_queue(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        first, second, third = token(), token(), token()
        running = await begun(lab, f"{first} %%hang:40%%")
        urged = await given(lab, f"{second} and this", running)
        stop = lab.send(f"{third} stop that", 5)
        await lab.done(running, TaskState.CANCELED)
        await lab.done(stop)
        await lab.until(lambda: lab.session.tasks.get(urged.id).state.final, "the end of what was given")
        lab.note(f"{lab.session.tasks.get(urged.id)}")
        await lab.once(second)
        await lab.once(third)


@pytest.mark.parametrize("agent", QUEUES)
async def test_an_interrupt_of_what_the_user_asked_is_none_of_what_is_queued_behind_it(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        mine, second = token(), token()
        await prompted(lab, f"{mine} %%hang:40%%")
        await lab.until(lambda: lab.model.requests(mine), "the request")
        await lab.state(AgentState.PROCESSING)
        queued = await given(lab, f"{second} and this", mine)
        assert (await lab.session.interrupt()).stopped
        await lab.done(queued)
        await lab.once(second)
        assert second in answer(lab, queued)


@pytest.mark.parametrize("agent", ["claude", "gemini"])  # Copilot does not report that its turn is over
async def test_a_turn_is_over_when_what_the_user_queued_behind_it_begins(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        first, mine = token(), token()
        running = await begun(lab, f"{first} %%hang:8%%")
        await prompted(lab, f"{mine} %%hang:40%%")
        await lab.until(lambda: lab.model.requests(mine), "the request")
        await lab.done(running)
        assert lab.session.report.state is AgentState.PROCESSING, lab.screen()
        assert first in answer(lab, running)
        assert mine not in answer(lab, running)
        assert (await lab.session.interrupt()).stopped
