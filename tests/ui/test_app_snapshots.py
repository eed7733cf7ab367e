"""How it looks: pictures of every screen, compared as a whole."""

import itertools
from typing import Any

import pytest

from synapse_tui.core.model import DEMO_AGENTS, AgentState
from tests.ui.app_kit import make_app, until
from tests.ui.fakes import FakeHost
from tests.ui.looks import LARGE, SMALL, USUAL, dialog_looks, every_look
from tests.ui.scenes import SCENES, make

pytestmark = pytest.mark.usefixtures("same_everywhere")


def compare(snap_compare: Any, name: str, size: tuple[int, int], **options: Any) -> None:
    app, run = make(name, FakeHost(), **options)
    assert snap_compare(app, terminal_size=size, run_before=run)


SCREENS = (
    "launcher",
    "sidebar",
    "leader",
    "help",
    "splits",
    "composer",
    "palette",
    "inbox",
    "answer",
    "many",
)
LAYOUTS = ("layout_tabs", "layout_columns", "layout_grid", "layout_main")


@every_look
@pytest.mark.parametrize("name", [*SCREENS, *LAYOUTS])
def test_scene(snap_compare, name, size, theme):
    compare(snap_compare, name, size, theme=theme)


@dialog_looks
@pytest.mark.parametrize("name", ["trust", *(name for name in SCENES if name not in SCREENS)])
def test_dialog(snap_compare, name, size, theme):
    compare(snap_compare, name, size, theme=theme)


@pytest.mark.parametrize("name", ["sidebar", "splits"])
@pytest.mark.parametrize(
    ("size", "theme"), [(SMALL, "dark"), (USUAL, "light"), (LARGE, "dark")], ids=["80x24", "120x40", "200x60"]
)
def test_other_theme(snap_compare, name, size, theme):
    compare(snap_compare, name, size, theme=theme)


@pytest.mark.parametrize("size", [(39, 10), (40, 10)])
def test_smallest(snap_compare, size):
    compare(snap_compare, "layout_tabs", size)


@every_look
@pytest.mark.parametrize("step", [1, 4])
def test_tour(snap_compare, step, size, theme):
    host = FakeHost()
    app = make_app(host, layout="columns", specs=DEMO_AGENTS, theme=theme)
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


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_answer_in_a_small_terminal(snap_compare, theme):
    compare(snap_compare, "answer", (40, 10), theme=theme)


PLAIN = ["layout_grid", "composer", "answer", "read_answer", "splits", "palette", "new_agent", "quit", "help"]


@pytest.mark.parametrize("name", [*PLAIN, "launcher", "sidebar", "inbox", "leader"])
def test_plain(snap_compare, name, plain_theme):
    compare(snap_compare, name, USUAL, theme=plain_theme)
