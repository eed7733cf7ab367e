"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.pty_harness import children as all_children

Children = Callable[[], list[tuple[int, str]]]


@pytest.fixture
def children() -> Children:
    """Gives pid and state letter of the children that this process has got since the test began.

    Other tests of the same process may share one for all of them, such as a database server.
    """
    before = {pid for pid, _ in all_children()}
    return lambda: [child for child in all_children() if child[0] not in before]
