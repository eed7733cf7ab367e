"""Plays recordings through a terminal and detectors, at the times at which they were made."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from synapse_tui.agents.composer import ComposerReading
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.state import StateDetector
from synapse_tui.core.model import AgentState
from synapse_tui.terminal import Terminal, TerminalEvent
from tests.profiles import shipped
from tests.terminal.recordings import facts_of, output_of

Change = tuple[bytes, bytes | Callable[[re.Match[bytes]], bytes]]
"""A pattern and what stands in its place."""


@dataclass(frozen=True)
class Moment:
    """What was known after some output, until the next moment."""

    time: float
    state: AgentState
    reading: ComposerReading
    rule: str = ""


@dataclass
class Replay:
    """A whole recording, as one detector saw it."""

    marks: list[tuple[str, float]]
    moments: list[Moment] = field(default_factory=list)
    inputs: list[tuple[float, bytes]] = field(default_factory=list)

    def scene(self, name: str) -> tuple[float, float]:
        starts = [start for _, start in self.marks] + [float("inf")]
        index = [mark for mark, _ in self.marks].index(name)
        return starts[index], starts[index + 1]

    def keys(self, scene: str) -> list[tuple[float, bytes]]:
        start, end = self.scene(scene)
        return [(time, data) for time, data in self.inputs if start <= time < end]

    def between(self, start: float, end: float) -> list[Moment]:
        """All that was shown between two times, what stood at the first one included."""
        before = [moment for moment in self.moments if moment.time <= start][-1:]
        return before + [moment for moment in self.moments if start < moment.time < end]

    def states(self, start: float, end: float) -> set[AgentState]:
        return {moment.state for moment in self.between(start, end)}

    def at(self, time: float) -> Moment:
        return [moment for moment in self.moments if moment.time <= time][-1]

    def spans(self) -> list[tuple[float, float, AgentState]]:
        found: list[tuple[float, float, AgentState]] = []
        end = self.moments[-1].time
        for moment in self.moments:
            if not found or found[-1][2] is not moment.state:
                found = [*found[:-1], (found[-1][0], moment.time, found[-1][2])] if found else []
                found.append((moment.time, end, moment.state))
        return found


@cache
def profile(name: str) -> Profile:
    """The profile of the agent of a recording: its name begins with the agent's."""
    return shipped().profiles[name.split("-", maxsplit=1)[0]]


@cache
def replay(agent: str) -> Replay:
    return replays(agent, [profile(agent)])[0]


class _Watcher:
    """One detector, and what it says at which time."""

    def __init__(self, profile: Profile, marks: list[tuple[str, float]]) -> None:
        self.detector = StateDetector(profile, now=0.0)
        self.replay = Replay(marks)

    def look(self, terminal: Terminal, time: float) -> None:
        self.detector.update(terminal, time)
        report = self.detector.report
        self.replay.moments.append(Moment(time, report.state, self.detector.reading, report.rule))

    def take(self, terminal: Terminal, time: float, keys: bytes | None) -> None:
        if keys is None:
            self.look(terminal, time)
        else:
            self.replay.inputs.append((time, keys))

    def wait(self, terminal: Terminal, until: float) -> None:
        while self.detector.deadline is not None and self.detector.deadline < until:
            self.look(terminal, self.detector.deadline)


def replays(
    name: str,
    profiles: Sequence[Profile],
    changes: Sequence[Change] = (),
    listener: Callable[[float, TerminalEvent], None] = lambda _time, _event: None,
) -> list[Replay]:
    """The recording as several profiles see it."""
    record, output = recording(name, changes)
    marks = [(name, time) for name, _, time in record["marks"]]
    watchers = [_Watcher(each, marks) for each in profiles]
    clock = [0.0]

    def listen(event: TerminalEvent) -> None:
        listener(clock[0], event)
        for watcher in watchers:
            watcher.detector.event(event, clock[0])

    terminal = Terminal(record["cols"], record["rows"], listener=listen)
    for time, kind, *rest in record["events"]:
        for watcher in watchers:
            watcher.wait(terminal, time)
        clock[0] = time
        if kind == "r":
            terminal.resize(rest[0], rest[1])
        elif kind == "o":
            terminal.feed(next(output))
        for watcher in watchers:
            watcher.take(terminal, time, base64.b64decode(rest[0]) if kind == "i" else None)
    return [watcher.replay for watcher in watchers]


def recording(name: str, changes: Sequence[Change]) -> tuple[dict[str, Any], Iterator[bytes]]:
    """What was recorded, and the pieces of its output with the changes made to them."""
    record, data = facts_of(name), output_of(name)
    ends = [rest[0] + rest[1] for _, kind, *rest in record["events"] if kind == "o"]
    for change in changes:
        changed, ends = _changed(data, ends, change)
        assert changed != data, f"nothing in the recording is {change[0]!r}"
        data = changed
    return record, iter([data[start:end] for start, end in zip([0, *ends], ends, strict=False)])


def _changed(data: bytes, ends: Sequence[int], change: Change) -> tuple[bytes, list[int]]:
    """Replace bytes; pieces end where they did, or behind what was put in there."""
    pattern, new = change
    parts: list[bytes] = []
    moved: list[int] = []
    place, shift, rest = 0, 0, iter(ends)
    end = next(rest, None)
    for match in re.finditer(pattern, data, re.DOTALL):
        text = new(match) if callable(new) else new
        while end is not None and end <= match.start():
            moved.append(end + shift)
            end = next(rest, None)
        shift += len(text) - len(match[0])
        while end is not None and end < match.end():
            moved.append(match.end() + shift)
            end = next(rest, None)
        parts += [data[place : match.start()], text]
        place = match.end()
    while end is not None:
        moved.append(end + shift)
        end = next(rest, None)
    return b"".join([*parts, data[place:]]), moved
