"""The grammar of what a child writes (ECMA-48 5.4, xterm ctlseqs), as regular expressions.

One scanner runs over decoded text. What ordinary programs send in large amounts is one token each: text
with its line break, a rendition with the text after it, a cursor position with both. What the scanner does
not match is a sequence that is not complete yet, one with a control inside, or a long string; the stream
handles these apart, so that the time stays in proportion to the input whatever comes.
"""

from __future__ import annotations

import re

_TEXT = "[^\\x00-\\x1f\\x7f-\\x9f]"

TOKENS = re.compile(
    f"({_TEXT}+)(\r\n)?"  # 1 text, 2 line break
    f"|\x1b\\[([0-9;:]*)m({_TEXT}*)(\r\n)?"  # 3 SGR, 4 text, 5 line break
    # 6 row, 7 column, 8 SGR, 9 text
    f"|\x1b\\[([0-9]{{1,5}});([0-9]{{1,5}})H(?:\x1b\\[([0-9;:]*)m({_TEXT}*))?"
    "|\r(\n)"  # 10
    "|\x1b\\[([<=>?]?)([0-9;:]*)([ -/]*)([@-~])"  # 11 prefix, 12 parameters, 13 intermediates, 14 final
    "|([\x00-\x1a\x1c-\x1f\x7f])"  # 15 control
    "|\x1b([ -/]+)([0-~])"  # 16 intermediates, 17 final
    "|\x1b([0-OQ-WYZ\\\\`-~])"  # 18 final
    "|\x1b\\]([^\x07\x18\x1a\x1b]*)(\x07|\x1b\\\\)"  # 19 OSC, 20 its end
)
GROUPS = TOKENS.groups

C1 = re.compile("[\x80-\x9f]")
C1_TO_ESCAPE = {code: f"\x1b{chr(code - 0x40)}" for code in range(0x80, 0xA0)}
"""ECMA-48 5.3: a C1 control and ESC with the character 0x40 below are the same."""

STRING_END = re.compile("[\x18\x1a\x1b]")
OSC_END = re.compile("[\x07\x18\x1a\x1b]")

MAX_SEQUENCE = 1024
"""Characters that are kept of a sequence while it is not complete; more parameters are dropped."""
MAX_STRING = 4_000_000
"""Characters of a string (OSC, DCS, APC, PM, SOS); a longer one is read over."""
