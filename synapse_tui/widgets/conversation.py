"""The tab of an external agent: conversation, status, and composer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import ClassVar, Literal, get_args

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import TextArea

from synapse_tui.core.model import AgentState, DeliveryState, Task, TaskState
from synapse_tui.messages.conversations import ConversationEntry
from synapse_tui.settings.actions import PLACES, Place
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .error_handling import FaultTolerant
from .fit import Piece, shorten, width_of
from .key_hints import keys_of
from .pane import Pane
from .segment_bar import SegmentBar
from .states import Mark, delivery_mark, state_mark
from .text import one_line, plural, wrap_words, wrapped
from .views import party

# style of a run: a component class of `ConversationLog` without its prefix
Role = Literal["head", "own-head", "own", "text", "progress", "question", "note", "alert", "blank"]
WIDEST = 100  # maximum width of a line in cells, for readability
HINT_ROWS = 4  # of each sentence in an empty conversation
OWN_SHARE = 0.75  # maximum share of the width for the user's messages


@dataclass(frozen=True, slots=True)
class ConversationModel:
    alias: str
    name: str = ""
    protocol: str = ""  # for display
    entries: Sequence[ConversationEntry] = ()  # oldest first
    tasks: Sequence[Task] = ()  # oldest first
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    known: bool = True  # whether the agent is still in the registry

    @property
    def open_task(self) -> Task | None:
        return next((task for task in reversed(self.tasks) if not task.state.final), None)

    @property
    def asking(self) -> Task | None:
        found = (task for task in reversed(self.tasks) if task.state is TaskState.INPUT_REQUIRED)
        return next(found, None)

    @property
    def state(self) -> tuple[AgentState, str]:
        asking, going = self.asking, self.open_task
        if asking is not None:
            return AgentState.WAITING, tr(one_line(asking.reason))
        if going is not None:
            return AgentState.PROCESSING, ""
        last = self.tasks[-1] if self.tasks else None
        if last is not None and last.state in (TaskState.FAILED, TaskState.REJECTED):
            return AgentState.ERROR, tr(one_line(last.reason))
        return AgentState.READY, ""

    @property
    def mark(self) -> Mark:
        return state_mark(self.state[0])

    def author(self, entry: ConversationEntry) -> str:
        return party(entry.sender_id, self.labels) if entry.kind == "sent" else self.alias


@dataclass(frozen=True, slots=True)
class Run:
    text: str
    role: Role


@dataclass(frozen=True, slots=True)
class ConversationLine:
    pieces: tuple[Run, ...] = ()  # the content after the indent
    indent: int = 0
    key: str = ""  # of the entry it belongs to, if any


# cached lines by entry key, with the values they were made from
Known = dict[str, tuple[object, tuple[ConversationLine, ...]]]


class ConversationLines:
    """Lays out a conversation as lines of at most `width` cells; `known` caches unchanged entries."""

    def __init__(self, model: ConversationModel, width: int, now: datetime, known: Known) -> None:
        self._model = model
        self._width = width
        self._now = now
        self._known = known
        self._day = now.astimezone().date()
        last = {entry.task_id: entry.key for entry in model.entries if entry.kind == "sent"}
        # task marks, by the key of the last message sent about the task
        self._marks = {last[task.id]: _task_mark(task) for task in model.tasks if task.id in last}

    def all(self) -> list[ConversationLine]:
        lines: list[ConversationLine] = []
        before: ConversationEntry | None = None
        for entry in self._model.entries:
            joined = before is not None and _belongs(before, entry)
            if not joined and lines:
                lines.append(ConversationLine())
            lines += self._entry(entry, headed=not joined)
            before = entry
        return lines

    def _entry(self, entry: ConversationEntry, *, headed: bool) -> tuple[ConversationLine, ...]:
        author = self._model.author(entry)
        made_of = (entry, headed, self._width, self._marks.get(entry.key), author, self._day)
        known = self._known.get(entry.key)
        if known is None or known[0] != made_of:
            known = self._known[entry.key] = (made_of, tuple(self._draw(entry, headed=headed)))
        return known[1]

    def _draw(self, entry: ConversationEntry, *, headed: bool) -> Iterator[ConversationLine]:
        if entry.kind == "note":
            yield from _note_lines(entry, self._width)
        elif entry.kind == "sent":
            yield from self._own(entry)
        else:
            if headed:
                yield ConversationLine(tuple(_head(self._model, entry, self._now)), 1, entry.key)
            texts = wrapped(entry.text, min(self._width - 4, WIDEST))
            role: Role = entry.kind if entry.kind in ("progress", "question") else "text"
            yield from (ConversationLine((Run(text, role),), 3, entry.key) for text in texts)

    def _own(self, entry: ConversationEntry) -> Iterator[ConversationLine]:
        width = self._width
        room = max(8, min(int(width * OWN_SHARE), WIDEST) - 2)
        texts = wrapped(entry.text, room)
        box = min(room, max(map(cell_len, texts), default=0)) + 2
        mark = self._marks.get(entry.key)
        head = f"{self._model.author(entry)}  {clock_time(entry.at, self._now)}"
        tail = f"  {mark.glyph} {mark.word}" if mark is not None and width > 40 else ""
        indent = max(0, width - cell_len(head + tail) - 1)
        loud = mark is not None and mark.colour in ("fail", "needs")
        yield ConversationLine(
            (Run(head, "own-head"), Run(tail, "alert" if loud else "note")), indent, entry.key
        )
        for text in texts:
            filled = f" {text}{' ' * (box - 2 - cell_len(text))} "
            yield ConversationLine((Run(filled, "own"),), max(0, width - box - 1), entry.key)


def _belongs(before: ConversationEntry, entry: ConversationEntry) -> bool:
    quiet = ("progress", "answer")
    return before.task_id == entry.task_id and before.kind in quiet and entry.kind in quiet and not entry.name


def _head(model: ConversationModel, entry: ConversationEntry, now: datetime) -> Iterator[Run]:
    asks = entry.kind == "question"
    yield Run(tr(f"{model.alias} asks") if asks else model.alias, "question" if asks else "head")
    if entry.name:
        yield Run(f" · {shorten(one_line(entry.name), 40)}", "note")
    yield Run(f"  {clock_time(entry.at, now)}", "note")
    if entry.growing:
        yield Run("  ◐", "head")


def _task_mark(task: Task) -> Mark:
    mark = delivery_mark(task)
    if task.delivery is DeliveryState.SUBMITTED and task.state is TaskState.SUBMITTED:
        return Mark("→", "work", "taken")
    return mark


def _note_lines(entry: ConversationEntry, width: int) -> Iterator[ConversationLine]:
    for at, text in enumerate(wrapped(tr(entry.text), max(8, min(width - 8, WIDEST)))):
        yield ConversationLine((Run(f"{'  ' if at else '· '}{text}", "note"),), 3, entry.key)


def clock_time(at: datetime, now: datetime) -> str:
    """Format the time of an entry; the date is included unless it is today."""
    there, here = at.astimezone(), now.astimezone()
    return there.strftime("%H:%M") if there.date() == here.date() else there.strftime("%Y-%m-%d %H:%M")


PAGE = 0.8  # share of the height to scroll per page


class ConversationLog(FaultTolerant, ScrollView, can_focus=False):
    """Displays the entries; follows new ones while scrolled to the end."""

    DEFAULT_CSS = """
    ConversationLog {
        height: 1fr; width: 1fr; background: $panel; color: $ink;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden;
        & > .conversation--blank { color: $ink; }
        & > .conversation--text { color: $ink; }
        & > .conversation--head { color: $ink; text-style: bold; }
        & > .conversation--own-head { color: $accent; text-style: bold; }
        & > .conversation--own { color: $ink; background: $raised; }
        & > .conversation--progress { color: $faint; text-style: italic; }
        & > .conversation--question { color: $needs; text-style: bold; }
        & > .conversation--alert { color: $needs; text-style: bold; }
        & > .conversation--note { color: $faint; }
        & > .conversation--marked { background: $select; color: $ink; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"conversation--{role}" for role in (*get_args(Role), "marked")}
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Copied(Message):
        text: str

    model: var[ConversationModel | None] = var(None)
    marked: var[str] = var("")  # key of the chosen entry, if any

    def __init__(self, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self.now = now
        self._lines: list[ConversationLine] = []
        self._made: ConversationModel | None = None  # the model that `_lines` shows
        self._keys: list[str] = []
        self._known: Known = {}
        self._styles: dict[str, Style] = {}
        self._follows = True  # whether to scroll to new entries

    # Content

    def watch_model(self) -> None:
        self._make()
        self.refresh()

    def on_resize(self) -> None:
        self._make()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}

    @property
    def at_end(self) -> bool:
        return self.scroll_offset.y >= self.max_scroll_y

    def _make(self) -> None:
        if self.model is None or not self.is_mounted or self.size.width < 2:
            return
        width = self.scrollable_content_region.width
        if len(self._known) > 2 * len(self.model.entries) + 10:
            self._known.clear()
        self._lines = ConversationLines(self.model, width, self.now(), self._known).all()
        self._made = self.model
        self._keys = [entry.key for entry in self.model.entries]
        if self.marked and self.marked not in self._keys:
            self.marked = ""
        self.virtual_size = Size(width, len(self._lines))
        if self._follows:
            self.call_after_refresh(self._to_end)
        self.refresh()

    def _to_end(self) -> None:
        if self._follows:
            self.scroll_end(animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following when the user scrolls back, and resume at the end."""
        super().watch_scroll_y(old_value, new_value)
        # New entries move the end before the view follows, so only scrolling back stops following.
        self._follows = self.at_end or (self._follows and new_value >= old_value)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        blank = self._style("blank")
        place = y + self.scroll_offset.y
        if self._made is not self.model:  # the model was set while the widget had no size
            self.call_later(self._make)
        if self.model is not None and not self._lines:
            return self._hint(y, width)
        if not 0 <= place < len(self._lines):
            return Strip.blank(width, blank)
        line = self._lines[place]
        marked = bool(line.key) and line.key == self.marked
        edge = Segment("▌" if marked else " ", self._style("own-head") if marked else blank)
        indent = max(0, line.indent - 1)
        pieces = [Segment(piece.text, self._piece_style(piece.role, marked=marked)) for piece in line.pieces]
        segments = [edge, Segment(" " * indent, blank), *pieces]
        return Strip(segments).adjust_cell_length(width, blank)

    def _hint(self, y: int, width: int) -> Strip:
        assert self.model is not None
        said = (
            tr("This is an external agent: what it says is shown here and never trusted."),
            tr(f"Write below, or type @{self.model.alias} and a message in any pane."),
        )
        lines = [f"{self.model.name} ({self.model.protocol})", ""]
        lines += [row for text in said for row in wrap_words(text, width - 4, HINT_ROWS)]
        at = y - max(0, (self.size.height - len(lines)) // 2)
        text = lines[at] if 0 <= at < len(lines) else ""
        style = self._style("head" if at == 0 else "note")
        left = " " * max(0, (width - cell_len(text)) // 2)
        return Strip([Segment(left + text, style)]).adjust_cell_length(width, style)

    def _piece_style(self, role: str, *, marked: bool) -> Style:
        return self._style(role) + self._style("marked") if marked else self._style(role)

    def _style(self, role: str) -> Style:
        found = self._styles.get(role)
        if found is None:
            found = self._styles[role] = self.get_component_rich_style(f"conversation--{role}")
        return found

    # Choosing entries

    def watch_marked(self) -> None:
        self.refresh()
        places = [at for at, line in enumerate(self._lines) if line.key == self.marked]
        if self.marked and places:
            top, height = self.scroll_offset.y, self.size.height
            if places[0] < top:
                self.scroll_to(y=places[0], animate=False)
            elif places[-1] >= top + height:
                self.scroll_to(y=min(places[0], places[-1] - height + 1), animate=False)

    def choose(self, by: int) -> None:
        """Choose another entry, starting with the last."""
        if not self._keys:
            return
        if self.marked not in self._keys:
            self.marked = self._keys[-1]
            return
        place = self._keys.index(self.marked) + by
        self.marked = self._keys[min(max(place, 0), len(self._keys) - 1)]

    def choose_end(self, *, first: bool) -> None:
        if self._keys:
            self.marked = self._keys[0 if first else -1]

    def leave(self) -> None:
        self.marked = ""
        self.scroll_end(animate=False)

    def copy(self, key: str) -> None:
        """Copy an entry in full; an empty key copies the agent's last one."""
        if self.model is None:
            return
        entries = self.model.entries
        found = next((entry for entry in entries if entry.key == key), None)
        if found is None:
            found = next((entry for entry in reversed(entries) if entry.kind not in ("sent", "note")), None)
        if found is not None:
            self.app.copy_to_clipboard(found.text)
            self.post_message(self.Copied(found.text))

    def page(self, by: int) -> None:
        rows = max(1, int(self.size.height * PAGE))
        self.scroll_to(y=self.scroll_offset.y + by * rows, animate=False)

    def on_click(self, event: events.Click) -> None:
        place = event.y + self.scroll_offset.y
        if event.chain == 2 and 0 <= place < len(self._lines) and self._lines[place].key:
            event.stop()
            self.copy(self._lines[place].key)


_SEND = ("enter", "ctrl+enter")
_NEWLINES = ("shift+enter", "alt+enter", "ctrl+j", "newline")
_PAGES = {"pageup": -1, "pagedown": 1, "page_up": -1, "page_down": 1, "shift+pageup": -1, "shift+pagedown": 1}
_CHOICES = {"up": -1, "down": 1, "k": -1, "j": 1}
_ENDS = {"home": True, "g": True, "end": False, "G": False}


class ConversationComposer(FaultTolerant, TextArea):
    """Handles all keys of a conversation: editing, and choosing entries of the log."""

    DEFAULT_CSS = """
    ConversationComposer, ConversationComposer:ansi {
        height: auto; max-height: 8; min-height: 1; border: none; padding: 0 1;
        background: $raised; color: $ink; scrollbar-size-vertical: 1;
        &:focus { background: $select; border: none; }
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Submitted(Message):
        text: str

    @dataclass
    class Navigated(Message):
        key: str

    choosing: var[bool] = var(False)  # whether keys choose an entry instead of editing

    def __init__(self) -> None:
        super().__init__(
            "",
            compact=True,
            show_line_numbers=False,
            tab_behavior="focus",
            placeholder=tr("Message"),
            soft_wrap=True,
        )
        self.cursor_blink = False
        self._sent: list[str] = []

    async def _on_key(self, event: events.Key) -> None:
        if self.choosing or event.key in _PAGES:
            key = event.character if event.character in ("g", "G") else event.key
            self.post_message(self.Navigated(key))
        elif not self._write(event.key):
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    def _write(self, key: str) -> bool:
        """Handle a key of the editor; False leaves it to the text area."""
        if key in _SEND:
            text = self.text.strip()
            if text:
                self._sent = [*self._sent[-49:], text]
                self.post_message(self.Submitted(text))
                self.text = ""
        elif key in _NEWLINES:
            self.insert("\n")
        elif key == "up" and not self.text and self._sent:
            self.text = self._sent[-1]
            self.move_cursor(self.document.end)
        else:
            return key in ("tab", "shift+tab", "escape")
        return True

    def give_back(self, text: str) -> None:
        """Restore a text that could not be sent, before anything typed since."""
        self.text = text if not self.text else f"{text}\n{self.text}"
        self.move_cursor(self.document.end)


ConversationCommand = Literal["cancel", "tasks", "card", "new"]
CHOOSING = tr("↑↓ choose · c copies · Esc back")


class ConversationStatus(SegmentBar):
    """Shows the status and commands; targets are commands of `ConversationView.Asked`."""

    DEFAULT_CSS = "ConversationStatus { background: $ground; }"

    model: reactive[ConversationModel | None] = reactive(None)
    choosing: reactive[bool] = reactive(False)

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        model = self.model
        if model is None:
            return [], []
        if self.choosing:
            return [Piece(f" {CHOOSING}", "bold $accent")], []
        right = self._commands(model)
        while right and width_of(right) > width // 2:
            right = right[1:]
        return self._state(model, width - width_of(right)), right

    def _state(self, model: ConversationModel, room: int) -> list[Piece]:
        state, detail = model.state
        mark = model.mark
        if not model.known:
            return [Piece(" × ", "bold $fail"), Piece(tr("it was removed"), "$fail")]
        words = {
            AgentState.WAITING: tr(f"asks: {detail}") if detail else tr("asks something: answer below"),
            AgentState.PROCESSING: tr("is working on your message"),
            AgentState.ERROR: detail or "failed",
        }.get(state, tr(f"Enter sends · Ctrl+J new line · {keys_of(self.app).way('scroll')} copy"))
        loud = state in (AgentState.WAITING, AgentState.ERROR)
        ink = f"${mark.colour}" if loud else "$muted"
        return [
            Piece(f" {mark.glyph} ", f"bold ${mark.colour}"),
            Piece(shorten(words, max(4, room - 4)), ink),
        ]

    def _commands(self, model: ConversationModel) -> list[Piece]:
        found = [Piece(tr(" new "), "$muted", "new", tr("Start a new conversation"))]
        if model.tasks:
            count = plural(len(model.tasks), "task")
            found.append(Piece(f" {count} ", "$muted", "tasks", tr("The tasks of this conversation")))
        found.append(Piece(tr(" card "), "$muted", "card", tr("The agent's description of itself")))
        if model.open_task is not None:
            key = keys_of(self.app).way("interrupt")
            found.append(Piece(tr(" ✕ cancel "), "bold $needs", "cancel", tr(f"Cancel the task ({key})")))
        return found


class ConversationView(FaultTolerant, Widget, can_focus=False):
    """A conversation: log, status and composer."""

    DEFAULT_CSS = "ConversationView { layout: vertical; width: 1fr; height: 1fr; background: $panel; }"
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Sent(Message):
        view: ConversationView
        text: str

        @property
        def control(self) -> ConversationView:
            return self.view

    @dataclass
    class Asked(Message):
        alias: str
        command: ConversationCommand

    model: var[ConversationModel | None] = var(None)

    def __init__(self, alias: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self.alias = alias
        self.log_view = ConversationLog(now=now)
        self.status = ConversationStatus()
        self.composer = ConversationComposer()

    def keys_here(self) -> Place:
        return PLACES["external"]

    def compose(self) -> ComposeResult:
        yield self.log_view
        yield self.status
        yield self.composer

    def watch_model(self, model: ConversationModel | None) -> None:
        self.log_view.model = model
        self.status.model = model
        if model is not None:
            words = (
                tr(f"Answer {model.alias}") if model.asking is not None else tr(f"Message to {model.alias}")
            )
            self.composer.placeholder = words

    def toggle_choosing(self) -> None:
        self._set_choosing(not self.composer.choosing)

    def stop_choosing(self) -> None:
        self._set_choosing(False)

    def _set_choosing(self, choosing: bool) -> None:
        self.composer.choosing = choosing
        self.status.choosing = choosing
        if choosing:
            self.log_view.choose(0)
        else:
            self.log_view.leave()

    @on(ConversationComposer.Submitted)
    def _submitted(self, event: ConversationComposer.Submitted) -> None:
        event.stop()
        self.log_view.scroll_end(animate=False)
        self.post_message(self.Sent(self, event.text))

    @on(ConversationComposer.Navigated)
    def _navigated(self, event: ConversationComposer.Navigated) -> None:
        event.stop()
        key = event.key
        if key in _PAGES:
            self.log_view.page(_PAGES[key])
        elif key in _CHOICES:
            self.log_view.choose(_CHOICES[key])
        elif key in _ENDS:
            self.log_view.choose_end(first=_ENDS[key])
        elif key in ("c", "y", "enter"):
            self.log_view.copy(self.log_view.marked)
            self.stop_choosing()
        elif key in ("escape", "q"):
            self.stop_choosing()

    @on(SegmentBar.Pressed)
    def _pressed(self, event: SegmentBar.Pressed) -> None:
        event.stop()
        self.post_message(self.Asked(self.alias, event.target))  # type: ignore[arg-type]


class ConversationPane(Pane):
    def __init__(self, alias: str, view: ConversationView) -> None:
        super().__init__(alias, view)
        self.talk = view

    @property
    def target(self) -> Widget:
        return self.talk.composer
