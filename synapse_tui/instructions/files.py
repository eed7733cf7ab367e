"""Locations of instruction texts: the project (trusted files only), the user's folder, this package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synapse_tui.files import read_own, read_regular

Origin = Literal["project", "user", "shipped"]
# Whether the person has trusted this content of a project's file.
Trusted = Callable[[Path, bytes], bool]

MAX_BYTES = 64 * 1024  # agents pay for every character of it
UNTRUSTED = "its content has not been trusted: synapse trust (or in the palette: Read project files again)"


@dataclass(frozen=True, slots=True)
class TextFile:
    path: Path
    origin: Origin
    text: str
    first_line: int = 1  # number of the text's first line in the file, from 1


@dataclass(frozen=True, slots=True)
class Fault:
    """A file, or part of one, that cannot be used."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Found:
    """The result of looking up a file."""

    file: TextFile | None  # the first usable one
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class TextFolders:
    """The folders to search, in order."""

    project: Path | None  # the project's `.synapse`; None outside a project
    user: Path  # `~/.synapse`
    trusted: Trusted  # called for every project file, with the bytes that will be used

    def find(self, name: str) -> Found:
        """Return the first usable file of that name; an empty file is usable and gives no text."""
        faults: list[Fault] = []
        for origin, folder in self._folders():
            path = folder / name
            try:
                data = read_own(path, MAX_BYTES) if origin == "user" else read_file(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                faults.append(Fault(path, error.strerror or str(error)))
                continue
            reason = self._why_not(origin, path, data)
            if not reason:
                return Found(_text_file(path, origin, data.decode("utf-8-sig")), tuple(faults))
            faults.append(Fault(path, reason))
        return Found(None, tuple(faults))

    def shipped(self, name: str) -> str:
        """Return the text shipped under that name; empty if there is none."""
        path = shipped_texts() / name
        return _text_file(path, "shipped", path.read_text(encoding="utf-8")).text if path.is_file() else ""

    def _folders(self) -> Iterator[tuple[Origin, Path]]:
        if self.project is not None and self.project != self.user:
            yield "project", self.project
        yield "user", self.user
        yield "shipped", shipped_texts()

    def _why_not(self, origin: Origin, path: Path, data: bytes) -> str:
        if len(data) > MAX_BYTES:
            return f"it is longer than {MAX_BYTES // 1024} KiB"
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return f"byte {error.start + 1} is not UTF-8"
        return UNTRUSTED if origin == "project" and not self.trusted(path, data) else ""


def shipped_texts() -> Path:
    return Path(__file__).parent / "texts"


def read_file(path: Path) -> bytes:
    return read_regular(path, MAX_BYTES)


def _text_file(path: Path, origin: Origin, content: str) -> TextFile:
    text = content.replace("\r\n", "\n").replace("\r", "\n")
    before = len(text) - len(text.lstrip())
    return TextFile(path, origin, text.strip(), text.count("\n", 0, before) + 1)
