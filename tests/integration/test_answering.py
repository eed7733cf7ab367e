"""Answers that a person gives to a dialog away from its pane, typed into the dummy agent in a real PTY."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

import synapse_tui
from synapse_tui.agents.delivery import answering
from synapse_tui.agents.delivery.answering import AnswerOutcome
from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.agents.profiles.profile import DialogRule
from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from tests.integration.session_rig import Rig, open_rig, with_profile
from tests.waiting import until

NO = "No, and tell the agent what to do instead (esc)"


@pytest_asyncio.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        await opened.ready()
        yield opened


async def asked(rig: Rig, text: str = "%%perm:make all%%", *, old: bool = True) -> AgentDialog:
    """Let the agent ask, and return its dialog; by default once it can be answered."""
    rig.send(text)
    await rig.state(AgentState.WAITING)
    return await shown(rig, old=old)


async def shown(rig: Rig, *, old: bool = True, but: int = 0) -> AgentDialog:
    """Return the dialog on the screen, another one than that of the number `but`."""

    def found() -> AgentDialog | None:
        dialog = rig.session.dialog
        if dialog is not None and dialog.serial == but:
            return None
        age = rig.session.console.now() - dialog.since if dialog is not None else 0.0
        return dialog if not old or age >= answering.LOOK_FIRST else None

    dialog = await until(found, "a dialog")
    assert isinstance(dialog, AgentDialog)
    return dialog


async def answer(rig: Rig, dialog: AgentDialog, words: str) -> AnswerOutcome:
    return await rig.session.answer_dialog(dialog.serial, dialog.fingerprint, words)


def answers(rig: Rig) -> list[str]:
    return [record["answer"] for record in rig.records("dialog-answer")]


def keys(rig: Rig) -> list[str]:
    return [record["key"] for record in rig.records("key") if record.get("dialog")]


async def test_what_is_shown_of_a_dialog(rig: Rig) -> None:
    dialog = await asked(rig, "%%perm:rm -rf build%%")
    assert dialog.asks == "wants to run rm -rf build"
    assert [(option.number, option.allows_once, option.denies) for option in dialog.options] == [
        (1, True, False),
        (2, False, False),
        (3, False, True),
    ]
    assert dialog.options[2].words == NO
    assert dialog.marked == 0
    drawn = [line.text for line in dialog.lines]
    assert drawn[1].strip() == "Bash command"
    assert drawn[-1].strip() == "Esc to cancel · Enter to select"


async def test_the_lines_stay_as_they_were_seen(rig: Rig) -> None:
    dialog = await asked(rig)
    drawn = [line.text for line in dialog.lines]
    await rig.answer("\x1b")
    await rig.ready()
    assert [line.text for line in dialog.lines] == drawn


async def test_yes_is_typed_and_reported_once_the_dialog_is_gone(rig: Rig) -> None:
    dialog = await asked(rig)
    assert await answer(rig, dialog, "Yes") == AnswerOutcome(closed=True, answered=True)
    assert rig.session.dialog is None
    assert answers(rig) == ["Yes"]
    await rig.ready()


async def test_an_option_is_found_by_its_words_and_reached_with_the_arrows(rig: Rig) -> None:
    dialog = await asked(rig, "%%ask:Which one?|red|green|blue%%")
    assert (await answer(rig, dialog, "blue")).closed
    assert answers(rig) == ["blue"]
    assert keys(rig) == ["down", "down", "enter"]


async def test_no_is_answered_by_the_key_that_its_words_name(rig: Rig) -> None:
    dialog = await asked(rig)
    assert (await answer(rig, dialog, NO)).closed
    assert answers(rig) == ["denied"]
    assert keys(rig) == ["escape"]
    await rig.ready()


@pytest.mark.parametrize("way", ["board", "keyboard"])
async def test_a_turn_that_goes_on_after_its_dialog_was_denied_is_not_interrupted(rig: Rig, way: str) -> None:
    task = rig.send("%%perm:make all%% now")
    await rig.state(AgentState.WAITING)
    dialog = await shown(rig)
    if way == "board":
        assert (await answer(rig, dialog, NO)).closed
    else:
        await until(lambda: not rig.session.keyboard.guard.answers_in(rig.session.console.now()), "keys")
        rig.type("\x1b")
    done = await rig.done(task)
    assert answers(rig) == ["denied"]
    assert (done.state, done.reason) == (TaskState.COMPLETED, "")


async def test_a_dialog_that_just_appeared_is_refused(rig: Rig) -> None:
    dialog = await asked(rig, old=False)
    assert await answer(rig, dialog, "Yes") == AnswerOutcome(closed=False, reason=answering.NEW)
    assert not keys(rig)
    assert (await answer(rig, await shown(rig), "Yes")).closed


async def test_another_dialog_under_the_finger_is_refused(rig: Rig) -> None:
    first = await asked(rig)
    rig.session.console.signal(signal.SIGUSR1)  # it asks again, right after
    await until(lambda: len(rig.records("dialog-open")) == 1, "the first question")
    await rig.answer("1")
    await shown(rig, but=first.serial)
    assert await answer(rig, first, "Yes") == AnswerOutcome(closed=False, reason=answering.CHANGED)
    assert len(answers(rig)) == 1
    assert rig.session.dialog is not None


async def test_a_mark_that_was_moved_in_the_pane_is_refused(rig: Rig) -> None:
    dialog = await asked(rig)
    await rig.answer("\x1b[B")
    await until(lambda: rig.session.dialog and rig.session.dialog.marked == 1, "the mark")
    outcome = await answer(rig, dialog, "Yes")
    assert outcome.reason == answering.CHANGED
    assert keys(rig) == ["down"]


async def test_a_person_who_types_in_the_pane_wins(rig: Rig) -> None:
    await asked(rig)
    await rig.answer("\x1b[B")
    await until(lambda: rig.session.dialog and rig.session.dialog.marked == 1, "the mark")
    assert (await answer(rig, await shown(rig), "Yes")).reason == answering.TYPES
    assert not answers(rig)


async def test_a_key_in_the_pane_while_the_answer_is_on_its_way_ends_it(rig: Rig) -> None:
    dialog = await asked(rig, "%%ask:Which one?|red|green|yellow|blue%%")
    await until(rig.answers, "a dialog that takes keys")
    answered = asyncio.ensure_future(answer(rig, dialog, "blue"))
    await until(lambda: rig.session.dialog and rig.session.dialog.marked == 1, "the first arrow")
    rig.type("\x1b[Z")  # a key that this dialog ignores
    assert (await answered).reason == answering.TYPES
    assert not answers(rig)


async def test_a_dialog_that_is_gone_is_refused_and_the_composer_stays_empty(rig: Rig) -> None:
    dialog = await asked(rig)
    await rig.answer("\x1b")
    await rig.ready()
    assert await answer(rig, dialog, "Yes") == AnswerOutcome(closed=False, reason=answering.GONE)
    assert rig.session.reading().empty
    assert answers(rig) == ["denied"]


async def test_words_that_no_option_has_are_refused(rig: Rig) -> None:
    dialog = await asked(rig)
    assert (await answer(rig, dialog, "Yes, and everything else")).reason == answering.CHANGED
    assert not keys(rig)


async def test_one_press_types_one_answer(rig: Rig) -> None:
    dialog = await asked(rig)
    outcomes = await asyncio.gather(*(answer(rig, dialog, "Yes") for _ in range(3)))
    assert [outcome.closed for outcome in outcomes].count(True) == 1
    assert {outcome.reason for outcome in outcomes if not outcome.closed} <= {
        answering.BUSY,
        answering.GONE,
        answering.CHANGED,
    }
    assert keys(rig) == ["enter"]
    await rig.ready()
    assert len(answers(rig)) == 1


async def test_the_next_question_of_the_same_words_is_another_one(rig: Rig) -> None:
    first = await asked(rig)
    rig.session.console.signal(signal.SIGUSR1)
    rig.session.console.signal(signal.SIGUSR1)
    assert (await answer(rig, first, "Yes")).closed
    second = await shown(rig, but=first.serial)
    assert second.asks == "wants to run touch surprise"
    assert (await answer(rig, first, "Yes")).reason == answering.CHANGED
    assert (await answer(rig, second, "Yes")).answered


async def test_a_message_that_waits_is_typed_after_the_answer(rig: Rig) -> None:
    dialog = await asked(rig)
    waiting = rig.send("hello")
    assert (await answer(rig, dialog, "Yes")).closed
    await rig.delivery(waiting, DeliveryState.DONE)
    assert rig.submitted[-1] == "hello"


async def test_a_message_that_is_being_typed_is_not_disturbed(rig: Rig) -> None:
    dialog = await asked(rig)
    async with rig.session.delivery.busy:  # as while a message is typed
        assert (await answer(rig, dialog, "Yes")).reason == answering.BUSY
    assert not keys(rig)


async def test_a_question_has_no_yes_and_no_but_can_be_answered(rig: Rig) -> None:
    dialog = await asked(rig, "%%ask:Which one?|Yes|No|blue%%")
    assert dialog.asks == "asks: Which one?"
    assert not any(option.allows_once or option.denies for option in dialog.options)
    assert (await answer(rig, dialog, "blue")).closed
    assert answers(rig) == ["blue"]


@pytest.mark.parametrize(
    ("option", "key", "taken"), [("cancel", "escape", "denied"), ("select", "enter", "Yes")]
)
async def test_an_option_with_a_key_of_its_own_is_answered_by_it(
    tmp_path: Path, option: str, key: str, taken: str
) -> None:
    named = DialogRule(
        "keys", (re.compile("(?m)^ Esc to cancel"),), "question", keys=re.compile("(?m)^ (Esc .*)")
    )
    async with open_rig(tmp_path, profile=with_profile(dialogs=(named,))) as rig:
        await rig.ready()
        dialog = await asked(rig)
        assert dialog.marked is None
        named_keys = [(option.words, option.key) for option in dialog.options]
        assert named_keys == [("cancel", "Esc"), ("select", "Enter")]
        assert (await answer(rig, dialog, option)).closed
        assert keys(rig) == [key]
        assert answers(rig) == [taken]


async def test_an_agent_that_does_not_take_the_key_is_reported_as_it_is(rig: Rig) -> None:
    dialog = await asked(rig)
    rig.session.console.signal(signal.SIGSTOP)
    try:
        outcome = await answer(rig, dialog, "Yes")
    finally:
        rig.session.console.signal(signal.SIGCONT)
    assert not outcome.closed
    assert outcome.reason
    assert rig.session.dialog is not None


@pytest.mark.parametrize("late", [False, True], ids=["before the key", "right after it"])
async def test_a_dialog_that_is_replaced_at_the_last_moment_is_not_answered(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    await asked(rig, "%%ask:Which one?|No|Yes|Yes, and more%%")
    await rig.answer("\x1b[B")
    await until(lambda: rig.session.dialog and rig.session.dialog.marked == 1, "the mark")
    await until(
        lambda: rig.session.console.now() - rig.session.keyboard.last_key > 1, "a person who types no more"
    )
    dialog = await shown(rig)
    rig.session.console.signal(signal.SIGUSR1)  # it asks for a permission next
    press = rig.session.console.press

    async def replaced() -> None:
        rig.session.console.write(b"1")  # another hand than the keyboard's
        await shown(rig, old=False, but=dialog.serial)

    async def racing(key: bytes, look: Callable[[], bool], limit: float) -> bool | None:
        if not late:
            await replaced()
        seen = await press(key, look, limit)
        if late:
            await replaced()
        return seen

    monkeypatch.setattr(rig.session.console, "press", racing)
    outcome = await answer(rig, dialog, "Yes, and more" if late else "Yes")
    assert outcome.reason == answering.CHANGED
    await until(lambda: answers(rig), "the other hand")
    monkeypatch.undo()
    other = await shown(rig, but=dialog.serial)
    assert other.asks == "wants to run touch surprise"
    assert answers(rig) == ["No"]


async def test_a_dialog_that_stays_open_is_reported_as_open(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = await asked(rig)
    monkeypatch.setattr(answering, "key_bytes", lambda _name: b"\x1b[Z")  # a key that it ignores
    monkeypatch.setattr(answering, "CLOSES", 0.3)
    outcome = await answer(rig, dialog, "Yes")
    assert outcome == AnswerOutcome(closed=False, answered=True, reason=answering.STILL_OPEN)
    assert (await answer(rig, dialog, "Yes")).reason == answering.CHANGED  # it has to be looked at again
    assert not answers(rig)


def test_only_the_application_answers() -> None:
    """No route, command or hook leads to an answer: agents reach those."""
    package = Path(synapse_tui.__file__).parent
    callers = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if "answer_dialog" in path.read_text(encoding="utf-8")
    }
    assert callers <= {"agents", "host", "ui", "widgets"}
