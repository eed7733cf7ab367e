"""Textual driver for given descriptors: input tokenizer, non-blocking output, size."""

from synapse_tui.widgets.driver.input_events import (
    OuterTerminalChanged,
    TerminalKey,
    TerminalKeyRelease,
    TerminalText,
)
from synapse_tui.widgets.driver.link import LinkOptions, TerminalLink
from synapse_tui.widgets.driver.outer import OuterTerminal, restore_terminal
from synapse_tui.widgets.driver.synapse_driver import DriverOptions, SynapseDriver, driver_class

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
