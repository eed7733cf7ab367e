"""The operations of the protocol (A2A section 3.1) on the tasks of whichever agent was called."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, NamedTuple
from uuid import uuid4

from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE, MAX_LIST_TASKS_PAGE_SIZE, PROTOCOL_VERSION_0_3
from a2a.utils.errors import (
    ExtensionSupportRequiredError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from synapse_tui.a2a.agent import HostedAgent
from synapse_tui.a2a.card_security import keys_demanded
from synapse_tui.a2a.context import Visitor, check_ring
from synapse_tui.a2a.push import PushConfig, PushDesk, PushProtocol
from synapse_tui.content import Part, TaskMessage
from synapse_tui.errors import PushNotFound, TaskEnded
from synapse_tui.messages.streams import Chunk, Subscription, TaskEvent
from synapse_tui.messages.tasks import is_asked, make_cursor
from synapse_tui.model import MessageRequest, Task, TaskPage, TaskQuery, TaskState

from .calls import EXTENSIONS, Call, Extension, call_of, find_task, missing, translated, translated_stream
from .cards import extended_json
from .convert import (
    NO_FILES,
    Draft,
    Files,
    answer_message,
    chunk_event,
    draft_of,
    files_of,
    read_files,
    state_of,
    status_event,
    status_message,
    task_proto,
)

MAX_TOLD = 5000
"""How many tasks are remembered as told; more than are in the memory of the agents."""


MAX_ALIKE = 100
"""How many tasks are looked at whose messages had the id, for one with the same content."""


class Retries:
    """Knows which tasks stand for which messages, from the tasks themselves."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, None] = OrderedDict()

    def find(self, agent: HostedAgent, request: MessageRequest) -> Task | None:
        """The task that a message was made into before; None for a message that is new."""
        wanted = request.message
        if wanted is None or not wanted.message_id:
            return None
        if request.follows:
            task = agent.tasks.get(request.follows) if request.follows in agent.tasks else None
            known = task.messages[1:] if task is not None and task.caller == request.caller else ()
            return task if any(_same(each, wanted) for each in known) and not self._done(task) else None
        alike = agent.tasks.of_message(request.caller, wanted.message_id)
        for task in itertools.islice(alike, MAX_ALIKE):
            if _same(task.messages[0], wanted) and not self._done(task):
                return task
        return None

    def _done(self, task: Task | None) -> bool:
        """Whether a task has ended, and an answer has named it."""
        return task is not None and task.state.final and task.id in self._told

    def told(self, task: Task) -> None:
        """Note that an answer names a task."""
        self._told[task.id] = None
        self._told.move_to_end(task.id)
        while len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)


def _same(known: TaskMessage, wanted: TaskMessage) -> bool:
    return (
        known.role == wanted.role
        and known.message_id == wanted.message_id
        and [_content(part) for part in known.parts] == [_content(part) for part in wanted.parts]
    )


def _content(part: Part) -> tuple[object, ...]:
    """What tells parts apart; where files were put was not sent, nor that long data became one."""
    if part.kind in ("file", "data"):
        return ("file", part.metadata)
    return part.kind, part.text, part.name, part.media_type


TaskUpdate = pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

WORDS_LATER = 0.25
"""Seconds after which the words of a dialog that was seen to be open have been read too."""


class Step(NamedTuple):
    """Something that happened to a task.

    Attributes:
        event: What its feed tells.
        before: The task until then.
        task: The task from then on.
    """

    event: TaskEvent
    before: Task
    task: Task


class Turn:
    """Whether what a message asked for has come.

    Args:
        task: Its task.
        follow_up: Whether it was just added to that: what the task asked before counts no more.
    """

    def __init__(self, task: Task, *, follow_up: bool) -> None:
        self._asked_before = follow_up and task.state is TaskState.INPUT_REQUIRED

    def over(self, task: Task) -> bool:
        """Whether a task has ended, or goes on only when somebody acts (A2A section 3.2.2)."""
        self._asked_before = self._asked_before and task.state is TaskState.INPUT_REQUIRED
        return task.state.final or (task.state is TaskState.INPUT_REQUIRED and not self._asked_before)


async def steps(events: Subscription, task: Task, turn: Turn | None = None) -> AsyncGenerator[Step, None]:
    """What happens to a task until it has ended, or a turn is over.

    Args:
        events: The subscription.
        task: The task as its reader was told of it.
        turn: Knows when it is over; None for the end of the task.

    Raises:
        SlowReader: The reader is too far behind.
    """
    while not task.state.final:
        over = turn is not None and turn.over(task)
        if over and is_asked(task):
            return
        try:
            async with asyncio.timeout(WORDS_LATER if over else None):
                event = await anext(events)
        except (StopAsyncIteration, TimeoutError):
            return
        before, task = task, task if isinstance(event, Chunk) else event.task
        yield Step(event, before, task)


async def settled(events: Subscription, task: Task, turn: Turn) -> Task:
    """Wait until a turn is over.

    Returns:
        The task by then.

    Raises:
        SlowReader: More happened at once than is kept.
    """
    async with aclosing(steps(events, task, turn)) as found:
        async for step in found:
            task = step.task
    return task


async def update_of(step: Step) -> TaskUpdate | None:
    """The event that tells of a step; None when the protocol has no word for it."""
    if isinstance(step.event, Chunk):
        return chunk_event(step.task, step.event, await read_files(step.event.parts))
    if _status(step.task) == _status(step.before):
        return None
    return status_event(step.task, await _files_of_status(step.task))


async def _files_of_status(task: Task) -> Files:
    words = status_message(task)
    return NO_FILES if words is None else await read_files(words.parts)


def _status(task: Task) -> tuple[TaskState, Sequence[Part]]:
    words = status_message(task)
    return task.state, () if words is None else words.parts


def desk_of(call: Call) -> PushDesk:
    """The desk that takes configurations.

    Raises:
        PushNotificationNotSupportedError: There is none.
    """
    if call.services.push is None:
        raise PushNotificationNotSupportedError
    return call.services.push


def config_of(params: pb.TaskPushNotificationConfig, call: Call) -> PushConfig:
    """A configuration as the desk takes it.

    Raises:
        InvalidParamsError: It has no URL.
    """
    if not params.url:
        raise InvalidParamsError("the push configuration has no url")
    auth = params.authentication
    return PushConfig(
        call.agent.agent_id,
        params.task_id,
        params.url,
        params.id,
        params.token,
        auth.scheme,
        auth.credentials,
        PushProtocol.V03 if call.version == PROTOCOL_VERSION_0_3 else PushProtocol.V1,
    )


def config_proto(config: PushConfig) -> pb.TaskPushNotificationConfig:
    """A configuration as it is told; secrets stay with those who gave them."""
    told = pb.TaskPushNotificationConfig(task_id=config.task_id, id=config.config_id, url=config.url)
    if config.scheme:
        told.authentication.scheme = config.scheme
    return told


def page_of_configs(
    configs: Sequence[PushConfig], params: pb.ListTaskPushNotificationConfigsRequest
) -> pb.ListTaskPushNotificationConfigsResponse:
    """A page of configurations; its token is the id of the last one of the page before.

    Raises:
        InvalidParamsError: The token is none of ours, or the size is none.
    """
    if params.page_size < 0:
        raise InvalidParamsError("pageSize is negative")
    ids = [config.config_id for config in configs]
    if params.page_token and params.page_token not in ids:
        raise InvalidParamsError("pageToken is none of this list", {"hint": "begin without one"})
    start = ids.index(params.page_token) + 1 if params.page_token else 0
    end = start + (params.page_size or len(configs))
    shown = configs[start:end]
    return pb.ListTaskPushNotificationConfigsResponse(
        configs=[config_proto(config) for config in shown],
        next_page_token=shown[-1].config_id if end < len(configs) else "",
    )


@asynccontextmanager
async def pushed(
    configuration: pb.SendMessageConfiguration, call: Call, task_id: str
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Have somebody told of a task that is about to be made; of nothing, when it is not made.

    Args:
        configuration: Tells who.
        call: The call.
        task_id: Id that the task has, or will have.

    Yields:
        Takes it back, when there is such a task already.
    """
    made: PushConfig | None = None
    if (config := _config_for(task_id, configuration, call)) is not None:
        made = await desk_of(call).create(config, sender_id=call.visitor.sender_id)

    async def undo() -> None:
        if made is not None:
            await desk_of(call).delete(task_id, made.config_id)

    try:
        yield undo
    except BaseException:
        await undo()
        raise


async def push_again(configuration: pb.SendMessageConfiguration, call: Call, task_id: str) -> None:
    """Take the configuration of a message that comes again, for the task that it was made into.

    One without an id takes the place of the one with its URL: the same request must not be told twice.
    """
    if (config := _config_for(task_id, configuration, call)) is None:
        return
    desk = desk_of(call)
    if not config.config_id:
        known = await desk.list(task_id)
        same = next((each.config_id for each in known if each.url == config.url), "")
        config = replace(config, config_id=same)
    await desk.create(config, sender_id=call.visitor.sender_id)


def _config_for(task_id: str, configuration: pb.SendMessageConfiguration, call: Call) -> PushConfig | None:
    if not configuration.HasField("task_push_notification_config"):
        return None
    return replace(config_of(configuration.task_push_notification_config, call), task_id=task_id)


MAX_PAGE = 4_000_000
"""Characters of the texts of a page's tasks; one answer should neither take long to make nor to read."""


def history_length(
    params: pb.GetTaskRequest | pb.ListTasksRequest | pb.SendMessageConfiguration,
) -> int | None:
    """How many messages of a task's history are wanted at most; None for all.

    Raises:
        InvalidParamsError: A negative number is.
    """
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise InvalidParamsError("historyLength is negative", {"hint": "send 0 or more"})
    return params.history_length


def query_of(params: pb.ListTasksRequest, visitor: Visitor) -> TaskQuery:
    """The query that a request means.

    Raises:
        InvalidParamsError: Its page size or its state is none.
    """
    size = params.page_size if params.HasField("page_size") else DEFAULT_LIST_TASKS_PAGE_SIZE
    if not 1 <= size <= MAX_LIST_TASKS_PAGE_SIZE:
        raise InvalidParamsError(
            f"pageSize {size} is not valid", {"hint": f"send 1 to {MAX_LIST_TASKS_PAGE_SIZE}"}
        )
    after = (
        params.status_timestamp_after.ToDatetime(UTC) if params.HasField("status_timestamp_after") else None
    )
    state = state_of(params.status)
    return TaskQuery(
        context_id=params.context_id,
        states=frozenset() if state is None else frozenset({state}),
        caller=None if visitor.sees_all else visitor.caller,
        changed_after=after,
        limit=size,
        cursor=params.page_token,
    )


def check_state(named: object) -> None:
    """See that a state is one of the protocol's: the SDK takes another one for none at all.

    Args:
        named: Its name or number, as a request has it; None for none.

    Raises:
        InvalidParamsError: It is none.
    """
    states = pb.TaskState.keys()
    if isinstance(named, str) and named and not named.isdigit() and named not in states:
        raise InvalidParamsError(
            f"status '{named[:40]}' is not valid",
            {"hint": f"use one of {', '.join(states[1:])}"},
        )


def knows_state(params: pb.ListTasksRequest) -> bool:
    """Whether tasks of ours can be in the state that is asked for."""
    return params.status == pb.TASK_STATE_UNSPECIFIED or state_of(params.status) is not None


def list_json(response: pb.ListTasksResponse) -> dict[str, Any]:
    """A page as JSON: tasks look as they do everywhere else, the page's own fields are always there."""
    return {
        "tasks": [MessageToDict(task) for task in response.tasks],
        "nextPageToken": response.next_page_token,
        "pageSize": response.page_size,
        "totalSize": response.total_size,
    }


def within(page: TaskPage, most: int = MAX_PAGE) -> TaskPage:
    """A page, or its beginning where its tasks are too long for one answer; the next page goes on behind it.

    Args:
        page: The page.
        most: Characters of its tasks that are told at most, but for the first task.
    """
    left = most
    for place, task in enumerate(page.tasks):
        left -= _length(task)
        if left < 0 and place:
            shown = page.tasks[:place]
            return TaskPage(shown, make_cursor((shown[-1].updated_at, shown[-1].id)), page.total)
    return page


def _length(task: Task) -> int:
    parts = [part for message in task.messages for part in message.parts]
    texts = sum(len(part.text) for part in parts) or len(task.text)
    return texts + sum(len(artifact.text) for artifact in task.artifacts)


def page_response(
    page: TaskPage, params: pb.ListTasksRequest, size: int, files: Files
) -> pb.ListTasksResponse:
    """The answer that holds a page.

    Args:
        page: The page.
        params: The request.
        size: How many tasks it may hold.
        files: Contents of the tasks' files.
    """
    history = history_length(params)
    return pb.ListTasksResponse(
        tasks=[
            task_proto(task, files, history=history, artifacts=params.include_artifacts)
            for task in page.tasks
        ],
        next_page_token=page.cursor,
        page_size=size,
        total_size=page.total,
    )


@dataclass(frozen=True, slots=True)
class Begun:
    """A message that was taken.

    Attributes:
        task: Its task.
        events: What happens to that from then on.
        turn: Knows when what was asked for has come.
    """

    task: Task
    events: Subscription
    turn: Turn


class Handler(RequestHandler):
    """Serves all agents; keeps nothing but which tasks their callers were told of.

    Args:
        extensions: What the agents offer.
        make_id: Makes UUIDs.
    """

    def __init__(
        self,
        extensions: tuple[Extension, ...] = EXTENSIONS,
        make_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._extensions = extensions
        self._make_id = make_id
        self._retries = Retries()

    # -- messages ---

    @translated
    async def on_message_send(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> pb.Task | pb.Message:
        """Give the agent a message; unless told otherwise, wait until its task ends or asks something."""
        call = self._call(params, context)
        history = history_length(params.configuration)
        begun = await self._begin(params, call)
        async with begun.events:
            task = await call.agent.control.saved(begun.task)
            if not params.configuration.return_immediately:
                task = await _waited(call, begun, task)
        self._retries.told(task)
        files = await files_of(task)
        if task.state.final and task.artifacts and task.artifacts[-1].as_message:
            return answer_message(task, files)
        return task_proto(task, files, history=history)

    @translated_stream
    async def on_message_send_stream(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Give the agent a message and tell what becomes of it until its task has ended or asks something."""
        call = self._call(params, context)
        history = history_length(params.configuration)
        begun = await self._begin(params, call)
        async with begun.events:
            task = await call.agent.control.saved(begun.task)
            yield task_proto(task, await files_of(task), history=history)
            async with aclosing(steps(begun.events, task, begun.turn)) as found:
                async for step in found:
                    task = step.task
                    if (update := await update_of(step)) is not None:
                        yield update
        self._retries.told(task)

    @translated_stream
    async def on_subscribe_to_task(
        self, params: pb.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Tell what happens to a task until it has ended; first how it stands."""
        call = self._call(params, context)
        found = await find_task(call, params.id)
        if found.state.final:
            raise UnsupportedOperationError(f"task {found.id} is {found.state.value} already")
        async with call.agent.streams.subscribe(found.id) as events:
            yield task_proto(events.task, await files_of(events.task))
            async with aclosing(steps(events, events.task)) as seen:
                async for step in seen:
                    if (update := await update_of(step)) is not None:
                        yield update
                    self._retries.told(step.task)

    async def _begin(self, params: pb.SendMessageRequest, call: Call) -> Begun:
        """Take a message, unless it was taken before."""
        draft = draft_of(params, call)
        followed = await _followed(call, draft.request) if draft.request.follows else None
        task, new = self._retries.find(call.agent, draft.request), False
        if task is None:
            if followed is not None and followed.state.final:
                raise TaskEnded(f"task {followed.id} is {followed.state.value} already", "send a new message")
            task, new = await self._accept(params, call, draft)
        if call.files is not None:
            call.files.close()  # the answer may be a long time in coming
        # Nothing may be awaited between the two: what happened meanwhile would be told to nobody.
        events = call.agent.streams.subscribe(task.id)
        if not new:
            try:
                await push_again(params.configuration, call, task.id)
            except BaseException:
                events.close()
                raise
        return Begun(task, events, Turn(task, follow_up=followed is not None and new))

    async def _accept(self, params: pb.SendMessageRequest, call: Call, draft: Draft) -> tuple[Task, bool]:
        """The task of a message, and whether it is new."""
        check_ring(call.agent, draft.request, call.services)
        task_id = draft.request.follows or self._make_id()
        request = await draft.written(call.agent.cwd, task_id)
        if not request.follows:
            request = replace(request, task_id=task_id)
        async with pushed(params.configuration, call, task_id) as undo:
            # A message that came twice at the same time was perhaps taken while the files were written.
            if (taken := self._retries.find(call.agent, draft.request)) is not None:
                await undo()
                return taken, False
            return call.agent.accept(request), True

    # -- tasks ---

    @translated
    async def on_get_task(self, params: pb.GetTaskRequest, context: ServerCallContext) -> pb.Task:
        """A task as it is now."""
        call = self._call(params, context)
        history = history_length(params)
        task = await find_task(call, params.id)
        self._retries.told(task)
        return task_proto(task, await files_of(task), history=history)

    @translated
    async def on_list_tasks(
        self, params: pb.ListTasksRequest, context: ServerCallContext
    ) -> pb.ListTasksResponse:
        """The tasks that the caller may see, the newest change first, page by page."""
        call = self._call(params, context)
        query = query_of(params, call.visitor)
        page = within(await call.agent.tasks.page(query)) if knows_state(params) else TaskPage((), "", 0)
        files = await files_of(*page.tasks) if params.include_artifacts else NO_FILES
        return page_response(page, params, query.limit, files)

    @translated
    async def on_cancel_task(self, params: pb.CancelTaskRequest, context: ServerCallContext) -> pb.Task:
        """Take a message back, or stop the turn that works on it."""
        call = self._call(params, context)
        task = await find_task(call, params.id)
        if task.state.final:
            raise TaskNotCancelableError(f"task {task.id} is {task.state.value} already")
        task = await call.agent.control.saved(await call.agent.cancel(task.id))
        self._retries.told(task)
        return task_proto(task, await files_of(task))

    # -- push notifications ---

    @translated
    async def on_create_task_push_notification_config(
        self, params: pb.TaskPushNotificationConfig, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        """Have somebody told of a task."""
        call, desk = await self._desk(params, context, params.task_id)
        return config_proto(await desk.create(config_of(params, call), sender_id=call.visitor.sender_id))

    @translated
    async def on_get_task_push_notification_config(
        self, params: pb.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        """Who is told of a task."""
        if not params.id and call_of(context).version != PROTOCOL_VERSION_0_3:
            raise InvalidParamsError("id is missing", {"hint": "ListTaskPushNotificationConfigs tells it"})
        _, desk = await self._desk(None, context, params.task_id)
        return config_proto(await desk.get(params.task_id, params.id))

    @translated
    async def on_list_task_push_notification_configs(
        self, params: pb.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> pb.ListTaskPushNotificationConfigsResponse:
        """All who are told of a task."""
        _, desk = await self._desk(params, context, params.task_id)
        return page_of_configs(await desk.list(params.task_id), params)

    @translated
    async def on_delete_task_push_notification_config(
        self, params: pb.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Have somebody told of a task no more."""
        _, desk = await self._desk(params, context, params.task_id)
        with suppress(PushNotFound):  # it is gone already (section 3.1.10)
            await desk.delete(params.task_id, params.id)

    async def _desk(
        self, params: Message | None, context: ServerCallContext, task_id: str
    ) -> tuple[Call, PushDesk]:
        """The desk for a task that the caller may see."""
        call = self._call(params, context)
        desk = desk_of(call)
        await find_task(call, task_id)
        return call, desk

    # -- card ---

    @translated
    async def on_get_extended_agent_card(
        self, params: pb.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> pb.AgentCard:
        """The card with what only known callers are told; offered where callers must say who they are."""
        call = self._call(params, context)
        if not keys_demanded(call.services):
            raise UnsupportedOperationError("this agent has no extended card")
        form = "dual" if call.version == PROTOCOL_VERSION_0_3 else call.services.card
        card = extended_json(call.agent, call.base_url, call.services, form, self._extensions)
        return ParseDict(card, pb.AgentCard(), ignore_unknown_fields=True)

    def _call(self, params: Message | None, context: ServerCallContext) -> Call:
        """The call of a request that has what it needs."""
        call = call_of(context)
        lacking = missing(self._extensions, call.extensions)
        if lacking:
            raise ExtensionSupportRequiredError(
                f"the extension {lacking[0]} is required", {"hint": "name it in the header A2A-Extensions"}
            )
        if params is not None:
            validate_proto_required_fields(params)
        return call


async def _followed(call: Call, request: MessageRequest) -> Task:
    """The task that a message is to go on with.

    Raises:
        TaskNotFound: There is no such task.
        InvalidParamsError: It belongs to another conversation than the message says.
    """
    task = await find_task(call, request.follows)
    if request.context_id not in ("", task.context_id):
        raise InvalidParamsError(
            f"task {task.id} belongs to the context {task.context_id}",
            {"hint": "leave message.contextId out"},
        )
    return task


async def _waited(call: Call, begun: Begun, task: Task) -> Task:
    """Wait until a turn is over, or the server stops."""
    over = asyncio.ensure_future(settled(begun.events, task, begun.turn))
    stopping = asyncio.ensure_future(call.stopping.wait())
    try:
        await asyncio.wait({over, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return over.result() if over.done() else call.agent.tasks.get(task.id)
    finally:
        for each in (over, stopping):
            each.cancel()
        await asyncio.gather(over, stopping, return_exceptions=True)
