"""The files in a patch of the form that Codex's `apply_patch` takes."""

from __future__ import annotations

import re

from synapse_tui.file_safety import ChangeType

from .events import FileWrite

_HEADER = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_CHANGES = {"Add": ChangeType.CREATE, "Update": ChangeType.MODIFY, "Delete": ChangeType.DELETE}
_BEGIN = "*** Begin Patch"


def files_of_patch(text: str) -> tuple[FileWrite, ...]:
    """The files that a patch, or a command line that holds one, writes; a moved one with both its names."""
    start = text.find(_BEGIN)
    if start < 0:
        return ()
    found: list[FileWrite] = []
    for change, path, moved in _HEADER.findall(text[start:]):
        if not moved:
            found.append(FileWrite(path, _CHANGES[change]))
            continue
        if found:  # the file that is moved is gone afterwards
            found[-1] = FileWrite(found[-1].path, ChangeType.DELETE)
        found.append(FileWrite(moved, ChangeType.CREATE))
    return tuple(found)
