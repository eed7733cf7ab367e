"""What `synapse status` prints of an answer, also of one that another version or a stranger gave."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from synapse_tui.cli.status import composer_lines, explanation, row
from synapse_tui.core.model import AgentState
from synapse_tui.core.wording import duration, moment, state_word
from synapse_tui.widgets.states import state_mark

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "READY", "context": "> "},
        {"status": 7, "why": [], "outbox": None, "task": "x"},
        {"why": {"since": "noon", "seconds": "long", "timeline": [1, {}]}, "outbox": {"next": {"sender": 1}}},
    ],
)
def test_what_is_left_out_or_of_another_form_is_no_error(answer: dict[str, object]) -> None:
    assert row("x", answer)[0] == "x"
    lines = list(explanation("x", answer, NOW))
    assert lines[0].startswith("x")


@pytest.mark.parametrize("state", AgentState)
def test_a_state_has_the_same_word_as_in_the_application(state: AgentState) -> None:
    assert state_word(state) == state_mark(state).word
    assert list(explanation("x", {"status": state.value}, NOW)) == [f"x  {state_word(state)}"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0s"),
        (0.44, "0.4s"),
        (9.96, "10.0s"),
        (42.9, "42s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (7800, "2h10m"),
        (273600, "3d04h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_moment_of_another_day_has_its_date() -> None:
    assert moment(NOW, NOW) == "12:00:00"
    assert moment(datetime(2025, 12, 31, 1, 2, 3, tzinfo=UTC), NOW) == "2025-12-31 01:02:03"


@pytest.mark.usefixtures("japanese")
def test_what_the_program_says_of_a_state_is_in_the_language_of_the_person() -> None:
    at = NOW.isoformat()
    message = {"id": "12345678", "sender": {"sender_id": "@"}, "text": "7", "status": "working"}
    why = {"rule": "1", "matched": "2", "detail": "3", "seconds": 9, "since": at}
    why["timeline"] = [{"state": "READY", "rule": "1", "at": at, "seconds": 9}]
    answer = {
        "status": "PROCESSING",
        "why": why,
        "opened_by": ["4", "5"],
        "watch": {"state": "gave up", "sent": 2, "times": 2},
        "task": message,
        "outbox": {"waiting": 0, "unread": 2, "next": message},
        "composer": {
            "visible": True,
            "rules": "profile",
            "found_by": "6",
            "draft_at": {"row": 1, "column": 1},
            "cursor": {"row": 1, "column": 1},
            "vi_normal": True,
            "suggestion": True,
            "empty": True,
            "rows": [],
        },
    }
    said = "\n".join([*explanation("0", answer, NOW), *composer_lines("0", answer)])
    assert set(re.findall(r"[A-Za-z]{2,}", said)) == {"vi"}, said
