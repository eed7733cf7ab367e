"""One name for each file, however it is written: links, `..`, other cases and forms of letters lead to it."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path


class FileKeys:
    """Names the files of one project.

    A file below the project has its path from there, with `/`; any other its whole real path. A file need not
    exist. Where the project's file system does not tell cases apart, names are in lower case.

    Args:
        project: Folder of the project.
        prefix: Put before every key: the project's name where several share a database.
        folds_case: Whether the file system tells no cases apart; None to find out.
    """

    def __init__(self, project: Path, *, prefix: str = "", folds_case: bool | None = None) -> None:
        self.project = Path(os.path.realpath(project))
        self._prefix = prefix
        self._folds = _folds_case(self.project) if folds_case is None else folds_case

    def key(self, file: str | Path, folder: Path | None = None) -> str:
        """The key of a file.

        Args:
            file: Its path, as somebody wrote it.
            folder: What a relative path counts from; None for the project.

        Raises:
            ValueError: It is empty, or holds a NUL.
        """
        text = os.fspath(file)
        if not text or "\0" in text:
            raise ValueError("a file has a name without NUL")
        real = os.path.realpath(os.path.join(folder or self.project, os.path.expanduser(text)))  # noqa: PTH111, PTH118 - as written
        return self.of_real(Path(real))

    def of_real(self, path: Path) -> str:
        """The key of a file whose path has no links, `..` or other short cuts in it."""
        name = path.relative_to(self.project).as_posix() if path.is_relative_to(self.project) else str(path)
        name = unicodedata.normalize("NFC", name)
        return self._prefix + (name.casefold() if self._folds else name)

    def shown(self, key: str) -> str:
        """A key as a person reads it."""
        return key.removeprefix(self._prefix)

    def path(self, key: str) -> Path:
        """Where the file of a key lies; in another case of letters where cases are not told apart."""
        return self.project / self.shown(key)

    def spelled(self, key: str) -> Path:
        """The path of a key's file in the case that its folders list; that of the key for a new file."""
        path = self.path(key)
        if not self._folds:
            return path
        base = self.project if path.is_relative_to(self.project) else Path(path.anchor)
        for part in path.relative_to(base).parts:
            base /= _entry(base, part)
        return base


def _entry(folder: Path, name: str) -> str:
    """The entry of a folder that a folded name means; the name itself where there is none."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - only the names are needed
    except OSError:
        return name
    alike = (each for each in names if unicodedata.normalize("NFC", each).casefold() == name)
    return next(alike, name)


def _folds_case(folder: Path) -> bool:
    """Whether a folder's own name is found in another case too (macOS as a rule)."""
    name = folder.name
    other = name.swapcase()
    if other == name:
        return False
    try:
        return folder.samefile(folder.with_name(other))
    except OSError:
        return False
