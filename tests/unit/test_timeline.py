"""The timeline of states: how long each took, what is forgotten, what another host goes on with."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from synapse_tui.agents.state import Passage, Timeline
from synapse_tui.model import AgentState, StateReport
from tests.unit.agent_screens import Screen, claude, osc

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
READY, WORKING, WAITING = AgentState.READY, AgentState.PROCESSING, AgentState.WAITING


def report(state: AgentState, since: float, rule: str = "rule") -> StateReport:
    return StateReport(state, rule, "matched", since, "detail")


def filled(limit: int = 200) -> Timeline:
    """Working for 2 s, for 3 s more by another rule, then ready; the wall clock leaps ahead by an hour."""
    moments = iter([T0, T0 + timedelta(seconds=2), T0 + timedelta(hours=1)])
    timeline = Timeline(today=lambda: next(moments), limit=limit)
    timeline.add(report(WORKING, 10.0, "title"), 10.0)
    timeline.add(report(WORKING, 10.0, "status"), 12.0)
    timeline.add(report(READY, 15.0), 15.0)
    return timeline


def test_each_passage_lasts_to_the_next_and_the_last_to_now() -> None:
    found = [(passage.state, passage.report.rule, seconds) for passage, seconds in filled().past(now=19.5)]
    assert found == [(WORKING, "title", 2.0), (WORKING, "status", 3.0), (READY, "rule", 4.5)]


def test_the_oldest_passages_are_forgotten() -> None:
    timeline = filled(limit=2)
    assert [passage.report.rule for passage in timeline.passages] == ["status", "rule"]
    assert Timeline(timeline.passages[:1]).since() == T0 + timedelta(seconds=2)


def test_another_host_goes_on_with_it() -> None:
    passages = filled().passages
    content = json.loads(json.dumps([passage.to_json() for passage in passages]))
    assert tuple(map(Passage.from_json, content)) == passages


@pytest.mark.parametrize(
    ("change", "told"), [({"state": "SLEEPING"}, "SLEEPING"), ({"at": "noon"}, "noon"), ({"began": "x"}, "x")]
)
def test_what_is_no_passage_is_refused(change: dict[str, object], told: str) -> None:
    content = filled().passages[0].to_json() | change
    with pytest.raises(ValueError, match=told):
        Passage.from_json(content)


def test_a_detector_that_goes_on_starts_with_the_last_state() -> None:
    timeline = Timeline()
    timeline.add(StateReport(READY, "title star", "✳ x", 5.0), 5.0)
    screen = Screen("claude", timeline=timeline, report=timeline.last)
    screen.feed(osc("0;✳ x"))
    screen.show(*claude())
    screen.wait(1)
    assert (screen.state, screen.detector.report.since) == ("READY", 5.0)
    assert len(timeline.passages) == 1
    screen.feed(osc("0;⠂ x"))
    assert [passage.state for passage in timeline.passages] == [READY, WORKING]


def test_a_new_process_goes_on_in_the_same_timeline() -> None:
    timeline = Timeline()
    Screen("claude", timeline=timeline).detector.exited(3.0)
    Screen("claude", timeline=timeline)
    assert [passage.state.value for passage in timeline.passages] == ["STARTING", "EXITED", "STARTING"]
