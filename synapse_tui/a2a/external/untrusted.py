"""Text of external agents made harmless: it acts on no terminal, turns no writing, and has an end."""

from __future__ import annotations

from synapse_tui.messages.text import harmless

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
