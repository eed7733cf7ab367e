"""Questions that the application asks by itself: they open in a quiet moment and take no stray keys.

Whoever types looks at the composer, not at what is about to open over it. So such a question waits until the
keyboard has been quiet, steps aside for keys that were not meant for it, which go to the pane in focus as
they would have without it, and comes back when it is quiet again. Letters and Enter count only once the
person has moved the focus into it, by Tab, an arrow key or a click. Its own letters and Enter before that
go nowhere, with a hint, since a stray `y` in a draft is wrong too; what goes on like text takes them along.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.driver.events import TerminalKeyRelease
from synapse_tui.errors import HistoryError
from synapse_tui.hooks.install import Consent
from synapse_tui.model import AgentSpec, AgentState
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import plural, printable

from .dialog import Dialog, Result, label
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.finding import UntrustedFile

QUIET_SECONDS = 1.0  # without a key before the dialog opens, and on the screen before it takes a key
Taken = Literal["screen", "main", "nothing"]
"""Who gets input: the screen that is open, the main one below it, or nothing."""
_ENTERING = frozenset({"tab", "shift+tab", "up", "down", "left", "right"})
RESUMES = "Each takes up its last conversation if it can; what it showed stands above."


@dataclass(frozen=True, slots=True)
class RestoreOffer:
    """A workspace whose agents were lost to a crash or a reboot.

    Attributes:
        agents: What each was: profile, name, folder.
        saved_at: When it was saved last, aware.
        ask: Whether the person is asked; else it is opened at once.
        view: How it was arranged, as `view_state` gave it.
        open: Opens the agents with these sizes in columns and lines, and arranges them; gives what failed.
        forget: The person does not want it.
        waiting: Counts the messages that still wait for the agents; raises HistoryError when it cannot.
        missing: Of agents that were asked for, those that none of the agents opened again plainly is.
    """

    agents: Sequence[str]
    saved_at: datetime
    ask: bool
    view: Mapping[str, object]
    open: Callable[[Sequence[tuple[int, int]]], Awaitable[Sequence[str]]]
    forget: Callable[[], None]
    waiting: Callable[[], Awaitable[int]]
    missing: Callable[[Sequence[AgentSpec]], list[AgentSpec]]


class Question(Dialog[Result]):
    """A dialog that opens by itself, through a `QuestionQueue`."""

    AUTO_FOCUS = ""
    ENTRY: ClassVar[str] = "Button"  # what has the focus once the person is in the dialog
    KEYS: ClassVar[str] = ""  # the subtitle from then on

    entered: bool = False  # whether the person has moved the focus into it, or leaves it

    @property
    def own_keys(self) -> frozenset[str]:
        """Its letters and Enter, which answer it once the person is in it."""
        return frozenset(key for key in self._bindings.key_to_bindings if len(key) == 1) | {"enter"}

    def enter(self) -> None:
        """The person is in the dialog: it takes letters and Enter from now on."""
        self.entered = True
        self.show_error("")
        if self.KEYS:
            self._subtitle(self.KEYS)
        if self.focused is None:
            self.query(self.ENTRY).first().focus()


class QuestionQueue:
    """Opens questions one after the other, while the keyboard is quiet."""

    def __init__(self, app: Shell) -> None:
        self._app = app
        self.clock: Callable[[], float] = monotonic
        self._queue: deque[tuple[Callable[[], Question[Any]], Callable[[Any], object]]] = deque()
        self._shown: Question[Any] | None = None
        self._shown_at = self._typed_at = float("-inf")
        self._hinted: list[events.Event] = []
        self._hinted_at = float("-inf")
        self._timed = False

    @property
    def pending(self) -> bool:
        """Whether a question is not answered yet."""
        return bool(self._queue)

    def ask(self, make: Callable[[], Question[Result]], answered: Callable[[Result | None], object]) -> None:
        """Ask when it is quiet; `make` is called again when the dialog had to step aside."""
        self._queue.append((make, answered))
        self.open_next()

    def typed(self, event: events.Event) -> None:
        if not isinstance(event, events.MouseEvent | TerminalKeyRelease):
            self._typed_at = self.clock()

    def open_next(self) -> None:
        """Open the next question if the keyboard is quiet and no dialog is open; else look again later."""
        if not self._queue or self._shown is not None or self._app.screen is not self._app.main:
            return
        left = self._typed_at + QUIET_SECONDS - self.clock()
        self._app.main.show_question_waits(waits=left > 0)
        if left > 0:
            if not self._timed:
                self._timed = True
                self._app.set_timer(left, self._look_again)
            return
        make, answered = self._queue[0]
        self._shown = dialog = make()
        self._shown_at = self.clock()
        self._app.release_mention()

        def done(result: Any) -> None:  # noqa: ANN401 - each dialog has its own
            self._shown = None
            self._queue.popleft()
            answered(result)

        self._app.push_screen(dialog, done)

    def _look_again(self) -> None:
        self._timed = False
        self.open_next()

    def takes(self, event: events.Event, dialog: Question[Any]) -> Taken:
        """Decide about input while a question is open; it steps aside for what is not for it."""
        if dialog.entered or isinstance(event, TerminalKeyRelease):
            return "screen"
        if isinstance(event, events.MouseDown):
            dialog.enter()
            return "screen"
        armed = self.clock() - max(self._typed_at, self._shown_at) >= QUIET_SECONDS
        key = event.key if isinstance(event, events.Key) else ""
        if armed and key == "escape":
            dialog.entered = True  # it may be given the key again, once it takes keys
            return "screen"
        if armed and key in _ENTERING:
            dialog.enter()
            return "nothing"
        if armed and key in dialog.own_keys:
            dialog.show_error("press Tab first: then its letters and Enter count")
            if self.clock() - self._hinted_at >= QUIET_SECONDS:
                self._hinted.clear()
            self._hinted.append(event)
            self._hinted_at = self.clock()
            return "nothing"
        if armed and self._agent_asks():
            dialog.show_error("Tab moves into this question; the agent below asks something too.")
            return "nothing"
        self._shown = None
        self._app.pop_screen()
        return "main"

    def taken_along(self) -> list[events.Event]:
        hinted, self._hinted = self._hinted, []
        if self.clock() - self._hinted_at >= QUIET_SECONDS:
            return []
        return [event for event in hinted if isinstance(event, events.Key) and event.is_printable]

    def _agent_asks(self) -> bool:
        agent = self._app.main.find(self._app.main.active)
        return agent is not None and agent.state is AgentState.WAITING


class TrustQuestion(Question[bool]):
    """Shows untrusted files whole, since a cloned repository must run nothing by itself."""

    BOX_CLASSES: ClassVar[str] = "-wide -alert"
    TITLE_TEXT: ClassVar[str] = "Trust the files of this project?"
    SUBTITLE: ClassVar[str] = "Tab to read and answer · Esc leaves them unused"
    KEYS: ClassVar[str] = "Tab to the buttons · Esc leaves them unused"
    ENTRY = ".body"

    def __init__(self, files: Sequence[UntrustedFile]) -> None:
        super().__init__()
        self._files = files

    def body(self) -> ComposeResult:
        count = plural(len(self._files), "file")
        yield label(
            f"This project brings {count} that can start programs or instruct agents. Read before you trust; "
            "you are asked again when one changes.",
            "text",
        )
        with VerticalScroll(classes="body -files"):
            for file in self._files:
                changed = "  (changed since you trusted it)" if file.changed else ""
                yield Static(
                    Content.assemble(
                        (f"\n{short_path(file.path)}", "bold $hot"),
                        (f"{changed}\n", "$state-waiting"),
                        (printable(file.content), "$ink"),
                    ),
                    markup=False,
                )

    def buttons(self) -> ComposeResult:
        yield Button("Trust these files", id="trust", compact=True)
        yield Button("Go on without them", id="cancel", compact=True)

    def pressed(self, button: str) -> None:
        self.dismiss(button == "trust")

    def action_leave(self) -> None:
        self.dismiss(False)


class RestoreQuestion(Question[bool]):
    """Shows what was open before a crash or a reboot; leaves with True to open it again."""

    TITLE_TEXT: ClassVar[str] = "Open the last workspace again?"
    SUBTITLE: ClassVar[str] = "Tab to answer · Esc begins anew"
    KEYS: ClassVar[str] = "y open them again · n begin anew · Esc begins anew"
    ENTRY = "#restore"
    BINDINGS: ClassVar = [("y", "restore"), ("n", "leave"), ("left,right", "app.focus_next")]

    def __init__(self, offer: RestoreOffer) -> None:
        super().__init__()
        self._offer = offer

    def body(self) -> ComposeResult:
        when = self._offer.saved_at.astimezone().strftime("%Y-%m-%d %H:%M")
        count = plural(len(self._offer.agents), "agent")
        yield Static(Content(f"{count} ended without being closed, last seen {when}:"), markup=False)
        agents = "\n".join(f"  {printable(agent)}" for agent in self._offer.agents)
        yield Static(Content(f"\n{agents}\n"), markup=False)
        yield Static(Content(RESUMES), id="what", classes="text", markup=False)

    def on_mount(self) -> None:
        self.run_worker(self._count())

    async def _count(self) -> None:
        try:
            count = await self._offer.waiting()
        except HistoryError as error:
            text = f"It is not known whether messages wait for them: {error.message}."
        else:
            if not count:
                return
            wait = f"{plural(count, 'message')} for them {'waits' if count == 1 else 'wait'}"
            text = f"{wait}, to be delivered once they are open again; begin anew, and nothing is lost."
        self.query_one("#what", Static).update(Content(f"{RESUMES}\n{text}"))

    def buttons(self) -> ComposeResult:
        yield Button("Open them again", id="restore", variant="primary", compact=True)
        yield Button("Begin anew", id="cancel", compact=True)

    def pressed(self, button: str) -> None:
        self.dismiss(button == "restore")

    def action_restore(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)


class HookQuestion(Question[Consent]):
    """Asks whether hooks may be installed for agents that take them from the user's folders only."""

    BOX_CLASSES: ClassVar[str] = "-alert"
    SUBTITLE: ClassVar[str] = "Tab to answer · Esc not now"
    KEYS: ClassVar[str] = "y install · n not now · Esc not now"
    ENTRY = "#yes"
    BINDINGS: ClassVar = [
        ("y", "install"),
        ("n", "leave"),
        ("right,down", "app.focus_next"),
        ("left,up", "app.focus_previous"),
    ]

    def __init__(self, agent: str) -> None:
        super().__init__(f"Let {agent} lock files?")
        self._agent = agent

    def body(self) -> ComposeResult:
        text = (
            f"File safety is on, and {self._agent} takes hooks from your own folders only: until they are "
            "there, it may write files that other agents have locked.\n\n"
            "An extension of ours is put into a folder of its own; none of your files is changed, and it "
            "does nothing in agents that you start elsewhere. 'synapse hooks remove' takes it out again."
        )
        yield Static(Content(text), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button("Install it", id="yes", variant="primary", compact=True)
        yield Button("Not now", id="later", compact=True)
        yield Button("Never ask again", id="never", compact=True)

    def action_install(self) -> None:
        self.dismiss(Consent.YES)

    def action_leave(self) -> None:
        self.dismiss(Consent.LATER)

    def pressed(self, button: str) -> None:
        answers = {"yes": Consent.YES, "never": Consent.NEVER}
        self.dismiss(answers.get(button, Consent.LATER))
