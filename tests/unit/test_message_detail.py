"""Messages as the application shows them: how one stands with each receiver, and one whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.errors import SynapseError
from synapse_tui.host import Receipt
from synapse_tui.model import USER, DeliveryState, Sender, Task, TaskState
from synapse_tui.screens.messages import FAILED, SENT, Progress, delivery_of, detail_text, summary
from synapse_tui.widgets.views import Mark, delivery_mark
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


T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def task(**fields: Any) -> Task:
    return Task("0123456789", "c", "synapse-dummy-8190", USER, "draw a plan", 3, T0, T0, **fields)


def said(role: Literal["user", "agent"], *parts: Part) -> TaskMessage:
    return TaskMessage("m", role, parts)


def test_a_question_asks_the_sender_and_not_the_person() -> None:
    asked = task(state=TaskState.INPUT_REQUIRED, delivery=DeliveryState.DONE, reason="which colour?")
    dialog = task(state=TaskState.INPUT_REQUIRED, delivery=DeliveryState.SUBMITTED)
    assert [delivery_mark(each).word for each in (asked, dialog)] == ["asks", "needs you"]


def test_the_conversation_and_what_is_no_text_are_shown() -> None:
    shown = detail_text(
        task(
            messages=(
                said("user", Part(text="draw a plan")),
                said("agent", Part(text="which colour?")),
                said("user", Part(text="as in this"), Part("file", path="/p/sky.png")),
            ),
            artifacts=(Artifact("done", parts=(Part(text="done"), Part("url", "https://example.org/x"))),),
        )
    ).plain
    assert shown.endswith(
        "draw a plan\n\n↳ question\nwhich colour?"
        "\n\n→ follow-up\nas in this\nAttached file: /p/sky.png"
        "\n\n↳ answer\ndone\nAttached URL: https://example.org/x"
    )


def test_a_message_that_goes_on_with_a_task_names_it() -> None:
    assert "continues task abcdefgh" in detail_text(task(follows="abcdefghij")).plain
    assert "continues task" not in detail_text(task()).plain


def test_a_message_that_waits_is_not_called_submitted() -> None:
    for delivery in (DeliveryState.QUEUED, DeliveryState.HELD):
        shown = detail_text(task(delivery=delivery)).plain
        assert "task 01234567 · waits · " in shown
        assert "submitted" not in shown
    given = detail_text(task(delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING)).plain
    assert "task 01234567 · working · " in given


def test_what_the_question_mark_means_is_told() -> None:
    assert "not proved" not in detail_text(task()).plain
    shell = replace(task(), sender=replace(USER, verified=False))
    assert "from user  (unverified: your shell, or a program that does not sign)" in detail_text(shell).plain
    other = replace(task(), sender=Sender("bob"))
    assert "from bob  (unverified)" in detail_text(other).plain
