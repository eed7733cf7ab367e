"""`synapse doctor`: checks a profile against the installed agent."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from synapse_tui.cli.trials.report import Advice, DoctorReport, Outcome, Result
from synapse_tui.core.errors import InvalidValue
from synapse_tui.system.language import tr
from synapse_tui.system.paths import UserPaths, find_project

from .commands import Command, json_option, stacked
from .completion import complete_profiles
from .output import (
    ExitCode,
    cells,
    columns,
    confirm,
    cut,
    is_interactive,
    note,
    one_line,
    padded,
    plain,
    say,
    show,
    show_json,
    show_table,
)

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.finding import ProfileSet
    from synapse_tui.agents.profiles.profile import Profile
    from synapse_tui.cli.trials.runner import ExaminationOrder
    from synapse_tui.cli.trials.versions import Glance

Value = TypeVar("Value")
OWNERS = {"shipped": "shipped", "user": "yours", "project": "project"}
_CLEAR_LINE = "\r\x1b[K"


doctor_options = stacked(
    click.option(
        "--timeout",
        metavar="S",
        type=click.FloatRange(1, 3600),
        default=120,
        show_default=True,
        help="Maximum seconds for a turn.",
    ),
    click.option("--keep", is_flag=True, help="Keep the scratch folder, with the agent's log."),
    click.option(
        "--prompt", "prompts", metavar="NAME=TEXT", multiple=True, help="Replace the message called NAME."
    ),
    click.option(
        "--expect",
        "expects",
        metavar="NAME=REGEX",
        multiple=True,
        help="Pattern that the answer to NAME must match.",
    ),
)
"""Options of all commands that run an agent in a scratch folder."""


@click.command(name="doctor", cls=Command)
@click.argument("agents", metavar="[AGENT]...", nargs=-1, shell_complete=complete_profiles)
@click.option(
    "--check", "checks", metavar="NAME", multiple=True, help="Run only this check; can be repeated."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before using turns of your model.")
@doctor_options
@click.option("--verbose", "-v", is_flag=True, help="Show the agent's screen if a check fails.")
@json_option
@click.pass_context
def doctor_command(
    context: click.Context, /, agents: tuple[str, ...], *, as_json: bool, yes: bool, **given: Any
) -> None:
    """Run an installed agent and check its profile against it.

    AGENT (such as claude or codex) is started in a scratch folder and tested: messages, long pastes,
    interrupts, permission dialogs, answers. Each failure names the profile key to change. Without AGENT, the
    installed agents and their versions are listed, and nothing is started.

    Examples:
      synapse doctor
      synapse doctor codex --check interrupt --check blocked --yes
    """
    from synapse_tui.daemon.project import ProjectFiles

    paths = UserPaths.of_environment()
    paths.check()
    profiles = ProjectFiles(find_project(Path.cwd()), paths).profiles
    for problem in profiles.problems:
        note(f"synapse: {problem}")
    if not agents:
        _list(profiles, as_json=as_json)
        return
    chosen = [profiles.find(name) for name in dict.fromkeys(agents)]
    order = order_of(given)
    check_installed(chosen)
    if not yes:
        confirm_turns(chosen, order)
    reports = [
        examine_profile(profile, order, verbose=given["verbose"], as_json=as_json) for profile in chosen
    ]
    if as_json:
        show_json([report.json() for report in reports])
    if any(report.failed for report in reports):
        context.exit(int(ExitCode.UNPROVED))


def _list(found: ProfileSet, *, as_json: bool) -> None:
    from dataclasses import asdict

    from synapse_tui.cli.trials.versions import glance

    looks = glance(list(found.profiles.values()), os.environ, Path.cwd())
    if as_json:
        show_json([asdict(entry) for entry in looks])
        return
    show_profiles(found, looks)
    note("to check one: synapse doctor AGENT (uses a few short turns of your model; asks first)")


def show_profiles(found: ProfileSet, looks: Sequence[Glance]) -> None:
    table = [
        (
            profile.name,
            tr(OWNERS[profile.origin]),
            " ".join((profile.command, *profile.args)),
            look.version or (tr("yes") if look.installed else "-"),
            look.proved or "-",
            "; ".join(map(tr, look.remarks)),
        )
        for profile, look in zip(found.profiles.values(), looks, strict=True)
    ]
    table += [
        (file.path.stem, tr("project"), "-", "-", "-", tr("not trusted: synapse trust"))
        for file in found.untrusted
        if is_profile(file.path)
    ]
    heads = ("PROFILE", "SOURCE", "COMMAND", "INSTALLED", "VERIFIED WITH", "REMARKS")
    show_table(heads, table, shrinking=("COMMAND", "REMARKS"))


def is_profile(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml")


def check_installed(profiles: Sequence[Profile]) -> None:
    from synapse_tui.core.errors import CommandNotFound
    from synapse_tui.system.pty.spawn import find_command

    for profile in profiles:
        if find_command(profile.command, env=os.environ, cwd=Path.cwd()) is None:
            raise CommandNotFound(profile.command, profile.name, profile.install)


def confirm_turns(profiles: Sequence[Profile], order: ExaminationOrder) -> None:
    paid = [profile.name for profile in profiles if not profile.doctor.free and profile.receives]
    if not paid or not order.turns:
        return
    who = ", ".join(paid)
    turns = "one short turn" if order.turns == 1 else f"about {order.turns} short turns"
    each = " for each" if len(paid) > 1 else ""
    long = ", one of them 20 kB long" if order.asks_for("long-paste") else ""
    note(f"{who}: {turns} of your model will be used{each}{long}.")
    note(f"The agent runs in an empty folder below {UserPaths.of_environment().doctor}.")
    note("If it asks whether to trust that folder, the answer is yes.")
    if order.asks_for("reply"):
        note("It is allowed to run 'synapse reply'; everything else is denied.")
    if not is_interactive():
        raise InvalidValue(f"{who} would use turns of your model", "--yes confirms")
    if not confirm("Continue?"):
        note("nothing was started")
        click.get_current_context().exit(int(ExitCode.FAILED))


def examine_profile(
    profile: Profile, order: ExaminationOrder, *, verbose: bool, as_json: bool
) -> DoctorReport:
    from synapse_tui.cli.trials.runner import examine

    progress = CheckProgress(profile.name, verbose=verbose)
    try:
        report = run_until_interrupted(
            examine(
                profile,
                order,
                paths=UserPaths.of_environment(),
                environ=os.environ,
                begun=progress.begun,
                done=progress.done,
            )
        )
    finally:
        progress.close()
    if not as_json:
        show_report(report, kept=order.keep)
    return report


def run_until_interrupted(work: Coroutine[Any, Any, Value]) -> Value:
    """Run to completion; Ctrl+C, SIGTERM and a closed terminal end the agent first."""

    async def main() -> Value:
        task = asyncio.get_running_loop().create_task(work)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def order_of(given: Mapping[str, Any]) -> ExaminationOrder:
    from synapse_tui.cli.trials.runner import ExaminationOrder

    return ExaminationOrder(
        checks=given.get("checks", ()),
        timeout=given["timeout"],
        keep=given["keep"],
        rest=given.get("rest", 0.0),
        texts=_pairs("prompt", given["prompts"]),
        expects=_pairs("expect", given["expects"]),
    )


def _pairs(option: str, words: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidValue(f"--{option} '{word}' has no '='", f"use --{option} NAME=TEXT")
        pairs[name] = text
    return pairs


# -- output ---


class CheckProgress:
    """Reports on stderr which check runs and its result; `verbose` adds the agent's screen on failures."""

    def __init__(self, agent: str, *, verbose: bool) -> None:
        self._agent = agent
        self._verbose = verbose
        self._open = False
        self._terminal = sys.stderr.isatty()

    def begun(self, check: str) -> None:
        if self._terminal:
            click.echo(f"{self._agent}: {check} …", err=True, nl=False)
            self._open = True

    def done(self, result: Result) -> None:
        self._end_line(_CLEAR_LINE)
        verdict = result.verdict
        text = one_line(verdict.evidence)
        line = f"{self._agent}: {result.check}: {verdict.outcome} ({result.seconds:.1f} s) {text}"
        # The table has the full text.
        note(cut(line, shutil.get_terminal_size().columns) if self._terminal else line)
        if self._verbose and result.screen:
            note("\n".join(f"    | {row}" for row in plain(result.screen).split("\n")))

    def close(self) -> None:
        self._end_line("\n")

    def _end_line(self, how: str) -> None:
        if self._open:
            click.echo(how, err=True, nl=False)
        self._open = False


def show_report(report: DoctorReport, *, kept: bool) -> None:
    proved = tr(f", profile verified with {report.proved}") if report.proved else ""
    show(f"{report.agent} {report.version or tr('(version unknown)')}{proved}")
    heads = ("CHECK", "RESULT", "TOOK", "EVIDENCE")
    rows = [tuple(map(tr, heads)), *map(_row, report.results)]
    widths = [max(cells(row[at]) for row in rows) for at in range(3)]
    left = columns() - sum(widths) - 2 * len(widths)
    for row in rows:
        first, *rest = _wrapped(row[3], left) if left >= 20 else [row[3]]
        start = (padded(text, width) for text, width in zip(row, widths, strict=False))
        show("  ".join((*start, first)).rstrip())
        for more in rest:
            show(" " * (sum(widths) + 2 * len(widths)) + more)
    _show_advice(report)
    if kept:
        note(f"kept: {Path(report.folder).parent}")


def _row(result: Result) -> tuple[str, str, str, str]:
    seconds = "" if result.verdict.outcome is Outcome.SKIPPED else f"{result.seconds:.1f} s"
    return (result.check, tr(result.verdict.outcome.value), seconds, one_line(result.verdict.evidence))


def _show_advice(report: DoctorReport) -> None:
    place = report.source
    if report.shipped:  # the next installation would overwrite the shipped file
        place = tr(f"~/.synapse/profiles/{report.agent}.yaml (a copy of {report.source})")
    keyed = [advice for advice in report.advice if advice.key]
    other = [advice for advice in report.advice if not advice.key]
    if keyed:
        say(f"\nChanges to make in {place}:")
        for advice in keyed:
            _show_one(f"{advice.key}: {advice.value}", advice)
    if other:
        say("\nTo do:")
        for advice in other:
            _show_one(advice.value, advice)
    if not report.failed and report.version and report.proved and report.version != report.proved:
        say(f"\nNothing failed with this version. Record it in {place}:")
        show(f"  doctor.version: {report.version}")


def _show_one(text: str, advice: Advice) -> None:
    show(f"  {plain(text)}")
    for row in plain(advice.why).split("\n") if advice.why else ():
        show(f"      {row}")


def _wrapped(text: str, width: int) -> list[str]:
    return list(_rows(text.split(" "), width)) or [""]


def _rows(words: Sequence[str], width: int) -> Iterator[str]:
    row = ""
    for word in words:
        if row and cells(row) + 1 + cells(word) > width:
            yield row
            row = word
        else:
            row = f"{row} {word}" if row else word
        while cells(row) > width:
            end = max(at for at in range(1, len(row)) if cells(row[:at]) <= width)
            yield row[:end]
            row = row[end:]
    if row:
        yield row
