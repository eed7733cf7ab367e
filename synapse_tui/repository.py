"""Which repository a folder belongs to, by a name that is the same on every machine: that of its remote."""

from __future__ import annotations

import re
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_SHORT = re.compile(r"(?:[^@/\s]+@)?([^:/\s]{2,}):(?!//)(.+)")
"""`git@github.com:team/app.git`, as git-clone(1) knows it; one letter is a drive, not a host."""
_REMOTE = re.compile(r'remote "(.+)"')
_FIRST = "origin"


@dataclass(frozen=True, slots=True)
class Repository:
    """A working copy of a repository that has a remote.

    Attributes:
        folder: The top of the working copy, a real path.
        name: `github.com/team/app`, without user, password and port.
    """

    folder: Path
    name: str


def find_repository(folder: Path) -> Repository | None:
    """The repository of a folder.

    Args:
        folder: A real path.

    Returns:
        None where there is none, or none with a remote on a host.
    """
    for place in (folder, *folder.parents):
        mark = place / ".git"
        if mark.exists():
            urls = _remotes(mark)
            names = [urls.pop(_FIRST, ""), *(urls[name] for name in sorted(urls))]
            found = next((name for url in names if (name := remote_name(url))), "")
            return Repository(place, found) if found else None
    return None


def remote_name(url: str) -> str:
    """The name of a remote: host and path in lower case; empty for one that is on no host."""
    short = _SHORT.fullmatch(url.strip())
    try:
        parts = urlsplit(url.strip()) if short is None else None
        host, path = (
            (short[1], short[2]) if short else (parts.hostname or "", parts.path) if parts else ("", "")
        )
    except ValueError:
        return ""
    if parts is not None and parts.scheme not in ("http", "https", "ssh", "git", "git+ssh", "ssh+git"):
        return ""
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}".casefold() if host and path else ""


def _remotes(mark: Path) -> dict[str, str]:
    parser = ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    with suppress(OSError, ConfigParserError, ValueError):
        # git indents what stands in a section, which means a continued line to this parser.
        text = (_common_folder(mark) / "config").read_text(encoding="utf-8", errors="replace")
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    found = {}
    for section in parser.sections():
        name = _REMOTE.fullmatch(section)
        if name and (url := parser.get(section, "url", fallback="")):
            found[name[1]] = url.strip('"')
    return found


def _common_folder(mark: Path) -> Path:
    folder = mark
    if mark.is_file():
        told = mark.read_text(encoding="utf-8", errors="replace").partition("gitdir:")[2].strip()
        folder = (mark.parent / told).resolve()
    with suppress(OSError):
        return (folder / (folder / "commondir").read_text(encoding="utf-8").strip()).resolve()
    return folder
