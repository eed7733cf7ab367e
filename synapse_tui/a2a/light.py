"""The client of the command line: blocking, quick to import."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from synapse_tui.errors import PeerRefused, PeerSilent
from synapse_tui.model import Reply, Sender

from . import dialect
from .dialect import NO_CONTENTS, Call, PeerTask
from .plain_http import HttpError, PlainConnection
from .signing import TokenVerifier, nobody


class LightClient:
    """Calls agents on this machine.

    Nothing is ever sent twice: a call whose fate is unknown is reported as an error.

    Args:
        token_of: Gives the token of a sender, to sign with.
        timeout: Seconds that an answer may take.
        environ: Tells of the agent's spool, for sandboxes, and of a key for servers that demand one
            (`SYNAPSE_API_KEY`); None for the environment of this process.
        name_of: Gives the words by which errors name the server of an endpoint.
        reader: Who signs what is only read, where servers demand a proof; empty for nobody.
    """

    def __init__(
        self,
        *,
        token_of: TokenVerifier = nobody,
        timeout: float = dialect.ANSWER_TIMEOUT,
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

    def send(
        self,
        endpoint: str,
        text: str,
        *,
        sender: Sender | None = None,
        priority: int = 3,
        response_expected: bool = False,
        metadata: Mapping[str, object] | None = None,
        follows: str = "",
    ) -> PeerTask:
        """Send a message, or with `follows` go on with an open task.

        Returns:
            The task that the agent made of it.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The message was not taken.
        """
        call = dialect.send_call(
            text,
            sender=sender,
            priority=priority,
            response_expected=response_expected,
            metadata=metadata or {},
            follows=follows,
        )
        return dialect.read_task(endpoint, self._call(endpoint, call, sender.sender_id if sender else ""))

    def create(
        self, endpoint: str, text: str, *, sender: Sender, target_agent: str, target_endpoint: str
    ) -> PeerTask:
        """Make a task on the sender's own server that ends when the answer comes.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The server keeps no such tasks, or it is not the sender's own.
        """
        call = dialect.create_call(
            text, sender=sender, target_agent=target_agent, target_endpoint=target_endpoint
        )
        return dialect.read_task(endpoint, self._call(endpoint, call, sender.sender_id))

    def reply(
        self,
        endpoint: str,
        task_id: str,
        reply: Reply,
        *,
        sender_id: str,
        contents: Mapping[str, bytes] = NO_CONTENTS,
    ) -> PeerTask:
        """Answer a task of the agent inside which this runs.

        Args:
            endpoint: URL of its own server.
            task_id: The task; empty for the one that awaits the reply.
            reply: The answer.
            sender_id: The agent.
            contents: What the files of the answer hold, by their paths.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task, or it takes no reply.
        """
        call = dialect.reply_call(task_id, reply, contents)
        return dialect.read_task(endpoint, self._call(endpoint, call, sender_id))

    def awaiting(self, endpoint: str) -> list[PeerTask]:
        """The tasks that an agent can reply to, the one that it works on first.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It tells none.
        """
        found = dialect.read_list(endpoint, self._call(endpoint, Call("GET", "/reply")), "tasks")
        return [dialect.read_task(endpoint, task) for task in found]

    def asked(self, endpoint: str, task_id: str) -> PeerTask | None:
        """The task of an agent's own that waits for the answer of another's; None when there is none.

        Args:
            endpoint: URL of the agent's own server.
            task_id: Id of the other's task, or its beginning.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It tells no tasks.
        """
        found = self._call(endpoint, Call("GET", "/tasks?limit=1000"))
        tasks = [dialect.read_task(endpoint, each) for each in found] if isinstance(found, list) else []
        open_ones = (task for task in reversed(tasks) if task.question[0])
        return next((task for task in open_ones if task.answers(task_id)), None)

    def task(self, endpoint: str, task_id: str) -> PeerTask:
        """Read a task.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task.
        """
        return dialect.read_task(endpoint, self._call(endpoint, dialect.task_call(task_id)))

    def wait(self, endpoint: str, task: PeerTask, seconds: float, *, sender_id: str = "") -> PeerTask:
        """Read a task as soon as it is another one than the given, or after so many seconds.

        Args:
            endpoint: URL of the server that keeps it.
            task: What is known of it.
            seconds: How long to wait at most.
            sender_id: Who asks; an agent for the answer to itself.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task.
        """
        call = dialect.wait_call(task.task_id, seen=task.updated_at, seconds=seconds)
        return dialect.read_task(endpoint, self._call(endpoint, call, sender_id))

    def cancel(self, endpoint: str, task_id: str, *, sender_id: str = "") -> PeerTask:
        """Cancel a task.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task, or it has ended.
        """
        call = dialect.task_call(task_id, "cancel")
        return dialect.read_task(endpoint, self._call(endpoint, call, sender_id))

    def external(self, endpoint: str, call: Call, *, sender_id: str = "") -> PeerTask:
        """Have a host write to an external agent, or read what became of that.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It was not done.
        """
        return dialect.read_task(endpoint, self._call(endpoint, call, sender_id))

    def status(self, endpoint: str, *, why: bool = False) -> Mapping[str, object]:
        """Read an agent's state: `{"status", "context"}`; with `why` also `why`, `outbox` and `task`.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The answer is no status.
        """
        value = self._call(endpoint, Call("GET", "/status?why=1" if why else "/status"))
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

    def watch(self, endpoint: str, call: Call, *, sender_id: str = "") -> dict[str, Any] | None:
        """Begin, read or end the watch over an agent.

        Args:
            endpoint: URL of the agent's server.
            call: What to do: `dialect.begin_watch_call`, `watch_call` or `END_WATCH`.
            sender_id: Who asks; empty for the person.

        Returns:
            The watch; None when there was none.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It was not done.
        """
        return dialect.read_watch(endpoint, self._call(endpoint, call, sender_id))

    def inbox(self, endpoint: str, *, sender_id: str = "") -> list[dict[str, Any]]:
        """What lies unread in an agent's inbox, oldest first.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It has no inbox, or it is not the sender's.
        """
        found: list[dict[str, Any]] = []
        while True:
            call = dialect.inbox_call(skip=len(found))
            page = dialect.read_list(endpoint, self._call(endpoint, call, sender_id), "messages")
            if not page:
                return found
            found += page

    def mark_read(self, endpoint: str, task_ids: Sequence[str], *, sender_id: str = "") -> list[PeerTask]:
        """Say which messages of an inbox were read; those that are not unread any more are left out.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It has no inbox, or it is not the sender's.
        """
        answer = self._call(endpoint, dialect.read_call(task_ids), sender_id)
        tasks = dialect.read_list(endpoint, answer, "tasks")
        return [dialect.read_task(endpoint, task) for task in tasks]

    def webhooks(self, endpoint: str, call: Call, *, sender_id: str = "") -> list[dict[str, Any]]:
        """An agent's webhooks, or what they were told.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: They are not told.
        """
        return dialect.read_list(endpoint, {"list": self._call(endpoint, call, sender_id)}, "list")

    def webhook(self, endpoint: str, call: Call, *, sender_id: str = "") -> dict[str, Any]:
        """Make or remove a webhook of an agent; gives it.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It was not done.
        """
        told = self._call(endpoint, call, sender_id)
        if not isinstance(told, dict):
            raise PeerRefused(f"{endpoint} answered without a webhook", 502, "is it of this version?")
        return told

    def instructions(self, endpoint: str, *, now: bool = False) -> dict[str, Any]:
        """What an agent was told of the others, or with `now` would be told: text, files, faults, sent.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It tells none.
        """
        answer = self._call(endpoint, dialect.instructions_call(now=now))
        return dialect.read_instructions(endpoint, answer)

    def send_instructions(self, endpoint: str, *, sender_id: str = "") -> tuple[PeerTask, list[str]]:
        """Send an agent its instructions again.

        Args:
            endpoint: URL of the agent's server.
            sender_id: Who asks; empty for the person.

        Returns:
            The task, and what was left out of the instructions and why.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: It was not done.
        """
        answer = self._call(endpoint, Call("POST", "/instructions/send"), sender_id)
        faults = answer.get("faults") if isinstance(answer, dict) else None
        told = [str(fault) for fault in faults] if isinstance(faults, list) else []
        return dialect.read_task(endpoint, answer), told

    def _call(self, endpoint: str, call: Call, sender_id: str = "") -> object:
        status, body = self._ask(endpoint, call, sender_id)
        if self._reader and dialect.may_sign_again(call, status, sender_id):
            status, body = self._ask(endpoint, call, self._reader)
        name = endpoint if status < 300 else self._name_of(endpoint)  # looked up only for an error
        return dialect.read_answer(name, status, body)

    def _ask(self, endpoint: str, call: Call, sender_id: str) -> tuple[int, bytes]:
        url = urlsplit(endpoint)
        connection = _connection(url)
        try:
            return self._exchange(connection, url.path.rstrip("/"), endpoint, call, sender_id)
        finally:
            connection.close()

    def _exchange(
        self, connection: Connection, prefix: str, endpoint: str, call: Call, sender_id: str
    ) -> tuple[int, bytes]:
        patience = self._timeout + call.wait
        try:
            connection.connect()
        except OSError as error:
            from .light_spool import without_connection  # noqa: PLC0415 - seldom needed

            return without_connection(
                endpoint, call, error, timeout=patience, environ=self._environ, name_of=self._name_of
            )
        headers = call.headers(endpoint, sender_id, self._token_of, key=self._key)
        try:
            return connection.exchange(
                call.method,
                prefix + call.target,
                headers,
                call.body,
                timeout=patience,
                most=dialect.MAX_ANSWER + 1,
            )
        except (OSError, HttpError) as error:
            why = dialect.tidy(str(error)) or type(error).__name__
            raise PeerSilent(
                f"{self._name_of(endpoint)} did not answer: {why}",
                "it is not known whether the message arrived; look at the agent before sending it again"
                if call.method == "POST"
                else "try again",
            ) from error


class Connection(Protocol):
    """What makes one request."""

    def connect(self) -> None:
        """Connect."""

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, timeout: float, most: int
    ) -> tuple[int, bytes]:
        """Make the request; status and body of the answer."""

    def close(self) -> None:
        """Close the connection."""


def _connection(url: SplitResult) -> Connection:
    if url.scheme != "https":
        return PlainConnection(url.hostname or "", url.port or 80, dialect.CONNECT_TIMEOUT)
    from .secure_http import SecureConnection  # noqa: PLC0415 - seldom needed, and slow to import

    return SecureConnection(url.hostname or "", url.port or 443, dialect.CONNECT_TIMEOUT)
