"""What the agents' hooks bring about: locks, denials, changes and news; on a real database and socket."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import synapse_tui.hooks.client as client_module
from synapse_tui.core.events import Event, EventBus, FileChanged, LocksChanged
from synapse_tui.core.locks import FileKeys, Lock, Modification
from synapse_tui.hooks import Dialect, HookKind, read_event
from synapse_tui.hooks import handler as handler_module
from synapse_tui.hooks.file_safety import HookServer
from synapse_tui.hooks.handler import HookHandler, LockStore, Writer
from synapse_tui.hooks.launch import opencode_plugin, prepare
from synapse_tui.system.process_times import process_name
from tests.worktree_kit import make_repository

Opencode = Callable[[str], Awaitable[asyncio.subprocess.Process]]
"""Runs a script with the hooks of opencode's plugin."""

ALIVE = process_name(os.getpid())
CLAUDE = Writer("synapse-claude-8100", ALIVE, "11111111-task", "rename it")
CODEX = Writer("synapse-codex-8120", ALIVE)


class Rig:
    def __init__(self, project: Path) -> None:
        self.project = project
        self.now = datetime(2026, 5, 1, tzinfo=UTC)
        self.told: list[str] = []
        self.events: list[Event] = []
        self.keeper = LockStore(
            project,
            project / ".synapse/file_safety.db",
            retention=timedelta(days=30),
            report=self.told.append,
            clock=lambda: self.now,
        )
        bus = EventBus()
        bus.subscribe(self.events.append)
        self.desk = HookHandler(FileKeys(project), self.keeper, bus, clock=lambda: self.now)

    async def says(self, worker: Writer, word: str, dialect: str, **fields: Any) -> bytes:
        told = json.dumps({"cwd": str(self.project), **fields}).encode()
        return await self.desk.handle(worker, read_event(word, Dialect(dialect), told))

    async def edit(self, worker: Writer, word: str, file: str, call: str = "c1", tool: str = "Edit") -> bytes:
        about = {"tool_name": tool, "tool_input": {"file_path": file}, "tool_use_id": call}
        return await self.says(worker, word, "claude", **about)

    async def locks(self) -> list[Lock]:
        return await self.keeper.ask(lambda store: store.locks())

    async def changes(self) -> list[Modification]:
        return await self.keeper.ask(lambda store: store.modifications())


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    project = tmp_path / "project"
    project.mkdir()
    rig = Rig(project)
    yield rig
    await rig.keeper.close()


async def test_a_write_takes_the_lock_and_its_end_gives_it_back(rig: Rig) -> None:
    file = rig.project / "a.py"
    file.write_text("one\ntwo\n")
    assert await rig.edit(CLAUDE, "pre", "a.py") == b""
    [lock] = await rig.locks()
    assert (lock.file, lock.agent_id, lock.task_id, lock.intent) == (
        "a.py",
        CLAUDE.agent_id,
        "11111111-task",
        "rename it",
    )
    file.write_text("one\n2\n")
    await rig.edit(CLAUDE, "post", "a.py")
    assert await rig.locks() == []
    [change] = await rig.changes()
    assert (change.file, change.change, change.lines, change.agent_id) == (
        "a.py",
        "MODIFY",
        "2",
        CLAUDE.agent_id,
    )
    assert [type(event) for event in rig.events] == [LocksChanged, FileChanged, LocksChanged]


@pytest.mark.parametrize("place", ["beside", "inside"])
async def test_an_agent_in_a_worktree_writes_into_no_other_folder_of_the_repository(
    rig: Rig, place: str
) -> None:
    repository = make_repository(rig.project)
    own, other = (repository.add(name, place=place).tree.path for name in ("alice", "bob"))
    elsewhere = rig.project.with_name("elsewhere.py")
    alice = Writer("synapse-claude-8100", ALIVE, folder=own / "src")
    (own / "src").mkdir()
    for path in (rig.project / "a.py", rig.project / "src" / "new.py", other / "a.py"):
        answer = json.loads(await rig.edit(alice, "pre", str(path)))
        reason = answer["hookSpecificOutput"]["permissionDecisionReason"]
        assert str(own / path.name) in reason or str(own / "src" / path.name) in reason
    for path in (own / "a.py", own / "src" / "x.py", elsewhere):
        assert await rig.edit(alice, "pre", str(path), call=path.name) == b""
    assert len(await rig.locks()) == 3
    in_main = Writer("synapse-codex-8120", ALIVE, folder=rig.project)
    assert await rig.edit(in_main, "pre", str(rig.project / "a.py")) == b""


async def test_a_denial_tells_what_has_become_of_the_file_unless_that_is_known(rig: Rig) -> None:
    (rig.project / "a.py").write_text("1\n")
    command = "*** Begin Patch\n*** Update File: a.py\n@@\n*** End Patch"
    patch = {"tool_name": "apply_patch", "tool_use_id": "p", "tool_input": {"command": command}}
    assert await rig.says(CODEX, "start", "codex") == b""
    await rig.edit(CLAUDE, "pre", "a.py")
    assert b"was changed" not in await rig.says(CODEX, "pre", "codex", **patch)
    (rig.project / "a.py").write_text("2\n")
    await rig.edit(CLAUDE, "post", "a.py")
    await rig.edit(CLAUDE, "pre", "a.py")
    assert b"It was changed by synapse-claude-8100" in await rig.says(CODEX, "pre", "codex", **patch)
    await rig.says(CODEX, "prompt", "codex", prompt="what is new?")
    assert b"was changed" not in await rig.says(CODEX, "pre", "codex", **patch)


@pytest.mark.parametrize(
    ("word", "name"),
    [("idle", "Stop"), ("idle", "Interrupt"), ("prompt", "UserPromptSubmit"), ("end", "SessionEnd")],
)
async def test_locks_without_an_end_of_their_own_end_with_the_turn(rig: Rig, word: str, name: str) -> None:
    (rig.project / "a.py").write_text("one\n")
    await rig.edit(CLAUDE, "pre", "a.py")
    await rig.edit(CLAUDE, "pre", "b.py", "c2")
    (rig.project / "a.py").write_text("two\n")
    await rig.says(CLAUDE, word, "claude", hook_event_name=name)
    assert await rig.locks() == []
    [change] = await rig.changes()
    assert (change.file, change.metadata["unfinished"]) == ("a.py", True)


async def test_what_frees_a_turns_locks_never_meets_those_of_the_next(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rig.project / "a.py").write_text("one\n")
    slow = threading.Event()
    monkeypatch.setattr(handler_module, "compare", lambda *_: slow.wait(30) and None)
    await rig.edit(CLAUDE, "pre", "a.py")
    settling = asyncio.create_task(rig.desk.settle(CLAUDE))
    await asyncio.sleep(0)
    next_one = asyncio.create_task(rig.edit(CLAUDE, "pre", "a.py", "c2"))
    await asyncio.wait({next_one}, timeout=0.2)  # in which it would overtake
    slow.set()
    await asyncio.gather(settling, next_one)
    assert [(lock.file, lock.call) for lock in await rig.locks()] == [("a.py", "c2")]


async def test_a_lock_that_the_agent_asked_for_by_itself_outlives_the_turn(rig: Rig) -> None:
    from synapse_tui.core.locks import Holder

    own = Holder(CLAUDE.agent_id, process=ALIVE)
    await rig.keeper.ask(lambda store: store.acquire_locks(["x"], own))
    await rig.says(CLAUDE, "idle", "claude", hook_event_name="Stop")
    assert [lock.file for lock in await rig.locks()] == ["x"]
    await rig.desk.gone(CLAUDE)
    assert await rig.locks() == []


async def test_agents_are_told_what_others_changed(rig: Rig) -> None:
    (rig.project / "a.py").write_text("1\n")
    await rig.says(CODEX, "prompt", "codex", prompt="begin")
    await rig.edit(CLAUDE, "pre", "a.py")
    (rig.project / "a.py").write_text("2\n")
    await rig.edit(CLAUDE, "post", "a.py")
    rig.now += timedelta(seconds=90)
    answer = json.loads(await rig.says(CODEX, "prompt", "codex", prompt="more"))
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert "a.py was changed by synapse-claude-8100 1m30s ago, lines 1" in context
    assert await rig.says(CODEX, "prompt", "codex", prompt="again") == b""
    assert await rig.says(CLAUDE, "prompt", "claude", prompt="mine") == b""


async def test_in_a_turn_only_files_that_it_knows_are_told(rig: Rig) -> None:
    for name in ("known.py", "other.py"):
        (rig.project / name).write_text("1\n")
    read = {"tool_name": "Read", "tool_input": {"file_path": "known.py"}, "tool_use_id": "r"}
    await rig.says(CODEX, "post", "claude", **read)
    for name in ("known.py", "other.py"):
        await rig.edit(CLAUDE, "pre", name, name)
        (rig.project / name).write_text("2\n")
        await rig.edit(CLAUDE, "post", name, name)
    bash = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "s"}
    answer = await rig.says(CODEX, "post", "claude", **bash)
    assert b"known.py was changed" in answer
    assert b"other.py" not in answer
    assert await rig.says(CODEX, "post", "claude", **bash) == b""


async def test_a_database_that_cannot_be_used_is_told_once_and_denies_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    (tmp_path / ".synapse").mkdir()
    (tmp_path / ".synapse/file_safety.db").mkdir()
    server = HookServer(tmp_path / "h", lambda _agent, event: rig.desk.handle(CLAUDE, event))
    await server.start()
    try:
        for _ in range(2):
            assert (
                await hook(server.path, "pre", {"tool_name": "Write", "tool_input": {"file_path": "a"}})
                == b""
            )
    finally:
        await server.stop()
        await rig.keeper.close()
    assert len(rig.told) == 1
    assert rig.told[0].startswith("files are not locked:")


# -- the socket ---


async def hook(path: Path, word: str, fields: dict[str, Any]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-E", str(client_module.__file__), word, "--dialect", "claude"),
        env={"SYNAPSE_AGENT_ID": CLAUDE.agent_id, "SYNAPSE_HOOKS": str(path)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate(json.dumps(fields).encode())
    assert process.returncode == 0
    return out


async def test_a_hook_is_answered_over_the_socket(tmp_path: Path) -> None:
    heard: list[tuple[str, HookKind, str]] = []

    async def handle(agent_id: str, event: Any) -> bytes:
        heard.append((agent_id, event.kind, event.tool))
        return b'{"answer": 1}'

    server = HookServer(tmp_path / "h", handle)
    await server.start()
    assert server.path.stat().st_mode & 0o777 == 0o600
    text = "あ" * 400_000
    fields = {"tool_name": "Write", "tool_input": {"file_path": "a", "content": text}}
    assert await hook(server.path, "pre", fields) == b'{"answer": 1}'
    assert heard == [(CLAUDE.agent_id, HookKind.PRE, "Write")]
    await server.stop()
    assert not server.path.exists()
    assert await hook(server.path, "pre", fields) == b""


@pytest.mark.parametrize(
    "told",
    [b"", b"pre\n", b"pre claude a x\n{", b"pre claude a 9\n{", b"odd claude a 2\n{}", b"pre odd a 2\n{}"],
)
async def test_what_makes_no_sense_is_answered_by_nothing(tmp_path: Path, told: bytes) -> None:
    async def handle(_agent: str, _event: Any) -> bytes:
        return b"answer"

    server = HookServer(tmp_path / "h", handle)
    await server.start()
    reader, writer = await asyncio.open_unix_connection(str(server.path))
    writer.write(told)
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    await server.stop()


async def test_processes_of_other_users_are_not_heard(tmp_path: Path) -> None:
    async def handle(_agent: str, _event: Any) -> bytes:
        return b"answer"

    server = HookServer(tmp_path / "h", handle, uid=os.getuid() + 1)
    await server.start()
    assert await hook(server.path, "pre", {}) == b""
    await server.stop()


# -- opencode's plugin ---


SCRIPT = """
const plugin = await import(process.argv[1])
const hooks = await plugin.Synapse({ directory: process.argv[2] })
"""
CHILD = """
await hooks["tool.execute.before"]({ tool: "write", callID: "1" }, { args: { filePath: "a.py" } })
const tell = (type, properties) => hooks.event({ event: { type, properties } })
await tell("session.created", { info: { id: "main" } })
await tell("session.created", { info: { id: "child", parentID: "main" } })
await hooks["chat.message"]({ sessionID: "child" }, { parts: [] })
await tell("session.idle", { sessionID: "child" })
console.log("the child is done")
await new Promise((resolve) => process.stdin.once("data", resolve))
await tell("session.idle", { sessionID: "main" })
process.exit()
"""
CALLS = """
if (process.env.npm_config_fetch_retries) throw new Error("it would go to what the shell runs")
const input = { tool: "write", callID: "1", sessionID: "s" }
try {
  await hooks["tool.execute.before"](input, { args: { filePath: "a.py", content: "x" } })
  console.log("went on")
} catch (error) {
  console.log(error.message)
}
"""


@pytest.fixture
async def opencode(rig: Rig) -> AsyncIterator[Opencode]:
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    folder = rig.project.parent
    hooks = prepare(Dialect.OPENCODE, folder / "hooks", os.environ)
    (folder / "plugin.mjs").write_bytes(opencode_plugin())
    server = HookServer(folder / "h", lambda _agent, event: rig.desk.handle(CODEX, event))
    await server.start()
    told = {"SYNAPSE_AGENT_ID": CODEX.agent_id, "SYNAPSE_HOOKS": str(server.path)}

    async def run(script: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *("node", "--input-type=module", "-e", SCRIPT + script),
            *("--", str(folder / "plugin.mjs"), str(rig.project)),
            env={**os.environ, **hooks.environ, **told},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )

    yield run
    await server.stop()


async def test_the_plugin_of_opencode_tells_its_tool_why_it_is_denied(rig: Rig, opencode: Opencode) -> None:
    out, _ = await (await opencode(CALLS)).communicate()
    assert out.strip() == b"went on"
    await rig.desk.gone(CODEX)
    await rig.edit(CLAUDE, "pre", "a.py")
    out, _ = await (await opencode(CALLS)).communicate()
    assert b"a.py is locked by synapse-claude-8100" in out


async def test_a_subagent_of_opencode_does_not_end_the_agents_turn(rig: Rig, opencode: Opencode) -> None:
    process = await opencode(CHILD)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"the child is done\n"
    assert [lock.file for lock in await rig.locks()] == ["a.py"]
    await process.communicate(b"go on")
    assert await rig.locks() == []


@pytest.mark.parametrize("dialect", ["claude", "codex", "gemini", "opencode", "copilot"])
async def test_another_agent_is_denied_at_once_and_told_by_whom(rig: Rig, dialect: str) -> None:
    await rig.edit(CLAUDE, "pre", "a.py")
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    about: dict[str, dict[str, Any]] = {
        "claude": {"tool_name": "Write", "tool_input": {"file_path": str(rig.project / "a.py")}},
        "codex": {"tool_name": "apply_patch", "tool_input": {"command": patch}},
        "gemini": {"tool_name": "write_file", "tool_input": {"file_path": "./a.py"}},
        "opencode": {"tool": "write", "callID": "1", "args": {"filePath": "a.py"}},
        "copilot": {"toolName": "create", "toolArgs": {"path": str(rig.project / "x/../a.py")}},
    }
    answer = await rig.says(CODEX, "pre", dialect, **about[dialect])
    assert b"locked by synapse-claude-8100" in answer
    assert [lock.agent_id for lock in await rig.locks()] == [CLAUDE.agent_id]


async def test_a_patch_of_several_files_gets_all_or_none(rig: Rig) -> None:
    await rig.edit(CLAUDE, "pre", "b.py")
    patch = "*** Begin Patch\n*** Add File: a.py\n+x\n*** Delete File: b.py\n*** End Patch"
    about = {"tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "p"}
    assert b"b.py is locked" in await rig.says(CODEX, "pre", "codex", **about)
    assert [lock.file for lock in await rig.locks()] == ["b.py"]
    await rig.edit(CLAUDE, "post", "b.py")
    assert await rig.says(CODEX, "pre", "codex", **about) == b""
    (rig.project / "a.py").write_text("x\n")
    await rig.says(CODEX, "post", "codex", **about)
    assert [(change.file, change.change, change.lines) for change in await rig.changes()] == [
        ("a.py", "CREATE", "1")
    ]
    assert await rig.locks() == []


async def test_a_failed_tool_gives_its_lock_back(rig: Rig) -> None:
    await rig.edit(CLAUDE, "pre", "a.py")
    about = {"tool_name": "Edit", "tool_input": {"file_path": "a.py"}, "tool_use_id": "c1"}
    await rig.says(CLAUDE, "post", "claude", hook_event_name="PostToolUseFailure", **about)
    assert await rig.locks() == []
    assert await rig.changes() == []
