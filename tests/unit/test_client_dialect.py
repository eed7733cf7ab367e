"""Reading a peer's tasks in every dialect that peers speak."""

from __future__ import annotations

import json

import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import read_task
from synapse_tui.core.model import Sender, TaskState


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("submitted", TaskState.SUBMITTED),
        ("input_required", TaskState.INPUT_REQUIRED),
        ("input-required", TaskState.INPUT_REQUIRED),
        ("TASK_STATE_COMPLETED", TaskState.COMPLETED),
        ({"state": "canceled", "timestamp": "x"}, TaskState.CANCELED),
        ("no such word", TaskState.WORKING),
        (None, TaskState.WORKING),
        (7, TaskState.WORKING),
    ],
)
def test_states(status: object, state: TaskState) -> None:
    assert read_task({"id": "1", "status": status}).state is state


@pytest.mark.parametrize(
    "artifact",
    [
        {"type": "text", "data": "answer"},
        {"type": "text", "data": {"content": "answer"}},
        {"artifactId": "1", "parts": [{"kind": "text", "text": "answer"}]},
        {"parts": [{"text": "answer"}, {"strange": {}}, 3]},
    ],
)
def test_artifacts(artifact: object) -> None:
    assert read_task({"task": {"id": "1", "status": "completed", "artifacts": [artifact]}}).text == "answer"


def test_what_is_no_text_is_named() -> None:
    file = {"name": "p.txt", "mimeType": "text/plain", "uri": "file:///p/a%20plan.txt"}
    parts = [
        {"type": "text", "text": "see"},
        {"type": "file", "file": file},
        {"kind": "file", "file": {"uri": "https://example.org/x"}},
        {"type": "data", "data": {"count": 3}},
    ]
    answer = {"task": {"id": "1", "status": "completed", "artifacts": [{"parts": parts}]}}
    assert read_task(answer).text.splitlines() == [
        "see",
        "Attached file: /p/a plan.txt (text/plain)",
        "Attached URL: https://example.org/x",
        'Attached data: {"count": 3}',
    ]


@pytest.mark.parametrize("artifacts", [None, 3, "x", [3], [{}], [{"data": 3}]])
def test_artifacts_that_are_none(artifacts: object) -> None:
    assert read_task({"id": "1", "artifacts": artifacts}).text == ""


def test_status_says_why() -> None:
    held = {
        "id": "1",
        "status": "submitted",
        "metadata": {"delivery": "held", "reason": "permission dialog open"},
    }
    assert read_task(held).status == "held: permission dialog open"
    failed = {"id": "1", "status": "failed", "error": {"code": "x", "message": "agent died"}}
    assert read_task(failed).status == "failed: agent died"
    cut = {"id": "1", "status": "completed", "artifacts": [{"data": "a", "truncated": True}]}
    assert read_task(cut).truncated


def test_a_message_replaces_what_utf8_cannot_carry() -> None:
    call = calls.send("a\ud800b", sender=Sender("x"), priority=2, metadata={"sender": "forged", "k": 1})
    assert call.target == "/tasks/send-priority?priority=2"
    body = json.loads(call.body)
    assert body["message"]["parts"] == [{"type": "text", "text": "a?b"}]
    assert body["metadata"]["sender"]["sender_id"] == "x"
    assert body["metadata"]["k"] == 1


def test_only_calls_to_this_machine_are_signed() -> None:
    call = calls.send("a", sender=Sender("x"), priority=3)
    assert "X-Synapse-Signature" in call.headers("http://127.0.0.1:8100", "x", lambda _: "token")
    assert "X-Synapse-Signature" not in call.headers("http://example.com:8100", "x", lambda _: "token")
    assert "X-Synapse-Signature" not in call.headers("http://127.0.0.1:8100", "x", lambda _: None)
