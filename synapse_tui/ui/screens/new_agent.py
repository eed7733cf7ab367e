"""Opening agents: the dialog for a single one, and the launcher shown at startup."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.agents.profiles.programs import command_spec, split_words
from synapse_tui.core.errors import ConfigError, SynapseError
from synapse_tui.core.model import AgentSpec
from synapse_tui.sessions.wire import spec_from_json, spec_to_json
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.widgets.fit import pad
from synapse_tui.widgets.layout import Axis
from synapse_tui.widgets.option_lists import Check, Checklist, Choice
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import one_line, plural
from synapse_tui.widgets.views import AgentView

from .dialog import Dialog, EnterList, Form, describe, label
from .keyboard import AppKeyboard
from .questions import NotStarted
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.profile import Profile
    from synapse_tui.agents.session import AgentSession

Find = Callable[[str], str | None]
COMMAND = tr("command line…")  # the entry of any other program
BUILT_IN = ("dummy", "shell")  # listed last and not preselected, since they are always available


class NewAgentActions:
    def __init__(self, app: Shell, keyboard: AppKeyboard) -> None:
        self._app = app
        self._host = app.host
        self._main = app.main
        self._keyboard = keyboard
        self._failed: dict[str, Failed] = {}  # by the id of their row on the board
        self._rows = itertools.count(1)
        self.find: Find = which

    def action_new_agent(self, beside: Axis | None = None) -> None:
        """Ask for an agent; with an axis, it gets a half of the active pane."""
        profiles = list(self._host.profiles.profiles.values())

        def opened(agent_id: str) -> None:
            if beside is not None:
                self._main.deck.split(beside, agent_id)
            self._main.go_to(agent_id)

        self._app.ask(NewAgent(profiles, self._host.folder, self._open, find=self.find), opened)

    def launch(self) -> None:
        profiles = self._host.profiles
        launcher = Launcher(list(profiles.profiles.values()), problems=len(profiles.problems), find=self.find)
        self._keyboard.drop()
        self._app.ask(launcher, self.open_soon)

    def open_soon(self, specs: Sequence[AgentSpec], layout: str = "") -> None:
        """Open agents in a worker; keys typed meanwhile are queued for the first one."""
        self._app.spawn(self._keyboard.expecting(self.open_all(specs, layout=layout)))

    async def _open(self, spec: AgentSpec) -> str:
        columns, lines = self._main.deck.terminal_size()
        session = await self._host.open(spec, columns=columns, lines=lines)
        return session.agent_id

    async def open_all(
        self, specs: Sequence[AgentSpec], not_started: Sequence[NotStarted] = (), *, layout: str = ""
    ) -> None:
        """Open agents one by one; those that fail do not stop the others.

        They are reported together, with those that did not start before. The layout, if any, is set as soon
        as one of them is open.
        """
        failed = list(not_started)
        self._main.expect(specs)
        try:
            for number, spec in enumerate(specs, 1):
                await self._drawn()
                try:
                    await self._open(spec)
                except SynapseError as error:
                    failed.append(NotStarted(spec, error, partial(self._start, spec)))
                    self._main.expect(specs[number:])
                else:
                    if layout:
                        self._app.perform("set_layout", layout)
                    layout = ""
            await self._drawn()
        finally:
            self._main.expect(())
        for each in failed:
            self._failed[f"not-started-{next(self._rows)}"] = Failed(each, each.error, self._clock())
        self._show_failed()
        if failed:
            reasons = _reasons((each.name, each.error) for each in failed)
            self._app.notice("\n".join(reason.replace("\n", "; ") for reason in reasons), "error")

    async def _start(self, spec: AgentSpec, columns: int, lines: int) -> AgentSession:
        return await self._host.open(spec, columns=columns, lines=lines)

    # Agents that did not start

    def not_started(self) -> list[dict[str, object]]:
        """Return them as JSON, for the next version of this process."""
        rows = ((each, each.error or each.agent.error) for each in self._failed.values())
        return [
            {
                "spec": spec_to_json(each.agent.spec),
                "message": error.message,
                "hint": error.hint,
                "since": each.since,
            }
            for each, error in rows
        ]

    def show_not_started(self, rows: object) -> None:
        """Show the agents that did not start in the version before."""
        for row in rows if isinstance(rows, list) else ():
            spec = spec_from_json(row["spec"])
            error = SynapseError(str(row["message"]), str(row["hint"]))
            each = NotStarted(spec, error, partial(self._start, spec))
            self._failed[f"not-started-{next(self._rows)}"] = Failed(each, error, float(row["since"]))
        self._show_failed()

    def _clock(self) -> float:
        return self._main.board.clock()

    def _show_failed(self) -> None:
        self._main.not_started = [
            _row_of(row_id, each, self._host.folder) for row_id, each in self._failed.items()
        ]
        failed = [(each.agent.name, each.error) for each in self._failed.values()]
        self._main.show_reasons(_reasons((name, error) for name, error in failed if error is not None))
        self._main.board.look()

    def action_start_again(self, row_id: str) -> None:
        """Try an agent again that did not start."""
        each = self._failed.get(row_id)
        if each is not None and each.error is not None:
            self._failed[row_id] = Failed(each.agent, None, self._clock())
            self._show_failed()
            self._app.spawn(self._start_again(row_id, each.agent))

    async def _start_again(self, row_id: str, agent: NotStarted) -> None:
        board, error = self._main.board, agent.error
        try:
            session = await agent.open(*self._main.deck.terminal_size())
        except SynapseError as problem:
            error = problem
            self._app.notice(_reasons([(agent.name, error)])[0].replace("\n", "; "), "error")
        else:
            del self._failed[row_id]
            if board.model.chosen == row_id:
                self._main.show_agents()
                board.choose(session.agent_id)
        finally:
            if row_id in self._failed:
                self._failed[row_id] = Failed(agent, error, self._clock())
            self._show_failed()

    def action_not_started(self, row_id: str) -> None:
        """Answer an action that needs an agent that runs."""
        self._app.notice(f"{self._failed[row_id].agent.name} did not start: R tries it again", "warning")

    def action_forget_agent(self, row_id: str) -> None:
        """Take the row of an agent away that did not start."""
        each = self._failed.get(row_id)
        if each is not None and each.error is not None:
            del self._failed[row_id]
            self._show_failed()

    async def _drawn(self) -> None:
        """Wait for a redraw, since opening an agent blocks the event loop for a moment."""
        drawn = asyncio.Event()
        if self._app.call_after_refresh(drawn.set):
            await drawn.wait()


@dataclass(frozen=True, slots=True)
class Failed:
    """An agent that has a row on the board because it did not start."""

    agent: NotStarted
    error: SynapseError | None  # None while it is tried again
    since: float


def _row_of(row_id: str, failed: Failed, folder: Path) -> AgentView:
    reason = describe(failed.error).replace("\n", "; ") if failed.error is not None else ""
    spec = failed.agent.spec
    folder = spec.cwd or folder
    return AgentView(
        row_id, 0, failed.agent.name, spec.profile, since=failed.since, cwd=folder, failed=reason
    )


def _reasons(failed: Iterable[tuple[str, SynapseError]]) -> list[str]:
    """Say who did not start and why, each reason once."""
    names: dict[str, list[str]] = {}
    for name, error in failed:
        names.setdefault(describe(error), []).append(name)
    return [tr(f"{', '.join(each)} did not start: {reason}") for reason, each in names.items()]


def split_installed(profiles: Sequence[Profile], find: Find = which) -> tuple[list[Profile], list[Profile]]:
    """Split profiles into usable ones, real agents first, and those whose command is missing."""
    installed = {p.name for p in profiles if p.name == "dummy" or find(p.command) is not None}
    usable = sorted((p for p in profiles if p.name in installed), key=lambda p: p.name in BUILT_IN)
    return usable, [p for p in profiles if p.name not in installed]


class Launcher(Dialog[list[AgentSpec]]):
    """Lists the profiles; Enter opens the marked ones."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    TITLE_TEXT: ClassVar[str] = "Which agents do you want to open?"
    SUBTITLE: ClassVar[str] = "Space marks · Enter opens · Esc closes"
    AUTO_FOCUS = "Checklist"

    def __init__(self, profiles: Sequence[Profile], *, problems: int = 0, find: Find = which) -> None:
        super().__init__()
        self._usable, self._missing = split_installed(profiles, find)
        self._problems = problems

    @property
    def default_button(self) -> str:
        return "open"

    def body(self) -> ComposeResult:
        width = max((len(p.display or p.name) for p in (*self._usable, *self._missing)), default=0) + 2
        choices = [Choice(p.name, profile_row(p, width), marked=p.name not in BUILT_IN) for p in self._usable]
        yield Checklist(choices, id="profiles")
        if self._missing:
            yield label(tr("Not installed"))
            with VerticalScroll(classes="body", can_focus=False):
                for profile in self._missing:
                    yield Static(_missing_row(profile, width), classes="faint", markup=False)
        if self._problems:
            yield label(
                tr(f"{plural(self._problems, 'profile file')} could not be read"), "label error -shown"
            )

    def buttons(self) -> ComposeResult:
        yield Button(tr("Open"), id="open", variant="primary", compact=True)
        yield Button(tr("Cancel"), id="cancel", compact=True)

    def on_mount(self) -> None:
        self.query_one(Checklist).highlighted = 0

    def pressed(self, button: str) -> None:
        if button == "open":
            self._open()
        else:
            self.dismiss(None)

    @on(Checklist.Confirmed)
    def _open(self) -> None:
        """Open the marked profiles, or the highlighted one if none is marked."""
        view = self.query_one(Checklist)
        names = view.marked
        if not names and view.highlighted is not None:
            names = [self._usable[view.highlighted].name]
        if names:
            self.dismiss([AgentSpec(name) for name in names])
        else:
            self.show_error("mark an agent with Space")


def profile_row(profile: Profile, width: int) -> Content:
    about = one_line(profile.description)
    about = tr(about) if profile.origin == "shipped" else about  # a person wrote it in their own language
    return Content.assemble(
        (pad(profile.display or profile.name, width), "bold $ink"),
        (about or profile.command, "$muted"),
    )


def _missing_row(profile: Profile, width: int) -> Content:
    how = tr(f"install: {profile.install}") if profile.install else tr(f"put '{profile.command}' on PATH")
    return Content.assemble(
        ("  ×  ", "$faint"),  # as wide as the boxes of what is installed
        (pad(profile.display or profile.name, width), "$muted"),
        (how, "$faint"),
    )


class NewAgent(Form[str]):
    VERB: ClassVar[str] = "Open"
    TITLE_TEXT: ClassVar[str] = "New agent"
    SUBTITLE: ClassVar[str] = "↑↓ profile or command · Tab next field · Enter opens · Esc cancels"
    AUTO_FOCUS = "#profile"
    FIELDS: ClassVar = (
        ("name", tr("Name"), tr("none")),
        ("folder", tr("Folder"), ""),
        ("args", tr("Arguments"), tr("none")),
        ("prompt", tr("First prompt"), tr("none")),
        ("port", tr("Port"), tr("first free")),
    )

    def __init__(
        self,
        profiles: Sequence[Profile],
        folder: Path,
        open_agent: Callable[[AgentSpec], Awaitable[str]],
        *,
        find: Find = which,
    ) -> None:
        super().__init__()
        self._usable, self._missing = split_installed(profiles, find)
        self._folder = folder
        self._open_agent = open_agent

    def body(self) -> ComposeResult:
        names = [COMMAND, *(profile.name for profile in (*self._usable, *self._missing))]
        width = max(map(len, names)) + 2
        with Horizontal(id="columns"):
            yield EnterList(
                *(Option(self._row(profile, width), id=profile.name) for profile in self._usable),
                Option(Content.assemble((f" {COMMAND}", "bold $ink")), id=COMMAND),
                *(Option(self._row(profile, width), id=profile.name) for profile in self._missing),
                id="profile",
                compact=True,
            )
            with Vertical(id="fields"):
                for name, text, placeholder in self.FIELDS:
                    yield label(text, "label -first" if name == "name" else "label", f"{name}-label")
                    yield Input(id=name, placeholder=placeholder or short_path(self._folder), compact=True)
                yield Check(tr("In a git worktree of its own"), id="worktree", compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0

    def _row(self, profile: Profile, width: int) -> Content:
        usable = profile in self._usable
        style = "bold $ink" if usable else "$faint"
        note = "" if usable else tr("not installed")
        return Content.assemble((" " + pad(profile.name, width), style), (note, "$faint"))

    @on(OptionList.OptionHighlighted, "#profile")
    def _name_field(self, event: OptionList.OptionHighlighted) -> None:
        command = event.option_id == COMMAND
        self.query_one("#args-label", Static).update(tr("Command line") if command else tr("Arguments"))
        self.query_one("#args", Input).placeholder = "./my-agent --fast" if command else tr("none")

    @on(EnterList.Confirmed)
    def submit(self) -> None:
        try:
            spec = self._spec()
        except ConfigError as error:
            self.show_error(error)
            return
        self.attempt(lambda: self._open_agent(spec))

    def _spec(self) -> AgentSpec:
        option = self.query_one(OptionList).highlighted_option
        if option is None or option.id is None:
            raise ConfigError("no profile selected", "select one from the list")
        folder = self.value("folder")
        spec = AgentSpec(
            option.id,
            name=self.value("name").removeprefix("@"),
            cwd=(self._folder / Path(folder).expanduser()) if folder else None,
            port=_port(self.value("port")),
            prompt=self.value("prompt"),
            worktree=self.query_one(Check).value,
        )
        words = split_words(self.value("args"))
        if option.id != COMMAND:
            return replace(spec, args=words)
        if not words:
            raise ConfigError("there is no command line", "enter the program to start, and its arguments")
        return command_spec(words, spec, base=spec.cwd or self._folder)


def _port(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ConfigError(
            f"'{text}' is not a port", "enter a number from 1 to 65535, or nothing for the first free one"
        )
    return int(text)
