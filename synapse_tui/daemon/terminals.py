"""The terminals that clients hand over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from synapse_tui.driver import LinkOptions, TerminalLink
from synapse_tui.errors import SessionError
from synapse_tui.sessions.wire import close_all

from .connection import Connection


def handed_terminal(connection: Connection, environ: Mapping[str, str]) -> TerminalLink:
    """The terminal that a client handed over, not opened yet.

    Args:
        connection: To the client.
        environ: Its environment.

    Raises:
        SessionError: It handed over none.
    """
    descriptors = connection.take_descriptors()
    try:
        if len(descriptors) != 2:
            raise SessionError("no terminal was handed over", "attach from a terminal")
        options = LinkOptions(descriptors[0], descriptors[1], environ)
        return TerminalLink(options, asyncio.get_running_loop())
    finally:
        close_all(descriptors)
