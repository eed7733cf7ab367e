"""The tour of the first minute: which keys it takes, what it waits for, and how it ends."""

import asyncio
import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
from textual.events import Click, MouseUp

from synapse_tui.core.errors import PortsExhausted
from synapse_tui.core.model import DEMO_AGENTS, AgentSpec, AgentState, DeliveryState, ExitStatus, TaskState
from synapse_tui.widgets.fit import Hint
from synapse_tui.widgets.tour import TourKeys
from tests.ui.app_kit import LEADER, running, text_of, until
from tests.ui.fakes import FakeHost, FakeSession


def agents(host: FakeHost) -> tuple[FakeSession, FakeSession]:
    alice, bob = host.agents.values()
    for session in (alice, bob):
        session.composer = True
        session.become(AgentState.READY)
    return alice, bob


def start(host: FakeHost, size=(120, 40), **options):
    return running(host, size, layout="columns", defaults=DEMO_AGENTS, **options)


async def shows(app, *texts):
    await until(lambda: all(text in text_of(app) for text in texts))


def panel(app) -> str:
    """The text of the tour, down to its keys."""
    region = app.main.tour_panel.region
    lines = text_of(app).splitlines()[region.y : region.bottom]
    return "\n".join(line for line in lines if line.strip())


async def opened(app, host):
    app.tour.clock = itertools.count(1000).__next__  # nothing was typed for a second
    app.tour.find = lambda _command: None
    await until(lambda: len(app.main.deck.panes) == 2)
    await shows(app, "in a moment: an agent is starting")
    pair = agents(host)
    await shows(app, "Let one write to the other", "Space type it for me")
    return pair


def hold(host: FakeHost) -> None:
    host.change(host.tasks[-1].id, delivery=DeliveryState.HELD, reason="you have a draft")


async def test_a_low_and_narrow_window_keeps_the_way_out():
    host = FakeHost()
    async with start(host, (44, 14)) as (app, pilot):
        app.tour.clock = itertools.count(1000).__next__
        await shows(app, "Let one write to the other", "^] . end the tour")
        alice, _bob = agents(host)
        await shows(app, "Space type it for me", "Esc end the tour")
        alice.become(AgentState.PROCESSING)
        app.tour.look()
        await shows(app, "^] . end the tour")
        await pilot.press(LEADER, ".")
        await until(lambda: not app.main.tour_panel.display)


async def test_an_agent_that_is_renamed_keeps_its_part():
    host = FakeHost()
    async with start(host) as (app, pilot):
        _alice, bob = await opened(app, host)
        bob.name = "rob"
        await shows(app, "@rob hello", "It is typed into rob's composer as soon as rob is free")
        await pilot.press("space")
        await until(lambda: len(host.tasks) == 1)
        assert (host.tasks[0].target, host.tasks[0].text) == (bob.agent_id, "hello")
        await shows(app, "On its way to rob: queued")
        host.change(host.tasks[0].id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await shows(app, "It arrived, and rob has answered.")
        assert "bob" not in panel(app)
        app.tour.action_tour()
        app.tour.action_tour()  # which opens what is missing
        await shows(app, "@rob hello")
        assert len(host.agents) == 2


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_space_alone_leads_through_the_tour(size):  # noqa: PLR0915 - it is one walk
    host = FakeHost()
    async with start(host, size) as (app, pilot):
        alice, bob = await opened(app, host)
        await pilot.press("space")
        app.tour.look()
        assert "Space" not in panel(app), "it is being typed"
        await until(lambda: len(host.tasks) == 1)
        (hello,) = host.tasks
        assert (hello.sender.sender_id, hello.target, hello.text) == (alice.agent_id, bob.agent_id, "hello")
        assert not alice.typed
        await shows(app, "On its way to bob: queued", "as soon as nothing else is going on there")
        host.change(hello.id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        await shows(app, "bob has it: working", "The answer comes back to alice's pane.")
        assert "On its way" not in panel(app)
        host.change(hello.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await shows(app, "bob has answered", "Space next", "In alice's pane, ^] v shows what became")
        assert "→" not in panel(app).splitlines()[-1], "Space does the same"
        await pilot.press("space")
        await shows(app, "without Enter", "● ● ○")
        await pilot.press("space")
        await until(lambda: bytes(bob.typed) == b"half a sentence")
        bob.draft = "half a sentence"
        await until(lambda: len(host.tasks) == 2)
        await shows(app, "alice writes to bob.", "Enter send your line")
        assert "it is held" not in panel(app)
        hold(host)
        await shows(app, "alice wrote to bob, and it is held", "Enter send your line")
        assert "→ skip" not in text_of(app)
        await pilot.press("space", "right", "escape", "enter")  # all bob's: there is a draft in its composer
        await until(lambda: bytes(bob.typed).endswith(b"\r"))
        assert bytes(bob.typed).startswith(b"half a sentence ")
        bob.draft = ""
        bob.feed("> half a sentence\r\n")
        await shows(app, "Your draft has left the composer.", "alice's message follows by itself.")
        assert "Enter" not in panel(app)
        held = host.tasks[-1]
        assert (held.sender.sender_id, held.target) == (alice.agent_id, bob.agent_id)
        host.change(held.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await shows(app, "Your line went first")
        await pilot.press("space")
        await shows(app, "remove the build folder", "● ● ●")
        assert app.main.active == alice.agent_id
        await until(lambda: len(host.tasks) == 3)
        host.message(alice.agent_id, "any news?", sender=bob.agent_id)  # not what the step is about
        hold(host)
        await pilot.pause(0.3)
        assert "alice asks bob" in panel(app), "and nothing of the other message"
        bob.become(AgentState.WAITING, "permission: rm -rf build")
        await shows(app, "bob needs you", "Space go there")
        await pilot.press("space")
        await until(lambda: app.main.active == bob.agent_id)
        await shows(app, "3 does not", "3 No")
        bob.typed.clear()
        await pilot.press("3")
        await until(lambda: bytes(bob.typed) == b"3")
        bob.become(AgentState.READY)
        await shows(app, "The dialog is closed.")
        await pilot.press("right")
        await shows(app, "npm install -g @github/copilot", "Your own agents", "Esc close")
        await pilot.press("escape")
        await until(lambda: app.main.tour_panel.page is None)


async def click_hint(app, pilot, word: str) -> None:
    keys, timer = app.main.query_one(TourKeys), app.tour._timer

    def words() -> str:
        return "".join(piece.text for piece in keys.pieces(80)[0])

    await until(lambda: word in words())
    timer.pause()  # what is looked at stays until it is clicked
    await until(lambda: word in words() and keys.target_at(words().index(word)))
    await pilot.click(keys, offset=(words().index(word), 0))
    timer.resume()


async def test_the_mouse_alone_does_the_same():
    host = FakeHost()
    async with start(host) as (app, pilot):
        _alice, bob = await opened(app, host)

        async def click(word: str) -> None:
            await click_hint(app, pilot, word)

        await click("type it for me")
        await until(lambda: len(host.tasks) == 1)
        await click("skip")
        await shows(app, "without Enter")
        await click("type it for me")
        await until(lambda: bytes(bob.typed) == b"half a sentence")
        bob.draft = "half a sentence"
        await click("send your line")
        await until(lambda: bytes(bob.typed).endswith(b"\r"))
        bob.draft = ""
        await click("skip")
        bob.become(AgentState.WAITING, "permission: rm -rf build")
        await click("go there")
        await click("No")
        await until(lambda: bytes(bob.typed).endswith(b"3"))
        bob.become(AgentState.READY)
        await click("next")
        await shows(app, "Your own agents")
        await click("close")
        await until(lambda: app.main.tour_panel.page is None)


async def test_a_line_is_sent_by_the_hint_from_the_other_pane_too():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, bob = await opened(app, host)
        await pilot.press("right")
        bob.draft = "what I"
        await until(lambda: len(host.tasks) == 1)
        app.main.go_to(alice.agent_id)
        await click_hint(app, pilot, "send your line, in bob's pane")
        await until(lambda: bytes(bob.typed).endswith(b"\r"))
        bob.draft = ""
        host.change(host.tasks[-1].id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await shows(app, "Your line went first, and the message after it.")


async def test_the_tour_says_that_a_draft_was_cleared_and_not_sent():
    host = FakeHost()
    async with start(host) as (app, pilot):
        _alice, bob = await opened(app, host)
        await pilot.press("right")
        app.main.go_to(bob.agent_id)
        bob.feed("Ask me what I can do\r\n")
        bob.draft = "what I"
        await until(lambda: len(host.tasks) == 1)
        hold(host)
        await shows(app, "alice wrote to bob, and it is held")
        await pilot.press("enter", "backspace")  # Enter alone sends it
        await until(lambda: len(bob.typed) == 2)
        bob.draft = ""
        await shows(app, "Your draft has left the composer.")
        host.change(host.tasks[-1].id, delivery=DeliveryState.TYPING)
        bob.draft = "[A2A:1f] are you busy?"  # the message, as the host types it
        bob.feed("[A2A:1f] are you busy?")
        await pilot.pause()
        assert "Press Enter" not in panel(app)
        bob.draft = ""
        host.change(host.tasks[-1].id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await shows(app, "Your draft was gone, so the message came.")
        assert "Your line" not in panel(app)


async def test_the_tour_says_that_one_of_the_two_did_not_start():
    host = FakeHost()
    made = host.open

    async def all_but_bob(spec, **size):
        if spec.name == "bob":
            raise PortsExhausted("no port is free in 8190-8199", "close an agent")
        return await made(spec, **size)

    host.open = all_but_bob
    async with start(host) as (app, pilot):
        app.tour.clock = itertools.count(1000).__next__
        await until(lambda: host.agents)
        (alice,) = host.agents.values()
        alice.composer = True
        alice.become(AgentState.READY)
        await shows(app, "bob did not start", "^] b shows why", "Esc end the tour")
        assert "@bob hello" not in panel(app)
        await pilot.press("space")
        await until(lambda: bytes(alice.typed) == b" ")
        host.open = made
        app.perform("start_again", app.main.not_started[0].agent_id)
        await until(lambda: len(host.agents) == 2)
        await shows(app, "@bob hello")


async def test_the_tour_says_that_one_of_the_two_has_ended_or_was_closed_and_begins_again_with_both():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, bob = await opened(app, host)
        bob.name = "rob"
        await shows(app, "@rob hello")
        bob.end(ExitStatus(signal=9))
        await shows(app, "Two agents are needed", "rob has ended.", "r in its pane starts it again")
        assert "skip" not in panel(app)
        await pilot.press("right")
        assert bytes(alice.typed) == b"\x1b[C", "the key is the agent's"
        app.perform("help")
        await until(lambda: app.main.covered)
        await until(lambda: "Esc" not in panel(app))
        assert "rob has ended." in panel(app)
        await pilot.press("escape")
        await shows(app, "rob has ended.", "Esc end the tour")
        app.tour.action_tour()
        app.tour.action_tour()
        await until(lambda: bob.exit is None)
        assert len(host.agents) == 2, "the ended one was started again"
        bob.become(AgentState.READY)
        await shows(app, "@rob hello")
        await host.close(bob.agent_id)
        await shows(app, "bob is closed.", "^] . ends the tour; once more, it begins with both")


async def test_the_tour_says_what_became_of_a_message_that_a_person_held_or_canceled():
    host = FakeHost()
    async with start(host) as (app, pilot):
        _alice, bob = await opened(app, host)
        await pilot.press("space")
        await until(lambda: len(host.tasks) == 1)
        bob.outbox.parked.add(host.tasks[0].id)
        host.change(host.tasks[0].id, delivery=DeliveryState.HELD, reason="held by you")
        await shows(app, "On its way to bob: held: held by you", "in alice's pane, ^] v shows it")
        host.change(host.tasks[0].id, delivery=DeliveryState.CANCELED, state=TaskState.CANCELED)
        await shows(app, "alice's message to bob: canceled")
        await pilot.press("space")
        bob.draft = "what I"
        await until(lambda: len(host.tasks) == 2)
        bob.outbox.parked.add(host.tasks[1].id)
        host.change(host.tasks[1].id, delivery=DeliveryState.HELD, reason="held by you")
        await shows(app, "held: held by you", "It goes once it is released", "Enter send your line")
        bob.draft = ""
        await until(lambda: "send your line" not in panel(app))
        assert "follows by itself" not in panel(app)
        host.change(host.tasks[1].id, delivery=DeliveryState.CANCELED, state=TaskState.CANCELED)
        await shows(app, "alice's message to bob: canceled", "Space next")
        await pilot.press("space")
        await until(lambda: len(host.tasks) == 3)
        bob.outbox.parked.add(host.tasks[2].id)
        host.change(host.tasks[2].id, delivery=DeliveryState.HELD, reason="held by you")
        await shows(app, "held: held by you", "It goes once it is released")
        bob.outbox.parked.clear()
        host.change(host.tasks[2].id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        bob.become(AgentState.WAITING, "permission: rm -rf build")
        await shows(app, "bob needs you")
        bob.become(AgentState.READY)
        host.change(
            host.tasks[2].id, delivery=DeliveryState.FAILED, state=TaskState.FAILED, reason="interrupted"
        )
        await shows(
            app, "The dialog is closed.", "alice's message to bob: failed: interrupted", "an interrupt denies"
        )


async def test_a_hint_names_its_key_also_while_that_goes_to_an_agent():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, _bob = await opened(app, host)
        alice.composer = True
        await pilot.press(*"@bo")
        await shows(app, "Space type it for me, after your message", "^] . end the tour")
        await pilot.press("ctrl+c")
        alice.draft = "what I"
        await shows(app, "Space type it for me, after your draft", "^] . end the tour")
        alice.draft = ""
        alice.become(AgentState.PROCESSING)
        await shows(app, "Space type it for me, once alice is free", "^] . end the tour")
        alice.become(AgentState.READY)
        await shows(app, "Space type it for me   ")
        app.tour.clock = itertools.repeat(2000.0).__next__
        app.tour.typed()
        await shows(app, "Space type it for me, in a moment")  # the key is not the tour's yet
        app.tour.clock = itertools.count(3000).__next__
        host.add(AgentSpec("shell")).become(AgentState.READY)
        await until(lambda: len(app.main.deck.panes) == 3)
        app.main.go_to(list(host.agents)[-1])
        await shows(app, "Space type it for me, from alice's pane")


async def test_the_tour_names_no_keys_while_they_are_those_of_a_dialog():
    host = FakeHost()
    async with start(host) as (app, pilot):
        await opened(app, host)
        await shows(app, "Space type it for me", "Esc end the tour")
        await pilot.press("f8")
        await until(lambda: "end the tour" not in text_of(app) and "type it for me" not in text_of(app))
        await pilot.press("escape")
        await shows(app, "Space type it for me", "Esc end the tour")


async def test_a_click_types_nothing_into_a_draft():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, bob = await opened(app, host)
        alice.draft = "my own draft"
        await click_hint(app, pilot, "type it for me, after your draft")
        await shows(app, "it is typed for you, after your draft")
        await pilot.press("f6")
        await shows(app, "it is typed for you, in alice's pane")
        await pilot.press("escape")
        assert not alice.typed
        alice.draft = ""
        await until(lambda: [task.text for task in host.tasks] == ["hello"])
        host.change(host.tasks[0].id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await click_hint(app, pilot, "next")
        app.main.go_to(bob.agent_id)
        bob.become(AgentState.PROCESSING)
        await click_hint(app, pilot, "type it for me, once bob is free")
        bob.become(AgentState.READY)
        await until(lambda: bytes(bob.typed) == b"half a sentence")


async def test_what_waits_to_be_typed_is_dropped_once_the_person_has_typed_it():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, bob = await opened(app, host)
        alice.draft = "@bob hello"
        await click_hint(app, pilot, "type it for me, after your draft")
        host.message(bob.agent_id, "hello", sender=alice.agent_id)
        await shows(app, "On its way to bob")
        alice.draft = ""
        await until(app.tour._is_free)
        app.tour.look()
        assert not app.tour._keys
        assert not alice.typed


async def test_the_tour_says_that_a_message_is_held_once_its_pane_does_not_say_that_it_is_sent():
    host, saved = FakeHost(), asyncio.Event()
    send = host.send

    async def save(*arguments, **options):
        receipts = await send(*arguments, **options)
        await saved.wait()
        return receipts

    async with start(host) as (app, pilot):
        alice, _bob = await opened(app, host)
        await pilot.press("right")
        host.send = save
        alice.draft = "what I"
        await until(lambda: len(host.tasks) == 1)
        hold(host)
        await shows(app, "alice: sending", "bob writes to alice.")
        saved.set()
        await shows(app, "bob wrote to alice, and it is held")
        assert "sending" not in text_of(app)


@pytest.mark.parametrize(("width", "stays"), [(80, False), (120, True)])
async def test_the_sidebar_makes_room_for_the_two_agents(width, stays):
    host = FakeHost()
    async with start(host, (width, 24), sidebar=True) as (app, _pilot):
        await until(lambda: len(app.main.deck.panes) == 2)
        await until(lambda: all(pane.display for pane in app.main.deck.panes))
        assert app.main.has_class("-sidebar") == stays


async def test_a_hint_says_that_keys_scroll():
    host = FakeHost()
    async with start(host) as (app, _pilot):
        await opened(app, host)
        app.perform("scroll")
        await shows(app, "Space type it for me, after scrolling")


async def test_a_pane_without_the_keyboard_gets_no_key_of_a_hint():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, bob = await opened(app, host)
        await pilot.press("right")
        await shows(app, "without Enter")
        alice.draft = "what I"
        await shows(app, "Enter send your line")
        await pilot.press("f6")
        await until(lambda: app.main.sidebar.has_focus_within)
        await shows(app, "Enter send your line, in alice's pane")
        await pilot.press("escape")
        await shows(app, "Enter send your line  ")
        alice.draft = ""
        await until(app.tour._is_free)
        await pilot.press("right")
        bob.become(AgentState.WAITING, "permission: rm -rf build")
        await shows(app, "bob needs you", "Space go there")
        app.perform("next_waiting")
        await shows(app, "1 Yes   3 No")
        await pilot.press("f6")
        await until(lambda: app.main.sidebar.has_focus_within)
        await shows(app, "bob needs you", "^] a go there")
        await pilot.press("ctrl+right_square_bracket", "a")
        await shows(app, "1 Yes   3 No")
        host.clock = lambda: -9.0  # it asks for longer than bob
        host.add(AgentSpec("claude")).become(AgentState.WAITING, "permission: make")
        await until(lambda: len(app.main.agents) == 3)
        app.main.go_to(alice.agent_id)
        await shows(app, "bob needs you", "^] a goes to", "all that ask, one by one.", "Space go there")
        assert "bottom row" not in panel(app)
        await pilot.press("space")
        await shows(app, "1 Yes   3 No")
        assert app.main.active == bob.agent_id


async def test_a_dialog_is_said_at_once_even_if_it_is_soon_over():
    host = FakeHost()
    async with start(host) as (app, pilot):
        _alice, bob = await opened(app, host)
        for _ in range(2):
            await pilot.press("right")
        await shows(app, "One moment: bob reads it.")
        now = app.tour.clock()
        app.tour.clock = lambda: now
        bob.become(AgentState.WAITING, "permission: rm -rf build")
        await shows(app, "bob needs you: it may want to delete a folder.")
        assert "One moment" not in panel(app)
        assert "go there" not in panel(app)
        bob.become(AgentState.READY)
        await shows(app, "The dialog is closed.")


async def test_the_first_step_says_where_the_answer_is():
    host = FakeHost()
    async with start(host) as (app, pilot):
        await opened(app, host)
        await pilot.press("space")
        await until(lambda: len(host.tasks) == 1)
        host.answer(host.tasks[0].id, "Done. I only pretended.")
        await shows(app, "bob has answered", "alice's pane, to take or let go;", "shows all of it")
        app.perform("let_go")
        await shows(app, "In alice's pane, ^] v shows what became of the last message")


async def test_the_first_step_may_go_the_other_way():
    host = FakeHost()
    async with start(host) as (app, _pilot):
        alice, bob = await opened(app, host)
        task = host.message(alice.agent_id, "hello", sender=bob.agent_id)
        await shows(app, "On its way to alice", "alice gets it as soon as nothing else is going on there.")
        host.change(task.id, delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)
        await shows(app, "alice has it: working", "The answer comes back to bob's pane.")
        host.change(task.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await shows(app, "It arrived, and alice has answered.", "In bob's pane, ^] v shows what became")


LONG = "python -m pip install aider-install && aider-install"


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (64, 24)])
async def test_a_command_of_the_last_page_stands_in_one_row(size):
    host = FakeHost()
    profiles = dict(host.profiles.profiles)
    profiles["copilot"] = replace(profiles["copilot"], install=LONG)
    host.profiles = replace(host.profiles, profiles=profiles)
    async with start(host, size=size) as (app, _pilot):
        await opened(app, host)
        app.tour._go(4)
        await shows(app, "Your own agents", "copilot", "aider-install", "Esc close")
        assert any(LONG in row for row in text_of(app).splitlines())


async def test_the_last_page_has_commands_to_copy_and_names_the_keys_that_work():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, _bob = await opened(app, host)
        app.tour._go(4)
        await shows(app, "Esc close")
        await shows(app, "Space copy copilot's line")
        await pilot.press("space")
        await until(lambda: app.clipboard == "npm install -g @github/copilot")
        app.tour.find = lambda command: command
        await shows(app, "Space copy the command")
        await pilot.press("space")
        await until(lambda: app.clipboard == "synapse-tui claude codex")
        alice.draft = "what I"
        await shows(app, "^] . close")
        assert "Esc close" not in text_of(app)


async def test_keys_of_a_message_are_never_taken():
    host = FakeHost()
    async with start(host) as (app, pilot):
        alice, _bob = await opened(app, host)
        now = 1000.0
        app.tour.clock = lambda: now
        await pilot.press("a", "space", "right", "escape")  # the screen does not show the a yet
        assert bytes(alice.typed) == b"a \x1b[C\x1b"
        now += 10
        alice.draft = "a"
        await pilot.press("space", "escape")
        assert bytes(alice.typed).endswith(b" \x1b")
        alice.draft = ""
        await pilot.press("at", "b", "o", "b", "space", "h", "i", "space", "y", "enter")
        await until(lambda: [task.text for task in host.tasks] == ["hi y"])
        now += 10
        alice.become(AgentState.WAITING, "permission")
        await pilot.press("escape")
        assert bytes(alice.typed).endswith(b" \x1b\x1b")
        assert app.main.tour_panel.page is not None


async def test_ending_it_is_remembered():
    host, put = FakeHost(), []

    def change(layer, write):
        write(SimpleNamespace(put=lambda key, value: put.append((layer, key, value))))

    files = lambda: SimpleNamespace(change=change)  # noqa: E731
    async with start(host, settings_files=files) as (app, pilot):
        await opened(app, host)
        await pilot.press("escape")
        await until(lambda: put == [("user", "tui.tour", False)])
        assert app.main.tour_panel.page is None


async def test_it_stays_away_when_it_was_ended_and_comes_back_when_it_is_asked_for():
    host = FakeHost(profiles=None, **{"tui.tour": False})  # type: ignore[arg-type]
    async with start(host) as (app, _pilot):
        await until(lambda: len(app.main.deck.panes) == 2)
        assert app.main.tour_panel.page is None
        app.perform("tour")
        await shows(app, "Let one write to the other")
        assert len(host.agents) == 2
        app.perform("tour")
        assert app.main.tour_panel.page is None


async def test_it_opens_its_agents_but_takes_no_names():
    host = FakeHost()
    async with running(host, specs=[DEMO_AGENTS[0]]) as (app, _pilot):
        await until(lambda: len(app.main.deck.panes) == 1)
        app.perform("tour")
        await until(lambda: [each.name for each in host.agents.values()] == ["alice", "bob"])


async def test_it_does_not_use_agents_of_the_person():
    host = FakeHost()
    session = host.add(DEMO_AGENTS[0])
    session.agent_type = "claude"
    async with running(host) as (app, _pilot):
        app.perform("tour")
        await shows(app, "demo --tour")
        assert app.main.tour_panel.page is None


async def test_a_click_is_for_what_was_drawn_when_the_button_went_down():
    host = FakeHost()
    async with start(host) as (app, pilot):
        await opened(app, host)
        keys = app.main.query_one(TourKeys)
        timer = app.tour._timer
        assert timer is not None
        timer.pause()
        await pilot.pause()
        x = "".join(piece.text for piece in keys.pieces(80)[0]).index("end the tour")
        await pilot.mouse_down(keys, offset=(x, 0))
        keys.shown = [Hint("", "-" * (x + 5), "space")]
        await pilot.pause()
        assert keys.target_at(x) == "space"
        await pilot._post_mouse_events([MouseUp, Click], keys, (x, 0), button=1)
        await until(lambda: app.main.tour_panel.page is None)
        assert not host.tasks
