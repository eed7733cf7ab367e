"""The sidebar: what it shows, how it is entered and left, how it follows."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from textual.widgets import OptionList

from synapse_tui.core.content import Artifact
from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from synapse_tui.messages.reasons import Reason
from synapse_tui.ui.app import SynapseApp
from synapse_tui.widgets.sidebar import MessageList, message_row
from synapse_tui.widgets.states import HOLDS
from synapse_tui.widgets.views import view_agents
from tests.ui.app_kit import running, text_of, three_agents, until

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"


def rows(app: SynapseApp) -> list[str]:
    return [line[app.main.sidebar.region.x :] for line in text_of(app).splitlines()]


async def test_f6_shows_enters_and_hides():
    host = three_agents()
    async with running(host) as (app, pilot):
        assert not app.main.sidebar.display
        await pilot.press("f6")
        await until(lambda: app.main.sidebar.has_focus_within)
        await pilot.press("escape")
        assert app.main.sidebar.display
        await pilot.press("t")
        assert bytes(host.agents[CLAUDE].typed) == b"t", "the sidebar may stay while one types"
        await pilot.press("f6")
        assert app.main.sidebar.has_focus_within
        await pilot.press("f6", "f6")  # the board, and neither
        assert not app.main.sidebar.display
        await pilot.press("u")
        assert bytes(host.agents[CLAUDE].typed) == b"tu"


@pytest.mark.parametrize(("width", "columns"), [(200, 38), (104, 38), (103, 32), (80, 32)])
async def test_it_takes_its_columns_from_the_panes(width, columns):
    host = three_agents()
    async with running(host, size=(width, 24)) as (app, pilot):
        await pilot.press("f6")
        await until(lambda: app.main.sidebar.region.width == columns)
        assert app.main.sidebar.region.right == width
        await until(lambda: host.agents[CLAUDE].terminal.columns == width - columns, "nothing is covered")
        await pilot.press("escape")
        assert app.main.sidebar.display


async def test_an_empty_list_speaks_only_of_messages_since_the_start():
    host = three_agents()
    host.history.put("from before the restart")
    async with running(host) as (app, pilot):
        await pilot.press("f6")
        await until(lambda: "to write one, type @name" in text_of(app))


async def test_an_agent_that_was_closed_keeps_its_name():
    host = three_agents()
    host.message(CODEX, "fix it", state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
    host.rename(CODEX, "bob")
    async with running(host) as (app, pilot):
        await pilot.press("f6")
        await until(lambda: "→ bob" in text_of(app))
        await host.close(CODEX)
        await until(lambda: CODEX not in [agent.agent_id for agent in app.main.agents])
        await pilot.pause()
        assert "→ bob" in text_of(app)
        assert app.label(CODEX) == "bob"


async def test_in_a_very_narrow_terminal_it_takes_the_place_of_the_panes():
    host = three_agents()
    async with running(host, size=(70, 24)) as (app, pilot):
        await pilot.press("f6")
        await until(lambda: app.main.sidebar.region.width == 70)
        assert host.agents[CLAUDE].terminal.columns == 70, "agents keep their size"
        await pilot.press("escape")
        await until(lambda: not app.main.sidebar.display)


async def test_markdown_of_an_answer_is_rendered():
    host = three_agents()
    host.message(
        CODEX,
        "how far?",
        delivery=DeliveryState.DONE,
        state=TaskState.COMPLETED,
        answer="## Result\n\n**Done**: `__init__`\n- more\n",
    )
    async with running(host, sidebar=True) as (app, pilot):
        await pilot.pause()
        assert "↳ Result Done: __init__ • more" in "\n".join(rows(app))


async def test_an_answer_read_from_the_screen_is_summed_up_by_its_last_words():
    host = three_agents()
    text = "I ask you first.\n\nBash(rm -rf build)\n  ⎿  allowed\n\nThat is settled."
    done: dict[str, Any] = {"delivery": DeliveryState.DONE, "state": TaskState.COMPLETED}
    host.message(CODEX, "remove it", answer=text, **done)
    host.message(CODEX, "only a tool call", answer="Bash(make)", **done)
    replied = host.message(CODEX, "tell me", answer="A first one.\n\nA second one.", **done)
    host.change(replied.id, replied=True)
    async with running(host, sidebar=True) as (app, _pilot):
        await until(lambda: "↳ A first one. A second one." in "\n".join(rows(app)), "a reply, from its start")
        assert "↳ That is settled." in "\n".join(rows(app))
        assert "↳ Bash" not in "\n".join(rows(app))
        assert "↳ I ask" not in "\n".join(rows(app))


async def test_messages_grow_older_with_their_agents():
    host = three_agents()
    host.message(CODEX, "look", delivery=DeliveryState.SUBMITTED, state=TaskState.INPUT_REQUIRED)
    host.agents[CODEX].become(AgentState.WAITING)
    async with running(host, sidebar=True) as (app, _pilot):
        sidebar, at = app.main.sidebar, 0.0
        start, began = sidebar.now(), sidebar.clock()
        sidebar.now = lambda: start + timedelta(seconds=at)
        sidebar.clock = lambda: began + at

        def age(row: str) -> str:
            return next(line for line in rows(app) if row in line).split()[-1]

        await until(lambda: any("needs you 0:" in row for row in rows(app)))
        for at in (3.5, 8.5):
            before = age("codex  ")
            await until(lambda: age("codex  ") != before)  # noqa: B023
            assert age("needs you 0:") == f"0:0{int(at)}"


async def test_messages_with_state_reason_and_answer():
    host = three_agents()
    async with running(host, sidebar=True, size=(160, 40)) as (app, pilot):
        host.message(
            CODEX, "one [b]two[/b]", sender=CLAUDE, delivery=DeliveryState.HELD, reason="you are typing"
        )
        host.message(
            CLAUDE, "three", delivery=DeliveryState.DONE, state=TaskState.COMPLETED, answer="four", minutes=3
        )
        host.message(CLAUDE, "forged", sender="synapse-evil-9999", verified=False)
        await pilot.pause()
        shown = "\n".join(rows(app))
        assert "║ claude → codex" in shown
        assert "held" in shown
        assert "one [b]two[/b]" in shown
        assert "you are typing" in shown
        assert "↳ four" in shown
        assert "done 2:" in shown
        assert "evil-9999?" in shown, "a sender that is not proved is marked"
        assert shown.index("three") < shown.index("one [b]"), "newest last"
        assert "2 open" in shown


async def test_it_follows_new_messages_but_not_while_one_reads():
    host = three_agents()
    async with running(host, sidebar=True, size=(120, 24)) as (app, pilot):
        for number in range(20):
            host.message(CODEX, f"message {number}")
        await pilot.pause()
        await until(lambda: "message 19" in text_of(app))
        await pilot.press("f6", "home")
        await until(lambda: "message 0" in text_of(app))
        host.message(CODEX, "message 20")
        await pilot.pause()
        assert "message 20" not in text_of(app)
        view = app.main.sidebar.query_one(MessageList)
        assert view.highlighted == 0


async def test_it_follows_them_also_where_it_becomes_lower_and_their_order_changes():
    host = three_agents()
    async with running(host, sidebar=True, size=(120, 24)) as (app, pilot):
        tasks = [host.message(CODEX, f"message {number}") for number in range(20)]
        await until(lambda: "message 19" in text_of(app))
        view = app.main.sidebar.query_one(MessageList)
        before = view.size.height
        await pilot.resize_terminal(120, 16)
        await until(lambda: view.size.height < before)
        await until(lambda: "message 19" in text_of(app))
        for number in range(20, 23):
            host.message(CODEX, f"message {number}")
            host.change(tasks[number - 15].id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
            host.message(CLAUDE, f"another {number}")
        await until(lambda: "message 22" in text_of(app))
        view.scroll_to(y=0, animate=False)
        await until(lambda: "message 22" not in text_of(app))
        host.message(CODEX, "message 23")
        await pilot.pause()
        assert "message 23" not in text_of(app)
        view.scroll_end(animate=False)
        await until(lambda: "message 23" in text_of(app))
        host.message(CODEX, "message 24")
        await until(lambda: "message 24" in text_of(app))


async def test_who_scrolls_up_in_the_moment_of_a_new_message_stays_there(monkeypatch: pytest.MonkeyPatch):
    host = three_agents()
    async with running(host, sidebar=True, size=(120, 24)) as (app, pilot):
        for number in range(20):
            host.message(CODEX, f"message {number}")
        await until(lambda: "message 19" in text_of(app))
        view = app.main.sidebar.query_one(MessageList)
        complete: list[Callable[[], None]] = []
        with monkeypatch.context() as patch:
            patch.setattr(view, "scroll_end", lambda *, animate, on_complete: complete.append(on_complete))
            view.show_end()
        view.scroll_to(y=0, animate=False)
        await until(lambda: view.scroll_offset.y == 0 < view.max_scroll_y)
        complete[0]()
        host.message(CODEX, "message 20")
        await until(lambda: view.option_count == 21)
        await pilot.pause()
        assert view.scroll_offset.y == 0


async def test_a_change_keeps_the_mark_where_it_is():
    host = three_agents()
    async with running(host, sidebar=True) as (app, pilot):
        tasks = [host.message(CODEX, f"message {number}") for number in range(3)]
        view = app.main.sidebar.query_one(MessageList)
        await until(lambda: view.option_count == 3)
        await pilot.press("f6")
        await until(lambda: app.focused is view and view.highlighted == 2)
        await pilot.press("up")
        await until(lambda: view.highlighted == 1)
        host.change(tasks[2].id, delivery=DeliveryState.HELD, reason="why")
        host.message(CODEX, "message 3")
        await until(lambda: "why" in text_of(app))
        assert view.highlighted == 1


async def test_messages_in_an_inbox_are_counted_and_typed_only_when_a_person_says_so():
    host = three_agents()
    async with running(host, sidebar=True) as (app, pilot):
        codex = host.agents[CODEX]
        info = host.message(CODEX, "by the way", priority=1)
        codex.outbox.unread.add(info.id)
        host.change(info.id, reason=Reason.IN_INBOX)
        await pilot.press("f4")
        await until(lambda: "1 unread" in "\n".join(rows(app)))
        assert app.main.active == CODEX
        title = text_of(app).splitlines()[1]
        assert " 1 unread " in title[: app.main.sidebar.region.x]
        assert "held" not in title
        await pilot.press("f6", "h")
        await until(lambda: "has not read it yet" in app.main.status_bar.notice)
        await pilot.press("shift+up")
        assert codex.outbox.waiting == [info.id]
        await pilot.press("enter")
        await until(lambda: "Send now (s)" in text_of(app))
        assert "Hold (h)" not in text_of(app)
        await pilot.press("s")
        await until(lambda: codex.outbox.sent_now == [info.id])


async def test_peers_are_listed_and_written_to():
    host = three_agents()
    async with running(host, sidebar=True) as (app, pilot):
        assert "Elsewhere" not in text_of(app)
        host.add_peer("synapse-claude-8105", "/srv/api")
        await pilot.pause()
        shown = "\n".join(rows(app))
        assert "Elsewhere" in shown
        assert "synapse-claude-8105  /srv/api" in shown
        await pilot.press("f6", "tab", "enter")
        await pilot.pause()
        await pilot.press(*"hi", "enter")
        await until(lambda: host.calls[-1] == ("send", "synapse-claude-8105", "hi", "", 3))


def test_the_age_of_a_message_is_that_of_what_its_mark_says():
    """A resize cuts the words of a dialog elsewhere, which changes the reason."""
    host = three_agents()
    task = host.message(CODEX, "look", delivery=DeliveryState.SUBMITTED, state=TaskState.INPUT_REQUIRED)
    at = task.created_at
    task = dataclasses.replace(task, updated_at=at + timedelta(seconds=50), state_since=at)
    assert "needs you 1:00" in message_row(task, {}, 60, at + timedelta(seconds=60)).plain


def test_the_age_of_a_hold_is_not_that_of_the_last_turn():
    host = three_agents()
    task = host.message(CODEX, "look", delivery=DeliveryState.HELD, reason="you have a draft")
    sessions: list[Any] = list(host.agents.values())
    calm, held, _ = view_agents(sessions, now=task.created_at + timedelta(seconds=3), clock=1000.0)
    assert held.mark is HOLDS
    assert held.since == pytest.approx(997.0)
    assert calm.since == sessions[0].report.since


async def test_the_title_of_a_pane_that_holds_messages_has_the_age_of_the_hold():
    host = three_agents()
    host.message(CLAUDE, "look", delivery=DeliveryState.HELD, reason="you have a draft", minutes=2.2)
    host.agents[CLAUDE].become(AgentState.READY)
    async with running(host, size=(120, 24)) as (app, _pilot):
        await until(lambda: "held 2:1" in text_of(app).splitlines()[1])


def hints(app: SynapseApp) -> str:
    return " ".join(" ".join(rows(app)[-3:-1]).split())


async def test_the_hints_fit_what_is_chosen():
    host = three_agents()
    host.message(CLAUDE, "ended", delivery=DeliveryState.DONE, state=TaskState.COMPLETED, answer="yes")
    host.message(CODEX, "first", delivery=DeliveryState.HELD, reason=Reason.HELD_BY_USER)
    host.message(CODEX, "second", delivery=DeliveryState.QUEUED)
    async with running(host) as (app, pilot):
        await pilot.press("f6")
        await until(lambda: hints(app) == "Enter open c cancel h hold s send now ⇧↑ earlier")
        await pilot.press("up")
        await until(lambda: hints(app) == "Enter open c cancel h release s send now ⇧↓ later")
        await pilot.press("up")
        await until(lambda: hints(app) == "Enter open", "nothing else can be done with it")
        await pilot.press("tab")
        await until(lambda: hints(app) == "Enter go to")
        await pilot.press("escape")
        await until(lambda: hints(app) == "F6 choose", "nothing is chosen")


async def test_the_hints_follow_the_chosen_message():
    host = three_agents()
    task = host.message(CODEX, "first", delivery=DeliveryState.QUEUED)
    async with running(host) as (app, pilot):
        await pilot.press("f6")
        await until(lambda: hints(app) == "Enter open c cancel h hold s send now")
        host.agents[CODEX].outbox.waiting.clear()
        host.change(task.id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        await until(lambda: hints(app) == "Enter open c cancel")


@pytest.mark.parametrize("colours", [True, False])
async def test_one_thing_is_chosen_at_a_time(monkeypatch, colours):
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    host = three_agents()
    host.message(CODEX, "first", delivery=DeliveryState.QUEUED)
    async with running(host) as (app, pilot):

        def marked() -> list[str]:
            found = []
            for view in app.main.sidebar.query(OptionList):
                chosen = view.get_visual_style("option-list--option-highlighted")
                other = view.get_visual_style("option-list--option")
                if view.highlighted is not None and (chosen.background, chosen.reverse) != (
                    other.background,
                    other.reverse,
                ):
                    found.append(str(view.id))
            return found

        await pilot.press("f6")
        await until(lambda: marked() == ["messages"])
        await pilot.press("tab")
        await until(lambda: marked() == ["agents"])
        await pilot.press("tab")
        await until(lambda: marked() == ["messages"])
        await pilot.press("escape")
        await until(lambda: marked() == [])


def test_a_question_of_an_external_agent_is_said_once():
    words = "Which framework: pytest or unittest?"
    asked: dict[str, Any] = {
        "state": TaskState.INPUT_REQUIRED,
        "reason": words,
        "artifacts": (Artifact(words),),
    }
    task = dataclasses.replace(three_agents().message(CODEX, "write tests"), target="docs@host", **asked)
    assert message_row(task, {}, 60, task.created_at).plain.count("Which framework") == 1
    answered = dataclasses.replace(task, reason="")
    assert f"↳ {words}" in message_row(answered, {}, 60, task.created_at).plain
