"""The row above a pane: who it is, what it does, and what became of its last message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.reactive import var

from synapse_tui.themes import agent_colour

from .marks import Mark
from .segment_bar import Piece, SegmentBar, width_of
from .text import one_line, shorten
from .views import AgentView

CLOSE = "close"
ZOOM = "zoom"
WHY = "why"
LIVE = "live"
WATCH = "watch"
LAST = "last"
STATE_ROOM = 14
"""Cells that the state keeps beside messages, at most."""
UNPROVED = "locks not enforced"
UNPROVED_HINT = "None of its hooks has been heard of yet: it may write files that others have locked"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the last message that the agent, or the person at its pane, sent.

    Attributes:
        mark: How it looks.
        text: A few words: `gemini: submitted`.
        task_id: UUID of the task; empty when none was made.
        settled: Whether it went well and nothing more will be heard of it.
        several: Whether it went to several agents.
    """

    mark: Mark
    text: str
    task_id: str = ""
    settled: bool = False
    several: bool = False


class PaneTitle(SegmentBar):
    """Title of one pane; targets are `close`, `zoom`, `why`, `live`, `watch`, `last` and `task:<id>`."""

    DEFAULT_CSS = "PaneTitle { dock: top; }"

    agent: var[AgentView | None] = var(None)
    focused_pane: var[bool] = var(False)
    zoomed: var[bool] = var(False)
    delivery: var[Delivery | None] = var(None)
    scrolled: var[str] = var("")
    """Where the view is scrolled to, or what it searches; empty at the live screen."""

    def watch_agent(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_focused_pane(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_zoomed(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_delivery(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_scrolled(self) -> None:
        """Draw anew."""
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Name and state at the left; delivery, scroll position, zoom and close at the right."""
        agent = self.agent
        if agent is None:
            return [], []
        back = " on $focus" if self.focused_pane else " on $chrome"
        right = self._buttons(back)
        right = [*self._watch(agent, back), *self._scroll(back), *right]
        head = self._head(agent, back)
        room = width - width_of(head) - width_of(right)
        beside = room - min(STATE_ROOM, cell_len(agent.state_text) + 1)
        inbox = self._unread(agent, back, beside)
        delivery = [*inbox, *self._held(agent, back, beside), *self._delivery(back, beside)]
        delivery += self._unproved(agent, back, beside - width_of(delivery))
        if width_of(delivery) > beside:
            delivery = delivery[:1]
        state = self._state(agent, back, room - width_of(delivery))
        return [
            *head,
            *state,
            Piece(" " * max(0, room - width_of(state) - width_of(delivery)), back.strip()),
        ], [*delivery, *right]

    def _head(self, agent: AgentView, back: str) -> list[Piece]:
        edge = Piece("▌" if self.focused_pane else " ", f"$hot{back}")
        strong = " bold" if self.focused_pane else ""
        if self.focused_pane and self.app.no_color:
            strong = " bold reverse"
        ink = "$focus-ink" if self.focused_pane else f"${agent_colour(agent.agent_type)}"
        mark = agent.mark()
        return [
            edge,
            Piece(f"{agent.number} ", f"$ink-faint{back}"),
            Piece(shorten(agent.label, 24), f"{ink}{strong}{back}"),
            Piece(f"  {mark.glyph} ", f"bold ${mark.colour}{back}", WHY, "Why this state"),
        ]

    def _state(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        ink = "$ink-muted" if not agent.needs_attention else f"${agent.mark().colour}"
        text = shorten(agent.state_text, room)
        title = agent.title if agent.exit is None else ""
        pieces = [Piece(text, f"{ink}{back}", WHY, "Why this state")] if text else []
        left = room - width_of(pieces) - 3
        if title and left >= 10:
            pieces.append(Piece(" · " + shorten(title, left), f"$ink-faint{back}"))
        return pieces

    def _held(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        """How many messages wait to be typed into this agent, and why."""
        if not agent.held or room < 12:
            return []
        text = shorten(f"{agent.held} held: {agent.held_reason}", min(room - 2, 40))
        return [
            Piece(
                f" {text} ", f"$alert{back}", f"task:{agent.held_task}", "Messages that wait for this agent"
            )
        ]

    def _watch(self, agent: AgentView, back: str) -> list[Piece]:
        """How the watch over the agent stands."""
        if not agent.watch:
            return []
        style = f"bold $alert{back}" if agent.gave_up else f"$hot{back}"
        return [Piece(f" {agent.watch} ", style, WATCH, "The watch over this agent")]

    def _unread(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        """How many messages the agent has not read yet."""
        if not agent.unread or room < 12:
            return []
        target = f"task:{agent.unread_task}"
        return [Piece(f" {agent.unread} unread ", f"$ink-muted{back}", target, "Messages in its inbox")]

    def _unproved(self, agent: AgentView, back: str, room: int) -> list[Piece]:
        """That no lock keeps the agent from writing, as far as is known."""
        piece = Piece(f" {UNPROVED} ", f"$alert{back}", WHY, UNPROVED_HINT)
        return [piece] if agent.unproved and width_of([piece]) <= room else []

    def _delivery(self, back: str, room: int) -> list[Piece]:
        delivery = self.delivery
        if delivery is None or room < 8:
            return []
        text = shorten(one_line(delivery.text), min(room - 4, 60))
        target = f"task:{delivery.task_id}" if delivery.task_id else LAST if delivery.several else ""
        glyph = "→" if delivery.mark.glyph != "×" else "×"
        return [
            Piece(f" {glyph} ", f"bold ${delivery.mark.colour}{back}", target),
            Piece(f"{text} ", f"$ink{back}", target),
        ]

    def _scroll(self, back: str) -> list[Piece]:
        if not self.scrolled:
            return []
        return [
            Piece(
                f" ↑ {shorten(one_line(self.scrolled), 40)} ",
                "bold $alert-ink on $alert",
                LIVE,
                "Back to the live screen",
            ),
            Piece(" ", back.strip()),
        ]

    def _buttons(self, back: str) -> list[Piece]:
        zoom = Piece(" ▣ " if self.zoomed else " □ ", f"$ink-muted{back}", ZOOM, "Zoom")
        return [zoom, Piece("× ", f"$ink-muted{back}", CLOSE, "Close agent")]
