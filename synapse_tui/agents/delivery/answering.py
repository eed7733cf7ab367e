"""Types a person's answer to an agent's dialog, given away from its pane (design, decision 22)."""

from __future__ import annotations

from collections.abc import Callable

from synapse_tui.agents.dialogs import FLICKER, AgentDialog
from synapse_tui.agents.keyboard import DELIBERATE, Keyboard, presses_stop
from synapse_tui.agents.profiles.profile import key_bytes
from synapse_tui.messages.reasons import Reason
from synapse_tui.system.dataclass import dataclass

from .gate import AgentTerminal, changed_before
from .typist import KeyPress

LOOK_FIRST = 0.5  # seconds that a dialog must have looked as it does before it can be answered
MOVES = 1.0  # seconds within which the mark must follow an arrow key
CLOSES = 3.0  # seconds within which an answered dialog must close

NEW = "just appeared: look again"
CHANGED = "changed: look again"
GONE = "the question is gone"
UNREADABLE = "its options cannot be read: answer it in its pane"
TYPES = "you are typing in its pane"
BUSY = "a message is being typed: try again"
NO_MOVE = "it does not follow the arrow keys: answer it in its pane"
NOT_TAKEN = "it is busy and took no key: try again"
STILL_OPEN = "it was answered, but is still open"


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """What became of an answer.

    Attributes:
        closed: The dialog is gone, or another one has taken its place.
        answered: The key that answers was pressed; never true without `closed` unless it is still open.
        reason: Why not, for people; empty if it was closed.
    """

    closed: bool
    answered: bool = False
    reason: str = ""


class _Refusal(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Answerer:
    """Answers the dialogs of one agent; the caller gives one answer at a time and types nothing meanwhile.

    Every key is sent only while the dialog that the person saw is on the screen, and only if the agent reads
    it before it does anything else. The key that answers is pressed once: Enter on the option with the words
    that were chosen, Escape where these say so, or the key that the agent names for it.
    """

    def __init__(self, view: AgentTerminal, keyboard: Keyboard, denied: Callable[[float], None]) -> None:
        self._view = view
        self._keyboard = keyboard
        self._denied = denied

    async def answer(self, serial: int, fingerprint: str, option: str) -> AnswerOutcome:
        begun = self._view.now()
        try:
            dialog = self._seen(serial, fingerprint)
            wanted = self._wanted(dialog, option)
            chosen = dialog.options[wanted]
            key = key_bytes(chosen.key or ("escape" if chosen.escape else "enter"))
            while not (chosen.key or presses_stop(key)) and dialog.marked != wanted:
                dialog = await self._move(dialog, wanted, begun)
            pressed = self._view.now()
            await self._press(key, dialog, begun)
        except _Refusal as refusal:
            return AnswerOutcome(closed=False, reason=refusal.reason)
        self._keyboard.guard.answered(dialog, key)
        if presses_stop(key):
            self._denied(pressed)
        return await self._closed(dialog)

    def _seen(self, serial: int, fingerprint: str) -> AgentDialog:
        """Return the dialog on the screen, which must be the one that the person saw."""
        self._view.look_for_key()
        dialog = self._current()
        if (dialog.serial, dialog.fingerprint) != (serial, fingerprint):
            raise _Refusal(CHANGED)
        if self._view.now() - dialog.since < LOOK_FIRST:
            raise _Refusal(NEW)
        if self._view.unread:
            raise _Refusal(Reason.UNREAD)
        if self._view.now() - self._keyboard.last_key < DELIBERATE:
            raise _Refusal(TYPES)
        return dialog

    def _current(self) -> AgentDialog:
        if not self._view.alive:
            raise _Refusal(Reason.AGENT_EXITED)
        if self._view.dialog is None or self._view.reading().visible:
            raise _Refusal(GONE)
        return self._view.dialog

    def _wanted(self, dialog: AgentDialog, option: str) -> int:
        wanted = dialog.find(option)
        if not dialog.options or (dialog.marked is None and not any(each.key for each in dialog.options)):
            raise _Refusal(UNREADABLE)
        if wanted is None:
            raise _Refusal(CHANGED)
        return wanted

    async def _move(self, dialog: AgentDialog, wanted: int, begun: float) -> AgentDialog:
        """Move the mark by one option, and return the dialog with the mark there."""
        assert dialog.marked is not None
        step = 1 if wanted > dialog.marked else -1
        names = ("left", "right") if dialog.across else ("up", "down")
        await self._press(key_bytes(names[step > 0]), dialog, begun)
        deadline = self._view.now() + MOVES
        while self._view.dialog is None or self._view.dialog.marked == dialog.marked:
            if not await changed_before(self._view, deadline):
                raise _Refusal(NO_MOVE if self._view.dialog is not None else GONE)
        moved = self._view.dialog
        self._check(dialog)
        if moved.marked != dialog.marked + step:
            raise _Refusal(CHANGED)
        return moved

    async def _press(self, key: bytes, dialog: AgentDialog, begun: float) -> None:
        def look() -> bool:
            self._check(dialog)
            if self._current().fingerprint != dialog.fingerprint:
                raise _Refusal(CHANGED)
            if self._keyboard.last_key > begun:
                raise _Refusal(TYPES)
            return True

        look()
        if await KeyPress(self._view, key).press(look) is None:
            raise _Refusal(NOT_TAKEN)

    def _check(self, dialog: AgentDialog) -> None:
        current = self._current()
        if current.serial != dialog.serial or not current.same_question(dialog):
            raise _Refusal(CHANGED)

    async def _closed(self, dialog: AgentDialog) -> AnswerOutcome:
        """Wait until the dialog is gone for good, or another one is there."""
        deadline, gone_at = self._view.now() + CLOSES, None
        while self._view.alive:
            now, current = self._view.now(), self._view.dialog
            if current is not None and current.serial != dialog.serial:
                break
            gone_at = None if current is not None else now if gone_at is None else gone_at
            if gone_at is not None and now - gone_at >= FLICKER:
                break
            if now >= deadline:
                self._view.dialog_answered()
                return AnswerOutcome(closed=False, answered=True, reason=STILL_OPEN)
            await self._view.changed(min(deadline, (gone_at or deadline) + FLICKER) - now)
        return AnswerOutcome(closed=True, answered=True)
