"""Who may reach the agents of a host, and from where: what the settings say, followed when they change."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.network import LOOPBACK, Network
from synapse_tui.errors import ConfigError
from synapse_tui.events import EventBus, Notice
from synapse_tui.settings import Settings

log = logging.getLogger(__name__)


class Reach:
    """The rules about callers, and where and how agents are served.

    Keys that are made or taken back in the user's settings count at once; addresses, names and certificates
    from the next start of the host on.

    Args:
        settings: The settings that hold.
        events: Told when other machines can reach the agents.
        look: Returns when `follow` was called with what the files say now; None where they are not followed.
        clock: Gives seconds; never goes back.

    Attributes:
        access: The rules about callers.
        network: Where and how agents are served.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        events: EventBus,
        look: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events = events
        self._fault: ConfigError | None = None
        self._told = False
        self.access = Access(AccessRules.of(settings), look=look, clock=clock)
        try:
            self.network = Network.of(settings)
        except ConfigError as error:
            self.network, self._fault = LOOPBACK, error

    def follow(self, settings: Settings) -> None:
        """Let in whom other settings let in; where what keeps callers out cannot be read, nobody."""
        self.access.follow(AccessRules.of(settings))

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
