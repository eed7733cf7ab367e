"""Carries out a send: one message to one or several agents, waiting for their answers or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synapse_tui.a2a.dialect import PeerTask
from synapse_tui.a2a.light import LightClient
from synapse_tui.addresses import Address
from synapse_tui.errors import AgentExited, PeerUnreachable, SynapseError
from synapse_tui.model import Sender
from synapse_tui.registry import is_live

from .caller import Caller
from .output import note
from .waiting import Waiter


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the message to one agent.

    Attributes:
        target: The agent.
        task: Its task as it was last seen; None when there is none.
        error: What went wrong; None when nothing did.
    """

    target: Address
    task: PeerTask | None = None
    error: SynapseError | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A message and how it is to be sent.

    Attributes:
        caller: Who runs the command.
        sender: Who sends.
        text: The message.
        priority: 1 to 5.
        timeout: Seconds to wait for an answer; None not to wait.
    """

    caller: Caller
    sender: Sender
    text: str
    priority: int
    timeout: float | None

    def deliver(self, targets: Sequence[Address]) -> list[Outcome]:
        """Send to all, to several at the same time; a failure of one hinders no other."""
        if len(targets) == 1:
            return [self._one(targets[0])]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(targets)) as pool:
            return list(pool.map(self._one, targets))

    def _one(self, target: Address) -> Outcome:
        client = LightClient(token_of=self.caller.token_of)
        task: PeerTask | None = None
        try:
            task = client.send(
                target.endpoint,
                self.text,
                sender=self.sender,
                priority=self.priority,
                response_expected=self.timeout is not None,
            )
            if self.timeout is not None:
                task = self._answer(client, target, task, self.timeout)
        except PeerUnreachable as error:
            return Outcome(target, task, self._explain(target, error))
        except SynapseError as error:
            return Outcome(target, task, error)
        return Outcome(target, task)

    def _answer(self, client: LightClient, target: Address, task: PeerTask, timeout: float) -> PeerTask:
        waiter = Waiter(
            lambda: client.task(target.endpoint, task.task_id),
            alive=lambda: self._lives(target),
            timeout=timeout,
            tell=lambda status: note(f"{target.agent_id}: {status} (task {task.task_id[:8]})"),
        )
        return waiter.wait(task, target.agent_id)

    def _lives(self, target: Address) -> bool:
        record = self.caller.registry.get(target.agent_id)
        return record is not None and is_live(record)

    def _explain(self, target: Address, error: PeerUnreachable) -> SynapseError:
        """Say that the agent has ended, where that is why nobody answers; its record goes too."""
        record = self.caller.registry.get(target.agent_id)
        if record is None:
            return AgentExited(f"{target.agent_id} has just ended", "see 'synapse list' for who is there")
        if is_live(record):
            return error
        self.caller.registry.discard(record)
        return AgentExited(f"{target.agent_id} has ended: its process {record.pid} is gone", "restart it")
