"""The command line's own HTTP, against servers that answer in every way."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from synapse_tui.a2a.client import MAX_HEAD, HttpError, PlainConnection

Answer = bytes | Callable[[socket.socket], None]


class Server:
    """A server for one request.

    Args:
        answer: What it says.
        address: Where it listens.
    """

    def __init__(self, answer: Answer, address: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, 0), family=family)
        self._answer = answer
        self.port = self._listener.getsockname()[1]
        self.request = b""
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, self._listener:
            while b"\r\n\r\n" not in self.request:
                self.request += connection.recv(65536)
            if callable(self._answer):
                self._answer(connection)
            else:
                connection.sendall(self._answer)


@contextmanager
def serving(answer: Answer, host: str = "127.0.0.1") -> Iterator[tuple[Server, PlainConnection]]:
    server = Server(answer, host)
    connection = PlainConnection(host, server.port, 10)
    try:
        connection.connect()
        yield server, connection
    finally:
        connection.close()
        server.thread.join()


def get(connection: PlainConnection, target: str = "/", most: int = 1000) -> tuple[int, bytes]:
    return connection.exchange("GET", target, {"Accept": "a/b"}, b"", timeout=10, most=most)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello and more", 200, b"hello"),
        (OK + b"content-length:5\r\n\r\nhello", 200, b"hello"),
        (OK + b"\r\nhello", 200, b"hello"),
        (OK + b"Content-Length: 0\r\n\r\n", 200, b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", 200, b"hello"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", 200, b"0123456789"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok", 200, b"ok"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", 204, b""),
        (b"HTTP/1.0 404 \r\nContent-Length: 2\r\n\r\nno", 404, b"no"),
        (b"HTTP/1.1 500\r\nContent-Length: 2\r\n\r\nno", 500, b"no"),
    ],
)
def test_answers(answer: bytes, status: int, body: bytes) -> None:
    with serving(answer) as (_, connection):
        assert get(connection) == (status, body)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "without an answer"),
        (b"220 mail.example ESMTP\r\n\r\n", "not an HTTP answer"),
        (b"HTTP/2 200\r\n\r\n", "not an HTTP answer"),
        (b"HTTP/1.1 abc\r\n\r\n", "not an HTTP answer"),
        (OK + b"Content-Length: -1\r\n\r\n", "not a number"),
        (OK + b"Content-Length: 9\r\n\r\nshort", "ends early"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "not a number"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\nshort", "ends early"),
        (OK + b"X: " + b"x" * 2 * MAX_HEAD, "does not end"),
    ],
)
def test_what_is_no_answer(answer: bytes, words: str) -> None:
    with serving(answer) as (_, connection), pytest.raises(HttpError, match=words):
        get(connection)


@pytest.mark.parametrize(
    "head", [b"Content-Length: 99\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n63\r\n"]
)
def test_no_more_is_read_than_was_said(head: bytes) -> None:
    with serving(OK + head + b"x" * 99) as (_, connection):
        assert get(connection, most=10) == (200, b"x" * 10)


def test_an_answer_in_small_pieces() -> None:
    def answer(connection: socket.socket) -> None:
        for byte in OK + b"Content-Length: 5\r\n\r\nhello":
            connection.sendall(bytes([byte]))

    with serving(answer) as (_, connection):
        assert get(connection) == (200, b"hello")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_an_address_in_brackets() -> None:
    with serving(OK + b"Content-Length: 0\r\n\r\n", "::1") as (server, connection):
        assert get(connection) == (200, b"")
    assert b"Host: [::1]:" in server.request


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "/\x7f", "/日本"])
def test_what_cannot_be_asked(target: str) -> None:
    with serving(OK + b"\r\n") as (server, connection):
        with pytest.raises(HttpError, match="not a valid target"):
            get(connection, target)
        get(connection)
    assert server.request.startswith(b"GET / ")
