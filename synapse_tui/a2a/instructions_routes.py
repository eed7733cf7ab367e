"""The routes of an agent's instructions: what it was told of the others, or would be told now; and again."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from synapse_tui.instructions import Composed
from synapse_tui.model import USER, Task

from .problems import HttpProblem
from .request_state import Agent, VerifiedId
from .wire import sound, task_json

Now = Annotated[bool, Query(description="Whether to tell what would be sent now, also when they were sent")]

instructions_router = APIRouter()


@instructions_router.get("/instructions")
async def read_instructions(agent: Agent, now: Now = False) -> dict[str, Any]:
    """What the agent was told last, or what it would be told."""
    sent = agent.briefing.last
    if sent is not None and not now:
        return {
            "text": sound(sent.text),
            "files": _files_of(sent),
            "faults": [],
            "wanted": agent.briefing.wanted,
            "told": agent.briefing.told_as == agent.agent_id,
            "sent": {
                "task_id": sent.id,
                "status": sent.state.value,
                "delivery": sent.delivery.value,
                "reason": sound(sent.reason),
                "at": sent.created_at.isoformat(),
            },
        }
    composed = await agent.briefing.source()
    files = [sound(str(file.path)) for file in composed.files]
    return {
        "text": sound(composed.text),
        "files": files,
        "faults": _faults(composed),
        "wanted": agent.briefing.wanted,
        "told": agent.briefing.told_as == agent.agent_id,
        "sent": None,
    }


@instructions_router.post("/instructions/send")
async def send_instructions(agent: Agent, verified_id: VerifiedId) -> dict[str, Any]:
    """Send the agent its instructions again, as they are now."""
    if verified_id not in ("", USER.sender_id, agent.agent_id):
        raise HttpProblem(
            403, "not_the_agent", f"an agent may not instruct {agent.agent_id}", "send it a message"
        )
    task, composed = await agent.briefing.send()
    return {"task": task_json(await agent.control.saved(task)), "faults": _faults(composed)}


def _faults(composed: Composed) -> list[str]:
    return [sound(str(fault)) for fault in composed.faults]


def _files_of(task: Task) -> list[str]:
    files = task.metadata.get("files")
    return [sound(path) for path in files.split("\n") if path] if isinstance(files, str) else []
