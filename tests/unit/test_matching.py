"""Patterns of people, searched for where they can harm nobody."""

import pytest

from synapse_tui.agents.watcher import MAX_TEXT, matches


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^done$", "first\ndone\nlast", True),
        (r"^done$", "not done", False),
        ("終わり", "すべて終わりました", True),
        ("^end", "x" * MAX_TEXT + "\nend", True),
        ("^start", "start" + "x" * MAX_TEXT, False),
        ("\\", "x", None),
    ],
)
async def test_a_pattern_is_searched_for_in_the_last_lines(pattern, text, found):
    assert await matches(pattern, text) is found


async def test_one_that_takes_for_ever_is_given_up():
    assert await matches(r"(a+)+$", "a" * 60 + "!", seconds=0.3) is None
