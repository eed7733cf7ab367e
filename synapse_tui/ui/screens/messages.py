"""Messages: composing, sending, tracking and managing them."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.core.addresses import Address, receivers, resolve
from synapse_tui.core.content import Artifact, artifact_words, part_words
from synapse_tui.core.errors import (
    AddressError,
    AgentNotFound,
    HistoryError,
    SynapseError,
    TakesNoMessages,
    TaskNotFound,
)
from synapse_tui.core.model import USER, DeliveryState, Task, TaskState
from synapse_tui.core.wording import moment, standing_words, with_names
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.records import Change, Record, TaskQuery
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import name_list, tr
from synapse_tui.widgets import views
from synapse_tui.widgets.fit import pad, shorten
from synapse_tui.widgets.pane import LastMessage
from synapse_tui.widgets.states import Mark, delivery_mark, reason_words, step_mark
from synapse_tui.widgets.text import answer_words, one_line, plural, printable, wrapped
from synapse_tui.widgets.views import commands_of, named, proof

from .composer import WAYS, Composer, Draft, Recipient, last_lines, recipients
from .dialog import Dialog, FittedText, ListDialog, Row, no_text
from .questions import AllowQuestion, QuestionQueue
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.host.routing import Receipt

log = logging.getLogger(__name__)

FAILED = Mark("×", "fail", tr("failed"))
SENDING = Mark("○", "faint", tr("sending"))
SENT = Mark("→", "work", tr("sent"))
KEPT = Mark("○", "faint", tr("kept"))
TITLE_ROOM = 58  # characters up to which a pane's title names each of several receivers
NAME_CELLS = 18
MOST_MARKDOWN = 20_000  # characters of an answer from which it is shown as plain text
LAST = 2  # messages of which the composer shows what became of them
RECALLED = 20  # messages that are read from the history to find these among
TEXT_CELLS = 200
ALLOWED = tr("messages are typed from now on")
DRAFT_KEPT = tr("the draft is kept: writing a message opens it again")
_WORD_CELLS = 11
_LEAST_REASON = 20  # minimum cells of a reason beside its step
_BELOW = 4  # where it begins beneath it
_BUTTONS = {
    views.SEND_NOW: tr("Send now (s)"),
    views.SEND_AGAIN_NOW: tr("Send again now (s)"),
    views.HOLD: tr("Hold (h)"),
    views.RELEASE: tr("Release (h)"),
    views.CANCEL: tr("Cancel message (c)"),
    views.SEND_AGAIN: tr("Send again (a)"),
}


class MessageActions:
    """Actions on messages; tracks the last one sent from each pane."""

    def __init__(self, app: Shell, questions: QuestionQueue) -> None:
        self._app = app
        self._host = app.host
        self._main = app.main
        self._questions = questions
        self._asked: set[str] = set()  # ids of agents without a profile that the user was asked about
        self.folder = self._host.folder
        self.templates = self._host.paths.templates
        self._sent_before: Sequence[Record] = ()  # the newest messages in the history
        # what agents are called that were renamed since this began, by their ids and what they were called
        self._renamed: dict[tuple[str, str], str] = {}
        self._drafts: list[Draft] = []  # unsent drafts, the most recent last
        self._given: dict[str, datetime] = {}  # when tasks that were written in panes were given, by id
        self._kept: list[tuple[str, Draft]] = []  # pane, and the draft to send once its receiver runs
        self._known: dict[str, Address] = {}  # agents of the project, running or closed, by id
        # pane in focus and agent that the user wrote to, the most recent last
        self._partners: list[tuple[str, str]] = []
        self._sent: dict[
            str, Sequence[Receipt]
        ] = {}  # by the id of the agent in whose pane the message was written
        self._tasks: dict[str, Task] = {}  # latest snapshots of the tasks in those receipts
        self._noticed: Sequence[Receipt] = ()  # what the latest notice of a sent message is about
        self._notice = ""

    # Writing

    def recipients(self) -> list[Recipient]:
        agents = {agent.agent_id: agent for agent in self._main.agents}
        written = {each.agent_id for each in self._host.agents.values() if each.reading().draft}
        ahead = {
            agent_id: {priority: session.outbox.ahead(priority) for priority in WAYS}
            for agent_id, session in self._host.agents.items()
        }
        return recipients(self._host.addresses(), agents, written, ahead)

    def action_compose(self, address: str = "") -> None:
        """Open the composer with the latest draft, or the latest draft to the given receiver."""
        try:
            if address:
                receivers(address, self._host.addresses())
        except TakesNoMessages as error:
            self._app.notice_error(error)
            return
        except AddressError:
            pass  # the composer says so
        drafts = [draft for draft in self._drafts if not address or draft.to == (address,)]
        to = address or self._likely(self.recipients())
        self.compose(drafts[-1] if drafts else Draft((to,) if to else ()), self._app.notice)

    def _likely(self, everyone: Sequence[Recipient]) -> str:
        """Return the last partner of the pane in focus, else of any pane, else the only other agent."""
        here = self._main.active
        others = {
            recipient.agent_id: recipient.address for recipient in everyone if recipient.agent_id != here
        }
        others.pop("", None)  # never `all`
        wrote = [partner for pane, partner in self._partners if pane == here]
        for agent_id in (*reversed(wrote), *(partner for _pane, partner in reversed(self._partners))):
            if agent_id in others:
                return others[agent_id]
        only = list(others.values()) or [recipient.address for recipient in everyone]
        return only[0] if len(only) == 1 else ""

    def compose(self, begin: Draft, then: Callable[[str], object]) -> None:
        """Open the composer and keep the draft until it is sent."""
        for kept in [each for each in self._kept if each[1] is begin]:  # from now on the user sends it
            self._kept.remove(kept)
            pane = self._main.deck.pane(kept[0])
            if pane is not None and pane.delivery is not None and pane.delivery.mark is KEPT:
                self._main.show_delivery(kept[0], None)

        def keeps(draft: Draft) -> bool:
            return bool(draft.text) and (draft != begin or begin in self._drafts)

        def keep(draft: Draft) -> None:
            kept = keeps(draft)
            if draft != begin:
                self._forget(begin, draft)
                self._drafts += [draft] if kept else []
            if kept:
                self._app.notice(DRAFT_KEPT)

        async def send(draft: Draft) -> str:
            said = await self._send(draft)
            self._forget(begin, draft)
            return said

        composer = Composer(self, send, draft=begin, keeps=keeps, keep=keep)
        self._app.ask(composer, then)
        self._app.spawn(self._recall())

    def _forget(self, *drafts: Draft) -> None:
        self._drafts = [draft for draft in self._drafts if draft not in drafts]

    async def _send(self, draft: Draft) -> str:
        """Send to each receiver, once to an agent that several addresses mean."""
        everyone = self._host.addresses()
        meant = {
            tuple(target.agent_id for target in receivers(name, everyone)): name
            for name in reversed(draft.to)
        }
        sent = [
            self._host.send(name, draft.text, priority=draft.priority) for name in reversed(meant.values())
        ]
        receipts = [receipt for each in await asyncio.gather(*sent) for receipt in each]
        refused = [receipt for receipt in receipts if receipt.error is not None]
        if refused and len(refused) == len(receipts) and refused[0].error is not None:
            raise refused[0].error
        self._keep_refused([each.target for each in refused], draft.text, draft.priority)
        self._wrote_to(self._main.active, receipts)
        return self.sent(receipts)

    def refusal(self, address: str) -> str:
        try:
            receivers(address, self._host.addresses())
        except SynapseError as error:
            return tr(error.message)
        return ""

    def last_lines(self, width: int) -> Content:
        labels, live = self._app.labels(), {task.id: task for task in self._host.tasks}
        sent = [(task, labels.get(task.target, task.target), True) for task in live.values()]
        there = {address.agent_id for address in self._host.addresses()}
        for record in self._sent_before:
            task = record.task
            if task.id not in live:
                name = record.names(labels).get(task.target, task.target)
                name = self._renamed.get((task.target, name), name)
                sent.append((task, name, task.target in there))
        own = [each for each in sent if _is_written(each[0])]
        own.sort(key=lambda each: each[0].created_at, reverse=True)
        return last_lines(own[:LAST], width, self._app.today())

    async def _recall(self) -> None:
        """Read what the user has sent to agents that are closed by now, for `last_lines`."""
        wanted = TaskQuery(sender=USER.sender_id, project=str(self._host.project), limit=RECALLED)
        try:
            self._sent_before = (await self._host.history.reader.page(wanted)).items
        except HistoryError as error:
            log.info("the last messages were not read: %s", error.message)

    def _wrote_to(self, pane: str, receipts: Sequence[Receipt]) -> None:
        if len(receipts) == 1:
            new = (pane, receipts[0].target)
            self._partners = [*(partner for partner in self._partners if partner != new), new]

    def summary(self, receipts: Sequence[Receipt]) -> str:
        def words(receipt: Receipt) -> str:
            name = self._app.label(receipt.target)
            task = self._host.task(receipt.task_id) if receipt.task_id else None
            if task is not None:
                return MessageProgress.of(receipt, self._app.labels(), task).words
            # The progress of messages to other processes is not reported here, so a state would never change.
            here = receipt.error is not None or receipt.target in self._host.agents
            return f"{name}: {standing_words(receipt.status) if here else SENT.word}"

        return " · ".join(map(words, receipts))

    def sent(self, receipts: Sequence[Receipt]) -> str:
        """Return the notice of a message just sent, which follows the message while it is shown."""
        self._noticed, self._notice = receipts, f"→ {self.summary(receipts)}"
        return self._notice

    def _follow_notice(self, task: Task) -> None:
        if any(receipt.task_id == task.id for receipt in self._noticed):
            before = self._notice
            self._app.reword(before, self.sent(self._noticed))

    # Messages sent from panes

    def send_mention(self, agent_id: str, address: str, text: str, priority: int) -> None:
        """Send a mention typed in an agent's pane; the pane's title shows the progress."""
        label = self._app.label(address)
        message = f"@{label} {one_line(text)}"
        self._main.show_delivery(agent_id, LastMessage(SENDING, tr(f"{label}: sending"), message=message))

        async def send() -> None:
            try:
                receipts = await self._host.send(address, text, sender=agent_id, priority=priority)
            except Exception as error:
                reason = error.message if isinstance(error, SynapseError) else tr("not sent")
                self._main.show_delivery(agent_id, LastMessage(FAILED, f"{label}: {reason}", over=True))
                self._keep_refused([address], text, priority)
                if not isinstance(error, SynapseError):
                    raise
                self._app.notice_error(error, DRAFT_KEPT)
                return
            self._wrote_to(agent_id, receipts)
            self.follow(agent_id, receipts)
            refused = [receipt.target for receipt in receipts if receipt.error is not None]
            if self._keep_refused(refused, text, priority):
                self._app.notice(DRAFT_KEPT)

        self._app.spawn(send())

    def _keep_refused(self, targets: Sequence[str], text: str, priority: int) -> bool:
        """Keep what was not accepted as a draft to those agents; return whether there was any."""
        known = {recipient.agent_id: recipient.address for recipient in self.recipients()}
        to = tuple(known.get(target, target) for target in targets)
        self._drafts += [Draft(to, text, priority)] if to else []
        return bool(to)

    def addresses(self) -> list[Address]:
        """All receivers of mentions; agents of the project that were closed meanwhile have ended."""
        found = self._host.addresses()
        present = {each.agent_id for each in found}
        closed = [each for each in self._known.values() if each.agent_id not in present]
        self._known |= {each.agent_id: each for each in found if each.local and not each.external}
        return [*found, *(replace(each, live=False) for each in closed)]

    def keep_mention(self, agent_id: str, address: str, text: str, priority: int) -> None:
        """Keep a mention as a draft until an agent has the address; the composer opens it before."""
        draft = Draft((address,), text, priority)
        self._drafts.append(draft)
        self._kept.append((agent_id, draft))
        self._main.show_delivery(agent_id, LastMessage(KEPT, tr(f"{address}: kept until it is back")))
        self._app.notice(
            f"kept until {address} is back or the session ends; {self._app.keymap.way('compose')} opens it",
            still=lambda: self._main.is_current and any(kept is draft for _id, kept in self._kept),
        )
        self.send_kept()

    @property
    def unsent(self) -> int:
        """How many messages are kept that are lost when the session ends."""
        return len(self._drafts)

    def send_kept(self) -> None:
        """Send the mentions kept for agents that run now; called when agents come, go or change."""
        everyone = self.addresses()
        for pane, draft in list(self._kept):
            try:
                resolve(draft.to[0], everyone, sender=pane)
            except AddressError:
                continue
            if pane in self._host.agents:
                self._kept.remove((pane, draft))
                self._forget(draft)
                self.send_mention(pane, draft.to[0], draft.text, draft.priority)

    def follow(self, agent_id: str, receipts: Sequence[Receipt]) -> None:
        self._sent[agent_id] = receipts
        wanted = {receipt.task_id for each in self._sent.values() for receipt in each if receipt.task_id}
        found = ((task_id, self._host.task(task_id) or self._tasks.get(task_id)) for task_id in wanted)
        self._tasks = {task_id: task for task_id, task in found if task is not None}
        self._given = {task_id: at for task_id, at in self._given.items() if task_id in self._tasks}
        for task in self._tasks.values():
            self._note_given(task)
        self._show_delivery(agent_id)

    def _note_given(self, task: Task) -> None:
        """Remember when a message was given to its agent; while it is typed, when that began."""
        if task.delivery not in _GIVEN:
            self._given.pop(task.id, None)
        elif task.id not in self._given:
            self._given[task.id] = task.since if task.state is TaskState.WORKING else task.updated_at

    def task_changed(self, task: Task) -> None:
        self._questions.drop_needless()
        self._follow_notice(task)
        if task.id in self._tasks:
            self._tasks[task.id] = task
            self._note_given(task)
            for agent_id, receipts in self._sent.items():
                if any(receipt.task_id == task.id for receipt in receipts):
                    self._show_delivery(agent_id)

    def _show_delivery(self, agent_id: str) -> None:
        sent = self.sent_from(agent_id)
        ago = self._main.sidebar.clock() - self._main.now().timestamp()
        self._main.show_delivery(agent_id, waiting(delivery_of(sent), sent, self._given, ago))

    def sent_from(self, agent_id: str) -> list[MessageProgress]:
        """Return the progress of the last message sent from a pane, per receiver; empty if there is none."""
        receipts, labels = self._sent.get(agent_id, ()), self._app.labels()
        return [MessageProgress.of(receipt, labels, self._tasks.get(receipt.task_id)) for receipt in receipts]

    def show_last(self, agent_id: str) -> None:
        """Show what became of the last message sent from a pane."""
        sent = self.sent_from(agent_id)
        if len(sent) > 1:
            text = next((each.task.text for each in sent if each.task is not None), "")

            def rows(width: int) -> Iterator[Row]:
                return progress_rows(self.sent_from(agent_id) or sent, width, self._app.today())

            note = shorten(one_line(text), TEXT_CELLS)
            self._app.ask(ListDialog(tr(f"Message to {len(sent)} agents"), rows, note=note), self.action_show)
        elif sent and sent[0].task is not None:
            self.action_show(sent[0].task.id)
        elif sent:
            self._app.notice(sent[0].words)
        else:
            self._app.notice("no message was written in this pane since it opened")

    # Single messages

    def find_task(self, task_id: str) -> Task | None:
        return self._host.task(task_id)

    def action_show(self, task_id: str) -> None:
        task = self.find_task(task_id)
        if task is None:
            self._app.spawn(self._show_stored(task_id))
        else:
            self._show(task)

    async def _show_stored(self, task_id: str) -> None:
        """Show a message that only the history has: its agent has been closed since."""
        try:
            story = await self._host.history.reader.story(task_id)
        except TaskNotFound:
            self._app.notice("that message no longer exists", "warning")
        else:
            self._show(story.record.task)

    def _show(self, task: Task) -> None:
        def chosen(choice: str) -> None:
            if choice == "again":
                self._app.spawn(self._again(task))
            else:
                self._app.perform(choice, task.id)

        detail = MessageDetail(
            task,
            self._app.labels(),
            steps=self._host.changes,
            now=self._app.today,
            parked=lambda: any(agent.outbox.is_parked(task.id) for agent in self._host.agents.values()),
        )
        self._app.ask(detail, chosen)

    def action_cancel(self, task_id: str) -> None:
        task = self.find_task(task_id)
        if task is None or task.state.final:
            self._app.notice("that message has already ended", "warning")
            return

        async def cancel() -> None:
            await self._host.cancel_task(task.target, task.id)
            self._app.notice(f"to {self._app.label(task.target)}: {tr('canceled')}")

        self._app.spawn(cancel())

    def action_send_now(self, task_id: str) -> None:
        session = self._where_it_waits(task_id)
        if session is not None:
            session.control.send_now(task_id)
            where = self._app.label(session.agent_id)
            self._app.notice(
                f"goes to {where} as soon as it is safe", still=lambda: self._waits(task_id), long=True
            )

    def _waits(self, task_id: str) -> bool:
        task = self.find_task(task_id)
        return task is not None and task.delivery.waits

    def _where_it_waits(self, task_id: str, *, unread: bool = True) -> AgentSession | None:
        """Return the session whose outbox has the message, or show a notice and return None.

        With `unread=False`, messages that are unread in the inbox are refused too.
        """
        found = next((agent for agent in self._host.agents.values() if task_id in agent.outbox), None)
        if found is None:
            self._app.notice("that message is no longer waiting", "warning")
        elif not unread and found.outbox.is_unread(task_id):
            unread_by = self._app.label(found.agent_id)
            still = functools.partial(found.outbox.is_unread, task_id)
            self._app.notice(f"{unread_by} has not read it yet; s types it now", still=still)
            return None
        return found

    def action_hold(self, task_id: str) -> None:
        session = self._where_it_waits(task_id, unread=False)
        if session is None:
            return
        task = self.find_task(task_id)
        asks = task is not None and Reason.of(task.reason) is Reason.NO_PROFILE
        if asks:
            session.control.allow()
        held = asks or session.outbox.is_parked(task_id)
        act = session.control.release if held else session.control.hold
        try:
            changed = act(task_id)
        except SynapseError as error:
            self._app.notice_error(error)
        else:
            words = ALLOWED if asks else tr(changed.reason or "released")

            def still() -> bool:
                task = self.find_task(task_id)
                canceled = task is not None and task.delivery is DeliveryState.CANCELED
                return not canceled if held else session.outbox.is_parked(task_id)

            self._app.notice(f"to {self._app.label(session.agent_id)}: {words}", still=still)

    def action_earlier(self, task_id: str) -> None:
        self._move(task_id, -1)

    def action_later(self, task_id: str) -> None:
        self._move(task_id, 1)

    def _move(self, task_id: str, by: int) -> None:
        session = self._where_it_waits(task_id, unread=False)
        if session is None:
            return
        count = len(session.control.waiting())
        position = min(max(session.control.find(task_id).position + by, 1), count)
        session.control.move(task_id, position)

        def still() -> bool:
            return task_id in session.outbox and session.control.find(task_id).position == position

        self._app.notice(f"to {self._app.label(session.agent_id)}: {position} of {count}", still=still)

    def action_release_held(self, agent_id: str) -> None:
        """Release all held messages to an agent, except those that may already have been sent."""
        session = self._host.agents.get(agent_id)
        if session is not None:
            session.control.allow()
        released = session.control.release_all() if session is not None else []
        self._app.notice(f"{plural(len(released), 'message')} to {self._app.label(agent_id)} released")

    def agent_renamed(self, agent_id: str, before: str) -> None:
        """Say what becomes of messages that are shown under the names that agents have now."""
        now = self._app.label(agent_id)
        earlier = [key for key, name in self._renamed.items() if (key[0], name) == (agent_id, before)]
        self._renamed |= dict.fromkeys([*earlier, (agent_id, before)], now)
        self._renamed.pop((agent_id, now), None)
        for pane_id in self._sent:
            pane = self._main.deck.pane(pane_id)
            shown = pane.delivery if pane is not None else None
            if shown is not None and shown.mark not in (SENDING, KEPT, FAILED):
                self._show_delivery(pane_id)

    def agent_removed(self, agent_id: str) -> None:
        self._questions.drop_needless()
        self._asked.discard(agent_id)  # the next agent with this id may be another program

    def ask_to_allow(self, task: Task) -> None:
        """Ask once whether messages may be typed into an agent without a profile."""
        agent_id = task.target
        agent = self._host.agents.get(agent_id)
        if agent is None or agent_id in self._asked or Reason.of(task.reason) is not Reason.NO_PROFILE:
            return
        self._asked.add(agent_id)
        own = task.sender.sender_id == USER.sender_id
        name, sender = self._app.label(agent_id), "" if own else self._app.label(task.sender.sender_id)

        def needed() -> bool:
            return self._host.agents.get(agent_id) is agent and any(
                Reason.of(each.reason) is Reason.NO_PROFILE for each in agent.tasks.unfinished()
            )

        def answered(yes: bool | None) -> None:
            session = self._host.agents.get(agent_id)
            if yes is None:
                self._asked.discard(agent_id)
            elif yes and session is not None:
                session.control.allow()
                self._app.notice(f"to {name}: {ALLOWED}")

        self._questions.ask(
            lambda: AllowQuestion(name, agent.profile.command_line, sender), answered, needed=needed
        )

    async def _again(self, task: Task) -> None:
        name, there = self._app.label(task.target), self._host.addresses()
        found = [each.agent_id for each in there if task.target == each.agent_id]
        found += [each.agent_id for each in there if each.name and each.name == name]  # it was opened again
        if not found:
            way = self._app.keymap.way("reopen_agent")
            raise AgentNotFound(f"{name} is not open", f"{way} opens closed agents again")
        sender = task.sender.sender_id
        sender = sender if sender != USER.sender_id and sender in self._host.agents else ""
        receipts = await self._host.send(found[0], task.text, sender=sender, priority=task.priority)
        if sender:
            self.follow(sender, receipts)
        self._app.notice(self.sent(receipts))


@dataclass(frozen=True, slots=True)
class MessageProgress:
    """The progress of a message to one agent.

    Attributes:
        task_id: Empty if no task was created.
        settled: Whether it has succeeded and nothing more is expected.
        task: None if the task is not known here.
    """

    name: str
    mark: Mark
    reason: str = ""
    task_id: str = ""
    settled: bool = False
    task: Task | None = None

    @classmethod
    def of(cls, receipt: Receipt, names: Mapping[str, str], task: Task | None) -> MessageProgress:
        name = names.get(receipt.target, receipt.target)
        if task is not None:
            settled = task.delivery is DeliveryState.DONE and task.state is TaskState.COMPLETED
            reason = with_names(task.reason, names)
            return cls(name, delivery_mark(task), reason, task.id, settled, task)
        if receipt.error is not None:
            return cls(name, FAILED, receipt.error.message)
        # The progress of messages to other processes is not reported here, so a state would never change.
        return cls(name, SENT, "", receipt.task_id, settled=True)

    @property
    def over(self) -> bool:
        """Whether nothing more is expected; of a message without a task nothing is heard here."""
        return self.task is None or self.task.state.final

    @property
    def words(self) -> str:
        """Describe the progress: `gemini: held: you have a draft`."""
        reason = tr(self.reason)
        if reason.startswith(self.mark.word):
            return f"{self.name}: {reason}"
        return f"{self.name}: {self.mark.word}" + (f": {reason}" if reason else "")


def summary(sent: Sequence[MessageProgress], room: int) -> str:
    whole = " · ".join(progress.words for progress in sent)
    if len(sent) == 1 or len(whole) <= room:
        return whole
    short = " · ".join(f"{progress.mark.glyph} {progress.name}" for progress in sent)
    if len(short) <= room:
        return short
    counts = Counter(progress.mark.word for progress in sent)
    return name_list(f"{count} {word}" for word, count in counts.items())


def delivery_of(sent: Sequence[MessageProgress]) -> LastMessage:
    """Summarize a message for a pane's title, with a link to the task or to all receipts."""
    failed = [progress for progress in sent if progress.mark.glyph == FAILED.glyph]
    open_ = [progress for progress in sent if not progress.settled]
    first = (failed or open_ or sent)[0]
    several = len(sent) > 1
    linked = "" if several else first.task_id
    return LastMessage(
        first.mark,
        summary(sent, TITLE_ROOM),
        linked,
        settled=not open_,
        over=all(progress.over for progress in sent),
        several=several,
    )


def _is_written(task: Task) -> bool:
    """Whether the user has written it, and no watch."""
    is_own = task.sender.sender_id == USER.sender_id
    return is_own and "nudge" not in task.metadata and not task.watched


_GIVEN = (DeliveryState.TYPING, DeliveryState.SUBMITTING, DeliveryState.SUBMITTED)


def waiting(
    delivery: LastMessage, sent: Sequence[MessageProgress], given_at: Mapping[str, datetime], offset: float
) -> LastMessage:
    """Add what a pane shows of a message until its answer is there.

    Args:
        delivery: What its title shows.
        sent: The message's progress with each receiver.
        given_at: When each task was given to its agent, by id.
        offset: Seconds from those times to the screen's clock.
    """
    tasks = [progress.task for progress in sent if progress.task is not None]
    if not tasks or delivery.settled or all(task.state.final for task in tasks):
        return delivery
    names = name_list(progress.name for progress in sent)
    given = all(task.id in given_at and task.state is not TaskState.INPUT_REQUIRED for task in tasks)
    return replace(
        delivery,
        message=f"@{names} {one_line(tasks[0].text)}",
        receiver=names,
        sent=max(given_at[task.id] for task in tasks).timestamp() + offset if given else None,
    )


def progress_rows(sent: Sequence[MessageProgress], width: int, now: datetime) -> Iterator[Row]:
    """Yield two lines per receiver: name, progress, time; then the answer or the reason."""
    for progress in sent:
        answer = one_line(answer_words(progress.task)) if progress.task is not None else ""
        head = f" {progress.mark.glyph} {pad(progress.name, NAME_CELLS)} "
        answered = progress.task is not None and progress.task.answered
        word = tr("answered") if answered else progress.mark.word
        tail = f"{word}  {moment(progress.task.since, now)}" if progress.task is not None else word
        below = f"↳ {answer}" if answer else tr(one_line(progress.reason))
        yield (
            progress.task.id if progress.task is not None else "",
            Content.assemble(
                (head, "bold $ink"),
                " " * max(1, width - cell_len(head) - cell_len(tail)),
                (tail, f"${progress.mark.colour}"),
                ("\n   " + shorten(below, width - 3), "$muted"),
            ),
        )


class MessageDetail(Dialog[str]):
    """Shows a message in full; closes with the id of the action to run on it."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [
        ("c", "choose('cancel')"),
        ("h", "choose('hold')"),
        ("s", "choose('send_now')"),
        ("a", "choose('again')"),
    ]

    def __init__(
        self,
        task: Task,
        labels: Mapping[str, str],
        *,
        steps: Callable[[str], Awaitable[Sequence[Change]]],
        now: Callable[[], datetime],
        parked: Callable[[], bool],
    ) -> None:
        super().__init__(parties(task, labels))
        self.message = task
        self._labels = labels
        self._parked = parked
        self._shown_choices: dict[str, str] = {}
        self._read_steps = steps
        self._now = now
        self._timeline: Callable[[int], Content] = no_text

    def body(self) -> ComposeResult:
        from synapse_tui.widgets.answer_text import AnswerText  # noqa: PLC0415 - not needed for the first frame

        answer = "\n\n---\n\n".join(
            printable(artifact_words(artifact)) for artifact in self.message.artifacts
        )
        with VerticalScroll(classes="body"):
            yield Static(detail_text(self.message, self._labels), id="detail", markup=False)
            if answer:
                yield Static(
                    Content.styled(f"\n{_answer_head(*self.message.artifacts)}", "bold $accent"), markup=False
                )
            if len(answer) > MOST_MARKDOWN:
                yield Static(answer, markup=False)
            elif answer:
                yield AnswerText(answer)
            yield FittedText(self._timeline, id="timeline")

    def on_mount(self) -> None:
        self._read()

    def _read(self) -> None:
        self.run_latest(self._show_steps, "timeline")

    async def _show_steps(self) -> None:
        try:
            changes = await self._read_steps(self.message.id)
        except SynapseError as error:
            failed = Content.assemble((tr("\nTimeline  "), "bold $accent"), (error.message, "$muted"))
            self._timeline = lambda _width: failed
        else:
            now, watched, labels = self._now(), self.message.watched, self._labels
            self._timeline = lambda width: timeline_text(changes, now, width, labels, watched=watched)[1:]
        self.query_one("#timeline", FittedText).fit(self._timeline)

    def buttons(self) -> ComposeResult:
        self._shown_choices = self._choices()
        for choice, text in self._shown_choices.items():
            yield Button(text, id=choice, compact=True)
        yield from super().buttons()

    def _choices(self) -> dict[str, str]:
        found = commands_of(self.message, parked=self._parked())
        return {command: _BUTTONS[words] for command, words in found.items()}

    def update(self, task: Task) -> None:
        before = self._shown_choices, self.message.artifacts
        self.message = task
        self.query_one("#detail", Static).update(detail_text(task, self._labels))
        self._read()
        if (self._choices(), task.artifacts) != before:
            self.refresh(recompose=True)

    def action_choose(self, choice: str) -> None:
        if choice in self._choices():
            self.dismiss(choice)

    def pressed(self, button: str) -> None:
        self.dismiss(button if button in self._choices() else None)


def parties(task: Task, labels: Mapping[str, str]) -> str:
    return f"{named(task.sender.sender_id, labels)} → {named(task.target, labels)}"


def detail_text(task: Task, names: Mapping[str, str]) -> Content:
    mark, unverified = delivery_mark(task), proof(task.sender).strip()
    parts: list[tuple[str, str]] = [
        (f"{mark.glyph} {mark.word}", f"bold ${mark.colour}"),
        (f"  {reason_words(task.reason, mark, names)}".rstrip() + "\n", f"${mark.colour}"),
        (tr(f"priority {task.priority} · task {task.short_id} · "), "$muted"),
        (f"{task.created_at.astimezone():%H:%M:%S}", "$muted"),
        (tr(f" · continues task {task.follows[:8]}") if task.follows else "", "$muted"),
        (f"\n{unverified}\n\n" if unverified else "\n\n", "$muted"),
        *asked(task),
    ]
    return Content.assemble(*parts)


def asked(task: Task) -> list[tuple[str, str]]:
    """Return the message and its follow-ups as styled runs of text."""
    parts = [(printable(task.text), "$ink")]
    for message in task.messages[1:]:
        head = tr("\n\n↳ question\n") if message.role == "agent" else tr("\n\n→ follow-up\n")
        words = "\n".join(map(part_words, message.parts))
        parts += [(head, "bold $accent"), (printable(words), "$ink")]
    return parts


def said(task: Task) -> list[tuple[str, str]]:
    """Return the message, its follow-ups and its answers as styled runs of text."""
    parts = asked(task)
    for artifact in task.artifacts:
        parts += [
            (f"\n\n{_answer_head(artifact)}\n", "bold $accent"),
            (printable(artifact_words(artifact)), "$ink"),
        ]
    return parts


def _answer_head(*artifacts: Artifact) -> str:
    return (
        tr("↳ answer (incomplete)") if any(artifact.truncated for artifact in artifacts) else tr("↳ answer")
    )


def timeline_text(
    changes: Sequence[Change],
    now: datetime,
    width: int,
    names: Mapping[str, str],
    *,
    watched: bool = False,
) -> Content:
    """Render the steps of a message, oldest first: time, step, reason, which keeps to its column."""
    if not changes:
        return Content("")
    parts: list[tuple[str, str]] = [(tr("\n\nTimeline\n"), "bold $accent")]
    for change in changes:
        state, delivery = TaskState(change.state), DeliveryState(change.delivery)
        mark = step_mark(state, delivery, change.reason, watched=watched)
        when, step = f"  {moment(change.time, now)}  ", f"{mark.glyph} {pad(mark.word, _WORD_CELLS)}"
        column, reason = cell_len(when + step), reason_words(change.reason, mark, names)
        beside = width - column >= _LEAST_REASON
        indent = " " * (column if beside else _BELOW)
        rows = wrapped(reason, width - len(indent))
        parts += [(when, "$faint"), (step, f"${mark.colour}")]
        parts.append(
            (f"{'' if beside else f'{chr(10)}{indent}'}{f'{chr(10)}{indent}'.join(rows)}\n", "$muted")
        )
    return Content.assemble(*parts).rstrip()
