"""Splits in the running application: made, moved, hidden, named and restored, by keys and by mouse."""

import pytest
from textual.geometry import Region
from textual.pilot import Pilot

from synapse_tui.core.model import AgentSpec, ExitStatus
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.main import restore_view, view_state
from synapse_tui.ui.screens.new_agent import NewAgent
from tests.ui.app_kit import LEADER, at_main, notices, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def regions(app: SynapseApp) -> dict[str, Region]:
    return {pane.agent_id: pane.region for pane in app.main.deck.panes if pane.display}


async def lead(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(LEADER, *keys)
    await pilot.pause()


async def test_a_split_shows_the_next_agent_out_of_view():
    host = three_agents()
    async with running(host) as (app, pilot):
        await lead(pilot, "%")
        assert list(regions(app)) == [CLAUDE, CODEX]
        assert app.main.active == CODEX
        await lead(pilot, '"')
        where = regions(app)
        assert where[CLAUDE].width + 1 + where[CODEX].width == 120
        assert where[CODEX].x == where[GEMINI].x
        assert where[CODEX].bottom == where[GEMINI].y
        await pilot.press("k")
        assert bytes(host.agents[GEMINI].typed) == b"k"
        terminal = host.agents[GEMINI].terminal
        await until(
            lambda: (terminal.columns, terminal.lines) == (where[GEMINI].width, where[GEMINI].height - 1)
        )


async def test_a_split_asks_for_an_agent_if_all_are_in_view():
    host = three_agents()
    async with running(host, size=(200, 60), layout="columns") as (app, pilot):
        await lead(pilot, '"')
        assert isinstance(app.screen, NewAgent)
        await pilot.press("enter")
        await until(lambda: len(host.agents) == 4 and at_main(app) and len(regions(app)) == 4)
        new = app.main.active
        where = regions(app)
        assert (where[new].x, where[new].y) == (where[CLAUDE].x, where[CLAUDE].bottom)


@pytest.mark.parametrize(
    ("size", "layout", "key", "why"),
    [((40, 24), "tabs", "%", "20 columns"), ((80, 11), "tabs", '"', "5 rows")],
)
async def test_a_split_without_room_is_refused(size, layout, key, why):
    async with running(three_agents(), size=size, layout=layout) as (app, pilot):
        await lead(pilot, key)
        assert why in notices(app)
        assert list(regions(app)) == [CLAUDE]


async def test_arrows_after_the_leader_move_the_focus():
    host = three_agents()
    async with running(host, layout="main") as (app, pilot):
        seen = []
        for key in ("right", "down", "left", "left", "up"):
            await lead(pilot, key)
            seen.append(app.main.active)
        assert seen == [CODEX, GEMINI, CLAUDE, GEMINI, CODEX]


async def test_a_hidden_pane_lives_on_in_its_tab():
    host = three_agents()
    async with running(host, layout="columns") as (app, pilot):
        await lead(pilot, "right")
        await lead(pilot, "H")
        assert list(regions(app)) == [CLAUDE, GEMINI]
        assert app.main.active == CLAUDE
        assert host.agents[CODEX].exit is None
        await lead(pilot, "2")  # it is shown in the place of the pane that had the focus
        assert list(regions(app)) == [CODEX, GEMINI]
        await lead(pilot, "right")
        assert list(regions(app)) == [CLAUDE, GEMINI], "a visit changes no layout"


async def test_the_only_pane_stays():
    async with running(three_agents()) as (app, pilot):
        await lead(pilot, "H")
        assert "the only pane" in app.main.status_bar.notice
        assert list(regions(app)) == [CLAUDE]


async def test_a_notice_about_the_panes_ends_when_they_are_others():
    host = three_agents()
    async with running(host, layout="columns", size=(100, 24)) as (app, pilot):
        notice = app.main.status_bar
        await lead(pilot, "H")
        await until(lambda: "out of view" in notice.notice)
        app.main.go_to(CLAUDE)
        await until(lambda: not notice.notice)
        app.perform("set_layout", "tabs")
        await lead(pilot, "H")
        assert "the only pane" in notice.notice
        await lead(pilot, "%")
        await until(lambda: not notice.notice)


async def test_a_notice_of_what_was_done_ends_with_the_next_thing_done_and_an_error_stays():
    async with running(three_agents(), layout="grid") as (app, pilot):
        app.notice("the draft is kept: writing a message opens it again")
        await pilot.press("f2")
        assert "the draft is kept" not in text_of(app)
        await pilot.press("escape")
        app.notice("not sent", "error")
        await lead(pilot, "z")
        assert "not sent" in text_of(app).splitlines()[-1]


async def test_a_notice_of_how_many_agents_have_room_ends_when_more_have():
    async with running(three_agents(), size=(80, 24)) as (app, pilot):
        app.perform("set_layout", "columns")
        assert "room for 2 of 3 agents" in app.main.status_bar.notice
        await pilot.resize_terminal(200, 24)
        await until(lambda: not app.main.status_bar.notice)


async def test_panes_are_resized_swapped_and_made_equal_by_keys():
    host = three_agents()
    async with running(host) as (app, pilot):
        await lead(pilot, "%")
        before = regions(app)[CLAUDE].width
        await lead(pilot, "ctrl+left")
        await pilot.press("ctrl+left")
        await pilot.pause()
        assert regions(app)[CLAUDE].width == before - 8, "the arrows repeat without the leader"
        await pilot.press("k", "ctrl+left")
        await pilot.pause()
        assert bytes(host.agents[CODEX].typed).startswith(b"k\x1b["), "another key ends that"
        assert regions(app)[CLAUDE].width == before - 8
        await lead(pilot, "shift+left")
        assert regions(app)[CODEX].x == 0
        assert app.main.active == CODEX
        await lead(pilot, "=")
        assert abs(regions(app)[CODEX].width - regions(app)[CLAUDE].width) <= 1
        await lead(pilot, "ctrl+up")
        assert "no rule" in app.main.status_bar.notice


async def test_while_arranging_keys_need_no_leader_and_reach_no_agent():
    host = three_agents()
    async with running(host) as (app, pilot):
        await lead(pilot, "o")
        await pilot.press("%", "left", "k", '"')
        await pilot.pause()
        assert "arrange" in text_of(app).splitlines()[-1]
        assert len(regions(app)) == 3
        await pilot.press("escape", "j")
        await pilot.pause()
        assert "arrange" not in text_of(app).splitlines()[-1]
        assert bytes(host.agents[GEMINI].typed) == b"j"
        assert not host.agents[CLAUDE].typed
        assert not host.agents[CODEX].typed


async def test_while_arranging_one_pane_only_keys_that_do_something_are_named():
    async with running(three_agents()) as (app, pilot):
        await lead(pilot, "o")
        last = text_of(app).splitlines()[-1]
        assert "arrange  Esc done  % " in last
        for word in ("resize", "swap", "equal", "hide", "zoom"):
            assert word not in last
        await pilot.press("z")
        await until(lambda: app.main.status_bar.notice == "it is the only pane in view")
        assert not app.main.deck.zoomed
        await pilot.press("%")
        await until(lambda: not app.main.status_bar.notice)
        last = text_of(app).splitlines()[-1]
        for word in ("resize", "swap", "zoom"):
            assert word in last
        await pilot.press("z")
        await pilot.pause()
        last = text_of(app).splitlines()[-1]
        assert "zoom" in last
        assert "resize" not in last
        await pilot.press("=")
        await until(lambda: app.main.status_bar.notice == "it is the only pane in view")


async def test_while_arranging_an_ended_agent_names_no_keys():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].end(ExitStatus(code=0))
        await until(lambda: "r restart  x close" in text_of(app))
        await lead(pilot, "o")
        await until(lambda: "r restart" not in text_of(app) and "restart" in text_of(app))
        await pilot.press("escape")
        await until(lambda: "r restart  x close" in text_of(app))
        app.perform("palette")
        await until(lambda: "r restart" not in text_of(app))


async def test_a_notice_leaves_the_keys_of_arranging_in_view():
    async with running(three_agents(), (80, 24)) as (app, pilot):
        await lead(pilot, "%")
        await lead(pilot, "o")
        await pilot.press("N")
        await until(lambda: not at_main(app))
        await pilot.press(*"pair", "enter")
        await until(lambda: at_main(app) and "layout: pair" in text_of(app).splitlines()[-1])
        last = text_of(app).splitlines()[-1]
        assert "arrange  Esc done  arrows resize" in last


async def test_the_notice_of_a_layout_ends_when_a_rule_is_dragged():
    async with running(three_agents()) as (app, pilot):
        app.perform("set_layout", "main")
        await pilot.pause()
        assert app.main.status_bar.notice == "layout: main"
        rule = regions(app)[CLAUDE].right
        await pilot.mouse_down(offset=(rule, 20))
        await pilot.hover(offset=(rule - 15, 30))
        await pilot.mouse_up(offset=(rule - 15, 30))
        await until(lambda: not app.main.status_bar.notice)


async def test_rules_are_dragged_with_the_mouse():
    async with running(three_agents(), layout="main") as (app, pilot):
        where = regions(app)
        rule = where[CLAUDE].right
        await pilot.mouse_down(offset=(rule, 20))
        await pilot.hover(offset=(rule - 15, 30))
        await pilot.mouse_up(offset=(rule - 15, 30))
        await pilot.pause()
        assert regions(app)[CLAUDE].width == where[CLAUDE].width - 15
        title = regions(app)[GEMINI].y
        x = regions(app)[GEMINI].x + 20
        await pilot.mouse_down(offset=(x, title))
        await pilot.hover(offset=(x, title + 7))
        await pilot.mouse_up(offset=(x, title + 7))
        await pilot.pause()
        assert regions(app)[GEMINI].y == title + 7
        await pilot.mouse_down(offset=(x, title + 7))
        await pilot.hover(offset=(x, 39))
        await pilot.mouse_up(offset=(x, 39))
        await pilot.pause()
        assert regions(app)[GEMINI].height == 5, "no pane becomes smaller than the minimum"
        assert app.mouse_captured is None


async def test_a_title_that_is_a_rule_is_still_a_title():
    async with running(three_agents(), layout="main") as (app, pilot):
        title = regions(app)[GEMINI]
        await pilot.click(offset=(title.x + 20, title.y))
        await pilot.pause()
        assert app.main.active == GEMINI
        assert app.main.deck.arrangement == "main"
        await pilot.click(offset=(title.x + 20, title.y), times=2)
        await pilot.pause()
        assert app.main.deck.zoomed


async def test_layouts_are_named_and_come_back():
    async with running(three_agents()) as (app, pilot):
        await lead(pilot, "%")
        await lead(pilot, "ctrl+left")
        await lead(pilot, "N")
        await pilot.press(*"review", "enter")
        await until(lambda: at_main(app))
        shown = regions(app)
        assert app.main.deck.arrangement == "review"
        for _ in range(4):
            await pilot.press("f5")
        assert app.main.deck.arrangement == "main"
        await pilot.press("f5")
        await pilot.pause()
        assert (app.main.deck.arrangement, regions(app)) == ("review", shown)
        state = view_state(app.main)
    async with running(three_agents()) as (app, pilot):
        restore_view(app.main, state)
        await pilot.pause()
        assert (app.main.deck.arrangement, regions(app), app.main.active) == ("review", shown, CODEX)
        await pilot.press("f10", *"delete layout rev", "enter")
        await until(lambda: at_main(app))
        assert (app.main.deck.arrangement, app.main.deck.layouts) == ("tabs", {})


@pytest.mark.parametrize(
    "state",
    [
        {"layout": 5, "layouts": [1]},
        {"layout": "x", "layouts": {"x": {"axis": "row"}}},
        {"layout": "x", "layouts": {"x": {"axis": "row", "parts": ["a", "a"], "weights": [1, 1]}}},
    ],
)
async def test_a_damaged_layout_is_ignored(state):
    async with running(three_agents()) as (app, pilot):
        restore_view(app.main, state)
        await pilot.pause()
        assert (app.main.deck.arrangement, list(regions(app))) == ("tabs", [CLAUDE])


async def test_a_closed_agent_leaves_its_room_to_the_others_and_a_new_one_comes_by_its_tab():
    host = three_agents()
    async with running(host) as (app, pilot):
        await lead(pilot, "%")
        await host.close(CLAUDE)
        await until(lambda: {pane: region.width for pane, region in regions(app).items()} == {CODEX: 120})
        new = await host.open(AgentSpec("claude"), columns=80, lines=24)
        await until(lambda: app.main.deck.pane(new.agent_id) is not None)
        assert list(regions(app)) == [CODEX]


async def test_main_at_80x24_shows_two():
    host = FakeHost()
    host.add(AgentSpec("claude"))
    host.add(AgentSpec("codex"))
    async with running(host, size=(80, 24), layout="main") as (app, _pilot):
        assert {pane: region.width for pane, region in regions(app).items()} == {CLAUDE: 43, CODEX: 36}


async def test_a_split_from_the_board_that_was_shown_first():
    async with running(three_agents()) as (app, pilot):
        app.main.show_board()
        await pilot.pause()
        await lead(pilot, "%")
        assert list(regions(app)) == [CLAUDE, CODEX]
