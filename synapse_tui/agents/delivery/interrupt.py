"""Interrupts an agent's turn with the agent's own keys or signal, without ending the agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from synapse_tui.agents.composer import Proof
from synapse_tui.agents.keyboard import APART, Keyboard
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.model import USER, AgentState, Sender
from synapse_tui.messages.reasons import Reason
from synapse_tui.system.dataclass import dataclass

from .gate import AgentTerminal, changed_before, dialog_open

DENY_TIME = 0.7  # seconds within which a dialog must close after the deny keys
DENIALS = 3  # maximum dialogs dismissed in a row
CLEAR_TIME = 1.0
LINES_CLEARED = 40
READS = 0.02  # seconds between two checks whether the agent has read a key
CTRL_C = b"\x03"

IDLE = frozenset({AgentState.READY, AgentState.ERROR})


@dataclass(frozen=True, slots=True)
class InterruptOutcome:
    stopped: bool
    alive: bool
    seconds: float
    reason: str = ""  # why it did not stop, for people; empty if it did
    restored: str = ""


def interrupted_by(sender: Sender) -> str:
    """Return why a turn has ended."""
    return f"interrupted by {'you' if sender.sender_id == USER.sender_id else sender.sender_id}"


class Interrupter:
    """Interrupts one agent; holds the user's keys meanwhile, since Escape before a key makes it Alt+key."""

    def __init__(self, view: AgentTerminal, keyboard: Keyboard, profile: Profile) -> None:
        self._view = view
        self._keyboard = keyboard
        self._profile = profile
        self._pressed = float("-inf")
        self._over: Callable[[], bool] = lambda: False

    async def run(
        self, submitted: Iterable[Proof] = (), over: Callable[[], bool] = lambda: False
    ) -> InterruptOutcome:
        self._over = over
        begun, restored = self._view.now(), ""
        async with self._alone():
            reason = await self._stop()
            if not reason and self._view.alive:
                restored = await self._clear_restored(submitted)
        seconds = self._view.now() - begun
        if not self._view.alive:
            return InterruptOutcome(stopped=True, alive=False, seconds=seconds, reason=Reason.AGENT_EXITED)
        return InterruptOutcome(
            stopped=not reason, alive=True, seconds=seconds, reason=reason, restored=restored
        )

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        held = self._keyboard.on_hold
        self._keyboard.hold()
        try:
            yield
            while self._keyboard.waiting_since is not None:
                if not await changed_before(self._view, self._pressed + APART):
                    break
        finally:
            if not held and not self._asked():
                self._keyboard.release()

    def _press(self, key: bytes) -> None:
        self._pressed = self._view.now()
        self._view.write(key)

    async def _stop(self) -> str:
        if not await self._deny():
            return "a dialog stays open: answer it"
        if self._view.report.state in IDLE or not self._view.alive:
            return ""
        if not self._may_press():
            return f"the agent is {self._view.report.state.lower()}, and its interrupt would end it"
        for _ in range(2 if self._profile.interrupt.again else 1):
            if await self._press_until_stopped():
                return ""
            # The agent may have asked something in between.
            if not await self._deny():
                return "a dialog stays open: answer it"
        return "the turn did not stop"

    def _may_press(self) -> bool:
        """Whether the interrupt is safe: Ctrl+C and signals end many idle agents."""
        interrupt = self._profile.interrupt
        deadly = bool(interrupt.signal) or CTRL_C in interrupt.keys
        return self._view.report.state is AgentState.PROCESSING or not deadly

    async def _deny(self) -> bool:
        for _ in range(DENIALS):
            if not self._asked():
                return True
            for place, key in enumerate(self._profile.deny):
                if place and await self._pause(self._profile.interrupt.gap, self._idle):
                    break
                self._press(key)
            deadline = self._view.now() + DENY_TIME
            while self._asked():
                if not await changed_before(self._view, deadline):
                    break
        return not self._asked()

    def _asked(self) -> bool:
        return self._view.alive and dialog_open(self._view)

    async def _press_until_stopped(self) -> bool:
        interrupt = self._profile.interrupt
        if await self._apart_from_user():
            return True
        if interrupt.signal:
            self._view.signal(interrupt.signal)
        for place, key in enumerate(interrupt.keys):
            if place and await self._pause(interrupt.gap, self._stopped):
                return True
            self._press(key)
        deadline = self._view.now() + interrupt.timeout
        while not self._stopped():
            if not await changed_before(self._view, deadline):
                return False
        return True

    async def _apart_from_user(self) -> bool:
        while (left := self._keyboard.apart_in(self._view.now())) > 0:
            if self._view.report.state in IDLE or not self._view.alive:
                return True
            await self._view.changed(left)
        return False

    async def _pause(self, seconds: float, over: Callable[[], bool]) -> bool:
        """Wait between two keys; returns True as soon as it is over, since another key would do harm."""
        # Two Escapes read at once by a busy agent become a different key.
        deadline = self._view.now() + self._profile.interrupt.timeout
        while self._view.unread and self._view.now() < deadline:
            if over():
                return True
            await self._view.changed(READS)
        deadline = self._view.now() + seconds
        while await changed_before(self._view, deadline):
            if over():
                return True
        return over()

    def _idle(self) -> bool:
        return not self._view.alive or self._view.report.state in IDLE

    def _stopped(self) -> bool:
        if not self._view.alive or self._over():
            return True
        report, interrupt = self._view.report, self._profile.interrupt
        if report.state in interrupt.stopped or report.state in IDLE:
            return True
        return interrupt.screen is not None and interrupt.screen.search(self._view.screen_text()) is not None

    def restored(self, submitted: Iterable[Proof]) -> str:
        """Return the submitted text that the composer contains and nothing else; empty for none."""
        reading = self._view.reading()
        if not reading.visible:
            return ""
        return next((proof.text for proof in submitted if proof.restored(reading.draft)), "")

    async def clear_restored(self, submitted: Iterable[Proof]) -> str:
        async with self._alone():
            return await self._clear_restored(submitted)

    async def _clear_restored(self, submitted: Iterable[Proof]) -> str:
        text = self.restored(submitted)
        if text:
            await self._clear()
        return text

    async def _clear(self) -> None:
        for _ in range(LINES_CLEARED):
            reading = self._view.reading()
            if not reading.visible or not reading.draft:
                return
            for key in self._profile.clear:
                self._press(key)
            deadline = self._view.now() + CLEAR_TIME
            while self._view.reading().draft == reading.draft:
                if not await changed_before(self._view, deadline):
                    return
