"""Host and application in the calling process: composed and ended here, the terminal left clean."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from synapse_tui.agents.profiles import load_profiles
from synapse_tui.agents.trust import TrustStore
from synapse_tui.app import SynapseApp
from synapse_tui.driver import SynapseDriver, driver_class, restore_terminal
from synapse_tui.errors import SynapseError
from synapse_tui.events import Notice
from synapse_tui.files import private_folder
from synapse_tui.host import Host
from synapse_tui.model import AgentSpec
from synapse_tui.paths import UserPaths, find_project, shipped_profiles
from synapse_tui.pty.command import find_command
from synapse_tui.settings import load_settings

from .specs import parse_spec

log = logging.getLogger(__name__)

_ALWAYS_THERE = frozenset({"dummy", "shell"})
"""Profiles that need nothing installed: where only they can be opened, there is nothing to choose."""


def run(base: Path, specs: Sequence[AgentSpec], *, layout: str | None) -> None:
    """Run the application until the user quits or the terminal goes away.

    Args:
        base: Folder that the project is looked up from.
        specs: Agents to open; empty for those of the settings, or the launcher.
        layout: Arrangement of the panes; None for that of the settings.
    """
    with _stderr_in_logfile(UserPaths.of_environment().logs):
        try:
            asyncio.run(_main(base, specs, layout))
        finally:
            restore_terminal(sys.stdout.fileno())


async def _main(base: Path, specs: Sequence[AgentSpec], layout: str | None) -> None:
    paths = UserPaths.of_environment()
    project = _Project(find_project(base), paths)
    host = Host(
        project.folder,
        folder=base,
        profiles=project.profiles,
        settings=project.settings,
        paths=paths,
        environ=dict(os.environ),
    )

    wanted = list(specs) or project.agents()
    _check_any(host, wanted)

    def trust() -> None:
        said = project.trust()
        host.profiles = project.profiles
        for text in said:
            host.events.publish(Notice(text, "warning"))

    hung_up = asyncio.Event()
    app = SynapseApp(
        host,
        specs=wanted,
        layout=layout or project.settings.text("tui.layout"),
        driver_class=driver_class(sys.stdin.fileno(), sys.stdout.fileno(), on_hangup=hung_up.set),
        trust=trust,
    )
    ended = asyncio.get_running_loop().create_task(_end_on_hangup(app, hung_up))
    _handle_signals(app, hung_up)
    try:
        await host.start()
        await app.run_async()
    finally:
        ended.cancel()
        await host.stop()


def _check_any(host: Host, specs: Sequence[AgentSpec]) -> None:
    """Make sure that one of the agents can be opened, before the screen is taken.

    Raises:
        SynapseError: None can; the error of the first.
    """
    errors: list[SynapseError] = []
    for spec in specs:
        try:
            host.check(spec)
        except SynapseError as error:
            errors.append(error)
    # A profile of the project may still be trusted: the application asks.
    if errors and len(errors) == len(specs) and not host.profiles.untrusted:
        raise errors[0]


class _Project:
    """What the files of a project and of the user say: profiles and settings."""

    def __init__(self, folder: Path, paths: UserPaths) -> None:
        self.folder = folder
        self._paths = paths
        self._store = TrustStore(paths.trusted)
        self.load()

    def load(self) -> None:
        """Read everything; what is not trusted is collected in `profiles.untrusted`."""
        self.profiles = load_profiles(
            shipped_profiles(),
            self._paths.profiles,
            # In the home folder that is the user's own folder, which was just read.
            self.folder / ".synapse" / "profiles"
            if self.folder / ".synapse" != self._paths.synapse
            else None,
            trust=self._store,
        )
        self.settings = load_settings(
            self.folder, paths=self._paths, environ=os.environ, trusted=self._trusted
        )

    def _trusted(self, path: Path, data: bytes) -> bool:
        untrusted = self._store.check(path, data)
        if untrusted is not None:
            self.profiles.untrusted.append(untrusted)
        return untrusted is None

    def trust(self) -> list[str]:
        """Trust the files that the person was shown, and use them.

        Returns:
            What the person should know.
        """
        files = tuple(self.profiles.untrusted)
        self._store.trust(files)
        self.load()
        said = [str(problem) for problem in self.settings.problems]
        if any(file.path.suffix == ".json" for file in files):
            said.append("the project's settings count from the next start on")
        return said

    def agents(self) -> list[AgentSpec]:
        """The agents to open when none are named: the settings', or two dummies where none is installed.

        Returns:
            Nothing when there is a choice to make; the application then asks.
        """
        configured = [parse_spec(word, base=self.folder) for word in self.settings.words("tui.agents")]
        installed = (
            find_command(profile.command, env=os.environ, cwd=self.folder) is not None
            for profile in self.profiles.profiles.values()
            if profile.name not in _ALWAYS_THERE
        )
        return configured or ([] if any(installed) else [AgentSpec("dummy"), AgentSpec("dummy")])


async def _end_on_hangup(app: SynapseApp, hung_up: asyncio.Event) -> None:
    await hung_up.wait()
    app.exit()


def _handle_signals(app: SynapseApp, hung_up: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, hung_up.set)
    loop.add_signal_handler(signal.SIGWINCH, _resized, app)


def _resized(app: SynapseApp) -> None:
    driver = app._driver
    if isinstance(driver, SynapseDriver):
        driver.resized()


@contextlib.contextmanager
def _stderr_in_logfile(folder: Path) -> Iterator[None]:
    """Send log records, and all else that is written to standard error, to a file: not on the screen."""
    path = private_folder(folder) / "synapse-tui.log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    saved = os.dup(2)
    os.dup2(descriptor, 2)
    handler = logging.StreamHandler(os.fdopen(descriptor, "w", encoding="utf-8"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in ("httpx", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        root.removeHandler(handler)
        handler.close()
