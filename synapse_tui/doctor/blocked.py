"""The check of a permission dialog: it is seen, holds messages, and the deny keys close it."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass

from synapse_tui.agents.profiles.profile import Profile, key_names
from synapse_tui.model import AgentState, DeliveryState, TaskState

from .examination import Examination
from .recorder import Sample
from .report import Advice, Verdict, failed, not_shown, ok
from .suggest import suggest_dialog, suggest_rule
from .turns import brief

HELD = 1.5
"""Seconds that a message must be held while the dialog is open."""
DENY = 5.0
"""Seconds in which the deny keys must have closed a dialog."""
DENIALS = 3
"""Dialogs that may follow one another."""
RESTS = 8.0
"""Seconds without a change after which an agent that is not ready waits for something."""
CANDIDATES: tuple[tuple[bytes, ...], ...] = ((b"\x1b",), (b"n",), (b"\x03",))
"""Keys that deny in some agent; none of them approves anywhere."""


@dataclass(frozen=True, slots=True)
class Dialog:
    """What came of a command that needs a permission.

    Attributes:
        asked: Whether WAITING was reported.
        what: What it asks, as the state says.
        ran: Whether the command ran.
        answer: What the agent answered, where it did not ask.
        rested: Whether the agent came to rest without WAITING, READY or an answer.
        held: Why a message waited meanwhile; empty when it did not.
        steady: Whether WAITING lasted.
        closed: Whether the profile's deny keys closed it.
        other: Keys that closed it in their place; empty for none.
        delivered: Whether the message went after that.
        last: The agent while the dialog was open.
    """

    asked: bool
    what: str = ""
    ran: bool = False
    answer: str = ""
    rested: bool = False
    held: str = ""
    steady: bool = True
    closed: bool = False
    other: tuple[bytes, ...] = ()
    delivered: bool = False
    last: Sample | None = None


async def blocked(examination: Examination) -> Verdict:
    """A permission dialog is WAITING; a message is held, the deny keys close it, nothing ran."""
    marker = examination.outside / f"ran-{secrets.token_hex(4)}"
    question = examination.prompts.make("run", command=f"touch {shlex.quote(str(marker))}")
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
        dialog = Dialog(False, ran=marker.exists(), answer=answer, rested=not done.state.final, last=last)
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
        Dialog(True, what, marker.exists(), "", False, held, steady, closed, other, delivered, last),
        examination.profile,
    )


async def _deny(examination: Examination) -> tuple[bool, tuple[bytes, ...]]:
    """Close the dialog with the profile's keys, or else with others.

    Returns:
        Whether the profile's keys did it, and the others that did.
    """
    if await _closes(examination, examination.profile.deny):
        return True, ()
    for keys in CANDIDATES:
        if keys != examination.profile.deny and await _closes(examination, keys):
            return False, keys
    return False, ()


async def _closes(examination: Examination, keys: tuple[bytes, ...]) -> bool:
    for _ in range(DENIALS):
        await examination.press(*keys)
        if await examination.until(lambda: examination.state is not AgentState.WAITING, DENY):
            # Another dialog may follow at once.
            if await examination.holds(lambda: examination.state is not AgentState.WAITING, 1.0):
                return True
        elif not keys or not examination.alive:
            return False
    return False


def judge_dialog(dialog: Dialog, profile: Profile) -> Verdict:
    """Say what the command that needs a permission proves."""
    if not dialog.asked:
        return _judge_unasked(dialog)
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
        return failed(f"closed by {keys}, but the message that was held did not go afterwards")
    return ok(f"WAITING ({dialog.what}); a message was held, {keys} closed the dialog, nothing ran")


def _judge_unasked(dialog: Dialog) -> Verdict:
    if dialog.ran:
        return not_shown(
            "it ran the command without asking: its configuration allows that",
            Advice("", "ask for a command that it must ask for: --prompt run='... {command}'"),
        )
    if not dialog.rested and not (dialog.last and suggest_dialog(dialog.last)):
        return not_shown(
            f"it neither asked nor ran the command: {brief(dialog.answer)}",
            Advice("", "ask in other words: --prompt run='... {command}'"),
        )
    state = dialog.last.state if dialog.last is not None else AgentState.UNKNOWN
    return failed(
        f"it seems to wait for a permission, and the state is {state}",
        Advice("dialogs", _dialog_rule(dialog), _seen(dialog)),
        Advice(
            "states", "{name: dialog, state: waiting, dialog: true}", "as the first rule, if it is not there"
        ),
    )


def _dialog_rule(dialog: Dialog) -> str:
    if dialog.last is None:
        return "a rule for the rows of the dialog"
    return suggest_dialog(dialog.last) or suggest_rule(AgentState.WAITING, (dialog.last,), ())


def _seen(dialog: Dialog) -> str:
    return "\n".join(dialog.last.rows[-8:]) if dialog.last is not None else ""
