"""Base classes for dialogs: forms, confirmations, lists and texts."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from rich.cells import cell_len
from rich.console import RenderableType
from textual import events, on
from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.css.scalar import Unit
from textual.geometry import Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Input, Label, OptionList, Static, TextArea
from textual.widgets.button import ButtonVariant
from textual.widgets.option_list import Option

from synapse_tui.core.errors import SynapseError
from synapse_tui.settings.actions import Place
from synapse_tui.settings.keymap import textual_key
from synapse_tui.system.language import tr
from synapse_tui.system.paths import with_tilde
from synapse_tui.widgets.error_handling import FaultTolerant, Reporter
from synapse_tui.widgets.option_lists import Check, Choices, Menu, SearchInput
from synapse_tui.widgets.painting import DimScreen, WholeCompositor
from synapse_tui.widgets.segment_bar import HintBar

log = logging.getLogger(__name__)
Result = TypeVar("Result")
Row = tuple[str, Content]
"""Key and content of a list row."""

BUSY = tr("one moment…")
_BETWEEN_HINTS = re.compile(r"\s*[·・]\s*")
BUTTON_KEY = re.compile(r"(.+?) ?[(（](.)[)）]$")
NEWS_SECONDS = 1.0  # how often what a question says is looked at again
READY_SECONDS = 2.0  # a dialog accepts keys again after this, even if the last one is still being handled
ROUNDS = 2  # passes through the message queues for one key or click: the event itself, then what it posts
LEAST_ROWS = 3
FRAME_ROWS = 4  # title, buttons, the gap above them, and hints


def when_handled(start: Callable[[], Widget], then: Callable[[], object]) -> None:
    """Call `then` once an event given to a widget has taken full effect, including focus changes.

    This passes twice through the message queues, from the widget up to the application: a binding runs when
    its key has bubbled up to the application, and a click when its widget handles it. The messages that they
    post bubble up again, and only then does the focus move or a dialog start working.

    Args:
        start: Returns the widget that handles the event; asked again for the second pass.
        then: Called in the application's own task; it may be a coroutine function.
    """

    def hop(way: Sequence[MessagePump], rounds: int) -> object:
        for place, pump in enumerate(way):
            if pump.call_later(hop, way[place + 1 :], rounds):
                return None
        return begin(rounds - 1) if rounds > 1 else then()

    def begin(rounds: int) -> object:
        # The start is included twice because what its handler posts is queued after the first visit.
        widget = start()
        return hop([widget, *widget.ancestors_with_self], rounds)

    begin(ROUNDS)


class DialogHints(Static):
    """The keys of a dialog in one row: whole ones only, the last of them always, since it is the way out.

    It names only keys that do something where the focus is. A click on a hint does what its key does.
    """

    def on_mount(self) -> None:
        self.watch(self.screen, "focused", self._refresh, init=False)
        for body in self.screen.query(VerticalScroll):
            self.watch(body, "show_vertical_scrollbar", self._refresh, init=False)

    def _refresh(self) -> None:
        self.refresh()

    @property
    def hints(self) -> list[str]:
        """The hints that are true where the focus is."""
        focused, screen = self.screen.focused, self.screen
        default = screen.default_button if isinstance(screen, Dialog) else ""
        pressed = isinstance(focused, Button) and focused.id != default
        said = [
            tr("Enter presses it") if pressed and _key_of(hint) == "enter" else hint
            for hint in _BETWEEN_HINTS.split(str(self.content))
        ]
        bound = self.screen.active_bindings
        return [hint for hint in said if self._acts(hint, bound)]

    def _acts(self, hint: str, bound: Mapping[str, ActiveBinding]) -> bool:
        focused, key = self.screen.focused, _ARROWS.get(hint.partition(" ")[0]) or _key_of(hint)
        if not key or focused is None:
            return True
        if key in bound and not self._can_scroll(bound[key]):
            return False
        if isinstance(focused, TextArea):
            return len(key) > 1
        if isinstance(focused, SearchInput) and key == "up":
            return True
        if isinstance(focused, Input):  # of one row, so that its own arrows do nothing
            return (
                len(key) > 1
                and key in bound
                and (key != "up" or key in self.screen._bindings.key_to_bindings)
            )
        return key in bound

    def _can_scroll(self, active: ActiveBinding) -> bool:
        """Whether there is more than fits, for a key that scrolls; True for others."""
        if isinstance(active.node, VerticalScroll):
            return active.node.allow_vertical_scroll
        if not active.binding.action.startswith("scroll("):
            return True
        return self.screen.query_one(".body", VerticalScroll).allow_vertical_scroll

    def render(self) -> Content:
        sign, parts = self._row()
        return Content(sign.join(parts))

    def _row(self) -> tuple[str, list[str]]:
        """Return the hints that are shown, and what stands between them."""
        parts = self.hints
        between = next(_BETWEEN_HINTS.finditer(str(self.content)), None)
        sign = between.group() if between is not None else ""
        while len(parts) > 1 and cell_len(sign.join(parts)) > self.content_size.width:
            del parts[-2]
        return sign, parts

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        at = event.get_content_offset(self)
        sign, parts = self._row()
        left = at.x if at is not None else -1
        for part in parts:
            if 0 <= left < cell_len(part) and (key := _key_of(part)):
                self.app.simulate_key(key)
            left -= cell_len(part + sign)


_ARROWS = {"↑↓": "up"}
_KEYS = {"Esc": "escape", "Ctrl+J": "ctrl+j", "Enter": "enter", "Tab": "tab", "Space": "space"}


def _key_of(hint: str) -> str:
    """Return the key that a hint names; empty for several and for none."""
    named, blank, _what = hint.partition(" ")
    single = len(named) == 1 and named.isascii()
    return _KEYS.get(named, textual_key(named) if single else "") if blank else ""


def no_text(_width: int) -> Content:
    return Content("")


class FittedText(Static):
    """Text that is made anew for each width it gets, as one with columns must be."""

    def __init__(self, of: Callable[[int], Content] = no_text, *, id: str | None = None) -> None:  # noqa: A002 - as Textual
        super().__init__(id=id, markup=False)
        self._of = of

    def fit(self, of: Callable[[int], Content]) -> None:
        """Show another text, which `of` makes for a width in cells."""
        self._of = of
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return self._of(width).get_height(self.styles.get_rules(), width) if width else 0

    def render(self) -> Content:
        return self._of(self.content_size.width)


class Dialog(FaultTolerant, ModalScreen[Result]):
    """A modal box in the middle of the screen; Esc closes it without a result.

    Subclasses implement `body`, and `buttons` and `pressed` if they need more than the close button.
    """

    BINDINGS: ClassVar = [("escape", "leave")]
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-low"), (28, "-high")]  # noqa: RUF012 - as Textual
    AUTO_FOCUS: ClassVar[str | None] = "Input, TextArea, SelectionList, OptionList, Button"
    TITLE_TEXT: ClassVar[str] = ""
    BOX_CLASSES: ClassVar[str] = ""
    SUBTITLE: ClassVar[str] = "Esc cancels"
    DIMS_BELOW: ClassVar[bool] = False  # whether all that is below is dim

    class Opened(Message):
        """The dialog now accepts keys."""

    busy: bool = False
    _refused: tuple[object, ...] | None = None  # what its fields held when it showed an error
    ready: bool = False  # whether it accepts keys; earlier ones are queued for it
    _ready_timer: Timer | None = None

    def __init__(self, title: str = "") -> None:
        super().__init__()
        self._compositor = WholeCompositor()
        self._title_text = title or self.TITLE_TEXT
        self._limited: set[Widget] = set()

    def compose(self) -> ComposeResult:
        with Vertical(classes=f"dialog {self.BOX_CLASSES}".strip()):
            yield Static(Content(tr(self._title_text)), classes="title")
            yield from self.body()
            yield Static("", classes="error", markup=False)
            with Horizontal(classes="buttons"):
                yield from self.buttons()
            yield DialogHints(Content(tr(self.subtitle())), classes="hints")

    async def recompose(self) -> None:
        """Compose it anew, with the keyboard and the rows in view where they were."""
        focused = self.focused.id if self.focused is not None else None
        bodies = self.query(".body").results(VerticalScroll)
        at = next((body.scroll_y for body in bodies), 0.0)
        await super().recompose()
        self._limit_parts(self.size.height)
        choices = [selector for selector in (focused and f"#{focused}", self.AUTO_FOCUS) if selector]
        self.set_focus(next((found for each in choices for found in self.query(each)), None))
        for body in self.query(".body").results(VerticalScroll):
            self.call_after_refresh(body.scroll_to, y=at, animate=False, immediate=True)

    @on(events.Resize)
    def _resized(self, event: events.Resize) -> None:
        self._limit_parts(event.size.height)

    def _limit_parts(self, height: int) -> None:
        """Limit parts in rows: Textual ignores relative limits in a box that is as high as its content."""
        for part in self.query(".dialog > *"):
            limit = part.styles.base.max_height
            own = part.styles.inline.max_height is None or part in self._limited
            if own and limit is not None and limit.unit is Unit.VIEW_HEIGHT:
                self._limited.add(part)
                part.styles.max_height = int(limit.value * height / 100)

    def render(self) -> RenderableType:
        below = super().render()
        return DimScreen.of(below) if self.DIMS_BELOW and isinstance(below, BackgroundScreen) else below

    def body(self) -> ComposeResult:
        raise NotImplementedError

    def subtitle(self) -> str:
        """Return the words for its keys."""
        return self.SUBTITLE

    @property
    def default_button(self) -> str:
        """The id of the button that does what Enter does in a field; empty for none."""
        return ""

    def reword(self, before: str, after: str) -> None:
        """Change a notice that the dialog shows, if it shows that one."""

    def keys_here(self) -> Place:
        """Return the keys that its hints and buttons name."""
        hints = [(hint.key, tr(hint.word)) for bar in self.query(HintBar) for hint in bar.shown]
        for words in (words for line in self.query(DialogHints) for words in line.hints):
            key, _space, what = words.partition(" ")
            hints += [(key, what)] if what else []
        named = (BUTTON_KEY.match(str(each.label)) for each in self.query(Button) if each.display)
        hints += [(found[2], found[1]) for found in named if found is not None]
        return Place(self._title_text, tuple(hints))

    def buttons(self) -> ComposeResult:
        yield Button(tr("Close"), id="close", compact=True)

    def pressed(self, button: str) -> None:  # noqa: ARG002 - for those with more than one
        self.dismiss(None)

    @on(Button.Pressed)
    def _button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.pressed(event.button.id or "")

    def action_leave(self) -> None:
        self.dismiss(None)

    def on_mount(self) -> None:
        """Disable blinking cursors, which would repaint the panes behind the dialog."""
        for field in (*self.query(Input), *self.query(TextArea)):
            field.cursor_blink = False

    def on_screen_resume(self) -> None:
        self._show_hints(True)
        self.call_after_refresh(self._become_ready)

    def on_screen_suspend(self) -> None:
        self._show_hints(False)  # the keys are those of the dialog above

    def _show_hints(self, shown: bool) -> None:
        for bar in (*self.query(DialogHints), *self.query(HintBar)):
            bar.visible = shown

    def _become_ready(self) -> None:
        if self._ready_timer is not None:
            self._ready_timer.stop()
            self._ready_timer = None
        if not self.ready:
            self.ready = True
            self.post_message(self.Opened())

    def pace(self, clicked: Widget | None = None) -> None:
        """Accept no more input until the last key or click has taken full effect, including focus changes.

        Textual delivers a key to the widget focused when it arrives but moves the focus some messages
        later, so fast typing would end up in the previous field.
        """
        if not self.is_current:
            return
        self.ready = False
        if self._ready_timer is not None:
            self._ready_timer.stop()
        self._ready_timer = self.set_timer(READY_SECONDS, self._become_ready)
        when_handled(lambda: clicked or self.focused or self, self._handled)

    def _handled(self) -> None:
        if not self.busy:  # otherwise `_attempt` decides who gets the next key
            self._become_ready()

    def show_error(self, error: Exception | str) -> None:
        label = self.query_one(".error", Static)
        text = describe(error) if isinstance(error, Exception) else tr(error)
        label.update(Content(text))
        label.set_class(bool(text), "-shown")
        self._refused = self._field_values() if text else None

    def _field_values(self) -> tuple[object, ...]:
        """Return what its fields hold."""
        texts = [field.text for field in self.query(TextArea)]
        choices = [field.highlighted for field in self.query(OptionList)]
        boxes = [box.value for box in self.query(Checkbox)]
        return (*(field.value for field in self.query(Input)), *texts, *choices, *boxes)

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(Checkbox.Changed)
    @on(OptionList.OptionHighlighted)
    def _field_changed(self) -> None:
        """Take an error away once what it was about is changed."""
        if self._refused is not None and self._refused != self._field_values():
            self.show_error("")

    def attempt(self, work: Callable[[], Awaitable[Result]]) -> None:
        """Run something slow, then close with its result, or stay open and show the error.

        Keys typed meanwhile are queued for whichever screen is active afterwards. The work continues if the
        user closes the dialog, since a half-opened agent would be left without an owner.
        """
        if not self.busy:
            self._set_busy()
            self.app.run_worker(self._attempt(work), exit_on_error=False, group="attempts")

    def run_latest(self, work: Callable[[], Awaitable[None]], group: str) -> None:
        """Run a coroutine function, or a `partial` of one, in place of what still runs in its group."""
        # A function, because the coroutine of a worker that is replaced before it starts is never awaited.
        begin: Any = work
        self.run_worker(begin, exclusive=True, exit_on_error=False, group=group)

    def _set_busy(self) -> None:
        self.busy = True
        self.show_error("")
        self._subtitle(BUSY)

    async def _attempt(self, work: Callable[[], Awaitable[Result]]) -> None:
        try:
            result = await work()
        except SynapseError as error:
            self._failed(error)
        except Exception as error:
            log.exception("dialog failed")
            self._failed(error)
        else:
            if self.is_current:
                self.dismiss(result)
        finally:
            self.busy = False

    def _failed(self, error: Exception) -> None:
        if self.is_current:
            self._subtitle(self.subtitle())
            self.show_error(error)
            self._become_ready()
        elif isinstance(self.app, Reporter):
            self.app.notice_error(error)

    def _subtitle(self, text: str) -> None:
        self.query_one(DialogHints).update(Content(tr(text)))


class Form(Dialog[Result]):
    """A dialog with fields; Enter in a field or a box, or the button labelled `VERB`, submits it."""

    VERB: ClassVar[str] = ""
    VARIANT: ClassVar[ButtonVariant] = "primary"

    @property
    def default_button(self) -> str:
        return self.VERB.lower()

    def buttons(self) -> ComposeResult:
        yield Button(tr(self.VERB), id=self.VERB.lower(), variant=self.VARIANT, compact=True)
        yield Button(tr("Cancel"), id="cancel", compact=True)

    def submit(self) -> None:
        raise NotImplementedError

    def pressed(self, button: str) -> None:
        if button == self.VERB.lower():
            self.submit()
        else:
            self.action_leave()

    @on(Input.Submitted)
    @on(Check.Submitted)
    def _entered(self) -> None:
        self.submit()

    def show_error(self, error: Exception | str) -> None:
        super().show_error(error)
        fields = self.query(Input)
        if self._refused is not None and len(fields) == 1 and isinstance(self.focused, Button):
            fields.first().focus()  # for another text: the button was clicked

    def value(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value.strip()


class LiveQuestion(Dialog[Result]):
    """Asks something about what goes on meanwhile.

    Args:
        title: What is asked.
        text: What is so now; it is drawn again as it changes, and nothing is asked any more once it is empty.
        yes: The button that agrees, whose id is `yes`.
    """

    BOX_CLASSES: ClassVar[str] = "-danger"

    def __init__(self, title: str, text: str | Callable[[], str], yes: str | Callable[[], str]) -> None:
        super().__init__(title)
        self._text = text if callable(text) else lambda: text
        self._yes = yes if callable(yes) else lambda: yes

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(NEWS_SECONDS, self._show_news)

    def _show_news(self) -> None:
        text = self._text()
        if not text:
            self.dismiss(None)
            return
        self.query_one(".text", Static).update(Content(text))
        self.query_one("#yes", Button).label = Content(self._yes())


class Confirm(LiveQuestion[bool]):
    """Asks a yes/no question; the result is True only if confirmed."""

    SUBTITLE: ClassVar[str] = "y yes · n no · Esc cancels"
    AUTO_FOCUS = "#cancel"
    BINDINGS: ClassVar = [("y", "yes"), ("n", "leave"), ("left,right", "app.focus_next")]

    def body(self) -> ComposeResult:
        yield Static(Content(self._text()), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(Content(self._yes()), id="yes", variant="error", compact=True)
        yield Button(tr("Cancel"), id="cancel", compact=True)

    def pressed(self, button: str) -> None:
        self.dismiss(button == "yes")

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)


class ListDialog(Dialog[str]):
    """A list; closes with the key of the chosen row.

    Args:
        rows: Creates the rows for a width in cells; `show_news` calls it again.
        note: A line above the list.
    """

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter opens · Esc closes"
    AUTO_FOCUS = "#rows"
    NOTHING: ClassVar[str] = ""

    def __init__(self, title: str, rows: Callable[[int], Iterable[Row]], *, note: str = "") -> None:
        super().__init__(title)
        self._make_rows = rows
        self._note = note
        self._keys: list[str] = []

    def body(self) -> ComposeResult:
        if self._note:
            yield Static(Content(self._note), classes="faint", markup=False)
        yield Choices(id="rows", markup=False, compact=True)

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_news)

    def show_news(self) -> None:
        view = self.query_one("#rows", OptionList)
        width = view.content_size.width - 1
        if width <= 0:
            return
        marked = view.highlighted or 0
        key = self._keys[marked] if marked < len(self._keys) else ""
        rows = list(self._make_rows(width))
        self._keys = [each for each, _row in rows]
        view.clear_options()
        view.add_options([Option(row) for _key, row in rows] or [Option(self.NOTHING, disabled=True)])
        if rows and not (marked < len(rows) and self._keys[marked] == key):
            marked = self._keys.index(key) if key in self._keys else 0
        if rows:
            view.highlighted = marked

    def target(self, key: str) -> str:
        """Return the dialog's result for a row; empty if it cannot be chosen."""
        return key

    @on(OptionList.OptionSelected, "#rows")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        if target := self.target(self._keys[event.option_index]):
            self.dismiss(target)


class Pick(Dialog[str]):
    """Offers options; closes with the key of the chosen one."""

    BOX_CLASSES: ClassVar[str] = "-narrow"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter selects · Esc closes"
    AUTO_FOCUS = "#options"

    def __init__(self, title: str, options: Mapping[str, str], chosen: str) -> None:
        super().__init__(title)
        self._options = dict(options)
        self._chosen = chosen

    def body(self) -> ComposeResult:
        keys = list(self._options)
        view = Menu(
            *(Content(f" {name}") for name in self._options.values()),
            id="options",
            markup=False,
            compact=True,
        )
        view.highlighted = keys.index(self._chosen) if self._chosen in keys else 0
        yield view

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(list(self._options)[event.option_index])


class EnterList(Menu):
    """A list in which Enter confirms and a click only highlights."""

    BINDINGS: ClassVar = [("enter", "confirm")]

    class Confirmed(Message):
        pass

    def action_confirm(self) -> None:
        self.post_message(self.Confirmed())

    def action_select(self) -> None:
        """Do nothing: a click only highlights."""


class ReportText(Static):
    """A text, or a function that creates it for a width, and for a query if it is searched."""

    def __init__(self, content: Content | Callable[..., Content]) -> None:
        super().__init__("", id="text", markup=False)
        self._made_for = 0
        self._make = content

    def on_resize(self, event: events.Resize) -> None:
        width = event.size.width
        if width != self._made_for:
            self._made_for = width
            self.show()

    def show(self, *query: str) -> None:
        self.update(self._make if isinstance(self._make, Content) else self._make(self._made_for, *query))


class Report(Dialog[None]):
    """Shows a scrollable text; with `searches`, it is a function of a width and of words to look for."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [
        ("q,enter", "leave"),
        ("slash", "find"),
        ("up", "scroll(-1)"),
        ("down", "scroll(1)"),
    ]

    def __init__(
        self, title: str, content: Content | Callable[..., Content], *, searches: bool = False
    ) -> None:
        super().__init__(title)
        self._content = content
        self._searches = searches

    def body(self) -> ComposeResult:
        if self._searches:
            yield Input(id="query", placeholder=tr("words to find"), compact=True)
        with VerticalScroll(classes="body"):
            yield ReportText(self._content)

    def on_mount(self) -> None:
        super().on_mount()
        if self._searches:
            self.query_one("#query").display = False
            self._subtitle("↑↓ scroll · / find · Esc closes")

    def action_find(self) -> None:
        if self._searches:
            field = self.query_one("#query")
            field.display = True
            field.focus()
            body = self.query_one(".body")
            body.styles.min_height = body.size.height - 1  # what is found may have fewer rows
            self._fit(self.size.height)
            self._subtitle("↑↓ scroll · Esc ends the search")

    @on(Input.Changed, "#query")
    def _typed(self, event: Input.Changed) -> None:
        self.query_one(ReportText).show(event.value)
        self.query_one(".body", VerticalScroll).scroll_home(animate=False)

    @on(Input.Submitted, "#query")
    def _searched(self) -> None:
        self.query_one(".body").focus()

    def action_scroll(self, lines: int) -> None:
        """Scroll while the search has the keyboard."""
        self.query_one(".body", VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_leave(self) -> None:
        """End the search, or close."""
        if not (self._searches and self.query_one("#query").display):
            self.dismiss(None)
            return
        self.query_one("#query", Input).value = ""
        self.query_one("#query").display = False
        body = self.query_one(".body")
        body.styles.min_height = None
        self._fit(self.size.height)
        body.focus()
        self._subtitle("↑↓ scroll · / find · Esc closes")

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.height)

    def _fit(self, height: int) -> None:
        finds = self._searches and self.query_one("#query").display
        self.query_one(".body").styles.max_height = max(LEAST_ROWS, height - FRAME_ROWS - finds)


def describe(*errors: Exception) -> str:
    """Say what went wrong and what to do, each hint once, below the errors that have it."""
    found: dict[str, list[str]] = {}
    for error in errors:
        if isinstance(error, SynapseError):
            found.setdefault(tr(error.hint), []).append(tr(error.message))
        else:
            found.setdefault("", []).append(tr(f"unexpected: {error!r}"))
    parts = ["\n".join(filter(None, (*messages, hint))) for hint, messages in found.items()]
    return with_tilde("\n\n".join(parts))


def label(text: str, classes: str = "label", name: str | None = None) -> Label:
    """Create a line of plain text, never parsed as markup since it may contain names of agents."""
    return Label(Content(text), classes=classes, id=name, markup=False)
