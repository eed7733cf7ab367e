"""Programs in pseudo-terminals: spawn, read, write, resize, end, reap; ptyprocess is used only here."""

from .adoption import GuardianHandle, Handle
from .command import find_command
from .guardian import Guardian
from .process import PtyProcess
from .scheduler import ReadScheduler

__all__ = ["Guardian", "GuardianHandle", "Handle", "PtyProcess", "ReadScheduler", "find_command"]
