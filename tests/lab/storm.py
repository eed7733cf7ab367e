"""A storm of messages over one agent: a sender, a person, and what must hold of both in the end."""

from __future__ import annotations

import asyncio
import re
import time
import unicodedata
from dataclasses import dataclass, field
from random import Random

from synapse_tui.agents.delivery.gate import dialog_open
from synapse_tui.agents.delivery.typed_text import typed_text
from synapse_tui.core.events import Event, TaskChanged
from synapse_tui.core.model import AgentState, DeliveryState, Task, TaskState
from tests.lab.lab_kit import Lab
from tests.lab.storm_person import Person

_REPLIES = re.compile(rb"(?:\x1b\[[?>]?[\d;]*(?:\$y|[cRnytu])|\x1b[\]P_][^\x1b\x07]*(?:\x07|\x1b\\))+")
"""What a terminal answers to an agent's questions."""
_WRAPPING = re.compile(r"\A<current_datetime>[^<]*</current_datetime>\n\n")
"""What Copilot puts before every prompt."""
DRAIN = 240.0
"""Seconds in which all messages must have been answered once the person is gone."""


@dataclass
class Sent:
    """A message and when things happened to it, counted in events."""

    task_id: str
    text: str
    priority: int
    accepted: int
    phase: str
    typed: int = 0
    submitted: int = 0
    reasons: list[str] = field(default_factory=list)

    @property
    def rank(self) -> tuple[int, int]:
        """Of two that wait together the one with the lower rank is typed first."""
        return (-self.priority, self.accepted)


class Storm:
    """Sends messages and records what happens to them and what is written into dialogs.

    Args:
        lab: The agent.
        person: Who sits before it.
        random: Decides when what is sent.
        texts: The messages, each of which is sent once.
    """

    def __init__(self, lab: Lab, person: Person, random: Random, texts: list[str]) -> None:
        self.sent: dict[str, Sent] = {}
        self.written_into_dialogs: list[tuple[bytes, str]] = []
        self._lab = lab
        self._person = person
        self._random = random
        self._texts = texts
        self._events = 0
        lab.events.subscribe(self._heard)
        self._watch_writes()

    def _heard(self, event: Event) -> None:
        if not isinstance(event, TaskChanged):
            return
        self._events += 1
        found = self.sent.get(event.task.id)
        if found is None:
            return
        match event.task.delivery:
            case DeliveryState.TYPING:
                found.typed = self._events
            case DeliveryState.QUEUED:
                found.submitted = 0  # the agent gave it back unread
            case DeliveryState.SUBMITTED if not found.submitted:
                found.submitted = self._events
        note = f"{event.task.delivery} {event.task.reason}".strip()
        if not found.reasons or found.reasons[-1] != note:
            found.reasons.append(note)

    def _watch_writes(self) -> None:
        process = self._lab.session.console.process
        write = process.write

        def watched(data: bytes) -> None:
            console = self._lab.session.console
            if dialog_open(console) and data not in self._person.keys and not _REPLIES.fullmatch(data):
                self.written_into_dialogs.append((data, str(console.report)))
            write(data)

        process.write = watched

    # -- sending ---

    @property
    def left(self) -> int:
        return len(self._texts)

    def send(self, priority: int, phase: str) -> Task:
        text = self._texts.pop()
        self._events += 1
        accepted = self._events
        task = self._lab.send(text, priority)
        self.sent[task.id] = Sent(task.id, text, priority, accepted, phase)
        state = self._lab.session.report.state
        self._lab.note(
            f"{phase}: {task.short_id} p{priority} {len(text.encode())} B {text[:24]!r} while {state}"
        )
        return task

    async def sends(self, count: int, seconds: float, phase: str) -> None:
        """Send some messages of priorities 1 to 4 at random moments within so many seconds."""
        for wait in self._gaps(min(count, self.left), seconds):
            await asyncio.sleep(wait)
            self.send(self._random.randint(1, 4), phase)

    def _gaps(self, count: int, seconds: float) -> list[float]:
        times = sorted(self._random.uniform(0, seconds) for _ in range(count))
        return [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]

    async def urgent(self, phase: str) -> Task | None:
        """Send a message of priority 5, once the model has all that was submitted: none is stopped early."""
        if not self.left:
            return None
        await self._lab.until(self._all_logged, "all that was submitted in the log")
        return self.send(5, phase)

    def _all_logged(self) -> bool:
        prompts = self._lab.model.prompts()
        tasks = [self._lab.session.tasks.get(task_id) for task_id in self.sent]
        if any(task.delivery in (DeliveryState.TYPING, DeliveryState.SUBMITTING) for task in tasks):
            return False
        # One that waits in the agent's own queue comes back when the turn is stopped.
        queued = self._lab.session.turns.queues
        marks = [mark(task) for task in tasks if self.sent[task.id].submitted and not queued(task.id)]
        marks += [text.split()[0] for text in self._person.prompts]
        return all(any(each in prompt for prompt in prompts) for each in marks)

    # -- waiting ---

    async def quiet(self) -> None:
        session = self._lab.session
        await self._lab.until(
            lambda: (
                session.report.state is AgentState.READY
                and not len(session.outbox)
                and all(session.tasks.get(task_id).state.final for task_id in self.sent)
            ),
            "the agent at rest",
            DRAIN,
        )

    async def a_message_is_typed(self, seconds: float) -> bool:
        """Wait until a message is being typed; False when none is within so many seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(
                self._lab.session.tasks.get(task_id).delivery is DeliveryState.TYPING for task_id in self.sent
            ):
                return True
            await asyncio.sleep(0.005)
        return False

    # -- what must hold ---

    def faults(self) -> list[str]:
        """Everything that is wrong with what the model was given; empty when all is well."""
        return [
            *(f"written into a dialog: {each}" for each in self.written_into_dialogs),
            *self._wrong_messages(),
            *self._wrong_prompts(),
            *self._strangers(),
            *self._wrong_order(),
            *self._wrong_ends(),
        ]

    def _expected(self, sent: Sent) -> str:
        return normal(typed_text(self._lab.session.tasks.get(sent.task_id), self._lab.profile))

    def _wrong_messages(self) -> list[str]:
        prompts = self._lab.model.prompts()
        faults = []
        for sent in self.sent.values():
            found = [prompt for prompt in prompts if f"[A2A:{sent.task_id[:8]}:" in prompt]
            told = f"message {sent.task_id[:8]} of {sent.phase} ({sent.reasons})"
            if len(found) != 1:
                faults.append(f"{told}: {len(found)} times in the log: {[each[:80] for each in found]}")
            elif normal(found[0]) != self._expected(sent):
                faults.append(f"{told}: {difference(normal(found[0]), self._expected(sent))}")
        return faults

    def _wrong_prompts(self) -> list[str]:
        prompts = self._lab.model.prompts()
        faults = []
        for text in self._person.prompts:
            found = [prompt for prompt in prompts if text.split()[0] in prompt]
            if [normal(prompt) for prompt in found] != [normal(text)]:
                faults.append(f"the user's {text!r} is in the log as {found}")
        for text in self._person.dropped:
            found = [prompt for prompt in prompts if text.split()[0] in prompt]
            if found:
                faults.append(f"the user's cleared {text!r} is in the log as {found}")
        return faults

    def _strangers(self) -> list[str]:
        known = {self._expected(sent) for sent in self.sent.values()}
        known |= {normal(text) for text in self._person.prompts}
        prompts = self._lab.model.last_prompts()
        return [f"nobody sent {prompt[:200]!r}" for prompt in prompts if normal(prompt) not in known]

    def _wrong_order(self) -> list[str]:
        """Of messages that waited together the one of higher priority, or else the older one, goes first."""
        order = sorted(
            (each for each in self.sent.values() if each.submitted), key=lambda each: each.submitted
        )
        faults = [
            f"{first.task_id[:8]} (p{first.priority}) before {second.task_id[:8]} (p{second.priority})"
            for place, first in enumerate(order)
            for second in order[place + 1 :]
            if second.accepted < first.typed and second.rank < first.rank
        ]
        prompts = map(normal, self._lab.model.prompts())
        logged = [prompt[5:13] for prompt in prompts if prompt.startswith("[A2A:")]
        submitted = [each.task_id[:8] for each in order]
        if logged != submitted:
            faults.append(f"the log has them as {logged}, submitted were {submitted}")
        return faults

    def _wrong_ends(self) -> list[str]:
        faults = []
        for sent in self.sent.values():
            task = self._lab.session.tasks.get(sent.task_id)
            stopped = task.state is TaskState.CANCELED and task.reason.startswith("interrupted")
            if task.state is not TaskState.COMPLETED and not stopped:
                faults.append(f"{sent.task_id[:8]} ended {task.state} ({sent.reasons})")
        return faults


def mark(task: Task) -> str:
    return f"[A2A:{task.short_id}:"


def normal(text: str) -> str:
    """A prompt without what agents change of it: blanks at its end; Claude Code composes to NFC."""
    return unicodedata.normalize("NFC", _WRAPPING.sub("", text)).rstrip()


def difference(got: str, wanted: str) -> str:
    place = next(
        (index for index, pair in enumerate(zip(got, wanted, strict=False)) if pair[0] != pair[1]),
        min(len(got), len(wanted)),
    )
    around = slice(max(0, place - 30), place + 50)
    return f"{len(got)} characters for {len(wanted)}; at {place} {got[around]!r} for {wanted[around]!r}"
