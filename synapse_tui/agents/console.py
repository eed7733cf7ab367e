"""An agent's process and its terminal: output in, screen and state out, keys in."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from synapse_tui.core.errors import MessageError
from synapse_tui.core.model import AgentState, ExitStatus, StateReport
from synapse_tui.hooks import HookKind
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.system.pty import Guardian, Handle, PtyProcess, ReadScheduler
from synapse_tui.system.pty.guardian_process import read_table
from synapse_tui.system.pty.process import MOST, StoppedTerminal
from synapse_tui.terminal import (
    LineScrolled,
    Modes,
    ProgramStatus,
    ProgressChanged,
    PromptMark,
    ScrollbackCleared,
    Terminal,
    TerminalEvent,
    encode_focus,
)
from synapse_tui.terminal.events import ignore
from synapse_tui.terminal.style import Rgb

from .answers import AnswerCollector
from .composer import ComposerReading, screen_rows
from .composer_box import end_of_conversation, find_box
from .dialogs import AgentDialog
from .profiles.profile import Profile, Signal
from .state import StateDetector, Timeline

log = logging.getLogger(__name__)

_LINE_END = b"\r\n"
# sequences that rendered history never contains; another program may have changed the file
_FOREIGN = re.compile(
    rb"\x1b(?!\[[0-9;:]*m|\[K|\[[01]\"q|\[\?2027[hl]|\]8;[^\x00-\x1f\x7f]*\x1b\\|\\)"
    rb"|[\x00-\x09\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)


@dataclass(frozen=True, slots=True)
class Past:
    history: bytes  # as rendered by `terminal.dump.History.render`
    saved_at: datetime  # aware

    def show(self, terminal: Terminal) -> None:
        """Put the lines and a mark below them into the scrollback of a new terminal.

        The screen stays blank with the cursor at its top, so that nothing takes the lines for new output.
        Parses about 10 MB/s, so the lines are cut to the size of the scrollback.
        """
        lines = self.history.split(_LINE_END)[-max(1, terminal.scrollback.limit) :]
        text = _FOREIGN.sub(b"", _LINE_END.join(lines))
        terminal.restore(text + b"\x1b[!p\x1b]8;;\x1b\\\x1b[?2027h\r\n" + self._mark().encode() + b"\x1b[m")
        terminal.take_replies()

    def _mark(self) -> str:
        when = self.saved_at.astimezone()
        return f"\x1b[2m── {tr(f'above: until {when:%Y-%m-%d %H:%M}')}"


class Pulse:
    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[bool]] = set()

    def fire(self) -> None:
        for waiter in tuple(self._waiters):
            if not waiter.done():
                waiter.set_result(True)

    async def wait(self, seconds: float | None = None) -> bool:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiters.add(waiter)
        # Called for every output of every agent: `asyncio.wait` would create three more objects each time.
        timer = loop.call_later(seconds, _expire, waiter) if seconds is not None else None
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()


def _expire(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)


MAX_PROCESSES = 32  # maximum processes examined per agent
REMEMBERED = 1.0  # seconds for which a measured processor time is remembered
STALE = 2.0


class TerminalActivity:
    """Measures how long the programs that read a terminal have been idle.

    Short work between two samples shows in the processor time. On systems that do not report it, only elapsed
    time counts.
    """

    def __init__(self, leader: int, clock: Callable[[], float]) -> None:
        self._leader = leader
        self._clock = clock
        self._pids: tuple[int, ...] = (leader,)
        self._listed = float("-inf")
        self._samples: deque[tuple[float, int]] = deque()

    @property
    def stale(self) -> bool:
        return self._clock() - self._listed >= STALE

    async def refresh(self) -> None:
        if not self.stale:
            return
        pids = await asyncio.to_thread(readers_of, self._leader)
        self._listed = self._clock()
        if pids != self._pids:
            self._pids = pids
            self._samples.clear()

    def rested(self, allowed: float = 0.0) -> float:
        """Return the seconds of idleness as of the last sample; 0 while a program runs."""
        # Read the clock before sampling: sampling may take long on a busy machine, and work done meanwhile
        # must not count as earlier.
        begun, samples = self._clock(), self._samples
        # In this order: the time of a running program is reported late, that of a sleeping one is exact.
        runs = self.runs()
        used = sum(map(_processor_time, self._pids))
        while samples and samples[0][0] < begun - REMEMBERED:
            samples.popleft()
        samples.append((self._clock(), used))
        if runs:
            return 0.0
        most = allowed * 1e9
        return max(0.0, begun - next(at for at, before in samples if abs(used - before) <= most))

    def runs(self) -> bool:
        """Whether a program's main thread runs, or waits for a processor."""
        return any(_state(pid) == b"R" for pid in self._pids)

    def runnable(self) -> bool:
        """Whether any thread of the programs runs, or waits for a processor."""
        return any(_state(pid, thread) == b"R" for pid in self._pids for thread in _threads(pid))


def readers_of(leader: int) -> tuple[int, ...]:
    """Return the processes of a session whose standard input is its terminal.

    The reader may be a child that the agent re-executed as; commands and servers of the agent are excluded if
    the system reports their input. Reads the whole process table, so call it in a thread.
    """
    terminal = _input(leader)
    members = [row.key.pid for row in read_table() if row.session == leader and not row.zombie]
    readers = [pid for pid in members if not terminal or _input(pid) in ("", terminal)]
    return tuple(readers[:MAX_PROCESSES]) or (leader,)


def _input(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/fd/0").readlink())
    except OSError:
        return ""


def _processor_time(pid: int) -> int:
    """Return the processor time of a process in ns, all threads; -1 if unknown."""
    try:
        # Clock id of another process, as clock_getcpuclockid(3) makes it: its inverted pid and the kind of
        # clock.
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return -1


def _threads(pid: int) -> list[str]:
    try:
        return [thread.name for thread in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def _state(pid: int, thread: str = "") -> bytes:
    """Return the state of a thread, proc(5); of the first, which reads the keys if there is an event loop."""
    path = f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    # The name is in parentheses and may contain blanks and parentheses.
    return data[data.rfind(b")") + 2 :][:1]


LOOK_AGAIN = 0.005  # seconds between two checks whether the agent is idle
READ_AGAIN = 0.0005  # seconds between two checks whether a key was read, during which output is blocked


class AtRest:
    """Waits for an agent to become idle, and sends keys at that moment."""

    def __init__(
        self,
        process: PtyProcess,
        clock: Callable[[], float],
        *,
        take_in: Callable[[], Awaitable[None]],
        drawing: Callable[[], bool],
    ) -> None:
        self._process = process
        self._clock = clock
        self._take_in = take_in
        self._drawing = drawing
        self.activity = TerminalActivity(process.pid, clock)

    async def settled(self, rest: float, limit: float, allowed: float = 0.0) -> bool:
        """See `AgentTerminal.settled`: earlier work is then on the screen.

        Only waits if the system does not report what programs do.
        """
        await self.activity.refresh()
        deadline = self._clock() + limit
        while True:
            await self._take_in()
            rested = self.activity.rested(allowed)
            if rested and rested >= rest and not self._drawing():
                await self._take_in()
                return True
            if self._clock() >= deadline:
                return False
            await asyncio.sleep(min(max(rest - rested, 0.001), LOOK_AGAIN))

    async def press(self, key: bytes, look: Callable[[], Seen], limit: float) -> Seen | None:
        """See `AgentTerminal.press`; stops the agent's output meanwhile if the system can."""
        with self._process.stopped() as terminal:
            await self._take_in()
            seen = look()
            if terminal is None:
                self._process.write(key)
                return seen
            if self._process.pending or terminal.unread or not self.activity.rested():
                return None
            self._process.write(key)
            read = await self._reads(terminal, self._clock() + limit)
            return seen if read or not terminal.take_back(key) else None

    async def _reads(self, terminal: StoppedTerminal, deadline: float) -> bool:
        worked = False
        while terminal.unread:
            rested = self.activity.rested()
            # Woken and asleep again without reading: it is blocked on drawing.
            if (worked and rested) or self._clock() >= deadline:
                return False
            worked = worked or not rested
            await asyncio.sleep(READ_AGAIN)
        return True


# seconds between two offers of the same keys: at first, and at most
OFFER_AGAIN, OFFER_AGAIN_MOST = 0.002, 0.05
OFFER_FRAME = 0.02  # the same to an agent that was about to draw: what it draws next may be a dialog
# seconds for which keys wait for an agent that computes: it may open a dialog, and read them before it draws
OFFER_WAITS = 0.1
# offers of the same keys to a program that draws first each time, as one that reads after each frame does
OFFER_TRIES = 8
OFFER_AT_ONCE = 0.0005  # seconds in which an idle agent reads keys, without other work meanwhile
# seconds between two checks whether offered keys were read: at first, and at most
OFFER_LOOK, OFFER_LOOK_MOST = 0.001, 0.005
OFFER_PARSE = 0.008  # seconds of parsing before yielding to others while the output is stopped


class Offer:
    """Keys that an agent gets only if it reads them before it draws anything else.

    Keys that are merely written may lie unread while the agent opens a dialog, which then takes them. So the
    agent's output is stopped as by Ctrl+S, all that it has drawn is judged, and the keys are written. An
    agent that does something else first blocks as it draws: the keys are taken back, and what it drew is
    judged before they are offered again. An agent that computes is given a moment to draw; one that computes
    on without drawing then gets its keys as ever. Where the output cannot be stopped, or a program always
    draws first, the keys are written once all output is judged.

    What remains are agents that sleep between the moment in which they take keys for a dialog and its frame.
    """

    def __init__(
        self,
        data: bytes,
        console: AgentConsole,
        activity: TerminalActivity,
        *,
        may: Callable[[], bool],
        read: Callable[[], None],
        done: Callable[[bool], None],
    ) -> None:
        """Offer the keys at once.

        Args:
            data: The keys; what exceeds a terminal's buffer cannot be taken back.
            console: The agent's console.
            activity: What its programs do.
            may: Whether the keys may go to the screen as it is drawn.
            read: Called when the keys were read, before the agent draws what they changed.
            done: Called last: true if the keys were read, false if they may not be sent now.
        """
        self._data = data
        self._console = console
        self._activity = activity
        self._may = may
        self._read = read
        self._done = done
        self._gap = OFFER_AGAIN
        self._waits_until = console.now() + OFFER_WAITS
        self._tries = console.offer_tries
        self._terminal: StoppedTerminal | None = None
        self._written = False
        self._timer: asyncio.Handle | None = None
        self._begin()

    def withdraw(self) -> bool:
        """End the offer; returns whether the keys were read already."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        read = self._written and not self._take_back()
        if read:
            self._read()
        self._resume()
        return read

    def leave(self) -> bool:
        """End the offer with the keys in the terminal, however late they are read; false if not allowed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._written:
            self._console.take_in_for(OFFER_PARSE)
            if not self._may():
                self._resume()
                return False
            self._console.write(self._data)
        self._resume()
        return True

    def _begin(self) -> None:
        self._activity.rested()  # a sample of before
        self._begun = self._console.now()
        self._terminal = self._console.process.stop_output()
        self._judge()

    def _judge(self) -> None:
        # What is left of stopped output is little.
        if not self._console.take_in_for(OFFER_PARSE) and self._terminal is not None:
            self._timer = asyncio.get_running_loop().call_soon(self._judge)
            return
        process, terminal = self._console.process, self._terminal
        if terminal is not None and (self._console.drawing or process.pending or terminal.unread):
            self._retry()
        elif not self._may():
            self._end(read=False)
        elif terminal is not None and self._computes():
            self._retry()
        else:
            self._console.write(self._data)
            # What is larger than the terminal's buffer needs its reader.
            if terminal is None or not self._tries or len(self._data) > MOST:
                self._end(read=True)
            else:
                self._written = True
                # Let an idle agent read: its echo need not wait for the next check.
                deadline = self._console.now() + OFFER_AT_ONCE
                while terminal.unread and self._console.now() < deadline:
                    os.sched_yield()
                self._look()

    def _computes(self) -> bool:
        """Whether the agent computes, and not for longer than it is waited for."""
        runs = self._activity.runs()
        waits = self._console.offer_waits and self._console.now() < self._waits_until
        self._console.offer_waits = waits or not runs
        return runs and waits

    def _look(self) -> None:
        assert self._terminal is not None
        passed = self._console.now() - self._begun
        if self._terminal.unread and not self._blocked(passed):
            if passed > OFFER_LOOK_MOST and self._activity.stale:
                self._console.refresh_activity()
            self._later(min(OFFER_LOOK + passed / 10, OFFER_LOOK_MOST), self._look)
        elif self._terminal.unread and self._take_back():
            self._tries -= 1
            if not self._tries:
                self._console.offer_tries = 1
            self._gap = max(self._gap, OFFER_FRAME)
            self._retry()
        else:
            if self._tries == self._console.offer_tries:
                self._console.offer_tries = OFFER_TRIES
            self._end(read=True)

    def _blocked(self, passed: float) -> bool:
        """Whether the agent has worked since the offer and sleeps without reading: it is about to draw."""
        rested = self._activity.rested()
        return OFFER_LOOK / 2 <= rested < passed and not self._activity.runnable()

    def _take_back(self) -> bool:
        self._written = False
        return (
            self._terminal is not None
            and self._console.process.fd >= 0
            and self._terminal.take_back(self._data)
        )

    def _retry(self) -> None:
        self._resume()
        self._later(self._gap, self._begin)
        self._gap = min(2 * self._gap, OFFER_AGAIN_MOST)

    def _end(self, *, read: bool) -> None:
        if read:
            self._read()
        self._resume()
        self._done(read)

    def _resume(self) -> None:
        if self._terminal is not None:
            self._terminal.resume()
            self._terminal = None

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, action)


Seen = TypeVar("Seen")

LOOK_BYTES = 64 * 1024  # maximum output processed by one look before Enter
# longest parse before yielding to others: 64 kB of some sequences take seconds
FEED_SECONDS = 0.004
_KINDS: Mapping[type, Signal] = {ProgramStatus: "status", ProgressChanged: "progress", PromptMark: "prompt"}
STOP_LOOK = 0.5  # seconds between two looks whether the process is stopped
IDLE_LOOK = 2.0  # while it gets no keys and prints nothing: another program may stop it or let it go on
LAST_SECONDS = 2.0  # seconds in which all output is processed before Enter, and after the end


@dataclass(frozen=True, slots=True)
class ConsoleListener:
    output: Callable[[bytes], None]  # called after the bytes are on the screen
    event: Callable[[TerminalEvent], None]
    state: Callable[[StateReport, StateReport], None]
    scrolled: Callable[[str], None]
    drawn_anew: Callable[[], None]  # after a resize, or where the program clears all that it has printed
    exited: Callable[[ExitStatus], None]


@dataclass(frozen=True, slots=True)
class Adopted:
    handle: Handle
    terminal: bytes  # `dump` of its terminal
    restored: bytes = b""  # `dump_restored` of its terminal
    signals: tuple[TerminalEvent, ...] = ()
    exit: ExitStatus | None = None  # None while it runs


@dataclass(frozen=True, slots=True)
class Launch:
    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    columns: int
    lines: int
    scrollback: int = 5000
    before: Past | None = None  # lines of an earlier terminal
    adopted: Adopted | None = None
    guardian: Guardian | None = None  # kills the process if the host is killed


class AgentConsole:
    """One process of an agent in one terminal; must be created in the running loop."""

    def __init__(
        self,
        profile: Profile,
        launch: Launch,
        *,
        listener: ConsoleListener,
        scheduler: ReadScheduler,
        timeline: Timeline | None = None,
    ) -> None:
        self._released = False
        self._clock = asyncio.get_running_loop().time
        self._profile = profile
        self._listener = listener
        self._scheduler = scheduler
        self._pulse = Pulse()
        self._timer: asyncio.TimerHandle | None = None
        self._empty_since: float | None = None
        self._gone = False
        # reports the end once the last output is processed
        self._end: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self.offer_tries = OFFER_TRIES
        self.offer_waits = True  # whether the agent was at rest before a wait for it was over
        self._resized_early = False
        self._stop_timer: asyncio.TimerHandle | None = None
        self._active = False  # whether it drew or got keys since the last look whether it is stopped
        self._signals: dict[str, TerminalEvent] = {}
        self.process = _process(launch)
        self._at_rest = AtRest(
            self.process,
            self._clock,
            take_in=self._take_in,
            drawing=lambda: self.modes.synchronized or self.terminal.paused,
        )
        self.terminal = Terminal(launch.columns, launch.lines, launch.scrollback, listener=self._event)
        if launch.before is not None:
            launch.before.show(self.terminal)
        self._timeline = timeline if timeline is not None else Timeline()
        if launch.adopted is not None:
            self._go_on(launch.adopted)
        else:
            self.detector = StateDetector(
                profile,
                now=self._clock(),
                timeline=self._timeline,
                runs_command=lambda: self.process.runs_command,
            )
        self.terminal.half_blanks = profile.quirks.half_blanks  # earlier input is not the agent's output
        self.process.start(scheduler, on_data=self._data, on_exit=self._exited)
        self._plan()
        self._look_for_stop_later()  # an adopted process may be stopped

    def _go_on(self, adopted: Adopted) -> None:
        emit, self.terminal.screen.emit = self.terminal.screen.emit, ignore
        self.terminal.restore(adopted.restored)
        self.terminal.feed(adopted.terminal)
        self.terminal.take_replies()
        self.terminal.screen.emit = emit
        # Started long ago: believe its first READY at once.
        startup = self._profile.startup
        self.detector = StateDetector(
            self._profile,
            now=self._clock() - max(startup.delay, startup.timeout),
            timeline=self._timeline,
            report=self._timeline.last,
            runs_command=lambda: self.process.runs_command,
        )
        self.detector.suspended = self.detector.report.state is AgentState.SUSPENDED
        for event in adopted.signals:
            self._signal(event)
        self._update()

    @property
    def signals(self) -> Mapping[str, TerminalEvent]:
        return self._signals

    # -- AgentTerminal ---

    @property
    def alive(self) -> bool:
        return not self._gone and self.process.exit is None

    @property
    def report(self) -> StateReport:
        return self.detector.report

    @property
    def modes(self) -> Modes:
        return self.terminal.modes

    @property
    def allowed(self) -> bool:
        # What reports its state is an agent: a shell's prompt, which would run a message, does not.
        return not self._profile.asks or self._released or self.detector.reports_status

    def allow(self) -> None:
        """Allow messages, as a person has done."""
        self._released = True

    def now(self) -> float:
        return self._clock()

    def reading(self) -> ComposerReading:
        return self.detector.reading

    @property
    def dialog(self) -> AgentDialog | None:
        return self.detector.dialogs.current

    @property
    def announces_dialog(self) -> bool:
        return self.detector.announces_dialog(self._clock())

    def dialog_answered(self) -> None:
        self.detector.dialogs.answered(self._clock())

    def empty_for(self) -> float:
        return self._clock() - self._empty_since if self._empty_since is not None else 0.0

    def screen_text(self) -> str:
        return "\n".join(row.rstrip() for row in self.terminal.display)

    def body(self) -> list[str]:
        rules = self._profile.composer
        box = find_box(self.terminal, screen_rows(self.terminal), rules) if rules is not None else None
        rows = list(self.terminal.display)
        return rows if box is None or rules is None else rows[: end_of_conversation(rows, box, rules)]

    def write(self, data: bytes) -> None:
        self.detector.touched()
        self._send(data)

    def _send(self, data: bytes) -> None:
        """Send what may be no key: answers of the terminal, and its focus."""
        self._look_for_stop_later()
        self._scheduler.expect_echo()
        try:
            self.process.write(data)
        except MessageError as error:
            log.warning("agent does not read", extra={"pid": self.process.pid, "error": error.message})

    def signal(self, number: int) -> None:
        self.process.signal(number)

    def look_for_key(self) -> None:
        # Only output in the kernel's buffer; if there is more, the screen counts as it is.
        if self.alive and not self.terminal.paused:
            self._scheduler.look(self.process.fd)

    def offer(
        self,
        data: bytes,
        may: Callable[[], bool],
        read: Callable[[], None],
        done: Callable[[bool], None],
    ) -> Offer:
        """Offer keys to the agent, which gets them only as long as `may` allows it; see `Offer`."""
        return Offer(data, self, self._at_rest.activity, may=may, read=read, done=done)

    async def give(self, data: bytes, may: Callable[[], bool], limit: float) -> bool:
        result: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        offer = self.offer(data, may, lambda: None, result.set_result)
        try:
            await asyncio.wait([result], timeout=limit)
        except asyncio.CancelledError:
            offer.withdraw()
            raise
        return result.result() if result.done() else offer.leave()

    def take_in_for(self, seconds: float) -> bool:
        """Process waiting output; returns whether all of it was processed in that time."""
        deadline = self._clock() + seconds
        while self.alive and self._scheduler.take(self.process.fd, LOOK_BYTES):
            if self._clock() >= deadline:
                return False
        return True

    @property
    def drawing(self) -> bool:
        """Whether the agent has begun a frame that is not whole yet."""
        return self.detector.drawing(self._clock())

    def refresh_activity(self) -> None:
        """Find out which programs read the terminal, as soon as possible."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._at_rest.activity.refresh(), name="activity")

    async def settled(self, rest: float, limit: float, allowed: float = 0.0) -> bool:
        return await self._at_rest.settled(rest, limit, allowed)

    async def press(self, key: bytes, look: Callable[[], Seen], limit: float) -> Seen | None:
        self.detector.touched()
        return await self._at_rest.press(key, look, limit)

    @property
    def unread(self) -> bool:
        return self.process.unread

    async def drained(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.process.drain()
        except TimeoutError:
            return False
        return True

    async def changed(self, seconds: float | None) -> bool:
        return await self._pulse.wait(seconds)

    def wake(self) -> None:
        self._pulse.fire()

    # -- the session's side ---

    def collector(self, text: str) -> AnswerCollector:
        self.report_scrolled(True)
        composer = self._profile.composer
        pastes, row = (composer.pastes, composer.row) if composer is not None else ((), None)
        box = self.reading().box
        if composer is not None and composer.auto and box is not None and box.prompt:
            row = re.compile(rf"^ *{re.escape(box.prompt)} ")
        hints = composer.hints if composer is not None else ()
        rules = (rule for rule in self._profile.states if rule.state is AgentState.PROCESSING)
        working = [(pattern, rule.tail) for rule in rules for pattern in rule.screen]
        return AnswerCollector(
            text,
            self.body,
            pastes,
            row=row,
            labels=hints,
            above=self._scrolled_off,
            below=self._below,
            working=working,
        )

    def _scrolled_off(self, most: int) -> list[str]:
        back = self.terminal.scrollback
        if self.modes.alternate_screen:
            return []
        return [back[place].text for place in range(max(back.restored, len(back) - most), len(back))]

    def _below(self, rows: int) -> int:
        below = [bool(row.strip()) for row in self.terminal.display[rows:]]
        return len(below) - below[::-1].index(True) if any(below) else 0

    def follow(self, profile: Profile) -> None:
        """Read the screen by a changed profile."""
        self._profile = profile
        self.terminal.half_blanks = profile.quirks.half_blanks
        self._signals = {kind: event for kind, event in self._signals.items() if kind not in profile.ignores}
        self.detector.follow(profile)
        self._update()

    def resize(self, columns: int, lines: int) -> None:
        self._resized_early |= self.detector.report.state is AgentState.STARTING
        self.detector.resized(self._clock())
        self.terminal.resize(columns, lines)
        self.process.resize(columns, lines)
        self._listener.drawn_anew()
        self._answer()
        self._update()

    def reset_terminal(self) -> None:
        self.terminal.reset_modes()
        if self.alive:
            self.signal(signal.SIGWINCH)  # most programs draw again
        self._answer()
        self._update()

    def set_colors(
        self, foreground: Rgb | None, background: Rgb | None, cursor: Rgb | None, dark: bool | None
    ) -> None:
        self.terminal.set_colors(foreground, background, cursor, dark=dark)
        self._answer()

    def hooked(self, kind: HookKind, call: str) -> None:
        """Apply an event of the agent's hooks; waiters look again before the hook is answered."""
        self.detector.hooked(kind, call, self._clock())
        self._update()
        self._pulse.fire()

    def focus(self, focused: bool) -> None:
        if focused and self.alive:
            self._scheduler.focused = self.process.fd
        elif not focused and self._scheduler.focused == self.process.fd:
            self._scheduler.focused = None
        reported = focused or not self._profile.quirks.hides_cursor
        if reported and (data := encode_focus(focused, self.terminal.modes)):
            self._send(data)

    def charge(self, seconds: float) -> None:
        self._scheduler.charge(self.process.fd, seconds)

    def report_scrolled(self, wanted: bool) -> None:
        self.terminal.screen.report_scrolled_lines = wanted

    def hand_over(self) -> Handle | None:
        """Release the process to a newer version of the host; None if it has ended."""
        handle = self.process.hand_over()
        self._cancel_timers()
        return handle

    async def stop(self) -> ExitStatus:
        status = await self.process.terminate()
        if ending := [task for task in (self._end, self._refreshing) if task is not None]:
            await asyncio.wait(ending)
        self._cancel_timers()
        self._pulse.fire()
        return status

    # -- output of the process ---

    def _look_for_stop_later(self) -> None:
        # Nothing reports that another process has stopped; mostly it does so right after keys or output.
        if not self._active and not self._gone:
            self._active = True
            self._look_in(STOP_LOOK)

    def look_for_stop(self) -> None:
        """Look whether the process is stopped, as by SIGSTOP; repeated, often while it is, or is active."""
        if not self.alive:
            return
        stopped = _state(self.process.foreground) == b"T"
        if stopped is not self.detector.suspended:
            self.detector.suspended = stopped
            self._update()
            self._pulse.fire()
        self._look_in(STOP_LOOK if stopped or self._active else IDLE_LOOK)
        self._active = False

    def _look_in(self, seconds: float) -> None:
        self._cancel_stop_timer()
        self._stop_timer = asyncio.get_running_loop().call_later(seconds, self.look_for_stop)

    def _cancel_stop_timer(self) -> None:
        if self._stop_timer is not None:
            self._stop_timer.cancel()
            self._stop_timer = None

    def go_on(self) -> bool:
        """Continue the process; return False if it is not stopped."""
        self.look_for_stop()
        if not self.detector.suspended:
            return False
        self.signal(signal.SIGCONT)
        self.look_for_stop()
        return True

    def _data(self, data: bytes) -> bool:
        self._look_for_stop_later()
        self.terminal.feed(data, FEED_SECONDS)
        self._answer()
        self._update()
        self._listener.output(data)
        self._pulse.fire()
        return self.terminal.paused

    async def _take_in(self) -> None:
        await self._finish_output()
        if self.alive and not self.terminal.paused:
            self._scheduler.take(self.process.fd, LOOK_BYTES)
            await self._finish_output()

    async def _finish_output(self) -> None:
        deadline = self._clock() + LAST_SECONDS
        while self.terminal.paused and self._clock() < deadline:
            await asyncio.sleep(0)
            self._data(b"")

    def _answer(self) -> None:
        if replies := self.terminal.take_replies():
            self._send(replies)

    def _event(self, event: TerminalEvent) -> None:
        if isinstance(event, LineScrolled):
            self._listener.scrolled(event.line.text)
            return
        if isinstance(event, ScrollbackCleared):
            self._listener.drawn_anew()
            return
        if _KINDS.get(type(event), "") in self._profile.ignores:
            return
        self._signal(event)
        self._listener.event(event)

    def _signal(self, event: TerminalEvent) -> None:
        if isinstance(event, ProgramStatus):
            self._signals["status"] = event
        elif isinstance(event, ProgressChanged):
            self._signals["progress"] = event
        self.detector.event(event, self._clock())
        if isinstance(event, PromptMark) and self.detector.marks_outputs:
            self._signals["prompt"] = event

    def _update(self) -> None:
        before = self.detector.report
        report = self.detector.update(self.terminal, self._clock())
        if not self.detector.reading.empty:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = self._clock()
        self._plan()
        if report is not None:
            if self._resized_early and before.state is AgentState.STARTING is not report.state:
                # A program that read the old size before it listened for changes has missed the new one.
                self._resized_early = False
                self.signal(signal.SIGWINCH)
            self._listener.state(report, before)

    def _plan(self) -> None:
        self._cancel_timer()
        deadline = self.detector.deadline
        if deadline is not None and not self._gone:
            self._timer = asyncio.get_running_loop().call_at(deadline, self._due)

    def _due(self) -> None:
        self._timer = None
        self._update()
        self._pulse.fire()

    def _cancel_timers(self) -> None:
        self._cancel_timer()
        self._cancel_stop_timer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _exited(self, status: ExitStatus) -> None:
        if self.terminal.paused:
            self._end = asyncio.create_task(self._exit_once_finished(status))
        else:
            self._exit(status)

    async def _exit_once_finished(self, status: ExitStatus) -> None:
        await self._finish_output()
        self._exit(status)

    def _exit(self, status: ExitStatus) -> None:
        self._gone = True
        self._cancel_timers()
        before = self.detector.report
        report = self.detector.exited(self._clock(), status.words)
        self._listener.state(report, before)
        self._listener.exited(status)
        self._pulse.fire()


def _process(launch: Launch) -> PtyProcess:
    if launch.adopted is not None:
        if launch.adopted.exit is not None:
            return PtyProcess.ended(launch.adopted.handle.pid, launch.adopted.exit)
        return PtyProcess.adopt(launch.adopted.handle, guardian=launch.guardian)
    return PtyProcess.spawn(
        launch.argv,
        cwd=launch.cwd,
        env=launch.environ,
        columns=launch.columns,
        lines=launch.lines,
        guardian=launch.guardian,
    )
