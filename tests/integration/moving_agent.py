"""An agent whose composer moves: in the middle of its first screen, then at the left below the conversation.

It has a suggestion and the name of a model in its composer, shows a moon until it answers, another tip beside
each turn, which option is chosen by colour alone, and asks why it may not run a command.
"""

from __future__ import annotations

import os
import sys
import time

from tests.integration.odd_agent import THINKS, Agent, cells, wrapped_to

TIPS = ("press tab for a plan", "name files with @", "start a line with ! for a shell")
MOONS = "🌑🌒🌓🌔🌕🌖🌗🌘"
SIGHS = 0.3  # seconds until it answers


class Moving(Agent):
    def __init__(self) -> None:
        super().__init__()
        self.trusted = True
        self.said = []
        self.turns = 0
        self.reason = False  # whether it asks why it may not

    def key(self, key: str) -> None:
        if key == "\x1b" and not self.command:
            self.working = 0.0
        elif key != "\x03":
            super().key(key)

    def submit(self) -> None:
        self.turns += bool(self.text.strip()) and not self.working
        super().submit()

    def decide(self, key: str) -> None:
        if key == "\x1b":
            self.reason = not self.reason
        elif key == "\r":
            super().decide("n" if self.reason else "y")
            self.reason = False

    def draw(self) -> None:
        columns, lines = os.get_terminal_size()
        if self.command and self.reason:
            rows = ["┃  Why not?", "┃", "┃  enter confirm  esc cancel"]
        elif self.command:
            rows = ["┃  Permission required", f"┃  Run {self.command}", "┃"]
            rows.append("┃  \x1b[46mAllow once\x1b[m   Reject         ⇆ select  enter confirm")
        else:
            self.draw_composer(columns, lines)
            return
        self.paint([*wrapped_to(columns, self.said)[-(lines - len(rows)) :], *rows], 3, 0)
        sys.stdout.write("\x1b[?25l")

    def draw_composer(self, columns: int, lines: int) -> None:
        indent, width = (2, columns - 6) if self.said else (12, columns - 26)
        bar = f"{' ' * indent}┃"
        wrapped = wrapped_to(width, self.text.split("\n"))[-6:]
        inside = [f"{bar}  {row}" for row in wrapped]
        if not self.text and not self.said:
            inside = [f"{bar}  \x1b[2mAsk anything\x1b[m"]
        box = [bar, *inside, bar, f"{bar}  Some Model", f"{' ' * indent}╹{'▀' * width}"]
        footer = f"   a folder{TIPS[self.turns % len(TIPS)]:>40}"
        above = [""]
        if self.working:
            seconds = time.monotonic() - self.working
            moon = f"  {MOONS[int(seconds * 10) % 8]} · Tip: {TIPS[self.turns % len(TIPS)]}"
            above = ["", moon if seconds < SIGHS else f"  Busy for {seconds:.0f}s, esc stops", ""]
        said = wrapped_to(columns, self.said)[-(lines - len(box) - len(above) - 1) :]
        above = [*said, *above] if self.said else ["", "moving agent 1.0", ""]
        x = indent + 3 + cells(wrapped[-1])
        self.paint([*above, *box, footer], x, len(above) + len(wrapped))
        sys.stdout.write("\x1b[?25h")


if __name__ == "__main__":
    assert SIGHS < THINKS
    Moving().run()
