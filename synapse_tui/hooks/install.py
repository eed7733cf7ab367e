"""Installs our hooks into an agent's own configuration, for agents that are not started by a host.

A file's former content is saved and restored byte for byte on removal if no other program has changed the
file since; otherwise only our own entries are removed.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import hashlib
import json
import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synapse_tui.core.errors import ConfigError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import (
    LARGEST,
    check_safe,
    make_folder,
    private_folder,
    read_advice,
    read_own,
    read_regular,
    write_advice,
    write_private,
)

from .dialects import Dialect
from .launch import NAME, claude_hooks, codex_hooks, copilot_hooks, gemini_extension, opencode_plugin

log = logging.getLogger(__name__)

# Identifies our own commands, whichever installation wrote them.
MARK = re.compile(r"synapse_tui/hooks/client\.py['\"]? ")
PROGRAM = b"client.py"


class HookStatus(StrEnum):
    """Whether our hooks are in an agent's configuration."""

    MISSING = "not installed"
    INSTALLED = "installed"
    OLD = "of another version: install them again"


@dataclass(frozen=True, slots=True)
class HookTarget:
    """Where an agent reads hooks from."""

    path: Path
    hooks: Mapping[str, object] | None = None
    files: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    note: str = ""  # a further step for the user; may be empty


def place_of(dialect: Dialect, home: Path, environ: Mapping[str, str]) -> HookTarget:

    def folder(variable: str, usual: str) -> Path:
        return Path(environ.get(variable) or home / usual)

    match dialect:
        case Dialect.CLAUDE:
            return HookTarget(folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json", claude_hooks())
        case Dialect.CODEX:
            note = "Codex runs them once you have trusted them: /hooks in Codex"
            return HookTarget(folder("CODEX_HOME", ".codex") / "hooks.json", codex_hooks(), note=note)
        case Dialect.GEMINI:
            files = {name: _written(content) for name, content in gemini_extension().items()}
            return HookTarget(home / ".gemini" / "extensions" / NAME, files=files)
        case Dialect.OPENCODE:
            config = folder("XDG_CONFIG_HOME", ".config") / "opencode"
            return HookTarget(config / "plugin" / "synapse.js", files={"": opencode_plugin()})
        case Dialect.COPILOT:
            own = {"version": 1, "hooks": copilot_hooks()}
            place = folder("COPILOT_HOME", ".copilot") / "hooks" / "synapse.json"
            return HookTarget(place, files={"": _written(own)})


class HookInstaller:
    """Adds hooks to the user's configuration and removes them again."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def standing(self, place: HookTarget) -> HookStatus:
        if place.hooks is None:
            paths = {place.path / name if name else place.path: data for name, data in place.files.items()}
            if not place.path.exists():
                return HookStatus.MISSING
            same = all(_bytes(path) == data for path, data in paths.items())
            return HookStatus.INSTALLED if same else HookStatus.OLD
        data = _bytes(place.path)
        if data is None or PROGRAM not in data:
            return HookStatus.MISSING  # regardless of any other content
        content = _document(place.path)
        ours = {name: [group for group in groups if _is_ours(group)] for name, groups in _groups(content)}
        found = {name: groups for name, groups in ours.items() if groups}
        if not found:
            return HookStatus.MISSING
        return HookStatus.INSTALLED if found == dict(place.hooks) else HookStatus.OLD

    def install(self, place: HookTarget) -> None:
        """Add our hooks after the user's own; older ones of ours are replaced."""
        if place.hooks is None:
            for name, data in place.files.items():
                _write(place.path / name if name else place.path, data)
            return
        _check_writable(place.path)
        if self.standing(place) is not HookStatus.MISSING:
            self.remove(place)
        before = _bytes(place.path)
        content = _document(place.path)
        hooks = content.setdefault("hooks", {})
        if not isinstance(hooks, dict):
            raise ConfigError(f"{place.path}: 'hooks' is not a table", "correct the file first")
        for name, groups in place.hooks.items():
            theirs = hooks.get(name, [])
            if not isinstance(theirs, list):
                raise ConfigError(f"{place.path}: 'hooks.{name}' is not a list", "correct the file first")
            # At the end, because Codex identifies the user's own hooks by position.
            hooks[name] = [*theirs, *_list(groups)]
        after = _text(content, before)
        self._remember(place.path, before, after)
        _write(place.path, after)

    def remove(self, place: HookTarget) -> bool:
        """Remove our hooks; return whether there were any."""
        if self.standing(place) is HookStatus.MISSING:
            return False
        try:
            if place.hooks is None:
                if place.path.is_dir() and not place.path.is_symlink():
                    shutil.rmtree(place.path)
                else:
                    place.path.unlink()
            else:
                self._restore(place.path)
        except OSError as error:
            raise ConfigError(
                f"{place.path} cannot be changed: {error.strerror}", write_advice(error)
            ) from error
        return True

    def _restore(self, path: Path) -> None:
        _check_writable(path)
        saved = self._recall(path)
        now = _bytes(path)
        if saved is not None and now is not None and hashlib.sha256(now).hexdigest() == saved[1]:
            if saved[0] is None:
                path.resolve().unlink()  # of a dangling link, the file that it now points to
            else:
                _write(path, saved[0])
            self._memory(path).unlink(missing_ok=True)
            return
        content = _document(path)
        _take_out(content)
        _write(path, _text(content, now))
        self._memory(path).unlink(missing_ok=True)

    # -- former contents of files ---

    def _memory(self, path: Path) -> Path:
        return self._state / f"before-{hashlib.sha256(str(path).encode()).hexdigest()[:16]}.json"

    def _remember(self, path: Path, before: bytes | None, after: bytes) -> None:
        saved = {
            "path": str(path),
            "before": None if before is None else base64.b64encode(before).decode(),
            "after": hashlib.sha256(after).hexdigest(),
        }
        try:
            private_folder(self._state)
            write_private(self._memory(path), json.dumps(saved).encode())
        except OSError as error:
            raise ConfigError(
                f"what {path} was cannot be noted in {self._state}: {error.strerror}; nothing was changed",
                "see the folder's permissions, and whether the disk is full",
            ) from error

    def _recall(self, path: Path) -> tuple[bytes | None, str] | None:
        try:
            check_safe(self._memory(path))
            saved = json.loads(read_regular(self._memory(path), 4 * LARGEST))
            before = saved["before"]
            return (None if before is None else base64.b64decode(before)), str(saved["after"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


def _take_out(content: dict[str, Any]) -> None:
    for name, groups in _groups(content):
        saved = [left for left in map(_without_ours, groups) if left is not None]
        if saved or not groups:
            content["hooks"][name] = saved
        else:
            del content["hooks"][name]
    if not content.get("hooks", True):
        del content["hooks"]


def _groups(content: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    hooks = content.get("hooks")
    found = hooks.items() if isinstance(hooks, dict) else ()
    return [(name, groups) for name, groups in found if isinstance(groups, list)]


def _without_ours(group: object) -> object:
    if not _is_ours(group):
        return group
    hooks = group.get("hooks") if isinstance(group, dict) else None
    saved = [hook for hook in _list(hooks) if not _is_ours(hook)]
    return {**group, "hooks": saved} if isinstance(group, dict) and saved else None


def _is_ours(group: object) -> bool:
    return MARK.search(json.dumps(group)) is not None


def _document(path: Path) -> dict[str, Any]:
    data = _bytes(path)
    try:
        content = json.loads(data) if data and data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not valid JSON: {error}",
            "correct it first (comments would be lost); nothing was changed",
        ) from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds no JSON object", "correct it first; nothing was changed")
    return content


def _text(content: Mapping[str, Any], like: bytes | None) -> bytes:
    before = like if like and like.strip() else b"{\n  }\n"
    found = re.search(rb"\n([ \t]+)", before)
    indent = found[1].decode() if found else "  "
    text = json.dumps(content, indent=indent if b"\n" in before.strip() else None, ensure_ascii=False)
    text += "\n" if before.endswith(b"\n") else ""
    data = text.replace("\n", "\r\n" if b"\r\n" in before else "\n").encode()
    return codecs.BOM_UTF8 + data if before.startswith(codecs.BOM_UTF8) else data


def _written(content: object) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def _bytes(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", read_advice(error)) from error


def _check_writable(path: Path) -> None:
    if path.exists() and not path.stat().st_mode & 0o222:
        raise ConfigError(f"{path} is read-only", "make it writable first; nothing was changed")


def _write(path: Path, data: bytes) -> None:
    try:
        make_folder(path.parent)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        # Follow symbolic links, because people link such files to their dotfiles.
        write_private(path.resolve(), data)
        path.chmod(mode)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", write_advice(error)) from error


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


INSTALLED = frozenset({Dialect.GEMINI})  # agents that read hooks only from the user's folders
FILE = "asked.json"


class Consent(StrEnum):
    """A person's answer."""

    YES = "yes"
    LATER = "not now"
    NEVER = "never"


class HookConsent:
    """Stores answers in the user's folder; `not now` applies until the host ends."""

    def __init__(self, folder: Path, home: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._home = home
        self._environ = environ
        self._asked: set[Dialect] = set()

    async def wanted(self, dialect: Dialect | None) -> bool:
        """Whether to ask the person now, at most once; outdated hooks that were agreed to are updated."""
        if dialect not in INSTALLED or dialect in self._asked:
            return False
        self._asked.add(dialect)
        try:
            return await asyncio.to_thread(self._look, dialect)
        except ConfigError as error:
            log.warning("hooks of %s: %s", dialect, error)
            return False

    async def answer(self, dialect: Dialect, answer: Consent) -> Path | None:
        return await asyncio.to_thread(self._take, dialect, answer)

    def _look(self, dialect: Dialect) -> bool:
        place, answered = self._place(dialect), self._answers().get(dialect)
        standing = HookInstaller(self._folder).standing(place)
        if standing is HookStatus.OLD and answered == Consent.YES:
            HookInstaller(self._folder).install(place)
        # If they were agreed to and are missing, they were removed again: do not ask.
        return standing is not HookStatus.INSTALLED and answered is None

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

    def _place(self, dialect: Dialect) -> HookTarget:
        return place_of(dialect, self._home, self._environ)

    def _answers(self) -> dict[str, str]:
        try:
            content = json.loads(read_own(self._folder / FILE))
        except (OSError, ValueError, RecursionError):
            return {}
        return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}
