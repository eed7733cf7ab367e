"""Installs agents from npm and PyPI into a folder, each version beside the others.

    python -m tests.lab.install FOLDER [AGENT[@VERSION]...]

Without a version it is the one that was proved last, without an agent all of them; `AGENT@latest` is the
newest. An npm package that needs a newer Node than the one on PATH gets one beside it, from npm too.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.agents import AGENTS, find_python, known_version, place_of, programs_of


class NotInstalled(Exception):
    """A package could not be installed; the text is the end of what the installer printed."""


def latest(name: str) -> str:
    """The newest version that the registry serves."""
    agent = AGENTS[name]
    if agent.registry == "npm":
        return _output("npm", "view", agent.package, "version")
    listing = _output(sys.executable, "-m", "pip", "index", "versions", agent.package)
    found = re.search(r"\((\S+)\)", listing)
    if found is None:
        raise NotInstalled(f"no version of {agent.package}")
    return found[1]


def install(name: str, version: str, folder: Path) -> Path:
    """Install a version unless it is there; return its program."""
    agent = AGENTS[name]
    program = programs_of(name, version, folder) / (agent.command or name)
    if program.exists():
        return program
    place = place_of(name, version, folder)
    place.mkdir(parents=True, exist_ok=True)
    if agent.registry == "npm":
        packages = [f"{agent.package}@{version}", *_node(agent.package, version)]
        _run("npm", "install", "--no-fund", "--no-audit", "--prefix", str(place), *packages)
    else:
        _run(find_python(agent.python), "-m", "venv", str(place))
        _run(str(place / "bin/pip"), "install", "--quiet", f"{agent.package}=={version}")
    if not program.exists():
        raise NotInstalled(f"{agent.package} {version} has no program {program.name}")
    return program


def _node(package: str, version: str) -> list[str]:
    """The Node that a package needs, if the one on PATH is older."""
    engines = _output("npm", "view", f"{package}@{version}", "engines", "--json")
    wanted = (json.loads(engines) if engines else {}).get("node", "") if engines else ""
    least = re.search(r"\d+", wanted)
    node = shutil.which("node")
    have = int(_output("node", "--version").lstrip("v").split(".")[0]) if node else 0
    return [f"node@{least[0]}"] if least and int(least[0]) > have else []


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"{' '.join(words)}\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _output(*words: str) -> str:
    return _run(*words).strip()


def main(words: list[str]) -> int:
    if not words or words[0].startswith("-"):
        print(__doc__)
        return 2
    folder, failed = Path(words[0]).absolute(), 0
    for word in words[1:] or AGENTS:
        name, _, version = word.partition("@")
        try:
            chosen = latest(name) if version == "latest" or not known_version(name) else known_version(name)
            print(install(name, version if version not in ("", "latest") else chosen, folder))
        except NotInstalled as error:
            print(f"{word}: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
