"""What the widgets are given of a conversation with an external agent, and the lines that it is drawn as."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from rich.cells import cell_len, chop_cells

from synapse_tui.a2a.external.conversation import Entry
from synapse_tui.model import AgentState, DeliveryState, Task, TaskState

from .marks import Mark, delivery_mark, state_mark
from .parties import party
from .text import one_line, printable, shorten

Role = Literal["head", "own-head", "own", "text", "progress", "question", "note", "alert", "blank"]
"""How a piece of a line looks; the names of the component classes of `TalkLog` without `talk--`."""
WIDEST = 100
"""Cells of a line of text: longer ones are hard to read."""
OWN_SHARE = 0.75
"""How much of the width the person's own messages may take."""
MAX_LINES = 5000
"""Lines of one entry that are shown."""
MAX_LINE = 10_000
"""Characters of a line that are wrapped together: when it grows, only the last of them are wrapped again."""
TAB = 4
_WORDS = re.compile(r"\s*\S+|\s+$")
_MODIFIERS = re.compile("[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
"""What joins and modifies emoji: programs disagree on the widths."""
_OPEN = (TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED)


@dataclass(frozen=True, slots=True)
class TalkPicture:
    """A conversation as the widgets show it.

    Attributes:
        alias: The agent's alias.
        name: Its own name.
        protocol: How it is called.
        entries: What was said, oldest first.
        tasks: Its tasks, oldest first.
        labels: What hosted agents are called, by id.
        known: Whether the agent is still in the registry.
    """

    alias: str
    name: str = ""
    protocol: str = ""
    entries: Sequence[Entry] = ()
    tasks: Sequence[Task] = ()
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    known: bool = True

    @property
    def open_task(self) -> Task | None:
        """The newest task that goes on or asks something; None for none."""
        return next((task for task in reversed(self.tasks) if not task.state.final), None)

    @property
    def asking(self) -> Task | None:
        """The newest task that asks something; None for none."""
        found = (task for task in reversed(self.tasks) if task.state is TaskState.INPUT_REQUIRED)
        return next(found, None)

    @property
    def state(self) -> tuple[AgentState, str]:
        """What the agent does for us, in the words of hosted agents, and what a person should know of it."""
        asking, going = self.asking, self.open_task
        if asking is not None:
            return AgentState.WAITING, one_line(asking.reason)
        if going is not None:
            return AgentState.PROCESSING, ""
        last = self.tasks[-1] if self.tasks else None
        if last is not None and last.state in (TaskState.FAILED, TaskState.REJECTED):
            return AgentState.ERROR, one_line(last.reason)
        return AgentState.READY, ""

    @property
    def mark(self) -> Mark:
        """The mark of its state."""
        return state_mark(self.state[0])

    def author(self, entry: Entry) -> str:
        """Who said something."""
        return party(entry.sender_id, self.labels) if entry.kind == "sent" else self.alias


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that looks alike."""

    text: str
    role: Role


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log.

    Attributes:
        pieces: What stands in it, after the indent.
        indent: Cells before it.
        key: The entry that it belongs to; empty for none.
    """

    pieces: tuple[Piece, ...] = ()
    indent: int = 0
    key: str = ""


Known = dict[str, tuple[object, tuple[Line, ...]]]
"""Lines of entries that were made before, by the entry's key, with what they were made of."""


def lines_of(picture: TalkPicture, width: int, now: datetime, known: Known | None = None) -> list[Line]:
    """A conversation as lines.

    Args:
        picture: The conversation.
        width: Cells of a line.
        now: The time now, aware.
        known: Lines that were made before; an answer that streams in changes one entry of hundreds.
    """
    return _Lines(picture, width, now, {} if known is None else known).made()


class _Lines:
    """Makes the lines of one picture."""

    def __init__(self, picture: TalkPicture, width: int, now: datetime, known: Known) -> None:
        self._picture = picture
        self._width = width
        self._now = now
        self._known = known
        self._day = now.astimezone().date()
        last = {entry.task_id: entry.key for entry in picture.entries if entry.kind == "sent"}
        self._fates = {last[task.id]: _fate(task) for task in picture.tasks if task.id in last}
        """How the task stands of the last message about it, by the message's key."""

    def made(self) -> list[Line]:
        """All lines."""
        lines: list[Line] = []
        before: Entry | None = None
        for entry in self._picture.entries:
            joined = before is not None and _belongs(before, entry)
            if not joined and lines:
                lines.append(Line())
            lines += self._lines(entry, headed=not joined)
            before = entry
        return lines

    def _lines(self, entry: Entry, *, headed: bool) -> tuple[Line, ...]:
        made_of = (
            entry,
            headed,
            self._width,
            self._fates.get(entry.key),
            self._picture.author(entry),
            self._day,
        )
        known = self._known.get(entry.key)
        if known is None or known[0] != made_of:
            known = self._known[entry.key] = (made_of, tuple(self._of(entry, headed=headed)))
        return known[1]

    def _of(self, entry: Entry, *, headed: bool) -> Iterator[Line]:
        if entry.kind == "note":
            yield from _note_lines(entry, self._width)
        elif entry.kind == "sent":
            yield from self._own(entry)
        else:
            if headed:
                yield Line(tuple(_head(self._picture, entry, self._now)), 1, entry.key)
            texts = wrapped(entry.text, min(self._width - 4, WIDEST))
            yield from (Line((Piece(text, _ROLES.get(entry.kind, "text")),), 3, entry.key) for text in texts)

    def _own(self, entry: Entry) -> Iterator[Line]:
        """The person's own messages stand at the right, in a box as wide as they need."""
        width = self._width
        room = max(8, min(int(width * OWN_SHARE), WIDEST) - 2)
        texts = wrapped(entry.text, room)
        box = min(room, max(map(cell_len, texts), default=0)) + 2
        mark = self._fates.get(entry.key)
        head = f"{self._picture.author(entry)}  {clock_time(entry.at, self._now)}"
        tail = f"  {mark.glyph} {mark.word}" if mark is not None and width > 40 else ""
        indent = max(0, width - cell_len(head + tail) - 1)
        loud = mark is not None and mark.colour in ("state-error", "state-waiting")
        yield Line((Piece(head, "own-head"), Piece(tail, "alert" if loud else "note")), indent, entry.key)
        for text in texts:
            filled = f" {text}{' ' * (box - 2 - cell_len(text))} "
            yield Line((Piece(filled, "own"),), max(0, width - box - 1), entry.key)


_ROLES: Mapping[str, Role] = {"progress": "progress", "question": "question"}


def _belongs(before: Entry, entry: Entry) -> bool:
    """Whether what is said goes on with what was said before, without a head of its own."""
    quiet = ("progress", "answer")
    return before.task_id == entry.task_id and before.kind in quiet and entry.kind in quiet and not entry.name


def _head(picture: TalkPicture, entry: Entry, now: datetime) -> Iterator[Piece]:
    asks = entry.kind == "question"
    yield Piece(f"{picture.alias} asks" if asks else picture.alias, "question" if asks else "head")
    if entry.name:
        yield Piece(f" · {shorten(one_line(entry.name), 40)}", "note")
    yield Piece(f"  {clock_time(entry.at, now)}", "note")
    if entry.growing:
        yield Piece("  ◐", "head")


def _fate(task: Task) -> Mark:
    mark = delivery_mark(task)
    if task.delivery is DeliveryState.SUBMITTED and task.state is TaskState.SUBMITTED:
        return Mark("→", "state-working", "taken")
    return mark


def _note_lines(entry: Entry, width: int) -> Iterator[Line]:
    for at, text in enumerate(wrapped(entry.text, max(8, min(width - 8, WIDEST)))):
        yield Line((Piece(f"{'  ' if at else '· '}{text}", "note"),), 3, entry.key)


def clock_time(at: datetime, now: datetime) -> str:
    """When something was said: the time today, else the date too."""
    there, here = at.astimezone(), now.astimezone()
    return there.strftime("%H:%M") if there.date() == here.date() else there.strftime("%Y-%m-%d %H:%M")


def wrapped(text: str, width: int) -> tuple[str, ...]:
    """A text as lines of at most so many cells; its own line ends stay."""
    lines: list[str] = []
    for line in text.split("\n", MAX_LINES + 1):
        for part in _parts_of(line):
            lines += wrapped_line(part, max(2, width))
            if len(lines) > MAX_LINES:
                break
        if len(lines) > MAX_LINES:
            return (*lines[:MAX_LINES], "… copy it to see all of it")
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines) or ("",)


def _parts_of(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > MAX_LINE:
        end = line.rfind(" ", start, start + MAX_LINE) + 1
        end = end if end > start else start + MAX_LINE
        yield line[start:end]
        start = end
    yield line[start:]


@lru_cache(maxsize=2048)
def wrapped_line(line: str, width: int) -> tuple[str, ...]:
    """One line as lines that fit: between words, and before and after each wide character."""
    text = _MODIFIERS.sub("", printable(line.replace("\t", " " * TAB))) if line else ""
    if cell_len(text) <= width:
        return (text,)
    done: list[str] = []
    current = ""
    for word in _breakable(text):
        if cell_len(current) + cell_len(word.rstrip()) <= width:
            current += word
            continue
        if current.strip():
            done.append(current.rstrip())
        *full, current = chop_cells(word.lstrip() if current.strip() else word, width) or [""]
        done += full
    return (*done, current.rstrip()) if current.strip() else tuple(done)


def _breakable(text: str) -> Iterator[str]:
    for word in _WORDS.findall(text):
        start = 0
        for at, char in enumerate(word):
            if unicodedata.east_asian_width(char) in "WF":
                if start < at:
                    yield word[start:at]
                yield char
                start = at + 1
        if start < len(word):
            yield word[start:]
