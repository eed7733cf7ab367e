"""The signals by which the dummy tells its state to the terminal."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Literal

from .widths import printable

State = Literal["idle", "working", "permission", "question", "done", "error"]

_TITLES = {
    "idle": "✳ Ready",
    "done": "✳ Ready",
    "permission": "✋ Waiting",
    "question": "✋ Waiting",
    "error": "✘ Error",
}
_SPINNER = ("⠂ Working", "⠐ Working")
_PROGRAM_STATES = {"permission": "blocked:kind=permission", "question": "blocked:kind=question"}
_PROGRESS = {"idle": "0", "done": "0", "error": "2;100"}


class StatusSignals:
    """Window title, program status (OSC 7501) and progress (OSC 9;4), each only where it is wanted.

    Args:
        write: Takes the sequences.
        name: The agent's name, part of the title.
        title: Whether to set the title.
        status: Whether to send the program status.
        progress: Whether to send progress.
    """

    def __init__(
        self, write: Callable[[str], None], name: str, *, title: bool, status: bool, progress: bool
    ) -> None:
        self._write = write
        self._name = name
        self._title = title
        self._status = status
        self._progress = progress
        self._shown = ""

    def show(self, state: State) -> None:
        """Tell a new state by all means that are on."""
        self._set_title(_TITLES.get(state, _SPINNER[0]))
        if self._status:
            self._write(f"\x1b]7501;state={_PROGRAM_STATES.get(state, state)}\x1b\\")
        if self._progress:
            self._write(f"\x1b]9;4;{_PROGRESS.get(state, '3')}\x1b\\")

    def spin(self, step: int) -> None:
        """Move the spinner of the title."""
        self._set_title(_SPINNER[step % 2])

    def end(self) -> None:
        """The program ends: nothing of the above holds any more."""
        if self._status:
            self._write("\x1b]7501;state=clear\x1b\\")
        if self._progress:
            self._write("\x1b]9;4;0\x1b\\")
        if self._title:
            self._write("\x1b]0;\x1b\\")

    def _set_title(self, text: str) -> None:
        title = f"{text} · {self._name}"
        if self._title and title != self._shown:
            self._shown = title
            self._write(f"\x1b]0;{title}\x1b\\")

    def force_title(self, text: str) -> None:
        """Set any title, whatever else is off."""
        self._shown = printable(text)
        self._write(f"\x1b]0;{self._shown}\x1b\\")


def notification(text: str) -> str:
    """OSC 9, a desktop notification (iTerm2)."""
    return f"\x1b]9;{printable(text)}\x1b\\"


def clipboard(text: str) -> str:
    """OSC 52, a write to the clipboard (xterm ctlseqs)."""
    return f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x1b\\"
