"""What the board shows and in which order, without drawing it.

Rows are sorted by urgency, but they move only while the user does not press keys: a row that moved under the
finger would get a key that was meant for another agent. The chosen agent stays chosen wherever its row moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synapse_tui.agents.worktrees.line_counts import FolderChange
from synapse_tui.core.model import AgentState
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .states import HOLDS, NEEDS_YOU, State
from .views import AgentView

REST_SECONDS = 0.6  # without keys, after which rows may move


@dataclass(frozen=True, slots=True)
class BoardRow:
    """What the board and the sidebar show of an agent."""

    agent: AgentView
    state: State  # under whose heading it stands
    what: str = ""  # what it asks or does
    seconds: float = 0.0  # in this state
    change: FolderChange | None = None  # None if it is unknown or may not be the agent's

    @property
    def agent_id(self) -> str:
        """Its id; for an agent that is being opened, its number."""
        return self.agent.agent_id or f"#{self.agent.number}"

    @property
    def is_open(self) -> bool:
        return bool(self.agent.agent_id)

    @property
    def runs(self) -> bool:
        return self.agent.exit is None and self.agent.failed is None


def doing(agent: AgentView, *, asks: str = "", answer: str = "", task: str = "") -> str:
    """Return in a few words what an agent asks or does.

    Args:
        agent: The agent, which did start.
        asks: What its dialog asks, if that is known.
        answer: The last words of the answer with which its last turn ended.
        task: The message it works on.
    """
    state = agent.mark
    if agent.exit is not None:
        return tr(agent.exit.words)
    if state.rank == NEEDS_YOU.rank:
        return asks or agent.call
    if state is HOLDS:
        return tr(
            f"{agent.held} message waits: {agent.held_reason}"
            if agent.held == 1
            else f"{agent.held} messages wait: {agent.held_reason}"
        )
    if agent.state is AgentState.READY:
        return answer or agent.title
    return agent.detail or task or agent.title


def in_order(rows: Sequence[BoardRow]) -> list[BoardRow]:
    """Sort by urgency, those that have been so for longest first."""
    return sorted(rows, key=lambda row: (row.state.rank, -row.seconds, row.agent.number))


class BoardModel:
    """The rows in the order in which they are shown, and the chosen one."""

    def __init__(self) -> None:
        self._rows: dict[str, BoardRow] = {}
        self._places: list[tuple[str, State]] = []  # agent id, and the heading that it stands under
        self._gone: set[str] = set()
        self._wanted: Sequence[BoardRow] = ()
        self._pressed = float("-inf")
        self._found = ""
        self.chosen = ""

    @property
    def rows(self) -> Sequence[tuple[BoardRow, State]]:
        """The rows that match what is looked for, each with its heading."""
        shown = [(self._rows[agent_id], state) for agent_id, state in self._places]
        return [each for each in shown if self._matches(each[0])] if self._found else shown

    @property
    def chosen_row(self) -> BoardRow | None:
        """The chosen row; None if there is none or its agent is gone."""
        return self._rows.get(self.chosen) if self.chosen not in self._gone else None

    @property
    def counts(self) -> Mapping[State, int]:
        """The number of agents in each state, most urgent first."""
        rows = in_order([row for row in self._rows.values() if row.agent_id not in self._gone])
        counts: dict[State, int] = {}
        for row in rows:
            counts[row.state] = counts.get(row.state, 0) + 1
        return counts

    def show(self, rows: Sequence[BoardRow], now: float) -> None:
        """Show rows; they keep their places until the user has pressed no key for a while."""
        self._wanted = rows
        new = {row.agent_id: row for row in rows}
        self._gone = {agent_id for agent_id, _state in self._places if agent_id not in new}
        self._rows = {agent_id: self._rows[agent_id] for agent_id in self._gone} | new
        known = {agent_id for agent_id, _state in self._places}
        self._places += [(row.agent_id, row.state) for row in in_order(rows) if row.agent_id not in known]
        self.settle(now)

    def pressed(self, now: float) -> None:
        """Note a key or a click: rows stay where they are for a while."""
        self._pressed = now

    def unsettled(self, now: float) -> float | None:
        """Return the seconds until the rows may move; None if they are where they belong."""
        placed = [(row.agent_id, row.state) for row in in_order(self._wanted)]
        return max(0.0, self._pressed + REST_SECONDS - now) if placed != self._places else None

    def settle(self, now: float) -> bool:
        """Move the rows to their places if they may move; return whether they did."""
        if now < self._pressed + REST_SECONDS and any(self._places):
            return False
        before = self._places
        at = next((at for at, (agent_id, _state) in enumerate(before) if agent_id == self.chosen), 0)
        self._places = [(row.agent_id, row.state) for row in in_order(self._wanted)]
        for agent_id in self._gone:
            del self._rows[agent_id]
        self._gone = set()
        if self.chosen not in self._rows:
            ids = self._ids
            self.chosen = ids[min(at, len(ids) - 1)] if ids else ""
        return before != self._places

    # Choice

    @property
    def _ids(self) -> list[str]:
        return [row.agent_id for row, _state in self.rows if row.is_open]

    def choose(self, agent_id: str) -> None:
        if agent_id in self._rows and self._rows[agent_id].is_open:
            self.chosen = agent_id

    def step(self, by: int) -> None:
        """Choose the row that is so many rows further; stop at the first and the last one."""
        ids = self._ids
        if ids:
            at = ids.index(self.chosen) + by if self.chosen in ids else 0
            self.chosen = ids[min(max(at, 0), len(ids) - 1)]

    def next_calling(self) -> bool:
        """Choose the next agent that needs the user, after the last one the first; False if no other does."""
        ids = [row.agent_id for row, _state in self.rows if row.agent.needs_attention]
        others = [agent_id for agent_id in ids if agent_id != self.chosen]
        if not others:
            return False
        at = ids.index(self.chosen) + 1 if self.chosen in ids else 0
        self.chosen = ids[at % len(ids)]
        return True

    # Finding

    @property
    def looked_for(self) -> str:
        return self._found

    def find(self, text: str) -> None:
        """Show only the rows in which the text occurs, and choose the first of them; all rows if empty."""
        self._found = text
        ids = self._ids
        if ids and self.chosen not in ids:
            self.chosen = ids[0]

    def _matches(self, row: BoardRow) -> bool:
        agent = row.agent
        return (
            self._found.casefold()
            in f"{agent.label} {agent.agent_type} {row.state.word} {row.what}".casefold()
        )
