"""Types a message into an agent's composer and submits it, verifying each step on the rendered screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import NamedTuple

from synapse_tui.agents.composer import HEAD, Proof
from synapse_tui.agents.keyboard import Keyboard, presses_enter
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import AgentState
from synapse_tui.messages.reasons import Reason
from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.input import encode_paste

from .gate import STEADY, AgentTerminal, Seen, dialog_open, dialog_words

# seconds that the user's keys wait for a message that is being typed before it gives way
USER_WAITS = 1.5
IDLE = 0.3  # seconds of idleness after which an agent has nothing more to draw
LOOK_AGAIN = 0.05  # seconds between two checks whether it has read its input
TAKES_IN = 10.0  # timeout of the whole wait, in seconds
CLEAR_PAUSE = 0.3
# maximum presses of the clear key, `CLEAR_PAUSE` apart, without an effect that can be read
MAX_CLEARS = 20
MOST_ROWS = 500  # maximum presses if each clears a row
# presses in a row without an effect after which only Backspace is tried, which removes what was typed exactly
FRUITLESS_CLEARS = 3
BACKSPACE = b"\x7f"


class Composing:
    def __init__(self, view: AgentTerminal, keyboard: Keyboard, profile: Profile) -> None:
        self._view = view
        self._keyboard = keyboard
        self._profile = profile
        self._proof: Proof | None = None
        self._said = True  # whether the screen showed the beginning of the text before it was typed

    def stands(self, text: str) -> bool:
        proof = self.proof(text)
        if self._profile.composer is None:
            return proof.on(self._view.screen_text())
        return proof.reads(self._view.reading())

    @property
    def reads_composer(self) -> bool:
        """Whether the profile has a composer; without one only the screen as a whole is known."""
        return self._profile.composer is not None

    @property
    def empty(self) -> bool:
        return self._view.empty_for() >= STEADY

    @property
    def user_waits_too_long(self) -> bool:
        since = self._keyboard.waiting_since
        return since is not None and self._view.now() - since >= USER_WAITS

    def holds(self, text: str, *, alone: bool) -> bool:
        """Whether the composer holds our text or a part of it.

        `alone`: only we have typed since it was empty, so even a few letters of the text are ours.
        """
        if self.stands(text):
            return True
        proof, reading = self.proof(text), self._view.reading()
        if reading.dialog or reading.empty or not (reading.visible or alone):
            return False  # what is in the conversation was sent
        return proof.begun(reading.draft, self._view.screen_text()) or proof.contains(
            reading.draft, 1 if alone else HEAD
        )

    async def clear(self, text: str, *, alone: bool = False) -> bool:
        """Take our text out of the composer; returns False if all or some of it is left.

        What is not ours, or may be only partly, is left alone.
        """
        if not self.stands(text) and not await self.taken_in():
            return False
        return not self.holds(text, alone=alone) or await self._wipe(lambda: self._gone(text))

    async def clear_all(self) -> bool:
        """Empty the composer, whosever text is in it."""
        reading = self._view.reading()
        return reading.empty or (reading.visible and await self._wipe(lambda: self._view.reading().empty))

    async def _wipe(self, gone: Callable[[], bool]) -> bool:
        """Press the clear keys, and Backspace where they have no effect: some clear only a line."""
        fruitless = fruitless_clears = 0
        erase = not self._profile.clear
        for _ in range(MOST_ROWS):
            if dialog_open(self._view) or fruitless >= MAX_CLEARS:
                return False
            before = self._shown()
            for key in (BACKSPACE,) if erase else self._profile.clear:
                if not await self._give(key, CLEAR_PAUSE):
                    return False
            await self._redrawn(before)
            if await self.lasts(gone, self._view.now()):
                return True
            effect = self._shown() != before
            fruitless = 0 if effect else fruitless + 1
            if not erase:
                fruitless_clears = 0 if effect else fruitless_clears + 1
            if not effect or (erase and fruitless_clears < FRUITLESS_CLEARS):
                erase = not erase or not self._profile.clear
        return False

    async def _give(self, data: bytes, limit: float) -> bool:
        """Type something that no dialog may get; returns whether it was typed."""
        return await self._view.give(data, lambda: not dialog_open(self._view), limit)

    def _gone(self, text: str) -> bool:
        proof, tail = self.proof(text), self._view.screen_text()
        if self._profile.composer is None:
            return not proof.on(tail) and not proof.begun("", tail)
        # A composer that is larger than its rules say shows an empty row while text is above it.
        return self._view.reading().empty and (self._said or not proof.begun("", tail))

    def _shown(self) -> str:
        """Return the draft, or the screen if there is none to be seen."""
        reading = self._view.reading()
        return reading.draft if reading.visible else self._view.screen_text()

    async def _redrawn(self, before: str) -> None:
        deadline = self._view.now() + CLEAR_PAUSE
        while self._shown() == before:
            if not await self.change(deadline):
                return

    async def taken_in(self) -> bool:
        deadline = self._view.now() + TAKES_IN
        while self._view.alive and (self._view.unread or not await self._view.settled(IDLE, 2 * IDLE)):
            if self._view.now() >= deadline:
                return not self._view.unread  # some never rest
            await self._view.changed(LOOK_AGAIN)
        return True

    async def lasts(
        self, condition: Callable[[], bool], deadline: float, now: Callable[[], bool] = lambda: False
    ) -> bool:
        """Wait until a condition holds for a moment: a composer that is being redrawn may show anything."""
        since: float | None = None
        while self._view.alive:
            if not condition():
                since = None
                if not await self.change(deadline):
                    return False
                continue
            since = self._view.now() if since is None else since
            if now() or self._view.now() - since >= STEADY:
                return True
            await self._view.changed(since + STEADY - self._view.now())
        return False

    async def change(self, deadline: float) -> bool:
        """Wait for the next change, or until the user has waited too long; returns False on timeout."""
        left = deadline - self._view.now()
        if left <= 0:
            return False
        since = self._keyboard.waiting_since
        if since is not None:
            left = min(left, max(0.05, since + USER_WAITS - self._view.now()))
        await self._view.changed(left)
        return True

    def proof(self, text: str) -> Proof:
        if self._proof is None or self._proof.text != text:
            pastes = self._profile.composer.pastes if self._profile.composer is not None else ()
            self._proof = Proof(text, pastes)
        return self._proof


# seconds within which agents draw changes: they draw at least 30 times a second
FRAME = 0.04
TICKS = 0.001  # seconds of processor time per frame that move a spinner but open no dialog
RESTLESS = 0.5  # seconds in which an agent should rest for a frame; else wait for a moment of sleep
SLEEPS = 0.1  # seconds to wait for such a moment
TRIES = 8  # attempts to press a key on an agent that does something else each time
# seconds for the agent to read Enter; on an overloaded machine it may not run for a while
ENTER_READ = 0.5


class KeyPress:
    """Presses a key that must reach the screen that was checked, as `AgentTerminal.press` does."""

    def __init__(self, view: AgentTerminal, key: bytes) -> None:
        self._view = view
        self._key = key

    async def rest(self, limit: float = RESTLESS) -> bool:
        """Wait until the agent has rested for a frame; returns at once if it is idle."""
        return await self._view.settled(FRAME, limit)

    async def rest_in_turn(self) -> bool:
        """Wait until the agent has rested for a frame during a turn, when spinners may move."""
        return await self._view.settled(FRAME, RESTLESS, TICKS)

    async def press(self, look: Callable[[], Seen], *, into_turn: bool = False) -> Seen | None:
        for _ in range(TRIES):
            if into_turn and not await self.rest_in_turn():
                look()
                continue
            if not into_turn and not await self.rest():
                await self._view.settled(0, SLEEPS)
            if (seen := await self._view.press(self._key, look, ENTER_READ)) is not None:
                return seen
        return None


APPEAR = 3.0  # seconds within which a short text must appear in the composer; longer ones get more
BYTES_A_SECOND = 20_000  # minimum rate at which agents read a long paste
SLOW = 4  # factor of Enter's time limit for an agent that is busy
LATE = 30.0  # seconds after a key within which a busy agent may not have drawn it yet
SETTLES = 8.0  # seconds after Enter after which the user's keys follow in any case

Commit = Callable[[], Awaitable[None]]


class Typed(StrEnum):
    SUBMITTED = "submitted"
    REMOVED = "removed"  # not in the composer, and not submitted
    BLOCKED = "blocked"  # a dialog opened; the text may be in the composer under it
    # written to an agent that does not read; nothing else may be typed before it does
    UNREAD = "unread"
    LEFT = "left"  # in the composer, unsent, and needs a person
    UNCERTAIN = "uncertain"  # Enter was pressed, but the screen does not show whether the text was submitted
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class TypingResult:
    outcome: Typed
    reason: str = ""  # why it was not submitted; empty if it was
    entered: bool = False


class _Mark(NamedTuple):
    since: float
    tail: str


class _Stop(Exception):
    def __init__(self, outcome: Typed, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class _Gone(_Stop):
    def __init__(self) -> None:
        super().__init__(Typed.LEFT, Reason.NOT_SHOWN)


class Typist(Composing):
    """Types into one agent; the caller checks the gate and types one message at a time.

    The user's keys are held meanwhile. After `BLOCKED` and `UNREAD`, and while a dialog is open, they stay
    held until the caller releases them.
    """

    def __init__(self, view: AgentTerminal, keyboard: Keyboard, profile: Profile) -> None:
        super().__init__(view, keyboard, profile)
        self._enter = KeyPress(view, profile.submit.enter)
        self._in_turn = False
        self._alone = False  # whether only we can have typed since the composer was empty
        self._given_up = ""
        self._went_at = self._went_since = float("-inf")

    def follow(self, profile: Profile) -> None:
        self._profile = profile
        self._enter = KeyPress(self._view, profile.submit.enter)

    async def type(self, text: str, commit: Commit, *, into_turn: bool = False) -> TypingResult:
        self._in_turn, self._given_up, self._alone = into_turn, "", True
        self._said = self.proof(text).begun("", self._view.screen_text())
        self._keyboard.hold()
        try:
            await self._put(text)
        except _Stop as stop:
            return await self._give_way(text, stop, entered=False)
        return await self._submit(text, commit)

    async def rests_in_turn(self) -> bool:
        """Whether an agent in a turn comes to rest, as it must for Enter."""
        return await self._enter.rest_in_turn()

    async def keys_are_shown(self) -> bool:
        """Whether a recently typed draft would be on the screen; until then "empty" may be out of date."""
        if not self._keyboard.drafting or self._view.now() - self._keyboard.last_key >= LATE:
            return True
        return not self._view.unread and await self._view.settled(IDLE, 2 * IDLE, TICKS)

    async def submit(self, text: str, commit: Commit) -> TypingResult:
        self._in_turn, self._given_up, self._alone = False, "", False
        self._said = True
        self._keyboard.hold()
        return await self._submit(text, commit)

    @property
    def in_turn(self) -> bool:
        """Whether the last text was typed while the agent worked."""
        return self._in_turn

    @property
    def gave_up(self) -> bool:
        return bool(self._given_up)

    def give_up(self, reason: str) -> None:
        """Remove the text that is being typed, for that reason, unless Enter was pressed."""
        self._given_up = reason
        self._view.wake()

    def settles_in(self) -> float:
        submit, passed = self._profile.submit, self._view.now() - self._went_at
        begins = submit.begin - passed if self._view.report.since <= self._went_since else 0.0
        settles = min(SETTLES - passed, submit.settle - self._view.empty_for()) if submit.settle else 0.0
        return max(0.0, begins, settles)

    # -- before Enter ---

    async def _put(self, text: str) -> None:
        limit = APPEAR + len(text.encode()) / BYTES_A_SECOND
        await self._insert_mode()
        await self._write(text, limit)
        begun = self._view.now()
        await self._until_it_stands(text, begun + limit)
        pause = begun + self._profile.submit.pause
        await self._enter.rest(pause - self._view.now())
        while (left := pause - self._view.now()) > 0:
            self._check_dialog()
            await self._view.changed(left)

    async def _insert_mode(self) -> None:
        rules = self._profile.composer
        if not self._view.reading().vi_normal or rules is None or rules.vi is None:
            return
        deadline = self._view.now() + APPEAR
        for key in rules.vi.keys:
            await self._type_unless_asked(key, APPEAR)
        if not await self.lasts(self._takes_text, deadline):
            self._check_dialog()
            raise _Stop(Typed.REMOVED, Reason.VI_NORMAL)

    def _takes_text(self) -> bool:
        reading = self._view.reading()
        return reading.empty and not reading.vi_normal

    async def _write(self, text: str, limit: float) -> None:
        submit = self._profile.submit
        if submit.method == "paste" and self._view.modes.bracketed_paste:
            await self._type_unless_asked(encode_paste(text, self._view.modes), limit)
        else:
            chunk = submit.chunk or len(text)
            # Without bracketed paste a line feed may submit, and a tab may complete.
            flat = (
                " ".join(text.split("\n")).replace("\t", " ")
                if not self._view.modes.bracketed_paste
                else text
            )
            for start in range(0, len(flat), chunk):
                await self._type_unless_asked(flat[start : start + chunk].encode(), limit)
                if start + chunk < len(flat):
                    await asyncio.sleep(submit.chunk_pause)
        if not await self._view.drained(limit):
            self._check_dialog()
            raise _Stop(Typed.UNREAD, Reason.UNREAD)

    async def _type_unless_asked(self, data: bytes, limit: float) -> None:
        self._check_dialog()
        if not await self._give(data, limit):
            self._check_dialog()

    async def _until_it_stands(self, text: str, deadline: float) -> None:
        while not self.stands(text):
            self._check_dialog()
            if self.user_waits_too_long:
                raise _Stop(Typed.REMOVED, Reason.TYPING)
            if not await self.change(deadline):
                raise _Stop(Typed.LEFT, Reason.NOT_SHOWN)

    def _check_dialog(self) -> None:
        if not self._view.alive:
            raise _Stop(Typed.EXITED, Reason.AGENT_EXITED)
        if dialog_open(self._view):
            raise _Stop(Typed.BLOCKED, dialog_words(self._view))
        if self._given_up:
            raise _Stop(Typed.REMOVED, self._given_up)

    # -- Enter and after ---

    async def _submit(self, text: str, commit: Commit) -> TypingResult:
        before: _Mark | None = None
        try:
            for _ in range(1 + self._profile.submit.retries):
                await self._apart_from_user()
                await _committed(commit, entered=before is not None)
                before = await self._press(text, before)
                self._given_up = ""  # too late
                if await self._went(text, before):
                    self._went_at = self._view.now()
                    self._went_since = float("-inf") if self._in_turn else before.since
                    if not self.settles_in():
                        self._release()
                    return TypingResult(Typed.SUBMITTED, entered=True)
        except _Stop as stop:
            return await self._give_way(text, stop, entered=before is not None)
        return await self._give_way(text, _Stop(Typed.LEFT, Reason.NO_ENTER), entered=True)

    async def _apart_from_user(self) -> None:
        while (left := self._keyboard.apart_in(self._view.now())) > 0:
            self._check_dialog()
            await self._view.changed(left)

    async def _press(self, text: str, before: _Mark | None) -> _Mark:

        def look() -> _Mark:
            self._check_dialog()
            if self._in_turn and self.user_waits_too_long:
                raise _Stop(Typed.REMOVED, Reason.TYPING)
            if not self.stands(text):
                raise _Gone
            tail = self._view.screen_text() if self._profile.composer is None else ""
            return _Mark(self._view.report.since, tail)

        try:
            seen = await self._enter.press(look, into_turn=self._in_turn)
        except _Gone:
            if before is None:
                raise
            return before
        if seen is None:
            raise _Stop(Typed.LEFT, "the agent is busy")
        return seen

    async def _went(self, text: str, before: _Mark) -> bool:
        """Wait until the screen shows that Enter was processed; False if the text is still in the composer.

        A busy agent may be about to read it, whatever it draws meanwhile: another Enter, the clear key or a
        user's key would then go into the text.
        """
        verify = self._profile.submit.verify
        limit = self._view.now() + SLOW * verify
        while True:
            deadline = self._view.now() + verify
            if await self.lasts(lambda: self._taken(text, before), deadline, lambda: self._works(before)):
                return True
            if not self._view.alive:
                raise _Stop(Typed.EXITED, Reason.AGENT_EXITED)
            if dialog_open(self._view):
                raise _Stop(Typed.BLOCKED, dialog_words(self._view))
            if self._given_up or self._view.now() >= limit or await self._view.settled(IDLE, 2 * IDLE):
                break
        if not self.stands(text):
            raise _Stop(Typed.UNCERTAIN, Reason.NO_PROOF)
        return False

    def _taken(self, text: str, before: _Mark) -> bool:
        if self._profile.composer is None:
            return self._works(before) or self._view.screen_text() != before.tail
        reading = self._view.reading()
        if reading.visible and not reading.dialog:
            return not self.stands(text)
        if self._profile.composer.auto and not reading.dialog:
            return not self.stands(text)  # a line editor leaves the text, and the cursor leaves the text
        return self._works(before) and not reading.dialog

    def _works(self, before: _Mark) -> bool:
        report = self._view.report
        return report.since > before.since and report.state is AgentState.PROCESSING

    # -- failure ---

    async def _give_way(self, text: str, stop: _Stop, *, entered: bool) -> TypingResult:
        outcome, reason = stop.outcome, stop.reason
        if outcome is Typed.BLOCKED:
            return TypingResult(outcome, reason, entered)
        if not entered and await self._is_unread(outcome):
            return TypingResult(Typed.UNREAD, Reason.UNREAD)
        if outcome is Typed.LEFT and self.empty and not entered:
            outcome, reason = Typed.REMOVED, Reason.NO_TEXT
        elif outcome in (Typed.LEFT, Typed.REMOVED):
            outcome = await (self._take_out(text, outcome) if entered else self._remove(text))
        if outcome in (Typed.LEFT, Typed.UNCERTAIN) and not self.empty:
            # The user's text follows ours for a person to check; both must not be sent as one.
            self._keyboard.drop_enters()
        self._release()
        return TypingResult(outcome, reason, entered)

    async def _is_unread(self, outcome: Typed) -> bool:
        if self._view.alive and self._view.unread and outcome is Typed.REMOVED:
            await self.taken_in()
        return self._view.alive and self._view.unread

    async def _take_out(self, text: str, outcome: Typed) -> Typed:
        awaited = self._given_up or self._keyboard.waiting_since is not None
        if not awaited or not self.stands(text) or not await self.clear(text):
            return outcome
        # A slow Enter empties the composer just as the clear key does.
        return Typed.UNCERTAIN

    async def _remove(self, text: str) -> Typed:
        # The user's keys are held since the composer was empty.
        seen = self._profile.composer is None and self.holds(text, alone=self._alone)
        cleared = await self.clear(text, alone=self._alone)
        return Typed.REMOVED if cleared and (self.empty or seen) else Typed.LEFT

    def _release(self) -> None:
        """Release the user's keys, unless they would answer a dialog that has opened since."""
        if not dialog_open(self._view):
            self._keyboard.release()


async def _committed(commit: Commit, *, entered: bool) -> None:
    try:
        await commit()
    except HistoryError as error:
        raise _Stop(Typed.LEFT if entered else Typed.REMOVED, error.message) from error


# seconds within which an idle agent empties its composer after Enter, if it ever does
FETCHES = 2.0
BUSY = 8.0  # the same for a busy agent
# seconds within which a busy agent has read and drawn its input
TAKES = 3.0


class Pace:
    """Waits until an agent has processed its input: it is idle, and Enter has emptied its composer.

    Agents that read several keys at once may act on Enter before or after they have added the text.
    """

    def __init__(self, view: AgentTerminal) -> None:
        self._view = view
        self._entered = False
        self._tasks: set[asyncio.Task[None]] = set()

    def sent(self, data: bytes) -> None:
        self._entered = presses_enter(data) and not dialog_open(self._view)

    def taken(self, follow: Callable[[], None]) -> None:
        """Call back once the agent has processed its input, or on timeout."""
        task = asyncio.get_running_loop().create_task(self._wait(follow), name="pace")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Wait no longer; what was to follow does not."""
        waiting = tuple(self._tasks)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def _wait(self, follow: Callable[[], None]) -> None:
        begun = self._view.now()
        # Undrawn text may be added to the composer even now.
        await self._view.settled(FRAME, TAKES)
        while self._stands() and (passed := self._view.now() - begun) < BUSY:
            if passed < FETCHES:
                await self._view.changed(FETCHES - passed)
            elif await self._at_rest():
                break
        follow()

    async def _at_rest(self) -> bool:
        return not self._view.unread and await self._view.settled(IDLE, 2 * IDLE)

    def _stands(self) -> bool:
        reading = self._view.reading()
        return self._entered and self._view.alive and reading.visible and bool(reading.draft)
