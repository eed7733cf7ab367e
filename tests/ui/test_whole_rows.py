"""Wide characters of what is in front, whatever lies below."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from synapse_tui.system.language import Catalogue
from synapse_tui.terminal import Terminal
from synapse_tui.widgets import key_hints
from synapse_tui.widgets.painting import WholeCompositor
from tests.texts import CATALOGUES
from tests.ui.app_kit import LEADER, running, three_agents

OVERLAY = "漢字" * 20
BELOW = "下にある" * 20


class Layers(Screen[None]):
    CSS = """
    Layers { layers: below above; }
    Horizontal { layer: below; height: 4; }
    #overlay { layer: above; width: 30; height: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._compositor = WholeCompositor()

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(BELOW, id="first")
            yield Static(BELOW, id="second")
        yield Static(OVERLAY, id="overlay")


class LayersApp(App[None]):
    def on_mount(self) -> None:
        self.push_screen(Layers())


def rows(screen: Screen[Any]) -> list[str]:
    return [strip.text for strip in screen._compositor.render_strips()]


async def test_an_overlay_keeps_its_wide_characters_over_every_column() -> None:
    async with LayersApp().run_test(size=(60, 6)) as pilot:
        screen = pilot.app.screen
        first, overlay = screen.query_one("#first"), screen.query_one("#overlay")
        for width in range(1, 50):
            first.styles.width = width
            for at in range(0, 24, 5):
                overlay.styles.offset = (at, 1)
                await pilot.pause()
                upper, row, *_ = rows(screen)
                assert OVERLAY[:15] in row, (width, at)
                assert len(row.encode("utf-16-le")) // 2 <= 60
                assert upper.startswith(BELOW[: width // 2]), (width, at)


@pytest.mark.parametrize("columns", [80, 95, 121])
async def test_the_leaders_menu_is_whole_over_panes_side_by_side(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = json.loads((CATALOGUES / "ja.json").read_text(encoding="utf-8"))
    monkeypatch.setattr(key_hints, "tr", Catalogue(texts).translate)
    async with running(three_agents(), size=(columns, 30), layout="columns") as (app, pilot):
        await pilot.press(LEADER)
        await pilot.pause()
        menu = app.main.which_key
        drawn = rows(app.main)[menu.region.y :]
        lines = [strip.text.rstrip() for strip in menu.render_lines(menu.size.region)]
        assert any("分割" in line for line in lines)
        for row, line in zip(drawn, lines, strict=False):
            assert line.strip() in row


async def test_widgets_are_asked_only_for_the_rows_that_are_drawn() -> None:
    async with LayersApp().run_test(size=(60, 6)) as pilot:
        screen = pilot.app.screen
        asked: list[tuple[str | None, list[int]]] = []

        def note(widget: Widget, crop: Region) -> list[Strip]:
            asked.append((widget.id, list(crop.line_range)))
            return Widget.render_lines(widget, crop)

        screen.query_one("#overlay").styles.offset = (5, 1)
        await pilot.pause()
        for widget in screen.query(Static):
            widget.render_lines = partial(note, widget)
        screen._compositor._dirty_regions |= {Region(0, 0, 10, 1), Region(0, 2, 10, 1)}
        assert screen._compositor.render_partial_update() is not None
        assert asked == [("first", [0]), ("first", [2])]
        asked.clear()
        screen._compositor._dirty_regions.add(Region(8, 1, 10, 2))
        assert screen._compositor.render_partial_update() is not None
        assert asked == [("overlay", [0]), ("first", [1, 2])]


async def test_a_part_that_is_drawn_again_ends_in_no_wide_character() -> None:
    async with LayersApp().run_test(size=(60, 6)) as pilot:
        screen = pilot.app.screen
        compositor, console = screen._compositor, pilot.app.console
        screen.query_one("#overlay").styles.offset = (5, 1)
        await pilot.pause()
        whole = rows(screen)
        for end in range(1, 60):
            terminal = Terminal(60, 6, 0)
            terminal.feed("\r\n".join(whole).encode())
            compositor._dirty_regions.add(Region(0, 1, end, 1))
            update = compositor.render_partial_update()
            assert update is not None
            terminal.feed(update.render_segments(console).encode())
            assert [row.rstrip() for row in terminal.display] == [row.rstrip() for row in whole], end
