"""Errors of httpx and of the SDK in the words of this program."""

from __future__ import annotations

import re

import httpx

from synapse_tui.errors import PeerRefused, PeerUnreachable, SynapseError

from .origins import shown_origin
from .peer import NotOffered
from .transport import Forbidden
from .untrusted import clean_line

_UNAUTHORIZED = {
    401: "it asks for credentials: add it again with --token-env NAME or --header",
    403: "the credentials do not suffice: look at --token-env and --header",
    404: "is the URL right? 'synapse external info' shows it",
    429: "it is asked too often; try again later",
}
_UNKNOWN = "it is not known whether the message arrived; ask the agent before you send it again"


def problem_of(error: BaseException, url: str, *, sends: bool) -> SynapseError:
    """What went wrong, for a person.

    Args:
        error: What was raised, with what caused it.
        url: Who was called.
        sends: Whether a message was on its way, so that it matters whether it arrived.
    """
    where = shown_origin(url)
    for each in _chain(error):
        if isinstance(each, Forbidden):
            return each.error
        if isinstance(each, SynapseError):
            return each
        if isinstance(each, httpx.HTTPStatusError):
            return _of_status(each, where)
        if isinstance(each, httpx.ConnectTimeout | httpx.ConnectError):
            why = "did not answer in time" if isinstance(each, httpx.ConnectTimeout) else "nobody answers"
            told = _reason(each)
            return PeerUnreachable(f"{where}: {why}" + (f" ({told})" if told else ""), "does the agent run?")
        if isinstance(each, httpx.TimeoutException | TimeoutError):
            return PeerUnreachable(f"{where} did not answer in time", _UNKNOWN if sends else "try again")
        if isinstance(each, httpx.RequestError):
            told = _reason(each) or type(each).__name__
            return PeerUnreachable(f"{where} broke off: {told}", _UNKNOWN if sends else "try again")
    return _of_agent(error, where)


def _reason(error: httpx.RequestError) -> str:
    """What the transport says, which may hold words of whoever was called."""
    return clean_line(_ERRNO.sub("", str(error)), 120)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _of_status(error: httpx.HTTPStatusError, where: str) -> SynapseError:
    status = error.response.status_code
    kind = NotOffered if status in (405, 501) else PeerRefused
    return kind(f"{where} answered with HTTP status {status}", status, _UNAUTHORIZED.get(status, ""))


_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
"""The number before the system's own words, which tells a person nothing."""
_NOT_OFFERED = frozenset({"MethodNotFoundError", "NotImplementedError"})
_STATUS = {"TaskNotFoundError": 404, "TaskNotCancelableError": 409}


def _of_agent(error: BaseException, where: str) -> SynapseError:
    """An error that the agent itself told, in its own words."""
    kind = type(error).__name__
    told = clean_line(getattr(error, "message", "") or str(error), 300) or kind
    refusal = NotOffered if kind in _NOT_OFFERED else PeerRefused
    return refusal(f"{where} refused: {told}", _STATUS.get(kind, 400))
