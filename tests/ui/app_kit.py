"""What the tests of the application share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from textual.pilot import Pilot

from synapse_tui.core.model import AgentSpec
from synapse_tui.ui.app import SynapseApp
from synapse_tui.widgets.pane import ExitBar
from tests.ui.fakes import NOW, FakeHost, find_command
from tests.ui.idle import wait_for_idle
from tests.waiting import PATIENCE, Description, T
from tests.waiting import until as until_it_holds

LEADER = "ctrl+right_square_bracket"


async def until(condition: Callable[[], T | None], what: Description = "", seconds: float = PATIENCE) -> T:
    """Wait for a condition, and until the rest of what brought it about is done and drawn."""
    value = await until_it_holds(condition, what, seconds)
    await wait_for_idle()
    return value


def make_app(host: FakeHost, **options: Any) -> SynapseApp:
    options.setdefault("theme", "dark")
    clock = options.pop("clock", monotonic)
    app = SynapseApp(host, **options)  # type: ignore[arg-type]
    app.questions.clock = clock
    app.animation_level = "none"
    app.new_agents.find = find_command
    app.agents.clock = lambda: 75.0
    app.today = lambda: NOW
    app.main.sidebar.clock = lambda: 75.0
    app.main.sidebar.now = lambda: NOW
    app.main.conversations.now = lambda: NOW
    app.main.now = lambda: NOW
    app.main.board.clock = lambda: 75.0
    return app


@asynccontextmanager
async def running(
    host: FakeHost, size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[tuple[SynapseApp, Pilot[None]]]:
    app = make_app(host, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(lambda: app.begun)
        await pilot.pause()
        yield app, pilot
        await pilot.pause()
        assert app.errors.count == 0, "a handler failed; see the captured log"


def three_agents() -> FakeHost:
    host = FakeHost()
    for spec in (AgentSpec("claude"), AgentSpec("codex"), AgentSpec("gemini", name="alice")):
        host.add(spec)
    return host


def notices(app: SynapseApp) -> str:
    """What is said at the moment: in the status bar, or in toasts if it is too long or a dialog is open."""
    return "\n".join([app.main.status_bar.notice, *(each.message for each in app._notifications)])


def text_of(app: SynapseApp) -> str:
    screen = app.screen
    width, height = app.size
    base = app.main
    rows = []
    for source in (base, screen) if screen is not base else (base,):
        strips = source._compositor.render_strips()
        rows += ["".join(segment.text for segment in strip)[:width] for strip in strips[:height]]
    return "\n".join(rows)


def at_main(app: SynapseApp) -> bool:
    return app.screen is app.main


def exit_bar(app: SynapseApp) -> ExitBar:
    assert isinstance(app.focused, ExitBar)
    return app.focused


class StoppedClock:
    """The time of questions, which stands still until it goes on: however slowly a busy machine presses the
    keys of a test, they come without a pause."""

    def __init__(self) -> None:
        self._stopped_at: float | None = monotonic()

    def __call__(self) -> float:
        return monotonic() if self._stopped_at is None else self._stopped_at

    def go_on(self) -> None:
        self._stopped_at = None


def at_rest(app: SynapseApp) -> None:
    """Let a question that nobody asked for take the next key: nobody has typed for long."""
    clock = app.questions.clock
    app.questions.clock = lambda: clock() + 60
