"""State that outlives a host: the saved workspace with its scrollback, and the handover to an upgrade."""

from .store import (
    AgentHandover,
    GuardianHandover,
    Handover,
    SavedAgent,
    SavedView,
    SavedWorkspace,
    WorkspaceStore,
    boot_id,
)

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
