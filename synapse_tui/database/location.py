"""Where a database is: a file of this machine, or a PostgreSQL server that a team shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from synapse_tui.paths import UserPaths
from synapse_tui.process_times import machine_name
from synapse_tui.settings.schema import VARIABLE, problem_of

SETTING = f"env.{VARIABLE}"
BUSY = 10.0
"""Seconds that other processes are waited for which write the same file."""
_NO_URL = "of-the-host"
"""Stands for a URL that cannot be used: a process that has it must not use another database instead."""


@dataclass(frozen=True, slots=True)
class TeamDatabase:
    """A PostgreSQL database that several machines share."""

    # its URL as libpq reads it (section 34.1.1.2 of its manual); may hold a password
    url: str = field(repr=False)
    machine: str  # the name of this machine (`machine.machine_name`)
    project: Path  # folder of the project, a real path

    def __str__(self) -> str:
        """Where it is, without user and password; nothing of a URL that cannot be read."""
        if problem_of(self.url):
            return f"of {VARIABLE}"
        parts = urlsplit(self.url)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not stand in any text for people: the password, as it is and as it is written."""
        if problem_of(self.url):
            return ()
        parts = urlsplit(self.url)
        written = parts.netloc.rpartition("@")[0].partition(":")[2]
        query = [part.partition("=")[2] for part in parts.query.split("&") if "password" in part]
        return tuple(word for each in (written, *query) if each for word in {each, unquote(each)})


Location = Path | TeamDatabase


def patience_with(location: Location, answer: float) -> float:
    """Seconds that a database is waited for: a file's other writers, or a server's answer for so long."""
    return BUSY if isinstance(location, Path) else answer


class _Texts(Protocol):
    """Settings."""

    def text(self, key: str) -> str:
        """A text."""


def location_of(settings: _Texts, file: Path, *, paths: UserPaths, project: Path) -> Location:
    """Where the history and the locks are."""
    url = settings.text(SETTING).strip()
    return TeamDatabase(url, machine_name(paths.machines), project) if url else file


def connection_url(database: TeamDatabase) -> str:
    problem = problem_of(database.url)
    if problem is not None:
        raise problem
    return database.url.replace(urlsplit(database.url).scheme, "postgresql", 1)


def without_password(url: str) -> str:
    """A URL of a server as the agents' own processes get it: they must find the password elsewhere."""
    if problem_of(url) is not None:
        return _NO_URL
    parts = urlsplit(url)
    user, mark, host = parts.netloc.rpartition("@")
    query = "&".join(part for part in parts.query.split("&") if "password" not in part)
    return parts._replace(netloc=f"{user.partition(':')[0]}{mark}{host}", query=query).geturl()
