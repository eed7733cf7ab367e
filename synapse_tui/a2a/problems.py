"""Errors as HTTP sees them: the one place where the error tree becomes status codes.

The body is `{"error": {"code", "message", "hint"}, "detail": message}`; the original has only `detail`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from synapse_tui import errors

_STATUS: tuple[tuple[type[errors.SynapseError], int], ...] = (
    (errors.MessageTooLarge, 413),
    (errors.TaskNotFound, 404),
    (errors.NotAwaited, 409),
    (errors.TaskEnded, 409),
    (errors.SlowReader, 503),
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
)
"""The first class that fits decides; anything else is 500."""


class HttpProblem(errors.SynapseError):
    """A request that HTTP itself refuses.

    Args:
        status: HTTP status code.
        code: The error in one word for programs (`body_too_large`).
        message: What happened.
        hint: What to do about it.
        headers: To be sent with the answer.
    """

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Answer:
    """An error answer, ready to be sent.

    Attributes:
        status: HTTP status code.
        content: The JSON object.
        headers: Besides type and length.
    """

    status: int
    content: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def body(self) -> bytes:
        """The content as bytes."""
        return json.dumps(self.content, ensure_ascii=False).encode("utf-8", "replace")


def answer_for(error: errors.SynapseError) -> Answer:
    """The answer that tells a caller of an error."""
    if isinstance(error, HttpProblem):
        return _answer(error.status, error.code, error, error.headers)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return _answer(status, _snake(type(error).__name__), error, {})


def _answer(status: int, code: str, error: errors.SynapseError, headers: Mapping[str, str]) -> Answer:
    told = {"code": code, "message": error.message, "hint": error.hint}
    return Answer(status, {"error": told, "detail": error.message}, headers)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
