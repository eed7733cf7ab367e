"""The pane of an external agent: as that of any other, around its conversation."""

from __future__ import annotations

from textual.widget import Widget

from .pane import Pane
from .talk_view import TalkView


class TalkPane(Pane):
    """Frames the conversation with an external agent.

    Args:
        alias: The agent's alias, which is its id here.
        view: The conversation.
    """

    def __init__(self, alias: str, view: TalkView) -> None:
        super().__init__(alias, view)
        self.talk = view

    @property
    def target(self) -> Widget:
        """What takes the keys: the line to write in."""
        return self.talk.composer
