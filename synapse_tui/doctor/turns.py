"""Checks of messages: they are submitted, arrive as one and whole, and are answered."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.model import AgentState, TaskState

from .advice import NO_ENTER, advice_for, no_end
from .examination import Examination, Seen
from .report import Advice, Outcome, Verdict, failed, not_shown, ok

_WORKING = (AgentState.PROCESSING, AgentState.WAITING)
_SHOWN = 70
MENTION = "@READ"
"""The beginning of a file name in the scratch folder."""
LEADING = ("!", "/", "#")
COMMANDS = {"/": "help "}
"""What follows a sign, so that it would be a command: a harmless one that most agents have."""


async def submit(examination: Examination) -> Verdict:
    """A message is submitted and answered."""
    seen = await examination.ask(examination.prompts.make("submit"))
    if NO_ENTER in seen.task.reason:
        seen = dataclasses.replace(seen, entered=await examination.other_enter())
    verdict = judge_turn(seen, examination.profile)
    if verdict.outcome is Outcome.NOT_SHOWN and seen.task.state is TaskState.COMPLETED and _worked(seen):
        return ok(f"it was submitted and a turn ran; the answer was {brief(seen.answer)}")
    return verdict


async def multiline(examination: Examination) -> Verdict:
    """Several lines, with Japanese and emoji, arrive as one message."""
    seen = await examination.ask(examination.prompts.make("multiline"))
    return judge_pieces(seen, examination.profile)


async def long_paste(examination: Examination) -> Verdict:
    """A message of 20 kB arrives to its end."""
    seen = await examination.ask(examination.prompts.make("long"))
    return judge_turn(seen, examination.profile)


def judge_turn(seen: Seen, profile: Profile) -> Verdict:
    """Say what a turn proves: its answer, or else the agent's own record."""
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
            Advice("states", "a rule for 'processing'", "no rule told that it worked"),
        )
    return not_shown(
        f"a turn ran, but its answer proves nothing: {brief(seen.answer)}",
        Advice("", "try it in other words, with --prompt and --expect", "the model did not answer as asked"),
    )


def judge_pieces(seen: Seen, profile: Profile) -> Verdict:
    """The same for a message of several lines, which may have been submitted line by line."""
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
        return not_shown(f"it asks in place of an answer: {task.reason}", *advice_for(seen, profile))
    return failed(
        f"the end of the turn was not seen in {seen.seconds:.0f} s; the state is {seen.last.state}",
        *no_end(seen),
    )


def _worked(seen: Seen) -> bool:
    return any(state in _WORKING for state in seen.states)


def brief(text: str) -> str:
    """The beginning of a text on one line, in quotes."""
    line = " ".join(text.split())
    return f"'{line[:_SHOWN]}…'" if len(line) > _SHOWN else f"'{line}'"


# -- hazards ---


async def hazards(examination: Examination) -> Verdict:
    """Texts that begin like a command or end in a mention are taken for what they are."""
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
    """Say what the messages with a hazard prove.

    Args:
        found: The hazard and what became of the message with it.
        profile: The profile as it is.
    """
    verdicts = [(hazard, judge_turn(_believed(hazard, seen), profile)) for hazard, seen in found]
    wrong = {hazard: verdict for hazard, verdict in verdicts if verdict.outcome is Outcome.FAILED}
    if wrong:
        told = "; ".join(f"{hazard} - {verdict.evidence}" for hazard, verdict in wrong.items())
        return failed(told, *_fixes(wrong, profile))
    unproved = [
        f"{hazard} - {verdict.evidence}" for hazard, verdict in verdicts if verdict.outcome is not Outcome.OK
    ]
    if unproved:
        return not_shown("; ".join(unproved), *verdicts[-1][1].advice)
    return ok(f"a leading {' '.join(LEADING)} and a trailing {MENTION} were taken as text")


def _believed(hazard: str, seen: Seen) -> Seen:
    """A command may be recorded too: only an answer proves that it was none."""
    return seen if hazard == MENTION else dataclasses.replace(seen, recorded="")


def _fixes(wrong: Mapping[str, Verdict], profile: Profile) -> Iterator[Advice]:
    known = profile.hazards.leading
    new = [hazard for hazard in wrong if hazard in LEADING and hazard not in known]
    if new:
        signs = ", ".join(f'"{sign}"' for sign in (*known, *new))
        why = f"a message that begins with {' or '.join(new)} was taken for something else"
        yield Advice("hazards.leading", f"[{signs}]", why)
    if MENTION in wrong and not profile.hazards.trailing_mention:
        why = "Enter accepted a completion in place of the message"
        yield Advice("hazards.trailing_mention", "true", why)
    for hazard, verdict in wrong.items():
        if hazard in known or (hazard == MENTION and profile.hazards.trailing_mention):
            yield from verdict.advice
