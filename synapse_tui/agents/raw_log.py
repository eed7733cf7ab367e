"""What an agent put out, byte by byte, in a file of bounded size; written in threads, never on the loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from pathlib import Path

from synapse_tui.files import private_folder

log = logging.getLogger(__name__)

MAX_BYTES = 8_000_000
"""Size at which the file becomes `<name>.1` and a new one is begun."""
MAX_WAITING = 4_000_000
"""Bytes that may wait for the disk; what comes above is left out, and the file says so."""
GAP = b"\r\n[output left out: the disk was too slow]\r\n"
GATHER = 0.25
"""Seconds in which output is gathered for one write."""
BLOCK = 64 * 1024
"""Bytes that are written at once."""


class RawLog:
    """Appends to one file, in order; two files are kept.

    Args:
        path: The file; its folder is made when it is missing.
        max_bytes: Size at which a new file is begun.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._waiting = bytearray()
        self._gap = False
        self._writer: asyncio.Task[None] | None = None
        self._broken = False
        self._enough = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Add bytes; returns at once."""
        if self._broken:
            return
        if len(self._waiting) + len(data) > MAX_WAITING:
            self._gap = True
            return
        if self._gap:
            self._gap = False
            self._waiting += GAP
        self._waiting += data
        if len(self._waiting) >= BLOCK:
            self._enough.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_waiting(), name="raw-log")

    async def close(self) -> None:
        """Return when all is written."""
        self._enough.set()
        if self._writer is not None:
            await asyncio.gather(self._writer, return_exceptions=True)

    async def _write_waiting(self) -> None:
        while self._waiting:
            # A thread for every few bytes of a spinner would cost more than drawing it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GATHER):
                    await self._enough.wait()
            self._enough.clear()
            data = bytes(self._waiting)
            self._waiting.clear()
            try:
                await asyncio.to_thread(self._append, data)
            except OSError as error:
                self._broken = True
                log.warning(
                    "agent log cannot be written", extra={"path": str(self._path), "error": str(error)}
                )
                return

    def _append(self, data: bytes) -> None:
        private_folder(self._path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            size = file.tell()
        if size >= self._max_bytes:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
