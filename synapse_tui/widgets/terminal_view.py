"""The pane of one agent: its terminal for the eye; keys, pastes and the mouse on their way to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.message import Message

from synapse_tui.driver.events import TerminalKey, TerminalKeyRelease, TerminalText
from synapse_tui.driver.names import textual_name
from synapse_tui.mention import Mention
from synapse_tui.terminal.keys import KeyEvent
from synapse_tui.terminal.render import clean_link

from .line_text import Point
from .mention_overlay import MentionOverlay
from .pane_display import PaneDisplay, ViewedSession
from .pane_keys import Interceptor, PaneKeys, key_event
from .pane_mouse import PaneMouse
from .scroll_mode import ScrollMode


class TerminalView(PaneDisplay, can_focus=True):
    """Shows the terminal of one agent and hands it what the person does.

    Args:
        session: The agent.
        interceptor: Holds keys while they can be a mention; None to hold none.
        reserved: Tells by Textual's name whether a key is the app's and must not reach the agent.
        name: As for every widget; so on.
    """

    DEFAULT_CSS = """
    TerminalView {
        width: 1fr; height: 1fr; overflow: hidden; background: ansi_default; color: ansi_default;
        & > .terminal--match { color: ansi_black; background: ansi_yellow; }
        & > .terminal--current-match { color: ansi_black; background: ansi_bright_yellow; }
        & > .terminal--selection { color: ansi_bright_white; background: ansi_blue; }
        & > .terminal--pointer { color: ansi_black; background: ansi_bright_white; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "terminal--match",
        "terminal--current-match",
        "terminal--selection",
        "terminal--pointer",
    }

    @dataclass
    class _Told(Message):
        view: TerminalView

        @property
        def control(self) -> TerminalView:
            """The view."""
            return self.view

    @dataclass
    class StatusChanged(_Told):
        """What the pane's bar should say of the view has changed."""

        status: str
        scrolled: int

    @dataclass
    class LinkClicked(_Told):
        """A hyperlink was clicked with Ctrl held; nothing has been opened."""

        link: str

    @dataclass
    class Copied(_Told):
        """Text was copied to the clipboard."""

        text: str

    @dataclass
    class Mentioned(_Told):
        """A message for other agents was typed here."""

        mention: Mention

    def __init__(
        self,
        session: ViewedSession,
        *,
        interceptor: Interceptor | None = None,
        reserved: Callable[[str], bool] = lambda _key: False,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - Textual's word
        classes: str | None = None,
    ) -> None:
        super().__init__(session, name=name, id=id, classes=classes)
        self.reserved = reserved
        self._mouse = PaneMouse(self)
        self._keys = PaneKeys(self, interceptor)

    def on_mount(self) -> None:
        """Begin to follow the focus of the terminal's window."""
        self.watch(self.app, "app_focus", self._app_focus_changed, init=False)

    # Keys and pastes

    def on_key(self, event: events.Key) -> None:
        """Hand a key to the agent, unless it is the app's."""
        if self.reserved(event.key):
            return
        event.stop()
        event.prevent_default()
        if isinstance(event, TerminalKey):
            self._keys.press(event.event, event.raw)
        else:
            self._keys.press(key_event(event), b"")

    def on_terminal_text(self, event: TerminalText) -> None:
        """Hand many keys to the agent as one piece, or one by one where each of them may mean something."""
        event.stop()
        if not self._keys.run(event.text):
            for key in event.singly():
                self._keys.press(key.event, key.raw)

    def hand_over(self, text: str, *, but: str) -> bool:
        """Take many keys that were typed at once, after all that is on its way here already.

        Args:
            text: What they type.
            but: Textual's name of a key that is not for the agent.

        Returns:
            Whether they are taken; else they must come one by one.
        """
        names = {textual_name(KeyEvent.of_text(each)) for each in set(text)}
        if but in names or any(map(self.reserved, names)):
            return False
        self.post_message(TerminalText(text))
        return True

    def on_terminal_key_release(self, event: TerminalKeyRelease) -> None:
        """Hand the release of a key to an agent that asked for it."""
        event.stop()
        self._keys.press(event.event, event.raw)

    def on_paste(self, event: events.Paste) -> None:
        """Hand pasted text to the agent as one piece."""
        event.stop()
        event.prevent_default()
        self._keys.paste(event.text)

    def watch_has_focus(self, has_focus: bool) -> None:
        """Give back what is held of a mention when the focus goes elsewhere in the application."""
        super().watch_has_focus(has_focus)
        if not has_focus and self.app.app_focus:
            self._keys.give_back()

    def _app_focus_changed(self, app_focus: bool) -> None:
        """Give back what is held when the window is looked at again and the focus is elsewhere in it."""
        if app_focus and self.screen.focused is not self:
            self._keys.give_back()

    def give_back(self) -> None:
        """Give the agent what is held of a mention: the whole screen goes away."""
        self._keys.give_back()

    def on_mention_overlay_chosen(self, event: MentionOverlay.Chosen) -> None:
        """Take the completion that was clicked."""
        event.stop()
        self._keys.choose(event.index)

    # Mouse

    @property
    def selecting(self) -> bool:
        """Whether a selection is being made by the mouse."""
        return self._mouse.dragging

    def lines_moved(self) -> None:
        """The lines are others: what the mouse had begun ends."""
        super().lines_moved()
        self._mouse.cancel()

    def focus_on_click(self) -> bool:
        """Return that a click gives the focus; the click that does is not for the agent."""
        self._mouse.focusing(self.has_focus)
        return True

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Hand a press to the child or begin to select."""
        event.stop()
        self._keys.give_back()
        self._mouse.press(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Hand a move to the child or go on selecting."""
        event.stop()
        self._mouse.move(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Hand a release to the child or copy what is selected."""
        event.stop()
        self._mouse.release(event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll back, or tell the child."""
        event.stop()
        self._mouse.wheel(event, "wheel_up")

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll forth, or tell the child."""
        event.stop()
        self._mouse.wheel(event, "wheel_down")

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        """Tell the child."""
        event.stop()
        self._mouse.wheel(event, "wheel_left")

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        """Tell the child."""
        event.stop()
        self._mouse.wheel(event, "wheel_right")

    def link_at(self, x: int, y: int) -> str | None:
        """Return the hyperlink under a cell of the view, or None."""
        line = self.viewport.shown(y)
        return clean_link(line.cell(x).style.link) if line is not None else None

    # Scrolling

    def scroll_lines(self, lines: int) -> None:
        """Scroll the view back by some lines; a negative number scrolls forth."""
        if self.scroll_mode is not None:
            self.scroll_mode.scroll(lines)
        elif not self.viewport.scroll_to(self.viewport.offset + lines):
            return
        self.update_view()

    def return_to_live(self) -> None:
        """Return to the live screen without a selection, as typing does."""
        if self.viewport.offset or self.selection is not None:
            self.viewport.scroll_to(0)
            self.selection = None
            self.update_view()

    def end_selection(self) -> None:
        """Take away what is selected, and end the drag that selects it."""
        self._mouse.stop_dragging()
        if self.scroll_mode is not None:
            self.scroll_mode.selection = None
        self.selection = None
        self.update_view()

    def enter_scroll_mode(self) -> None:
        """Let keys scroll, search and select until the mode is left."""
        if self.scroll_mode is None:
            self._keys.give_back()
            self.selection = None
            cursor = self.viewport.terminal.cursor
            row = min(cursor.y + self.viewport.offset, self.viewport.height - 1)
            self.scroll_mode = ScrollMode(self.viewport, Point(self.viewport.top + row, cursor.x))
            self.update_view()

    def leave_scroll_mode(self) -> None:
        """Return to the live screen; keys reach the agent again."""
        if self.scroll_mode is not None or self.viewport.offset:
            self.scroll_mode = None
            self.viewport.scroll_to(0)
            self.update_view()

    # What is told

    def watch_status(self, status: str) -> None:
        """Tell the pane's bar."""
        self.post_message(self.StatusChanged(self, status, self.scrolled))

    def copy(self, text: str) -> None:
        """Put text into the clipboard and tell of it."""
        if text:
            self.app.copy_to_clipboard(text)
            self.post_message(self.Copied(self, text))
