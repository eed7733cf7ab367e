"""Random output for the terminal core, and what it shows afterwards: compiled and in plain Python.

    python -m tests.terminal.fuzzing --seconds 60 [--seed N] [--sanitize]

feeds both with the same cases and ends with the first that they show differently. With `--sanitize` the
compiled core checks its memory and its arithmetic (gcc's AddressSanitizer and UndefinedBehaviorSanitizer) and
ends at the first mistake.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from synapse_tui.terminal import Terminal

ROOT = Path(__file__).parents[2]
AT_ONCE = 200

_WORDS = (
    *("hello", "x", "abc def ghi jkl mno pqr stu vwx yz", "é", "日本", "漢字仮名交じり文 한국어", "ab漢"),
    *(
        "👩\u200d💻",
        "🇩🇪",
        "🇩",
        "e\u0301",
        "क्ष",
        "क्",
        "\u0301",
        "⚠\ufe0f",
        "⚠",
        "\u200d",
        "👍🏽",
        "🏽",
        "│─┐",
        "©",
    ),
    *(
        "\U00020000",
        "\U000e0100",
        "\U0003fffe",
        "\U0010ffff",
        "\x7f",
        "\xa0",
        "\xad",
        "\u0e33",
        "①",
        "ｱ",
        "x" * 90,
        "日x\r\n" * 230,
    ),
)
_SEQUENCES = (
    *(
        "[m",
        "[0m",
        "[31m",
        "[1;38;2;1;2;3m",
        "[38:2::1:2:3m",
        "[48;5;300m",
        "[4:3m",
        "[;1m",
        "[01;033m",
        "[7;27m",
    ),
    *(
        "[38;5m",
        "[38;2;1;2m",
        "[58;5;9m",
        "[59m",
        "[99;1m",
        "[21;53;55;24;29m",
        "[38;2;;;9;48;2;1;;m",
        "[1:2;3m",
    ),
    *(
        "[3" + ";1" * 80 + "m",
        "[0000000000001m",
        "[38;05;7m",
        "[038;5;7m",
        "[38;5;00007m",
        "[97;107m",
        "[39;49m",
    ),
    *(
        "[5;7H",
        "[999;999H",
        "[H",
        "[1;1;1H",
        "[0005;3H",
        "[123456;1H",
        "[;H",
        "[5;H",
        "[0;0H",
        "[2:3H",
        "[1;40H",
    ),
    *(
        "[K",
        "[0K",
        "[1K",
        "[2K",
        "[3K",
        "[?2K",
        "[00K",
        "[J",
        "[1J",
        "[2J",
        "[3J",
        "[A",
        "[2A",
        "[0A",
        "[000000012A",
        "[99999999999A",
        "[1;2A",
        "[1:2A",
        "[3B",
        "[5C",
        "[2D",
        "[4G",
    ),
    *("[3b", "[99b", "[2;6r", "[r", "[?6h", "[?6l", "[?69h", "[3;9s", "[?69l", "[4h", "[4l", "[20h", "[20l"),
    *("[?7l", "[?7h", "[?1049h", "[?1049l", "[?47h", "[?47l", "[?5h", "[?5l", "[?2027l", "[?2027h", "[?45h"),
    *(
        "(0",
        "(B",
        "[L",
        "[M",
        "[P",
        "[@",
        "[X",
        "7",
        "8",
        "M",
        "D",
        "E",
        "N",
        "V",
        "W",
        "c",
        "#8",
        "[!p",
        "[S",
        "[T",
    ),
    *(
        "]0;t\x07",
        "]8;;http://a\x07",
        "]8;;\x07",
        "]8;id=q;http://b\x1b\\",
        "[6n",
        '[1"q',
        '[0"q',
        "[c",
        "[?1;2c",
    ),
    *(
        "[",
        "[3",
        "[3;",
        "]0;x",
        "P",
        "\x1b",
        "[1;\n2H",
        "[ q",
        "[2 q",
        "[5*x",
        "[1;2;3;4$r",
        "[?25l",
        "[?25h",
        "[>c",
    ),
)
_CONTROLS = (
    "\r\n",
    "\r\n",
    "\n",
    "\r",
    "\b",
    "\t",
    "\t\t\t",
    "\x0e",
    "\x0f",
    "\x18",
    "\x00",
    "\x9b31m",
    "\x0b",
)


def cases(seed: int) -> Iterator[tuple[random.Random, Terminal]]:
    """Give endless terminals of different sizes, each with the source of what is fed to it."""
    for number in count():
        source = random.Random(f"{seed}-{number}")
        columns, lines = source.choice((1, 2, 5, 20, 37, 90)), source.choice((1, 2, 3, 8))
        yield source, Terminal(columns, lines, source.choice((0, 3, 50, 500)))


def output(source: random.Random) -> bytes:
    parts = []
    for _ in range(source.randint(1, 30)):
        kind = source.random()
        if kind < 0.35:
            parts.append(source.choice(_WORDS).encode())
        elif kind < 0.8:
            parts.append(b"\x1b" + source.choice(_SEQUENCES).encode())
        elif kind < 0.97:
            parts.append(source.choice(_CONTROLS).encode())
        else:
            parts.append(source.randbytes(source.randint(1, 12)))
    return b"".join(parts)


def play(source: random.Random, terminal: Terminal) -> None:
    """Feed a terminal with random output, cut anywhere, and change its size now and then."""
    terminal.report_scrolled_lines = source.random() < 0.2
    for _ in range(source.randint(1, 25)):
        data = output(source)
        cut = source.randint(0, len(data))
        terminal.feed(data[:cut])
        terminal.feed(data[cut:])
        if source.random() < 0.1:
            terminal.resize(source.choice((1, 4, 9, 20, 50)), source.choice((1, 2, 5, 10)))


def shown(terminal: Terminal) -> str:
    """Everything that can be seen of a terminal, in a few characters."""
    lines = [terminal.line(y) for y in range(terminal.lines)]
    lines += [terminal.scrollback[y] for y in range(len(terminal.scrollback))]
    seen = (
        [
            (line.wrapped, [(text, style.packed, width) for text, style, width in line.runs()])
            for line in lines
        ],
        (terminal.cursor, terminal.title, terminal.modes, terminal.scrollback.memory),
        (terminal.take_replies(), terminal.take_damage(), terminal.screen.last_text[-1:]),
    )
    return hashlib.sha256(repr(seen).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def print_states(seed: int, number: int) -> None:
    for _, (source, terminal) in zip(range(number), cases(seed), strict=False):
        play(source, terminal)
        print(shown(terminal))


def states(seed: int, number: int, folder: Path = ROOT, **environment: str) -> list[str]:
    """Return what each case shows at its end, in a process of its own.

    Args:
        seed: The seed of the cases.
        number: How many of them.
        folder: Where the package is.
        environment: More variables of the environment.
    """
    command = [sys.executable, "-m", "tests.terminal.fuzzing", "--states", str(seed), str(number)]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"seed {seed} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout.split()


def sanitized(folder: Path) -> dict[str, str]:
    """Put a copy of the package whose core checks itself into a folder; return the environment to run it."""
    from hatch_build import compile_core

    for name in ("synapse_tui", "tests", "profiles"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    compile_core(
        folder, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"
    )
    runtime = [
        subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return {"LD_PRELOAD": ":".join(runtime), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--states", nargs=2, type=int, metavar=("SEED", "NUMBER"))
    options = parser.parse_args()
    if options.states:
        print_states(*options.states)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if options.sanitize else ROOT
        environment = sanitized(folder) if options.sanitize else {}
        end, compared = time.monotonic() + options.seconds, 0
        for seed in count(options.seed):
            compiled = states(seed, AT_ONCE, folder, **environment)
            plain = states(seed, AT_ONCE, SYNAPSE_TUI_PURE="1")
            differ = [number for number in range(AT_ONCE) if compiled[number] != plain[number]]
            if differ:
                raise SystemExit(f"seed {seed}: cases {differ} are shown differently")
            compared += AT_ONCE
            if time.monotonic() > end:
                break
    print(f"{compared} cases, seeds {options.seed} to {seed}: no difference")


if __name__ == "__main__":
    main()
