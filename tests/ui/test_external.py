"""Tabs of external agents: writing, answers, copying, the dialogs around them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from synapse_tui.a2a.external.peer import TaskUpdate, artifact_of, piece_of
from synapse_tui.core.content import Part
from synapse_tui.core.model import AgentSpec, AgentState, TaskState
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.externals import AddExternal
from synapse_tui.ui.screens.messages import MessageDetail
from synapse_tui.widgets.conversation import ConversationPane, ConversationView
from synapse_tui.widgets.views import party
from tests.ui.app_kit import LEADER, at_main, notices, running, text_of, until
from tests.ui.external_scenes import offer, said
from tests.ui.fakes import FakeHost


def host_with_agent() -> FakeHost:
    host = FakeHost()
    host.add(AgentSpec("claude"))
    return host


@asynccontextmanager
async def talking(
    size: tuple[int, int] = (100, 30),
) -> AsyncIterator[tuple[SynapseApp, Pilot[None], FakeHost, ConversationView]]:
    """The application with the tab of `echo` in focus, and claude beside it."""
    host = host_with_agent()
    async with running(host, size) as (app, pilot):
        host.externals.add("echo")
        app.perform("open_external", "echo")
        await until(lambda: app.main.active == "echo")
        pane = app.main.deck.pane("echo")
        assert isinstance(pane, ConversationPane)
        await pilot.pause()
        yield app, pilot, host, pane.talk


def working(task_id: str = "r1") -> TaskUpdate:
    return TaskUpdate(task_id, "c1", TaskState.WORKING)


def piece(text: str, *, append: bool = False, last: bool = False) -> TaskUpdate:
    return piece_of("r1", "c1", artifact_of((Part(text=text),), artifact_id="a"), append=append, last=last)


def ended(task_id: str = "r1") -> TaskUpdate:
    return TaskUpdate(task_id, "c1", TaskState.COMPLETED)


async def test_what_is_written_is_sent_and_the_answer_streams_in():
    async with talking() as (app, pilot, host, _view):
        await pilot.press(*"hello", "shift+enter", *"there", "enter")
        await until(lambda: host.externals.tasks)
        assert host.externals.tasks[0].text == "hello\nthere"
        host.externals.say("echo", working())
        host.externals.say("echo", piece("half of "))
        await until(lambda: "half of" in text_of(app))
        host.externals.say("echo", piece("the answer", append=True, last=True))
        host.externals.say("echo", ended())
        await until(lambda: "half of the answer" in text_of(app))
        assert app.main.agents[-1].state is AgentState.READY
        assert not app.host.agents["synapse-claude-8100"].typed  # type: ignore[attr-defined]


async def test_a_paste_stays_whole_and_markup_is_text():
    async with talking() as (app, pilot, host, view):
        app.post_message(events.Paste("[bold]one[/bold]\ntwo\n"))
        await until(lambda: view.composer.text)
        await pilot.press("enter")
        await until(lambda: host.externals.tasks)
        assert host.externals.tasks[0].text == "[bold]one[/bold]\ntwo"
        await until(lambda: "[bold]one[/bold]" in text_of(app))


async def test_a_question_is_shown_and_answered():
    async with talking() as (app, pilot, host, _view):
        await pilot.press(*"go", "enter")
        await until(lambda: host.externals.tasks)
        app.main.go_to("synapse-claude-8100")
        asked = TaskUpdate("r1", "c1", TaskState.INPUT_REQUIRED, said("which colour?"))
        host.externals.say("echo", asked)
        await until(lambda: app.main.agents[-1].state is AgentState.WAITING)
        await pilot.press(LEADER, "a")
        assert app.main.active == "echo"
        await until(lambda: "echo asks" in text_of(app) and "which colour?" in text_of(app))
        await pilot.press(*"red", "enter")
        await until(lambda: host.externals.tasks[0].state is TaskState.SUBMITTED)
        assert len(host.externals.tasks) == 1


async def test_the_board_shows_what_was_said_last_and_offers_what_an_external_agent_can():
    async with talking() as (app, pilot, host, _view):
        await pilot.press(*"which framework?", "enter")
        await until(lambda: host.externals.tasks)
        host.externals.say(
            "echo", TaskUpdate("r1", "c1", TaskState.INPUT_REQUIRED, said("pytest or unittest?"))
        )
        asked = host.externals.tasks[0].updated_at
        app.main.conversations.now = lambda: asked + timedelta(seconds=33)
        app.main.show_agents()
        await until(lambda: "needs you 0:33" in text_of(app).splitlines()[1])
        app.perform("board")
        await until(lambda: "echo  pytest or unittest?" in text_of(app))
        rows = text_of(app).splitlines()
        assert " last messages " in "\n".join(rows)
        assert "changes" not in rows[-1]
        assert re.search(r"▲ echo +external +0:3\d", "\n".join(rows))
        await pilot.press("d")
        await until(lambda: "this works only for agents that run here" in notices(app))


def test_an_alias_is_shown_as_it_is():
    assert party("synapse-dummy", {}) == "synapse-dummy"
    assert party("synapse-claude-8100", {}) == "claude-8100"
    assert party("synapse-claude-8100@box", {}) == "claude-8100@box"


async def test_an_answer_that_nobody_saw_is_marked():
    async with talking() as (app, pilot, host, _view):
        await pilot.press(*"go", "enter")
        await until(lambda: host.externals.tasks)
        app.main.go_to("synapse-claude-8100")
        host.externals.say("echo", ended())
        await until(lambda: app.main.agents[-1].unseen)
        app.main.go_to("echo")
        await until(lambda: not app.main.agents[-1].unseen)


async def test_a_message_of_an_agent_opens_a_tab_and_takes_no_keys():
    host = host_with_agent()
    async with running(host) as (app, pilot):
        host.externals.add("echo")
        await host.send("echo", "hello", sender="synapse-claude-8100")
        await until(lambda: app.main.deck.pane("echo") is not None)
        await pilot.press("x")
        assert app.main.active == "synapse-claude-8100"
        assert bytes(host.agents["synapse-claude-8100"].typed) == b"x"
        host.add(AgentSpec("codex"))
        await until(lambda: len(app.main.agents) == 3)
        assert [agent.agent_id for agent in app.main.agents] == [
            pane.agent_id for pane in app.main.deck.panes
        ]
        assert [agent.agent_id for agent in app.main.agents].index("echo") == 1


async def test_card_tasks_new_and_remove():
    async with talking() as (app, pilot, host, _view):
        await pilot.press(LEADER, "w")
        await until(lambda: "says what it was told" in text_of(app))
        assert "Authorization: Bearer $ECHO_TOKEN" in text_of(app)
        assert "1 d ago" in text_of(app)
        assert "2026-" not in text_of(app)
        await pilot.press("escape")
        await pilot.press(*"go", "enter")
        await until(lambda: host.externals.tasks)
        app.perform("external_tasks", "echo")
        await until(lambda: "Tasks of @echo" in text_of(app))
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, MessageDetail))
        await pilot.press("escape")
        await until(lambda: at_main(app))
        await pilot.press(LEADER, "R")
        await until(lambda: "a new conversation begins here" in text_of(app))
        app.perform("remove_external", "echo")
        await until(lambda: not at_main(app))
        await pilot.press("y")
        await until(lambda: app.main.deck.pane("echo") is None)
        assert ("external_remove", "echo") in host.calls


async def test_an_agent_is_added_after_its_card_was_seen():
    host = host_with_agent()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "e")
        await until(lambda: isinstance(app.screen, AddExternal))
        await pilot.press(*"https://docs.example", "enter")
        await until(lambda: "nobody answers" in text_of(app))
        assert app.screen.query_one("#url", Input).value == "https://docs.example"

        host.externals.offer = offer()
        await pilot.press("enter")
        await until(lambda: "explains them [b]plainly[/b]" in text_of(app))
        assert not host.externals.agents, "nothing is kept before the card was seen"
        await pilot.press("x")
        await until(lambda: "explains them" not in text_of(app))
        await pilot.press("backspace", "enter")
        await until(lambda: "explains them" in text_of(app))
        await pilot.press("enter")
        await until(lambda: app.main.active == "docs")
        assert ("external_keep", "docs") in host.calls


async def test_what_goes_on_is_canceled():
    async with talking() as (_app, pilot, host, _view):
        await pilot.press(*"go", "enter")
        await until(lambda: host.externals.tasks)
        await pilot.press("f8")
        await until(lambda: host.externals.tasks[0].state is TaskState.CANCELED)


async def test_what_cannot_be_sent_stays_in_the_line():
    from synapse_tui.core.errors import MessageTooLarge

    async with talking() as (app, pilot, host, view):
        host.fail["external_send"] = MessageTooLarge("the message is too large")
        await pilot.press(*"go", "enter")
        await until(lambda: view.composer.text == "go")
        assert "the message is too large" in app.main.status_bar.notice


async def test_closing_keeps_the_conversation():
    async with talking() as (app, pilot, host, _view):
        await pilot.press(*"go", "enter")
        await until(lambda: host.externals.tasks)
        await pilot.press(LEADER, "x")
        await until(lambda: app.main.deck.pane("echo") is None)
        assert app.main.active == "synapse-claude-8100"
        app.perform("open_external", "echo")
        await until(lambda: app.main.active == "echo")
        await until(lambda: " go " in text_of(app))
