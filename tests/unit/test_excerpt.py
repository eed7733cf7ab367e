"""Lines of the history around the words that were searched for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from synapse_tui.messages.search import terms_of
from synapse_tui.widgets.history_list import excerpt, stands_in


def marked(text: str, query: str, width: int = 40) -> str:
    """The line with what was found in brackets."""
    return "".join(f"[{run}]" if hit else run for run, hit in excerpt(text, terms_of(query), width))


@pytest.mark.parametrize(
    ("text", "query", "line"),
    [
        ("fix the Parser\nnow", "parser", "fix the [Parser] now"),
        ("端末の表示幅", "幅", "端末の表示[幅]"),
        ("ＰＡＲＳＥ ｶﾀｶﾅ", "parse カタ", "[ＰＡＲＳＥ] [ｶﾀ]ｶﾅ"),
        ("nothing of it", "zz", "nothing of it"),
        ("a plain text", "", "a plain text"),
        ("aaa", "aa a", "[aa][a]"),
    ],
)
def test_what_was_found_is_marked(text: str, query: str, line: str) -> None:
    assert marked(text, query) == line


def test_a_long_text_is_cut_before_what_was_found() -> None:
    text = "word " * 5000 + "the needle, and more " + "word " * 5000
    line = marked(text, "needle")
    assert line.startswith("…")
    assert "[needle]" in line
    assert stands_in(text, ["needle"])
    assert not stands_in(text, ["thread"])


@given(st.text(max_size=60), st.text(max_size=4), st.integers(3, 30))
def test_no_text_breaks_a_line_or_is_wider_than_its_place(text: str, query: str, width: int) -> None:
    line = "".join(run for run, _ in excerpt(text, terms_of(query), width))
    assert "\n" not in line
    assert cell_len(line) <= width
