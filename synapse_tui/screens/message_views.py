"""One message whole: the text, how its delivery stands, what was answered, and all its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Literal

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.content import artifact_words, part_words
from synapse_tui.durations import moment
from synapse_tui.errors import SynapseError
from synapse_tui.messages.outbox import HELD_BY_USER
from synapse_tui.messages.records import Change
from synapse_tui.messages.recovery import BEFORE_RESTART, UNCERTAIN
from synapse_tui.model import IN_INBOX, DeliveryState, Task, TaskState
from synapse_tui.task_words import task_word
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.pane import Delivery
from synapse_tui.widgets.text import one_line, pad, printable, shorten
from synapse_tui.widgets.views import Mark, delivery_mark, party, proof, step_mark

from .dialog import Dialog

if TYPE_CHECKING:
    from synapse_tui.host import Receipt

Choice = Literal["cancel", "hold", "send_now", "again"]

Steps = Callable[[str], Awaitable[Sequence[Change]]]  # reads the steps of a task

_WAITING = (DeliveryState.QUEUED, DeliveryState.HELD)
_WORD_CELLS = 11


class MessageDetail(Dialog[Choice]):
    """Shows a message; leaves with what is to be done with it."""

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
        task = self.message
        return f"{party(task.sender.sender_id, self._labels)} → {party(task.target, self._labels)}"

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static(self._text(), id="detail", markup=False)

    def on_mount(self) -> None:
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
        before = self._choices()
        self.message = task
        self.query_one("#detail", Static).update(self._text())
        self._read()
        if self._choices() != before:
            self.refresh(recompose=True)

    def action_choose(self, choice: Choice) -> None:
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


FAILED = Mark("×", "state-error", "failed")
SENDING = Mark("○", "state-unknown", "sending")
SENT = Mark("→", "state-working", "sent")
ROOM = 58  # characters of a pane's title in which receipts of several agents are told one by one


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a message to one agent.

    Attributes:
        name: What the agent is called.
        mark: How it looks.
        reason: Why; empty for nothing to say.
        task_id: UUID of the task; empty when none was made.
        settled: Whether it went well and nothing more will be heard of it.
    """

    name: str
    mark: Mark
    reason: str = ""
    task_id: str = ""
    settled: bool = False

    @property
    def words(self) -> str:
        """It as words: `gemini: held: you have a draft`."""
        if self.reason.startswith(self.mark.word):
            return f"{self.name}: {self.reason}"
        return f"{self.name}: {self.mark.word}" + (f": {self.reason}" if self.reason else "")


def fate_of_task(task: Task, name: str) -> Fate:
    """What has become of a message, by its task."""
    settled = task.delivery is DeliveryState.DONE and task.state is TaskState.COMPLETED
    return Fate(name, delivery_mark(task), task.reason, task.id, settled=settled)


def fate_of_receipt(receipt: Receipt, name: str) -> Fate:
    """What has become of handing a message over, where its task is not known here."""
    if receipt.error is not None:
        return Fate(name, FAILED, receipt.error.message)
    # What becomes of it in another process is not told here, so no state is shown that would stay.
    return Fate(name, SENT, "", receipt.task_id, settled=True)


def summary(fates: Sequence[Fate], room: int | None = None) -> str:
    """What became of a message to several agents, as exactly as there is room for."""
    whole = " · ".join(fate.words for fate in fates)
    if len(fates) == 1 or room is None or len(whole) <= room:
        return whole
    short = " · ".join(f"{fate.mark.glyph} {fate.name}" for fate in fates)
    if len(short) <= room:
        return short
    counts = Counter(fate.mark.word for fate in fates)
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def delivery_of(fates: Sequence[Fate]) -> Delivery:
    """What a pane's title shows of a message; it leads to it, or to the receipts of all who got it."""
    ill = [fate for fate in fates if fate.mark.glyph == FAILED.glyph]
    open_ = [fate for fate in fates if not fate.settled]
    first = (ill or open_ or fates)[0]
    several = len(fates) > 1
    linked = "" if several else first.task_id
    return Delivery(first.mark, summary(fates, ROOM), linked, settled=not open_, several=several)


NAME_CELLS = 18
TEXT_CELLS = 200


@dataclass(frozen=True, slots=True)
class Line:
    """One receiver.

    Attributes:
        fate: What has become of its message.
        task: Its task; None when that is not known here.
    """

    fate: Fate
    task: Task | None


class Receipts(Dialog[str]):
    """Leaves with the id of a task that is to be shown whole."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter shows it whole · Esc closes"
    AUTO_FOCUS = "#receipts"

    def __init__(self, look: Callable[[], Sequence[Line]], now: Callable[[], datetime]) -> None:
        super().__init__()
        self._look = look
        self._now = now
        self._lines = look()

    def title_text(self) -> str:
        return f"Message to {len(self._lines)} agents"

    def body(self) -> ComposeResult:
        text = next((line.task.text for line in self._lines if line.task is not None), "")
        yield Static(Content(shorten(one_line(text), TEXT_CELLS)), classes="faint", markup=False)
        yield Choices(id="receipts", markup=False, compact=True)

    def buttons(self) -> ComposeResult:
        yield Button("Close", id="close", compact=True)

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_news)

    def show_news(self) -> None:
        view = self.query_one("#receipts", OptionList)
        self._lines = self._look() or self._lines
        width, now, marked = view.size.width - 1, self._now(), view.highlighted
        if width > 0:
            view.clear_options()
            view.add_options([Option(_row(line, width, now)) for line in self._lines])
            view.highlighted = marked or 0

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        task = self._lines[event.option_index].task
        if task is not None:
            self.dismiss(task.id)

    @on(Button.Pressed)
    def _pressed(self) -> None:
        self.dismiss(None)


def _row(line: Line, width: int, now: datetime) -> Content:
    """Two lines: who, how far, since when; why, or what was answered."""
    fate, task = line.fate, line.task
    answer = one_line(task.answer) if task is not None else ""
    head = f" {fate.mark.glyph} {pad(fate.name, NAME_CELLS)} "
    word = "answered" if answer and fate.settled else fate.mark.word
    tail = f"{word}  {moment(task.updated_at, now)}" if task is not None else word
    below = f"↳ {answer}" if answer else one_line(fate.reason)
    return Content.assemble(
        (head, "bold $ink"),
        " " * max(1, width - cell_len(head) - cell_len(tail)),
        (tail, f"${fate.mark.colour}"),
        ("\n   " + shorten(below, width - 3), "$ink-muted"),
    )
