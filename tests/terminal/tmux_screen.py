"""tmux as a reference terminal: bytes go into one pane, its cells and cursor are read back."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from synapse_tui.terminal import RGB
from tests.waiting import wait_until

TMUX = shutil.which("tmux")


class Look(NamedTuple):
    """How a cell looks, in the words of `Style`."""

    fg: int = -1
    bg: int = -1
    attributes: frozenset[str] = frozenset()
    underline: int = 0


class Seen(NamedTuple):
    """A character and how it looks."""

    text: str
    look: Look


class TmuxScreen:
    """One pane of a private tmux server.

    Args:
        folder: An empty folder for the socket and the pipe.
        columns: Width in cells.
        lines: Height in rows.
    """

    def __init__(self, folder: Path, columns: int, lines: int) -> None:
        self._pipe = folder / "bytes"
        os.mkfifo(self._pipe)
        self._socket = folder / "socket"
        self._marks = 0
        command = f"stty raw -echo; exec cat {self._pipe}"
        environ = {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "HOME": str(folder),
        }
        self._environ = environ
        config = folder / "tmux.conf"
        config.write_text("set -g status off\nset -g history-limit 5000\n")
        size = ("-x", str(columns), "-y", str(lines))
        self._tmux("-f", str(config), "new-session", "-d", *size, "/bin/sh", "-c", command)
        self._tmux("set-option", "-g", "window-size", "manual")  # tmux 3.3a dies of it in its configuration
        self._file = self._pipe.open("wb", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        subprocess.run([str(TMUX), "-S", str(self._socket), "kill-server"], check=False, capture_output=True)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(TMUX), "-u", "-S", str(self._socket), *arguments],
            check=True,
            capture_output=True,
            env=self._environ,
        )
        return done.stdout.decode("utf-8", "replace")

    def feed(self, data: bytes) -> None:
        """Write to the pane, and wait until tmux has taken it all in; no sequence may be left open."""
        self._marks += 1
        mark = f"mark-{self._marks}"
        for start in range(0, len(data), 16384):
            self._file.write(data[start : start + 16384])
        self._file.write(f"\x1b]2;{mark}\x07".encode())
        self._wait("#{pane_title}", mark)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the pane."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))
        self._wait("#{pane_width} #{pane_height}", f"{columns} {lines}")

    def shown(self) -> tuple[tuple[int, int], list[list[Seen]]]:
        """The cursor and the characters of every row.

        The cursor's column is the width while a wrap is pending. A character that is wide stands once.
        """
        cursor = ("display-message", "-p", "#{cursor_x} #{cursor_y}")
        first, *lines = self._tmux(*cursor, ";", "capture-pane", "-p", "-e", "-N").split("\n")[:-1]
        x, y = first.split()
        look = Look()
        rows = []
        for line in lines:
            row, look = _parse(line, look)
            rows.append(row)
        return (int(x), int(y)), rows

    def _wait(self, form: str, wanted: str) -> None:
        wait_until(lambda: self._tmux("display-message", "-p", form).strip() == wanted, wanted)


_PIECE = re.compile("\x1b\\[([0-9;:]*)m|\x1b\\][^\x1b]*\x1b\\\\|\x0e|\x0f|(.)", re.DOTALL)
_NAMES = {
    1: "bold",
    2: "dim",
    3: "italic",
    5: "blink",
    7: "reverse",
    8: "hidden",
    9: "strike",
    53: "overline",
}


def _parse(line: str, look: Look) -> tuple[list[Seen], Look]:
    row: list[Seen] = []
    for piece in _PIECE.finditer(line):
        if piece.group(2) is not None:
            row.append(Seen(piece.group(2), look))
        elif piece.group(1) is not None:
            look = _apply(look, piece.group(1))
    return row, look


def _apply(look: Look, parameters: str) -> Look:
    """SGR as tmux writes it: it always begins anew with 0, or adds."""
    items = parameters.split(";")
    while items:
        item = items.pop(0)
        number = int(item.split(":")[0] or 0)
        if number == 0:
            look = Look()
        elif item.startswith("4:"):
            look = look._replace(underline=int(item[2:]))
        elif number == 4:
            look = look._replace(underline=1)
        elif number in _NAMES:
            look = look._replace(attributes=look.attributes | {_NAMES[number]})
        elif number in (38, 48):
            color = _extended(items)
            look = look._replace(fg=color) if number == 38 else look._replace(bg=color)
        else:
            look = _plain_color(look, number)
    return look


def _extended(items: list[str]) -> int:
    if items.pop(0) == "5":
        return int(items.pop(0))
    red, green, blue = (int(items.pop(0)) for _ in range(3))
    return RGB | red << 16 | green << 8 | blue


def _plain_color(look: Look, number: int) -> Look:
    for first, shift, field in ((30, 0, "fg"), (40, 0, "bg"), (90, 8, "fg"), (100, 8, "bg")):
        if first <= number < first + 8:
            return (
                look._replace(fg=number - first + shift)
                if field == "fg"
                else look._replace(bg=number - first + shift)
            )
    if number in (39, 49):
        return look._replace(fg=-1) if number == 39 else look._replace(bg=-1)
    return look
