"""Runs host and application in the calling process, and restores the terminal at the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from synapse_tui.core.model import AgentSpec
from synapse_tui.daemon.logs import follow_log_level, log_to
from synapse_tui.daemon.project import ProjectFiles, check_any
from synapse_tui.system.collector import Collector
from synapse_tui.system.files import private_folder
from synapse_tui.system.paths import UserPaths, find_project
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.shell import Guide
from synapse_tui.widgets.driver import DriverOptions, driver_class, restore_terminal

from .sessions import silence_unread_terminal


def run(base: Path, specs: Sequence[AgentSpec], *, layout: str | None, guide: Guide = "") -> None:
    """Run the application until the user quits or the terminal goes away.

    Without `specs`, it opens the agents of the settings, or the launcher.
    """
    paths = UserPaths.of_environment()
    paths.check()
    try:
        with _stderr_in_logfile(paths.logs):
            try:
                asyncio.run(_main(base, specs, layout, guide))
            finally:
                restore_terminal(sys.stdout.fileno())
    finally:
        silence_unread_terminal()


async def _main(base: Path, specs: Sequence[AgentSpec], layout: str | None, guide: Guide) -> None:
    project = ProjectFiles(find_project(base), UserPaths.of_environment())
    host = project.new_host(base)
    follow_log_level(host.following)
    defaults = [] if specs else project.agents()
    check_any(host, [*specs, *defaults])
    hung_up = asyncio.Event()
    app = SynapseApp(
        host,
        specs=specs,
        defaults=defaults,
        layout=layout or project.layout(defaults),
        driver_class=driver_class(DriverOptions(sys.stdin.fileno(), sys.stdout.fileno(), hung_up.set)),
        trust=lambda: project.trust(host),
        read_again=lambda: project.read_again(host),
        settings_files=project.settings_files,
        guide=guide,
    )
    ended = asyncio.get_running_loop().create_task(_end_on_hangup(app, hung_up))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, hung_up.set)
    loop.add_signal_handler(signal.SIGWINCH, app.terminal_resized)
    try:
        await host.start()
        with Collector():
            await app.run_async()
    finally:
        ended.cancel()
        await host.stop()


async def _end_on_hangup(app: SynapseApp, hung_up: asyncio.Event) -> None:
    await hung_up.wait()
    app.exit()


@contextlib.contextmanager
def _stderr_in_logfile(folder: Path) -> Iterator[None]:
    """Redirect logging and standard error to a file, so that they do not corrupt the screen."""
    path = private_folder(folder) / "synapse-tui.log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    saved = os.dup(2)
    os.dup2(descriptor, 2)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        handler = log_to(file)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            logging.getLogger().removeHandler(handler)
