"""What a watch sees of an agent: what it does, and what stands against a nudge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from synapse_tui.agents.answers.answer import AnswerCollector
from synapse_tui.agents.delivery.gate import NO_COMPOSER, UNSTEADY, Hold, dialog_open, why_held
from synapse_tui.agents.delivery.view import AgentView
from synapse_tui.agents.process.keyboard import Keyboard
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.messages.outbox import BEING_TYPED, Outbox
from synapse_tui.model import AgentState, StateReport, Task

from .watch import Sight

SOON = 1.0
"""Seconds after which a composer that is not to be seen for a moment is looked at again."""


@dataclass(frozen=True, slots=True)
class Post:
    """A running process, as a watch sees it.

    Attributes:
        view: Its terminal and state.
        keyboard: The person's keys.
        turns: The turn that runs.
        collector: Makes what collects the answer to a text.
    """

    view: AgentView
    keyboard: Keyboard
    turns: TurnTracker
    collector: Callable[[str], AnswerCollector]

    @property
    def report(self) -> StateReport:
        """The agent's state."""
        return self.view.report

    @property
    def busy(self) -> bool:
        """Whether the agent works, or asks in the middle of its work."""
        return self.report.state in (AgentState.PROCESSING, AgentState.WAITING)


def see(post: Post, profile: Profile, outbox: Outbox, nudge: Task | None) -> Sight:
    """Look at an agent.

    Args:
        post: The agent.
        profile: What is known of it.
        outbox: What waits to be typed into it.
        nudge: The nudge that waits; None for none.
    """
    now, works = post.view.now(), post.report.state is AgentState.PROCESSING
    if nudge is not None and outbox.is_parked(nudge.id):
        return Sight(now, f"the nudge is held: {nudge.reason}", works=works, asks=True)
    typed = nudge is not None and nudge.delivery in BEING_TYPED
    held = why_held(post.view, post.keyboard, profile)
    if held is not None and held.reason in (NO_COMPOSER, UNSTEADY):
        return Sight(now, works=works, typed=typed, soon=held.seconds or SOON)
    words = _held_text(post, held) or _others_text(outbox, nudge) or _turn_text(post)
    asks = post.report.state is AgentState.WAITING
    soon = held.seconds if held is not None and held.seconds is not None else 0.0
    return Sight(now, words, works=works, asks=asks, dialog=asks, typed=typed, soon=soon)


def _held_text(post: Post, held: Hold | None) -> str:
    if held is None:
        return ""
    return (post.report.detail or held.reason) if dialog_open(post.view) else held.reason


def _others_text(outbox: Outbox, nudge: Task | None) -> str:
    own = nudge.id if nudge is not None else ""
    others = sum(task.id != own and not outbox.is_unread(task.id) for task in outbox)
    return f"{others} message{'s wait' if others > 1 else ' waits'} to be typed" if others else ""


def _turn_text(post: Post) -> str:
    return "working" if post.turns.running else ""
