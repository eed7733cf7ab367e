"""One real agent in a session, offline (see `run`), and what its fake model logged of it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import time
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.agents.environment import child_environment
from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.events import AgentStateChanged, Event, EventBus
from synapse_tui.core.model import AgentSpec, AgentState, MessageRequest, Sender, Task, TaskState
from synapse_tui.messages.tasks import Journal
from synapse_tui.system.paths import UserPaths, shipped_profiles
from synapse_tui.system.pty import ReadScheduler
from tests.lab.agents import AGENTS as LAB_AGENTS
from tests.lab.fake_model import APPENDED, CLOSED
from tests.profiles import shipped

LOG = os.environ.get("SYNAPSE_LAB_LOG", "")
PROFILES = shipped()
AGENTS = [name for name in LAB_AGENTS if name in PROFILES.profiles]
HOOKED = [name for name in AGENTS if PROFILES.find(name).hooks]
PEER = Sender("synapse-tester-8200", "tester", verified=True)
SLOW = 60.0
TRIES = 5  # presses of a key to which a busy agent does not react
START = 180.0  # some load hundreds of megabytes
_TAKEN_IN = re.compile(
    r"\AThe user sent a new message while you were working:\n(.*)\n\nIMPORTANT: .*\Z", re.DOTALL
)
"""How Claude Code tells its model of a message that came in the midst of a turn, between two tools."""


class JsonLines:
    """What was added to a file of JSON lines since this object was made; it may hold earlier runs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = path.stat().st_size if path.exists() else 0

    def more(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._place)
            whole, found, _ = file.read().rpartition(b"\n")
        if not found:
            return []
        self._place += len(whole) + 1
        return [json.loads(line) for line in whole.split(b"\n")]


class ModelLog:
    """What the model was asked since this object was made."""

    def __init__(self) -> None:
        self._log = JsonLines(Path(LOG))
        self._entries: list[dict[str, Any]] = []
        self._texts: list[str] = []
        self._counts: Counter[str] = Counter()

    def entries(self) -> list[dict[str, Any]]:
        for entry in self._log.more():
            self._entries.append(entry)
            if entry.get("prompt"):
                self._note(user_texts(entry["body"]))
        return self._entries

    def last_prompts(self) -> list[str]:
        """The last prompt of each request, without the agents' side requests and tool results."""
        return [
            str(entry["last_user"])
            for entry in self.entries()
            if entry.get("last_user") and entry.get("prompt") and not entry.get("tool_result")
        ]

    def prompts(self) -> list[str]:
        """Everything that was submitted, as often as it was, and what agents put in as the user's."""
        self.entries()
        return self._texts

    def _note(self, texts: list[str]) -> None:
        """Take in a request: it repeats the conversation, so what is new is what it holds more often.

        Claude Code adds a line end to a prompt that was stopped, once another one follows it.
        """
        counts: Counter[str] = Counter()
        for text in texts:
            key = text.rstrip()
            counts[key] += 1
            if counts[key] > self._counts[key]:
                self._counts[key] += 1
                self._texts.append(text)

    def requests(self, token: str) -> list[str]:
        return [prompt for prompt in self.prompts() if token in prompt]

    def dumped(self, text: str) -> bool:
        """Whether any request held a text, wherever."""
        return json.dumps(text, ensure_ascii=False)[1:-1].encode() in Path(LOG).read_bytes()

    def closed_streams(self) -> int:
        return sum(entry.get("note") == CLOSED for entry in self.entries())


def user_texts(request: dict[str, Any]) -> list[str]:
    """The user's texts of a request, in the words of any of the APIs that the agents use."""
    texts: list[str] = []
    for message in request.get("messages") or request.get("input") or request.get("contents") or ():
        content = message.get("content", message.get("parts"))
        if message.get("role") == "system" and (taken_in := _TAKEN_IN.match(str(content))):
            content = taken_in[1]
        elif message.get("role") != "user":
            continue
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        texts += [APPENDED.split(part["text"])[0] for part in parts if isinstance(part.get("text"), str)]
    return texts


class Lab:
    """One real agent in a session."""

    def __init__(
        self,
        agent: str,
        folder: Path,
        *,
        cwd: Path | None = None,
        journal: Journal | None = None,
        screen_only: bool = False,
        args: Sequence[str] | None = None,
    ) -> None:
        own = UserPaths(Path.home()).profiles  # in the lab's home: what `synapse profile new` wrote
        self.profile = load_profiles(shipped_profiles(), own).find(agent)
        if screen_only:
            self.profile = replace(self.profile, transcript=None)
        self.asks = LAB_AGENTS[agent].asks
        self.events = EventBus()
        self.states: list[tuple[float, str, str]] = []
        self.model = ModelLog()
        self.begun = time.monotonic()
        self.events.subscribe(self._heard)
        agent_id = f"synapse-{agent}-{self.profile.ports[0]}"
        self.session = AgentSession(
            self.profile,
            agent_id=agent_id,
            port=self.profile.ports[0],
            cwd=cwd or Path.cwd(),
            spec=AgentSpec(agent, args=self.profile.doctor.args if args is None else tuple(args)),
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
            journal=journal,
        )

    def _heard(self, event: Event) -> None:
        if isinstance(event, AgentStateChanged):
            self.states.append((round(self.clock(), 2), event.report.state.value, event.report.rule))

    def clock(self) -> float:
        return time.monotonic() - self.begun

    def note(self, text: str) -> None:
        print(f"[{self.clock():6.1f}] {self.profile.name}: {text}", flush=True)

    def screen(self) -> str:
        rows = "\n".join(row.rstrip() for row in self.session.terminal.display)
        return f"{self.session.report}\n{self.session.reading()}\n{self.states[-8:]}\n{rows}"

    async def until(self, condition: Callable[[], Any], what: object, seconds: float = SLOW) -> Any:
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}\n{self.screen()}"
            assert self.session.exit is None, f"the agent ended\n{self.screen()}"
            await asyncio.sleep(0.05)
        return value

    async def within(self, seconds: float, condition: Callable[[], Any]) -> bool:
        """Whether a condition holds within some seconds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.05)
        return True

    async def state(self, state: AgentState) -> None:
        await self.until(lambda: self.session.report.state is state, state)

    def send(self, text: str, priority: int = 3) -> Task:
        return self.session.accept(MessageRequest(text, PEER, priority))

    async def done(self, task: Task, state: TaskState = TaskState.COMPLETED) -> Task:
        await self.until(
            lambda: self.session.tasks.get(task.id).state.final,
            f"the end of {self.session.tasks.get(task.id)}",
        )
        done = self.session.tasks.get(task.id)
        assert done.state is state, f"{done}\n{self.screen()}"
        return done

    async def once(self, token: str) -> str:
        await self.until(lambda: self.model.requests(token), f"{token} in the model's log")
        await asyncio.sleep(1)  # a second copy would come now
        found = self.model.requests(token)
        assert len(found) == 1, found
        return found[0]

    def type(self, text: str) -> None:
        self.session.user_input(text.encode())

    async def deny(self) -> None:
        """Deny the open dialog, again if the agent does not react, as a person would."""
        denied = self.session.dialog
        for _ in range(TRIES):
            await self._press_deny()
            if await self.within(10, lambda: self.session.dialog != denied):
                return
        raise AssertionError(f"the dialog stays\n{self.screen()}")

    async def _press_deny(self) -> None:
        guard, now = self.session.keyboard.guard, self.session.console.now
        for place, key in enumerate(self.profile.deny):
            if place:
                await asyncio.sleep(self.profile.interrupt.gap)
            await self.until(lambda: not guard.answers_in(now()), "a dialog that takes keys")
            self.session.user_input(key)

    async def clear_draft(self) -> None:
        """Clear the draft, again for each of its rows and if the agent does not react."""
        for _ in range(TRIES):
            for key in self.profile.clear:
                self.session.user_input(key)
            if await self.within(3, lambda: self.session.reading().empty):
                return
        raise AssertionError(f"the draft stays\n{self.screen()}")


@asynccontextmanager
async def open_lab(
    agent: str,
    folder: Path,
    *,
    cwd: Path | None = None,
    journal: Journal | None = None,
    size: tuple[int, int] = (100, 32),
    screen_only: bool = False,
    args: Sequence[str] | None = None,
) -> AsyncIterator[Lab]:
    if shutil.which(agent) is None:
        pytest.skip(f"{agent} is not installed in the lab")
    lab = Lab(agent, folder, cwd=cwd, journal=journal, screen_only=screen_only, args=args)
    lab.session.start(*size)
    try:
        await lab.until(lambda: lab.session.report.state is AgentState.READY, "READY", START)
        lab.note("ready")
        yield lab
    except BaseException:
        print(lab.screen())
        raise
    finally:
        await lab.session.stop()


def squeezed(text: str) -> str:
    """A text in NFC without white space: as agents wrap it, it is the same."""
    return "".join(unicodedata.normalize("NFC", text).split())
