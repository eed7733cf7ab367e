"""What outlives a host: the saved workspace with its scrollback, and the handover to a newer version."""

from .handover import AgentHandover, GuardianHandover, Handover
from .keeper import WorkspaceKeeper
from .saved import SavedAgent, SavedView, SavedWorkspace, boot_id
from .store import WorkspaceStore

__all__ = [
    "AgentHandover",
    "GuardianHandover",
    "Handover",
    "SavedAgent",
    "SavedView",
    "SavedWorkspace",
    "WorkspaceKeeper",
    "WorkspaceStore",
    "boot_id",
]
