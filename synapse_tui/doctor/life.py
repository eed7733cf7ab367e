"""Checks of the beginning and the end: the agent becomes ready, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path

import psutil

from synapse_tui.agents.profiles.profile import DoctorYes, Profile
from synapse_tui.model import AgentState, ExitStatus

from .advice import prompt_of
from .examination import Examination
from .recorder import Sample
from .report import Advice, Verdict, failed, ok, skipped
from .suggest import suggest_dialog, suggest_rule

SETTLED = 3.0
"""Seconds without a change after which an agent that is not ready will not become so by itself."""
MAX_TRUSTED = 5
_LAST_WORDS = 240
_TRUST_WAIT = 30.0
"""Seconds in which the question must be gone; some agents start anew after it."""
_BEGIN_STATES = (AgentState.UNKNOWN, AgentState.WAITING, AgentState.ERROR)


@dataclass(frozen=True, slots=True)
class Begin:
    """How an agent began.

    Attributes:
        ready: Whether it became ready.
        seconds: How long that took, or how long was waited.
        rule: The rule that decided its state.
        trusted: How often keys were pressed in questions about trust.
        asked: What it asks; empty when no rule sees a dialog.
        exit: How it ended; None while it runs.
        screen: Its screen.
        samples: What it showed of late.
        folder: Where it works.
    """

    ready: bool
    seconds: float
    rule: str
    trusted: int = 0
    asked: str = ""
    exit: ExitStatus | None = None
    screen: str = ""
    samples: tuple[Sample, ...] = ()
    folder: Path = Path()


async def start(examination: Examination) -> Verdict:
    """It reaches READY; first-run dialogs are named."""
    session, begun = examination.session, examination.now
    trusted = 0
    patience = max(examination.timeout, examination.profile.startup.timeout)
    while await examination.until(lambda: _halts(examination), patience):
        if (
            examination.state is AgentState.READY
            or trusted == MAX_TRUSTED
            or _trust_question(examination) is None
        ):
            break
        trusted += await _trust(examination)
    reading = session.reading()
    return judge_start(
        Begin(
            ready=examination.state is AgentState.READY,
            seconds=examination.now - begun,
            rule=session.report.rule,
            trusted=trusted,
            asked=(reading.dialog_title or reading.dialog_name) if reading.dialog else "",
            exit=session.exit,
            screen=examination.screen(),
            samples=tuple(examination.recorder.since(examination.now - 1.0))
            or (examination.recorder.take(),),
            folder=session.cwd,
        ),
        examination.profile,
    )


def _halts(examination: Examination) -> bool:
    """Whether it is ready, asks for trust, or will not go on by itself."""
    if examination.state is AgentState.READY or _trust_question(examination) is not None:
        return True
    return examination.state in _BEGIN_STATES and examination.recorder.take().quiet >= SETTLED


def _trust_question(examination: Examination) -> DoctorYes | None:
    screen = examination.screen()
    return next((known for known in examination.profile.doctor.trust if known.screen.search(screen)), None)


async def _trust(examination: Examination) -> bool:
    """Say yes to the question whether the agent may trust the scratch folder, or choose "yes" in it.

    Returns:
        Whether a key was pressed.
    """
    await examination.quiet(0.5, 3.0)  # a dialog that is still being drawn may not take keys yet
    asked = _trust_question(examination)
    if asked is None:
        return False
    await examination.press(*asked.keys)
    # Where an agent prints on, the answered question stays on the screen.
    await examination.until(
        lambda: examination.state is AgentState.READY or _trust_question(examination) != asked, _TRUST_WAIT
    )
    return True


def judge_start(begin: Begin, profile: Profile) -> Verdict:
    """Say what the beginning proves."""
    if begin.ready:
        trusted = ", after it was told that it may trust the scratch folder" if begin.trusted else ""
        return ok(f"READY after {begin.seconds:.1f} s by the rule '{begin.rule}'{trusted}")
    command = shlex.join((profile.command, *profile.args))
    by_hand = f"mkdir -p {begin.folder} && cd {begin.folder} && {command}"
    if begin.exit is not None:
        last = _end_of(begin.screen)
        how = f"status {begin.exit.code}" if begin.exit.code is not None else f"signal {begin.exit.signal}"
        return failed(
            f"it ended at its start ({how}): {last or 'without a word'}",
            Advice("", f"run it once by hand: {by_hand}", "it may need to be logged in or configured"),
        )
    if begin.asked:
        shown = "\n".join(begin.samples[-1].rows) if begin.samples else ""
        return failed(
            f"it asks something at its start: {begin.asked}",
            Advice("", f"answer it once by hand, for nobody but you may: {by_hand}", shown),
        )
    return _never_ready(begin, by_hand, profile)


def _end_of(screen: str) -> str:
    """The last words on a screen, on one line."""
    line = " ".join(screen.split())
    return line if len(line) <= _LAST_WORDS else f"…{line[-_LAST_WORDS:]}"


def _never_ready(begin: Begin, by_hand: str, profile: Profile) -> Verdict:
    shown = begin.samples[-1]
    evidence = (
        f"not READY after {begin.seconds:.1f} s: {shown.state} ({begin.rule}); title {shown.title!r}, "
        f"status {shown.status!r}, composer {'seen' if shown.composer else 'not seen'}"
    )
    if dialog := suggest_dialog(shown):
        return failed(
            evidence,
            Advice("", f"look whether it asks something: {by_hand}", "\n".join(shown.rows[-6:])),
            Advice("dialogs", dialog, "if it does, no rule knows that dialog"),
        )
    needed = any(rule.composer for rule in profile.states if rule.state is AgentState.READY)
    if profile.composer is not None and not shown.composer and needed:
        why = f"the composer was not found; the cursor stands in the row {shown.cursor!r}"
        return failed(evidence, Advice("composer.prompt", prompt_of(shown.cursor), why))
    rule = suggest_rule(AgentState.READY, begin.samples, ())
    return failed(evidence, Advice("states", rule, "what it shows at rest"))


@dataclass(frozen=True, slots=True)
class End:
    """How an agent ended.

    Attributes:
        before: Whether it had ended by itself before.
        seconds: How long its end took.
        left: Command lines of processes that live on.
    """

    before: bool
    seconds: float
    left: tuple[str, ...] = ()


async def leave(examination: Examination) -> Verdict:
    """It ends with its terminal, and no process of it lives on."""
    session, begun = examination.session, asyncio.get_running_loop().time()
    before, mark = session.exit is not None, session.environ.get("SYNAPSE_TOKEN", "")
    await examination.close()
    await examination.host.close(session.agent_id)
    seconds = asyncio.get_running_loop().time() - begun
    left = await asyncio.to_thread(processes_with, "SYNAPSE_TOKEN", mark) if mark else ()
    return judge_end(End(before, seconds, left), examination.profile)


def judge_end(end: End, profile: Profile) -> Verdict:
    """Say what the end proves."""
    if end.left:
        processes = "process lives" if len(end.left) == 1 else "processes live"
        advice = Advice("quirks.daemon", "true", "it leaves a background process")
        return failed(
            f"{len(end.left)} {processes} on: {'; '.join(end.left)}",
            *(() if profile.quirks.daemon else (advice,)),
            Advice("args", "an option that keeps it from starting one", "it would outlive its pane"),
        )
    if end.before:
        return skipped("it had ended before, by itself")
    return ok(f"gone {end.seconds:.1f} s after its terminal was closed, with all that it had started")


def processes_with(variable: str, value: str) -> tuple[str, ...]:
    """Command lines of the living processes of this user in whose environment a variable has a value."""
    found: list[str] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(variable) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return tuple(found)
