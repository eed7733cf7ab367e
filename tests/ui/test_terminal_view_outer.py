"""A pane under the application's own driver, on a real outer terminal."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synapse_tui.driver import DriverOptions, driver_class
from tests.integration.driver_terminal import OuterEnd
from tests.ui.terminal_view_kit import FakeSession, PanesApp


class OuterApp(PanesApp):
    """A pane on an outer terminal."""

    def __init__(self, outer: OuterEnd, session: FakeSession) -> None:
        super().__init__(session)
        self.driver_class = driver_class(
            DriverOptions(outer.slave, outer.slave, environ={"TERM": "xterm-256color"})
        )


@asynccontextmanager
async def on_terminal(
    session: FakeSession, cell: tuple[int, int]
) -> AsyncIterator[tuple[OuterEnd, PanesApp]]:
    """Run an app with one pane on a terminal of 80x24 cells of some pixels."""
    outer = OuterEnd()
    zoom(outer, cell)
    app = OuterApp(outer, session)
    run = asyncio.create_task(app.run_async())
    try:
        await outer.until(lambda: session.sizes and app.view.has_focus)
        yield outer, app
    finally:
        app.exit()
        await run
        outer.close()


def zoom(outer: OuterEnd, cell: tuple[int, int]) -> None:
    """Give the cells of a terminal another size in pixels."""
    size = struct.pack("HHHH", 24, 80, 80 * cell[0], 24 * cell[1])
    fcntl.ioctl(outer.master, termios.TIOCSWINSZ, size)


async def test_a_child_that_asked_for_pixels_gets_those_of_the_outer_terminal():
    session = FakeSession()
    async with on_terminal(session, (10, 21)) as (outer, _app):
        session.output("\x1b[?1003h\x1b[?1016h")
        outer.type(b"\x1b[<0;4;3M")
        await outer.until(lambda: session.input)
        assert session.taken() == b"\x1b[<0;36;53M"
        zoom(outer, (20, 42))
        outer.type(b"\x1b[<0;4;3m")
        await outer.until(lambda: session.input)
        assert session.taken() == b"\x1b[<0;71;106m"
        session.output("\x1b[16t")
        assert session.terminal.take_replies() == b"\x1b[6;42;20t"
