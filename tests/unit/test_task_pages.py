"""Finding the tasks of an agent, and turning their pages: from memory and from the history alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from synapse_tui.core.errors import InvalidValue, TaskNotFound
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import USER, MessageRequest, Sender, Task, TaskState
from synapse_tui.messages.database import _meant
from synapse_tui.messages.history import AgentJournal
from synapse_tui.messages.records import Page, TaskQuery
from synapse_tui.messages.storage.sqlite import open_engine
from synapse_tui.messages.tasks import TaskStore, make_cursor, page_of, read_cursor
from tests.unit.store_kit import KEY, make_book, opened, rows

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "history.db"


def ticking() -> Callable[[], datetime]:
    moments = iter(range(10**6))
    return lambda: T0 + timedelta(seconds=next(moments))


async def every_page(book: TaskStore, query: TaskQuery) -> list[Page[Task]]:
    pages = [await book.page(query)]
    while pages[-1].cursor:
        pages.append(await book.page(replace(query, cursor=pages[-1].cursor)))
    return pages


def texts(*pages: Page[Task]) -> list[str]:
    return [task.text for page in pages for task in page.items]


@pytest.fixture(params=["memory", "history"])
async def book(request, path):
    if request.param == "memory":
        yield TaskStore(KEY.agent_id, "first", EventBus(), clock=ticking())
        return
    async with opened(path) as (history, _):
        yield TaskStore(
            KEY.agent_id, "first", EventBus(), journal=AgentJournal(history, KEY), clock=ticking(), limit=3
        )


async def test_pages_hold_every_task_once_the_newest_change_first(book):
    ids = [book.create(MessageRequest(f"{number}", USER)).id for number in range(7)]
    book.change(ids[2], state=TaskState.WORKING)
    pages = await every_page(book, TaskQuery(limit=3))
    assert [texts(page) for page in pages] == [["2", "6", "5"], ["4", "3", "1"], ["0"]]
    assert {page.total for page in pages} == {7}
    assert (await book.page(TaskQuery(limit=7))).cursor == "", "there is no empty last page"


async def test_what_comes_while_pages_are_turned_moves_nothing(book):
    ids = [book.create(MessageRequest(f"{number}", USER)).id for number in range(6)]
    first = await book.page(TaskQuery(limit=2))
    book.create(MessageRequest("new", USER))
    book.change(ids[0], state=TaskState.WORKING)  # it has moved to the front
    later = await every_page(book, TaskQuery(limit=2, cursor=first.cursor))
    assert texts(first, *later) == ["5", "4", "3", "2", "1"]


async def test_tasks_of_the_same_moment_are_told_apart(path):
    async with opened(path) as (history, _):
        book = TaskStore(
            KEY.agent_id, "first", EventBus(), journal=AgentJournal(history, KEY), clock=lambda: T0
        )
        for number in range(5):
            book.create(MessageRequest(f"{number}", USER))
        pages = await every_page(book, TaskQuery(limit=2))
        assert sorted(texts(*pages)) == ["0", "1", "2", "3", "4"]


async def test_a_query_means_what_all_its_terms_mean(book):
    def send(words: str, **fields: Any) -> Task:
        task: Task = book.create(MessageRequest(words, USER, **fields))
        return task

    send("mine"), send("hers", caller="her"), send("talk", caller="her", context_id="c")
    done = send("done", caller="her")
    book.change(done.id, state=TaskState.COMPLETED)
    followed = send("followed")
    send("goes on", follows=followed.id)
    book.create_outgoing(MessageRequest("asks", Sender(KEY.agent_id)), "synapse-x-1")

    async def found(**terms: Any) -> list[str]:
        page = await book.page(TaskQuery(**terms))
        assert page.total == len(page.items)
        return texts(page)

    assert await found() == ["followed", "done", "talk", "hers", "mine"]
    assert await found(caller="") == ["followed", "mine"]
    assert await found(caller="her") == ["done", "talk", "hers"]
    assert await found(context_id="c") == ["talk"]
    assert await found(states=frozenset({TaskState.COMPLETED, TaskState.FAILED})) == ["done"]
    assert await found(caller="her", states=frozenset({TaskState.SUBMITTED})) == ["talk", "hers"]
    assert await found(changed_after=book.get(followed.id).updated_at) == ["followed"]
    assert await found(changed_after=T0 + timedelta(days=1)) == []


async def test_what_memory_has_forgotten_is_found_in_the_history(path):
    async with opened(path) as (history, _):
        book = TaskStore(
            KEY.agent_id, "first", EventBus(), journal=AgentJournal(history, KEY), clock=ticking(), limit=1
        )
        tasks = [book.create(MessageRequest(f"{number}", USER)) for number in range(3)]
        for task in tasks:
            book.change(task.id, state=TaskState.COMPLETED)
        assert len(book) == 1
        assert (await book.find(tasks[0].id)).state is TaskState.COMPLETED
        assert (await book.find(tasks[0].short_id.upper())).id == tasks[0].id
        assert texts(await book.page(TaskQuery())) == ["2", "1", "0"]
        for unknown in ("nothing-like-it", tasks[0].id[:7], "'; DROP TABLE tasks"):
            with pytest.raises(TaskNotFound):
                await book.find(unknown)


async def test_the_tasks_of_another_agent_are_not_found(path):
    async with opened(path) as (history, _):
        book, _, _ = make_book(history)
        task = book.create(MessageRequest("secret", USER))
        await book.flush()
        other = replace(KEY, agent_id="synapse-dummy-8191"), replace(KEY, project="/other")
        for key in other:
            foreign = make_book(history, key)[0]
            with pytest.raises(TaskNotFound):
                await foreign.find(task.id)
            assert (await foreign.page(TaskQuery())).total == 0


async def test_an_unfinished_task_of_before_is_found_as_it_goes_on(path, monkeypatch):
    monkeypatch.setattr("synapse_tui.messages.tasks.LOAD_TIMEOUT", 0.5)
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task = book.create(MessageRequest("waits", USER))
        outbox.put(task)
    async with opened(path, owner="2:2") as (history, _):
        book, _, journal = make_book(history, context="second")
        finding = asyncio.ensure_future(book.find(task.id))
        found = await journal.waiting("second")
        book.adopt(found[0].task)
        book.change(task.id, reason="newer than the history")
        assert (await finding).reason == "newer than the history"


async def test_without_a_history_the_memory_answers(path, monkeypatch):
    async with opened(path) as (history, _):
        book, _, _ = make_book(history)
        await book.flush()

        def broken(*_: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr("synapse_tui.messages.database.Database.page", broken)
        book.create(MessageRequest("hello", USER))
        assert texts(await book.page(TaskQuery())) == ["hello"]


@pytest.mark.parametrize(
    "cursor", ["x", "%%%%", "bm90IGpzb24", make_cursor((T0, "a"))[:-4], "e30", "WzEsMl0"]
)
async def test_a_cursor_that_is_none_is_refused(book, cursor):
    with pytest.raises(InvalidValue, match="cursor"):
        await book.page(TaskQuery(cursor=cursor))


@given(st.datetimes(timezones=st.just(UTC)), st.text())
def test_cursors_are_read_as_they_were_made(time, task_id):
    assert read_cursor(make_cursor((time, task_id))) == (time, task_id)


QUERIES = st.builds(
    TaskQuery,
    context_id=st.sampled_from(["", "a"]),
    states=st.frozensets(st.sampled_from([TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED])),
    caller=st.sampled_from([None, "", "k"]),
    changed_after=st.sampled_from([None, T0 + timedelta(seconds=9)]),
    limit=st.integers(1, 4),
)
TASKS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["", "k"]), st.sampled_from([*TaskState])), max_size=12
)


@given(TASKS, QUERIES)
@settings(max_examples=30, deadline=None)
def test_the_history_tells_the_pages_that_memory_would(tmp_path_factory, tasks, query):
    async def compare() -> None:
        async with opened(tmp_path_factory.mktemp("pages") / "history.db") as (history, _):
            book = TaskStore(
                KEY.agent_id, "first", EventBus(), journal=AgentJournal(history, KEY), clock=ticking()
            )
            for context, caller, state in tasks:
                task = book.create(MessageRequest("x", USER, context_id=context, caller=caller))
                book.change(task.id, state=state)
            stored = await every_page(book, query)
            known = [page_of(book, query)]
            while known[-1].cursor:
                known.append(page_of(book, replace(query, cursor=known[-1].cursor)))
            assert stored == known

    asyncio.run(compare())


def test_pages_are_chosen_in_the_index_alone(path):
    """However many tasks there are: no row is read but those of the page, and none is sorted."""
    engine, _ = open_engine(path)
    query = TaskQuery(context_id="c", states=frozenset({TaskState.WORKING}), caller="k", changed_after=T0)
    from sqlmodel import col, func, select

    from synapse_tui.messages.storage.tables import TaskRow

    meant = _meant(KEY, query)
    counted = select(func.count()).select_from(TaskRow).where(*meant)
    listed = (
        select(col(TaskRow.id)).where(*meant).order_by(col(TaskRow.updated_at).desc(), col(TaskRow.id).desc())
    )
    with closing(engine.connect()) as connection:
        for statement in (counted, listed):
            words = str(statement.compile(engine, compile_kwargs={"literal_binds": True}))
            plan = [
                row[3] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {words}".replace(":", "\\:")))
            ]
            assert len(plan) == 1, plan
            assert plan[0].startswith("SEARCH tasks USING COVERING INDEX ix_tasks_page"), plan
    engine.dispose()
    assert rows(path, "SELECT count(*) FROM tasks") == [(0,)]
