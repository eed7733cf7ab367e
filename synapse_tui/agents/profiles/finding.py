"""Finds and loads profiles: shipped, the user's, and the project's if trusted."""

from __future__ import annotations

import difflib
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from synapse_tui.core.errors import ProfileError, UnknownProfile
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import check_safe, read_own, read_regular
from synapse_tui.system.trust import TrustStore, UntrustedFile

from .profile import MAX_FILE_BYTES, Origin, Profile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProfileSet:
    profiles: Mapping[str, Profile]
    problems: list[ProfileError] = field(default_factory=list)
    untrusted: list[UntrustedFile] = field(default_factory=list)
    read: Mapping[Path, tuple[bytes, Profile]] = field(default_factory=lambda: MappingProxyType({}))

    def find(self, name: str, path: str = "") -> Profile:
        """Return the profile of that name or alias.

        Raises UnknownProfile, which mentions a program of that name in the folders of `path`.
        """
        word = name.lower()
        if word in self.profiles:
            return self.profiles[word]
        for profile in self.profiles.values():
            if word in profile.aliases:
                return profile
        near = difflib.get_close_matches(word, self.profiles, 1)
        program = bool(path) and shutil.which(name, path=path) is not None
        raise UnknownProfile(name, sorted(self.profiles), near[0] if near else None, program=program)


def load_profiles(
    shipped: Path,
    user: Path | None = None,
    project: Path | None = None,
    *,
    trust: TrustStore | None = None,
    environ: Mapping[str, str] | None = None,
    last: ProfileSet | None = None,
) -> ProfileSet:
    """Load all profiles; a broken one is reported and the others still load."""
    loader = _Loader(os.environ if environ is None else environ, last)
    loader.folder(shipped, "shipped")
    if user is not None:
        loader.folder(user, "user")
    if project is not None:
        loader.folder(project, "project", trust or TrustStore(None))
    profiles, read = MappingProxyType(loader.profiles), MappingProxyType(loader.read)
    return ProfileSet(profiles, loader.problems, loader.untrusted, read)


class _Loader:
    def __init__(self, environ: Mapping[str, str], last: ProfileSet | None) -> None:
        self.profiles: dict[str, Profile] = {}
        self.problems: list[ProfileError] = []
        self.untrusted: list[UntrustedFile] = []
        self.read: dict[Path, tuple[bytes, Profile]] = {}
        self._environ = environ
        self._last = last.read if last is not None else {}

    def folder(self, folder: Path, origin: Origin, trust: TrustStore | None = None) -> None:
        for path in _files(folder, self.problems, own=origin == "user"):
            data = _read(path, self.problems, own=origin == "user")
            if data is None:
                self._go_on(path)
                continue
            untrusted = trust.check(path, data) if trust is not None else None
            if untrusted is not None:
                self.untrusted.append(untrusted)
                if untrusted.changed:
                    self._go_on(path)
                continue
            if path in self._last and self._last[path][0] == data:
                self._go_on(path)
                continue
            from .reader import read_profile  # noqa: PLC0415 - YAML is slow to import

            profile, problems = read_profile(path, data, origin, self._environ)
            self.problems.extend(problems)
            if profile is None:
                self._go_on(path)
            else:
                self.read[path] = data, profile
                self._add(profile)

    def _go_on(self, path: Path) -> None:
        if path in self._last:
            self.read[path] = self._last[path]
            self._add(self._last[path][1])

    def _add(self, profile: Profile) -> None:
        other = self.profiles.get(profile.name)
        if other is not None and other.origin == profile.origin:
            reason = f"'{profile.name}' is already the profile of {other.source.name}"
            self.problems.append(ProfileError(profile.source, 0, reason))
            return
        self.profiles[profile.name] = profile


def _files(folder: Path, problems: list[ProfileError], *, own: bool) -> list[Path]:
    try:
        if own:
            check_safe(folder)
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix in (".yaml", ".yml") and not path.name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(ProfileError(folder, 0, f"the folder cannot be read: {error.strerror}"))
        return []


def _read(path: Path, problems: list[ProfileError], *, own: bool) -> bytes | None:
    try:
        return (read_own if own else read_regular)(path, MAX_FILE_BYTES)
    except OSError as error:
        problems.append(ProfileError(path, 0, f"the file cannot be read: {error.strerror}"))
        return None
