"""What the scripted agent does with a message, by the beginning of its message id.

The ids are those of the scenarios of the official A2A test kit, which tells an agent by them what to do;
anything else is a usual turn. In the 0.3 manner every message is worked on for some seconds and then asks for
more, since the kit's tests of that version look at tasks that have not ended.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from synapse_tui.dummy.runner import Step

Steps = Generator[Step, object, None]
Part = Mapping[str, object]

GLANCE = 0.25
"""Seconds between two looks whether others wait."""
PAUSE = 0.5
"""Seconds before each text of an answer."""
V03_SECONDS = 3.0
DELAY_SECONDS = 2.0
RESUBSCRIBE_SECONDS = 10.0
_FILE = MappingProxyType({"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"})
_FILE_URL = MappingProxyType(
    {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}
)
_DATA = MappingProxyType({"data": {"key": "value", "count": 42}})


class Desk(Protocol):
    """The agent's own server, as far as a turn needs it."""

    def reply(self, parts: Sequence[Part], state: str = "completed", *, as_message: bool = False) -> None:
        """Answer the task that is worked on."""

    def others_wait(self) -> bool:
        """Whether there are more messages."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message.

    Attributes:
        message_id: Id that the sender gave it; empty for none.
        text: The message.
        desk: Answers it.
        pace: Long turns take so many times as long.
    """

    message_id: str
    text: str
    desk: Desk
    pace: float = 1.0


def perform(turn: Turn, *, protocol: str = "1.0") -> Steps:
    """The steps of a turn."""
    for prefix, script in _SCRIPTS.items():
        if turn.message_id.startswith(prefix):
            yield from script(turn)
            return
    yield from _ask_later(turn) if protocol == "0.3" else _usual(turn)


def work(turn: Turn, seconds: float) -> Steps:
    """Take so long, or less when other messages wait: they would else be late for whoever looks at them."""
    for _ in range(round(seconds * turn.pace / GLANCE)):
        yield GLANCE
        if turn.desk.others_wait():
            return


def _usual(turn: Turn) -> Steps:
    yield f"You said: {turn.text}"


def _ask_later(turn: Turn) -> Steps:
    yield from work(turn, V03_SECONDS)
    turn.desk.reply([{"text": "What next?"}], "input_required")


def _answering(*parts: Part, state: str = "completed", as_message: bool = False) -> Callable[[Turn], Steps]:
    def script(turn: Turn) -> Steps:
        turn.desk.reply(parts, state, as_message=as_message)
        yield from ()

    return script


def _saying(text: str) -> Callable[[Turn], Steps]:
    def script(turn: Turn) -> Steps:
        yield PAUSE * turn.pace
        yield text

    return script


def _delayed(seconds: float, text: str) -> Callable[[Turn], Steps]:
    def script(turn: Turn) -> Steps:
        yield from work(turn, seconds)
        turn.desk.reply([{"text": text}])

    return script


def _chunks(_turn: Turn) -> Steps:
    """Two texts at the usual pace: readers are told of a row when the next one stands, not at once."""
    for text in ("chunk-1", "\nchunk-2"):
        yield PAUSE
        yield text
    yield 2 * PAUSE


def _file_streamed(turn: Turn) -> Steps:
    yield PAUSE * turn.pace
    turn.desk.reply([_FILE])


_SCRIPTS: Mapping[str, Callable[[Turn], Steps]] = MappingProxyType(
    {
        # The longer beginnings stand before the shorter ones.
        "tck-stream-artifact-chunked": _chunks,
        "tck-stream-artifact-text": _saying("Streamed text content"),
        "tck-stream-artifact-file": _file_streamed,
        "tck-stream-ordering-001": _saying("Ordered output"),
        "tck-stream-001": _saying("Stream hello from TCK"),
        "tck-stream-002": _answering({"text": "Stream of one message"}),
        "tck-stream-003": _saying("Stream task lifecycle"),
        "test-resubscribe-message-id": _delayed(RESUBSCRIBE_SECONDS, "Done after the subscription"),
        "tck-delayed-complete": _delayed(DELAY_SECONDS, "Done after delay"),
        "tck-complete-task": _answering({"text": "Hello from TCK"}),
        "tck-artifact-text": _answering({"text": "Generated text content"}),
        "tck-artifact-file-url": _answering(_FILE_URL),
        "tck-artifact-file": _answering(_FILE),
        "tck-artifact-data": _answering(_DATA),
        "tck-message-response": _answering({"text": "Direct message response"}, as_message=True),
        "tck-input-required": _answering({"text": "What more?"}, state="input_required"),
        "tck-reject-task": _answering({"text": "rejected"}, state="rejected"),
    }
)


def message_of(task: Mapping[str, Any]) -> str:
    """The id of the newest message that its sender wrote in a task of the dialect; empty for none."""
    written = [message for message in task.get("messages", []) if message.get("role") == "user"]
    return str(written[-1].get("message_id", "")) if written else ""
