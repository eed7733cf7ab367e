"""Runs a command among real agents that talk to the fake model, cut off from the network.

    python -m tests.lab.run [-f FOLDER] [-e NAME[=VALUE]]... AGENT[@VERSION]... -- COMMAND [ARG]...

FOLDER (default $SYNAPSE_LAB, or ~/.cache/synapse-lab) is where `tests.lab.install` put the agents. The
command (an agent, the application, pytest) runs in a small git repository below a new home folder, with only
the loopback interface, its own processes and an empty environment: nothing reaches the internet, no key leaks
in, and everything ends with the command. $SYNAPSE_LAB_LOG names the model's log, see `fake_model`.
It needs Linux.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.lab.agents import AGENTS, known_version, make_bench, programs_of
from tests.lab.fake_model import FakeModel

CHECKOUT = Path(__file__).parents[2]
HOMES = Path("/var/tmp")
"""Codex does not work in a home folder below /tmp; longer paths leave sockets no room."""
INSIDE = "SYNAPSE_LAB_INSIDE"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1  # Linux: netdevice(7)


def folder_of_agents() -> Path:
    return Path(os.environ.get("SYNAPSE_LAB") or Path.home() / ".cache/synapse-lab").absolute()


def isolated(words: list[str], home: Path, variables: dict[str, str]) -> list[str]:
    """The command that runs another one in namespaces of its own, with an empty environment."""
    node = shutil.which("node")
    path = ["/usr/local/bin", "/usr/bin", "/bin", *([str(Path(node).parent)] if node else [])]
    path.append(str(Path(sys.executable).parent))  # for `synapse`
    environ = {
        "HOME": str(home),
        "PATH": ":".join(dict.fromkeys(path)),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "USER": "root",
        "SHELL": "/bin/bash",
        "PYTHONPATH": str(CHECKOUT),
        "SYNAPSE_LAB_LOG": str(home / "model.jsonl"),
        **variables,
    }
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    namespaces = ["unshare", "--net", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child", *as_root]
    return [*namespaces, "env", "-i", *(f"{name}={value}" for name, value in environ.items()), *words]


def run(agents: list[str], command: list[str], folder: Path, variables: dict[str, str]) -> int:
    """Run a command in the lab and return its exit status."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))  # which ends the command too
    home = Path(tempfile.mkdtemp(prefix="lab-", dir=HOMES))
    inside = [sys.executable, "-m", "tests.lab.run", "-f", str(folder), *agents, "--", *command]
    try:
        words = isolated(inside, home, {**variables, INSIDE: "1"})
        return subprocess.run(words, cwd=CHECKOUT, check=False).returncode
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run_inside(agents: list[str], command: list[str], folder: Path) -> int:
    raise_loopback()
    home = Path.home()
    model = FakeModel(Path(os.environ["SYNAPSE_LAB_LOG"]))
    bench = make_bench(home, model.url)
    environ = {name: value for name, value in os.environ.items() if name != INSIDE}
    launchers = home / "bin"
    launchers.mkdir(exist_ok=True)
    for word in agents:
        name, _, version = word.partition("@")
        environ |= AGENTS[name].setup(bench)
        write_launcher(launchers / name, name, version or known_version(name), folder)
    environ["PATH"] = f"{launchers}:{environ['PATH']}"
    found = shutil.which(command[0], path=f"{Path(sys.executable).parent}:{environ['PATH']}")
    return subprocess.run(
        [found or command[0], *command[1:]], cwd=bench.project, env=environ, check=False
    ).returncode


def write_launcher(launcher: Path, name: str, version: str, folder: Path) -> None:
    agent = AGENTS[name]
    programs = programs_of(name, version, folder)
    program = programs / (agent.command or name)
    if not program.exists():
        raise SystemExit(
            f"{name}: {program} is missing; python -m tests.lab.install {folder} {name}@{version}"
        )
    path = f'PATH="{programs}:$PATH" ' if (programs / "node").exists() else ""
    launcher.write_text(f'#!/bin/sh\n{path}exec {shlex.join([str(program), *agent.args])} "$@"\n')
    launcher.chmod(0o755)


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(probe, SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("-f", "--folder", type=Path, default=folder_of_agents())
    parser.add_argument("-e", "--env", action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("agents", nargs="+", metavar="AGENT[@VERSION]")
    split = words.index("--") if "--" in words else len(words)
    given, command = parser.parse_args(words[:split]), words[split + 1 :]
    for word in given.agents:
        if word.partition("@")[0] not in AGENTS:
            parser.error(f"no agent '{word}': use {', '.join(AGENTS)}")
    if not command:
        parser.error("no command after --")
    if os.environ.get(INSIDE):
        return run_inside(given.agents, command, given.folder)
    if shutil.which("unshare") is None:
        parser.error("needs Linux's unshare")
    pairs = [word.partition("=") for word in given.env]
    variables = {name: value if equals else os.environ.get(name, "") for name, equals, value in pairs}
    return run(given.agents, command, given.folder.absolute(), variables)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
