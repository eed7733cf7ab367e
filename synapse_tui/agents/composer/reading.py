"""Reads an agent's composer off its rendered screen: is it there, is it really empty, what stands in it.

Whether a message may be typed hangs on this reading, so every doubt reads as "not visible".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synapse_tui.agents.profiles.profile import ComposerRules, DialogKind, DialogRule, Profile

from .box import Box, find_box
from .choices import Choices, find_choices
from .placeholder import is_placeholder
from .screen_text import ScreenText

if TYPE_CHECKING:
    from synapse_tui.terminal import Terminal

CHOICES = "list of choices"
"""Name of a dialog that only its structure tells."""
_WRAP_SLACK = 4
"""Cells that agents leave free at the right of a wrapped row, at most."""
_TITLE_LENGTH = 200
_LONG_PASTE = 200
"""No agent puts a stand-in without numbers in place of a text shorter than this."""
_SCROLLED_ROWS = 3
"""A composer that shows only the end of a long draft shows at least so many rows of it."""


@dataclass(frozen=True, slots=True)
class ComposerReading:
    """What the screen shows of the composer.

    Attributes:
        visible: Whether the composer certainly takes keys: no dialog is up, the cursor stands in it.
        draft: The text in it, without frame, prompt and suggestion; rows that the agent wrapped are joined.
        rows: Rows of the screen that the draft takes up.
        placeholder: Whether a suggestion is shown, which is no draft.
        dialog: Whether a dialog waits for a human.
        dialog_name: Name of the dialog's rule; empty without one.
        dialog_kind: What it asks.
        dialog_title: What it asks, in the agent's words; may be empty.
        pastes: The profile's patterns for stand-ins of long pastes.
    """

    visible: bool
    draft: str = ""
    rows: int = 0
    placeholder: bool = False
    dialog: bool = False
    dialog_name: str = ""
    dialog_kind: DialogKind = "permission"
    dialog_title: str = ""
    pastes: tuple[re.Pattern[str], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the composer is there with nothing in it: only then may a message be typed."""
        return self.visible and not self.draft

    def shows(self, text: str) -> bool:
        """Whether exactly this text stands in the composer, or the agent's stand-in for its paste.

        White space is not compared, since agents wrap. A composer that scrolls may show the end of it only.
        """
        if not self.visible or not self.draft:
            return False
        shown, wanted = _squash(self.draft), _squash(text)
        if shown == wanted:
            return True
        if self.rows >= _SCROLLED_ROWS and wanted.endswith(shown):
            return True
        return any(_stands_for(pattern, self.draft, text) for pattern in self.pastes)


class ComposerReader:
    """Reads the composer of one agent again and again.

    Args:
        profile: Its rules; without composer rules nothing is ever visible.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._seen: object = None
        self._reading = ComposerReading(visible=False)

    def read(self, terminal: Terminal, text: ScreenText) -> ComposerReading:
        """Read the composer.

        Args:
            terminal: The agent's terminal.
            text: What its screen shows now.
        """
        if terminal.modes.synchronized:
            return ComposerReading(visible=False)  # half a frame proves nothing
        rules = self._profile.composer
        box = find_box(terminal, text.rows, rules) if rules is not None else None
        asked = _dialog(self._profile.dialogs, text, box)
        if asked is not None:
            rule, title = asked
            return ComposerReading(
                visible=False, dialog=True, dialog_name=rule.name, dialog_kind=rule.kind, dialog_title=title
            )
        if box is None or rules is None:
            if not self._profile.receives:
                return ComposerReading(visible=False)  # a shell: menus in it are the person's own
            cursor = terminal.cursor.x, terminal.cursor.y
            numbered = rules is not None or not terminal.modes.cursor_visible
            return _unknown(find_choices(text.rows, cursor, numbered=numbered, prompts=rules is None))
        return self._read(terminal, text, rules, box)

    def _read(self, terminal: Terminal, text: ScreenText, rules: ComposerRules, box: Box) -> ComposerReading:
        """What stands in it; looked at cell by cell only when something in its rows or the cursor changed."""
        rows = terminal.screen.rows[box.first : box.last + 1]
        cursor = terminal.cursor
        seen = (box, terminal.columns, cursor.x, cursor.y, rows, [row.stamp for row in rows])
        if seen != self._seen:
            self._seen = seen
            self._reading = _read(terminal, text.rows, rules, box)
        return self._reading


def read_composer(terminal: Terminal, profile: Profile) -> ComposerReading:
    """Read the composer off a terminal's screen, once.

    Args:
        terminal: The agent's terminal.
        profile: Its rules; without composer rules nothing is ever visible.
    """
    return ComposerReader(profile).read(terminal, ScreenText.of(terminal))


def screen_rows(terminal: Terminal) -> list[str]:
    """The rows of the screen up to the last one with text, as wide as the screen."""
    return list(ScreenText.of(terminal).rows)


def _dialog(
    rules: Sequence[DialogRule], screen: ScreenText, box: Box | None
) -> tuple[DialogRule, str] | None:
    """The dialog on the screen and its title.

    Where a composer holds the cursor, only what stands in it or below it can be a dialog: above it is the
    conversation, which may well quote one.
    """
    first = box.top if box is not None else 0
    for rule in rules:
        text = screen.tail(rule.tail, first)
        if all(pattern.search(text) for pattern in rule.screen):
            return rule, _title(rule, text)
    return None


def _unknown(choices: Choices | None) -> ComposerReading:
    """A screen without a composer and without a dialog that the profile knows."""
    if choices is None:
        return ComposerReading(visible=False)
    return ComposerReading(
        visible=False,
        dialog=True,
        dialog_name=CHOICES,
        dialog_kind=choices.kind,
        dialog_title=choices.title[:_TITLE_LENGTH],
    )


def _title(rule: DialogRule, text: str) -> str:
    """What is asked, in the agent's words; of several matches of a pattern the lowest one counts."""
    parts: list[str] = []
    for pattern in rule.title:
        found = list(pattern.finditer(text))
        if found:
            parts.append(" ".join(found[-1].group(found[-1].lastindex or 0).split()))
    return " · ".join(part for part in parts if part)[:_TITLE_LENGTH]


def _read(terminal: Terminal, rows: Sequence[str], rules: ComposerRules, box: Box) -> ComposerReading:
    texts = [
        _cut(rows[y] if y < len(rows) else "", rules, first=y == box.first and not box.scrolled)
        for y in range(box.first, box.last + 1)
    ]
    if is_placeholder(terminal, rules, box, texts):
        return ComposerReading(visible=True, placeholder=True, pastes=rules.pastes)
    draft = _join(texts, terminal.columns - box.column)
    if not draft and rules.cursor and terminal.cursor.y == box.first and terminal.cursor.x > box.column:
        draft = " " * (terminal.cursor.x - box.column)  # blanks leave no trace but the cursor's place
    return ComposerReading(visible=True, draft=draft, rows=len(texts), pastes=rules.pastes)


def _cut(row: str, rules: ComposerRules, *, first: bool) -> str:
    """The text of one row, without what the agent draws around it."""
    prefix = (rules.prompt if first else rules.row).match(row)
    text = row[prefix.end() :] if prefix is not None else row
    end = rules.right.search(text) if rules.right is not None else None
    return (text[: end.start()] if end is not None else text).rstrip()


def _join(texts: Sequence[str], width: int) -> str:
    """One text of the composer's rows: a row that had no room for the next word was wrapped by the agent."""
    joined = ""
    for index, text in enumerate(texts):
        if index:
            joined += _seam(texts[index - 1], text, width)
        joined += text
    return joined


def _seam(before: str, after: str, width: int) -> str:
    words = after.split(maxsplit=1)
    if not before or not words:
        return "\n"
    free = width - _cells(before)
    if _cells(words[0]) >= width - _WRAP_SLACK and free <= _WRAP_SLACK:
        return ""
    return " " if free <= _cells(words[0]) + _WRAP_SLACK else "\n"


def _cells(text: str) -> int:
    return sum(2 if ord(character) >= 0x1100 and _wide(character) else 1 for character in text)


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _squash(text: str) -> str:
    return "".join(text.split())


def _stands_for(pattern: re.Pattern[str], draft: str, text: str) -> bool:
    """Whether the draft is nothing but a stand-in, and its numbers are those of the text."""
    found = pattern.fullmatch(" ".join(draft.split()))
    if found is None:
        return False
    lines = text.count("\n") + 1
    wanted = {"lines": (lines,), "more": (lines - 1,), "chars": (len(text), len(text.encode()))}
    told = {name: int(number) for name, number in found.groupdict().items() if number is not None}
    if not told:
        return len(text) >= _LONG_PASTE
    return all(number in wanted[name] for name, number in told.items() if name in wanted)
