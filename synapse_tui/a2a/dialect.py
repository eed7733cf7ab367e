"""The HTTP dialect from the caller's side, for both clients: what to send, how to read answers; no I/O."""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from synapse_tui.content import Part, part_words
from synapse_tui.errors import PeerBusy, PeerRefused, TaskNotFound
from synapse_tui.model import Reply, Sender, TaskState

from .signing import SignedRequest, TokenVerifier, signature_headers

NO_CONTENTS: Mapping[str, bytes] = MappingProxyType({})


def parts_json(text: str, parts: Sequence[Part], contents: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The parts of a message.

    Args:
        text: Its text; may be empty when there are parts.
        parts: What else it holds; text parts among them are left out.
        contents: What the files among them hold, by their paths.
    """
    first = [{"type": "text", "text": _sound(text)}] if text or not parts else []
    return [*first, *(_part_json(part, contents) for part in parts if part.kind != "text")]


def _part_json(part: Part, contents: Mapping[str, bytes]) -> dict[str, Any]:
    if part.kind == "data":
        return {"type": "data", "data": part.data}
    about = {"name": _sound(part.name), "mimeType": part.media_type}
    if part.kind == "url":
        about["uri"] = part.text
    else:
        about["bytes"] = binascii.b2a_base64(contents[part.path], newline=False).decode()
    return {"type": "file", "file": {key: value for key, value in about.items() if value or key == "bytes"}}


def artifact_text(artifact: Mapping[str, object]) -> str:
    """An artifact as text: its parts with files, URLs and data named, or the `data` of the early dialect."""
    parts = artifact.get("parts")
    if isinstance(parts, list):
        words = [_words(part) for part in parts if isinstance(part, dict)]
        return "\n".join(filter(None, words))
    data = artifact.get("data")
    if isinstance(data, dict):
        data = data.get("content", data.get("text"))
    return data if isinstance(data, str) else ""


def last_question(task: Mapping[str, object]) -> tuple[str, str] | None:
    """Id and text of the last message about a task, if its agent wrote it; None if it did not."""
    messages = task.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "agent":
        return None
    return str(last.get("message_id", "")), artifact_text(last)


def state_of(value: object) -> TaskState:
    """A state as the dialect, A2A 0.3 (`input-required`) or 1.0 (`TASK_STATE_WORKING`) spells it.

    Args:
        value: The word, or `{"state": word}`; one that is not known counts as working.
    """
    word = value.get("state") if isinstance(value, dict) else value
    if not isinstance(word, str):
        return TaskState.WORKING
    word = word.lower().replace("-", "_").removeprefix("task_state_")
    try:
        return TaskState(word)
    except ValueError:
        return TaskState.WORKING


def _words(part: Mapping[str, Any]) -> str:
    """A part as text; what is no part of any dialect is left out."""
    text, file = part.get("text"), part.get("file")
    if isinstance(text, str):
        return text
    if isinstance(file, dict):
        uri, name, kind = (str(file.get(key, "")) for key in ("uri", "name", "mimeType"))
        if uri.startswith("file://"):
            return part_words(Part("file", path=unquote(uri.removeprefix("file://")), media_type=kind))
        return part_words(Part("url", uri or name, media_type=kind))
    return part_words(Part("data", data=part["data"])) if "data" in part else ""


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that are read."""
CONNECT_TIMEOUT = 3.0
ANSWER_TIMEOUT = 10.0
KEY_HEADER = "X-API-Key"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


def is_near(endpoint: str) -> bool:
    """Whether an endpoint is on this machine."""
    return urlsplit(endpoint).hostname in _LOOPBACK


@dataclass(frozen=True, slots=True)
class PeerTask:
    """A task as a peer tells of it.

    Attributes:
        task_id: UUID of the task.
        context_id: UUID of the peer's session; may be empty.
        state: Its state; one that is not known counts as working.
        delivery: How far the delivery has come; empty from peers that do not tell.
        reason: Why it is held or failed; may be empty.
        texts: The artifacts' texts.
        truncated: Whether rows of an artifact are known to be missing.
        fields: All that the peer told.
        follow_up: The message that goes on with it, in the answer to that message.
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
        """All that the agent answered."""
        return "\n".join(self.texts)

    def answers(self, task_id: str) -> bool:
        """Whether it stands for the answer to the other agent's task of that id, or beginning of one."""
        metadata = self.fields.get("metadata")
        found = metadata.get("in_reply_to") if isinstance(metadata, dict) else None
        return isinstance(found, str) and bool(task_id) and found.startswith(task_id.lower())

    @property
    def question(self) -> tuple[str, str]:
        """Id and text of what the agent itself has asked about it and waits for; empty for nothing."""
        metadata = self.fields.get("metadata")
        outgoing = isinstance(metadata, dict) and metadata.get("direction") == "outgoing"
        if self.state is not TaskState.INPUT_REQUIRED or not (outgoing or self.delivery == "done"):
            return "", ""
        return last_question(self.fields) or ("", self.reason)

    @property
    def updated_at(self) -> str:
        """When it last changed, as the peer wrote it; empty when it did not."""
        found = self.fields.get("updated_at")
        return found if isinstance(found, str) else ""

    @property
    def status(self) -> str:
        """State and reason in a few words: `queued`, `held: permission dialog open`, `completed`."""
        over = self.state.final or self.delivery in ("", "done")
        telling = over or self.state is TaskState.INPUT_REQUIRED
        word = self.state.value if telling else self.delivery
        return f"{word}: {self.reason}" if self.reason not in ("", word) else word


@dataclass(frozen=True, slots=True)
class Call:
    """One request, ready to be sent.

    Attributes:
        method: `GET` or `POST`.
        target: Path and query.
        body: JSON, or empty.
        wait: Seconds that the server was asked to wait before it answers.
    """

    method: str
    target: str
    body: bytes = b""
    wait: float = 0.0

    def headers(
        self, endpoint: str, sender_id: str, token_of: TokenVerifier, *, key: str = ""
    ) -> dict[str, str]:
        """Headers for a peer; only one on this machine is shown the key, or a signature.

        Args:
            endpoint: URL of the peer.
            sender_id: Who sends; empty for nobody in particular.
            token_of: Gives the sender's token, to sign with.
            key: A key for peers that demand one; empty for none.
        """
        headers = {"Accept": "application/json", "User-Agent": "synapse-tui"}
        if self.body:
            headers["Content-Type"] = "application/json"
        url = urlsplit(endpoint)
        near = is_near(endpoint)
        if key and near:
            headers[KEY_HEADER] = key
        token = token_of(sender_id) if sender_id and near else None
        if token:
            signed = SignedRequest(self.method, url.port or 80, url.path.rstrip("/") + self.target, self.body)
            headers |= signature_headers(signed, agent_id=sender_id, token=token)
        return headers


def may_sign_again(call: Call, status: int, sender_id: str) -> bool:
    """Whether a refused call only read something, in nobody's name: with a signature it may be let in."""
    return status == 401 and call.method == "GET" and not sender_id


def send_call(
    text: str,
    *,
    sender: Sender | None,
    priority: int,
    response_expected: bool = False,
    metadata: Mapping[str, object] = _NO_FIELDS,
    follows: str = "",
) -> Call:
    """The call that sends a message.

    Args:
        text: The message; what UTF-8 cannot carry is replaced.
        sender: Who sends it; None for nobody in particular.
        priority: 1 to 5.
        response_expected: Whether the sender waits for the answer.
        metadata: Whatever else goes with it.
        follows: The open task that it goes on with; empty for none.
    """
    about: dict[str, object] = {**metadata, "response_expected": response_expected}
    message = {"taskId": _checked(follows)} if follows else {}
    return _message_call(f"/tasks/send-priority?priority={priority}", text, about, sender, message)


def create_call(text: str, *, sender: Sender, target_agent: str, target_endpoint: str) -> Call:
    """The call that makes an outgoing task on the sender's own server.

    Args:
        text: The message.
        sender: The agent that sends it.
        target_agent: Id of the one who is asked.
        target_endpoint: URL of its server.
    """
    about = {
        "response_expected": True,
        "target_agent": target_agent,
        "target_endpoint": target_endpoint,
    }
    return _message_call("/tasks/create", text, about, sender)


def reply_call(task_id: str, reply: Reply, contents: Mapping[str, bytes] = NO_CONTENTS) -> Call:
    """The call by which an agent answers a task of its own.

    Args:
        task_id: Its id; empty for the one that awaits a reply.
        reply: The answer.
        contents: What the files of the answer hold, by their paths.
    """
    target = f"/tasks/{_checked(task_id)}/reply" if task_id else "/reply"
    about: dict[str, object] = {"status": reply.state.value}
    if reply.as_message:
        about["as_message"] = True
    return _parts_call(target, parts_json(reply.text, reply.parts, contents), about)


def answer_call(outgoing_id: str, reply: Reply, *, sender: Sender) -> Call:
    """The call that ends the outgoing task of the one who asked, in words that the original knows too."""
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
        told = reply.text.strip() or reply.reason
        about |= {
            "reply_status": "failed",
            "reply_error": {"code": reply.state.value.upper(), "message": told},
        }
    # The original takes no message without any text.
    return _message_call(f"/tasks/send?reply_to={_checked(outgoing_id)}", reply.text or " ", about, sender)


def wait_call(task_id: str, *, seen: str, seconds: float) -> Call:
    """The call that reads a task as soon as it is another one than was seen.

    Args:
        task_id: Its id.
        seen: `updated_at` of the snapshot that is known; empty for none.
        seconds: How long to wait at most.
    """
    query = f"wait={seconds:.3f}&seen={quote(seen, safe='')}"
    return Call("GET", f"{task_call(task_id).target}?{query}", wait=seconds)


def _message_call(
    target: str,
    text: str,
    metadata: Mapping[str, object],
    sender: Sender | None = None,
    message: Mapping[str, object] = _NO_FIELDS,
) -> Call:
    about = dict(metadata)
    if sender is not None:
        about["sender"] = {
            "sender_id": sender.sender_id,
            "sender_type": sender.sender_type,
            "sender_endpoint": sender.sender_endpoint,
        }
    return _parts_call(target, parts_json(text, (), NO_CONTENTS), about, message)


def _parts_call(
    target: str,
    parts: Sequence[Mapping[str, object]],
    metadata: Mapping[str, object],
    message: Mapping[str, object] = _NO_FIELDS,
) -> Call:
    body = {"message": {"role": "user", "parts": parts, **message}, "metadata": dict(metadata)}
    return Call("POST", target, json.dumps(body, ensure_ascii=False).encode())


def task_call(task_id: str, action: str = "") -> Call:
    """The call that reads a task, or does something to it (`cancel`)."""
    path = f"/tasks/{_checked(task_id)}"
    return Call("POST", f"{path}/{action}") if action else Call("GET", path)


def _checked(task_id: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", task_id):
        raise TaskNotFound(f"'{tidy(task_id)}' is no task id", "use the id, or its first 8 characters")
    return task_id


def external_send_call(alias: str, text: str, *, response_expected: bool) -> Call:
    """The call by which a host sends a message to an external agent."""
    body = {
        "message": text.encode("utf-8", "replace").decode(),
        "metadata": {"response_expected": response_expected},
    }
    target = f"/external/agents/{quote(alias, safe='')}/send"
    return Call("POST", target, json.dumps(body, ensure_ascii=False).encode())


def external_task_call(alias: str, task_id: str, *, seen: str = "", seconds: float = 0.0) -> Call:
    """The call that reads what became of such a message, as soon as it is another than was seen."""
    target = f"/external/agents/{quote(alias, safe='')}/tasks/{_checked(task_id)}"
    return Call("GET", f"{target}?wait={seconds:.3f}&seen={quote(seen, safe='')}", wait=seconds)


def outbox_call(task_id: str = "", action: str = "", place: int = 0) -> Call:
    """The call that lists an agent's outbox, or does something with a message in it, or with `all`.

    Raises:
        TaskNotFound: That can be no task's id.
    """
    if not action:
        return Call("GET", "/outbox")
    target = task_call(task_id, action).target.replace("/tasks/", "/outbox/", 1)
    return Call("POST", f"{target}?place={place}" if place else target)


def inbox_call(*, skip: int = 0) -> Call:
    """The call that lists an agent's inbox, but for so many messages at its beginning."""
    return Call("GET", f"/inbox?skip={skip}" if skip else "/inbox")


def read_call(task_ids: Sequence[str]) -> Call:
    """The call that says which messages of an inbox were read."""
    return Call("POST", "/inbox/read", json.dumps({"tasks": list(task_ids)}).encode())


def read_list(endpoint: str, value: object, name: str) -> list[dict[str, Any]]:
    """The list of objects that an answer has under a name.

    Raises:
        PeerRefused: There is none in it.
    """
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise PeerRefused(f"{endpoint} answered without {name}", 502, "is it an agent's endpoint?")
    return [each for each in found if isinstance(each, dict)]


def is_loopback(endpoint: str) -> bool:
    """Whether an endpoint is on this machine."""
    return urlsplit(endpoint).hostname in _LOOPBACK


def read_answer(endpoint: str, status: int, body: bytes) -> object:
    """The JSON value of an answer.

    Raises:
        PeerRefused: It is an error, no JSON, or too large.
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
    return value


def _refusal(endpoint: str, status: int, value: object) -> PeerRefused:
    fields = value if isinstance(value, dict) else {}
    error = fields.get("error")
    told = error if isinstance(error, dict) else {"message": fields.get("detail")}
    message, hint = told.get("message"), told.get("hint")
    words = tidy(message) if isinstance(message, str) and message else f"HTTP status {status}"
    advice = tidy(hint) if isinstance(hint, str) else ""
    # The original takes one message at a time, and tells so in `detail` alone.
    original = not isinstance(error, dict)
    if original and (status == 409 or (status == 503 and "not ready" in words)):
        return PeerBusy(f"{endpoint} is busy: {words}", status, "send it again later", said=words)
    return PeerRefused(f"{endpoint} refused: {words}", status, advice, said=words)


def read_task(endpoint: str, value: object) -> PeerTask:
    """The task of an answer, bare or as `{"task": {...}}`, which may have a `follow_up` beside it.

    Raises:
        PeerRefused: There is none in it.
    """
    fields = value.get("task", value) if isinstance(value, dict) else None
    if not isinstance(fields, dict) or not isinstance(fields.get("id"), str):
        raise PeerRefused(f"{endpoint} answered without a task", 502, "is it an agent's endpoint?")
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
        follow_up=read_task(endpoint, {"task": follow_up}) if follow_up else None,
    )


def tidy(text: str, limit: int = 300) -> str:
    """A peer's words as one line without control characters: they are shown on terminals."""
    line = _CONTROL.sub(" ", text).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _word(value: object) -> str:
    return tidy(value) if isinstance(value, str) else ""


def _error_text(value: object) -> str:
    return _word(value.get("message")) if isinstance(value, dict) else ""


def instructions_call(*, now: bool) -> Call:
    """The call that reads what an agent was told of the others, or what it would be told now."""
    return Call("GET", "/instructions?now=1" if now else "/instructions")


def read_instructions(endpoint: str, value: object) -> dict[str, Any]:
    """The instructions of an answer.

    Raises:
        PeerRefused: There are none in it.
    """
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise PeerRefused(f"{endpoint} answered without instructions", 502, "is it an agent's endpoint?")
    return value


END_WATCH = Call("DELETE", "/watch")


def begin_watch_call(fields: Mapping[str, object]) -> Call:
    """The call that begins a watch; what is not given has its default there."""
    return Call("POST", "/watch", json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))


def watch_call(*, seen: int = -1, seconds: float = 0.0) -> Call:
    """The call that reads a watch as soon as it is another one than was seen, or after so many seconds."""
    target = f"/watch?wait={seconds:g}&seen={seen}" if seconds else "/watch"
    return Call("GET", target, wait=seconds)


def read_watch(endpoint: str, value: object) -> dict[str, Any] | None:
    """The watch of an answer; None when there was none.

    Raises:
        PeerRefused: It tells none.
    """
    found = value.get("watch", "") if isinstance(value, dict) else ""
    if found is None:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("state"), str):
        raise PeerRefused(f"{endpoint} answered without a watch", 502, "is it an agent of this version?")
    return found
