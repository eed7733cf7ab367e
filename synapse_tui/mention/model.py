"""What goes into the interception of mentions and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from synapse_tui.addresses import Address, Completion
from synapse_tui.model import DEFAULT_PRIORITY

T = TypeVar("T")


class MentionKey(Protocol):
    """A key, in the words of the terminal's `KeyEvent`."""

    @property
    def key(self) -> str:
        """Its name (`enter`, `a`)."""

    @property
    def text(self) -> str:
        """What it types."""

    @property
    def kind(self) -> str:
        """`press`, `repeat` or `release`."""

    @property
    def shift(self) -> bool:
        """Whether Shift is held."""

    @property
    def alt(self) -> bool:
        """Whether Alt is held."""

    @property
    def ctrl(self) -> bool:
        """Whether Ctrl is held."""

    @property
    def super(self) -> bool:
        """Whether Super is held."""


class ComposerView(Protocol):
    """What the agent's screen shows of its composer."""

    @property
    def visible(self) -> bool:
        """Whether the composer certainly takes keys."""

    @property
    def draft(self) -> str:
        """The text in it."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """Text for the child that no key stands for: it was pasted, or put in by a completion."""

    text: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A message that the user sends to other agents.

    Attributes:
        address: `all`, or the exact id of the one agent.
        targets: The agents.
        text: The message.
        priority: 1 to 5.
    """

    address: str
    targets: tuple[Address, ...]
    text: str
    priority: int = DEFAULT_PRIORITY


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What follows from a key or a paste.

    Attributes:
        forward: What goes to the child now, in order: the tokens that were given in, and pasted text.
        message: The message to send; None for none.
    """

    forward: tuple[T | Pasted, ...] = ()
    message: Mention | None = None


@dataclass(frozen=True, slots=True)
class MentionView:
    """What the overlay shows.

    Attributes:
        composing: Whether the address is complete and a message is being written.
        address: The address as it stands, with `@`.
        text: The message so far; lines are separated by LF.
        cursor: Index in `address` while it is being typed, then in `text`.
        target: Whom the message goes to, in a word; empty while that is open.
        completions: What can be chosen: endings of the address, or the agents that an ambiguous one could
            mean.
        selected: Index of the one that is marked; -1 for none.
        priority: 1 to 5.
        problem: Why Enter did not send, for the user; empty for none.
    """

    composing: bool
    address: str
    text: str
    cursor: int
    target: str
    completions: tuple[Completion, ...]
    selected: int
    priority: int
    problem: str = ""
