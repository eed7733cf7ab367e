"""Which files of projects the user trusts: profiles, settings, teams and scripts that a repository brings."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from .dataclass import dataclass
from .files import private_folder, read_own, write_private

log = logging.getLogger(__name__)

_HINT = "correct it, or remove it to be asked again"


@dataclass(frozen=True, slots=True)
class UntrustedFile:
    """A file of the project that is ignored until the user trusts it."""

    path: Path
    digest: str  # SHA-256 of the content that was seen, in hexadecimal
    content: str  # decoded for display; invalid UTF-8 is replaced
    changed: bool


class TrustStore:
    """Hashes of trusted files, in one private file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._digests = _load(file)

    def check(self, path: Path, data: bytes) -> UntrustedFile | None:
        real = path.resolve()
        digest = hashlib.sha256(data).hexdigest()
        known = self._digests.get(str(real))
        if known == digest:
            return None
        return UntrustedFile(real, digest, data.decode("utf-8", "replace"), changed=known is not None)

    def trusts(self, path: Path, data: bytes) -> bool:
        return self.check(path, data) is None

    def trust(self, files: Iterable[UntrustedFile]) -> None:
        """Trust the files with exactly the content that the user was shown."""
        digests = {**_load(self._file), **{str(file.path): file.digest for file in files}}
        self._save(digests)

    def revoke(self, path: Path) -> None:
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
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        log.warning("%s cannot be read, no file of a project is trusted: %s; %s", file, reason, _HINT)
        return {}
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, dict):
        log.warning("%s holds no list, no file of a project is trusted; %s", file, _HINT)
        return {}
    return {path: digest for path, digest in files.items() if isinstance(digest, str)}
