"""Tokens of the real agents, as their own logs state them."""

from __future__ import annotations

import pytest

from tests.lab.lab_kit import AGENTS, PROFILES, open_lab
from tests.lab.test_lab_delivery import token

COUNTED = [
    name
    for name in AGENTS
    if PROFILES.find(name).usage_database
    or ((found := PROFILES.find(name).transcript) is not None and found.usage is not None)
]

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(300),
]


@pytest.mark.parametrize("agent", COUNTED)
async def test_tokens_are_counted_at_the_end_of_a_turn(agent, tmp_path):
    async with open_lab(agent, tmp_path) as lab:
        assert lab.session.tokens is None
        await lab.done(lab.send(f"{token()} hello"))
        first = await lab.until(lambda: lab.session.tokens, "the tokens of the first turn", 20)
        await lab.done(lab.send(f"{token()} hello again"))
        await lab.until(lambda: (lab.session.tokens or 0) > first, "those of the second", 20)
        lab.note(f"{first}, then {lab.session.tokens} tokens")
