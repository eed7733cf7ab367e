"""Programs without a profile, started by their command line."""

from __future__ import annotations

import dataclasses
import re
import shlex
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest

from synapse_tui.agents.profiles import generic
from synapse_tui.agents.profiles.finding import ProfileSet, load_profiles
from synapse_tui.agents.profiles.generic import profile_of
from synapse_tui.agents.profiles.programs import command_spec, parse_agent, parse_spec, read_command
from synapse_tui.agents.session import AgentSession
from synapse_tui.cli.agents import start_command
from synapse_tui.cli.tui import build_specs
from synapse_tui.core.errors import ConfigError, SynapseError, TakesNoMessages
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, Task, TaskState
from synapse_tui.daemon.workspace import LostWorkspace, WorkspaceSaver
from synapse_tui.host.host import Host
from synapse_tui.system.paths import shipped_profiles
from synapse_tui.workspace import Handover, SavedView, WorkspaceStore
from tests.integration.composer_agent import Shape
from tests.integration.host_kit import make_host, records, running
from tests.integration.session_rig import open_rig
from tests.waiting import PATIENCE, at_once, until

PROGRAM = Path(__file__).with_name("composer_agent.py")
ECHO = """#!/usr/bin/env python3
import sys
if "--reports" in sys.argv:
    print(end="\\033]7501;state=idle\\033\\\\")
while True:
    print("> ", end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        break
    print("you said", len(line), "characters, the last word", line.split()[-1])
"""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The general rules with shorter times, where a test is not about them."""
    shipped = generic._generic()
    quick = dataclasses.replace(
        shipped,
        startup=dataclasses.replace(shipped.startup, delay=0.2, timeout=2.0),
        states=tuple(
            dataclasses.replace(
                rule, silence=rule.silence and rule.silence / 4, active=rule.active and rule.active / 4
            )
            for rule in shipped.states
        ),
    )
    assert quick.states != shipped.states
    monkeypatch.setattr(generic, "_generic", lambda: quick)


@pytest.fixture
async def host(tmp_path: Path, soon: None) -> AsyncIterator[Host]:
    async with running(make_host(tmp_path)) as opened:
        yield opened


@pytest.fixture
def echo(tmp_path: Path) -> str:
    program = tmp_path / "Echo_bot.py"
    program.write_text(ECHO)
    program.chmod(0o755)
    return str(program)


async def opened(host: Host, *command: str, **spec: object) -> AgentSession:
    asked = dataclasses.replace(command_spec(command), **spec)  # type: ignore[arg-type]
    agent = await host.open(asked, columns=80, lines=24)
    await host.published(agent.agent_id)
    await until(lambda: agent.report.state is AgentState.READY, "the program to rest")
    return agent


@pytest.mark.parametrize(
    ("line", "name", "words", "runs_text"),
    [
        ("./my_Agent.py --fast", "my-agent", 1, False),
        ("python3 -u bot.py -x", "bot", 3, False),
        ("python -m aider.main --model x", "aider", 3, False),
        ("npx -y @anthropic-ai/claude-code@latest --continue", "claude-code", 3, False),
        ("node /lib/node_modules/qwen-code/dist/index.js", "qwen-code", 2, False),
        ("env MODEL=x uv tool run ./agent-8100", "agent-8100-agent", 6, False),
        ("bash -lc 'exec agent'", "bash", 3, False),
        ("bash", "bash", 1, True),
        ("python3.12 -i", "python3-12", 2, True),
        ("/usr/bin/vim notes", "vim", 1, True),
        ("./all", "all-agent", 1, False),
        ("9lives", "agent-9lives", 1, False),
        ("npm run dev", "npm", 1, False),
    ],
)
def test_a_program_is_found_behind_what_starts_it(line: str, name: str, words: int, runs_text: bool) -> None:
    command = tuple(shlex.split(line))
    program = read_command(command)
    assert (program.name, program.words, program.runs_text) == (name, command[:words], runs_text)
    assert program.words + program.args == command


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("python3 -u bot.py x.py", "python3 -u {}/bot.py x.py"),
        ("uv run ./bot.py", "uv run {}/bot.py"),
        ("./bot.py", "{}/bot.py"),
        ("python3 -m bot.py", "python3 -m bot.py"),
        ("npx bot", "npx bot"),
        ("python3 none.py", "python3 none.py"),
    ],
)
def test_a_script_is_that_of_the_folder_in_which_the_command_is_run(
    line: str, found: str, tmp_path: Path
) -> None:
    for name in ("bot", "bot.py"):
        (tmp_path / name).touch()
    spec = command_spec(shlex.split(line), base=tmp_path)
    assert [*spec.command, *spec.args] == found.format(tmp_path).split()


@pytest.mark.parametrize(
    ("words", "extra", "expected"),
    [
        (["claude:bob"], ("--model", "x"), [("claude", "bob", (), ("--model", "x"))]),
        ([], ("./a.sh", "-x"), [("a", "", ("./a.sh",), ("-x",))]),
        (
            ["claude", ":bob"],
            ("python", "b.py"),
            [("claude", "", (), ()), ("b", "bob", ("python", "b.py"), ())],
        ),
        (["./a.sh:bob"], (), [("a", "bob", ("./a.sh",), ())]),
        (
            ["codex", "aider --fast '1 2'"],
            (),
            [("codex", "", (), ()), ("aider", "", ("aider",), ("--fast", "1 2"))],
        ),
        (["claude@~/my folder/x"], (), [("claude", "", (), ())]),
        (["./a.sh"], ("-x",), [("a", "", ("./a.sh",), ("-x",))]),
    ],
)
def test_command_lines_mix_with_profiles(
    words: list[str], extra: tuple[str, ...], expected: Sequence[tuple[object, ...]], tmp_path: Path
) -> None:
    specs = build_specs(words, base=tmp_path, extra=extra, port=None, prompt="")
    assert [(spec.profile, spec.name, spec.command, spec.args) for spec in specs] == expected


@pytest.mark.parametrize(
    ("line", "agents", "extra"),
    [
        ("claude -- --model x", ("claude",), ("--model", "x")),
        ("-- ./a.sh --json", (), ("./a.sh", "--json")),
        ("claude './a.sh -x' :bob -- b -- c", ("claude", "./a.sh -x", ":bob"), ("b", "--", "c")),
        ("codex", ("codex",), ()),
    ],
)
def test_start_takes_what_follows_two_dashes_as_it_is(
    line: str, agents: tuple[str, ...], extra: tuple[str, ...]
) -> None:
    context = start_command.make_context("start", shlex.split(line))
    assert (context.params["agents"], context.obj) == (agents, extra)


@pytest.mark.parametrize(
    ("words", "extra"),
    [([":bob"], ()), (["claude", "codex"], ("./a",)), (["./a 'b"], ()), ([":a", ":b"], ("c",))],
)
def test_an_unclear_command_line_is_refused(words: list[str], extra: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        build_specs(words, base=tmp_path, extra=extra, port=None, prompt="")
    assert caught.value.hint


async def test_a_message_waits_until_a_person_allows_it_once(host: Host, echo: str) -> None:
    agent = await opened(host, echo)
    assert agent.agent_id.startswith("synapse-echo-bot-")
    assert records(host)[agent.agent_id]["agent_type"] == "echo-bot"
    async with httpx.AsyncClient(base_url=agent.endpoint, timeout=PATIENCE) as client:
        card = (await client.get("/.well-known/agent-card.json")).json()
        assert card["name"] == "Synapse Echo-Bot"
        (receipt,) = await host.send("echo-bot", "first one")
        await until(lambda: agent.tasks.get(receipt.task_id).delivery is DeliveryState.HELD)
        urgent = (await host.send("echo-bot", "urgent one", priority=5))[0]
        await until(lambda: agent.tasks.get(urgent.task_id).delivery is DeliveryState.HELD)
        assert f"synapse profile new {echo}" in agent.tasks.get(urgent.task_id).reason
        assert "said" not in agent.recent_text(), "not a key was pressed, not even to interrupt"
        await host.cancel_task(agent.agent_id, urgent.task_id)
        (await client.post(f"/outbox/{receipt.task_id}/release")).raise_for_status()
    task = await until(lambda: _done(agent, receipt.task_id), agent.recent_text)
    assert "the last word one" in task.answer
    (second,) = await host.send("echo-bot", "and another")
    await until(lambda: _done(agent, second.task_id), agent.recent_text)


async def test_a_program_that_reports_its_state_needs_no_leave(host: Host, echo: str) -> None:
    agent = await opened(host, "python3", echo, "--reports")
    (receipt,) = await host.send("echo-bot", "hello")
    await until(lambda: _done(agent, receipt.task_id), agent.recent_text)


async def test_a_profile_switches_a_signal_off(host: Host, echo: str) -> None:
    home = host.paths.profiles
    home.mkdir(parents=True)
    (home / "bot.yaml").write_text(f"command: {echo}\nargs: [--reports]\nreceives: ask\nignores: [status]\n")
    (home / "bot.yaml").chmod(0o600)
    host.profiles = load_profiles(shipped_profiles(), home)
    agent = await host.open(AgentSpec("bot"), columns=80, lines=24)
    await until(lambda: agent.report.rule == "output rests", lambda: agent.report)
    (receipt,) = await host.send("bot", "hello")
    await until(lambda: agent.tasks.get(receipt.task_id).delivery is DeliveryState.HELD)


async def test_a_shell_is_never_typed_into(host: Host) -> None:
    agent = await opened(host, "sh")
    assert agent.agent_type == "sh"
    with pytest.raises(TakesNoMessages):
        await host.send(agent.agent_id, "rm -rf build")


async def test_a_program_of_a_profile_gets_its_rules(host: Host, echo: str) -> None:
    agent = await opened(host, echo, cwd=host.folder)
    assert agent.profile.asks
    args = ("./Echo_bot.py", "--reports")
    known = dataclasses.replace(host.profiles.find("claude"), name="mine", command="python3", args=args)
    host.profiles = dataclasses.replace(host.profiles, profiles={**host.profiles.profiles, "mine": known})
    again = await host.restart(agent.agent_id)
    assert (again.agent_type, again.profile.display) == ("echo-bot", "Claude Code"), "under the same id"
    assert again.profile.args == ("--reports",)


async def test_a_running_program_follows_a_profile_that_is_written_or_changed(host: Host, echo: str) -> None:
    agent = await opened(host, echo)
    pid = agent.pid
    (receipt,) = await host.send("echo-bot", "first one")
    await until(lambda: agent.tasks.get(receipt.task_id).delivery is DeliveryState.HELD)
    await write_profile(host, f"command: {echo}\ncomposer: {{prompt: '^> '}}\nenv: {{A: '1'}}\n")
    task = await until(lambda: _done(agent, receipt.task_id), agent.recent_text)
    assert "the last word one" in task.answer
    await write_profile(
        host, f"command: {echo}\nstates: [{{name: busy, state: processing, screen: '^> '}}]\n"
    )
    await until(lambda: agent.report.rule == "busy", lambda: agent.report)
    await write_profile(host, "command: none\nwrong: [\n")
    assert (agent.report.rule, agent.pid) == ("busy", pid), "a broken file keeps its last good content"
    again = await host.restart(agent.agent_id)
    assert "A" not in again.environ


async def write_profile(host: Host, text: str) -> None:
    file = host.paths.profiles / "echo-bot.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)
    await host.following.look()


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ((), "no profile 'sleep'", "synapse-tui -- sleep"),
        (("claud",), "not on PATH", "'claude'.*npm install"),
        (("./none",), r"no program .*\./none|no program .*/none", "check"),
        (("./text",), "not executable", "chmod"),
    ],
)
async def test_a_command_that_cannot_run_says_what_to_do(
    host: Host, command: tuple[str, ...], message: str, hint: str
) -> None:
    (host.folder / "text").write_text("no program")
    with pytest.raises(SynapseError, match=message) as caught:
        host.check(command_spec(command) if command else AgentSpec("sleep"))
    assert re.search(hint, caught.value.hint)


@pytest.mark.usefixtures("soon")
async def test_the_workspace_brings_it_back_with_what_was_allowed(tmp_path: Path, echo: str) -> None:
    store = WorkspaceStore(tmp_path / "workspaces", "one")
    async with running(make_host(tmp_path)) as host:
        agent = await opened(host, "python3", echo, "--x", name="bob")
        agent.control.allow()
        saver = WorkspaceSaver(host, store, SavedView)
        await saver.save()
    saved = store.load()
    assert saved is not None
    async with running(make_host(tmp_path)) as host:
        lost = LostWorkspace(host, store, saved, lambda _view: None, ask=False)
        assert lost.offer().agents == (f"echo-bot 'bob'  {host.folder}: python3 {echo} --x",), (
            "no word of any language"
        )
        assert not await lost.open([(80, 24)])
        (back,) = host.agents.values()
        assert (back.agent_id, back.name, back.allowed) == (agent.agent_id, "bob", True)
        assert back.console.process.pid != agent.pid
        await until(lambda: back.report.state is AgentState.READY)
        (receipt,) = await host.send("bob", "hello again")
        await until(lambda: _done(back, receipt.task_id), back.recent_text)


@pytest.mark.usefixtures("soon")
async def test_a_closed_one_is_opened_again_by_the_command_that_is_shown(tmp_path: Path, echo: str) -> None:
    folder = tmp_path / "its own"
    folder.mkdir()
    host = make_host(tmp_path)
    async with running(host):
        agent = await opened(host, "python3", echo, "--x", "it's; two", name="bob", cwd=folder)
        await host.send("bob", "hello")
        await host.close(agent.agent_id)
        ((addressee, count),) = (await host.history.unfinished()).items()
        program, start, *words = shlex.split(addressee.command)
        assert (program, start, count) == ("synapse", "start", 1)
        asked = start_command.make_context("start", words)
        (spec,) = build_specs(
            asked.params["agents"], base=host.folder, extra=asked.obj, port=asked.params["port"], prompt=""
        )
        again = await host.open(spec, columns=80, lines=24)
        assert (again.agent_id, again.name, again.cwd) == (agent.agent_id, "bob", folder)
        assert (again.spec.command, again.spec.args) == (agent.spec.command, agent.spec.args)
        await until(lambda: len(again.control.every()) == 1, "its message")
        await host.cancel_task(again.agent_id, again.control.every()[0].task.id)
        await host.close(again.agent_id)
    with sqlite3.connect(host.paths.history) as database:
        assert database.execute("SELECT command FROM tasks").fetchall() == [("",)], "no longer than needed"


@pytest.mark.usefixtures("soon")
async def test_an_upgrade_of_the_host_goes_on_with_it(tmp_path: Path, echo: str) -> None:
    before = make_host(tmp_path)
    await before.start()
    before.load_servers()
    agent = await opened(before, "python3", "-u", echo, "--x")
    agent.control.allow()
    handover = Handover.read((await before.hand_over()).write())
    async with running(make_host(tmp_path)) as host:
        host.adopt(handover)
        again = host.agents[agent.agent_id]
        assert (again.pid, again.agent_type, again.allowed) == (agent.pid, "echo-bot", True)
        (receipt,) = await host.send("echo-bot", "hello")
        await until(lambda: _done(again, receipt.task_id), again.recent_text)
        again = await host.restart(agent.agent_id)
        assert again.spec.command == ("python3", "-u", echo)
        await until(lambda: again.report.state is AgentState.READY)


def test_settings_start_no_command(tmp_path: Path) -> None:
    for word in ("./run.sh", "sh -c x", ":bob"):
        with pytest.raises(ConfigError):
            parse_spec(word, base=tmp_path)
    assert parse_agent("claude:bob@x", base=tmp_path) == AgentSpec("claude", "bob", tmp_path / "x")


def _done(agent: AgentSession, task_id: str) -> Task | None:
    task = agent.tasks.get(task_id)
    return task if task.state is TaskState.COMPLETED else None


async def test_a_program_that_shows_no_composer_is_not_guessed_at(host: Host, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nread line; echo got $line\n")
    silent.chmod(0o755)
    agent = await host.open(command_spec((str(silent),)), columns=80, lines=24)
    agent.control.allow()
    (receipt,) = await host.send("silent", "hello")
    task = await until(lambda: _held(agent, receipt.task_id, "composer not visible"), agent.recent_text)
    assert f"synapse profile new {silent}" in task.reason
    assert "got" not in agent.recent_text()


def _held(agent: AgentSession, task_id: str, reason: str) -> Task | None:
    task = agent.tasks.get(task_id)
    return task if task.delivery is DeliveryState.HELD and reason in task.reason else None


SHAPES = {
    "box": Shape("box", min_rows=3, works=0.5),
    "prompt": Shape(prompt="> ", works=0.5),
}


async def test_the_general_rules_hold_without_any_report_of_the_program(tmp_path: Path) -> None:
    for name in SHAPES:
        (tmp_path / name).mkdir()
    await at_once(SHAPES, lambda name: _general_rules_hold(tmp_path / name, SHAPES[name]))


async def _general_rules_hold(folder: Path, shape: Shape) -> None:
    profile = profile_of(ProfileSet({}), (sys.executable, str(PROGRAM)))
    args = (str(PROGRAM), shape.json)
    profile = dataclasses.replace(profile, args=args, ignores=frozenset({"status"}))
    async with open_rig(folder, profile=profile, size=(90, 24)) as rig:
        task = rig.send("one line")
        await rig.ready()
        assert not rig.submitted
        rig.session.control.allow()
        for text in ("one line", "first line\n\n  - indented\nlast line"):
            task = task if text == "one line" else rig.send(text)
            done = await rig.done(task)
            assert (done.state, rig.submitted[-1]) == (TaskState.COMPLETED, text)
            assert "You said" in done.answer
        asking = rig.send("%%ask%%")
        await until(
            lambda: rig.session.tasks.get(asking.id).state is TaskState.INPUT_REQUIRED,
            lambda: (rig.session.tasks.get(asking.id), rig.session.timeline.passages[-4:]),
            10,
        )
        urgent = rig.send("urgent", priority=5)
        assert (await rig.done(urgent)).state is TaskState.COMPLETED
        assert [each["approved"] for each in rig.records("answer")] == [False], "denied, not approved"
        assert rig.submitted[-1] == "urgent"
