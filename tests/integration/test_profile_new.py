"""`synapse profile new`: a profile for an agent that has none, from what its screen shows."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.reader import read_profile
from synapse_tui.agents.profiles.writer import Plain
from synapse_tui.cli import new_profile
from synapse_tui.cli.output import ExitCode
from synapse_tui.cli.trials.checks import processes_with
from synapse_tui.cli.trials.inference import Finding
from synapse_tui.cli.trials.probe import Proposal, Subject
from synapse_tui.core.model import AgentState
from tests.command_line import call
from tests.integration.pty_harness import Harness
from tests.integration.shell_kit import SYNAPSE, Shell
from tests.waiting import PATIENCE, until

ODD = Path(__file__).with_name("odd_agent.py")
CHECKOUT = ODD.parents[2]
MOVING = Path(__file__).with_name("moving_agent.py")


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    shell = Shell.scratch(tmp_path, apart=True)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, agent in (("odd", ODD), ("moving", MOVING)):
        words = shlex.join(["env", f"PYTHONPATH={CHECKOUT}", sys.executable, str(agent)])
        (folder / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (folder / name).chmod(0o755)
    shell.environ["PATH"] = f"{folder}:{shell.environ['PATH']}"
    yield shell
    await shell.end()


@pytest.mark.slow
async def test_an_unknown_agent_is_proved_from_what_it_showed(shell: Shell) -> None:
    terminal = Harness(shell.folder)
    try:
        program = terminal.spawn(
            "env",
            *(f"{name}={value}" for name, value in shell.environ.items()),
            *SYNAPSE,
            "profile",
            "new",
            "--rest",
            "1",
            "odd",
            "--loads",
            "2",  # longer than a screen rests that is complete
        )
        await program.says(b"Continue?")
        program.process.write(b"y\n")
        await until(lambda: program.exits, program.output[-3000:].decode, seconds=170)
    finally:
        await terminal.close()
    shown = program.output.decode()
    assert program.exits[0].code == 0, shown
    assert "| Allow this command? (y/n)" in shown, f"the screen that gave the rule is missing in:\n{shown}"
    path = shell.home / ".synapse" / "profiles" / "odd.yaml"
    profile, faults = read_profile(path, path.read_bytes(), "user", {})
    assert profile is not None, faults
    assert (profile.interrupt.keys, profile.deny, profile.doctor.version) == ((b"\x03",), (b"n",), "4.2")
    assert profile.args == ("--loads", "2")
    assert profile.startup.delay >= 2
    assert profile.composer is not None
    assert profile.composer.right is not None
    assert [rule.name for rule in profile.dialogs] == ["permission"]
    assert not (shell.home / ".synapse" / "doctor" / "odd").exists()


@pytest.mark.timeout(300)
@pytest.mark.slow
async def test_it_learns_when_enter_submits_and_what_stands_around_an_answer(shell: Shell) -> None:
    result = await shell.run("profile", "new", "--yes", "--no-doctor", "--rest", "1", "odd", "--typed", "4")
    assert result.code == 0, result.err
    path = shell.home / ".synapse" / "profiles" / "odd.yaml"
    profile, faults = read_profile(path, path.read_bytes(), "user", {})
    assert profile is not None, faults
    assert (profile.submit.pause, profile.submit.multiline) == (1.0, False)
    assert not profile.interrupt.restores_draft
    assert (profile.interrupt.keys, profile.deny) == ((b"\x1b",), (b"n",))
    assert profile.doctor.trust
    assert profile.composer is not None
    assert {pattern.pattern for pattern in profile.composer.hints} == {
        r"^odd\s+says:$",
        r"^That\s+took\s+\d+\s+beats\.$",
    }
    result = await shell.run("doctor", "odd", "--yes", "--check", "answer")
    assert result.code == 0, result.out


@pytest.mark.timeout(300)
@pytest.mark.slow
async def test_it_learns_a_composer_that_moves_and_a_dialog_that_asks_why(shell: Shell) -> None:
    result = await shell.run("profile", "new", "--yes", "--no-doctor", "--rest", "1", "moving")
    assert result.code == 0, result.err
    path = shell.home / ".synapse" / "profiles" / "moving.yaml"
    profile, faults = read_profile(path, path.read_bytes(), "user", {})
    assert profile is not None, faults
    assert (profile.interrupt.keys, profile.deny) == ((b"\x1b",), (b"\x1b", b"\r"))
    assert profile.composer is not None
    assert profile.composer.prompt.pattern == "^ *┃  "
    assert [rule.name for rule in profile.dialogs] == ["permission"]
    signs = [rule.name for rule in profile.states if rule.state is AgentState.PROCESSING]
    assert "sign" in signs
    assert not [name for name in signs if "tab" in name or "files" in name or "shell" in name]
    result = await shell.run("doctor", "moving", "--yes", "--check", "multiline", "--check", "blocked")
    assert result.code == 0, result.out


@pytest.mark.slow
async def test_reports_what_it_found_as_json_and_writes_where_it_is_told(shell: Shell) -> None:
    path = shell.folder / "mine.yaml"
    prompts = ("--prompt", "slow=%%slow:30%%", "--prompt", "run=%%run:{command}%%")
    agent = (sys.executable, "-P", "-m", "synapse_tui.dummy", "--word-delay", "0.2")
    words = ("--name", "mine", "--output", str(path), "--no-doctor", "--yes", "--rest", "0", "--json")
    result = await shell.run("profile", "new", *words, *prompts, *agent)
    assert result.code == 0, result.err
    report = json.loads(result.out)
    findings = {finding["key"]: finding for finding in report["findings"] if finding["value"] is not None}
    assert (report["profile"], report["file"], report["doctor"]) == ("mine", str(path), None)
    assert "(?P<more>" in findings["composer"]["value"]
    assert findings["interrupt.keys"]["value"] == findings["deny"]["value"] == "[escape]"
    profile, _ = read_profile(path, path.read_bytes(), "user", {})
    assert profile is not None
    assert (profile.command, profile.doctor.prompts["run"].text) == (sys.executable, "%%run:{command}%%")
    assert not (shell.home / ".synapse" / "profiles").exists()


@pytest.mark.parametrize("more", [(), ("--no-doctor",), ("--json",)])
def test_a_profile_with_which_no_message_is_delivered_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    async def propose(subject: Subject, *_: object, **__: object) -> Proposal:
        why = "no way was found to submit a message: messages are held until you allow them"
        return Proposal(subject, "1.0", [Finding("receives", Plain("ask"), why)])

    monkeypatch.setattr(new_profile, "propose", propose)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    result = call("synapse", "profile", "new", "--yes", *more, "cat", environ=environ, folder=tmp_path)
    assert result.code == ExitCode.UNPROVED
    assert "receives: ask" in (tmp_path / ".synapse" / "profiles" / "cat.yaml").read_text()


async def test_ctrl_c_leaves_nothing_behind(shell: Shell) -> None:
    shell.environ["PROFILE_TEST_MARK"] = mark = str(shell.home)
    process = await shell.start("profile", "new", "--yes", "odd")
    assert process.stderr is not None
    assert b"it started" in await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, err.decode().strip()) == (130, "synapse: interrupted")
    assert processes_with("PROFILE_TEST_MARK", mark) == ()
    assert not (shell.home / ".synapse" / "doctor" / "odd").exists()
    assert not (shell.home / ".synapse" / "profiles").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("odd",), "odd.yaml exists"),
        (("--name", "claude", "odd"), "shipped profile"),
        (("no-such-agent",), "'no-such-agent' is not on PATH"),
        (("./odd-file",), "chmod +x"),
        (("--name", "Not Valid", "odd"), "'Not Valid' is not a name for a profile"),
    ],
)
async def test_nothing_is_started_or_replaced_unasked(
    shell: Shell, words: tuple[str, ...], said: str
) -> None:
    folder = shell.home / ".synapse" / "profiles"
    folder.mkdir(parents=True)
    (folder / "odd.yaml").write_text("command: odd\n")
    (shell.folder / "odd-file").touch()
    result = await shell.run("profile", "new", "--yes", *words)
    assert result.code in (2, 9)
    assert said in result.err
    assert [path.read_text() for path in folder.iterdir()] == ["command: odd\n"]
    assert not (shell.folder / "odd.txt").exists()


async def test_an_agent_that_exits_is_named_with_its_last_words(shell: Shell) -> None:
    result = await shell.run("profile", "new", "--yes", "--name", "gone", "sh", "-c", "echo log in first")
    assert result.code == 1
    assert "it exited" in result.err
    assert "| log in first" in result.err
