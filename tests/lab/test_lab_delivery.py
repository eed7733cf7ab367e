"""Messages to the real agents, offline, against a fake model that logs what each agent submitted.

Run inside a lab that has put the agents on PATH and exported the model's log:
    SYNAPSE_LAB_LOG=<log> pytest tests/lab/test_lab_delivery.py -m lab
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import textwrap
import time
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from synapse_tui.agents.environment import child_environment
from synapse_tui.agents.profiles import load_profiles
from synapse_tui.agents.session import AgentSession
from synapse_tui.events import AgentStateChanged, EventBus
from synapse_tui.model import (
    AgentSpec,
    AgentState,
    DeliveryState,
    MessageRequest,
    Sender,
    Task,
    TaskState,
)
from synapse_tui.paths import UserPaths, shipped_profiles
from synapse_tui.pty import ReadScheduler

LOG = os.environ.get("SYNAPSE_LAB_LOG", "")
AGENTS = ["claude", "codex", "gemini", "opencode", "copilot"]
PEER = Sender("synapse-tester-8200", "tester", verified=True)
SLOW = 60.0

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not LOG, reason="needs the offline lab of real agents (SYNAPSE_LAB_LOG)"),
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


def entries() -> list[dict[str, Any]]:
    path = Path(LOG)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def requests(token: str) -> list[str]:
    """What was submitted with a token in it, without the agents' side requests and tool results."""
    return [
        str(entry["last_user"])
        for entry in entries()
        if token in str(entry.get("last_user", "")) and entry.get("tools") and not entry.get("tool_result")
    ]


def closed_streams() -> int:
    return Path(LOG).read_text().count("closed stream early") if Path(LOG).exists() else 0


class Lab:
    """One real agent in a session."""

    def __init__(self, agent: str, folder: Path) -> None:
        self.profile = load_profiles(shipped_profiles()).find(agent)
        self.events = EventBus()
        self.states: list[tuple[float, str, str]] = []
        self.begun = time.monotonic()
        self.events.subscribe(self._heard)
        agent_id = f"synapse-{agent}-{self.profile.ports[0]}"
        self.session = AgentSession(
            self.profile,
            agent_id=agent_id,
            port=self.profile.ports[0],
            cwd=Path.cwd(),
            spec=AgentSpec(agent),
            environ=child_environment(
                os.environ,
                profile=self.profile,
                agent_id=agent_id,
                endpoint=f"http://127.0.0.1:{self.profile.ports[0]}",
                token="x",
                paths=UserPaths(folder),
            ),
            events=self.events,
            scheduler=ReadScheduler(),
            logs=folder,
        )

    def _heard(self, event: object) -> None:
        if isinstance(event, AgentStateChanged):
            self.states.append(
                (round(time.monotonic() - self.begun, 2), event.report.state.value, event.report.rule)
            )

    def note(self, text: str) -> None:
        print(f"[{time.monotonic() - self.begun:6.1f}] {self.profile.name}: {text}", flush=True)

    def screen(self) -> str:
        report = self.session.report
        rows = "\n".join(row.rstrip() for row in self.session.terminal.display)
        return f"{report}\n{self.session.reading()}\n{self.states[-8:]}\n{rows}"

    async def until(self, condition: Callable[[], Any], what: str, seconds: float = SLOW) -> Any:
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}\n{self.screen()}"
            assert self.session.exit is None, f"the agent ended\n{self.screen()}"
            await asyncio.sleep(0.05)
        return value

    async def state(self, state: AgentState) -> None:
        await self.until(lambda: self.session.report.state is state, state)

    def send(self, text: str, priority: int = 3) -> Task:
        return self.session.accept(MessageRequest(text, PEER, priority))

    async def done(self, task: Task, state: TaskState = TaskState.COMPLETED) -> Task:
        await self.until(
            lambda: self.session.task(task.id).state.final, f"the end of {self.session.task(task.id)}"
        )
        done = self.session.task(task.id)
        assert done.state is state, f"{done}\n{self.screen()}"
        return done

    async def once(self, token: str) -> str:
        await self.until(lambda: requests(token), f"{token} in the model's log")
        await asyncio.sleep(1)  # a second copy would come now
        found = requests(token)
        assert len(found) == 1, found
        return found[0]

    def type(self, text: str) -> None:
        self.session.user_input(text.encode())

    async def clear_draft(self) -> None:
        for key in self.profile.clear:
            self.session.user_input(key)
        await self.until(lambda: self.session.reading().empty, "an empty composer", 10)


@asynccontextmanager
async def open_lab(agent: str, folder: Path) -> AsyncIterator[Lab]:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not installed in the lab")
    lab = Lab(agent, folder)
    lab.session.start(100, 32)
    try:
        await lab.until(lambda: lab.session.report.state is AgentState.READY, "READY")
        lab.note("ready")
        yield lab
    except BaseException:
        print(lab.screen())
        raise
    finally:
        await lab.session.stop()


def token() -> str:
    return f"tok{uuid4().hex[:10]}"


def indent(text: str) -> str:
    return textwrap.indent(text, "         | ", lambda _line: True)


def squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFC", text).split())


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
        numbers = [int(number) for number in re.findall(r"slow line (\d+)", answer.text)]
        assert numbers == list(range(36)) or answer.truncated
        assert numbers == sorted(set(numbers))
        assert "END-OF-SLOW" in answer.text


@pytest.mark.parametrize("agent", AGENTS)
async def test_messages_wait_for_work_drafts_and_dialogs(agent, tmp_path):
    marker = Path.cwd() / f"made-{agent}"
    marker.unlink(missing_ok=True)
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
        held = lab.session.task(task.id)
        assert (held.delivery, held.reason) == (DeliveryState.HELD, "you have a draft")
        assert lab.session.reading().draft == "half a line"
        await lab.clear_draft()
        await lab.done(task)
        assert "half a line" not in await lab.once(third)
        lab.note("draft: waited")

        escalate = "%%esc%%" if agent == "codex" else ""
        asking = lab.send(f"{token()} %%run:touch {marker}%%{escalate}")
        await lab.state(AgentState.WAITING)
        fourth = token()
        task = lab.send(f"{fourth} not into the dialog")
        assert "dialog open" in task.reason
        await asyncio.sleep(4)
        assert lab.session.report.state is AgentState.WAITING, lab.screen()
        assert not requests(fourth)
        lab.type("\x1b")
        await lab.done(task)
        await lab.once(fourth)
        assert not marker.exists()
        lab.note(f"dialog: waited; the task that asked: {lab.session.task(asking.id).state}")

        fifth = token()
        task = lab.send(f"{fifth} from a peer")
        await lab.until(lambda: lab.session.task(task.id).delivery is DeliveryState.TYPING, "typing")
        for char in "my own draft":
            lab.type(char)
            await asyncio.sleep(0.03)
        await lab.done(task)
        await lab.until(lambda: lab.session.reading().draft == "my own draft", "the user's own draft")
        assert "my own" not in await lab.once(fifth)
        lab.note("typing at the same time: neither damaged")


@pytest.mark.parametrize("agent", AGENTS)
async def test_priority_5_stops_within_two_seconds_and_the_agent_lives(agent, tmp_path):
    marker = Path.cwd() / f"made-{agent}"
    marker.unlink(missing_ok=True)
    async with open_lab(agent, tmp_path) as lab:
        for turn in ("%%slow:40%%", "%%hang:40%%"):
            mark = token()
            running = lab.send(f"{mark} count {turn}")
            await lab.until(lambda mark=mark: requests(mark), "the request")  # type: ignore[misc]
            await lab.state(AgentState.PROCESSING)
            await asyncio.sleep(1.5)
            closed, begun = closed_streams(), time.monotonic()
            urgent = token()
            task = lab.send(f"{urgent} urgent", 5)
            if turn.startswith("%%slow"):
                await lab.until(lambda closed=closed: closed_streams() > closed, "the closed stream", 10)  # type: ignore[misc]
            else:
                await lab.until(lambda id_=running.id: lab.session.task(id_).state.final, "the stop", 10)  # type: ignore[misc]
            seconds = time.monotonic() - begun
            await lab.done(task)
            await lab.once(urgent)
            lab.note(f"{turn}: stopped after {seconds:.2f} s")
            assert seconds < 2
            assert lab.session.task(running.id).state is TaskState.CANCELED

        escalate = "%%esc%%" if agent == "codex" else ""
        lab.send(f"{token()} %%run:touch {marker}%%{escalate}")
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
