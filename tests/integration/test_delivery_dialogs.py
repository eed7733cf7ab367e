"""Dialogs that open in the very moment of Enter; `python -m tests.bench.dialogs` tries it more often."""

import pytest

from tests.bench import dialogs


@pytest.mark.parametrize("kind", dialogs.KINDS)
async def test_no_enter_falls_into_a_dialog_that_opens_in_that_moment(kind):
    tries = 4 if kind == "working" else 8
    tally = await dialogs.run(kind, tries, agents=2)
    assert tally.wrong == []
    assert tally.answers.keys() == {"escape"}
    assert len(tally.opened) == tally.tries == tries
