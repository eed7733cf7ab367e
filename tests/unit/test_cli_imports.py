"""What commands may load: what they need at once, and nothing that weighs (docs/dependencies.md).

Not timed: a module that is not loaded costs nothing on any machine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "a2a",
    "asyncio",
    "concurrent.futures",
    "cryptography",
    "fastapi",
    "google.protobuf",
    "httpcore",
    "httpx",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "psutil",
    "ptyprocess",
    "pydantic",
    "pyte",
    "rich",
    "sqlalchemy",
    "sqlite3",
    "sqlmodel",
    "ssl",
    "starlette",
    "subprocess",
    "textual",
    "urllib.request",
    "uvicorn",
    "yaml",
}
"""What no quick command may load, with what lies below it."""
NOT_FOR_HELP = {"json", "pathlib", "unicodedata", "hashlib", "synapse_tui.model", "synapse_tui.registry"}
"""What the list of all commands does not need either."""
NOT_FOR_LIST = {"hashlib", "http.client", "socket", "synapse_tui.a2a.client", "synapse_tui.settings"}
NOT_FOR_HOOK = {"json", "pathlib", "re", "typing", "enum", "dataclasses", "click"}
"""The client of the hooks runs at every tool of an agent."""
RUN = """import sys
from synapse_tui.cli import main
try:
    main()
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""


def loaded(tmp_path: Path, *words: str, program: tuple[str, ...] = ("-c", RUN)) -> set[str]:
    """The modules that a command has loaded at its end."""
    environ = {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2]), "SYNAPSE_AGENT_ID": ""}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", *program, *words],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 3, 4, 5), ended.stderr
    return set(ended.stderr.split())


def within(modules: set[str], names: set[str]) -> set[str]:
    """Those of the modules that are among the names, or below one of them."""
    return {each for each in modules if each in names or any(each.startswith(f"{name}.") for name in names)}


@pytest.mark.parametrize(
    ("words", "also"),
    [
        (["--help"], NOT_FOR_HELP),
        (["--version"], NOT_FOR_HELP),
        (["list"], NOT_FOR_LIST),
        (["send", "nobody", "hello"], set()),
        (["reply", "done"], set()),
        (["hook", "pre", "--dialect", "claude"], {"synapse_tui.registry", "synapse_tui.settings"}),
        (["completion", "bash"], {"synapse_tui.model", "synapse_tui.registry"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_quick_command_loads_nothing_that_weighs(tmp_path: Path, words: list[str], also: set[str]) -> None:
    modules = loaded(tmp_path, *words)
    assert "synapse_tui.cli.group" in modules
    assert within(modules, HEAVY | also) == set()


def test_the_client_of_the_hooks_loads_next_to_nothing(tmp_path: Path) -> None:
    client = Path(__file__).parents[2] / "synapse_tui" / "hooks" / "client.py"
    modules = set(
        subprocess.run(
            [sys.executable, "-S", "-E", "-X", "importtime", str(client), "pre", "--dialect", "claude"],
            env={"HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        .stderr.replace("|", " ")
        .split()
    )
    assert "_socket" in modules
    assert within(modules, HEAVY | NOT_FOR_HOOK | {"socket"}) == set()


def test_a_module_that_weighs_would_be_seen(tmp_path: Path) -> None:
    modules = loaded(
        tmp_path, "list", program=("-c", RUN.replace("import sys", "import sys, sqlite3, asyncio.runners", 1))
    )
    assert within(modules, HEAVY) >= {"sqlite3", "asyncio.runners"}
