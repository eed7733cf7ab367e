"""Programs for the panes of the application's bench: `python child.py spin|full|flood|flood-...`.

`spin` changes two rows 30 times a second as a waiting agent does, `full` rewrites the whole screen 30 times a
second, `flood` writes coloured lines as fast as they are read; `flood-cjk`, `flood-emoji` (with variation
selectors) and `flood-decomposed` write words of which a terminal makes wide and joined characters.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import time

FRAMES = 30
FLOODS = {
    "flood-cjk": ("漢字仮名", "交じり文", "こんにちは", "世界", "한국어", "텍스트", "，", "。"),
    "flood-emoji": ("⚠️", "warn", "❤️", "✔️", "ok", "✈️", "ℹ️", "info"),
    "flood-decomposed": ("cafe\u0301", "nai\u0308ve", "z\u030clut\u030couc\u030cky\u0301", "abc"),
}
"""Words of the floods that are not ASCII."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def words(source: random.Random, length: int) -> str:
    return "".join(source.choice("abcdefghij klmnop qrstuvwxyz") for _ in range(length))


def unicode_words(source: random.Random, words: tuple[str, ...]) -> str:
    line: list[str] = []
    room = 80
    while room > 0:
        word = source.choice(words)
        room -= 1 + sum(1 + (char > "\u1100") for char in word)
        line.append(word)
    return " ".join(line[:-1])


def put(text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]


def spin(pool: list[str], lines: int, frame: int) -> str:
    grown = pool[frame // 60 % len(pool)][: frame % 60 * 2]
    return (
        f"\x1b[?2026h\x1b[{lines - 2};1H"
        f"\x1b[38;2;215;119;87m{SPINNER[frame % 10]}\x1b[39m Thinking "
        f"\x1b[2m({frame // FRAMES}s · esc to interrupt)\x1b[22m\x1b[K"
        f"\x1b[{lines - 4};1H{grown}\x1b[K\x1b[?2026l"
    )


def full(pool: list[str], lines: int, frame: int) -> str:
    rows = (
        f"\x1b[{y + 1};1H\x1b[38;5;{(frame + y) % 200 + 20}m{pool[(frame + y) % 200][:20]}\x1b[0m "
        f"{pool[(frame * 3 + y) % 200][:30]} \x1b[1;34m{pool[(frame + y * 7) % 200][:20]}\x1b[0m"
        f"\x1b[48;2;34;92;43m{pool[(frame + y) % 200][20:40]}\x1b[0m\x1b[K"
        for y in range(lines)
    )
    return f"\x1b[?2026h\x1b[H{''.join(rows)}\x1b[?2026l"


def main() -> None:
    mode, (columns, lines) = sys.argv[1], os.get_terminal_size()
    source = random.Random(os.getpid())
    if mode.startswith("flood"):
        vocabulary = FLOODS.get(mode)
        lines_of = (
            unicode_words(source, vocabulary) if vocabulary else words(source, 80) for _ in range(400)
        )
        block = "".join(f"\x1b[32m{n:6d}\x1b[0m {line}\r\n" for n, line in enumerate(lines_of))
        while True:
            put(block)
    pool = [words(source, max(60, columns - 20)) for _ in range(200)]
    draw = {"spin": spin, "full": full}[mode]
    put("\x1b[2J")
    due = time.monotonic()
    for frame in itertools.count():
        put(draw(pool, lines, frame))
        due += 1 / FRAMES
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main()
