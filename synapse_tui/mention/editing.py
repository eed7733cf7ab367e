"""Keys of line editing, as readline and the agents' own composers know them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .draft import Draft
from .model import MentionKey, T

_Move = Callable[[Draft[Any], int], int]


def _left(draft: Draft[Any], least: int) -> int:
    return draft.before(least)


def _right(draft: Draft[Any], _least: int) -> int:
    return draft.after()


def _word_left(draft: Draft[Any], least: int) -> int:
    return draft.word_before(least)


def _word_right(draft: Draft[Any], _least: int) -> int:
    return draft.word_after()


def _start(draft: Draft[Any], least: int) -> int:
    return draft.line_start(least)


def _end(draft: Draft[Any], _least: int) -> int:
    return draft.line_end()


def _up(draft: Draft[Any], least: int) -> int:
    return draft.line_up(least)


def _down(draft: Draft[Any], least: int) -> int:
    return draft.line_down(least)


_MOVES: Final[dict[str, _Move]] = {
    "left": _left,
    "right": _right,
    "up": _up,
    "down": _down,
    "home": _start,
    "end": _end,
    "ctrl+a": _start,
    "ctrl+e": _end,
    "ctrl+b": _left,
    "ctrl+f": _right,
    "ctrl+left": _word_left,
    "ctrl+right": _word_right,
    "alt+left": _word_left,
    "alt+right": _word_right,
    "alt+b": _word_left,
    "alt+f": _word_right,
}
_DELETIONS: Final[dict[str, _Move]] = {
    "backspace": _left,
    "shift+backspace": _left,
    "ctrl+h": _left,
    "delete": _right,
    "ctrl+d": _right,
    "ctrl+u": _start,
    "ctrl+k": _end,
    "ctrl+w": _word_left,
    "ctrl+backspace": _word_left,
    "alt+backspace": _word_left,
    "ctrl+delete": _word_right,
    "alt+d": _word_right,
}


def key_name(event: MentionKey) -> str:
    """The key with its modifiers (`ctrl+left`); the keypad's keys under the names of the others."""
    held = "".join(f"{name}+" for name in ("ctrl", "alt", "shift", "super") if getattr(event, name))
    return held + event.key.removeprefix("kp_")


def edit(draft: Draft[T], name: str, least: int) -> bool:
    """Move the cursor or delete.

    Args:
        draft: The text.
        name: The key, as `key_name` gives it.
        least: Unit that the cursor never goes in front of.

    Returns:
        Whether the key is one of line editing.
    """
    if name in _MOVES:
        draft.cursor = _MOVES[name](draft, least)
        return True
    if name in _DELETIONS:
        other = _DELETIONS[name](draft, least)
        draft.remove(min(other, draft.cursor), max(other, draft.cursor))
        return True
    return False
