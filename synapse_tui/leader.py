"""The leader key: what is pressed after it, as a pure state machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .actions import DIGITS, Action
from .key_names import key_label, textual_key
from .keymap import Keymap, is_function_key
from .terminal.input import MODIFIER_KEYS


class Step(StrEnum):
    """What a key means for the leader."""

    PASS = "pass"  # noqa: S105 - no secret
    """Nothing: it goes its usual way."""
    WAIT = "wait"
    """The leader was pressed: the next key is a command."""
    DO = "do"
    """It names an action."""
    LITERAL = "literal"
    """It goes to the agent once: the leader itself, or another key that the application takes."""
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
        keymap: The keys that hold.
    """

    def __init__(self, keymap: Keymap) -> None:
        self.use(keymap)
        self.pending = False

    def use(self, keymap: Keymap) -> None:
        self.keymap = keymap
        self.label = key_label(keymap.leader)
        self.key = textual_key(keymap.leader)

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
        name = character if character and character.isprintable() else key
        action = self.keymap.by_leader_key(name)
        if action is None:
            literal = self.keymap.by_key(key) is not None or is_function_key(key)
            return Verdict(Step.LITERAL if literal else Step.UNKNOWN, argument=name)
        return Verdict(Step.DO, action, name if action.id == DIGITS else "")

    def cancel(self) -> bool:
        """Give up a command that was begun; whether one was."""
        pending, self.pending = self.pending, False
        return pending
