"""Which files of a project the user has trusted: a cloned repository runs nothing by itself."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.files import private_folder, read_own, write_private

log = logging.getLogger(__name__)

_HINT = "correct it, or remove it to be asked again"


@dataclass(frozen=True, slots=True)
class UntrustedFile:
    """A file of the project that is ignored until the user has looked at it.

    Attributes:
        path: The file, as a real path.
        digest: SHA-256 of its content as it was seen, in hexadecimal.
        content: What the user is shown; bytes that are no UTF-8 are replaced.
        changed: Whether another content of the same file was trusted before.
    """

    path: Path
    digest: str
    content: str
    changed: bool


class TrustStore:
    """The trusted contents, kept in one private file.

    Args:
        file: `~/.synapse/trusted.json`; one that is missing or broken trusts nothing. None keeps nothing.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._digests = _load(file)

    def check(self, path: Path, data: bytes) -> UntrustedFile | None:
        """Whether a file may be used.

        Args:
            path: The file.
            data: Its content as it was read and will be used: never read it again after the check.

        Returns:
            None when this content of this file is trusted; else what to ask the user about.
        """
        real = path.resolve()
        digest = hashlib.sha256(data).hexdigest()
        known = self._digests.get(str(real))
        if known == digest:
            return None
        return UntrustedFile(real, digest, data.decode("utf-8", "replace"), changed=known is not None)

    def trusts(self, path: Path, data: bytes) -> bool:
        """Whether this content of a file is trusted."""
        return self.check(path, data) is None

    def trust(self, files: Iterable[UntrustedFile]) -> None:
        """Trust the contents that the user was shown, and no later ones.

        Raises:
            OSError: The list could not be written; nothing is trusted then.
        """
        digests = {**_load(self._file), **{str(file.path): file.digest for file in files}}
        self._save(digests)

    def revoke(self, path: Path) -> None:
        """Trust a file no longer.

        Raises:
            OSError: The list could not be written.
        """
        digests = _load(self._file)
        digests.pop(str(path.resolve()), None)
        self._save(digests)

    def _save(self, digests: Mapping[str, str]) -> None:
        if self._file is not None:
            private_folder(self._file.parent)
            text = json.dumps({"version": 1, "files": dict(sorted(digests.items()))}, indent=1)
            write_private(self._file, text.encode())
        self._digests = dict(digests)


def _load(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        content = json.loads(read_own(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        log.warning("%s cannot be read, no file of a project is trusted: %s; %s", file, reason, _HINT)
        return {}
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, dict):
        log.warning("%s holds no list, no file of a project is trusted; %s", file, _HINT)
        return {}
    return {path: digest for path, digest in files.items() if isinstance(digest, str)}
