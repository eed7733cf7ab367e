"""Runs the checks of one agent in order, in a host without a screen."""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path

from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.cli.trials.checks import blocked, interrupt, leave, reply, signals, start, working
from synapse_tui.cli.trials.examination import Examination, Prompts
from synapse_tui.cli.trials.report import DoctorReport, Outcome, Result, Verdict, failed, skipped
from synapse_tui.cli.trials.turns import answer, hazards, long_paste, multiline, submit
from synapse_tui.cli.trials.versions import installed_version
from synapse_tui.core.errors import AgentExited, FolderUnusable, InvalidValue
from synapse_tui.core.model import AgentSpec
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import private_folder
from synapse_tui.system.paths import UserPaths

README = "# A scratch folder\n\n`synapse doctor` tries an agent here. Nothing in it is needed.\n"


@dataclass(slots=True)
class Scratch:
    """The folders in which one agent is examined."""

    base: Path
    folder: Path  # The agent's folder: a git repository with a README.md
    home: Path  # Home folder for our own files: registry, history, logs
    outside: Path  # A folder that the agent must ask before writing to
    _lock: int

    @classmethod
    def make(cls, paths: UserPaths, agent: str) -> Scratch:
        base = paths.doctor / agent
        try:
            private_folder(base)
            lock = _lock(base, agent)
            try:
                made = cls(base, base / "project", base / "home", base / "outside", lock)
                made._fill()
            except BaseException:
                os.close(lock)
                raise
        except OSError as error:
            raise FolderUnusable(
                f"the scratch folder {base} cannot be created: {error.strerror or error}",
                "free some space, or check its owner",
            ) from error
        return made

    def _fill(self) -> None:
        self.clear()
        for folder in (self.folder, self.home, self.outside):
            folder.mkdir(mode=0o700)
        (self.folder / "README.md").write_text(README, encoding="utf-8")
        if (git := shutil.which("git")) is not None:
            command = [git, "init", "-q"]
            subprocess.run(command, cwd=self.folder, check=False, capture_output=True, timeout=30)  # noqa: S603

    def clear(self) -> None:
        for folder in (self.folder, self.home, self.outside):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self, *, keep: bool) -> None:
        if not keep:
            shutil.rmtree(self.base, ignore_errors=True)
        os.close(self._lock)


def _lock(base: Path, agent: str) -> int:
    descriptor = os.open(base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InvalidValue(
            f"another examination of {agent} is running", "wait until it has finished, then try again"
        ) from error
    return descriptor


COLUMNS, LINES = 100, 32
PORTS = (8980, 8999)
"""Outside of the profiles' ranges, so that an examination takes no port of a session."""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    name: str  # As in `--check` and in the table
    run: Callable[[Examination], Awaitable[Verdict]]
    turns: int = 1  # Number of turns of the model
    always: bool = False  # Whether it runs regardless of the selection
    # Whether it continues from the previous check, without resting in between
    goes_on: bool = False


CHECKS = (
    DoctorCheck("start", start, turns=0, always=True, goes_on=True),
    DoctorCheck("submit", submit),
    DoctorCheck("multiline", multiline),
    DoctorCheck("long-paste", long_paste),
    DoctorCheck("hazards", hazards, turns=4),
    DoctorCheck("working", working),
    DoctorCheck("interrupt", interrupt, turns=0, goes_on=True),
    DoctorCheck("blocked", blocked, turns=2),
    DoctorCheck("answer", answer, turns=2),
    DoctorCheck("reply", reply),
    DoctorCheck("signals", signals, turns=0),
    DoctorCheck("exit", leave, turns=0, always=True, goes_on=True),
)
NAMES = tuple(check.name for check in CHECKS)


@dataclass(frozen=True, slots=True)
class ExaminationOrder:
    checks: tuple[str, ...] = ()  # Empty for all
    timeout: float = 120.0  # Maximum seconds for a turn of the agent
    keep: bool = False
    rest: float = 0.0  # Seconds that an unknown agent is watched while it is idle
    texts: Mapping[str, str] = field(default_factory=dict)  # Name → message that replaces the profile's
    expects: Mapping[str, str] = field(default_factory=dict)  # Name → pattern of the answer

    def __post_init__(self) -> None:
        for name in self.checks:
            if name not in NAMES:
                raise InvalidValue(f"no check named '{name}'", f"use {', '.join(NAMES)}")

    def wants(self, check: DoctorCheck) -> bool:
        return check.always or self.asks_for(check.name)

    def asks_for(self, name: str) -> bool:
        return not self.checks or name in self.checks

    @property
    def turns(self) -> int:
        return sum(check.turns for check in CHECKS if self.wants(check))


Begun = Callable[[str], None]
Done = Callable[[Result], None]


async def examine(
    profile: Profile,
    order: ExaminationOrder,
    *,
    paths: UserPaths,
    environ: Mapping[str, str],
    begun: Begun = lambda _name: None,
    done: Done = lambda _result: None,
) -> DoctorReport:
    prompts = Prompts(profile.doctor, order.texts, order.expects)
    scratch = await asyncio.to_thread(Scratch.make, paths, profile.name)
    try:
        version = await asyncio.to_thread(installed_version, profile, environ, scratch.folder)
        results: list[Result] = []

        def note(result: Result) -> None:
            results.append(result)
            done(result)

        async with opened(profile, scratch, prompts, order, environ) as examination:
            await _check_all(examination, order, begun, note)
    finally:
        await asyncio.to_thread(scratch.close, keep=order.keep)
    return DoctorReport(
        profile.name,
        version,
        profile.doctor.version,
        str(profile.source),
        profile.origin == "shipped",
        str(scratch.folder),
        tuple(results),
    )


@asynccontextmanager
async def opened(
    profile: Profile,
    scratch: Scratch,
    prompts: Prompts,
    order: ExaminationOrder,
    environ: Mapping[str, str],
) -> AsyncIterator[Examination]:
    own = UserPaths(scratch.home)
    profile = dataclasses.replace(profile, ports=PORTS, instructions=False)
    host = Host(
        scratch.folder,
        profiles=ProfileSet({profile.name: profile}),
        settings=load_settings(scratch.folder, paths=own, environ={}, trusted=lambda _path, _data: False),
        paths=own,
        environ=environ,
    )
    examination: Examination | None = None
    try:
        await host.start()
        host.load_servers()
        session = await host.open(
            AgentSpec(profile.name, args=profile.doctor.args), columns=COLUMNS, lines=LINES
        )
        examination = Examination(
            host,
            session,
            prompts=prompts,
            folder=scratch.folder,
            outside=scratch.outside,
            timeout=order.timeout,
        )
        yield examination
    finally:
        if examination is not None:
            await examination.close()
        await host.stop()


async def _check_all(examination: Examination, order: ExaminationOrder, begun: Begun, done: Done) -> None:
    clock = asyncio.get_running_loop().time
    started = False
    for check in CHECKS:
        if not order.wants(check):
            continue
        begun(check.name)
        began = clock()
        verdict = await _obstacle(examination, check, started=started) or await _checked(examination, check)
        if check.name == "start":
            started = verdict.outcome is Outcome.OK
        shown = "" if verdict.outcome in (Outcome.OK, Outcome.SKIPPED) else examination.screen()
        done(Result(check.name, verdict, clock() - began, shown))


async def _obstacle(examination: Examination, check: DoctorCheck, *, started: bool) -> Verdict | None:
    if check.always:
        return None
    if not started:
        return skipped("it did not start")
    if not examination.profile.receives:
        return skipped("it does not accept messages")
    if check.goes_on or check.name == "signals":
        return None
    if (examination.alive and await examination.rest()) or await examination.renew():
        return None
    return skipped("it could neither be made idle nor restarted")


async def _checked(examination: Examination, check: DoctorCheck) -> Verdict:
    try:
        verdict = await check.run(examination)
    except AgentExited as error:
        verdict = failed(error.message)
    if check.always or examination.alive or verdict.outcome is Outcome.FAILED:
        return verdict
    return failed(f"the agent ended meanwhile: {verdict.evidence}")
