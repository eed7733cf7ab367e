"""Checks of a long turn: it is seen working, and the interrupt stops it."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.agents.profiles.profile import Profile, key_names
from synapse_tui.model import AgentState

from .advice import advice_for
from .examination import Examination, Seen
from .recorder import Sample
from .report import Advice, Verdict, failed, not_shown, ok, skipped
from .suggest import suggest_rule

STEADY = 1.5
"""Seconds that an agent must be seen working without a break."""
STOPPED = 1.0
"""Seconds that nothing may be written after an interrupt."""
ENDS = 3.0
"""Seconds in which the end of a turn is told after READY."""
TRY = 3.0
"""Seconds in which another key must have stopped the turn."""
CANDIDATES: tuple[tuple[bytes, ...], ...] = ((b"\x1b",), (b"\x1b", b"\x1b"), (b"\x03",))
"""Keys that interrupt some agent, the harmless first."""


@dataclass(frozen=True, slots=True)
class Work:
    """What was seen of a long turn.

    Attributes:
        seen: What became of the message up to then.
        working: Whether PROCESSING was reported.
        steady: Whether it lasted.
        ended: Whether the turn was over before.
        shown: What the agent showed after the message was submitted.
        idle: What it showed before.
    """

    seen: Seen
    working: bool
    steady: bool
    ended: bool
    shown: tuple[Sample, ...] = ()
    idle: tuple[Sample, ...] = ()


async def working(examination: Examination) -> Verdict:
    """PROCESSING is reported while the agent works."""
    work = await _begin(examination)
    verdict = judge_working(work, examination.profile)
    examination.slow = None if work.ended else work.seen.task
    return verdict


async def _begin(examination: Examination) -> Work:
    """Start a long turn and look at it for a while."""
    idle = tuple(examination.recorder.since(examination.now - 1.0))
    question = examination.prompts.make("slow")
    task = examination.send(question.text)
    went = await examination.until(
        lambda: examination.task(task).delivery.value in ("submitted", "done", "failed"), 30.0
    )
    begun = examination.now
    if went:
        await examination.until(
            lambda: examination.state is AgentState.PROCESSING or examination.task(task).state.final, 15.0
        )
    worked = examination.state is AgentState.PROCESSING
    steady = worked and await examination.holds(lambda: examination.state is AgentState.PROCESSING, STEADY)
    shown = tuple(examination.recorder.since(begun))[:40]
    if worked and not steady:
        # The end of a turn is told a moment after READY.
        await examination.until(lambda: examination.task(task).state.final, ENDS)
    task = examination.task(task)
    seen = Seen(question, question.text, task, ended=task.state.final, last=examination.recorder.take())
    return Work(seen, worked, steady, task.state.final, shown, idle)


def judge_working(work: Work, profile: Profile) -> Verdict:
    """Say what the long turn proves."""
    task = work.seen.task
    if work.steady:
        return ok(f"PROCESSING for {STEADY:g} s without a break")
    if task.delivery.value in ("queued", "held", "typing", "submitting"):
        return failed(f"not submitted: {task.reason or task.delivery}", *advice_for(work.seen, profile))
    if work.ended and task.state.value == "failed":
        return failed(f"the turn failed: {task.reason}")
    if work.working:
        if work.ended:
            return not_shown("PROCESSING, but the turn was over too soon", _longer())
        return failed(
            f"PROCESSING, but not without a break: {work.seen.last.state} while the turn ran", _rule(work)
        )
    if work.ended and not work.seen.task.artifacts:
        return failed("no PROCESSING was seen, and the turn ended without an answer", _rule(work))
    return failed("no PROCESSING was seen while the turn ran", _rule(work))


def _rule(work: Work) -> Advice:
    shown = work.shown or (work.seen.last,)
    return Advice(
        "states", suggest_rule(AgentState.PROCESSING, shown, work.idle), "what it shows while it works"
    )


def _longer() -> Advice:
    return Advice("", "ask for something that takes longer: --prompt slow='...'")


# -- the interrupt ---


@dataclass(frozen=True, slots=True)
class Stop:
    """What came of an interrupt.

    Attributes:
        stopped: Whether the turn was seen to stop.
        alive: Whether the agent lived on.
        seconds: How long it took.
        reason: Why it did not stop, as the session says.
        writes: Whether the agent went on writing although it was told to have stopped.
        rested: Whether the screen rested although it was told not to have stopped.
        draft: What was left in the composer.
        other: Keys that stopped it in place of the profile's; empty for none.
        last: The agent at the end.
    """

    stopped: bool
    alive: bool
    seconds: float
    reason: str = ""
    writes: bool = False
    rested: bool = False
    draft: str = ""
    other: tuple[bytes, ...] = ()
    last: Sample | None = None


async def interrupt(examination: Examination) -> Verdict:
    """The profile's interrupt stops a turn, and the agent lives on."""
    task = examination.slow
    if task is None:
        work = await _begin(examination)
        if not work.working or work.ended:
            return skipped("there was no turn to interrupt: see 'working'")
        task = work.seen.task
    examination.slow = None
    if examination.state is not AgentState.PROCESSING:
        return not_shown("it was not seen working any more when it was to be interrupted", _longer())
    return judge_stop(await _stop(examination), examination.profile)


async def _stop(examination: Examination) -> Stop:
    outcome = await examination.session.interrupt()
    if not outcome.alive:
        return Stop(True, False, outcome.seconds, outcome.reason)
    if not outcome.stopped:
        rested = await examination.quiet(STOPPED * 2, STOPPED * 3)
        other = () if rested else await _try_others(examination)
        last = examination.recorder.take()
        return Stop(False, examination.alive, outcome.seconds, outcome.reason, False, rested, "", other, last)
    still = await examination.quiet(STOPPED, STOPPED * 4)
    await examination.until(lambda: examination.session.reading().empty, STOPPED * 2)
    reading = examination.session.reading()
    return Stop(
        True, True, outcome.seconds, writes=not still, draft=reading.draft, last=examination.recorder.take()
    )


async def _try_others(examination: Examination) -> tuple[bytes, ...]:
    """Find other keys that stop the turn."""
    own = examination.profile.interrupt.keys
    for keys in CANDIDATES:
        if keys == own:
            continue
        if examination.state is not AgentState.PROCESSING:
            return ()
        for key in keys:
            examination.session.console.write(key)
            await examination.until(lambda: False, max(examination.profile.interrupt.gap, 0.05))
        if await examination.until(lambda: examination.state is AgentState.READY, TRY):
            return keys
    return ()


def judge_stop(stop: Stop, profile: Profile) -> Verdict:
    """Say what came of the interrupt."""
    keys = key_names(profile.interrupt.keys)
    if not stop.alive:
        return failed(
            f"the interrupt {keys} ended the agent", Advice("interrupt.keys", "[escape]", f"{keys} ends it")
        )
    if not stop.stopped:
        return _judge_unstopped(stop, keys)
    if stop.writes:
        return failed(
            "READY, and the agent went on writing",
            Advice("interrupt.quiet", "1", "it is told to have stopped while it still writes"),
            Advice("states", "stricter rules for 'ready'", "one of them holds while a turn runs"),
        )
    if stop.draft:
        return failed(
            f"it stopped, and {stop.draft[:60]!r} was left in the composer",
            Advice(
                "clear", "[ctrl+e, ctrl+u, backspace]", "the composer was not emptied by the profile's keys"
            ),
        )
    return ok(f"stopped after {stop.seconds:.2f} s, the agent lives and its composer is empty")


def _judge_unstopped(stop: Stop, keys: str) -> Verdict:
    if stop.other:
        return failed(
            f"{keys} did not stop the turn, {key_names(stop.other)} did",
            Advice("interrupt.keys", key_names(stop.other), f"it stopped the turn; {keys} did not"),
        )
    if stop.rested and stop.last is not None:
        return failed(
            f"the screen rests after {keys}, and no rule tells that the turn has stopped",
            Advice(
                "states", suggest_rule(AgentState.READY, (stop.last,), ()), "what it shows after an interrupt"
            ),
        )
    tried = ", ".join(key_names(candidate) for candidate in CANDIDATES)
    hint = next((row.strip() for row in stop.last.rows if "interrupt" in row), "") if stop.last else ""
    return failed(
        f"{stop.reason}: neither {keys} nor {tried} did it",
        Advice("interrupt.keys", "the key that its screen names", hint or "its screen names none"),
    )
