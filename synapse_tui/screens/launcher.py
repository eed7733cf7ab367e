"""The first screen when nothing was named: which agents are installed, and which ones to open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shutil import which
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.model import AgentSpec
from synapse_tui.themes import agent_colour
from synapse_tui.widgets.option_lists import Checklist, Choice
from synapse_tui.widgets.text import one_line, pad, plural

from .dialog import Dialog, label

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.profile import Profile

Find = Callable[[str], str | None]
BUILT_IN = ("dummy", "shell")
"""Profiles that are always there; they are offered last and not chosen beforehand."""


def installed(profile: Profile, find: Find = which) -> bool:
    """Whether the profile's command can be run; the built-in agent always can."""
    return profile.name == "dummy" or find(profile.command) is not None


def split_installed(profiles: Sequence[Profile], find: Find = which) -> tuple[list[Profile], list[Profile]]:
    """Profiles that can be opened, the real agents first, and those whose command is missing."""
    usable = sorted((p for p in profiles if installed(p, find)), key=lambda p: p.name in BUILT_IN)
    return usable, [p for p in profiles if not installed(p, find)]


class Launcher(Dialog[list[AgentSpec]]):
    """Lists the profiles; Enter opens the marked ones.

    Args:
        profiles: All profiles.
        problems: How many profile files could not be read.
        find: Finds a command on PATH.
    """

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
        """Open and leave."""
        yield Button("Open", id="open", variant="primary", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
        """Begin at the first row."""
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
