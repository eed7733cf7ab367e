"""Validates message texts, and removes terminal sequences and controls; `hidden.py` removes what misleads."""

from __future__ import annotations

import re

from synapse_tui.core.errors import MessageError, MessageTooLarge
from synapse_tui.core.model import MAX_MESSAGE_BYTES

_CSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
"""ECMA-48 5.4; includes bracketed paste marks."""
_SEQUENCES = re.compile(
    rf"{_CSI.pattern}"
    r"|((?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*)(\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
)
"""Also matches an unterminated string, so that it is not searched again from each of its characters."""
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def check_size(text: str) -> str:
    """Return the text, or raise if it is empty, too large or not valid Unicode."""
    if _SURROGATES.search(text):
        raise MessageError("the message holds half a surrogate pair", "send whole characters")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(
            f"the message has {size:,} bytes; the limit is {MAX_MESSAGE_BYTES:,}",
            "put it in a file and send the path",
        )
    if not clean(text):
        raise MessageError("the message is empty", "give a text")
    return text


def clean(text: str) -> str:
    """Return an untrusted text sanitized and stripped."""
    return harmless(text).strip()


def harmless(text: str) -> str:
    """Remove terminal sequences, controls, and characters that hide or reverse text; line ends become LF.

    Emoji and scripts stay intact: joiners, variation selectors, the tags of flags.
    """
    text = _SEQUENCES.sub(_unclosed, text)
    text = _CONTROLS.sub("", _NEWLINES.sub("\n", text))
    if text.isascii():
        return text
    from .hidden import visible  # noqa: PLC0415 - slow to import

    return _SURROGATES.sub("\ufffd", visible(text))


def _unclosed(sequence: re.Match[str]) -> str:
    return "" if sequence[1] is None or sequence[2] is not None else _CSI.sub("", sequence[1])
