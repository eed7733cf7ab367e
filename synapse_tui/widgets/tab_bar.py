"""The bar at the top: a tab for each agent with number, name and state; a button for a new one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.reactive import reactive, var
from textual.timer import Timer

from synapse_tui.model import AgentState
from synapse_tui.themes import agent_colour

from .segment_bar import Piece, SegmentBar, width_of
from .text import distinct, plural, shorten
from .views import HELD, SPINNER_INTERVAL, AgentView

MIN_LABEL = 7  # cells that a label keeps at least; it is left out before it would be narrower
NEW = "new"
MORE_LEFT = "previous"
MORE_RIGHT = "next"


class TabBar(SegmentBar):
    """Tabs of all agents; targets are agent ids, `new`, `close:<id>`, `previous` and `next`."""

    agents: var[Sequence[AgentView]] = var(())
    expected: reactive[Sequence[AgentView]] = reactive(())  # being opened; no click target
    active: reactive[str] = reactive("")
    project: reactive[str] = reactive("")
    frame: var[int] = var(0)

    _timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(SPINNER_INTERVAL, self._turn, pause=True)

    def watch_agents(self) -> None:
        self.refresh()
        if self._timer is not None:
            working = any(agent.state is AgentState.PROCESSING for agent in self.agents)
            working = working and self.app.animation_level != "none"
            (self._timer.resume if working else self._timer.pause)()

    def _turn(self) -> None:
        self.frame += 1
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        project = [Piece(f" {shorten(self.project, 30)} ", "$ink-faint")] if self.project else []
        new = Piece(" + ", "$ink-muted", NEW, "New agent")
        left = self._tabs(width - new.width)
        right = project if width_of(left) + new.width + width_of(project) + 2 <= width else []
        return [*left, new], right

    def _tabs(self, width: int) -> list[Piece]:
        every = [*self.agents, *self.expected]
        longest = max((cell_len(agent.label) for agent in every), default=0)
        limits = range(max(longest, MIN_LABEL), MIN_LABEL - 1, -1)
        tabs: list[list[Piece]] = []
        for named in (self._any, self._calls, self._is_active):
            for limit in limits:
                labels = distinct(tuple(agent.label for agent in every), limit)
                tabs = [
                    self._tab(agent, label if named(agent) else "")
                    for agent, label in zip(every, labels, strict=True)
                ]
                if sum(map(width_of, tabs)) <= width:
                    return [piece for tab in tabs for piece in tab]
        return self._scrolled(every, tabs, width)

    def _any(self, _agent: AgentView) -> bool:
        return True

    def _calls(self, agent: AgentView) -> bool:
        return self._is_active(agent) or agent.needs_attention or bool(agent.held)

    def _is_active(self, agent: AgentView) -> bool:
        return bool(agent.agent_id) and agent.agent_id == self.active

    def _scrolled(self, every: Sequence[AgentView], tabs: list[list[Piece]], width: int) -> list[Piece]:
        if not tabs:
            return []
        width -= 4
        at = next((i for i, agent in enumerate(every) if self._is_active(agent)), 0)
        first, last = at, at + 1
        room = width - width_of(tabs[at])
        while True:
            if last < len(tabs) and width_of(tabs[last]) <= room:
                room -= width_of(tabs[last])
                last += 1
            elif first > 0 and width_of(tabs[first - 1]) <= room:
                first -= 1
                room -= width_of(tabs[first])
            else:
                break
        more_left = Piece(
            "‹ " if first else "  ", self._more_style(every[:first]), MORE_LEFT, "Previous agent"
        )
        more_right = Piece(
            " ›" if last < len(tabs) else "  ",
            self._more_style(every[last:]),
            MORE_RIGHT,
            "Next agent",
        )
        return [more_left, *(piece for tab in tabs[first:last] for piece in tab), more_right]

    def _more_style(self, hidden: Sequence[AgentView]) -> str:
        return "bold $state-waiting" if any(agent.needs_attention for agent in hidden) else "$ink-muted"

    def _tab(self, agent: AgentView, short: str) -> list[Piece]:
        active = self._is_active(agent)
        back = " on $focus" if active else ""
        mark = agent.mark(self.frame)
        attention = agent.state is AgentState.WAITING
        name = (
            "bold $focus-ink"
            if active
            else f"bold ${mark.colour}"
            if attention
            else f"${agent_colour(agent.agent_type)}"
        )
        if active and self.app.no_color:
            name = "bold reverse"
        bell = [Piece("♪", f"$alert{back}", agent.agent_id)] if agent.rang else []
        tip = f"{agent.label}: {agent.state_text}"
        strong = "bold $state-waiting" if agent.held_long else "$alert"
        why = f"{agent.label} holds {plural(agent.held, 'message')}: {agent.held_reason}"
        held = [Piece(f"{HELD}{agent.held} ", strong + back, agent.agent_id, why)] if agent.held else []
        number = Piece(
            f" {agent.number} ", f"{'$focus-ink' if active else '$ink-faint'}{back}", agent.agent_id, tip
        )
        label = [Piece(f"{short} ", name + back, agent.agent_id, tip)] if short else []
        return [
            number,
            *label,
            *bell,
            Piece(f"{mark.glyph} ", f"bold ${mark.colour}{back}", agent.agent_id, tip),
            *held,
        ]
