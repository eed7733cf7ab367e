"""Searches a text for a person's pattern in a process of its own: some patterns take for ever."""

from __future__ import annotations

import asyncio
import json
import logging
import sys

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that a search may take, the start of the process included."""
MAX_TEXT = 200_000
"""How many of the last characters are searched."""
_NO_MATCH = 3
"""Exit status; Python's own errors end with 1 or 2."""
_PROGRAM = f"""
import json, re, sys
pattern, text = json.load(sys.stdin)
sys.exit(0 if re.search(pattern, text, re.MULTILINE) else {_NO_MATCH})
"""


async def matches(pattern: str, text: str, seconds: float = PATIENCE) -> bool | None:
    """Search a text.

    Args:
        pattern: A regular expression; `^` and `$` match at every line.
        text: Where it is searched for.
        seconds: How long that may take.

    Returns:
        Whether it was found; None when that took too long or could not be done.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            "-c",
            _PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        log.warning("no process to search in: %s", error)
        return None
    try:
        async with asyncio.timeout(seconds):
            await process.communicate(json.dumps([pattern, text[-MAX_TEXT:]]).encode())
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return {0: True, _NO_MATCH: False}.get(process.returncode or 0)
