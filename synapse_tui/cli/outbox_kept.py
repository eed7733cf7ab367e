"""Messages for agents of the project that are not open: the history alone knows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synapse_tui.addresses import ALL, fold
from synapse_tui.database.location import location_of
from synapse_tui.errors import HistoryError, MessageError
from synapse_tui.model import Parked

from .caller import Caller
from .output import note
from .settings_layers import Layers

if TYPE_CHECKING:
    from synapse_tui.messages.archive import Archive
    from synapse_tui.messages.records import Undelivered

BEGINNING = 500
"""Characters of each text that the list tells, as of messages of open agents."""


class Shelf:
    """What is kept for agents of the caller's project that are not open; read once.

    Args:
        caller: Who asks.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._read: Sequence[Undelivered] | None = None

    def find(self, address: str) -> Sequence[Undelivered]:
        """The messages for whom an address would mean, were they open; an empty one means all.

        That the history cannot be read is told, and hinders nothing else.
        """
        if self._read is None:
            try:
                self._read = self._all()
            except HistoryError as error:
                note(f"what is kept for agents that are not open is not known: {error.message}")
                self._read = ()
        wanted = fold(address)
        if wanted in ("", ALL):
            return self._read
        return [each for each in self._read if wanted in map(fold, _names(each))]

    def may_cancel(self, kept: Undelivered) -> bool:
        """Whether the caller may take a message back: an agent its own alone."""
        return not self._caller.agent_id or kept.task.sender.sender_id == self._caller.agent_id

    def is_in_all(self, kept: Undelivered) -> bool:
        """Whether `cancel all` means a message: not what lies in an inbox, as with open agents."""
        return self.may_cancel(kept) and kept.hold is not Parked.INBOX

    def cancel(self, kept: Undelivered) -> Undelivered:
        """Take a message back.

        Returns:
            The message as it is then.

        Raises:
            TaskNotFound: It does not wait any more.
            MessageError: It is not the caller's, or a process works with it.
            HistoryError: The history cannot be written.
        """
        if not self.may_cancel(kept):
            raise MessageError(
                f"message {kept.task.short_id} was sent by {kept.task.sender.sender_id}",
                "agents act on their own messages only",
            )
        with self._archive() as archive:
            return replace(kept, task=archive.cancel(kept.task.id, alive=self._caller.liveness()))

    def _all(self) -> Sequence[Undelivered]:
        """Those of agents that are not open; what an open agent has, it tells itself."""
        with self._archive() as archive:
            found = archive.kept(self._caller.project)
        # Asked after the history was read: an agent that was opened meanwhile has its messages already.
        here = self._caller.here()
        return [
            each
            for each in found
            if not any(each.addressee.is_meant(agent.agent_id, agent.name) for agent in here)
        ]

    @contextmanager
    def _archive(self) -> Iterator[Archive]:
        from synapse_tui.messages.archive import Archive

        caller = self._caller
        project = Path(caller.project)
        settings = Layers(caller, project).load()
        archive = Archive(location_of(settings, caller.paths.history, paths=caller.paths, project=project))
        try:
            yield archive
        finally:
            archive.close()


def kept_json(kept: Undelivered) -> dict[str, Any]:
    """A kept message with the beginning of its text, as servers tell of one that waits for an open agent."""
    task = kept.task
    return {
        "id": task.id,
        "open": False,
        "name": kept.addressee.called or "",
        "position": 0,
        "sender": {
            "sender_id": task.sender.sender_id,
            "sender_type": task.sender.sender_type,
            "sender_endpoint": task.sender.sender_endpoint,
        },
        "follows": task.follows,
        "priority": task.priority,
        "delivery": task.delivery.value,
        "reason": task.reason,
        "held": True,
        "uncertain": kept.uncertain,
        "unread": kept.hold is Parked.INBOX,
        "text": task.text[:BEGINNING],
        "length": len(task.text),
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
    }


def kept_status(kept: Undelivered) -> str:
    """What the list says in place of a state of the delivery."""
    who = f"'{kept.addressee.called}'" if kept.addressee.called else "agent"
    return f"kept: {who} not open" + (f"; {kept.task.reason}" if kept.uncertain else "")


def canceled_json(kept: Undelivered) -> dict[str, Any]:
    """What became of a kept message, as of one of an open agent."""
    task = kept.task
    return {
        "agent": kept.addressee.agent_id,
        "task_id": task.id,
        "status": task.state.value,
        "delivery": task.delivery.value,
        "reason": task.reason,
    }


def not_open(kept: Undelivered, action: str) -> MessageError:
    """Why nothing but `cancel` can be done with a kept message."""
    return MessageError(
        f"message {kept.task.short_id} is kept for {kept.addressee}, which is not open: no {action}",
        f"open it again: {kept.addressee.command}; or take the message back: synapse outbox cancel",
    )


def _names(kept: Undelivered) -> tuple[str, ...]:
    """All that its agent would be called."""
    agent_id = kept.addressee.agent_id
    return agent_id, agent_id.removeprefix("synapse-"), kept.agent_type, kept.addressee.called or agent_id
