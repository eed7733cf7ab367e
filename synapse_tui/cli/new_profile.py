"""`synapse profile new`: what is asked, shown and written while an agent is tried."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.profiles.generic import not_found
from synapse_tui.agents.profiles.programs import command_spec, read_command
from synapse_tui.agents.profiles.reader import is_profile_name, read_profile
from synapse_tui.agents.profiles.writer import flow
from synapse_tui.cli.trials.probe import ProbeFailed, Proposal, Subject, propose
from synapse_tui.cli.trials.report import Outcome
from synapse_tui.core.errors import ConfigError, InvalidValue
from synapse_tui.system.language import tr
from synapse_tui.system.paths import UserPaths, shipped_profiles
from synapse_tui.system.pty.spawn import find_command

from .doctor import confirm_turns, examine_profile, run_until_interrupted
from .editor import save
from .output import ExitCode, confirm, is_interactive, note, plain, show, show_json

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.profile import Profile
    from synapse_tui.cli.trials.inference import Finding
    from synapse_tui.cli.trials.report import DoctorReport
    from synapse_tui.cli.trials.runner import ExaminationOrder


def new_profile(
    command: Sequence[str],
    *,
    name: str,
    output: Path | None,
    force: bool,
    yes: bool,
    order: ExaminationOrder,
    proves: bool,
    as_json: bool,
) -> None:
    paths = UserPaths.of_environment()
    paths.check()
    subject = _subject(command, name)
    path = output or paths.profiles / f"{subject.name}.yaml"
    _check_free(path, subject.name, force=force, asks=not yes, own=output is None)
    profile = _parsed(Proposal(subject), path)
    if not yes:
        confirm_turns([profile], order)
    person = Prompter(asks=not yes and not as_json and is_interactive())
    try:
        proposal = run_until_interrupted(propose(subject, order, person, paths=paths, environ=os.environ))
    except ProbeFailed as error:
        person.show(error.rows)
        raise
    if not as_json:
        _show(proposal.findings)
    profile = _parsed(proposal, path)
    report = _proof(profile, order, as_json=as_json) if proves else None
    proved = report is not None and not report.failed
    # With what delivers nothing there is nothing to prove.
    unproved = profile.asks or (report is not None and report.failed)
    if unproved:
        _confirm_unproved(path, asks=person.asks)
    if report is not None and report.failed:
        proposal.hold(result.check for result in report.results if result.verdict.outcome is Outcome.FAILED)
    save(path, proposal.text(proved=proved).encode())
    if as_json:
        show_json(_json(proposal, path, report))
    note(f"synapse: {path} was written" + ("; running sessions use it now" if output is None else ""))
    if unproved:
        click.get_current_context().exit(int(ExitCode.UNPROVED))


def _proof(profile: Profile, order: ExaminationOrder, *, as_json: bool) -> DoctorReport | None:
    if profile.asks:
        note(f"{profile.name}: not checked, as no message would reach it before you allow one")
        return None
    return examine_profile(profile, order, verbose=False, as_json=as_json)


def _confirm_unproved(path: Path, *, asks: bool) -> None:
    question = f"Not everything could be proved. Write it to {path} all the same?"
    if asks and not confirm(question, default=True):
        note("synapse: nothing was written")
        click.get_current_context().exit(int(ExitCode.UNPROVED))


def _subject(command: Sequence[str], name: str) -> Subject:
    if name and not is_profile_name(name):
        raise InvalidValue(f"'{name}' is not a name for a profile", "use lower case letters, digits and '-'")
    spec = command_spec(command)
    if find_command(spec.command[0], env=os.environ, cwd=Path.cwd()) is None:
        raise not_found(load_profiles(shipped_profiles()), spec.command, Path.cwd())
    if read_command(command).runs_text:
        raise InvalidValue(
            f"'{spec.command[0]}' would act on what is typed, as shells and editors do", "name an agent"
        )
    return Subject(name or spec.profile, spec.command, spec.args)


def _check_free(path: Path, name: str, *, force: bool, asks: bool, own: bool) -> None:
    """Check that nothing is replaced unasked."""
    taken = f"{path} exists" if os.path.lexists(path) else ""
    if not taken and own and (shipped_profiles() / f"{name}.yaml").exists():
        taken = f"'{name}' is a shipped profile, and yours would replace it"
    if not taken or force:
        return
    if not (asks and is_interactive()):
        raise ConfigError(taken, "--force replaces it, --name gives another name, --output another place")
    if not confirm(f"{taken}. Replace it?"):
        note("synapse: nothing was started")
        click.get_current_context().exit(int(ExitCode.FAILED))


def _parsed(proposal: Proposal, path: Path) -> Profile:
    profile, faults = read_profile(path, proposal.text().encode(), "user", os.environ)
    if profile is None:
        raise faults[0]
    return profile


class Prompter:
    """The person at the terminal, who is not asked if `asks` is false."""

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks

    def note(self, text: str) -> None:
        note(text)

    def show(self, rows: Sequence[str]) -> None:
        width = shutil.get_terminal_size().columns
        for row in rows:
            note(f"    | {row}"[:width])

    async def ask(self, question: str, rows: Sequence[str]) -> str:
        if not self.asks:
            return ""
        self.show(rows)
        click.echo(f"{tr(question)} ", err=True, nl=False)
        return (await _line()).strip()


async def _line() -> str:
    """Read a line from the terminal without blocking the loop, so that Ctrl+C ends the agent first."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not typed.done():
            typed.set_result(os.read(sys.stdin.fileno(), 4096).decode("utf-8", "replace"))

    loop.add_reader(sys.stdin.fileno(), read)
    try:
        return await typed
    finally:
        loop.remove_reader(sys.stdin.fileno())


def _show(findings: Sequence[Finding]) -> None:
    for finding in findings:
        value = "(default)" if finding.value is None else flow(finding.value)
        show(plain(f"{finding.key}: {value}"))
        show(plain(f"    {finding.why}"))
        for row in finding.rows:
            show(plain(f"    | {row}"))
    show("")


def _json(proposal: Proposal, path: Path, report: DoctorReport | None) -> dict[str, Any]:
    return {
        "profile": proposal.subject.name,
        "file": str(path),
        "version": proposal.version,
        "findings": [
            {
                "key": finding.key,
                "value": None if finding.value is None else flow(finding.value),
                "why": finding.why,
                "rows": list(finding.rows),
            }
            for finding in proposal.findings
        ],
        "doctor": report.json() if report is not None else None,
    }
