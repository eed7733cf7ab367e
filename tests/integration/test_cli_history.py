"""`synapse history` as a process, on a history that a host wrote."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

from synapse_tui.core.content import Artifact
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import USER, DeliveryState, MessageRequest, Sender, TaskState
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.records import AgentKey
from synapse_tui.messages.tasks import TaskStore
from tests.integration.shell_kit import Shell

SENDER = Sender("synapse-codex-8120", "codex")


async def told(
    shell: Shell,
    *pairs: tuple[str, str | None],
    project: str = "",
    called: str | None = None,
    sender: Sender = SENDER,
    sender_name: str | None = None,
    reason: str = "",
) -> list[str]:
    """Messages to Claude with their answers, as a host writes them; their ids."""
    path = shell.home / ".synapse/history.db"
    history = History(path, owner="1:1", alive=lambda _: True)
    key = AgentKey(project or str(shell.folder), "synapse-claude-8100", "claude")
    journal = AgentJournal(history, key, lambda _agent_id: sender_name)
    journal.called = called
    book = TaskStore(key.agent_id, "context", EventBus(), journal=journal)
    outbox = Outbox(book)
    ids = []
    history.load()
    for text, answer in pairs:
        task = book.create(MessageRequest(text, sender))
        outbox.put(task)
        outbox.take(task.id)
        book.change(task.id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        if answer is not None:
            book.change(
                task.id,
                state=TaskState.COMPLETED,
                delivery=DeliveryState.DONE,
                artifacts=(Artifact(answer),) if answer else (),
                reason=reason,
            )
        ids.append(task.id)
        await asyncio.sleep(0.01)
    await history.flush()
    await history.close()
    return ids


async def test_tasks_are_listed_searched_and_shown(shell: Shell) -> None:
    first, second = await told(shell, ("fix the parser", "done"), ("表の幅を直して", "幅は 2 です"))
    await told(shell, ("elsewhere", ""), project="/other")
    listed = await shell.run("history", "list")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [second[:8], first[:8]]
    assert len(json.loads((await shell.run("history", "list", "--all", "--json")).out)) == 3
    for word in ("幅", "直し", "表の幅"):
        [found] = json.loads((await shell.run("history", "search", word, "--json")).out)
        assert (found["id"], found["output"]) == (second, "幅は 2 です")
    shown = await shell.run("history", "show", first[:8])
    assert shown.out == "fix the parser\n\ndone\n"
    assert "submitted" in shown.err
    steps = (await shell.run("history", "show", first, "--json")).json["steps"]
    assert isinstance(steps, list)
    assert steps[-1]["state"] == "completed"
    none = await shell.run("history", "search", "nowhere")
    assert (none.code, none.out, "no tasks found" in none.err) == (0, "", True)
    missing = await shell.run("history", "show", "00000000")
    assert (missing.code, "there is no task" in missing.err) == (4, True)


async def test_ended_agents_are_listed_by_the_names_they_had(shell: Shell) -> None:
    """One after another had the same id."""
    for called in ("alice", "", "carol", None):
        await told(shell, (f"to {called}", "done"), called=called, sender_name=called and f"{called}'s")
    for words in (("list",), ("search", "to")):  # of the quick reader and of the whole one
        listed = await shell.run("history", *words)
        ways = [line.split()[2:4] for line in listed.out.splitlines()[1:]]
        unnamed = ["synapse-codex-8120?", "synapse-claude-8100"]  # not verified
        assert ways == [unnamed, ["carol's?", "carol"], unnamed, ["alice's?", "alice"]], listed.out


async def test_a_task_of_an_agent_that_is_not_open_says_so(shell: Shell) -> None:
    """Its host was killed, and no other one has begun that would end it."""
    done, left = await told(shell, ("to be done", "done"), ("to be left", None))
    listed = (await shell.run("history")).out
    assert "working (not open)" in listed
    assert listed.count("not open") == 1
    assert f"task {left}:" in (shown := (await shell.run("history", "show", left)).err)
    assert "working (not open)" in shown
    assert "not open" not in (await shell.run("history", "show", done)).err


async def test_a_watch_that_was_stopped_is_not_said_to_be_done(shell: Shell) -> None:
    [task] = await told(shell, ("(what it does next)", ""), reason="the watch was stopped by you")
    assert (await shell.run("history")).out.splitlines()[-1].split()[4] == "stopped"
    shown = await shell.run("history", "show", task)
    assert "synapse-claude-8100, stopped" in shown.err
    assert "stopped: the watch was stopped by you" in shown.err
    assert "(stopped: the watch was stopped by you)" in shown.out
    assert "done" not in shown.out + shown.err


async def test_the_person_is_called_you(shell: Shell) -> None:
    [own] = await told(shell, ("mine", "done"), sender=USER)
    await told(shell, ("another's", "done"))
    for words in (("list",), ("search", "mine")):  # of the quick reader and of the whole one
        row = (await shell.run("history", *words, "--from", "you")).out.splitlines()[-1]
        assert (row.split()[0], row.split()[2]) == (own[:8], "you")
    shown = await shell.run("history", "show", own)
    assert f"task {own}: you to synapse-claude-8100, done" in shown.err
    record = json.loads((await shell.run("history", "list", "--from", "you", "--json")).out)
    assert [each["sender"] for each in record] == ["user"]
    shell.apart = True
    shell.environ["LC_ALL"] = "ja_JP.UTF-8"
    listed = await shell.run("history", "list", "--from", "あなた")
    assert listed.out.splitlines()[-1].split()[2] == "あなた"


async def test_what_is_listed_can_be_chosen(shell: Shell) -> None:
    await told(shell, ("one", "1"))
    for words, count in (
        (("--agent", "claude"), 1),
        (("--agent", "gemini"), 0),
        (("--from", "synapse-codex-8120"), 1),
        (("--status", "failed"), 0),
        (("--since", "1h"), 1),
        (("--until", "1h"), 0),
    ):
        assert len(json.loads((await shell.run("history", "list", *words, "--json")).out)) == count, words
    odd = await shell.run("history", "list", "--since", "yesterday")
    assert (odd.code, "not a time" in odd.err) == (2, True)
    stats = (await shell.run("history", "stats", "--json")).json
    assert (stats["tasks"], stats["states"]) == (1, {"completed": 1})
    assert "synapse-claude-8100" in (await shell.run("history", "stats")).out


async def test_tasks_are_exported_in_four_forms(shell: Shell) -> None:
    await told(shell, ('=1+1, "quoted"\nand more', "```\ncode\n```"), ("二", "2"))
    every = json.loads((await shell.run("history", "export")).out)
    assert [task["input"] for task in every] == ["二", '=1+1, "quoted"\nand more']
    lines = (await shell.run("history", "export", "--format", "jsonl")).out.splitlines()
    assert [json.loads(line) for line in lines] == every
    table = list(csv.DictReader(io.StringIO((await shell.run("history", "export", "--format", "csv")).out)))
    assert table[1]["input"] == '\'=1+1, "quoted"\nand more'
    markdown = (await shell.run("history", "export", "--format", "md", "--search", "quoted")).out
    assert "````\n```\ncode\n```\n````" in markdown
    file = shell.folder / "out.json"
    assert (await shell.run("history", "export", "-o", str(file))).code == 0
    assert json.loads(file.read_text()) == every
    assert json.loads((await shell.run("history", "export", "-o", "-")).out) == every
    again = await shell.run("history", "export", "-o", str(file))
    assert (again.code, "exists already" in again.err) == (2, True)


async def test_old_tasks_are_removed_on_consent(shell: Shell) -> None:
    await told(shell, ("one", "1"))
    long_ago = (datetime.now(UTC) - timedelta(days=9)).strftime("%Y-%m-%d %H:%M:%S.%f")
    with closing(sqlite3.connect(shell.home / ".synapse/history.db")) as connection, connection:
        connection.execute("UPDATE tasks SET finished_at = ?", (long_ago,))
    assert (await shell.run("history", "cleanup", "-y")).out == "0 tasks were removed\n"
    assert (await shell.run("config", "set", "a2a.retention_days", "0")).code == 0
    forever = await shell.run("history", "cleanup", "-y")
    assert (forever.code, "kept forever" in forever.err) == (2, True)
    assert (await shell.run("config", "set", "a2a.retention_days", "7")).code == 0
    assert (await shell.run("history", "cleanup", "--dry-run")).out.startswith("1 tasks would")
    assert (await shell.run("history", "cleanup", "--days", "30", "-y")).out == "0 tasks were removed\n"
    assert (await shell.run("history", "cleanup", "--days", "7", "--dry-run")).out.startswith("1 tasks would")
    unasked = await shell.run("history", "cleanup", "--days", "7")
    assert (unasked.code, "without confirmation" in unasked.err) == (2, True)
    assert (await shell.run("history", "cleanup", "--days", "7", "-y")).out == "1 tasks were removed\n"
    assert json.loads((await shell.run("history", "list", "--json")).out) == []
