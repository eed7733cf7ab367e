"""Follows a watch to its end by long polls, and tells what happens on the way."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from synapse_tui.a2a import dialect
from synapse_tui.a2a.light import LightClient
from synapse_tui.addresses import Address
from synapse_tui.errors import AgentExited, PeerUnreachable, SynapseError

from .output import plain

Watch = dict[str, Any]
LONGEST_LOOK = 30.0
"""Seconds of one long poll."""
_FLEETING = ("begins", "a nudge is on its way")
PAUSE = 0.5
PATIENCE = 20
"""How many looks in a row may fail while the agent's process lives: a newer version may be taking over."""


class Follower:
    """Follows one watch.

    Args:
        client: Asks the agent's server.
        agent: Who is watched.
        tell: Told of everything that happens, in a line.
        alive: Tells whether the agent's process is there.
        sender_id: Who asks; empty for the person.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        client: LightClient,
        agent: Address,
        tell: Callable[[str], None],
        *,
        alive: Callable[[], bool],
        sender_id: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._agent = agent
        self._tell = tell
        self._sender_id = sender_id
        self._alive = alive
        self._sleep = sleep
        self._told = 0
        self._standing = ""
        self._failures = 0

    def follow(self, watch: Watch) -> Watch:
        """Wait for the end of a watch.

        Returns:
            The watch as it ended.

        Raises:
            AgentExited: The agent ended.
            PeerUnreachable: Its server does not answer any more.
            PeerRefused: It knows of no watch any more.
        """
        self._narrate(watch)
        while watch["state"] == "on":
            newer = self._look(watch)
            if newer is None or newer.get("task") != watch.get("task"):
                return {**watch, "state": "stopped"}
            self._narrate(newer)
            watch = newer
        return watch

    def end(self, watch: Watch) -> None:
        """Ask the host to end the watch; one that is over already is no error."""
        with contextlib.suppress(SynapseError):
            now = self._client.watch(self._agent.endpoint, dialect.watch_call())
            if now is not None and now.get("task") == watch.get("task"):
                self._client.watch(self._agent.endpoint, dialect.END_WATCH, sender_id=self._sender_id)

    def _look(self, watch: Watch) -> Watch | None:
        call = dialect.watch_call(seen=int(watch.get("version", -1)), seconds=LONGEST_LOOK)
        try:
            newer = self._client.watch(self._agent.endpoint, call)
        except PeerUnreachable as error:
            self._failed(error)
            return watch
        self._failures = 0
        return newer

    def _failed(self, error: PeerUnreachable) -> None:
        if not self._alive():
            raise AgentExited(
                f"{self._agent.agent_id} ended while it was watched", "its task has failed; restart it"
            ) from error
        self._failures += 1
        if self._failures >= PATIENCE:
            raise error
        self._sleep(PAUSE)

    def _narrate(self, watch: Watch) -> None:
        """Tell the steps that are new, and what it waits for where that has changed."""
        last = ""
        for step in watch.get("steps", ()):
            if step["number"] > self._told:
                self._told = step["number"]
                last = str(step["text"])
                self._say(_clock(step["at"]), last)
        standing = str(watch.get("waits_for", ""))
        if watch.get("next_in") is not None:
            standing = standing.rpartition(" in ")[0] + f" in {watch['every']:g} s"
        if standing not in ("", *_FLEETING, self._standing) and not last.endswith(standing):
            self._say(_clock(""), standing)
        self._standing = standing

    def _say(self, at: str, text: str) -> None:
        self._tell(f"{at}  {plain(' '.join(text.split()))}")


def label(watch: Watch) -> str:
    """How a watch ended, in words: its last step."""
    steps = watch.get("steps") or [{"text": watch.get("state", "")}]
    return plain(str(steps[-1]["text"]))


def _clock(moment: str) -> str:
    """The time of day here, of a moment in ISO format; of now for an empty one."""
    now = datetime.fromisoformat(moment) if moment else datetime.now().astimezone()
    return f"{now.astimezone():%H:%M:%S}"
