"""The lives of a session's host: begun with a socket, gone on with as another version."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path

from synapse_tui import __version__
from synapse_tui.errors import SynapseError
from synapse_tui.workspace import Handover

from .logs import log_to
from .process import SessionOrder, Succession, run_session

log = logging.getLogger(__name__)


def main() -> None:
    """Run until everything is stopped, or execute the version that goes on."""
    parser = argparse.ArgumentParser(prog="synapse_tui.daemon", description="The host of one session.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--socket-fd", type=int, required=True, help="the listening socket")
    parser.add_argument("--project", type=Path, required=True, help="folder of the project")
    parser.add_argument("--folder", type=Path, required=True, help="working folder of agents without one")
    parser.add_argument("--name", required=True, help="name of the session")
    parser.add_argument("--adopt", type=int, default=-1, help="descriptor of a handover to go on with")
    given = parser.parse_args()
    log_to(sys.stderr)
    os.umask(0o077)
    os.set_inheritable(given.socket_fd, False)
    order = SessionOrder(given.socket_fd, given.project, given.folder, given.name)
    handover = _adopt(given.adopt) if given.adopt >= 0 else None
    log.info("session '%s' of %s begins, version %s", order.name, order.project, __version__)
    while (succession := asyncio.run(run_session(order, handover))) is not None:
        handover = _execute(order, succession)
    log.info("session '%s' ended", order.name)


def _adopt(descriptor: int) -> Handover | None:
    try:
        return Handover.read(descriptor)
    except SynapseError as error:
        log.error("the agents of the version before are lost: %s", error)
        return None


def _execute(order: SessionOrder, succession: Succession) -> Handover:
    """Become the next version; when that fails, go on as this one.

    Returns:
        What this version goes on with.
    """
    descriptor = succession.handover.write()
    words = [succession.python, "-P", "-m", "synapse_tui.daemon", "--socket-fd", str(order.socket_fd)]
    words += ["--project", str(order.project), "--folder", str(order.folder), "--name", order.name]
    os.set_inheritable(order.socket_fd, True)
    try:
        os.execv(succession.python, [*words, "--adopt", str(descriptor)])  # noqa: S606 - the client's own
    except OSError as error:
        log.error("%s cannot be executed, this version goes on: %s", succession.python, error)
        os.set_inheritable(order.socket_fd, False)
        return Handover.read(descriptor)
