"""An agent like no other: a box with sides, no title, no OSC, Ctrl+C stops, n denies.

It does what the prompts of `synapse doctor` ask for. With `--typed SECONDS` it loads for a while,
has no bracketed paste, forgets what is typed in the first seconds after its question, takes Enter soon after
a text for a line break, stops at Escape too, and puts words of its own around an answer.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import subprocess
import sys
import time
import tty
import unicodedata
from pathlib import Path

CODES = re.compile(r"\b[A-HJ-NP-Z2-9]{5}\b")
THINKS = 0.7
SPINNER = "◴◷◶◵"
SOON = 0.6  # seconds after a text in which Enter is a line break, with `--typed`
TRUST = ["Is this a folder that you trust?", "", "❯ 1. Yes, I trust it", "  2. No, leave"]


class Agent:
    def __init__(self) -> None:
        self.text = ""
        self.said = ["odd agent 4.2", ""]
        self.trusted = False
        self.command = ""  # what it wants to run, while it asks
        self.working = 0.0  # since when
        self.answer: list[str] = []  # what follows the work
        self.wants = ""  # the command that it asks for then
        self.typed = False  # whether it has no bracketed paste
        self.loads = 0.0  # seconds after its question in which it forgets what is typed
        self.deaf = 0.0  # until when it does
        self.last = 0.0  # when the last character of a text came

    def key(self, key: str) -> None:
        if not self.trusted:
            self.trusted = key == "\r"
            self.deaf = time.monotonic() + self.loads
        elif self.command:
            self.decide(key)
        elif key == "\x03" or (self.typed and key == "\x1b"):
            self.working = 0.0
            self.text = ""
        elif key == "\r":
            self.enter()
        elif key == "\x15":
            self.text = ""
        elif key == "\x7f":
            self.text = self.text[:-1]
        elif key >= " " and not self.working:
            self.text += key
            self.last = time.monotonic()

    def enter(self) -> None:
        if self.typed and time.monotonic() < self.last + SOON:
            self.text += "\n"
        else:
            self.submit()

    def decide(self, key: str) -> None:
        if key not in "yn":
            return
        command, self.command = self.command, ""
        if key == "n":
            self.said += ["● Not allowed.", ""]
            return
        subprocess.run(command, shell=True, check=False, stdout=subprocess.DEVNULL)
        self.said += ["● Done.", ""]

    def submit(self) -> None:
        text, self.text = self.text.strip(), ""
        if not text or self.working:
            return
        self.said += [*[f"> {row}" for row in text.split("\n")][:3], ""]
        codes = CODES.findall(text)
        self.working, self.answer, self.wants = time.monotonic(), [], ""
        if found := re.search(r"then stop\. (.+)", text):
            self.wants = found[1].strip()
        elif "two lines" in text:
            self.answer = [f"● {codes[0]}", f"  {codes[-1]}", ""]
        elif "Count from 1 to 400" not in text:
            self.answer = [f"● {codes[0]}-{codes[-1]}" if codes else "● Yes.", ""]
        if self.typed and self.answer:
            self.answer = ["odd says:", "", *self.answer, f"That took {len(text)} beats.", ""]

    def work(self) -> None:
        if self.working and (self.answer or self.wants) and time.monotonic() > self.working + THINKS:
            self.working = 0.0
            self.said += self.answer
            self.command = self.wants

    def draw(self) -> None:
        columns, lines = os.get_terminal_size()
        if not self.trusted:
            self.paint(TRUST, 0, 2)
        elif self.command:
            rows = [*self.said, f"odd wants to run: {self.command}", "Allow this command? (y/n) "]
            rows = wrapped_to(columns, rows)
            self.paint(rows[-lines:], cells(rows[-1]), min(lines, len(rows)) - 1)
        else:
            self.draw_composer(columns, lines)

    def draw_composer(self, columns: int, lines: int) -> None:
        width = columns - 6
        wrapped = wrapped_to(width, self.text.split("\n"))[-6:]
        inside = [
            f"│ {' ' if at else '>'} {row}{' ' * (width - cells(row))} │" for at, row in enumerate(wrapped)
        ]
        box = [f"╭{'─' * (columns - 2)}╮", *inside, f"╰{'─' * (columns - 2)}╯"]
        above = []
        if self.working:
            seconds = time.monotonic() - self.working
            above = [f"{SPINNER[int(seconds * 5) % 4]} Pondering {seconds:.0f}s (ctrl+c to stop)"]
        said = wrapped_to(columns, self.said)[-(lines - len(box) - len(above)) :]
        self.paint([*said, *above, *box], 4 + cells(wrapped[-1]), len(said) + len(above) + len(wrapped))

    def paint(self, rows: list[str], x: int, y: int) -> None:
        sys.stdout.write("\x1b[?2026h\x1b[H\x1b[2J" + "\r\n".join(rows) + f"\x1b[{y + 1};{x + 1}H\x1b[?2026l")
        sys.stdout.flush()

    def run(self) -> None:
        tty.setraw(0)
        sys.stdout.write("" if self.typed else "\x1b[?2004h")
        self.draw()
        left, decode = "", codecs.getincrementaldecoder("utf-8")().decode
        while True:
            if select.select([0], [], [], 0.2 if self.working else None)[0]:
                data = os.read(0, 65536)
                if not data:
                    return
                left += decode(data) if time.monotonic() >= self.deaf else ""
                if left.count("\x1b[200~") > left.count("\x1b[201~"):
                    continue
                for part in re.split(r"(\x1b\[200~.*?\x1b\[201~)", left, flags=re.DOTALL):
                    if part.startswith("\x1b[200~"):
                        self.text += part[6:-6].replace("\r", "\n")
                        continue
                    for key in part:
                        self.key(key)
                left = ""
            self.work()
            self.draw()


def wrapped_to(width: int, rows: list[str]) -> list[str]:
    wrapped: list[str] = []
    for row in rows:
        wrapped.append("")
        for char in row:
            if cells(wrapped[-1] + char) > width:
                wrapped.append("")
            wrapped[-1] += char
    return wrapped


def cells(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.category(char) in ("Mn", "Cf") for char in text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write("odd 4.2\n")
    else:
        Path("odd.txt").write_text("it ran here", encoding="utf-8")
        if sys.argv[1:2] == ["--loads"]:
            sys.stdout.write("loading\r\n")
            sys.stdout.flush()
            time.sleep(float(sys.argv[2]))
        agent = Agent()
        if sys.argv[1:2] == ["--typed"]:
            agent.typed, agent.loads = True, float(sys.argv[2])
            tty.setraw(0)
            sys.stdout.write("loading\r\n")
            sys.stdout.flush()
            time.sleep(3)  # longer than a screen rests that is complete, and it reads single keys
        agent.run()
