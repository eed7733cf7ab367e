"""What painting costs: CPU of both ways of painting under the loads that agents make.

    python tests/bench/panes.py [--seconds 3] [--rate 30] [--load spin ...] [--panes 1 4] [--path direct ...]

Each child writes `--rate` frames a second: `spin` changes two rows, `block` twelve, `full` all, `scroll` adds
two lines, `dense` has a colour of its own for every cell. The time of parsing is given apart, since it is the
same for both ways.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.color import ColorSystem
from textual.app import App, ComposeResult
from textual.containers import Grid
from textual.drivers.headless_driver import HeadlessDriver

from synapse_tui.agents.composer import ComposerReading
from synapse_tui.terminal import Terminal
from synapse_tui.themes import variable_defaults
from synapse_tui.widgets.painting import PaneOutput
from synapse_tui.widgets.terminal_view import TerminalView

COLUMNS, LINES = 120, 40
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def spin(number: int, columns: int, lines: int) -> str:
    """Two rows: a spinner with a counter, and the line below."""
    return (
        f"\x1b[{lines - 4};1H\x1b[38;5;174m{SPINNER[number % 10]} Working… ({number}s)\x1b[0m\x1b[K"
        f"\x1b[{lines - 1};1H\x1b[2m{number} tokens\x1b[0m\x1b[K"
    )


def block(number: int, columns: int, lines: int) -> str:
    """Twelve rows drawn anew, as Ink does."""
    rows = [
        f"\x1b[2K\x1b[36m│\x1b[0m {number + row} {'lorem ipsum ' * (columns // 14)}"[: columns + 12]
        for row in range(12)
    ]
    return f"\x1b[{lines - 14};1H" + "\r\n".join(rows)


def full(number: int, columns: int, lines: int) -> str:
    """All rows drawn anew, one colour a row."""
    rows = [
        f"\x1b[{row + 1};1H\x1b[38;5;{(row + number) % 256}m{'text ' * (columns // 5)}"[:columns]
        for row in range(lines)
    ]
    return "".join(rows)


def scroll(number: int, columns: int, lines: int) -> str:
    """Two lines more of a log."""
    return "".join(
        f"\x1b[{lines};1H\r\n\x1b[32mINFO\x1b[0m {number} line {index} of a log" for index in range(2)
    )


def dense(number: int, columns: int, lines: int) -> str:
    """A direct colour for every cell."""
    out = []
    for row in range(lines):
        out.append(f"\x1b[{row + 1};1H")
        out += [f"\x1b[48;2;{(x + number) % 256};{row * 6};{x}m " for x in range(columns)]
    return "".join(out)


LOADS: dict[str, Callable[[int, int, int], str]] = {
    "spin": spin,
    "block": block,
    "full": full,
    "scroll": scroll,
    "dense": dense,
}


class Session:
    """A session that is fed by the benchmark."""

    def __init__(self) -> None:
        self.terminal = Terminal(COLUMNS, LINES, 1000)
        self.damage_listener: Callable[[], None] | None = None
        self.parsing = 0.0

    def output(self, data: bytes) -> None:
        """Parse output and tell of it."""
        before = time.process_time()
        self.terminal.feed(data)
        self.parsing += time.process_time() - before
        if self.damage_listener is not None:
            self.damage_listener()

    def user_input(self, data: bytes) -> None:
        """Nobody types."""

    def resize(self, columns: int, lines: int) -> None:
        """Take the size of the pane."""
        self.terminal.resize(columns, lines)

    def focus(self, focused: bool) -> None:
        """Of no interest."""

    def charge(self, seconds: float) -> None:
        """Of no interest."""

    def reading(self) -> ComposerReading:
        """Nobody types."""
        return ComposerReading(visible=False)


class CountingDriver(HeadlessDriver):
    """Counts what is written."""

    written = 0
    writes = 0

    @property
    def is_headless(self) -> bool:
        """Not for Textual: it has to paint."""
        return False

    def write(self, data: str) -> None:
        """Count."""
        self.written += len(data.encode())
        self.writes += 1


class Panes(App[None]):
    """Panes in a grid."""

    CSS = "Grid { grid-size: 2; } Screen { overflow: hidden; background: ansi_default; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, sessions: list[Session]) -> None:
        super().__init__(ansi_color=True, driver_class=CountingDriver)
        self.console._color_system = ColorSystem.TRUECOLOR
        self.sessions = sessions

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The app's colours."""
        return variable_defaults()

    def compose(self) -> ComposeResult:
        """One view a session."""
        with Grid() as grid:
            grid.styles.grid_size_columns = 1 if len(self.sessions) == 1 else 2
            for session in self.sessions:
                yield TerminalView(session)


@dataclass(frozen=True)
class Result:
    """What one run cost.

    Attributes:
        painting: CPU of all but parsing, in percent of one core.
        parsing: CPU of parsing.
        kilobytes: Written to the outer terminal a second.
        writes: Writes a second.
    """

    painting: float
    parsing: float
    kilobytes: float
    writes: float


async def measure(panes: int, load: str, *, direct: bool, rate: float, seconds: float) -> Result:
    """Run one load."""
    sessions = [Session() for _ in range(panes)]
    app = Panes(sessions)
    size = (COLUMNS, LINES) if panes == 1 else (COLUMNS * 2, LINES * 2)
    async with app.run_test(headless=False, size=size) as pilot:
        await pilot.pause(0.3)
        app._sync_available = True
        PaneOutput.of(app).direct = direct
        frames = [list(_frames(load, session)) for session in sessions]
        driver = app._driver
        assert isinstance(driver, CountingDriver)
        await _feed(sessions, frames, rate, 0.3)
        for session in sessions:
            session.parsing = 0.0
        driver.written = driver.writes = 0
        cpu, wall = time.process_time(), time.perf_counter()
        await _feed(sessions, frames, rate, seconds)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        parsing = sum(session.parsing for session in sessions)
        return Result(
            100 * (cpu - parsing) / wall,
            100 * parsing / wall,
            driver.written / wall / 1000,
            driver.writes / wall,
        )


def _frames(load: str, session: Session) -> Iterator[bytes]:
    terminal = session.terminal
    for number in range(60):
        yield LOADS[load](number, terminal.columns, terminal.lines).encode()


async def _feed(sessions: list[Session], frames: list[list[bytes]], rate: float, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for number in range(int(seconds * rate)):
        for session, own in zip(sessions, frames, strict=True):
            session.output(own[number % len(own)])
        await asyncio.sleep(max(0.0, begin + (number + 1) / rate - loop.time()))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rate", type=float, default=30.0)
    parser.add_argument("--load", nargs="+", default=list(LOADS), choices=list(LOADS))
    parser.add_argument("--panes", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--path", nargs="+", default=["direct", "compositor"])
    options = parser.parse_args()
    print(f"{'panes':>5} {'load':>7} {'path':>11} {'paint %':>8} {'parse %':>8} {'kB/s':>8} {'writes/s':>8}")
    for panes in options.panes:
        for load in options.load:
            for path in options.path:
                result = asyncio.run(
                    measure(panes, load, direct=path == "direct", rate=options.rate, seconds=options.seconds)
                )
                print(
                    f"{panes:>5} {load:>7} {path:>11} {result.painting:>8.1f} {result.parsing:>8.1f}"
                    f" {result.kilobytes:>8.0f} {result.writes:>8.0f}"
                )


if __name__ == "__main__":
    main()
