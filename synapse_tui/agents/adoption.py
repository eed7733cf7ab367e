"""Serializes a running agent to JSON, so that a newer version of the host can take it over."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from synapse_tui.core.content import artifact_from_json, message_from_json, to_json
from synapse_tui.core.errors import HandoverError
from synapse_tui.core.model import (
    AgentSpec,
    DeliveryState,
    ExitStatus,
    OutboxEntry,
    ReplyState,
    Sender,
    Task,
    TaskState,
)
from synapse_tui.messages.rows import entry_from
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.pty import Handle
from synapse_tui.terminal import ProgramStatus, ProgressChanged, PromptMark, TerminalEvent
from synapse_tui.workspace import AgentHandover

from .console import Adopted
from .state import Passage

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AdoptedSession:
    process: Adopted
    context_id: str
    tasks: tuple[Task, ...] = ()  # oldest first
    outbox: tuple[OutboxEntry, ...] = ()
    turn: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    unseen: bool = False
    timeline: tuple[Passage, ...] = ()  # oldest first
    watch: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    delivery: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    hook_args: tuple[str, ...] = ()


def read_handover(handover: AgentHandover) -> AdoptedSession:
    try:
        handle = Handle(handover.pid, handover.start, handover.fd, handover.pending)
        signals = signals_from_json(handover.signals)
        reasons = {str(task["id"]): str(task["reason"]) for task in handover.tasks}
        process = Adopted(
            handle, handover.terminal, handover.restored, signals, _known(ExitStatus, handover.exit)
        )
        return AdoptedSession(
            process,
            handover.context_id,
            tuple(task_from_json(dict(task)) for task in handover.tasks),
            tuple(entry_from(found, reasons.get(str(found["task_id"]), "")) for found in handover.outbox),
            dict(handover.extra.get("turn") or {}),  # type: ignore[call-overload]  # a table or an error
            bool(handover.extra.get("unseen")),
            _passages(handover.extra.get("timeline")),
            dict(handover.extra.get("watch") or {}),  # type: ignore[call-overload]  # a table or an error
            dict(handover.extra.get("delivery") or {}),  # type: ignore[call-overload]  # a table or an error
            tuple(map(str, handover.extra.get("hook_args") or ())),  # type: ignore[call-overload]  # a list or an error
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HandoverError(
            f"the handover of {handover.agent_id} cannot be understood: {error!r}",
            "restart the agent in its pane",
        ) from error


def spec_of(handover: AgentHandover) -> AgentSpec:
    content = handover.spec
    args = content.get("args")
    return AgentSpec(
        handover.profile,
        name=handover.name,
        args=tuple(map(str, args)) if isinstance(args, list) else (),
        # A version without instructions handed it over mid-work: leave it alone.
        told_as=str(content.get("told_as", handover.agent_id)),
        began=began if isinstance(began := content.get("began"), float) else 0.0,
        command=tuple(map(str, command)) if isinstance(command := content.get("command"), list) else (),
        allowed=bool(content.get("allowed")),
        role=str(content.get("role") or ""),
        opened_by=tuple(map(str, by)) if isinstance(by := content.get("opened_by"), list) else (),
    )


def signals_to_json(signals: Mapping[str, TerminalEvent]) -> Json:
    status, progress = signals.get("status"), signals.get("progress")
    found: Json = {}
    if isinstance(status, ProgramStatus):
        found["status"] = {"state": status.state, "fields": dict(status.fields)}
    if isinstance(progress, ProgressChanged):
        found["progress"] = {"state": progress.state, "value": progress.value}
    if isinstance(mark := signals.get("prompt"), PromptMark):
        found["prompt"] = {"kind": mark.kind}
    return found


def signals_from_json(content: Mapping[str, Any]) -> tuple[TerminalEvent, ...]:
    found: list[TerminalEvent] = []
    if "status" in content:
        found.append(ProgramStatus(str(content["status"]["state"]), dict(content["status"]["fields"])))
    if "progress" in content:
        found.append(ProgressChanged(int(content["progress"]["state"]), int(content["progress"]["value"])))
    if "prompt" in content:
        # Marks of an output first: without them, the others count for nothing.
        found += [PromptMark(kind, {}) for kind in ("C", "D", str(content["prompt"]["kind"]))]
    return tuple(found)


def task_to_json(task: Task) -> Json:
    content = {
        field.name: getattr(task, field.name)
        for field in dataclasses.fields(task)
        if field.name != "metadata"
    }
    return content | {
        "sender": dataclasses.asdict(task.sender),
        "artifacts": [to_json(artifact) for artifact in task.artifacts],
        "messages": [to_json(message) for message in task.messages],
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
        "state_since": task.since.isoformat(),
        "metadata": {key: value for key, value in task.metadata.items() if _is_plain(value)},
    }


def task_from_json(content: Json) -> Task:
    known = {entry.name for entry in dataclasses.fields(Task)}
    since = content.get("state_since") or content.get("entered") or content["updated_at"]  # as 0.1.0 had it
    return Task(
        **{name: value for name, value in content.items() if name in known}
        | {
            "sender": Sender(**content["sender"]),
            "artifacts": tuple(map(artifact_from_json, content["artifacts"])),
            "messages": tuple(map(message_from_json, content.get("messages", ()))),
            "state": TaskState(content["state"]),
            "delivery": DeliveryState(content["delivery"]),
            "reply": ReplyState(content.get("reply", "")),
            "created_at": datetime.fromisoformat(content["created_at"]),
            "updated_at": datetime.fromisoformat(content["updated_at"]),
            "state_since": datetime.fromisoformat(str(since)),
            "metadata": MappingProxyType(dict(content["metadata"])),
        }
    )


def _known(kind: type[T], content: Mapping[str, object]) -> T | None:
    names = {entry.name for entry in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are records
    return kind(**{name: value for name, value in content.items() if name in names}) if content else None


def _passages(content: object) -> tuple[Passage, ...]:
    return tuple(map(Passage.from_json, content)) if isinstance(content, list) else ()


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
