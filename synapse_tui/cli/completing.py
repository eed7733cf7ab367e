"""What the shell offers for an argument: agents, profiles, tasks, settings, external agents.

Nearly everything is read from files of this machine, so nobody is waited for. What cannot be read is not
offered: an error in the middle of somebody's typing helps nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

import click

from synapse_tui.errors import SynapseError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Source: TypeAlias = Callable[[], Iterable[tuple[str, str]]]
"""Gives words and what each means."""
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
TASKS = 50
"""How many of the newest tasks are offered."""
SESSION_SECONDS = 0.3
"""How long a host may take to tell its name."""
_SHORT_ID = 8


def offering(source: Source) -> Completer:
    """What offers the words of a source that begin with what was typed, whatever its case."""

    def completer(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        mark = "@" if typed.startswith("@") else ""
        start = typed.removeprefix(mark).casefold()
        try:
            found = dict(source())
        except (SynapseError, OSError):
            return []
        return [
            CompletionItem(mark + word, help=about)
            for word, about in found.items()
            if word.casefold().startswith(start)
        ]

    return completer


def _agents() -> Iterable[tuple[str, str]]:
    from synapse_tui.addresses import forms_of

    from .caller import Caller, address_of

    caller = Caller.of()
    live, _ = caller.registry.scan()
    project = caller.project_of(live)
    everyone = [address_of(record, project) for record in live]
    states = {record.agent_id: record.status for record in live}
    for address in everyone:
        about = states[address.agent_id] + ("" if address.local else ", in another project")
        names = forms_of(address, everyone) if address.local else [address.agent_id]
        yield from ((name, about) for name in names)


def _externals() -> Iterable[tuple[str, str]]:
    from synapse_tui.a2a.external.registry import ExternalStore

    from .caller import Caller

    for agent in ExternalStore(Caller.of().paths.external).list():
        yield agent.alias, f"external: {agent.name}"


def _receivers() -> Iterable[tuple[str, str]]:
    yield from _agents()
    yield from _externals()
    yield "all", "every agent of this project"


def _profiles() -> Iterable[tuple[str, str]]:
    from .group import profile_names

    for name in profile_names():
        yield name, "profile"


def _tasks() -> Iterable[tuple[str, str]]:
    from synapse_tui.messages.quick import recent_tasks

    from .caller import Caller

    caller = Caller.of()
    for task in recent_tasks(caller.paths.history, caller.project, TASKS):
        yield task.task_id[:_SHORT_ID], f"{task.agent_id}, {task.status}: {task.text}"


def _settings() -> Iterable[tuple[str, str]]:
    from synapse_tui.settings import SCHEMA

    for key, setting in SCHEMA.items():
        yield key, setting.help


def complete_values(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """The values of the setting that was named before, where there are so few that they can be listed."""
    from synapse_tui.settings.schema import find_setting

    setting = find_setting(str(context.params.get("key") or ""))
    if setting is None or context.params.get("value"):
        return []
    words = ("true", "false") if setting.kind == "boolean" else setting.choices
    default = str(setting.written(setting.default)).casefold()
    return offering(lambda: ((word, "default" if word.casefold() == default else "") for word in words))(
        context, parameter, typed
    )


def _sessions() -> Iterable[tuple[str, str]]:
    from .sessions import running_sessions

    for session in running_sessions(timeout=SESSION_SECONDS):
        yield session.place.name, str(session.place.project)


def _known_to_shell(kind: str) -> Completer:
    """What the shell itself knows."""

    def completer(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(typed, type=kind)]

    return completer


complete_folders = _known_to_shell("dir")
complete_files = _known_to_shell("file")
complete_agents = offering(_agents)
complete_receivers = offering(_receivers)
complete_externals = offering(_externals)
complete_profiles = offering(_profiles)
complete_tasks = offering(_tasks)
complete_settings = offering(_settings)
complete_sessions = offering(_sessions)
