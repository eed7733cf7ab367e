"""What outlives a host: the saved workspace with its scrollback, and the handover to a newer version."""

from .keeper import WorkspaceKeeper
from .saved import SavedAgent, SavedView, SavedWorkspace, boot_id
from .store import WorkspaceStore

__all__ = ["SavedAgent", "SavedView", "SavedWorkspace", "WorkspaceKeeper", "WorkspaceStore", "boot_id"]
