"""The check of answers: what the agent said becomes the artifact, and nothing of what is drawn around it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.model import AgentState

from .examination import Examination, Seen
from .prompts import lengthened
from .report import Advice, Outcome, Verdict, failed, not_shown, ok
from .suggest import suggest_row
from .turns import brief, judge_turn

_SHORTEST_ROW = 4
_BULLET = re.compile(r"^\s*([^\x00-\x7f\w\u2500-\u259f]) ")
"""A sign and a blank before what an agent says; the lines of boxes are none."""


async def answer(examination: Examination) -> Verdict:
    """The agent's answer becomes the artifact of the task, without what is drawn around it.

    It is asked by a short message and by one that fills more than the screen, since some agents show a long
    message in part only. What it said in pieces, before and after a tool, is looked at too, where other
    checks have made it use one.
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
    """Say what the artifact of a turn proves.

    Args:
        seen: The turn.
        frame: Rows that stood on the screen before it, while the agent was idle.
        profile: The profile as it is.
    """
    verdict = judge_turn(dataclasses.replace(seen, recorded=""), profile)
    if verdict.outcome is Outcome.FAILED:
        return verdict
    if not seen.answer:
        where = Advice("composer.above", "a pattern of the row over the composer", "answers stand above it")
        return failed("the answer was not seen: the task has no artifact", where)
    # What the agent has recorded itself is no frame, whatever it repeats of earlier answers.
    row = "" if seen.answer == seen.own_words else _frame_in(seen.answer, frame, profile)
    if row:
        hint = Advice("composer.hints", f"[{suggest_row(row)}]", "such a row stands over the composer")
        return failed(f"the artifact holds a row of the frame: {brief(row)}", hint)
    return ok(f"the answer is the artifact: {brief(seen.answer)}") if seen.proof else verdict


def _frame_in(text: str, frame: Collection[str], profile: Profile) -> str:
    """A row of an answer that is none; empty when there is none."""
    rules = profile.composer
    around = (rules.above, rules.below) if rules is not None else ()
    for row in text.split("\n"):
        stood_there = len(row.strip()) >= _SHORTEST_ROW and row.strip() in frame
        if stood_there or any(pattern is not None and pattern.search(row) for pattern in around):
            return row.rstrip()
    return ""


def judge_long_answer(long: Seen, short: Seen, frame: Collection[str], profile: Profile) -> Verdict:
    """Say what the artifact proves where the message was long: it begins as that of a short one does.

    Args:
        long: The turn of the long message.
        short: The turn of the short one.
        frame: Rows that stood on the screen before them, while the agent was idle.
        profile: The profile as it is.
    """
    verdict = judge_answer(long, frame, profile)
    if verdict.outcome is not Outcome.OK:
        return verdict
    usual = {row.strip() for row in _above(short)}
    more = [row for row in _above(long) if row.strip() not in usual]
    if not more:
        return verdict
    told = f"the answer to a long message has a row more above it: {brief(more[0])}"
    if profile.transcript is not None:
        # What the agent has written down itself is no frame.
        return not_shown(told, Advice("", "try it again", "the model did not answer as asked"))
    return failed(told, Advice("", "try it again; report it when it is no word of the model", told))


def judge_bullets(answers: Iterable[str], bullet: str) -> Verdict | None:
    """Say that an artifact holds a bullet of the agent; None when none does.

    Args:
        answers: What the agent said in several turns.
        bullet: The sign that it draws before what it says; empty for none.
    """
    for text in answers:
        rows = text.split("\n")
        for above, row in zip(["", *rows], rows, strict=False):
            # The items of a list follow one another.
            if bullet and not above.strip() and row.lstrip().startswith(f"{bullet} "):
                told = f"the artifact holds a bullet of the agent: {brief(row)}"
                return failed(told, Advice("", "report it", "pieces of an answer begin with it"))
    return None


def bullet_of(screen: Sequence[str], code: str) -> str:
    """The sign that an agent draws before what it says; empty for none.

    Args:
        screen: The rows of its screen after an answer, which stands below the message.
        code: What the answer begins with.
    """
    row = next((row for row in reversed(screen) if code in row), "")
    found = _BULLET.match(row)
    return found[1] if found else ""


def _above(seen: Seen) -> list[str]:
    """Rows of an answer above the one that was asked for."""
    rows = seen.answer.split("\n")
    place = next((place for place, row in enumerate(rows) if seen.question.codes[0] in row), 0)
    return [row for row in rows[:place] if row.strip()]
