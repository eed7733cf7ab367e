"""The history of a team is listed and searched, in any script, and the commands use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from synapse_tui.messages.archive import Archive
from synapse_tui.messages.records import TaskQuery
from synapse_tui.messages.storage.connect import backend_of
from synapse_tui.messages.storage.location import TeamDatabase
from tests.integration.shell_kit import Shell
from tests.postgres_kit import PASSWORD, Server

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Shelf:
    """An archive in PostgreSQL and the tasks in it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.location = TeamDatabase(url, "one", folder)
        self.archive = Archive(self.location, busy=5)
        self.engine, _ = backend_of(self.location, busy=5).open()
        self.count = 0

    def run(self, statement: str, **values: object) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(statement), values)

    def put(self, message: str, answer: str = "", machine: str = "one") -> str:
        self.count += 1
        made = NOW + timedelta(minutes=self.count)
        row = {
            "id": f"{self.count:08d}-0000", "agent_name": "synapse-claude-8100", "agent_type": "claude",
            "project": f"{machine}:{self.location.project}", "context_id": "c", "peer_task_id": "",
            "sender_id": "user", "sender_type": "user", "sender_endpoint": "", "sender_verified": True,
            "input": message, "output": answer, "truncated": False, "status": "completed",
            "delivery": "done", "reason": "", "priority": 3, "response_expected": False, "metadata": "{}",
            "owner": "one:1:1", "created_at": made, "updated_at": made, "submitted_at": made,
            "finished_at": made + timedelta(seconds=10),
        }  # fmt: skip
        self.run(f"INSERT INTO tasks ({', '.join(row)}) VALUES (:{', :'.join(row)})", **row)
        return str(row["id"])

    def found(self, query: str, **wanted: object) -> list[str]:
        return [each.task.text for each in self.archive.select(TaskQuery(query=query, **wanted))]  # type: ignore[arg-type]

    def close(self) -> None:
        self.archive.close()
        self.engine.dispose()


@pytest.fixture(params=["pg_trgm", "no extension"])
def shelf(request: pytest.FixtureRequest, postgres: Server, tmp_path: Path) -> Iterator[Shelf]:
    with postgres.database(trigrams=request.param == "pg_trgm") as url:
        made = Shelf(url, tmp_path)
        if request.param != "pg_trgm":
            made.run("DROP EXTENSION IF EXISTS pg_trgm CASCADE")
        yield made
        made.close()


def test_texts_of_any_length_and_script_are_found(shelf: Shelf) -> None:
    wanted = "日本語の全文検索、カタカナ 🎉 in Go and C: the parser, 100% a_b c\\d"
    shelf.put(wanted)
    shelf.put("nothing of this")
    japanese = "日 本 日本 語の 全文検索 検索 の ｶﾀｶﾅ カタカナ 索、カ"
    others = "🎉 go C Parser arse ＰＡＲＳＥ 100% a_b c\\d"
    for query in [*japanese.split(), *others.split(), "parser 日本", '"the parser"', '"in go"']:
        assert shelf.found(query) == [wanted], query
    for query in ["検語", "本日", "zz", "q", "parsers", "日本 zz", '"the go"', "a%b", "a_c", "1__%"]:
        assert shelf.found(query) == [], query
    assert len(shelf.found('"')) == 2, "no term at all: everything"


def test_changes_and_removals_reach_the_index(shelf: Shelf) -> None:
    task_id = shelf.put("question")
    assert shelf.found("answer") == []
    shelf.run("UPDATE tasks SET output = 'the answer' WHERE id = :id", id=task_id)
    assert shelf.found("answer") == ["question"]
    shelf.run("UPDATE tasks SET kept = false WHERE id = :id", id=task_id)
    assert shelf.found("answer") == []
    shelf.put("another answer")
    assert shelf.found("answer") == ["another answer"]
    assert shelf.archive.clean(NOW + timedelta(days=1)) == 2
    assert shelf.found("answer") == []


async def test_commands_use_the_database_of_the_settings(team_url: str, tmp_path: Path) -> None:
    shell = Shell.scratch(tmp_path)
    shell.environ["SYNAPSE_DATABASE_URL"] = team_url
    assert (await shell.run("file-safety", "lock", "a.py", "--intent", "mine")).code == 0
    (lock,) = json.loads((await shell.run("file-safety", "locks", "--json")).out)
    assert (lock["file_path"], lock["agent_name"]) == ("a.py", "user")
    assert (await shell.run("file-safety", "record", "a.py")).code == 0
    status = (await shell.run("file-safety", "status", "--json")).json
    assert (status["locks"], status["modifications"]) == (1, 1)
    assert not await asyncio.to_thread(lambda: list(tmp_path.rglob("*.db"))), "no file besides"
    assert (await shell.run("history", "list", "--all", "--json")).out.strip() == "[]"
    asked = ("file-safety debug", "config show", "config show --json", "history search x")
    texts = [await shell.run(*words.split()) for words in asked]
    for each in texts:
        assert each.code in (0, 3, 4), each.err
        assert PASSWORD not in each.out + each.err
        assert "p%40ss" not in each.out + each.err


async def test_a_command_says_what_is_wrong_with_the_database(tmp_path: Path) -> None:
    shell = Shell.scratch(tmp_path)
    shell.environ["SYNAPSE_DATABASE_URL"] = "postgresql://ann:s3cret@127.0.0.1:1/team"
    for words in (("history", "list"), ("file-safety", "locks"), ("file-safety", "lock", "a")):
        result = await shell.run(*words)
        assert result.code != 0
        assert "the database postgresql://127.0.0.1:1/team is not reached" in result.err
        assert "s3cret" not in result.err
