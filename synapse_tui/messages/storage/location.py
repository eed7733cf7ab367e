"""Location of a database: a local file, or a PostgreSQL server shared by a team."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from synapse_tui.settings.schema import VARIABLE, problem_of
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.process_times import machine_name

SETTING = f"env.{VARIABLE}"
BUSY = 10.0
"""Seconds to wait for other writers of the same file."""
_NO_URL = "of-the-host"
"""Replaces a URL that cannot be used, so that a process does not fall back to another database."""


@dataclass(frozen=True, slots=True)
class TeamDatabase:
    # libpq connection URI (section 34.1.1.2 of its manual); may contain a password
    url: str = field(repr=False)
    machine: str  # name of this machine (`process_times.machine_name`)
    project: Path  # real path

    def __str__(self) -> str:
        """Describe the location without user and password; hides a URL that cannot be parsed."""
        if problem_of(self.url):
            return f"of {VARIABLE}"
        parts = urlsplit(self.url)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the password, decoded and as written, to be removed from texts for people."""
        if problem_of(self.url):
            return ()
        parts = urlsplit(self.url)
        written = parts.netloc.rpartition("@")[0].partition(":")[2]
        query = [part.partition("=")[2] for part in parts.query.split("&") if "password" in part]
        return tuple(word for each in (written, *query) if each for word in {each, unquote(each)})


Location = Path | TeamDatabase


def patience_with(location: Location, answer: float) -> float:
    """Return the timeout in seconds: for a file's other writers, or for `answer` from a server."""
    return BUSY if isinstance(location, Path) else answer


class _Texts(Protocol):
    def text(self, key: str) -> str:
        """Return a setting."""


def location_of(settings: _Texts, file: Path, *, paths: UserPaths, project: Path) -> Location:
    url = settings.text(SETTING).strip()
    return TeamDatabase(url, machine_name(paths.machines), project) if url else file


def connection_url(database: TeamDatabase) -> str:
    problem = problem_of(database.url)
    if problem is not None:
        raise problem
    return database.url.replace(urlsplit(database.url).scheme, "postgresql", 1)


def without_password(url: str) -> str:
    """Remove the password for the agents' own processes, which must find it elsewhere."""
    if problem_of(url) is not None:
        return _NO_URL
    parts = urlsplit(url)
    user, mark, host = parts.netloc.rpartition("@")
    query = "&".join(part for part in parts.query.split("&") if "password" not in part)
    return parts._replace(netloc=f"{user.partition(':')[0]}{mark}{host}", query=query).geturl()
