"""Text of agents without what would act on a terminal."""

from __future__ import annotations

import re

_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """An agent's text without the control characters that would act on the terminal; lines and tabs stay."""
    return _ACTING.sub("", text)
