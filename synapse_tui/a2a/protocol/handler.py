"""The operations of the protocol (A2A section 3.1) on the tasks of whichever agent was called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from uuid import uuid4

from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import PROTOCOL_VERSION_0_3
from a2a.utils.errors import (
    ExtensionSupportRequiredError,
    InvalidParamsError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from synapse_tui.a2a.card_security import keys_demanded
from synapse_tui.a2a.push import PushDesk
from synapse_tui.a2a.rings import check_ring
from synapse_tui.errors import PushNotFound, TaskEnded
from synapse_tui.messages.streams import Subscription
from synapse_tui.model import MessageRequest, Task, TaskPage

from .calls import Call, call_of, find_task
from .cards import extended_json
from .convert import NO_FILES, answer_message, task_proto
from .events import Turn, settled, steps, update_of
from .extensions import EXTENSIONS, Extension, missing
from .faults import translated, translated_stream
from .files import files_of
from .inbound import Draft, draft_of
from .listing import history_length, knows_state, page_response, query_of, within
from .pushes import config_of, config_proto, desk_of, page_of_configs, push_again, pushed
from .retries import Retries


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
