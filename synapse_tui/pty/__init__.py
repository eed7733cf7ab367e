"""Programs in pseudo-terminals: spawn, read, write, resize, end, reap; ptyprocess is used only here."""

from .guardian import Guardian, GuardianHandle, Handle
from .process import PtyProcess
from .scheduler import ReadScheduler
from .spawn import find_command

__all__ = ["Guardian", "GuardianHandle", "Handle", "PtyProcess", "ReadScheduler", "find_command"]
