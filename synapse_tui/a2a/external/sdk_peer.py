"""An external agent that speaks A2A 1.0 or 0.3, over JSON-RPC or REST: by the client of the A2A SDK."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")  # before the SDK is imported

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as pb

from .from_wire import snapshot_of, update_of
from .limits import Budget
from .problems import problem_of
from .record import ExternalAgent, Interface
from .updates import Outgoing, Snapshot, Update

GET_TIMEOUT = 30.0
"""Seconds in which the state of a task must have come."""
HISTORY = 20
"""How many messages of a task are asked for."""


class SdkPeer:
    """One agent by the SDK's client.

    Args:
        agent: The agent.
        interface: How it is called.
        http: Makes the requests; closed with this.
        budget: What the agent may send.
    """

    def __init__(
        self, agent: ExternalAgent, interface: Interface, http: httpx.AsyncClient, budget: Budget
    ) -> None:
        self._url = interface.url
        self._http = http
        self._budget = budget
        self._streaming = agent.streaming
        card = _card(agent, interface)
        self._plain = _client(card, http, streaming=False)
        self._live = _client(card, http, streaming=True)

    @property
    def streaming(self) -> bool:
        """Whether it tells of its work while it works."""
        return self._streaming

    async def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[Update, None]:
        """Send a message.

        Raises:
            PeerError: It did not go as asked.
        """
        client = self._live if stream else self._plain
        request = _request(outgoing)
        async with contextlib.aclosing(self._told(client.send_message(request), sends=True)) as told:
            async for update in told:
                yield update

    async def subscribe(self, task_id: str) -> AsyncGenerator[Update, None]:
        """What happens to a task from now on.

        Raises:
            PeerError: It did not go as asked.
        """
        request = pb.SubscribeToTaskRequest(id=task_id)
        async with contextlib.aclosing(self._told(self._live.subscribe(request), sends=False)) as told:
            async for update in told:
                yield update

    async def get(self, task_id: str) -> Snapshot:
        """A task as it is.

        Raises:
            PeerError: It did not go as asked.
        """
        request = pb.GetTaskRequest(id=task_id, history_length=HISTORY)
        return snapshot_of(await self._asked(lambda: self._plain.get_task(request)))

    async def cancel(self, task_id: str) -> Snapshot:
        """Cancel a task.

        Raises:
            PeerError: It did not go as asked.
        """
        request = pb.CancelTaskRequest(id=task_id)
        return snapshot_of(await self._asked(lambda: self._plain.cancel_task(request)))

    async def close(self) -> None:
        """End the connection."""
        await self._http.aclose()

    async def _asked(self, ask: Callable[[], Any]) -> pb.Task:
        try:
            async with asyncio.timeout(GET_TIMEOUT):
                task: pb.Task = await ask()
        except Exception as error:
            raise problem_of(error, self._url, sends=False) from error
        return task

    async def _told(
        self, stream: AsyncIterator[pb.StreamResponse], *, sends: bool
    ) -> AsyncGenerator[Update, None]:
        try:
            async for response in stream:
                sends = False
                await self._budget.event()  # also for what is not understood, or about another task
                update = update_of(response)
                if update is not None:
                    yield update
        except Exception as error:
            raise problem_of(error, self._url, sends=sends) from error
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()


def _client(card: pb.AgentCard, http: httpx.AsyncClient, *, streaming: bool) -> Client:
    config = ClientConfig(
        streaming=streaming,
        polling=not streaming,
        httpx_client=http,
        supported_protocol_bindings=["JSONRPC", "HTTP+JSON"],
    )
    own = copy.deepcopy(card)
    own.capabilities.streaming = streaming
    return ClientFactory(config).create(own)


def _card(agent: ExternalAgent, interface: Interface) -> pb.AgentCard:
    """A card as the SDK wants it, with the one interface that was chosen."""
    way = pb.AgentInterface(
        url=interface.url,
        protocol_binding=interface.binding,
        protocol_version=interface.version,
        tenant=interface.tenant,
    )
    return pb.AgentCard(name=agent.name, supported_interfaces=[way])


def _request(outgoing: Outgoing) -> pb.SendMessageRequest:
    return pb.SendMessageRequest(
        message=pb.Message(
            message_id=outgoing.message_id,
            role=pb.ROLE_USER,
            parts=[pb.Part(text=outgoing.text, media_type="text/plain")],
            task_id=outgoing.task_id,
            context_id=outgoing.context_id,
        )
    )
