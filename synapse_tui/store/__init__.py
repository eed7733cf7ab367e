"""What survives the process: the history of tasks and the outboxes, in SQLite through SQLModel.

Only the modules of the writer thread import SQLModel: `database`, `engine`, `pages`, `rows`, `schema`,
`tables`, `push_rows`, `push_tables`.
"""

from .batch import AgentKey
from .history import History
from .journal import AgentJournal

__all__ = ["AgentJournal", "AgentKey", "History"]
