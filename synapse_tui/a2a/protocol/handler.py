"""The operations of the protocol (A2A section 3.1) on the tasks of the called agent."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC
from typing import Any, NamedTuple
from uuid import uuid4

from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE, MAX_LIST_TASKS_PAGE_SIZE, PROTOCOL_VERSION_0_3
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from synapse_tui.a2a.agent import HostedAgent
from synapse_tui.a2a.context import Visitor, check_ring
from synapse_tui.a2a.push.service import PushService
from synapse_tui.core.content import Part, TaskMessage
from synapse_tui.core.errors import PushNotFound, TaskEnded
from synapse_tui.core.model import MessageRequest, Task, TaskState
from synapse_tui.messages.records import Page, PushProtocol, PushSubscription, TaskQuery
from synapse_tui.messages.task_stream import Chunk, Reader, TaskEvent
from synapse_tui.messages.tasks import is_asked, make_cursor

from .calls import ProtocolCall, call_of, find_task, translated, translated_stream
from .cards import extended_json, keys_demanded
from .convert import (
    NO_FILES,
    MessageDraft,
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

MAX_ANSWERED = 5000
"""Number of answered tasks to remember; more than the agents hold in memory."""
MAX_ALIKE = 100  # tasks with the same message id that are compared by content
DIALOG_TEXT_TIMEOUT = 0.25
"""Seconds to wait for the text of a dialog after its detection."""
MAX_PAGE = 4_000_000
"""Characters of the tasks' texts in a page, so that it is quick to write and to parse."""

TaskUpdate = pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent


class Handler(RequestHandler):
    """The handler of all agents. Its only state is the set of answered tasks."""

    def __init__(self) -> None:
        self._retries = Retries()

    # -- messages ---

    @translated
    async def on_message_send(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> pb.Task | pb.Message:
        """Send a message and, unless the caller opts out, wait until its task ends or asks a question."""
        call = self._call(params, context)
        history = history_length(params.configuration)
        turn = await self._begin(params, call)
        async with turn.events:
            task = await call.agent.control.saved(turn.task)
            if not params.configuration.return_immediately:
                task = await _ended(call, turn, task)
        self._retries.answered(task)
        files = await files_of(task)
        if task.state.final and task.artifacts and task.artifacts[-1].as_message:
            return answer_message(task, files)
        return task_proto(task, files, history=history)

    @translated_stream
    async def on_message_send_stream(
        self, params: pb.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Send a message and stream its task until it ends or asks a question."""
        call = self._call(params, context)
        history = history_length(params.configuration)
        turn = await self._begin(params, call)
        async with turn.events:
            task = await call.agent.control.saved(turn.task)
            yield task_proto(task, await files_of(task), history=history)
            async with aclosing(steps(turn.events, task, turn)) as found:
                async for step in found:
                    task = step.task
                    if (update := await update_of(step)) is not None:
                        yield update
        self._retries.answered(task)

    @translated_stream
    async def on_subscribe_to_task(
        self, params: pb.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Stream a task: its current state, then every event until it ends."""
        call = self._call(params, context)
        found = await find_task(call, params.id)
        if found.state.final:
            raise UnsupportedOperationError(f"task {found.id} is {found.state.value} already")
        async with call.agent.tasks.changes.follow(found.id) as events:
            yield task_proto(events.task, await files_of(events.task))
            async with aclosing(steps(events, events.task)) as seen:
                async for step in seen:
                    if (update := await update_of(step)) is not None:
                        yield update
                    self._retries.answered(step.task)

    async def _begin(self, params: pb.SendMessageRequest, call: ProtocolCall) -> ProtocolTurn:
        draft = draft_of(params, call)
        followed = await _followed(call, draft.request) if draft.request.follows else None
        task, new = self._retries.find(call.agent, draft.request), False
        if task is None:
            if followed is not None and followed.state.final:
                raise TaskEnded(f"task {followed.id} is {followed.state.value} already", "send a new message")
            task, new = await self._accept(params, call, draft)
        if call.files is not None:
            call.files.close()  # not while waiting for the answer, which may take long
        # No await between accepting and subscribing: an event in between would be lost.
        events = call.agent.tasks.changes.follow(task.id)
        if not new:
            try:
                await push_again(params.configuration, call, task.id)
            except BaseException:
                events.close()
                raise
        return ProtocolTurn(task, events, follow_up=followed is not None and new)

    async def _accept(
        self, params: pb.SendMessageRequest, call: ProtocolCall, draft: MessageDraft
    ) -> tuple[Task, bool]:
        check_ring(call.agent, draft.request, call.services)
        task_id = draft.request.follows or str(uuid4())
        request = await draft.written(call.agent.cwd, task_id)
        if not request.follows:
            request = replace(request, task_id=task_id)
        async with pushed(params.configuration, call, task_id) as undo:
            # A concurrent retry may have been accepted while the files were written.
            if (accepted := self._retries.find(call.agent, draft.request)) is not None:
                await undo()
                return accepted, False
            return call.agent.accept(request), True

    # -- tasks ---

    @translated
    async def on_get_task(self, params: pb.GetTaskRequest, context: ServerCallContext) -> pb.Task:
        call = self._call(params, context)
        history = history_length(params)
        task = await find_task(call, params.id)
        self._retries.answered(task)
        return task_proto(task, await files_of(task), history=history)

    @translated
    async def on_list_tasks(
        self, params: pb.ListTasksRequest, context: ServerCallContext
    ) -> pb.ListTasksResponse:
        """List the tasks that the caller may see, most recently changed first, in pages."""
        call = self._call(params, context)
        query = query_of(params, call.visitor)
        possible = params.status == pb.TASK_STATE_UNSPECIFIED or state_of(params.status) is not None
        page = within(await call.agent.tasks.page(query)) if possible else Page[Task](())
        files = await files_of(*page.items) if params.include_artifacts else NO_FILES
        history = history_length(params)
        return pb.ListTasksResponse(
            tasks=[
                task_proto(task, files, history=history, artifacts=params.include_artifacts)
                for task in page.items
            ],
            next_page_token=page.cursor,
            page_size=query.limit,
            total_size=page.total,
        )

    @translated
    async def on_cancel_task(self, params: pb.CancelTaskRequest, context: ServerCallContext) -> pb.Task:
        call = self._call(params, context)
        task = await find_task(call, params.id)
        if task.state.final:
            raise TaskNotCancelableError(f"task {task.id} is {task.state.value} already")
        task = await call.agent.control.saved(await call.agent.cancel(task.id))
        self._retries.answered(task)
        return task_proto(task, await files_of(task))

    # -- push notifications ---

    @translated
    async def on_create_task_push_notification_config(
        self, params: pb.TaskPushNotificationConfig, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        call, push = await self._push(params, context, params.task_id)
        return config_proto(await push.add(config_of(params, call), sender_id=call.visitor.sender_id))

    @translated
    async def on_get_task_push_notification_config(
        self, params: pb.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> pb.TaskPushNotificationConfig:
        if not params.id and call_of(context).version != PROTOCOL_VERSION_0_3:
            raise InvalidParamsError("id is missing", {"hint": "ListTaskPushNotificationConfigs tells it"})
        _, push = await self._push(None, context, params.task_id)
        return config_proto((await push.subscriptions()).config(params.task_id, params.id))

    @translated
    async def on_list_task_push_notification_configs(
        self, params: pb.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> pb.ListTaskPushNotificationConfigsResponse:
        _, push = await self._push(params, context, params.task_id)
        return page_of_configs((await push.subscriptions()).of_task(params.task_id), params)

    @translated
    async def on_delete_task_push_notification_config(
        self, params: pb.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        _, push = await self._push(params, context, params.task_id)
        with suppress(PushNotFound):  # already removed (section 3.1.10)
            push.remove((await push.subscriptions()).config(params.task_id, params.id))

    async def _push(
        self, params: Message | None, context: ServerCallContext, task_id: str
    ) -> tuple[ProtocolCall, PushService]:
        call = self._call(params, context)
        push = push_of(call)
        await find_task(call, task_id)
        return call, push

    # -- card ---

    @translated
    async def on_get_extended_agent_card(
        self, params: pb.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> pb.AgentCard:
        """Return the extended card, which is offered where callers must authenticate."""
        call = self._call(params, context)
        if not keys_demanded(call.services):
            raise UnsupportedOperationError("this agent has no extended card")
        form = "dual" if call.version == PROTOCOL_VERSION_0_3 else call.services.card
        card = extended_json(call, form)
        return ParseDict(card, pb.AgentCard(), ignore_unknown_fields=True)

    def _call(self, params: Message | None, context: ServerCallContext) -> ProtocolCall:
        call = call_of(context)
        if params is not None:
            validate_proto_required_fields(params)
        return call


async def _followed(call: ProtocolCall, request: MessageRequest) -> Task:
    task = await find_task(call, request.follows)
    if request.context_id not in ("", task.context_id):
        raise InvalidParamsError(
            f"task {task.id} belongs to the context {task.context_id}",
            {"hint": "leave message.contextId out"},
        )
    return task


# -- retries of messages ---


class Retries:
    """Recognizes retries: a client that lost the answer sends the same `messageId` again.

    The same message from the same caller is a retry while its task is open, and after its end as long as no
    answer has delivered that task. Later, the id is considered reused for a new message.
    """

    def __init__(self) -> None:
        self._answered: OrderedDict[str, None] = OrderedDict()

    def find(self, agent: HostedAgent, request: MessageRequest) -> Task | None:
        """The task of the message that this one repeats; None for a new message."""
        wanted = request.message
        if wanted is None or not wanted.message_id:
            return None
        if request.follows:
            task = agent.tasks.get(request.follows) if request.follows in agent.tasks else None
            known = task.messages[1:] if task is not None and task.caller == request.caller else ()
            return task if any(_same(each, wanted) for each in known) and not self._is_over(task) else None
        alike = agent.tasks.of_message(request.caller, wanted.message_id)
        for task in itertools.islice(alike, MAX_ALIKE):
            if _same(task.messages[0], wanted) and not self._is_over(task):
                return task
        return None

    def answered(self, task: Task) -> None:
        self._answered[task.id] = None
        self._answered.move_to_end(task.id)
        while len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)

    def _is_over(self, task: Task | None) -> bool:
        return task is not None and task.state.final and task.id in self._answered


def _same(known: TaskMessage, wanted: TaskMessage) -> bool:
    return (
        known.role == wanted.role
        and known.message_id == wanted.message_id
        and [_content(part) for part in known.parts] == [_content(part) for part in wanted.parts]
    )


def _content(part: Part) -> tuple[object, ...]:
    """What identifies a part. Paths are ours, and long data may have been saved to a file."""
    if part.kind in ("file", "data"):
        return ("file", part.metadata)
    return part.kind, part.text, part.name, part.media_type


# -- streams of a task's events ---


class ProtocolTurn:
    """An accepted message and the following events of its task.

    A follow-up answers the task's last question, so that question no longer ends the turn.
    """

    def __init__(self, task: Task, events: Reader, *, follow_up: bool) -> None:
        self.task = task
        self.events = events
        self._asked_before = follow_up and task.state is TaskState.INPUT_REQUIRED

    def over(self, task: Task) -> bool:
        """Whether the task has ended or waits for someone to act (A2A section 3.2.2)."""
        self._asked_before = self._asked_before and task.state is TaskState.INPUT_REQUIRED
        return task.state.final or (task.state is TaskState.INPUT_REQUIRED and not self._asked_before)


class TaskStep(NamedTuple):
    """An event of a task, with the task before and after it."""

    event: TaskEvent
    before: Task
    task: Task


async def steps(
    events: Reader, task: Task, turn: ProtocolTurn | None = None
) -> AsyncGenerator[TaskStep, None]:
    """Yield the events of a task until it ends or the turn is over."""
    while not task.state.final:
        over = turn is not None and turn.over(task)
        if over and is_asked(task):
            return
        try:
            async with asyncio.timeout(DIALOG_TEXT_TIMEOUT if over else None):
                event = await anext(events)
        except (StopAsyncIteration, TimeoutError):
            return
        before, task = task, task if isinstance(event, Chunk) else event.task
        yield TaskStep(event, before, task)


async def update_of(step: TaskStep) -> TaskUpdate | None:
    if isinstance(step.event, Chunk):
        return chunk_event(step.task, step.event, await read_files(step.event.parts))
    message, before = status_message(step.task), status_message(step.before)
    parts = message.parts if message is not None else ()
    if (step.task.state, parts) == (step.before.state, before.parts if before is not None else ()):
        return None
    return status_event(step.task, await read_files(parts))


async def _ended(call: ProtocolCall, turn: ProtocolTurn, task: Task) -> Task:

    async def last(task: Task) -> Task:
        async with aclosing(steps(turn.events, task, turn)) as found:
            async for step in found:
                task = step.task
        return task

    over = asyncio.ensure_future(last(task))
    stopping = asyncio.ensure_future(call.stopping.wait())
    try:
        await asyncio.wait({over, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return over.result() if over.done() else call.agent.tasks.get(task.id)
    finally:
        for each in (over, stopping):
            each.cancel()
        await asyncio.gather(over, stopping, return_exceptions=True)


# -- lists of tasks (A2A section 3.1.4) ---


def history_length(
    params: pb.GetTaskRequest | pb.ListTasksRequest | pb.SendMessageConfiguration,
) -> int | None:
    """Maximum number of messages in a task's history; None for all."""
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise InvalidParamsError("historyLength is negative", {"hint": "send 0 or more"})
    return params.history_length


def query_of(params: pb.ListTasksRequest, visitor: Visitor) -> TaskQuery:
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
    """Check the name or number of a state: the SDK ignores unknown ones."""
    states = pb.TaskState.keys()
    if isinstance(named, str) and named and not named.isdigit() and named not in states:
        raise InvalidParamsError(
            f"status '{named[:40]}' is not valid",
            {"hint": f"use one of {', '.join(states[1:])}"},
        )


def list_json(response: pb.ListTasksResponse) -> dict[str, Any]:
    """A page as JSON: tasks look the same as elsewhere, and the page's own fields are always present."""
    return {
        "tasks": [MessageToDict(task) for task in response.tasks],
        "nextPageToken": response.next_page_token,
        "pageSize": response.page_size,
        "totalSize": response.total_size,
    }


def within(page: Page[Task], most: int = MAX_PAGE) -> Page[Task]:
    """The beginning of a page: at least one task, then as many as fit in `most` characters."""
    left = most
    for place, task in enumerate(page.items):
        left -= _length(task)
        if left < 0 and place:
            shown = page.items[:place]
            return Page(shown, make_cursor((shown[-1].updated_at, shown[-1].id)), page.total)
    return page


def _length(task: Task) -> int:
    parts = [part for message in task.messages for part in message.parts]
    texts = sum(len(part.text) for part in parts) or len(task.text)
    return texts + sum(len(artifact.text) for artifact in task.artifacts)


# -- push notification configurations (A2A section 4.3) ---


def push_of(call: ProtocolCall) -> PushService:
    if call.services.push is None:
        raise PushNotificationNotSupportedError
    return call.services.push


def config_of(params: pb.TaskPushNotificationConfig, call: ProtocolCall) -> PushSubscription:
    if not params.url:
        raise InvalidParamsError("the push configuration has no url")
    auth = params.authentication
    return PushSubscription(
        call.agent.agent_id,
        PushProtocol.V03 if call.version == PROTOCOL_VERSION_0_3 else PushProtocol.V1,
        params.url,
        task_id=params.task_id,
        config_id=params.id,
        token=params.token,
        scheme=auth.scheme,
        credentials=auth.credentials,
        local=call.visitor.principal.local,
    )


def config_proto(config: PushSubscription) -> pb.TaskPushNotificationConfig:
    """Convert a configuration, without its secrets."""
    found = pb.TaskPushNotificationConfig(task_id=config.task_id, id=config.config_id, url=config.url)
    if config.scheme:
        found.authentication.scheme = config.scheme
    return found


def page_of_configs(
    configs: Sequence[PushSubscription], params: pb.ListTaskPushNotificationConfigsRequest
) -> pb.ListTaskPushNotificationConfigsResponse:
    """A page of configurations; its token is the id of the last one on the previous page."""
    if params.page_size < 0:
        raise InvalidParamsError("pageSize is negative")
    ids = [config.config_id for config in configs]
    if params.page_token and params.page_token not in ids:
        raise InvalidParamsError(
            "pageToken does not belong to this list", {"hint": "leave it out for the first page"}
        )
    start = ids.index(params.page_token) + 1 if params.page_token else 0
    end = start + (params.page_size or len(configs))
    shown = configs[start:end]
    return pb.ListTaskPushNotificationConfigsResponse(
        configs=[config_proto(config) for config in shown],
        next_page_token=shown[-1].config_id if end < len(configs) else "",
    )


@asynccontextmanager
async def pushed(
    configuration: pb.SendMessageConfiguration, call: ProtocolCall, task_id: str
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Add a message's configuration before its task is created, and remove it if the task is not created.

    Yields a function that removes it.
    """
    made: PushSubscription | None = None
    if (config := _config_for(task_id, configuration, call)) is not None:
        made = await push_of(call).add(config, sender_id=call.visitor.sender_id)

    async def undo() -> None:
        if made is not None:
            push_of(call).remove(made)

    try:
        yield undo
    except BaseException:
        await undo()
        raise


async def push_again(configuration: pb.SendMessageConfiguration, call: ProtocolCall, task_id: str) -> None:
    """Add the configuration of a retried message.

    One without an id replaces the one with the same URL, so that a retry does not notify twice.
    """
    if (config := _config_for(task_id, configuration, call)) is None:
        return
    push = push_of(call)
    if not config.config_id:
        known = (await push.subscriptions()).of_task(task_id)
        same = next((each.config_id for each in known if each.url == config.url), "")
        config = replace(config, config_id=same)
    await push.add(config, sender_id=call.visitor.sender_id)


def _config_for(
    task_id: str, configuration: pb.SendMessageConfiguration, call: ProtocolCall
) -> PushSubscription | None:
    if not configuration.HasField("task_push_notification_config"):
        return None
    return replace(config_of(configuration.task_push_notification_config, call), task_id=task_id)
