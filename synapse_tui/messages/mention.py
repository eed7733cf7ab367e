"""Intercepts `@agent message` at the keyboard: decides which keys go to the overlay and which to the agent.

A pure state machine. Each key comes with an opaque token of the caller; tokens for the agent ("the child")
are returned unchanged and in order. A message is sent only by Enter after a completed address. In all other
cases the held keys are forwarded to the child, deleted by Backspace or discarded by Ctrl+C.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

from synapse_tui.core.addresses import (
    ALL,
    Address,
    Completion,
    complete,
    could_be,
    could_name_agent,
    fold,
    is_elsewhere,
    means_itself,
    names_agent,
    receivers,
    resolve,
    shortest_form,
    would_refuse,
)
from synapse_tui.core.errors import (
    AddressError,
    AgentExited,
    AgentNotFound,
    AmbiguousAddress,
    InvalidValue,
    MessageError,
    SynapseError,
)
from synapse_tui.core.model import DEFAULT_PRIORITY, check_priority
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

T = TypeVar("T")


class MentionKey(Protocol):
    """A key, with the fields of the terminal's `KeyEvent`."""

    @property
    def key(self) -> str:
        """The key's name (`enter`, `a`)."""

    @property
    def text(self) -> str: ...

    @property
    def kind(self) -> str:
        """`press`, `repeat` or `release`."""

    @property
    def shift(self) -> bool: ...

    @property
    def alt(self) -> bool: ...

    @property
    def ctrl(self) -> bool: ...

    @property
    def super(self) -> bool: ...


class ComposerView(Protocol):
    """The state of the agent's composer on the screen."""

    @property
    def visible(self) -> bool: ...

    @property
    def draft(self) -> str: ...

    @property
    def vi_normal(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Pasted:
    """Text for the child without key events: a paste, or a completion."""

    text: str


@dataclass(frozen=True, slots=True)
class Mention:
    address: str  # `all`, an exact agent id or, without targets, as typed
    targets: tuple[Address, ...]  # none: the message is kept until an agent has the address
    text: str
    priority: int = DEFAULT_PRIORITY


@dataclass(frozen=True, slots=True)
class Intercepted(Generic[T]):
    forward: tuple[T | Pasted, ...] = ()
    message: Mention | None = None  # the message to send


@dataclass(frozen=True, slots=True)
class MentionView:
    composing: bool  # whether the address is complete and the message is being typed
    address: str  # as typed, including `@`
    text: str  # the message so far, with LF between lines
    cursor: int  # index into `address` or, while composing, into `text`
    target: str  # short name of the receiver; empty while ambiguous
    completions: tuple[Completion, ...]
    selected: int  # index into `completions`; -1 for none
    priority: int
    problem: str = ""  # why Enter did not send
    targets: tuple[Address, ...] = ()  # the receivers, once the address is complete
    keeps: bool = False  # whether Enter keeps the message until an agent has the address


_WORD = re.compile(r"\w")
_LONGEST_CHARACTER: Final = 64  # keys that move and delete together: a character and its combining marks


@dataclass(slots=True)
class _Unit(Generic[T]):
    text: str
    tokens: list[T] = field(default_factory=list)


class MentionText(Generic[T]):
    def __init__(self) -> None:
        self._units: list[_Unit[T]] = []
        self._leading: list[T] = []
        self._text = ""  # of all units; joined anew, it would cost all of the text for each key
        self.cursor = 0
        self._place = 0  # of the cursor in the text

    def __len__(self) -> int:
        return len(self._units)

    def text(self, start: int = 0, end: int | None = None) -> str:
        return self._text[self._place_of(start) : None if end is None else self._place_of(end)]

    def _place_of(self, unit: int) -> int:
        """Return where a unit begins in the text, counted from the start or the cursor if nearer."""
        if unit <= abs(unit - self.cursor):
            return self._length(0, unit)
        if unit < self.cursor:
            return self._place - self._length(unit, self.cursor)
        return self._place + self._length(self.cursor, unit)

    def _length(self, start: int, end: int) -> int:
        return sum(len(unit.text) for unit in self._units[start:end])

    def _move(self, cursor: int) -> None:
        self.cursor, self._place = cursor, self._place_of(cursor)

    def tokens(self) -> list[T | Pasted]:
        """Return the tokens that typed the text, in order; text without tokens becomes `Pasted`."""
        found: list[T | Pasted] = list(self._leading)
        for unit in self._units:
            if unit.tokens:
                found.extend(unit.tokens)
            elif found and isinstance(found[-1], Pasted):
                found[-1] = Pasted(found[-1].text + unit.text)
            else:
                found.append(Pasted(unit.text))
        return found

    def insert(self, text: str, token: T | None = None) -> None:
        units = [_Unit(character) for character in text] if token is None else [_Unit(text, [token])]
        self._units[self.cursor : self.cursor] = units
        self._text = self._text[: self._place] + text + self._text[self._place :]
        self.cursor += len(units)
        self._place += len(text)

    def attach(self, token: T) -> None:
        """Attach a token that types nothing (a key release) to the last typed unit."""
        if self.cursor and self._units[self.cursor - 1].tokens:
            self._units[self.cursor - 1].tokens.append(token)
        elif not self._units:
            self._leading.append(token)

    def remove(self, start: int, end: int) -> None:
        self._text = self._text[: self._place_of(start)] + self._text[self._place_of(end) :]
        self._move(start)
        del self._units[start:end]

    def before(self, least: int) -> int:
        """Return the start of the character before the cursor, including its combining marks."""
        at = self.cursor
        least = max(least, at - _LONGEST_CHARACTER)
        while at > least:
            at -= 1
            joined = at > least and self._units[at - 1].text[-1:] == "\u200d"
            if not _extends(self._units[at].text) and not joined:
                break
        return at

    def after(self, _least: int) -> int:
        at = min(self.cursor + 1, len(self._units))
        end = min(len(self._units), at + _LONGEST_CHARACTER)
        while at < end and (_extends(self._units[at].text) or self._units[at - 1].text[-1:] == "\u200d"):
            at += 1
        return at

    def word_before(self, least: int) -> int:
        gap = self._back(self.cursor, least, lambda text: not _is_word(text))
        return self._back(gap, least, _is_word)

    def word_after(self, _least: int) -> int:
        return self._forth(self._forth(self.cursor, lambda text: not _is_word(text)), _is_word)

    def line_start(self, least: int) -> int:
        return self._back(self.cursor, least, _within_line)

    def line_end(self, _least: int) -> int:
        return self._forth(self.cursor, _within_line)

    def line_up(self, least: int) -> int:
        """Return the position one line up; in the first line, the cursor."""
        start = self.line_start(least)
        if start == least:
            return self.cursor
        above = self._back(start - 1, least, _within_line)
        return min(above + self.cursor - start, start - 1)

    def line_down(self, least: int) -> int:
        """Return the position one line down; in the last line, the cursor."""
        below = self.line_end(least) + 1
        if below > len(self._units):
            return self.cursor
        return min(below + self.cursor - self.line_start(least), self._forth(below, _within_line))

    def edit(self, name: str, least: int = 0) -> None:
        """Apply a line-editing key; never changes anything before unit `least`."""
        if name in _MOVES:
            self._move(_MOVES[name](self, least))
        elif name in _DELETIONS:
            other = _DELETIONS[name](self, least)
            self.remove(min(other, self.cursor), max(other, self.cursor))

    def _back(self, at: int, least: int, passes: Callable[[str], bool]) -> int:
        while at > least and passes(self._units[at - 1].text):
            at -= 1
        return at

    def _forth(self, at: int, passes: Callable[[str], bool]) -> int:
        while at < len(self._units) and passes(self._units[at].text):
            at += 1
        return at


def _extends(text: str) -> bool:
    """Whether text extends the previous character (the common cases of UAX #29)."""
    return text == "\u200d" or (
        bool(text)
        and (unicodedata.category(text[0]) in {"Mn", "Me", "Mc"} or "\U0001f3fb" <= text[0] <= "\U0001f3ff")
    )


def _is_word(text: str) -> bool:
    return bool(_WORD.match(text))


def _within_line(text: str) -> bool:
    return text != "\n"


_Move = Callable[[MentionText[Any], int], int]
_MOVES: Final[dict[str, _Move]] = {
    "left": MentionText.before,
    "right": MentionText.after,
    "up": MentionText.line_up,
    "down": MentionText.line_down,
    "home": MentionText.line_start,
    "end": MentionText.line_end,
    "ctrl+a": MentionText.line_start,
    "ctrl+e": MentionText.line_end,
    "ctrl+b": MentionText.before,
    "ctrl+f": MentionText.after,
    "ctrl+left": MentionText.word_before,
    "ctrl+right": MentionText.word_after,
    "alt+left": MentionText.word_before,
    "alt+right": MentionText.word_after,
    "alt+b": MentionText.word_before,
    "alt+f": MentionText.word_after,
}
_DELETIONS: Final[dict[str, _Move]] = {
    "backspace": MentionText.before,
    "shift+backspace": MentionText.before,
    "ctrl+h": MentionText.before,
    "delete": MentionText.after,
    "ctrl+d": MentionText.after,
    "ctrl+u": MentionText.line_start,
    "ctrl+k": MentionText.line_end,
    "ctrl+w": MentionText.word_before,
    "ctrl+backspace": MentionText.word_before,
    "alt+backspace": MentionText.word_before,
    "ctrl+delete": MentionText.word_after,
    "alt+d": MentionText.word_after,
}


def key_name(event: MentionKey) -> str:
    """Return the key with its modifiers (`ctrl+left`); keypad keys get the names of the main keys."""
    held = "".join(f"{name}+" for name in ("ctrl", "alt", "shift", "super") if getattr(event, name))
    return held + event.key.removeprefix("kp_")


MARKS: Final = frozenset({"@", "＠"})
_SPACES: Final = frozenset({" ", "\u3000"})
_PRIORITY = re.compile(r"\s*!(\d+)(?:\s+|\Z)")
_NEWLINES: Final = frozenset(
    {"shift+enter", "alt+enter", "ctrl+enter", "alt+shift+enter", "ctrl+shift+enter", "ctrl+j"}
)


class KeyUse(Enum):
    """What the overlay did with a key."""

    KEPT = auto()  # added to the text
    USED = auto()  # handled as a command
    REFUSED = auto()  # cannot be part of an address: forward the held keys, then this one
    RETURNED = auto()  # cancels the mention: forward the held keys
    DROPPED = auto()  # discards the held keys, or deletes the last of them
    SENT = auto()  # sends the message


NO_TYPES: Final[Mapping[str, bool]] = MappingProxyType({})


class Overlay(Generic[T]):
    """One mention, starting at its `@`."""

    def __init__(
        self, *, addresses: Callable[[], Sequence[Address]], sender: str, types: Mapping[str, bool] = NO_TYPES
    ) -> None:
        self._addresses = addresses
        self._types = types
        self._sender = sender
        self.draft: MentionText[T] = MentionText()
        self.message: Mention | None = None
        self._prefix = (
            0  # units of the completed address and the space after it; 0 while the address is incomplete
        )
        self._targets: tuple[Address, ...] = ()
        self._choices: tuple[Completion, ...] = ()
        # the choices for a message to an agent that is not running; None if it was when its address was typed
        self._here: Completion | None = None
        self._later: Completion | None = None
        self._selected = 0
        self._chosen = False
        self._problem = ""

    @property
    def composing(self) -> bool:
        return self._prefix > 0

    def view(self) -> MentionView:
        start = self._prefix
        text = self.draft.text(start)
        address = self.draft.text(0, start - 1) if start else text
        priority, _ = self._read_priority(text) if start else (DEFAULT_PRIORITY, text)
        choices = self._choices if start else tuple(self._completions())
        problem = self._standing_problem()
        if self._is_back(problem):
            choices = ()
        marked = not start or self._chosen
        return MentionView(
            composing=self.composing,
            address=address,
            text=text if start else "",
            cursor=len(self.draft.text(start, self.draft.cursor)),
            target=self._label() if start else "",
            completions=choices,
            selected=min(self._selected, len(choices) - 1) if marked else -1,
            priority=priority if 1 <= priority <= 5 else DEFAULT_PRIORITY,
            problem=self._problem or problem,
            targets=self._targets,
            keeps=self._is_for_later,
        )

    def press(self, event: MentionKey, token: T) -> KeyUse:
        self._problem = ""
        name = key_name(event)
        if name == "escape":
            return KeyUse.RETURNED
        if name == "ctrl+c":
            return KeyUse.DROPPED
        plain = bool(event.text) and not (event.ctrl or event.alt or event.super)
        if self.composing:
            return self._press_composing(event, name, token if plain else None, token)
        return self._type_address(event.text, token) if plain else self._press_address(name)

    def choose(self, index: int) -> KeyUse:
        self._problem = ""
        self._selected, self._chosen = index, True
        return KeyUse.USED if self.composing else self._accept()

    # -- address -------------------------------------------------------------------------------------------

    def _body(self) -> str:
        return self.draft.text(1)

    def _completions(self) -> list[Completion]:
        return complete(self._body(), self._addresses(), sender=self._sender)

    def _type_address(self, text: str, token: T) -> KeyUse:
        if text in _SPACES:
            return self._end_address(token)
        self.draft.insert(text, token)
        self._selected, self._chosen = 0, False
        body = self._body()
        may_go_on = not MARKS & set(body) and (
            could_be(body, self._addresses(), sender=self._sender)
            or could_name_agent(body, self._known_types())
        )
        if len(self.draft) == 1 or may_go_on:
            return KeyUse.KEPT
        self.draft.remove(len(self.draft) - 1, len(self.draft))
        return KeyUse.REFUSED

    def _end_address(self, token: T) -> KeyUse:
        body = self._body()
        try:
            targets = resolve(body, self._addresses(), sender=self._sender)
        except AmbiguousAddress as error:
            agents = [agent for agent in self._addresses() if agent.agent_id in error.candidates]
            self._choices = tuple(Completion(self._form(agent), (agent,)) for agent in agents)
            self._compose((), token)
        except AgentNotFound:
            if means_itself(body, self._addresses(), self._sender) or not self._names_agent(body):
                return KeyUse.REFUSED
            self._compose_to_absent(token)
        except AgentExited:
            self._compose_to_absent(token)
        else:
            self._compose(targets, token)
        return KeyUse.KEPT

    def _known_types(self) -> set[str]:
        return {
            *self._types,
            *(agent.agent_type for agent in self._addresses() if agent.local and not agent.external),
        }

    def _names_agent(self, body: str) -> bool:
        return names_agent(body, self._known_types())

    def _compose_to_absent(self, token: T) -> None:
        """Compose a message to an agent that is not running, and offer what else can become of it.

        The agent may start before Enter; until then Enter is refused unless something was chosen.
        """
        self._offer_choices(self._body())
        self._compose((), token)

    def _offer_choices(self, address: str) -> None:
        self._here = Completion(tr("send it here"), ())
        others = [each for each in complete("", self._addresses(), sender=self._sender) if each.text != ALL]
        self._choices, self._later = (self._here, *others), None
        silent = [name for name, takes in self._types.items() if not takes]
        if not would_refuse(address, self._addresses(), silent):
            self._later = Completion(tr("keep it until that agent is back"), ())
            self._choices = (*self._choices, self._later)
        self._selected, self._chosen = 0, False

    def _is_back(self, problem: str) -> bool:
        return self._here is not None and not self._chosen and not problem

    def _compose(self, targets: Sequence[Address], token: T | None) -> None:
        self.draft.insert(" ", token)
        self._prefix = len(self.draft)
        self._targets = tuple(targets)
        self._selected, self._chosen = 0, False

    def _press_address(self, name: str) -> KeyUse:
        completions = self._completions()
        if name in {"backspace", "ctrl+h", "shift+backspace"}:
            self.draft.edit("backspace")
            self._selected, self._chosen = 0, False
            return KeyUse.USED if len(self.draft) else KeyUse.DROPPED
        if completions and name in {"up", "down"}:
            marked = min(self._selected, len(completions) - 1)
            self._selected = (marked + (1 if name == "down" else -1)) % len(completions)
            self._chosen = True
            return KeyUse.USED
        if completions and (name == "tab" or (name == "enter" and self._chosen)):
            return self._accept()
        return KeyUse.REFUSED

    def _accept(self) -> KeyUse:
        completions = self._completions()
        completion = completions[min(self._selected, len(completions) - 1)]
        typed = self._body()
        if fold(completion.text[: len(typed)]) == fold(typed):
            self.draft.insert(completion.text[len(typed) :])
        else:
            self.draft.remove(1, len(self.draft))
            self.draft.insert(completion.text)
        self._compose(completion.targets, None)
        return KeyUse.USED

    def _form(self, agent: Address) -> str:
        return shortest_form(agent, self._addresses(), sender=self._sender)

    # -- message -------------------------------------------------------------------------------------------

    def paste(self, text: str) -> None:
        self._problem = ""
        self.draft.insert(text)

    def _press_composing(self, event: MentionKey, name: str, typed: T | None, token: T) -> KeyUse:
        if typed is not None:
            self.draft.insert(event.text, typed)
            return KeyUse.KEPT
        if name in _NEWLINES:
            self.draft.insert("\n", token)
            return KeyUse.KEPT
        if name == "enter":
            return self._send() if event.kind == "press" else KeyUse.USED
        if name == "backspace" and len(self.draft) == self._prefix:
            self.draft.remove(self._prefix - 1, self._prefix)
            self._prefix = 0
            self._targets = self._choices = ()
            self._here = self._later = None
            self._selected, self._chosen = 0, False
        elif self._choices and name in {"up", "down", "tab"}:
            by = -1 if name == "up" else 1
            count = len(self._choices)
            first = 0 if by > 0 else count - 1
            self._selected = (self._selected + by) % count if self._chosen else first
            self._chosen = True
        else:
            self.draft.edit(name, self._prefix)
        return KeyUse.USED

    def _label(self) -> str:
        if self._choices and not self._chosen:
            return self._body_of_address() if self._is_back(self._standing_problem()) else ""
        if self._choices:
            return self._choices[self._selected].text
        if not self._targets:
            return self._body_of_address()
        if len(self._targets) == 1 and fold(self.draft.text(0, self._prefix)) != ALL:
            return self._form(self._targets[0])
        return f"{ALL} ({len(self._targets)})"

    def _send(self) -> KeyUse:
        if self._choice is not None and self._choice is self._here:
            return KeyUse.REFUSED  # this agent gets all that was typed, and Enter
        try:
            self.message = self._read_message()
        except (AgentExited, AgentNotFound) as error:
            if not self._choices and not self._means_all():  # it has ended since its address was typed
                self._offer_choices(self._body_of_address())
                self._problem = ""
            else:
                self._problem = _explain(error)
            return KeyUse.USED
        except (AddressError, MessageError, InvalidValue) as error:
            self._problem = _explain(error)
            return KeyUse.USED
        return KeyUse.SENT

    def _standing_problem(self) -> str:
        if not self.composing:
            return ""
        try:
            check_priority(self._read_priority(self.draft.text(self._prefix))[0])
            if self._choice is None and self._choices and self._here is None:
                return ""  # ambiguous: the choices say so
            if self._choice is None or self._choice.targets:
                self._resolve_targets()
        except (AddressError, MessageError, InvalidValue) as error:
            return _explain(error)
        return ""

    def _read_message(self) -> Mention:
        priority, text = self._read_priority(self.draft.text(self._prefix))
        check_priority(priority)
        if not text.strip():
            raise InvalidValue("there is no message yet", "type it, or press Esc")
        if self._is_for_later:
            return Mention(fold(self._body_of_address()), (), text.strip(), priority)
        if self._choices and not self._chosen and self._here is None:
            raise AmbiguousAddress(fold(self._body_of_address()), [choice.text for choice in self._choices])
        targets = self._resolve_targets()
        address = ALL if self._means_all() and self._choice is None else targets[0].agent_id
        return Mention(address, tuple(targets), text.strip(), priority)

    @property
    def _is_for_later(self) -> bool:
        return self._choice is not None and self._choice is self._later

    @property
    def _choice(self) -> Completion | None:
        return self._choices[self._selected] if self._choices and self._chosen else None

    def _resolve_targets(self) -> list[Address]:
        address = self._address()
        try:
            return receivers(address, self._addresses(), sender=self._sender)
        except AgentExited as error:
            if self._here is None:
                raise
            raise AgentExited(error.message, "choose what to do with it") from error
        except AgentNotFound as error:
            if self._here is None or is_elsewhere(address, self._addresses()):
                raise
            raise AgentNotFound(
                f"no agent {fold(address)} is running", "choose what to do with it"
            ) from error

    def _body_of_address(self) -> str:
        return self.draft.text(1, self._prefix - 1)

    def _means_all(self) -> bool:
        return fold(self._body_of_address()) == ALL

    def _address(self) -> str:
        if self._here is not None:
            targets = self._choice.targets if self._choice is not None else ()
        else:
            targets = self._choices[self._selected].targets if self._choices else self._targets
            targets = () if self._means_all() else targets
        return self._body_of_address() if not targets else targets[0].agent_id

    def _read_priority(self, text: str) -> tuple[int, str]:
        """Return the priority, and the message without its leading `!N` (which may be full-width)."""
        head = unicodedata.normalize("NFKC", text[:16])
        match = _PRIORITY.match(head)
        if match is None:
            return DEFAULT_PRIORITY, text
        return int(match[1]), text[match.end() :]


def _explain(error: SynapseError) -> str:
    return f"{tr(error.message)}; {tr(error.hint)}" if error.hint else tr(error.message)


ECHO_TIMEOUT: Final = 1.0  # seconds during which typed text that is not on the screen yet counts as a draft
SETTLE: Final = 0.15
"""Seconds to wait for a draft after a key that types nothing but may recall one (history, a suggestion).
Until then a new mention is on probation."""

# seconds after sending in which another Enter counts as a key repeat
ENTER_REPEAT: Final = 0.7

_MODIFIER = re.compile(r"(?:left|right)_(?:shift|control|alt|super|hyper|meta)|iso_level\d_shift|\w+_lock")
# keys that leave an empty composer empty
_ONLY_EMPTIES: Final = frozenset(
    {
        *(
            "enter",
            "backspace",
            "shift+backspace",
            "ctrl+backspace",
            "alt+backspace",
            "delete",
            "ctrl+delete",
        ),
        *("ctrl+u", "ctrl+k", "ctrl+w", "ctrl+h", "ctrl+d", "ctrl+c", "alt+d"),
    }
)


class MentionInterceptor(Generic[T]):
    def __init__(
        self,
        *,
        addresses: Callable[[], Sequence[Address]],
        sender: str,
        clock: Callable[[], float],
        types: Mapping[str, bool] = NO_TYPES,  # known types, running or not, and whether they take messages
    ) -> None:
        self._addresses = addresses
        self._types = types
        self._sender = sender
        self._clock = clock
        self._overlay: Overlay[T] | None = None
        self._held: set[str] = set()  # keys that are down and whose press went to the overlay
        self._consumed: set[str] = set()  # keys that are down and whose press the child never gets
        self._unsettled_until = float("-inf")
        self._doubtful_until = float("-inf")
        self._probation_until = float("-inf")  # for the open overlay
        self._queue: list[
            tuple[MentionKey, T] | Pasted
        ] = []  # an Enter during probation, and the input after it
        self._sent_at = float("-inf")  # time of the Enter that sent a message, or of its last repeat

    @property
    def active(self) -> bool:
        return self._overlay is not None

    @property
    def view(self) -> MentionView | None:
        return self._overlay.view() if self._overlay is not None else None

    @property
    def doubtful(self) -> bool:
        """Whether `settle` must be called soon, because the composer is not known to be empty yet."""
        return self._overlay is not None and (bool(self._queue) or self._on_probation)

    @property
    def _on_probation(self) -> bool:
        return self._overlay is not None and self._clock() < self._probation_until

    def settle(self, composer: ComposerView) -> list[Intercepted[T]]:
        """Cancel a mention on probation if a draft has appeared; replay the queue once probation is over."""
        if composer.draft and self.doubtful:
            return [self.give_back()]
        if self._on_probation:
            return []
        queue, self._queue = self._queue, []
        return [
            self.paste(item.text) if isinstance(item, Pasted) else self.key(*item, composer) for item in queue
        ]

    def observe(self, composer: ComposerView) -> None:
        """Read the agent's screen; called with every key, and ideally after output too."""
        if composer.draft:
            # The typed text is on the screen, so the screen can be trusted.
            self._unsettled_until = float("-inf")

    def key(self, event: MentionKey, token: T, composer: ComposerView) -> Intercepted[T]:
        self.observe(composer)
        if self._on_probation and composer.draft:
            return self._give_back_before(event, token)
        if self._waits(event):
            self._queue.append((event, token))
            return Intercepted()
        return self._take(event, token, composer)

    def _waits(self, event: MentionKey) -> bool:
        """Whether the key must wait for the end of the probation: Enter, and everything after it."""
        if self._queue:
            return True
        composing = self._overlay is not None and self._overlay.composing
        return composing and self._on_probation and key_name(event) == "enter" and event.kind == "press"

    def _take(self, event: MentionKey, token: T, composer: ComposerView) -> Intercepted[T]:
        if event.kind == "release":
            return self._release(event, token)
        if self._repeats_consumed(event):
            return Intercepted()
        self._consumed.discard(event.key)
        if _MODIFIER.fullmatch(event.key):
            if self._overlay is None:
                return Intercepted((token,))
            self._held.add(event.key)
            self._overlay.draft.attach(token)
            return Intercepted()
        if self._overlay is None:
            if not self._opens(event, composer):
                self._note_passed(event)
                return Intercepted((token,))
            self._overlay = Overlay(addresses=self._addresses, sender=self._sender, types=self._types)
            self._probation_until = self._doubtful_until
        return self._follow(self._overlay, self._overlay.press(event, token), event, token)

    def paste(self, text: str) -> Intercepted[T]:
        """Add pasted text to the message being composed, or forward it to the child."""
        if self._queue:
            self._queue.append(Pasted(text))
            return Intercepted()
        if self._overlay is not None and self._overlay.composing:
            self._overlay.paste(text)
            return Intercepted()
        given = self.give_back().forward
        self._unsettled_until = self._clock() + ECHO_TIMEOUT
        return Intercepted((*given, Pasted(text)))

    def give_back(self) -> Intercepted[T]:
        """Close the overlay and forward the held keys, for example when the focus changes."""
        if self._overlay is None:
            return Intercepted()
        waiting = [item if isinstance(item, Pasted) else item[1] for item in self._queue]
        tokens = self._overlay.draft.tokens() + waiting
        self._queue.clear()
        self._overlay = None
        self._held.clear()
        if tokens:
            self._unsettled_until = self._clock() + ECHO_TIMEOUT
        return Intercepted(tuple(tokens))

    def _give_back_before(self, event: MentionKey, token: T) -> Intercepted[T]:
        given = self.give_back().forward
        self._note_passed(event)
        return Intercepted((*given, token))

    def choose(self, index: int) -> None:
        if self._overlay is not None:
            self._overlay.choose(index)

    def _opens(self, event: MentionKey, composer: ComposerView) -> bool:
        """Whether the key starts a mention: `@` in a composer that is visible and known to be empty."""
        return (
            event.text in MARKS
            and not (event.ctrl or event.alt or event.super)
            and composer.visible
            and not composer.draft
            and not composer.vi_normal
            and self._clock() >= self._unsettled_until
            and any(address.receives and address.agent_id != self._sender for address in self._addresses())
        )

    def _repeats_consumed(self, event: MentionKey) -> bool:
        """Whether this repeats a key of the overlay, so that holding Enter cannot answer a dialog."""
        if self._overlay is not None:
            return False
        if event.kind == "repeat" and event.key in self._consumed:
            return True
        soon = self._clock() < self._sent_at + ENTER_REPEAT
        self._sent_at = self._clock() if soon and event.key == "enter" else float("-inf")
        return soon and event.key == "enter"

    def _note_passed(self, event: MentionKey) -> None:
        if event.text:
            self._unsettled_until = max(self._unsettled_until, self._clock() + ECHO_TIMEOUT)
        elif key_name(event) not in _ONLY_EMPTIES:
            self._doubtful_until = self._clock() + SETTLE

    def _follow(self, overlay: Overlay[T], step: KeyUse, event: MentionKey, token: T) -> Intercepted[T]:
        match step:
            case KeyUse.KEPT:
                self._held.add(event.key)
                return Intercepted()
            case KeyUse.REFUSED:
                return self._give_back_before(event, token)
        self._consumed.add(event.key)
        if step is KeyUse.RETURNED:
            return self.give_back()
        if step is not KeyUse.USED:
            self._overlay = None
            self._consumed |= self._held
            self._held.clear()
        if step is KeyUse.SENT:
            self._sent_at = self._clock()
        return Intercepted(message=overlay.message)

    def _release(self, event: MentionKey, token: T) -> Intercepted[T]:
        if event.key in self._consumed:
            self._consumed.discard(event.key)
            return Intercepted()
        if event.key not in self._held or self._overlay is None:
            return Intercepted((token,))
        self._held.discard(event.key)
        self._overlay.draft.attach(token)
        return Intercepted()
