"""Recording to asciicast files."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.core.errors import SynapseError
from synapse_tui.daemon.recording import asciicast as recorder_module
from synapse_tui.daemon.recording.asciicast import GAP, CastEncoder, Header, ScreenRecorder
from synapse_tui.system.disk_queue import MAX_WAITING
from synapse_tui.terminal import Terminal
from tests.asciicast import play, read
from tests.terminal.test_vt_properties import streams
from tests.unit.clock import Clock

BEGUN = 1_700_000_000.5
ENVIRON = {"TERM": "xterm-256color", "SHELL": "/bin/zsh", "HOME": "/home/me", "TOKEN": "secret"}


def make(path: Path, clock: Clock | None = None, *, overwrite: bool = False) -> ScreenRecorder:
    return ScreenRecorder(
        path,
        80,
        24,
        environ=ENVIRON,
        title="漢 <b>",
        clock=clock or Clock(BEGUN),
        overwrite=overwrite,
    )


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


async def test_a_recording_has_header_and_events(tmp_path):
    clock = Clock(BEGUN)
    recorder = make(tmp_path / "a.cast", clock)
    recorder.output(b"\x1b[1mhello\r\n")
    clock.now += 0.25
    recorder.resized(100, 30)
    clock.now += 1
    recorder.marker("here")
    recorder.output("漢字".encode())
    await recorder.close()
    header, events = read(tmp_path / "a.cast")
    assert header == {
        "version": 2,
        "width": 80,
        "height": 24,
        "timestamp": 1_700_000_000,
        "env": {"SHELL": "/bin/zsh", "TERM": "xterm-256color"},
        "title": "漢 <b>",
    }
    assert events == [
        [0.0, "o", "\x1b[1mhello\r\n"],
        [0.25, "r", "100x30"],
        [1.25, "m", "here"],
        [1.25, "o", "漢字"],
    ]
    assert (tmp_path / "a.cast").stat().st_mode & 0o777 == 0o600


async def test_characters_that_are_cut_stay_whole(tmp_path):
    recorder = make(tmp_path / "a.cast")
    for byte in "a漢👩".encode():
        recorder.output(bytes([byte]))
    recorder.output(b"\xff-\xe6\xbc")
    await recorder.close()
    texts = [data for _, _, data in read(tmp_path / "a.cast")[1]]
    assert texts == ["a", "漢", "👩", "\ufffd-", "\ufffd"]


async def test_a_file_that_is_there_is_kept(tmp_path):
    path = written(tmp_path / "a.cast", "mine")
    path.chmod(0o644)
    with pytest.raises(SynapseError, match="is there already"):
        make(path)
    assert path.read_text() == "mine"
    await make(path, overwrite=True).close()
    assert read(path)[0]["width"] == 80
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["missing", "link", "pipe", "folder"])
def test_what_cannot_be_recorded_to_is_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.cast"
    if kind == "missing":
        path = tmp_path / "none" / "a.cast"
    elif kind == "link":
        path.symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(SynapseError, match="cannot be recorded to"):
        make(path, overwrite=True)
    assert not (tmp_path / "target").exists()


async def test_a_full_disk_ends_the_recording_only(tmp_path, monkeypatch):
    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    recorder = make(tmp_path / "a.cast")
    told: list[SynapseError] = []
    recorder.on_error = told.append
    monkeypatch.setattr(recorder_module, "_write_all", full)
    recorder.output(b"x")
    await recorder.close()
    recorder.output(b"y")
    await recorder.close()
    assert [error.message for error in told] == [
        f"the recording to {tmp_path / 'a.cast'} has ended: No space left on device"
    ]


async def test_a_slow_disk_leaves_output_out_and_asks_for_all_anew(tmp_path, monkeypatch):
    release = threading.Event()
    real = recorder_module._write_all

    def slow(descriptor: int, data: bytes) -> None:
        release.wait(30)
        real(descriptor, data)

    monkeypatch.setattr(recorder_module, "_write_all", slow)
    recorder = make(tmp_path / "a.cast")
    asked = []

    def repaint() -> None:
        asked.append(True)
        recorder.output(b"all anew")

    recorder.on_gap = repaint
    recorder.output(b"first")
    for _ in range(5):
        recorder.output(b"x" * (MAX_WAITING // 4))
    recorder.output(b"left out as well")
    release.set()
    await recorder.close()
    await recorder.close()
    events = read(tmp_path / "a.cast")[1]
    assert asked == [True]
    assert [code for _, code, _ in events[-3:]] == ["m", "o", "o"]
    assert [data for _, _, data in events[-3:]] == [GAP, "\x18", "all anew"]
    assert all("left out as well" not in data for _, _, data in events)
    assert sum(len(data) for _, _, data in events) < 1.1 * MAX_WAITING


steps = st.lists(
    st.tuples(streams, st.none() | st.tuples(st.integers(1, 30), st.integers(1, 12)), st.floats(0, 5)),
    max_size=8,
)


def encoded(steps: list[tuple[bytes, tuple[int, int] | None, float]]) -> Iterator[str]:
    """The lines of a recording, its output cut anywhere."""
    encoder = CastEncoder()
    yield encoder.header(Header(12, 5))
    time = 0.0
    for data, size, pause in steps:
        time += pause
        middle = len(data) // 2
        yield encoder.output(time, data[:middle])
        yield encoder.output(time, data[middle:])
        if size is not None:
            yield encoder.resized(time, *size)
    yield encoder.output(time, b"", final=True)


@settings(max_examples=50, deadline=None)
@given(steps=steps)
def test_what_is_played_is_what_was_recorded(tmp_path_factory, steps) -> None:
    path = tmp_path_factory.mktemp("cast") / "a.cast"
    path.write_text("".join(encoded(steps)), encoding="utf-8", newline="\n")
    terminal = Terminal(12, 5, 0)
    for data, size, _ in steps:
        terminal.feed(data)
        if size is not None:
            terminal.resize(*size)
    shown = play(path)
    assert [shown.line(y).runs() for y in range(shown.lines)] == [
        terminal.line(y).runs() for y in range(terminal.lines)
    ]
    assert shown.cursor == terminal.cursor
