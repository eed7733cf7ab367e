"""Finds messages in what an agent itself writes down of its conversations."""

from __future__ import annotations

import asyncio
import json
import re
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from synapse_tui.agents.profile import Transcript

MAX_BYTES = 50_000_000
"""A record that is longer is not read."""


class Transcripts:
    """The records that an agent writes from now on.

    Args:
        transcript: Where the profile says they are; None for nowhere.
        home: The person's home folder.
        folder: The agent's working folder.
    """

    def __init__(self, transcript: Transcript | None, home: Path, folder: Path) -> None:
        self._home = home
        self._pattern = (
            transcript.path.replace("{cwd}", re.sub(r"[/.]", "-", str(folder)))
            if transcript is not None
            else ""
        )
        self._begun = time.time()

    async def look_for(self, typed: str, codes: tuple[str, str]) -> str:
        """Look whether a message was recorded.

        Args:
            typed: What was typed for it.
            codes: Codes in it that stand in no other message.

        Returns:
            `whole` when a text of a record holds all of it, `part` when one holds its first code only, else
            empty.
        """
        if not self._pattern:
            return ""
        return await asyncio.to_thread(self._look_for, typed, codes)

    def _look_for(self, typed: str, codes: tuple[str, str]) -> str:
        wanted, found = squeezed(typed), ""
        for text in self._texts():
            if codes[0] not in text:
                continue
            if wanted in squeezed(text):
                return "whole"
            if codes[1] not in text:
                found = "part"
        return found

    def _texts(self) -> Iterator[str]:
        for path in self._home.glob(self._pattern):
            try:
                status = path.stat()
                if status.st_mtime < self._begun - 1 or status.st_size > MAX_BYTES:
                    continue
                content = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            yield from texts_of(content)


def texts_of(content: str) -> Iterator[str]:
    """All texts in JSON, or in lines of JSON; what is neither gives none."""
    for piece in (content, *content.splitlines()):
        try:
            value = json.loads(piece)
        except ValueError:
            continue
        yield from _strings(value)
        if piece is content:
            return


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


def squeezed(text: str) -> str:
    """A text without white space, in NFC: agents trim and normalise."""
    return "".join(unicodedata.normalize("NFC", text).split())
