"""Where the kits are installed, each in an environment of its own for their pins clash, and how they run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).with_name("js")
PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Result:
    """What one tool said of one agent.

    Attributes:
        tool: Its name and version.
        subject: What it was run against.
        passed: Checks that passed.
        skipped: Names of those that did not apply, each with why.
        failed: Names of those that failed, each with what was wrong.
    """

    tool: str
    subject: str
    passed: int
    skipped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def row(self) -> str:
        return f"| {self.tool} | {self.subject} | {self.passed} | {len(self.skipped)} | {len(self.failed)} |"


@dataclass(slots=True)
class Checks:
    """Collects the outcome of single checks."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)

    def note(self, name: str, ok: bool, detail: str = "") -> None:
        if ok:
            self.passed += 1
        else:
            self.failed.append(f"{name}: {' '.join(detail.split())[:500]}")

    def result(self, tool: str, subject: str) -> Result:
        return Result(tool, subject, self.passed, (), tuple(self.failed))


class Toolbox:
    """Installs what is needed and remembers it.

    Args:
        cache: Folder for environments.
    """

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.home = cache / "home"
        self.home.mkdir(parents=True, exist_ok=True)

    def python(self, name: str, version: str) -> Path:
        """The folder of programs of an environment that has a package of PyPI."""
        folder = self.cache / f"{name}-{version}"
        if not (folder / "installed").exists():
            venv.create(folder, clear=True, with_pip=True)
            self.run([str(folder / "bin" / "pip"), "install", "-q", f"{name}=={version}"])
            (folder / "installed").touch()
        return folder / "bin"

    def javascript(self, version: str) -> Path | None:
        """A folder with our scripts and a version of @a2a-js/sdk; None where there is no npm."""
        if not (shutil.which("npm") and shutil.which("node")):
            return None
        folder = self.cache / f"a2a-js-{version}"
        folder.mkdir(exist_ok=True)
        if not (folder / "installed").exists():
            (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
            packages = [f"@a2a-js/sdk@{version}", "express@5"]
            self.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *packages], cwd=folder)
            (folder / "installed").touch()
        for script in SCRIPTS.glob("*.mjs"):
            shutil.copy(script, folder)
        return folder

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        done = subprocess.run(
            command,
            cwd=cwd or self.cache,
            env={**os.environ, "HOME": str(self.home), "NO_COLOR": "1", **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    @contextmanager
    def serving(self, command: Sequence[str], *, cwd: Path | None = None, ready: str) -> Iterator[None]:
        """A server for the length of the block."""
        log = (self.cache / "servers.log").open("ab")
        with log, subprocess.Popen(command, cwd=cwd or self.cache, stdout=log, stderr=log) as process:
            try:
                self.run(["curl", "-sf", "--retry", "60", "--retry-connrefused", "--retry-delay", "1", ready])
                yield
            finally:
                process.terminate()


def json_lines(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a text of one a line; lines of other kinds are left out."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
