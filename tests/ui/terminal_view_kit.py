"""What the tests of the terminal pane share: a session without a process, an app, a driver that records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from rich.color import ColorSystem
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot
from textual.widget import Widget

from synapse_tui.agents.composer import ComposerReading
from synapse_tui.core.model import AgentState, StateReport
from synapse_tui.terminal import Cell, Terminal
from synapse_tui.ui.themes import variable_defaults
from synapse_tui.widgets.painting import PaneOutput
from synapse_tui.widgets.terminal_view import TerminalView


class FakeSession:
    """A session whose child is the test."""

    def __init__(self, columns: int = 40, lines: int = 10, scrollback: int = 200) -> None:
        self.terminal = Terminal(columns, lines, scrollback)
        self.damage_listener: Callable[[], None] | None = None
        self.input = b""
        self.sizes: list[tuple[int, int]] = []
        self.focused: list[bool] = []
        self.composer = True
        self.charged = 0.0
        self.report = StateReport(AgentState.READY, "test", "", 0.0)

    def output(self, data: str | bytes) -> None:
        self.terminal.feed(data.encode() if isinstance(data, str) else data)
        if self.damage_listener is not None:
            self.damage_listener()

    def user_input(self, data: bytes) -> None:
        self.input += data

    def resize(self, columns: int, lines: int) -> None:
        self.sizes.append((columns, lines))
        self.terminal.resize(columns, lines)

    def focus(self, focused: bool) -> None:
        self.focused.append(focused)

    def charge(self, seconds: float) -> None:
        self.charged += seconds

    def reading(self) -> ComposerReading:
        return ComposerReading(
            visible=self.composer, draft=self.terminal.line(0).text.removeprefix(">").strip()
        )

    def taken(self) -> bytes:
        data, self.input = self.input, b""
        return data


class RecordingDriver(HeadlessDriver):
    """Keeps what is written to the outer terminal."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.written: list[str] = []

    @property
    def is_headless(self) -> bool:
        return False

    def write(self, data: str) -> None:
        self.written.append(data)


class PanesApp(App[None]):
    """Panes beside one another."""

    CSS = "Screen { background: ansi_default; } Horizontal { height: 1fr; }"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = "TerminalView"

    def __init__(
        self,
        *sessions: FakeSession,
        around: Callable[[Widget], Widget] | None = None,
        colors: ColorSystem | None = ColorSystem.TRUECOLOR,
        no_color: bool = False,
    ) -> None:
        super().__init__(ansi_color=True, driver_class=RecordingDriver)
        self.console._color_system = colors
        self.no_color = no_color
        self.sessions = sessions
        self._around = around

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def make_view(self, session: FakeSession) -> TerminalView:
        return TerminalView(session, reserved=lambda key: key == "f1")

    def compose(self) -> ComposeResult:
        with Horizontal():
            for session in self.sessions:
                view = self.make_view(session)
                yield self._around(view) if self._around else view

    @property
    def view(self) -> TerminalView:
        return self.query(TerminalView).first()

    @property
    def views(self) -> list[TerminalView]:
        return list(self.query(TerminalView))

    @property
    def stage(self) -> PaneOutput:
        return PaneOutput.of(self)

    @property
    def outer(self) -> RecordingDriver:
        assert isinstance(self._driver, RecordingDriver)
        return self._driver

    def picture(self) -> Terminal:
        terminal = Terminal(*self.size, 0)
        terminal.feed(b"\x1b[?7l\x1b[?25l" + "".join(self.outer.written).encode())
        return terminal


@asynccontextmanager
async def running(app: PanesApp, size: tuple[int, int] = (40, 10)) -> AsyncIterator[Pilot[None]]:
    async with app.run_test(headless=False, size=size, notifications=True) as pilot:
        await settle(pilot)
        yield pilot


@asynccontextmanager
async def pane(
    session: FakeSession | None = None,
    app_class: type[Any] = PanesApp,
    *,
    size: tuple[int, int] = (40, 10),
    **options: Any,
) -> AsyncIterator[tuple[Any, FakeSession, Pilot[None]]]:
    session = session or FakeSession()
    app = app_class(session, **options)
    async with running(app, size) as pilot:
        yield app, session, pilot


async def settle(pilot: Pilot[None]) -> None:
    rests = 0
    for _ in range(400):
        await pilot.pause()
        # Twice in a row: where the machine is busy, what one look sees may not have set off all that follows.
        rests = rests + 1 if _rests(pilot.app) else 0
        if rests > 1:
            return
        await asyncio.sleep(0.002)
    raise AssertionError("the app does not come to rest")


def _rests(app: App[None]) -> bool:
    """Whether neither a pane nor any of the screens that lie upon one another has something to draw."""
    drawing = any(screen._dirty_widgets or screen._layout_required for screen in app.screen_stack)
    return not drawing and not PaneOutput.of(app).clock.busy


def looks(terminal: Terminal) -> list[list[Cell]]:
    return [[terminal.cell(x, y) for x in range(terminal.columns)] for y in range(terminal.lines)]
