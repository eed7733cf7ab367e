"""One request over HTTP/1.1 to a server on this machine, on nothing but a socket.

The command line makes one call and ends: `http.client` would take as long to import as all of the rest.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

MAX_HEAD = 64 * 1024
"""Bytes of a status line with all headers."""
MAX_PIECE = 256 * 1024


class HttpError(Exception):
    """The server's answer is none, or not a whole one."""


class PlainConnection:
    """A connection for one request.

    Args:
        host: Name or address of the server.
        port: Its port.
        timeout: Seconds that connecting may take.
    """

    def __init__(self, host: str, port: int, timeout: float) -> None:
        self._host = host
        self._port = port
        self._timeout = timeout
        self._socket: socket.socket | None = None

    def connect(self) -> None:
        """Connect.

        Raises:
            OSError: Nobody answers there, or it is forbidden.
        """
        address = (self._host, self._port)
        family = _family(self._host)
        if family is None:
            self._socket = socket.create_connection(address, self._timeout)
            return
        # An address needs no look-up, which would import more than it looks up.
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.settimeout(self._timeout)
        self._socket.connect(address)

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, timeout: float, most: int
    ) -> tuple[int, bytes]:
        """Make the request.

        Args:
            method: `GET`, `POST`, ...
            target: Path and query.
            headers: All but those that this adds: Host, Content-Length, Connection.
            body: The body.
            timeout: Seconds without anything after which the server counts as silent.
            most: Bytes of the answer's body that are read at the most.

        Returns:
            Status and body.

        Raises:
            OSError: The connection broke, or the time is over.
            HttpError: What came is no answer.
        """
        assert self._socket is not None, "connect() comes first"
        self._socket.settimeout(timeout)
        self._socket.sendall(self._request(method, target, headers, body) + body)
        return _Answer(self._socket).read(most)

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()

    def _request(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
        host = f"[{self._host}]" if ":" in self._host else self._host
        own = {"Host": f"{host}:{self._port}", "Connection": "close"}
        if body or method != "GET":
            own["Content-Length"] = str(len(body))
        lines = [
            f"{method} {target} HTTP/1.1",
            *(f"{name}: {value}" for name, value in (own | dict(headers)).items()),
        ]
        if not target.isprintable() or " " in target or not all(map(str.isprintable, lines)):
            raise HttpError(f"{target!r} cannot be asked for")
        try:
            return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        except UnicodeEncodeError as error:
            raise HttpError(f"{target!r} cannot be asked for") from error


class _Answer:
    """Reads one answer.

    Args:
        connection: Where it comes from.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = b""

    def read(self, most: int) -> tuple[int, bytes]:
        """Status and body, of which no more is read than was said."""
        status, headers = self._head()
        while 100 <= status < 200:
            status, headers = self._head()
        if status in (204, 304):
            return status, b""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return status, self._chunks(most)
        length = headers.get("content-length")
        if length is None:
            return status, self._rest(most)
        if not length.isdecimal():
            raise HttpError("the length of the answer is no number")
        return status, self._exactly(min(int(length), most))

    def _head(self) -> tuple[int, dict[str, str]]:
        lines = self._until(b"\r\n\r\n", MAX_HEAD).decode("latin-1").split("\r\n")
        protocol, _, rest = lines[0].partition(" ")
        if not protocol.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise HttpError(f"that is no HTTP: {lines[0][:80]}")
        fields = (line.partition(":") for line in lines[1:])
        return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in fields}

    def _chunks(self, most: int) -> bytes:
        body = b""
        while len(body) < most:
            size = self._until(b"\r\n", MAX_HEAD).partition(b";")[0].strip()
            try:
                length = int(size, 16)
            except ValueError as error:
                raise HttpError("the length of a part of the answer is no number") from error
            if not length:
                break
            body += self._exactly(min(length, most - len(body)))
            if len(body) < most:
                self._exactly(2)
        return body

    def _rest(self, most: int) -> bytes:
        while len(self._buffer) < most and self._more():
            pass
        return self._buffer[:most]

    def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            if not self._more():
                raise HttpError("the answer ends early")
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def _until(self, end: bytes, most: int) -> bytes:
        while end not in self._buffer:
            if len(self._buffer) > most:
                raise HttpError("the head of the answer does not end")
            if not self._more():
                raise HttpError("the connection was closed without an answer")
        found, _, self._buffer = self._buffer.partition(end)
        return found

    def _more(self) -> bool:
        piece = self._socket.recv(MAX_PIECE)
        self._buffer += piece
        return bool(piece)


def _family(host: str) -> socket.AddressFamily | None:
    """The kind of an address; None for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return family
    return None
