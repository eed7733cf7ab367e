"""The life cycle of a session's host: from the first client to the last, or to a handover."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from synapse_tui import __version__
from synapse_tui.core.errors import SynapseError
from synapse_tui.host.host import Host
from synapse_tui.system.collector import Collector
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import LOCALE
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.process_times import restrict_umask
from synapse_tui.workspace import Handover, SavedAgent, SavedView, WorkspaceStore

from .claim import SessionClaim
from .display import Display, Opening
from .logs import follow_log_level, log_to
from .project import ProjectFiles
from .server import SessionServer
from .workspace import LostWorkspace, WorkspaceSaver, find_lost

log = logging.getLogger(__name__)

FIRST_REQUEST = 2.0
"""Seconds that the application waits for the first client, which provides its terminal."""
VIEW_VERSION = 1


@dataclass(frozen=True, slots=True)
class SessionOrder:
    """The session that a host runs.

    Attributes:
        socket_fd: The listening socket; it is passed on at a handover.
        folder: Working folder of agents that do not set one.
    """

    socket_fd: int
    project: Path
    folder: Path
    name: str


@dataclass(frozen=True, slots=True)
class Succession:
    """The next version's interpreter and the agents to hand over to it."""

    python: str
    handover: Handover


async def run_session(order: SessionOrder, handover: Handover | None = None) -> Succession | None:
    """Run a session until it is stopped; return the handover to the next version, if any.

    `handover` has the agents of the previous version of this process.
    """
    claim = SessionClaim(order.socket_fd)
    if not await claim.take_or_hand_over():
        log.info("session '%s' has a host already", order.name)
        claim.listener.close()
        return None
    return await _run(order, claim, handover)


async def _run(order: SessionOrder, claim: SessionClaim, handover: Handover | None) -> Succession | None:
    project = ProjectFiles(order.project, UserPaths.of_environment())
    host = project.new_host(order.folder)
    view = handover.extra.get("view") if handover is not None else None
    display = Display(host, project, order.name, Opening(view=view if isinstance(view, dict) else None))
    server = SessionServer(claim, host, project, display, name=order.name)
    store = WorkspaceStore(project.paths.workspaces, claim.place.key)
    lost: LostWorkspace | None = None

    def pending() -> tuple[SavedAgent, ...]:
        return lost.pending if lost is not None else ()

    def saved_view() -> SavedView:
        if lost is not None and lost.pending:
            return lost.view
        return SavedView(VIEW_VERSION, dict(display.view()))

    saver = WorkspaceSaver(
        host,
        store,
        saved_view,
        session=order.name,
        scrollback=project.settings.flag("tui.save_scrollback"),
    )
    saver.lost = pending
    host.following.listeners.append(lambda now: saver.keep_lines(now.flag("tui.save_scrollback")))
    follow_log_level(host.following)
    _handle_signals(display)
    succession: Succession | None = None
    try:
        await host.start()
        if handover is not None:
            host.adopt(handover)
        else:
            lost = await find_lost(host, store, display.restore)
            display.offer(lost.offer() if lost is not None else None)
            server.lost = lost
        saver.start()
        server.ready.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_REQUEST):
                await server.asked.wait()
        with Collector():
            await display.run()
        if display.successor:
            server.refuse()
        undecided = server.idle and bool(pending())  # the offer was not answered and is made again
        await saver.stop(clean=display.wanted and not undecided)
        if display.successor:
            succession = await _hand_over(host, display)
    finally:
        if succession is None:
            try:
                await host.stop()
            finally:  # must come last: the next host uses the same ports and files
                claim.end()
        await server.close()
        display.farewell()
    return succession


async def _hand_over(host: Host, display: Display) -> Succession:
    handover = await host.hand_over()
    handover = dataclasses.replace(handover, extra={**handover.extra, "view": dict(display.whole_view())})
    return Succession(display.successor, handover)


def _handle_signals(display: Display) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # Also sent when the system shuts down; the agents are then offered again.
        loop.add_signal_handler(number, display.stop, number.name)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def main() -> None:
    """Run until everything is stopped, or execute the next version."""
    parser = argparse.ArgumentParser(prog="synapse_tui.daemon", description="The host of one session.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--socket-fd", type=int, required=True, help="the listening socket")
    parser.add_argument("--project", type=Path, required=True, help="folder of the project")
    parser.add_argument("--folder", type=Path, required=True, help="working folder of agents without one")
    parser.add_argument("--name", required=True, help="name of the session")
    parser.add_argument("--adopt", type=int, default=-1, help="descriptor of a handover to go on with")
    given = parser.parse_args()
    log_to(sys.stderr)
    restrict_umask()
    os.chdir("/")  # so that what the project's folder is mounted on can be unmounted
    os.set_inheritable(given.socket_fd, False)
    order = SessionOrder(given.socket_fd, given.project, given.folder, given.name)
    handover = _adopt(given.adopt) if given.adopt >= 0 else None
    log.info("session '%s' of %s begins, version %s", order.name, order.project, __version__)
    locale = {name: value for name in LOCALE if (value := os.environ.get(name)) is not None}
    while (succession := asyncio.run(run_session(order, handover))) is not None:
        handover = _execute(order, succession, locale)
    log.info("session '%s' ended", order.name)
    gc.freeze()  # the interpreter would look through all objects twice before it ends


def _adopt(descriptor: int) -> Handover | None:
    try:
        return Handover.read(descriptor)
    except SynapseError as error:
        log.error("the agents of the version before are lost: %s", error)
        return None


def _execute(order: SessionOrder, succession: Succession, locale: Mapping[str, str]) -> Handover:
    """Execute the next version; return the handover to this version if that fails.

    It speaks the language of `locale`, that of this process, whatever terminals were attached since.
    """
    descriptor = succession.handover.write()
    words = [succession.python, "-P", "-m", "synapse_tui.daemon", "--socket-fd", str(order.socket_fd)]
    words += ["--project", str(order.project), "--folder", str(order.folder), "--name", order.name]
    os.set_inheritable(order.socket_fd, True)
    environ = {name: value for name, value in os.environ.items() if name not in LOCALE} | dict(locale)
    try:
        # the interpreter is the client's own
        os.execve(succession.python, [*words, "--adopt", str(descriptor)], environ)  # noqa: S606
    except OSError as error:
        log.error("%s cannot be executed, this version goes on: %s", succession.python, error)
        os.set_inheritable(order.socket_fd, False)
        return Handover.read(descriptor)
