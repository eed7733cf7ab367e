"""`synapse doctor`: proves that the profile of an installed agent describes it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from synapse_tui.errors import InvalidValue
from synapse_tui.paths import UserPaths, find_project

from .commands import Command
from .completing import complete_profiles
from .options import json_option
from .output import ExitCode, note, show_json

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.profile import Profile
    from synapse_tui.doctor.report import Report
    from synapse_tui.doctor.runner import Order

Value = TypeVar("Value")


@click.command(name="doctor", cls=Command)
@click.argument("agents", metavar="[AGENT]...", nargs=-1, shell_complete=complete_profiles)
@click.option("--check", "checks", metavar="NAME", multiple=True, help="Only this check; may be repeated.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(1, 3600),
    default=120,
    show_default=True,
    help="Seconds that a turn may take.",
)
@click.option("--keep", is_flag=True, help="Keep the scratch folder, with the agent's log.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before turns of your model are used.")
@click.option(
    "--prompt", "prompts", metavar="NAME=TEXT", multiple=True, help="Another message to try it with."
)
@click.option("--expect", "expects", metavar="NAME=REGEX", multiple=True, help="What its answer must match.")
@click.option("--verbose", "-v", is_flag=True, help="Show the agent's screen where something failed.")
@json_option
@click.pass_context
def command(
    context: click.Context, /, agents: tuple[str, ...], *, as_json: bool, yes: bool, **given: Any
) -> None:
    """Run an installed agent and prove what its profile says of it.

    AGENT is started in a scratch folder and tried: messages, long pastes, the interrupt, a permission dialog,
    the answer. What does not hold is told with the key of the profile to change. Without AGENT nothing is
    started: it is shown which agents are installed, and in which versions.
    """
    profiles = _profiles()
    if not agents:
        _glance(list(profiles.profiles.values()), as_json=as_json)
        return
    from synapse_tui.doctor.runner import Order

    chosen = [profiles.find(name) for name in dict.fromkeys(agents)]
    order = Order(
        checks=given["checks"],
        timeout=given["timeout"],
        keep=given["keep"],
        texts=_pairs("prompt", given["prompts"]),
        expects=_pairs("expect", given["expects"]),
    )
    _check_installed(chosen)
    if not yes:
        _ask(chosen, order)
    reports = [_examine(profile, order, verbose=given["verbose"], as_json=as_json) for profile in chosen]
    if as_json:
        show_json([report.json() for report in reports])
    if any(report.failed for report in reports):
        context.exit(int(ExitCode.UNPROVED))


def _profiles() -> Any:
    from synapse_tui.daemon.project import ProjectFiles

    paths = UserPaths.of_environment()
    paths.check()
    files = ProjectFiles(find_project(Path.cwd()), paths)
    for problem in files.profiles.problems:
        note(f"synapse: {problem}")
    return files.profiles


def _glance(profiles: Sequence[Profile], *, as_json: bool) -> None:
    """Say of every profile what can be said without starting its agent."""
    from dataclasses import asdict

    from synapse_tui.doctor.versions import glance

    from .doctor_output import show_glances

    found = glance(profiles, os.environ, Path.cwd())
    if as_json:
        show_json([asdict(entry) for entry in found])
        return
    show_glances(found)
    note(
        "to try one on its own: synapse doctor AGENT (it takes some short turns of your model; it asks first)"
    )


def _check_installed(profiles: Sequence[Profile]) -> None:
    """Make sure that every agent is there before the first one is started.

    Raises:
        CommandNotFound: One is not installed.
    """
    from synapse_tui.errors import CommandNotFound
    from synapse_tui.pty.spawn import find_command

    for profile in profiles:
        if find_command(profile.command, env=os.environ, cwd=Path.cwd()) is None:
            raise CommandNotFound(profile.command, profile.name, profile.install)


def _ask(profiles: Sequence[Profile], order: Order) -> None:
    """Tell what it costs, and ask; agents that cost nothing are not asked about.

    Raises:
        InvalidValue: Nobody can be asked.
    """
    paid = [profile.name for profile in profiles if not profile.doctor.free and profile.receives]
    if not paid or not order.turns:
        return
    who = " and ".join(paid)
    note(_cost(who, order, UserPaths.of_environment().doctor, several=len(paid) > 1))
    if not sys.stdin.isatty():
        raise InvalidValue(f"{who} would use turns of your model", "say --yes when that is all right")
    if not click.confirm("Go on?", err=True):
        note("nothing was started")
        click.get_current_context().exit(int(ExitCode.FAILED))


def _cost(who: str, order: Order, folder: Path, *, several: bool) -> str:
    """What a person should know before the agents are started, a sentence a line."""
    turns = "one short turn" if order.turns == 1 else f"about {order.turns} short turns"
    long = ", one of them of 20 kB" if order.asks_for("long-paste") else ""
    lines = [
        f"{who}: {turns} of your model will be used{' by each' if several else ''}{long}.",
        f"The agent works below {folder}, in a folder with nothing of yours in it.",
        "If it asks whether it may trust that folder, it is told yes.",
    ]
    if order.asks_for("reply"):
        lines.append("It is allowed to run 'synapse reply'; what else it asks for is denied.")
    return "\n".join(lines)


def _examine(profile: Profile, order: Order, *, verbose: bool, as_json: bool) -> Report:
    from synapse_tui.doctor.runner import examine

    from .doctor_output import Progress, show_report

    progress = Progress(profile.name, verbose=verbose)
    try:
        report = _run(
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


def _run(work: Coroutine[Any, Any, Value]) -> Value:
    """Run to the end; Ctrl+C, SIGTERM and a closed terminal end the agent first.

    Raises:
        KeyboardInterrupt: It was ended.
    """

    async def main() -> Value:
        task = asyncio.get_running_loop().create_task(work)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _pairs(option: str, words: Sequence[str]) -> dict[str, str]:
    """`NAME=TEXT` as a mapping.

    Raises:
        InvalidValue: One is not of that form.
    """
    pairs = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidValue(f"--{option} '{word}' has no '='", f"say --{option} NAME=TEXT")
        pairs[name] = text
    return pairs
