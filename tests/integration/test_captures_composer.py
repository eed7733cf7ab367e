"""Recordings, read by the profiles of their agents and without any: what is empty must be empty to both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from synapse_tui.agents.composer import ComposerReading, read_composer
from synapse_tui.agents.profiles.profile import AUTO_COMPOSER, Profile
from synapse_tui.terminal import Terminal
from tests.integration import test_delivery_composers
from tests.integration.capture_replay import profile, recording
from tests.integration.composer_agent import Shape
from tests.integration.test_delivery_composers import BOX
from tests.terminal.recordings import RECORDED

SHAPES = {
    "composer-bar": "composer: {prompt: '^┃ ', row: '^┃ '}",
    "composer-box": BOX,
    "composer-cursor": BOX.replace("{", "{cursor: false, "),
    "composer-lines": "composer: {above: '^─', prompt: '^❯ ', below: '^─', placeholder: {dim: true}}",
    "composer-moves": "composer: {above: '^─', prompt: '^> ', row: '^  ', below: '^─', footer: 30}",
    "composer-odd": "composer: {above: '^╭─', prompt: '^│ > ', row: '^│ ', below: '^╰─', right: ' *│ *$'}",
    "composer-prompt": "composer: {prompt: '^> ', row: '^  '}",
    "composer-repeated": "composer: {prompt: '^diff> ', row: '^diff> '}",
}
"""The rules of the composers that are recorded for themselves."""
NO_AGENTS = ("bash", "git-diff", "git-log", "htop", "less", "vim")
NEVER_EMPTY = "opencode"  # the names of its mode and model are in its composer


def word(reading: ComposerReading) -> str:
    if reading.dialog:
        return "dialog"
    return "empty" if reading.empty else "draft" if reading.visible else "hidden"


def without_rules(ruled: Profile) -> Profile:
    return replace(ruled, composer=AUTO_COMPOSER, dialogs=())


def known(name: str) -> Profile:
    if name in SHAPES:
        return test_delivery_composers.profile(Shape(), SHAPES[name])
    return profile(name)


def readings(name: str, *profiles: Profile) -> Iterator[tuple[Terminal, list[ComposerReading]]]:
    """What is read by each profile whenever a frame is complete."""
    record, output = recording(name, ())
    terminal = Terminal(record["cols"], record["rows"])
    for _, kind, *rest in record["events"]:
        if kind == "r":
            terminal.resize(rest[0], rest[1])
        elif kind == "o":
            terminal.feed(next(output))
        if kind == "o" and not terminal.modes.synchronized:
            yield terminal, [read_composer(terminal, each) for each in profiles]


@pytest.mark.parametrize("name", [each for each in RECORDED if each.values[0] not in NO_AGENTS])
def test_without_rules_a_composer_is_empty_only_where_it_is(name: str) -> None:
    ruled = known(name)
    seen: Counter[tuple[str, str]] = Counter()
    for terminal, (by_rules, auto) in readings(name, ruled, without_rules(ruled)):
        # Between the pieces of a frame the cursor may be elsewhere, hidden, while its cell is drawn already.
        half = by_rules.refusal is not None and not terminal.modes.cursor_visible
        seen[word(by_rules) if not (auto.empty and half) else "empty", word(auto)] += 1
    empty = {by_rules: count for (by_rules, auto), count in seen.items() if auto == "empty"}
    assert set(empty) <= {"empty"}, seen
    assert bool(empty) is (name != NEVER_EMPTY), seen


@pytest.mark.parametrize("name", NO_AGENTS)
def test_a_program_without_a_composer_has_no_empty_one_and_asks_nothing(name: str) -> None:
    words = [word(auto) for _, (auto,) in readings(name, without_rules(profile("dummy")))]
    assert len(words) > 5
    assert not {"empty", "dialog"} & set(words)


@pytest.mark.parametrize("name", SHAPES)
def test_drafts_are_read_by_rules_and_without(name: str) -> None:
    pasted = "hello" if name == "composer-odd" else "one line"
    ruled = known(name)
    both = (ruled, without_rules(ruled))
    seen = [[(each.draft.strip(), each.empty) for each in found] for _, found in readings(name, *both)]
    assert [(pasted, False)] * 2 in seen
    assert [("", True)] * 2 in seen
