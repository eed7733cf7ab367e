"""What the agent wrote in a turn: the rows that passed over its screen, without the frame around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from synapse_tui.content import Artifact

from .answer_text import after_echo, cut_prompts, tidy, without_frame, without_prompts
from .stitching import StitchedRows, common

_BARS = frozenset("┃│▐█▌░▒▓|")
_FAR = 40
_SCROLLBAR = re.compile(r"\s{2,}[┃│▐█▌░▒▓]$")
"""At the right edge, apart from the text; the row of a table begins with a border too."""


class AnswerCollector:
    """Collects the rows of one answer, also of agents that paint their own scrolling.

    Args:
        text: The message as it was typed.
        screen: Gives the rows of the screen as they are now.
        pastes: Stand-ins of the agent for a long message.
        framed: Whether those rows hold the composer and what is below it too.
    """

    def __init__(
        self,
        text: str,
        screen: Callable[[], Sequence[str]],
        pastes: Sequence[re.Pattern[str]] = (),
        *,
        framed: bool = True,
    ) -> None:
        self._text = text
        self._screen = screen
        self._pastes = pastes
        self._idle = _rows(screen())
        # Rows that stay the same are frame, but an answer like the one before stays the same too.
        self._frame = self._idle if framed else []
        self._seen = StitchedRows(self._idle)

    def state(self) -> dict[str, object]:
        """What was collected so far, as JSON."""
        return {"idle": self._idle, "framed": bool(self._frame), "seen": self._seen.state()}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where another collector, of which `state` was given, has come to."""
        self._idle = list(state["idle"])
        self._frame = self._idle if state["framed"] else []
        self._seen = StitchedRows.resumed(state["seen"])

    def begin(self) -> None:
        """Enter is about to be pressed: what was on the screen up to now is no answer."""
        self._seen = StitchedRows(_rows(self._screen()))

    def scrolled(self, row: str) -> None:
        """A row has left the screen at its top."""
        self._seen.scrolled(row.rstrip())

    def observe(self) -> bool:
        """Look at the screen.

        Returns:
            Whether it differs from the last look.
        """
        return self._seen.look(_rows(self._screen()))

    def peek(self) -> str:
        """The answer as far as it can be seen."""
        return self._read(())[0]

    def echoed(self) -> bool:
        """Whether the agent shows the message in its conversation."""
        return self._read(())[1]

    def finish(self, prompts: Sequence[str] = (), steered_by: Sequence[str] = ()) -> Artifact:
        """The answer.

        Args:
            prompts: Later prompts: what follows one is cut off.
            steered_by: Messages that came into the turn: they are taken out.
        """
        self.observe()
        text, found = self._read(prompts, steered_by)
        return Artifact(text, truncated=self._seen.truncated or not found)

    def _read(self, prompts: Sequence[str], steered_by: Sequence[str] = ()) -> tuple[str, bool]:
        """The answer, and whether its beginning was found."""
        rows = without_frame(self._seen.rows, self._frame)
        answer = after_echo(rows, self._text, self._pastes, known=common(rows, self._idle))
        if answer is None:
            before = set(self._idle)
            rows = [row for row in rows if not row or row not in before]
        rows = without_prompts(rows if answer is None else answer, steered_by)
        return tidy(cut_prompts(rows, prompts)), answer is not None


def _rows(display: Sequence[str]) -> list[str]:
    return [_without_scrollbar(row.rstrip()) for row in display]


def _without_scrollbar(row: str) -> str:
    first = row.lstrip()[:1]
    if first in _BARS:
        alone = len(row.lstrip()) == 1 and len(row) > _FAR
        return "" if alone else row
    return _SCROLLBAR.sub("", row)
