"""A scripted agent without a process: it takes keys as an agent's composer would, in a time of its own."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import re
from collections.abc import Callable

from synapse_tui.agents.composer import ComposerReading
from synapse_tui.agents.delivery.gate import Seen
from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.agents.keyboard import DialogGuard, Keyboard
from synapse_tui.agents.profiles.profile import ComposerRules, Profile, Submit
from synapse_tui.core.model import AgentState, StateReport
from synapse_tui.terminal.events import Modes

RULES = ComposerRules(
    prompt=re.compile("^> "), row=re.compile("^  "), pastes=(re.compile(r"\[Pasted \+(?P<more>\d+) lines\]"),)
)
PASTE = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)


def make_profile(**fields: object) -> Profile:
    """A profile with a composer, quick to submit."""
    values: dict[str, object] = {
        "name": "fake",
        "display": "Fake",
        "command": "fake",
        "composer": RULES,
        "submit": Submit(pause=0.05),
    }
    return Profile(**{**values, **fields})  # type: ignore[arg-type]


class FakeAgent:
    """What delivery sees of an agent (`view.AgentTerminal`), with a virtual clock.

    Attributes:
        received: Every write, in order.
        submitted: What was in the composer when Enter was taken.
        swallow: So many Enters are ignored.
        busy_until: When its program comes to rest.
        never_rests: Whether it works all the time.
        reads_at: When it reads what it was sent.
        restless: So many Enters are not given to it, since it did something else.
        approved: Whether an Enter fell into a dialog.
    """

    def __init__(self) -> None:
        self.time = 100.0
        self.alive = True
        self.modes = Modes(bracketed_paste=True)
        self.draft = ""
        self.visible = True
        self.empty_since = 0.0
        self.busy_until = 0.0
        self.asks = False
        self.approved = False
        self.denied = 0
        self.swallow = 0
        self.restless = 0
        self.never_rests = False
        self.reads_at = 0.0
        self.echo_delay = 0.01
        self.works_after_enter = True
        self.received: list[bytes] = []
        self.submitted: list[str] = []
        self.signals: list[int] = []
        self.keys: dict[bytes, Callable[[], None]] = {}
        self.on_paste: Callable[[str], None] | None = None
        self.report = StateReport(AgentState.READY, "fake", "", self.time)
        self._script: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.keyboard = Keyboard(
            self.write, self.now, guard=DialogGuard(self.now, self._dialog), later=self.after
        )

    # what a test does

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Let something happen later."""
        heapq.heappush(self._script, (self.time + seconds, next(self._numbers), action))

    def set_state(self, state: AgentState, detail: str = "") -> None:
        self.report = StateReport(state, "fake", "", self.time, detail)

    def open_dialog(self) -> None:
        self.asks = True
        self.set_state(AgentState.WAITING)

    def close_dialog(self) -> None:
        self.asks = False
        self.set_state(AgentState.READY)

    def _dialog(self) -> AgentDialog | None:
        return AgentDialog("fake") if self.asks else None

    # what delivery sees

    def now(self) -> float:
        return self.time

    def reading(self) -> ComposerReading:
        return ComposerReading(
            self.visible and not self.asks, self.draft if not self.asks else "", dialog=self._dialog()
        )

    @property
    def allowed(self) -> bool:
        return True

    @property
    def dialog(self) -> AgentDialog | None:
        return self._dialog()

    @property
    def announces_dialog(self) -> bool:
        return False

    def dialog_answered(self) -> None:
        pass

    def look_for_key(self) -> None:
        self.look()

    def empty_for(self) -> float:
        return self.time - self.empty_since if self.visible and not self.asks and not self.draft else 0.0

    def screen_text(self) -> str:
        return f"old text\n> {self.draft}"

    def look(self) -> None:
        while self._script and self._script[0][0] <= self.time:
            heapq.heappop(self._script)[2]()

    def signal(self, number: int) -> None:
        self.signals.append(number)

    async def press(self, key: bytes, look: Callable[[], Seen], limit: float) -> Seen | None:
        await asyncio.sleep(0)
        self.look()
        seen = look()
        if self.restless:
            self.restless -= 1
            return None
        self.write(key)
        return seen

    async def give(self, data: bytes, may: Callable[[], bool], limit: float) -> bool:
        await asyncio.sleep(0)
        self.look()
        if may():
            self.write(data)
            return True
        return False

    async def settled(self, rest: float, limit: float, allowed: float = 0.0) -> bool:
        await asyncio.sleep(0)
        if self.time >= self.busy_until and not self.never_rests:
            return True
        await self.changed(limit)
        return False

    def wake(self) -> None:
        self.after(0, lambda: None)

    @property
    def unread(self) -> bool:
        return self.time < self.reads_at

    async def drained(self, seconds: float) -> bool:
        await asyncio.sleep(0)
        return True

    async def changed(self, seconds: float | None) -> bool:
        await asyncio.sleep(0)
        end = None if seconds is None else self.time + seconds
        if self._script and (end is None or self._script[0][0] <= end):
            when, _, action = heapq.heappop(self._script)
            self.time = max(self.time, when)
            action()
            return True
        if end is None:
            await asyncio.get_running_loop().create_future()  # nothing will ever change
        self.time = end or self.time
        return False

    def write(self, data: bytes) -> None:
        self.received.append(data)
        if data in self.keys:
            self.keys[data]()
            return
        paste = PASTE.fullmatch(data)
        if paste is not None:
            text = paste[1].decode().replace("\r", "\n")
            self.after(self.echo_delay, lambda: self._insert(text))
        elif data == b"\r":
            self.after(self.echo_delay, self._enter)
        elif data == b"\x15":
            self.after(self.echo_delay, self._clear)
        elif data == b"\x1b":
            self.after(self.echo_delay, self._escape)
        else:
            self.after(self.echo_delay, lambda: self._insert(data.decode(), typed=True))

    def _insert(self, text: str, *, typed: bool = False) -> None:
        if self.asks:
            return
        if self.on_paste is not None and not typed:
            self.on_paste(text)
        else:
            self.draft += text

    def _enter(self) -> None:
        if self.asks:
            self.approved = True
        elif self.swallow:
            self.swallow -= 1
        elif self.draft:
            self.submitted.append(self.draft)
            self.draft, self.empty_since = "", self.time
            if self.works_after_enter:
                self.set_state(AgentState.PROCESSING)

    def _clear(self) -> None:
        if not self.asks:
            self.draft = ""

    def _escape(self) -> None:
        if self.asks:
            self.denied += 1
            self.close_dialog()
