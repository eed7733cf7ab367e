"""A real agent recorded and played again; recordings played in a terminal by a person with keys."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from synapse_tui.agents.process.log_times import Begun, times_path
from synapse_tui.errors import SynapseError
from synapse_tui.recording.asciicast import Recording
from synapse_tui.recording.log_cast import LogCast
from synapse_tui.recording.log_reader import read_log
from synapse_tui.recording.pane import PaneRecorder
from synapse_tui.recording.playback import Playback
from synapse_tui.recording.transcript import Transcript
from synapse_tui.terminal import Terminal
from tests.integration.pty_harness import until
from tests.integration.session_rig import open_rig
from tests.waiting import PATIENCE

PLAY = "from synapse_tui.cli.output import run_command; from synapse_tui.cli.play import command; "
PLAY += "import sys; run_command(command, sys.argv[1:], name='play')"


def picture(terminal: Terminal) -> tuple[object, ...]:
    cells = [[terminal.cell(x, y) for x in range(terminal.columns)] for y in range(terminal.lines)]
    return [[(cell.text, cell.style) for cell in row] for row in cells], terminal.cursor


def played(path: Path) -> Terminal:
    recording = Recording(path)
    try:
        playback = Playback(recording)
        playback.finish()
        return playback.mirror.terminal
    finally:
        recording.close()


# -- an agent ---


async def test_an_agent_is_recorded_from_its_present_screen_on(tmp_path):
    path = tmp_path / "a.cast"
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        await rig.done(rig.send("before 漢字"))
        recorder = await PaneRecorder.start(rig.session, path, environ={"TERM": "xterm"})
        with pytest.raises(SynapseError, match="is there already"):
            await PaneRecorder.start(rig.session, path, environ={})
        await rig.done(rig.send("while it is recorded"))
        rig.session.resize(70, 20)
        await rig.done(rig.send("in another size"))
        await rig.ready()
        shown = picture(rig.session.terminal)
        await recorder.close()
        assert not rig.session.taps
        assert picture(rig.session.terminal) == shown
    assert picture(played(path)) == shown
    header = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
    assert (header["width"], header["height"], header["title"]) == (100, 30, "synapse-dummy-8190")


async def test_a_restart_is_recorded(tmp_path):
    path = tmp_path / "a.cast"
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        await rig.done(rig.send("of the first process"))
        recorder = await PaneRecorder.start(rig.session, path, environ={})
        await rig.session.restart()
        await rig.ready()
        rig.type("draft")
        await rig.draft("draft")
        shown = picture(rig.session.terminal)
        await recorder.close()
    assert picture(played(path)) == shown


async def test_after_a_gap_all_is_there_again(tmp_path):
    path = tmp_path / "a.cast"
    async with open_rig(tmp_path) as rig:
        recorder = await PaneRecorder.start(rig.session, path, environ={})
        # The disk takes nothing, while the agent starts.
        recorder.recorder._queue._leaving_out = True
        await rig.ready()
        recorder.recorder._queue._leaving_out = False
        recorder.recorder._note_gap()
        shown = picture(rig.session.terminal)
        await recorder.close()
    assert picture(played(path)) == shown
    assert '"m", "output left out' in path.read_text(encoding="utf-8")


async def test_the_log_of_an_agent_is_its_screen_again(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        await rig.done(rig.send("何か %%lines:40%%"))
        rig.session.resize(90, 25)
        await rig.ready()
        await rig.done(rig.send("second"))
        await rig.ready()
    terminal = rig.session.terminal
    log = rig.logs / "synapse-dummy-8190.log"
    cast = LogCast("dummy")
    items = list(read_log(log, 10**9))
    assert isinstance(items[0], Begun)
    assert (items[0].columns, items[0].lines) == (100, 30)
    path = tmp_path / "log.cast"
    path.write_text("".join([*cast.lines(items), *cast.end()]), encoding="utf-8", newline="\n")
    assert picture(played(path)) == picture(terminal)
    transcript = Transcript()
    transcript.take(items)
    said = transcript.said() + transcript.screen()
    for row in terminal.display:
        assert not row.strip() or row.rstrip() in said
    assert any("何か" in line for line in said)
    assert times_path(log).stat().st_mode & 0o777 == 0o600


# -- playing ---


class Person:
    """Somebody who plays a recording in a terminal."""

    def __init__(self, process: asyncio.subprocess.Process, master: int, size: tuple[int, int]) -> None:
        self.process = process
        self.master = master
        self.sent = b""
        self.terminal = Terminal(*size)

    def take(self) -> None:
        try:
            data = os.read(self.master, 65536)
        except OSError:
            asyncio.get_running_loop().remove_reader(self.master)
            return
        self.sent += data
        self.terminal.feed(data)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.terminal.resize(columns, lines)

    @property
    def rows(self) -> list[str]:
        return [row.rstrip() for row in self.terminal.display]

    async def sees(self, text: str) -> None:
        await until(lambda: text in "\n".join(self.rows), lambda: f"{text!r} in {self.rows} {self.sent!r}")

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    async def ends(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def person(
    path: Path, *words: str, size: tuple[int, int] = (40, 6), environ: dict[str, str] | None = None
) -> AsyncIterator[Person]:
    master, slave = os.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    os.set_blocking(master, False)
    before = termios.tcgetattr(slave)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PLAY,
        str(path),
        *words,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", **(environ or {})},
        start_new_session=True,
    )
    watcher = Person(process, master, size)
    asyncio.get_running_loop().add_reader(master, watcher.take)
    try:
        yield watcher
        await watcher.ends()
        await until(lambda: b"\x1b[?25h" in watcher.sent or b"\x1b[?7l" not in watcher.sent, "the end")
        assert termios.tcgetattr(slave) == before
        modes = watcher.terminal.modes
        assert (modes.autowrap, modes.cursor_visible, modes.mouse, modes.alternate_screen) == (
            True,
            True,
            0,
            False,
        )
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)
        os.close(slave)


def cast(path: Path, *events: tuple[float, str, str], columns: int = 40, lines: int = 6) -> Path:
    header = {"version": 2, "width": columns, "height": lines}
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in [header, *map(list, events)]), encoding="utf-8"
    )
    return path


async def test_a_recording_is_played_to_its_end(tmp_path):
    path = cast(tmp_path / "a.cast", (0.0, "o", "漢字\r\n"), (0.1, "o", "\x1b[?1003h\x1b[?25l\x1b[31mred"))
    async with person(path) as watcher:
        assert await watcher.ends() == 0
        await watcher.sees("red")
    assert watcher.rows == ["漢字", "red", "", "", "", ""]
    assert (watcher.terminal.cursor.x, watcher.terminal.cursor.y) == (0, 2)
    assert b"\x1b[?1003h" not in watcher.sent


async def test_nothing_in_a_recording_acts_on_the_terminal(tmp_path):
    hostile = (
        "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b[6n\x1b[c\x1bP$qm\x1b\\\x1b[8;9;9t\x1b]10;?\x07\x07shown"
    )
    async with person(cast(tmp_path / "a.cast", (0.0, "o", hostile))) as watcher:
        await watcher.ends()
        await watcher.sees("shown")
    for part in (b"]52", b"]0;", b"[6n", b"[c", b"\x1bP", b"\x07", b"]10"):
        assert part not in watcher.sent


async def test_keys_pause_step_seek_and_end(tmp_path):
    events = [(3600.0 * number, "o", f"<{number}>") for number in range(1, 6)]
    async with person(cast(tmp_path / "a.cast", (0.0, "o", "<0>"), *events)) as watcher:
        await watcher.sees("<0>")
        watcher.press(b".")
        await watcher.sees("<0><1>")
        watcher.press(b"..")
        await watcher.sees("<0><1><2><3>")
        watcher.press(b"\x1b[D")
        await until(lambda: "<3>" not in "".join(watcher.rows), "back")
        watcher.press(b"\x1b[")
        await asyncio.sleep(0.1)  # read by itself
        watcher.press(b"C")
        await watcher.sees("<0><1><2><3>")
        watcher.press(b"\x1bOD")
        await until(lambda: "<3>" not in "".join(watcher.rows), "back")
        watcher.press(b"q")
        assert await watcher.ends() == 0


async def test_pauses_may_be_shortened_and_begun_late(tmp_path):
    path = cast(tmp_path / "a.cast", (0.0, "o", "a"), (3600.0, "o", "b"), (7200.0, "o", "c"))
    async with person(path, "--idle-limit", "0.05", "--speed", "0.5") as watcher:
        assert await watcher.ends() == 0
        await watcher.sees("abc")
    async with person(path, "--from", "7199.9") as watcher:
        await watcher.sees("ab")
        assert await watcher.ends() == 0
        await watcher.sees("abc")


async def test_who_pauses_at_the_end_ends_it_as_well(tmp_path):
    path = cast(tmp_path / "a.cast", (0.0, "o", "a"), (3600.0, "o", "b"))
    async with person(path) as watcher:
        await watcher.sees("a")
        watcher.press(b"..")
        await watcher.sees("ab")
        watcher.press(b"\x1b[D")
        await until(lambda: "b" not in "".join(watcher.rows), "back")
        watcher.press(b".")
        await watcher.sees("ab")
        watcher.press(b" ")
        assert await watcher.ends() == 0


@pytest.mark.parametrize(("end", "code"), [(b"\x03", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_the_terminal_is_restored_whatever_ends_it(tmp_path, end, code):
    async with person(
        cast(tmp_path / "a.cast", (0.0, "o", "\x1b[?25l\x1b[1mx"), (3600.0, "o", "y"))
    ) as watcher:
        await watcher.sees("x")
        if isinstance(end, bytes):
            watcher.press(end)
        else:
            watcher.process.send_signal(end)
        assert await watcher.ends() == code


async def test_a_recording_that_breaks_off_leaves_the_terminal_clean(tmp_path):
    path = cast(tmp_path / "a.cast", (0.0, "o", "x"), (0.3, "o", "y"))
    with path.open("a") as file:
        file.write("broken\n")
    async with person(path) as watcher:
        assert await watcher.ends() == 1
        await until(lambda: b"is broken" in watcher.sent, "the error")


async def test_a_terminal_that_can_only_print_is_not_painted_on(tmp_path):
    path = cast(tmp_path / "a.cast", (0.0, "o", "x"))
    async with person(path, environ={"TERM": "dumb"}) as watcher:
        assert await watcher.ends() == 8
        await until(lambda: b"--text" in watcher.sent, "the hint")
    assert b"\x1b" not in watcher.sent


async def test_a_smaller_terminal_is_told_and_shows_a_part(tmp_path):
    rows = "".join(f"\x1b[{y + 1};1H{y}" + "漢" * 19 for y in range(6))
    path = cast(tmp_path / "a.cast", (0.0, "o", rows), (3600.0, "o", "end"))
    async with person(path, size=(20, 4)) as watcher:
        await until(lambda: b"has 40 columns" in watcher.sent, "the remark")
        watcher.press(b" ")
        await until(lambda: watcher.rows[0] == "0" + "漢" * 9, lambda: str(watcher.rows))
        assert watcher.rows[3] == "3" + "漢" * 9
        watcher.resize(50, 8)
        await until(
            lambda: watcher.rows[:2] == [f"{y}" + "漢" * 19 for y in range(2)], lambda: str(watcher.rows)
        )
        watcher.press(b"q")


async def test_the_old_screen_is_scrolled_away_and_not_lost(tmp_path):
    path = cast(tmp_path / "a.cast", (0.0, "o", "played"))
    async with person(path) as watcher:
        watcher.terminal.feed(b"of the shell\r\n")
        await watcher.ends()
        await watcher.sees("played")
    assert "of the shell" in [line.text for line in watcher.terminal.scrollback]


# -- without a terminal ---


async def play(path: Path, *words: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PLAY,
        str(path),
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_the_text_of_the_last_screen(tmp_path):
    path = cast(
        tmp_path / "a.cast", (0.0, "o", "a\x1b[31m漢字\r\n\r\nb\x1b]2;t\x07"), (9.0, "o", "\x1b[1;1HA\u202e")
    )
    assert await play(path, "--text") == (0, "A漢字\n\nb\n", "")


async def test_what_cannot_be_played_is_told(tmp_path):
    path = cast(tmp_path / "a.cast", (0.0, "o", "x"))
    code, out, err = await play(path)
    assert (code, out) == (8, "")
    assert "--text" in err
    code, out, err = await play(tmp_path / "none.cast")
    assert (code, out) == (1, "")
    assert "cannot be read" in err
    assert (await play(path, "--speed", "0"))[0] == 2
