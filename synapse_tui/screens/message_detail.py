"""One message whole: the text, how its delivery stands, what was answered, and all its steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.content import artifact_words, part_words
from synapse_tui.durations import moment
from synapse_tui.errors import SynapseError
from synapse_tui.messages.outbox import HELD_BY_USER
from synapse_tui.messages.records import Change
from synapse_tui.messages.recovery import BEFORE_RESTART, UNCERTAIN
from synapse_tui.model import IN_INBOX, DeliveryState, Task, TaskState
from synapse_tui.task_words import task_word
from synapse_tui.widgets.text import one_line, pad, printable
from synapse_tui.widgets.views import delivery_mark, party, proof, step_mark

from .dialog import Dialog

Choice = Literal["cancel", "hold", "send_now", "again"]

Steps = Callable[[str], Awaitable[Sequence[Change]]]
"""Reads the steps of a task."""

_WAITING = (DeliveryState.QUEUED, DeliveryState.HELD)
_WORD_CELLS = 11


class MessageDetail(Dialog[Choice]):
    """Shows a message; leaves with what is to be done with it.

    Args:
        task: The message.
        labels: What agents are called, by id.
        steps: Reads its steps.
        now: The time now, aware.
    """

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [
        Binding("c", "choose('cancel')", show=False),
        Binding("h", "choose('hold')", show=False),
        Binding("s", "choose('send_now')", show=False),
        Binding("a", "choose('again')", show=False),
    ]

    def __init__(
        self, task: Task, labels: Mapping[str, str], *, steps: Steps, now: Callable[[], datetime]
    ) -> None:
        super().__init__()
        self.message = task
        self._labels = labels
        self._read_steps = steps
        self._now = now
        self._timeline = Content("")

    def title_text(self) -> str:
        """The title in the frame."""
        task = self.message
        return f"{party(task.sender.sender_id, self._labels)} → {party(task.target, self._labels)}"

    def body(self) -> ComposeResult:
        """The facts, the text, the answers."""
        with VerticalScroll(classes="body"):
            yield Static(self._text(), id="detail", markup=False)

    def on_mount(self) -> None:
        """Read the steps."""
        self._read()

    def _read(self) -> None:
        self.run_worker(self._show_steps(), exclusive=True, exit_on_error=False, group="timeline")

    async def _show_steps(self) -> None:
        try:
            changes = await self._read_steps(self.message.id)
        except SynapseError as error:
            self._timeline = Content.assemble(("\n\nTimeline  ", "bold $hot"), (error.message, "$ink-muted"))
        else:
            self._timeline = timeline_text(changes, self._now())
        self.query_one("#detail", Static).update(self._text())

    def _text(self) -> Content:
        return Content.assemble(detail_text(self.message), self._timeline)

    def buttons(self) -> ComposeResult:
        """What can be done in the present state."""
        for choice, text in self._choices().items():
            yield Button(text, id=choice, compact=True)
        yield Button("Close", id="close", compact=True)

    def _choices(self) -> dict[str, str]:
        task = self.message
        choices = {}
        if task.delivery in _WAITING and not task.state.final:
            uncertain = task.reason.startswith(UNCERTAIN)
            choices["send_now"] = "Send again now (s)" if uncertain else "Send now (s)"
            if not uncertain and task.reason != IN_INBOX:
                held = task.reason in (HELD_BY_USER, BEFORE_RESTART)
                choices["hold"] = "Release (h)" if held else "Hold (h)"
        if not task.state.final:
            choices["cancel"] = "Cancel message (c)"
        else:
            choices["again"] = "Send again (a)"
        return choices

    def update(self, task: Task) -> None:
        """Show a newer snapshot of the message."""
        before = self._choices()
        self.message = task
        self.query_one("#detail", Static).update(self._text())
        self._read()
        if self._choices() != before:
            self.refresh(recompose=True)

    def action_choose(self, choice: Choice) -> None:
        """Leave with the choice, where it is one."""
        if choice in self._choices():
            self.dismiss(choice)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        choice = event.button.id
        self.dismiss(choice if choice in self._choices() else None)  # type: ignore[arg-type]


def detail_text(task: Task) -> Content:
    """A message with everything that is known about it."""
    mark, word = delivery_mark(task), task_word(task.state, task.delivery)
    parts: list[tuple[str, str]] = [
        (f"{mark.glyph} {mark.word}", f"bold ${mark.colour}"),
        (f"  {printable(task.reason)}\n" if task.reason else "\n", f"${mark.colour}"),
        (f"priority {task.priority} · task {task.short_id} · {word} · ", "$ink-muted"),
        (f"{task.created_at.astimezone():%H:%M:%S}", "$ink-muted"),
        (f" · goes on with task {task.follows[:8]}" if task.follows else "", "$ink-muted"),
        (f"\nfrom {printable(task.sender.sender_id)}{proof(task.sender)} to {task.target}\n\n", "$ink-muted"),
        *said(task),
    ]
    return Content.assemble(*parts)


def said(task: Task) -> list[tuple[str, str]]:
    """The message, what was said about it since, and the answers, as runs of text and their styles."""
    parts = [(printable(task.text), "$ink")]
    for message in task.messages[1:]:
        head = "\n\n↳ question\n" if message.role == "agent" else "\n\n→ goes on\n"
        words = "\n".join(map(part_words, message.parts))
        parts += [(head, "bold $hot"), (printable(words), "$ink")]
    for artifact in task.artifacts:
        head = "\n\n↳ answer (rows are missing)\n" if artifact.truncated else "\n\n↳ answer\n"
        parts += [(head, "bold $hot"), (printable(artifact_words(artifact)), "$ink")]
    return parts


def timeline_text(changes: Sequence[Change], now: datetime) -> Content:
    """The steps of a message, oldest first: when, what, why."""
    if not changes:
        return Content("")
    parts: list[tuple[str, str]] = [("\n\nTimeline\n", "bold $hot")]
    for change in changes:
        mark = step_mark(TaskState(change.state), DeliveryState(change.delivery), change.reason)
        parts += [
            (f"  {moment(change.time, now)}  ", "$ink-faint"),
            (f"{mark.glyph} {pad(mark.word, _WORD_CELLS)}", f"${mark.colour}"),
            (f"{one_line(change.reason)}\n", "$ink-muted"),
        ]
    return Content.assemble(*parts).rstrip()
