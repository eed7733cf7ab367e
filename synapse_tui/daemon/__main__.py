"""`python -m synapse_tui.daemon`: the host of one session; started by a client, which hands it the socket."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from synapse_tui.collector import Collector
from synapse_tui.paths import UserPaths

from .display import Display
from .logs import log_to
from .project import ProjectFiles
from .server import SessionServer

log = logging.getLogger(__name__)

FIRST_REQUEST = 2.0
"""Seconds that the application waits for the first client: it tells what terminal it will be shown on."""


def main() -> None:
    """Run until everything is stopped."""
    parser = argparse.ArgumentParser(prog="synapse_tui.daemon", description="The host of one session.")
    parser.add_argument("--socket-fd", type=int, required=True, help="the listening socket")
    parser.add_argument("--project", type=Path, required=True, help="folder of the project")
    parser.add_argument("--folder", type=Path, required=True, help="working folder of agents without one")
    parser.add_argument("--name", required=True, help="name of the session")
    arguments = parser.parse_args()
    log_to(sys.stderr)
    os.umask(0o077)
    asyncio.run(_main(arguments.socket_fd, arguments.project, arguments.folder, arguments.name))


async def _main(descriptor: int, folder: Path, base: Path, name: str) -> None:
    os.set_inheritable(descriptor, False)
    listener = socket.socket(fileno=descriptor)
    remove_socket = _remover(Path(listener.getsockname()))
    project = ProjectFiles(folder, UserPaths.of_environment())
    host = project.new_host(base)
    display = Display(host, project, name)
    server = SessionServer(listener, host, project, display, name=name)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, display.stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log.info("session '%s' of %s begins", name, folder)
    try:
        await host.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_REQUEST):
                await server.asked.wait()
        with Collector():
            await display.run()
    finally:
        remove_socket()
        await host.stop()
        await server.close()
        log.info("session '%s' ended", name)


def _remover(path: Path) -> Callable[[], None]:
    """What removes a socket, unless a later host has bound another one in its place."""
    inode = path.stat().st_ino

    def remove() -> None:
        with contextlib.suppress(OSError):
            if path.stat().st_ino == inode:
                path.unlink()

    return remove


if __name__ == "__main__":
    main()
