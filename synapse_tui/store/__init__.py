"""What survives the process: the history of tasks, the outboxes and locks of files, through SQLModel.

They lie in files of this machine (SQLite), or on a server that a team shares (PostgreSQL): `location.py` says
where, `backends/` keeps, `search_*` searches, `naming.py` translates. What the loop calls imports no
SQLModel: `history`, `journal`, `batch`, `push`, `push_journal`, `aftermath`, `location`, `naming`.
"""

from .batch import AgentKey
from .history import History
from .journal import AgentJournal

__all__ = ["AgentJournal", "AgentKey", "History"]
