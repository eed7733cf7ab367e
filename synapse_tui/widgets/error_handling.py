"""Keeps the application going when a handler fails: the error is logged and, once, shown."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from textual.message import Message

log = logging.getLogger(__name__)

# before the same error is shown again; a widget that cannot be drawn fails at every frame
REPEAT_SECONDS = 30.0


@runtime_checkable
class Reporter(Protocol):
    """An application that handles unexpected errors."""

    def report(self, error: Exception) -> None:
        """Log and show it; before the first frame it ends the application."""

    def notice_error(self, error: Exception) -> None:
        """Tell the person about an error that may happen."""


class FaultTolerant(MessagePump):
    """A widget, screen or application that goes on after an error of a handler, where Textual would not."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not isinstance(self.app, Reporter):
                raise
            self.app.report(error)


class ErrorGate:
    """Logs errors and decides whether one is worth a notice."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reported: dict[str, float] = {}
        self.count = 0  # how many errors there were

    def passes(self, error: BaseException) -> bool:
        """Log an error and return True, unless it was just reported."""
        self.count += 1
        now = self._clock()
        self._reported = {
            known: when for known, when in self._reported.items() if now - when < REPEAT_SECONDS
        }
        key = f"{type(error).__name__}: {error}"
        if key in self._reported:
            return False
        self._reported[key] = now
        log.error("unhandled error in the application", exc_info=error)
        return True
