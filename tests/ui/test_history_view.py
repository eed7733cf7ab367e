"""The history in the application: found as one types, paged, filtered, kept in step, sent again, exported."""

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from textual.pilot import Pilot

from synapse_tui.core.content import Artifact
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.events import TaskChanged
from synapse_tui.core.model import AgentSpec, DeliveryState, Sender, TaskState
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.composer import Composer
from synapse_tui.ui.screens.dialog import Pick
from synapse_tui.ui.screens.history import OFF, HistoryExport, HistoryView
from synapse_tui.widgets.history_list import HistoryList
from synapse_tui.widgets.sidebar import short_path
from tests.ui.app_kit import LEADER, at_main, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost

CODEX = "synapse-codex-8120"


@asynccontextmanager
async def shown(
    host: FakeHost, size: tuple[int, int] = (120, 40), **options: object
) -> AsyncIterator[tuple[SynapseApp, Pilot[None], HistoryList]]:
    async with running(host, size, **options) as (app, pilot):
        await pilot.press(LEADER, "h")
        await until(lambda: isinstance(app.screen, HistoryView) and app.screen.ready)
        await until(lambda: host.history.asked)
        await pilot.pause()
        yield app, pilot, app.screen.query_one(HistoryList)


def texts(view: HistoryList) -> list[str]:
    return [row.task.text for row in view.rows]


def marked(view: HistoryList) -> str:
    assert view.marked is not None
    return view.marked.task.text


async def test_what_is_typed_is_found_at_once_and_only_the_last_word_is_asked_for() -> None:
    host = three_agents()
    host.history.put("端末の表示幅", "直しました")
    host.history.put("fix the parser", "done in 幅.py")
    host.history.put("nothing of it")
    async with shown(host) as (app, pilot, view):
        await until(lambda: len(view.rows) == 3)
        host.history.gate.clear()
        await pilot.press("幅")
        await until(lambda: host.history.asked[-1].query == "幅")
        host.history.gate.set()
        await until(lambda: texts(view) == ["fix the parser", "端末の表示幅"])
        await until(lambda: "↳ done in 幅" in text_of(app))
        await pilot.press("backspace")
        await until(lambda: len(view.rows) == 3)
        asked = len(host.history.asked)
        await pilot.press(*"parser")
        await until(lambda: host.history.asked[-1].query == "parser")
        await until(lambda: texts(view) == ["fix the parser"])
        assert len(host.history.asked) - asked <= len("parser")
        await pilot.press("z", "z")
        await until(lambda: "nothing found; Tab p searches all projects" in text_of(app))
        assert "(p)" not in text_of(app)
        assert "(r)" not in text_of(app)
        await pilot.press("tab")
        await until(lambda: "nothing found; p searches all projects" in text_of(app))
        await until(lambda: "(p)" in text_of(app) and "Copy message (m)" in text_of(app))
        await pilot.press("p")
        await until(lambda: host.history.asked[-1].project == "")


async def test_an_agent_that_was_closed_has_its_name_though_another_has_its_id() -> None:
    host = three_agents()
    history = host.history
    history.put("for the one before", to=CODEX, called="erin", minutes=0)
    history.put("from it", sender=Sender(CODEX, "codex", "", verified=True), peer_name="erin", minutes=0)
    history.put("for the one of now", to=CODEX, called="")
    history.put("by the one of now", sender=Sender(CODEX, "codex", "", verified=True), peer_name="")
    async with shown(host) as (app, pilot, view):
        await until(lambda: len(view.rows) == 4)
        ways = re.findall(r"(\S+) → (\S+)", text_of(app))
        assert ways[:4] == [("codex", "claude"), ("you", "codex"), ("erin", "claude"), ("you", "erin")]
        await pilot.press("down", "down", "down")
        await until(lambda: "erin (codex)" in text_of(app))


async def test_durations_are_those_between_the_times_that_are_shown() -> None:
    host = three_agents()
    host.history.put("quick", "done")
    record = host.history.records[-1]
    begin = record.task.created_at.replace(microsecond=0)
    task = dataclasses.replace(record.task, created_at=begin + timedelta(seconds=0.9))
    late = [begin + timedelta(seconds=seconds) for seconds in (1.1, 2.05)]
    host.history.records[-1] = dataclasses.replace(
        record, task=task, submitted_at=late[0], finished_at=late[1]
    )
    async with shown(host) as (app, _pilot, view):
        await until(lambda: len(view.rows) == 1 and "ended" in text_of(app))
        assert re.findall(r"after (\S+)", text_of(app)) == ["0:01", "0:01"]


async def test_a_long_history_is_read_page_by_page_and_the_marked_one_is_shown_whole() -> None:
    host = three_agents()
    for number in range(180):
        host.history.put(f"task {number}", f"[b]answer[/b] {number}")
    async with shown(host) as (app, pilot, view):
        await until(lambda: view.rows)
        assert len(view.rows) == 50
        await until(lambda: "50+ tasks" in text_of(app))
        while len(view.rows) < 180:
            count = len(view.rows)
            await pilot.press("pagedown")
            await pilot.pause()
            assert len(view.rows) >= count
        await pilot.press("tab", "tab", "tab", "tab", "tab", "end")
        assert marked(view) == "task 0"
        await until(lambda: "[b]answer[/b] 0" in text_of(app) and "Timeline" in text_of(app))
        await until(lambda: "180 tasks" in text_of(app))
        await pilot.press("home")
        assert marked(view) == "task 179"
        assert len({row.task.id for row in view.rows}) == 180


async def test_below_another_dialog_it_names_no_keys() -> None:
    host = three_agents()
    host.history.put("old")
    async with shown(host) as (app, pilot, view):
        await until(lambda: texts(view) == ["old"] and "Enter opens" in text_of(app))
        await pilot.press("tab", "g")
        await until(lambda: isinstance(app.screen, Pick))
        await until(lambda: "Enter opens" not in text_of(app))
        await pilot.press("escape")
        await until(lambda: "Enter presses it" in text_of(app), "the hints of the filter in focus")
        await pilot.press("slash")
        await until(lambda: "Enter opens" in text_of(app))


async def test_filters_are_chosen_by_keys_and_buttons() -> None:
    host = three_agents()
    host.history.put("old", minutes=-60 * 24 * 20)
    host.history.put("to codex", to=CODEX, minutes=60 * 24 * 20 + 60 * 23)
    host.history.put("failed", state=TaskState.FAILED)
    host.history.put("elsewhere", project="/home/me/code/other")
    async with shown(host) as (app, pilot, view):

        async def pick(*keys: str) -> None:
            await until(lambda: isinstance(app.screen, Pick) and app.screen.focused)
            await pilot.press(*keys)

        await until(lambda: texts(view) == ["failed", "to codex", "old"])
        await pilot.press("tab", "p")
        await until(lambda: texts(view) == ["elsewhere", "failed", "to codex", "old"])
        await until(lambda: "all projects (p)" in text_of(app))
        await pilot.press("p", "g")
        await until(lambda: "every codex" in text_of(app))
        await pick("down", "down", "enter")
        await until(lambda: texts(view) == ["to codex"])
        await pilot.press("g")
        await pick("home", "enter")
        await until(
            lambda: len(view.rows) == 3 and "any receiver (g)" in text_of(app)
        )  # the buttons are in place
        await pilot.click("#by-state")
        await pick("home", "down", "down", "down", "enter")
        await until(lambda: texts(view) == ["failed"])
        await pilot.press("s")
        await pick("home", "enter")
        await until(lambda: len(view.rows) == 3)
        await pilot.press("t")
        await pick("down", "down", "down", "enter")
        await until(lambda: texts(view) == ["failed", "to codex"])
        await pilot.press("t", "escape")
        assert texts(view) == ["failed", "to codex"]


async def test_new_tasks_appear_and_the_place_stays() -> None:
    host = three_agents()
    for number in range(70):
        host.history.put(f"task {number}")
    async with shown(host, size=(80, 24)) as (app, pilot, view):
        await until(lambda: view.rows)
        await pilot.press(*["down"] * 12)
        assert (marked(view), view.scroll_offset.y > 0) == ("task 57", True)
        row = next(line for line in text_of(app).splitlines() if "task 57" in line)
        place = text_of(app).splitlines().index(row)
        task = host.history.put("quite new", state=TaskState.WORKING)
        host.events.publish(TaskChanged(task))
        await until(lambda: texts(view)[0] == "quite new")
        await pilot.pause()
        assert marked(view) == "task 57"
        assert text_of(app).splitlines()[place] == row
        view.focus()
        await pilot.press("home")
        ended = dataclasses.replace(
            task,
            state=TaskState.COMPLETED,
            delivery=DeliveryState.DONE,
            artifacts=(Artifact("here you are"),),
            updated_at=task.updated_at + timedelta(seconds=3),
        )
        host.events.publish(TaskChanged(ended))
        await pilot.press("enter")
        await until(lambda: "here you are" in text_of(app))
        assert len(view.rows) == 51


async def test_what_is_read_late_does_not_hide_what_has_happened_since() -> None:
    host = three_agents()
    typed = host.message("synapse-codex-8120", "look")
    host.history.put(
        "look",
        to=typed.target,
        id=typed.id,
        state=TaskState.SUBMITTED,
        delivery=DeliveryState.TYPING,
        updated_at=typed.updated_at,
    )
    host.history.gate.clear()
    async with shown(host) as (app, _pilot, view):
        await until(lambda: host.history.asked)
        host.change(
            typed.id,
            delivery=DeliveryState.SUBMITTED,
            state=TaskState.WORKING,
            updated_at=typed.updated_at + timedelta(seconds=1),
        )
        host.history.gate.set()
        await until(lambda: view.rows)
        assert view.rows[0].task.delivery is DeliveryState.SUBMITTED
        assert "typing" not in text_of(app)


async def test_on_a_narrow_screen_a_task_takes_the_place_of_the_list() -> None:
    host = three_agents()
    host.history.put("read me", "the answer", metadata={"note": "[b]x[/b]"})
    async with shown(host, size=(80, 24)) as (app, pilot, view):
        await until(lambda: view.rows)
        assert "the answer" not in text_of(app)
        await pilot.press("enter")
        await until(lambda: "the answer" in text_of(app) and "after 1:31" in text_of(app))
        assert "↑↓ scroll · Esc back to the list" in text_of(app)
        await pilot.press("end")
        await until(lambda: '  "note": "[b]x[/b]"' in text_of(app))
        await pilot.press("escape")
        await until(lambda: view.has_focus)
        await until(lambda: "/ search · ↑↓ choose" in text_of(app))  # letters are keys here
        await pilot.press("slash")
        await until(lambda: "type to search" in text_of(app))
        await pilot.press("escape")
        await until(lambda: at_main(app))


async def test_steps_that_were_read_before_the_task_is_opened_have_the_width_it_gets() -> None:
    host = three_agents()
    host.history.put("fix the parser", "done")
    async with shown(host, size=(80, 24)) as (app, pilot, view):
        await until(lambda: view.rows)
        history = app.screen
        assert isinstance(history, HistoryView)
        await until(lambda: history._story is not None)
        await pilot.press("enter")
        for columns in (80, 44, 80):
            if app.size.width != columns:
                await pilot.resize_terminal(columns, 24)
            await pilot.pause()  # else it would be the end of what was there before
            await pilot.press("end")
            await until(lambda: "answered" in text_of(app))
            row = next(row for row in text_of(app).splitlines() if "the agent took it" in row)
            assert (":" in row) is (columns == 80), text_of(app)  # beside its time, or beneath it


async def test_what_cannot_be_read_says_why() -> None:
    host = three_agents()
    host.history.fail = HistoryError("the history [b]is broken[/b]", "move it away")
    async with shown(host) as (app, pilot, view):
        await until(lambda: "the history [b]is broken[/b]" in text_of(app))
        host.history.fail = None
        host.history.put("well again")
        await pilot.press("a", "backspace")
        await until(lambda: texts(view) == ["well again"])
        assert "is broken" not in text_of(app)


@pytest.mark.parametrize("kept", [True, False])
async def test_an_empty_history_tells_why_it_is(kept: bool) -> None:
    host = FakeHost()
    host.settings._values["env.SYNAPSE_HISTORY_ENABLED"] = kept
    host.add(AgentSpec("claude"))
    async with shown(host) as (app, _pilot, _view):
        await until(lambda: (OFF[:50] if not kept else "no messages yet") in text_of(app))


async def test_a_slow_history_holds_up_nobody() -> None:
    host = three_agents()
    host.history.put("one")
    host.history.gate.clear()
    async with shown(host) as (app, pilot, view):
        await until(lambda: "searching…" in text_of(app))
        await pilot.press("a", "escape")
        await until(lambda: at_main(app))
        host.history.gate.set()
        await asyncio.sleep(0)
        assert not view.rows


async def test_what_is_shown_is_exported(tmp_path: Path) -> None:
    host = three_agents()
    host.history.put("one")
    host.history.put("two")
    async with shown(host) as (app, pilot, view):
        await pilot.press(*"two")
        await until(lambda: texts(view) == ["two"])
        await pilot.press("tab", "e")
        await until(lambda: isinstance(app.screen, HistoryExport))
        await pilot.press(*["backspace"] * 3, *".txt", "enter")
        await until(lambda: "no known ending" in text_of(app))
        await pilot.press(*["backspace"] * 4, *".csv", "enter")
        await until(lambda: isinstance(app.screen, HistoryView))
        [(wanted, form, path)] = host.history.exported
        assert (wanted.query, wanted.project, form) == ("two", str(host.project), "csv")
        assert path == host.project / "history-2026-03-01.csv"
        await until(lambda: f"exported 1 task: {short_path(path)}"[:40] in text_of(app))


async def test_the_folder_of_an_export_is_named_whole() -> None:
    host = three_agents()
    host.history.put("one")
    folder = Path("/srv", *(f"folder-{number}" for number in range(10)))
    async with shown(host) as (app, _pilot, _view):
        app.ask(HistoryExport(folder, host.now(), lambda *_: asyncio.sleep(0, "")), lambda _done: None)
        await until(lambda: all(part in text_of(app) for part in ("folder-0", "folder-9 unless you")))


async def test_a_task_is_sent_again_to_the_same_agent_or_another() -> None:
    host = three_agents()
    host.history.put("to one that is gone", to="synapse-claude-8107")
    host.history.put("fix it\nall of it", to=CODEX, priority=5)
    async with shown(host) as (app, pilot, view):
        await until(lambda: view.rows)
        await pilot.press("tab", "r")
        await until(lambda: isinstance(app.screen, Composer))
        await pilot.press("!", "enter")
        await until(lambda: isinstance(app.screen, HistoryView))
        assert ("send", "codex", "fix it\nall of it!", "", 4) in host.calls
        await until(lambda: "→ codex: queued" in text_of(app), lambda: text_of(app))
        host.change(host.tasks[-1].id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        await until(lambda: "→ codex: working" in text_of(app), lambda: text_of(app))
        view.focus()
        await pilot.press("down", "r")
        await until(lambda: isinstance(app.screen, Composer))
        await pilot.press(*"alice", "enter", "enter")
        await until(lambda: ("send", "alice", "to one that is gone", "", 3) in host.calls)


def test_the_time_of_a_message_is_when_the_agent_took_it() -> None:
    host = three_agents()
    host.history.put("look")
    read = dataclasses.replace(host.history.records[-1], submitted_at=None, finished_at=None)
    later = read.task.created_at + timedelta(seconds=5)
    taken = read.of(
        dataclasses.replace(
            read.task, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING, updated_at=later
        )
    )
    assert (taken.submitted_at, taken.finished_at) == (later, None)
    more = dataclasses.replace(taken.task, updated_at=later + timedelta(seconds=5))
    assert taken.of(more).submitted_at == later


async def test_what_is_said_of_a_task_goes_with_the_mark():
    host = three_agents()
    host.history.put("answered", "an answer")
    host.history.put("not answered")
    async with shown(host) as (app, pilot, view):
        await until(lambda: len(view.rows) == 2)
        view.focus()
        await pilot.press("c")
        await until(lambda: "no answer to copy" in text_of(app))
        await pilot.press("down")
        await until(lambda: "no answer to copy" not in text_of(app))
        await pilot.press("c")
        await until(lambda: "copied 9 characters" in text_of(app))
