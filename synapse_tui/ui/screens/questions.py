"""Questions that the application asks unprompted: they wait for a pause in typing and ignore stray keys.

A user who is typing looks at the composer and may not notice a dialog opening. A question therefore opens
only after the keyboard has been quiet. Keys not meant for it close it and go to the focused pane, and it
reopens later. Its own letters and Enter count only once the user has moved the focus into it with Tab, an
arrow key or a click. Before that they show a hint and are withheld; if typing continues, they are delivered
to the pane with the rest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.core.errors import HistoryError, SynapseError
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.hooks.install import Consent
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.widgets.driver.input_events import TerminalKeyRelease
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import one_line, plural, printable

from .dialog import Dialog, Result, label
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.system.trust import UntrustedFile

COUNT_SECONDS = 2.0  # how often the waiting messages are counted while it is asked whether to reopen agents
QUIET_SECONDS = 1.0  # without a key, before a question opens, and while it is open before it accepts one
Taken = Literal["screen", "main", "nothing"]
"""Who receives the input: the open screen, the main screen below it, or neither."""
_ENTERING = frozenset({"tab", "shift+tab", "up", "down", "left", "right"})


@dataclass(frozen=True, slots=True)
class NotStarted:
    """An agent that could not be started.

    Attributes:
        open: Tries it again, with so many columns and lines.
    """

    spec: AgentSpec
    error: SynapseError
    open: Callable[[int, int], Awaitable[AgentSession]]

    @property
    def name(self) -> str:
        return one_line(self.spec.name or self.spec.profile)


@dataclass(frozen=True, slots=True)
class RestoreOffer:
    """A workspace whose agents were lost in a crash or a reboot.

    Attributes:
        agents: Type, name and folder of each, and the command line of a program without a profile.
        saved_at: Time of the last save, timezone-aware.
        ask: Whether to ask first.
        view: The saved `view_state`.
        open: Opens the agents with the given sizes (columns, lines) and returns those that failed.
        forget: Discards the workspace.
        waiting: Counts undelivered messages of the agents; raises HistoryError.
        missing: Returns the requested agents that are not clearly among the reopened ones.
    """

    agents: Sequence[str]
    saved_at: datetime
    ask: bool
    view: Mapping[str, object]
    open: Callable[[Sequence[tuple[int, int]]], Awaitable[Sequence[NotStarted]]]
    forget: Callable[[], None]
    waiting: Callable[[], Awaitable[int]]
    missing: Callable[[Sequence[AgentSpec]], list[AgentSpec]]


class Question(Dialog[Result]):
    """A dialog that opens unprompted, through a `QuestionQueue`."""

    AUTO_FOCUS = ""
    ENTRY: ClassVar[str] = "Button"  # what is focused once the user enters the dialog
    KEYS: ClassVar[str] = ""  # the subtitle from then on

    entered: bool = False  # whether the user has moved the focus into it, or is leaving it

    @property
    def own_keys(self) -> frozenset[str]:
        """The keys that answer the question once the user has entered it."""
        return frozenset(key for key in self._bindings.key_to_bindings if len(key) == 1) | {"enter"}

    def enter(self) -> None:
        self.entered = True
        self.show_error("")
        if self.KEYS:
            self._subtitle(self.KEYS)
        if self.focused is None:
            self.query(self.ENTRY).first().focus()


@dataclass(frozen=True, slots=True, eq=False)
class _Queued:
    make: Callable[[], Question[Any]]
    answered: Callable[[Any], object]
    needed: Callable[[], bool]


class QuestionQueue:
    """Opens one question at a time, while the keyboard is quiet."""

    def __init__(self, app: Shell) -> None:
        self._app = app
        self.clock: Callable[[], float] = monotonic
        self._queue: deque[_Queued] = deque()
        self._shown: Question[Any] | None = None
        self._shown_at = self._typed_at = float("-inf")
        self._hinted: list[events.Event] = []
        self._hinted_at = float("-inf")
        self._timed = False

    @property
    def pending(self) -> bool:
        return bool(self._queue)

    def ask(
        self,
        make: Callable[[], Question[Result]],
        answered: Callable[[Result | None], object],
        *,
        needed: Callable[[], bool] = lambda: True,
    ) -> None:
        """Queue a question; `make` is called again each time the dialog has to reopen.

        One that is no longer needed is dropped, also while it is shown unless the user is in it; `answered`
        is then called with None.
        """
        self._queue.append(_Queued(make, answered, needed))
        self.open_next()

    def drop_needless(self) -> None:
        for question in [each for each in self._queue if not each.needed()]:
            if self._shown is not None and question is self._queue[0]:
                if self._shown.entered or self._app.screen is not self._shown:
                    continue
                self._shown = None
                self._app.pop_screen()
            self._queue.remove(question)
            question.answered(None)
        self.open_next()

    def typed(self, event: events.Event) -> None:
        if not isinstance(event, events.MouseEvent | TerminalKeyRelease):
            self._typed_at = self.clock()

    def open_next(self) -> None:
        """Open the next question if the keyboard is quiet and no dialog is open; otherwise retry later."""
        if not self._queue or self._shown is not None or self._app.screen is not self._app.main:
            return
        left = self._typed_at + QUIET_SECONDS - self.clock()
        self._app.main.show_question_waits(waits=left > 0)
        if left > 0:
            if not self._timed:
                self._timed = True
                self._app.set_timer(left, self._look_again)
            return
        question = self._queue[0]
        self._shown = dialog = question.make()
        self._shown_at = self.clock()
        self._app.release_mention()

        def done(result: Any) -> None:  # noqa: ANN401 - each dialog has its own
            self._shown = None
            self._queue.popleft()
            question.answered(result)

        self._app.push_screen(dialog, done)

    def _look_again(self) -> None:
        self._timed = False
        self.open_next()

    def takes(self, event: events.Event, dialog: Question[Any]) -> Taken:
        """Decide who receives the input, closing the question if it is not meant for it."""
        if dialog.entered or isinstance(event, TerminalKeyRelease | events.MouseUp):
            return "screen"
        if isinstance(event, events.MouseDown):
            dialog.enter()
            return "screen"
        armed = self.clock() - max(self._typed_at, self._shown_at) >= QUIET_SECONDS
        key = event.key if isinstance(event, events.Key) else ""
        if armed and key == "escape":
            dialog.entered = True  # the key may be delivered again once the dialog is ready
            return "screen"
        if armed and key in _ENTERING:
            dialog.enter()
            return "nothing"
        if armed and key in dialog.own_keys:
            dialog.show_error("press Tab first; then its letters and Enter work")
            if self.clock() - self._hinted_at >= QUIET_SECONDS:
                self._hinted.clear()
            self._hinted.append(event)
            self._hinted_at = self.clock()
            return "nothing"
        if armed and self._agent_asks():
            dialog.show_error("Tab moves into this question; the agent below is asking something too.")
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
    """Shows untrusted files in full: a cloned repository must not run anything without consent."""

    BOX_CLASSES: ClassVar[str] = "-wide -alert"
    TITLE_TEXT: ClassVar[str] = "Trust the files of this project?"
    SUBTITLE: ClassVar[str] = "Tab to read and answer · Esc trusts nothing"
    KEYS: ClassVar[str] = "Tab to the buttons · Esc trusts nothing"
    ENTRY = ".body"

    def __init__(self, files: Sequence[UntrustedFile]) -> None:
        super().__init__()
        self._files = files

    def body(self) -> ComposeResult:
        count = len(self._files)
        yield label(
            tr(
                "This project contains 1 file that can start programs or instruct agents. Read it before you "
                "trust it; you are asked again when it changes."
            )
            if count == 1
            else tr(
                f"This project contains {count} files that can start programs or instruct agents. Read them "
                "before you trust them; you are asked again when one changes."
            ),
            "text",
        )
        with VerticalScroll(classes="body -files"):
            for file in self._files:
                changed = tr("  (changed since you trusted it)") if file.changed else ""
                yield Static(
                    Content.assemble(
                        (f"\n{short_path(file.path)}", "bold $accent"),
                        (f"{changed}\n", "$needs"),
                        (printable(file.content), "$ink"),
                    ),
                    markup=False,
                )

    def buttons(self) -> ComposeResult:
        one = len(self._files) == 1
        trust = tr("Trust this file") if one else tr("Trust these files")
        yield Button(trust, id="trust", compact=True)
        ignore = tr("Continue without it") if one else tr("Continue without them")
        yield Button(ignore, id="cancel", compact=True)

    def pressed(self, button: str) -> None:
        self.dismiss(button == "trust")

    def action_leave(self) -> None:
        self.dismiss(False)


class RestoreQuestion(Question[bool]):
    """Lists the agents lost in a crash or a reboot; closes with True to reopen them.

    `history` tells whether ended messages, with their answers, are kept.
    """

    TITLE_TEXT: ClassVar[str] = "Reopen the last workspace?"
    SUBTITLE: ClassVar[str] = "Tab to answer · Esc starts fresh"
    KEYS: ClassVar[str] = "y reopen · n start fresh · Esc starts fresh"
    ENTRY = "#restore"
    BINDINGS: ClassVar = [("y", "restore"), ("n", "leave"), ("left,right", "app.focus_next")]

    def __init__(self, offer: RestoreOffer, *, history: bool) -> None:
        super().__init__()
        self._offer = offer
        self._one = len(offer.agents) == 1
        self._lost = (
            tr("Drafts and the cards of answers are lost either way; the answers are in the history.")
            if history
            else tr("Drafts and unread answers are lost either way.")
        )
        self._resumes = (
            tr("It resumes its last conversation if it can; its earlier output is shown above.")
            if self._one
            else tr("Each resumes its last conversation if it can; its earlier output is shown above.")
        )

    def body(self) -> ComposeResult:
        when = self._offer.saved_at.astimezone().strftime("%Y-%m-%d %H:%M")
        count = plural(len(self._offer.agents), "agent")
        yield Static(Content(tr(f"{count} ended without being closed (saved {when}):")), markup=False)
        agents = "\n".join(f"  {printable(agent)}" for agent in self._offer.agents)
        yield Static(Content(f"\n{agents}"), markup=False)
        text = self._about(tr("One moment: messages are being counted."))
        yield Static(text, id="what", classes="text", markup=False)

    def _about(self, waiting: str) -> Content:
        return Content("\n".join(filter(None, (self._resumes, waiting, self._lost))))

    def on_mount(self) -> None:
        self.run_worker(self._count())

    async def _count(self) -> None:
        """Say how many messages wait, which others may cancel meanwhile."""
        while True:
            try:
                count = await self._offer.waiting()
            except HistoryError as error:
                text = tr(f"Their waiting messages cannot be counted: {error.message}.")
            else:
                text = ""
                if count == 1:
                    text = tr("1 message waits until its agent is open again, also if you start fresh.")
                elif count:
                    text = tr(
                        f"{count} messages wait until their agents are open again, also if you start fresh."
                    )
            self.query_one("#what", Static).update(self._about(text))
            await asyncio.sleep(COUNT_SECONDS)

    def buttons(self) -> ComposeResult:
        reopen = tr("Reopen it") if self._one else tr("Reopen them")
        yield Button(reopen, id="restore", variant="primary", compact=True)
        yield Button(tr("Start fresh"), id="cancel", compact=True)

    def pressed(self, button: str) -> None:
        self.dismiss(button == "restore")

    def action_restore(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)


class HookQuestion(Question[Consent]):
    """Asks whether to install hooks for agents that read them only from the user's folders."""

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
        super().__init__(tr(f"Let {agent} lock files?"))
        self._agent = agent

    def body(self) -> ComposeResult:
        text = tr(
            f"File safety is on, but {self._agent} loads hooks only from your own folders. Until they are "
            "installed, it may write files that other agents have locked.\n\n"
            "An extension is added in a separate folder; none of your files is changed, and it does "
            "nothing in agents that you start elsewhere. 'synapse hooks remove' removes it."
        )
        yield Static(Content(text), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(tr("Install it"), id="yes", variant="primary", compact=True)
        yield Button(tr("Not now"), id="later", compact=True)
        yield Button(tr("Never ask again"), id="never", compact=True)

    def action_install(self) -> None:
        self.dismiss(Consent.YES)

    def action_leave(self) -> None:
        self.dismiss(Consent.LATER)

    def pressed(self, button: str) -> None:
        answers = {"yes": Consent.YES, "never": Consent.NEVER}
        self.dismiss(answers.get(button, Consent.LATER))


class AllowQuestion(Question[bool]):
    """Asks whether messages may be typed into a program without a profile."""

    BOX_CLASSES: ClassVar[str] = "-alert"
    SUBTITLE: ClassVar[str] = "Tab to answer · Esc not now"
    KEYS: ClassVar[str] = "y allow · n not now · Esc not now"
    ENTRY = "#yes"
    BINDINGS: ClassVar = [("y", "allow"), ("n", "leave"), ("left,right", "app.focus_next")]

    def __init__(self, agent: str, command: str, sender: str) -> None:
        super().__init__(tr(f"Type messages into {agent}?"))
        self._agent = agent
        self._command = command
        self._sender = sender

    def body(self) -> ComposeResult:
        whose = tr(f"A message from {self._sender}") if self._sender else tr("Your message")
        text = tr(
            f"{whose} waits. {self._agent} has no profile, so nothing shows whether it "
            "is an agent: a shell, for example, would run the message.\n\n"
            "If you allow it, this and later messages are typed when its screen rests and its composer is "
            f"empty. To describe it better: synapse profile new {self._command}"
        )
        yield Static(Content(text), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(tr("Allow messages"), id="yes", variant="primary", compact=True)
        yield Button(tr("Not now"), id="cancel", compact=True)

    def pressed(self, button: str) -> None:
        self.dismiss(button == "yes")

    def action_allow(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)
