"""Messages to the real agents, offline, against a fake model that logs what each agent submitted."""

from __future__ import annotations

import asyncio
import re
import textwrap
import time
from pathlib import Path
from uuid import uuid4

import pytest

from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from tests.lab.lab_kit import AGENTS, Lab, open_lab, squeezed

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(900),
]

TEXTS = {
    "plain": "please say hello",
    "lines": "first line\nsecond line\n\n    fourth, indented",
    "japanese": "日本語のメッセージです。全角ＡＢＣとｶﾅ、長音ー。",
    "emoji": "emoji 👍🏽 👩‍💻 🇯🇵 ⚠️ and e\u0301 end",
    "shell": "!ls -la",
    "command": "/quit now",
    "hash": "# a note",
    "mention": "look at @README",
    "at": "who is @",
    "backslash": "ends in \\",
    "kilobytes": " ".join(f"word{number}" for number in range(450)) + " end",
    "many lines": "\n".join(f"line number {number} of many" for number in range(62)),
    "twenty kilobytes": "\n".join(
        f"{number} 日本語の行 with some more text to fill it" for number in range(400)
    ),
}


def token() -> str:
    return f"tok{uuid4().hex[:10]}"


def indent(text: str) -> str:
    return textwrap.indent(text, "         | ", lambda _line: True)


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_kind_of_text_arrives_whole_and_once(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        for name, text in TEXTS.items():
            if (agent, name) == ("gemini", "mention"):
                text = "look at @nosuchfile"  # noqa: PLW2901 - it would put a file that exists in place of its name
            mark = token()
            begun = time.monotonic()
            task = lab.send(
                f"{mark} {text}" if name not in ("shell", "command", "hash") else f"{text} {mark}"
            )
            done = await lab.done(task)
            got = await lab.once(mark)
            assert squeezed(text) in squeezed(got), (name, got)
            artifact = done.artifacts[0].text if done.artifacts else ""
            lab.note(f"{name}: {time.monotonic() - begun:.1f} s, answer\n{indent(artifact[:300])}")
            assert "ECHO" in artifact, (name, artifact)


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_answer_longer_than_the_screen_is_whole(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        lab.session.resize(100, 24)
        done = await lab.done(lab.send(f"{token()} count %%slow:18%%"))
        answer = done.artifacts[0]
        lab.note(f"truncated {answer.truncated}\n{indent(answer.text)}")
        numbers = [int(number) for number in re.findall(r"slow\s+line\s+(\d+)", answer.text)]
        assert numbers == list(range(36)) or answer.truncated
        assert numbers == sorted(set(numbers))
        assert "END-OF-SLOW" in answer.text


@pytest.mark.parametrize("agent", AGENTS)
async def test_messages_wait_for_work_drafts_and_dialogs(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        first, second = token(), token()
        running = lab.send(f"{first} %%slow:4%%")
        await lab.state(AgentState.PROCESSING)
        waiting = lab.send(f"{second} while it works")
        assert waiting.reason in ("working", "another message goes first")
        await lab.done(running)
        await lab.done(waiting)
        await lab.once(second)
        lab.note("working: waited")

        lab.type("half a line")
        await lab.until(lambda: lab.session.reading().draft == "half a line", "the draft")
        third = token()
        task = lab.send(f"{third} not into the draft")
        await asyncio.sleep(4)
        held = lab.session.tasks.get(task.id)
        assert (held.delivery, held.reason) == (DeliveryState.HELD, "you have a draft")
        assert lab.session.reading().draft == "half a line"
        await lab.clear_draft()
        await lab.done(task)
        assert "half a line" not in await lab.once(third)
        lab.note("draft: waited")

        if lab.asks:
            await message_waits_for_a_dialog(lab)

        fifth = token()
        task = lab.send(f"{fifth} from a peer")
        await lab.until(lambda: lab.session.tasks.get(task.id).delivery is DeliveryState.TYPING, "typing")
        for char in "my own draft":
            lab.type(char)
            await asyncio.sleep(0.03)
        await lab.done(task)
        await lab.until(lambda: lab.session.reading().draft == "my own draft", "the user's own draft")
        assert "my own" not in await lab.once(fifth)
        lab.note("typing at the same time: neither damaged")


async def message_waits_for_a_dialog(lab: Lab) -> None:
    marker = Path.cwd() / f"made-{lab.profile.name}"
    marker.unlink(missing_ok=True)
    asking = lab.send(f"{token()} %%run:touch {marker}%%%%esc%%")
    await lab.state(AgentState.WAITING)
    mark = token()
    task = lab.send(f"{mark} not into the dialog")
    assert "dialog open" in task.reason
    await asyncio.sleep(4)
    assert lab.session.report.state is AgentState.WAITING, lab.screen()
    assert not lab.model.requests(mark)
    await lab.deny()
    await lab.done(task)
    await lab.once(mark)
    assert not marker.exists()
    lab.note(f"dialog: waited; the task that asked: {lab.session.tasks.get(asking.id).state}")


@pytest.mark.parametrize("agent", AGENTS)
async def test_priority_5_stops_within_two_seconds_and_the_agent_lives(agent, tmp_path):
    marker = Path.cwd() / f"made-{agent}"
    marker.unlink(missing_ok=True)
    async with open_lab(agent, tmp_path) as lab:
        for turn in ("%%slow:40%%", "%%hang:40%%"):
            mark = token()
            running = lab.send(f"{mark} count {turn}")
            await lab.until(lambda mark=mark: lab.model.requests(mark), "the request")  # type: ignore[misc]
            await lab.state(AgentState.PROCESSING)
            await asyncio.sleep(1.5)
            closed, begun = lab.model.closed_streams(), time.monotonic()
            urgent = token()
            task = lab.send(f"{urgent} urgent", 5)
            if turn.startswith("%%slow"):
                await lab.until(lambda n=closed: lab.model.closed_streams() > n, "the closed stream", 10)  # type: ignore[misc]
            else:
                await lab.until(lambda id_=running.id: lab.session.tasks.get(id_).state.final, "the stop", 10)  # type: ignore[misc]
            seconds = time.monotonic() - begun
            await lab.done(task)
            await lab.once(urgent)
            lab.note(f"{turn}: stopped after {seconds:.2f} s")
            assert seconds < 2
            assert lab.session.tasks.get(running.id).state is TaskState.CANCELED

        if lab.asks:
            lab.send(f"{token()} %%run:touch {marker}%%%%esc%%")
            await lab.state(AgentState.WAITING)
            urgent = token()
            task = lab.send(f"{urgent} instead", 5)
            await lab.done(task)
            await lab.once(urgent)
            assert not marker.exists()
            lab.note("dialog: dismissed")

        outcome = await lab.session.interrupt()
        assert outcome.stopped
        assert outcome.alive
        await lab.done(lab.send(f"{token()} still there?"))


@pytest.mark.parametrize("agent", AGENTS)
async def test_prompts_typed_without_a_look_while_a_message_is_typed_follow_it_one_by_one(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        for size in (40, 19_000):
            mark, first, second = token(), token(), token()
            task = lab.send(" ".join([mark, *(f"日本語{number}" for number in range(size // 14))]))
            await lab.until(
                lambda id_=task.id: lab.session.tasks.get(id_).delivery is DeliveryState.TYPING,  # type: ignore[misc]
                "typing",
            )
            for char in f"{first} a\r{second} b\r":
                lab.type(char)
                await asyncio.sleep(0.2 if char in "ab\r" else 0.04)
            await lab.done(task)
            # Copilot joins prompts that came in the same turn, by a blank line.
            assert f"{first} a" in (await lab.once(first)).splitlines(), lab.model.prompts()
            assert f"{second} b" in (await lab.once(second)).splitlines(), lab.model.prompts()
            await lab.once(mark)
            lab.note(f"{size}: {[prompt[-40:] for prompt in lab.model.prompts()[-3:]]}")


@pytest.mark.parametrize("agent", AGENTS)
async def test_typing_goes_on_as_a_dialog_opens_and_does_not_answer_it(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        session, marker = lab.session, Path.cwd() / f"made-{agent}"
        approve = lab.profile.doctor.approve
        if approve is None:
            pytest.skip(f"{agent} does not ask")
        guard = session.keyboard.guard
        marker.unlink(missing_ok=True)
        for keys in (lab.profile.deny, approve.keys):
            asking = lab.send(f"{token()} %%run:touch {marker}%%%%esc%%")
            await lab.until(lambda: session.reading().dialog, "the dialog")
            line = token()
            for char in f"{line} please\r":
                lab.type(char)
                await asyncio.sleep(0.05)
            await lab.until(lambda: not guard.answers_in(session.console.now()), "a pause")
            assert session.reading().dialog, lab.screen()
            assert not marker.exists()
            begun = time.monotonic()
            for key in keys:
                session.user_input(key)
            await lab.until(lambda: not session.reading().dialog, "the end of the dialog", 10)
            lab.note(f"{keys!r} was taken after {time.monotonic() - begun:.2f} s")
            assert f"{line} please" in (await lab.once(line)).splitlines()  # Copilot puts the time before it
            await lab.until(lambda id_=asking.id: session.tasks.get(id_).state.final, "the end of the turn")  # type: ignore[misc]
            await lab.state(AgentState.READY)
            assert marker.exists() is (keys == approve.keys), lab.screen()
            assert session.reading().empty, lab.screen()
