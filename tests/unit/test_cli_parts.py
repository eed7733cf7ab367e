"""The parts of the command line that need no process: flow, waiting, tables, profiles."""

from __future__ import annotations

import importlib.abc
import io
import os
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from synapse_tui import cli
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.agents.profiles.programs import parse_spec
from synapse_tui.cli import group, output, sending
from synapse_tui.cli.reply import MAX_FILES, read_content, state_of
from synapse_tui.cli.sending import ENDED, LONGEST_LOOK, MAX_FAILURES, OVERDUE, PAUSES, Waiter
from synapse_tui.cli.tui import build_specs, split_arguments
from synapse_tui.core import errors
from synapse_tui.core.content import Part
from synapse_tui.core.errors import ConfigError, InvalidValue, MessageTooLarge
from synapse_tui.core.model import AgentSpec, TaskState
from synapse_tui.messages.reasons import Reason
from tests.command_line import call


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


def test_a_server_that_does_not_wait_is_asked_more_and_more_rarely() -> None:
    wait = Wait(timeout=60, waits=False)
    with pytest.raises(output.WaitTimedOut, match="did not answer in 60 s; task 12345678 is still open"):
        wait()
    assert wait.time.now == pytest.approx(60)
    pauses = wait.time.pauses
    assert pauses[0] <= PAUSES.first
    assert max(pauses) <= PAUSES.longest
    assert sum(pauses[:5]) < sum(pauses[-6:-1])


def test_a_wait_tells_states_in_the_language_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "standing_words", str.upper, raising=False)
    wait = Wait(at(TASK, 2, state=TaskState.COMPLETED))
    wait()
    assert wait.told == [TASK.status.upper()]


UNREACHABLE = errors.PeerUnreachable("nobody answers")


def test_a_server_that_stumbles_is_asked_again() -> None:
    done = at(TASK, 2, state=TaskState.COMPLETED)
    stumbles = [UNREACHABLE] * (MAX_FAILURES - 1)
    assert Wait(*stumbles, at(TASK, 1), *stumbles, done)() is done


@pytest.mark.parametrize(
    ("delivery", "hint"), [("held", "do not send it again"), ("submitted", "send it again")]
)
def test_a_message_that_is_kept_is_not_to_be_sent_twice(delivery: str, hint: str) -> None:
    with pytest.raises(errors.AgentExited) as caught:
        Wait(at(TASK, 1, delivery=delivery), UNREACHABLE, alive=False)()
    assert hint in caught.value.hint
    assert caught.value.hint.startswith("do not") is (delivery == "held")


def test_an_agent_that_ended_below_its_host_is_waited_for_a_while_only() -> None:
    ended = at(TASK, 1, delivery="held", reason=Reason.AGENT_EXITED)
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


# -- The words of `synapse-tui`'s command line ---


BASE = Path("/base")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("claude", AgentSpec("claude")),
        ("claude:alice", AgentSpec("claude", "alice")),
        ("claude@sub", AgentSpec("claude", "", BASE / "sub")),
        ("claude:alice@/srv/a@b:c", AgentSpec("claude", "alice", Path("/srv/a@b:c"))),
        ("my-agent.2", AgentSpec("my-agent.2")),
    ],
)
def test_spec(text: str, spec: AgentSpec) -> None:
    assert parse_spec(text, base=BASE) == spec


def test_the_home_folder_may_be_written_short() -> None:
    assert parse_spec("codex@~/web", base=BASE).cwd == Path("~/web").expanduser()


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":alice",
        "claude:",
        "claude@",
        "claude:a b",
        "-x",
        "claude:all",
        "claude:User",
        "claude:claude-8100",
        "claude:synapse-x",
    ],
)
def test_no_spec(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_spec(text, base=BASE)


def test_arguments_of_the_agent_follow_two_dashes() -> None:
    assert split_arguments(["claude", "--port", "1"]) == (["claude", "--port", "1"], None)
    assert split_arguments(["claude", "--", "--continue", "--"]) == (["claude"], ("--continue", "--"))
    assert split_arguments(["claude", "--"]) == (["claude"], ())


def test_options_of_one_agent(tmp_path: Path) -> None:
    assert build_specs(["claude"], base=tmp_path, extra=("-c",), port=9000, prompt="hi") == [
        AgentSpec("claude", args=("-c",), port=9000, prompt="hi")
    ]
    both = build_specs(["claude", "codex"], base=tmp_path, extra=None, port=None, prompt="hi")
    assert [spec.prompt for spec in both] == ["hi", "hi"]


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for words, extra, port, prompt in (
        (["a", "b"], None, 9000, ""),
        ([], None, 9000, ""),
        (["a", "b"], ("-c",), None, ""),
        ([], None, None, "hi"),
    ):
        with pytest.raises(ConfigError):
            build_specs(words, base=tmp_path, extra=extra, port=port, prompt=prompt)
    with pytest.raises(ConfigError, match="not a folder"):
        build_specs([], base=tmp_path / "none", extra=None, port=None, prompt="")


# -- What a reply holds besides its text, as the command reads it ---


def test_files_urls_and_data_are_parts_in_this_order(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    found = read_content([str(file)], ["https://example.org/a b"], ["[1, null]"])
    assert found.parts == (
        Part("file", path=str(file), name="x.json", media_type="application/json"),
        Part("url", "https://example.org/a b"),
        Part("data", data=[1, None]),
    )
    assert found.contents == {str(file): b"{}"}


def test_files_are_limited_together(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(bytes(MAX_FILES - 1))
    second.write_bytes(b"x")
    assert len(read_content([str(first), str(second)], [], []).contents) == 2
    second.write_bytes(b"xx")
    with pytest.raises(MessageTooLarge):
        read_content([str(first), str(second)], [], [])


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), str(tmp_path), "/dev/zero", str(tmp_path / "none"), "nul\0"):
        with pytest.raises(InvalidValue, match=r"cannot be read|not a regular file"):
            read_content([path], [], [])


@pytest.mark.parametrize("url", ["file:///etc/passwd", "example.org", "https://", "http://[", "javascript:1"])
def test_only_addresses_of_the_web_are_urls(url: str) -> None:
    with pytest.raises(InvalidValue, match="not a URL"):
        read_content([], [url], [])


@pytest.mark.parametrize("text", ["{count: 3}", "", "NaN", "[" * 100_000])
def test_data_is_json(text: str) -> None:
    with pytest.raises(InvalidValue, match="not JSON"):
        read_content([], [], [text])


def test_a_task_becomes_one_thing() -> None:
    assert state_of(None, failed=False, rejected=False) is TaskState.COMPLETED
    assert state_of("input-required", failed=False, rejected=False) is TaskState.INPUT_REQUIRED
    assert state_of("failed", failed=True, rejected=False) is TaskState.FAILED
    for state, failed, rejected in ((None, True, True), ("completed", True, False)):
        with pytest.raises(InvalidValue, match="cannot be"):
            state_of(state, failed=failed, rejected=rejected)


@pytest.mark.parametrize("words", [(), ("history", "show"), ("external",)])
def test_a_command_without_what_it_needs_says_its_usage_once(words, tmp_path):
    result = call("synapse", *words, environ={"HOME": str(tmp_path)}, folder=tmp_path)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("Usage: ") == 1
