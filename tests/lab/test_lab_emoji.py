"""Messages full of joined emoji to the real agents: each arrives once, whole, and was typed only once.

Agents and terminals disagree on how wide such emoji are, and so on where they wrap. The texts are decided by
a seed, which is printed; SYNAPSE_LAB_SEED repeats it. SYNAPSE_LAB_MESSAGES changes how many are sent to an
agent in a terminal of each size.
"""

from __future__ import annotations

import os
import random

import pytest

from synapse_tui.agents.delivery.typed_text import typed_text
from synapse_tui.core.events import Event, TaskChanged
from tests.lab.lab_kit import AGENTS, Lab, open_lab
from tests.lab.storm import difference, normal
from tests.lab.storm_texts import emoji_texts

SEED = int(os.environ.get("SYNAPSE_LAB_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
MESSAGES = int(os.environ.get("SYNAPSE_LAB_MESSAGES", "30"))

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1800),
]


class Fates:
    """What became of each message, in order."""

    def __init__(self, lab: Lab) -> None:
        self._notes: dict[str, list[str]] = {}
        lab.events.subscribe(self._heard)

    def _heard(self, event: Event) -> None:
        if isinstance(event, TaskChanged):
            notes = self._notes.setdefault(event.task.id, [])
            note = f"{event.task.delivery} {event.task.reason}".strip()
            if notes[-1:] != [note]:
                notes.append(note)

    def of(self, task_id: str) -> list[str]:
        return self._notes.get(task_id, [])


@pytest.mark.parametrize("size", [(80, 24), (100, 32)], ids="{0[0]}x{0[1]}".format)
@pytest.mark.parametrize("agent", AGENTS)
async def test_joined_emoji_arrive_whole(agent, size, tmp_path):
    print(f"\n{agent}: SYNAPSE_LAB_SEED={SEED}", flush=True)
    texts = emoji_texts(random.Random(f"{agent} {size} {SEED}"), MESSAGES)
    faults = []
    async with open_lab(agent, tmp_path, size=size) as lab:
        fates = Fates(lab)
        for text in texts:
            task = await lab.done(lab.send(text))
            wanted, got = normal(typed_text(task, lab.profile)), normal(await lab.once(task.short_id))
            lab.note(f"{len(text.encode())} B: {fates.of(task.id)}")
            if got != wanted:
                faults.append(f"{task.short_id}: {difference(got, wanted)}")
            if sum(note.startswith("typing") for note in fates.of(task.id)) != 1:
                faults.append(f"{task.short_id}: {fates.of(task.id)} {text!r}")
    print(*faults, sep="\n", flush=True)
    assert not faults
