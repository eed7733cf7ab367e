"""What the guard knows of a request, as FastAPI dependencies; finding the task that a request names."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from pydantic import ValidationError

from synapse_tui.core.addresses import fold
from synapse_tui.core.errors import MessageError, TaskNotFound
from synapse_tui.core.model import INTERRUPT_PRIORITY, USER, MessageRequest, Sender, Task
from synapse_tui.messages.tasks import peer_task
from synapse_tui.system.dataclass import dataclass

from .access import Principal
from .agent import HostedAgent, Services
from .bodies import BodyFiles
from .event_stream import hung_up
from .external.untrusted import clean_line
from .problems import HttpProblem
from .wire import WireSender

RESERVED = "synapse-system"
"""The sender id of synapse's own messages; refused from outside."""
_AGENT_ID = re.compile(r"synapse-(.+)-\d+")
_SIGNS = re.compile(r"[^a-z0-9]+")
_OWN_TYPES = {"user": "user", RESERVED: "system"}


def sender_of(
    metadata: Mapping[str, Any], verified_id: str, *, is_ours: Callable[[str], bool] = lambda _id: False
) -> Sender:
    """Determine the sender of a message.

    A claim without a signature is accepted but marked as unverified. Agents of this host can always sign, so
    a claim to be one of them, by its id or its name, is refused without a signature.
    """
    claim = _claim(metadata.get("sender"))
    if verified_id:
        if claim.sender_id not in (verified_id, "external"):
            raise HttpProblem(
                403,
                "sender_mismatch",
                f"the request comes from '{verified_id}' but says that it is from '{claim.sender_id}'",
                "leave metadata.sender.sender_id out, or name the agent that sends",
            )
        return Sender(verified_id, type_of(verified_id), claim.sender_endpoint, verified=True)
    names = _names_like(claim.sender_id)
    if RESERVED in names or claim.sender_type.lower() == "system" or _is_false_user(claim.sender_id):
        raise HttpProblem(
            403,
            "sender_reserved",
            f"'{claim.sender_id}' reads like a reserved name",
            "send under a name of your own",
        )
    if any(map(is_ours, names)):
        raise HttpProblem(
            403,
            "sender_not_proved",
            f"the request says that it is from {claim.sender_id}, and is not signed by it",
            "send from inside that agent, or under a name of your own",
        )
    return Sender(claim.sender_id, claim.sender_type, claim.sender_endpoint, verified=False)


def _names_like(claimed: str) -> set[str]:
    """The ids that this name could be mistaken for, by case, punctuation or leading zeros."""
    words = _SIGNS.sub("-", fold(clean_line(claimed))).strip("-")
    found = {claimed, words, re.sub(r"-0+(?=\d+$)", "-", words)}
    compact = words.replace("-", "")
    if compact == _SIGNS.sub("", RESERVED):
        found.add(RESERVED)
    if match := re.fullmatch(r"synapse(.*?)(\d+)", compact):
        kind, digits = match.groups()  # a type may end with digits
        found |= {f"synapse-{kind}{digits[:at]}-{int(digits[at:])}" for at in range(len(digits))}
    return found


def _is_false_user(claimed: str) -> bool:
    return claimed != USER.sender_id and _SIGNS.sub("", fold(clean_line(claimed))) == USER.sender_id


def type_of(sender_id: str) -> str:
    """The type in a sender's id: an agent's type, `user` or `system`; otherwise `external`."""
    match = _AGENT_ID.fullmatch(sender_id)
    return match[1] if match else _OWN_TYPES.get(sender_id, "external")


def _claim(value: object) -> WireSender:
    if value is None:
        return WireSender()
    try:
        return WireSender.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(("metadata.sender", *map(str, first["loc"])))
        raise MessageError(
            f"{where} is not valid: {first['msg']}",
            "ids are letters, digits, '.', '_', '-', '@'; endpoints are http URLs",
        ) from error


@dataclass(frozen=True, slots=True)
class Visitor:
    """The caller of a request that passed the guard.

    Attributes:
        sender_id: The verified signer; empty if unsigned.
        is_ours: Whether an id or a name is that of an agent of this host.
    """

    principal: Principal
    sender_id: str
    is_ours: Callable[[str], bool]

    @property
    def caller(self) -> str:
        """The name of the caller's key; empty for the person and the agents."""
        return "" if self.sender_id else self.principal.name

    @property
    def sees_all(self) -> bool:
        return self.principal.admin or bool(self.sender_id)

    def may_see(self, task: Task) -> bool:
        """Whether the caller may see a task: the person and agents see all, a key only its own."""
        return self.sees_all or task.caller == self.principal.name

    def check_priority(self, priority: int) -> int:
        """Return the priority, or raise HttpProblem if the caller's key does not allow it."""
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
        """The sender of a message: with a key its name; other callers name themselves and may sign."""
        if self.caller:
            return Sender(self.caller, verified=self.principal.verified)
        return sender_of(metadata, self.sender_id, is_ours=self.is_ours)


def _agent(request: Request) -> HostedAgent:
    agent: HostedAgent = request.state.agent
    return agent


def _verified_id(request: Request) -> str:
    sender_id: str = request.state.sender_id
    return sender_id


def _is_ours(request: Request) -> Callable[[str], bool]:
    is_ours: Callable[[str], bool] = request.state.is_ours
    return is_ours


def _services(request: Request) -> Services:
    services: Services = request.state.services
    return services


def _files(request: Request) -> BodyFiles | None:
    files: BodyFiles | None = request.state.files
    return files


def visitor_of(request: Request) -> Visitor:
    state = request.state
    return Visitor(state.principal, state.sender_id, state.is_ours)


Agent = Annotated[HostedAgent, Depends(_agent)]
VerifiedId = Annotated[str, Depends(_verified_id)]
"""The sender proved by the signature; empty if unsigned."""
IsOurs = Annotated[Callable[[str], bool], Depends(_is_ours)]
Caller = Annotated[Visitor, Depends(visitor_of)]
Files = Annotated[BodyFiles | None, Depends(_files)]
Shared = Annotated[Services, Depends(_services)]


def unknown_task(task_id: str) -> TaskNotFound:
    return TaskNotFound(f"there is no task '{task_id[:40]}'", "GET /tasks lists them")


def find_task(
    agent: HostedAgent, task_id: str, caller: Visitor | None = None, *, by_sender: bool = False
) -> Task:
    """Find a task in memory by its id or a unique prefix, if the caller may see it.

    With `by_sender`, an unknown id may also be that of the sender's own task.
    """
    named = agent.tasks.starting(task_id)
    if not named and by_sender:
        named = [task for task in agent.tasks.starting_at_sender(task_id) if not task.outgoing]
    found = [task for task in named if caller is None or caller.may_see(task)]
    if not found:
        raise unknown_task(task_id)
    if len(found) > 1:
        raise HttpProblem(
            409, "ambiguous_task", f"'{task_id}' begins several tasks", "give more characters of the id"
        )
    return found[0]


async def find_kept_task(agent: HostedAgent, task_id: str, caller: Visitor) -> Task:
    """Find a task in memory or in the history by its id or a unique prefix, if the caller may see it."""
    try:
        return find_task(agent, task_id, caller)
    except TaskNotFound as unknown:
        with contextlib.suppress(TaskNotFound):
            task = await agent.tasks.find(task_id)
            if caller.may_see(task):
                return task
        raise unknown


T = TypeVar("T")

LONGEST = 60.0
"""Longest wait that a caller can ask for, in seconds."""

Wait = Annotated[float, Query(ge=0, le=LONGEST, description="Seconds to wait for a change")]
Seen = Annotated[str, Query(max_length=64, description="`updated_at` of the snapshot that is known")]


async def waited(request: Request, agent: HostedAgent, task: Task, seen: str, seconds: float) -> Task:
    """Wait until a task differs from `seen`, the server stops or the caller disconnects."""
    # An unescaped plus sign has been decoded as a space.
    found = await while_wanted(request, agent.service.wait(task.id, seen.replace(" ", "+"), seconds))
    if found is None:
        return task
    newest, there = found
    if there and newest.state.at_rest:
        # The asker has received the end of the task; reads by others do not count.
        mine = request.state.sender_id == agent.agent_id if newest.outgoing else not peer_task(newest)
        if mine:
            agent.service.collected(newest)
    return newest


async def while_wanted(request: Request, work: Coroutine[Any, Any, T]) -> tuple[T, bool] | None:
    """Run `work` until the server stops or the caller disconnects."""
    wanted = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(request.state.stopping.wait())
    left = asyncio.ensure_future(hung_up(request.receive))
    every = (wanted, stopping, left)
    try:
        await asyncio.wait(every, return_when=asyncio.FIRST_COMPLETED)
        return (wanted.result(), not left.done()) if wanted.done() else None
    finally:
        for each in every:
            each.cancel()
        await asyncio.gather(*every, return_exceptions=True)


def check_ring(agent: HostedAgent, request: MessageRequest, services: Services) -> None:
    """Refuse a request that would make agents wait for each other, directly or through others.

    Interrupts are allowed: they end one of the waits.
    """
    sender = request.sender
    if not (sender.verified and request.response_expected) or request.priority == INTERRUPT_PRIORITY:
        return
    path = _path(agent, sender.sender_id, services)
    if not path:
        return
    chain = "".join(f", which waits for {each}" for each in path[2:])
    raise HttpProblem(
        409,
        "mutual_wait",
        f"{path[0]} waits for an answer of {path[1]}{chain} at this moment",
        "answer what you were asked first by 'synapse reply TEXT', or do not wait: --no-response",
    )


def _path(agent: HostedAgent, sender: str, services: Services) -> list[str]:
    before: dict[str, str] = {agent.agent_id: ""}
    waiting = deque([agent])
    while waiting:
        who = waiting.popleft()
        for target in who.service.awaited():
            if target in before:
                continue
            before[target] = who.agent_id
            if target == sender:
                return _steps(before, target)
            if (further := services.agent_of(target)) is not None:
                waiting.append(further)
    return []


def _steps(before: dict[str, str], last: str) -> list[str]:
    steps = [last]
    while before[steps[-1]]:
        steps.append(before[steps[-1]])
    return steps[::-1]
