"""Text of external agents made harmless: it acts on no terminal, turns no writing, and has an end."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit, urlunsplit

from synapse_tui.agents.tasks.message_text import harmless
from synapse_tui.errors import InvalidValue

MAX_TEXT = 1_000_000
"""Characters that are kept of one text."""


def clean_text(text: object, limit: int = MAX_TEXT) -> str:
    """A text with lines and tabs, but without anything that acts or hides; what is no text becomes empty.

    Args:
        text: What came from outside.
        limit: Characters that are kept.
    """
    if not isinstance(text, str):
        return ""
    short = harmless(text[: limit + 1])
    return short if len(text) <= limit else short[: limit - 1] + "…"


def clean_line(text: object, limit: int = 200) -> str:
    """The same as one line; runs of white space become one space."""
    if not isinstance(text, str):
        return ""
    line = " ".join(clean_text(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"[!-~]{1,2000}")
_HINT = "give it as http://HOST:PORT or https://HOST"
_LOOPBACK = "loopback"


def check_url(url: str, *, what: str = "the URL") -> str:
    """Return a URL that can be called.

    Args:
        url: With or without a scheme; `https` is taken for granted, for this machine `http`.
        what: What it is called in the error.

    Raises:
        InvalidValue: It cannot be called, or carries a password.
    """
    text = url.strip()
    if "://" not in text:
        text = f"{'http' if _is_loopback_text(text) else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        ok = (
            parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0 and bool(_URL.fullmatch(text))
        )
    except ValueError:
        ok = False
    if not ok:
        raise InvalidValue(f"{what} '{clean_line(url, 100)}' is no http or https URL", _HINT)
    if parts.username is not None or parts.password is not None:
        raise InvalidValue(
            f"{what} carries a name or a password", "leave them out; use --token-env or --header"
        )
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path, parts.query, ""))


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL as one word; addresses of this machine count as one host.

    A URL that cannot be read has an origin of its own, which is equal to no other's.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        host = _LOOPBACK if is_loopback(parts) else (parts.hostname or "")
    except (KeyError, ValueError):
        return f"invalid:{url}"
    return f"{parts.scheme}://{host}:{port}"


def is_loopback(parts: SplitResult) -> bool:
    """Whether a URL means this machine."""
    return is_loopback_host(parts.hostname or "")


def is_loopback_host(host: str) -> bool:
    """Whether a host's name or address means this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_allowed(url: str, own: str, allowed: Collection[str]) -> bool:
    """Whether a URL is of the origin of another one, or of one that was agreed to.

    Args:
        url: The URL in question.
        own: A URL of the origin that is trusted.
        allowed: URLs of further origins.
    """
    return origin_of(url) in {origin_of(own), *map(origin_of, allowed)}


def shown_origin(url: str) -> str:
    """The origin of a URL as people write it."""
    try:
        parts = urlsplit(url)
        return clean_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", 120)
    except ValueError:
        return clean_line(url, 120)


def _is_loopback_text(text: str) -> bool:
    try:
        return is_loopback_host(urlsplit(f"http://{text}").hostname or "")
    except ValueError:
        return False
