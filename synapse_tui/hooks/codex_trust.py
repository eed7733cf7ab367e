"""The hashes by which Codex knows our hooks again: asked of Codex itself, since only trusted hooks run.

`codex app-server` speaks JSON lines on its standard input and output; `hooks/list` tells the hash of each
hook that the command line brings. The same definitions have the same hash: it is kept for each version.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synapse_tui.files import private_folder, read_own, write_private

from .launch import codex_keys, codex_setting

log = logging.getLogger(__name__)

PATIENCE = 15.0
"""Seconds that Codex gets to answer."""
_INITIALIZE = {"method": "initialize", "id": 1, "params": {"clientInfo": {"name": "synapse", "version": "1"}}}


async def trusted_hashes(
    command: Path, cache: Path, *, environ: Mapping[str, str], cwd: Path
) -> Mapping[str, str]:
    """The hash of each of our hooks, by its key.

    Args:
        command: The `codex` command.
        cache: A private folder in which the answer is kept.
        environ: The environment that the agent will get.
        cwd: Where the agent will work.

    Returns:
        Nothing when Codex does not tell them all: it would not run the hooks.
    """
    file = cache / f"codex-{_identity(command)}.json"
    known = _load(file)
    if known:
        return known
    try:
        async with asyncio.timeout(PATIENCE):
            told = await _ask(command, environ=environ, cwd=cwd)
    except (OSError, TimeoutError, ValueError) as error:
        log.warning("codex does not tell the hashes of hooks: %s", str(error) or "no answer")
        return {}
    hashes = {key: told[key] for key in codex_keys() if key in told}
    if len(hashes) < len(codex_keys()):
        log.warning("codex does not know all hooks: %s of %s", len(hashes), len(codex_keys()))
        return {}
    with contextlib.suppress(OSError):
        private_folder(cache)
        write_private(file, json.dumps(hashes).encode())
    return hashes


async def _ask(command: Path, *, environ: Mapping[str, str], cwd: Path) -> dict[str, str]:
    """Start Codex, ask it for its hooks, and end it."""
    process = await asyncio.create_subprocess_exec(
        str(command),
        "app-server",
        "-c",
        codex_setting(),
        env=dict(environ),
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for message in (
            _INITIALIZE,
            {"method": "initialized"},
            {"method": "hooks/list", "id": 2, "params": {"cwds": [str(cwd)]}},
        ):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        await process.stdin.drain()
        while line := await process.stdout.readline():
            answer = json.loads(line)
            if isinstance(answer, dict) and answer.get("id") == 2:
                return _hashes(answer)
        raise ValueError("it ended without an answer")
    finally:
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # The launcher of the npm package leaves the program that it started behind.
            os.killpg(process.pid, signal.SIGTERM)
        await process.wait()


def _hashes(answer: Mapping[str, Any]) -> dict[str, str]:
    """`result.data[].hooks[].{key, currentHash}`."""
    result = answer.get("result")
    data = result.get("data") if isinstance(result, dict) else None
    hooks = [hook for each in data or () if isinstance(each, dict) for hook in each.get("hooks") or ()]
    return {
        str(hook["key"]): str(hook["currentHash"])
        for hook in hooks
        if isinstance(hook, dict) and "key" in hook and hook.get("currentHash")
    }


def _identity(command: Path) -> str:
    """A name for this Codex with these hooks: another version, or other hooks, have other hashes."""
    real = command.resolve()
    try:
        status = real.stat()
        mark = f"{real}:{status.st_size}:{status.st_mtime_ns}"
    except OSError:
        mark = str(real)
    return hashlib.sha256(f"{mark}\n{codex_setting()}".encode()).hexdigest()[:16]


def _load(file: Path) -> dict[str, str]:
    try:
        content = json.loads(read_own(file))
    except (OSError, ValueError):
        return {}
    found = content if isinstance(content, dict) else {}
    return found if set(found) == set(codex_keys()) else {}
