"""The panel below the panes that guides through the tour and comments on the demo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import var
from textual.widgets import Static

from synapse_tui.system.dataclass import dataclass

from .error_handling import FaultTolerant
from .fit import Hint, Piece
from .segment_bar import HintBar, SegmentBar

ROOMY = 32  # rows of the window from which nothing is left out
PANEL_CELLS = 68  # the width below
PANEL_EDGES = 7  # cells of its border and its padding where nothing is left out
SIGN = "●━ ━●"
Runs: TypeAlias = Sequence[tuple[str, str]]
"""Text and its style."""


@dataclass(frozen=True, slots=True)
class TourPage:
    """One page of the panel.

    Attributes:
        step: Number of the step, from 1; 0 if the page is none of the steps.
        of: Number of steps.
        about: What to do or what happens, a paragraph each.
        why: Left out where rows are scarce.
    """

    title: str
    about: Sequence[Runs]
    why: str = ""
    hints: Sequence[Hint] = ()
    step: int = 0
    of: int = 0


class TourHead(SegmentBar):
    DEFAULT_CSS = "TourHead { background: $panel; }"

    page: var[TourPage | None] = var(None)

    def watch_page(self) -> None:
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:  # noqa: ARG002
        page = self.page
        if page is None:
            return [], []
        left = [Piece(SIGN, "bold $accent"), Piece(f"  {page.title}", "bold $ink")]
        dots = " ".join("●" if number <= page.step else "○" for number in range(1, page.of + 1))
        return left, [Piece(dots, "$accent" if page.step else "$faint")]


class TourKeys(HintBar):
    """The keys that work now; targets are what `Tour.press` takes."""

    DEFAULT_CSS = "TourKeys { background: $panel; margin-top: 1; }"
    GAP = 3


class TourPanel(FaultTolerant, Horizontal, can_focus=False):
    """Takes rows from the panes, so that it covers nothing; hidden without a page."""

    DEFAULT_CSS = """
    TourPanel {
        height: auto; width: 1fr; align: center middle; background: $pane-ground; display: none;
        & > Vertical {
            width: 68; max-width: 100%; height: auto; padding: 0 2;
            background: $panel; border-left: outer $accent;
        }
        & Static { height: auto; width: 1fr; margin-top: 1; background: $panel; color: $muted; }
        & #tour-why { color: $muted; }
        &.-shown { display: block; layout: horizontal; }
        &.-low #tour-why { display: none; }
        &.-roomy > Vertical { padding: 1 3; }
        &.-lowest Static, &.-lowest TourKeys { margin-top: 0; }
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    page: var[TourPage | None] = var(None)

    def __init__(self) -> None:
        super().__init__()
        self._head, self._keys = TourHead(), TourKeys()
        self._about = Static(id="tour-about", markup=False)
        self._why = Static(id="tour-why", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._head
            yield self._about
            yield self._why
            yield self._keys

    def fit(self, lines: int) -> None:
        """Follow the height of the window: leave out blank lines, then the reasons."""
        self.set_class(lines >= ROOMY, "-roomy")
        self.set_class(lines < 22, "-low")
        self.set_class(lines < 18, "-lowest")

    def watch_page(self, page: TourPage | None) -> None:
        self.set_class(page is not None, "-shown")
        self._head.page = page
        if page is not None:
            self._keys.shown = page.hints
            paragraphs = [Content.assemble(*runs) for runs in page.about]
            self._about.update(Content("\n").join(paragraphs))
            self._why.update(Content(page.why))
            self._why.display = bool(page.why)
            self._keys.display = bool(page.hints)
