"""What the tokenizer makes of the outer terminal's bytes."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.terminal.input import KeyEvent, MouseEvent


@dataclass(frozen=True, slots=True)
class KeyToken:
    """A key.

    Attributes:
        event: The key as it was understood; without key and text when nobody knows it.
        raw: The bytes that it was.
    """

    event: KeyEvent
    raw: bytes


@dataclass(frozen=True, slots=True)
class TextToken:
    """Many keys that came at once; each types one character and was that character in UTF-8."""

    text: str

    def singly(self) -> list[KeyToken]:
        """The keys one by one."""
        return [KeyToken(KeyEvent.of_text(character), character.encode()) for character in self.text]


@dataclass(frozen=True, slots=True)
class PasteToken:
    """A bracketed paste, whole; line ends are LF."""

    text: str


@dataclass(frozen=True, slots=True)
class MouseToken:
    """A report of the mouse, in cells of the screen from 0."""

    event: MouseEvent


@dataclass(frozen=True, slots=True)
class FocusToken:
    """The terminal's window got or lost the focus."""

    focused: bool


@dataclass(frozen=True, slots=True)
class ReplyToken:
    """An answer of the terminal to a query; never a key."""

    raw: bytes


Token = KeyToken | TextToken | PasteToken | MouseToken | FocusToken | ReplyToken
