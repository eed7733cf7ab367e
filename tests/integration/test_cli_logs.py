"""`synapse logs` as a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.agents.raw_log import times_path
from tests.integration.shell_kit import Shell


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    shell = Shell.scratch(tmp_path)
    yield shell
    await shell.end()


@pytest.fixture
def log(shell: Shell) -> Path:
    folder = shell.home / ".synapse" / "logs"
    folder.mkdir(parents=True)
    path = folder / "synapse-claude-8100.log"
    path.write_bytes(b"".join(b"\x1b[3%dmline %d\x1b[0m\r\n" % (n % 8, n) for n in range(1000)))
    return path


async def rewrite(log: Path, content: bytes) -> None:
    await asyncio.to_thread(log.write_bytes, content)


@pytest.mark.parametrize("name", ["synapse-claude-8100", "claude-8100", "claude", "@claude", "CLAUDE"])
async def test_logs_of_an_agent_that_has_ended(shell: Shell, log: Path, name: str) -> None:
    result = await shell.run("logs", name, "-n", "2")
    assert (result.code, result.out) == (0, "line 998\nline 999\n")


@pytest.mark.parametrize(
    ("lines", "count"), [("0", 0), ("1", 1), ("50", 50), ("999", 999), ("1000", 1000), ("9999", 1000)]
)
async def test_number_of_lines(shell: Shell, log: Path, lines: str, count: int) -> None:
    out = (await shell.run("logs", "claude", "-n", lines)).out
    assert out == "".join(f"line {n}\n" for n in range(1000 - count, 1000))


async def test_lines_as_json(shell: Shell, log: Path) -> None:
    told = (await shell.run("logs", "claude", "-n", "2", "--json")).json
    assert told == {"agent_id": "synapse-claude-8100", "file": str(log), "lines": ["line 998", "line 999"]}
    refused = await shell.run("logs", "claude", "--json", "--follow")
    assert refused.code == 2
    assert "cannot be combined with --follow" in refused.err


@pytest.mark.parametrize("option", [("--raw",), ("--format", "ansi")])
async def test_logs_as_they_are(shell: Shell, log: Path, option: tuple[str, ...]) -> None:
    process = await shell.start("logs", "claude", "-n", "1", *option)
    out, _ = await process.communicate()
    assert out == b"\x1b[37mline 999\x1b[0m\r\n"


async def test_a_log_as_a_recording(shell: Shell, log: Path) -> None:
    await rewrite(log, "漢字\r\n\x1b[1mx".encode())
    times_path(log).write_text("@1700000000000 0 100x30\n500 8\n250 90x30\n1000 5\n")
    result = await shell.run("logs", "claude", "--format", "asciicast")
    header, *events = map(json.loads, result.out.splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, 100, 30)
    assert header["timestamp"] == 1_700_000_000
    assert events == [[0.5, "o", "漢字\r\n"], [0.75, "r", "90x30"], [1.75, "o", "\x1b[1mx"]]


async def test_the_latest_log_of_a_type(shell: Shell, log: Path) -> None:
    newer = log.with_name("synapse-claude-8101.log")
    newer.write_text("newer\r\n")
    os.utime(log, (1, 1))
    assert (await shell.run("logs", "claude")).out == "newer\n"


async def test_following_a_log(shell: Shell, log: Path) -> None:
    await rewrite(log, b"".join(b"line %d\r\n" % n for n in range(50)))
    process = await shell.start("logs", "claude", "-n", "2", "-f")
    assert process.stdout is not None
    # 23 lines are on the screen still, which may change.
    assert await process.stdout.readline() == b"line 25\n"
    assert await process.stdout.readline() == b"line 26\n"
    with log.open("ab") as file:
        file.write(b"more \x1b]0;ti")
    with log.open("ab") as file:
        file.write(b"tle\x07text\r\n")
    assert await process.stdout.readline() == b"line 27\n"
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert out.decode().splitlines() == [*(f"line {n}" for n in range(28, 50)), "more text"]
    assert process.returncode == 130
    assert b"Traceback" not in err


async def test_following_a_log_as_it_is(shell: Shell, log: Path) -> None:
    process = await shell.start("logs", "claude", "-n", "1", "-f", "--format", "ansi")
    assert process.stdout is not None
    assert await process.stdout.readline() == b"\x1b[37mline 999\x1b[0m\r\n"
    with log.open("ab") as file:
        file.write(b"more\n")
    assert await process.stdout.readline() == b"more\n"
    await rewrite(log, b"anew\n")
    assert await process.stdout.readline() == b"anew\n"
    process.send_signal(signal.SIGINT)
    await process.communicate()
    assert process.returncode == 130


async def test_a_reader_that_closes_the_pipe(shell: Shell, log: Path) -> None:
    process = await shell.start("logs", "claude", "-n", "1000")
    assert process.stdout is not None
    await process.stdout.readline()
    process.stdout._transport.close()  # type: ignore[attr-defined]
    assert process.stderr is not None
    assert await process.stderr.read() == b""
    await process.wait()
