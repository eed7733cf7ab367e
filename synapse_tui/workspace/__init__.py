"""State that outlives a host: the saved workspace with its scrollback, and the handover to an upgrade."""

from .handover import AgentHandover, GuardianHandover, Handover
from .store import SavedAgent, SavedView, SavedWorkspace, WorkspaceStore, boot_id

__all__ = [
    "AgentHandover",
    "GuardianHandover",
    "Handover",
    "SavedAgent",
    "SavedView",
    "SavedWorkspace",
    "WorkspaceStore",
    "boot_id",
]
