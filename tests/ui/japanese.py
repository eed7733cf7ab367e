"""Draws screens in Japanese: `python -m tests.ui.japanese FOLDER`, with the locale in the environment.

The language is that of the process, so a test of an English one starts this one.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens import main as main_screen
from synapse_tui.ui.screens.palette import Palette
from synapse_tui.ui.screens.settings import SettingsScreen
from synapse_tui.widgets import bars, terminal_view
from tests.ui import external_scenes, scenes, test_history_snapshots
from tests.ui.app_kit import LEADER, make_app, text_of, until
from tests.ui.board_kit import team
from tests.ui.fakes import FakeHost
from tests.ui.idle import FRAME, wait_for_idle
from tests.ui.looks import SMALL, USUAL
from tests.ui.settings_kit import Files

Scene = tuple[SynapseApp, Callable[[Pilot[None]], Awaitable[None]]]
SIZES = {"board": (SMALL, USUAL), "leader": (SMALL, USUAL)}  # others at 80x24 alone
"""The scenes that look otherwise where there is more room."""


def _board(_folder: Path) -> Scene:
    host = FakeHost()
    team(host)
    app = make_app(host)

    async def run(pilot: Pilot[None]) -> None:
        await until(lambda: app.begun and len(app.main.deck.panes) == len(host.agents))
        app.main.show_board()
        await pilot.pause()

    return app, run


def _history(name: str) -> Callable[[Path], Scene]:
    def make(_folder: Path) -> Scene:
        host = FakeHost()
        scenes.populate(host)
        test_history_snapshots.fill(host.history)
        keys = test_history_snapshots.SCENES[name]
        return make_app(host), test_history_snapshots.press(*keys)

    return make


def _external(_folder: Path) -> Scene:
    host = FakeHost()
    scenes.populate(host)
    prepare, run = external_scenes.SCENES["card"]
    assert prepare is not None
    prepare(host)
    return make_app(host), run


def _settings(*keys: str) -> Callable[[Path], Scene]:
    def make(folder: Path) -> Scene:
        host = FakeHost()
        app = make_app(host, settings_files=Files(folder))
        scenes.populate(host)

        async def run(pilot: Pilot[None]) -> None:
            await until(lambda: app.begun and len(app.main.deck.panes) == len(host.agents))
            await pilot.press(LEADER, ",")
            await until(lambda: isinstance(app.screen, SettingsScreen) and app.screen._shown)
            await pilot.press(*keys)
            await pilot.pause()

        return app, run

    return make


def _palette(_folder: Path) -> Scene:
    app, run = scenes.make("palette", FakeHost())

    async def find(pilot: Pilot[None]) -> None:
        await run(pilot)
        for query, action in (
            ("locks", "locks"),
            ("go to codex", "focus_agent"),
            ("reopen closed", "reopen_agent"),
        ):
            app.screen.query_one("#query", Input).value = query
            await until(lambda: _first(app) == action, query)  # noqa: B023

    return app, find


def _first(app: SynapseApp) -> str:
    """Return what Enter would do in the palette."""
    assert isinstance(app.screen, Palette)
    return app.screen._found[0].action[0] if app.screen._found else ""


def _scene(name: str) -> Callable[[Path], Scene]:
    return lambda _folder: scenes.make(name, FakeHost())


DRAWN: dict[str, Callable[[Path], Scene]] = {
    **{name: _scene(name) for name in ("sidebar", "leader", "help", "composer", "splits", "new_agent")},
    **{name: _scene(name) for name in ("close", "quit", "detail", "why", "ended")},
    "board": _board,
    "palette": _palette,
    "history": _history("newest"),
    "history_read": _history("read"),
    "external_card": _external,
    "settings": _settings(),
    "settings_theme": _settings("enter"),
    "settings_layout": _settings("down", "down", "enter"),
}


async def draw(name: str, folder: Path) -> None:
    for width, height in SIZES.get(name, (SMALL,)):
        home = folder / f"{name}-{width}"
        home.mkdir()
        app, run = DRAWN[name](home)
        async with app.run_test(size=(width, height), notifications=True) as pilot:
            await run(pilot)
            await pilot.pause()
            path = folder / f"{name}-{width}x{height}"
            path.with_suffix(".svg").write_text(app.export_screenshot(title=""), encoding="utf-8")
            path.with_suffix(".txt").write_text(text_of(app), encoding="utf-8")


def main(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        values: dict[Any, dict[str, Any]] = {
            bars: {"NOTICE_SECONDS": 3600.0, "LONG_SECONDS": 3600.0},
            terminal_view: {"SETTLE_TIME": FRAME / 4},
            main_screen: {"SETTLE_SECONDS": FRAME / 2},
        }
        for module, changed in values.items():
            for name, value in changed.items():
                patch.setattr(module, name, value)
        for module in ("textual.app", "textual.pilot"):
            patch.setattr(sys.modules[module], "wait_for_idle", wait_for_idle)
        for name in DRAWN:
            asyncio.run(draw(name, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
