"""Locks of a team in PostgreSQL: two machines, one table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from synapse_tui.core.locks import ModificationQuery
from tests.integration.team_kit import CLAUDE, Machine, checkout

Make = Callable[..., Machine]


@pytest.fixture
def machine(team_url: str, tmp_path: Path) -> Iterator[Make]:
    made: list[Machine] = []

    def make(
        name: str, project: Path | None = None, ahead: timedelta = timedelta(), **options: str
    ) -> Machine:
        folder = project or checkout(tmp_path / name / "home" / "app", **options)
        made.append(Machine(team_url, name, folder, ahead))
        return made[-1]

    yield make
    for each in made:
        each.safety.close()


def test_a_file_of_a_repository_has_one_lock_wherever_it_lies(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    assert one.take("src/Main.py")
    verdict = two.safety.acquire_locks(["src/Main.py"], two.holder())
    assert not verdict.allowed
    assert verdict.reason == f"locked by {CLAUDE}@one"
    assert verdict.lock is not None
    assert verdict.lock.file == "src/Main.py"
    assert not two.take("src/main.py"), "other file systems tell no cases apart"
    assert one.safety.release_lock("src/Main.py", CLAUDE)
    assert two.take("src/Main.py")


def test_agents_of_the_same_id_are_two(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    assert one.take("a")
    assert not two.safety.release_lock("a", CLAUDE)
    assert two.safety.release_agent(CLAUDE) == []
    assert two.safety.renew(CLAUDE) == 0
    assert two.safety.locks(CLAUDE) == []
    assert [lock.agent_id for lock in two.safety.locks()] == [f"{CLAUDE}@one"]
    assert [lock.agent_id for lock in one.safety.locks()] == [CLAUDE]
    assert one.safety.release_agent(CLAUDE) == ["a"]


def test_of_another_machines_process_only_the_lease_counts(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    two.gone.add("1:1")  # a process of the same number has ended here
    assert one.take("a")
    assert not two.take("a")
    one.gone.add("1:1")
    assert two.safety.locks(), "nobody there has looked yet"
    assert one.safety.locks() == []
    assert two.take("a")


def test_leases_are_counted_by_the_clock_of_the_server(machine: Make) -> None:
    one, two = machine("one"), machine("two", ahead=timedelta(hours=3))
    assert one.take("a")
    assert not two.take("a"), "a clock that is wrong ends no lease"
    (lock,) = two.safety.locks()
    assert timedelta(minutes=4) < lock.expires_at - two.clock() < timedelta(minutes=6)


def test_other_repositories_are_not_seen(machine: Make) -> None:
    one, other = machine("one"), machine("two", remote="https://user:token@github.com/team/other")
    assert one.take("a")
    assert other.take("a")
    one.change("a")
    other.change("b")
    assert [lock.agent_id for lock in other.safety.locks()] == [CLAUDE]
    assert [change.file for change in other.safety.modifications()] == ["b"]
    assert other.safety.counts() == {"locks": 1, "modifications": 1}
    assert other.safety.cleanup(other.clock() + timedelta(hours=1)) == (1, 0)
    assert [change.file for change in one.safety.modifications()] == ["a"]


def test_changes_on_other_machines_are_news(machine: Make) -> None:
    one, two = machine("one"), machine("two")
    first = one.change("Src/a.py")
    assert two.change("b.py") > first
    (change,) = two.safety.modifications(ModificationQuery(but=CLAUDE))
    assert (change.file, change.agent_id) == ("Src/a.py", f"{CLAUDE}@one")
    by_name = two.safety.modifications(ModificationQuery(agent_id=f"{CLAUDE}@one"))
    assert [each.file for each in by_name] == ["Src/a.py"]
    assert [each.id for each in two.safety.modifications(ModificationQuery(file="src/A.py"))] == [first]


def test_all_or_none_of_several_in_any_order(machine: Make) -> None:
    """Two that take the same files in opposite order would wait for each other for ever."""
    one, two = machine("one"), machine("two")
    names = [f"f{at}" for at in range(6)]
    held: list[str] = []
    wrong: list[str] = []

    def work(which: Machine, files: list[str]) -> None:
        for _ in range(25):
            if which.take(*files):
                held.append(which.name)
                if len(set(held)) > 1:
                    wrong.append(which.name)
                held.remove(which.name)
                which.safety.release_agent(CLAUDE)

    threads = [
        threading.Thread(target=work, args=(one, names)),
        threading.Thread(target=work, args=(two, names[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert one.safety.locks() == []


def test_files_of_no_repository_belong_to_their_machine(machine: Make, tmp_path: Path) -> None:
    one, two = machine("one", remote=""), machine("two", project=tmp_path / "one" / "home" / "app")
    assert one.take("a", "/etc/hosts")
    assert two.take("a", "/etc/hosts"), "the same path on another machine is another file"
    assert [lock.file for lock in one.safety.locks()] == ["a"], "those of the project"
    assert {lock.file for lock in one.safety.locks(CLAUDE)} == {"a", "/etc/hosts"}
