"""Calls of the HTTP API from the caller's side: what to send and how to read the answer; no I/O.

A call is a value: method, path, body and the parser of its answer. `client.Client` makes it blocking, over a
socket or an agent's spool; `async_client.AsyncClient` makes it on httpx.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote, urlsplit

from synapse_tui.content import Part, part_words
from synapse_tui.errors import PeerBusy, PeerRefused, TaskNotFound
from synapse_tui.model import Reply, Sender, TaskState

from .signing import SignedRequest, TokenVerifier, signature_headers

T_co = TypeVar("T_co", covariant=True)

MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that are read."""
CONNECT_TIMEOUT = 3.0
ANSWER_TIMEOUT = 10.0
KEY_HEADER = "X-API-Key"
NO_CONTENTS: Mapping[str, bytes] = MappingProxyType({})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PeerTask:
    """A task as its server describes it.

    Attributes:
        task_id: UUID of the task.
        context_id: UUID of the agent's session; may be empty.
        state: Its state; unknown ones count as working.
        delivery: How far the delivery has come; empty from servers that do not say.
        reason: Why it is held or failed; may be empty.
        texts: The artifacts' texts.
        truncated: Whether an artifact is known to be incomplete.
        fields: The whole answer.
        follow_up: The message that continues the task, in the answer to that message.
    """

    task_id: str
    context_id: str = ""
    state: TaskState = TaskState.SUBMITTED
    delivery: str = ""
    reason: str = ""
    texts: tuple[str, ...] = ()
    truncated: bool = False
    fields: Mapping[str, object] = field(default_factory=lambda: _NO_FIELDS, repr=False)
    follow_up: PeerTask | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    def answers(self, task_id: str) -> bool:
        metadata = self.fields.get("metadata")
        found = metadata.get("in_reply_to") if isinstance(metadata, dict) else None
        return isinstance(found, str) and bool(task_id) and found.startswith(task_id.lower())

    @property
    def question(self) -> tuple[str, str]:
        """Id and text of the question that the agent waits to have answered; empty strings for none."""
        metadata = self.fields.get("metadata")
        outgoing = isinstance(metadata, dict) and metadata.get("direction") == "outgoing"
        if self.state is not TaskState.INPUT_REQUIRED or not (outgoing or self.delivery == "done"):
            return "", ""
        return _last_question(self.fields) or ("", self.reason)

    @property
    def updated_at(self) -> str:
        """When it last changed, as the server wrote it; may be empty."""
        found = self.fields.get("updated_at")
        return found if isinstance(found, str) else ""

    @property
    def status(self) -> str:
        """State and reason in a few words: `queued`, `held: permission dialog open`, `completed`."""
        over = self.state.final or self.delivery in ("", "done")
        by_state = over or self.state is TaskState.INPUT_REQUIRED
        word = self.state.value if by_state else self.delivery
        return f"{word}: {self.reason}" if self.reason not in ("", word) else word


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request, ready to be sent.

    Attributes:
        method: `GET`, `POST` or `DELETE`.
        target: Path and query.
        parse: Makes the result from the JSON of the answer; raises `Missing`.
        body: JSON, or empty.
        wait: Seconds that the server is asked to wait before it answers.
        sender_id: Who signs it unless the client is told otherwise; empty for no signature.
    """

    method: str
    target: str
    parse: Callable[[object], T_co]
    body: bytes = b""
    wait: float = 0.0
    sender_id: str = ""

    def headers(
        self, endpoint: str, sender_id: str, token_of: TokenVerifier, *, key: str = ""
    ) -> dict[str, str]:
        """Headers for a server; only one on this machine gets the key or a signature."""
        headers = {"Accept": "application/json", "User-Agent": "synapse-tui"}
        if self.body:
            headers["Content-Type"] = "application/json"
        url = urlsplit(endpoint)
        local = is_loopback(endpoint)
        if key and local:
            headers[KEY_HEADER] = key
        token = token_of(sender_id) if sender_id and local else None
        if token:
            signed = SignedRequest(self.method, url.port or 80, url.path.rstrip("/") + self.target, self.body)
            headers |= signature_headers(signed, agent_id=sender_id, token=token)
        return headers

    def may_sign_again(self, status: int, sender_id: str) -> bool:
        """Whether a refused read without a signature may be let in with one."""
        return status == 401 and self.method == "GET" and not sender_id

    def read(self, endpoint: str, status: int, body: bytes) -> T_co:
        """The result from an HTTP answer.

        Raises:
            PeerRefused: The answer is an error, too large, or not what was asked for.
        """
        if len(body) > MAX_ANSWER:
            raise PeerRefused(f"the answer of {endpoint} is over {MAX_ANSWER} bytes", status)
        try:
            value: object = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        if not 200 <= status < 300:
            raise _refusal(endpoint, status, value)
        if value is None:
            raise PeerRefused(f"{endpoint} did not answer in JSON", status, "is it an agent's endpoint?")
        try:
            return self.parse(value)
        except Missing as missing:
            raise PeerRefused(
                f"{endpoint} answered without {missing}", 502, "is it an agent's endpoint?"
            ) from missing


class Missing(ValueError):
    """An answer lacks what was asked for."""


def is_loopback(endpoint: str) -> bool:
    return urlsplit(endpoint).hostname in _LOOPBACK


def tidy(text: str, limit: int = 300) -> str:
    """Words of a server as one line without control characters: they are shown on terminals."""
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _refusal(endpoint: str, status: int, value: object) -> PeerRefused:
    fields = value if isinstance(value, dict) else {}
    error = fields.get("error")
    shown = error if isinstance(error, dict) else {"message": fields.get("detail")}
    message, hint = shown.get("message"), shown.get("hint")
    words = tidy(message) if isinstance(message, str) and message else f"HTTP status {status}"
    advice = tidy(hint) if isinstance(hint, str) else ""
    # The original takes one message at a time, and says so in `detail` alone.
    original = not isinstance(error, dict)
    if original and (status == 409 or (status == 503 and "not ready" in words)):
        return PeerBusy(f"{endpoint} is busy: {words}", status, "send it again later", said=words)
    return PeerRefused(f"{endpoint} refused: {words}", status, advice, said=words)


def request(method: str, target: str, body: bytes = b"") -> Call[object]:
    """Any request; gives the JSON value of the answer."""
    return Call(method, target, lambda value: value, body)


# -- messages and tasks ---


def send(
    text: str,
    *,
    sender: Sender | None = None,
    priority: int = 3,
    response_expected: bool = False,
    metadata: Mapping[str, object] = _NO_FIELDS,
    follows: str = "",
) -> Call[PeerTask]:
    """Send a message; `follows` is the open task that it continues."""
    about: dict[str, object] = {**metadata, "response_expected": response_expected}
    message = {"taskId": _checked(follows)} if follows else {}
    return _message(f"/tasks/send-priority?priority={priority}", text, about, sender, message)


def create(text: str, *, sender: Sender, target_agent: str, target_endpoint: str) -> Call[PeerTask]:
    """Make an outgoing task on the sender's own server that ends when the answer comes."""
    about = {
        "response_expected": True,
        "target_agent": target_agent,
        "target_endpoint": target_endpoint,
    }
    return _message("/tasks/create", text, about, sender)


def reply(task_id: str, answer: Reply, contents: Mapping[str, bytes] = NO_CONTENTS) -> Call[PeerTask]:
    """Answer a task of the agent inside which this runs.

    Args:
        task_id: Empty for the task that awaits the reply.
        answer: The answer.
        contents: Contents of the files in it, by their paths.
    """
    target = f"/tasks/{_checked(task_id)}/reply" if task_id else "/reply"
    about: dict[str, object] = {"status": answer.state.value}
    if answer.as_message:
        about["as_message"] = True
    return _parts_call(target, parts_json(answer.text, answer.parts, contents), about)


def answer(outgoing_id: str, reply: Reply, *, sender: Sender) -> Call[PeerTask]:
    about: dict[str, object] = {
        "status": reply.state.value,
        "in_reply_to": outgoing_id,
        "receiver_task_id": reply.in_reply_to,
        "explicit": reply.explicit,
        "truncated": reply.truncated,
        "reason": reply.reason,
        "response_mode": "silent",
    }
    if reply.state in (TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED):
        why = reply.text.strip() or reply.reason
        about |= {
            "reply_status": "failed",
            "reply_error": {"code": reply.state.value.upper(), "message": why},
        }
    # The original takes no message without any text.
    return _message(f"/tasks/send?reply_to={_checked(outgoing_id)}", reply.text or " ", about, sender)


def awaiting() -> Call[list[PeerTask]]:
    """The tasks that an agent can reply to, the current one first."""
    return Call("GET", "/reply", _tasks_in)


def tasks() -> Call[list[PeerTask]]:
    """The newest tasks of an agent, oldest first."""
    return Call("GET", "/tasks?limit=1000", lambda value: [read_task(each) for each in _list(value, "tasks")])


def task(task_id: str) -> Call[PeerTask]:
    return Call("GET", f"/tasks/{_checked(task_id)}", read_task)


def cancel(task_id: str) -> Call[PeerTask]:
    return Call("POST", f"/tasks/{_checked(task_id)}/cancel", read_task)


def wait(seen: PeerTask, seconds: float) -> Call[PeerTask]:
    """Read a task as soon as it differs from what was seen, or after so many seconds."""
    return _waiting(f"/tasks/{_checked(seen.task_id)}", seen.updated_at, seconds)


def external_send(alias: str, text: str, *, response_expected: bool) -> Call[PeerTask]:
    body = {"message": _encodable(text), "metadata": {"response_expected": response_expected}}
    return Call("POST", f"/external/agents/{quote(alias, safe='')}/send", read_task, _json(body))


def external_task(alias: str, seen: PeerTask, seconds: float) -> Call[PeerTask]:
    path = f"/external/agents/{quote(alias, safe='')}/tasks/{_checked(seen.task_id)}"
    return _waiting(path, seen.updated_at, seconds)


# -- status, card, instructions ---


def status(*, why: bool = False) -> Call[dict[str, Any]]:
    """An agent's state: `{"status", "context"}`; with `why` also `why`, `outbox` and `task`."""
    return Call("GET", "/status?why=1" if why else "/status", lambda value: _object(value, "a status"))


def card() -> Call[dict[str, Any]]:
    return Call("GET", "/.well-known/agent-card.json", lambda value: _object(value, "a card"))


def instructions(*, now: bool = False) -> Call[dict[str, Any]]:
    """The instructions that an agent was given, or with `now` would be given."""
    target = "/instructions?now=1" if now else "/instructions"
    return Call("GET", target, lambda value: _object(value, "instructions", text="text"))


def send_instructions() -> Call[tuple[PeerTask, list[str]]]:
    """Send an agent its instructions again; gives the task, and what was left out and why."""

    def parse(value: object) -> tuple[PeerTask, list[str]]:
        faults = value.get("faults") if isinstance(value, dict) else None
        return read_task(value), [str(fault) for fault in faults] if isinstance(faults, list) else []

    return Call("POST", "/instructions/send", parse)


# -- outbox and inbox ---


def outbox() -> Call[list[dict[str, Any]]]:
    """The messages that wait to be typed into an agent, in order."""
    return Call("GET", "/outbox", lambda value: _list_in(value, "messages"))


def act(task_id: str, action: str, place: int = 0) -> Call[list[PeerTask]]:
    """Do something with a waiting message, or with `all`; gives the tasks that it was done with.

    Args:
        task_id: The message's task, or `all`.
        action: `cancel`, `hold`, `release`, `retry`, `now` or `move`.
        place: Where to move it, from 1.
    """
    target = f"/outbox/{_checked(task_id)}/{action}"
    return Call("POST", f"{target}?place={place}" if place else target, _tasks_in)


def inbox(*, skip: int = 0) -> Call[list[dict[str, Any]]]:
    """The unread messages of an agent's inbox after the first `skip` ones, as many as fit an answer."""
    target = f"/inbox?skip={skip}" if skip else "/inbox"
    return Call("GET", target, lambda value: _list_in(value, "messages"))


def mark_read(task_ids: Sequence[str]) -> Call[list[PeerTask]]:
    """Mark messages of an inbox as read; those that are not unread any more are left out."""
    return Call("POST", "/inbox/read", _tasks_in, _json({"tasks": list(task_ids)}))


# -- watches and webhooks ---


def begin_watch(fields: Mapping[str, object]) -> Call[dict[str, Any] | None]:
    return Call("POST", "/watch", _watch, _json(fields))


def watch(*, seen: int = -1, seconds: float = 0.0) -> Call[dict[str, Any] | None]:
    """Read a watch as soon as its version differs from `seen`, or after so many seconds."""
    target = f"/watch?wait={seconds:g}&seen={seen}" if seconds else "/watch"
    return Call("GET", target, _watch, wait=seconds)


def end_watch() -> Call[dict[str, Any] | None]:
    return Call("DELETE", "/watch", _watch)


def webhooks() -> Call[list[dict[str, Any]]]:
    return Call("GET", "/webhooks", lambda value: _list(value, "webhooks"))


def webhook_deliveries(webhook_id: str = "", *, limit: int) -> Call[list[dict[str, Any]]]:
    """What an agent's webhooks, or one of them, were sent, newest first."""
    path = f"/webhooks/{quote(webhook_id, safe='')}/deliveries" if webhook_id else "/webhooks/deliveries"
    return Call("GET", f"{path}?limit={limit}", lambda value: _list(value, "deliveries"))


def add_webhook(fields: Mapping[str, object]) -> Call[dict[str, Any]]:
    return Call("POST", "/webhooks", lambda value: _object(value, "a webhook"), _json(fields))


def remove_webhook(webhook: str) -> Call[dict[str, Any]]:
    word = quote(webhook, safe="")
    target = f"/webhooks?url={word}" if "://" in webhook else f"/webhooks/{word}"
    return Call("DELETE", target, lambda value: _object(value, "a webhook"))


# -- bodies ---


def parts_json(text: str, parts: Sequence[Part], contents: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The parts of a message.

    Args:
        text: Its text; may be empty when there are parts.
        parts: What else it holds; text parts among them are left out.
        contents: Contents of the files among them, by their paths.
    """
    first = [{"type": "text", "text": _encodable(text)}] if text or not parts else []
    return [*first, *(_part_json(part, contents) for part in parts if part.kind != "text")]


def _part_json(part: Part, contents: Mapping[str, bytes]) -> dict[str, Any]:
    if part.kind == "data":
        return {"type": "data", "data": part.data}
    about = {"name": _encodable(part.name), "mimeType": part.media_type}
    if part.kind == "url":
        about["uri"] = part.text
    else:
        about["bytes"] = binascii.b2a_base64(contents[part.path], newline=False).decode()
    return {"type": "file", "file": {key: value for key, value in about.items() if value or key == "bytes"}}


def _message(
    target: str,
    text: str,
    metadata: Mapping[str, object],
    sender: Sender | None = None,
    message: Mapping[str, object] = _NO_FIELDS,
) -> Call[PeerTask]:
    about = dict(metadata)
    if sender is not None:
        about["sender"] = {
            "sender_id": sender.sender_id,
            "sender_type": sender.sender_type,
            "sender_endpoint": sender.sender_endpoint,
        }
    parts = parts_json(text, (), NO_CONTENTS)
    return _parts_call(target, parts, about, message, sender.sender_id if sender else "")


def _parts_call(
    target: str,
    parts: Sequence[Mapping[str, object]],
    metadata: Mapping[str, object],
    message: Mapping[str, object] = _NO_FIELDS,
    sender_id: str = "",
) -> Call[PeerTask]:
    body = {"message": {"role": "user", "parts": parts, **message}, "metadata": dict(metadata)}
    return Call("POST", target, read_task, _json(body), sender_id=sender_id)


def _waiting(path: str, seen: str, seconds: float) -> Call[PeerTask]:
    return Call("GET", f"{path}?wait={seconds:.3f}&seen={quote(seen, safe='')}", read_task, wait=seconds)


def _checked(task_id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", task_id):
        raise TaskNotFound(f"'{tidy(task_id)}' is not a task id", "use the id, or its first 8 characters")
    return task_id


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


# -- answers ---


def read_task(value: object) -> PeerTask:
    """The task of an answer, bare or as `{"task": {...}}`, which may have a `follow_up` beside it."""
    fields = value.get("task", value) if isinstance(value, dict) else None
    if not isinstance(fields, dict) or not isinstance(fields.get("id"), str):
        raise Missing("a task")
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    artifacts = fields.get("artifacts")
    artifacts = [each for each in artifacts if isinstance(each, dict)] if isinstance(artifacts, list) else []
    follow_up = value.get("follow_up") if isinstance(value, dict) else None
    return PeerTask(
        task_id=tidy(fields["id"]),
        context_id=_word(fields.get("context_id")),
        state=state_of(fields.get("status")),
        delivery=_word(metadata.get("delivery")),
        reason=_word(metadata.get("reason")) or _error_text(fields.get("error")),
        texts=tuple(text for text in map(artifact_text, artifacts) if text),
        truncated=any(each.get("truncated") is True for each in artifacts),
        fields=fields,
        follow_up=read_task({"task": follow_up}) if follow_up else None,
    )


def artifact_text(artifact: Mapping[str, object]) -> str:
    """An artifact as text: its parts with files, URLs and data named, or the `data` of the early API."""
    parts = artifact.get("parts")
    if isinstance(parts, list):
        words = [_words(part) for part in parts if isinstance(part, dict)]
        return "\n".join(filter(None, words))
    data = artifact.get("data")
    if isinstance(data, dict):
        data = data.get("content", data.get("text"))
    return data if isinstance(data, str) else ""


def _words(part: Mapping[str, Any]) -> str:
    text, file = part.get("text"), part.get("file")
    if isinstance(text, str):
        return text
    if isinstance(file, dict):
        uri, name, kind = (str(file.get(key, "")) for key in ("uri", "name", "mimeType"))
        if uri.startswith("file://"):
            return part_words(Part("file", path=unquote(uri.removeprefix("file://")), media_type=kind))
        return part_words(Part("url", uri or name, media_type=kind))
    return part_words(Part("data", data=part["data"])) if "data" in part else ""


def _last_question(fields: Mapping[str, object]) -> tuple[str, str] | None:
    """Id and text of the last message about a task if its agent wrote it."""
    messages = fields.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "agent":
        return None
    return str(last.get("message_id", "")), artifact_text(last)


def state_of(value: object) -> TaskState:
    """A state as our API, A2A 0.3 (`input-required`) or 1.0 (`TASK_STATE_WORKING`) spells it.

    It is a word or `{"state": word}`; an unknown one counts as working.
    """
    word = value.get("state") if isinstance(value, dict) else value
    if not isinstance(word, str):
        return TaskState.WORKING
    word = word.lower().replace("-", "_").removeprefix("task_state_")
    try:
        return TaskState(word)
    except ValueError:
        return TaskState.WORKING


def _tasks_in(value: object) -> list[PeerTask]:
    return [read_task(each) for each in _list_in(value, "tasks")]


def _list_in(value: object, name: str) -> list[dict[str, Any]]:
    return _list(value.get(name) if isinstance(value, dict) else None, name)


def _list(value: object, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise Missing(name)
    return [each for each in value if isinstance(each, dict)]


def _object(value: object, name: str, *, text: str = "") -> dict[str, Any]:
    """A JSON object, with a text under the key `text` if that is given."""
    if not isinstance(value, dict) or (text and not isinstance(value.get(text), str)):
        raise Missing(name)
    return value


def _watch(value: object) -> dict[str, Any] | None:
    found = value.get("watch", "") if isinstance(value, dict) else ""
    return None if found is None else _object(found, "a watch", text="state")


def _word(value: object) -> str:
    return tidy(value) if isinstance(value, str) else ""


def _error_text(value: object) -> str:
    return _word(value.get("message")) if isinstance(value, dict) else ""
