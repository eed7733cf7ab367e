"""What survives the process: the history of tasks, the outboxes and locks of files, through SQLModel.

They lie in files of this machine (SQLite), or on a server that a team shares (PostgreSQL): `location.py` says
where, `backends/` keeps, `search_*` searches, `naming.py` translates. What the loop calls imports no
SQLModel: `history`, `journal`, `batch`, `push`, `push_journal`, `aftermath`, `location`, `naming`; nor does
`quick`, by which short commands read a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .batch import AgentKey
    from .history import History
    from .journal import AgentJournal

__all__ = ["AgentJournal", "AgentKey", "History"]

_MODULES = {"AgentKey": "batch", "History": "history", "AgentJournal": "journal"}


def __getattr__(name: str) -> object:
    """Load a name when it is used: commands need none of them."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
