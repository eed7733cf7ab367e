"""Commands whose arguments are texts: `- fix this` is a text, and no option; `-` is standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from synapse_tui.errors import MessageError, MessageTooLarge
from synapse_tui.model import MAX_MESSAGE_BYTES

from .commands import Command
from .output import plain

_END = "--"


class TextCommand(Command):
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


def read_message(message: str) -> str:
    """The text of a message: the argument, or standard input for `-`.

    Raises:
        MessageError: It is empty or no UTF-8.
        MessageTooLarge: It is over the limit.
    """
    data = _standard_input() if message == "-" else os.fsencode(message)
    if len(data) > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(
            f"the message has more than {MAX_MESSAGE_BYTES} bytes",
            "put the text into a file and name the file in the message",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise MessageError(
            f"byte {error.start} of the message is no UTF-8", "convert it, by iconv"
        ) from error
    if not plain(text).strip():
        raise MessageError("the message is empty", "say something: synapse send TARGET MESSAGE")
    return text


def _standard_input() -> bytes:
    """All of it, without the line feed at its end; a little more than the limit is enough to know.

    Raises:
        MessageError: It is closed.
    """
    if sys.stdin is None:
        raise MessageError("the message is to come from standard input, which is closed", "give it as text")
    return sys.stdin.buffer.read(MAX_MESSAGE_BYTES + 2).removesuffix(b"\n")
