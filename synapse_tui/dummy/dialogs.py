"""Dialogs that only a person may answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["permission", "question"]

PERMISSION_OPTIONS = (
    "Yes",
    "Yes, and do not ask again in this session",
    "No, and tell the agent what to do instead (esc)",
)
QUESTION_OPTIONS = ("Yes", "No", "Decide yourself")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person chose.

    Attributes:
        choice: Number of the option, from 1; 0 when the dialog was left.
        text: The option's own words; `denied` when the dialog was left.
        key: The key that answered.
    """

    choice: int
    text: str
    key: str


@dataclass(slots=True)
class Dialog:
    """A dialog on the screen.

    Attributes:
        kind: Whether it asks for a permission or for a decision.
        title: What it is about (`Bash command`).
        question: What it asks.
        body: Shown between the two, such as the command.
        options: What can be chosen.
        selected: Index of the highlighted option.
        answer: What was chosen; None while it is open.
    """

    kind: Kind
    title: str
    question: str
    body: str = ""
    options: tuple[str, ...] = PERMISSION_OPTIONS
    selected: int = 0
    answer: Answer | None = field(default=None)

    def press(self, key: str) -> None:
        """Take a key: arrows move, a number or Enter chooses, Escape and Ctrl+C leave; others do nothing."""
        if key in ("up", "ctrl+p"):
            self.selected = (self.selected - 1) % len(self.options)
        elif key in ("down", "ctrl+n", "tab"):
            self.selected = (self.selected + 1) % len(self.options)
        elif key == "enter":
            self._choose(self.selected, key)
        elif key in ("escape", "ctrl+c"):
            self.answer = Answer(0, "denied", key)

    def type(self, text: str) -> None:
        """Take typed characters: the number of an option chooses it, anything else does nothing."""
        if len(text) == 1 and text.isdecimal() and 1 <= int(text) <= len(self.options):
            self._choose(int(text) - 1, text)

    @property
    def allowed(self) -> bool:
        """Whether a permission was given."""
        return self.answer is not None and self.answer.choice in (1, 2)

    def _choose(self, index: int, key: str) -> None:
        self.selected = index
        self.answer = Answer(index + 1, self.options[index], key)


def permission(command: str) -> Dialog:
    """Ask whether a command may run."""
    return Dialog("permission", "Bash command", "Do you want to proceed?", command)


def question(text: str) -> Dialog:
    """Ask a person something.

    Args:
        text: The question; options may follow it, each after a `|`.
    """
    asked, *options = [part.strip() for part in text.split("|")]
    return Dialog("question", "Question", asked, options=tuple(options) or QUESTION_OPTIONS)
