"""`synapse-tui demo`: scripted agents in a home folder of their own, which is removed afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from .commands import Command

LOOK = ("theme", "leader", "keys")
"""Settings of the user that the demo takes over."""
PORTS = (20_000, 20_999)
"""Of the demo's agents: so many that some are free, and none is one of the user's agents."""
CART = '''\
"""The cart of the shop."""


def add(cart, item):
    return [*cart, item]
'''


@click.command(name="demo", cls=Command)
@click.option("--tour", is_flag=True, help="The tour of the first start: two agents, three things to try.")
def demo_command(*, tour: bool) -> None:
    """Watch four scripted agents work together for a minute: messages, locks, a held message, a dialog.

    Everything is real but the agents, which need no model. It has its own home folder, without your sessions,
    settings and history, and leaves nothing behind.

    Examples:
      synapse-tui demo
      synapse-tui demo --tour
    """
    from synapse_tui.core.model import DEMO_AGENTS
    from synapse_tui.ui.screens.demo import PLAYERS

    from .foreground import run
    from .sessions import check_terminal

    check_terminal()
    with scratch_project() as project:
        if tour:
            run(project, DEMO_AGENTS, layout="columns", guide="tour")
        else:
            run(project, PLAYERS, layout="grid", guide="demo")


@contextlib.contextmanager
def scratch_project() -> Iterator[Path]:
    """Yield a project in a scratch home folder; until then the environment of this process refers to it.

    The agents there speak the language of this process; `~/.synapse/templates` is the user's.
    """
    from synapse_tui.system.language import language
    from synapse_tui.system.paths import UserPaths

    look = {**_look(), "language": language()}
    before, templates = dict(os.environ), UserPaths.of_environment().templates
    with tempfile.TemporaryDirectory(prefix="synapse-demo-", ignore_cleanup_errors=True) as folder:
        home, runtime, scratch, project = (Path(folder, name) for name in ("home", "run", "tmp", "shop"))
        settings = {"tui": look, "env": {"SYNAPSE_FILE_SAFETY_ENABLED": "true"}}
        files = {
            home / ".synapse" / "settings.json": json.dumps(settings),
            home / ".synapse" / "profiles" / "dummy.yaml": _profile(),
            project / "src" / "cart.py": CART,
            project / ".git" / "HEAD": "ref: refs/heads/main\n",
        }
        for file, text in files.items():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for place in (runtime, scratch):
            place.mkdir(mode=0o700)
        (home / ".synapse" / "templates").symlink_to(templates)
        for name in [name for name in os.environ if name.startswith("SYNAPSE_")]:
            del os.environ[name]
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        os.environ |= {
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(runtime),
            "TMPDIR": str(scratch),
            "PATH": path,
        }
        try:
            yield project
        finally:
            os.environ.clear()
            os.environ.update(before)


def _profile() -> str:
    """Return the profile of the scripted agent with the ports of the demo."""
    from synapse_tui.system.paths import shipped_profiles

    text = (shipped_profiles() / "dummy.yaml").read_text(encoding="utf-8")
    return re.sub(r"(?m)^ports:.*$", "ports: {}-{}".format(*PORTS), text)


def _look() -> dict[str, object]:
    """Return the user's colours and keys; the demo shows the hints for them."""
    from synapse_tui.system.files import read_regular
    from synapse_tui.system.paths import UserPaths

    with contextlib.suppress(OSError, ValueError):
        settings = json.loads(read_regular(UserPaths.of_environment().settings))
        table = settings.get("tui") if isinstance(settings, dict) else None
        if isinstance(table, dict):
            return {key: table[key] for key in LOOK if key in table}
    return {}
