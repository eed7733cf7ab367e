"""Asks what to open: profile, name, folder, arguments, first prompt, port."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from synapse_tui.errors import ConfigError
from synapse_tui.model import AgentSpec
from synapse_tui.themes import agent_colour
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import pad

from .dialog import Form, label
from .launcher import Find, split_installed

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.profile import Profile

Open = Callable[[AgentSpec], Awaitable[str]]


class ProfileList(Choices):
    """Profiles; the arrows and a click choose one, Enter opens it."""

    BINDINGS: ClassVar = [("enter", "confirm", "Open")]

    class Confirmed(Message):
        """Enter was pressed."""

    def action_confirm(self) -> None:
        """Tell that the choice is made."""
        self.post_message(self.Confirmed())


class NewAgent(Form[str]):
    """Leaves with the id of the agent when it was opened; what went wrong is shown and can be corrected.

    Args:
        profiles: All profiles.
        folder: Folder that is used when none is given.
        open_agent: Opens it and returns its id; raises a `SynapseError` when it cannot be.
        find: Finds a command on PATH.
    """

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
        """The profiles at the left, the fields at the right."""
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
        """Mark the first profile."""
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
        """Open the agent."""
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
