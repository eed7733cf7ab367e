"""Tabs, titles and the status bar at every width: never too wide, never an error, nothing important lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from synapse_tui.model import AgentState, ExitStatus
from synapse_tui.widgets.bars import TabBar
from synapse_tui.widgets.segment_bar import width_of
from synapse_tui.widgets.text import one_line, pad, printable, shorten
from synapse_tui.widgets.views import AgentView

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
