"""The client of the command line: blocking, on `http.client`, quick to import."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from synapse_tui.errors import PeerRefused, PeerUnreachable
from synapse_tui.model import Sender

from . import dialect
from .dialect import Call, PeerTask
from .signing import TokenVerifier, nobody


class LightClient:
    """Calls agents on this machine.

    Nothing is ever sent twice: a call whose fate is unknown is reported as an error.

    Args:
        token_of: Gives the token of a sender, to sign with.
        timeout: Seconds that an answer may take.
    """

    def __init__(self, *, token_of: TokenVerifier = nobody, timeout: float = dialect.ANSWER_TIMEOUT) -> None:
        self._token_of = token_of
        self._timeout = timeout

    def send(
        self,
        endpoint: str,
        text: str,
        *,
        sender: Sender | None = None,
        priority: int = 3,
        response_expected: bool = False,
    ) -> PeerTask:
        """Send a message.

        Returns:
            The task that the agent made of it.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The message was not taken.
        """
        call = dialect.send_call(text, sender=sender, priority=priority, response_expected=response_expected)
        return dialect.read_task(endpoint, self._call(endpoint, call, sender.sender_id if sender else ""))

    def task(self, endpoint: str, task_id: str) -> PeerTask:
        """Read a task.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task.
        """
        return dialect.read_task(endpoint, self._call(endpoint, dialect.task_call(task_id)))

    def status(self, endpoint: str) -> Mapping[str, object]:
        """Read an agent's state: `{"status", "context"}`.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The answer is no status.
        """
        value = self._call(endpoint, Call("GET", "/status"))
        if not isinstance(value, dict):
            raise PeerRefused(f"{endpoint} answered without a status", 502, "is it an agent's endpoint?")
        return value

    def outbox(self, endpoint: str) -> list[dict[str, Any]]:
        """What waits to be typed into an agent, in order.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It tells no outbox.
        """
        return dialect.read_list(endpoint, self._call(endpoint, dialect.outbox_call()), "messages")

    def act(
        self, endpoint: str, task_id: str, action: str, *, place: int = 0, sender_id: str = ""
    ) -> list[PeerTask]:
        """Do something with a waiting message, or with `all`.

        Args:
            endpoint: URL of the agent's server.
            task_id: The message's task.
            action: `cancel`, `hold`, `release`, `retry`, `now` or `move`.
            place: Where to move it, from 1.
            sender_id: Who asks; empty for the person.

        Returns:
            The tasks of the messages that it was done with.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It was not done.
        """
        answer = self._call(endpoint, dialect.outbox_call(task_id, action, place), sender_id)
        tasks = dialect.read_list(endpoint, answer, "tasks")
        return [dialect.read_task(endpoint, task) for task in tasks]

    def _call(self, endpoint: str, call: Call, sender_id: str = "") -> object:
        url = urlsplit(endpoint)
        make = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = make(url.hostname or "", url.port, timeout=dialect.CONNECT_TIMEOUT)
        try:
            status, body = self._exchange(connection, url.path.rstrip("/"), endpoint, call, sender_id)
        finally:
            connection.close()
        return dialect.read_answer(endpoint, status, body)

    def _exchange(
        self, connection: http.client.HTTPConnection, prefix: str, endpoint: str, call: Call, sender_id: str
    ) -> tuple[int, bytes]:
        try:
            connection.connect()
        except OSError as error:
            raise PeerUnreachable(
                f"nobody answers at {endpoint}", "the agent may have just ended; see 'synapse list'"
            ) from error
        try:
            connection.sock.settimeout(self._timeout)
            headers = call.headers(endpoint, sender_id, self._token_of)
            connection.request(call.method, prefix + call.target, call.body or None, headers)
            response = connection.getresponse()
            body = response.read(dialect.MAX_ANSWER + 1)
            if response.length and len(body) <= dialect.MAX_ANSWER:
                raise http.client.IncompleteRead(body, response.length)
            return response.status, body
        except (OSError, http.client.HTTPException) as error:
            raise PeerUnreachable(
                f"{endpoint} did not answer: {dialect.tidy(str(error)) or type(error).__name__}",
                "it is not known whether the message arrived; look at the agent before sending it again"
                if call.method == "POST"
                else "try again",
            ) from error
