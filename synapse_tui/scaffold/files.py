"""What is to be done so that `.synapse` holds the shipped files, and doing it."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from synapse_tui.errors import ConfigError
from synapse_tui.files import private_folder, read_regular, write_advice, write_private
from synapse_tui.paths import IGNORED, UserPaths, make_project_folder
from synapse_tui.settings import SCHEMA
from synapse_tui.settings.files import parse
from synapse_tui.settings.layers import check_file, entries_of

from .notes import NAMES, NoteFile
from .shipped import (
    SETTINGS,
    TEXTS,
    Standing,
    is_default,
    shipped_text,
    standing_of,
)

Scope = Literal["user", "project"]
_PERMISSIONS = "check its permissions"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is to be done, or not.

    Attributes:
        action: In the imperative: `write`, `renew`, `replace`, `keep`, `add a line`, `remove the line`.
        path: To which file.
        why: What is to be known of it; empty for nothing.
        backup: Where the old file goes; None for nowhere.
        data: What is written; None where nothing is.
        note: The file of an agent that gets a line or loses it; None for a file of ours.
    """

    action: str
    path: Path
    why: str = ""
    backup: Path | None = None
    data: bytes | None = None
    note: NoteFile | None = None

    @property
    def changes(self) -> bool:
        """Whether anything is done."""
        return self.action != "keep"

    def as_json(self) -> Mapping[str, object]:
        """For programs."""
        backup = {"backup": str(self.backup)} if self.backup else {}
        return {"action": self.action, "path": str(self.path), "why": self.why} | backup


class Scaffold:
    """The shipped files of one scope.

    Args:
        scope: Whether they are the person's own, or the project's.
        project: Folder of the project.
        paths: Folders of the user.

    Attributes:
        folder: The `.synapse` that they belong to.

    Raises:
        ConfigError: There can be none.
    """

    def __init__(self, scope: Scope, project: Path, paths: UserPaths) -> None:
        self.scope = scope
        self.project = project
        self.folder = (paths.home if scope == "user" else project) / ".synapse"
        if scope == "project":
            self._check_project(paths)
        _check_writable(self.folder)

    def _check_project(self, paths: UserPaths) -> None:
        if self.folder == paths.synapse:
            raise ConfigError(
                "your home folder is no project",
                "use --user, or mark the project first: mkdir .synapse in its folder",
            )
        if self.project == Path(self.project.anchor):
            raise ConfigError("the root of the file system is no project", "change to a project's folder")
        with contextlib.suppress(FileNotFoundError):
            status = self.folder.lstat()
            if stat.S_ISLNK(status.st_mode):
                raise ConfigError(f"{self.folder} is a link, which is not followed", "make it a folder")
            if not stat.S_ISDIR(status.st_mode):
                raise ConfigError(f"{self.folder} is no folder", "move it away")
            if status.st_uid != os.geteuid():
                raise ConfigError(f"{self.folder} belongs to another user", "work in a folder of yours")

    # -- what is to be done ---

    def to_init(self) -> list[Step]:
        """What is to be done so that all files are there; what a person has edited stays."""
        steps = [self._to_make(name) for name in (SETTINGS, *TEXTS)]
        ignore = self.folder / ".gitignore"
        if self.scope == "project" and not os.path.lexists(ignore):
            steps.append(Step("write", ignore, "so that git leaves out what is for you alone", data=IGNORED))
        return steps

    def _to_make(self, name: str) -> Step:
        path = self.folder / name
        standing = standing_of(path)
        if standing is Standing.MISSING:
            return Step("write", path, data=self._shipped(name))
        if standing is Standing.OLD:
            return Step("renew", path, standing.value, data=self._shipped(name))
        return Step("keep", path, standing.value)

    def to_reset(self) -> list[Step]:
        """What is to be done so that all files are as shipped; what a person has edited is kept as a backup.

        Raises:
            ConfigError: Keys that the settings may hold would be lost, or a file cannot be moved away.
        """
        return [self._to_put_back(name) for name in (SETTINGS, *TEXTS)]

    def _to_put_back(self, name: str) -> Step:
        path = self.folder / name
        standing = standing_of(path)
        if standing in (Standing.MISSING, Standing.OLD):
            return Step("write" if standing is Standing.MISSING else "renew", path, data=self._shipped(name))
        if standing is Standing.SHIPPED:
            return Step("keep", path, standing.value)
        if standing is Standing.ODD:
            raise ConfigError(f"{path} is {standing.value}, or cannot be read", "move it away first")
        kept = self._guards() if name == SETTINGS else {}
        why = f"{standing.value}; who may call agents stays as it is" if kept else standing.value
        return Step("replace", path, why, backup=_unused(path), data=self._shipped(name, kept))

    def notes(self, *, wanted: bool) -> Iterator[Step]:
        """What is to be done to CLAUDE.md and GEMINI.md, so that they have the line, or have it no more.

        Args:
            wanted: Whether they shall have it.
        """
        for name in NAMES if self.scope == "project" else ():
            path = self.project / name
            try:
                note = NoteFile(path, self.project)
            except ConfigError as error:
                yield Step("keep", path, error.message)
                continue
            if wanted:
                done = Step("keep", path, "has the line")
                why = "a new file" if note.missing else ""
                yield (
                    done
                    if note.as_shipped
                    else Step("add a line", path, why, data=note.with_line(), note=note)
                )
            elif note.noted:
                data = note.without_line()
                why = "" if data is not None else "the file with it: there is nothing else in it"
                yield Step("remove the line", path, why, data=data, note=note)

    def faults(self) -> list[ConfigError]:
        """What is wrong with the settings that are there."""
        return check_file(self.folder / SETTINGS, own=self.scope == "user")

    # -- what is shipped ---

    def _shipped(self, name: str, kept: Mapping[str, object] | None = None) -> bytes:
        return self._settings(kept or {}) if name == SETTINGS else shipped_text(name)

    def _settings(self, kept: Mapping[str, object]) -> bytes:
        """Settings that set nothing: what stands in a project's file wins over everybody's own."""
        content: dict[str, Any] = {}
        for key, value in kept.items():
            _put(content, key, value)
        return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()

    def _guards(self) -> Mapping[str, object]:
        """What keeps callers out and is set: to put settings back opens no door and takes no key away."""
        if self.scope != "user":
            return {}
        path = self.folder / SETTINGS
        try:
            content = parse(path, read_regular(path))
        except FileNotFoundError:  # a link that leads nowhere
            return {}
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}", _PERMISSIONS) from error
        return {
            key: value
            for key, value in entries_of(content)
            if key in SCHEMA and SCHEMA[key].guard and not is_default(key, value)
        }

    # -- doing it ---

    def make_folder(self) -> None:
        """Make `.synapse`, with what version control leaves out.

        Raises:
            ConfigError: It cannot be made.
        """
        try:
            if self.scope == "user":
                private_folder(self.folder)
            else:
                make_project_folder(self.project)
        except OSError as error:
            raise ConfigError(
                f"{self.folder} cannot be made: {error.strerror or error}", write_advice(error)
            ) from error


def carry_out(steps: Sequence[Step], done: Callable[[Step], None]) -> None:
    """Do what is to be done, step by step.

    Args:
        steps: What.
        done: Told of each step that was done.

    Raises:
        ConfigError: A step cannot be done; those before it are, and no file is lost.
    """
    for step in steps:
        if step.changes:
            try:
                _do(step)
            except OSError as error:
                raise ConfigError(
                    f"{step.path} cannot be written: {error.strerror or error}", write_advice(error)
                ) from error
            done(step)


def _do(step: Step) -> None:
    if step.note is not None:
        step.note.write(step.data)
        return
    if step.action == "write" and os.path.lexists(step.path):
        if read_regular(step.path) == step.data:
            return
        raise FileExistsError(errno.EEXIST, "it was made a moment ago")
    if step.backup is not None:
        step.path.rename(step.backup)
    try:
        write_private(step.path, step.data or b"")
    except BaseException:
        if step.backup is not None:
            step.backup.rename(step.path)
        raise


def _put(content: dict[str, Any], key: str, value: object) -> None:
    *tables, name = key.split(".")
    for table in tables:
        content = content.setdefault(table, {})
    content[name] = value


def _unused(path: Path) -> Path:
    """A name for the backup of a file that nothing has yet."""
    names = itertools.chain([f"{path.name}.bak"], (f"{path.name}.bak{at}" for at in itertools.count(2)))
    return next(found for name in names if not os.path.lexists(found := path.with_name(name)))


def _check_writable(folder: Path) -> None:
    nearest = next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110 - never raises
    if not nearest.is_dir():
        raise ConfigError(f"{nearest} is no folder", "move it away")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"{nearest} cannot be written to", _PERMISSIONS)
