"""The parts of the command line that need no process: flow, waiting, tables, profiles."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from synapse_tui import errors
from synapse_tui.a2a.dialect import PeerTask
from synapse_tui.cli import group, output
from synapse_tui.cli.flow import waits
from synapse_tui.cli.waiting import LONGEST_PAUSE, PATIENCE, Waiter
from synapse_tui.model import TaskState


@pytest.mark.parametrize(
    ("flow", "response", "expected"),
    [
        ("roundtrip", True, True),
        ("roundtrip", False, True),
        ("roundtrip", None, True),
        ("oneway", True, False),
        ("oneway", False, False),
        ("oneway", None, False),
        ("auto", True, True),
        ("auto", False, False),
        ("auto", None, True),
    ],
)
def test_flow(flow: str, response: bool | None, expected: bool) -> None:
    assert waits(flow, response) is expected


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


def wait(
    answers: Iterator[PeerTask | Exception], *, timeout: float = 300, alive: bool = True
) -> tuple[Callable[[], PeerTask], Time, list[str]]:
    time, told = Time(), []

    def read() -> PeerTask:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    waiter = Waiter(
        read, alive=lambda: alive, timeout=timeout, tell=told.append, clock=time.clock, sleep=time.sleep
    )
    return lambda: waiter.wait(TASK, "synapse-x-1"), time, told


def test_waiting_ends_with_the_task() -> None:
    held = replace(TASK, delivery="held", reason="permission dialog open")
    done = replace(TASK, state=TaskState.COMPLETED, texts=("ok",))
    run, _, told = wait(iter([TASK, held, held, done]))
    assert run() is done
    assert told == ["queued", "held: permission dialog open"]


def test_polls_become_rarer_and_stop_at_the_deadline() -> None:
    run, time, _ = wait(iter(lambda: TASK, None), timeout=60)
    with pytest.raises(output.WaitTimedOut, match="did not answer in 60 s; task 12345678 goes on"):
        run()
    assert time.now == pytest.approx(60)
    assert time.pauses[0] < 0.2
    assert max(time.pauses) == LONGEST_PAUSE
    assert time.pauses[:5] == sorted(time.pauses[:5])


def test_a_wait_of_nothing_asks_nothing() -> None:
    run, time, _ = wait(iter([]), timeout=0)
    with pytest.raises(output.WaitTimedOut):
        run()
    assert time.pauses == []


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED])
def test_a_task_that_fails_is_an_error(state: TaskState) -> None:
    run, _, _ = wait(iter([replace(TASK, state=state, reason="why")]))
    with pytest.raises(output.TaskEnded, match=f"{state.value}: why"):
        run()


UNREACHABLE = errors.PeerUnreachable("nobody answers")


def test_a_server_that_stumbles_is_asked_again() -> None:
    done = replace(TASK, state=TaskState.COMPLETED)
    stumbles: list[PeerTask | Exception] = [UNREACHABLE] * (PATIENCE - 1)
    run, _, _ = wait(iter([*stumbles, TASK, *stumbles, done]))
    assert run() is done


def test_a_server_that_stays_away_is_an_error() -> None:
    run, _, _ = wait(iter([UNREACHABLE] * PATIENCE))
    with pytest.raises(errors.PeerUnreachable):
        run()


def test_an_agent_that_ended_is_told() -> None:
    run, _, _ = wait(iter([UNREACHABLE]), alive=False)
    with pytest.raises(errors.AgentExited, match="ended before it answered"):
        run()


def test_tables_count_wide_characters(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table(("A", "B"), [("世界", "x"), ("a", "yy"), ("é", "")])
    assert capsys.readouterr().out.split("\n") == ["A     B", "世界  x", "a     yy", "é", ""]


def test_plain_text_does_not_act() -> None:
    assert output.plain("a\x1b[31m\nb\t\x9bc\r") == "a[31m\nb\tc"


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


@pytest.mark.parametrize(
    ("word", "meant"),
    [("lst", "list"), ("sned", "send"), ("dumy", "dummy"), ("Dummy", "dummy"), ("zzzz", None)],
)
def test_did_you_mean(home: Path, opened: list[object], word: str, meant: str | None) -> None:
    result = CliRunner().invoke(group.synapse, [word])
    assert result.exit_code == 2
    assert f"there is no command or profile '{word}'" in result.output
    assert ("Did you mean" in result.output) is (meant is not None)
    assert meant is None or f"Did you mean '{meant}'?" in result.output
    assert not opened


def test_every_command_is_in_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in group.synapse.list_commands(click.Context(group.synapse)):
        assert f"## synapse {name}" in manual
        command = group.synapse.get_command(click.Context(group.synapse), name)
        assert command is not None
        for parameter in command.params:
            for option in (*parameter.opts, *parameter.secondary_opts):
                if option.startswith("--"):
                    assert f"`{option}" in manual, f"{name} {option}"
    for code in output.ExitCode:
        assert f"| {code.value} |" in manual, code
