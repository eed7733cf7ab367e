"""Push notification configurations of the protocol (A2A section 4.3) for the desk that keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import PROTOCOL_VERSION_0_3
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError

from synapse_tui.a2a.push import PushConfig, PushDesk, PushProtocol

from .calls import Call


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
