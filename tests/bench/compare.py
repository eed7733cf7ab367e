"""Whether HEAD is slower than another commit: `python -m tests.bench.compare COMMIT [--rounds N]`.

Both do the same work in turns, and only CPU time is compared. Slower is what took longer in each of its
rounds than in the slowest round of the other commit: a difference within the noise of this run does not fail.
Ends with 1 if anything is slower, after one more comparison of that alone.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.bench import loads
from tests.bench.__main__ import COMMANDS, ROOT, cpu_of_children, first_frame, home

ROUNDS = 7
LEAST = 1.03
"""A ratio that counts: below, a run of luck is likelier than a regression."""
PART = 200_000  # bytes of each load
# Of the tests it uses nothing, since those of the other commit may be different.
FEED = """
import json, sys, time
from pathlib import Path
from synapse_tui.terminal import Terminal

seconds = {}
for path in map(Path, sys.argv[1:]):
    data, best = path.read_bytes(), 9.0
    for _ in range(3):
        terminal = Terminal(120, 40)
        begun = time.process_time()
        for start in range(0, len(data), 65536):
            terminal.feed(data[start : start + 65536])
        best = min(best, time.process_time() - begun)
    seconds[path.name] = best
print(json.dumps(seconds))
"""
Seconds = Mapping[str, float]
"""CPU seconds of each piece of work, by its name."""


class Tree(NamedTuple):
    """One of the two checkouts.

    Attributes:
        root: Its folder.
        environ: Of each process: its modules are those of this checkout, and its home an empty one.
        loads: Files of output for the terminal core.
    """

    root: Path
    environ: dict[str, str]
    loads: tuple[Path, ...]

    def run(self, *words: str, pure: bool = False) -> str:
        environ = {**self.environ, "SYNAPSE_TUI_PURE": "1"} if pure else self.environ
        command = [sys.executable, "-P", *words]
        done = subprocess.run(
            command, env=environ, cwd=environ["HOME"], capture_output=True, text=True, check=False
        )
        if "Traceback" in done.stderr:  # other errors are expected: no agent is here
            raise RuntimeError(f"{self.root}: {words} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def seconds(self, *words: str, times: int = 1) -> float:
        return cpu_of_children(lambda: self.run(*words), times)


def core(tree: Tree) -> Seconds:
    found: dict[str, float] = {}
    for pure in (False, True):
        seconds = json.loads(tree.run("-c", FEED, *map(str, tree.loads), pure=pure))
        found |= {
            f"core{', in plain Python' if pure else ''}, {name}": used for name, used in seconds.items()
        }
    return found


def imports(tree: Tree) -> Seconds:
    return {"imports of a host": tree.seconds("-c", "import synapse_tui.daemon.process")}


def commands(tree: Tree) -> Seconds:
    run = "import sys; from synapse_tui.cli import main; sys.exit(main())"
    return {f"synapse {name}": tree.seconds("-c", run, *words, times=3) for name, words in COMMANDS.items()}


def frame(tree: Tree) -> Seconds:
    command = [sys.executable, "-P", "-c", "from synapse_tui.cli.tui import main; main()"]
    return {"first frame, host": first_frame(command, {"PYTHONPATH": str(tree.root)}).cpu / 1000}


WORKS: tuple[Callable[[Tree], Seconds], ...] = (core, imports, commands, frame)


def compare(works: Iterable[Callable[[Tree], Seconds]], base: Tree, ours: Tree, rounds: int) -> set[str]:
    """Print a row for each piece of work; return those in which `ours` is slower than `base`."""
    slower = set()
    for work in works:
        before: dict[str, list[float]] = {}
        now: dict[str, list[float]] = {}
        for _ in range(rounds):
            for tree, found in ((base, before), (ours, now)):
                for name, used in work(tree).items():
                    found.setdefault(name, []).append(used)
        for name in [name for name in now if name in before]:
            ratio = statistics.median(now[name]) / statistics.median(before[name])
            noise = max(before[name]) / min(before[name])
            beyond = is_slower(before[name], now[name])
            slower |= {name} if beyond else set()
            print(f"| {name} | {ratio:.2f} | {noise:.2f} | {'slower' if beyond else ''} |", flush=True)
    return slower


def is_slower(before: list[float], now: list[float]) -> bool:
    """Whether all of `now` are beyond what was measured before, and by more than `LEAST`."""
    return min(now) > max(before) and statistics.median(now) > LEAST * statistics.median(before)


def _unpack(commit: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(folder, filter="data")
    return folder


def _compile(root: Path) -> None:
    """Compile the core of a tree if this can be done; otherwise it is measured in plain Python twice."""
    subprocess.run([sys.executable, "hatch_build.py"], cwd=root, capture_output=True, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, home() as (_, environ):
        place = Path(name)
        files: list[Path] = []
        for load in loads.NAMES:
            files.append(place / load)
            files[-1].write_bytes(loads.load(load)[:PART])
        roots = [
            _unpack(commit, place / each) for each, commit in (("base", arguments.commit), ("ours", "HEAD"))
        ]
        for root in roots:
            _compile(root)
        base, ours = (Tree(root, {**environ, "PYTHONPATH": str(root)}, tuple(files)) for root in roots)
        print("| CPU time | to the base | noise | |\n|---|---|---|---|", flush=True)
        slower = compare(WORKS, base, ours, arguments.rounds)
        if slower:
            print("Once more, what was slower:", flush=True)
            again = [work for work in WORKS if slower & work(ours).keys()]
            slower &= compare(again, base, ours, arguments.rounds)
        print("slower: " + ", ".join(sorted(slower)) if slower else "nothing is slower", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
