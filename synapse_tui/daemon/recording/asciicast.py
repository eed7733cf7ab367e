"""Writing of asciicast v2 files: a header, then timed events, as lines of JSON.

https://docs.asciinema.org/manual/asciicast/v2/
"""

from __future__ import annotations

import codecs
import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from synapse_tui.core.errors import SynapseError
from synapse_tui.system.dataclass import dataclass

OUTPUT: Literal["o"] = "o"
RESIZE: Literal["r"] = "r"
MARKER: Literal["m"] = "m"


@dataclass(frozen=True, slots=True)
class Header:
    columns: int  # Initial width of the terminal, in cells
    lines: int
    timestamp: int = 0  # Start of the recording, seconds since the epoch; 0 if unknown
    title: str = ""
    # `TERM` and `SHELL` of the recording process, if known
    environ: Mapping[str, str] = field(default_factory=dict)


class CastEncoder:
    """Encodes timed output as lines of a file; an incomplete character waits for its remaining bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @staticmethod
    def header(header: Header) -> str:
        value: dict[str, Any] = {"version": 2, "width": header.columns, "height": header.lines}
        if header.timestamp:
            value["timestamp"] = header.timestamp
        environ = {name: header.environ[name] for name in ("SHELL", "TERM") if header.environ.get(name)}
        if environ:
            value["env"] = environ
        if header.title:
            value["title"] = header.title
        return _line(value)

    def output(self, time: float, data: bytes, *, final: bool = False) -> str:
        """Return the line for output at `time` seconds; empty if there is no complete character yet.

        Invalid UTF-8 is replaced (U+FFFD); with `final`, so is an incomplete character.
        """
        text = self._decoder.decode(data, final)
        return _event(time, OUTPUT, text) if text else ""

    @staticmethod
    def resized(time: float, columns: int, lines: int) -> str:
        return _event(time, RESIZE, f"{columns}x{lines}")

    @staticmethod
    def marker(time: float, text: str) -> str:
        return _event(time, MARKER, text)


def _event(time: float, code: str, data: str) -> str:
    return _line([round(time, 6), code, data])


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


GAP = "output left out: the disk was too slow"
_CANCEL = b"\x18"  # CAN aborts a truncated sequence (ECMA-48 8.3.6, VT500 parser)
_ITEM_BYTES = 64  # Memory of a queued item in addition to its bytes


class _Item(NamedTuple):
    time: float
    code: str
    data: bytes
    size: tuple[int, int] = (0, 0)


class ScreenRecorder:
    """Records output sent to a terminal. May be created in any thread, then used in the loop only.

    A failing or slow disk never disturbs the terminal: `on_error` and `on_gap` report it. The file is
    readable by its owner only; `environ` provides `TERM` and `SHELL`.

    Attributes:
        on_gap: Called when output was left out: everything must be repainted, through `output`.
        on_error: Called once when the file cannot be written any more, which ends the recording.

    Raises SynapseError if the file exists already or cannot be created.
    """

    def __init__(
        self,
        path: Path,
        columns: int,
        lines: int,
        *,
        environ: Mapping[str, str],
        title: str = "",
        clock: Callable[[], float] = time.time,
        overwrite: bool = False,
    ) -> None:
        self.path = path
        self.on_gap: Callable[[], None] = lambda: None
        self.on_error: Callable[[SynapseError], None] = lambda _error: None
        self._clock = clock
        self._begin = self._last = clock()
        header = Header(columns, lines, int(self._begin), title, environ)
        self._failed = False
        self._encoder = CastEncoder()
        self._begun = self._encoder.header(header)  # The header, until it is written
        self._descriptor = _create(path, overwrite=overwrite)
        from synapse_tui.system.disk_queue import DiskQueue  # noqa: PLC0415 - asyncio, which readers of logs do without

        self._queue: DiskQueue[_Item] = DiskQueue(self._append, on_error=self._fail, on_room=self._note_gap)

    def output(self, data: bytes) -> None:
        """Add output, split anywhere, without blocking."""
        self._put(_Item(self._elapsed(), OUTPUT, data))

    def resized(self, columns: int, lines: int) -> None:
        self._put(_Item(self._elapsed(), RESIZE, b"", (columns, lines)))

    def marker(self, text: str) -> None:
        self._put(_Item(self._elapsed(), MARKER, text.encode("utf-8", "replace")))

    async def close(self) -> None:
        """Finish the file; nothing may be added afterwards."""
        try:
            await self._queue.close(self._finish)
        except OSError as error:
            self._fail(error)

    def _put(self, item: _Item) -> None:
        if self._descriptor >= 0:
            self._queue.put(item, len(item.data) + _ITEM_BYTES)

    def _elapsed(self) -> float:
        """Return the seconds since the start; a clock set back continues from the last value."""
        now = self._clock()
        if now < self._last:
            self._begin -= self._last - now
        self._last = now
        return now - self._begin

    def _note_gap(self) -> None:
        self.marker(GAP)
        self.output(_CANCEL)
        self.on_gap()

    def _fail(self, error: OSError) -> None:
        self._failed = True
        self.on_error(
            SynapseError(
                f"the recording to {self.path} has ended: {error.strerror}",
                "what was recorded until then can be played",
            )
        )

    # In a thread

    def _append(self, items: list[_Item]) -> None:
        lines = [self._begun, *map(self._encode, items)]
        self._begun = ""
        _write_all(self._descriptor, "".join(lines).encode())

    def _encode(self, item: _Item) -> str:
        if item.code == OUTPUT:
            return self._encoder.output(item.time, item.data)
        if item.code == RESIZE:
            return self._encoder.resized(item.time, *item.size)
        return self._encoder.marker(item.time, item.data.decode())

    def _finish(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        rest = self._begun + self._encoder.output(self._elapsed(), b"", final=True)
        try:
            if not self._failed:
                _write_all(descriptor, rest.encode())
        finally:
            os.close(descriptor)


def _create(path: Path, *, overwrite: bool) -> int:
    # O_NONBLOCK: opening a pipe without a reader must not block.
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags if overwrite else flags | os.O_EXCL, 0o600)
    except FileExistsError:
        raise SynapseError(
            f"{path} is there already", "name another file, or replace it with --overwrite"
        ) from None
    except OSError as error:
        raise _cannot(path, error.strerror or str(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _cannot(path, "it is no ordinary file")
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
    except OSError as error:
        os.close(descriptor)
        raise _cannot(path, error.strerror or str(error)) from None
    except SynapseError:
        os.close(descriptor)
        raise
    return descriptor


def _cannot(path: Path, why: str) -> SynapseError:
    return SynapseError(f"{path} cannot be recorded to: {why}", "name a file in a folder that you can write")


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
