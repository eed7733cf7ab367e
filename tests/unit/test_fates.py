"""What becomes of a message to one agent or several, as a line."""

from __future__ import annotations

import pytest

from synapse_tui.errors import SynapseError
from synapse_tui.host import Receipt
from synapse_tui.model import DeliveryState, TaskState
from synapse_tui.screens.messages import FAILED, SENT, Progress, delivery_of, summary
from synapse_tui.widgets.views import Mark
from tests.fake_agent import FakeAgent

DONE, HELD = Mark("✓", "x", "done"), Mark("║", "x", "held")
ALL = [
    Progress("bob", DONE, "", "1", settled=True),
    Progress("carol", HELD, "you have a draft", "2"),
    Progress("dave", FAILED),
]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
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


def test_progress_by_the_task_or_by_the_receipt():
    agent = FakeAgent()
    task = agent.wait("hello")
    sent = Receipt("x", task.id, "queued")
    assert Progress.of(sent, "bob", task).words == "bob: queued"
    agent.tasks.change(task.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
    assert Progress.of(sent, "bob", agent.tasks.get(task.id)).settled
    refused = Progress.of(Receipt("x", "", "failed", SynapseError("no")), "bob", None)
    assert (refused.words, refused.settled) == ("bob: failed: no", False)
    elsewhere = Progress.of(sent, "bob", None)
    assert (elsewhere.mark, elsewhere.settled) == (SENT, True)
