"""How it looks: pictures of every screen, compared as a whole."""

from typing import Any

import pytest

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


@pytest.mark.parametrize("name", ["sidebar", "help", "composer", "many"])
def test_small(snap_compare, name):
    compare(snap_compare, name, SMALL)


@pytest.mark.parametrize("size", [(39, 10), (40, 10)])
def test_smallest(snap_compare, size):
    compare(snap_compare, "layout_tabs", size)


@pytest.mark.parametrize("theme", ["light", "16"])
def test_theme(snap_compare, theme):
    compare(snap_compare, "sidebar", USUAL, theme=theme)


@pytest.mark.parametrize("name", ["layout_grid", "composer"])
def test_without_colour(snap_compare, name, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    compare(snap_compare, name, USUAL)
