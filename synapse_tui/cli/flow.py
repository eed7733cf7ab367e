"""Whether a send waits for the answer (design, decision 6)."""

from __future__ import annotations

from typing import Literal

Flow = Literal["auto", "roundtrip", "oneway"]


def waits(flow: str, response: bool | None) -> bool:
    """Whether to wait.

    Args:
        flow: The setting `a2a.flow`.
        response: True for `--response`, False for `--no-response`, None for neither.
    """
    if flow == "roundtrip":
        return True
    if flow == "oneway":
        return False
    return response is not False
