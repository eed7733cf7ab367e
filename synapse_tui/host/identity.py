"""Secrets of the agents of one host: who signs with which token."""

from __future__ import annotations

import secrets

from synapse_tui.model import USER


class Tokens:
    """One secret token for each hosted agent, and one for the person at the keyboard.

    A token lives as long as its agent, is never written to a file, and reaches it by its environment.
    """

    def __init__(self) -> None:
        self._tokens = {USER.sender_id: secrets.token_urlsafe(32)}

    def issue(self, agent_id: str) -> str:
        """Return the agent's token, made at the first call."""
        return self._tokens.setdefault(agent_id, secrets.token_urlsafe(32))

    def put(self, agent_id: str, token: str) -> None:
        """Go on with a token that was issued by the host before."""
        self._tokens[agent_id] = token

    def revoke(self, agent_id: str) -> None:
        """Forget the token of an agent that was closed."""
        self._tokens.pop(agent_id, None)

    def __call__(self, sender_id: str) -> str | None:
        """The token of a sender of this host, or None when it is none of ours."""
        return self._tokens.get(sender_id)
