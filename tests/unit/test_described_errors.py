"""Errors as dialogs and reports show them."""

from __future__ import annotations

from pathlib import Path

from synapse_tui.core.errors import ProfileError, SynapseError
from synapse_tui.ui.screens.dialog import describe


def test_a_hint_stands_once_below_all_errors_that_have_it() -> None:
    faults = [ProfileError(Path("/p/a.yaml"), 1, "no name"), ProfileError(Path("/p/b.yaml"), 0, "no command")]
    hint = faults[0].hint
    assert describe(*faults) == f"/p/a.yaml:1: no name\n/p/b.yaml: no command\n{hint}"
    assert describe(faults[0], SynapseError("gone")) == f"/p/a.yaml:1: no name\n{hint}\n\ngone"
