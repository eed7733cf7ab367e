"""Ten times the input takes ten times the work, and what is shown of it as much as before."""

from __future__ import annotations

import pytest
from textual.geometry import Offset, Size

from synapse_tui.core.addresses import Address
from synapse_tui.messages.mention import MentionInterceptor
from synapse_tui.terminal.input import KeyEvent
from synapse_tui.widgets.mention_overlay import MentionOverlay
from tests.work import work

FEW, MANY = 4960, 49_600  # whose last rows are as full as each other
KEYS = 30
MOST = 1.2
"""How much more work a key may be after ten times the text."""

AGENTS = [Address("synapse-gemini-8110", "gemini", "", 8110, "http://127.0.0.1:8110")]


class EmptyComposer:
    visible, draft, vi_normal = True, "", False


def type_mention(text: str, length: int, before: str) -> int:
    """Lines run for keys in a mention of a length, drawn after each; `before` is pressed before each."""
    interceptor = MentionInterceptor[KeyEvent](
        addresses=lambda: AGENTS, sender="synapse-claude-8100", clock=lambda: 0.0
    )
    overlay = MentionOverlay()

    def press(key: KeyEvent) -> None:
        interceptor.key(key, key, EmptyComposer())
        overlay.show(interceptor.view, Size(80, 24), Offset(0, 0))

    for character in "@gemini ":
        press(KeyEvent.of_text(character))
    interceptor.paste(text * (length // len(text)))
    counted = 0
    for number in range(KEYS + 1):
        with work() as each:
            if before:
                press(KeyEvent(before))
            press(KeyEvent.of_text(text[number % len(text)]))
        counted += each.lines if number else 0  # the first key wraps what was pasted
    return counted


@pytest.mark.parametrize("text", ["hello world ", "日本語", "e\u0301", "a\n", "\u0301"])
@pytest.mark.parametrize("before", ["", "left", "backspace"])
def test_a_key_of_a_mention_is_as_much_work_in_a_long_text(text: str, before: str) -> None:
    few, many = (type_mention(text, length, before) for length in (FEW, MANY))
    assert many <= MOST * few, f"{few} lines with {FEW} characters, {many} with {MANY}"
