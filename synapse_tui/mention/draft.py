"""A text that remembers which keys typed it, so that it can be handed on as if it had never been held."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Generic

from .model import Pasted, T

_WORD = re.compile(r"\w")


@dataclass(slots=True)
class _Unit(Generic[T]):
    """A piece of the text with the tokens that made it; none when it was pasted or completed."""

    text: str
    tokens: list[T] = field(default_factory=list)


class Draft(Generic[T]):
    """A text with a cursor.

    Attributes:
        cursor: Index of the unit after the cursor; a unit is what one key typed.
    """

    def __init__(self) -> None:
        self._units: list[_Unit[T]] = []
        self._leading: list[T] = []
        self.cursor = 0

    def __len__(self) -> int:
        return len(self._units)

    def text(self, start: int = 0, end: int | None = None) -> str:
        """The text of the units from start to end."""
        return "".join(unit.text for unit in self._units[start:end])

    def tokens(self) -> list[T | Pasted]:
        """The text as what typed it, in order; what no key typed as pasted text."""
        found: list[T | Pasted] = list(self._leading)
        for unit in self._units:
            if unit.tokens:
                found.extend(unit.tokens)
            elif found and isinstance(found[-1], Pasted):
                found[-1] = Pasted(found[-1].text + unit.text)
            else:
                found.append(Pasted(unit.text))
        return found

    def insert(self, text: str, token: T | None = None) -> None:
        """Insert text at the cursor.

        Args:
            text: With a token, what it typed; without one, any text.
            token: What typed it.
        """
        units = [_Unit(character) for character in text] if token is None else [_Unit(text, [token])]
        self._units[self.cursor : self.cursor] = units
        self.cursor += len(units)

    def attach(self, token: T) -> None:
        """Note a token that types nothing (the release of a key) after what was typed last."""
        if self.cursor and self._units[self.cursor - 1].tokens:
            self._units[self.cursor - 1].tokens.append(token)
        elif not self._units:
            self._leading.append(token)

    def remove(self, start: int, end: int) -> None:
        """Remove the units from start to end; the cursor goes there."""
        del self._units[start:end]
        self.cursor = start

    def before(self, least: int = 0) -> int:
        """Where the character before the cursor begins (combining marks belong to it)."""
        at = self.cursor
        while at > least:
            at -= 1
            joined = at > least and self._units[at - 1].text[-1:] == "\u200d"
            if not _extends(self._units[at].text) and not joined:
                break
        return at

    def after(self) -> int:
        """Where the character after the cursor ends."""
        at = min(self.cursor + 1, len(self._units))
        while at < len(self._units) and (
            _extends(self._units[at].text) or self._units[at - 1].text[-1:] == "\u200d"
        ):
            at += 1
        return at

    def word_before(self, least: int = 0) -> int:
        """Where the word before the cursor begins."""
        at = self.cursor
        while at > least and not _is_word(self._units[at - 1].text):
            at -= 1
        while at > least and _is_word(self._units[at - 1].text):
            at -= 1
        return at

    def word_after(self) -> int:
        """Where the word after the cursor ends."""
        at = self.cursor
        while at < len(self._units) and not _is_word(self._units[at].text):
            at += 1
        while at < len(self._units) and _is_word(self._units[at].text):
            at += 1
        return at

    def line_start(self, least: int = 0) -> int:
        """Where the line of the cursor begins."""
        at = self.cursor
        while at > least and self._units[at - 1].text != "\n":
            at -= 1
        return at

    def line_end(self) -> int:
        """Where the line of the cursor ends."""
        at = self.cursor
        while at < len(self._units) and self._units[at].text != "\n":
            at += 1
        return at

    def line_up(self, least: int = 0) -> int:
        """The place one line up; the cursor's own in the first line."""
        start = self.line_start(least)
        if start == least:
            return self.cursor
        column = self.cursor - start
        above = start - 1
        while above > least and self._units[above - 1].text != "\n":
            above -= 1
        return min(above + column, start - 1)

    def line_down(self, least: int = 0) -> int:
        """The place one line down; the cursor's own in the last line."""
        column = self.cursor - self.line_start(least)
        below = self.line_end() + 1
        if below > len(self._units):
            return self.cursor
        end = below
        while end < len(self._units) and self._units[end].text != "\n":
            end += 1
        return min(below + column, end)


def _extends(text: str) -> bool:
    """Whether the text goes on with the character before it (Unicode UAX 29, the part that people type)."""
    return text == "\u200d" or (
        bool(text)
        and (unicodedata.category(text[0]) in {"Mn", "Me", "Mc"} or "\U0001f3fb" <= text[0] <= "\U0001f3ff")
    )


def _is_word(text: str) -> bool:
    return bool(_WORD.match(text))
