"""Whether a message may be typed now, and if not, why not."""

from __future__ import annotations

from typing import NamedTuple

from synapse_tui.agents.process.keyboard import Dialog, Keyboard
from synapse_tui.agents.profiles.profile import DialogKind, Profile
from synapse_tui.model import AGENT_EXITED, AgentState

from .view import AgentView

EXITED = AGENT_EXITED
DRAFT = "you have a draft"
TYPING = "typing"
UNSTEADY = "composer just changed"
NO_COMPOSER = "composer not visible"
UNREAD = "agent does not read its input"
READS_AGAIN = 0.25
"""Seconds between two looks whether it does again: nothing tells of that."""
STEADY = 0.15
"""Seconds that the composer must have been empty: agents that redraw it show it empty for a moment."""

_DIALOGS: dict[DialogKind, str] = {
    "permission": "permission dialog open",
    "question": "question open",
    "notice": "dialog open",
}
_WORDS = {
    AgentState.STARTING: "starting",
    AgentState.PROCESSING: "working",
    AgentState.WAITING: "permission dialog open",
    AgentState.ERROR: "agent shows an error",
    AgentState.UNKNOWN: "state unknown",
    AgentState.EXITED: EXITED,
}


class Hold(NamedTuple):
    """Why a message is not typed.

    Attributes:
        reason: In plain words.
        seconds: When time alone may change that; None when only the agent or the user can.
    """

    reason: str
    seconds: float | None = None


def why_held(view: AgentView, keyboard: Keyboard, profile: Profile, *, works: bool = False) -> Hold | None:
    """Look whether a message may be typed at this very moment.

    Args:
        view: The agent's terminal.
        keyboard: The user's keys.
        profile: What is known of the agent.
        works: Whether it may be typed while the agent works too.

    Returns:
        None when it may: the agent is ready, no dialog is open, its composer is on the screen and empty, the
        user is quiet, and the agent has read all that it was sent, so that nothing comes in between.
    """
    if not view.alive:
        return Hold(EXITED)
    if blocked := _blocked(view, works=works):
        return blocked
    by_user = _by_user(view, keyboard, profile)
    return by_user or (Hold(UNREAD, READS_AGAIN) if view.unread else None)


def dialog_open(view: AgentView) -> bool:
    """Whether a dialog takes the keys at this moment, by the state or by the rendered screen."""
    return view.report.state is AgentState.WAITING or view.reading().dialog


def dialog_for_keys(view: AgentView) -> Dialog | None:
    """The dialog that the user's next key answers; a composer that is there again takes the key itself."""
    reading = view.reading()
    if reading.visible or not dialog_open(view):
        return None
    return Dialog(reading.dialog_name, reading.dialog_title, reading.dialog_kind == "permission")


def dialog_words(view: AgentView) -> str:
    """What is open, in plain words."""
    reading = view.reading()
    return _DIALOGS[reading.dialog_kind] if reading.dialog else _WORDS[AgentState.WAITING]


def _blocked(view: AgentView, *, works: bool) -> Hold | None:
    state = view.report.state
    if dialog_open(view):
        return Hold(dialog_words(view))
    if state is AgentState.READY or (works and state is AgentState.PROCESSING):
        return None
    # After an error an agent is at its prompt again: its composer, empty and holding the cursor, shows that.
    return None if state is AgentState.ERROR and view.reading().empty else Hold(_WORDS[state])


def _by_user(view: AgentView, keyboard: Keyboard, profile: Profile) -> Hold | None:
    if keyboard.holding:
        return Hold(TYPING)
    quiet = keyboard.quiet_in(view.now())
    if profile.composer is None:
        draft = keyboard.drafting
    else:
        reading = view.reading()
        if not reading.visible:
            return Hold(NO_COMPOSER)
        draft = bool(reading.draft)
    if draft:
        return Hold(DRAFT)
    if quiet:
        return Hold(TYPING, quiet)
    return _unsteady(view) if profile.composer is not None else None


def _unsteady(view: AgentView) -> Hold | None:
    left = STEADY - view.empty_for()
    return Hold(UNSTEADY, left) if left > 0 else None
