"""The socket that the agents' hooks call: one exchange a connection, answered at once or not at all."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from synapse_tui.errors import SynapseError
from synapse_tui.hooks import Dialect, HookEvent, read_event
from synapse_tui.sessions.wire import peer_uid

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds that the hook waits for us: what comes later is heard by nobody."""
MOST = 16 * 1024 * 1024
"""Bytes that an agent may tell: whole files stand in the arguments of its tools."""
BACKLOG = 64

Handle = Callable[[str, HookEvent], Awaitable[bytes]]
"""Takes the agent's id and the event; gives what the hook prints."""


class HookServer:
    """Listens on a private Unix socket.

    Args:
        path: Where; at most some 100 bytes long, in a folder of the user's alone.
        handle: Answers an event.
        uid: The user whose processes may call.
    """

    def __init__(self, path: Path, handle: Handle, *, uid: int | None = None) -> None:
        self.path = path
        self._handle = handle
        self._uid = os.getuid() if uid is None else uid
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to listen; a socket that another process left there is replaced.

        Raises:
            OSError: It cannot be made.
        """
        self.path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(str(self.path))
            self.path.chmod(0o600)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=MOST)

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if peer_uid(writer.get_extra_info("socket")) == self._uid:
                async with asyncio.timeout(PATIENCE):
                    writer.write(await self._answer(reader))
                    await writer.drain()
        except (TimeoutError, OSError) as error:
            log.info("a hook was not answered: %s", str(error) or "it took too long")
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        """Read an event and answer it; whatever is wrong with it, the agent is not held up."""
        words = (await reader.readline()).decode("utf-8", "replace").split()
        if len(words) != 4 or not words[3].isdigit() or int(words[3]) > MOST:
            return b""
        word, dialect, agent_id, length = words
        try:
            told = await reader.readexactly(int(length))
            return await self._handle(agent_id, read_event(word, Dialect(dialect), told))
        except (ValueError, EOFError, SynapseError) as error:
            log.warning("a hook of %s could not be answered: %s", agent_id, error)
        except Exception:
            log.exception("a hook failed", extra={"agent_id": agent_id})
        return b""
