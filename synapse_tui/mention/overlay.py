"""The overlay while keys are held: an address that is typed and completed, then a message."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, Generic

from synapse_tui.addresses import ALL, Address, Completion, complete, could_be, fold, resolve, shortest_form
from synapse_tui.errors import (
    AddressError,
    AgentExited,
    AgentNotFound,
    AmbiguousAddress,
    InvalidValue,
    SynapseError,
)
from synapse_tui.model import DEFAULT_PRIORITY, check_priority

from .draft import Draft
from .editing import edit, key_name
from .model import Mention, MentionKey, MentionView, T

MARKS: Final = frozenset({"@", "＠"})
_SPACES: Final = frozenset({" ", "\u3000"})
_PRIORITY = re.compile(r"\s*!(\d+)(?:\s+|\Z)")
_NEWLINES: Final = frozenset(
    {"shift+enter", "alt+enter", "ctrl+enter", "alt+shift+enter", "ctrl+shift+enter", "ctrl+j"}
)


class Step(Enum):
    """What became of a key."""

    KEPT = auto()
    """It is part of the text."""
    USED = auto()
    """It was a command to the overlay."""
    REFUSED = auto()
    """It cannot belong to an address: what is held goes to the child, and the key after it."""
    RETURNED = auto()
    """It was the command to give what is held to the child."""
    DROPPED = auto()
    """It was the command to throw away what is held, or took away the last of it."""
    SENT = auto()
    """It sends the message."""


class Overlay(Generic[T]):
    """One mention from its `@` on.

    Args:
        addresses: Gives all live agents.
        sender: Id of the agent of the pane.

    Attributes:
        draft: All that is held.
        message: The message, once a step was `SENT`.
    """

    def __init__(self, *, addresses: Callable[[], Sequence[Address]], sender: str) -> None:
        self._addresses = addresses
        self._sender = sender
        self.draft: Draft[T] = Draft()
        self.message: Mention | None = None
        self._prefix = 0  # units of the completed address and its space; 0 while it is typed
        self._targets: tuple[Address, ...] = ()
        self._choices: tuple[Completion, ...] = ()
        self._selected = 0
        self._chosen = False
        self._priority = DEFAULT_PRIORITY
        self._problem = ""

    @property
    def composing(self) -> bool:
        """Whether the address is complete."""
        return self._prefix > 0

    def view(self) -> MentionView:
        """What is to be shown."""
        start = self._prefix
        text = self.draft.text(start)
        address = self.draft.text(0, start - 1) if start else text
        priority, _ = self._read_priority(text) if start else (self._priority, text)
        choices = self._choices if start else tuple(self._completions())
        marked = not start or self._chosen
        return MentionView(
            composing=self.composing,
            address=address,
            text=text if start else "",
            cursor=len(self.draft.text(start, self.draft.cursor)),
            target=self._label() if start else "",
            completions=choices,
            selected=min(self._selected, len(choices) - 1) if marked else -1,
            priority=priority if 1 <= priority <= 5 else self._priority,
            problem=self._problem or self._standing_problem(),
        )

    def set_priority(self, priority: int) -> None:
        """Set the priority that holds unless the message begins with `!N`.

        Raises:
            InvalidValue: It is not from 1 to 5.
        """
        self._priority = check_priority(priority)

    def press(self, event: MentionKey, token: T) -> Step:
        """Take a key that was pressed.

        Args:
            event: The key.
            token: What stands for it towards the child.
        """
        self._problem = ""
        name = key_name(event)
        if name == "escape":
            return Step.RETURNED
        if name == "ctrl+c":
            return Step.DROPPED
        plain = bool(event.text) and not (event.ctrl or event.alt or event.super)
        if self.composing:
            return self._press_composing(event, name, token if plain else None, token)
        return self._type_address(event.text, token) if plain else self._press_address(name)

    def choose(self, index: int) -> Step:
        """Take a completion that was clicked.

        Args:
            index: Its index in the view.
        """
        self._selected, self._chosen = index, True
        return Step.USED if self.composing else self._accept()

    # -- the address ---------------------------------------------------------------------------------------

    def _body(self) -> str:
        return self.draft.text(1)

    def _completions(self) -> list[Completion]:
        return complete(self._body(), self._addresses(), sender=self._sender)

    def _type_address(self, text: str, token: T) -> Step:
        if text in _SPACES:
            return self._end_address(token)
        self.draft.insert(text, token)
        self._selected, self._chosen = 0, False
        if len(self.draft) == 1 or self._may_go_on():
            return Step.KEPT
        self.draft.remove(len(self.draft) - 1, len(self.draft))
        return Step.REFUSED

    def _may_go_on(self) -> bool:
        body = self._body()
        return not MARKS & set(body) and could_be(body, self._addresses(), sender=self._sender)

    def _end_address(self, token: T) -> Step:
        body = self._body()
        try:
            targets = resolve(body, self._addresses(), sender=self._sender)
        except AmbiguousAddress as error:
            agents = [agent for agent in self._addresses() if agent.agent_id in error.candidates]
            self._choices = tuple(Completion(self._form(agent), (agent,)) for agent in agents)
            self._compose((), token)
        except AgentNotFound:
            return Step.REFUSED
        except AgentExited:
            self._compose((), token)  # it may be restarted before Enter; until then Enter is refused
        else:
            self._compose(targets, token)
        return Step.KEPT

    def _compose(self, targets: Sequence[Address], token: T | None) -> None:
        self.draft.insert(" ", token)
        self._prefix = len(self.draft)
        self._targets = tuple(targets)
        self._selected, self._chosen = 0, False

    def _press_address(self, name: str) -> Step:
        completions = self._completions()
        if name in {"backspace", "ctrl+h", "shift+backspace"}:
            edit(self.draft, "backspace", 0)
            self._selected, self._chosen = 0, False
            return Step.USED if len(self.draft) else Step.DROPPED
        if completions and name in {"up", "down"}:
            marked = min(self._selected, len(completions) - 1)
            self._selected = (marked + (1 if name == "down" else -1)) % len(completions)
            self._chosen = True
            return Step.USED
        if completions and (name == "tab" or (name == "enter" and self._chosen)):
            return self._accept()
        return Step.REFUSED

    def _accept(self) -> Step:
        """Put the marked completion in place of what was typed; typed keys that fit stay as they are."""
        completions = self._completions()
        completion = completions[min(self._selected, len(completions) - 1)]
        typed = self._body()
        if fold(completion.text[: len(typed)]) == fold(typed):
            self.draft.insert(completion.text[len(typed) :])
        else:
            self.draft.remove(1, len(self.draft))
            self.draft.insert(completion.text)
        self._compose(completion.targets, None)
        return Step.USED

    def _form(self, agent: Address) -> str:
        return shortest_form(agent, self._addresses(), sender=self._sender)

    # -- the message ---------------------------------------------------------------------------------------

    def paste(self, text: str) -> None:
        """Insert pasted text into the message."""
        self._problem = ""
        self.draft.insert(text)

    def _press_composing(self, event: MentionKey, name: str, typed: T | None, token: T) -> Step:
        if typed is not None:
            self.draft.insert(event.text, typed)
            return Step.KEPT
        if name in _NEWLINES:
            self.draft.insert("\n", token)
            return Step.KEPT
        if name == "enter":
            return self._send() if event.kind == "press" else Step.USED
        if name == "backspace" and len(self.draft) == self._prefix:
            self._reopen_address()
        elif self._choices and name in {"up", "down", "tab"}:
            self._choose_next(-1 if name == "up" else 1, len(self._choices))
        else:
            edit(self.draft, name, self._prefix)
        return Step.USED

    def _choose_next(self, by: int, count: int) -> None:
        """Mark another of the agents that an ambiguous address could mean; at first none is."""
        first = 0 if by > 0 else count - 1
        self._selected = (self._selected + by) % count if self._chosen else first
        self._chosen = True

    def _reopen_address(self) -> None:
        self.draft.remove(self._prefix - 1, self._prefix)
        self._prefix = 0
        self._targets = self._choices = ()
        self._selected, self._chosen = 0, False

    def _label(self) -> str:
        if self._choices and not self._chosen:
            return ""
        if self._choices:
            return self._choices[self._selected].text
        if not self._targets:
            return self._body_of_address()
        if len(self._targets) == 1 and fold(self.draft.text(0, self._prefix)) != ALL:
            return self._form(self._targets[0])
        return f"{ALL} ({len(self._targets)})"

    def _send(self) -> Step:
        try:
            self.message = self._read_message()
        except (AddressError, InvalidValue) as error:
            self._problem = _told(error)
            return Step.USED
        return Step.SENT

    def _standing_problem(self) -> str:
        """What will keep Enter from sending, told before it is pressed."""
        if not self.composing:
            return ""
        try:
            check_priority(self._read_priority(self.draft.text(self._prefix))[0])
            if not self._choices or self._chosen:
                self._resolve_targets()
        except (AddressError, InvalidValue) as error:
            return _told(error)
        return ""

    def _read_message(self) -> Mention:
        """The message as it stands.

        Raises:
            AddressError: The address means nobody any more, or it is open whom.
            InvalidValue: There is no text, or the priority is none.
        """
        priority, text = self._read_priority(self.draft.text(self._prefix))
        check_priority(priority)
        if not text.strip():
            raise InvalidValue("there is no message yet", "type it, or press Esc")
        if self._choices and not self._chosen:
            raise AmbiguousAddress(fold(self._body_of_address()), [choice.text for choice in self._choices])
        targets = self._resolve_targets()
        address = ALL if self._means_all() else targets[0].agent_id
        return Mention(address, tuple(targets), text.strip(), priority)

    def _resolve_targets(self) -> list[Address]:
        """The agents that the message would go to now.

        Raises:
            AddressError: There are none any more.
        """
        return resolve(self._address(), self._addresses(), sender=self._sender)

    def _body_of_address(self) -> str:
        return self.draft.text(1, self._prefix - 1)

    def _means_all(self) -> bool:
        return fold(self._body_of_address()) == ALL

    def _address(self) -> str:
        targets = self._choices[self._selected].targets if self._choices else self._targets
        return self._body_of_address() if self._means_all() or not targets else targets[0].agent_id

    def _read_priority(self, text: str) -> tuple[int, str]:
        """The priority and the message without the `!N` that it begins with (also in full width)."""
        head = unicodedata.normalize("NFKC", text[:16])
        match = _PRIORITY.match(head)
        if match is None:
            return self._priority, text
        return int(match[1]), text[match.end() :]


def _told(error: SynapseError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
