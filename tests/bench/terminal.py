"""Speed of the terminal core beside other emulators, in one run: `python tests/bench/terminal.py [LOAD...]`.

Prints megabytes a second of CPU time for each load of `loads.py`, and ratios. Beside the core run pyte's
own screens (on the first part of each load: they are slow), and, where they are installed, tmux and
`@xterm/headless` (the folder of its `node_modules` in XTERM_HEADLESS). Then hostile input at two sizes,
which must take time in proportion, the memory of scrollback, the time of a resize, and that of painting
rows, new ones and such as were painted before. `--profile LOAD` shows where the core spends its time.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

from synapse_tui.terminal import Terminal, core, render
from synapse_tui.widgets.strips import Pens, build_pieces, draw
from tests.bench.app import cpu_seconds
from tests.bench.loads import COLUMNS, LINES, NAMES, load

CHUNK = 65536
STOCK_PART = 120_000
TMUX_TIMES = 20
"""The CPU time of another process is known in steps of 10 ms only."""
Feed = Callable[[bytes], object]

_NODE = """
const { Terminal } = require('@xterm/headless');
const data = require('fs').readFileSync(process.argv[1]);
const [cols, rows] = [+process.argv[2], +process.argv[3]];
const terminal = new Terminal({ cols, rows, scrollback: 5000, allowProposedApi: true });
const feed = (chunk) => new Promise((done) => terminal.write(chunk, done));
const run = async () => {
  for (let i = 0; i < data.length; i += 65536) await feed(data.subarray(i, i + 65536));
};
(async () => {
  await run();
  const start = process.cpuUsage();
  await run();
  const used = process.cpuUsage(start);
  console.log((used.user + used.system) / 1e6);
})();
"""


def _seconds(make: Callable[[], Feed], data: bytes, times: int) -> float:
    best = float("inf")
    for _ in range(times):
        feed = make()
        start = time.process_time()
        for index in range(0, len(data), CHUNK):
            feed(data[index : index + CHUNK])
        best = min(best, time.process_time() - start)
    return best


def _core() -> Feed:
    terminal = Terminal(COLUMNS, LINES)
    return terminal.feed


def core_seconds(data: bytes, times: int) -> float:
    return _seconds(_core, data, times)


def _stock(screen: Callable[[int, int], pyte.Screen]) -> Callable[[], Feed]:
    def make() -> Feed:
        stream = pyte.ByteStream(screen(COLUMNS, LINES))
        return stream.feed

    return make


def _plain(data: bytes) -> float:
    """The core without its compiled part, in a process of its own."""
    code = (
        "import sys; from tests.bench import terminal as t; print(t.core_seconds(sys.stdin.buffer.read(), 2))"
    )
    environ = os.environ | {"SYNAPSE_TUI_PURE": "1"}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], input=data, env=environ, cwd=root, capture_output=True, check=True
    )
    return float(done.stdout)


def _tmux(data: bytes) -> float | None:
    program = shutil.which("tmux")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file, config, done = (Path(folder) / name for name in ("bytes", "config", "done"))
        file.write_bytes(data * TMUX_TIMES)
        config.write_text("set -g status off\nset -g history-limit 5000\n")
        base = [program, "-S", f"{folder}/socket", "-f", str(config)]
        command = f"stty raw -echo; cat {file}; touch {done}; exec cat"
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        subprocess.run([*base, "new-session", "-d", *size, "/bin/sh", "-c", command], check=True)
        pid = int(subprocess.check_output([*base, "display-message", "-p", "#{pid}"]))
        while not done.exists():
            time.sleep(0.01)
        last, used = -1.0, cpu_seconds(pid)
        while used != last:
            time.sleep(0.1)
            last, used = used, cpu_seconds(pid)
        subprocess.run([*base, "kill-server"], check=False)
        return used / TMUX_TIMES


def _headless(data: bytes) -> float | None:
    modules, node = os.environ.get("XTERM_HEADLESS"), shutil.which("node")
    if not modules or node is None:
        return None
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        environ = os.environ | {"NODE_PATH": modules}
        command = [node, "-e", _NODE, file.name, str(COLUMNS), str(LINES)]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
        return float(done.stdout) if done.returncode == 0 else None


def _row(name: str, values: list[str]) -> None:
    print(f"{name:<26}" + "".join(f"{value:>9}" for value in values), flush=True)


def speeds(names: Sequence[str]) -> dict[str, dict[str, float]]:
    """MB a second of CPU time of each emulator that is here, ours first, for each load."""
    data = {name: load(name) for name in names}
    found = {"synapse_tui.terminal": {n: len(data[n]) / core_seconds(data[n], 5) / 1e6 for n in names}}
    if core.scan is not None:
        found["in plain Python"] = {n: len(data[n]) / _plain(data[n]) / 1e6 for n in names}
    for title, screen in (("pyte.HistoryScreen", pyte.HistoryScreen), ("pyte.Screen", pyte.Screen)):
        parts = {name: data[name][:STOCK_PART] for name in names}
        found[title] = {n: len(parts[n]) / _seconds(_stock(screen), parts[n], 1) / 1e6 for n in names}
    for title, measure in (("tmux (CPU of the server)", _tmux), ("@xterm/headless", _headless)):
        seconds = {name: measure(data[name]) for name in names}
        if any(seconds.values()):
            found[title] = {name: len(data[name]) / value / 1e6 for name, value in seconds.items() if value}
    return found


def _show_speeds(names: Sequence[str]) -> None:
    found = speeds(names)
    print(f"MB/s of CPU time, {COLUMNS}x{LINES}, chunks of {CHUNK} bytes")
    _row("", list(names))
    for title, values in found.items():
        _row(title, [f"{values[name]:.2f}" if name in values else "-" for name in names])
    ours, *others = found.items()
    for title, values in others:
        _row(
            f"ours / {title}"[:25], [f"x{ours[1][n] / values[n]:.2f}" if n in values else "-" for n in names]
        )


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "long OSC 52": lambda size: b"\x1b]52;c;" + b"A" * size + b"\x07",
    "unterminated DCS": lambda size: b"\x1bP" + b"x" * size,
    "endless CSI parameters": lambda size: b"\x1b[" + b"1;" * (size // 2),
    "combining marks": lambda size: b"a" + "\u0301".encode() * (size // 2),
    "joiners": lambda size: "👩\u200d".encode() * (size // 7),
    "tabs": lambda size: b"\t" * size,
    "ICH 9999": lambda size: b"\x1b[9999@" * (size // 7),
    "REP 99999": lambda size: b"x\x1b[99999b" * (size // 900),
    "ESC": lambda size: b"\x1b" * size,
    "controls in CSI": lambda size: (b"\x1b[" + b"\n" * 200) * (size // 202),
    "one line": lambda size: b"y" * size,
    "links": lambda size: b"".join(b"\x1b]8;;http://x/%d\x1b\\z" % n for n in range(size // 24)),
}


def _hostile() -> None:
    print("\nHostile input in chunks of 4096 bytes: ms for 250 kB, for 1 MB, growth (4 is linear)")
    for title, make in HOSTILE.items():
        times = []
        for size in (250_000, 1_000_000):
            data, terminal = make(size), Terminal(COLUMNS, LINES)
            start = time.process_time()
            for index in range(0, len(data), 4096):
                terminal.feed(data[index : index + 4096])
            times.append(time.process_time() - start)
        _row(
            title,
            [f"{times[0] * 1e3:.0f}", f"{times[1] * 1e3:.0f}", f"x{times[1] / max(times[0], 1e-4):.1f}"],
        )


def _history() -> None:
    print("\nScrollback of 10,000 lines: MB, ms of a resize to 100 columns and back, ms of a search")
    for name in ("plain", "log", "ink", "unicode"):
        lines = load(name, 2_000_000).split(b"\r\n")
        data = b"\r\n".join((lines * (10_100 // len(lines) + 1))[:10_100])
        tracemalloc.start()
        terminal = Terminal(COLUMNS, LINES, scrollback=10_000)
        for index in range(0, len(data), CHUNK):
            terminal.feed(data[index : index + CHUNK])
        count = len(terminal.scrollback)
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        times = []
        for columns in (100, COLUMNS):
            start = time.perf_counter()
            terminal.resize(columns, LINES)
            times.append((time.perf_counter() - start) * 1e3)
        start = time.perf_counter()
        found = sum(1 for _ in terminal.scrollback.search("zz"))
        times.append((time.perf_counter() - start) * 1e3)
        _row(
            f"{name} ({count} lines)",
            [f"{memory / 1e6:.1f}", *(f"{value:.1f}" for value in times), str(found)],
        )


def _painting() -> None:
    print("\nPainting a row: us when it is new, us when it was painted before, ratio to `log`")
    pens, times = Pens(), {}
    for name in ("log", "plain", "cjk", "emoji", "decomposed", "unicode"):
        terminal = Terminal(COLUMNS, LINES)
        terminal.feed(load(name, 40_000))
        lines = [terminal.line(y) for y in range(LINES - 1)]
        fresh, again = float("inf"), float("inf")
        for _ in range(60):
            render._drawn.cache_clear()
            for repeated in (False, True):
                start = time.process_time()
                for line in lines:
                    draw(build_pieces(line, COLUMNS, pens), 0)
                used = (time.process_time() - start) / len(lines) * 1e6
                fresh, again = (fresh, min(again, used)) if repeated else (min(fresh, used), again)
        times[name] = fresh
        _row(name, [f"{fresh:.1f}", f"{again:.1f}", f"x{fresh / times['log']:.1f}"])


def _profile(name: str) -> None:
    data, terminal = load(name), Terminal(COLUMNS, LINES)
    profile = cProfile.Profile()
    profile.enable()
    for index in range(0, len(data), CHUNK):
        terminal.feed(data[index : index + CHUNK])
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=", ".join(NAMES))
    parser.add_argument("--profile", choices=NAMES)
    parser.add_argument("--only", choices=("speed", "hostile", "history", "painting"))
    arguments = parser.parse_args()
    if arguments.profile:
        _profile(arguments.profile)
        return
    if arguments.only in (None, "speed"):
        _show_speeds(arguments.loads or NAMES)
    if arguments.only in (None, "hostile"):
        _hostile()
    if arguments.only in (None, "history"):
        _history()
    if arguments.only in (None, "painting"):
        _painting()


if __name__ == "__main__":
    main()
