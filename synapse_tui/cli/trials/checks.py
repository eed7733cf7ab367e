"""Checks of start, permission dialogs, work, interrupts, state rules, replies and exit."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from synapse_tui.agents.profiles.profile import Profile, key_names
from synapse_tui.cli.trials.examination import Examination, RuleUse, Sample, Seen
from synapse_tui.cli.trials.report import (
    Advice,
    Verdict,
    failed,
    not_shown,
    ok,
    skipped,
    suggest_chosen,
    suggest_dialog,
    suggest_rule,
)
from synapse_tui.cli.trials.turns import advice_for, brief, prompt_of
from synapse_tui.core.model import AgentState, DeliveryState, ExitStatus, Task, TaskState
from synapse_tui.system.dataclass import dataclass

_LAST_WORDS = 240


@dataclass(frozen=True, slots=True)
class Begin:
    ready: bool
    seconds: float  # Seconds to start, or seconds waited
    rule: str  # The rule that decided its state
    trusted: int = 0  # Number of trust questions answered
    asked: str = ""  # The question of an open dialog
    exit: ExitStatus | None = None  # None while it runs
    screen: str = ""
    samples: tuple[Sample, ...] = ()
    folder: Path = Path()


async def start(examination: Examination) -> Verdict:
    """The agent becomes READY; first-run dialogs are reported."""
    session, begun = examination.session, examination.now
    trusted = await examination.begin()
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


def judge_start(begin: Begin, profile: Profile) -> Verdict:
    if begin.ready:
        trusted = ", after the scratch folder was trusted" if begin.trusted else ""
        return ok(f"READY after {begin.seconds:.1f} s by the rule '{begin.rule}'{trusted}")
    command = shlex.join((profile.command, *profile.args))
    by_hand = f"mkdir -p {begin.folder} && cd {begin.folder} && {command}"
    if begin.exit is not None:
        line = " ".join(begin.screen.split())
        last = line if len(line) <= _LAST_WORDS else f"…{line[-_LAST_WORDS:]}"
        how = f"status {begin.exit.code}" if begin.exit.code is not None else f"signal {begin.exit.signal}"
        return failed(
            f"it exited at startup ({how}): {last or 'no output'}",
            Advice("", f"run it once yourself: {by_hand}", "it may need to be logged in or configured"),
        )
    if begin.asked:
        shown = "\n".join(begin.samples[-1].rows) if begin.samples else ""
        return failed(
            f"it asks something at startup: {begin.asked}",
            Advice("", f"answer it once yourself: {by_hand}", shown),
        )
    return _never_ready(begin, by_hand, profile)


def _never_ready(begin: Begin, by_hand: str, profile: Profile) -> Verdict:
    shown = begin.samples[-1]
    evidence = (
        f"not READY after {begin.seconds:.1f} s: {shown.state} ({begin.rule}); title {shown.title!r}, "
        f"status {shown.status!r}, composer {'seen' if shown.composer else 'not seen'}"
    )
    if dialog := suggest_dialog(shown):
        return failed(
            evidence,
            Advice("", f"check whether it asks something: {by_hand}", "\n".join(shown.rows[-6:])),
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
    before: bool  # Whether it had exited before
    seconds: float
    left: tuple[str, ...] = ()  # Command lines of surviving processes


async def leave(examination: Examination) -> Verdict:
    """It exits when its terminal closes, and leaves no process behind."""
    session, begun = examination.session, asyncio.get_running_loop().time()
    before, mark = session.exit is not None, session.environ.get("SYNAPSE_TOKEN", "")
    await examination.close()
    await examination.host.close(session.agent_id)
    seconds = asyncio.get_running_loop().time() - begun
    left = await asyncio.to_thread(processes_with, "SYNAPSE_TOKEN", mark) if mark else ()
    return judge_end(End(before, seconds, left), examination.profile)


def judge_end(end: End, profile: Profile) -> Verdict:
    if end.left:
        processes = "process keeps" if len(end.left) == 1 else "processes keep"
        advice = Advice("quirks.daemon", "true", "it leaves a background process")
        return failed(
            f"{len(end.left)} {processes} running: {'; '.join(end.left)}",
            *(() if profile.quirks.daemon else (advice,)),
            Advice("args", "an option that keeps it from starting one", "it would outlive its pane"),
        )
    if end.before:
        return skipped("it had already exited")
    return ok(f"exited {end.seconds:.1f} s after its terminal was closed, with all its processes")


def processes_with(variable: str, value: str) -> tuple[str, ...]:
    found: list[str] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(variable) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return tuple(found)


HELD = 1.5  # Seconds that a message must be held while the dialog is open
DENY = 5.0  # Seconds for the deny keys to close a dialog
DENIALS = 3  # Maximum consecutive dialogs
RESTS = 8.0  # Seconds without a change after which an agent that is not ready is considered waiting
DENY_KEYS: tuple[tuple[bytes, ...], ...] = ((b"\x1b",), (b"n",), (b"\x03",))
"""Keys that deny in some agent; none of them approves in any."""


@dataclass(frozen=True, slots=True)
class DialogTrial:
    asked: bool
    what: str = ""  # The question, according to the state
    ran: bool = False
    answer: str = ""  # The agent's answer, if it did not ask
    rested: bool = False  # Whether the agent became quiet without WAITING, READY or an answer
    held: str = ""  # Why a message was held meanwhile; empty if it was not
    steady: bool = True
    closed: bool = False  # Whether the profile's deny keys closed it
    other: tuple[bytes, ...] = ()  # Other keys that closed it; empty for none
    delivered: bool = False  # Whether the message was delivered afterwards
    last: Sample | None = None  # The agent while the dialog was open


async def blocked(examination: Examination) -> Verdict:
    """A permission dialog is WAITING; a message is held, the deny keys close it, nothing was run."""
    marker = examination.outside / f"ran-{secrets.token_hex(4)}"
    question = examination.prompts.make("ask", command=f"touch {shlex.quote(str(marker))}")
    task = examination.send(question.text)

    def over() -> bool:
        if examination.state is AgentState.WAITING or examination.task(task).state.final:
            return True
        submitted = examination.task(task).delivery is DeliveryState.SUBMITTED
        return submitted and examination.recorder.take().quiet >= RESTS

    await examination.until(over, examination.timeout)
    last = examination.recorder.take()
    done = examination.task(task)
    if examination.state is not AgentState.WAITING:
        answer = "\n".join(artifact.text for artifact in done.artifacts)
        dialog = DialogTrial(
            False, ran=marker.exists(), answer=answer, rested=not done.state.final, last=last
        )
        await examination.press(*examination.profile.deny)
        return judge_dialog(dialog, examination.profile)
    second = examination.send(examination.prompts.make("submit").text)
    steady = await examination.holds(lambda: examination.state is AgentState.WAITING, HELD)
    what = examination.session.report.detail
    waiting = examination.task(second)
    held = waiting.reason if waiting.delivery is DeliveryState.HELD else ""
    closed, other = await _deny(examination)
    delivered = (closed or bool(other)) and await examination.until(
        lambda: examination.task(second).state is TaskState.COMPLETED, examination.timeout
    )
    return judge_dialog(
        DialogTrial(True, what, marker.exists(), "", False, held, steady, closed, other, delivered, last),
        examination.profile,
    )


async def _deny(examination: Examination) -> tuple[bool, tuple[bytes, ...]]:
    if await _closes(examination, examination.profile.deny):
        return True, ()
    for keys in DENY_KEYS:
        if keys != examination.profile.deny and await _closes(examination, keys):
            return False, keys
    return False, ()


async def _closes(examination: Examination, keys: tuple[bytes, ...]) -> bool:
    for _ in range(DENIALS):
        await examination.press(*keys)
        if await examination.until(lambda: examination.state is not AgentState.WAITING, DENY):
            # Another dialog may follow immediately.
            if await examination.holds(lambda: examination.state is not AgentState.WAITING, 1.0):
                return True
        elif not keys or not examination.alive:
            return False
    return False


def judge_dialog(dialog: DialogTrial, profile: Profile) -> Verdict:
    if not dialog.asked:
        return _judge_unasked(dialog, profile)
    if not profile.doctor.permissions:
        return failed(
            f"it asked ({dialog.what}), and its profile says that it never asks",
            Advice("doctor.permissions", "true", _seen(dialog)),
        )
    keys = key_names(profile.deny)
    if dialog.ran:
        return failed(
            f"the command ran although {keys} was pressed in the dialog ({dialog.what})",
            Advice("deny", "[escape]", f"{keys} approves"),
        )
    if not dialog.closed:
        value = key_names(dialog.other) if dialog.other else "the key that the dialog names"
        return failed(
            f"{keys} did not close the dialog ({dialog.what})", Advice("deny", value, _seen(dialog))
        )
    if not dialog.held or not dialog.steady:
        return failed(
            "a message was not held while the dialog was open" if dialog.steady else "WAITING did not last",
            Advice("dialogs", _dialog_rule(dialog), _seen(dialog)),
        )
    if not dialog.delivered:
        return failed(f"closed by {keys}, but the held message was not delivered afterwards")
    return ok(f"WAITING ({dialog.what}); a message was held, {keys} closed the dialog, nothing ran")


def _judge_unasked(dialog: DialogTrial, profile: Profile) -> Verdict:
    if dialog.ran and not profile.doctor.permissions:
        return ok("it ran the command without asking, as its profile says")
    if dialog.ran:
        return not_shown(
            "it ran the command without asking: its configuration allows that",
            Advice("", "ask for a command that it must ask for: --prompt ask='... {command}'"),
            Advice("doctor.permissions", "false", "if it has no permission dialogs at all"),
        )
    if not dialog.rested and not (dialog.last and suggest_dialog(dialog.last)):
        return not_shown(
            f"it neither asked nor ran the command: {brief(dialog.answer)}",
            Advice("", "rephrase it: --prompt ask='... {command}'"),
        )
    state = dialog.last.state if dialog.last is not None else AgentState.UNKNOWN
    return failed(
        f"it seems to wait for a permission, and the state is {state}",
        Advice("dialogs", _dialog_rule(dialog), _seen(dialog)),
        Advice(
            "states", "{name: dialog, state: waiting, dialog: true}", "as the first rule, if it is not there"
        ),
    )


def _dialog_rule(dialog: DialogTrial) -> str:
    if dialog.last is None:
        return "a rule for the rows of the dialog"
    return suggest_dialog(dialog.last) or suggest_rule(AgentState.WAITING, (dialog.last,), ())


def _seen(dialog: DialogTrial) -> str:
    return "\n".join(dialog.last.rows[-8:]) if dialog.last is not None else ""


STEADY = 1.5  # Seconds that an agent must be seen working without interruption
STOPPED = 1.0  # Seconds without output after an interrupt
ENDS = 3.0  # Seconds for the turn to end after READY
TRY = 3.0  # Seconds for another key to stop the turn
INTERRUPTS: tuple[tuple[bytes, ...], ...] = ((b"\x1b",), (b"\x1b", b"\x1b"), (b"\x03",))
"""Keys that interrupt some agent, harmless ones first."""


@dataclass(frozen=True, slots=True)
class Work:
    seen: Seen  # The message so far
    working: bool
    steady: bool
    ended: bool  # Whether the turn was already over
    shown: tuple[Sample, ...] = ()  # Samples after the message was submitted
    idle: tuple[Sample, ...] = ()


async def working(examination: Examination) -> Verdict:
    """PROCESSING is reported while the agent works."""
    work = await _begin(examination)
    verdict = judge_working(work, examination.profile)
    examination.slow = None if work.ended else work.seen.task
    return verdict


async def _begin(examination: Examination) -> Work:
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
        # The end of a turn is detected a moment after READY.
        await examination.until(lambda: examination.task(task).state.final, ENDS)
    task = examination.task(task)
    seen = Seen(question, question.text, task, ended=task.state.final, last=examination.recorder.take())
    return Work(seen, worked, steady, task.state.final, shown, idle)


def judge_working(work: Work, profile: Profile) -> Verdict:
    task = work.seen.task
    if work.steady:
        return ok(f"PROCESSING for {STEADY:g} s without a break")
    if task.delivery.value in ("queued", "held", "typing", "submitting"):
        return failed(f"not submitted: {task.reason or task.delivery}", *advice_for(work.seen, profile))
    if work.ended and task.state.value == "failed":
        return failed(f"the turn failed: {task.reason}")
    if work.working:
        if work.ended:
            return not_shown("PROCESSING, but the turn ended too soon", _longer())
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
    stopped: bool  # Whether the turn was seen to stop
    alive: bool
    seconds: float
    reason: str = ""  # Why it did not stop, according to the session
    writes: bool = False  # Whether output continued after the stop was reported
    rested: bool = False  # Whether the screen was quiet while the turn was reported as running
    draft: str = ""  # Text left in the composer
    other: tuple[bytes, ...] = ()  # Keys not in the profile that stopped it
    last: Sample | None = None


async def interrupt(examination: Examination) -> Verdict:
    task = examination.slow
    if task is None:
        work = await _begin(examination)
        if not work.working or work.ended:
            return skipped("there was no turn to interrupt: see 'working'")
        task = work.seen.task
    examination.slow = None
    if examination.state is not AgentState.PROCESSING:
        return not_shown("it was no longer working when it was to be interrupted", _longer())
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
    own = examination.profile.interrupt.keys
    for keys in INTERRUPTS:
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
    keys = key_names(profile.interrupt.keys)
    if not stop.alive:
        return failed(
            f"the interrupt {keys} ended the agent", Advice("interrupt.keys", "[escape]", f"{keys} ends it")
        )
    if not stop.stopped:
        return _judge_unstopped(stop, keys)
    if stop.writes:
        return failed(
            "READY, but the agent kept writing",
            Advice("interrupt.quiet", "1", "it is reported as stopped while it still writes"),
            Advice("states", "stricter rules for 'ready'", "one of them holds while a turn runs"),
        )
    if stop.draft:
        return failed(
            f"it stopped, and {stop.draft[:60]!r} was left in the composer",
            Advice(
                "clear", "[ctrl+e, ctrl+u, backspace]", "the composer was not emptied by the profile's keys"
            ),
        )
    return ok(f"stopped after {stop.seconds:.2f} s, the agent still runs and its composer is empty")


def _judge_unstopped(stop: Stop, keys: str) -> Verdict:
    if stop.other:
        return failed(
            f"{keys} did not stop the turn, {key_names(stop.other)} did",
            Advice("interrupt.keys", key_names(stop.other), f"it stopped the turn; {keys} did not"),
        )
    if stop.rested and stop.last is not None:
        return failed(
            f"the screen rests after {keys}, and no rule sees that the turn has stopped",
            Advice(
                "states", suggest_rule(AgentState.READY, (stop.last,), ()), "what it shows after an interrupt"
            ),
        )
    tried = ", ".join(key_names(candidate) for candidate in INTERRUPTS)
    hint = next((row.strip() for row in stop.last.rows if "interrupt" in row), "") if stop.last else ""
    return failed(
        f"{stop.reason}: neither {keys} nor {tried} did it",
        Advice("interrupt.keys", "the key that its screen names", hint or "its screen names none"),
    )


WANTED = (AgentState.READY, AgentState.PROCESSING, AgentState.WAITING)
UNKNOWN_SECONDS = 1.0  # Maximum seconds of UNKNOWN after the first READY


async def signals(examination: Examination) -> Verdict:
    recorder = examination.recorder
    return judge_signals(recorder.uses, recorder.reports, unknown_seconds(examination), examination.profile)


def unknown_seconds(examination: Examination) -> float:
    samples = list(examination.recorder.samples)
    first = next((at for at, sample in enumerate(samples) if sample.state is AgentState.READY), len(samples))
    seconds = 0.0
    for before, after in zip(samples[first:], samples[first + 1 :], strict=False):
        seconds += (after.at - before.at) if before.state is AgentState.UNKNOWN else 0.0
    return seconds


def judge_signals(
    uses: Mapping[str, RuleUse],
    reports: Sequence[tuple[AgentState, str]],
    unknown: float,
    profile: Profile,
) -> Verdict:
    decided = [name for name, use in uses.items() if use.decided]
    agreed = [rule.name for rule in profile.states if _agreed(uses[rule.name], rule.state)]
    never = [name for name in uses if name not in decided and name not in agreed]
    evidence = "; ".join(
        f"{words}: {', '.join(names)}"
        for words, names in (("decided", decided), ("held besides", agreed), ("never held", never))
        if names
    )
    if unknown > UNKNOWN_SECONDS:
        return failed(
            f"UNKNOWN for {unknown:.1f} s in all; {evidence}",
            Advice("states", "a rule for what it showed then", "messages are held while no rule matches"),
        )
    seen = {state for state, _ in reports}
    if not profile.doctor.permissions:
        seen.add(AgentState.WAITING)
    missing = [state.value for state in WANTED if state not in seen]
    if missing:
        return not_shown(f"{', '.join(missing)} was never reported; {evidence}")
    return ok(evidence)


def _agreed(use: RuleUse, state: AgentState) -> bool:
    """Whether a rule that never decided would have given the same state as the one that did."""
    return not use.decided and use.held[state] > 0


APPROVALS = 3  # Maximum consecutive dialogs for one command
FINISH = 20.0  # Seconds for the turn to end after the reply
_ASKED = 5.0  # Seconds for a dialog to be drawn after WAITING
_DRAWN = 0.5


@dataclass(frozen=True, slots=True)
class Replying:
    wanted: str
    replied: bool
    text: str = ""
    approved: int = 0  # Number of dialogs approved
    refused: bool = False  # Whether a dialog was open that might not be about the command
    last: Sample | None = None  # The agent when it asked, or at the end


async def reply(examination: Examination) -> Verdict:
    """The agent runs `synapse reply`, and the reply arrives."""
    wanted = "-".join(examination.prompts.codes())
    question = examination.prompts.make("run", command=f"$SYNAPSE_BIN reply {wanted}")
    task = examination.send(question.text)
    approved, last = 0, examination.recorder.take()
    while await examination.until(lambda: _reply_over(examination, task), examination.timeout):
        last = examination.recorder.take()
        if examination.state is not AgentState.WAITING or approved == APPROVALS:
            break
        if not await _approve(examination, wanted):
            break
        approved += 1
    done = examination.task(task)
    refused = examination.state is AgentState.WAITING
    if done.replied:
        await examination.until(lambda: examination.state is AgentState.READY, FINISH)
    text = "\n".join(artifact.text for artifact in done.artifacts)
    return judge_reply(Replying(wanted, done.replied, text, approved, refused, last), examination.profile)


def _reply_over(examination: Examination, task: Task) -> bool:
    known = examination.task(task)
    return known.replied or known.state.final or examination.state is AgentState.WAITING


async def _approve(examination: Examination, wanted: str) -> bool:
    approve = examination.profile.doctor.approve
    if approve is None:
        return False

    def asked() -> bool:
        screen = examination.screen()
        shown = "".join(char for char in screen if char.isalnum() or char == "-")
        return approve.screen.search(screen) is not None and wanted in shown

    # An agent's status may come before the dialog is drawn, which may then not accept keys yet.
    await examination.until(asked, _ASKED)
    await examination.quiet(_DRAWN, 3.0)
    if not (examination.state is AgentState.WAITING and asked()):
        return False
    before = examination.session.report.since
    await examination.press(*approve.keys)
    return await examination.until(
        lambda: examination.state is not AgentState.WAITING or examination.session.report.since > before, 10.0
    )


def judge_reply(seen: Replying, profile: Profile) -> Verdict:
    how = "after its permission was given" if seen.approved else "without asking"
    if seen.replied and seen.wanted in seen.text:
        return ok(f"`synapse reply` arrived, {how}: {brief(seen.text)}")
    if seen.replied:
        return not_shown(f"it replied something else: {brief(seen.text)}")
    if seen.refused:
        return not_shown(
            "it asked whether it may run the command, and the dialog was not known to be about that",
            *_approve_advice(seen, profile),
        )
    if seen.approved:
        sandbox = Advice("sandbox", "true", "its tools may not connect: files carry their messages then")
        return failed(
            f"the command was allowed, and no reply came: {brief(seen.text)}",
            *(() if profile.sandbox else (sandbox,)),
        )
    return not_shown(
        f"it did not run the command: {brief(seen.text)}",
        Advice("", "rephrase it: --prompt run='... {command}'"),
    )


def _approve_advice(seen: Replying, profile: Profile) -> tuple[Advice, ...]:
    if profile.doctor.approve is not None or seen.last is None or not suggest_dialog(seen.last):
        return ()
    row = suggest_chosen(seen.last.rows)
    why = "\n".join(seen.last.rows[-8:])
    return (Advice("doctor.approve", f"{{screen: {row or 'a pattern of its chosen row'}}}", why),)
