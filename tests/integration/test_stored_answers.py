"""Answers read from the screen: what is stored is what the agent printed, whatever the size of its pane."""

from __future__ import annotations

from pathlib import Path

from synapse_tui.core.model import AgentState, Task
from synapse_tui.dummy.script import WIDE, answer
from tests.integration.session_rig import Rig, open_rig
from tests.waiting import until

SMALL = (39, 8)  # a pane of ten in a window of 120x40
SIZES = [(80, 24), (60, 20), (44, 14), (30, 8), (200, 60), (80, 24), (44, 14)]


def words(text: str) -> str:
    """The text without how it is wrapped: a character of two cells that does not fit begins the next row."""
    return "".join(text.split())


async def printed(rig: Rig, task: Task, before: str = "") -> None:
    """Wait for the end of a task, and compare its answer with what the agent printed."""
    await rig.done(task)
    asked = [record["text"] for record in rig.records("submit")]
    said = REPLY if not before else answer(asked[-1], turn=len(asked) - 1)
    (artifact,) = rig.session.tasks.get(task.id).artifacts
    assert words(artifact.text) == words(before + said)
    assert not artifact.truncated


async def resized(rig: Rig, size: tuple[int, int]) -> None:
    """Change the size, and wait until the agent has drawn itself in it."""
    count = len(rig.records("resize"))
    rig.session.resize(*size)
    await until(lambda: len(rig.records("resize")) > count, "the resize")


REPLY = "It is done. " + "and so on " * 9 + "to the end, which is here."
PERMITTED = "Bash(make all)⎿allowed (and not run: this is a rehearsal)"


async def test_in_a_small_pane_each_answer_is_whole(tmp_path: Path) -> None:
    async with open_rig(tmp_path, size=SMALL) as rig:
        await rig.ready()
        for _ in range(4):
            task = rig.send("%%perm:make all%%")
            await rig.state(AgentState.WAITING)
            await rig.answer("1")
            await printed(rig, task, PERMITTED)


async def test_what_is_printed_once_more_in_another_size_is_stored_once(tmp_path: Path) -> None:
    async with open_rig(tmp_path, size=SMALL) as rig:
        await rig.ready()
        for sizes in (SIZES, [SMALL, *SIZES[:3]], [(200, 60), SMALL]):
            task = rig.send("%%perm:make all%%")
            await rig.state(AgentState.WAITING)
            for size in sizes:
                await resized(rig, size)
            await rig.answer("1")
            await printed(rig, task, PERMITTED)


async def test_a_size_that_changes_while_the_answer_is_printed(tmp_path: Path) -> None:
    async with open_rig(tmp_path, size=SMALL) as rig:
        await rig.ready()
        for size in SIZES:
            task = rig.send("%%wide%% and this is what I ask for")
            await rig.state(AgentState.PROCESSING)
            rig.session.resize(*size)  # the agent learns of it while it prints
            await printed(rig, task, WIDE)


async def test_of_messages_that_end_alike_each_has_its_own_answer(tmp_path: Path) -> None:
    """A draft of several rows scrolls a full screen, on which earlier messages stand."""
    asked = "{}, then run all the tests and report back in one sentence"
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        for size in ((60, 20), (80, 24)):
            for words_of_it in ("parser delta done", "token user build retry strings cache alpha", "cart"):
                await resized(rig, SMALL)
                await resized(rig, size)
                await printed(rig, rig.send(asked.format(words_of_it)), " ")


async def test_sizes_that_change_after_the_answer_do_not_change_it(tmp_path: Path) -> None:
    async with open_rig(tmp_path, size=SMALL) as rig:
        await rig.ready()
        for size in SIZES[:3] * 2:
            task = rig.send("%%wide%% and this is what I ask for")
            await printed(rig, task, WIDE)
            before = rig.session.tasks.get(task.id).artifacts
            await resized(rig, size)
            await resized(rig, SMALL)
            assert rig.session.tasks.get(task.id).artifacts == before


async def test_on_the_alternate_screen_too(tmp_path: Path) -> None:
    async with open_rig(tmp_path, "--alt-screen", "--reply", REPLY, size=(60, 24)) as rig:
        await rig.ready()
        for size in ((26, 24), (60, 24), (34, 22)):
            task = rig.send("tell me")
            await until(
                lambda: "so on" in rig.session.console.screen_text().rpartition("tell me")[2], "its middle"
            )
            await resized(rig, size)
            await printed(rig, task)
