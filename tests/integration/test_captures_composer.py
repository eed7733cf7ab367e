"""Recordings of real agents, read by their profiles and without any: what is empty must be empty to both."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from synapse_tui.agents.composer import ComposerReading, read_composer
from synapse_tui.agents.profiles.profile import AUTO_COMPOSER
from synapse_tui.terminal import Terminal
from tests.integration.capture_replay import AGENTS, MISSING, MISSING_REASON, profile, recording

SHIPPED = ("claude-2.1.330-turns", "claude-2.1.330-auto-mode", "claude-2.1.330-trust")
NEVER_EMPTY = "opencode"  # the names of its mode and model are in its composer


def word(reading: ComposerReading) -> str:
    if reading.dialog:
        return "dialog"
    return "empty" if reading.empty else "draft" if reading.visible else "hidden"


@pytest.mark.parametrize(
    "name",
    [
        *SHIPPED,
        *(pytest.param(agent, marks=pytest.mark.skipif(MISSING, reason=MISSING_REASON)) for agent in AGENTS),
    ],
)
def test_without_rules_a_composer_is_empty_only_where_it_is(name: str) -> None:
    known = profile(name.split("-", maxsplit=1)[0])
    without = replace(known, composer=AUTO_COMPOSER, dialogs=())
    record, output = recording(name, ())
    terminal = Terminal(record["cols"], record["rows"])
    seen: Counter[tuple[str, str]] = Counter()
    for _, kind, *rest in record["events"]:
        if kind == "r":
            terminal.resize(rest[0], rest[1])
        elif kind == "o":
            terminal.feed(next(output))
        if kind != "o" or terminal.modes.synchronized:
            continue
        by_rules, auto = read_composer(terminal, known), read_composer(terminal, without)
        # Between the pieces of a frame the cursor may be elsewhere, hidden, while its cell is drawn already.
        half = by_rules.refusal is not None and not terminal.modes.cursor_visible
        seen[word(by_rules) if not (auto.empty and half) else "empty", word(auto)] += 1
    empty = {by_rules: count for (by_rules, auto), count in seen.items() if auto == "empty"}
    assert set(empty) <= {"empty"}, seen
    assert bool(empty) is (name != NEVER_EMPTY), seen
