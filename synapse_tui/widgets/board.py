"""The board: all agents by urgency, and the chosen one with what it asks, which can be answered from here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from textual import events
from textual.geometry import Offset, Region
from textual.timer import Timer

from synapse_tui.core.model import AgentState
from synapse_tui.settings.actions import BOARD_KEYS, PLACES, Place
from synapse_tui.system.language import tr

from .agent_rows import Line
from .board_drawing import (
    CURSOR,
    Asked,
    BoardView,
    Detail,
    DialogOption,
    Memo,
    Readiness,
    TimelineEvent,
    draw,
)
from .board_model import BoardModel, BoardRow
from .fit import Hint, Piece, width_of
from .segment_bar import PieceWidget
from .states import SPINNER_INTERVAL

if TYPE_CHECKING:
    from textual.events import Key

LOOK_SECONDS = 1.0  # how often durations are updated
PICTURE_SECONDS = 0.25  # how often the picture of the chosen agent follows its screen
DEAD_SECONDS = 0.5  # after a dialog has appeared or changed on the board, until it can be answered
TOO_SOON = tr("too soon after this appeared: look, then press it again")
_COMMANDS = {key: command.id for command in BOARD_KEYS for key in command.keys}
_ACTIONS = ("board", "new_agent", "help")  # not on an agent; what is not handled here is an action on one
# what can be done with an agent that has ended, and with one that did not start
_ENDED_TOO = frozenset({"focus_agent", "restart_agent", "close_agent", "rename_agent"})
_FAILED_TOO = {"restart_agent": tr("retry"), "close_agent": tr("remove")}
_MOVES = {"up": -1, "down": 1, "first": -10_000, "last": 10_000}


class BoardSource(Protocol):
    """What the board reads, and what its keys do."""

    project: str

    def rows(self) -> Sequence[BoardRow]:
        """Return a row for each agent."""

    def detail(self, row: BoardRow) -> Detail:
        """Return what is shown of the chosen agent."""

    def picture_version(self, agent_id: str) -> object:
        """Return a value that changes whenever the agent's screen may have changed."""

    def timeline_events(self) -> Sequence[TimelineEvent]:
        """Return what happened lately, newest first."""

    def file_changed(self, file: str) -> None:
        """Note that an agent has written a file, which is named as locks name it."""

    def perform(self, action_id: str, *arguments: str) -> None:
        """Run an action of the application."""

    def answer(self, asked: Asked, choice: DialogOption) -> None:
        """Answer a dialog, if it is still the one that was shown."""


class Answering:
    """Decides when the shown dialog can be answered: a key that was meant for another one must not count."""

    def __init__(self) -> None:
        self._shown: Asked | None = None
        self._since = float("-inf")
        self._changed = False
        self._sent: tuple[str, int, str] | None = None
        self.whole = True  # whether all lines of the dialog are shown

    def show(self, asked: Asked | None, now: float) -> None:
        before, self._shown = self._shown, asked
        if asked is None:
            self._changed = False
        elif before is None or _binding(before) != _binding(asked):
            self._changed = before is not None and before.agent_id == asked.agent_id
            self._since = now
            self._sent = None

    def sent(self, asked: Asked) -> None:
        self._sent = _binding(asked)

    def refused(self, now: float) -> None:
        """Show the dialog again after an answer to it was refused."""
        self._sent, self._since, self._changed = None, now, True

    def readiness(self, now: float) -> Readiness:
        if self._shown is not None and self._sent == _binding(self._shown):
            return "sent"
        if not self.whole:
            return "hidden"
        if now < self._since + DEAD_SECONDS:
            return "changed" if self._changed else "resting"
        return "ready"

    def wakes(self, now: float) -> float | None:
        """Return the seconds until the dialog can be answered; None if time alone does not change that."""
        left = self._since + DEAD_SECONDS - now
        return left if self._shown is not None and left > 0 else None


def _binding(asked: Asked) -> tuple[str, int, str]:
    return asked.agent_id, asked.serial, asked.fingerprint


class Board(PieceWidget, can_focus=True):
    """Draws the board and handles its keys; only cells that changed are drawn again."""

    DEFAULT_CSS = "Board { width: 1fr; height: 1fr; background: $ground; color: $ink; display: none; }"

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.clock = clock
        self.source: BoardSource | None = None
        self.model = BoardModel()
        self.answering = Answering()
        self.empty = ""
        self.notice: Sequence[Piece] = ()
        self.find: str | None = None
        self._covered = False  # whether a dialog has the keys
        self._refusal = ("", "")  # agent id and reason of the last refused answer
        self._detail: Detail | None = None
        self._version: object = None
        self._frame = 0
        self._memo = Memo()
        self._lines: list[Line] = []
        self._tickers: list[Timer] = []
        self._spinner: Timer | None = None
        self._following = False
        self._settling: Timer | None = None
        self._waking: Timer | None = None

    def keys_here(self) -> Place:
        return PLACES["board"]

    # Showing

    def on_mount(self) -> None:
        for seconds, work in (
            (LOOK_SECONDS, self.look),
            (PICTURE_SECONDS, self._follow_picture),
        ):
            self._tickers.append(self.set_interval(seconds, work, pause=True))
        self._spinner = self.set_interval(SPINNER_INTERVAL, self._turn, pause=True)

    def begin(self, active: str) -> None:
        """Start to follow the agents; choose the one that needs the user most, else the active one."""
        self._following = True
        for timer in self._tickers:
            timer.resume()
        self.find = None
        self.model.find("")
        self.look()
        first = next((row for row, _state in self.model.rows if row.agent.needs_attention), None)
        self.choose(first.agent_id if first is not None else active)

    def end(self) -> None:
        self._following = False
        for timer in self._tickers:
            timer.pause()
        if self._spinner is not None:
            self._spinner.pause()

    @property
    def _shown(self) -> bool:
        return self.source is not None and self.is_attached and self.display and self.size.height > 0

    def look(self) -> None:
        """Read everything again."""
        if self.source is not None and self.display:
            self.model.show(self.source.rows(), self.clock())
            works = any(row.agent.state is AgentState.PROCESSING for row, _state in self.model.rows)
            if self._spinner is not None:
                (self._spinner.resume if works and self._following else self._spinner.pause)()
            self._look_at_chosen()

    def _look_at_chosen(self) -> None:
        row, source = self.model.chosen_row, self.source
        if row is None or source is None:
            self._detail = None
        else:
            self._version = source.picture_version(row.agent_id)
            self._detail = source.detail(row)
        if self._detail is None or self._detail.asked is None:
            self._refusal = ("", "")
        self.answering.show(self._detail.asked if self._detail is not None else None, self.clock())
        self._draw()

    def _follow_picture(self) -> None:
        row = self.model.chosen_row
        if row is None or self.source is None or not self._shown:
            return
        if self.source.picture_version(row.agent_id) != self._version:
            self._look_at_chosen()

    def _turn(self) -> None:
        if self._shown and self.app.app_focus and self.app.animation_level != "none":
            self._frame += 1
            self._draw()

    def on_resize(self) -> None:
        self._lines = []
        self.look()

    def cover(self, covered: bool) -> None:
        """Take the keys away while a dialog has them, or show them again."""
        self._covered = covered
        self._draw()

    def show_notice(self, notice: Sequence[Piece]) -> None:
        self.notice = notice
        self._draw()

    def refuse(self, agent_id: str, reason: str) -> None:
        self._refusal = (agent_id, reason)
        self.answering.refused(self.clock())
        self.look()

    # Drawing

    def _draw(self) -> None:
        if not self._shown:
            return
        view = self._view()
        drawing = draw(view, self.size.width, self.size.height, self._memo)
        if drawing.whole != self.answering.whole:
            self.answering.whole = drawing.whole or self._asked is None
            view = replace(view, readiness=self.answering.readiness(self.clock()))
            drawing = draw(view, self.size.width, self.size.height, self._memo)
        self._show_lines(drawing.lines)
        self._plan()

    def _view(self) -> BoardView:
        source = self.source
        refused, reason = self._refusal
        return BoardView(
            source.project if source is not None else "",
            self.model.rows,
            self.model.counts,
            self.model.chosen,
            self._detail,
            self.answering.readiness(self.clock()),
            reason if refused == self.model.chosen else "",
            source.timeline_events() if source is not None else (),
            [] if self._covered else self._hints(),
            self.find,
            self.notice,
            "" if self.find else self.empty,
            self._frame,
        )

    def _style(self, piece: Piece) -> str:
        return piece.style if "$select" in piece.style else super()._style(piece)

    def lines(self) -> Sequence[Line]:
        return self._lines

    def _show_lines(self, lines: list[Line]) -> None:
        before, self._lines = self._lines, lines
        if self.find is not None:
            left = list(takewhile(lambda piece: piece.text != CURSOR, lines[-1]))
            self.app.cursor_position = Offset(self.region.x + width_of(left), self.region.y + len(lines) - 1)
        if len(before) != len(lines):
            self.refresh()
            return
        regions = [
            Region(start, y, end - start, 1)
            for y, (old, new) in enumerate(zip(before, lines, strict=True))
            if old != new
            for start, end in [_difference(old, new, self.size.width)]
        ]
        if regions:
            self.refresh(*regions)

    def _plan(self) -> None:
        """Set the timers for what time alone changes."""
        now = self.clock()
        self._settling = self._later(self._settling, self.model.unsettled(now), self.look)
        self._waking = self._later(self._waking, self.answering.wakes(now), self._draw)

    def _later(self, timer: Timer | None, seconds: float | None, work: Callable[[], None]) -> Timer | None:
        if timer is not None:
            timer.stop()
        return self.set_timer(max(seconds, 0.01), work) if seconds is not None else None

    # Keys

    @property
    def _asked(self) -> Asked | None:
        return self._detail.asked if self._detail is not None else None

    def _hints(self) -> list[Hint]:
        """Return the keys that do something now."""
        if self.find is not None:
            return [Hint("Enter", "choose", "enter"), Hint("Esc", "show all", "escape")]
        row, asked = self.model.chosen_row, self._asked
        alive = row is not None and row.runs
        can = {each.id: each.id in _ACTIONS or alive for each in BOARD_KEYS}
        failed = row is not None and row.agent.failed is not None
        can["focus_agent"] = row is not None and not failed
        can["restart_agent"] = can["close_agent"] = row is not None and not alive
        can["answer"] = asked is not None and bool(asked.options) and self.answering.whole
        can["compose"] = row is not None and alive and row.agent.receives
        can["changes"] = row is not None and alive and not row.agent.external
        others = (other for other, _state in self.model.rows if row is None or other.agent_id != row.agent_id)
        can["next"] = any(other.agent.needs_attention for other in others)
        can["find"] = len(self.model.rows) > 1
        hints = []
        for each in BOARD_KEYS:
            if each.hint and can[each.id]:
                key = self._answer_keys(asked) if each.id == "answer" and asked is not None else each.label
                word = _FAILED_TOO.get(each.id, each.hint) if failed else each.hint
                hints.append(Hint(key, word, each.keys[0]))
        return hints

    def _answer_keys(self, asked: Asked) -> str:
        letters = [choice.key for choice in asked.options if choice.key]
        count = len(asked.options)
        return " ".join([*sorted(letters, reverse=True), f"1-{count}" if count > 1 else "1"])

    def press(self, event: Key) -> None:
        """Handle a key at once, before the next one, which may be for a pane that this one opens."""
        self.model.pressed(self.clock())
        if self.find is not None:
            self._press_in_find(event)
        else:
            character = event.character or ""
            command = _COMMANDS.get(event.key) or _COMMANDS.get(character, "")
            if command:
                self._do(command, character)
        self._plan()

    def _do(self, command: str, character: str = "") -> None:
        row, source = self.model.chosen_row, self.source
        if source is None:
            return
        if command in _ACTIONS:
            source.perform(command)
        elif command == "find":
            self.find = ""
            self._draw()
        elif command in _MOVES or command == "next":
            if command == "next":
                self.model.next_calling()
            else:
                self.model.step(_MOVES[command])
            self._look_at_chosen()
        elif row is not None:
            if command == "answer":
                self._answer(character)
            elif row.runs or command in (_ENDED_TOO if row.agent.failed is None else _FAILED_TOO):
                source.perform(command, row.agent_id)

    def _answer(self, key: str) -> None:
        asked, source = self._asked, self.source
        if asked is None or source is None:
            return
        choice = next((option for option in asked.options if key in (option.key, str(option.number))), None)
        readiness = self.answering.readiness(self.clock())
        if choice is not None and readiness in ("resting", "changed"):
            self._refusal = (asked.agent_id, TOO_SOON)
            self._draw()
        elif choice is not None and readiness == "ready":
            self._refusal = ("", "")
            self.answering.sent(asked)
            source.answer(asked, choice)
            self._draw()

    def _press_in_find(self, event: Key) -> None:
        find = self.find or ""
        if event.key == "escape":
            self.find = None
        elif event.key == "enter":
            chosen, self.find = self.model.chosen, None
            self.model.find("")
            self.model.choose(chosen)
        elif event.key in ("up", "down"):
            self.model.step(-1 if event.key == "up" else 1)
        elif event.key == "backspace":
            self.find = find[:-1]
        elif event.is_printable and event.character:
            self.find = find + event.character
        self.model.find(self.find or "")
        self._look_at_chosen()

    def choose(self, agent_id: str) -> None:
        self.model.choose(agent_id)
        self._look_at_chosen()

    # The mouse

    def on_mouse_scroll_down(self) -> None:
        self._do("down")

    def on_mouse_scroll_up(self) -> None:
        self._do("up")

    def on_click(self, event: events.Click) -> None:
        target = self.pressed
        kind, _colon, name = target.partition(":")
        if not target or (kind != "key" and target != self.target_at(event.x, event.y)):
            return
        event.stop()
        self.model.pressed(self.clock())
        if kind == "agent" and name == self.model.chosen:
            self._do("focus_agent")
        elif kind == "agent":
            self.choose(name)
        elif kind == "answer":
            self._answer(name)
        elif kind == "key" and self.find is not None:
            self._press_in_find(events.Key(name, None))
        elif kind == "key":
            self._do(_COMMANDS[name])


def _difference(old: Line, new: Line, width: int) -> tuple[int, int]:
    """Return the first and the last column that differ, as far as whole pieces tell."""
    start = end = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        start += one.width
    for one, other in zip(reversed(old), reversed(new), strict=False):
        if one != other:
            break
        end += one.width
    return (start, width - end) if start < width - end else (0, width)
