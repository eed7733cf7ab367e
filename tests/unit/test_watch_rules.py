"""When a nudge is due, and when a watch gives up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from synapse_tui.agents.watch import (
    IN_VAIN,
    WORKED,
    Decision,
    Do,
    Observation,
    Watch,
    WatchOrder,
    check_order,
)
from synapse_tui.core.errors import InvalidValue, MessageError

T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVERY = 30.0


class Rig:
    """A watch over an agent whose doings the test tells, in a time of its own."""

    def __init__(self, **order: Any) -> None:
        self.now = 100.0
        self.watch = Watch(
            WatchOrder(**({"every": EVERY} | order)), "task", lambda: T0 + timedelta(seconds=self.now)
        )

    def look(self, hold: str = "", **sight: Any) -> Decision:
        return self.watch.look(Observation(self.now, hold, **sight))

    def rest(self, seconds: float = EVERY) -> Decision:
        """Rest for some seconds; gives what is to be done then."""
        self.look()
        self.now += seconds
        return self.look()

    def work(self, seconds: float) -> None:
        self.look("working", works=True)
        self.now += seconds
        self.look("working", works=True)

    def nudge(self, worked: float = 0.0) -> None:
        """Let a nudge be due and taken, and the agent work for some seconds after it."""
        assert self.rest().do is Do.NUDGE
        self.watch.asked("nudge")
        assert self.look() == Decision()
        self.watch.nudged()
        if worked:
            self.work(worked)

    @property
    def said(self) -> list[str]:
        return [step.text for step in self.watch.steps]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_one_in_vain_between_two_that_help_is_forgiven(rig):
    for worked in (0.0, WORKED, 0.0, WORKED):
        rig.nudge(worked)
    assert rig.rest().do is Do.NUDGE


def test_what_comes_after_the_rest_is_said_before(rig):
    rig.nudge()
    rig.look()
    assert rig.watch.report("bob", rig.now).waits_for == "next nudge in 30 s"
    rig.nudge()
    rig.look()
    assert rig.watch.report("bob", rig.now).waits_for == "gives up in 30 s"
    rig.work(WORKED)
    rig.look()
    assert rig.watch.report("bob", rig.now).waits_for == "next nudge in 30 s"
    assert rig.rest().do is Do.NUDGE


def test_a_question_is_progress(rig):
    for _ in range(IN_VAIN):
        rig.nudge()
        rig.look("permission: rm", asks=True, dialog=True)
    assert rig.rest().do is Do.NUDGE


def test_with_a_short_pause_little_work_is_progress():
    rig = Rig(every=2.0)
    for _ in range(IN_VAIN):
        rig.look()
        rig.now += 2
        assert rig.look().do is Do.NUDGE
        rig.watch.asked("nudge")
        rig.watch.nudged()
        rig.work(2)
    assert rig.watch.helped == IN_VAIN - 1
    assert rig.rest(2).do is Do.NUDGE


def test_work_in_pieces_adds_up(rig):
    rig.nudge()
    for _ in range(4):
        rig.work(WORKED / 4)
        rig.look("permission: x")
        rig.now += 100
    rig.rest()
    assert rig.watch.helped == 1


def test_one_that_was_taken_back_does_not_count_the_last_twice(rig):
    rig.nudge()
    for _ in range(IN_VAIN + 1):
        assert rig.rest().do is Do.NUDGE
        rig.watch.asked("nudge")
        assert rig.look("you have a draft").do is Do.WITHDRAW
        rig.watch.withdrawn(by_person=False)


def test_one_that_the_person_cancels_counts():
    rig = Rig(times=1)
    rig.rest()
    rig.watch.asked("nudge")
    rig.watch.withdrawn(by_person=True)
    assert rig.watch.sent == 1
    assert rig.rest().do is Do.GIVE_UP


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ({"every": 0.5}, InvalidValue),
        ({"every": float("nan")}, InvalidValue),
        ({"every": 90_000.0}, InvalidValue),
        ({"times": 0}, InvalidValue),
        ({"times": 101}, InvalidValue),
        ({"until": "("}, InvalidValue),
        ({"until": "x" * 1001}, InvalidValue),
        ({"until": "a{99999999999}"}, InvalidValue),
        ({"nudge": "\x1b[2J"}, MessageError),
    ],
)
def test_orders_that_cannot_be_followed(order, error):
    with pytest.raises(error) as caught:
        check_order(WatchOrder(**order))
    assert caught.value.hint
