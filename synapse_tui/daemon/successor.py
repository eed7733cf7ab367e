"""The version that goes on with a session: looked at before anything is left to it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from synapse_tui.errors import SessionError

START_SECONDS = 20.0
"""How long another version may take to tell what it is."""


async def check_successor(python: str) -> str:
    """Make sure that another version starts.

    Args:
        python: Its interpreter.

    Returns:
        Its version.

    Raises:
        SessionError: It does not.
    """
    if not Path(python).is_absolute():
        raise SessionError(f"'{python}' is no path of an interpreter", "update both sides of synapse-tui")
    hint = "the running version goes on"
    try:
        process = await asyncio.create_subprocess_exec(
            *(python, "-P", "-m", "synapse_tui.daemon", "--version"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise SessionError(f"{python} cannot be executed: {error.strerror}", hint) from error
    try:
        async with asyncio.timeout(START_SECONDS):
            told, problem = await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise SessionError("the other version does not start in time", hint) from None
    if process.returncode != 0:
        lines = problem.decode("utf-8", "replace").strip().splitlines()
        raise SessionError(
            f"the other version does not start: {lines[-1] if lines else 'no reason told'}", hint
        )
    return told.decode("utf-8", "replace").strip()
