"""A newcomer's first minutes, once with keys alone and once with the mouse alone (which types only text)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.e2e.conftest import Launch, Ready
from tests.e2e.tmux_terminal import TmuxTerminal

Log = Callable[..., list[dict[str, object]]]


class Hands:
    """Does each step with keys, or by clicking on words in the order given."""

    def __init__(self, terminal: TmuxTerminal, *, mouse: bool) -> None:
        self.terminal = terminal
        self._mouse = mouse

    def do(self, keys: str, *words: str) -> None:
        if not self._mouse:
            self.terminal.keys(*keys.split())
            return
        for word in words:
            self.terminal.click(*self._resting(word))

    def _resting(self, word: str) -> tuple[int, int]:
        """Return where a word is last on the screen, once it stays there: what grows above it moves it."""
        seen: list[tuple[int, int]] = []

        def rests() -> bool:
            found = [(row.rfind(word), line) for line, row in enumerate(self.terminal.rows) if word in row]
            seen.append(found[-1] if found else (-1, -1))
            return bool(found) and seen[-8:] == [found[-1]] * 8

        self.terminal.wait(rests, f"'{word}' to stay where it is")
        return seen[-1]


@pytest.fixture(params=["keys", "mouse"])
def hands(request: pytest.FixtureRequest, launch: Launch, agents: Ready) -> Hands:
    terminal = launch("dummy:alice", "dummy:bob", "--layout", "columns", columns=120, lines=40)
    agents(terminal, 2)
    return Hands(terminal, mouse=request.param == "mouse")


def test_a_question_and_a_message_to_both(hands: Hands, dummy_log: Log) -> None:
    terminal = hands.terminal
    # A question from alice's pane, and its answer over her composer
    hands.do("C-] 1", "1 alice")
    terminal.wait_for("━ 1 alice dummy")
    terminal.type("@bob which tests?")
    terminal.wait_for("→ bob")
    hands.do("Enter", "Enter sends")
    terminal.wait_for("bob answers you")
    hands.do("C-] v", "^] v read")
    terminal.wait_for("↳ answer", "✓ done       answered")
    hands.do("Escape", "Close")
    terminal.wait_gone("↳ answer")
    hands.do("C-] Escape", "Esc let go")  # soon without ^], while the card is in view
    terminal.wait_gone("bob answers you")

    # A message to both
    hands.do("F2", "F2 message")
    terminal.wait_for("bob is ready to take it")
    terminal.type("the build is red")
    terminal.wait_for("▌   the build is red")
    hands.do("S-Tab", "+ add")
    terminal.type("alice")
    terminal.wait_for("To     bob dummy ×   alice")
    hands.do("Enter", "● alice")
    hands.do("Enter", "Enter send to 2")
    terminal.wait_gone("send to 2")
    terminal.wait(lambda: sum("the build is red" in str(e["text"]) for e in dummy_log("submit")) == 2, "both")


def test_a_dialog_panes_settings_help_and_the_end(hands: Hands) -> None:
    terminal = hands.terminal
    # An agent asks, and is answered on the board
    hands.do("C-] 2", "2 bob")
    terminal.wait_for("━ 2 bob dummy")
    terminal.type("%%run:touch made%%")
    terminal.wait_for("❯ %%run:touch made%%")
    terminal.keys("Enter")
    terminal.wait_for("Do you want to proceed?")
    hands.do("C-] b", "F6 sidebar", "F6 board")
    terminal.wait_for("asks · as on its screen now")
    terminal.wait_for("1  Yes")
    time.sleep(0.6)  # for which a dialog that has just appeared takes no answer
    hands.do("y", "1  Yes")
    terminal.wait_for("last on its screen", "Done, not looked at yet")
    hands.do("Escape", "Esc back")
    terminal.wait_for("F5 layout")

    # Panes
    hands.do("F5", "F5 layout")
    terminal.wait(
        lambda: not any("alice dummy" in row and "bob dummy" in row for row in terminal.rows), "a grid"
    )
    hands.do("C-] z", "^] menu", "zoom")
    terminal.wait_gone("1 alice dummy")
    hands.do("C-] z", "^] menu", "zoom")
    terminal.wait_for("1 alice dummy")

    # Settings and help
    hands.do("C-] ,", "^] menu", "settings")
    terminal.wait_for("Colours are")
    hands.do("Escape", "Esc close")
    terminal.wait_gone("Colours are")
    hands.do("F1", "F1 help")
    terminal.wait_for("Wraps around after the last one.")
    hands.do("F1", "Close")
    terminal.wait_gone("Wraps around after the last one.")

    # Quit
    hands.do("C-] q", "^] menu", "quit")
    terminal.wait_for("Leave synapse-tui?")
    hands.do("y", "Stop 2 agents and quit")
    terminal.wait_for("all agents are stopped")
