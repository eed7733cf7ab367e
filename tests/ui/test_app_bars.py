"""Tabs, titles and the status bar at every width: never too wide, never an error, nothing important lost."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from synapse_tui.keymap import Keymap
from synapse_tui.model import AgentState, ExitStatus
from synapse_tui.widgets.bars import StatusBar, TabBar, fit_hints
from synapse_tui.widgets.pane import Delivery, PaneTitle
from synapse_tui.widgets.segment_bar import Piece, cut, width_of
from synapse_tui.widgets.text import one_line, pad, printable, shorten
from synapse_tui.widgets.views import AgentView, state_mark

texts = st.text(st.characters(codec="utf-8"), max_size=60)
labels = st.text(st.sampled_from("abcXYZ-_.09日本語ａ"), min_size=1, max_size=20)
agents = st.builds(
    AgentView,
    agent_id=st.uuids().map(str),
    number=st.integers(1, 20),
    label=labels,
    agent_type=st.sampled_from(["claude", "codex", "unknown-type"]),
    state=st.sampled_from(AgentState),
    detail=texts.map(one_line),
    unseen=st.booleans(),
    rang=st.booleans(),
    title=texts.map(one_line),
    held=st.integers(0, 12),
    held_reason=texts.map(one_line),
    held_task=st.just("task"),
)


class StubApp:
    no_color = False
    animation_level = "none"


def bar(kind: Any, **values: object) -> Any:
    """A bar outside of an application."""
    made = kind.__new__(type(f"Bare{kind.__name__}", (kind,), {"app": StubApp()}))
    kind.__init__(made)
    for name, value in values.items():
        made.set_reactive(getattr(kind, name), value)
    return made


@given(texts, st.integers(0, 80))
def test_shortened_text_fits(text, width):
    line = one_line(text)
    assert cell_len(shorten(line, width)) <= width
    assert cell_len(pad(line, width)) == width


@given(texts)
def test_one_line_has_no_controls(text):
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in one_line(text))
    assert not set("\u202a\u202e\u2066\u2069") & set(one_line(text) + printable(text))
    assert "\x1b" not in printable(text)


@given(st.lists(agents, max_size=15), st.integers(10, 250), st.data())
def test_tabs_fit_and_the_active_one_is_there(views, width, data):
    active = data.draw(st.sampled_from(views)) if views else None
    left, right = bar(
        TabBar, agents=views, active=active.agent_id if active else "", project="project"
    ).pieces(width)

    assert width_of(left) + width_of(right) <= max(width, 30)
    if active is not None:
        assert any(piece.target == active.agent_id for piece in left)
    assert any(piece.target == "new" for piece in left)


@given(agents, st.integers(20, 250), st.booleans(), texts | st.just("held: " + "why " * 90), texts)
def test_titles_fit_and_keep_their_buttons(view, width, focused, delivery, scrolled):
    title = bar(
        PaneTitle,
        agent=view,
        focused_pane=focused,
        delivery=Delivery(state_mark(AgentState.READY), delivery, "t"),
        scrolled=scrolled[:20],
    )
    left, right = title.pieces(width)

    assert width_of(right) <= max(width, 60)
    assert [piece.target for piece in right][-2:] == ["zoom", "close"]
    if width >= 80:
        assert width_of(left) + width_of(right) <= width


@given(st.integers(0, 300))
def test_hints_fit_in_the_order_of_their_keys(width):
    leader = [Piece(" ^] menu ")]
    row = fit_hints(leader, Keymap(), width)

    assert width_of(row) <= max(width, width_of(leader))
    keys = [int(piece.text.strip()[1:]) for piece in row[1:] if piece.text.strip().startswith("F")]
    assert all(a < b for a, b in pairwise(keys))


def test_all_hints_are_shown_where_there_is_room():
    text = "".join(piece.text for piece in fit_hints([], Keymap(), 300))
    assert all(f"F{n}" in text for n in range(1, 11))


@given(texts, st.integers(40, 200))
def test_notices_leave_room_for_the_leader(text, width):
    left, right = bar(StatusBar, notice=one_line(text), level="error").pieces(width)

    assert width_of(left) + width_of(right) <= width
    assert left


@given(st.lists(st.builds(Piece, labels), max_size=8), st.integers(0, 60))
def test_cut_pieces_fit(pieces, width):
    assert width_of(cut(pieces, width)) <= width


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (ExitStatus(code=0), "exited with status 0"),
        (ExitStatus(code=3), "exited with status 3"),
        (ExitStatus(signal=11), "killed by SIGSEGV"),
        (ExitStatus(signal=63), "killed by signal 63"),
    ],
)
def test_how_a_process_ended(status, text):
    assert status.words == text


def test_marks_differ_without_colour():
    glyphs = [state_mark(state).glyph for state in AgentState] + [
        state_mark(AgentState.READY, unseen=True).glyph
    ]
    assert len(set(glyphs)) == len(glyphs)
    assert all(cell_len(glyph) == 1 for glyph in glyphs)
    frames = {state_mark(AgentState.PROCESSING, frame=n).glyph for n in range(10)}
    assert len(frames) == 4
