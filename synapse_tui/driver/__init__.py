"""Textual driver on given descriptors: input tokenizer, non-blocking output, size."""

from .events import OuterTerminalChanged, TerminalKey, TerminalKeyRelease
from .modes import restore_terminal
from .outer import OuterTerminal
from .synapse_driver import DriverOptions, SynapseDriver, driver_class

__all__ = [
    "DriverOptions",
    "OuterTerminal",
    "OuterTerminalChanged",
    "SynapseDriver",
    "TerminalKey",
    "TerminalKeyRelease",
    "driver_class",
    "restore_terminal",
]
