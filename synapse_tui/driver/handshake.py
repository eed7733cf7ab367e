"""What is said to the outer terminal at the start, on its answers and at the end; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import modes
from .outer import OuterTerminal

SYNCHRONIZED = 2026
COLOR_SCHEME = 2031


@dataclass(frozen=True, slots=True)
class Reaction:
    """What follows from a reply.

    Attributes:
        write: What to write to the terminal.
        colors: Whether its colours or its colour scheme were told.
        synchronized: Whether it was told that it can hold a frame back until it is whole.
    """

    write: str = ""
    colors: bool = False
    synchronized: bool = False


class Handshake:
    """Sets only modes that the terminal can be expected to know, and undoes exactly what was set.

    Args:
        environ: Environment of the terminal's user.
        mouse: Whether the mouse is wanted.
        outer: Where what the terminal tells is noted.
    """

    def __init__(self, environ: Mapping[str, str], *, mouse: bool, outer: OuterTerminal) -> None:
        self._environ = environ
        self._mouse = mouse
        self._outer = outer
        self._modes = modes.ModeStack()
        self._flags = modes.KEYBOARD_FLAGS
        self._kitty = False
        self._limited = modes.is_limited(environ)
        self.waiting = False
        """Whether answers of the terminal are still on their way."""

    def begin(self) -> str:
        """The modes that every terminal takes or ignores, and the questions."""
        wanted = [modes.ALTERNATE_SCREEN, modes.PLAIN, modes.HIDDEN_CURSOR, modes.NO_LINE_WRAP]
        if self._mouse:
            wanted.append(modes.MOUSE)
        wanted += [modes.FOCUS_EVENTS, modes.BRACKETED_PASTE]
        if not self._limited:
            wanted += [modes.CURSOR_SHAPE, modes.POINTER_SHAPE]
        questions = modes.queries(self._environ)
        self.waiting = bool(questions)
        return "".join(self._modes.enter(mode) for mode in wanted) + questions

    def take(self, reply: bytes) -> Reaction:
        """Note a reply.

        Args:
            reply: A whole one.
        """
        dark = self._outer.dark
        match self._outer.take(reply):
            case "kitty":
                return Reaction(self._push_keyboard())
            case "attributes":
                return Reaction(self._take_attributes())
            case "mode":
                return self._take_mode()
            case "color":
                return Reaction(colors=True)
            case "scheme":
                changed = dark is not None and dark != self._outer.dark
                return Reaction(modes.QUERY_COLORS if changed else "", colors=True)
            case _:
                return Reaction()

    def keyboard(self, child_flags: int) -> str:
        """What asks the terminal for the keys that a child wants, if it can.

        Args:
            child_flags: The child's kitty flags.
        """
        flags = modes.keyboard(child_flags)
        if flags == self._flags:
            return ""
        self._flags = flags
        return f"\x1b[={flags}u" if self._kitty else ""

    def fit(self, output: str) -> str:
        """The output without what the terminal would show as text."""
        return modes.strip_unknown(output) if self._limited else output

    def resume(self) -> str:
        """What brings a terminal to the present state that has missed some of the output."""
        synchronized = modes.END_SYNCHRONIZED if self._outer.settable(SYNCHRONIZED) else ""
        return synchronized + (f"\x1b[={self._flags}u" if self._kitty else "")

    def end(self) -> str:
        """What undoes all that was set, in the reverse order."""
        synchronized = modes.END_SYNCHRONIZED if self._outer.settable(SYNCHRONIZED) else ""
        self._kitty = False
        return synchronized + self._modes.leave_all()

    def _push_keyboard(self) -> str:
        if self._kitty:
            return ""
        self._kitty = True
        return self._modes.enter((f"\x1b[>{self._flags}u", "\x1b[<u"))

    def _take_attributes(self) -> str:
        """Answered last: what is unanswered by now is not known to the terminal."""
        answered, self.waiting = not self.waiting, False
        if answered or self._outer.kitty_flags is not None or self._limited:
            return ""
        return self._modes.enter(modes.OTHER_KEYS)

    def _take_mode(self) -> Reaction:
        mode = self._outer.last_mode
        if not self._outer.settable(mode):
            return Reaction()
        if mode == COLOR_SCHEME:
            return Reaction(self._modes.enter(modes.COLOR_SCHEME))
        return Reaction(synchronized=mode == SYNCHRONIZED)
