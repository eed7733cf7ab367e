"""What a project does in each new worktree, such as installing packages: a script that the user trusts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.agents.worktrees.trees import Repository, Worktree
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import read_regular
from synapse_tui.system.paths import FOLDER, find_project

SCRIPT = "worktree-setup"
"""File in a project's `.synapse`."""
LIMIT = 60.0  # seconds that it may take: the agent waits for it
MOST_SAID = 400  # characters of its output that are repeated
_MISLEADING = ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "CONDA_PREFIX")
"""Variables that make tools work on the main folder's environment."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """What became of setting up a worktree.

    Attributes:
        script: The script; None if the project has none.
        untrusted: Whether it was not run, since the user has not trusted its content.
        trouble: Why it failed; empty if it did not.
    """

    script: Path | None = None
    untrusted: bool = False
    trouble: str = ""


def set_up(
    repository: Repository,
    tree: Worktree,
    folder: Path,
    environ: Mapping[str, str],
    trusts: Callable[[Path, bytes], bool],
    limit: float = LIMIT,
) -> SetUp:
    """Run the script of a project in a worktree, if the user trusts exactly this content.

    The project may be a folder of the repository: the script is that of the main folder, and runs in the
    worktree's folder that corresponds.

    What runs is the content that was checked, whatever the worktree's branch or another program makes of the
    file.

    Args:
        repository: The repository.
        tree: The worktree.
        folder: A folder of the repository, whose project is meant.
        environ: The environment; variables of git and of Python's environments are not passed on.
        trusts: Whether the user trusts the content of a file.
        limit: Seconds that it may take.
    """
    below = repository.git.at(folder).run("rev-parse", "--show-prefix").rstrip("\n")
    project = find_project(repository.top / below)
    script = project / FOLDER / SCRIPT
    inside = (
        tree.path / project.relative_to(repository.top) if project.is_relative_to(repository.top) else None
    )
    try:
        content = read_regular(script)
    except OSError:
        return SetUp()
    if not trusts(script, content):
        return SetUp(script, untrusted=True)
    passed = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    passed = {name: value for name, value in passed.items() if name not in _MISLEADING}
    try:
        with subprocess.Popen(  # noqa: S603 - the user has trusted it
            ["/bin/sh", "-c", content, SCRIPT],
            cwd=inside if inside is not None and inside.is_dir() else tree.path,
            env={**passed, "SYNAPSE_MAIN_FOLDER": str(repository.top)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                output, _none = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return SetUp(script, trouble=f"it took more than {limit:.0f} s")
    except (OSError, ValueError) as error:
        return SetUp(script, trouble=str(error))
    if process.returncode == 0:
        return SetUp(script)
    said = output.decode(errors="replace").strip()[-MOST_SAID:]
    return SetUp(script, trouble=f"exit status {process.returncode}: {said}" if said else "it failed")
