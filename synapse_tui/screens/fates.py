"""What became of a message, for each agent that it went to: a receipt of each, in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synapse_tui.model import DeliveryState, Task, TaskState
from synapse_tui.widgets.pane import Delivery
from synapse_tui.widgets.views import Mark, delivery_mark

if TYPE_CHECKING:
    from synapse_tui.host import Receipt

FAILED = Mark("×", "state-error", "failed")
SENDING = Mark("○", "state-unknown", "sending")
SENT = Mark("→", "state-working", "sent")
ROOM = 58
"""Characters of a pane's title in which receipts of several agents are told one by one."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a message to one agent.

    Attributes:
        name: What the agent is called.
        mark: How it looks.
        reason: Why; empty for nothing to say.
        task_id: UUID of the task; empty when none was made.
        settled: Whether it went well and nothing more will be heard of it.
    """

    name: str
    mark: Mark
    reason: str = ""
    task_id: str = ""
    settled: bool = False

    @property
    def words(self) -> str:
        """It as words: `gemini: held: you have a draft`."""
        if self.reason.startswith(self.mark.word):
            return f"{self.name}: {self.reason}"
        return f"{self.name}: {self.mark.word}" + (f": {self.reason}" if self.reason else "")


def fate_of_task(task: Task, name: str) -> Fate:
    """What has become of a message, by its task."""
    settled = task.delivery is DeliveryState.DONE and task.state is TaskState.COMPLETED
    return Fate(name, delivery_mark(task), task.reason, task.id, settled=settled)


def fate_of_receipt(receipt: Receipt, name: str) -> Fate:
    """What has become of handing a message over, where its task is not known here."""
    if receipt.error is not None:
        return Fate(name, FAILED, receipt.error.message)
    # What becomes of it in another process is not told here, so no state is shown that would stay.
    return Fate(name, SENT, "", receipt.task_id, settled=True)


def summary(fates: Sequence[Fate], room: int | None = None) -> str:
    """What became of a message to several agents, as exactly as there is room for.

    Args:
        fates: One for each agent.
        room: Characters; None for any number.
    """
    whole = " · ".join(fate.words for fate in fates)
    if len(fates) == 1 or room is None or len(whole) <= room:
        return whole
    short = " · ".join(f"{fate.mark.glyph} {fate.name}" for fate in fates)
    if len(short) <= room:
        return short
    counts = Counter(fate.mark.word for fate in fates)
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def delivery_of(fates: Sequence[Fate]) -> Delivery:
    """What a pane's title shows of a message; it leads to it, or to the receipts of all who got it."""
    ill = [fate for fate in fates if fate.mark.glyph == FAILED.glyph]
    open_ = [fate for fate in fates if not fate.settled]
    first = (ill or open_ or fates)[0]
    several = len(fates) > 1
    linked = "" if several else first.task_id
    return Delivery(first.mark, summary(fates, ROOM), linked, settled=not open_, several=several)
