"""How the history looks, compared as a whole."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from synapse_tui.core.model import Sender, TaskState
from synapse_tui.ui.app import SynapseApp
from tests.ui.app_kit import LEADER, make_app, until
from tests.ui.fakes import FakeHost
from tests.ui.history_fakes import FakeHistory
from tests.ui.looks import USUAL, every_look
from tests.ui.scenes import populate

CODEX = Sender("synapse-codex-8120", "codex", verified=True)
STRANGER = Sender("build-bot", "external")
ANSWER = """I looked at three places:

1. `src/lexer.rs:88`: the loop ends one too early, since `peek` returns None at the last byte.
2. `src/lexer.rs:140`: the same for raw strings.
3. 日本語のテキストも正しく折り返されます。全角文字は二つのセルを占めるので、行の終わりで切れてはいけません。

[b]No markup[/b] here. Tests: `pytest tests/lexer`, 214 passed."""

pytestmark = pytest.mark.usefixtures("same_everywhere")


def fill(history: FakeHistory) -> None:
    for number in range(60):
        history.put(
            f"step {number} of the plan: read chapter {number} and sum it up",
            f"chapter {number} is about tokens",
        )
    history.put(
        "端末の表示幅がおかしいです。全角文字の扱いを確認してください",
        "幅は 2 です。修正しました",
        to="synapse-gemini-8110",
    )
    history.put("does the lexer drop the last byte at EOF?", ANSWER, sender=CODEX, minutes=500)
    history.put(
        "run the whole suite",
        state=TaskState.FAILED,
        reason="the agent exited",
        to="synapse-codex-8120",
        minutes=60,
    )
    history.put("deploy to staging", state=TaskState.CANCELED, reason="canceled by you", sender=STRANGER)
    history.put("elsewhere", project="/home/me/code/other")
    history.put(
        "add a test for the empty file", state=TaskState.WORKING, metadata={"sender_task_id": "0badcafe"}
    )


def press(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def run(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, SynapseApp)
        await until(lambda: app.begun)
        await pilot.press(LEADER, "h")
        await until(lambda: app.screen is not app.main)
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await app.workers.wait_for_complete()
        await pilot.pause()

    return run


SCENES: dict[str, tuple[str, ...]] = {
    "newest": (),
    "found": ("l", "e", "x", "e", "r"),
    "japanese": ("幅",),
    "everywhere": ("tab", "p", "tab", "tab", "tab", "tab", "down", "down", "down"),
    "states": ("tab", "s", "down", "down", "down"),
    "read": ("down", "down", "down", "enter"),
}


def compare(snap_compare: Any, name: str, size: tuple[int, int], **options: Any) -> None:
    host = FakeHost()
    populate(host)
    fill(host.history)
    assert snap_compare(make_app(host, **options), terminal_size=size, run_before=press(*SCENES[name]))


@every_look
@pytest.mark.parametrize("name", SCENES)
def test_scene(snap_compare, name, size, theme):
    compare(snap_compare, name, size, theme=theme)


@pytest.mark.parametrize("name", ["found", "read"])
def test_plain(snap_compare, name, plain_theme):
    compare(snap_compare, name, USUAL, theme=plain_theme)
