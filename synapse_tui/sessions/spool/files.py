"""File format of a spool: a line of JSON, then the unchanged body.

| name | written by | content |
|---|---|---|
| `<id>.request` | client | a request that has not been picked up |
| `<id>.taken` | host, by renaming it | a request in progress |
| `<secret>.answer` | host | the signed answer |
| `<id>.answer` | host | the answer to an unreadable request, where version 1 looks for it |
| `.*` | both | a file that is being written |
| `host` | host | locked while the host runs; contains its network and the version of this format |

If the client withdraws a request by removing it while the host picks it up by renaming it, exactly one of
them succeeds, so a withdrawn request is never delivered.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from synapse_tui.system.dataclass import dataclass

MAX_HEAD = 64 * 1024
"""Maximum length of the first line in bytes."""
MAX_REQUEST = 2 * 1024 * 1024 + MAX_HEAD
"""The largest body that a server accepts, plus the first line, in bytes."""
MAX_ANSWER = 16 * 1024 * 1024 + MAX_HEAD
"""In bytes."""
LONGEST_WAIT = 7 * 86_400.0
"""Maximum timeout of a request in seconds."""
REQUEST, TAKEN, ANSWER = ".request", ".taken", ".answer"
HOST_FILE = "host"
VERSION = 2
"""Version of requests and answers; version 1 did not sign answers."""
ID = re.compile(r"[0-9a-f]{32}")
_METHODS = ("GET", "POST")
_TARGET = re.compile(r"/[!-\"$-~]{0,8191}")
_ENDPOINT = re.compile(r"https?://(?:127\.0\.0\.1|localhost|\[::1\]):\d{1,5}(?:/[A-Za-z0-9._~/-]{0,1024})?")
"""Requests from a sandbox may only go to agents of this machine."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_HEADER_VALUE = re.compile(r"[ -~]{0,4096}")


@dataclass(frozen=True, slots=True)
class SpoolRequest:
    """A request to an agent's server.

    Attributes:
        method: `GET` or `POST`.
        endpoint: URL of the server.
        target: Path and query.
        headers: Includes the sender's signature.
        timeout: Seconds that the client waits for the answer once the request is picked up.
        expires: Seconds since the epoch, when the client has withdrawn a request that was not picked up.
    """

    method: str
    endpoint: str
    target: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 10.0
    expires: float = 0.0

    def encode(self) -> bytes:
        head = {
            "v": VERSION,
            "method": self.method,
            "endpoint": self.endpoint,
            "target": self.target,
            "headers": dict(self.headers),
            "timeout": self.timeout,
            "expires": self.expires,
        }
        return _join(head, self.body)

    @classmethod
    def decode(cls, data: bytes) -> SpoolRequest:
        """Parse a request file.

        Raises:
            ValueError: It is not a valid request; the message says why.
        """
        head, body = _split(data)
        if head.get("v") != VERSION:
            raise ValueError("it is of another version of synapse-tui")
        method, target, endpoint = (_text(head, key) for key in ("method", "target", "endpoint"))
        if method not in _METHODS or not _TARGET.fullmatch(target) or not _ENDPOINT.fullmatch(endpoint):
            raise ValueError("method, endpoint or target is not valid")
        return cls(
            method,
            endpoint,
            target,
            body,
            _headers(head.get("headers")),
            min(_seconds(head, "timeout"), LONGEST_WAIT),
            _seconds(head, "expires"),
        )


@dataclass(frozen=True, slots=True)
class SpoolAnswer:
    """The answer to a request.

    Attributes:
        status: HTTP status of the server's answer; 0 if there is none.
        message: Why there is no answer.
        hint: What to do about it.
    """

    status: int = 0
    body: bytes = b""
    message: str = ""
    hint: str = ""

    def encode(self) -> bytes:
        head = {"v": VERSION, "status": self.status, "message": self.message, "hint": self.hint}
        return _join(head, self.body)

    @classmethod
    def decode(cls, data: bytes) -> SpoolAnswer:
        """Parse an answer file.

        Raises:
            ValueError: It is not a valid answer; the message says why.
        """
        head, body = _split(data)
        status = head.get("status")
        if isinstance(status, bool) or not isinstance(status, int) or not 0 <= status <= 599:
            raise ValueError("it has no status")
        return cls(status, body, _text(head, "message"), _text(head, "hint"))


@dataclass(frozen=True, slots=True)
class AnswerSeal:
    """Authenticates answers with a secret shared by the host and the agent's processes only.

    Anyone who can write to the folder can create files there, and requests under other clients' ids. The code
    therefore covers the request's id and content, and the answer's file name cannot be guessed in advance.

    Attributes:
        key: 32 bytes.
    """

    key: bytes

    @classmethod
    def of(cls, token: str, name: str, request: bytes) -> AnswerSeal:
        """Return the seal for the answer to one request."""
        text = f"spool answer {name} {hashlib.sha256(request).hexdigest()}"
        return cls(hmac.digest(token.encode(), text.encode(), "sha256"))

    @property
    def file(self) -> str:
        return hmac.digest(self.key, b"name", "sha256").hex()[:32] + ANSWER

    def seal(self, answer: bytes) -> bytes:
        """Return the content of the answer's file: a line with the code, then the answer."""
        return self._code(answer) + b"\n" + answer

    def open(self, data: bytes) -> bytes:
        """Return the answer in a file.

        Raises:
            ValueError: The host did not write it, or it is incomplete.
        """
        code, _, answer = data.partition(b"\n")
        if not hmac.compare_digest(code, self._code(answer)):
            raise ValueError("the agent's host has not signed it")
        return answer

    def _code(self, answer: bytes) -> bytes:
        return hmac.digest(self.key, b"answer" + answer, "sha256").hex().encode()


def read_private(path: Path, limit: int, *, proved: bool = False) -> bytes:
    """Read a regular file that belongs to this user.

    If a code proves its content (`proved`), it may have other names: anyone in the folder can give it some.

    Raises:
        ValueError: It is not such a file, or is too large; the message says which.
        OSError: It cannot be read.
    """
    try:
        # Never follow a link or block on a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise ValueError("it is a symbolic link") from error
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_nlink > 1 and not proved):
            raise ValueError("it is no plain file")
        if status.st_uid != os.geteuid():
            raise ValueError("it belongs to another user")
        return _read_all(descriptor, limit)
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, limit: int) -> bytes:
    chunks: list[bytes] = []
    left = limit + 1
    while left > 0 and (chunk := os.read(descriptor, min(left, 1 << 20))):
        chunks.append(chunk)
        left -= len(chunk)
    if left <= 0:
        raise ValueError(f"it is over {limit} bytes")
    return b"".join(chunks)


def write_whole(folder: Path, name: str, data: bytes) -> None:
    """Create a private file that appears with its complete content.

    It is not synced, because neither side survives a crash of the machine.

    Raises:
        OSError: It could not be written; nothing is left behind.
    """
    partial = folder / f".{name}.{secrets.token_hex(4)}"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
            file.write(data)
        partial.rename(folder / name)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def network_of_this_process() -> str:
    """Return the network namespace of this process; empty if unknown."""
    try:
        return str(Path("/proc/self/ns/net").readlink())
    except OSError:
        return ""


def _join(head: Mapping[str, object], body: bytes) -> bytes:
    return json.dumps(head).encode() + b"\n" + body


def _split(data: bytes) -> tuple[dict[str, object], bytes]:
    line, separator, body = data.partition(b"\n")
    if not separator or len(line) > MAX_HEAD:
        raise ValueError("it has no first line")
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise ValueError("its first line is no JSON object")
    return head, body


def _text(head: Mapping[str, object], key: str) -> str:
    value = head.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is missing")
    return value


def _seconds(head: Mapping[str, object], key: str) -> float:
    value = head.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{key} is no number of seconds")
    return float(value)


def _headers(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > 32:
        raise ValueError("headers are missing")
    for name, text in value.items():
        if not (isinstance(text, str) and _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(text)):
            raise ValueError("a header is not valid")
    return {str(name): str(text) for name, text in value.items()}


TRIES = 50
"""Attempts to lock, because a client that tests the lock holds it for an instant."""


def lock(folder: Path) -> int:
    """Lock a spool and return the descriptor.

    Raises:
        OSError: It cannot be locked, or another host holds the lock.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / HOST_FILE, flags, 0o600)
    try:
        _take(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{network_of_this_process()}\n{VERSION}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _take(descriptor: int) -> None:
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise
        except OSError:
            return  # the file system has no locks, so the spool never counts as abandoned
        else:
            return


def is_abandoned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / HOST_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
