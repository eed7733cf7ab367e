"""Search over many tasks: `python -m tests.bench.search [TASKS]`, 100,000 by default.

Prints how long the index takes to be made, and the median and worst time of searches that find many, few and
no tasks, in words of every length.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from synapse_tui.store.archive import Archive, Wanted

TEXT = "the parser of a test fails when it reads Japanese text in the terminal please mend review add"
WORDS = TEXT.split()
KANJI = "日本語全文検索端末表示幅修正確認追加削除設計実装試験結果報告"
QUERIES = (
    "parser",
    "terminal mend",
    "日",
    "日本",
    "全文検索",
    "of",
    "rare",
    "稀",
    "稀有語",
    "nowhere",
    "無い",
)
ROUNDS = 9


def main(words: list[str]) -> None:
    count = int(words[0]) if words else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        archive = Archive(path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executemany(INSERT, rows(count))
        begun = time.perf_counter()
        while archive.index(10_000):
            pass
        print(
            f"{count} tasks, {path.stat().st_size >> 20} MB; indexed in {time.perf_counter() - begun:.1f} s"
        )
        for query in QUERIES:
            times = []
            for _ in range(ROUNDS):
                begun = time.perf_counter()
                found = archive.select(Wanted(query=query))
                times.append((time.perf_counter() - begun) * 1000)
            typical, worst = statistics.median(times), max(times)
            print(f"{query:14} {len(found):3} found  median {typical:6.1f} ms  worst {worst:6.1f}")
        archive.close()


COLUMNS = (
    "id agent_name agent_type project context_id peer_task_id sender_id sender_type sender_endpoint "
    "sender_verified input output truncated status delivery reason priority response_expected metadata owner "
    "created_at updated_at"
)
NAMES = COLUMNS.split()
INSERT = f"INSERT INTO tasks ({', '.join(NAMES)}) VALUES ({', '.join('?' * len(NAMES))})"


def rows(count: int) -> Iterator[tuple[object, ...]]:
    chance = random.Random(1)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=30)) + "".join(chance.choices(KANJI, k=40))
        answer = " ".join(chance.choices(WORDS, k=40)) + "".join(chance.choices(KANJI, k=60))
        if number == count // 2:
            text += " rare 稀有語"
        made = (start + timedelta(seconds=number)).strftime("%Y-%m-%d %H:%M:%S.%f")
        who = ("synapse-claude-8100", "claude") if number % 3 else ("synapse-codex-8120", "codex")
        state = ("completed", "done", "", 3, 0, "{}", "1:1", made, made)
        yield (f"{number:08d}-0", *who, "/p", "c", "", "user", "user", "", 1, text, answer, 0, *state)


if __name__ == "__main__":
    main(sys.argv[1:])
