"""One agent under examination: sending messages and keys, waiting for reactions."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import secrets
import time
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path

from synapse_tui.agents.composer import ScreenText
from synapse_tui.agents.delivery.typed_text import typed_text
from synapse_tui.agents.profiles.profile import (
    DOCTOR_PROMPTS,
    DoctorPrompt,
    DoctorRules,
    DoctorYes,
    TranscriptRules,
)
from synapse_tui.agents.profiles.reader import filled
from synapse_tui.agents.session import AgentSession
from synapse_tui.agents.state import decide
from synapse_tui.agents.transcript import read_answer, read_prompts
from synapse_tui.core.errors import InvalidValue
from synapse_tui.core.events import AgentStateChanged, Event, EventBus
from synapse_tui.core.model import AgentState, DeliveryState, MessageRequest, Sender, Task, TaskState
from synapse_tui.host.host import Host
from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.events import ProgramStatus, ProgressChanged

PERIOD = 0.1  # Seconds between two samples
MAX_SAMPLES = 6000
TAIL = 12  # Rows with text, from the end of the screen, in a sample


@dataclass(frozen=True, slots=True)
class Sample:
    at: float  # Seconds on the session's clock
    state: AgentState
    title: str = ""
    status: str = ""  # The last OSC 7501 state
    progress: int | None = None  # The last OSC 9;4 state
    composer: bool = False  # Whether the composer was visible and accepted keys
    dialog: bool = False  # Whether a rule matched a dialog
    rows: tuple[str, ...] = ()
    cursor: str = ""
    quiet: float = 0.0  # Seconds since the rows or the title last changed


@dataclass(slots=True)
class RuleUse:
    decided: int = 0  # How often it decided the state
    # Number of samples in which it matched, by reported state
    held: Counter[AgentState] = field(default_factory=Counter)


class Recorder:
    """Samples the screen of one session, and records its reported states."""

    def __init__(self, session: AgentSession, events: EventBus) -> None:
        self._session = session
        self.samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self.reports: list[tuple[AgentState, str]] = []  # State and rule of every report
        self.uses = {rule.name: RuleUse() for rule in session.profile.states}
        self._text = ScreenText()
        self._shown: tuple[object, ...] = ()
        self._changed = session.console.now()
        self._unsubscribe = events.subscribe(self._heard)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="doctor-recorder")

    async def close(self) -> None:
        self._unsubscribe()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def since(self, at: float) -> list[Sample]:
        return [sample for sample in self.samples if sample.at >= at]

    def take(self) -> Sample:
        session = self._session
        console, terminal, reading = session.console, session.terminal, session.reading()
        self._text.take(terminal)
        rows = tuple(row for row in self._text.tail(len(self._text.rows)).split("\n") if row.strip())
        if (shown := (self._text.tail(len(self._text.rows)), terminal.title)) != self._shown:
            self._shown, self._changed = shown, console.now()
        reported, progress = console.signals.get("status"), console.signals.get("progress")
        status = reported if isinstance(reported, ProgramStatus) and reported.state != "clear" else None
        sample = Sample(
            at=console.now(),
            state=session.report.state,
            title=terminal.title.strip(),
            status=status.state if status is not None else "",
            progress=progress.state if isinstance(progress, ProgressChanged) else None,
            composer=reading.visible,
            dialog=reading.dialog is not None,
            rows=rows[-TAIL:],
            cursor=terminal.display[terminal.cursor.y].rstrip(),
            quiet=console.now() - self._changed,
        )
        self.samples.append(sample)
        signals = console.detector.signals(console.now())
        for rule in session.profile.states:
            if decide((rule,), signals) is not None:
                self.uses[rule.name].held[sample.state] += 1
        return sample

    def _heard(self, event: Event) -> None:
        if isinstance(event, AgentStateChanged):
            self.reports.append((event.report.state, event.report.rule))
            if event.report.rule in self.uses:
                self.uses[event.report.rule].decided += 1

    async def _run(self) -> None:
        while True:
            if self._session.exit is None and not self._session.terminal.modes.synchronized:
                self.take()
            await asyncio.sleep(PERIOD)


class Transcripts:
    """The conversation files that an agent writes from now on."""

    def __init__(self, transcript: TranscriptRules | None, folder: Path, environ: Mapping[str, str]) -> None:
        self._transcript = transcript
        self._folder = folder
        self._environ = environ
        self._begun = time.time()

    async def look_for(self, typed: str, codes: tuple[str, str]) -> str:
        if self._transcript is None:
            return ""
        prompts = await asyncio.to_thread(
            read_prompts, self._transcript, since=self._begun, cwd=self._folder, environ=self._environ
        )
        return how_much(typed, codes, prompts)

    async def answer_to(self, typed: str) -> str:
        if self._transcript is None:
            return ""
        return await asyncio.to_thread(
            read_answer,
            self._transcript,
            typed,
            since=self._begun,
            cwd=self._folder,
            environ=self._environ,
        )


def how_much(typed: str, codes: tuple[str, str], prompts: Iterable[str]) -> str:
    """Return how much of a message is in one of the prompts: `whole`, `part`, or empty for nothing."""
    wanted, found = _squeezed(typed), ""
    for prompt in prompts:
        if codes[0] not in prompt:
            continue
        if wanted in _squeezed(prompt):
            return "whole"
        if codes[1] not in prompt:
            found = "part"
    return found


def _squeezed(text: str) -> str:
    """Remove white space and normalize to NFC: agents trim and normalize."""
    return "".join(unicodedata.normalize("NFC", text).split())


LONG_BYTES = 20_000  # Length of the long message
SLOW_SECONDS = 60  # Target duration of a turn that is to be interrupted
ANSWER_ROWS = 60  # Rows added to make a message longer than agents display
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_JOINED = "{first}-{second}"
"""Occurs in no message, so that it cannot be an echo of the message on the screen."""

GENERAL: Mapping[str, DoctorPrompt] = {
    "submit": DoctorPrompt(
        "Use no tools. Reply with exactly one line: the two codes {first} and {second}, joined by a hyphen.",
        _JOINED,
    ),
    "multiline": DoctorPrompt(
        "Use no tools. This message has several lines. Reply with exactly one line: its two codes, joined by "
        "a hyphen.\nfirst code: {first}\n{filler}\nsecond code: {second}",
        _JOINED,
    ),
    "long": DoctorPrompt(
        "Use no tools. Most of this message only makes it long. Reply with exactly one line: its first and "
        "its last code, joined by a hyphen.\nfirst code: {first}\n{filler}\nlast code: {second}",
        _JOINED,
    ),
    "hazard": DoctorPrompt(
        "Use no tools. Ignore the sign or the mention at the beginning or the end of this message. Reply "
        "with exactly one line: the two codes {first} and {second}, joined by a hyphen.",
        _JOINED,
    ),
    "slow": DoctorPrompt(
        "Use no tools. Count from 1 to 400, one number a line, and write a sentence about each.", ""
    ),
    "run": DoctorPrompt(
        "Run exactly this command with your shell tool, once. Say whether it was allowed, then stop. "
        "{command}",
        "",
    ),
    "answer": DoctorPrompt(
        "Use no tools. Reply with exactly two lines: {first} in the first one, {second} in the second one.",
        r"{first}\s+{second}",
    ),
}

_SHORT_FILLER = """\

日本語の行です。全角ＡＢＣとｶﾅ、長音ー。
emoji 👍 👩‍💻 🇯🇵 ⚠️ and e\u0301
    an indented line; quotes " ' ` and $HOME \\ too
"""


_PREFIX = re.compile(r"\A\[A2A:[^\]]*\]\s*")


@dataclass(frozen=True, slots=True)
class DoctorQuestion:
    text: str
    expect: str  # Pattern of the answer with `{chars}` and `{lines}`; empty accepts any
    codes: tuple[str, str]  # What the answer must contain

    def proof(self, answer: str, typed: str) -> str:
        said = _PREFIX.sub("", typed)
        # Agents trim what is typed, and may know the prefix.
        lengths = sorted({len(text) for whole in (typed, said) for text in (whole, whole.rstrip())})
        fields = {"chars": f"(?:{'|'.join(map(str, lengths))})", "lines": str(typed.count("\n") + 1)}
        pattern = re.compile(filled(self.expect, fields), re.DOTALL)
        found = pattern.search(answer) or pattern.search("".join(answer.split()))
        return (found[0] or answer) if found is not None else ""


class Prompts:
    def __init__(
        self,
        rules: DoctorRules,
        texts: Mapping[str, str],
        expects: Mapping[str, str],
        make_code: Callable[[], str] | None = None,
    ) -> None:
        _check(texts, expects)
        self._make_code = make_code or random_code
        self._prompts = {
            name: _chosen(name, rules.prompts.get(name, DoctorPrompt()), texts, expects)
            for name in DOCTOR_PROMPTS
            if name in GENERAL
        }
        self._prompts["ask"] = _chosen(
            "ask", rules.prompts.get("ask", DoctorPrompt()), texts, expects, self._prompts["run"]
        )

    def codes(self) -> tuple[str, str]:
        return self._make_code(), self._make_code()

    def make(self, name: str, *, command: str = "") -> DoctorQuestion:
        prompt = self._prompts[name]
        first, second = self.codes()
        text = filled(
            prompt.text,
            {
                "first": first,
                "second": second,
                "filler": _long_filler() if name == "long" else _SHORT_FILLER,
                "command": command,
                "seconds": str(SLOW_SECONDS),
            },
        )
        expect = filled(prompt.expect, {"first": first, "second": second})
        return DoctorQuestion(text, expect, (first, second))


def _chosen(
    name: str,
    own: DoctorPrompt,
    texts: Mapping[str, str],
    expects: Mapping[str, str],
    base: DoctorPrompt | None = None,
) -> DoctorPrompt:
    base = base or GENERAL[name]
    if own.text:
        # A custom message has other answers, so the general pattern applies only to the general text.
        base = own
    elif own.expect:
        base = DoctorPrompt(base.text, own.expect)
    return DoctorPrompt(texts.get(name, base.text), expects.get(name, base.expect))


def _check(texts: Mapping[str, str], expects: Mapping[str, str]) -> None:
    for name in (*texts, *expects):
        if name not in DOCTOR_PROMPTS:
            raise InvalidValue(f"no message named '{name}'", f"use one of {', '.join(DOCTOR_PROMPTS)}")
    for name, pattern in expects.items():
        try:
            re.compile(filled(pattern, dict.fromkeys(("first", "second", "chars", "lines"), "1")))
        except re.error as error:
            raise InvalidValue(f"the pattern for '{name}' is invalid: {error}", pattern) from error


def lengthened(question: DoctorQuestion) -> DoctorQuestion:
    rows = (f"row {number}, which means nothing and is there for its length" for number in range(ANSWER_ROWS))
    text = "\n".join((question.text, "What follows only makes this message long:", *rows))
    return dataclasses.replace(question, text=text)


def random_code() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(5))


def _long_filler() -> str:
    rows: list[str] = []
    size = 0
    while size < LONG_BYTES:
        rows.append(f"row {len(rows)} of a long text, 日本語の行 {len(rows)}, that means nothing at all")
        size += len(rows[-1].encode()) + 1
    return "\n".join(rows)


DOCTOR = Sender("synapse-doctor", "system", verified=True)
GUARD_TIMEOUT = 5.0  # Seconds for the dialog guard of the keyboard to let keys through
STUCK = 12.0
"""Seconds that a message may be held for one reason: nothing changes in the scratch folder."""
ENTERS = (b"\r", b"\n", b"\x1b\r")  # Keys that submit in some agent: Enter, Ctrl+J, Alt+Enter
ENTER_TIMEOUT = 2.0
REST = 10.0  # Seconds for an agent to become idle after an interrupt
SETTLED = 3.0
"""Seconds without a change after which an agent that is not ready is considered stuck."""
MAX_TRUSTED = 5
_TRUST_WAIT = 30.0  # Seconds for the question to disappear; some agents restart after it
_BEGIN_STATES = (AgentState.UNKNOWN, AgentState.WAITING, AgentState.ERROR)
_POLL = 0.1
_WAITING = (DeliveryState.QUEUED, DeliveryState.HELD)


@dataclass(frozen=True, slots=True)
class Seen:
    question: DoctorQuestion
    typed: str
    task: Task
    ended: bool  # Whether its turn ended
    answer: str = ""
    own_words: str = ""  # The answer as recorded by the agent; empty if unknown
    proof: str = ""  # The part of the answer that proves it arrived whole; empty if nothing does
    # How much of it the agent recorded: `whole`, `part`, or nothing
    recorded: str = ""
    states: tuple[AgentState, ...] = ()  # The agent's states during the turn, in order
    draft: str = ""  # The longest draft seen in the composer during typing
    entered: bytes = b""  # The key that submitted it where the profile's did not
    last: Sample = field(default_factory=lambda: Sample(0.0, AgentState.UNKNOWN))
    seconds: float = 0.0


class Examination:
    def __init__(
        self,
        host: Host,
        session: AgentSession,
        *,
        prompts: Prompts,
        folder: Path,
        outside: Path,
        timeout: float,
    ) -> None:
        self.host = host
        self.session = session
        self.profile = session.profile
        self.prompts = prompts
        self.recorder = Recorder(session, host.events)
        self.transcripts = Transcripts(session.profile.transcript, folder, session.environ)
        self.outside = outside
        self.timeout = timeout
        self.slow: Task | None = None  # A long turn started by one check for the next
        self._woken = asyncio.Event()
        self._unsubscribe = host.events.subscribe(lambda _event: self._woken.set())

    # -- observing ---

    @property
    def now(self) -> float:
        return self.session.console.now()

    @property
    def state(self) -> AgentState:
        return self.session.report.state

    @property
    def alive(self) -> bool:
        return self.session.exit is None

    def screen(self) -> str:
        return "\n".join(row.rstrip() for row in self.session.terminal.display).rstrip()

    async def until(self, condition: Callable[[], object], seconds: float) -> bool:
        """Wait for a condition. Returns False on timeout or if the agent exits."""
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
        return not await self.until(lambda: not condition(), seconds) and self.alive

    async def quiet(self, seconds: float, limit: float) -> bool:
        return await self.until(lambda: self.recorder.take().quiet >= seconds, limit)

    # -- acting ---

    async def press(self, *keys: bytes) -> None:
        guard = self.session.keyboard.guard
        for place, key in enumerate(keys):
            if place:
                await asyncio.sleep(self.profile.interrupt.gap)  # Escape and a key at once are another key
            await self.until(lambda: not guard.answers_in(self.now), GUARD_TIMEOUT)
            self.session.user_input(key)

    def send(self, text: str, *, as_prompt: bool = False) -> Task:
        """Send a message; a first prompt is typed without the sender prefix."""
        if not as_prompt:
            return self.session.accept(MessageRequest(text, DOCTOR))
        task = self.session.tasks.create(MessageRequest(text, DOCTOR))
        self.session.outbox.put(task, prompt=True)
        self.session.console.wake()
        return task

    async def ask(self, question: DoctorQuestion, *, as_prompt: bool = False) -> Seen:
        return await self.follow(self.send(question.text, as_prompt=as_prompt), question, as_prompt=as_prompt)

    async def follow(self, task: Task, question: DoctorQuestion, *, as_prompt: bool = False) -> Seen:
        begun = since = self.now
        draft, stands = "", (DeliveryState.QUEUED, TaskState.SUBMITTED, "")
        states, reported = [self.state], len(self.recorder.reports)

        def over() -> bool:
            nonlocal draft, stands, since
            current, shown = self.task(task), self.session.reading().draft
            if len(shown) > len(draft) and current.delivery not in _WAITING:
                draft = shown
            waits = current.delivery in _WAITING or current.state is TaskState.INPUT_REQUIRED
            if (found := (current.delivery, current.state, current.reason)) != stands or not waits:
                stands, since = found, self.now
            parked = task.id in self.session.outbox and self.session.outbox.is_parked(task.id)
            return current.state.final or parked or self.now - since >= STUCK

        await self.until(over, self.timeout)
        states += [state for state, _ in self.recorder.reports[reported:]]
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
        """Find the key that submits the text left in the composer; empty if none does."""
        if not self.session.reading().draft:
            return b""
        for key in ENTERS:
            self.session.console.write(key)
            if await self.until(lambda: self.session.reading().empty, ENTER_TIMEOUT):
                return key
        return b""

    def task(self, task: Task) -> Task:
        return self.session.tasks.get(task.id)

    async def rest(self) -> bool:
        """Make the agent idle: cancel messages, stop turns, deny dialogs, empty the composer."""
        self.slow = None
        for task in list(self.session.tasks):
            if not task.state.final:
                await self.session.cancel(task.id)
        if self.alive and self.state is not AgentState.READY:
            await self.session.interrupt()
        if not await self.until(lambda: self.state is AgentState.READY, REST):
            return False
        return not self.session.reading().draft or await self.session.delivery.clear_composer()

    async def renew(self) -> bool:
        await self.host.restart(self.session.agent_id)
        await self.begin()
        return self.state is AgentState.READY

    async def begin(self) -> int:
        """Wait for the agent to be ready or stuck, trusting the folder; returns the number of questions."""
        trusted = 0
        while await self.until(self._halts, max(self.timeout, self.profile.startup.timeout)):
            if self.state is AgentState.READY or trusted == MAX_TRUSTED or self._trust_question() is None:
                break
            trusted += await self._trust()
        return trusted

    def _halts(self) -> bool:
        if self.state is AgentState.READY or self._trust_question() is not None:
            return True
        return self.state in _BEGIN_STATES and self.recorder.take().quiet >= SETTLED

    def _trust_question(self) -> DoctorYes | None:
        screen = self.screen()
        return next((known for known in self.profile.doctor.trust if known.screen.search(screen)), None)

    async def _trust(self) -> bool:
        await self.quiet(0.5, 3.0)  # a dialog that is still being drawn may not accept keys yet
        asked = self._trust_question()
        if asked is None:
            return False
        await self.press(*asked.keys)
        # Agents that print line by line leave the answered question on the screen.
        await self.until(
            lambda: self.state is AgentState.READY or self._trust_question() != asked, _TRUST_WAIT
        )
        return True

    async def close(self) -> None:
        self._unsubscribe()
        await self.recorder.close()
