"""Our errors in the words of the protocol (A2A section 3.3.2); codes and statuses are the SDK's tables."""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, ParamSpec, TypeVar

from a2a.utils import errors as sdk

from synapse_tui import errors
from synapse_tui.a2a.problems import HttpProblem

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_KINDS: tuple[tuple[type[errors.SynapseError], type[sdk.A2AError]], ...] = (
    (errors.TaskNotFound, sdk.TaskNotFoundError),
    (errors.PushNotFound, sdk.TaskNotFoundError),
    (errors.TaskEnded, sdk.UnsupportedOperationError),
    (errors.SlowReader, sdk.InternalError),
    (errors.PushError, sdk.InvalidParamsError),
    (errors.MessageError, sdk.InvalidParamsError),
    (errors.ConfigError, sdk.InvalidParamsError),
)
"""The first class that fits decides; anything else is an internal error."""
_STATUSES = {
    403: sdk.InvalidRequestError,
    404: sdk.TaskNotFoundError,
    409: sdk.UnsupportedOperationError,
    413: sdk.InvalidParamsError,
    415: sdk.ContentTypeNotSupportedError,
    422: sdk.InvalidParamsError,
}


def fault_for(error: errors.SynapseError) -> sdk.A2AError:
    """The protocol's error that tells a caller of ours; the hint goes into its details."""
    if isinstance(error, HttpProblem):
        kind = _STATUSES.get(error.status, sdk.InternalError)
    else:
        kind = next((fault for ours, fault in _KINDS if isinstance(error, ours)), sdk.InternalError)
    return kind(error.message, {"hint": error.hint} if error.hint else None)


def translated(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let an operation raise the protocol's errors only."""

    @functools.wraps(work)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(*args, **kwargs)
        except Exception as error:
            raise _told(error) from error

    return wrapper


def translated_stream(work: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, AsyncGenerator[T, None]]:
    """Let a stream raise the protocol's errors only."""

    @functools.wraps(work)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        try:
            async with aclosing(work(*args, **kwargs)) as found:
                async for each in found:
                    yield each
        except Exception as error:
            raise _told(error) from error

    return wrapper


def _told(error: Exception) -> sdk.A2AError:
    if isinstance(error, sdk.A2AError):
        return error
    if isinstance(error, errors.SynapseError):
        return fault_for(error)
    log.error("request failed", exc_info=error)
    return sdk.InternalError("the agent's server failed; its log says why")
