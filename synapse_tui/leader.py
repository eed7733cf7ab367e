"""The leader key: what is pressed after it, as a pure state machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .actions import Action, by_leader_key, textual_key
from .terminal.key_tables import MODIFIER_KEYS


class Step(StrEnum):
    """What a key means for the leader."""

    PASS = "pass"  # noqa: S105 - no secret
    """Nothing: it goes its usual way."""
    WAIT = "wait"
    """The leader was pressed: the next key is a command."""
    DO = "do"
    """It names an action."""
    LITERAL = "literal"
    """The leader was pressed twice: one goes to the agent."""
    CANCEL = "cancel"
    """The command was given up."""
    UNKNOWN = "unknown"
    """It names nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a key.

    Attributes:
        step: What it means.
        action: The action, for `DO`.
        argument: The key itself where the action wants it (a digit).
    """

    step: Step
    action: Action | None = None
    argument: str = ""


class Leader:
    """Watches keys for the leader and the one after it.

    Args:
        key: The leader in the settings' words (`ctrl+]`).
    """

    def __init__(self, key: str) -> None:
        self.label = key
        self.key = textual_key(key)
        self.pending = False

    def take(self, key: str, character: str | None) -> Verdict:
        """Judge a key.

        Args:
            key: Textual's name of it.
            character: What it types; None when it types nothing.
        """
        if key.rpartition("+")[2] in MODIFIER_KEYS:
            return Verdict(Step.WAIT if self.pending else Step.PASS)
        if not self.pending:
            self.pending = key == self.key
            return Verdict(Step.WAIT if self.pending else Step.PASS)
        self.pending = False
        if key == self.key:
            return Verdict(Step.LITERAL)
        if key in ("escape", "ctrl+c"):
            return Verdict(Step.CANCEL)
        if key.startswith("f") and key[1:].isdigit():
            return Verdict(Step.PASS)
        return self._command(character if character and character.isprintable() else key)

    @staticmethod
    def _command(name: str) -> Verdict:
        action = by_leader_key(name)
        if action is None:
            return Verdict(Step.UNKNOWN, argument=name)
        return Verdict(Step.DO, action, name if action.id == "go_to_agent" else "")

    def cancel(self) -> bool:
        """Give up a command that was begun; whether one was."""
        pending, self.pending = self.pending, False
        return pending
