"""Shared by commands: the format of their help, common options, and free-text arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from synapse_tui.system.language import breakable, language, last_break, tr

from .output import cells, want_json

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

Function = TypeVar("Function", bound=Callable[..., Any])
Flag: TypeAlias = tuple[str, str | bool, str]
"""The names of an option (`--yes -y`), the value it stands for, and its help."""
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_WHOLE = 1000  # in characters: longer than any first sentence


class _Formatter(click.HelpFormatter):
    """Formats help in the language of the person; lines are measured in cells, and broken where it allows."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, prefix or f"{tr('Usage')}: ")

    def write_heading(self, heading: str) -> None:
        super().write_heading(tr(heading))

    def write_text(self, text: str) -> None:
        if language() == "en":
            return super().write_text(text)
        indent = " " * self.current_indent
        said = [_said(each, self.width - self.current_indent) for each in text.split("\n\n")]
        return self.write("\n\n".join("\n".join(indent + line for line in lines) for lines in said) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        if language() == "en":
            return super().write_dl(rows, col_max, col_spacing)
        table = list(rows)
        first = min(max(cells(term) for term, _text in table), col_max) + col_spacing
        indent = " " * self.current_indent
        for term, text in table:
            lines = _said(text, self.width - self.current_indent - first)
            if cells(term) > first - col_spacing:
                lines = ["", *lines]
            self.write(f"{indent}{term}{' ' * (first - cells(term))}{lines[0]}".rstrip() + "\n")
            self.write("".join(f"{indent}{' ' * first}{line}\n" for line in lines[1:]))
        return None


def _said(paragraph: str, width: int) -> list[str]:
    if paragraph.startswith("\b\n"):  # click's mark of lines that stay as they are
        return [tr(line) for line in paragraph.splitlines()[1:]]
    lines = [""]
    text, *extra = paragraph.split("  [", 1)  # click's, such as a range
    said = " [".join([tr(" ".join(text.split())), *extra])
    for part in breakable(said):
        if lines[-1] and cells(lines[-1]) + cells(part) > width:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    if len(lines) > 1:
        both, at = lines[-2] + lines[-1], len(lines[-2])
        new = last_break(both, 0, at)
        lines[-2:] = [both[:new], both[new:]]
    return lines


class _Context(click.Context):
    formatter_class = _Formatter


class Command(click.Command):
    """A command whose docstring may end with `Examples:`, one per line; these are never wrapped."""

    context_class = _Context

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = _SETTINGS | (kwargs.get("context_settings") or {})
        super().__init__(*args, **kwargs)
        self.help = inspect.cleandoc(self.help or "").replace("\n\nExamples:\n", "\n\n\b\nExamples:\n")


class CommandGroup(Command, click.Group):
    """A command with subcommands; typos suggest the closest one."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(_WHOLE)) for name, each in commands if each])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            known = self.list_commands(ctx)
            ctx.fail(f"no command '{ctx.command_path} {name}'.{did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)


class TextCommand(Command):
    """A command whose last argument is free text; if it has several words, it may start with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.params if isinstance(param, click.Option)]
        named = {name for option in options for name in (*option.opts, *option.secondary_opts)}
        valued = {name for option in options if not option.is_flag for name in option.opts}
        kept: list[str] = []
        texts: list[str] = []
        rest = list(args)
        while rest and rest[0] != "--":
            word = rest.pop(0)
            (texts if _is_text(word, named) else kept).append(word)
            if word in valued and rest:
                kept.append(rest.pop(0))
        return super().parse_args(ctx, [*kept, "--", *texts, *rest[1:]] if texts else [*kept, *rest])


def _is_text(word: str, named: set[str]) -> bool:
    """Return whether a word looks like an option but is text: it has blanks outside an option's value."""
    return word.startswith("-") and len(word.split(maxsplit=1)) > 1 and word.partition("=")[0] not in named


def did_you_mean(word: str, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""


class DefaultedOption(click.Option):
    """An option whose default is determined later; the help shows `show_default`."""

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Omit the parentheses that click puts around such texts."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        return extra


def json_option(function: Function) -> Function:
    """Add `--json`, which makes data and errors JSON; the command gets `as_json`."""

    def remember(context: click.Context, _option: click.Parameter, value: bool) -> bool:
        if value:
            want_json(context)
        return value

    return click.option("--json", "as_json", is_flag=True, callback=remember, help="Print JSON.")(function)


def limit_option(most: int, default: int = 50, *names: str) -> Callable[[Function], Function]:
    """Add `-n, --limit`: the maximum number of rows."""
    return click.option(
        *(names or ("-n", "--limit")),
        metavar="N",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="Maximum number of rows.",
    )


def one_of(name: str, *flags: Flag) -> Callable[[Function], Function]:
    """Add mutually exclusive flags; the command gets the value of the given one as `name`, or None."""
    words = {meaning: names.split()[0] for names, meaning, _help in flags}

    def taking(meaning: str | bool) -> Callable[[click.Context, click.Parameter, bool], None]:
        def take(context: click.Context, _option: click.Parameter, given: bool) -> None:
            before = context.params.setdefault(name, None)
            if given and before is not None:
                both = f"{words[before]} and {words[meaning]}"
                raise click.UsageError(f"{both} cannot be combined", context)
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
    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
