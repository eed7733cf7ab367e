"""Asks what to open: profile, name, folder, arguments, first prompt, port."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.errors import ConfigError
from synapse_tui.model import AgentSpec
from synapse_tui.themes import agent_colour
from synapse_tui.widgets.option_lists import Checklist, Choice, Choices
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import one_line, pad, plural

from .dialog import Dialog, Form, label

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.profile import Profile

Find = Callable[[str], str | None]
# Profiles that are always there; they are offered last and not chosen beforehand
BUILT_IN = ("dummy", "shell")


def installed(profile: Profile, find: Find = which) -> bool:
    """Whether the profile's command can be run; the built-in agent always can."""
    return profile.name == "dummy" or find(profile.command) is not None


def split_installed(profiles: Sequence[Profile], find: Find = which) -> tuple[list[Profile], list[Profile]]:
    """Profiles that can be opened, the real agents first, and those whose command is missing."""
    usable = sorted((p for p in profiles if installed(p, find)), key=lambda p: p.name in BUILT_IN)
    return usable, [p for p in profiles if not installed(p, find)]


class Launcher(Dialog[list[AgentSpec]]):
    """Lists the profiles; Enter opens the marked ones."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    TITLE_TEXT: ClassVar[str] = "Which agents shall work here?"
    SUBTITLE: ClassVar[str] = "Space marks · Enter opens · Esc leaves"
    AUTO_FOCUS = "Checklist"

    def __init__(self, profiles: Sequence[Profile], *, problems: int = 0, find: Find = which) -> None:
        super().__init__()
        self._usable, self._missing = split_installed(profiles, find)
        self._problems = problems

    def body(self) -> ComposeResult:
        """Those that can be opened with boxes to mark; the others with what would install them."""
        width = max((len(p.display or p.name) for p in (*self._usable, *self._missing)), default=0) + 2
        choices = [Choice(p.name, _row(p, width), marked=p.name not in BUILT_IN) for p in self._usable]
        yield Checklist(choices, id="profiles")
        if self._missing:
            yield label("Not installed")
            with VerticalScroll(classes="body", can_focus=False):
                for profile in self._missing:
                    yield Static(_missing_row(profile, width), classes="faint", markup=False)
        if self._problems:
            yield label(
                f"{plural(self._problems, 'profile file')} could not be read",
                "label error -shown",
            )

    def buttons(self) -> ComposeResult:
        yield Button("Open", id="open", variant="primary", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
        self.query_one(Checklist).highlighted = 0

    def on_checklist_confirmed(self) -> None:
        """Enter opens what is marked; the row under the cursor when nothing is."""
        self._open()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "open":
            self._open()
        else:
            self.dismiss(None)

    def _open(self) -> None:
        view = self.query_one(Checklist)
        names = view.marked
        if not names and view.highlighted is not None:
            names = [self._usable[view.highlighted].name]
        if names:
            self.dismiss([AgentSpec(name) for name in names])
        else:
            self.show_error("mark an agent with Space")


def _row(profile: Profile, width: int) -> Content:
    return Content.assemble(
        (pad(profile.display or profile.name, width), f"bold ${agent_colour(profile.name)}"),
        (one_line(profile.description) or profile.command, "$ink-muted"),
    )


def _missing_row(profile: Profile, width: int) -> Content:
    how = f"install: {profile.install}" if profile.install else f"put '{profile.command}' on PATH"
    return Content.assemble(
        (" ×  ", "$ink-faint"),
        (pad(profile.display or profile.name, width), "$ink-muted"),
        (how, "$ink-faint"),
    )


Open = Callable[[AgentSpec], Awaitable[str]]


class ProfileList(Choices):
    """Profiles; the arrows and a click choose one, Enter opens it."""

    BINDINGS: ClassVar = [("enter", "confirm", "Open")]

    class Confirmed(Message):
        """Enter was pressed."""

    def action_confirm(self) -> None:
        self.post_message(self.Confirmed())


class NewAgent(Form[str]):
    """Leaves with the id of the agent when it was opened; what went wrong is shown and can be corrected."""

    VERB: ClassVar[str] = "Open"
    TITLE_TEXT: ClassVar[str] = "New agent"
    SUBTITLE: ClassVar[str] = "↑↓ profile · Tab next field · Enter opens · Esc cancels"
    AUTO_FOCUS = "#profile"

    def __init__(
        self, profiles: Sequence[Profile], folder: Path, open_agent: Open, *, find: Find = which
    ) -> None:
        super().__init__()
        usable, missing = split_installed(profiles, find)
        self._profiles = [*usable, *missing]
        self._usable = len(usable)
        self._folder = folder
        self._open_agent = open_agent

    def body(self) -> ComposeResult:
        width = max((len(profile.name) for profile in self._profiles), default=0) + 2
        with Horizontal(id="columns"):
            yield ProfileList(
                *(Option(self._row(i, p, width), id=p.name) for i, p in enumerate(self._profiles)),
                id="profile",
                compact=True,
            )
            with Vertical(id="fields"):
                yield label("Name", "label -first")
                yield Input(id="name", placeholder="none", compact=True)
                yield label("Folder")
                yield Input(id="folder", placeholder=short_path(self._folder), compact=True)
                yield label("Arguments")
                yield Input(id="args", placeholder="none", compact=True)
                yield label("First prompt")
                yield Input(id="prompt", placeholder="none", compact=True)
                yield label("Port")
                yield Input(id="port", placeholder="first free", compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0

    def _row(self, index: int, profile: Profile, width: int) -> Content:
        there = index < self._usable
        note = "" if there else "not installed"
        return Content.assemble(
            (
                " " + pad(profile.name, width),
                f"bold ${agent_colour(profile.name)}" if there else "$ink-faint",
            ),
            (note, "$ink-faint"),
        )

    @on(ProfileList.Confirmed)
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
            raise ConfigError("no profile is chosen", "choose one of the list")
        folder = self.query_one("#folder", Input).value.strip()
        return AgentSpec(
            option.id,
            name=self.query_one("#name", Input).value.strip().removeprefix("@"),
            cwd=(self._folder / Path(folder).expanduser()) if folder else None,
            args=_words(self.query_one("#args", Input).value),
            port=_port(self.query_one("#port", Input).value.strip()),
            prompt=self.query_one("#prompt", Input).value.strip(),
        )


def _port(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ConfigError(
            f"'{text}' is not a port", "write a number from 1 to 65535, or nothing for the first free"
        )
    return int(text)


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(
            f"the arguments cannot be read: {error}", "close the quotation marks as in a shell"
        ) from None
