"""The cursor stands where an input method shows what it composes: at the text that is typed."""

from textual.geometry import Offset

from synapse_tui.ui.screens.agents import Rename
from synapse_tui.ui.screens.composer import Composer
from tests.ui.app_kit import LEADER, running, text_of, three_agents, until


def end_of(text: str, lines: list[str], *, cells: int) -> Offset:
    """Return where a text ends that stands once on the screen, behind ASCII alone."""
    (y,) = (y for y, line in enumerate(lines) if text in line)
    return Offset(lines[y].index(text) + cells, y)


async def test_in_a_field():
    async with running(three_agents()) as (app, pilot):
        await pilot.press(LEADER, "r")
        await until(lambda: isinstance(app.screen, Rename) and app.screen.ready)
        await pilot.press(*"漢字")
        await pilot.pause()
        lines = text_of(app).splitlines()[app.size.height :]
        assert app.cursor_position == end_of("漢字", lines, cells=4)
        await pilot.press("left")
        await pilot.pause()
        assert app.cursor_position == end_of("漢字", lines, cells=2)


async def test_in_the_text_of_a_message():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2")
        await until(lambda: isinstance(app.screen, Composer) and app.screen.ready)
        await pilot.press("tab")
        await pilot.press(*"日本x")
        await pilot.pause()
        lines = text_of(app).splitlines()[app.size.height :]
        assert app.cursor_position == end_of("日本x", lines, cells=5)


async def test_in_the_find_of_the_board():
    async with running(three_agents()) as (app, pilot):
        await pilot.press(LEADER, "b", "slash", *"漢字")
        await pilot.pause()
        assert app.main.board_shown
        assert app.cursor_position == end_of("漢字", text_of(app).splitlines(), cells=4)
