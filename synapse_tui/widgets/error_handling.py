"""Keeps the application running when a handler fails: errors are logged and shown once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from textual.message import Message

log = logging.getLogger(__name__)

# before the same error is shown again; a widget that cannot be drawn fails on every frame
REPEAT_SECONDS = 30.0


@runtime_checkable
class Reporter(Protocol):
    """An application that handles unexpected errors."""

    def report(self, error: Exception) -> None:
        """Log and show an error; before the first frame it ends the application."""

    def notice_error(self, error: Exception) -> None:
        """Show an expected error."""


class FaultTolerant(MessagePump):
    """A widget, screen or application that survives errors in handlers, unlike in plain Textual."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            if not isinstance(self.app, Reporter):
                raise
            self.app.report(error)


class ErrorGate:
    """Logs errors and suppresses repeats."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reported: dict[str, float] = {}
        self.count = 0  # total errors

    def passes(self, error: BaseException) -> bool:
        """Log an error and return True, unless the same one was reported recently."""
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
