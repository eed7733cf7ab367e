"""A heading in the sidebar and in dialogs."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import var

from .segment_bar import Piece, SegmentBar


class Section(SegmentBar):
    """A title at the left and a few words at the right."""

    DEFAULT_CSS = "Section { background: $dialog; margin-top: 1; } Section:first-of-type { margin-top: 0; }"

    count: var[str] = var("")

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._title = title

    def watch_count(self) -> None:
        """Draw anew."""
        self.refresh()

    def pieces(self, _width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """The title, and the count."""
        return [Piece(f" {self._title}", "bold $hot")], [Piece(f"{self.count} ", "$ink-muted")]
