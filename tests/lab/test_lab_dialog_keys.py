"""A person who types on as the real agents open dialogs, offline: no letter reaches a dialog."""

from __future__ import annotations

import asyncio
import os
import random
import time
from itertools import cycle

import pytest

from synapse_tui.agents.keyboard import DELIBERATE
from synapse_tui.core.model import AgentState
from tests.lab.lab_kit import LOG, SLOW, Lab, open_lab
from tests.lab.test_lab_answering import READABLE, ask

TRIES = int(os.environ.get("SYNAPSE_LAB_TRIES", "5"))
LETTERS = "yan1p2d"  # many of them answer a dialog
GAP = 0.05  # seconds between two letters of a quick typist
MORE = 6  # letters after the dialog is seen
FRAME = 0.1  # seconds in which an agent that has opened a dialog draws it
LONGEST = 6.0  # seconds that an agent may wait for a pause before it opens a dialog

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(120 + 60 * TRIES),
    pytest.mark.skipif(not LOG, reason="needs real agents: python -m tests.lab.run"),
]


class Typist:
    """Types letters so that one comes in the moment in which a dialog opens.

    Some agents open their dialogs at once, others once nothing was typed for some time. That is found out, so
    that the next letter comes about as it is over.
    """

    def __init__(self, lab: Lab, chance: random.Random) -> None:
        self._lab = lab
        self._chance = chance
        self._pause = 0.0  # after which the dialog opens
        self._typed = ""
        self._letters = cycle(LETTERS)
        self.close = 0  # dialogs that were seen within `GAP` after or before a letter
        self.paused = False  # whether a busy machine made a pause after which a key is meant for the dialog
        self._typed_at = 0.0

    async def draft(self) -> str:
        """Type a draft until a dialog is seen, and some letters more; return it."""
        self._typed, self.paused = "", False
        pause, begun = self._pause, time.monotonic()
        while not self._asked():
            self._type()
            waits = self._lab.session.report.state is AgentState.WAITING
            late = time.monotonic() - begun > SLOW or pause > LONGEST
            assert not late, f"no dialog for {self._typed}\n{self._lab.screen()}"
            if not waits:
                await self._rest(GAP)
            elif await self._rest(pause + self._chance.uniform(-2 * GAP, GAP)):
                self._pause = pause - GAP
            else:
                pause += GAP
        for _ in range(MORE):
            self._type()
            await asyncio.sleep(GAP)
        return self._typed

    def _asked(self) -> bool:
        return self._lab.session.reading().dialog is not None

    def _type(self) -> None:
        now = time.monotonic()
        self.paused = self.paused or (self._asked() and now - self._typed_at >= DELIBERATE)
        self._typed_at = now
        letter = next(self._letters)
        self._typed += letter
        self._lab.type(letter)

    async def _rest(self, seconds: float) -> bool:
        """Rest for so long, or until a dialog was seen for less than a person needs to read it."""
        due = time.monotonic() + max(seconds, GAP)
        while (now := time.monotonic()) < due:
            if self._asked():
                self.close += due - now < GAP
                await asyncio.sleep(min(due - now, GAP))
                return True
            await asyncio.sleep(0.001)
        return False


def draft(lab: Lab) -> str:
    """The draft without its wraps, where some agents draw a blank."""
    return "".join(lab.session.reading().draft.split())


@pytest.mark.parametrize("agent", READABLE)
async def test_a_draft_that_is_typed_as_a_dialog_opens_stays_whole(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        guard = lab.session.keyboard.guard
        typist = Typist(lab, random.Random(1))
        lost: list[tuple[str, str]] = []
        early: list[tuple[str, str]] = []
        for number in range(TRIES):
            task, file = ask(lab, f"typing-{number}")
            await lab.until(
                lambda: lab.session.report.state in (AgentState.PROCESSING, AgentState.WAITING), "its turn"
            )
            typed = await typist.draft()
            await lab.until(
                lambda: guard.look() is not None and not guard.answers_in(lab.session.console.now()),
                "a dialog that takes keys",
            )
            dialog, sent_at = lab.session.dialog, lab.session.keyboard.last_sent
            sent = len(typed) - len(b"".join(lab.session.keyboard.held))
            await lab.deny()
            await lab.until(lambda: not lab.session.keyboard.holding and draft(lab), "the rest of the draft")
            try:
                await lab.until(lambda: draft(lab) == typed, "the whole draft", 5)  # noqa: B023 - awaited here
            except AssertionError:
                # Only the last key that was sent can have been taken, if the agent read it before it drew.
                own = dialog is not None and 0 <= dialog.since - sent_at < FRAME
                taken = own and draft(lab) == typed[: sent - 1] + typed[sent:]
                if not typist.paused:
                    (early if taken else lost).append((typed, draft(lab)))
                lab.note(
                    f"{number}: typed {typed}, {sent} sent, draft {draft(lab)}, before it drew: {taken},"
                    f" after a pause: {typist.paused}"
                )
            assert typist.paused or not file.exists(), f"answered by a letter\n{lab.screen()}"
            await lab.clear_draft()
            await lab.until(lambda: lab.session.tasks.get(task.id).state.final, "the end")  # noqa: B023 - awaited here
            await lab.state(AgentState.READY)
            lab.note(
                f"{number + 1} dialogs, {typist.close} just before a letter; of letters that were lost"
                f" {len(early)} were read before the dialog was drawn, {len(lost)} after"
            )
        assert lost == []
