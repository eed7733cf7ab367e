"""Where the keys go: to the agent in focus, whatever is hidden, removed or late."""

from __future__ import annotations

from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget

from synapse_tui.widgets.pane import Pane


class PaneFocus(Screen[None], inherit_bindings=False):
    """A screen whose focus stands in the pane of the agent in focus, or outside of all panes."""

    # Agent that the keys go to; stays while the sidebar or a dialog has the focus
    active: var[str] = var("", init=False)

    @property
    def active_pane(self) -> Pane | None:
        raise NotImplementedError

    def may_become_active(self, agent_id: str) -> bool:
        raise NotImplementedError

    def settle(self) -> None:
        """Give the focus to the agent in focus, unless the sidebar has it; anything may call it at any time.

        A widget that is hidden or removed, or a late event, must never leave the keys with another agent.
        """
        if not self.app.app_focus or self.has_class("-too-small"):
            return
        if self.focused is None or _pane_of(self.focused) is not None:
            pane = self.active_pane
            if pane is None:
                super().set_focus(None)
            elif self.focused is not pane.target:
                pane.take_focus()

    def set_focus(
        self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False
    ) -> None:
        """Give a widget the focus; the agent in focus is at once the one whose pane it stands in."""
        pane = _pane_of(widget)
        if pane is not None:
            if from_app_focus:  # Textual's memory is older than ours
                pane = self.active_pane or pane
            elif self.may_become_active(pane.agent_id):
                self.active = pane.agent_id
            widget = pane.target
        super().set_focus(widget, scroll_visible, from_app_focus)

    def _reset_focus(self, widget: Widget, avoiding: list[Widget] | None = None) -> None:
        if self.focused is not widget:
            return
        pane = self.active_pane
        too_small = self.has_class("-too-small")
        if pane is None or too_small or pane.target in (avoiding or ()) or not pane.is_attached:
            super().set_focus(None)
        else:
            pane.take_focus()

    def back_to_pane(self) -> None:
        pane = self.active_pane
        if pane is not None:
            pane.take_focus()


def _pane_of(widget: Widget | None) -> Pane | None:
    if widget is None:
        return None
    return next((node for node in widget.ancestors_with_self if isinstance(node, Pane)), None)
