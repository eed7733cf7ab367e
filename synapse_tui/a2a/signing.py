"""Signed requests, which prove their sender without sending a secret.

Each hosted agent has a token that only its host and its own processes know. A request has the headers

    X-Synapse-Sender: synapse-claude-8100
    X-Synapse-Signature: t=<unix seconds>,n=<nonce>,v1=<hex HMAC-SHA-256>

The HMAC is over `t.n.METHOD.port.target.sha256(body)` with the token as key. `port` is the receiver's, so
that a signed message cannot be forwarded to another agent; `target` is the path with its query, so that its
priority cannot be changed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from enum import StrEnum

from synapse_tui.system.dataclass import dataclass

SENDER_HEADER = "X-Synapse-Sender"
SIGNATURE_HEADER = "X-Synapse-Signature"
MAX_AGE = 300.0
"""Maximum difference between a signature's time and our clock, in seconds."""
MAX_NONCES = 10_000
_AGENT_PREFIX = "synapse-"
"""Agent ids are unique per machine. Other ids (`user`) exist in every host, each with its own token."""
_SIGNATURE = re.compile(r"t=(\d{1,12}),n=([A-Za-z0-9_-]{8,64}),v1=([0-9a-f]{64})")

TokenVerifier = Callable[[str], str | None]
"""Returns the token of an agent id; None if this host does not know it."""


def no_token(agent_id: str) -> str | None:  # noqa: ARG001 - a TokenVerifier
    return None


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The parts of a request that a signature covers.

    Attributes:
        port: Port of the receiver.
        target: Path and query, such as `/tasks/send-priority?priority=5`.
        digest: Hex SHA-256 of the body, if `body` is not the whole.
    """

    method: str
    port: int
    target: str
    body: bytes = b""
    digest: str = ""

    def code(self, token: str, timestamp: str, nonce: str) -> str:
        digest = self.digest or hashlib.sha256(self.body).hexdigest()
        text = f"{timestamp}.{nonce}.{self.method}.{self.port}.{self.target}.{digest}"
        return hmac.new(token.encode(), text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def signature_headers(
    request: SignedRequest,
    *,
    agent_id: str,
    token: str,
    clock: Callable[[], float] = time.time,
    make_nonce: Callable[[], str] = lambda: os.urandom(16).hex(),
) -> dict[str, str]:
    """Sign a request. It must be signed again if it is sent again.

    `clock` returns seconds since the epoch; `make_nonce` 8 to 64 URL-safe characters, never the same twice.
    """
    timestamp, nonce = str(int(clock())), make_nonce()
    code = request.code(token, timestamp, nonce)
    return {SENDER_HEADER: agent_id, SIGNATURE_HEADER: f"t={timestamp},n={nonce},v1={code}"}


class SignatureCheck(StrEnum):
    """Result of checking a signature."""

    VERIFIED = "verified"
    STRANGER = "stranger"
    """Not an agent of this host, so the signature cannot be checked."""
    MALFORMED = "malformed"
    WRONG = "wrong"
    EXPIRED = "expired"
    REPLAYED = "replayed"


class SignatureChecker:
    """Checks signatures and remembers their nonces to prevent replays."""

    def __init__(self, token_of: TokenVerifier, *, clock: Callable[[], float] = time.time) -> None:
        self.token_of = token_of
        self._clock = clock
        self._seen: OrderedDict[tuple[str, str], float] = OrderedDict()

    def is_ours(self, sender: str) -> bool:
        return sender.startswith(_AGENT_PREFIX) and bool(self.token_of(sender))

    def check(self, request: SignedRequest, *, sender: str, signature: str) -> SignatureCheck:
        """Check the values of `X-Synapse-Sender` and `X-Synapse-Signature` of a request."""
        match = _SIGNATURE.fullmatch(signature)
        if match is None or not sender:
            return SignatureCheck.MALFORMED
        token = self.token_of(sender)
        if not token:
            return SignatureCheck.STRANGER
        timestamp, nonce, code = match.groups()
        if not hmac.compare_digest(request.code(token, timestamp, nonce), code):
            return SignatureCheck.WRONG if sender.startswith(_AGENT_PREFIX) else SignatureCheck.STRANGER
        now = self._clock()
        if abs(now - int(timestamp)) > MAX_AGE:
            return SignatureCheck.EXPIRED
        return self._first_use(sender, nonce, now)

    def _first_use(self, sender: str, nonce: str, now: float) -> SignatureCheck:
        # Twice the age, since signatures may come from ahead of our clock.
        while self._seen and next(iter(self._seen.values())) < now - 2 * MAX_AGE:
            self._seen.popitem(last=False)
        if (sender, nonce) in self._seen:
            return SignatureCheck.REPLAYED
        if len(self._seen) >= MAX_NONCES:
            self._seen.popitem(last=False)
        self._seen[sender, nonce] = now
        return SignatureCheck.VERIFIED
