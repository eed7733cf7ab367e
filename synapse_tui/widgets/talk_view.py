"""The tab of an external agent: what was said, how it stands, and a line to write in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from synapse_tui.model import AgentState

from .key_hints import keys_of
from .segment_bar import Piece, SegmentBar, width_of
from .sturdy import Sturdy
from .talk_composer import TalkComposer
from .talk_log import TalkLog
from .talk_picture import TalkPicture
from .text import plural, shorten

TalkCommand = Literal["cancel", "tasks", "card", "new"]
CHOOSING = "↑↓ choose · c copies · Esc back"


class TalkStatus(SegmentBar):
    """How the conversation stands, and what can be done; targets are the commands of `TalkView.Asked`."""

    DEFAULT_CSS = "TalkStatus { background: $chrome; }"

    picture: var[TalkPicture | None] = var(None)
    choosing: var[bool] = var(False)

    def watch_picture(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_choosing(self) -> None:
        """Draw anew."""
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """The state at the left, the commands at the right."""
        picture = self.picture
        if picture is None:
            return [], []
        if self.choosing:
            return [Piece(f" {CHOOSING}", "bold $hot")], []
        right = self._commands(picture)
        while right and width_of(right) > width // 2:
            right = right[1:]
        return self._state(picture, width - width_of(right)), right

    def _state(self, picture: TalkPicture, room: int) -> list[Piece]:
        state, detail = picture.state
        mark = picture.mark
        if not picture.known:
            return [Piece(" × ", "bold $state-error"), Piece("it was removed", "$state-error")]
        words = {
            AgentState.WAITING: f"asks: {detail}" if detail else "asks something: answer below",
            AgentState.PROCESSING: "works on your message",
            AgentState.ERROR: detail or "failed",
        }.get(state, f"Enter sends · Shift+Enter new line · {keys_of(self.app).way('scroll')} copy")
        loud = state in (AgentState.WAITING, AgentState.ERROR)
        ink = f"${mark.colour}" if loud else "$ink-muted"
        return [
            Piece(f" {mark.glyph} ", f"bold ${mark.colour}"),
            Piece(shorten(words, max(4, room - 4)), ink),
        ]

    def _commands(self, picture: TalkPicture) -> list[Piece]:
        found = [Piece(" new ", "$ink-muted", "new", "Begin a new conversation")]
        if picture.tasks:
            count = plural(len(picture.tasks), "task")
            found.append(Piece(f" {count} ", "$ink-muted", "tasks", "The tasks of this conversation"))
        found.append(Piece(" card ", "$ink-muted", "card", "What the agent says of itself"))
        if picture.open_task is not None:
            key = keys_of(self.app).way("interrupt")
            found.append(Piece(" ✕ cancel ", "bold $alert", "cancel", f"Cancel the task ({key})"))
        return found


class TalkView(Sturdy, Widget, can_focus=False):
    """Frames a conversation; it is given its picture, and tells what is written and asked for.

    Args:
        alias: The agent's alias.
        now: The time now, aware.
    """

    DEFAULT_CSS = "TalkView { layout: vertical; width: 1fr; height: 1fr; background: $dialog; }"
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Sent(Message):
        """A message is to be sent."""

        view: TalkView
        text: str

        @property
        def control(self) -> TalkView:
            """The view."""
            return self.view

    @dataclass
    class Asked(Message):
        """Something was asked for by a click."""

        alias: str
        command: TalkCommand

    @dataclass
    class Copied(Message):
        """Text was copied to the clipboard."""

        text: str

    picture: var[TalkPicture | None] = var(None)

    def __init__(self, alias: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self.alias = alias
        self.log_view = TalkLog(now=now)
        self.status = TalkStatus()
        self.composer = TalkComposer()

    def compose(self) -> ComposeResult:
        """What was said, how it stands, where to write."""
        yield self.log_view
        yield self.status
        yield self.composer

    def watch_picture(self, picture: TalkPicture | None) -> None:
        """Pass it on."""
        self.log_view.picture = picture
        self.status.picture = picture
        if picture is not None:
            words = f"Answer {picture.alias}" if picture.asking is not None else f"Message to {picture.alias}"
            self.composer.placeholder = words

    def toggle_choosing(self) -> None:
        """Let keys choose among what was said, or write again."""
        self._set_choosing(not self.composer.choosing)

    def stop_choosing(self) -> None:
        """Let keys write again."""
        self._set_choosing(False)

    def _set_choosing(self, choosing: bool) -> None:
        self.composer.choosing = choosing
        self.status.choosing = choosing
        if choosing:
            self.log_view.choose(0)
        else:
            self.log_view.leave()

    @on(TalkComposer.Submitted)
    def _submitted(self, event: TalkComposer.Submitted) -> None:
        event.stop()
        self.log_view.scroll_end(animate=False)
        self.post_message(self.Sent(self, event.text))

    @on(TalkComposer.Paged)
    def _paged(self, event: TalkComposer.Paged) -> None:
        event.stop()
        self.log_view.page(event.by)

    @on(TalkComposer.Chose)
    def _chose(self, event: TalkComposer.Chose) -> None:
        event.stop()
        if event.leave:
            self._set_choosing(False)
        elif event.copy:
            self.log_view.copy(self.log_view.marked)
            self._set_choosing(False)
        elif event.first is not None:
            self.log_view.choose_end(first=event.first)
        else:
            self.log_view.choose(event.by)

    @on(TalkLog.Copied)
    def _copied(self, event: TalkLog.Copied) -> None:
        event.stop()
        self.post_message(self.Copied(event.text))

    @on(SegmentBar.Pressed)
    def _pressed(self, event: SegmentBar.Pressed) -> None:
        event.stop()
        self.post_message(self.Asked(self.alias, event.target))  # type: ignore[arg-type]
