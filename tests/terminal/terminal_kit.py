"""What the tests of the terminal core share: feeding a small terminal and saying what it shows."""

from __future__ import annotations

from synapse_tui.terminal import Style, Terminal, TerminalEvent


class Recorder(list[TerminalEvent]):
    """A listener that keeps what it hears."""

    def __call__(self, event: TerminalEvent) -> None:
        """Keep an event."""
        self.append(event)


def make(columns: int = 10, lines: int = 4, scrollback: int = 100) -> tuple[Terminal, Recorder]:
    """A terminal and what it tells."""
    heard = Recorder()
    return Terminal(columns, lines, scrollback, listener=heard), heard


def fed(data: str | bytes, columns: int = 10, lines: int = 4, scrollback: int = 100) -> Terminal:
    """A terminal that has been fed."""
    terminal = Terminal(columns, lines, scrollback)
    terminal.feed(data if isinstance(data, bytes) else data.encode())
    return terminal


def rows(terminal: Terminal) -> list[str]:
    """The rows of the screen without blanks at their ends, and without empty rows at the bottom."""
    shown = [row.rstrip() for row in terminal.display]
    while shown and not shown[-1]:
        shown.pop()
    return shown


def at(terminal: Terminal) -> tuple[int, int]:
    """Column and row of the cursor."""
    return terminal.cursor.x, terminal.cursor.y


def look(terminal: Terminal, x: int, y: int) -> Style:
    """How a cell looks."""
    return terminal.cell(x, y).style


def answer(data: str, columns: int = 10, lines: int = 4) -> str:
    """What a terminal answers to some input."""
    return fed(data, columns, lines).take_replies().decode()
