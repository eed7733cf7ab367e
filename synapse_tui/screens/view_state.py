"""What a person has arranged, as data: kept when the application is made anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synapse_tui.widgets.deck import as_layout

if TYPE_CHECKING:
    from .main import MainScreen


def view_state(main: MainScreen) -> dict[str, object]:
    """The layout, the agent in focus and what is open, as JSON can carry it."""
    return {
        "layout": main.deck.arrangement,
        "zoomed": main.deck.zoomed,
        "main": main.deck.main,
        "active": main.active,
        "sidebar": main.has_class("-sidebar"),
    }


def restore_view(main: MainScreen, state: Mapping[str, Any]) -> None:
    """Arrange it as it was; what no longer fits is left as it is.

    Args:
        main: The main screen, its agents shown.
        state: What `view_state` gave.
    """
    main.deck.arrangement = as_layout(str(state.get("layout", main.deck.arrangement)))
    known = {agent.agent_id for agent in main.agents}
    large, active = str(state.get("main", "")), str(state.get("active", ""))
    if large in known:
        main.deck.main = large
    main.set_class(bool(state.get("sidebar")), "-sidebar")
    if active in known:
        main.go_to(active)
    main.deck.zoomed = bool(state.get("zoomed")) and active in known
