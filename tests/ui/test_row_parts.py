"""However a row is cut, its cells stay what the terminal says they are, and it takes time in proportion."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synapse_tui.terminal import Terminal, cells, render, row
from synapse_tui.terminal.render import clean, parts
from synapse_tui.widgets.strips import Pens, build_pieces, draw

TEXT = st.text(st.sampled_from("ab …—•✻⏺⠋│漢あｱé\u0301\u200d\ufe0f❤👍🏽🇯🇵กำ\u00ad\u200b\u202e☺"), max_size=30)


@settings(max_examples=150, deadline=None)
@given(TEXT, st.integers(0, 4))
@example("✻ Thinking… (3s · esc to interrupt)", 0)
@example("e\u0301漢", 0)
@example("漢…", 1)
def test_parts_hold_the_characters_of_their_cells(text, column):
    terminal = Terminal(40, 2)
    terminal.feed(f"漢字漢字\x1b[1;{column + 1}H{text}".encode())
    line = terminal.line(0)
    shown = [cell for x in range(40) if (cell := line.cell(x)).width]
    expected = [clean(cell.text) or " " for cell in shown]
    found: list[str] = []
    for run, _, count in line.coded_runs():
        cut = list(parts(run))
        assert sum(width for _, width, _ in cut) == count
        for part, _, doubtful in cut:
            found += [part] if doubtful else part
    assert found == expected
    assert [cell for cell in render.cells(line) if cell] == expected


class Work:
    """How many characters the functions of `cells.py` have looked at."""

    def __init__(self) -> None:
        self.characters = 0

    def counting(self, function: Callable[..., object]) -> Callable[..., object]:
        def count(text: Sequence[str], *more: object) -> object:
            self.characters += len(text)
            return function(text, *more)

        return count


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work()
    for module in (row, render):
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and value.__module__ == cells.__name__:
                monkeypatch.setattr(module, name, work.counting(value))
    return work


@pytest.mark.parametrize("count", [10, 80])
@pytest.mark.parametrize("cluster", ["⚠️", "e\u0301", "👩\u200d💻"])
@pytest.mark.parametrize("style", ["", "\x1b[32m"], ids=["plain", "styled"])
def test_the_work_to_draw_a_row_is_in_proportion_to_it(work: Work, count: int, cluster: str, style: str):
    terminal = Terminal(260, 1)
    terminal.feed("".join(f"{style}{cluster}\x1b[m-" for _ in range(count)).encode())
    size = sum(len(text) for text, _, _ in terminal.line(0).runs()) + 2 * count * len(cluster)
    work.characters = 0
    build_pieces(terminal.line(0), 260, Pens())
    assert work.characters <= 4 * size


def test_a_row_whose_text_did_not_change_is_not_cut_again() -> None:
    terminal = Terminal(80, 3)
    terminal.feed("\r\n⚠️ warn e\u0301 漢字 \x1b[31m❤️ red\x1b[m".encode())
    first = draw(build_pieces(terminal.line(1), 80, Pens()), 4)
    cut = render._drawn.cache_info().misses
    terminal.feed(b"\x1b[3;1Hmore\r\n")  # it moves up
    assert draw(build_pieces(terminal.line(0), 80, Pens()), 4) == first
    assert render._drawn.cache_info().misses == cut


@pytest.mark.parametrize("count", [10, 80])
@pytest.mark.parametrize("cluster", ["⚠️", "👩\u200d💻"])
def test_the_work_to_write_clusters_one_by_one_is_in_proportion_to_them(work: Work, count: int, cluster: str):
    terminal = Terminal(260, 1)
    terminal.feed("".join(f"\x1b[3{at % 8}m{cluster}" for at in range(count)).encode())
    assert terminal.line(0).text == cluster * count
    assert work.characters <= 4 * count * 2 * (len(cluster) + 1) + 260
