"""How the board looks, at each size and in each kind of theme."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from synapse_tui.agents.worktrees.line_counts import FolderChange
from synapse_tui.ui.app import SynapseApp
from tests.ui.app_kit import make_app
from tests.ui.board_kit import DIALOG, ask, team
from tests.ui.fakes import FakeHost
from tests.ui.looks import every_look
from tests.waiting import until

CHANGES = {
    "alice": FolderChange(
        (
            ("src/cart/store.py", 22, 1),
            ("src/cart/totals.py", 11, 1),
            ("tests/test_cart.py", 8, 0),
            ("Makefile", 0, 1),
        )
    ),
    "bob": FolderChange((("tests/test_totals.py", 80, 0), ("tests/test_tax.py", 8, 0))),
    "翻訳": FolderChange((("ja.po", 120, 12),)),
    "dana": FolderChange((("checkout.py", 7, 7),)),
}

pytestmark = pytest.mark.usefixtures("same_everywhere")


async def count(folder: Path, _touched: Collection[Path], _whole: bool) -> FolderChange | None:
    return CHANGES.get(folder.name.removeprefix("shop-"))


def compare(
    snap_compare: Any, size: tuple[int, int], *keys: str, changed: bool = False, **options: Any
) -> None:
    host = FakeHost()
    agents = team(host)
    app: SynapseApp = make_app(host, **options)

    async def run(pilot: Pilot[None]) -> None:
        now = 75.0
        board = app.main.board
        await until(lambda: app.begun and len(app.main.deck.panes) == len(host.agents))
        board.clock = lambda: now
        board.source.changes._count = count  # type: ignore[union-attr]
        app.main.show_board()
        await until(lambda: board.source.changes.get(host.project.with_name("shop-dana")) is not None)  # type: ignore[union-attr]
        now += 1  # the dialog can be answered
        if changed:
            ask(agents["alice"], DIALOG.replace("build", "dist"), serial=2, asks="wants to run rm -rf dist")
            await pilot.pause()
        await pilot.press(*keys)
        board.look()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=run)


SIZES = [(60, 20), (80, 24), (120, 40), (200, 60), (300, 80)]


@pytest.mark.parametrize("size", SIZES, ids=[f"{width}x{height}" for width, height in SIZES])
def test_board(snap_compare: Any, size: tuple[int, int]) -> None:
    compare(snap_compare, size)


@pytest.mark.parametrize("size", SIZES[1:4], ids=["80x24", "120x40", "200x60"])
def test_light(snap_compare: Any, size: tuple[int, int]) -> None:
    compare(snap_compare, size, theme="light")


def test_plain(snap_compare: Any, plain_theme: str) -> None:
    compare(snap_compare, (120, 40), theme=plain_theme)


@every_look
@pytest.mark.parametrize("name", ["working", "find", "changed"])
def test_scene(snap_compare: Any, name: str, size: tuple[int, int], theme: str) -> None:
    keys = {"working": ("down",) * 4, "find": ("/", *"gem"), "changed": ()}[name]
    compare(snap_compare, size, *keys, changed=name == "changed", theme=theme)
