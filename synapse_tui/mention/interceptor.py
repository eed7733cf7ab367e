"""The state machine between the keys and the child: who gets a key, the overlay or the child.

Pure. Every key goes in with a token of the caller's, and tokens come out for the child unchanged and in
order. A message leaves only by Enter in the composer of a completed address; all else gives the keys to the
child, takes them back by the user's own Backspace, or throws them away by Ctrl+C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Generic

from synapse_tui.addresses import Address, could_be

from .editing import key_name
from .model import ComposerView, MentionKey, MentionView, Outcome, Pasted, T
from .overlay import MARKS, Overlay, Step

ECHO_TIMEOUT: Final = 1.0
"""Seconds for which typed text that the agent has not shown yet counts as a draft."""
SETTLE: Final = 0.15
"""Seconds in which a draft may show up after a key that types nothing but may bring up one (history, a
suggestion): until then a mention is held on probation."""

ENTER_REPEAT: Final = 0.7
"""Seconds after the Enter that sent a message in which another one is its repetition."""

_MODIFIER = re.compile(r"(?:left|right)_(?:shift|control|alt|super|hyper|meta)|iso_level\d_shift|\w+_lock")
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
"""Keys after which a composer that was empty still is."""


class MentionInterceptor(Generic[T]):
    """Intercepts mentions in one agent's pane.

    Args:
        addresses: Gives all live agents.
        sender: Id of the agent of the pane.
        clock: Monotonic seconds.
    """

    def __init__(
        self, *, addresses: Callable[[], Sequence[Address]], sender: str, clock: Callable[[], float]
    ) -> None:
        self._addresses = addresses
        self._sender = sender
        self._clock = clock
        self._overlay: Overlay[T] | None = None
        self._held: set[str] = set()  # keys that are down and whose press the overlay has
        self._consumed: set[str] = set()  # keys that are down and whose press the child will never get
        self._unsettled_until = float("-inf")
        self._doubtful_until = float("-inf")
        self._probation_until = float("-inf")  # of the overlay that is open
        self._queue: list[tuple[MentionKey, T] | Pasted] = []  # Enter on probation and what came after it
        self._sent_at = float("-inf")  # when the Enter that sent a message was last repeated

    @property
    def active(self) -> bool:
        """Whether keys are held."""
        return self._overlay is not None

    @property
    def view(self) -> MentionView | None:
        """What the overlay shows; None when there is none."""
        return self._overlay.view() if self._overlay is not None else None

    @property
    def doubtful(self) -> bool:
        """Whether `settle` must be called soon: the screen has yet to tell that the composer stays empty."""
        return self._overlay is not None and (bool(self._queue) or self._on_probation)

    @property
    def _on_probation(self) -> bool:
        return self._overlay is not None and self._clock() < self._probation_until

    def settle(self, composer: ComposerView) -> list[Outcome[T]]:
        """Decide about a mention on probation: a draft has shown up, or has had its time.

        Args:
            composer: What the agent's screen shows now.

        Returns:
            What follows, in order.
        """
        if composer.draft and self.doubtful:
            return [self.give_back()]
        if self._on_probation:
            return []
        queue, self._queue = self._queue, []
        return [
            self.paste(item.text) if isinstance(item, Pasted) else self.key(*item, composer) for item in queue
        ]

    def observe(self, composer: ComposerView) -> None:
        """Look at the agent's screen; called with every key, and better also after output.

        Args:
            composer: What it shows now.
        """
        if composer.draft:
            self._unsettled_until = float("-inf")  # what was typed is seen: from now on the screen tells

    def key(self, event: MentionKey, token: T, composer: ComposerView) -> Outcome[T]:
        """Take a key.

        Args:
            event: The key.
            token: What stands for it towards the child.
            composer: What the agent's screen shows now.
        """
        self.observe(composer)
        if self._on_probation and composer.draft:
            given = self.give_back().forward
            self._note_passed(event)
            return Outcome((*given, token))
        if self._waits(event):
            self._queue.append((event, token))
            return Outcome()
        return self._take(event, token, composer)

    def _waits(self, event: MentionKey) -> bool:
        """Whether the key must wait for the end of the probation: Enter, and all that comes after it."""
        if self._queue:
            return True
        composing = self._overlay is not None and self._overlay.composing
        return composing and self._on_probation and key_name(event) == "enter" and event.kind == "press"

    def _take(self, event: MentionKey, token: T, composer: ComposerView) -> Outcome[T]:
        if event.kind == "release":
            return self._release(event, token)
        if self._repeats_consumed(event):
            return Outcome()
        self._consumed.discard(event.key)
        if _MODIFIER.fullmatch(event.key):
            return self._silent(event, token)
        if self._overlay is None:
            if not self._opens(event, composer):
                self._note_passed(event)
                return Outcome((token,))
            self._overlay = Overlay(addresses=self._addresses, sender=self._sender)
            self._probation_until = self._doubtful_until
        return self._follow(self._overlay, self._overlay.press(event, token), event, token)

    def paste(self, text: str) -> Outcome[T]:
        """Take a paste: into the message that is being written, else to the child; never intercepted."""
        if self._queue:
            self._queue.append(Pasted(text))
            return Outcome()
        if self._overlay is not None and self._overlay.composing:
            self._overlay.paste(text)
            return Outcome()
        given = self.give_back().forward
        self._unsettled_until = self._clock() + ECHO_TIMEOUT
        return Outcome((*given, Pasted(text)))

    def give_back(self) -> Outcome[T]:
        """End the overlay and give to the child what is held: for a change of focus, a detach, a click."""
        if self._overlay is None:
            return Outcome()
        waiting = [item if isinstance(item, Pasted) else item[1] for item in self._queue]
        tokens = self._overlay.draft.tokens() + waiting
        self._queue.clear()
        self._overlay = None
        self._held.clear()
        if tokens:
            self._unsettled_until = self._clock() + ECHO_TIMEOUT
        return Outcome(tuple(tokens))

    def choose(self, index: int) -> None:
        """Take a completion that was clicked.

        Args:
            index: Its index in the view.
        """
        if self._overlay is not None:
            self._overlay.choose(index)

    def set_priority(self, priority: int) -> None:
        """Set the priority of the message that is being written.

        Raises:
            InvalidValue: It is not from 1 to 5.
        """
        if self._overlay is not None:
            self._overlay.set_priority(priority)

    def _opens(self, event: MentionKey, composer: ComposerView) -> bool:
        """Whether the key begins a mention: `@` into a composer that is known to be there and empty."""
        return (
            event.text in MARKS
            and not (event.ctrl or event.alt or event.super)
            and composer.visible
            and not composer.draft
            and self._clock() >= self._unsettled_until
            and could_be("", self._addresses(), sender=self._sender)
        )

    def _repeats_consumed(self, event: MentionKey) -> bool:
        """Whether it repeats a key that was the overlay's: a held Enter must not answer a dialog."""
        if self._overlay is not None:
            return False
        if event.kind == "repeat" and event.key in self._consumed:
            return True
        soon = self._clock() < self._sent_at + ENTER_REPEAT
        self._sent_at = self._clock() if soon and event.key == "enter" else float("-inf")
        return soon and event.key == "enter"

    def _note_passed(self, event: MentionKey) -> None:
        """The child has a key that its screen may not show yet: an empty composer there may not be empty."""
        if event.text:
            self._unsettled_until = max(self._unsettled_until, self._clock() + ECHO_TIMEOUT)
        elif key_name(event) not in _ONLY_EMPTIES:
            self._doubtful_until = self._clock() + SETTLE

    def _follow(self, overlay: Overlay[T], step: Step, event: MentionKey, token: T) -> Outcome[T]:
        match step:
            case Step.KEPT:
                self._held.add(event.key)
                return Outcome()
            case Step.REFUSED:
                given = self.give_back().forward
                self._note_passed(event)
                return Outcome((*given, token))
        self._consumed.add(event.key)
        if step is Step.RETURNED:
            return self.give_back()
        if step is not Step.USED:
            self._overlay = None
            self._consumed |= self._held
            self._held.clear()
        if step is Step.SENT:
            self._sent_at = self._clock()
        return Outcome(message=overlay.message)

    def _release(self, event: MentionKey, token: T) -> Outcome[T]:
        if event.key in self._consumed:
            self._consumed.discard(event.key)
            return Outcome()
        if event.key not in self._held or self._overlay is None:
            return Outcome((token,))
        self._held.discard(event.key)
        self._overlay.draft.attach(token)
        return Outcome()

    def _silent(self, event: MentionKey, token: T) -> Outcome[T]:
        if self._overlay is None:
            return Outcome((token,))
        self._held.add(event.key)
        self._overlay.draft.attach(token)
        return Outcome()
