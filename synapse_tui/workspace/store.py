"""Where a workspace is kept: one private folder with a JSON file and compressed scrollbacks."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from synapse_tui.files import check_safe, private_folder, write_private
from synapse_tui.terminal import newest_lines

from .fields import Malformed
from .saved import Newer, SavedWorkspace

log = logging.getLogger(__name__)

SCROLLBACK_BYTES = 2_000_000
"""Compressed size of the scrollback of one agent."""
_MOST_TEXT = 64_000_000
"""Bytes that a scrollback may unpack to."""
_FILE = "workspace.json"
_SUFFIX = ".scrollback"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_MARGIN = 0.9
"""Lines compress differently: what must become smaller is cut to a little less than the average says."""


class WorkspaceStore:
    """Files of one session; all methods block, so a host calls them in threads.

    Args:
        folder: `~/.synapse/workspaces`.
        key: Names the session in it; letters, digits, `.`, `_`, `-`.
        scrollback_bytes: Compressed size of the scrollback of one agent.

    Attributes:
        path: Folder of the session.
        problem: What was wrong with what was found, for a person; empty for nothing.
    """

    def __init__(self, folder: Path, key: str, *, scrollback_bytes: int = SCROLLBACK_BYTES) -> None:
        self._folder = folder
        self._scrollback_bytes = scrollback_bytes
        self.path = folder / _checked(key)
        self.problem = ""

    def load(self) -> SavedWorkspace | None:
        """The workspace that was saved last; None when there is none that can be read.

        A file that is broken, or of a later version of this program, is moved aside, and `problem` says so.
        """
        path = self.path / _FILE
        try:
            check_safe(path)
            return SavedWorkspace.from_bytes(path.read_bytes())
        except FileNotFoundError:
            return None
        except Newer as error:
            self._put_aside(path, f"was saved by a later version of synapse-tui ({error})")
        except Malformed as error:
            self._put_aside(path, f"cannot be understood ({error})")
        except OSError as error:
            self._tell(f"the saved workspace {path} cannot be read: {error.strerror}")
        return None

    def save(self, workspace: SavedWorkspace) -> None:
        """Keep a workspace in place of the one before; scrollbacks of agents that are not in it go.

        Raises:
            OSError: It could not be written; the one before is still there.
        """
        self._make_folder()
        write_private(self.path / _FILE, workspace.to_bytes())
        _sync_folder(self.path)
        kept = {agent.agent_id for agent in workspace.agents}
        for path in self._scrollbacks():
            if path.name.removesuffix(_SUFFIX) not in kept:
                path.unlink(missing_ok=True)

    def save_scrollback(self, agent_id: str, data: bytes) -> None:
        """Keep the lines of an agent's terminal.

        Args:
            agent_id: The agent.
            data: A rendered `terminal.History`; its oldest lines are left out where it is too large.

        Raises:
            OSError: It could not be written; what was kept before is still there.
        """
        self._make_folder()
        packed = zlib.compress(data)
        while len(packed) > self._scrollback_bytes:
            data = newest_lines(data, int(len(data) * _MARGIN * self._scrollback_bytes / len(packed)))
            packed = zlib.compress(data)
        write_private(self._scrollback(agent_id), packed)

    def load_scrollback(self, agent_id: str) -> bytes:
        """The lines that were kept of an agent's terminal; empty when there are none that can be read."""
        path = self._scrollback(agent_id)
        try:
            check_safe(path)
            packed = path.read_bytes()
            return zlib.decompressobj().decompress(packed, _MOST_TEXT)
        except FileNotFoundError:
            return b""
        except zlib.error as error:
            self._put_aside(path, f"cannot be unpacked ({error})")
        except OSError as error:
            self._tell(f"the saved scrollback {path} cannot be read: {error.strerror}")
        return b""

    def forget_scrollbacks(self) -> None:
        """Remove the lines of all agents."""
        for path in self._scrollbacks():
            path.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove everything that is kept of the session."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _scrollback(self, agent_id: str) -> Path:
        return self.path / f"{_checked(agent_id)}{_SUFFIX}"

    def _scrollbacks(self) -> Iterator[Path]:
        yield from sorted(self.path.glob(f"*{_SUFFIX}"))

    def _make_folder(self) -> None:
        private_folder(self._folder)
        private_folder(self.path)

    def _put_aside(self, path: Path, why: str) -> None:
        aside = path.with_name(f"{path.name}.aside")
        with contextlib.suppress(OSError):
            path.replace(aside)
        self._tell(f"the saved workspace file {path} {why}; it was moved to {aside.name} beside it")

    def _tell(self, problem: str) -> None:
        self.problem = problem
        log.warning("saved workspace is unusable", extra={"problem": problem})


def _checked(name: str) -> str:
    """A name that is one part of a path and nothing else."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{name}' cannot name a file")
    return name


def _sync_folder(path: Path) -> None:
    """Make a rename durable (fsync(2))."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
