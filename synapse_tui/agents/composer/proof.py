"""Whether a text stands in an agent's composer, judged by what is rendered."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

WINDOW = 40
"""Characters that a composer must at least show of the end of a text when it is too small for all of it."""
HEAD = 20
TAIL = 8
MOST_LOST = 4
"""Of so many characters one may be lost or too many, where characters of disputed width are about."""
ALIKE = 4
"""So many characters must be alike to go on after some that are lost; less only at the end."""
_GAP = 8
"""Characters that may be lost, or too many, in one place."""
_STEPS = sorted(
    ((more, less) for more in range(_GAP + 1) for less in range(_GAP + 1) if more or less),
    key=lambda step: (sum(step), max(step)),
)
_UNSTABLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "So", "Sk", "Zl", "Zp", "Zs"})
"""Categories that agents and terminals lay out differently (white space, emoji, invisible characters)."""


_DISPUTED = frozenset({"Cf", "Mc", "Me", "Mn", "Sk", "So"})
"""Categories of which joined emoji and marks are made."""
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

    What agent and terminal lay out in different widths (joined emoji, marks) may cost its neighbours: cells
    are overwritten, or keep what stood there. So from the first such character on a few may be missing or too
    many; what stands before it, most of the rest and the end of the text must be there.

    Args:
        text: What was typed or submitted.
        pastes: Stand-ins of the agent for a long paste.
    """

    def __init__(self, text: str, pastes: Sequence[re.Pattern[str]] = ()) -> None:
        self.text = text
        self._pastes = pastes
        self._want = skeleton(text)
        self._certain = _certain(text)

    def stands(self, draft: str) -> bool:
        """Whether a draft is the text, all of it or as much as the composer shows.

        The composer was empty and the user's keys are held back, so the draft can only be our text, a part
        of it that is still being drawn, or something of the agent's own.

        Args:
            draft: What the composer shows; its rows are joined by line feeds.

        Returns:
            True when the text is there to its end.
        """
        if self._is(draft):
            return True
        got = skeleton(draft)
        return (
            _cut_in_the_middle(got, self._want)
            or _cut_at_the_end(got, self._want)
            or _laid_out_apart(got, self._want, self._certain)
        )

    def restored(self, draft: str) -> bool:
        """Whether a draft is the text, put back by the agent; a text that a user has changed is not."""
        return bool(skeleton(draft)) and self._is(draft)

    def begun(self, draft: str, screen: str) -> bool:
        """Whether a draft begins as the text does or is a piece of it, or else a row of the screen does.

        Args:
            draft: What the composer shows; where it scrolls that is the middle or the end.
            screen: The screen, for a composer that is not seen.
        """
        head = self._want[:HEAD]
        if not head:
            return False
        got = skeleton(draft)
        if got.startswith(head) or (len(got) >= WINDOW and got in self._want):
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


def _cut_at_the_end(got: str, want: str) -> bool:
    """Claude Code shows only the first row of some texts, until the next key makes it draw the others."""
    shown = got.removesuffix("…")
    return HEAD <= len(shown) < len(got) and want.startswith(shown)


def _certain(text: str) -> int:
    """How many characters of a text's skeleton stand before the first one of disputed width."""
    first = next((place for place, char in enumerate(text) if _disputed(char)), len(text))
    return len(skeleton(text[: max(0, first - 1)])) if first < len(text) else len(text)


def _disputed(char: str) -> bool:
    return char > "\u02ff" and unicodedata.category(char) in _DISPUTED


def _laid_out_apart(got: str, want: str, certain: int) -> bool:
    """Whether the one is the other, but for a few characters here and there next to such of disputed width.

    It takes time in proportion to the texts.

    Args:
        got: Skeleton of what is shown.
        want: Skeleton of the text.
        certain: How many characters of it must be shown exactly.
    """
    left = len(want) // MOST_LOST
    here = there = 0
    while here < len(got) and there < len(want):
        if got[here] == want[there]:
            here, there = here + 1, there + 1
            continue
        step = next((step for step in _STEPS if _alike(got, here + step[0], want, there + step[1])), None)
        if there < certain or step is None or max(step) > left:
            return False
        here, there, left = here + step[0], there + step[1], left - max(step)
    return bool(want) and here == len(got) and there == len(want)


def _alike(got: str, here: int, want: str, there: int) -> bool:
    """Whether two texts go on alike from some places; to the end of both, if that is nearer."""
    following = got[here : here + ALIKE]
    return bool(following) and following == want[there : there + ALIKE]


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
