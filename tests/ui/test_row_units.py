"""However a row is cut into units, its cells stay what the terminal says they are."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.render import clusters, units

TEXT = st.text(st.sampled_from("ab …—•✻⏺⠋│漢あｱé\u0301\u200d\ufe0f❤👍🏽🇯🇵กำ\u00ad\u200b\u202e☺"), max_size=30)


@settings(max_examples=400, deadline=None)
@given(TEXT, st.integers(0, 4))
@example("✻ Thinking… (3s · esc to interrupt)", 0)
@example("e\u0301漢", 0)
@example("漢…", 1)
def test_units_hold_the_clusters_of_their_cells(text, column):
    terminal = Terminal(40, 2)
    terminal.feed(f"漢字漢字\x1b[1;{column + 1}H{text}".encode())
    line = terminal.line(0)
    used = 0
    for run, _, count in line.runs():
        found: list[tuple[str, int]] = []
        for part, width, each in units(line, used, run, count):
            found += [(character, each) for character in part] if each else [(part, width)]
        assert found == clusters(line, used, count)
        used += count
