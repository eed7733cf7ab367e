"""One turn of the agent: what the directives of a message ask for, then the answer, as steps to carry out."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Generator
from dataclasses import dataclass

from .dialogs import Dialog, permission, question
from .script import WIDE, Directive, answer, directives, slow_text


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ask:
    """Open a dialog and wait for its answer."""

    dialog: Dialog


@dataclass(frozen=True, slots=True)
class Say:
    """Add text to the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    """Show that a tool is used; what it gives follows as `Output`."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """Show what a tool gave."""

    text: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a command in a shell and show its output; the step's value is its exit status."""

    command: str


@dataclass(frozen=True, slots=True)
class Emit:
    """Send a sequence that draws nothing: one of `bell`, `notify`, `clip`, `title`."""

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """Put rows into the transcript as they are, bytes that are no UTF-8 as surrogate escapes."""

    text: str


@dataclass(frozen=True, slots=True)
class Flood:
    """Write as fast as possible for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ShowAlternate:
    """Show a page on the alternate screen for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    """End the turn with an error."""

    text: str


@dataclass(frozen=True, slots=True)
class Leave:
    """End the program, with an exit status or by a signal."""

    code: int = 0
    signal: int = 0


Step = (
    Sleep | Ask | Say | Tool | Output | RunCommand | Emit | Raw | Flood | ShowAlternate | Fail | Leave
)  # fmt: skip
Steps = Generator[Step, object, None]

THINKING = 0.15
"""Seconds before the first word."""


@dataclass(slots=True)
class TurnContext:
    """What a turn needs to know of its surroundings.

    Attributes:
        number: Turns before this one.
        reply: The answer given to everything; empty for the built-in ones.
        word_delay: Seconds between two words.
        allowed: Whether permissions are given without asking by now.
    """

    number: int
    reply: str
    word_delay: float
    allowed: bool = False


def perform(text: str, context: TurnContext) -> Steps:
    """The steps of a turn.

    Args:
        text: The message.
        context: The surroundings; `allowed` is set when the person says "do not ask again".
    """
    if text.startswith("!"):
        yield from _run(text[1:].strip())
        return
    yield Sleep(THINKING)
    slow = 0.0
    for directive in directives(text):
        if directive.name == "slow":
            slow = directive.seconds()
        else:
            yield from _ACTIONS[directive.name](directive, context)
    reply = answer(text, turn=context.number, reply=context.reply)
    yield from _stream(slow_text(reply, slow) if slow else reply, slow, context.word_delay)


def _stream(text: str, seconds: float, delay: float) -> Steps:
    """Say the words one by one."""
    words = re.findall(r"\s*\S+", text)
    pause = seconds / max(len(words), 1) if seconds else delay
    for word in words:
        yield Say(word)
        if pause:
            yield Sleep(pause)


def _hang(directive: Directive, _context: TurnContext) -> Steps:
    yield Sleep(directive.seconds())


def _permitted(command: str, context: TurnContext) -> Generator[Step, object, bool]:
    if context.allowed:
        return True
    dialog = permission(command)
    yield Ask(dialog)
    context.allowed = dialog.answer is not None and dialog.answer.choice == 2
    return dialog.allowed


def _perm(directive: Directive, context: TurnContext) -> Steps:
    command = directive.argument or "rm -rf build"
    permitted = yield from _permitted(command, context)
    yield Tool(f"Bash({command})")
    yield Output("allowed (and not run: this is a rehearsal)" if permitted else "denied by the user")


def _run_asking(directive: Directive, context: TurnContext) -> Steps:
    permitted = yield from _permitted(directive.argument, context)
    if permitted:
        yield from _run(directive.argument)
    else:
        yield Tool(f"Bash({directive.argument})")
        yield Output("denied by the user")


def _run(command: str) -> Steps:
    yield Tool(f"Bash({command})")
    status = yield RunCommand(command)
    if status:
        yield Output(f"exit status {status}")


def _ask(directive: Directive, _context: TurnContext) -> Steps:
    dialog = question(directive.argument or "Shall I go on?")
    yield Ask(dialog)
    yield Say(f"Your answer: {dialog.answer.text if dialog.answer else 'none'}\n")


def _wide(_directive: Directive, _context: TurnContext) -> Steps:
    yield Say(WIDE + "\n")


def _flood(directive: Directive, _context: TurnContext) -> Steps:
    yield Flood(directive.seconds())


def _alternate(directive: Directive, _context: TurnContext) -> Steps:
    yield ShowAlternate(directive.seconds())


def _emit(directive: Directive, _context: TurnContext) -> Steps:
    yield Emit(directive.name, directive.argument)


def _invalid(_directive: Directive, _context: TurnContext) -> Steps:
    yield Raw(
        b"bytes that are no text: \xff\xfe \xc3( \xe2\x82 \xf0\x9f end".decode("utf-8", "surrogateescape")
    )


def _nothing(_directive: Directive, _context: TurnContext) -> Steps:
    yield from ()


def _error(directive: Directive, _context: TurnContext) -> Steps:
    yield Fail(directive.argument or "the model does not answer")


def _exit(directive: Directive, _context: TurnContext) -> Steps:
    yield Leave(code=int(directive.argument) & 0xFF if directive.argument.isdecimal() else 0)


def _crash(directive: Directive, _context: TurnContext) -> Steps:
    name = directive.argument.upper().removeprefix("SIG") or "ABRT"
    number = int(name) if name.isdecimal() else getattr(signal.Signals, f"SIG{name}", signal.SIGABRT)
    yield Leave(signal=int(number))


_ACTIONS: dict[str, Callable[[Directive, TurnContext], Steps]] = {
    "hang": _hang,
    "perm": _perm,
    "run": _run_asking,
    "ask": _ask,
    "wide": _wide,
    "flood": _flood,
    "alt": _alternate,
    "bell": _emit,
    "notify": _emit,
    "clip": _emit,
    "title": _emit,
    "invalid": _invalid,
    "error": _error,
    "exit": _exit,
    "crash": _crash,
    "surprise": _nothing,
}
