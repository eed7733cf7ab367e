"""Questions to a history of many tasks: `python -m tests.bench.search [TASKS [FILE]]`, 100,000 by default.

Prints how long the index takes to be made and how long others wait for it, and the median and worst time of
searches that find many, few and no tasks, in words of every length, alone and with filters, and of lists.
With FILE the database is kept there, and used again.
"""

from __future__ import annotations

import dataclasses
import random
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from synapse_tui.messages.archive import Archive
from synapse_tui.messages.records import TaskQuery

TEXT = "the parser of a test fails when it reads Japanese text in the terminal please mend review add"
WORDS = TEXT.split()
KANJI = "日本語全文検索端末表示幅修正確認追加削除設計実装試験結果報告"
START = datetime(2026, 1, 1, tzinfo=UTC)
QUERIES = (
    "parser",
    "terminal mend",
    "parser terminal mend review",
    '"of a test"',
    "日",
    "日本",
    "全文検索",
    "of",
    "of 日",
    "parser 日",
    "parser 日本 of",
    "rare",
    "rare of",
    "稀",
    "稀 parser",
    "稀有語",
    "nowhere",
    "parser nowhere",
    "parser zz",
    "無い",
    "日 無い",
)
FILTERS = (
    TaskQuery(project="/big"),
    TaskQuery(project="/small"),
    TaskQuery(project="/none"),
    TaskQuery(agent="claude"),
    TaskQuery(agent="seldom"),
    TaskQuery(agent="seldom", states=("failed",)),
    TaskQuery(until=START + timedelta(days=1)),
    TaskQuery(since=START + timedelta(days=1), until=START + timedelta(days=2)),
)
ROUNDS = 9
AGENTS = [("synapse-claude-8100", "claude")] * 6 + [("synapse-codex-8120", "codex")] * 3
STEP = 20
STATES = ["completed"] * 8 + ["failed", "canceled"]


def main(words: list[str]) -> None:
    count = int(words[0]) if words else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(words[1] if len(words) > 1 else f"{folder}/history.db")
        is_new = not path.exists()
        archive = Archive(path)
        if is_new:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.executemany(INSERT, rows(count))
            fill_index(archive)
        print(f"{count} tasks, {path.stat().st_size >> 20} MB")
        for query in QUERIES:
            ask(repr(query), lambda: archive.select(TaskQuery(query=query)))  # noqa: B023 - called at once
        for wanted in FILTERS:
            ask(f"list {told(wanted)}", lambda: archive.select(wanted))  # noqa: B023
            for query in ("parser", "日", "rare 日"):
                asked = dataclasses.replace(wanted, query=query)
                ask(f"{query!r} {told(wanted)}", lambda: archive.select(asked))  # noqa: B023
        last = archive.page(TaskQuery(until=START + timedelta(days=3))).cursor
        ask("a page in the middle", lambda: archive.page(TaskQuery(cursor=last)).items)
        ask("statistics", lambda: [archive.stats(TaskQuery())])
        archive.close()


def fill_index(archive: Archive) -> None:
    steps = []
    done = 1
    begun = time.perf_counter()
    while done:
        at = time.perf_counter()
        done = archive.index(STEP)
        steps.append((time.perf_counter() - at) * 1000)
    steps.sort()
    middle, most, worst = statistics.median(steps), steps[len(steps) * 99 // 100], steps[-1]
    print(f"indexed in {time.perf_counter() - begun:.0f} s", end="; ")
    print(f"a step of {STEP}: {middle:.0f} ms, 99 % within {most:.0f}, worst {worst:.0f}", flush=True)


def ask(name: str, work: Callable[[], Sequence[object]]) -> None:
    times = []
    found: Sequence[object] = ()
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        found = work()
        times.append((time.perf_counter() - begun) * 1000)
    typical, worst = statistics.median(times), max(times)
    print(f"{name:64} {len(found):3} found  median {typical:6.1f} ms  worst {worst:6.1f}", flush=True)


def told(wanted: TaskQuery) -> str:
    values = ((each.name, getattr(wanted, each.name)) for each in dataclasses.fields(wanted))
    return " ".join(f"{name}={value}" for name, value in values if value and name != "limit")


COLUMNS = (
    "id agent_name agent_type project context_id peer_task_id sender_id sender_type sender_endpoint "
    "sender_verified input output truncated status delivery reason priority response_expected metadata owner "
    "created_at updated_at submitted_at finished_at"
)
NAMES = COLUMNS.split()
INSERT = f"INSERT INTO tasks ({', '.join(NAMES)}) VALUES ({', '.join('?' * len(NAMES))})"


def rows(count: int) -> Iterator[tuple[object, ...]]:
    chance = random.Random(1)
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=30)) + "".join(chance.choices(KANJI, k=40))
        answer = " ".join(chance.choices(WORDS, k=40)) + "".join(chance.choices(KANJI, k=60))
        if number == count // 2:
            text += " rare 稀有語"
        made = (START + timedelta(minutes=number)).strftime("%Y-%m-%d %H:%M:%S.%f")
        who = chance.choice(AGENTS) if number % 2000 else ("synapse-seldom-8200", "seldom")
        project = "/big" if number % 1000 else "/small"
        state = (chance.choice(STATES), "done", "", 3, 0, "{}", "1:1", made, made, made, made)
        task_id = str(uuid.UUID(int=chance.getrandbits(128)))
        yield (task_id, *who, project, "c", "", "user", "user", "", 1, text, answer, 0, *state)


if __name__ == "__main__":
    main(sys.argv[1:])
