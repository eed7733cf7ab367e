"""Fifty messages over each real agent while its user works with it: each arrives once, whole, in order.

What happens is decided by a seed, which is printed; SYNAPSE_LAB_SEED repeats it. SYNAPSE_LAB_MESSAGES changes
how many messages are sent, SYNAPSE_LAB_PHASES (names joined by commas) what the user does.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from synapse_tui.core.model import AgentState
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.records import AgentKey
from synapse_tui.messages.tasks import Journal
from synapse_tui.system.process_times import is_alive, process_name
from tests.lab.lab_kit import AGENTS, Lab, open_lab
from tests.lab.storm import Storm
from tests.lab.storm_person import Person
from tests.lab.storm_texts import message_texts

SEED = int(os.environ.get("SYNAPSE_LAB_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
MESSAGES = int(os.environ.get("SYNAPSE_LAB_MESSAGES", "50"))
SIZES = [(80, 24), (100, 32), (120, 40)]

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1800),
]


class Day:
    """What the person does while messages come; each method is one phase."""

    def __init__(self, lab: Lab, storm: Storm, person: Person, chance: random.Random, folder: Path) -> None:
        self.lab = lab
        self.storm = storm
        self.person = person
        self.chance = chance
        self.folder = folder
        self.markers: list[Path] = []

    async def idle(self, count: int) -> None:
        await self.storm.quiet()
        await self.storm.sends(count, 3, "idle")

    async def work(self, count: int) -> None:
        """The agent works on a prompt of the user's; one message may be urgent."""
        await self.person.begin(self.chance.choice(("%%slow:3%%", "%%hang:2%%")))
        await self.person.submits()
        await self.lab.state(AgentState.PROCESSING)
        urgent = self.chance.random() < 0.4
        await self.storm.sends(count - urgent, 2.5, "work")
        if urgent:
            await self.storm.urgent("work, urgent")

    async def dialog(self, count: int) -> None:
        """The agent asks for permission; the user lets it wait and then says no."""
        marker = self.folder / f"marker-{len(self.markers)}"
        self.markers.append(marker)
        escalate = "%%esc%%" if self.lab.profile.name == "codex" else ""
        await self.person.begin(f"%%run:touch {marker}%%{escalate}")
        early = self.chance.randint(0, count)
        sending = asyncio.create_task(self.storm.sends(early, 3, "before dialog"))
        await self.person.submits()
        await self.lab.state(AgentState.WAITING)
        await self.storm.sends(count - early, 2, "dialog")
        await self._left_open(self.chance.uniform(1, 3))
        assert not marker.exists()
        await self.person.denies()
        await sending

    async def _left_open(self, seconds: float) -> None:
        for _ in range(int(seconds / 0.05)):
            assert self.lab.session.report.state is AgentState.WAITING, self.lab.screen()
            await asyncio.sleep(0.05)

    async def draft(self, count: int) -> None:
        """The user types, leaves the draft for a while, changes it, and submits or clears it."""
        sending = asyncio.create_task(self.storm.sends(count, 6, "draft"))
        await self.person.begin()
        await self.person.leaves(self.chance.uniform(1, 3))
        for _ in range(self.chance.randint(0, 2)):
            await self.person.edit()
            await self.person.leaves(self.chance.uniform(0.5, 2))
        await self._end()
        await sending

    async def urgent(self, count: int) -> None:
        """The user types while the agent works, and something urgent comes."""
        await self.person.begin("%%slow:8%%")
        await self.person.submits()
        await self.lab.state(AgentState.PROCESSING)
        sending = asyncio.create_task(self._urgent_while_typing())
        await self.storm.sends(count - 1, 1, "before urgent")
        await self.person.begin()
        await self.person.leaves(1)
        await sending
        await self.person.leaves(2)
        await self._end()

    async def _urgent_while_typing(self) -> None:
        await asyncio.sleep(self.chance.uniform(0.5, 2.5))
        await self.storm.urgent("typing, urgent")

    async def collide(self, count: int) -> None:
        """The user begins to type at the moment at which a message is being typed."""
        sending = asyncio.create_task(self.storm.sends(count, 1, "collide"))
        if await self.storm.a_message_is_typed(30):
            self.lab.note("the user types into a message")
        await asyncio.sleep(self.chance.uniform(0, 0.6))
        if self.chance.random() < 0.5:
            await self._blind()
        else:
            await self.person.begin()
            await self.person.leaves(self.chance.uniform(0.5, 2))
            await self._end()
        await sending

    async def _blind(self) -> None:
        """The user types a short prompt and Enter at once, without a look at the screen."""
        self.person.hurries = True
        await self.person.begin("ok")
        self.person.hurries = False
        await self.person.submits_blindly()

    async def impatient(self, count: int) -> None:
        sending = asyncio.create_task(self.storm.sends(count, 2, "impatient"))
        await self.lab.until(
            lambda: self.lab.session.report.state is AgentState.PROCESSING or sending.done(), "work", 30
        )
        await self.person.begin("now")
        await self.person.submits(patient=False)
        await sending

    async def _end(self) -> None:
        if self.chance.random() < 0.6:
            await self.person.submits()
        else:
            await self.person.clears()


def plan(chance: random.Random, messages: int) -> list[tuple[str, int]]:
    names = os.environ.get("SYNAPSE_LAB_PHASES", "").split(",")
    kinds = [name for name in names if name] or [
        "idle", "work", "dialog", "draft", "collide", "collide", "urgent", "impatient"
    ]  # fmt: skip
    phases: list[str] = []
    while len(phases) < messages // 2:
        chance.shuffle(kinds)
        phases += kinds
    counts = Counter(range(len(phases)))  # one each, the rest at random
    counts.update(chance.choices(range(len(phases)), k=max(0, messages - len(phases))))
    return [(name, counts[place]) for place, name in enumerate(phases)]


@asynccontextmanager
async def kept_journal(folder: Path, agent: str) -> AsyncIterator[Journal]:
    """A journal on the disk, as the host keeps one: what is typed waits for it."""
    history = History(folder / "history.db", owner=process_name(os.getpid()), alive=is_alive)
    history.load()
    try:
        journal = AgentJournal(history, AgentKey(str(folder), f"synapse-{agent}-8100", agent))
        await journal.waiting("")
        yield journal
    finally:
        await history.close()


def working_folder(agent: str) -> Path:
    """Where the agent works; Gemini would put a file's content in place of `@README` if it found one."""
    if agent != "gemini":
        return Path.cwd()
    folder = Path.cwd() / "storm"
    folder.mkdir(exist_ok=True)
    (folder / "READ_ME.md").write_text("completes @README, and is not found by it\n")
    return folder


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_storm_of_messages(agent, tmp_path):
    seed = SEED
    print(f"\n{agent}: SYNAPSE_LAB_SEED={seed}", flush=True)
    chance = random.Random(f"{agent} {seed}")
    folder = working_folder(agent)
    size = chance.choice(SIZES)
    async with (
        kept_journal(tmp_path, agent) as journal,
        open_lab(agent, tmp_path, cwd=folder, journal=journal, size=size) as lab,
    ):
        person = Person(lab, random.Random(f"person {agent} {seed}"))
        storm = Storm(lab, person, chance, message_texts(chance, MESSAGES))
        day = Day(lab, storm, person, chance, folder)
        lab.session.focus(True)
        try:
            for name, count in plan(chance, MESSAGES):
                lab.note(f"--- {name}, {count} messages")
                phase: Callable[[int], Awaitable[None]] = getattr(day, name)
                await phase(count)
            await storm.sends(storm.left, 2, "rest")
            await storm.quiet()
        finally:
            faults = storm.faults()
            print(*faults, sep="\n", flush=True)
        lab.note(
            f"{size}: {len(storm.sent)} messages, {len(person.prompts)} prompts, "
            f"{len(person.dropped)} drafts cleared, {len(day.markers)} dialogs, {person.held} keys held back"
        )
        assert not faults
        assert not [marker for marker in day.markers if marker.exists()]
