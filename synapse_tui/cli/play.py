"""`synapse-tui play`: plays a recording in this terminal."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

import click

from synapse_tui.errors import TerminalUnfit
from synapse_tui.recording.asciicast import Recording
from synapse_tui.recording.mirror import END, START, Mirror
from synapse_tui.recording.playback import Playback, Player
from synapse_tui.terminal.render import clean

from .commands import Command
from .output import note, show

SEEK = 5.0
"""Seconds that the arrow keys go forwards or backwards."""
FRAME = 1 / 60
"""Seconds between two pictures at least."""
LOOK = 0.25
"""Seconds after which the size of the terminal is looked at again."""
READING = 2.0
"""Seconds to read a remark before the first picture is painted over it, when no key is pressed."""
# What cannot go on as a sequence has ended, and is no key.
_KEY = re.compile(
    rb"\x1b\[[0-?]*[ -/]*(?:[@-~]|(?=[^ -~]))|\x1bO(?:[@-~]|(?=[^@-~]))|\x1b(?![\[O])|[^\x1b]", re.DOTALL
)
_RIGHT, _LEFT = (b"\x1b[C", b"\x1bOC"), (b"\x1b[D", b"\x1bOD")
_DIVERTED = (signal.SIGTERM, signal.SIGHUP)

EPILOG = """\b
Keys while it plays:
  Space        pause, go on        + -          faster, slower
  .            next event          Left Right   5 seconds back, ahead
  q            end
"""


@click.command(name="play", cls=Command, epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--speed", metavar="X", type=click.FloatRange(1 / 64, 64), default=1, show_default=True, help="How fast."
)
@click.option(
    "--idle-limit", metavar="S", type=click.FloatRange(0), help="Let no pause take more than S seconds."
)
@click.option("--from", "start", metavar="T", type=click.FloatRange(0), default=0, help="Begin T seconds in.")
@click.option("--text", is_flag=True, help="Print the text of the last screen instead.")
def command(file: Path, speed: float, idle_limit: float | None, start: float, text: bool) -> None:
    """Play FILE, a recording made with --record or any other asciicast of version 2.

    Nothing in it can act on your terminal: it is played in a terminal of our own, whose picture is shown.
    """
    recording = Recording(file)
    try:
        playback = Playback(recording, idle_limit)
        if text:
            print_text(playback)
            return
        if not sys.stdout.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
            raise TerminalUnfit(
                "there is no terminal to play in", "use --text for the text of the last screen"
            )
        playback.seek(start)
        play(playback, speed=speed)
    finally:
        recording.close()


def print_text(playback: Playback) -> None:
    """Print the last screen as text."""
    playback.finish()
    rows = [clean(row).rstrip() for row in playback.mirror.terminal.display]
    while rows and not rows[-1]:
        rows.pop()
    for row in rows:
        show(row)


def play(playback: Playback, *, speed: float) -> None:
    """Play in the terminal of standard output until the end, or until the person ends it.

    The screen stays as it was last, above the prompt; the terminal is as before whatever happens.

    Raises:
        KeyboardInterrupt: Ctrl+C was pressed.
    """
    out = sys.stdout.fileno()
    with ExitStack() as stack:
        for number in _DIVERTED:
            stack.enter_context(_ending_on(number))
        keys = stack.enter_context(_keyboard())
        stage = _Stage(out, playback.mirror)
        if remark := stage.remark():
            note(remark)
            stack.callback(note, remark)
            _wait(keys, READING)
        stack.enter_context(stage.opened())
        _run(Player(playback, time.monotonic, speed), stage, keys)


def _run(player: Player, stage: _Stage, keys: int) -> None:
    pressed = b""
    while True:
        player.advance()
        stage.paint()
        if player.ended and not player.paused:
            return
        due = player.wait
        if _wait(keys, LOOK if due is None else min(max(due, FRAME), LOOK)):
            data = os.read(keys, 1024)
            keys_pressed, pressed = _split_keys(pressed + data)
            # Without a keyboard any more there is nobody to go on from a pause.
            if not data or not all(_press(player, key) for key in keys_pressed):
                return


def _split_keys(data: bytes) -> tuple[list[bytes], bytes]:
    """The keys in what was read, and the beginning of one that is not read whole yet."""
    keys, place = [], 0
    while found := _KEY.match(data, place):
        keys.append(found[0])
        place = found.end()
    return keys, data[place:]


def _press(player: Player, key: bytes) -> bool:
    """Do what a key says; False when it ends the playing."""
    if key == b"\x03":
        raise KeyboardInterrupt
    if key in (b"q", b"Q"):
        return False
    if key == b" ":
        player.pause()
    elif key == b".":
        player.step()
    elif key in (b"+", b"="):
        player.accelerate(2)
    elif key in (b"-", b"_"):
        player.accelerate(1 / 2)
    elif key in _RIGHT or key in _LEFT:
        player.move(SEEK if key in _RIGHT else -SEEK)
    return True


class _Stage:
    """The part of the terminal that is played in: all of it, its old content scrolled away."""

    def __init__(self, descriptor: int, mirror: Mirror) -> None:
        self._descriptor = descriptor
        self._mirror = mirror
        self._size = (0, 0)

    def remark(self) -> str:
        """What is to be said before it begins; empty when the recording has room."""
        columns, lines = _terminal_size(self._descriptor)
        terminal = self._mirror.terminal
        if terminal.columns <= columns and terminal.lines <= lines:
            return ""
        return (
            f"the recording has {terminal.columns} columns and {terminal.lines} lines, this terminal only "
            f"{columns} and {lines}: the rest is cut off"
        )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make room; at the end the cursor stands below the last picture."""
        lines = _terminal_size(self._descriptor)[1]
        _write(self._descriptor, f"\x1b[{lines}H".encode() + b"\r\n" * lines + START)
        try:
            yield
        finally:
            last = min(_terminal_size(self._descriptor)[1], self._last_row() + 1)
            with suppress(OSError):
                _write(self._descriptor, END + f"\x1b[{last}H\r\n".encode())

    def _last_row(self) -> int:
        """The last row that shows something, from 0."""
        terminal = self._mirror.terminal
        used = [y for y, row in enumerate(terminal.display) if row.strip()]
        return max([terminal.cursor.y, *used])

    def paint(self) -> None:
        """Paint what differs, all after a change of the terminal's size."""
        size = _terminal_size(self._descriptor)
        if size != self._size:
            self._size = size
            _write(self._descriptor, self._mirror.full(*size))
        else:
            _write(self._descriptor, self._mirror.frame(*size))


@contextmanager
def _keyboard() -> Iterator[int]:
    """A terminal to read keys from, each at once and as a byte; -1 when there is none."""
    opened = -1
    descriptor = 0 if os.isatty(0) else -1
    if descriptor < 0:
        with suppress(OSError):
            descriptor = opened = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    if descriptor < 0:
        yield -1
        return
    before = termios.tcgetattr(descriptor)
    now = termios.tcgetattr(descriptor)
    now[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
    now[6][termios.VMIN], now[6][termios.VTIME] = 1, 0
    try:
        termios.tcsetattr(descriptor, termios.TCSANOW, now)
        yield descriptor
    finally:
        with suppress(termios.error):
            # At once, for a terminal may be stalled. What was typed ahead is not meant for the shell.
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
            termios.tcflush(descriptor, termios.TCIFLUSH)
        if opened >= 0:
            os.close(opened)


@contextmanager
def _ending_on(number: signal.Signals) -> Iterator[None]:
    """Let a signal end the process by way of all that is to be put in order first."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


def _wait(keys: int, seconds: float) -> bool:
    """Wait for a key; False when none came."""
    if keys < 0:
        time.sleep(seconds)
        return False
    return bool(select.select([keys], [], [], seconds)[0])


def _terminal_size(descriptor: int) -> tuple[int, int]:
    """Columns and lines (TIOCGWINSZ)."""
    lines, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8)))
    return (columns, lines) if columns and lines else (80, 24)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
