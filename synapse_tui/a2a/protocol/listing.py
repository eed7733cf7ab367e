"""Pages of tasks (A2A section 3.1.4)."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE, MAX_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict

from synapse_tui.a2a.context import Visitor
from synapse_tui.messages.tasks import make_cursor
from synapse_tui.model import Task, TaskPage, TaskQuery

from .convert import Files, state_of, task_proto

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
