"""Programs in pseudo-terminals: spawn, read, write, resize, terminate, reap. The only user of ptyprocess."""

from .guardian import Guardian, GuardianHandle, Handle
from .process import PtyProcess
from .scheduler import ReadScheduler
from .spawn import find_command

__all__ = ["Guardian", "GuardianHandle", "Handle", "PtyProcess", "ReadScheduler", "find_command"]
