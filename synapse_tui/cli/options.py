"""Options that many commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from .output import want_json

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

Function = TypeVar("Function", bound=Callable[..., Any])
Flag: TypeAlias = tuple[str, str | bool, str]
"""The names of an option (`--yes -y`), what it means, and its help."""


class ToldOption(click.Option):
    """An option whose default is decided later: the help tells what `show_default` says."""

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Without the brackets by which click marks such words."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra


def json_option(function: Function) -> Function:
    """`--json`: the data is JSON, and so is an error; the command is told `as_json`."""

    def note_it(context: click.Context, _option: click.Parameter, value: bool) -> bool:
        if value:
            want_json(context)
        return value

    return click.option("--json", "as_json", is_flag=True, callback=note_it, help="Print JSON.")(function)


def limit_option(most: int, default: int = 50) -> Callable[[Function], Function]:
    """`-n, --limit`: how many rows there are at most."""
    return click.option(
        "-n",
        "--limit",
        metavar="N",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="How many at most.",
    )


def one_of(name: str, *flags: Flag) -> Callable[[Function], Function]:
    """Flags of which only one can be given; the command is told what it means as `name`, None without any."""
    words = {meaning: names.split()[0] for names, meaning, _help in flags}

    def taking(meaning: str | bool) -> Callable[[click.Context, click.Parameter, bool], None]:
        def take(context: click.Context, _option: click.Parameter, given: bool) -> None:
            before = context.params.setdefault(name, None)
            if given and before is not None:
                both = f"{words[before]} and {words[meaning]}"
                raise click.UsageError(f"{both} exclude each other: give one of them", context)
            if given:
                context.params[name] = meaning

        return take

    return stacked(
        *(
            click.option(
                *names.split(), is_flag=True, expose_value=False, callback=taking(meaning), help=help_
            )
            for names, meaning, help_ in flags
        )
    )


def stacked(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Several options as one decorator, in the order of the help."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
