"""Who may write which file: locks, names of files, the lines that a change touched; no database."""

from .keys import FileKeys
from .model import (
    LEASE,
    ChangeType,
    Holder,
    Lock,
    Modification,
    ModificationQuery,
    Verdict,
    denial,
    local_task,
    told_change,
)

__all__ = [
    "LEASE",
    "ChangeType",
    "FileKeys",
    "Holder",
    "Lock",
    "Modification",
    "ModificationQuery",
    "Verdict",
    "denial",
    "local_task",
    "told_change",
]
