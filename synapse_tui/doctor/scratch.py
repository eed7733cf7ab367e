"""The scratch folder of an examination: always the same for an agent, so that it is trusted only once."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.errors import FolderUnusable, InvalidValue
from synapse_tui.files import private_folder
from synapse_tui.paths import UserPaths

README = "# A scratch folder\n\n`synapse doctor` tries an agent here. Nothing in it is of any use.\n"


@dataclass(slots=True)
class Scratch:
    """Where one agent is examined, made anew.

    Attributes:
        folder: The agent works here: a git repository with a README.md.
        home: In place of the user's home folder for our own files: registry, history, logs.
        outside: A folder that is no part of the agent's, for what it must ask before it writes.
        base: Holds these.
    """

    base: Path
    folder: Path
    home: Path
    outside: Path
    _lock: int

    @classmethod
    def make(cls, paths: UserPaths, agent: str) -> Scratch:
        """Make the folders of an agent, without what an earlier examination left in them.

        Raises:
            InvalidValue: Another examination of the agent goes on.
            FolderUnusable: They cannot be made.
        """
        base = paths.doctor / agent
        try:
            private_folder(base)
            lock = _lock(base, agent)
            try:
                made = cls(base, base / "project", base / "home", base / "outside", lock)
                made._fill()
            except BaseException:
                os.close(lock)
                raise
        except OSError as error:
            raise FolderUnusable(
                f"the scratch folder {base} cannot be made: {error.strerror or error}",
                "make room, or see whose it is",
            ) from error
        return made

    def _fill(self) -> None:
        self.clear()
        for folder in (self.folder, self.home, self.outside):
            folder.mkdir(mode=0o700)
        (self.folder / "README.md").write_text(README, encoding="utf-8")
        if (git := shutil.which("git")) is not None:
            command = [git, "init", "-q"]
            subprocess.run(command, cwd=self.folder, check=False, capture_output=True, timeout=30)  # noqa: S603

    def clear(self) -> None:
        """Remove everything that was made."""
        for folder in (self.folder, self.home, self.outside):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self, *, keep: bool) -> None:
        """Let others examine the agent."""
        if not keep:
            self.clear()
        os.close(self._lock)


def _lock(base: Path, agent: str) -> int:
    """Take the folder for this process.

    Raises:
        InvalidValue: Another one has it.
    """
    descriptor = os.open(base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InvalidValue(
            f"another examination of {agent} goes on", "wait for its end, then try again"
        ) from error
    return descriptor
