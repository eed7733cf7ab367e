"""For how long a program has done nothing."""

import pytest

from synapse_tui.agents import console
from synapse_tui.agents.console import Activity


class Machine:
    """A program and a clock, on a machine on which looking may take long.

    Attributes:
        now: The time.
        used: Nanoseconds of processor time that the program has used.
        runs: Whether it runs.
        looks_take: Seconds from the beginning of a look to the reading of the processor time.
    """

    def __init__(self) -> None:
        self.now = 10.0
        self.used = 0
        self.runs = False
        self.looks_take = 0.0

    def clock(self) -> float:
        return self.now

    def state(self, _pid: int) -> bytes:
        return b"R" if self.runs else b"S"

    def processor_time(self, _pid: int) -> int:
        self.now += self.looks_take
        return self.used


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(console, "_state", machine.state)
    monkeypatch.setattr(console, "_processor_time", machine.processor_time)
    monkeypatch.setattr(console, "readers_of", lambda _leader: (1,))
    return machine


@pytest.fixture
async def activity(machine: Machine) -> Activity:
    activity = Activity(1, machine.clock)
    await activity.refresh()
    return activity


async def test_a_rest_is_counted_from_the_first_look_that_saw_it(machine, activity):
    assert activity.rested() == 0
    machine.now += 0.03
    assert activity.rested() == pytest.approx(0.03)
    machine.used += 1
    assert activity.rested() == 0
    machine.now += 0.02
    assert activity.rested() == pytest.approx(0.02)


async def test_a_program_that_runs_does_not_rest(machine, activity):
    activity.rested()
    machine.now += 0.03
    machine.runs = True
    assert activity.rested() == 0


async def test_a_little_processor_time_may_count_as_nothing(machine, activity):
    activity.rested()
    machine.now += 0.03
    machine.used += 500_000
    assert activity.rested(0.001) == pytest.approx(0.03)
    assert activity.rested() == 0


async def test_what_a_program_does_during_a_look_is_no_rest_before_it(machine, activity):
    machine.looks_take = 0.035  # the program ran just before its time was read
    activity.rested()
    machine.looks_take = 0.0
    machine.now += 0.01
    assert activity.rested() == pytest.approx(0.01)


async def test_a_look_that_takes_long_does_not_add_to_the_rest(machine, activity):
    activity.rested()
    machine.now += 0.02
    machine.looks_take = 0.05
    assert activity.rested() == pytest.approx(0.02)
