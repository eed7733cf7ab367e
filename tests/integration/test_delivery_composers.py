"""Messages into composers of every shape, in a real PTY: by a profile's rules, and without any."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.profile import Profile, StateRule
from synapse_tui.agents.profiles.reader import read_profile
from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from tests.integration.composer_agent import Shape
from tests.integration.session_rig import Rig, open_rig, until
from tests.waiting import at_once

PROGRAM = Path(__file__).with_name("composer_agent.py")
LINES = "first line\n\n  - indented\nlast line"
LONG = "\n".join(
    f"line {number} of a message that is longer than the composer is high" for number in range(30)
)

BOX = "composer: {above: '^╭─', prompt: '^│ > ', row: '^│ (  )?', below: '^╰─', right: ' *│ *$'}"
HINTS = """composer:
  {above: '^─', prompt: '^> ', below: '^─', placeholder: {dim: false, text: '^(Ask anything|Try|What next)'}}
"""
SHAPES = {
    "minimum height": (Shape("box", min_rows=4), BOX),
    "rows above it": (Shape("box", pad_above=2, pad_below=1), BOX),
    "continuation prompts": (
        Shape(prompt="> ", more=". "), "composer: {prompt: '^> ', row: '^\\. '}"
    ),
    "the same prompt on every row": (
        Shape(prompt="diff> ", more="diff> "), "composer: {prompt: '^diff> ', row: '^diff> '}"
    ),
    "the same prompt, not said so": (Shape(prompt="diff> ", more="diff> "), "composer: {prompt: '^diff> '}"),
    "rotating hints": (
        Shape("lines", hints=["Ask anything", "Try /help", "What next?"], hint_style=""),
        HINTS,
    ),
    "a composer that moves": (
        Shape("lines", moves=True), "composer: {above: '^─', prompt: '^> ', below: '^─', footer: 30}"
    ),
    "auto: a box": (Shape("box"), "composer: auto"),
    "auto: a box of a minimum height": (
        Shape("box", min_rows=5, pad_above=1, hints=["Ask", "Try"]), "composer: auto"
    ),
    "auto: two lines": (Shape("lines", prompt="❯ ", hints=["Ask"]), "composer: auto"),
    "auto: a bar": (Shape("bar", prompt="", more=""), "composer: auto"),
    "auto: a bare prompt": (Shape(prompt="> "), "composer: auto"),
    "auto: a prompt on every row": (Shape(prompt="diff> ", more="diff> "), "composer: auto"),
    "auto: a line editor": (Shape(prompt="> ", more=""), "composer: auto"),
    "auto: a cursor that it draws": (Shape("box", drawn_cursor=True), "composer: auto"),
}  # fmt: skip


def profile(shape: Shape, rules: str, more: str = "") -> Profile:
    source = f"""
command: '{sys.executable}'
args: ['{PROGRAM}', '{shape.json.replace("'", "''")}']
startup: {{delay: 0.2, composer: true}}
submit: {{pause: 20, verify: 1}}
instructions: false
states: [{{state: ready, status: [idle, done], composer: true, dialog: false}}]
{rules}
{more}
"""
    found, faults = read_profile(Path("shape.yaml"), source.encode(), "user", os.environ)
    assert found is not None, faults
    return replace(found, name="dummy")


async def submits(rig: Rig, text: str) -> None:
    task = rig.send(text)
    assert (await rig.done(task)).state is TaskState.COMPLETED
    assert rig.submitted[-1] == text


@pytest.mark.slow
async def test_messages_drafts_and_dialogs(tmp_path):
    for name in SHAPES:
        (tmp_path / name).mkdir()
    await at_once(SHAPES, lambda name: _messages_drafts_and_dialogs(tmp_path / name, name))


async def _messages_drafts_and_dialogs(folder: Path, name: str) -> None:
    async with open_rig(folder, profile=profile(*SHAPES[name]), size=(90, 24)) as rig:
        for text in ("one line", LINES, LONG):
            await submits(rig, text)
        rig.type("mine")
        await until(lambda: rig.session.reading().draft.strip() == "mine", rig.session.reading)
        task = rig.send("not now")
        await rig.delivery(task, DeliveryState.HELD, "you have a draft")
        rig.type("\r")
        await rig.done(task)
        assert rig.submitted == ["one line", LINES, LONG, "mine", "not now"]
        rig.send("%%ask%%")
        await rig.state(AgentState.WAITING)
        task = rig.send("after it")
        await rig.delivery(task, DeliveryState.HELD, "permission dialog open")
        await until(lambda: rig.session.reading().dialog, rig.session.reading)
        await rig.answer("\x1b")
        await rig.done(task)
        assert [record["approved"] for record in rig.records("answer")] == [False]
        assert rig.submitted[-1] == "after it"
        task = rig.send(f"%%deaf%%\n{LINES}")
        await rig.delivery(task, DeliveryState.HELD, "agent did not take Enter")
        await rig.session.cancel(task.id)
        await until(lambda: rig.session.reading().empty, rig.session.reading)
        assert rig.submitted[-1] == "after it"


async def test_the_echo_of_a_message_behind_a_prompt_with_a_word_is_no_answer(tmp_path):
    shape = Shape(prompt="User: ", more="      ", echoes=True)
    async with open_rig(tmp_path, profile=profile(shape, "composer: auto"), size=(90, 24)) as rig:
        text = "a first line of several words\nand a second one"
        done = await rig.done(rig.send(text))
        (answer,) = done.artifacts
        assert re.fullmatch(r"You said \d+ characters\.", answer.text)


async def test_the_normal_mode_of_vi_is_left_or_holds(tmp_path):
    rules = "composer: {above: '^─', prompt: '^> ', below: '^─', vi: {normal: '^-- NORMAL --'%s}}"
    async with open_rig(tmp_path, profile=profile(Shape("lines", vi=True), rules % "")) as rig:
        task = rig.send("held")
        await rig.delivery(task, DeliveryState.HELD, "composer in vi's normal mode")
        rig.type("i")
        await rig.done(task)
        assert (rig.submitted, rig.records("command")) == (["held"], [{"event": "command", "keys": "i"}])
    rig.log_file.unlink()
    async with open_rig(tmp_path, profile=profile(Shape("lines", vi=True), rules % ", keys: [i]")) as rig:
        for text in ("one line", LINES, LONG):
            await submits(rig, text)
            rig.type("\x1b")
            await until(lambda: rig.session.reading().vi_normal, rig.session.reading)
        assert {record["keys"] for record in rig.records("command")} == {"i"}


# -- what is left over

WRONG = "composer: {prompt: '^diff> ', row: '^  '}"  # each row begins with the prompt
PROMPTS = Shape(prompt="diff> ", more="diff> ")


@pytest.fixture
def quick(monkeypatch):
    """Give up early, and at the first attempt, until it is undone."""
    monkeypatch.setattr("synapse_tui.agents.delivery.typist.APPEAR", 0.8)
    monkeypatch.setattr("synapse_tui.agents.delivery.deliverer.ATTEMPTS", 1)
    return monkeypatch


async def test_several_lines_that_cannot_be_proved_are_taken_back(tmp_path, quick):
    async with open_rig(tmp_path, profile=profile(PROMPTS, WRONG), size=(90, 24)) as rig:
        task = rig.send(LINES)
        await rig.delivery(task, DeliveryState.HELD, "the composer does not show the message")
        await until(lambda: rig.session.reading().empty, rig.session.reading)
        quick.undo()
        await submits(rig, "one line")
        assert rig.submitted == ["one line"]


async def test_typing_that_counts_as_work_does_not_repeat_a_failure_for_ever(tmp_path, quick):
    """Without better signs an agent works while its screen changes, also by what we type."""
    quiet = StateRule("rests", AgentState.READY, composer=True, dialog=False, silence=0.3)
    shown = replace(
        profile(PROMPTS, WRONG),
        states=(quiet, StateRule("flows", AgentState.PROCESSING, active=0.3)),
        ignores=frozenset({"status"}),
    )
    async with open_rig(tmp_path, profile=shown, size=(90, 24)) as rig:
        task = rig.send(LINES)
        await until(lambda: rig.session.outbox.is_parked(task.id), rig.session.recent_text)
        assert task.id in rig.session.outbox


async def test_a_message_that_is_left_is_taken_back_after_a_dialog(tmp_path, quick):
    shape = replace(PROMPTS, asks_at_paste=1)
    async with open_rig(tmp_path, profile=profile(shape, WRONG), size=(90, 24)) as rig:
        task = rig.send(LINES)
        await rig.delivery(task, DeliveryState.HELD, "permission dialog open")
        await rig.answer("\x1b")
        await until(lambda: rig.session.reading().empty, rig.session.reading)
        await until(lambda: rig.session.outbox.is_parked(task.id), rig.session.recent_text)
        quick.undo()
        await submits(rig, "one line")


async def test_an_enter_that_is_never_taken_does_not_block_the_pane(tmp_path, monkeypatch):
    monkeypatch.setattr("synapse_tui.agents.delivery.deliverer.LEFT_FOR", 1.0)
    async with open_rig(tmp_path, profile=profile(Shape("box", deaf=2), "composer: auto")) as rig:
        task = await rig.delivery(rig.send(LINES), DeliveryState.HELD, "agent did not take Enter")
        await rig.delivery(task, DeliveryState.HELD, "agent did not take Enter; the text was taken back")
        await submits(rig, "after it")
        assert rig.submitted == ["after it"]
        rig.session.outbox.release(task.id)
        rig.session.console.wake()
        await rig.done(task)
        assert rig.submitted == ["after it", LINES]


async def test_what_the_user_types_behind_a_message_that_is_left_is_not_taken_back(tmp_path, monkeypatch):
    monkeypatch.setattr("synapse_tui.agents.delivery.deliverer.LEFT_FOR", 1.0)
    async with open_rig(tmp_path, profile=profile(Shape("box", deaf=2), "composer: auto")) as rig:
        await rig.delivery(rig.send("our text"), DeliveryState.HELD, "agent did not take Enter")
        rig.type(" and mine")
        await until(lambda: rig.session.reading().draft.endswith("and mine"), rig.session.reading)
        task = rig.send("later")
        await rig.delivery(task, DeliveryState.HELD, "you have a draft")
        since = rig.session.console.now()
        await until(lambda: rig.session.console.now() - since > 2.5)
        assert rig.session.reading().draft.endswith("our text and mine")
        assert rig.submitted == []


@pytest.mark.parametrize("ctrl_u", [True, False])
async def test_a_composer_is_emptied_by_its_clear_keys_or_by_backspace(tmp_path, ctrl_u):
    shape = Shape("box", ctrl_u=ctrl_u)
    async with open_rig(tmp_path, profile=profile(shape, "composer: auto")) as rig:
        await rig.ready()
        rig.type("\x1b[200~one\n\ntwo\x1b[201~")
        await rig.draft("one\n\ntwo")
        assert await rig.session.delivery.clear_composer()
        assert rig.session.reading().empty
