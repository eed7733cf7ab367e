"""Commands whose arguments are texts: `- fix this` is a text, and no option."""

from __future__ import annotations

from collections.abc import Sequence

import click

_END = "--"


class TextCommand(click.Command):
    """A command whose last argument is a text, which may begin with a dash when it has more than one word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put texts that begin with a dash behind the options."""
        options = [each for each in self.params if isinstance(each, click.Option)]
        named = {name for each in options for name in (*each.opts, *each.secondary_opts)}
        valued = {name for each in options if not each.is_flag for name in each.opts}
        return super().parse_args(ctx, _apart(args, named, valued))


def _apart(args: Sequence[str], named: set[str], valued: set[str]) -> list[str]:
    """The arguments with texts that look like options at the end, where nothing is an option.

    Args:
        args: The arguments.
        named: All options.
        valued: Those that take the next argument as their value.
    """
    kept: list[str] = []
    texts: list[str] = []
    rest = list(args)
    while rest and rest[0] != _END:
        word = rest.pop(0)
        (texts if _is_text(word, named) else kept).append(word)
        if word in valued and rest:
            kept.append(rest.pop(0))
    return [*kept, _END, *texts, *rest[1:]] if texts else [*kept, *rest]


def _is_text(word: str, named: set[str]) -> bool:
    """Whether a word begins as an option does and is none: it has blanks, not in the value of an option."""
    return word.startswith("-") and len(word.split(maxsplit=1)) > 1 and word.partition("=")[0] not in named
