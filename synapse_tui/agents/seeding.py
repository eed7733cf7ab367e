"""What an agent's terminal showed before the host ended, put above what its new process shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from synapse_tui.terminal import Terminal

_LINE_END = b"\r\n"
# what is in no rendered history; the file might have been changed by somebody
_FOREIGN = re.compile(
    rb"\x1b(?!\[[0-9;:]*m|\[K|\[[01]\"q|\[\?2027[hl]|\]8;[^\x00-\x1f\x7f]*\x1b\\|\\)"
    rb"|[\x00-\x09\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)


@dataclass(frozen=True, slots=True)
class Past:
    """Lines of before, from a file."""

    history: bytes  # the lines, as `terminal.History.render` makes them
    saved_at: datetime  # when they were kept, aware

    def show(self, terminal: Terminal) -> None:
        """Put the lines and a mark below them into the scrollback of a new terminal.

        The screen stays blank and the cursor at its top: who reads the screen (the detector, the collector of
        answers) takes nothing of it for the agent's words. Some 10 MB/s, so the lines are cut to as many as
        the scrollback keeps.
        """
        lines = self.history.split(_LINE_END)[-max(1, terminal.scrollback.limit) :]
        terminal.feed(_FOREIGN.sub(b"", _LINE_END.join(lines)))
        terminal.feed(b"\x1b[!p\x1b]8;;\x1b\\\x1b[?2027h\r\n" + self._mark().encode() + b"\x1b[m\r\n")
        above = terminal.cursor.y
        terminal.feed(f"\x1b[{terminal.lines}H".encode() + b"\n" * above + b"\x1b[H")
        terminal.take_replies()

    def _mark(self) -> str:
        when = self.saved_at.astimezone()
        return f"\x1b[2m── above: before the restart, {when:%Y-%m-%d %H:%M} ──"
