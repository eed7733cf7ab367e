"""Completion as the shells run it: what is offered, and that nothing is ever said."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapse_tui.cli import group, tui
from synapse_tui.cli.completion import Finder, offers
from tests.fake_agent import FakeAgent
from tests.integration.shell_kit import SYNAPSE, Shell
from tests.integration.test_cli_history import told
from tests.waiting import PATIENCE

OWN_TERMINAL = """import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])"""
"""Runs a program as the owner of its terminal, as shells want it."""

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(synapse completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(synapse completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "synapse completion fish | source"),
}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    shell = Shell.scratch(tmp_path)
    shell.register(FakeAgent(8100, "claude", "alice"))
    shell.register(FakeAgent(8110, "gemini"))
    shell.register(FakeAgent(8120, "codex"), project="/other", working_dir="/other")
    monkeypatch.setenv("HOME", str(shell.home))
    monkeypatch.setenv("SYNAPSE_AGENT_ID", "")
    monkeypatch.chdir(shell.folder)
    with tempfile.TemporaryDirectory(prefix="synapse-", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        shell.environ["XDG_RUNTIME_DIR"] = runtime
        yield shell


def offered(line: str, find: Finder = group.completed_by) -> set[str]:
    """What is offered at the end of a line, whose last word is the one at the cursor."""
    *words, typed = line.split(" ")[1:]
    return {str(item.value) for item in offers(find, words, typed)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("synapse sen", {"send"}),
        ("synapse dum", {"dummy"}),
        ("synapse history s", {"search", "show", "stats"}),
        ("synapse send al", {"alice", "all"}),
        ("synapse send @AL", {"@alice", "@all"}),
        ("synapse send synapse-", {"synapse-claude-8100", "synapse-gemini-8110", "synapse-codex-8120"}),
        ("synapse status ge", {"gemini"}),
        ("synapse start gem", {"gemini"}),
        ("synapse config set a2a.fl", {"a2a.flow"}),
        ("synapse config show a2a.flow tui.th", {"tui.theme"}),
        ("synapse config set a2a.flow ", {"auto", "roundtrip", "oneway"}),
        ("synapse config set --user tui.layout g", {"grid"}),
        ("synapse config set env.SYNAPSE_LOG_LEVEL er", {"ERROR"}),
        ("synapse config set tui.sidebar ", {"true", "false"}),
        ("synapse config set tui.sidebar true ", set()),
        ("synapse config set tui.scrollback ", set()),
        ("synapse config set nonsense ", set()),
        ("synapse outbox c", {"claude", "cancel"}),
        ("synapse outbox claude h", {"hold"}),
        ("synapse hooks install co", {"codex", "copilot"}),
        ("synapse reply --state input", {"input-required"}),
        ("synapse logs claude --fo", {"--follow", "--format"}),
        ("synapse logs claude --format a", {"ansi", "asciicast"}),
        ("synapse dummy --layout t", {"tabs"}),
        ("synapse send claude hello ", set()),
        ("synapse nonsense ", set()),
        ("synapse start claude -- --", set()),
    ],
)
def test_what_is_offered(shell: Shell, line: str, expected: set[str]) -> None:
    assert offered(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("synapse-tui k", {"kill"}),
        ("synapse-tui dummy k", set()),
        ("synapse-tui kill --a", {"--all"}),
        ("synapse-tui attach ", set()),
        ("synapse-tui --layout g", {"grid"}),
    ],
)
def test_what_is_offered_to_the_application(shell: Shell, line: str, expected: set[str]) -> None:
    assert offered(line, tui.completed_by) == expected


async def test_tasks_are_those_of_this_projects_history(shell: Shell) -> None:
    assert offered("synapse result ") == set(), "there is no history yet"
    mine, _ = await told(shell, ("look at\x1b[31m this", ""), ("and\nthat", "done"))
    await told(shell, ("elsewhere", ""), project="/other")
    found = {str(item.value): item.help for item in offers(group.completed_by, ["result"], "")}
    assert len(found) == 2
    assert mine[:8] in found
    assert offered(f"synapse history show {mine[:4]}") >= {mine[:8]}
    assert offered(f"synapse outbox cancel {mine[:4]}") >= {mine[:8]}


def answered(shell: Shell, line: str, kind: str = "bash", **environ: str) -> subprocess.CompletedProcess[str]:
    words = line.split(" ")[1:]
    asked = {"_SYNAPSE_COMPLETE": kind, "COMP_LINE": line, "COMP_POINT": str(len(line.encode()))}
    return subprocess.run(
        SYNAPSE if kind == "bash" else (*SYNAPSE, *words),
        env=shell.environ | asked | environ,
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=True,
    )


def test_words_that_a_shell_could_take_for_more_are_not_offered(shell: Shell) -> None:
    folder = shell.folder / ".synapse" / "profiles"
    folder.mkdir()
    for name in ("evil$(touch x)", "evil;x", "evil y", "evil`x`", "evil日本"):
        (folder / f"{name}.yaml").touch()
    assert answered(shell, "synapse evil").stdout.split("\t")[:2] == ["plain", "evil日本"]


def test_bash_is_given_what_follows_its_last_break(shell: Shell) -> None:
    assert answered(shell, "synapse send @ali", COMP_WORD="@ali").stdout == "plain\t@alice\tready\n"
    found = answered(shell, "synapse dummy --layout=t", COMP_WORD="t").stdout
    assert found == "plain\ttabs\t\n"


@pytest.mark.parametrize("line", ["synapse-tui ./my-a", "synapse start claude ./my-a"])
def test_paths_of_programs_are_completed_by_the_shell(shell: Shell, line: str) -> None:
    *words, typed = line.split(" ")[1:]
    find = tui.completed_by if line.startswith("synapse-tui") else group.completed_by
    assert [(item.value, item.type) for item in offers(find, words, typed)] == [("./my-a", "file")]


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("bash", "synapse send '"),
        ("bash", "synapse history show "),
        ("zsh", "synapse ☃ "),
        ("zsh", "synapse send "),
    ],
)
def test_trouble_is_never_told(shell: Shell, kind: str, line: str) -> None:
    (shell.home / ".synapse").mkdir()
    (shell.home / ".synapse" / "history.db").write_text("no database")
    (shell.home / ".a2a").rename(shell.home / ".a2a-was")
    (shell.home / ".a2a").write_text("no folder")
    for home in (str(shell.home), "/nonexistent", "/dev/null", ""):
        found = answered(shell, line, kind, HOME=home)
        assert found.stderr == ""
        assert not found.stdout.startswith("Traceback")


class Typing:
    """A person at an interactive shell."""

    def __init__(self, name: str, shell: Shell) -> None:
        words, self._begin = START[name]
        folder = shell.home / "bin"
        folder.mkdir()
        for program, module in (("synapse", "cli"), ("synapse-tui", "cli.tui")):
            source = f"#!{sys.executable}\nfrom synapse_tui.{module} import main\nmain()\n"
            (folder / program).write_text(source)
            (folder / program).chmod(0o755)
        self._master, slave = pty.openpty()
        path = f"{folder}:{os.environ['PATH']}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *words],
            env=shell.environ | {"PATH": path, "TERM": "dumb", "PS1": "$ ", "COLUMNS": "200"},
            cwd=shell.folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def type(self, keys: str, until: str) -> str:
        """Type keys, and wait until something is shown; gives all that was shown since."""
        self.seen = ""
        os.write(self._master, keys.encode())
        deadline = time.monotonic() + PATIENCE
        while until not in self.seen:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"no {until!r} in {self.seen!r}"
            self.seen += os.read(self._master, 65536).decode(errors="replace")
        return self.seen

    def begin(self) -> None:
        self.type(f"{self._begin}; echo 'rea''dy'\n", "ready")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.fixture
def typing(request: pytest.FixtureRequest, shell: Shell) -> Iterator[Typing]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    typing = Typing(request.param, shell)
    with contextlib.ExitStack() as stack:
        stack.callback(typing.end)
        typing.begin()
        yield typing


@pytest.mark.parametrize("typing", START, indirect=True)
def test_a_real_shell_completes(typing: Typing) -> None:
    """Tab completes a command, an agent behind an `@`, a setting; of what there is none, nothing is said."""
    typing.type("echo synapse; synapse config get a2a.fl\t", "a2a.flow")
    typing.type("\x15synapse send @ali\t", "@alice")
    typing.type("\x15synapse logs alice --format=asc\t", "asciicast")
    typing.type("\x15synapse-tui kill --al\t", "--all")
    shown = typing.type("\x15synapse send nobodyhere\t\x15echo o''k\n", "ok")
    assert "Traceback" not in shown
    assert "rror" not in shown
