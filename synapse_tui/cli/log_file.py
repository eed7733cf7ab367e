"""The log of commands, `~/.synapse/logs/synapse.log`: written where `SYNAPSE_LOG_FILE` asks for it.

A message may hold anything, so of the words of a command only its name and the names of its options are
logged. Unless it is asked for, a command reads one small file for it and imports nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from synapse_tui.errors import SynapseError

if TYPE_CHECKING:
    from pathlib import Path

    from synapse_tui.paths import UserPaths

NAME = "synapse.log"
LARGEST = 5 * 1024 * 1024
"""Bytes from which on a new file is begun; the last one stays as `synapse.log.1`."""
_VARIABLE = "SYNAPSE_LOG_FILE"
_OFF = re.compile(rb'"SYNAPSE_LOG_FILE"\s*:\s*("false"|false)')

Ended = Callable[[int], None]
"""Told the exit code of the command."""


def begin(name: str, words: Sequence[str], environ: Mapping[str, str] = os.environ) -> Ended:
    """Begin to log a command, where the settings ask for it; what hinders that hinders no command.

    Args:
        name: What is run: `synapse`.
        words: Its arguments.
        environ: The environment.
    """
    try:
        if not _asked_for(environ):
            return _nothing
        from synapse_tui.paths import UserPaths

        return _begin(UserPaths.of_environment(), name, words, environ)
    except (OSError, SynapseError):
        return _nothing


def _nothing(_code: int) -> None:
    """What is told is not written."""


def _asked_for(environ: Mapping[str, str]) -> bool:
    """Whether the setting may be on at all; looked at without what reads settings: most need not load it."""
    if _VARIABLE in environ:
        return True
    try:
        with open(os.path.expanduser("~/.synapse/settings.json"), "rb") as file:  # noqa: PTH111, PTH123
            content = file.read()
    except OSError:
        return False
    return _VARIABLE.encode() in _OFF.sub(b"", content)


def _begin(paths: UserPaths, name: str, words: Sequence[str], environ: Mapping[str, str]) -> Ended:
    import logging
    import time

    from synapse_tui.settings import load_settings

    # The user's own word on it: no project begins a log.
    settings = load_settings(paths.synapse, paths=paths, environ=environ, trusted=lambda _path, _data: False)
    if not settings.flag(f"env.{_VARIABLE}"):
        return _nothing
    handler = logging.FileHandler(_open_file(paths.logs), encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    if logging.lastResort is not None:  # warnings still reach the person
        root.addHandler(logging.lastResort)
    root.setLevel(settings.text("env.SYNAPSE_LOG_LEVEL"))
    log = logging.getLogger(__name__)
    what = " ".join([name, *_shown(words)])
    began = time.monotonic()
    log.info("%s in %s", what, _folder())

    def ended(code: int) -> None:
        log.info("%s ended with %d after %.3f s", what, code, time.monotonic() - began)

    return ended


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as text, and it may be gone
    except OSError:
        return "a folder that is gone"


def _open_file(folder: Path) -> Path:
    """The private file; it is made where there is none, and a new one is begun when it is large."""
    from synapse_tui.files import private_folder

    path = private_folder(folder) / NAME
    try:
        if path.stat().st_size > LARGEST:
            path.replace(path.with_name(f"{NAME}.1"))
    except FileNotFoundError:
        pass
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    return path


def _shown(words: Sequence[str]) -> list[str]:
    """The words that cannot be of a message: the command, and the names of its options."""
    given = words[: words.index("--")] if "--" in words else words
    return [*given[:1], *(word.partition("=")[0] for word in given[1:] if word.startswith("--"))]
