"""The size of terminals whose panes are not shown at present."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from synapse_tui.widgets.deck import TITLE_ROWS, Deck

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession


def resize_hidden(deck: Deck, agents: Mapping[str, AgentSession]) -> None:
    """Give terminals that are not shown the size that they will have when they are."""
    width, height = deck.size
    if deck.arrangement != "tabs" or width < 2 or height < 2 + TITLE_ROWS:
        return
    for pane in deck.panes:
        session = agents.get(pane.agent_id)
        terminal = session.terminal if session is not None and session.exit is None else None
        if session is None or terminal is None or pane.display:
            continue
        if (terminal.columns, terminal.lines) != (width, height - TITLE_ROWS):
            session.resize(width, height - TITLE_ROWS)
