"""The answer of a turn that has ended: as the agent's own file tells it, else as it stood on the screen."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.agents.profiles.profile import Transcript
from synapse_tui.content import Artifact

from .text import without_note
from .transcript import agrees, read_answer

log = logging.getLogger(__name__)

PAUSES = (0.0, 0.1, 0.2, 0.4)
"""Seconds before each look into the file: some agents write a moment after they are ready again."""


class AnswerReader:
    """Finds the best text of answers, off the loop.

    Args:
        transcript: Where the agent writes its conversation; None when that is not known.
        cwd: Working folder of the agent.
        environ: Environment of its process.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        transcript: Transcript | None,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._transcript = transcript
        self._cwd = cwd
        self._environ = environ
        self._clock = clock
        self._reading: set[asyncio.Task[None]] = set()

    def read(
        self, text: str, screen: Artifact, *, whole: str = "", age: float, done: Callable[[Artifact], None]
    ) -> None:
        """Find the answer to a text, and tell it: at once where there is no file to read.

        Args:
            text: What was typed.
            screen: The answer as it was read off the screen.
            whole: The same with what follows later prompts; the file tells whether that belongs to it, since
                some agents take what was queued into the turn, between two calls of tools.
            age: Seconds since it was submitted.
            done: Told the answer, exactly once.
        """
        if self._transcript is None:
            done(screen)
            return
        since = self._clock() - age
        task = asyncio.get_running_loop().create_task(
            self._read(self._transcript, text, screen, whole, since, done), name="read-answer"
        )
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def settle(self) -> None:
        """Return when every answer that is being looked for has been told."""
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def _read(
        self,
        transcript: Transcript,
        text: str,
        screen: Artifact,
        whole: str,
        since: float,
        done: Callable[[Artifact], None],
    ) -> None:
        artifact = screen
        try:
            shown = {screen.text, whole or screen.text}
            for look, pause in enumerate(PAUSES, 1):
                await asyncio.sleep(pause)
                if look == len(PAUSES):  # what the file lacks by now it never gets: a note under the answer
                    shown |= set(map(without_note, shown))
                found = await asyncio.to_thread(
                    read_answer, transcript, text, since=since, cwd=self._cwd, environ=self._environ
                )
                if found and any(agrees(found, seen) for seen in shown):
                    artifact = Artifact(found)
                    break
            else:
                log.info("the answer is the screen's: the agent's file does not tell it")
        except Exception:
            log.exception("the agent's file could not be read")
        finally:
            done(artifact)
