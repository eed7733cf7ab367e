"""Who may reach the agents of a host, and from where: what the settings say, followed when they change."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.network import LOOPBACK, Network
from synapse_tui.errors import ConfigError
from synapse_tui.events import EventBus, Notice
from synapse_tui.paths import UserPaths
from synapse_tui.settings import Settings, load_settings

log = logging.getLogger(__name__)

Mark = tuple[int, int, int] | None
"""Inode, size and time of a file's change; None where there is none."""


class Reach:
    """The rules about callers, and where and how agents are served.

    Keys that are made or taken back in the user's settings count at once; addresses, names and certificates
    from the next start of the host on.

    Args:
        settings: The settings that hold.
        paths: Folders of the user.
        environ: Environment of the host, which wins over the files.
        events: Told when other machines can reach the agents.
        clock: Gives seconds; never goes back.

    Attributes:
        access: The rules about callers.
        network: Where and how agents are served.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        paths: UserPaths,
        environ: Mapping[str, str],
        events: EventBus,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self._environ = environ
        self._events = events
        self._file = paths.synapse / "settings.json"
        self._mark = _mark(self._file)
        self._fault: ConfigError | None = None
        self._told = False
        self.access = Access(AccessRules.of(settings), reload=self._changed, clock=clock)
        try:
            self.network = Network.of(settings)
        except ConfigError as error:
            self.network, self._fault = LOOPBACK, error

    def check(self) -> None:
        """Make sure that agents may be served as the settings say.

        Raises:
            ConfigError: They may not.
        """
        if self._fault is not None:
            raise self._fault
        self.network.check(self.access.rules)

    def tell(self) -> None:
        """Tell the person, once, when other machines can reach the agents."""
        told = self.network.notice()
        if told and not self._told:
            self._told = True
            log.warning("%s", told)
            self._events.publish(Notice(told, "warning"))

    def _changed(self) -> AccessRules | None:
        """The rules as they are now; None when the user's settings have not changed."""
        mark = _mark(self._file)
        if mark == self._mark:
            return None
        self._mark = mark
        # What a project says counts for nothing here, so none is looked at.
        settings = load_settings(
            self._paths.synapse, paths=self._paths, environ=self._environ, trusted=lambda _path, _data: False
        )
        rules = AccessRules.of(settings)
        if self.access.rules.enabled and rules != self.access.rules and not _is_object(self._file):
            # What a cut-off file does not say any more was not taken back: nobody is let in meanwhile.
            return replace(rules, enabled=True, fault=f"{self._file} cannot be read")
        return rules


def _is_object(path: Path) -> bool:
    """Whether a file of settings is one as a whole, or there is none."""
    try:
        return isinstance(json.loads(path.read_bytes()), dict)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def _mark(path: Path) -> Mark:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
