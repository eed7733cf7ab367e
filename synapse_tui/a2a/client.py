"""The blocking client of the command line. One connection per call, quick to import.

Where connecting is forbidden, calls go through the agent's spool (docs/spool.md).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from synapse_tui.core.errors import PeerSilent, PeerUnreachable

from .calls import ANSWER_TIMEOUT, CONNECT_TIMEOUT, MAX_ANSWER, Call, is_loopback, tidy
from .signing import TokenVerifier, no_token

T = TypeVar("T")

MAX_HEAD = 64 * 1024
MAX_PIECE = 256 * 1024


class Client:
    """Calls agents. Nothing is sent twice: a call whose outcome is unknown raises an error.

    Args:
        token_of: Returns the token to sign with, by sender.
        timeout: Seconds to wait for an answer.
        environ: Names the agent's spool, and a key for servers that require one (`SYNAPSE_API_KEY`).
        name_of: Returns the name of the server at an endpoint, for errors.
        reader: Signs reads where servers require a signature; empty for no signature.
    """

    def __init__(
        self,
        *,
        token_of: TokenVerifier = no_token,
        timeout: float = ANSWER_TIMEOUT,
        environ: Mapping[str, str] | None = None,
        name_of: Callable[[str], str] = str,
        reader: str = "",
    ) -> None:
        self._reader = reader
        self._name_of = name_of
        self._token_of = token_of
        self._timeout = timeout
        self._environ = os.environ if environ is None else environ
        self._key = self._environ.get("SYNAPSE_API_KEY", "")

    def call(self, endpoint: str, call: Call[T], *, sender_id: str = "") -> T:
        """Make a call, signed by `sender_id` or else by the call's default signer.

        Raises:
            PeerUnreachable: No answer arrived.
            PeerRefused: The answer is an error or not of the expected form.
        """
        sender_id = sender_id or call.sender_id
        status, body = self._exchange(endpoint, call, sender_id)
        if self._reader and call.may_sign_again(status, sender_id):
            status, body = self._exchange(endpoint, call, self._reader)
        name = endpoint if status < 300 else self._name_of(endpoint)  # looked up only for errors
        return call.read(name, status, body)

    def _exchange(self, endpoint: str, call: Call[T], sender_id: str) -> tuple[int, bytes]:
        url = urlsplit(endpoint)
        timeout = self._timeout + call.wait
        connection = _connection(url)
        try:
            try:
                connection.connect()
            except OSError as error:
                return self._without_connection(endpoint, call, error, timeout)
            target = url.path.rstrip("/") + call.target
            headers = call.headers(endpoint, sender_id, self._token_of, key=self._key)
            return connection.exchange(
                call.method, target, headers, call.body, timeout=timeout, most=MAX_ANSWER + 1
            )
        except (OSError, HttpError) as error:
            why = tidy(str(error)) or type(error).__name__
            raise PeerSilent(
                f"{self._name_of(endpoint)} did not answer: {why}",
                "it is not known whether the message arrived; look at the agent before sending it again"
                if call.method == "POST"
                else "try again",
            ) from error
        finally:
            connection.close()

    def _without_connection(
        self, endpoint: str, call: Call[T], error: OSError, timeout: float
    ) -> tuple[int, bytes]:
        """Make a call through the spool after connecting failed; nothing has been sent yet.

        It is signed by the agent whose sandbox this is: the host carries no other calls.
        """
        from synapse_tui.sessions.spool.client import SpoolAccount, SpoolClient, forbidden  # noqa: PLC0415 - seldom
        from synapse_tui.sessions.spool.files import SpoolRequest  # noqa: PLC0415 - needed

        account = SpoolAccount.of(self._environ)
        if not forbidden(error, account.folder if account else None):
            raise PeerUnreachable(
                f"nothing is listening at {self._name_of(endpoint)}",
                "the agent may have just ended; see 'synapse list'",
            ) from error
        if account is None:
            raise PeerUnreachable(
                f"connecting to {self._name_of(endpoint)} is forbidden here: {error.strerror}; "
                "nothing was sent",
                _spool_hint(self._environ),
            ) from error
        headers = call.headers(endpoint, account.agent_id, account.token_of)
        request = SpoolRequest(call.method, endpoint, call.target, call.body, headers, timeout)
        answer = SpoolClient(account.folder, account.token).exchange(request)
        return answer.status, answer.body


def _spool_hint(environ: Mapping[str, str]) -> str:
    if environ.get("SYNAPSE_SPOOL") and Path(environ["SYNAPSE_SPOOL"]).is_dir():
        return (
            "the sandbox keeps SYNAPSE_AGENT_ID or SYNAPSE_TOKEN from the command: let them through (Codex: "
            "shell_environment_policy.ignore_default_excludes = true)"
        )
    return "allow the command the network, or run it in an agent that synapse-tui has opened"


class HttpError(Exception):
    """The answer is not HTTP, or incomplete."""


class HttpConnection(Protocol):
    """A connection for one request."""

    def connect(self) -> None:
        """Connect; raises OSError."""

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, timeout: float, most: int
    ) -> tuple[int, bytes]:
        """Send the request and return the status and at most `most` bytes of the body.

        Host, Content-Length and Connection are added to the headers. `timeout` is in seconds without data.

        Raises:
            OSError: The connection broke or timed out.
            HttpError: The answer is not HTTP, or incomplete.
        """

    def close(self) -> None:
        """Close the connection. Idempotent."""


def _connection(url: SplitResult) -> HttpConnection:
    if url.scheme == "https":
        return TlsConnection(url.hostname or "", url.port or 443, CONNECT_TIMEOUT)
    return PlainConnection(url.hostname or "", url.port or 80, CONNECT_TIMEOUT)


class PlainConnection:
    """HTTP/1.1 on a plain socket: importing `http.client` takes as long as the rest of the command line."""

    def __init__(self, host: str, port: int, timeout: float) -> None:
        self._host = host
        self._port = port
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._buffer = b""

    def connect(self) -> None:
        address = (self._host, self._port)
        family = _family(self._host)
        if family is None:
            self._socket = socket.create_connection(address, self._timeout)
            return
        # IP addresses skip getaddrinfo, whose imports cost more than the lookup.
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.settimeout(self._timeout)
        self._socket.connect(address)

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, timeout: float, most: int
    ) -> tuple[int, bytes]:
        assert self._socket is not None, "connect() comes first"
        self._socket.settimeout(timeout)
        self._socket.sendall(self._request(method, target, headers, body) + body)
        status, received = self._read_head()
        while 100 <= status < 200:
            status, received = self._read_head()
        return status, b"" if status in (204, 304) else self._read_body(received, most)

    def close(self) -> None:
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
            raise HttpError(f"{target!r} is not a valid target")
        try:
            return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        except UnicodeEncodeError as error:
            raise HttpError(f"{target!r} is not a valid target") from error

    def _read_head(self) -> tuple[int, dict[str, str]]:
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        protocol, _, rest = lines[0].partition(" ")
        if not protocol.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise HttpError(f"not an HTTP answer: {lines[0][:80]}")
        fields = (line.partition(":") for line in lines[1:])
        return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in fields}

    def _read_body(self, headers: Mapping[str, str], most: int) -> bytes:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks(most)
        length = headers.get("content-length")
        if length is None:
            while len(self._buffer) < most and self._receive():
                pass
            return self._buffer[:most]
        if not length.isdecimal():
            raise HttpError("the length of the answer is not a number")
        return self._exactly(min(int(length), most))

    def _chunks(self, most: int) -> bytes:
        body = b""
        while len(body) < most:
            size = self._until(b"\r\n").partition(b";")[0].strip()
            try:
                length = int(size, 16)
            except ValueError as error:
                raise HttpError("the length of a chunk is not a number") from error
            if not length:
                break
            body += self._exactly(min(length, most - len(body)))
            if len(body) < most:
                self._exactly(2)
        return body

    def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            if not self._receive():
                raise HttpError("the answer ends early")
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def _until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            if len(self._buffer) > MAX_HEAD:
                raise HttpError("the head of the answer does not end")
            if not self._receive():
                raise HttpError("the connection was closed without an answer")
        found, _, self._buffer = self._buffer.partition(end)
        return found

    def _receive(self) -> bool:
        assert self._socket is not None
        piece = self._socket.recv(MAX_PIECE)
        self._buffer += piece
        return bool(piece)


def _family(host: str) -> socket.AddressFamily | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return family
    return None


class TlsConnection:
    """HTTPS by `http.client`, imported only when needed."""

    def __init__(self, host: str, port: int, timeout: float) -> None:
        import http.client  # noqa: PLC0415 - slow to import, as all here

        from synapse_tui.settings import load_settings  # noqa: PLC0415
        from synapse_tui.system.paths import UserPaths  # noqa: PLC0415

        from .network import Network, client_context  # noqa: PLC0415

        paths = UserPaths.of_environment()
        # A project must not decide which certificates the user trusts.
        settings = load_settings(paths.synapse, paths=paths, environ={}, trusted=lambda _path, _data: False)
        context = client_context(Network.of(settings), local=is_loopback(f"https://{host}"))
        self._http_error = http.client.HTTPException
        self._connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)

    def connect(self) -> None:
        self._connection.connect()

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, timeout: float, most: int
    ) -> tuple[int, bytes]:
        try:
            self._connection.sock.settimeout(timeout)
            self._connection.request(method, target, body or None, dict(headers))
            response = self._connection.getresponse()
            answer = response.read(most)
        except self._http_error as error:
            raise HttpError(str(error) or type(error).__name__) from error
        if response.length and len(answer) < most:
            raise HttpError("the answer ends early")
        return response.status, answer

    def close(self) -> None:
        self._connection.close()
