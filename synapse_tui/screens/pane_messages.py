"""What the views in the panes tell the application: a message typed there, a link, something copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.widget import Widget

from synapse_tui.widgets.conversation import ConversationLog, ConversationView
from synapse_tui.widgets.terminal_view import TerminalView

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp


class PaneMessages:
    """The part of the application that hears the panes."""

    @property
    def _app(self) -> SynapseApp:
        return cast("SynapseApp", self)

    def on_terminal_view_mentioned(self, message: TerminalView.Mentioned) -> None:
        """A message was typed as `@agent text` in a pane: send it in the name of its agent."""
        pane = next((pane for pane in self._app.main.deck.panes if pane.view is message.view), None)
        if pane is not None:
            mention = message.mention
            self._app.commands.send_mention(pane.agent_id, mention.address, mention.text, mention.priority)

    def on_terminal_view_link_clicked(self, message: TerminalView.LinkClicked) -> None:
        """Copy a link: opening it is for the person's own machine, which may be another one."""
        self._app.copy_to_clipboard(message.link)
        self._app.notice(f"copied {message.link}")

    def on_conversation_view_sent(self, message: ConversationView.Sent) -> None:
        """Send what was written to an external agent."""
        self._app.commands.send_talk(message.view, message.text)

    def on_conversation_view_asked(self, message: ConversationView.Asked) -> None:
        """Do what was clicked in the tab of an external agent."""
        names = {"card": "external_card", "tasks": "external_tasks", "new": "new_external"}
        self._app.perform(names.get(message.command, "cancel_external"), message.alias)

    def on_conversation_log_copied(self, message: ConversationLog.Copied) -> None:
        """Tell that something was copied."""
        self._app.notice(f"copied {len(message.text)} characters")

    def toggle_scroll(self, view: Widget) -> None:
        """Enter the scroll mode of a terminal view, or leave it."""
        if isinstance(view, TerminalView):
            (view.leave_scroll_mode if view.scroll_mode is not None else view.enter_scroll_mode)()

    def leave_scroll(self, view: Widget) -> None:
        """Return to the live screen."""
        if isinstance(view, TerminalView):
            view.leave_scroll_mode()

    def end_selections(self) -> None:
        """Take away what is selected: it was for one person at one terminal, in other colours."""
        for pane in self._app.main.deck.panes:
            if isinstance(pane.view, TerminalView):
                pane.view.end_selection()

    def on_terminal_view_status_changed(self, message: TerminalView.StatusChanged) -> None:
        """Show in the pane's title where its view stands."""
        for pane in self._app.main.deck.panes:
            if pane.view is message.view:
                pane.scrolled = message.status

    def on_terminal_view_copied(self, message: TerminalView.Copied) -> None:
        """Tell that something was copied."""
        self._app.notice(f"copied {len(message.text)} characters")
