"""The check of `synapse reply`: a command inside the agent reaches the agent's own server."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.model import AgentState, Task

from .examination import Examination
from .recorder import Sample
from .report import Advice, Verdict, failed, not_shown, ok
from .suggest import suggest_chosen, suggest_dialog
from .turns import brief

APPROVALS = 3
"""Dialogs that may follow one another for one command."""
FINISH = 20.0
"""Seconds that the turn has to end after the reply."""
_DRAWN = 0.5


@dataclass(frozen=True, slots=True)
class Replying:
    """What came of the command.

    Attributes:
        wanted: What it was to say.
        replied: Whether the agent replied.
        text: What it replied, or answered.
        approved: Dialogs for it that were answered with yes.
        refused: Whether a dialog was open that could not be known to be about it.
        last: The agent when it asked, or at the end.
    """

    wanted: str
    replied: bool
    text: str = ""
    approved: int = 0
    refused: bool = False
    last: Sample | None = None


async def reply(examination: Examination) -> Verdict:
    """The agent runs `synapse reply`, and the reply arrives."""
    wanted = "-".join(examination.prompts.codes())
    question = examination.prompts.make("run", command=f"$SYNAPSE_BIN reply {wanted}")
    task = examination.send(question.text)
    approved, last = 0, examination.recorder.take()
    while await examination.until(lambda: _halts(examination, task), examination.timeout):
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


def _halts(examination: Examination, task: Task) -> bool:
    known = examination.task(task)
    return known.replied or known.state.final or examination.state is AgentState.WAITING


async def _approve(examination: Examination, wanted: str) -> bool:
    """Let the agent run the command, when its dialog is certainly about that.

    Returns:
        Whether it was answered, and is gone.
    """
    approve = examination.profile.doctor.approve
    if approve is None:
        return False
    await examination.quiet(_DRAWN, 3.0)

    def asked() -> bool:
        screen = examination.screen()
        shown = "".join(char for char in screen if char.isalnum() or char == "-")
        return approve.screen.search(screen) is not None and wanted in shown

    if not (examination.state is AgentState.WAITING and asked()):
        return False
    before = examination.session.report.since
    await examination.press(*approve.keys)
    return await examination.until(
        lambda: examination.state is not AgentState.WAITING or examination.session.report.since > before, 10.0
    )


def judge_reply(seen: Replying, profile: Profile) -> Verdict:
    """Say what came of the command."""
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
        Advice("", "ask in other words: --prompt run='... {command}'"),
    )


def _approve_advice(seen: Replying, profile: Profile) -> tuple[Advice, ...]:
    if profile.doctor.approve is not None or seen.last is None or not suggest_dialog(seen.last):
        return ()
    row = suggest_chosen(seen.last.rows)
    why = "\n".join(seen.last.rows[-8:])
    return (Advice("doctor.approve", f"{{screen: {row or 'a pattern of its chosen row'}}}", why),)
