"""Checks of messages: submitted, complete, in one piece, and answered."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from synapse_tui.agents.answers import after_echo
from synapse_tui.agents.delivery.gate import DIALOGS
from synapse_tui.agents.profiles.profile import Profile, key_names
from synapse_tui.cli.trials.examination import Examination, Seen, lengthened
from synapse_tui.cli.trials.report import (
    Advice,
    Outcome,
    Verdict,
    failed,
    not_shown,
    ok,
    quoted,
    suggest_dialog,
    suggest_row,
    suggest_stand_in,
)
from synapse_tui.core.model import AgentState, TaskState
from synapse_tui.messages.reasons import Reason

Adviser = Callable[[Seen, Profile], tuple[Advice, ...]]


def advice_for(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    for words, adviser in _ADVISERS:
        if words in seen.task.reason:
            return adviser(seen, profile)
    return ()


def _not_shown(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    """The text was typed, but did not appear in the composer."""
    if seen.draft and (stand_in := suggest_stand_in(seen.draft)):
        return (
            Advice("composer.pastes", f"[{stand_in}]", f"instead of the message it shows {seen.draft!r}"),
        )
    if seen.draft:
        why = f"the composer was read as {_short(seen.draft)}"
        return (Advice("composer.row", quoted("^  "), why), Advice("submit.method", "typed", why))
    return _no_composer(seen, profile)


def _no_composer(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    cursor = seen.last.cursor
    why = f"the cursor stands in the row {cursor!r}"
    if profile.composer is not None and not profile.composer.cursor:
        return (Advice("composer.prompt", prompt_of(cursor), why),)
    return (
        Advice("composer.prompt", prompt_of(cursor), why),
        Advice("composer.above, composer.below", "patterns of the rows around it", "\n".join(seen.last.rows)),
    )


def prompt_of(row: str) -> str:
    indent = len(row) - len(row.lstrip())
    sign = row[indent : indent + 1]
    if not sign or sign.isalnum():
        return quoted("^" + " " * indent)
    escaped = f"\\{sign}" if sign in r"\.^$*+?{}[]|()" else sign
    return quoted("^" + " " * indent + escaped + "[ \\xa0]")


def _no_enter(seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    own = profile.submit.enter
    if seen.entered and seen.entered != own:
        name = key_names((seen.entered,))[1:-1]
        return (Advice("submit.enter", name, f"it submitted the message; {key_names((own,))[1:-1]} did not"),)
    pause = round(max(profile.submit.pause * 2.5, 1.0) * 1000)
    why = "the same key took effect later" if seen.entered else "it may have come too early"
    return (Advice("submit.pause", str(pause), f"Enter had no effect: {why}"),)


def _no_proof(_seen: Seen, profile: Profile) -> tuple[Advice, ...]:
    value = f"{max(profile.submit.verify * 2.5, 5):g}"
    return (Advice("submit.verify", value, "after Enter the screen did not show in time that it was sent"),)


def _draft(seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    text = seen.last.cursor.strip()
    return (
        Advice("composer.placeholder", "{dim: true, grey: true}", f"an empty composer was read as {text!r}"),
        Advice("clear", "[ctrl+e, ctrl+u, backspace]", "if that is what was left of another message"),
    )


def _unknown(seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    if rule := suggest_dialog(seen.last):
        return (Advice("dialogs", rule, "the screen shows a question that no rule knows"),)
    what = f"title {seen.last.title!r}, status {seen.last.status!r}, progress {seen.last.progress!r}"
    return (Advice("states", "a rule for what it shows now", what),)


def _asks(seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    return (Advice("", "see what it asks, and answer it once yourself", "\n".join(seen.last.rows[-8:])),)


def _deaf(_seen: Seen, _profile: Profile) -> tuple[Advice, ...]:
    return (Advice("submit", "{method: typed, chunk: 500}", "it does not read that much at once"),)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:40]}…{text[-15:]}")


_ADVISERS: tuple[tuple[str, Adviser], ...] = (
    (Reason.NOT_SHOWN, _not_shown),
    (Reason.NO_TEXT, _not_shown),
    (Reason.NO_COMPOSER, _no_composer),
    (Reason.NO_ENTER, _no_enter),
    (Reason.NO_PROOF, _no_proof),
    (Reason.DRAFT, _draft),
    ("left in the composer", _draft),
    (Reason.STATE_UNKNOWN, _unknown),
    *((words, _asks) for words in (*DIALOGS.values(), "waits for you")),
    (Reason.UNREAD, _deaf),
)
"""Words of the reason, and the suggestions for it; the first match applies."""


def no_end(seen: Seen) -> tuple[Advice, ...]:
    if seen.last.state is AgentState.UNKNOWN:
        return _unknown(seen, Profile("", "", ""))
    what = f"title {seen.last.title!r}, status {seen.last.status!r}, progress {seen.last.progress!r}"
    return (Advice("states", "see why it was not READY", f"{seen.last.state} at the end; {what}"),)


_WORKING = (AgentState.PROCESSING, AgentState.WAITING)
_SHOWN = 70
MENTION = "@READ"  # The start of a file name in the scratch folder
LEADING = ("!", "/", "#")
COMMANDS = {"/": "help "}
"""Text that makes a leading sign a command: a harmless one that most agents have."""


async def submit(examination: Examination) -> Verdict:
    seen = await examination.ask(examination.prompts.make("submit"))
    if Reason.NO_ENTER in seen.task.reason:
        seen = dataclasses.replace(seen, entered=await examination.other_enter())
    verdict = judge_turn(seen, examination.profile)
    if verdict.outcome is Outcome.NOT_SHOWN and seen.task.state is TaskState.COMPLETED and _worked(seen):
        return ok(f"it was submitted and a turn ran; the answer was {brief(seen.answer)}")
    return verdict


async def multiline(examination: Examination) -> Verdict:
    seen = await examination.ask(examination.prompts.make("multiline"))
    return judge_pieces(seen, examination.profile)


async def long_paste(examination: Examination) -> Verdict:
    """A message of 20 kB arrives completely."""
    seen = await examination.ask(examination.prompts.make("long"))
    return judge_turn(seen, examination.profile)


def judge_turn(seen: Seen, profile: Profile) -> Verdict:
    task = seen.task
    if not seen.ended:
        return _judge_open(seen, profile)
    if task.state is not TaskState.COMPLETED:
        return failed(f"the turn ended as {task.state}: {task.reason}", *advice_for(seen, profile))
    if seen.proof:
        size = f"{len(seen.typed.encode()):,} bytes, " if len(seen.typed) > 1000 else ""
        return ok(f"{size}answered with {brief(seen.proof)}")
    if seen.recorded == "whole":
        return ok("the agent's own record of the conversation holds the whole message")
    if not seen.answer and not _worked(seen):
        return failed(
            "Enter was pressed, and nothing shows that a turn ran",
            Advice("states", "a rule for 'processing'", "no rule saw it work"),
        )
    return not_shown(
        f"a turn ran, but its answer shows nothing: {brief(seen.answer)}",
        Advice("", "rephrase it with --prompt and --expect", "the model did not answer as asked"),
    )


def judge_pieces(seen: Seen, profile: Profile) -> Verdict:
    if seen.recorded == "part":
        return failed(
            "its lines arrived as several messages",
            Advice("submit.multiline", "false", "a line feed submits"),
        )
    return judge_turn(seen, profile)


def _judge_open(seen: Seen, profile: Profile) -> Verdict:
    task = seen.task
    if task.state is TaskState.SUBMITTED:
        return failed(f"not submitted: {task.reason or task.delivery}", *advice_for(seen, profile))
    if task.state is TaskState.INPUT_REQUIRED:
        return not_shown(f"it asks instead of answering: {task.reason}", *advice_for(seen, profile))
    return failed(
        f"the end of the turn was not seen in {seen.seconds:.0f} s; the state is {seen.last.state}",
        *no_end(seen),
    )


def _worked(seen: Seen) -> bool:
    return any(state in _WORKING for state in seen.states)


def brief(text: str) -> str:
    line = " ".join(text.split())
    return f"'{line[:_SHOWN]}…'" if len(line) > _SHOWN else f"'{line}'"


# -- hazards ---


async def hazards(examination: Examination) -> Verdict:
    found: list[tuple[str, Seen]] = []
    for sign in LEADING:
        question = examination.prompts.make("hazard")
        question = dataclasses.replace(question, text=f"{sign}{COMMANDS.get(sign, '')}{question.text}")
        found.append((sign, await examination.ask(question, as_prompt=True)))
        if not await examination.rest() and not await examination.renew():
            break
    else:
        question = examination.prompts.make("hazard")
        question = dataclasses.replace(question, text=f"{question.text} {MENTION}")
        found.append((MENTION, await examination.ask(question)))
    return judge_hazards(found, examination.profile)


def judge_hazards(found: Sequence[tuple[str, Seen]], profile: Profile) -> Verdict:
    verdicts = [(hazard, judge_turn(_believed(hazard, seen), profile)) for hazard, seen in found]
    wrong = {hazard: verdict for hazard, verdict in verdicts if verdict.outcome is Outcome.FAILED}
    if wrong:
        evidence = "; ".join(f"{hazard} - {verdict.evidence}" for hazard, verdict in wrong.items())
        return failed(evidence, *_fixes(wrong, profile))
    unproved = [
        f"{hazard} - {verdict.evidence}" for hazard, verdict in verdicts if verdict.outcome is not Outcome.OK
    ]
    if unproved:
        return not_shown("; ".join(unproved), *verdicts[-1][1].advice)
    return ok(f"a leading {' '.join(LEADING)} and a trailing {MENTION} were taken as text")


def _believed(hazard: str, seen: Seen) -> Seen:
    """A command may be recorded too: only an answer proves that the message was not taken as one."""
    return seen if hazard == MENTION else dataclasses.replace(seen, recorded="")


def _fixes(wrong: Mapping[str, Verdict], profile: Profile) -> Iterator[Advice]:
    known = profile.hazards.leading
    new = [hazard for hazard in wrong if hazard in LEADING and hazard not in known]
    if new:
        signs = ", ".join(f'"{sign}"' for sign in (*known, *new))
        why = f"a message that begins with {' or '.join(new)} was taken for a command"
        yield Advice("hazards.leading", f"[{signs}]", why)
    if MENTION in wrong and not profile.hazards.trailing_mention:
        why = "Enter accepted a completion instead of the message"
        yield Advice("hazards.trailing_mention", "true", why)
    for hazard, verdict in wrong.items():
        if hazard in known or (hazard == MENTION and profile.hazards.trailing_mention):
            yield from verdict.advice


_SHORTEST_ROW = 4
_BULLET = re.compile(r"^\s*([^\x00-\x7f\w\u2500-\u259f]) ")
"""A symbol and a blank before an agent's answer, but not a line of a box."""


async def answer(examination: Examination) -> Verdict:
    """The agent's answer becomes the artifact of the task, without the frame around it.

    Both a short question and one longer than the screen are asked, since some agents display only a part of a
    long message. Answers in pieces, before and after a tool, are checked if other checks made the agent use
    one.
    """
    idle = [sample for sample in examination.recorder.samples if sample.state is AgentState.READY]
    frame = frozenset(row.strip() for sample in idle for row in sample.rows)
    pieces = [
        artifact.text
        for task in list(examination.session.tasks)
        for artifact in task.artifacts
        if not task.replied
    ]
    short = await examination.ask(examination.prompts.make("answer"))
    verdict = judge_answer(short, frame, examination.profile)
    if verdict.outcome is not Outcome.OK:
        return verdict
    bullet = bullet_of(examination.screen().split("\n"), short.question.codes[0])
    long = await examination.ask(lengthened(examination.prompts.make("answer")))
    judged = judge_long_answer(long, short, frame, examination.profile)
    if judged.outcome is not Outcome.OK:
        return judged
    return judge_bullets([*pieces, short.answer, long.answer], bullet) or verdict


def judge_answer(seen: Seen, frame: Collection[str], profile: Profile) -> Verdict:
    verdict = judge_turn(dataclasses.replace(seen, recorded=""), profile)
    if verdict.outcome is Outcome.FAILED:
        return verdict
    if not seen.answer:
        where = Advice("composer.above", "a pattern of the row over the composer", "answers stand above it")
        return failed("no answer was seen: the task has no artifact", where)
    # The agent's own record contains no frame, whatever it repeats from earlier answers.
    shown = "" if seen.answer == seen.own_words else seen.answer
    if after_echo(shown.split("\n"), seen.typed) is not None:
        prompt = Advice("composer.row", "what stands before the message there", brief(seen.answer))
        return failed(f"the artifact holds the message itself: {brief(seen.answer)}", prompt)
    if row := _frame_in(shown, frame, profile):
        hint = Advice("composer.hints", f"[{suggest_row(row)}]", "such a row stands over the composer")
        return failed(f"the artifact holds a row of the frame: {brief(row)}", hint)
    return ok(f"the answer is the artifact: {brief(seen.answer)}") if seen.proof else verdict


def _frame_in(text: str, frame: Collection[str], profile: Profile) -> str:
    rules = profile.composer
    around = (rules.above, rules.below) if rules is not None else ()
    for row in text.split("\n"):
        stood_there = len(row.strip()) >= _SHORTEST_ROW and row.strip() in frame
        if stood_there or any(pattern is not None and pattern.search(row) for pattern in around):
            return row.rstrip()
    return ""


def judge_long_answer(long: Seen, short: Seen, frame: Collection[str], profile: Profile) -> Verdict:
    """Judge the artifact of a long message, which must begin like that of a short one."""
    verdict = judge_answer(long, frame, profile)
    if verdict.outcome is not Outcome.OK:
        return verdict
    usual = {row.strip() for row in _above(short)}
    more = [row for row in _above(long) if row.strip() not in usual]
    if not more:
        return verdict
    evidence = f"the answer to a long message has a row more above it: {brief(more[0])}"
    if profile.transcript is not None:
        # The agent's own record contains no frame.
        return not_shown(evidence, Advice("", "try it again", "the model did not answer as asked"))
    return failed(evidence, Advice("", "try it again; report it unless the model wrote it", evidence))


def judge_bullets(answers: Iterable[str], bullet: str) -> Verdict | None:
    for text in answers:
        rows = text.split("\n")
        for above, row in zip(["", *rows], rows, strict=False):
            # List items follow one another.
            if bullet and not above.strip() and row.lstrip().startswith(f"{bullet} "):
                evidence = f"the artifact holds a bullet of the agent: {brief(row)}"
                return failed(evidence, Advice("", "report it", "pieces of an answer begin with it"))
    return None


def bullet_of(screen: Sequence[str], code: str) -> str:
    row = next((row for row in reversed(screen) if code in row), "")
    found = _BULLET.match(row)
    return found[1] if found else ""


def _above(seen: Seen) -> list[str]:
    rows = seen.answer.split("\n")
    place = next((place for place, row in enumerate(rows) if seen.question.codes[0] in row), 0)
    return [row for row in rows[:place] if row.strip()]
