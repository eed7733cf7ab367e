"""Messages as the application shows them: how one stands with each receiver, and one whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.model import USER, DeliveryState, Task, TaskState
from synapse_tui.ui.screens import messages
from synapse_tui.ui.screens.messages import FAILED, MessageProgress, detail_text, parties, summary
from synapse_tui.widgets.states import Mark, delivery_mark
from synapse_tui.widgets.views import named

DONE, HELD = Mark("✓", "x", "done"), Mark("║", "x", "held")
ALL = [
    MessageProgress("bob", DONE, "", "1", settled=True),
    MessageProgress("carol", HELD, "you have a draft", "2"),
    MessageProgress("dave", FAILED),
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
    runs = messages.said(
        task(
            messages=(
                said("user", Part(text="draw a plan")),
                said("agent", Part(text="which colour?")),
                said("user", Part(text="as in this"), Part("file", path="/p/sky.png")),
            ),
            artifacts=(Artifact("done", parts=(Part(text="done"), Part("url", "https://example.org/x"))),),
        )
    )
    shown = "".join(text for text, _style in runs)
    assert shown.endswith(
        "draw a plan\n\n↳ question\nwhich colour?"
        "\n\n→ follow-up\nas in this\nAttached file: /p/sky.png"
        "\n\n↳ answer\ndone\nAttached URL: https://example.org/x"
    )


def test_a_message_that_waits_is_not_called_submitted() -> None:
    for delivery, word in ((DeliveryState.QUEUED, "○ queued\n"), (DeliveryState.HELD, "║ held\n")):
        shown = detail_text(task(delivery=delivery), {}).plain
        assert shown.startswith(f"{word}priority 3 · task 01234567 · ")
        assert "submitted" not in shown
    given = detail_text(task(delivery=DeliveryState.SUBMITTED, state=TaskState.WORKING), {}).plain
    assert given.startswith("→ working\n")


def test_who_writes_to_whom_is_said_by_name_and_kind() -> None:
    labels = {"synapse-dummy-8190": "alice"}
    assert (parties(task(), labels), parties(task(), {})) == ("you → alice (dummy)", "you → dummy-8190")
    assert "alice" not in detail_text(task(), {}).plain, "its title says so"
    assert named("build-bot", labels) == "build-bot", "no agent of ours, so no kind is known"
    assert named("synapse-dummy-8191", {"synapse-dummy-8191": "dummy-8191"}) == "dummy-8191"


def test_a_reason_names_agents_as_a_person_does():
    reason = "interrupted by synapse-dummy-8190"
    stopped = task(state=TaskState.CANCELED, delivery=DeliveryState.CANCELED, reason=reason)
    assert "interrupted by bea" in detail_text(stopped, {"synapse-dummy-8190": "bea"}).plain
    assert reason in detail_text(stopped, {}).plain
