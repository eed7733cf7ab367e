"""Options that many commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .output import want_json

Function = TypeVar("Function", bound=Callable[..., Any])


def json_option(function: Function) -> Function:
    """`--json`: the data is JSON, and so is an error; the command is told `as_json`."""

    def note_it(context: click.Context, _option: click.Parameter, value: bool) -> bool:
        if value:
            want_json(context)
        return value

    return click.option("--json", "as_json", is_flag=True, callback=note_it, help="Print JSON.")(function)


def stacked(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Several options as one decorator, in the order of the help."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
