"""Functions that are there from a conformance level on (DEC STD 070; DECSCL selects the level)."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec, TypeVar

from .state import ScreenState

P = ParamSpec("P")
S = TypeVar("S", bound=ScreenState)
Function = Callable[Concatenate[S, P], None]


def since_level(least: int) -> Callable[[Function[S, P]], Function[S, P]]:
    """Let a function of the screen do nothing below a conformance level, as xterm's `vtXX_level` does.

    Args:
        least: The first level that knows the function: 2 for the VT220, 3 for the VT320, 4 for the VT420.
    """

    def limited(function: Function[S, P]) -> Function[S, P]:
        def call(screen: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
            if screen.level >= least:
                function(screen, *args, **kwargs)

        return update_wrapper(call, function)

    return limited
