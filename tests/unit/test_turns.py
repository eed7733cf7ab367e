"""The turn that works on a task."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from synapse_tui.agents.answers import AnswerCollector
from synapse_tui.agents.state import Passage, Timeline
from synapse_tui.agents.turns import (
    AMENDED,
    AT_KEYBOARD,
    DENIED,
    SETTLED,
    SETTLED_SIGNAL,
    UNANSWERED,
    UNREPORTED,
    TurnTracker,
)
from synapse_tui.core.content import Artifact
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import (
    USER,
    AgentState,
    DeliveryState,
    MessageRequest,
    StateReport,
    Task,
    TaskState,
)
from synapse_tui.hooks import HookKind
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.terminal.events import ProgramStatus, ProgressChanged, TitleChanged
from tests.unit.agent_screens import Screen, claude, osc

TEXT = "do something useful with it"


class Rig:
    def __init__(self) -> None:
        self.now = 10.0
        self.rows = ["", ""]
        self.tasks = TaskStore("synapse-fake-1", "ctx", EventBus())
        self.turns = TurnTracker(self.tasks, lambda: self.now)
        self.id = self.tasks.create(MessageRequest(TEXT, USER)).id

    @property
    def task(self) -> Task:
        return self.tasks.get(self.id)

    def begin(self, state: AgentState = AgentState.READY, since: float = 5.0) -> None:
        collector = AnswerCollector(TEXT, lambda: self.rows)
        collector.begin()
        self.turns.prepare(collector)
        self.turns.begin(self.task, TEXT, StateReport(state, "fake", "", since), self.now)

    def report(self, state: AgentState, detail: str = "") -> None:
        self.turns.on_report(StateReport(state, "fake", "", self.now, detail))

    def ready(self) -> None:
        """The agent is ready, and its screen has come to rest."""
        self.report(AgentState.READY)
        self.now += SETTLED_SIGNAL
        self.check()

    def check(self, *, rests: bool = False) -> float | None:
        return self.turns.check(StateReport(AgentState.READY, "fake", "", 5.0), rests=rests)

    def answer(self, text: str) -> None:
        self.rows = [f"> {TEXT}", text]
        self.turns.on_output()


def working(rig: Rig) -> StateReport:
    return StateReport(AgentState.PROCESSING, "fake", "", rig.now)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_an_agent_that_says_it_is_done_and_rests_is_not_waited_for(rig):
    rig.begin()
    rig.turns.on_signal(ProgramStatus("working", {}))
    rig.report(AgentState.PROCESSING)
    rig.answer("fine")
    rig.turns.on_signal(ProgramStatus("done", {}))
    rig.report(AgentState.READY)
    assert rig.turns.told_done
    assert rig.check() == pytest.approx(SETTLED_SIGNAL), "it may still be drawing"
    assert rig.check(rests=True) is None
    assert rig.task.state is TaskState.COMPLETED
    assert rig.task.artifacts[0].text == "fine"


@pytest.mark.parametrize("signals", [(), ("done", "working"), ("idle",), ("working",)])
def test_an_agent_that_has_not_said_so_is_waited_for_though_it_rests(rig, signals):
    rig.begin()
    if signals != ("idle",):  # told before it was seen working
        rig.report(AgentState.PROCESSING)
    for state in signals:
        rig.turns.on_signal(ProgramStatus(state, {}))
    rig.answer("fine")
    rig.report(AgentState.READY)
    assert not rig.turns.told_done
    assert rig.check(rests=True)
    assert not rig.task.state.final


def test_an_answer_that_is_drawn_after_the_agent_said_it_is_done_is_whole(rig):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.answer("✳ Working… (0s · esc to interrupt)")
    rig.report(AgentState.READY)
    assert rig.task.state is TaskState.WORKING
    rig.now += SETTLED_SIGNAL / 2
    rig.answer("fine")
    rig.now += SETTLED_SIGNAL
    rig.check()
    assert rig.task.state is TaskState.COMPLETED  # type: ignore[comparison-overlap]
    assert rig.task.artifacts[0].text == "fine"


def ended(rig: Rig, text: str) -> None:
    """End a turn whose agent says that it is done and rests, with more of its answer to be drawn."""
    rig.begin()
    rig.turns.on_signal(ProgramStatus("working", {}))
    rig.report(AgentState.PROCESSING)
    rig.answer(text)
    rig.turns.on_signal(ProgramStatus("done", {}))
    rig.report(AgentState.READY)
    rig.check(rests=True)
    assert rig.task.state is TaskState.COMPLETED


def test_what_is_drawn_after_the_end_is_added_to_the_answer(rig):
    ended(rig, "It is fine (12")
    rig.now += AMENDED / 2
    rig.answer("It is fine (12 degrees)\nand dry")
    assert [artifact.text for artifact in rig.task.artifacts] == ["It is fine (12 degrees)\nand dry"]
    assert rig.task.state is TaskState.COMPLETED
    rig.answer("It is fine (12 degrees)\nand dry\ntoday")
    assert [artifact.text for artifact in rig.task.artifacts] == ["It is fine (12 degrees)\nand dry\ntoday"]


def test_an_answer_that_is_drawn_after_the_end_is_still_the_answer(rig):
    ended(rig, "")
    assert not rig.task.artifacts
    rig.answer("fine")
    assert [artifact.text for artifact in rig.task.artifacts] == ["fine"]


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda rig: rig.turns.on_keys(),
        lambda rig: rig.turns.on_prompt("another"),
        lambda rig: rig.report(AgentState.PROCESSING),
        lambda rig: rig.report(AgentState.EXITED),
        lambda rig: rig.turns.entering(),
        lambda rig: rig.turns.on_signal(ProgramStatus("working", {})),
        lambda rig: rig.turns.on_hook(HookKind.PROMPT),
        lambda rig: setattr(rig, "now", rig.now + AMENDED),
    ],
)
def test_what_may_be_something_else_is_not_added_to_the_answer(rig, meanwhile):
    ended(rig, "fine")
    meanwhile(rig)
    rig.answer("fine\nand a menu")
    assert [artifact.text for artifact in rig.task.artifacts] == ["fine"]
    assert not rig.turns.collecting


def test_what_does_not_go_on_with_the_answer_does_not_replace_it(rig):
    ended(rig, "fine")
    rig.answer("a note that covers it")
    assert [artifact.text for artifact in rig.task.artifacts] == ["fine"]


def test_what_the_agent_has_replied_is_not_amended(rig):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.turns.answered(rig.id)
    rig.ready()
    rig.answer("fine")
    assert rig.task.state is TaskState.COMPLETED
    assert not rig.task.artifacts


def test_ready_without_work_does_not_complete(rig):
    rig.begin()
    rig.report(AgentState.READY)
    assert rig.task.state is TaskState.SUBMITTED


def test_an_answer_that_stands_completes_a_turn_never_seen_working(rig):
    rig.begin()
    rig.answer("at once")
    assert rig.check() == pytest.approx(SETTLED)
    rig.now += SETTLED
    assert rig.check() is None
    assert rig.task.state is TaskState.COMPLETED
    assert rig.task.artifacts[0].text == "at once"


@pytest.mark.parametrize("event", [ProgramStatus("working", {}), ProgressChanged(3, 0)])
def test_a_signal_of_work_shortens_the_wait(rig, event):
    rig.begin()
    rig.turns.on_signal(event)
    rig.answer("at once")
    rig.now += SETTLED_SIGNAL
    assert rig.check() is None
    assert rig.task.state is TaskState.COMPLETED


def test_no_answer_at_all_ends_some_time(rig):
    rig.begin()
    rig.now += SETTLED
    assert rig.check() == pytest.approx(UNANSWERED - SETTLED)
    rig.now += UNANSWERED
    assert rig.check() is None
    assert (rig.task.state, rig.task.reason) == (TaskState.COMPLETED, "no answer was seen")
    assert rig.task.artifacts == ()


@pytest.mark.parametrize("after", [AgentState.READY, AgentState.WAITING, AgentState.ERROR, AgentState.EXITED])
def test_what_the_agent_has_answered_by_itself_stays(rig, after):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.tasks.change(rig.id, state=TaskState.COMPLETED, replied=True, artifacts=(Artifact("in my words"),))
    answered = rig.task
    rig.report(AgentState.PROCESSING)
    rig.answer("I have answered.")
    rig.report(after)
    rig.ready()
    assert rig.task is answered
    assert rig.turns.running == ""


def test_a_task_that_was_answered_before_it_was_seen_to_be_submitted_stays_so(rig):
    rig.tasks.change(rig.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE, replied=True)
    answered = rig.task
    rig.begin(AgentState.PROCESSING, since=10.0)
    assert rig.task is answered
    assert rig.turns.running == rig.id, "its turn goes on"


def test_an_interrupt_key_long_ago_does_not(rig):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.turns.on_user_stop()
    rig.now += 60
    rig.ready()
    assert rig.task.state is TaskState.COMPLETED


@pytest.mark.parametrize("works", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("way", ["keyboard", "board"])
def test_a_denied_dialog_ends_the_turn_only_of_an_agent_that_stops(rig, way, works):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.report(AgentState.WAITING)
    if way == "keyboard":
        rig.turns.on_user_stop(dialog=True)
    else:
        rig.turns.on_denied(rig.now)
    if works:  # for a moment, its title or progress may only be behind
        rig.report(AgentState.PROCESSING)
        rig.now += works
    rig.ready()
    stopped = (TaskState.CANCELED, AT_KEYBOARD if way == "keyboard" else DENIED)
    assert (rig.task.state, rig.task.reason) == ((TaskState.COMPLETED, "") if works == 1.0 else stopped)


def test_a_prompt_of_the_user_ends_the_answer(rig):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.turns.on_prompt("something else of mine")
    rig.rows = [f"> {TEXT}", "fine", "> something else of mine", "sure"]
    rig.ready()
    assert rig.task.artifacts[0].text == "fine"


@pytest.mark.parametrize(
    ("said", "over"),
    [
        ([ProgramStatus("done", {}), ProgramStatus("working", {})], True),
        ([ProgressChanged(3, 0), ProgressChanged(0, 0), ProgressChanged(3, 0)], True),
        ([TitleChanged("◇ Ready"), TitleChanged("✦ Working…")], True),
        ([ProgressChanged(3, 0), ProgressChanged(1, 50)], False),
        ([], False),
    ],
)
@pytest.mark.parametrize("early", [True, False])
def test_a_prompt_of_the_user_ends_the_turn_once_the_agent_works_on_it(rig, said, over, early):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.answer("fine")
    if early:  # it was said before the prompt was typed: of this turn
        for event in said:
            rig.turns.on_signal(event, rests=event == TitleChanged("◇ Ready"))
    rig.turns.on_prompt("something else of mine")
    rig.rows = [f"> {TEXT}", "fine", "> something else of mine", "  Queued"]
    rig.turns.on_output()
    rig.turns.check(working(rig))
    assert rig.task.state is TaskState.WORKING
    if not early:
        for event in said:
            rig.turns.on_signal(event, rests=event == TitleChanged("◇ Ready"))
    rig.turns.check(working(rig))
    ended = over and not early
    assert rig.task.state is (TaskState.COMPLETED if ended else TaskState.WORKING)
    assert (rig.turns.current is None) is ended
    if ended:
        assert rig.task.artifacts[0].text == "fine"


def test_an_interrupt_of_another_turn_leaves_what_waits_behind_it(rig):
    rig.turns.queueing = True
    rig.begin(AgentState.PROCESSING, since=rig.now - 3)
    assert rig.turns.queues(rig.id)
    rig.turns.stopping(working(rig), "interrupted by you")
    rig.ready()
    rig.turns.stopped("interrupted by you")
    rig.report(AgentState.PROCESSING)
    rig.answer("fine")
    rig.ready()
    assert rig.task.state is TaskState.COMPLETED
    assert rig.task.artifacts[0].text == "fine"


def test_a_turn_from_the_queue_is_not_over_since_the_agent_was_ready_before_it(rig):
    rig.turns.queueing = True
    rig.begin(AgentState.PROCESSING, since=rig.now - 3)
    rig.turns.on_prompt("something else of mine")
    rig.report(AgentState.READY)
    rig.check()
    assert not rig.turns.queues(rig.id)
    rig.report(AgentState.READY)
    rig.report(AgentState.PROCESSING)
    rig.rows = [f"> {TEXT}", "> something else of mine", "  Queued", "✶ Working"]
    rig.turns.on_output()
    rig.turns.check(working(rig))
    assert rig.task.state is TaskState.WORKING
    rig.turns.on_signal(ProgramStatus("done", {}))
    rig.turns.check(working(rig))
    assert rig.task.state is TaskState.COMPLETED  # type: ignore[comparison-overlap]


def test_an_interrupt_is_of_what_has_just_begun_and_was_queued(rig):
    rig.turns.queueing = True
    rig.begin(AgentState.PROCESSING, since=rig.now - 3)
    rig.turns.on_signal(ProgramStatus("done", {}))
    rig.rows = [f"> {TEXT}", "✶ Working"]
    rig.turns.on_output()
    rig.turns.stopping(working(rig), "interrupted by you")
    rig.ready()
    assert (rig.task.state, rig.task.reason) == (TaskState.CANCELED, "interrupted by you")


def test_an_interrupted_turn_has_stopped_also_once_the_agent_goes_on_with_its_queue(rig):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.turns.on_prompt("something else of mine")
    rig.turns.stopping(working(rig), "interrupted by you")
    assert not rig.turns.has_stopped
    rig.turns.on_signal(ProgramStatus("idle", {}))
    rig.rows = [f"> {TEXT}", "Interrupted.", "> something else of mine"]
    rig.turns.on_output()
    rig.turns.check(working(rig))
    assert (rig.task.state, rig.task.reason) == (TaskState.CANCELED, "interrupted by you")
    assert rig.turns.has_stopped, "no second key stops the next turn"
    rig.turns.stopping(working(rig), "interrupted by you")
    assert not rig.turns.has_stopped


def test_the_newest_turn_is_known_until_the_agent_is_given_something_else(rig):
    first = rig.id
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.answer("fine")
    rig.ready()
    rig.turns.on_prompt("")  # an Enter in an empty composer
    assert (rig.turns.running, rig.turns.newest) == ("", first)
    rig.id = rig.tasks.create(MessageRequest(TEXT, USER)).id
    rig.begin()
    assert rig.turns.newest == rig.id
    rig.turns.on_prompt("something of the user's")
    assert (rig.turns.running, rig.turns.newest) == (rig.id, "")


def replied_before_the_proof(rig, **fields) -> None:
    """The agent replies as soon as Enter is pressed; only then the screen proves that it was submitted."""
    collector = AnswerCollector(TEXT, lambda: rig.rows)
    rig.turns.prepare(collector)
    rig.turns.entering()
    rig.turns.answered(rig.id)
    rig.tasks.change(rig.id, **fields)
    rig.turns.begin(rig.task, TEXT, StateReport(AgentState.READY, "fake", "", rig.now + 0.1), rig.now)


def test_a_question_that_came_before_the_proof_of_the_message_stays_one(rig):
    replied_before_the_proof(
        rig, state=TaskState.INPUT_REQUIRED, delivery=DeliveryState.DONE, reason="which?"
    )
    rig.ready()
    assert (rig.task.state, rig.task.delivery, rig.task.reason) == (
        TaskState.INPUT_REQUIRED,
        DeliveryState.DONE,
        "which?",
    )
    assert rig.turns.current is None


def test_an_agent_that_replied_has_worked_although_nobody_saw_it(rig):
    replied_before_the_proof(rig, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
    rig.ready()
    assert rig.turns.current is None, "the next message is not kept waiting"
    rig.id = rig.tasks.create(MessageRequest(TEXT, USER)).id
    rig.begin()
    rig.turns.answered(rig.id)
    rig.tasks.change(rig.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
    rig.ready()
    assert rig.turns.current is None


def test_a_reply_of_before_is_no_answer_to_the_message_that_is_typed(rig):
    rig.turns.prepare(AnswerCollector(TEXT, lambda: rig.rows))
    rig.turns.answered(rig.id)
    rig.turns.entering()
    rig.turns.begin(rig.task, TEXT, StateReport(AgentState.READY, "fake", "", 5.0), rig.now)
    assert rig.task.delivery is DeliveryState.SUBMITTED


def test_a_reply_to_a_message_that_goes_on_with_a_task_and_is_not_proven_yet_ends_the_task(rig):
    """Until the proof it counts as one that waits, so the reply itself does not end the task."""
    waiting = {"state": TaskState.INPUT_REQUIRED, "delivery": DeliveryState.DONE}
    rig.tasks.change(rig.id, **waiting)
    artifacts = (Artifact("all of it"),)
    replied_before_the_proof(rig, state=TaskState.WORKING, artifacts=artifacts)
    rig.ready()
    assert (rig.task.state, rig.task.artifacts) == (TaskState.COMPLETED, artifacts)


# -- The timeline of states: how long each took, what is forgotten, what another host goes on w ---


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


@pytest.mark.parametrize(
    ("state", "reason"), [(AgentState.ERROR, "agent shows an error"), (AgentState.EXITED, "agent exited")]
)
def test_errors_and_the_end_fail_the_task(rig, state, reason):
    rig.begin()
    rig.report(AgentState.PROCESSING)
    rig.report(state)
    assert (rig.task.state, rig.task.delivery, rig.task.reason) == (
        TaskState.FAILED,
        DeliveryState.FAILED,
        reason,
    )


@pytest.mark.parametrize("early", [False, True], ids=["after the proof", "before the proof"])
def test_a_turn_that_hooks_saw_begin_ends_when_they_say_so(rig, early):
    rig.turns.entering()
    if early:
        rig.turns.on_hook(HookKind.PROMPT)
    rig.begin()
    if not early:
        rig.turns.on_hook(HookKind.PROMPT)
    rig.answer("half of it")
    rig.turns.on_hook(HookKind.POST)
    report = StateReport(AgentState.READY, "fake", "", rig.now)
    rig.turns.on_report(report)
    rig.now += UNREPORTED / 2
    rig.turns.check(report)
    assert not rig.task.state.final, "the screen only looks idle"
    rig.turns.on_hook(HookKind.IDLE)
    assert rig.turns.told_done
    rig.turns.check(report, rests=True)
    assert rig.task.state is TaskState.COMPLETED


def test_a_hook_that_ends_an_earlier_turn_does_not_end_this_one(rig):
    rig.turns.on_hook(HookKind.PROMPT)
    rig.turns.entering()
    rig.begin()
    rig.turns.on_hook(HookKind.IDLE)
    rig.answer("part")
    assert not rig.turns.told_done


@pytest.mark.parametrize("stopped", [False, True], ids=["not reported", "stopped by the user"])
def test_a_turn_whose_end_no_hook_reports_ends_by_the_screen(rig, stopped):
    rig.begin()
    rig.turns.on_hook(HookKind.PROMPT)
    rig.report(AgentState.PROCESSING)
    rig.answer("all of it")
    if stopped:
        rig.turns.on_user_stop()
    rig.report(AgentState.READY)
    since = rig.now
    rig.now += SETTLED
    report = StateReport(AgentState.READY, "fake", "", since)
    rig.turns.check(report)
    assert rig.task.state.final is stopped
    rig.now += UNREPORTED
    rig.turns.check(report)
    assert rig.task.state.final
