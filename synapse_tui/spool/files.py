"""The files of a spool: a line of JSON, then the body as it is; written and read by both sides.

| name | written by | is |
|---|---|---|
| `<id>.request` | the client | a request that nobody has taken |
| `<id>.taken` | the host, by renaming it | one that is on its way |
| `<secret>.answer` | the host | what came of it, signed |
| `<id>.answer` | the host | to a request that cannot be read: version 1 looks for answers there |
| `.*` | both | a file that is being written |
| `host` | the host | locked as long as it lives; names its network and the version of these files |

Of a client that takes its request back by removing it and a host that takes it by renaming it exactly one
succeeds, so nothing is delivered that the client has given up.
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
from dataclasses import dataclass, field
from pathlib import Path

MAX_HEAD = 64 * 1024
"""Bytes of the first line."""
MAX_REQUEST = 2 * 1024 * 1024 + MAX_HEAD
"""Bytes; the longest body that a server takes, and the first line."""
MAX_ANSWER = 16 * 1024 * 1024 + MAX_HEAD
"""Bytes."""
LONGEST_WAIT = 7 * 86_400.0
"""Seconds that an answer may be waited for."""
REQUEST, TAKEN, ANSWER = ".request", ".taken", ".answer"
HOST_FILE = "host"
VERSION = 2
"""Of requests and answers; answers of version 1 were not signed."""
ID = re.compile(r"[0-9a-f]{32}")
_METHODS = ("GET", "POST")
_TARGET = re.compile(r"/[!-\"$-~]{0,8191}")
_ENDPOINT = re.compile(r"https?://(?:127\.0\.0\.1|localhost|\[::1\]):\d{1,5}(?:/[A-Za-z0-9._~/-]{0,1024})?")
"""A sandbox is let out to agents of this machine, and to nothing else."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_HEADER_VALUE = re.compile(r"[ -~]{0,4096}")


@dataclass(frozen=True, slots=True)
class SpoolRequest:
    """One request on its way to an agent's server.

    Attributes:
        method: `GET` or `POST`.
        endpoint: URL of the server.
        target: Path and query.
        body: As it would be sent.
        headers: As they would be sent; the sender's signature is among them.
        timeout: Seconds that the client waits for the answer once the request is taken.
        expires: Seconds since the epoch; the client has given up by then unless the request was taken.
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
        """Read a file's content.

        Raises:
            ValueError: It is no request; says why.
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
    """What came of a request.

    Attributes:
        status: HTTP status of the server's answer; 0 when there is none.
        body: The answer's body.
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
        """Read a file's content.

        Raises:
            ValueError: It is no answer; says why.
        """
        head, body = _split(data)
        status = head.get("status")
        if isinstance(status, bool) or not isinstance(status, int) or not 0 <= status <= 599:
            raise ValueError("it has no status")
        return cls(status, body, _text(head, "message"), _text(head, "hint"))


@dataclass(frozen=True, slots=True)
class AnswerSeal:
    """What makes an answer the host's own, known to it and to the agent's processes alone.

    Whoever can write to the folder can put files there, and requests under ids of others. So the code covers
    id and content of the request, and the answer's name cannot be guessed before it is there.

    Attributes:
        key: Of the code, 32 bytes.
    """

    key: bytes

    @classmethod
    def of(cls, token: str, name: str, request: bytes) -> AnswerSeal:
        """The seal of the answer to one request."""
        text = f"spool answer {name} {hashlib.sha256(request).hexdigest()}"
        return cls(hmac.digest(token.encode(), text.encode(), "sha256"))

    @property
    def file(self) -> str:
        return hmac.digest(self.key, b"name", "sha256").hex()[:32] + ANSWER

    def seal(self, answer: bytes) -> bytes:
        """The content of the answer's file: a line with the code, then the answer."""
        return self._code(answer) + b"\n" + answer

    def open(self, data: bytes) -> bytes:
        """The answer in a file.

        Raises:
            ValueError: The host has not written it, or not all of it is there.
        """
        code, _, answer = data.partition(b"\n")
        if not hmac.compare_digest(code, self._code(answer)):
            raise ValueError("the agent's host has not signed it")
        return answer

    def _code(self, answer: bytes) -> bytes:
        return hmac.digest(self.key, b"answer" + answer, "sha256").hex().encode()


def read_private(path: Path, limit: int) -> bytes:
    """Read a file that must be a plain one of this user.

    Raises:
        ValueError: It is something else or too large; says what.
        OSError: It cannot be read.
    """
    try:
        # Never through a link, and never waiting for the writer of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise ValueError("it is a symbolic link") from error
        raise
    try:
        _check_plain(os.fstat(descriptor))
        return _read_all(descriptor, limit)
    finally:
        os.close(descriptor)


def _check_plain(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise ValueError("it is no plain file")
    if status.st_uid != os.geteuid():
        raise ValueError("it belongs to another user")


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
    """Make a private file that appears with all of its content.

    It is not synced: neither side outlives a crash of the machine.

    Raises:
        OSError: It could not be written; nothing is left of it.
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
    """Which network this process sees, as Linux names it; empty where that is not told."""
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
"""A client that looks whether the lock is held holds it for an instant itself."""


def lock(folder: Path) -> int:
    """Take the lock of a spool.

    Raises:
        OSError: It cannot be taken, or another host has it.
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
            return  # there are no locks on this file system: nobody takes the spool for abandoned then
        else:
            return


def is_abandoned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / HOST_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
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
