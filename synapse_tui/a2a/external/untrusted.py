"""Text and URLs of external agents: text is sanitized, URLs are compared by origin (RFC 6454)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit, urlunsplit

from synapse_tui.core.errors import InvalidValue
from synapse_tui.messages.text import harmless

MAX_TEXT = 1_000_000  # maximum characters of a stored text
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"[!-~]{1,2000}")


def clean_text(text: object, limit: int = MAX_TEXT) -> str:
    """Remove characters that control a terminal or hide text, except line ends and tabs. Other types: ""."""
    if not isinstance(text, str):
        return ""
    short = harmless(text[: limit + 1])
    return short if len(text) <= limit else short[: limit - 1] + "…"


def clean_line(text: object, limit: int = 200) -> str:
    if not isinstance(text, str):
        return ""
    line = " ".join(clean_text(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def check_url(url: str, *, what: str = "the URL") -> str:
    """Complete and validate an HTTP(S) URL. The default scheme is `https`, for loopback hosts `http`."""
    text = url.strip()
    if "://" not in text:
        text = f"{'http' if _is_loopback_text(text) else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        ok = parts.scheme in _PORTS and parts.hostname and parts.port != 0 and _URL.fullmatch(text)
    except ValueError:
        ok = False
    if not ok:
        raise InvalidValue(
            f"{what} '{clean_line(url, 100)}' is not an http or https URL",
            "give it as http://HOST:PORT or https://HOST",
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidValue(
            f"{what} contains a user name or a password",
            "leave them out; name a variable with a bearer token, or give a header",
        )
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path, parts.query, ""))


def origin_of(url: str) -> str:
    """Scheme, host and port in one string; all loopback addresses count as one host.

    A URL that cannot be parsed gets an origin that equals no other.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        host = "loopback" if is_loopback(parts) else (parts.hostname or "")
    except (KeyError, ValueError):
        return f"invalid:{url}"
    return f"{parts.scheme}://{host}:{port}"


def is_loopback(parts: SplitResult) -> bool:
    return is_loopback_host(parts.hostname or "")


def is_loopback_host(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_allowed(url: str, own: str, allowed: Collection[str]) -> bool:
    return origin_of(url) in {origin_of(own), *map(origin_of, allowed)}


def shown_origin(url: str) -> str:
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
