"""Who makes a request, and what is theirs: the tasks they may see, and the sender of what they send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from synapse_tui.model import Sender, Task

from .principal import Principal
from .problems import HttpProblem
from .senders import sender_of


@dataclass(frozen=True, slots=True)
class Visitor:
    """The caller of a request that the gate let in.

    Attributes:
        principal: Who calls.
        sender_id: Whose signature the request carries; empty for none.
        is_ours: Tells whether an id is that of an agent of this host.
    """

    principal: Principal
    sender_id: str
    is_ours: Callable[[str], bool]

    @property
    def caller(self) -> str:
        """Whose key brings what is sent; empty for the person and for agents, who are the person's own."""
        return "" if self.sender_id else self.principal.name

    @property
    def sees_all(self) -> bool:
        """Whether every task is its business."""
        return self.principal.admin or bool(self.sender_id)

    def may_see(self, task: Task) -> bool:
        """Whether a task is its business: all are the person's and the agents', a key has its own."""
        return self.sees_all or task.caller == self.principal.name

    def check_priority(self, priority: int) -> int:
        """Return a priority if the caller may send messages of it.

        Raises:
            HttpProblem: It is above what its key allows.
        """
        name, most = self.principal.name, self.principal.max_priority
        if not self.sender_id and priority > most:
            raise HttpProblem(
                403,
                "priority_too_high",
                f"the key '{name}' sends messages of priority {most} at most",
                "send it with a lower one, or ask the owner of the agent: "
                f"synapse auth rotate {name} --max-priority {priority}",
            )
        return priority

    def sender(self, metadata: Mapping[str, Any]) -> Sender:
        """The sender of a message: a key has its name, anyone else says and may prove who it is.

        Raises:
            MessageError: The claim is malformed.
            HttpProblem: It is not the visitor's to make.
        """
        if self.caller:
            return Sender(self.caller, verified=self.principal.verified)
        return sender_of(metadata, self.sender_id, is_ours=self.is_ours)
