"""A terminal program with a composer of any shape, and its own log of what it was given.

Started with one argument of JSON (`Shape`) and `--log FILE`. It reports its state by OSC 7501, so that tests
are about its composer alone. Submitted text with `%%ask%%` opens a list of choices, which Escape denies; text
with `%%deaf%%` is never submitted.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import termios
import time
import tty
from dataclasses import asdict, dataclass, field
from pathlib import Path

HINT = 0.2
"""Seconds between two suggestions."""


@dataclass
class Shape:
    frame: str = ""  # `box`, `lines`, `bar`; empty for a bare prompt
    prompt: str = "> "
    more: str = "  "  # what later rows begin with
    min_rows: int = 1
    max_rows: int = 8
    pad_above: int = 0
    pad_below: int = 0
    hints: list[str] = field(default_factory=list)  # suggestions in the empty composer, one after the other
    hint_style: str = "\x1b[2m"
    moves: bool = False  # it changes its place after every message
    vi: bool = False
    drawn_cursor: bool = False
    asks_at_paste: int = 0  # so many pastes open a dialog, which hides the composer
    deaf: int = 0  # so many Enters do nothing
    footer: str = ""
    ctrl_u: bool = True
    works: float = 0.05  # seconds of a turn
    echoes: bool = False  # as a line editor does, with its prompt

    @property
    def json(self) -> str:
        return json.dumps(asdict(self))


class Agent:
    def __init__(self, shape: Shape, log: Path) -> None:
        self.shape = shape
        self.log_file = log
        self.text = ""
        self.said: list[str] = ["A fake agent", ""]
        self.turns = 0
        self.works_until = 0.0
        self.asking = self.will_ask = False
        self.normal = shape.vi
        self.tick = 0

    def log(self, event: str, **fields: object) -> None:
        with self.log_file.open("a") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")

    # -- input

    def take(self, data: str) -> None:
        while data:
            if data.startswith("\x1b[200~") and "\x1b[201~" in data:
                paste, _, data = data[6:].partition("\x1b[201~")
                self.paste(paste.replace("\r", "\n"))
            elif data.startswith("\x1b["):
                data = data[3:]
            else:
                self.key(data[0])
                data = data[1:]

    def paste(self, text: str) -> None:
        if self.shape.asks_at_paste:
            self.shape.asks_at_paste -= 1
            self.text += text
            self.asking = True
            self.report("blocked")
        elif self.normal:
            self.log("command", keys=text)
        elif not self.asking:
            self.text += text

    def key(self, key: str) -> None:
        if self.asking:
            if key in "\r\x1b":
                self.log("answer", approved=key == "\r")
                self.asking = False
                self.said += ["● Answered.", ""]
                self.report("idle")
        elif key == "\x1b":
            self.normal = self.shape.vi
        elif self.normal:
            self.normal = key != "i"
            self.log("command", keys=key)
        elif key == "\r":
            self.enter()
        else:
            self.edit(key)

    def edit(self, key: str) -> None:
        if key == "\x15" and self.shape.ctrl_u:
            self.text = self.text[: self.text.rfind("\n") + 1]
        elif key == "\x7f":
            self.text = self.text[:-1]
        elif key >= " ":
            self.text += key

    def enter(self) -> None:
        if self.shape.deaf or "%%deaf%%" in self.text:
            self.shape.deaf = max(0, self.shape.deaf - 1)
            return
        text, self.text = self.text, ""
        if not text.strip():
            return
        self.log("submit", text=text)
        if self.shape.echoes:
            first, *others = text.split("\n")
            self.said += [self.shape.prompt + first, *(self.shape.more + each for each in others)]
        self.said += [f"● You said {len(text)} characters.", ""]
        self.turns += 1
        self.will_ask = "%%ask%%" in text
        self.works_until = time.monotonic() + self.shape.works
        self.report("working")

    def rest(self) -> None:
        self.works_until = 0.0
        self.asking, self.will_ask = self.will_ask, False
        self.report("blocked" if self.asking else "idle")

    def report(self, state: str) -> None:
        sys.stdout.write(f"\x1b]7501;state={state}\x1b\\")

    # -- output

    def draw(self) -> None:
        columns, lines = os.get_terminal_size()
        self.tick += 1
        if self.asking:
            rows = [*self.said, "Do you want to run this?", "❯ 1. Yes", "  2. No"]
            self.paint(rows[-lines:], (0, min(lines, len(rows)) - 2), shown=False)
            return
        shape = self.shape
        inner = columns - {"box": 4, "bar": 2}.get(shape.frame, 0)
        width = inner - len(shape.prompt)
        wrapped = [part for line in self.text.split("\n") for part in wrap(line, width)]
        shown = wrapped[-shape.max_rows :]
        rows = [(shape.prompt if not y else shape.more) + row for y, row in enumerate(shown)]
        if len(wrapped) > len(shown):
            rows[0] = shape.more + shown[0]
        x, y = len(rows[-1]), len(rows) - 1
        if not self.text and shape.hints:
            hint = shape.hints[(self.turns + self.tick) % len(shape.hints)]
            rows = [f"{rows[0]}{shape.hint_style}{hint}\x1b[0m"]
        plain = [len(row) for row in rows]
        if not self.text and shape.hints:
            plain = [len(shape.prompt) + len(hint)]
        if shape.drawn_cursor:
            rows[y] = f"{shape.prompt}\x1b[7m \x1b[0m" if not self.text else f"{rows[y]}\x1b[7m \x1b[0m"
            plain = [*plain[:y], x + 1, *plain[y + 1 :]]
        blank = shape.min_rows - len(rows)
        below = shape.pad_below + max(0, blank)
        rows = [*[""] * shape.pad_above, *rows, *[""] * below]
        plain = [*[0] * shape.pad_above, *plain, *[0] * below]
        y += shape.pad_above
        rows, x, y = self.framed(rows, plain, columns, x, y)
        footer = [f"\x1b[2m{shape.footer}\x1b[0m"] if shape.footer else []
        if self.normal:
            footer.append("-- NORMAL --")
        said = self.said
        if shape.moves and self.turns % 2:
            self.paint([*rows, *footer, "", *said][:lines], (x, y))
            return
        room = lines - len(rows) - len(footer)
        said = said[-room:]
        self.paint([*said, *rows, *footer], (x, y + len(said)))

    def framed(
        self, rows: list[str], plain: list[int], columns: int, x: int, y: int
    ) -> tuple[list[str], int, int]:
        frame = self.shape.frame
        if frame == "box":
            pads = (" " * (columns - 4 - size) for size in plain)
            inside = [f"│ {row}{pad} │" for row, pad in zip(rows, pads, strict=True)]
            return ["╭" + "─" * (columns - 2) + "╮", *inside, "╰" + "─" * (columns - 2) + "╯"], x + 2, y + 1
        if frame == "lines":
            return ["─" * columns, *rows, "─" * columns], x, y + 1
        if frame == "bar":
            return [f"┃ {row}" for row in rows], x + 2, y
        return rows, x, y

    def paint(self, rows: list[str], cursor: tuple[int, int], *, shown: bool = True) -> None:
        x, y = cursor
        visible = shown and not self.shape.drawn_cursor
        sys.stdout.write(
            "\x1b[?25l\x1b[H\x1b[2J" + "\r\n".join(rows)
            + (f"\x1b[{y + 1};{x + 1}H" if visible or shown is False else "\x1b[1;1H")
            + ("\x1b[?25h" if visible else "")
        )  # fmt: skip
        sys.stdout.flush()

    def run(self) -> None:
        tty.setraw(0)
        signal.signal(signal.SIGWINCH, lambda *_: self.draw())
        sys.stdout.write("\x1b[?2004h")
        self.report("idle")
        self.draw()
        buffer = b""
        while True:
            suggests = self.shape.hints and not self.text
            wait = 0.05 if self.works_until else HINT if suggests else None
            ready, _, _ = select.select([0], [], [], wait)
            if ready:
                data = os.read(0, 65536)
                if not data:
                    return
                buffer += data
                if b"\x1b[200~" in buffer and b"\x1b[201~" not in buffer:
                    continue
                self.take(buffer.decode("utf-8", "replace"))
                buffer = b""
            if self.works_until and time.monotonic() >= self.works_until:
                self.rest()
            self.draw()


def wrap(line: str, width: int) -> list[str]:
    return [line[start : start + width] for start in range(0, max(1, len(line)), width)]


if __name__ == "__main__":
    shape = Shape(**json.loads(sys.argv[1]))
    settings = termios.tcgetattr(0)
    try:
        Agent(shape, Path(sys.argv[sys.argv.index("--log") + 1])).run()
    finally:
        termios.tcsetattr(0, termios.TCSANOW, settings)
