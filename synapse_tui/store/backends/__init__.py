"""The kinds of databases: how they keep data; how they search stands in `search_*`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from synapse_tui.store.location import BUSY, Location
from synapse_tui.store.schema import NOTHING, STEPS, Adopted, Step

from .base import Backend

__all__ = ["Backend", "backend_of"]


def backend_of(
    location: Location,
    *,
    steps: Sequence[Step] = STEPS,
    adopted: Adopted = NOTHING,
    busy: float = BUSY,
    durable: bool = True,
) -> Backend:
    """The backend of a database.

    Args:
        location: Where it is.
        steps: The migrations of a file; a server has one set of tables for all.
        adopted: Files of another program that are taken as well.
        busy: Seconds that another process, or the server, is waited for.
        durable: Whether each commit to a file must survive a power cut.
    """
    if isinstance(location, Path):
        from .sqlite import Sqlite  # noqa: PLC0415 - only one of them is needed

        return Sqlite(location, steps, adopted, busy=busy, durable=durable)
    from .postgres import Postgres  # noqa: PLC0415 - only one of them is needed

    return Postgres(location, busy=busy)
