"""Watches over agents in the HTTP dialect, from the caller's side; no I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from synapse_tui.errors import PeerRefused

from .dialect import Call

END_WATCH = Call("DELETE", "/watch")


def begin_watch_call(fields: Mapping[str, object]) -> Call:
    """The call that begins a watch; what is not given has its default there."""
    return Call("POST", "/watch", json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))


def watch_call(*, seen: int = -1, seconds: float = 0.0) -> Call:
    """The call that reads a watch as soon as it is another one than was seen, or after so many seconds."""
    target = f"/watch?wait={seconds:g}&seen={seen}" if seconds else "/watch"
    return Call("GET", target, wait=seconds)


def read_watch(endpoint: str, value: object) -> dict[str, Any] | None:
    """The watch of an answer; None when there was none.

    Raises:
        PeerRefused: It tells none.
    """
    found = value.get("watch", "") if isinstance(value, dict) else ""
    if found is None:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("state"), str):
        raise PeerRefused(f"{endpoint} answered without a watch", 502, "is it an agent of this version?")
    return found
