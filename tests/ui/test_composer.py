"""Writing a message: receivers, how it is sent, files, templates, and what became of the last ones."""

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.widgets import Static, TextArea

from synapse_tui.core.content import Artifact
from synapse_tui.core.errors import TakesNoMessages
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, TaskState
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.composer import Chips, Composer, Draft, WayBar, files_in
from synapse_tui.ui.screens.dialog import Pick
from tests.ui.app_kit import at_main, notices, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost

CODEX, GEMINI = "synapse-codex-8120", "synapse-gemini-8110"


def composer(app: SynapseApp) -> Composer:
    assert isinstance(app.screen, Composer)
    return app.screen


def chips(app: SynapseApp) -> tuple[str, ...]:
    return composer(app).query_one(Chips).names


def words(app: SynapseApp, field: str) -> str:
    return str(composer(app).query_one(field, Static).content)


def text(app: SynapseApp) -> str:
    return composer(app).query_one("#text", TextArea).text


async def test_a_message_to_several_goes_to_each_once():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "comma", *"cod", "comma", *"synapse-codex-8120", "enter")
        assert chips(app) == ("alice", "codex")
        await until(lambda: "Enter send to 2" in text_of(app))
        await pilot.press(*"both", "enter")
        await until(lambda: at_main(app))
        assert [call for call in host.calls if call[0] == "send"] == [
            ("send", "alice", "both", "", 3),
            ("send", "codex", "both", "", 3),
        ]
        assert "alice: queued · codex: queued" in app.main.status_bar.notice


@pytest.mark.parametrize("how", ["keys", "paste"])
async def test_what_is_typed_at_how_goes_on_in_the_text(how):
    host = three_agents()
    async with running(host) as (app, pilot):
        app.perform("compose", "codex")
        await until(lambda: isinstance(app.screen, Composer))
        await until(lambda: composer(app).query_one("#text").has_focus)
        await pilot.press("h", "i", "tab")
        way = composer(app).query_one(WayBar)
        await until(lambda: way.has_focus)
        await pilot.press("5")
        if how == "keys":
            typed = ", 3 tests"
            for character in typed:
                way.post_message(events.Key(_character_to_key(character), character))
        else:
            typed = " 3 tests\nfail"
            way.post_message(events.Paste(typed))
        await until(lambda: composer(app).query_one("#text", TextArea).text == f"hi{typed}")
        assert (way.value, composer(app).query_one("#text").has_focus) == (5, True)


async def test_a_name_that_means_nobody_sends_nothing_to_the_others():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "comma", *"nobody", "enter", *"x", "enter")
        await until(lambda: "no agent answers to '@nobody'" in text_of(app))
        assert not any(call[0] == "send" for call in host.calls)
        await pilot.press("shift+tab", "backspace", "tab", "enter")
        await until(lambda: at_main(app))
        assert host.calls[-1] == ("send", "alice", "x", "", 3)


async def test_changes_of_tasks_are_shown_together_while_a_message_is_written(monkeypatch):
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"cod", "comma")
        task = host.message(CODEX, "hi", delivery=DeliveryState.QUEUED)
        await until(lambda: "hi" in words(app, "#last"))
        shown: list[Composer] = []
        show = Composer.show_news

        def count(view: Composer) -> None:
            shown.append(view)
            show(view)

        monkeypatch.setattr(Composer, "show_news", count)
        for number in range(200):
            host.change(task.id, delivery=DeliveryState.HELD, reason=f"reason {number}")
        await until(lambda: "reason 199" in words(app, "#last"))
        assert len(shown) < 100


async def test_the_last_message_may_be_to_an_agent_that_is_closed_whose_id_another_one_has():
    host = three_agents()
    host.history.put("for the one before", "done", to=CODEX, called="erin")
    async with running(host) as (app, pilot):
        await pilot.press("f2")
        await until(lambda: "✓ erin" in words(app, "#last") and "for the one before" in words(app, "#last"))
        host.message(CODEX, "for the one of now")
        await until(lambda: "codex" in words(app, "#last").splitlines()[0])
        assert "✓ erin" in words(app, "#last").splitlines()[1]


async def test_the_last_message_waits_for_an_agent_that_is_not_open():
    host = three_agents()
    state, delivery = TaskState.SUBMITTED, DeliveryState.HELD
    host.history.put("for later", to="synapse-codex-8129", called="erin", state=state, delivery=delivery)
    async with running(host) as (app, pilot):
        await pilot.press("f2")
        await until(lambda: "║ erin" in words(app, "#last") and "held (not open)" in words(app, "#last"))


async def test_all_stands_alone():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2", *"ali", "comma", *"all", "comma")
        assert chips(app) == ("all",)
        await pilot.press(*"cod", "enter")
        assert chips(app) == ("codex",)


async def test_it_says_what_each_receiver_will_do():
    host = three_agents()
    async with running(host) as (app, pilot):
        codex, gemini = (
            host.agents[CODEX],
            host.agents[next(each for each in host.agents if "gemini" in each)],
        )
        codex.become(AgentState.READY)
        gemini.become(AgentState.PROCESSING)
        await pilot.press("f2", *"ali", "comma", *"cod", "enter")
        assert words(app, "#outlook") == "alice takes it after this turn; codex is ready to take it"
        gemini.become(AgentState.WAITING, "permission: rm")
        codex.draft = "half"
        await until(lambda: "codex holds it while you write there" in words(app, "#outlook") or None)
        assert words(app, "#outlook").startswith("alice holds it until you have answered it")
        await pilot.press("tab", "5")
        assert "alice is interrupted, which denies what it asks" in words(app, "#outlook")
        assert words(app, "#meaning").startswith("stops the turn")
        way = composer(app).query_one(WayBar)
        assert way.value == 5
        assert "○ now or next  ○ when free  ● interrupt  more" in text_of(app)
        await pilot.press("right")
        assert (way.value, way.all_shown) == (5, True), "a step past the last one shows the others"
        await pilot.press("left", "left")
        assert "○ when free  ● now or next  ○ soon  ○ interrupt" in text_of(app)
        await pilot.press("escape")
        assert at_main(app)


def beside_a_shell() -> FakeHost:
    host = three_agents()
    host.add(AgentSpec("shell", name="term"))
    for each in host.agents.values():
        each.become(AgentState.READY)
    return host


async def test_who_takes_no_messages_is_not_offered():
    async with running(beside_a_shell()) as (app, pilot):
        await pilot.press("f2")
        await until(lambda: "3 agents here" in text_of(app))
        assert "term" not in [each.address for each in app.messages.recipients()]
        await pilot.press(*"all", "enter")
        assert words(app, "#outlook") == "all 3 agents here"
        await pilot.press("escape")
        app.perform("compose", "term")
        await until(lambda: "term takes no messages" in notices(app))
        assert at_main(app)


async def test_enter_takes_the_marked_receiver_and_says_so():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2", *"cod")
        await until(lambda: "Enter add" in text_of(app))
        await pilot.press("enter")
        await until(lambda: "Enter send" in text_of(app))
        await pilot.press("shift+tab")
        await until(lambda: "Enter next field" in text_of(app))
        await pilot.press("down")
        await until(lambda: "Enter add" in text_of(app))
        await pilot.press("enter")
        assert chips(app) == ("codex", "claude")
        await pilot.press("shift+tab", "enter")
        await until(lambda: "Enter send to 2" in text_of(app))
        assert chips(app) == ("codex", "claude"), "nothing was marked"


async def test_after_an_error_the_keys_are_said_again():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2", *"nobody", "enter", *"x", "enter")
        await until(lambda: "no agent answers to '@nobody'" in text_of(app))
        assert "Esc keep as draft" in text_of(app)
        assert "Esc cancels" not in text_of(app)


async def test_what_is_refused_is_kept_as_a_draft():
    host = three_agents()
    async with running(host) as (app, pilot):
        host.fail["send"] = TakesNoMessages("codex")
        app.messages.send_mention("synapse-claude-8100", CODEX, "look here", 3)
        await until(lambda: "the draft is kept" in notices(app))
        assert "codex takes no messages" in notices(app)
        del host.fail["send"]
        await pilot.press("f2")
        await until(lambda: not at_main(app))
        assert (chips(app), text(app)) == (("codex",), "look here")


async def test_a_shell_is_interrupted_without_a_message():
    host = beside_a_shell()
    shell = next(each for each in host.agents if "shell" in each)
    host.agents[shell].become(AgentState.PROCESSING)
    async with running(host) as (app, pilot):
        app.perform("interrupt", shell)
        await until(lambda: "Enter interrupts · Esc cancels" in text_of(app))
        assert "Message afterwards" not in text_of(app)
        await pilot.press("enter")
        await until(lambda: at_main(app))
        assert host.calls[-1][0] == "interrupt"


async def test_all_below_the_composer_is_dim() -> None:
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2")
        await pilot.pause()
        rows = app.screen._compositor.render_strips()
        below = [segment for segment in rows[1] if segment.text.strip()]
        assert below
        assert all(segment.style and segment.style.dim for segment in below)
        own = next(each for row in rows for each in row if "Message" in each.text)
        assert own.style
        assert not own.style.dim


async def test_the_partner_is_that_of_the_pane_in_focus():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"one", "enter")
        await until(lambda: at_main(app))
        await pilot.press("f4", "f2", "backspace", "shift+tab", "backspace", *"cla", "tab", *"two", "enter")
        await until(lambda: at_main(app))
        assert host.calls[-1] == ("send", "claude", "two", "", 3)
        await pilot.press("f2")
        assert chips(app) == ("claude",)
        await pilot.press("escape", "f4", "f4", "f2")
        assert chips(app) == ("alice",), "as last time from this pane"


async def test_what_was_sent_last_and_what_became_of_it():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"which tests", "enter")
        await until(lambda: at_main(app))
        sent = host.tasks[-1]
        await pilot.press("f2")
        await until(lambda: "which tests" in words(app, "#last"))
        assert "queued" in words(app, "#last")
        host.change(sent.id, delivery=DeliveryState.HELD, reason="you have a draft")
        await until(lambda: "held: you have a draft" in words(app, "#last"))
        host.change(sent.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await until(lambda: "done" in words(app, "#last"))


async def test_esc_keeps_the_draft_and_says_so():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"later", "escape")
        assert "the draft is kept" in app.main.status_bar.notice


async def test_files_are_completed(tmp_path):
    (tmp_path / "src" / "cart").mkdir(parents=True)
    for name in ("src/cart/totals.py", "src/cart/tax.py", "README.md", ".hidden"):
        (tmp_path / name).touch()
    assert files_in(tmp_path, "") == ["README.md", "src/"]
    assert files_in(tmp_path, ".") == [".hidden"]
    assert files_in(tmp_path, "src/cart/t") == ["src/cart/tax.py", "src/cart/totals.py"]
    assert files_in(tmp_path, "none/") == []
    async with running(three_agents()) as (app, pilot):
        app.messages.folder = tmp_path
        await pilot.press("f2", *"ali", "tab", *"see @s")
        files = composer(app).query_one("#files")
        await until(lambda: files.display)
        await until(lambda: "Enter insert  ↑↓ choose  Esc close the list" in text_of(app))
        await pilot.press("tab")
        await until(lambda: text(app) == "see @src/")
        await until(lambda: "src/cart/" in text_of(app))
        await pilot.press("enter")
        await until(lambda: "totals.py" in text_of(app))
        await pilot.press("down", "enter")
        await until(lambda: text(app) == "see src/cart/totals.py ")
        assert not files.display
        await pilot.press("@")
        await until(lambda: files.display)
        await pilot.press("escape")
        await until(lambda: not files.display)
        assert isinstance(app.screen, Composer), "Esc has closed the list only"
        await until(lambda: "Esc keep as draft" in text_of(app))


async def test_the_last_messages_follow_the_names_of_agents():
    host = three_agents()
    host.history.put("look here", "done", to=GEMINI, called="alice")
    async with running(host) as (app, pilot):
        for name in ("zoe", "eve"):
            host.rename(GEMINI, name)
            await until(lambda: app.label(GEMINI) == name)  # noqa: B023
            await pilot.press("f2")
            await until(lambda: f"✓ {name}  look here" in words(app, "#last"))  # noqa: B023
            await pilot.press("escape")
            await until(lambda: at_main(app))


async def test_a_click_on_the_hint_of_files_begins_a_word(tmp_path):
    (tmp_path / "README.md").touch()
    async with running(three_agents()) as (app, pilot):
        app.messages.folder = tmp_path
        await pilot.press("f2", *"ali", "tab", *"see")
        await until(lambda: text(app) == "see")
        await composer(app).run_action("file")
        assert text(app) == "see @"
        await until(lambda: "README.md" in text_of(app))


async def test_the_hints_are_those_of_the_field_in_focus():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2")
        await until(lambda: composer(app).query_one("#to").has_focus and "Enter add" in text_of(app))
        assert "@ file" not in text_of(app)
        assert "Ctrl+J" not in text_of(app)
        await pilot.press(*"ali", "tab")
        await until(lambda: "@ file" in text_of(app) and "Ctrl+J new line" in text_of(app))
        await pilot.press("tab")
        assert composer(app).query_one(WayBar).has_focus
        await until(lambda: "Ctrl+J" not in text_of(app))
        assert "@ file" in text_of(app), "what is typed at How goes on in the text"


@pytest.mark.parametrize("there", [True, False])
async def test_templates(tmp_path, there):
    async with running(three_agents()) as (app, pilot):
        app.messages.templates = tmp_path
        if there:
            (tmp_path / "review.md").write_text("Review the last commit.\n")
        await pilot.press("f2", *"ali", "tab", "ctrl+t")
        if not there:
            await until(lambda: "no templates yet" in text_of(app))
            (tmp_path / "review.md").write_text("Review the last commit.\n")
            await pilot.press("ctrl+t")
        await until(lambda: isinstance(app.screen, Pick) and app.screen.ready)
        assert "no templates yet" not in text_of(app)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, Composer))
        assert text(app) == "Review the last commit."


async def test_it_says_what_is_kept_and_keeps_it():
    """A message sent again and left unchanged is no draft; a kept draft stays one."""
    host = three_agents()
    again = Draft(("codex",), "look once more")
    async with running(host) as (app, pilot):
        app.messages.compose(again, app.notice)
        await until(lambda: "Esc close" in text_of(app))
        await pilot.press("escape")
        await until(lambda: at_main(app))
        assert not app.main.status_bar.notice
        app.messages.compose(again, app.notice)
        await until(lambda: "Esc close" in text_of(app))
        await pilot.press(*" please")
        await until(lambda: "Esc keep as draft" in text_of(app))
        await pilot.press("escape")
        await until(lambda: "the draft is kept" in app.main.status_bar.notice)
        await pilot.press("f2")
        await until(lambda: "Esc keep as draft" in text_of(app))


async def test_what_a_receiver_will_do_holds_for_errors_and_in_a_turn():
    host = three_agents()
    host.agents[CODEX].become(AgentState.ERROR, "the model does not answer")
    host.agents[GEMINI].become(AgentState.PROCESSING)
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "comma", *"cod", "enter")
        said = "alice takes it after this turn; codex takes it when its composer is empty"
        assert words(app, "#outlook") == said
        await pilot.press("tab", "4")
        assert words(app, "#outlook").startswith("alice takes it in this turn if it can")
        host.agents[GEMINI].outbox.waiting.append("a message")
        await pilot.press("3")
        await until(lambda: words(app, "#outlook").startswith("alice takes it after 1 message;"))
        await pilot.press("4")
        await until(lambda: words(app, "#outlook").startswith("alice takes it in this turn if it can"))


async def test_it_says_which_receiver_refuses_and_does_not_offer_to_send():
    host = three_agents()
    host.agents[CODEX].become(AgentState.READY)
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"cod", "comma", *"ali", "enter", *"hi")
        await until(lambda: "Enter send to 2" in text_of(app))
        await host.close(GEMINI)
        await until(
            lambda: words(app, "#outlook") == "codex is ready to take it; no agent answers to '@alice'"
        )
        await until(lambda: "send to 2" not in text_of(app))
        await pilot.press("enter")
        assert not [call for call in host.calls if call[0] == "send"]
        await pilot.press("shift+tab", "backspace", "enter")
        await until(lambda: "Enter send" in text_of(app))


async def test_an_interrupt_of_an_agent_at_rest_is_a_message():
    host = three_agents()
    host.agents[CODEX].become(AgentState.READY)
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"cod", "enter", "tab", "5")
        assert words(app, "#outlook") == "codex is ready to take it"


async def test_what_was_canceled_was_not_answered():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", *"which tests", "enter")
        await until(lambda: at_main(app))
        sent = host.tasks[-1]
        answer = Artifact("so far")
        host.change(sent.id, delivery=DeliveryState.CANCELED, state=TaskState.CANCELED, artifacts=(answer,))
        await pilot.press("f2")
        await until(lambda: "canceled" in words(app, "#last"))
        assert "answered" not in words(app, "#last")


async def test_an_error_goes_when_what_it_is_about_is_changed():
    async with running(three_agents()) as (app, pilot):
        await pilot.press("f2", *"ali", "tab", "enter")
        await until(lambda: "the message is empty" in text_of(app))
        await pilot.press(*"now")
        await until(lambda: "the message is empty" not in text_of(app))


async def test_below_a_dialog_no_keys_are_offered():
    async with running(three_agents()) as (app, pilot):
        await until(lambda: "F8 interrupt" in text_of(app).splitlines()[-1])
        app.perform("explain_state")
        await until(lambda: "F8" not in text_of(app).splitlines()[-1])
        await pilot.press("escape")
        await until(lambda: "F8 interrupt" in text_of(app).splitlines()[-1])
