"""Whether a text stands in an agent's composer, judged by what is rendered."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

WINDOW = 40
"""Characters that a composer must at least show of the end of a text when it is too small for all of it."""
HEAD = 20
TAIL = 8
_UNSTABLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "So", "Sk", "Zl", "Zp", "Zs"})
"""Categories that agents and terminals lay out differently (white space, emoji, invisible characters)."""


_PROMPT = re.compile(r"^[^\w\[]*")


class _Stable(dict[int, int | None]):
    """What becomes of a character: itself, or nothing; filled as characters come."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        drop = unicodedata.category(char) in _UNSTABLE or "\ufe00" <= char <= "\ufe0f"
        self[code] = None if drop else code
        return self[code]


_STABLE = _Stable()


def skeleton(text: str) -> str:
    """What every agent draws alike of a text: in NFC, no white space, symbols and invisible characters."""
    return unicodedata.normalize("NFC", text).translate(_STABLE)


class Proof:
    """Tells whether a text stands in a composer.

    Args:
        text: What was typed or submitted.
        pastes: Stand-ins of the agent for a long paste.
    """

    def __init__(self, text: str, pastes: Sequence[re.Pattern[str]] = ()) -> None:
        self.text = text
        self._pastes = pastes
        self._want = skeleton(text)

    def stands(self, draft: str) -> bool:
        """Whether a draft is the text, all of it or as much as the composer shows.

        The composer was empty and the user's keys are held back, so the draft can only be our text, a part
        of it that is still being drawn, or something of the agent's own.

        Args:
            draft: What the composer shows; its rows are joined by line feeds.

        Returns:
            True when the text is there to its end.
        """
        return self._is(draft) or _cut_in_the_middle(skeleton(draft), self._want)

    def restored(self, draft: str) -> bool:
        """Whether a draft is the text, put back by the agent; a text that a user has changed is not."""
        return bool(skeleton(draft)) and self._is(draft)

    def begins(self, draft: str, screen: str) -> bool:
        """Whether a draft begins as the text does, or else a row of the screen, but for its prompt."""
        head = self._want[:HEAD]
        if not head:
            return False
        if skeleton(draft).startswith(head):
            return True
        return not draft and any(
            skeleton(_PROMPT.sub("", row)).startswith(head) for row in screen.split("\n")
        )

    def on(self, screen: str) -> bool:
        """Whether the text stands anywhere on a screen: all that can be told without a known composer."""
        return self._want in skeleton(screen)

    def _is(self, draft: str) -> bool:
        pieces, found = _split(draft, self._pastes)
        want = self._want
        if not found:
            got = skeleton(draft)
            if not got:
                return bool(draft.strip()) and draft.split() == self.text.split()
            return got == want or (len(got) >= WINDOW and want.endswith(got))
        first, *middle, last = (skeleton(piece) for piece in pieces)
        if not any((first, *middle, last)):
            return len(found) > 1 or _counts(found[0], self.text)
        return want.startswith(first) and want.endswith(last) and all(piece in want for piece in middle)


def _cut_in_the_middle(got: str, want: str) -> bool:
    """Some agents cut long texts in the middle, and characters of disputed width disturb their neighbours."""
    return len(want) > HEAD + TAIL and got[:HEAD] == want[:HEAD] and got[-TAIL:] == want[-TAIL:]


def _split(draft: str, pastes: Sequence[re.Pattern[str]]) -> tuple[list[str], list[re.Match[str]]]:
    found = sorted((match for pattern in pastes for match in pattern.finditer(draft)), key=re.Match.start)
    pieces, place, kept = [], 0, []
    for match in found:
        if match.start() < place:
            continue
        pieces.append(draft[place : match.start()])
        place = match.end()
        kept.append(match)
    pieces.append(draft[place:])
    return pieces, kept


def _counts(match: re.Match[str], text: str) -> bool:
    """Whether the numbers in a stand-in are those of the text; agents count a little differently."""
    groups = {name: value for name, value in match.groupdict().items() if value}
    breaks = text.count("\n")
    if "more" in groups:
        return abs(int(groups["more"]) - breaks) <= 1
    if "lines" in groups:
        return abs(int(groups["lines"]) - breaks - 1) <= 1
    if "chars" in groups:
        lengths = (len(text), len(text.encode("utf-16-le")) // 2, len(text.encode()))
        return any(abs(int(groups["chars"]) - length) <= 4 for length in lengths)
    return True
