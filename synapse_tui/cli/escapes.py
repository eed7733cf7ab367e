"""Takes escape sequences and control characters out of a terminal's output (ECMA-48 section 5)."""

from __future__ import annotations

import re

_CSI = rb"\x1b\[[0-?]*[ -/]*[@-~]"
_STRING = rb"\x1b[\]PX^_][^\x07\x1b\x18\x1a]*(?:\x07|\x1b\\|\x18|\x1a|(?=\x1b)|\Z)"
"""OSC, DCS, SOS, PM, APC up to their end (BEL, ST), an abort (CAN, SUB) or the next sequence (maybe held)."""
_SHORT = rb"\x1b[ -/]*[0-~]"
_C1 = rb"\xc2[\x80-\x9f]"
"""The 8-bit controls U+0080 to U+009F, as UTF-8 writes them."""
_CONTROL = rb"[\x00-\x08\x0b-\x1f\x7f]"
_SEQUENCES = re.compile(b"|".join((_CSI, _STRING, _SHORT, _C1, _CONTROL)))
_UNFINISHED = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x18\x1a]*\x1b?|[ -/]*)|\xc2)\Z")
MAX_HELD = 64 * 1024


class EscapeStripper:
    """Strips a stream that comes in blocks; a sequence that is cut in two is stripped as well."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Strip a block.

        Returns:
            Its text; a sequence that is not finished is held until it is.
        """
        data = self._held + data
        unfinished = _UNFINISHED.search(data)
        self._held = data[unfinished.start() :] if unfinished else b""
        data = data[: len(data) - len(self._held)]
        if len(self._held) > MAX_HELD:
            self._held = self._held[:2]  # an endless string: go on to drop it
        return _SEQUENCES.sub(b"", data)
