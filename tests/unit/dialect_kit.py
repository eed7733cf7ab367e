"""An agent's routes behind their gate, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from synapse_tui.a2a.agent import NO_SERVICES, Services
from synapse_tui.a2a.guard import Guard
from synapse_tui.a2a.routes import build_app
from synapse_tui.a2a.signing import SignatureChecker, SignedRequest, signature_headers
from synapse_tui.a2a.socket_owner import Address, Owner
from tests.fake_agent import FakeAgent

TOKENS = {"synapse-codex-8120": "codex-secret", "user": "user-secret", "synapse-system": "system-secret"}


class Doorkeeper:
    """An `OwnerOf` whose answer is settable; counts its questions."""

    def __init__(self) -> None:
        self.owner = Owner.OURS
        self.asked = 0

    async def __call__(self, client: Address, server: Address) -> Owner:
        self.asked += 1
        return self.owner


@asynccontextmanager
async def served(
    agent: FakeAgent,
    doorkeeper: Doorkeeper | None = None,
    *,
    services: Services = NO_SERVICES,
    max_body: int = 2 * 1024 * 1024,
    body_timeout: float = 30,
) -> AsyncIterator[httpx.AsyncClient]:
    checker = SignatureChecker(TOKENS.get)
    gate = Guard(
        build_app(),
        agent,
        checker=checker,
        services=services,
        owner=doorkeeper or Doorkeeper(),
        max_body=max_body,
        body_timeout=body_timeout,
    )
    transport = httpx.ASGITransport(app=gate, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{agent.port}") as client:
        yield client


def message(text: str = "Hello!", **metadata: object) -> dict[str, object]:
    return {"message": {"role": "user", "parts": [{"type": "text", "text": text}]}, "metadata": metadata}


def signer(sender: str, port: int = 8100, token: str | None = None) -> Callable[[httpx.Request], None]:
    """Signs a request in place."""

    def sign(request: httpx.Request) -> None:
        signed = SignedRequest(request.method, port, request.url.raw_path.decode(), request.content)
        request.headers.update(signature_headers(signed, agent_id=sender, token=token or TOKENS[sender]))

    return sign
