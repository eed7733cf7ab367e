"""One agent under examination: messages to it, keys to it, and waiting for what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from synapse_tui.agents.delivery.intake import typed_text
from synapse_tui.agents.session import AgentSession
from synapse_tui.host import Host
from synapse_tui.model import AgentState, DeliveryState, MessageRequest, Sender, Task, TaskState

from .prompts import Prompts, Question
from .recorder import Recorder, Sample
from .transcripts import Transcripts

DOCTOR = Sender("synapse-doctor", "system", verified=True)
PATIENCE = 5.0
STUCK = 12.0
"""Seconds that a message may wait for one reason: nothing in the scratch folder would change it."""
ENTERS = (b"\r", b"\n", b"\x1b\r")
"""Keys that submit in some agent: Enter, Ctrl+J, Alt+Enter."""
ENTER_PATIENCE = 2.0
REST = 10.0
"""Seconds in which an agent must come to rest after it was interrupted."""
_POLL = 0.1
_WAITING = (DeliveryState.QUEUED, DeliveryState.HELD)


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one message.

    Attributes:
        question: The message.
        typed: What was typed for it.
        task: Its task at the end.
        ended: Whether its turn came to an end.
        answer: What the agent answered.
        own_words: The same as the agent has recorded it; empty where that is not known.
        proof: What in the answer proves that it arrived whole; empty when nothing does.
        recorded: What of it the agent's own record of the conversation holds: `whole`, `part`, or nothing.
        states: The agent's states meanwhile, in order.
        draft: The longest draft that was seen in the composer while it was being typed.
        entered: The key that submitted what the profile's did not; empty for none.
        last: The agent at the end.
        seconds: How long it took.
    """

    question: Question
    typed: str
    task: Task
    ended: bool
    answer: str = ""
    own_words: str = ""
    proof: str = ""
    recorded: str = ""
    states: tuple[AgentState, ...] = ()
    draft: str = ""
    entered: bytes = b""
    last: Sample = field(default_factory=lambda: Sample(0.0, AgentState.UNKNOWN))
    seconds: float = 0.0


class Examination:
    """One agent in a host without a screen.

    Args:
        host: The host, with the agent open.
        session: The agent.
        prompts: Makes the messages.
        recorder: Notes what the agent shows.
        transcripts: The agent's own records.
        outside: A folder that is not the agent's.
        timeout: Seconds that a turn may take.
    """

    def __init__(
        self,
        host: Host,
        session: AgentSession,
        *,
        prompts: Prompts,
        recorder: Recorder,
        transcripts: Transcripts,
        outside: Path,
        timeout: float,
    ) -> None:
        self.host = host
        self.session = session
        self.profile = session.profile
        self.prompts = prompts
        self.recorder = recorder
        self.transcripts = transcripts
        self.outside = outside
        self.timeout = timeout
        self.slow: Task | None = None
        """A long turn that one check has left to the next."""
        self._woken = asyncio.Event()
        self._wakers = [host.events.subscribe(lambda _event: self._woken.set())]

    # -- looking ---

    @property
    def now(self) -> float:
        """Seconds on the session's clock."""
        return self.session.console.now()

    @property
    def state(self) -> AgentState:
        """The agent's state."""
        return self.session.report.state

    @property
    def alive(self) -> bool:
        """Whether the agent's process runs."""
        return self.session.exit is None

    def screen(self) -> str:
        """The rows of the agent's screen up to the last one with text."""
        return "\n".join(row.rstrip() for row in self.session.terminal.display).rstrip()

    async def until(self, condition: Callable[[], object], seconds: float) -> bool:
        """Wait for a condition; False when the time is over first or the agent ends."""
        deadline = self.now + seconds
        while not condition():
            left = deadline - self.now
            if left <= 0 or not self.alive:
                return False
            self._woken.clear()
            try:
                async with asyncio.timeout(min(left, _POLL)):
                    await self._woken.wait()
            except TimeoutError:
                pass
        return True

    async def holds(self, condition: Callable[[], object], seconds: float) -> bool:
        """Whether a condition holds for so long without a break."""
        return not await self.until(lambda: not condition(), seconds) and self.alive

    async def quiet(self, seconds: float, patience: float) -> bool:
        """Wait until the screen has not changed for so long; False when the patience is over first."""
        return await self.until(lambda: self.recorder.take().quiet >= seconds, patience)

    @contextmanager
    def states(self) -> Iterator[list[AgentState]]:
        """Collect the states that are reported within the block, beginning with the present one."""
        heard = [self.state]
        start = len(self.recorder.reports)
        try:
            yield heard
        finally:
            heard.extend(state for state, _ in self.recorder.reports[start:])

    # -- acting ---

    async def press(self, *keys: bytes) -> None:
        """Press keys as a person would who has read what the agent asks."""
        guard = self.session.run.keyboard.guard
        await self.until(lambda: not guard.answers_in(self.now), PATIENCE)
        for key in keys:
            self.session.user_input(key)

    def send(self, text: str, *, as_prompt: bool = False) -> Task:
        """Send a message; as a first prompt it is typed without the prefix that tells its sender."""
        if not as_prompt:
            return self.session.accept(MessageRequest(text, DOCTOR))
        task = self.session.tasks.create(MessageRequest(text, DOCTOR))
        self.session.outbox.put(task, prompt=True)
        self.session.console.wake()
        return task

    async def ask(self, question: Question, *, as_prompt: bool = False) -> Seen:
        """Send a message and wait for the end of its turn."""
        return await self.follow(self.send(question.text, as_prompt=as_prompt), question, as_prompt=as_prompt)

    async def follow(self, task: Task, question: Question, *, as_prompt: bool = False) -> Seen:
        """Wait for the end of the turn of a message that was sent."""
        begun, draft = self.now, ""
        stuck = _Stuck(self)

        def over() -> bool:
            nonlocal draft
            reading = self.session.reading()
            if len(reading.draft) > len(draft) and self.task(task).delivery not in _WAITING:
                draft = reading.draft
            return self.task(task).state.final or stuck(self.task(task))

        with self.states() as states:
            await self.until(over, self.timeout)
        done = self.task(task)
        if done.state is TaskState.COMPLETED:
            await self.until(lambda: self.session.reading().empty, 2.0)
        typed = typed_text(task, self.profile, prompt=as_prompt)
        answer = "\n".join(artifact.text for artifact in done.artifacts)
        proof = question.proof(answer, typed)
        return Seen(
            question,
            typed,
            done,
            ended=done.state.final,
            answer=answer,
            own_words=await self.transcripts.answer_to(typed),
            proof=proof,
            recorded="" if proof else await self.transcripts.look_for(typed, question.codes),
            states=tuple(states),
            draft=draft,
            last=self.recorder.take(),
            seconds=self.now - begun,
        )

    async def other_enter(self) -> bytes:
        """Find the key that submits what was left in the composer; empty when none does."""
        if not self.session.reading().draft:
            return b""
        for key in ENTERS:
            self.session.console.write(key)
            if await self.until(lambda: self.session.reading().empty, ENTER_PATIENCE):
                return key
        return b""

    def task(self, task: Task) -> Task:
        """A task as it is now."""
        return self.session.tasks.get(task.id)

    async def rest(self) -> bool:
        """Bring the agent to rest: what waits is taken back, what runs is stopped, dialogs are denied.

        Returns:
            Whether it is ready.
        """
        self.slow = None
        for task in list(self.session.tasks):
            if not task.state.final:
                await self.session.cancel(task.id)
        if self.alive and self.state is not AgentState.READY:
            await self.session.interrupt()
        return await self.until(lambda: self.state is AgentState.READY, REST)

    async def renew(self) -> bool:
        """Start the agent anew, when it cannot be brought to rest.

        Returns:
            Whether it is ready.
        """
        await self.host.restart(self.session.agent_id)
        return await self.until(lambda: self.state is AgentState.READY, self.timeout)

    async def close(self) -> None:
        """Note nothing more."""
        for waker in self._wakers:
            waker()
        await self.recorder.close()


class _Stuck:
    """Tells whether a message waits for something that will not come."""

    def __init__(self, examination: Examination) -> None:
        self._examination = examination
        self._reason: tuple[str, ...] = ()
        self._since = examination.now

    def __call__(self, task: Task) -> bool:
        waits = task.delivery in _WAITING or task.state is TaskState.INPUT_REQUIRED
        reason = (task.delivery, task.state, task.reason)
        if reason != self._reason or not waits:
            self._reason, self._since = reason, self._examination.now
        parked = task.id in self._examination.session.outbox and self._examination.session.outbox.is_parked(
            task.id
        )
        return parked or self._examination.now - self._since >= STUCK
