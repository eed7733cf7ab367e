"""What becomes of a message to one agent or several, as a line."""

from __future__ import annotations

import pytest

from synapse_tui.errors import SynapseError
from synapse_tui.host import Receipt
from synapse_tui.model import DeliveryState, TaskState
from synapse_tui.screens.fates import FAILED, SENT, Fate, delivery_of, fate_of_receipt, fate_of_task, summary
from synapse_tui.widgets.views import Mark
from tests.fake_agent import FakeAgent

DONE, HELD = Mark("✓", "x", "done"), Mark("║", "x", "held")
ALL = [
    Fate("bob", DONE, "", "1", settled=True),
    Fate("carol", HELD, "you have a draft", "2"),
    Fate("dave", FAILED),
]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (None, "bob: done · carol: held: you have a draft · dave: failed"),
        (60, "bob: done · carol: held: you have a draft · dave: failed"),
        (40, "✓ bob · ║ carol · × dave"),
        (23, "1 done, 1 held, 1 failed"),
    ],
)
def test_receipts_are_as_exact_as_there_is_room(room, expected):
    assert summary(ALL, room) == expected


def test_one_receiver_is_told_whole():
    assert summary(ALL[1:2], 5) == "carol: held: you have a draft"


def test_the_title_tells_what_needs_a_look_and_leads_to_the_message_or_to_all_receipts():
    several, one = delivery_of(ALL), delivery_of(ALL[:1])
    assert (several.mark, several.settled, several.several, several.task_id) == (FAILED, False, True, "")
    assert delivery_of(ALL[:2]).mark == HELD
    assert (one.mark, one.settled, one.several, one.task_id) == (DONE, True, False, "1")


def test_the_fate_of_a_task_and_of_a_receipt():
    agent = FakeAgent()
    task = agent.wait("hello")
    assert fate_of_task(task, "bob").words == "bob: queued"
    agent.tasks.change(task.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
    assert fate_of_task(agent.tasks.get(task.id), "bob").settled
    refused = fate_of_receipt(Receipt("x", "", "failed", SynapseError("no")), "bob")
    assert (refused.words, refused.settled) == ("bob: failed: no", False)
    elsewhere = fate_of_receipt(Receipt("x", "1", "queued"), "bob")
    assert (elsewhere.mark, elsewhere.settled) == (SENT, True)
