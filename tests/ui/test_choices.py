"""The marked row of a list is seen without colours too."""

from __future__ import annotations

import pytest

from synapse_tui.widgets.option_lists import Choices
from tests.ui.app_kit import LEADER, running, three_agents, until


@pytest.mark.parametrize("no_color", [True, False])
async def test_the_marked_row_is_reversed_where_there_are_no_colours(no_color, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    async with running(three_agents()) as (app, pilot):
        await pilot.press(LEADER, "p")
        await until(
            lambda: app.screen.query(Choices) and app.screen.query_one(Choices).highlighted is not None
        )
        await pilot.pause()
        view = app.screen.query_one(Choices)
        marked = view.highlighted
        reversed_rows = [
            y
            for y in range(view.size.height)
            if any(s.style and s.style.reverse for s in view.render_line(y))
        ]
        assert reversed_rows == ([marked] if no_color else [])
