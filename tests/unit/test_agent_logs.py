"""Logs of agents: read with their times, also while they are written; as lines of text, as an asciicast."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.agents.raw_log import Begun, RawLog, Resized, times_path
from synapse_tui.daemon.recording.log_reader import LogCast, LogFile, LogItem, Output, follow_log, read_log
from synapse_tui.daemon.recording.transcript import Transcript
from synapse_tui.terminal import Terminal
from tests.asciicast import play, read
from tests.unit.clock import Clock
from tests.work import work


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


ALL = 10**9


def begun(columns: int = 20, lines: int = 4) -> Begun:
    return Begun(1000.0, 0, columns, lines, anew=True)


def text(*items: LogItem | str) -> tuple[list[str], list[str]]:
    """What was said and what is on the screen, of output in a terminal of 20 by 4."""
    transcript = Transcript()
    transcript.take(
        [begun(), *(Output(None, item.encode()) if isinstance(item, str) else item for item in items)]
    )
    return transcript.said(), transcript.screen()


def test_blanks_for_halves_of_emoji_are_no_text() -> None:
    transcript = Transcript(half_blanks=True)
    transcript.take([begun(), Output(None, "\x1b[1;1H⚠️ a".encode())])
    assert transcript.screen() == ["⚠️a"]


def test_a_resize_is_as_much_work_after_a_long_output_as_after_a_short_one() -> None:
    def resizing(lines: int) -> int:
        transcript = Transcript()
        transcript.take([begun(), Output(None, b"a line of output\r\n" * lines), Resized(1000.0, 30, 4)])
        with work() as counted:
            transcript.take(Resized(1000.0, columns, 4) for columns in (40, 20, 10, 20))
        assert len(transcript.said() + transcript.screen()) == lines
        return counted.lines

    assert resizing(12_000) < 1.2 * resizing(1_200)


@pytest.mark.parametrize("columns", [10, 200])
def test_lines_that_a_larger_screen_takes_back_are_said_once(columns: int) -> None:
    numbered = [f"{number} {'日本語の文 ' * (number % 7)}".rstrip() for number in range(3000)]
    transcript = Transcript()
    transcript.take([begun(columns), Output(None, "\r\n".join(numbered).encode())])
    for size in ((700, 500), (columns, 4), (7, 300), (200, 60)):
        transcript.take([Resized(1000.0, *size)])
    assert transcript.said() + transcript.screen() == numbered


# -- reading ---


async def test_the_previous_file_comes_first(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "a.log"
    log = RawLog(path, max_bytes=100, clock=clock)
    log.started(80, 24)
    log.write(b"x" * 150)
    await log.close()
    log.write(b"yyy")
    await log.close()
    assert list(read_log(path, ALL)) == [
        Begun(1000.0, 0, 80, 24, anew=True),
        Output(1000.0, b"x" * 150),
        Begun(1000.0, 0, 80, 24, anew=False),
        Output(1000.0, b"yyy"),
    ]
    assert b"".join(data_of(read_log(path, 5))) == b"xxyyy"


def data_of(items: Iterable[LogItem | None]) -> list[bytes]:
    return [item.data for item in items if isinstance(item, Output)]


async def test_a_log_that_is_followed_gives_what_is_added(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "a.log"
    log = RawLog(path, max_bytes=1000, clock=clock)
    log.started(80, 24)
    log.write(b"one")
    await log.close()
    file = follow_log(path, ALL, lambda: None)

    def until_idle() -> bytes:
        got = b""
        for item in file:
            if item is None:
                return got
            got += item.data if isinstance(item, Output) else b""
        raise AssertionError

    assert until_idle() == b"one"
    assert until_idle() == b""
    log.write(b"two")
    await log.close()
    assert until_idle() == b"two"
    for number in range(5):  # new files are begun meanwhile
        log.write(b"%d" % number + b"x" * 600)
        await log.close()
        assert until_idle() == b"%d" % number + b"x" * 600
    log.write(b"end")
    await log.close()
    assert until_idle() == b"end"
    file.close()


def test_bytes_wait_for_their_time(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"ab")
    times_path(path).write_text("@1000 0 80x24\n5 2\n")
    file = LogFile(path)
    assert len(list(file.read(final=False))) == 2
    with path.open("ab") as log:
        log.write(b"cd")
    with times_path(path).open("a") as times:
        times.write("7 ")
    assert list(file.read(final=False)) == []
    with times_path(path).open("a") as times:
        times.write("2\n")
    assert list(file.read(final=False)) == [Output(1.012, b"cd")]
    file.close()


# -- text ---


def test_a_line_that_is_wrapped_is_one() -> None:
    line = "漢字" * 9 + "a" * 30
    assert text(line + "\r\n\n\n\n\n") == ([line, ""], [])
    assert text(line + "\r\n\n") == ([], [line])
    odd = "a" * 19 + "漢字" + "b"
    assert text(odd + "\r\n\n\n\n\n")[0][0] == odd


def test_a_line_is_not_said_before_it_is_whole() -> None:
    line = "x" * 70
    said, screen = text(line, "\r\n", "a\r\nb")
    assert said == []
    assert screen == [line, "a", "b"]
    assert text(line, "yyy" * 10, "\r\n" * 9)[0][0] == line + "yyy" * 10


def test_lines_that_are_written_anew_are_said_once() -> None:
    transcript = "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n"
    said, screen = text(transcript, "\x1b[2J\x1b[3J\x1b[H", transcript + "six\r\n")
    assert said + screen == ["one", "two", "three", "four", "five", "six"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text("ab 漢é", min_size=1, max_size=50).map(str.strip).filter(bool),
            st.none() | st.tuples(st.integers(2, 40), st.integers(1, 8)),
        ),
        max_size=20,
    )
)
def test_every_line_is_said_once(steps: list[tuple[str, tuple[int, int] | None]]) -> None:
    items: list[LogItem | str] = []
    for number, (line, size) in enumerate(steps):
        items.append(f"{number}{line}\r\n")
        if size is not None:
            items.append(Resized(0.0, *size))
    said, screen = text(*items)
    assert said + screen == [f"{number}{line}" for number, (line, _) in enumerate(steps)]


def test_an_alternate_screen_is_said_when_it_is_left() -> None:
    said, screen = text("before\r\n", "\x1b[?1049h\x1b[Hfull\r\nscreen\x1b[?1049l", "after")
    assert (said, screen) == (["full", "screen"], ["before", "after"])
    said, screen = text("before\r\n\x1b[?1049h\x1b[Hfull")
    assert (said, screen) == ([], ["before", "full"])


def test_text_that_is_painted_upwards_is_put_together() -> None:
    lines = [f"line number {number}" for number in range(40)]
    items: list[LogItem | str] = ["\x1b[?1049h"]
    for top in range(len(lines) - 3):
        shown = lines[top : top + 4]
        items.append("\x1b[?2026h" + "".join(f"\x1b[{y + 1}H\x1b[K{row}" for y, row in enumerate(shown)))
        items += ["\x1b[?2026l", Resized(0.0, 20, 4)]
    said, screen = text(*items)
    assert said + screen == lines


def test_nothing_in_a_log_acts_on_the_terminal() -> None:
    said, screen = text(
        "\x1b]52;c;eA==\x07\x1b]0;t\x07a\x9b31mb\u202e\x07\x08\x00c\x1bP1$q\x1b\\" + "\r\n" * 9
    )
    assert not any(
        char < " " or "\x7f" <= char < "\xa0" or char == "\u202e" for char in "".join(said + screen)
    )


# -- asciicast ---


def cast(tmp_path: Path, items: Iterable[LogItem]) -> tuple[dict[str, object], list[list[object]], Terminal]:
    """Header, events, and the screen once it is played."""
    log = LogCast("synapse-dummy-8190")
    out = io.StringIO()
    out.writelines(log.lines(items))
    out.writelines(log.end())
    path = tmp_path / "a.cast"
    path.write_text(out.getvalue(), encoding="utf-8", newline="\n")
    return *read(path), play(path)


def test_the_time_between_two_processes_does_not_count(tmp_path: Path) -> None:
    _, events, terminal = cast(
        tmp_path,
        [
            Begun(1000.0, 0, 30, 5, anew=True),
            Output(1001.0, b"\x1b[?1049hold \xe6"),
            Begun(90_000.0, 5, 40, 5, anew=True),
            Output(90_000.5, b"new"),
        ],
    )
    assert events == [
        [1.0, "o", "\x1b[?1049hold "],
        [1.0, "o", "\ufffd\x1bc"],
        [1.0, "m", "started anew"],
        [1.0, "r", "40x5"],
        [1.5, "o", "new"],
    ]
    assert terminal.display[0].rstrip() == "new"
