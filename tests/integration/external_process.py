"""The external agents of a host in a process of its own, for tests that kill it.

`python -m tests.integration.external_process FOLDER ALIAS=TEXT ...` sends the messages, and prints every task
as a line of JSON whenever it has changed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from uuid import uuid4

from synapse_tui.a2a.external.hub import ExternalAgents
from synapse_tui.core.events import Event, EventBus, TaskChanged
from synapse_tui.core.model import USER, Task
from synapse_tui.messages.history import History
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.process_times import is_alive, process_name
from tests.waiting import PATIENCE


async def main(folder: Path, *messages: str) -> None:
    paths, events = UserPaths(folder / "home"), EventBus()
    history = History(paths.history, owner=process_name(os.getpid()), alive=is_alive)
    externals = ExternalAgents(
        folder / "project",
        paths=paths,
        history=history,
        events=events,
        agents={},
        environ=dict,
        types=tuple,
        make_id=lambda: str(uuid4()),
    )

    def heard(event: Event) -> None:
        if isinstance(event, TaskChanged):
            show(event.task)

    events.subscribe(heard)
    await history.flush(PATIENCE)  # a machine whose processors are all busy opens it slowly
    externals.start()
    externals.load()
    await externals.ready()
    for task in externals.tasks:
        show(task)
    for message in messages:
        alias, _, text = message.partition("=")
        await externals.send(alias, text, sender=USER)
    await asyncio.Event().wait()


def show(task: Task) -> None:
    facts = {"text": task.text, "state": task.state, "delivery": task.delivery}
    print(json.dumps({**facts, "answer": task.answer, "reason": task.reason}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
