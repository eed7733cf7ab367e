"""What a reply holds besides its text: files, URLs and data, read by the command that gives them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from synapse_tui.content import Part
from synapse_tui.errors import InvalidValue, MessageTooLarge
from synapse_tui.model import TaskState

STATES = ("completed", "failed", "rejected", "input-required")
MAX_FILES = 1_000_000
"""How many bytes the files of a reply may have together: they travel in one request."""


@dataclass(frozen=True, slots=True)
class Content:
    """What goes with the text of a reply.

    Attributes:
        parts: Its files, URLs and data.
        contents: What the files hold, by their paths.
    """

    parts: tuple[Part, ...]
    contents: Mapping[str, bytes]


def state_of(state: str | None, *, failed: bool, rejected: bool) -> TaskState:
    """What a task becomes by a reply.

    Raises:
        InvalidValue: It cannot become all of that.
    """
    given = [state] if state is not None else []
    given += ["failed"] * failed + ["rejected"] * rejected
    if len(set(given)) > 1:
        raise InvalidValue(f"a task cannot be {' and '.join(given)}", "use one of --state, --fail, --reject")
    return TaskState(given[0].replace("-", "_")) if given else TaskState.COMPLETED


def read_content(files: Sequence[str], urls: Sequence[str], data: Sequence[str]) -> Content:
    """Read what goes with the text of a reply.

    Args:
        files: Paths of files.
        urls: URLs.
        data: JSON values.

    Raises:
        InvalidValue: A file cannot be read, a URL is none, or data is no JSON.
        MessageTooLarge: The files are too large.
    """
    import mimetypes

    contents = _read_files(files)
    parts = [
        Part("file", path=path, name=Path(path).name, media_type=mimetypes.guess_type(path)[0] or "")
        for path in contents
    ]
    parts += [Part("url", _checked_url(url)) for url in urls]
    parts += [Part("data", data=_read_json(text)) for text in data]
    return Content(tuple(parts), contents)


def _read_files(files: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    left = MAX_FILES
    for name in files:
        content = _read_file(name, left)
        left -= len(content)
        found[str(Path(name).absolute())] = content
    return found


def _read_file(name: str, most: int) -> bytes:
    """A regular file; a pipe would be waited for.

    Raises:
        InvalidValue: It cannot be read, or is no regular file.
        MessageTooLarge: It is larger than what may be read.
    """
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidValue(f"{name} cannot be read: {why}", "give the path of a file") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InvalidValue(f"{name} is no regular file", "give the path of a file")
    with os.fdopen(handle, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise MessageTooLarge(
            f"the files of the reply have more than {MAX_FILES:,} bytes",
            "name them by their paths in the text, or give URLs",
        )
    return content


def _checked_url(url: str) -> str:
    try:
        found = urlsplit(url)
        known = found.scheme in ("http", "https") and bool(found.hostname)
    except ValueError:
        known = False
    if not known:
        raise InvalidValue(f"{url!r} is no URL", "give one that begins with https:// or http://")
    return url


def _read_json(text: str) -> object:
    try:
        value: object = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"--data is no JSON: {error}", """quote it: --data '{"count": 3}'""") from error
    return value


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no value of JSON")
