"""How it looks: pictures of every screen, compared as a whole."""

import itertools
from typing import Any

import pytest

from synapse_tui.model import DEMO_AGENTS, AgentState
from tests.ui.app_kit import make_app, until
from tests.ui.fakes import FakeHost
from tests.ui.scenes import SCENES, make

SMALL, USUAL = (80, 24), (120, 40)


pytestmark = pytest.mark.usefixtures("same_everywhere")


def compare(snap_compare: Any, name: str, size: tuple[int, int], **options: Any) -> None:
    app, run = make(name, FakeHost(), **options)
    assert snap_compare(app, terminal_size=size, run_before=run)


@pytest.mark.parametrize("name", ["launcher", "trust", *SCENES])
def test_scene(snap_compare, name):
    compare(snap_compare, name, USUAL)


@pytest.mark.parametrize("layout", ["tabs", "columns", "grid", "main"])
@pytest.mark.parametrize("size", [SMALL, USUAL], ids=["80x24", "120x40"])
def test_layout(snap_compare, layout, size):
    compare(snap_compare, f"layout_{layout}", size)


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [SMALL, USUAL, (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_splits(snap_compare, size, theme):
    compare(snap_compare, "splits", size, theme=theme)


@pytest.mark.parametrize("name", ["sidebar", "help", "composer", "many"])
def test_small(snap_compare, name):
    compare(snap_compare, name, SMALL)


@pytest.mark.parametrize("size", [(39, 10), (40, 10)])
def test_smallest(snap_compare, size):
    compare(snap_compare, "layout_tabs", size)


@pytest.mark.parametrize("size", [SMALL, USUAL], ids=["80x24", "120x40"])
@pytest.mark.parametrize("step", [1, 4])
def test_tour(snap_compare, step, size):
    host = FakeHost()
    app = make_app(host, layout="columns", specs=DEMO_AGENTS)
    app.tour.clock = itertools.count(1000).__next__
    app.tour.find = lambda _command: None

    async def run(pilot: Any) -> None:
        await until(lambda: len(app.main.deck.panes) == 2)
        for session in host.agents.values():
            session.composer = True
            session.become(AgentState.READY)
        app.tour.begin()
        app.tour._go(step)
        app.tour.look()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=run)


@pytest.mark.parametrize("theme", ["light", "16"])
def test_theme(snap_compare, theme):
    compare(snap_compare, "sidebar", USUAL, theme=theme)


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [SMALL, (40, 10)], ids=["80x24", "40x10"])
def test_answer(snap_compare, size, theme):
    compare(snap_compare, "answer", size, theme=theme)


@pytest.mark.parametrize("name", ["answer", "read_answer"])
def test_answer_in_a_light_theme(snap_compare, name):
    compare(snap_compare, name, USUAL, theme="light")


PLAIN = ["layout_grid", "composer", "answer", "read_answer", "splits", "palette", "new_agent", "quit", "help"]


@pytest.mark.parametrize("name", PLAIN)
def test_without_colour(snap_compare, name, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    compare(snap_compare, name, USUAL)


@pytest.mark.parametrize("name", PLAIN)
def test_sixteen_colours(snap_compare, name):
    compare(snap_compare, name, USUAL, theme="16")
