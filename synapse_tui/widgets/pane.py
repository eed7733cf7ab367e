"""One pane: the title, the agent's terminal, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widget import Widget

from .exit_bar import ExitBar
from .pane_title import Delivery, PaneTitle
from .segment_bar import SegmentBar
from .sturdy import Sturdy
from .views import AgentView

SETTLED_SECONDS = 15.0
"""How long a title tells of a message of which nothing more will be heard."""

PaneCommand = Literal["close", "restart", "zoom", "why", "live", "watch", "last", "show"]


class Pane(Sturdy, Widget, can_focus=False):
    """Frames a terminal view; it is given its picture, and tells what was asked for by the mouse.

    Args:
        agent_id: Whose pane it is.
        view: The widget that shows the terminal and takes the keys.
    """

    DEFAULT_CSS = """
    Pane { layout: vertical; background: ansi_default; color: ansi_default; }
    Pane ExitBar { display: none; }
    Pane.-ended ExitBar { display: block; }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Asked(Message):
        """Something was asked for by a click into the frame."""

        agent_id: str
        command: PaneCommand
        task_id: str = ""

    agent: var[AgentView | None] = var(None)
    delivery: var[Delivery | None] = var(None)
    scrolled: var[str] = var("")
    zoomed: var[bool] = var(False)
    in_focus: var[bool] = var(False)
    """Whether keys go to this agent (also while a dialog is open above)."""

    def __init__(self, agent_id: str, view: Widget) -> None:
        super().__init__()
        self.agent_id = agent_id
        self.view = view
        self._title = PaneTitle()
        self._exit_bar = ExitBar(agent_id)
        self._forgetting: Timer | None = None

    def compose(self) -> ComposeResult:
        """Title, terminal, and the bar that shows when the agent has ended."""
        yield self._title
        yield self.view
        yield self._exit_bar

    @property
    def ended(self) -> bool:
        """Whether the agent's process has ended."""
        return self.agent is not None and self.agent.exit is not None

    @property
    def target(self) -> Widget:
        """What takes the keys: the terminal, or the bar below it when the agent has ended."""
        return self._exit_bar if self.ended else self.view

    def take_focus(self) -> None:
        """Give the keys to the agent, or to the bar below it when it has ended."""
        # At once: `focus()` would take effect a message later, and a key typed meanwhile go elsewhere.
        self.screen.set_focus(self.target, scroll_visible=False)

    def watch_agent(self, agent: AgentView | None) -> None:
        """Pass the picture on."""
        if agent is None:
            return
        self._title.agent = agent
        self._exit_bar.label = agent.label
        self._exit_bar.status = agent.exit
        self.set_class(agent.exit is not None, "-ended")

    def watch_in_focus(self, in_focus: bool) -> None:
        """Pass it on."""
        self._title.focused_pane = in_focus

    def watch_delivery(self, delivery: Delivery | None) -> None:
        """Pass it on; good news goes after a while, bad news stays."""
        self._title.delivery = delivery
        if self._forgetting is not None:
            self._forgetting.stop()
            self._forgetting = None
        if delivery is not None and delivery.settled:
            self._forgetting = self.set_timer(SETTLED_SECONDS, self._forget_delivery)

    def _forget_delivery(self) -> None:
        self.delivery = None

    def watch_scrolled(self, scrolled: str) -> None:
        """Pass it on."""
        self._title.scrolled = scrolled

    def watch_zoomed(self, zoomed: bool) -> None:
        """Pass it on."""
        self._title.zoomed = zoomed

    @on(SegmentBar.Pressed)
    def _pressed(self, event: SegmentBar.Pressed) -> None:
        event.stop()
        target = event.target
        if target.startswith("task:"):
            self.post_message(self.Asked(self.agent_id, "show", target.removeprefix("task:")))
        elif target in ("close", "zoom", "why", "live", "watch", "last"):
            self.post_message(self.Asked(self.agent_id, target))  # type: ignore[arg-type]

    @on(ExitBar.Chosen)
    def _exit_chosen(self, event: ExitBar.Chosen) -> None:
        event.stop()
        self.post_message(self.Asked(self.agent_id, event.choice))  # type: ignore[arg-type]

    def on_click(self, event: events.Click) -> None:
        """A click anywhere in the frame gives the agent the keys; a double click on the title zooms."""
        event.stop()
        self.take_focus()
        if event.chain == 2 and event.screen_y == self._title.region.y:
            self.post_message(self.Asked(self.agent_id, "zoom"))
