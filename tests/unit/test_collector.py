"""When garbage is collected, with a collector and clocks that the test moves."""

from __future__ import annotations

import gc
import weakref

import pytest

from synapse_tui.system.collector import (
    FULL_APART,
    IDLE_OBJECTS,
    LOOK,
    MIDDLE_EVERY,
    OLD_OBJECTS,
    PATIENCE,
    YOUNG_OBJECTS,
    Collector,
)
from tests.waiting import until


class FakeGc:
    """Notes what it is asked for; every object that is made outlives its collection."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.made = 0
        self.garbage = 0

    def enable(self) -> None:
        self.calls.append("enable")

    def disable(self) -> None:
        self.calls.append("disable")

    def freeze(self) -> None:
        self.calls.append("freeze")
        self.made = 0

    def unfreeze(self) -> None:
        self.calls.append("unfreeze")

    def collect(self, generation: int = 2, /) -> int:
        self.calls.append(f"collect {generation}")
        self.made = 0
        return self.garbage

    def get_count(self) -> tuple[int, int, int]:
        return self.made, 0, 0


class Rig:
    """A collector and the world around it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.used = 5.0
        self.gc = FakeGc()
        self.collector = Collector(self.gc, clock=lambda: self.now, cpu=lambda: self.used)

    def look(self, made: int = 0, *, busy: bool, after: float = LOOK) -> list[str]:
        """Let time pass and look; what the collector asked for."""
        self.gc.calls.clear()
        self.now += after
        self.used += after * (0.3 if busy else 0.001)
        self.gc.made += made
        self.collector.look()
        return list(self.gc.calls)

    def frozen(self) -> Rig:
        self.look(busy=False)
        return self


def test_under_load_only_the_young_are_collected():
    rig = Rig().frozen()
    assert rig.look(YOUNG_OBJECTS - 1, busy=True, after=FULL_APART) == []
    assert rig.look(1, busy=True) == ["collect 0"]
    later = [rig.look(YOUNG_OBJECTS, busy=True) for _ in range(MIDDLE_EVERY)]
    assert later.count(["collect 0"]) == MIDDLE_EVERY - 1
    assert later.count(["collect 1"]) == 1


def test_at_idle_everything_is_collected_but_not_often():
    rig = Rig().frozen()
    assert rig.look(IDLE_OBJECTS, busy=False) == ["collect 0"]
    assert rig.look(IDLE_OBJECTS, busy=False, after=FULL_APART) == ["collect 2"]
    assert rig.look(IDLE_OBJECTS, busy=False) == ["collect 0"]
    assert rig.look(busy=False, after=FULL_APART) == ["collect 2"], "what outlived the last one counts"
    assert rig.look(IDLE_OBJECTS - 1, busy=False, after=FULL_APART) == [], "nothing has happened"


def test_memory_is_bounded_under_a_load_that_never_ends():
    rig = Rig().frozen()
    asked = [rig.look(YOUNG_OBJECTS, busy=True) for _ in range(OLD_OBJECTS // YOUNG_OBJECTS + 1)]
    assert asked.pop() == ["collect 2"]
    assert ["collect 2"] not in asked
    assert rig.look(YOUNG_OBJECTS, busy=True) == ["collect 0"], "counted from there on anew"


async def test_it_looks_by_itself_and_undoes_all_in_the_end():
    rig = Rig()
    with rig.collector:
        assert rig.gc.calls == ["disable"]

        def frozen() -> bool:
            rig.now += PATIENCE
            return "freeze" in rig.gc.calls

        await until(frozen)
    assert rig.gc.calls[-2:] == ["unfreeze", "enable"]


class Knot:
    """An object in a cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def real_collector():
    """The real garbage collector, with nothing excluded from it; as it was afterwards."""
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.unfreeze()
    yield gc
    (gc.freeze if frozen else gc.unfreeze)()
    (gc.enable if enabled else gc.disable)()


async def test_the_real_one_collects_what_was_made_since(real_collector):
    now = [0.0]
    collector = Collector(real_collector, clock=lambda: now[0], cpu=lambda: 0.0)
    with collector:
        assert not gc.isenabled()
        collector.look()
        assert gc.get_freeze_count() > 0
        knots = [Knot() for _ in range(2 * IDLE_OBJECTS)]
        last = weakref.ref(knots[-1])
        del knots
        assert last() is not None
        now[0] += FULL_APART
        collector.look()
        assert last() is None
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
