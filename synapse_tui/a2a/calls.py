"""Calls of the HTTP API as a client makes them: how to send them and how to parse the answers. No I/O.

A call is a value: method, path, body and a parser for the answer. `client.Client` makes it blocking, over a
socket or an agent's spool; `async_client.AsyncClient` makes it with httpx.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote, urlsplit

from synapse_tui.core.content import Part, part_words
from synapse_tui.core.errors import PeerBusy, PeerRefused, TaskNotFound
from synapse_tui.core.model import ORIGIN_ID, Reply, Sender, TaskState
from synapse_tui.core.wording import task_word
from synapse_tui.system.dataclass import dataclass

from .signing import SignedRequest, TokenVerifier, signature_headers

T_co = TypeVar("T_co", covariant=True)

MAX_ANSWER = 16 * 1024 * 1024
CONNECT_TIMEOUT = 3.0
ANSWER_TIMEOUT = 10.0
KEY_HEADER = "X-API-Key"
DELIVERY_HEADER = "X-Synapse-Delivery"
"""Marks a notification: callers choose where it goes, so its receiver must not take it for the person's."""
NO_CONTENTS: Mapping[str, bytes] = MappingProxyType({})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PeerTask:
    """A task as reported by its server.

    Attributes:
        context_id: UUID of the agent's session; may be empty.
        state: Unknown states count as working.
        delivery: State of the delivery; empty if the server does not report it.
        reason: Why it is held or failed; may be empty.
        truncated: Whether an artifact is known to be incomplete.
        follow_up: The message that continues the task, if this is the answer to that message.
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
        """Id and text of the question that the agent asks; empty strings if none."""
        metadata = self.fields.get("metadata")
        about = metadata if isinstance(metadata, dict) else {}
        elsewhere = about.get("direction") == "outgoing" or about.get("external") is True
        if self.state is not TaskState.INPUT_REQUIRED or not (elsewhere or self.delivery == "done"):
            return "", ""
        return _last_question(self.fields) or ("", self.reason)

    @property
    def updated_at(self) -> str:
        """Time of the last change, as the server wrote it; may be empty."""
        found = self.fields.get("updated_at")
        return found if isinstance(found, str) else ""

    @property
    def status(self) -> str:
        """State and reason in words: `queued`, `held: permission dialog open`, `done`."""
        over = self.state.final or self.delivery in ("", "done")
        by_state = over or self.state is TaskState.INPUT_REQUIRED
        word = task_word(self.state, self.delivery) if by_state else self.delivery
        return f"{word}: {self.reason}" if self.reason not in ("", word) else word


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """A request, ready to be sent.

    Attributes:
        target: Path and query.
        parse: Converts the JSON of the answer; raises `Missing`.
        wait: Seconds that the server may wait before it answers.
        sender_id: Default signer; empty for no signature.
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
        """The headers for a server. Only servers on this machine get the key or a signature."""
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
        """Whether a read that was refused unsigned can be retried with a signature."""
        return status == 401 and self.method == "GET" and not sender_id

    def read(self, endpoint: str, status: int, body: bytes) -> T_co:
        """Parse an HTTP answer; raises PeerRefused for errors and for answers of another form."""
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
    """The answer lacks an expected field."""


def is_loopback(endpoint: str) -> bool:
    return urlsplit(endpoint).hostname in _LOOPBACK


def tidy(text: str, limit: int = 300) -> str:
    """Turn text from a server into one line without control characters, safe to print on a terminal."""
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _refusal(endpoint: str, status: int, value: object) -> PeerRefused:
    fields = value if isinstance(value, dict) else {}
    error = fields.get("error")
    shown = error if isinstance(error, dict) else {"message": fields.get("detail")}
    message, hint = shown.get("message"), shown.get("hint")
    words = tidy(message) if isinstance(message, str) and message else f"HTTP status {status}"
    advice = tidy(hint) if isinstance(hint, str) else ""
    # The original accepts one message at a time and explains it only in `detail`.
    original = not isinstance(error, dict)
    if original and (status == 409 or (status == 503 and "not ready" in words)):
        return PeerBusy(f"{endpoint} is busy: {words}", status, "send it again later", said=words)
    return PeerRefused(f"{endpoint} refused: {words}", status, advice, said=words)


def request(method: str, target: str, body: bytes = b"") -> Call[object]:
    """Any request; the result is the JSON value of the answer."""
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
    """Send a message; `follows` is the id of the open task that it continues."""
    about: dict[str, object] = {**metadata, "response_expected": response_expected}
    message = {"taskId": _checked(follows)} if follows else {}
    return _message(f"/tasks/send-priority?priority={priority}", text, about, sender, message)


def create(text: str, *, sender: Sender, target_agent: str, target_endpoint: str) -> Call[PeerTask]:
    """Create an outgoing task on the sender's own server; it ends when the answer arrives."""
    about = {
        "response_expected": True,
        "target_agent": target_agent,
        "target_endpoint": target_endpoint,
    }
    return _message("/tasks/create", text, about, sender)


def reply(task_id: str, answer: Reply, contents: Mapping[str, bytes] = NO_CONTENTS) -> Call[PeerTask]:
    """Reply to a task of the agent that runs this process, by default the current one.

    `contents` are the contents of the answer's files, by path.
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
        ORIGIN_ID: reply.origin_id,
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
    # The original rejects messages without text.
    return _message(f"/tasks/send?reply_to={_checked(outgoing_id)}", reply.text or " ", about, sender)


def awaiting() -> Call[list[PeerTask]]:
    """List the tasks that an agent can reply to, the current one first."""
    return Call("GET", "/reply", _tasks_in)


def tasks() -> Call[list[PeerTask]]:
    """List an agent's newest tasks, oldest first."""
    return Call("GET", "/tasks?limit=1000", lambda value: [read_task(each) for each in _list(value, "tasks")])


def task(task_id: str) -> Call[PeerTask]:
    return Call("GET", f"/tasks/{_checked(task_id)}", read_task)


def cancel(task_id: str) -> Call[PeerTask]:
    return Call("POST", f"/tasks/{_checked(task_id)}/cancel", read_task)


def wait(seen: PeerTask, seconds: float) -> Call[PeerTask]:
    """Read a task once it differs from `seen`, or after `seconds`."""
    return _waiting(f"/tasks/{_checked(seen.task_id)}", seen.updated_at, seconds)


def external_send(alias: str, text: str, *, response_expected: bool) -> Call[PeerTask]:
    body = {"message": _encodable(text), "metadata": {"response_expected": response_expected}}
    return Call("POST", f"/external/agents/{quote(alias, safe='')}/send", read_task, _json(body))


def external_task(alias: str, seen: PeerTask, seconds: float) -> Call[PeerTask]:
    path = f"/external/agents/{quote(alias, safe='')}/tasks/{_checked(seen.task_id)}"
    return _waiting(path, seen.updated_at, seconds)


# -- status, card, instructions ---


def status(*, why: bool = False, composer: bool = False) -> Call[dict[str, Any]]:
    """Read an agent's state, `{"status", "context"}`.

    `why` adds `why`, `outbox` and `task`; `composer` adds `composer`.
    """
    asked = "&".join(name for name, wanted in (("why=1", why), ("composer=1", composer)) if wanted)
    return Call("GET", f"/status?{asked}" if asked else "/status", lambda value: _object(value, "a status"))


def go_on() -> Call[dict[str, Any]]:
    """Continue a suspended agent and read its state, `{"status"}`."""
    return Call("POST", "/continue", lambda value: _object(value, "a status"))


def card() -> Call[dict[str, Any]]:
    return Call("GET", "/.well-known/agent-card.json", lambda value: _object(value, "a card"))


def instructions(*, now: bool = False) -> Call[dict[str, Any]]:
    """Read the instructions that an agent was given, or with `now` those it would be given now."""
    target = "/instructions?now=1" if now else "/instructions"
    return Call("GET", target, lambda value: _object(value, "instructions", text="text"))


def send_instructions() -> Call[tuple[PeerTask, list[str]]]:
    """Send an agent its instructions again. Returns the task and what was left out, with reasons."""

    def parse(value: object) -> tuple[PeerTask, list[str]]:
        faults = value.get("faults") if isinstance(value, dict) else None
        return read_task(value), [str(fault) for fault in faults] if isinstance(faults, list) else []

    return Call("POST", "/instructions/send", parse)


# -- outbox and inbox ---


def outbox() -> Call[list[dict[str, Any]]]:
    """List the messages waiting to be typed into an agent, in order."""
    return Call("GET", "/outbox", lambda value: _list_in(value, "messages"))


def act(task_id: str, action: str, place: int = 0) -> Call[list[PeerTask]]:
    """Apply an action to a waiting message, or to `all`. Returns the affected tasks.

    The actions are `cancel`, `hold`, `release`, `retry`, `now`, and `move` to a `place` from 1.
    """
    target = f"/outbox/{_checked(task_id)}/{action}"
    return Call("POST", f"{target}?place={place}" if place else target, _tasks_in)


def inbox(*, skip: int = 0) -> Call[list[dict[str, Any]]]:
    """List an agent's unread messages after the first `skip`, as many as fit in one answer."""
    target = f"/inbox?skip={skip}" if skip else "/inbox"
    return Call("GET", target, lambda value: _list_in(value, "messages"))


def mark_read(task_ids: Sequence[str]) -> Call[list[PeerTask]]:
    """Mark messages as read; those already read are ignored."""
    return Call("POST", "/inbox/read", _tasks_in, _json({"tasks": list(task_ids)}))


# -- watches and webhooks ---


def begin_watch(fields: Mapping[str, object]) -> Call[dict[str, Any] | None]:
    return Call("POST", "/watch", _watch, _json(fields))


def watch(*, seen: int = -1, seconds: float = 0.0) -> Call[dict[str, Any] | None]:
    """Read a watch once its version differs from `seen`, or after `seconds`."""
    target = f"/watch?wait={seconds:g}&seen={seen}" if seconds else "/watch"
    return Call("GET", target, _watch, wait=seconds)


def end_watch() -> Call[dict[str, Any] | None]:
    return Call("DELETE", "/watch", _watch)


def webhooks() -> Call[list[dict[str, Any]]]:
    return Call("GET", "/webhooks", lambda value: _list(value, "webhooks"))


def webhook_deliveries(webhook_id: str = "", *, limit: int) -> Call[list[dict[str, Any]]]:
    """List the notifications sent to an agent's webhooks, or to one of them, newest first."""
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
    """The parts of a message as JSON; `contents` are those of the files, by path.

    `text` may be empty if there are parts; text parts are ignored.
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
    """Parse a task, bare or as `{"task": {...}}` with an optional `follow_up`."""
    fields = value.get("task", value) if isinstance(value, dict) else None
    if not isinstance(fields, dict) or not isinstance(fields.get("id"), str):
        raise Missing("a task")
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    artifacts = fields.get("artifacts")
    artifacts = (
        [artifact for artifact in artifacts if isinstance(artifact, dict)]
        if isinstance(artifacts, list)
        else []
    )
    follow_up = value.get("follow_up") if isinstance(value, dict) else None
    return PeerTask(
        task_id=tidy(fields["id"]),
        context_id=_word(fields.get("context_id")),
        state=state_of(fields.get("status")),
        delivery=_word(metadata.get("delivery")),
        reason=_word(metadata.get("reason")) or _error_text(fields.get("error")),
        texts=tuple(text for text in map(artifact_text, artifacts) if text),
        truncated=any(artifact.get("truncated") is True for artifact in artifacts),
        fields=fields,
        follow_up=read_task({"task": follow_up}) if follow_up else None,
    )


def artifact_text(artifact: Mapping[str, object]) -> str:
    """An artifact as text. Files, URLs and data are described; `data` of the early API is supported."""
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
    """Id and text of a task's last message if the agent wrote it."""
    messages = fields.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "agent":
        return None
    return str(last.get("message_id", "")), artifact_text(last)


def state_of(value: object) -> TaskState:
    """Parse a state as written by our API, A2A 0.3 (`input-required`) or A2A 1.0 (`TASK_STATE_WORKING`).

    Accepts a word or `{"state": word}`; unknown states count as working.
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
