"""The kinds of our commands: help of one shape, and words that nobody knows are told with the nearest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

HELP_NAMES = ["-h", "--help"]
WIDEST = 110
"""Columns that help takes at most."""
_WHOLE = 1000
"""Characters that no first sentence has."""


class _Documented(click.Command):
    """A command whose help has the sections of its page in the manual.

    Args:
        page: Which page; by default that of the words by which it is called.
    """

    def __init__(self, *args: Any, page: str = "", **kwargs: Any) -> None:
        settings = {"help_option_names": HELP_NAMES, "max_content_width": WIDEST}
        kwargs["context_settings"] = settings | (kwargs.get("context_settings") or {})
        super().__init__(*args, **kwargs)
        self.page = page

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Arguments and options."""
        from .manual import page_of

        page = page_of(self.page or ctx.command_path)
        if page.arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(list(page.arguments.items()))
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, exit codes, and commands that belong to this one."""
        from .manual import MEANINGS, page_of

        super().format_epilog(ctx, formatter)
        page = page_of(self.page or ctx.command_path)
        _write_examples(formatter, page.examples)
        if page.codes:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(int(code)), MEANINGS[code]) for code in page.codes])
        if page.see:
            with formatter.section("See also"):
                formatter.write_text(", ".join(page.see))


def _write_examples(formatter: click.HelpFormatter, examples: Mapping[str, str]) -> None:
    """Examples are never wrapped: each can be copied as it stands."""
    if not examples:
        return
    with formatter.section("Examples"):
        indent = " " * formatter.current_indent
        for line, about in examples.items():
            formatter.write(f"{indent}{line}\n")
            with formatter.indentation(), formatter.indentation():
                formatter.write_text(about)


class Command(_Documented):
    """A command of ours."""


class CommandGroup(_Documented, click.Group):
    """Commands below one word."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names for the help, in the order of the source."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command with its first sentence, which is not cut off."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(_WHOLE)) for name, each in commands if each])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument, or say what might have been meant."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            known = self.list_commands(ctx)
            ctx.fail(f"there is no command '{ctx.command_path} {name}'.{did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A question that names the nearest word; empty when none is near."""
    import difflib

    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""
