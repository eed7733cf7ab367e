"""Programs in pseudo-terminals: spawn, read, write, resize, terminate, reap. The only user of ptyprocess."""

from synapse_tui.system.pty.guardian import Guardian, GuardianHandle, Handle
from synapse_tui.system.pty.process import PtyProcess
from synapse_tui.system.pty.scheduler import ReadScheduler
from synapse_tui.system.pty.spawn import find_command

__all__ = ["Guardian", "GuardianHandle", "Handle", "PtyProcess", "ReadScheduler", "find_command"]
