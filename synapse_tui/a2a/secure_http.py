"""One request over HTTPS, for the command line; imported only where it is needed."""

from __future__ import annotations

import http.client
from collections.abc import Mapping

from synapse_tui.paths import UserPaths
from synapse_tui.settings import load_settings

from .dialect import is_near
from .network import Network, client_context
from .plain_http import HttpError


class SecureConnection:
    """A connection for one request, as `PlainConnection` is.

    Args:
        host: Name or address of the server.
        port: Its port.
        timeout: Seconds that connecting may take.
    """

    def __init__(self, host: str, port: int, timeout: float) -> None:
        context = client_context(_network(), near=is_near(f"https://{host}"))
        self._connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)

    def connect(self) -> None:
        """Connect.

        Raises:
            OSError: Nobody answers there, or its certificate is not trusted.
        """
        self._connection.connect()

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, timeout: float, most: int
    ) -> tuple[int, bytes]:
        """Make the request; see `PlainConnection.exchange`.

        Raises:
            OSError: The connection broke, or the time is over.
            HttpError: What came is no answer.
        """
        try:
            self._connection.sock.settimeout(timeout)
            self._connection.request(method, target, body or None, dict(headers))
            response = self._connection.getresponse()
            answer = response.read(most)
        except http.client.HTTPException as error:
            raise HttpError(str(error) or type(error).__name__) from error
        if response.length and len(answer) < most:
            raise HttpError("the answer ends early")
        return response.status, answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _network() -> Network:
    """Whose certificates the person trusts; a project has no say in it."""
    paths = UserPaths.of_environment()
    return Network.of(
        load_settings(paths.synapse, paths=paths, environ={}, trusted=lambda _path, _data: False)
    )
