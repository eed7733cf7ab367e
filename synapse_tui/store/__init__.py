"""What survives the process: the history of tasks and the outboxes, in SQLite through SQLModel.

Only the modules of the writer thread import SQLModel: `database`, `engine`, `rows`, `schema`, `tables`.
"""

from .batch import AgentKey
from .history import AgentJournal, History

__all__ = ["AgentJournal", "AgentKey", "History"]
