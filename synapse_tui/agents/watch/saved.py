"""A watch as JSON, for the newer version of the host that goes on with it, and back again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from synapse_tui.model import Sender

from .order import WatchOrder
from .watch import Watch, WatchStep

_COUNTS = ("sent", "helped", "in_vain", "version")


def watch_to_json(watch: Watch) -> dict[str, Any]:
    """A watch that goes on."""
    return {
        "order": dataclasses.asdict(watch.order),
        "task_id": watch.task_id,
        "nudge_id": watch.nudge_id,
        "steps": [{"number": s.number, "at": s.at.isoformat(), "text": s.text} for s in watch.steps],
        **{name: getattr(watch, name) for name in _COUNTS},
    }


def watch_from_json(content: Mapping[str, Any], time: Callable[[], datetime]) -> Watch:
    """A watch again; its clock begins anew, and what its agent did since the last nudge is not known.

    Raises:
        KeyError: Something is missing.
        TypeError: Something is of another kind.
        ValueError: A time is none.
    """
    order = dict(content["order"])
    order["by"] = Sender(**order["by"])
    watch = Watch(WatchOrder(**order), str(content["task_id"]), time, nudge_id=str(content["nudge_id"]))
    for name in _COUNTS:
        setattr(watch, name, int(content[name]))
    for step in content["steps"]:
        watch.steps.append(
            WatchStep(int(step["number"]), datetime.fromisoformat(step["at"]), str(step["text"]))
        )
    return watch
