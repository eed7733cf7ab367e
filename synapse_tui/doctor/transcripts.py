"""Finds messages in what an agent itself writes down of its conversations."""

from __future__ import annotations

import asyncio
import time
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from synapse_tui.agents.profiles.profile import Transcript
from synapse_tui.agents.transcript import read_answer, read_prompts


class Transcripts:
    """The records that an agent writes from now on.

    Args:
        transcript: Where the profile says they are; None for nowhere.
        folder: The agent's working folder.
        environ: Environment of its process.
    """

    def __init__(self, transcript: Transcript | None, folder: Path, environ: Mapping[str, str]) -> None:
        self._transcript = transcript
        self._folder = folder
        self._environ = environ
        self._begun = time.time()

    async def look_for(self, typed: str, codes: tuple[str, str]) -> str:
        """Look whether a message was recorded.

        Args:
            typed: What was typed for it.
            codes: The codes in it, which stand in no other message.

        Returns:
            `whole`, `part` when only its beginning is there, or empty when nothing of it is.
        """
        if self._transcript is None:
            return ""
        return await asyncio.to_thread(self._look_for, self._transcript, typed, codes)

    async def answer_to(self, typed: str) -> str:
        """What the agent itself has recorded as its answer to a message; empty where that is not known."""
        if self._transcript is None:
            return ""
        return await asyncio.to_thread(
            read_answer,
            self._transcript,
            typed,
            since=self._begun,
            cwd=self._folder,
            environ=self._environ,
        )

    def _look_for(self, transcript: Transcript, typed: str, codes: tuple[str, str]) -> str:
        prompts = read_prompts(transcript, since=self._begun, cwd=self._folder, environ=self._environ)
        return how_much(typed, codes, prompts)


def how_much(typed: str, codes: tuple[str, str], prompts: Iterable[str]) -> str:
    """How much of a message stands in one of some prompts: `whole`, `part`, or empty for nothing."""
    wanted, found = _squeezed(typed), ""
    for prompt in prompts:
        if codes[0] not in prompt:
            continue
        if wanted in _squeezed(prompt):
            return "whole"
        if codes[1] not in prompt:
            found = "part"
    return found


def _squeezed(text: str) -> str:
    """A text without white space, in NFC: agents trim and normalise."""
    return "".join(unicodedata.normalize("NFC", text).split())
