"""Decides on requests from spools: who asks, whom, and carries them there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from synapse_tui.a2a.dialect import Call
from synapse_tui.a2a.problems import HttpProblem, answer_for
from synapse_tui.a2a.signing import (
    SENDER_HEADER,
    SIGNATURE_HEADER,
    SignatureChecker,
    SignedRequest,
    TokenVerifier,
    Verdict,
)
from synapse_tui.errors import PeerUnreachable, SynapseError
from synapse_tui.registry import Registry
from synapse_tui.spool.folder import Taken
from synapse_tui.spool.messages import SpoolAnswer, SpoolRequest

if TYPE_CHECKING:
    from synapse_tui.a2a.client import A2AClient

log = logging.getLogger(__name__)


class SpoolDesk:
    """Carries requests of this host's agents to agents of this machine, and nothing else anywhere.

    Args:
        registry: Tells which endpoints are agents.
        token_of: The tokens of this host's agents.
        client: Gives the client, which signs in the agent's name.
        endpoints: Gives those of this host's own agents.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        token_of: TokenVerifier,
        client: Callable[[], Awaitable[A2AClient]],
        endpoints: Callable[[], Iterable[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._checker = SignatureChecker(token_of, clock=clock)
        self._client = client
        self._endpoints = endpoints
        self._clock = clock

    async def carry(self, taken: Taken) -> SpoolAnswer:
        """Carry a request to its server.

        Args:
            taken: What was found in a spool.

        Returns:
            The server's answer; where it has none, why.
        """
        try:
            return await self._carry(taken)
        except PeerUnreachable as error:
            return SpoolAnswer(message=error.message, hint=error.hint)
        except SynapseError as error:
            log.info("refused a request from a spool: %s", error.message)
            answer = answer_for(error)
            return SpoolAnswer(answer.status, answer.body)

    async def _carry(self, taken: Taken) -> SpoolAnswer:
        request = taken.request
        if request is None:
            raise HttpProblem(
                400, "malformed_request", f"the file in the spool is no request: {taken.problem}", _VERSIONS
            )
        if self._clock() > request.expires:
            raise PeerUnreachable(
                "the request was taken out of the spool too late; nothing was sent", "send it again"
            )
        sender = self._verified_sender(request)
        await self._check_endpoint(request.endpoint)
        client = await self._client()
        status, body = await client.forward(
            request.endpoint,
            Call(request.method, request.target, request.body),
            sender_id=sender,
            patience=request.timeout,
        )
        return SpoolAnswer(status, body)

    def _verified_sender(self, request: SpoolRequest) -> str:
        """The agent whose signature the request carries.

        Raises:
            HttpProblem: There is no good signature of an agent of this host.
        """
        url = urlsplit(request.endpoint)
        signed = SignedRequest(
            request.method, url.port or 80, url.path.rstrip("/") + request.target, request.body
        )
        sender = request.headers.get(SENDER_HEADER, "")
        signature = request.headers.get(SIGNATURE_HEADER, "")
        verdict = self._checker.check(signed, sender=sender, signature=signature)
        if verdict is not Verdict.VERIFIED:
            raise HttpProblem(
                401,
                f"signature_{verdict}",
                f"the sender's signature is {verdict}: only agents of this host may use its spools",
                "run the command inside the agent, with its own SYNAPSE_AGENT_ID and SYNAPSE_TOKEN",
            )
        return sender

    async def _check_endpoint(self, endpoint: str) -> None:
        """Make sure that a request is for an agent: other services of this machine are none of theirs.

        Raises:
            PeerUnreachable: It is for something else, or for an agent that has ended.
        """
        if endpoint in self._endpoints():
            return
        live, _ = await asyncio.to_thread(self._registry.scan)
        if endpoint not in (record.endpoint for record in live):
            raise PeerUnreachable(
                f"nobody answers at {endpoint}: no agent is recorded there", "see 'synapse list'"
            )


_VERSIONS = "the command and the agent's host must be of the same version of synapse-tui"
