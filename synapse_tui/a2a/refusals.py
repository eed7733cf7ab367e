"""Refusals in the words of the endpoint that was called: the dialect's, JSON-RPC's or REST's.

What the gate refuses never comes to the protocol's own code, and callers look for errors of their own kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from synapse_tui.errors import SynapseError

from .problems import Answer, HttpProblem, answer_for

JSONRPC_PATHS = ("/", "/a2a/jsonrpc", "/a2a/jsonrpc/", "/a2a/v1", "/a2a/v1/")
REST_PREFIX = "/a2a/rest"
OLD_REST_PREFIXES = (REST_PREFIX, "")
"""Below them lies `/v1` of REST 0.3; clients that know only an agent's URL look for it at the root."""

_CODES: Mapping[int, int] = MappingProxyType({415: -32005, 404: -32601, 500: -32603, 503: -32603})
_INVALID_REQUEST = -32600
_STATUSES: Mapping[int, str] = MappingProxyType(
    {
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        405: "UNIMPLEMENTED",
        408: "DEADLINE_EXCEEDED",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
    }
)
_REASONS: Mapping[int, str] = MappingProxyType({415: "CONTENT_TYPE_NOT_SUPPORTED"})
_DOMAIN = "a2a-protocol.org"


def refusal(path: str, error: SynapseError) -> Answer:
    """The answer that tells a caller of an error.

    Args:
        path: What was called.
        error: What is wrong.
    """
    answer = answer_for(error)
    if path in JSONRPC_PATHS and answer.status != 405:  # whoever does not POST speaks no JSON-RPC
        told: dict[str, object] = {
            "code": _CODES.get(answer.status, _INVALID_REQUEST),
            "message": error.message,
            "data": _details(answer.status, error),
        }
        return Answer(answer.status, {"jsonrpc": "2.0", "id": None, "error": told}, answer.headers)
    if path == REST_PREFIX or path.startswith((REST_PREFIX + "/", "/v1/")):
        told = {
            "code": answer.status,
            "status": _STATUSES.get(answer.status, "INVALID_ARGUMENT"),
            "message": error.message,
            "details": _details(answer.status, error),
        }
        return Answer(answer.status, {"error": told}, answer.headers)
    return answer


def _details(status: int, error: SynapseError) -> list[dict[str, object]]:
    """What programs look at (A2A section 5.4, google.rpc.ErrorInfo)."""
    code = error.code if isinstance(error, HttpProblem) else type(error).__name__
    return [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": _REASONS.get(status, code.upper()),
            "domain": _DOMAIN,
            "metadata": {"hint": error.hint} if error.hint else {},
        }
    ]
