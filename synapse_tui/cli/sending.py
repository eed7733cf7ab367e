"""What `send`, `broadcast`, `delegate` and others that send have in common: their options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

from synapse_tui.errors import InvalidValue
from synapse_tui.model import DEFAULT_PRIORITY, Sender, check_priority

from .caller import Caller
from .flow import flow_of, insists, waits
from .options import Function, one_of, stacked
from .order import Order

MAX_WAIT = 7 * 86_400
"""Seconds."""
WAIT = 300
"""Seconds that are waited for an answer when nothing else is said."""

_SENDER = click.option(
    "--from", "sender", metavar="ID", default="", help="Who sends it; else $SYNAPSE_AGENT_ID, or you."
)
_PRIORITY = click.option(
    "-p",
    "--priority",
    metavar="N",
    type=int,
    default=DEFAULT_PRIORITY,
    show_default=True,
    help="1 (information) to 5 (interrupt).",
)


def wait_option(default: float = WAIT) -> Callable[[Function], Function]:
    """`--wait-timeout`."""
    return click.option(
        "--wait-timeout",
        metavar="S",
        type=float,
        default=default,
        show_default=True,
        help="Seconds to wait for the answer at most.",
    )


def response_option(*, receipts: bool = False) -> Callable[[Function], Function]:
    """`--response` and `--no-response`; the command is told `response`, None for neither.

    Args:
        receipts: Whether only receipts are waited for, unless the setting says otherwise.
    """
    usual = "The default." if receipts else "With neither the setting a2a.flow decides."
    return one_of(
        "response",
        ("--response", True, "Wait for the answer and print it."),
        ("--no-response", False, f"Wait only for the receipt. {usual}"),
    )


def sending_options(*, receipts: bool = False) -> Callable[[Function], Function]:
    """All options of a message; the command hands them to `Sending`.

    Args:
        receipts: Whether only receipts are waited for, unless the setting says otherwise.
    """
    return stacked(_SENDER, _PRIORITY, response_option(receipts=receipts), wait_option())


@dataclass(frozen=True, slots=True)
class Sending:
    """How a message is to be sent, as the options say.

    Attributes:
        sender: Who sends it; empty for whoever runs the command.
        priority: 1 to 5.
        response: True for `--response`, False for `--no-response`, None for neither.
        wait_timeout: Seconds to wait at most.

    Raises:
        InvalidValue: One of them cannot be.
    """

    sender: str
    priority: int
    response: bool | None
    wait_timeout: float

    def __post_init__(self) -> None:
        check_priority(self.priority)
        check_timeout(self.wait_timeout)

    def order(self, caller: Caller, who: Sender, text: str, *, follows: str = "") -> Order:
        """The message as it is to be sent; what is wrong with the settings is told on stderr."""
        flow = flow_of(caller)
        timeout = self.wait_timeout if waits(flow, self.response) else None
        insisting = insists(flow, self.response)
        return Order(caller, who, text, self.priority, timeout, follows=follows, insists=insisting)


def check_timeout(seconds: float) -> None:
    """Check how long is to be waited.

    Raises:
        InvalidValue: It is negative, no number, or over a week.
    """
    if not 0 <= seconds <= MAX_WAIT:
        raise InvalidValue(f"--wait-timeout {seconds:g} is not valid", f"give seconds from 0 to {MAX_WAIT}")
