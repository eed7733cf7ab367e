"""A line in a file that an agent reads by itself, such as CLAUDE.md: added and taken out byte for byte."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from synapse_tui.errors import ConfigError

NAMES = ("CLAUDE.md", "GEMINI.md")
MARK = b"<!-- synapse-tui -->"
"""By which the line is known, whichever version wrote it."""
LINE = (
    b"When `$SYNAPSE_AGENT_ID` is set, other coding agents work in this project beside you: `synapse list` "
    b'shows them, `synapse send AGENT "TEXT"` reaches them, `[A2A:<task>:<sender>] text` comes from them, '
    b"and .synapse/file-safety.md has the rules for files. " + MARK
)
LARGEST = 4 * 1024 * 1024


class NoteFile:
    """One such file.

    Args:
        path: The file; it need not be there.
        project: Folder of the project: a link out of it is not followed.

    Raises:
        ConfigError: It is nothing that a line could be added to.
    """

    def __init__(self, path: Path, project: Path) -> None:
        self.path = path
        self._real = Path(os.path.realpath(path))
        self._mode = 0o666
        self._data = b""
        if self._real != path and not self._real.is_relative_to(os.path.realpath(project)):
            raise ConfigError(f"{path} leads out of the project", "add the line by hand")
        try:
            status = self._real.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                raise ConfigError(f"{path} is no file of text", "add the line by hand")
            self._mode = stat.S_IMODE(status.st_mode)
            self._data = self._real.read_bytes()
        except FileNotFoundError:
            self.missing = True
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error
        else:
            self.missing = False
        if b"\0" in self._data:
            raise ConfigError(f"{path} is no file of text in UTF-8", "add the line by hand")

    @property
    def noted(self) -> bool:
        """Whether the line is there, as some version wrote it."""
        return MARK in self._data

    @property
    def as_shipped(self) -> bool:
        """Whether the very line is there that this version writes."""
        return LINE in self._data

    def with_line(self) -> bytes:
        """The file with the line, in place of an older one."""
        end = b"\r\n" if b"\r\n" in self._data else b"\n"
        if self.noted:
            lines = self._data.split(b"\n")
            tails = [b"\r" if line.endswith(b"\r") else b"" for line in lines]
            return b"\n".join(
                LINE + tail if MARK in line else line for line, tail in zip(lines, tails, strict=True)
            )
        if not self._data:
            return LINE + end
        if self._data.endswith(b"\n"):
            return self._data + end + LINE + end
        return self._data + end + end + LINE

    def without_line(self) -> bytes | None:
        """The file without the line, and the blank one before it; None when nothing else is in it."""
        lines = self._data.split(b"\n")
        at = next((number for number, line in enumerate(lines) if MARK in line), None)
        if at is None:
            return self._data
        last = at == len(lines) - 1
        blank = at > 0 and not lines[at - 1].strip()
        rest = lines[: at - blank] + lines[at + 1 :]
        data = b"\n".join(rest)
        if last:  # the file had no line end, and has none again
            data = data.removesuffix(b"\r")
        return data if data.strip() else None

    def write(self, data: bytes | None) -> None:
        """Replace its content in one step, or remove it for None; who may read it stays.

        Raises:
            OSError: It cannot be written; the old content is still there.
        """
        if data is None:
            self._real.unlink(missing_ok=True)
            return
        partial = self._real.with_name(f".{self._real.name}.{os.urandom(4).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(partial, flags, self._mode)  # a new one is as open as the umask lets it be
        try:
            with os.fdopen(descriptor, "wb") as file:
                if not self.missing:
                    os.fchmod(file.fileno(), self._mode)
                file.write(data)
            partial.replace(self._real)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
