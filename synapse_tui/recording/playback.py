"""A recording on its way through our terminal: forwards at any speed, backwards from pictures it kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.dump import dump_screen

from .asciicast import OUTPUT, Event, Recording
from .mirror import Mirror

KEYFRAME_CHARACTERS = 512 * 1024
"""Output after which the picture is kept: going back reads about so much again, at most."""
TURN_CHARACTERS = 128 * 1024
"""Output that one turn takes in at most, so that keys are heard."""
SLOWEST, FASTEST = 1 / 64, 64.0


@dataclass(frozen=True, slots=True)
class _Keyframe:
    """What there is to go on from in the midst of a recording."""

    time: float
    raw: float
    offset: int
    columns: int
    lines: int
    picture: bytes


class Playback:
    """What a recording shows at a time.

    Args:
        recording: The file.
        idle_limit: Seconds that a pause between two events takes at most; None for as long as it was.

    Attributes:
        mirror: The screen at the present time.
        time: The present time: seconds since the beginning, pauses as long as they are allowed to be.

    Raises:
        SynapseError: The file is broken; whatever reads on in it raises this, too.
    """

    def __init__(self, recording: Recording, idle_limit: float | None = None) -> None:
        header = recording.header
        self.mirror = Mirror(header.columns, header.lines)
        self._recording = recording
        self._idle_limit = idle_limit
        self._characters = 0
        """Output since a picture was kept."""
        self._events: Iterator[tuple[Event, int]] = iter(())
        self.time = self._at = self._raw = 0.0
        self._offset = recording.first
        self._next: Event | None = None
        self._next_time = self._next_raw = 0.0
        self._next_offset = recording.first
        self._keyframes = [_Keyframe(0.0, 0.0, recording.first, header.columns, header.lines, b"")]
        self._go_to(self._keyframes[0])

    @property
    def next_time(self) -> float | None:
        """When the next event happens; None at the end."""
        return None if self._next is None else self._next_time

    def step(self) -> int:
        """Go to the next event, if there is one.

        Returns:
            How many characters it put out.
        """
        event = self._next
        if event is None:
            return 0
        self._at, self._raw, self._offset = self._next_time, self._next_raw, self._next_offset
        self.time = self._at
        size = self._take(event)
        self._read()
        self._keep(size)
        return size

    def go_on(self, time: float, most: int) -> bool:
        """Go forwards to a time.

        Args:
            time: Not before the present one.
            most: Characters after which it stops on the way.

        Returns:
            Whether it got there, or to the end.
        """
        while self._next is not None and self._next_time <= time:
            most -= self.step()
            if most <= 0:
                return False
        if self._next is not None:
            self.time = time
        return True

    def seek(self, time: float) -> None:
        """Go to any time; at most to the beginning and to the end."""
        time = max(time, 0.0)
        if time < self.time:
            self._go_to(next(frame for frame in reversed(self._keyframes) if frame.time <= time))
        while not self.go_on(time, TURN_CHARACTERS):
            pass

    def finish(self) -> None:
        """Go to the end."""
        while self._next is not None:
            self.step()

    def _take(self, event: Event) -> int:
        if event.code == OUTPUT:
            self.mirror.feed(event.data.encode("utf-8", "replace"))
            return len(event.data)
        if event.size is not None:
            self.mirror.resize(*event.size)
        return 0

    def _read(self) -> None:
        """Read the next event; a time before the last one counts as the same."""
        self._next, self._next_offset = next(self._events, (None, self._offset))
        if self._next is not None:
            self._next_raw = max(self._raw, self._next.time)
            pause = self._next_raw - self._raw
            self._next_time = self._at + (pause if self._idle_limit is None else min(pause, self._idle_limit))

    def _keep(self, size: int) -> None:
        self._characters += size
        if self._characters < KEYFRAME_CHARACTERS or self._offset <= self._keyframes[-1].offset:
            return
        self._characters = 0
        terminal = self.mirror.terminal
        at = (self._at, self._raw, self._offset, terminal.columns, terminal.lines)
        self._keyframes.append(_Keyframe(*at, dump_screen(terminal)))

    def _go_to(self, frame: _Keyframe) -> None:
        terminal = Terminal(frame.columns, frame.lines, 0)
        terminal.feed(frame.picture)
        terminal.take_replies()
        self.mirror.replace(terminal)
        self.time = self._at = frame.time
        self._raw, self._offset = frame.raw, frame.offset
        self._events = self._recording.events(frame.offset)
        self._read()


class Player:
    """Plays at the pace of a clock.

    Args:
        playback: What is played, from its present time on.
        clock: Seconds that go by.
        speed: How much faster than it was.
    """

    def __init__(self, playback: Playback, clock: Callable[[], float], speed: float = 1.0) -> None:
        self.paused = False
        self.speed = speed
        self._playback = playback
        self._clock = clock
        self._base, self._since = playback.time, clock()

    @property
    def ended(self) -> bool:
        """Whether all has been played."""
        return self._playback.next_time is None

    @property
    def wait(self) -> float | None:
        """Seconds until something happens; None when nothing does by itself."""
        following = self._playback.next_time
        if self.paused or following is None:
            return None
        return max(0.0, (following - self._now()) / self.speed)

    def advance(self) -> None:
        """Play what is due; when it is too much at once, the clock waits for it."""
        if self.paused:
            return
        if not self._playback.go_on(max(self._playback.time, self._now()), TURN_CHARACTERS):
            self._settle()

    def pause(self) -> None:
        """Stop, or go on."""
        self.paused = not self.paused
        self._settle()

    def step(self) -> None:
        """Go to the next event and stop there."""
        self.paused = True
        self._playback.step()
        self._settle()

    def accelerate(self, factor: float) -> None:
        """Play faster by a factor, or slower where it is less than 1."""
        self.advance()
        self.speed = min(max(self.speed * factor, SLOWEST), FASTEST)
        self._settle()

    def move(self, seconds: float) -> None:
        """Go forwards, or backwards where it is negative."""
        self._playback.seek(self._playback.time + seconds)
        self._settle()

    def _now(self) -> float:
        return self._base + (self._clock() - self._since) * self.speed

    def _settle(self) -> None:
        """Count from the present time of the playback and of the clock on."""
        self._base, self._since = self._playback.time, self._clock()
