"""The parts of the command line that need no process: flow, waiting, tables, profiles."""

from __future__ import annotations

import importlib.abc
import io
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from synapse_tui import cli, errors
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.cli import group, output
from synapse_tui.cli.sending import ENDED, LONGEST_LOOK, LONGEST_PAUSE, MAX_FAILURES, OVERDUE, Waiter
from synapse_tui.model import AGENT_EXITED, TaskState


class Time:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


TASK = PeerTask("12345678-aaaa", delivery="queued")
OWN = PeerTask("87654321-bbbb", delivery="submitted", state=TaskState.WORKING)


def at(task: PeerTask, moment: object, **fields: Any) -> PeerTask:
    """A later snapshot of a task."""
    return replace(task, fields={"updated_at": str(moment)}, **fields)


class Server:
    """Answers long polls from a list; the last answer, or the first error of a kind, goes on for ever.

    Args:
        answers: Snapshots, each given at once; None lets the time of the poll pass; errors are raised.
        waits: Whether it waits at all.
    """

    def __init__(
        self, time: Time, answers: Sequence[PeerTask | Exception | None], *, waits: bool = True
    ) -> None:
        self.time, self.answers, self.waits = time, list(answers), waits
        self.last: PeerTask | None = None
        self.polls: list[float] = []

    def poll(self, task: PeerTask, seconds: float) -> PeerTask:
        self.polls.append(seconds)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            self.time.now += seconds if self.waits else 0
            return self.last or task
        self.last = answer
        return answer


class Wait:
    """One wait of the command line.

    Args:
        answers: What the server of the task answers.
        progress: The receiver's task, where the sender's own is waited for.
    """

    def __init__(
        self,
        *answers: PeerTask | Exception | None,
        timeout: float = 300,
        alive: bool = True,
        waits: bool = True,
        progress: Callable[[], PeerTask] | None = None,
    ) -> None:
        self.time = Time()
        self.server = Server(self.time, answers, waits=waits)
        self.told: list[str] = []
        self.own = progress is not None
        self.waiter = Waiter(
            self.server.poll,
            alive=lambda: alive,
            timeout=timeout,
            report=self.told.append,
            progress=progress,
            clock=self.time.clock,
            sleep=self.time.sleep,
        )

    def __call__(self) -> PeerTask:
        return self.waiter.wait(OWN if self.own else TASK, TASK, "synapse-x-1")


def test_waiting_ends_with_the_task() -> None:
    held = at(TASK, 1, delivery="held", reason="permission dialog open")
    done = at(TASK, 2, state=TaskState.COMPLETED, texts=("ok",))
    wait = Wait(held, None, done)
    assert wait() is done
    assert wait.told == ["queued", "held: permission dialog open"]
    assert not wait.time.pauses, "the server waits, not the command"


def test_a_server_that_does_not_wait_is_asked_more_and_more_rarely() -> None:
    wait = Wait(timeout=60, waits=False)
    with pytest.raises(output.WaitTimedOut, match="did not answer in 60 s; task 12345678 goes on"):
        wait()
    assert wait.time.now == pytest.approx(60)
    pauses = wait.time.pauses
    assert pauses[0] < 0.2
    assert max(pauses) == LONGEST_PAUSE
    assert pauses[:5] == sorted(pauses[:5])


UNREACHABLE = errors.PeerUnreachable("nobody answers")


def test_a_server_that_stumbles_is_asked_again() -> None:
    done = at(TASK, 2, state=TaskState.COMPLETED)
    stumbles = [UNREACHABLE] * (MAX_FAILURES - 1)
    assert Wait(*stumbles, at(TASK, 1), *stumbles, done)() is done


def test_a_server_that_stays_away_is_an_error() -> None:
    with pytest.raises(errors.PeerUnreachable):
        Wait(*[UNREACHABLE] * MAX_FAILURES)()


def test_an_agent_that_ended_is_told() -> None:
    with pytest.raises(errors.AgentExited, match="ended before it answered"):
        Wait(UNREACHABLE, alive=False)()


@pytest.mark.parametrize(
    ("delivery", "hint"), [("held", "do not send it again"), ("submitted", "send it again")]
)
def test_a_message_that_is_kept_is_not_to_be_sent_twice(delivery: str, hint: str) -> None:
    with pytest.raises(errors.AgentExited) as caught:
        Wait(at(TASK, 1, delivery=delivery), UNREACHABLE, alive=False)()
    assert hint in caught.value.hint
    assert caught.value.hint.startswith("do not") is (delivery == "held")


def test_an_agent_that_ended_below_its_host_is_waited_for_a_while_only() -> None:
    ended = at(TASK, 1, delivery="held", reason=AGENT_EXITED)
    wait = Wait(ended)
    with pytest.raises(
        output.WaitTimedOut, match="has ended; task 12345678 waits until it is restarted"
    ) as caught:
        wait()
    assert "synapse outbox cancel 12345678" in caught.value.hint
    assert ENDED <= wait.time.now < ENDED + LONGEST_LOOK
    done = at(TASK, 3, state=TaskState.COMPLETED)
    assert Wait(ended, at(TASK, 2, delivery="held", reason="starting"), None, None, done)() is done, (
        "restarted"
    )


def test_the_senders_own_task_is_waited_for_and_the_receivers_tells_how_far_it_is() -> None:
    seen = iter([at(TASK, 1, delivery="held", reason="you have a draft"), at(TASK, 2, delivery="submitted")])
    done = at(OWN, 3, state=TaskState.COMPLETED, texts=("ok",))
    wait = Wait(None, None, done, progress=lambda: next(seen))
    assert wait() is done
    assert wait.told == ["queued", "held: you have a draft", "submitted"]


def test_an_answer_that_does_not_come_to_the_senders_task_is_taken_from_the_receivers() -> None:
    ended = at(TASK, 1, state=TaskState.COMPLETED, texts=("ok",))
    wait = Wait(progress=lambda: ended)
    assert wait() is ended
    assert OVERDUE <= wait.time.now < 60


def test_tables_count_wide_characters(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table(("A", "B"), [("世界", "x"), ("a", "yy"), ("é", "")])
    assert capsys.readouterr().out.split("\n") == ["A     B", "世界  x", "a     yy", "é", ""]


def test_what_stands_in_a_table_neither_acts_nor_breaks_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table(("A", "B"), [("a\nb\tc", "\x1b[31mx\x9b")])
    assert capsys.readouterr().out.split("\n") == ["A      B", "a b c  [31mx", ""]


def table(monkeypatch: pytest.MonkeyPatch, columns: int, *, seen: bool = True) -> list[str]:
    """A table with long texts, as it is shown on a terminal of so many columns, or written elsewhere."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: seen)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [("src/a.py", "synapse-dummy-8190", "x" * 500), ("b.py", "synapse-dummy-8191", "世界" * 250)]
    output.show_table(("FILE", "AGENT", "INTENT"), rows, shrinking=("FILE", "INTENT"))
    return out.getvalue().splitlines()


def test_long_texts_are_cut_to_the_terminal_and_the_others_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    _heads, first, second = table(monkeypatch, 60)
    assert first == "src/a.py  synapse-dummy-8190  " + "x" * 29 + "…"
    assert second == "b.py      synapse-dummy-8191  " + "世界" * 7 + "…"


@pytest.mark.parametrize("columns", range(1, 100, 7))
def test_no_row_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    least = 2 * 8 + len("synapse-dummy-8190") + 4
    rows = table(monkeypatch, columns)
    assert max(map(output.cells, rows)) <= max(columns, least)
    assert all("synapse-dummy-819" in row for row in rows[1:])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidValue("x"), 2),
        (errors.UnknownProfile("x", []), 2),
        (errors.AgentNotFound("x"), 3),
        (errors.AmbiguousAddress("x", ["a", "b"]), 3),
        (errors.AgentExited("x"), 3),
        (errors.MessageTooLarge("x"), 4),
        (errors.PeerUnreachable("x"), 5),
        (errors.PeerRefused("x", 400), 5),
        (output.TaskEnded("x"), 6),
        (output.WaitTimedOut("x"), 7),
        (errors.TerminalUnfit("x"), 8),
        (errors.PortsExhausted("x"), 9),
        (errors.SynapseError("x"), 1),
    ],
)
def test_exit_codes(error: errors.SynapseError, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def fails() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        output.run_command(fails, [], name="tool")
    assert ended.value.code == code
    assert capsys.readouterr().err.startswith("tool: ")


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (RuntimeError("odd"), 1), (BrokenPipeError(), 0)]
)
def test_other_ends(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SYNAPSE_DEBUG", raising=False)

    @click.command()
    def fails() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        output.run_command(fails, [], name="tool")
    assert ended.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_what_is_told_does_not_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.note("a\x1b[31m\nb\x07")
    assert capsys.readouterr().err == "a[31m\nb\n"


class Interrupts(importlib.abc.MetaPathFinder):
    """Ctrl+C at the very moment in which a module is loaded."""

    def find_spec(self, name: str, _path: object, _target: object = None) -> None:
        if name == "synapse_tui.cli.group":
            raise KeyboardInterrupt


def test_ctrl_c_while_the_program_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "synapse_tui.cli.group")
    monkeypatch.delattr(cli, "group")
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == output.ExitCode.INTERRUPTED


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    calls: list[tuple[str, list[str]]] = []
    tui = types.ModuleType("synapse_tui.cli.tui")
    tui.run_profile = lambda name, arguments: calls.append((name, list(arguments)))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "synapse_tui.cli.tui", tui)
    return calls


@pytest.mark.parametrize(
    ("words", "name", "arguments"),
    [
        (["dummy"], "dummy", []),
        (
            ["dummy", "--cwd", "x", "-h", "--", "--continue", "--"],
            "dummy",
            ["--cwd", "x", "-h", "--", "--continue", "--"],
        ),
        (["dummy:alice@/tmp", "claude"], "dummy:alice@/tmp", ["claude"]),
        (["dummy@~/a:b"], "dummy@~/a:b", []),
    ],
)
def test_a_profile_is_a_command(
    home: Path, opened: list[tuple[str, list[str]]], words: list[str], name: str, arguments: list[str]
) -> None:
    result = CliRunner().invoke(group.synapse, words)
    assert result.exception is None, result.output
    assert opened == [(name, arguments)]


def test_profiles_of_the_user_and_the_project_are_commands(
    home: Path, opened: list[tuple[str, list[str]]]
) -> None:
    for folder, name in (
        (home / ".synapse" / "profiles", "mine.yaml"),
        (home / "p" / ".synapse" / "profiles", "its.yml"),
    ):
        folder.mkdir(parents=True)
        (folder / name).write_text("")
    assert group.is_profile("mine")
    assert not group.is_profile("its")
    import os

    os.chdir(home / "p")
    assert group.is_profile("its")
