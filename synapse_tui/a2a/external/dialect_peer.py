"""An external agent that speaks the routes of the original synapse-a2a: `/tasks/send`, `/tasks/{id}`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import httpx

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import Call, PeerTask, read_task
from synapse_tui.content import Part, TaskMessage
from synapse_tui.errors import PeerRefused, TaskNotFound
from synapse_tui.model import TaskState

from .peer import NotOffered
from .problems import problem_of
from .record import Interface
from .untrusted import clean_line, clean_text
from .updates import Outgoing, Snapshot, Update, artifact_of

TIMEOUT = 30.0
"""Seconds in which an answer must have come: the dialect takes a message and answers at once."""


class DialectPeer:
    """One agent by the dialect.

    Args:
        interface: Where it is.
        http: Makes the requests; closed with this.
    """

    def __init__(self, interface: Interface, http: httpx.AsyncClient) -> None:
        self._url = interface.url.rstrip("/")
        self._http = http

    @property
    def streaming(self) -> bool:
        """The dialect is asked again and again."""
        return False

    async def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[Update, None]:  # noqa: ARG002
        """Send a message.

        Raises:
            PeerError: It did not go as asked.
        """
        part = {"type": "text", "text": outgoing.text}
        body = {
            "message": {"role": "user", "parts": [part]},
            "context_id": outgoing.context_id or None,
            "metadata": {"response_expected": True, "message_id": outgoing.message_id},
        }
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        call = Call("POST", "/tasks/send", read_task, data)
        yield await self._call(call, sends=True)

    async def subscribe(self, task_id: str) -> AsyncGenerator[Update, None]:
        """Not offered by the dialect.

        Raises:
            NotOffered: Always.
        """
        raise NotOffered("the dialect tells of tasks only when it is asked", 405)
        yield await self.get(task_id)

    async def get(self, task_id: str) -> Snapshot:
        """A task as it is.

        Raises:
            PeerError: It did not go as asked.
        """
        return await self._call(calls.task(task_id), sends=False)

    async def cancel(self, task_id: str) -> Snapshot:
        """Cancel a task.

        Raises:
            PeerError: It did not go as asked.
        """
        return await self._call(calls.cancel(task_id), sends=False)

    async def close(self) -> None:
        """End the connection."""
        await self._http.aclose()

    async def _call(self, call: Call[PeerTask], *, sends: bool) -> Snapshot:
        headers = {"Accept": "application/json"}
        if call.body:
            headers["Content-Type"] = "application/json"
        url = self._url + call.target
        try:
            async with asyncio.timeout(TIMEOUT):
                response = await self._http.request(
                    call.method, url, content=call.body or None, headers=headers
                )
        except (httpx.HTTPError, TimeoutError) as error:
            raise problem_of(error, self._url, sends=sends) from error
        try:
            return _snapshot(call.read(self._url, response.status_code, response.content))
        except TaskNotFound as error:
            raise PeerRefused(error.message, 404, error.hint) from error


def _snapshot(task: PeerTask) -> Snapshot:
    reason = clean_line(task.reason, 300)
    told = TaskMessage("", "agent", (Part(text=reason),)) if reason and _matters(task.state) else None
    return Snapshot(
        task.task_id,
        clean_line(task.context_id, 256),
        task.state,
        told,
        artifacts=tuple(
            artifact_of((Part(text=clean_text(text)),), artifact_id=str(at))
            for at, text in enumerate(task.texts)
        ),
    )


def _matters(state: TaskState) -> bool:
    return state in (TaskState.FAILED, TaskState.REJECTED, TaskState.INPUT_REQUIRED)
