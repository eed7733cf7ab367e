"""Conversations with external agents on disk: killed hosts, several processes, files of earlier versions."""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from synapse_tui.a2a.external.conversation import Conversation
from synapse_tui.a2a.external.discovery import find_agent
from synapse_tui.a2a.external.registry import AddRequest, ExternalStore
from synapse_tui.a2a.external.store import ConversationStore
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import USER, TaskState
from synapse_tui.messages import conversations
from synapse_tui.messages.conversations import SavedConversation, conversation_folder
from synapse_tui.messages.history import History
from tests.integration.external_kit import OldAgent, hand_made, sdk_agent
from tests.waiting import PATIENCE, until

PROJECT = Path("/project")
START = datetime(2026, 1, 2, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


# -- killed hosts ---


class Killable:
    """A host's external agents in a process of its own.

    Attributes:
        tasks: The newest state of each task, by its text.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.tasks: dict[str, dict[str, str]] = {}

    async def until(self, text: str, delivery: str) -> dict[str, str]:
        """Read what it prints until a message is there."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while self.tasks.get(text, {}).get("delivery") != delivery:
                task = json.loads(await self._process.stdout.readline())
                self.tasks[task["text"]] = task
        return self.tasks[text]

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def killable(folder: Path, *messages: str) -> AsyncIterator[Killable]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.external_process", str(folder), *messages),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    host = Killable(process)
    try:
        yield host
    finally:
        if process.returncode is None:
            await host.kill()


async def test_a_killed_host_loses_and_doubles_nothing(tmp_path):
    answering = asyncio.Event()

    async def silent(request: Request) -> Response:
        answer = await old.handle(request)
        if request.method == "POST":
            await answering.wait()
        return answer

    def stored() -> dict[str, str]:
        with closing(sqlite3.connect(tmp_path / "home" / ".synapse" / "history.db")) as database:
            return dict(database.execute("SELECT text, delivery FROM external_tasks").fetchall())

    old = OldAgent(streaming=False)
    async with sdk_agent() as echo, hand_made(silent, "/.well-known/agent-card.json", "/") as mute:
        registry = ExternalStore(tmp_path / "home" / ".a2a" / "external")
        for alias, server in (("echo", echo), ("mute", mute)):
            request = AddRequest(server.url, alias=alias)
            registry.put((await find_agent(request, registry, environ={}, types=())).agent)

        async with killable(tmp_path, "echo=hello", "echo=halfway", "mute=anybody?") as host:
            done = await host.until("hello", "done")
            await until(lambda: mute.bodies)
            await until(lambda: stored() == {"hello": "done", "halfway": "submitted", "anybody?": "queued"})
            await host.kill()
        echo.go.set()
        async with killable(tmp_path) as host:
            answered = await host.until("halfway", "done")
            failed = await host.until("anybody?", "failed")
            assert host.tasks["hello"] == done
            await until(lambda: stored() == {"hello": "done", "halfway": "done", "anybody?": "failed"})
            await host.kill()
        answering.set()
    assert (done["answer"], answered["answer"]) == ("hello", "one two three")
    assert "not known whether" in failed["reason"]
    assert len(mute.bodies) == 1
    with closing(sqlite3.connect(tmp_path / "home" / ".synapse" / "history.db")) as database:
        rows = database.execute("SELECT kind, text FROM entries").fetchall()
    assert sorted(rows) == [
        ("answer", "hello"),
        ("answer", "one two three"),
        ("note", failed["reason"]),
        ("sent", "anybody?"),
        ("sent", "halfway"),
        ("sent", "hello"),
    ]


# -- several processes ---


@asynccontextmanager
async def opened(home: Path, owner: str, *alive: str) -> AsyncIterator[ConversationStore]:
    history = History(home / "history.db", owner=owner, alive={owner, *alive}.__contains__)
    try:
        yield ConversationStore(history, PROJECT, home / "external")
    finally:
        await history.close()


def talk(alias: str = "docs") -> Conversation:
    ids, times = itertools.count(1), itertools.count()
    return Conversation(
        alias,
        make_id=lambda: f"{next(ids):08x}-0000-4000-8000-000000000000",
        now=lambda: START + timedelta(seconds=next(times)),
        agent="somebody",
    )


def found(saved: list[SavedConversation]) -> SavedConversation:
    (only,) = saved
    return only


async def test_a_conversation_is_read_as_it_was_written(tmp_path):
    conversation = talk()
    ended = conversation.begin("half \ud83d", USER, expected=True)
    conversation.fail(ended.id, "it broke")
    conversation.begin_anew()
    begun = conversation.begin("hello", USER, expected=False)
    conversation.context_id, conversation.opened = "c1", True
    async with opened(tmp_path, "1:1") as store:
        store.note(conversation)
        await store.commit()
    async with opened(tmp_path, "2:2", "1:1") as store:
        saved = found(await store.load(claim=True))
        assert (saved.agent, saved.context_id, saved.opened) == ("somebody", "c1", True)
        assert [(entry.kind, entry.text) for entry in saved.entries] == [
            ("sent", "half ?"),
            ("note", "it broke"),
            ("note", "a new conversation begins here"),
            ("sent", "hello"),
        ]
        assert saved.tasks[-1] == begun
        assert not saved.claimed, "its process is alive"
        await store.forget("docs")
        assert await store.load(claim=True) == []
    assert b"hello" not in (tmp_path / "history.db").read_bytes()


async def test_of_two_hosts_one_continues_what_a_third_left(tmp_path):
    conversation = talk()
    begun = {conversation.begin(text, USER, expected=False).id for text in "abc"}
    async with opened(tmp_path, "3:3") as store:
        store.note(conversation)
        await store.commit()
    async with opened(tmp_path, "1:1", "2:2") as one, opened(tmp_path, "2:2", "1:1") as two:
        first, second = map(found, await asyncio.gather(one.load(claim=True), two.load(claim=True)))
        assert {first.claimed, second.claimed} == {frozenset(begun), frozenset()}
        again = found(await one.load(claim=True))
        assert again.tasks == tuple(conversation.tasks)


# -- files of earlier versions ---


def lines(*values: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def stored_task(state: str = "working", delivery: str = "submitted", second: int = 1) -> dict[str, Any]:
    return {
        "id": "0000000a-0000-4000-8000-000000000000",
        "context_id": "c1",
        "target": "docs",
        "sender": {"sender_id": "user", "sender_type": "user", "sender_endpoint": "", "verified": True},
        "text": "hello",
        "created_at": "2026-01-02T00:00:00+00:00",
        "updated_at": f"2026-01-02T00:00:0{second}+00:00",
        "state": state,
        "delivery": delivery,
        "reason": "",
        "artifacts": [["5", "a", "answer"]] if state == "completed" else [],
        "response_expected": True,
        "metadata": {"external": True, "remote_task": "r1"},
        "reply": "",
    }


def stored_entry(key: str, kind: str, text: str) -> dict[str, Any]:
    return {
        "key": key,
        "task_id": stored_task()["id"],
        "kind": kind,
        "text": text,
        "at": f"2026-01-02T00:00:0{len(key)}+00:00",
        "sender_id": "user" if kind == "sent" else "",
        "name": "",
        "growing": False,
    }


EARLIER = lines(
    {"task": stored_task(), "owner": "9:9"},
    {"entry": stored_entry("k", "sent", "hello")},
    {"entry": stored_entry("kk", "progress", "think")},
    {"entry": stored_entry("kk", "progress", "thinking")},
    {"about": {"context_id": "c1", "opened": True, "agent": "somebody"}},
)


async def test_files_of_earlier_versions_become_rows_once(tmp_path, monkeypatch):
    folder = conversation_folder(tmp_path / "external", PROJECT)
    folder.mkdir(parents=True, mode=0o700)
    file = folder / "docs.jsonl"
    file.write_bytes(EARLIER + b'{"task": {"id": 1}}\nnot json\n')

    def killed(_path: Path) -> Path:
        raise RuntimeError

    async with opened(tmp_path, "1:1") as store:
        with monkeypatch.context() as patched:
            patched.setattr(conversations, "_imported", killed)
            with pytest.raises(HistoryError):
                await store.load(claim=True)
        assert file.exists()
    for _ in range(2):
        async with opened(tmp_path, "1:1") as store:
            saved = found(await store.load(claim=True))
        (task,) = saved.tasks
        assert (task.text, task.state, saved.claimed) == ("hello", TaskState.WORKING, frozenset([task.id]))
        assert (saved.agent, saved.context_id, saved.opened) == ("somebody", "c1", True)
        assert [(entry.kind, entry.text) for entry in saved.entries] == [
            ("sent", "hello"),
            ("progress", "thinking"),
        ]
        assert [path.name for path in folder.iterdir()] == ["docs.jsonl.imported"]

    # A host of the earlier version is still running, and goes on with its conversation.
    file.write_bytes(
        lines(
            {"task": stored_task("completed", "done", 2), "owner": "9:9"},
            {"entry": stored_entry("kkk", "answer", "5")},
        )
    )
    async with opened(tmp_path, "1:1") as store:
        saved = found(await store.load(claim=True))
        assert saved.tasks[0].answer == "5"
        assert [entry.text for entry in saved.entries] == ["hello", "thinking", "5"]
        assert saved.opened
        assert len(list(folder.iterdir())) == 2
        await store.forget("docs")
        assert not list(folder.iterdir())


async def test_a_file_that_cannot_be_renamed_does_not_replace_what_followed(tmp_path, monkeypatch):
    folder = conversation_folder(tmp_path / "external", PROJECT)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "docs.jsonl").write_bytes(EARLIER)
    monkeypatch.setattr(conversations, "_imported", lambda _path: tmp_path)
    async with opened(tmp_path, "1:1") as store:
        conversation = talk()
        conversation.restore(found(await store.load(claim=True)))
        conversation.fail(conversation.tasks[0].id, "it broke")
        conversation.opened = False
        store.note(conversation)
        await store.commit()
    async with opened(tmp_path, "2:2") as store:
        saved = found(await store.load(claim=True))
    assert list((tmp_path / "external").glob("*/*")) == [folder / "docs.jsonl"]
    assert saved.tasks == tuple(conversation.tasks)
    assert set(saved.entries) == set(conversation.entries)
    assert (saved.tasks[0].state, saved.opened) == (TaskState.FAILED, False)
