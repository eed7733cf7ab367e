"""Selects the backend of a database by its location."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .backend import Backend
from .location import BUSY, Location
from .schema import NOTHING, STEPS, SharedFile, Step


def backend_of(
    location: Location,
    *,
    steps: Sequence[Step] = STEPS,
    adopted: SharedFile = NOTHING,
    busy: float = BUSY,
    durable: bool = True,
) -> Backend:
    if isinstance(location, Path):
        from synapse_tui.messages.storage.sqlite import Sqlite  # noqa: PLC0415 - only one of them is needed

        return Sqlite(location, steps, adopted, busy=busy, durable=durable)
    from synapse_tui.messages.storage.postgres import Postgres  # noqa: PLC0415 - only one of them is needed

    return Postgres(location, busy=busy)
