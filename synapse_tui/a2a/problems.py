"""Maps errors to HTTP answers; the only place where the error tree becomes status codes.

The body is `{"error": {"code", "message", "hint"}, "detail": message}`; the original has only `detail`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from synapse_tui.core import errors
from synapse_tui.core.errors import SynapseError
from synapse_tui.system.dataclass import dataclass

_STATUS: tuple[tuple[type[errors.SynapseError], int], ...] = (
    (errors.MessageTooLarge, 413),
    (errors.TaskNotFound, 404),
    (errors.NotAwaited, 409),
    (errors.TaskEnded, 409),
    (errors.NotWatched, 404),
    (errors.MessageError, 422),
    (errors.InvalidValue, 422),
    (errors.ConfigError, 400),
    (errors.AgentExited, 503),
    (errors.AmbiguousAddress, 409),
    (errors.AddressError, 404),
    (errors.PeerError, 502),
    (errors.PushNotFound, 404),
    (errors.PushLimit, 409),
    (errors.PushError, 422),
    (errors.HistoryError, 503),
)
"""The first matching class decides; otherwise 500."""


class HttpProblem(errors.SynapseError):
    """A request refused by the HTTP layer; `code` is for programs, such as `body_too_large`."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error answer, ready to be sent."""

    status: int
    content: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def body(self) -> bytes:
        return json.dumps(self.content, ensure_ascii=False).encode("utf-8", "replace")


def answer_for(error: errors.SynapseError) -> ErrorAnswer:
    if isinstance(error, HttpProblem):
        return _answer(error.status, error.code, error, error.headers)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return _answer(status, _snake(type(error).__name__), error, {})


def _answer(status: int, code: str, error: errors.SynapseError, headers: Mapping[str, str]) -> ErrorAnswer:
    body = {"code": code, "message": error.message, "hint": error.hint}
    return ErrorAnswer(status, {"error": body, "detail": error.message}, headers)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


JSONRPC_PATHS = ("/", "/a2a/jsonrpc", "/a2a/jsonrpc/", "/a2a/v1", "/a2a/v1/")
REST_PREFIX = "/a2a/rest"
OLD_REST_PREFIXES = (REST_PREFIX, "")
"""REST 0.3 is served at `/v1` below these; clients that know only an agent's URL look for it at the root."""

CARD_PREFIX = "/.well-known/"
_REST_PATHS = (REST_PREFIX + "/", "/v1/")

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


def is_protocol_path(path: str) -> bool:
    """Whether a path belongs to the A2A protocol: JSON-RPC, REST or a card."""
    return path in JSONRPC_PATHS or path.startswith((*_REST_PATHS, CARD_PREFIX))


def refusal(path: str, error: SynapseError) -> ErrorAnswer:
    """The answer to an error, in the protocol of the path."""
    answer = answer_for(error)
    if path in JSONRPC_PATHS and answer.status != 405:  # anything but a POST is not JSON-RPC
        body: dict[str, object] = {
            "code": _CODES.get(answer.status, _INVALID_REQUEST),
            "message": error.message,
            "data": _details(answer.status, error),
        }
        return ErrorAnswer(answer.status, {"jsonrpc": "2.0", "id": None, "error": body}, answer.headers)
    if path == REST_PREFIX or path.startswith(_REST_PATHS):
        body = {
            "code": answer.status,
            "status": _STATUSES.get(answer.status, "INVALID_ARGUMENT"),
            "message": error.message,
            "details": _details(answer.status, error),
        }
        return ErrorAnswer(answer.status, {"error": body}, answer.headers)
    return answer


def _details(status: int, error: SynapseError) -> list[dict[str, object]]:
    """Error details for programs (A2A section 5.4, google.rpc.ErrorInfo)."""
    code = error.code if isinstance(error, HttpProblem) else type(error).__name__
    return [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": _REASONS.get(status, code.upper()),
            "domain": _DOMAIN,
            "metadata": {"hint": error.hint} if error.hint else {},
        }
    ]
