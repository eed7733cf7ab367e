"""Textual driver for given descriptors: input tokenizer, non-blocking output, size."""

from .input_events import (
    OuterTerminalChanged,
    TerminalKey,
    TerminalKeyRelease,
    TerminalText,
)
from .link import LinkOptions, TerminalLink
from .outer import OuterTerminal, restore_terminal
from .synapse_driver import DriverOptions, SynapseDriver, driver_class

__all__ = [
    "DriverOptions",
    "LinkOptions",
    "OuterTerminal",
    "OuterTerminalChanged",
    "SynapseDriver",
    "TerminalKey",
    "TerminalKeyRelease",
    "TerminalLink",
    "TerminalText",
    "driver_class",
    "restore_terminal",
]
