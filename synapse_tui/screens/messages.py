"""What can be done with messages: write, look at, cancel, hold, release, send now, send again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from textual.screen import Screen

from synapse_tui.errors import SynapseError
from synapse_tui.model import USER, Task
from synapse_tui.widgets.pane import Delivery
from synapse_tui.widgets.text import plural

from .composer import Composer, Draft
from .fates import FAILED, SENDING, SENT
from .message_detail import MessageDetail
from .receipts import Receipts
from .recipients import Recipient, recipients

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.app import SynapseApp
    from synapse_tui.host import Host, Receipt

    from .main import MainScreen

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class MessageCommands:
    """The part of the commands that is about messages.

    Args:
        app: Shows dialogs and notices.
        host: Does the work.
        main: The main screen.
    """

    def __init__(self, app: SynapseApp, host: Host, main: MainScreen) -> None:
        self.app = app
        self.host = host
        self.main = main
        self.today: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._drafts: list[Draft] = []
        """Messages that were begun and not sent, the last one left at the end."""
        self._partners: list[str] = []
        """Ids of the agents that the person wrote to, the last one at the end."""

    def run(self, work: Awaitable[object]) -> None:
        """Do something slow; what goes wrong becomes a notice."""
        self.app.run_worker(self._guard(work), exit_on_error=False, group="commands")

    async def _guard(self, work: Awaitable[object]) -> None:
        try:
            await work
        except SynapseError as error:
            self.app.notice_error(error)
        except Exception as error:
            log.exception("command failed")
            self.app.notice_error(error)

    def _ask(self, screen: Screen[Answer], then: Callable[[Answer], object] | None = None) -> None:
        """Show a dialog; go on with its result when it has one."""

        def answered(result: Answer | None) -> None:
            if result is not None and then is not None:
                then(result)

        self.app.let_go()
        self.app.push_screen(screen, answered)

    def recipients(self) -> list[Recipient]:
        """Everyone a message can go to."""
        return recipients(self.host.addresses(), {agent.agent_id: agent for agent in self.main.agents})

    def do_compose(self, address: str, _task_id: str) -> None:
        """Open the composer: with the last draft, or the last one to a receiver when one was chosen."""
        everyone = self.recipients()
        chosen = "" if address == self.main.active else address
        drafts = [draft for draft in self._drafts if chosen in ("", draft.to)]
        draft = drafts[-1] if drafts else Draft(chosen or self._likely(everyone))
        self.compose(everyone, draft, self.app.notice)

    def _likely(self, everyone: Sequence[Recipient]) -> str:
        """Whom a message is probably for: the last receiver, or the only other agent; empty for neither."""
        others = {each.agent_id: each.address for each in everyone if each.agent_id != self.main.active}
        others.pop("", None)  # never everyone
        for agent_id in reversed(self._partners):
            if agent_id in others:
                return others[agent_id]
        only = list(others.values()) or [each.address for each in everyone]
        return only[0] if len(only) == 1 else ""

    def compose(self, everyone: Sequence[Recipient], begin: Draft, then: Callable[[str], object]) -> None:
        """Open the composer, and keep what is written in it until it is sent.

        Args:
            everyone: Who can be written to.
            begin: What to begin with.
            then: Shows what became of the message.
        """

        def forget(draft: Draft) -> None:
            self._drafts = [each for each in self._drafts if each not in (begin, draft)]

        def keep(draft: Draft) -> None:
            if draft != begin:
                forget(draft)
                self._drafts += [draft] if draft.text else []

        async def send(draft: Draft) -> str:
            result = await self._send(draft.to, draft.text, draft.priority)
            forget(draft)
            return result

        self._ask(Composer(everyone, send, draft=begin, keep=keep), then)

    def _wrote_to(self, receipts: Sequence[Receipt]) -> None:
        """Remember a receiver for the next message; a message to several says nothing about the next one."""
        if len(receipts) == 1:
            target = receipts[0].target
            self._partners = [*(each for each in self._partners if each != target), target]

    async def _send(self, address: str, text: str, priority: int) -> str:
        receipts = await self.host.send(address, text, priority=priority)
        refused = [receipt.error for receipt in receipts if receipt.error is not None]
        if refused and len(refused) == len(receipts):
            raise refused[0]
        self._wrote_to(receipts)
        return f"→ {self.summary(receipts)}"

    def send_mention(self, agent_id: str, address: str, text: str, priority: int) -> None:
        """Send what was typed as `@address text` in an agent's pane; its title shows what became of it."""
        self.main.show_delivery(agent_id, Delivery(SENDING, f"{self.label(address)}: sending"))
        self.app.run_worker(
            self._send_mention(agent_id, address, text, priority), exit_on_error=False, group="mentions"
        )

    async def _send_mention(self, agent_id: str, address: str, text: str, priority: int) -> None:
        try:
            receipts = await self.host.send(address, text, sender=agent_id, priority=priority)
        except SynapseError as error:
            self.main.show_delivery(agent_id, Delivery(FAILED, f"{self.label(address)}: {error.message}"))
            self.app.notice_error(error)
        except Exception as error:
            log.exception("mention failed")
            self.main.show_delivery(agent_id, Delivery(FAILED, f"{self.label(address)}: not sent"))
            self.app.notice_error(error)
        else:
            self._wrote_to(receipts)
            self.app.follow(agent_id, receipts)

    def summary(self, receipts: Sequence[Receipt]) -> str:
        """What became of handing a message over, for each receiver."""
        return " · ".join(f"{self.label(receipt.target)}: {self._status(receipt)}" for receipt in receipts)

    def _status(self, receipt: Receipt) -> str:
        # What becomes of it in another process is not told here, so no state is shown that would stay.
        here = receipt.error is not None or receipt.target in self.host.agents
        return receipt.status if here else SENT.word

    def label(self, agent_id: str) -> str:
        """What an agent is called."""
        agent = self.main.find(agent_id)
        return agent.label if agent is not None else agent_id

    def labels(self) -> dict[str, str]:
        """What the agents here are called, by id."""
        return {agent.agent_id: agent.label for agent in self.main.agents}

    def do_last_message(self, agent_id: str, _task_id: str) -> None:
        """Show what became of the message last sent from a pane."""
        lines = self.app.sent_from(agent_id)
        if len(lines) > 1:
            receipts = Receipts(lambda: self.app.sent_from(agent_id), self.today)
            self._ask(receipts, lambda task_id: self.do_show("", task_id))
        elif lines and lines[0].task is not None:
            self.do_show("", lines[0].task.id)
        elif lines:
            self.app.notice(lines[0].fate.words)
        else:
            self.app.notice("no message was sent from this pane yet")

    # Single messages

    def find_task(self, task_id: str) -> Task | None:
        """The newest snapshot of a message, or None."""
        return next((task for task in reversed(self.host.tasks) if task.id == task_id), None)

    def do_show(self, _agent_id: str, task_id: str) -> None:
        """Show a message whole."""
        task = self.find_task(task_id)
        if task is None:
            self.app.notice("that message is no longer kept", "warning")
            return
        detail = MessageDetail(task, self.labels(), steps=self.host.changes, now=self.today)
        self._ask(detail, lambda choice: self._chosen(choice, task_id))

    def _chosen(self, choice: str, task_id: str) -> None:
        {
            "cancel": self.do_cancel,
            "hold": self.do_hold,
            "send_now": self.do_send_now,
            "again": self.do_again,
        }[choice]("", task_id)

    def do_cancel(self, _agent_id: str, task_id: str) -> None:
        """Take a message back."""
        task = self.find_task(task_id)
        if task is None or task.state.final:
            self.app.notice("that message has ended already", "warning")
            return
        self.run(self.host.cancel_task(task.target, task.id))

    def do_send_now(self, _agent_id: str, task_id: str) -> None:
        """Put a waiting message before all others, released from a hold by a person."""
        session = self._where_it_waits(task_id)
        if session is not None:
            session.outbox.send_now(task_id)
            self.app.notice(f"to {self.label(session.agent_id)} as soon as it is safe")

    def _where_it_waits(self, task_id: str) -> AgentSession | None:
        """The session in whose outbox a message is; None, which is told, when it waits nowhere."""
        found = next((each for each in self.host.agents.values() if task_id in each.outbox), None)
        if found is None:
            self.app.notice("that message does not wait any more", "warning")
        return found

    def do_hold(self, _agent_id: str, task_id: str) -> None:
        """Keep a waiting message back until a person lets it go on, or let one go on that was kept back."""
        session = self._where_it_waits(task_id)
        if session is None:
            return
        if session.outbox.is_unread(task_id):
            self.app.notice(f"{self.label(session.agent_id)} has not read it yet; s has it typed")
            return
        act = session.control.release if session.outbox.is_parked(task_id) else session.control.hold
        try:
            changed = act(task_id)
        except SynapseError as error:
            self.app.notice_error(error)
        else:
            self.app.notice(f"to {self.label(session.agent_id)}: {changed.reason or 'goes on'}")

    def do_earlier(self, _agent_id: str, task_id: str) -> None:
        """Put a waiting message before the one that goes before it."""
        self._move(task_id, -1)

    def do_later(self, _agent_id: str, task_id: str) -> None:
        """Put a waiting message behind the one that comes after it."""
        self._move(task_id, 1)

    def _move(self, task_id: str, by: int) -> None:
        session = self._where_it_waits(task_id)
        if session is None:
            return
        if session.outbox.is_unread(task_id):
            self.app.notice(f"{self.label(session.agent_id)} has not read it yet; s has it typed")
            return
        count = len(session.control.waiting())
        position = min(max(session.control.find(task_id).position + by, 1), count)
        session.control.move(task_id, position)
        self.app.notice(f"to {self.label(session.agent_id)}: {position} of {count}")

    def do_release_held(self, agent_id: str, _task_id: str) -> None:
        """Let all messages to an agent go on that are held, but those that may have been sent already."""
        session = self.host.agents.get(agent_id)
        released = session.control.release_all() if session is not None else []
        self.app.notice(f"{plural(len(released), 'message')} to {self.label(agent_id)} released")

    def do_again(self, _agent_id: str, task_id: str) -> None:
        """Send the same text once more."""
        task = self.find_task(task_id)
        if task is not None:
            sender = "" if task.sender.sender_id == USER.sender_id else task.sender.sender_id
            self.run(self._again(task, sender if sender in self.host.agents else ""))

    async def _again(self, task: Task, sender: str) -> None:
        receipts = await self.host.send(task.target, task.text, sender=sender, priority=task.priority)
        self.app.notice(f"→ {self.summary(receipts)}")
