"""Where the texts lie: in the project (what is trusted of it), in the user's folder, in this package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from synapse_tui.files import read_own, read_regular

Origin = Literal["project", "user", "shipped"]
# whether the person has trusted this content of a project's file
Trusted = Callable[[Path, bytes], bool]

MAX_BYTES = 64 * 1024  # the longest file that is read: each agent pays for every character of it
UNTRUSTED = "its content has not been trusted: synapse trust (or in the palette: Read project files again)"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that is used."""

    path: Path
    origin: Origin
    text: str
    first_line: int = 1  # number of the text's first line in the file, from 1


@dataclass(frozen=True, slots=True)
class Fault:
    """A file, or a part of one, that is not used."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for a file gave."""

    file: TextFile | None  # the first one that can be used; None when there is none
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class TextFolders:
    """The folders in which a file is looked for, one after the other."""

    project: Path | None  # `.synapse` of the project; None outside of a project
    user: Path  # `~/.synapse`
    trusted: Trusted  # asked for every file of the project, with the very bytes that will be used

    def find(self, name: str) -> Found:
        """The first file of that name that can be used; a file without text counts, it says nothing."""
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
        """The shipped text of that name; empty when there is none."""
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
