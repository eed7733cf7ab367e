"""A list to choose from, in which the marked row is seen without colours too."""

from __future__ import annotations

from textual.style import Style
from textual.widgets import OptionList

_MARKED = "option-list--option-highlighted"


class Choices(OptionList):
    """Shows the marked row reversed where there are no colours (NO_COLOR)."""

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        """The style of a part; Textual itself leaves `text-style: reverse` out."""
        style = super().get_visual_style(*component_classes, partial=partial)
        return style + Style(reverse=True) if _MARKED in component_classes and self.app.no_color else style
