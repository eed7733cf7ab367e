"""Hooks for agents that cannot be given them at their start: a person is asked once about installing them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from synapse_tui.errors import ConfigError
from synapse_tui.files import private_folder, read_own, write_private

from .events import Dialect
from .install import HookInstaller, Place, Standing, place_of

log = logging.getLogger(__name__)

INSTALLED = frozenset({Dialect.GEMINI})
"""Agents that take hooks from the user's folders only."""
FILE = "asked.json"


class Consent(StrEnum):
    """What a person has answered."""

    YES = "yes"
    LATER = "not now"
    NEVER = "never"


class HookConsent:
    """Remembers answers in the user's folder; `not now` holds until the host ends.

    Args:
        folder: `~/.synapse/hooks`.
        home: The user's home folder.
        environ: For the variables by which agents have their configuration elsewhere.
    """

    def __init__(self, folder: Path, home: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._home = home
        self._environ = environ
        self._asked: set[Dialect] = set()

    async def wanted(self, dialect: Dialect | None) -> bool:
        """Whether a person is to be asked now; tells so once, and brings up to date what was agreed to."""
        if dialect not in INSTALLED or dialect in self._asked:
            return False
        self._asked.add(dialect)
        try:
            return await asyncio.to_thread(self._look, dialect)
        except ConfigError as error:
            log.warning("hooks of %s: %s", dialect, error)
            return False

    async def answer(self, dialect: Dialect, answer: Consent) -> Path | None:
        """Remember an answer, and do what it says.

        Returns:
            Where the hooks were installed; None where they were not.

        Raises:
            ConfigError: They cannot be installed, or the answer cannot be written down.
        """
        return await asyncio.to_thread(self._take, dialect, answer)

    def _look(self, dialect: Dialect) -> bool:
        place, answered = self._place(dialect), self._answers().get(dialect)
        standing = HookInstaller(self._folder).standing(place)
        if standing is Standing.OLD and answered == Consent.YES:
            HookInstaller(self._folder).install(place)
        # One that was agreed to and is missing was taken out again: no reason to ask.
        return standing is not Standing.INSTALLED and answered is None

    def _take(self, dialect: Dialect, answer: Consent) -> Path | None:
        place = self._place(dialect)
        if answer is Consent.YES:
            HookInstaller(self._folder).install(place)
        if answer is not Consent.LATER:
            answers = {**self._answers(), dialect.value: answer.value}
            try:
                private_folder(self._folder)
                write_private(self._folder / FILE, json.dumps(answers).encode())
            except OSError as error:
                raise ConfigError(
                    f"{self._folder / FILE} cannot be written: {error.strerror}", "you will be asked again"
                ) from error
        return place.path if answer is Consent.YES else None

    def _place(self, dialect: Dialect) -> Place:
        return place_of(dialect, self._home, self._environ)

    def _answers(self) -> dict[str, str]:
        try:
            content = json.loads(read_own(self._folder / FILE))
        except (OSError, ValueError):
            return {}
        return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}
