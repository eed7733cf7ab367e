"""Writes that pass the hooks: found by a watcher, and said of an agent where no other may have done them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from synapse_tui.events import Event, EventBus, Notice
from synapse_tui.file_safety import FileKeys, Holder, Modification
from synapse_tui.hooks import Dialect, FileWrite, HookEvent, HookKind
from synapse_tui.host.safety import project_watch, strays
from synapse_tui.host.safety.desk import HookDesk
from synapse_tui.host.safety.keeper import SafetyKeeper
from synapse_tui.host.safety.project_watch import ProjectWatch, Touches
from synapse_tui.host.safety.strays import Shells, Strays
from synapse_tui.host.safety.workers import Worker
from synapse_tui.process_times import process_name
from tests.integration.session_rig import until
from tests.waiting import PATIENCE

ALIVE = process_name(os.getpid())
CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=folder, check=True)


class Rig:
    """A project in Git, two agents, and what is noted and told of them."""

    def __init__(self, project: Path, *, native: bool = True) -> None:
        self.project = project
        self.events = EventBus()
        self.notices: list[str] = []
        self.events.subscribe(self._on_event)
        self.keeper = SafetyKeeper(project, project / ".synapse/file_safety.db", retention=timedelta(days=30))
        keys = FileKeys(project)
        self.desk = HookDesk(keys, self.keeper, self.events)
        self.at_work: set[str] = set()
        self.strays = Strays(
            keys,
            self.keeper,
            self.desk,
            self.events,
            at_work=lambda: self.at_work,
            worker=lambda agent_id: Worker(agent_id, ALIVE),
            native=native,
        )
        self.heard: set[Path] = set()
        """Files that the watcher has told of."""
        take = self.strays._on_touched

        def on_touched(touches: Touches) -> None:
            take(touches)
            self.heard.update(map(Path, touches))

        self.strays._on_touched = on_touched

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    async def start(self) -> None:
        self.strays.start()
        assert self.strays.watch is not None
        await self.strays.watch.ready.wait()

    async def stop(self) -> None:
        await self.strays.stop()
        await self.keeper.close()

    async def hook(self, agent_id: str, kind: HookKind, *, shell: str = "", file: str = "") -> None:
        writes = (FileWrite(file),) if file else ()
        event = HookEvent(kind, Dialect.CLAUDE, self.project, tool="x", call="c", writes=writes, shell=shell)
        self.strays.hear(agent_id, event)
        await self.desk.handle(Worker(agent_id, ALIVE), event)

    async def changes(self) -> list[Modification]:
        return await self.keeper.ask(lambda store: store.modifications())

    async def noted(self, *files: str) -> list[Modification]:
        """Wait until exactly these files are noted, the newest first."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await self.changes()
                if {each.file for each in found} >= set(files):
                    assert {each.file for each in found} == set(files)
                    return found
                await asyncio.sleep(0.02)

    async def settled(self) -> None:
        """Wait until all that was touched was looked at."""
        await until(lambda: not self.strays._touched and not self.strays._missed)
        flushing = self.strays._flushing
        if flushing is not None:
            await flushing


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "node_modules/deep").mkdir(parents=True)
    (project / "build/deep").mkdir(parents=True)
    (project / ".gitignore").write_text("build/\n*.log\n")
    (project / "src/a.py").write_text("1\n")
    (project / "src/b.py").write_text("1\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "x")
    return project


@pytest.fixture
async def rig(project: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(strays, "SETTLE", 0.1)
    monkeypatch.setattr(strays, "GRACE", 5.0)  # the machine may be slow
    rig = Rig(project)
    await rig.start()
    yield rig
    await rig.stop()


async def test_what_a_shell_command_writes_is_noted_as_its_agents(rig: Rig) -> None:
    rig.at_work = {CLAUDE, CODEX}
    await rig.hook(CODEX, HookKind.PRE, shell="sed -i s/1/2/ src/a.py")
    sed = await asyncio.create_subprocess_exec("sed", "-i", "s/1/2/", "src/a.py", cwd=rig.project)
    assert await sed.wait() == 0
    (rig.project / "src/new.py").write_text("x\n")
    (rig.project / "src/b.py").unlink()
    (rig.project / "src/noise.log").write_text("ignored by Git\n")
    (rig.project / "node_modules/deep/x.js").write_text("x\n")
    (rig.project / "build/deep/x.o").write_text("x\n")
    await rig.hook(CODEX, HookKind.POST, shell="sed -i s/1/2/ src/a.py")
    found = await rig.noted("src/a.py", "src/new.py", "src/b.py")
    assert {(each.file, each.change.value) for each in found} == {
        ("src/a.py", "MODIFY"),
        ("src/new.py", "CREATE"),
        ("src/b.py", "DELETE"),
    }
    assert {each.agent_id for each in found} == {CODEX}
    assert all(each.metadata == {"suspected": True} for each in found)
    assert rig.notices == []


async def test_files_of_new_folders_and_of_renamed_ones_are_found(rig: Rig) -> None:
    rig.at_work = {CLAUDE}
    (rig.project / "made/deep").mkdir(parents=True)
    (rig.project / "made/deep/first.py").write_text("1\n")
    await rig.noted("made/deep/first.py")
    (rig.project / "made").rename(rig.project / "moved")
    await until(
        lambda: rig.strays.watch and str(rig.project / "moved/deep") in rig.strays.watch._folders.values()
    )
    (rig.project / "moved/deep/second.py").write_text("1\n")
    await until(lambda: rig.project / "moved/deep/second.py" in rig.heard)
    assert rig.project / "made/deep/second.py" not in rig.heard


async def test_the_one_agent_that_works_did_it_and_of_several_none(rig: Rig) -> None:
    rig.at_work = {CLAUDE, CODEX}
    (rig.project / "src/a.py").write_text("2\n")
    await until(lambda: rig.project / "src/a.py" in rig.heard)
    await rig.settled()
    rig.at_work = {CLAUDE}
    (rig.project / "src/b.py").write_text("2\n")
    [change] = await rig.noted("src/b.py")
    assert change.agent_id == CLAUDE


async def test_a_write_that_a_hook_tells_is_noted_once(rig: Rig) -> None:
    rig.at_work = {CLAUDE}
    await rig.hook(CLAUDE, HookKind.PRE, file="src/a.py")
    (rig.project / "src/a.py").write_text("2\n")
    await rig.hook(CLAUDE, HookKind.POST, file="src/a.py")
    (rig.project / "src/b.py").write_text("2\n")
    found = await rig.noted("src/a.py", "src/b.py")
    assert [each.file for each in found] == ["src/b.py", "src/a.py"]
    assert "suspected" not in found[1].metadata


async def test_a_write_of_a_file_that_another_has_locked_is_a_warning(rig: Rig) -> None:
    rig.at_work = {CLAUDE, CODEX}
    await rig.hook(CLAUDE, HookKind.PRE, file="src/a.py")
    await rig.hook(CODEX, HookKind.PRE, shell="echo 2 > src/a.py")
    (rig.project / "src/a.py").write_text("2\n")
    [change] = await rig.noted("src/a.py")
    assert (change.agent_id, change.metadata["locked_by"]) == (CODEX, CLAUDE)
    await until(lambda: rig.notices)
    assert rig.notices == [f"{CODEX} has written src/a.py, which {CLAUDE} has locked"]


async def test_hundreds_of_files_are_one_notice_and_locked_ones_still_a_warning(rig: Rig) -> None:
    rig.at_work = {CODEX}
    own = Holder(CLAUDE, process=ALIVE)
    await rig.keeper.ask(lambda store: store.acquire_lock("src/a.py", own))
    many = rig.project / "many"
    many.mkdir()
    await until(lambda: rig.strays.watch and str(many) in rig.strays.watch._folders.values())
    for number in range(600):
        (many / f"{number}.txt").write_text("x")
    (rig.project / "src/a.py").write_text("2\n")
    await until(lambda: any("has locked" in text for text in rig.notices))
    await rig.settled()
    floods = [text for text in rig.notices if "files changed at once while synapse-codex-8120 worked" in text]
    assert len(floods) == 1
    assert len(rig.notices) == 2
    assert len(await rig.changes()) <= strays.FLOOD + 1


async def test_a_persons_own_work_and_a_database_are_nobodys(rig: Rig) -> None:
    (rig.project / "src/a.py").write_text("2\n")
    (rig.project / "later").mkdir()
    await until(lambda: rig.strays.watch and str(rig.project / "later") in rig.strays.watch._folders.values())
    rig.at_work = {CLAUDE}
    (rig.project / ".git/x").write_text("2\n")
    (rig.project / "src/b.py").write_text("2\n")
    await rig.noted("src/b.py")
    assert {path.name for path in rig.heard} == {"b.py"}


async def test_where_the_kernel_does_not_tell_git_is_asked_while_somebody_works(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strays, "SETTLE", 0.1)
    monkeypatch.setattr(project_watch, "LOOK", 0.05)
    rig = Rig(project, native=False)
    rig.at_work = {CODEX}
    await rig.start()
    (project / "src/a.py").write_text("two\n")
    (project / "src/new.py").write_text("x\n")
    (project / "src/b.py").unlink()
    found = await rig.noted("src/a.py", "src/new.py", "src/b.py")
    assert {each.file: each.change.value for each in found}["src/b.py"] == "DELETE"
    await rig.stop()


async def test_too_many_folders_are_told_once(project: Path) -> None:
    for number in range(20):
        (project / f"folder{number}").mkdir()
    told: list[str] = []
    nothing: Callable[..., None] = lambda *_: None  # noqa: E731
    watch = ProjectWatch(
        project, touched=nothing, missed=nothing, busy=lambda: True, told=told.append, limit=10
    )
    await watch.ready.wait()
    assert watch.folders == 10
    assert len(told) == 1
    assert "only 10 of its folders" in told[0]
    await watch.close()


async def test_a_project_without_git_is_watched_too(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    touched: dict[str, bool] = {}
    watch = ProjectWatch(
        tmp_path,
        touched=touched.update,
        missed=lambda: None,
        busy=lambda: True,
        told=lambda _text: None,
    )
    await watch.ready.wait()
    (tmp_path / "src/a.py").write_text("1\n")
    await until(lambda: touched)
    assert set(touched) == {str(tmp_path / "src/a.py")}
    await watch.close()


def shell(kind: HookKind, call: str = "c") -> HookEvent:
    return HookEvent(kind, Dialect.CLAUDE, Path("/"), tool="Bash", call=call, shell="make")


def test_a_shell_command_runs_until_its_end_and_a_moment_longer() -> None:
    shells = Shells()
    shells.hear(CLAUDE, shell(HookKind.PRE), 1.0)
    shells.hear(CLAUDE, shell(HookKind.POST, "another"), 2.0)
    assert shells.running(100.0) == {CLAUDE}
    shells.hear(CLAUDE, shell(HookKind.POST), 100.0)
    assert shells.running(100.0 + strays.GRACE) == {CLAUDE}
    assert shells.running(100.1 + strays.GRACE) == set()


@pytest.mark.parametrize("kind", [HookKind.IDLE, HookKind.INTERRUPTED, HookKind.PROMPT, HookKind.END])
def test_a_command_whose_end_is_never_told_ends_with_the_turn(kind: HookKind) -> None:
    shells = Shells()
    shells.hear(CLAUDE, shell(HookKind.PRE), 1.0)
    shells.hear(CLAUDE, shell(kind, ""), 2.0)
    assert shells.running(100.0) == set()
    shells.hear(CODEX, shell(HookKind.PRE), 100.0)
    shells.forget(CODEX)
    assert shells.running(100.0) == set()
