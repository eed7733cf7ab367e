"""Panes in the running application: layouts, zoom, resize, small terminals."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Region

from synapse_tui.ui.app import SynapseApp
from synapse_tui.widgets import terminal_view
from synapse_tui.widgets.layout import GAP, LAYOUTS, MIN_HEIGHT, MIN_WIDTH, Layout, Tile, fit, preset, tiles
from tests.ui.app_kit import LEADER, running, text_of, three_agents, until

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def regions(app: SynapseApp) -> dict[str, Region]:
    return {pane.agent_id: pane.region for pane in app.main.deck.panes if pane.display}


async def test_f5_goes_through_all_layouts():
    host = three_agents()
    async with running(host) as (app, pilot):
        shown = []
        for _ in range(5):
            await pilot.pause()
            shown.append((app.main.deck.arrangement, len(regions(app))))
            await pilot.press("f5")
        assert shown == [("tabs", 1), ("columns", 3), ("grid", 3), ("main", 3), ("tabs", 1)]
        assert "layout: columns" in app.main.status_bar.notice


async def test_the_notice_of_a_layout_says_how_many_agents_have_room():
    async with running(three_agents(), (80, 24)) as (app, pilot):
        await pilot.press("f5")
        await pilot.pause()
        assert len(regions(app)) == 2
        assert app.main.status_bar.notice == "layout: columns, room for 2 of 3 agents"
        app.perform("set_layout", "tabs")
        assert app.main.status_bar.notice == "layout: tabs"


@pytest.mark.parametrize("layout", ["columns", "grid", "main"])
async def test_the_agents_get_the_size_of_their_panes(layout):
    host = three_agents()
    async with running(host, layout=layout) as (app, _pilot):

        def fits(agent_id: str, region: Region) -> bool:
            terminal = host.agents[agent_id].terminal
            return (terminal.columns, terminal.lines) == (region.width, region.height - 1)

        await until(lambda: len(regions(app)) == 3 and all(fits(*shown) for shown in regions(app).items()))


async def test_hidden_agents_follow_every_change_of_the_deck():
    host = three_agents()
    async with running(host, layout="grid", size=(160, 40)) as (_app, pilot):
        await pilot.press("f5", "f5")
        await until(lambda: all(s.terminal.columns == 160 for s in host.agents.values()))
        await pilot.press("f6")
        await until(lambda: all(s.terminal.columns == 122 for s in host.agents.values()))


async def test_zoom_gives_one_pane_the_deck():
    async with running(three_agents(), layout="grid") as (app, pilot):
        await pilot.press("f4", LEADER, "z")
        await pilot.pause()
        assert list(regions(app)) == [CODEX]
        await pilot.press("f4")
        await pilot.pause()
        assert list(regions(app)) == [GEMINI], "zoom follows the focus"
        await pilot.press(LEADER, "z")
        await pilot.pause()
        assert len(regions(app)) == 3


async def test_panes_that_do_not_fit_are_shown_when_they_get_the_focus():
    async with running(three_agents(), size=(80, 24), layout="columns") as (app, pilot):
        assert list(regions(app)) == [CLAUDE, CODEX]
        await pilot.press("f3")
        await pilot.pause()
        assert GEMINI in regions(app)


async def test_lines_part_panes_side_by_side():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f5")
        await until(lambda: len(regions(app)) == 3)
        await pilot.pause()
        for row in text_of(app).splitlines()[2:38]:
            assert row.count("│") == 2
        await pilot.press(LEADER, "z")
        await until(lambda: "│" not in text_of(app))


async def test_the_focus_stays_through_every_size():
    host = three_agents()
    async with running(host, layout="grid") as (_app, pilot):
        await pilot.press("f4")
        for size in ((200, 60), (80, 24), (40, 10), (39, 10), (40, 9), (10, 3), (1, 1), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await pilot.press("k")
        assert bytes(host.agents[CODEX].typed) == b"k"


@pytest.mark.parametrize("size", [(39, 24), (80, 9), (5, 2)])
async def test_a_terminal_that_is_too_small_says_so(size):
    host = three_agents()
    async with running(host) as (app, pilot):
        await until(lambda: all(session.sizes for session in host.agents.values()))
        sizes = [list(session.sizes) for session in host.agents.values()]
        await pilot.resize_terminal(*size)
        if size[0] > 20:
            await until(lambda: "too small" in text_of(app) and "40×10" in text_of(app))
            assert "the size of" not in text_of(app)
            app.main.status_bar.shrunk_by = "pts/7"
            await until(lambda: "the size of pts/7" in text_of(app), "whose terminal it is")
        await pilot.pause(2 * terminal_view.SETTLE_TIME)
        assert [session.sizes for session in host.agents.values()] == sizes, "the agents keep their size"
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "too small" not in text_of(app)


async def test_restart_puts_the_new_terminal_into_the_pane():
    host = three_agents()
    async with running(host) as (app, pilot):
        session = host.agents[CLAUDE]
        await host.restart(CLAUDE)
        session.feed("born again")
        await until(lambda: "born again" in text_of(app))
        assert (session.terminal.columns, session.terminal.lines) == (120, 37)
        await pilot.press("a")
        assert bytes(session.typed) == b"a"


layouts = st.sampled_from(LAYOUTS)


def arrange(
    layout: Layout, count: int, width: int, height: int, *, focused: int = 0, main: int = 0
) -> dict[int, Tile]:
    ids = [str(index) for index in range(count)]
    node = preset(layout, ids, width, height, focused=ids[focused], main=ids[main])
    node = fit(node, width, height, ids[focused])
    return {int(pane): tile for pane, tile in tiles(node, width, height).items()}


@settings(deadline=None)
@given(layouts, st.integers(1, 12), st.integers(1, 300), st.integers(1, 100), st.data())
def test_tiles_cover_the_deck_without_overlap(layout, count, width, height, data):
    focused = data.draw(st.integers(0, count - 1))
    main = data.draw(st.integers(0, count - 1))

    found = arrange(layout, count, width, height, focused=focused, main=main)

    assert focused in found, "the pane in focus is always shown"
    assert all(tile.width > 0 and tile.height > 0 for tile in found.values())
    assert max(tile.y + tile.height for tile in found.values()) == height
    for y in range(height):
        in_row = [tile for tile in found.values() if 0 <= y - tile.y < tile.height]
        row = sorted((tile.x, tile.x + tile.width) for tile in in_row)
        assert (row[0][0], row[-1][1]) == (0, width)
        assert all(0 <= start - end <= GAP for (_, end), (start, _) in pairwise(row))


@given(layouts, st.integers(2, 12), st.integers(MIN_WIDTH, 300), st.integers(MIN_HEIGHT, 100), st.data())
def test_no_tile_is_too_small_to_use(layout, count, width, height, data):
    found = arrange(layout, count, width, height, focused=data.draw(st.integers(0, count - 1)))

    assert all(tile.width >= MIN_WIDTH and tile.height >= MIN_HEIGHT for tile in found.values())


@pytest.mark.parametrize(
    ("layout", "count", "size", "expected"),
    [
        ("tabs", 3, (80, 21), {1: Tile(0, 0, 80, 21)}),
        ("columns", 2, (81, 21), {0: Tile(0, 0, 40, 21), 1: Tile(41, 0, 40, 21)}),
        (
            "grid",
            4,
            (201, 60),
            {
                0: Tile(0, 0, 100, 30),
                1: Tile(101, 0, 100, 30),
                2: Tile(0, 30, 100, 30),
                3: Tile(101, 30, 100, 30),
            },
        ),
        ("main", 2, (80, 22), {0: Tile(0, 0, 43, 22), 1: Tile(44, 0, 36, 22)}),
        ("main", 3, (80, 22), {0: Tile(0, 0, 43, 22), 1: Tile(44, 0, 36, 11), 2: Tile(44, 11, 36, 11)}),
        ("main", 2, (72, 22), {1: Tile(0, 0, 72, 22)}),
        ("main", 3, (121, 40), {0: Tile(0, 0, 72, 40), 1: Tile(73, 0, 48, 20), 2: Tile(73, 20, 48, 20)}),
    ],
)
def test_layouts(layout, count, size, expected):
    assert arrange(layout, count, *size, focused=1) == expected
