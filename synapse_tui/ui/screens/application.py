"""Actions on the application: help, palette, trust, detach, quit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Literal

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.settings.actions import GROUPS, Action, Place
from synapse_tui.settings.keymap import Keymap, key_label, leader_label
from synapse_tui.system.language import english, tr
from synapse_tui.widgets.fit import pad
from synapse_tui.widgets.key_hints import place_of
from synapse_tui.widgets.states import NEEDS_YOU, state_mark
from synapse_tui.widgets.text import plural, wrapped
from synapse_tui.widgets.views import AgentView

from .agents import AgentActions
from .dialog import Confirm, LiveQuestion, Report, describe
from .messages import MessageActions
from .new_agent import NewAgentActions
from .palette import Palette, PaletteEntry, offers
from .questions import QuestionQueue, RestoreOffer, TrustQuestion
from .shell import Shell

Leave = Literal["stop", "detach"]
LEAST = 30  # minimum cells of an explanation beside its key

MENTIONS = (
    ("@gemini review this", tr("in an empty composer, sends this to Gemini instead of the focused agent")),
    ("@alice …  @claude-8101 …", tr("by name, or by type and port if a type runs twice")),
    ("@all …", tr("to all other agents of this project")),
    ("@gemini !5 stop that", tr("with a priority: 1 information … 5 interrupts")),
    ("Tab", tr("completes the name; Enter sends; Esc gives what you typed to the agent")),
    ("@README.md", tr("is not an agent, so it goes to the focused agent as a file mention")),
)
MOUSE = (
    (tr("click"), tr("focuses a pane, opens a tab, presses the key of a hint")),
    (tr("middle click"), tr("pastes what was copied, into a pane")),
    (tr("double click"), tr("on a pane's title zooms it")),
    (tr("wheel"), tr("scrolls through the output; dragging selects and copies")),
)


class ApplicationActions:
    """Help, palette, project files, restoring, detaching and quitting.

    Args:
        trust: Trusts and loads the files in `host.profiles.untrusted`; None disables it.
        read_again: Reloads the project's files; None disables it.
    """

    def __init__(
        self,
        app: Shell,
        *,
        questions: QuestionQueue,
        agents: AgentActions,
        messages: MessageActions,
        new_agents: NewAgentActions,
        trust: Callable[[], None] | None,
        read_again: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._app = app
        self._host = app.host
        self._questions = questions
        self._agents = agents
        self._messages = messages
        self._new_agents = new_agents
        self._trust = trust
        self._read_again = read_again
        self._help: Report | None = None

    def action_help(self) -> None:
        """Show all keys, those of the place in focus first; over itself, it closes."""
        if self._help is not None and self._app.screen is self._help:
            self._help.dismiss(None)
            return
        text = partial(help_text, self._app.keymap, place_of(self._app.screen))
        self._help = Report(tr("Help"), text, searches=True)
        self._app.ask(self._help)

    def action_palette(self) -> None:
        def chosen(offer: PaletteEntry) -> None:
            self._app.perform(*offer.action)

        self._app.ask(Palette(list(offers(self._app, self._messages.recipients()))), chosen)

    def action_problems(self) -> None:
        problems = self._host.profiles.problems
        if not problems:
            self._app.notice("all profiles are valid")
            return
        self._app.ask(Report(tr("Profile problems"), Content(describe(*problems))))

    # Files of the project

    @property
    def has_untrusted(self) -> bool:
        return bool(self._host.profiles.untrusted) and self._trust is not None

    def ask_trust(self, then: Callable[[], object]) -> None:
        def answered(trusted: bool | None) -> None:
            if trusted and self._trust is not None:
                self._trust()
            then()

        self._questions.ask(lambda: TrustQuestion(self._host.profiles.untrusted), answered)

    def action_read_project(self) -> None:
        """Reload the project's files, asking about those that are not trusted."""
        self._app.spawn(self._read_project(lambda: self._app.notice("the project's files are reloaded")))

    async def _read_project(self, then: Callable[[], object]) -> None:
        if self._read_again is not None:
            await self._read_again()
        if self.has_untrusted:
            self.ask_trust(then)
        else:
            then()

    def action_send_instructions(self, agent_id: str = "") -> None:
        agent = self._app.main.find(agent_id or self._app.main.active)
        if agent is None:
            return

        async def send() -> None:
            task = await self._host.instructions.send(agent.agent_id)
            text = tr(f"{agent.label}: instructions {task.delivery.value}")

            def unchanged() -> bool:
                now = self._messages.find_task(task.id)
                return now is None or now.delivery is task.delivery

            self._app.notice(f"{text}: {tr(task.reason)}" if task.reason else text, still=unchanged)

        self._app.spawn(self._read_project(lambda: self._app.spawn(send())))

    # Restoring the workspace

    async def restore(
        self, offer: RestoreOffer, beside: Sequence[AgentSpec], done: Callable[[], None]
    ) -> None:
        """Reopen a lost workspace, and then those of the requested agents that it did not contain.

        Args:
            offer: The workspace.
            beside: The requested agents; the caller may extend it until the workspace is open.
            done: Called once the workspace is open or has failed.
        """
        deck = self._app.main.deck
        deck.restore(offer.view)
        try:
            failed = await offer.open(deck.terminal_sizes(len(offer.agents)))
        finally:
            done()
        await self._new_agents.open_all(offer.missing(beside), failed)

    # Leaving the application

    def action_detach(self) -> None:
        if self._app.session is None:
            self._app.notice("this runs in the foreground: it ends with its terminal", "warning")
        else:
            self._app.session.detach()

    def action_quit(self) -> None:
        if not self._live() and not self._waiting() and not self._messages.unsent:
            self._app.exit()
        elif self._app.session is None:
            question = Confirm(tr("Quit synapse-tui?"), self._quitting, self._stopping)
            self._app.ask(question, lambda sure: self._app.exit() if sure else None)
        else:
            self._app.ask(Quit(tr("Leave synapse-tui?"), self._quitting, self._stopping), self._leave)

    def _live(self) -> list[AgentView]:
        return [agent for agent in self._app.main.agents if agent.exit is None and not agent.external]

    def _waiting(self) -> str:
        return "" if self._app.is_demo else self._agents.waiting_text(*self._host.agents, host_ends=True)

    def _stopping(self) -> str:
        live = self._live()
        return tr(f"Stop {plural(len(live), 'agent')} and quit") if live else tr("Quit")

    def _quitting(self) -> str:
        """Describe what quitting stops."""
        live = self._live()
        working = sum(agent.state is AgentState.PROCESSING for agent in live)
        asking = sum(agent.mark is NEEDS_YOU for agent in live)
        count, names = plural(len(live), "agent"), ", ".join(agent.label for agent in live)
        lines = [tr(f"Quitting stops {count}: {names}.") if live else tr("No agents are running.")]
        if working:
            lines.append(tr(f"{working} of them {'is' if working == 1 else 'are'} still working."))
        if asking:
            lines.append(tr(f"{asking} of them {'needs' if asking == 1 else 'need'} you."))
        lines.append(self._agents.drafts_text(*(agent.agent_id for agent in live)))
        lines.append(self._waiting())
        if unsent := self._messages.unsent:
            lines.append(tr(f"{plural(unsent, 'draft')} of a message {'is' if unsent == 1 else 'are'} lost."))
        return "\n".join(filter(None, lines))

    def _leave(self, how: Leave | None) -> None:
        if how == "stop":
            self._app.exit()
        elif how == "detach":
            self.action_detach()


class Quit(LiveQuestion[Leave]):
    SUBTITLE: ClassVar[str] = "d detach · y stop · Esc cancels"
    AUTO_FOCUS = "#detach"
    BINDINGS: ClassVar = [
        ("y", "leave_by('stop')"),
        ("d", "leave_by('detach')"),
        ("n", "leave"),
        ("left", "app.focus_previous"),
        ("right", "app.focus_next"),
    ]

    def body(self) -> ComposeResult:
        yield Static(
            Content(tr("Detaching keeps all agents running; synapse-tui attaches again.")), markup=False
        )
        yield Static(Content(self._text()), classes="text", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(tr("Detach"), id="detach", variant="primary", compact=True)
        yield Button(Content(self._yes()), id="yes", variant="error", compact=True)
        yield Button(tr("Cancel"), id="cancel", compact=True)

    def action_leave_by(self, how: Leave) -> None:
        self.dismiss(how)

    def pressed(self, button: str) -> None:
        self.dismiss("stop" if button == "yes" else "detach" if button == "detach" else None)


Runs = list[tuple[str, str]]
Row = tuple[str, Runs]
"""What a search sees of a row, and the row as it is drawn."""


def help_text(keymap: Keymap, place: Place | None, width: int, query: str = "") -> Content:
    """Return all keys under headings, those of a place first, or the rows that hold all words of a query."""
    label = key_label(keymap.leader)
    words = query.casefold().split()
    about: Runs = [
        (tr("All keys go to the focused agent, except function keys and "), "$ink"),
        (label, "bold $accent"),
        (tr(f". Press {label} first to give it one of these, such as {label} F2.\n"), "$ink"),
    ]
    actions = [action for group in GROUPS for action in keymap.in_group(group)]
    rows = dict(zip((action.id for action in actions), _action_rows(actions, label, width), strict=True))
    sections: list[tuple[str, Sequence[Row]]] = [
        *([] if place is None else [(tr(place.title), _keys_of(place, width))]),
        ("", [] if words else [("", about)]),
        *((tr(group), [rows[action.id] for action in keymap.in_group(group)]) for group in GROUPS),
        (tr("Messages to other agents"), _pairs(MENTIONS, width)),
        (tr("Mouse"), _pairs(MOUSE, width)),
        (tr("Marks"), _marks(width, whole=not words)),
    ]
    parts: Runs = []
    for title, found in sections:
        shown = [row for said, row in found if all(word in said for word in words)]
        if shown:
            parts.append((f"\n{title}\n" if title else "\n", "bold $ink"))
            parts += [run for row in shown for run in row]
    if not parts:
        return Content.assemble((tr("nothing found"), "$muted"))
    parts[0] = (parts[0][0].lstrip("\n"), parts[0][1])
    return Content.assemble(*parts).rstrip()


def _keys_of(place: Place, width: int) -> list[Row]:
    return _pairs([(tr(key), tr(means)) for key, means in place.keys], width)


def _said(*texts: str) -> str:
    """Return texts as a query sees them: also in English, since that is what keys and settings speak."""
    both = (each for text in texts for each in (text, english(text)))
    return " ".join(both).replace("`", "").casefold()


def _marks(width: int, *, whole: bool) -> list[Row]:
    """Return the signs of states, as many in a row as fit; one in each if they are looked for."""
    marks = [(mark.glyph, mark.colour, mark.word) for mark in map(state_mark, AgentState)]
    unseen = state_mark(AgentState.READY, unseen=True)
    marks.append((unseen.glyph, unseen.colour, tr("finished while you looked elsewhere")))
    cell = max(cell_len(word) for _glyph, _colour, word in marks[:-1]) + 6
    count = max(1, width // cell) if whole else 1
    rows: list[Row] = []
    for number, (glyph, colour, word) in enumerate(marks):
        last = (number + 1) % count == 0 or number >= len(marks) - 2
        if number % count == 0 or number == len(marks) - 1:
            rows.append((_said(glyph, word), []))
        text = word if last else pad(word, cell - 4)
        rows[-1][1].extend([(f"  {glyph} ", f"bold ${colour}"), (f"{text}\n" if last else text, "$ink")])
    return rows


def _action_rows(actions: Sequence[Action], leader: str, width: int) -> Iterator[Row]:
    """Yield a row per action: direct key, leader key, title, help."""
    keys = [key_label(action.keys[0]) if action.keys else "" for action in actions]
    after = [f"{leader} {leader_label(action)}" if action.leader else "" for action in actions]
    titles = [tr(action.title) for action in actions]
    key_width, after_width, title_width = (max(map(cell_len, column)) + 1 for column in (keys, after, titles))
    indent = 2 + key_width + after_width
    for action, key, follow, title in zip(actions, keys, after, titles, strict=True):
        about = tr(action.help)
        row: Runs = [
            (f"  {pad(key, key_width)}", "bold $accent"),
            (pad(follow, after_width), "$ink"),
            (pad(title, title_width), "$ink"),
            (_hanging(about, indent + title_width, width, below=indent), "$muted"),
        ]
        yield _said(key, follow, title, about), row


def _pairs(rows: Sequence[tuple[str, str]], width: int) -> list[Row]:
    most = max((cell_len(what) for what, _means in rows), default=0) + 2
    return [
        (
            _said(what, means),
            [(f"  {pad(what, most)}", "$ink"), (_hanging(means, 2 + most, width), "$muted")],
        )
        for what, means in rows
    ]


def _hanging(text: str, indent: int, width: int, *, below: int = 6) -> str:
    """Indent wrapped lines to the first one, or begin on a new line, if there is little room, at `below`."""
    words = text.replace("`", "")
    if width - indent < LEAST:
        below = below if width - below >= LEAST else 6
        lines = wrapped(words, max(LEAST, width - below))
        return "".join(f"\n{' ' * below}{line}" for line in lines) + "\n"
    return f"\n{' ' * indent}".join(wrapped(words, width - indent)) + "\n"
