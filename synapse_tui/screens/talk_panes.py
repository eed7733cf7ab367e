"""The tabs of external agents: which are open, and what they are given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from synapse_tui.model import AgentState, Task, TaskState
from synapse_tui.widgets.conversation import ConversationModel, ConversationPane, ConversationView
from synapse_tui.widgets.deck import Deck
from synapse_tui.widgets.text import one_line
from synapse_tui.widgets.views import AgentView

if TYPE_CHECKING:
    from synapse_tui.host import Host


class TalkPanes:
    """Keeps the tabs of external agents in step with the conversations.

    Args:
        host: Whose conversations are shown.
        deck: Where the panes are.
    """

    def __init__(self, host: Host, deck: Deck) -> None:
        self._host = host
        self._deck = deck
        self._unseen: set[str] = set()
        """Agents that have answered since they were looked at."""
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def panes(self) -> list[ConversationPane]:
        """The open tabs, in their order."""
        return [pane for pane in self._deck.panes if isinstance(pane, ConversationPane)]

    def _now(self) -> datetime:
        return self.now()

    def wanted(self, alias: str) -> bool:
        """Whether an agent's tab should be open."""
        talk = self._host.externals.conversation(alias)
        return talk is not None and talk.opened and self._host.externals.has(alias)

    async def add(self, alias: str) -> None:
        """Open a tab; behind those that are there."""
        if self._deck.pane(alias) is None:
            await self._deck.mount(ConversationPane(alias, ConversationView(alias, now=self._now)))
        self.show(alias)

    def show(self, alias: str) -> None:
        """Take a new picture of a conversation."""
        pane = self._deck.pane(alias)
        if isinstance(pane, ConversationPane):
            pane.talk.model = self.picture(alias)

    def heard(self, task: Task, *, looked_at: bool) -> bool:
        """Note that a task of an external agent came to rest; whether the person should be told of it."""
        rests = task.state.final or task.state is TaskState.INPUT_REQUIRED
        if rests and not looked_at and task.state is not TaskState.CANCELED:
            self._unseen.add(task.target)
            return task.state is TaskState.INPUT_REQUIRED
        return False

    def seen(self, alias: str) -> None:
        """The person looks at a conversation."""
        self._unseen.discard(alias)

    def views(self, first: int) -> list[AgentView]:
        """Pictures for the bar of tabs and the titles.

        Args:
            first: Number of the first tab.
        """
        return [self._view(pane.agent_id, number) for number, pane in enumerate(self.panes, first)]

    def picture(self, alias: str) -> ConversationModel:
        """A conversation as it is."""
        externals = self._host.externals
        agents = self._host.agents.values()
        labels = {each.agent_id: one_line(each.name or each.agent_type) for each in agents}
        talk = externals.conversation(alias)
        known = externals.has(alias)
        agent = externals.get(alias) if known else None
        return ConversationModel(
            alias,
            name=agent.name if agent is not None else alias,
            protocol=agent.protocol if agent is not None else "",
            entries=talk.entries if talk is not None else (),
            tasks=talk.tasks if talk is not None else (),
            labels=labels,
            known=known,
        )

    def _view(self, alias: str, number: int) -> AgentView:
        picture = self.picture(alias)
        state, detail = picture.state
        return AgentView(
            agent_id=alias,
            number=number,
            label=alias,
            agent_type="external",
            state=state,
            detail=detail,
            unseen=alias in self._unseen and state is AgentState.READY,
            title=f"external · {picture.name} · {picture.protocol}",
            external=True,
        )
