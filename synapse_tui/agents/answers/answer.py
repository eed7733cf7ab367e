"""What the agent wrote in a turn: the rows that passed over its screen, without the frame around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from synapse_tui.content import Artifact

from .stitching import StitchedRows, common
from .text import after_echo, cut_prompts, cut_work, tidy, without_frame, without_prompts

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
        below: Gives how many rows stand below so many of the screen: the composer and what is under it. None
            where no composer is seen.
        working: What tells that the agent works, and among how many of the screen's last rows it is.
    """

    def __init__(
        self,
        text: str,
        screen: Callable[[], Sequence[str]],
        pastes: Sequence[re.Pattern[str]] = (),
        *,
        below: Callable[[int], int] = lambda _rows: 0,
        working: Sequence[tuple[re.Pattern[str], int]] = (),
    ) -> None:
        self._text = text
        self._screen = screen
        self._pastes = pastes
        self._count_below = below
        self._working = working
        self._idle = _rows(screen())
        self._below = below(len(self._idle))
        # Rows that stay the same are frame, but an answer like the one before stays the same too.
        self._frame = [] if self._below else self._idle
        self._seen = StitchedRows(self._idle)
        self._kept: list[str] | None = None
        """What was seen before the composer went out of sight; None while it is seen, or never was."""

    def state(self) -> dict[str, object]:
        """What was collected so far, as JSON."""
        return {
            "idle": self._idle,
            "framed": bool(self._frame),
            "seen": self._seen.state(),
            "kept": self._kept,
            "below": self._below,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where another collector, of which `state` was given, has come to."""
        self._idle = list(state["idle"])
        self._frame = self._idle if state["framed"] else []
        self._seen = StitchedRows.resumed(state["seen"])
        self._kept = state.get("kept")
        self._below = state.get("below", 0)

    def begin(self) -> None:
        """Enter is about to be pressed: what was on the screen up to now is no answer."""
        self._seen = StitchedRows(_rows(self._screen()))
        self._kept = None

    def scrolled(self, row: str) -> None:
        """A row has left the screen at its top."""
        self._seen.scrolled(row.rstrip())

    def observe(self) -> bool:
        """Look at the screen.

        Returns:
            Whether it differs from the last look.
        """
        rows = self._screen()
        below = self._count_below(len(rows))
        if below:
            self._below, self._kept = below, None
        elif self._kept is None and not self._frame:
            self._kept = list(self._seen.rows)
        return self._seen.look(_rows(rows))

    def peek(self) -> str:
        """The answer as far as it can be seen."""
        return self._read(())[0]

    def so_far(
        self, prompts: Sequence[str] = (), steered_by: Sequence[str] = ()
    ) -> tuple[Callable[[], str], int]:
        """The answer as far as it can be told while the agent works.

        Args:
            prompts: Later prompts: what follows one is cut off.
            steered_by: Messages that came into the turn: they are taken out.

        Returns:
            What reads it out of the rows of now, in any thread (empty while its beginning is not seen), and
            how many rows there are.
        """
        still = copy(self)
        still._seen = StitchedRows.resumed(self._seen.state())
        cuts = tuple(prompts), tuple(steered_by)

        def read() -> str:
            text, found = still._read(*cuts, exited=True)
            return text if found else ""

        return read, len(still._seen.rows)

    def echoed(self) -> bool:
        """Whether the agent shows the message in its conversation."""
        return self._read(())[1]

    def finish(
        self, prompts: Sequence[str] = (), steered_by: Sequence[str] = (), *, exited: bool = False
    ) -> Artifact:
        """The answer.

        Args:
            prompts: Later prompts: what follows one is cut off.
            steered_by: Messages that came into the turn: they are taken out.
            exited: Whether the agent ended in the midst of its work: what it drew at its end is no answer.
        """
        self.observe()
        text, found = self._read(prompts, steered_by, exited=exited)
        return Artifact(text, truncated=self._seen.truncated or not found)

    def _read(
        self, prompts: Sequence[str], steered_by: Sequence[str] = (), *, exited: bool = False
    ) -> tuple[str, bool]:
        """The answer, and whether its beginning was found."""
        rows = without_frame(self._seen.rows, self._frame)
        if exited:
            reach = [(pattern, tail - self._below) for pattern, tail in self._working]
            rows = cut_work(rows if self._kept is None else self._kept, reach)
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
