"""The external agents of a host: who they are, what is said with them, and by whom."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from synapse_tui.a2a.external.conversation import Conversation, remote_id
from synapse_tui.a2a.external.desk import AddOrder, Offer
from synapse_tui.a2a.external.journal import Journal, Saved
from synapse_tui.a2a.external.record import ExternalAgent
from synapse_tui.a2a.external.store import ExternalStore
from synapse_tui.a2a.external.talks import Talks
from synapse_tui.addresses import Address
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import TaskEnded
from synapse_tui.events import AgentAdded, Event, EventBus, ExternalsChanged, ExternalTalked, TaskChanged
from synapse_tui.messages.text import check_size
from synapse_tui.model import DeliveryState, ReplyState, Sender, Task, TaskState
from synapse_tui.paths import UserPaths
from synapse_tui.process_times import is_alive, process_name

from .external_cards import CardWatch
from .external_known import KnownAgents
from .external_replies import ExternalReplies
from .external_writer import ConversationWriter

log = logging.getLogger(__name__)

INTERVAL = 2.0
"""Seconds between two looks at the registry."""
MAX_SEEN = 5000
"""Snapshots that are remembered to tell changes."""
NOT_KNOWN = "synapse-tui ended while it was sent: it is not known whether the agent has got it"


class Externals:
    """External agents, as an `ExternalDesk` for routes, application and router.

    Args:
        project: Whose conversations they are.
        paths: Folders of the user.
        events: Told of everything that happens.
        agents: The hosted agents, by id; answers to what they asked are typed into them.
        environ: Gives the environment in which tokens are.
        types: Gives the types of hosted agents: no alias may be one.
        make_id: Makes UUIDs.
        now: The time, aware.
    """

    def __init__(
        self,
        project: Path,
        *,
        paths: UserPaths,
        events: EventBus,
        agents: Mapping[str, AgentSession],
        environ: Callable[[], Mapping[str, str]],
        types: Callable[[], Sequence[str]],
        make_id: Callable[[], str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._events = events
        self._make_id = make_id
        self._now = now
        self._store = ExternalStore(paths.external)
        self._known = KnownAgents(self._store, environ=environ, types=types, changed=self._changed_agents)
        self._journal = Journal(paths.talks, project, process_name(os.getpid()))
        self._writer = ConversationWriter(self._journal, events)
        self._conversations: dict[str, Conversation] = {}
        self._seen_tasks: dict[str, Task] = {}
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._loaded = asyncio.Event()
        self._talks = Talks(environ, self._journal.files, self._told)
        self._replies = ExternalReplies(agents, self._owe_no_more)
        self._cards = CardWatch(environ, events)
        self._unsubscribe = events.subscribe(self._on_event)

    # -- life ---

    def start(self) -> None:
        """Begin to read the registry and what was said before."""
        self._watch = asyncio.get_running_loop().create_task(self._run(), name="externals")

    def load(self) -> None:
        """Go on with what earlier processes began; called once the first frame is drawn."""
        self._loaded.set()

    async def stop(self) -> None:
        """Let go of everything; what goes on at the agents is followed by the next process."""
        self._unsubscribe()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self._talks.stop()
        await self._replies.stop()
        await self._cards.stop()
        await self._writer.stop(self._conversations.values())

    async def _run(self) -> None:
        saved = await asyncio.to_thread(lambda: {a: self._journal.load(a) for a in self._journal.aliases()})
        await self._known.look()
        for alias, each in saved.items():
            if self._known.has(alias) and self._known.get(alias).identity == each.agent:
                self._adopt(alias, each)
            else:  # it was said with an agent that is no more
                await asyncio.to_thread(self._journal.forget, alias)
        self._events.publish(ExternalsChanged())
        await self._loaded.wait()
        for alias, each in saved.items():
            self._take_up(alias, each)
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                await self._known.look()
            except Exception:
                log.exception("the registry of external agents could not be read")

    def _adopt(self, alias: str, saved: Saved) -> None:
        conversation = self._new(alias)
        conversation.adopt(saved.tasks, saved.entries)
        conversation.context_id = saved.context_id
        conversation.opened = saved.opened
        self._journal.news(conversation)  # it is all written already
        self._conversations[alias] = conversation
        self._seen_tasks.update({task.id: task for task in conversation.tasks})
        self._events.publish(ExternalTalked(alias))

    def _take_up(self, alias: str, saved: Saved) -> None:
        """Go on with tasks of a process that is no more."""
        conversation = self._conversations.get(alias)
        if conversation is None or not self._known.has(alias):
            return
        agent = self._known.get(alias)
        for task in conversation.tasks:
            owner = saved.owners.get(task.id, "")
            elsewhere = owner != process_name(os.getpid()) and owner and is_alive(owner)
            if elsewhere or task.state.final or self._talks.is_running(task.id):
                continue
            if task.delivery is DeliveryState.QUEUED:
                self._told(conversation, conversation.fail(task.id, NOT_KNOWN))
            elif remote_id(task) and task.state is not TaskState.INPUT_REQUIRED:
                self._talks.follow(agent, conversation, task)

    # -- the registry ---

    @property
    def agents(self) -> Sequence[ExternalAgent]:
        """All external agents, by alias."""
        return self._known.agents

    def has(self, alias: str) -> bool:
        """Whether there is an external agent of exactly that alias."""
        return self._known.has(alias)

    def get(self, alias: str) -> ExternalAgent:
        """The agent of an alias.

        Raises:
            AgentNotFound: There is none.
        """
        return self._known.get(alias)

    def addresses(self) -> list[Address]:
        """What they can be called."""
        return [external_address(agent) for agent in self._known.agents]

    async def preview(self, order: AddOrder) -> Offer:
        """Find an agent without keeping it.

        Raises:
            ConfigError: The URL, the alias or the token is of no use.
            PeerError: It cannot be reached, or its card not be used.
        """
        return await self._known.preview(order, self._now)

    async def keep(self, offer: Offer) -> ExternalAgent:
        """Keep an agent that was found."""
        return await self._known.keep(offer)

    async def remove(self, alias: str) -> ExternalAgent:
        """Forget an agent and what was said with it.

        Raises:
            AgentNotFound: There is none.
        """
        return await self._known.remove(alias)

    async def _changed_agents(self) -> None:
        """End the conversations with agents that are no more."""
        for alias, talk in tuple(self._conversations.items()):
            if not self._known.has(alias) or self._known.get(alias).identity != talk.agent:
                await self._end(alias)
        self._events.publish(ExternalsChanged())

    async def _end(self, alias: str) -> None:
        """End a conversation and forget it: its agent is gone."""
        conversation = self._conversations.pop(alias, None)
        for task in conversation.tasks if conversation is not None else ():
            self._talks.drop(task.id)
        await self._writer.forget(alias)

    # -- conversations ---

    @property
    def tasks(self) -> list[Task]:
        """The tasks of all conversations."""
        return [task for conversation in self._conversations.values() for task in conversation.tasks]

    def conversation(self, alias: str) -> Conversation | None:
        """What was said with an agent; None before anything was."""
        return self._conversations.get(alias)

    def set_opened(self, alias: str, *, opened: bool) -> None:
        """Note whether the person has a conversation open.

        Raises:
            AgentNotFound: There is no such agent.
        """
        conversation = self._talk_with(self.get(alias).alias)
        if conversation.opened is not opened:
            conversation.opened = opened
            self._writer.changed(conversation)

    def begin_anew(self, alias: str) -> None:
        """Let the next message begin a new conversation at the agent.

        Raises:
            AgentNotFound: There is no such agent.
        """
        conversation = self._talk_with(self.get(alias).alias)
        conversation.context_id = ""
        conversation.note("a new conversation begins here")
        self._writer.changed(conversation)

    async def send(
        self, alias: str, text: str, *, sender: Sender, expected: bool = False, author: str = ""
    ) -> Task:
        """Send a message; returns as soon as it is on its way.

        It goes on with the task of which the agent has asked the sender something.

        Raises:
            AgentNotFound: There is no such agent.
            MessageError: The message is empty or too large.
        """
        await self._known.look()  # it may be another one since just now
        agent = self.get(alias)
        check_size(text)
        conversation = self._talk_with(agent.alias)
        asked = conversation.asked_of(sender)
        task = None
        if asked is not None:
            try:
                task = conversation.go_on(asked.id, text, sender)
                task = conversation.change(task.id, response_expected=expected)
            except TaskEnded:
                task = None
        if task is None:
            task = conversation.begin(text, sender, expected=expected, author=author)
        conversation.opened = True
        self._talks.send(agent, conversation, task, text, self._make_id())
        self._cards.look(agent)
        self._told(conversation, task)
        return task

    async def cancel(self, alias: str, task_id: str) -> Task:
        """Cancel a task.

        Raises:
            AgentNotFound: There is no such agent.
            TaskNotFound: It has no such task.
            TaskEnded: It has ended.
            PeerError: The agent does not cancel it.
        """
        agent = self.get(alias)
        task = self.task(alias, task_id)
        if task.state.final:
            raise TaskEnded(f"task {task.short_id} is {task.state} already")
        return await self._talks.cancel(agent, self._talk_with(agent.alias), task)

    def task(self, alias: str, task_id: str) -> Task:
        """A task.

        Raises:
            AgentNotFound: There is no such agent.
            TaskNotFound: It has no such task.
        """
        return self._talk_with(self.get(alias).alias).get(task_id)

    async def wait(self, alias: str, task_id: str, *, seen: str, seconds: float) -> Task:
        """A task as soon as it is another one than was seen, is at rest, or the time is over.

        Raises:
            AgentNotFound: There is no such agent.
            TaskNotFound: It has no such task.
        """
        task = self.task(alias, task_id)
        if at_rest(task) or (seen and task.updated_at.isoformat() != seen):
            return task
        news = asyncio.Event()
        waiters = self._waiters.setdefault(task.id, set())
        waiters.add(news)
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            pass
        finally:
            waiters.discard(news)
            if not waiters:
                self._waiters.pop(task.id, None)
        return self.task(alias, task.id)

    def collected(self, alias: str, task: Task) -> None:
        """Note that the asker has got the end of a task: it is not typed to it as well."""
        conversation = self._conversations.get(alias)
        if conversation is not None and self._replies.collected(task):
            self._owe_no_more(task, ReplyState.TOLD)

    def _new(self, alias: str) -> Conversation:
        agent = self._known.get(alias).identity
        return Conversation(alias, make_id=self._make_id, now=self._now, agent=agent)

    def _talk_with(self, alias: str) -> Conversation:
        conversation = self._conversations.get(alias)
        if conversation is None:
            conversation = self._conversations[alias] = self._new(alias)
        return conversation

    # -- what happens ---

    def _told(self, conversation: Conversation, task: Task) -> None:
        """A conversation has changed; its task may have."""
        if self._conversations.get(conversation.alias) is not conversation:
            return  # the agent was removed meanwhile
        before = self._seen_tasks.get(task.id)
        if before != task:
            if at_rest(task) and (before is None or not at_rest(before)):
                task = self._came_to_rest(conversation, task)
            self._seen_tasks[task.id] = task
            if len(self._seen_tasks) > 2 * MAX_SEEN:
                self._seen_tasks = {each.id: each for each in self.tasks}
            self._events.publish(TaskChanged(task))
            for news in self._waiters.get(task.id, ()):
                news.set()
        self._writer.changed(conversation)

    def _came_to_rest(self, conversation: Conversation, task: Task) -> Task:
        """Owe an agent that asked its answer."""
        if task.delivery is not DeliveryState.FAILED:
            self._cards.answered(conversation.alias, self._store, self._now())
        if self._replies.owes(task):
            task = conversation.change(task.id, reply=ReplyState.DUE)
            self._replies.begin(task)
        return task

    def _owe_no_more(self, task: Task, state: ReplyState) -> None:
        conversation = self._conversations.get(task.target)
        if conversation is not None and conversation.knows(task.id):
            newest = conversation.change(task.id, reply=state)
            self._seen_tasks[task.id] = newest
            self._writer.changed(conversation)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AgentAdded):
            for task in self.tasks:
                if task.reply is ReplyState.DUE and task.sender.sender_id == event.agent_id:
                    self._replies.begin(task)


def at_rest(task: Task) -> bool:
    """Whether nothing more comes of a task before somebody says something."""
    return task.state.final or task.state is TaskState.INPUT_REQUIRED


def external_address(agent: ExternalAgent) -> Address:
    """The address of an external agent."""
    return Address(agent.alias, "external", "", 0, agent.url, local=False, external=True)
