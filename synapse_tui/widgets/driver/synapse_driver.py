"""The Textual driver: draws on the attached terminals, if there are any, in the application's own loop.

Textual's own drivers read in a thread, lose input that its parser does not know, and block the loop if the
terminal does not read (see `docs/design.md`). This one installs no signal handlers: call `resized()` when the
size changes. Terminals can be attached and detached while the application runs. All show the same, in the
size that fits the smallest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

from textual import events, messages
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message

from synapse_tui.system.dataclass import dataclass
from synapse_tui.widgets.driver.input_events import (
    OuterTerminalChanged,
    TerminalKey,
    TerminalKeyRelease,
    TerminalText,
    TerminalTooLarge,
    textual_mouse,
)
from synapse_tui.widgets.driver.link import LinkListener, LinkOptions, TerminalLink
from synapse_tui.widgets.driver.outer import OuterTerminal, Reaction
from synapse_tui.widgets.driver.tokenizer import (
    FocusToken,
    KeyToken,
    MouseToken,
    PasteToken,
    TextToken,
    Token,
)
from synapse_tui.widgets.driver.tty import TerminalSize, find_terminal, read_size

LONGEST = 200  # characters of a text: desktops truncate longer ones
# terminals that support OSC 777, by prefix of their names
_TITLED = ("foot", "vte", "wezterm", "ghostty", "contour", "rxvt")
# terminals known to show notifications
_NOTIFYING = (*_TITLED, "kitty", "iterm")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def notification(title: str, text: str, *, version: str, environ: Mapping[str, str], serial: int) -> str:
    """Return the sequence that shows a notification; empty for terminals that would print it."""
    title, text = (_CONTROLS.sub(" ", each)[:LONGEST] for each in (title, text))
    term, name = environ.get("TERM", ""), _name(version, environ)
    if term in ("linux", "dumb", ""):
        return ""
    if name.startswith("kitty"):
        begin = f"\x1b]99;i=synapse-{serial}:d=0;{title}\x1b\\"
        return f"{begin}\x1b]99;i=synapse-{serial}:p=body;{text}\x1b\\"
    if name.startswith(_TITLED):
        return f"\x1b]777;notify;{title.replace(';', ',')};{text}\x07"
    plain = f"\x1b]9;{title}: {text}\x07"
    if name.startswith("tmux"):
        return f"\x1bPtmux;{plain.replace(chr(27), chr(27) * 2)}\x1b\\"  # tmux(1), allow-passthrough
    if term.startswith("screen"):
        return f"\x1bP{plain}\x1b\\"
    return plain


def can_notify(version: str, environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to show notifications; behind tmux that depends on its settings."""
    return _name(version, environ).startswith(_NOTIFYING)


def _name(version: str, environ: Mapping[str, str]) -> str:
    known = version or environ.get("TERM_PROGRAM", "")
    if not known and "VTE_VERSION" in environ:
        return "vte"
    return (known or environ.get("TERM", "").removeprefix("xterm-")).lower()


DETACHED_SIZE = (120, 40)  # columns and lines of the application before the first terminal is attached


def smallest(sizes: Sequence[TerminalSize]) -> TerminalSize:
    """Return the size that fits all terminals; with its pixels if there is one."""
    if len(sizes) == 1:
        return sizes[0]
    return TerminalSize(min(size.columns for size in sizes), min(size.lines for size in sizes))


def _clear_around(size: Size, terminal: TerminalSize) -> str:
    """Return what clears a terminal below and beside an area in its corner; the cursor stays."""
    clear = ""
    if terminal.columns > size.width:
        clear += "".join(f"\x1b[{row};{size.width + 1}H\x1b[K" for row in range(1, size.height + 1))
    if terminal.lines > size.height:
        clear += f"\x1b[{size.height + 1};1H\x1b[J"
    return f"\x1b7\x1b[0m{clear}\x1b8" if clear else ""


class Tap(Protocol):
    """Receives everything that is drawn, such as a recording."""

    def drawn(self, data: str) -> None: ...

    def resized(self, columns: int, lines: int) -> None: ...


@dataclass(frozen=True, slots=True)
class DriverOptions:
    input_fd: int | None = None  # the terminal to read from; None for the process's own
    output_fd: int | None = None  # the terminal to draw on; None for the process's own
    on_hangup: Callable[[], object] | None = None  # called once, in the loop, when the terminal is gone
    on_reply: Callable[[bytes], object] | None = None  # called with each reply of the terminal
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    detached: bool = False  # start without a terminal, ignoring the descriptors
    size: tuple[int, int] = DETACHED_SIZE  # columns and lines of a detached driver
    links: Sequence[TerminalLink] = ()  # the terminals to attach at the start of a detached driver
    taps: list[Tap] = field(default_factory=list)


class SynapseDriver(Driver):
    options: ClassVar[DriverOptions] = DriverOptions()

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        options = self.options
        self.links: list[TerminalLink] = []  # the newest last
        self.acting: TerminalLink | None = None  # where was typed or clicked last
        self.shrunk_by: Sequence[str] = ()  # the names of the terminals whose size larger ones follow
        self._focused: list[TerminalLink] = []
        self._covered = True  # whether nothing old is left around what is drawn
        self.taps = options.taps
        self._own: LinkOptions | None = None
        if not options.detached:
            input_fd = find_terminal() if options.input_fd is None else options.input_fd
            output_fd = input_fd if options.output_fd is None else options.output_fd
            self._own = LinkOptions(input_fd, output_fd, options.environ, mouse)
        if size is None:
            measured = read_size(self._own.output_fd) if self._own else TerminalSize(*options.size)
            self._size = (measured.columns, measured.lines)
        self._last_cell = (0, 0)
        self._reported_too_large = False
        self._keyboard = 0
        self._notified = 0

    # -- attaching -----------------------------------------------------------------------------------------

    def attach(self, link: TerminalLink) -> None:
        """Draw on a terminal from now on too, starting with a full repaint."""
        self.links.append(link)
        self._focused.append(link)
        self.acting = link
        self._app._sync_available = False  # until this one supports it too
        link.listener = LinkListener(partial(self._take, link), self._replied, self._repaint, self._lost)
        link.open()
        self.resized()
        link.request_keyboard(self._keyboard)
        outer = link.outer
        self._synchronize()
        if outer.dark is not None or outer.wide_signs is not None:
            self.send_message(OuterTerminalChanged(outer))
        self._repaint()

    def release(self, link: TerminalLink) -> None:
        """Draw on a terminal no longer, which stays open; the others may get larger."""
        if link not in self.links:
            return
        link.listener = None
        self.links.remove(link)
        if self.acting is link:
            self.acting = self.link
        self._focus(link, focused=False)
        if self.links:
            self.resized()
            self._synchronize()

    def _synchronize(self) -> None:
        if self.links and all(link.outer.settable(2026) for link in self.links):
            self.send_message(messages.TerminalSupportsSynchronizedOutput())

    @property
    def link(self) -> TerminalLink | None:
        """The newest terminal, whose colours count."""
        return self.links[-1] if self.links else None

    # -- interface for the application ---------------------------------------------------------------------

    @property
    def is_headless(self) -> bool:
        """Whether there is neither a terminal nor a tap: Textual then draws nothing."""
        return not self.links and not self.taps

    @property
    def outer(self) -> OuterTerminal:
        """What the newest terminal has reported; signs are wide if they are at any."""
        if self.link is None:
            return OuterTerminal()
        wide = any(link.outer.wide_signs for link in self.links)
        return replace(self.link.outer, wide_signs=True) if wide else self.link.outer

    @property
    def dropping(self) -> bool:
        """Whether output is being dropped; everything is repainted afterwards."""
        return self.is_headless or (bool(self.links) and all(link.dropping for link in self.links))

    def terminal_size(self) -> TerminalSize:
        """Return the size that fits all terminals, or the last known one while none is attached."""
        if not self.links:
            return TerminalSize(*(self._size or DETACHED_SIZE))
        return smallest([link.size for link in self.links])

    def resized(self) -> None:
        """Post the size that fits all terminals to the application; call this on a change (SIGWINCH)."""
        size = self.terminal_size()
        self.shrunk_by = self._shrinking(size)
        self._covered = not self.shrunk_by
        cells = Size(size.columns, size.lines)
        pixels = Size(size.width, size.height) if size.width and size.height else None
        if self._size != (size.columns, size.lines):
            for tap in self.taps:
                tap.resized(size.columns, size.lines)
        self._size = (size.columns, size.lines)
        if size.claimed is not None and not self._reported_too_large:
            self._reported_too_large = True
            self.send_message(TerminalTooLarge(size.claimed, self._size))
        self.send_message(events.Resize(cells, cells, cells, pixels))

    def _shrinking(self, size: TerminalSize) -> list[str]:
        """Return the names of the terminals without which the size would be larger."""
        sizes = [link.size for link in self.links]
        columns = {each.columns for each in sizes} - {size.columns}
        lines = {each.lines for each in sizes} - {size.lines}
        return [
            link.name
            for link, each in zip(self.links, sizes, strict=True)
            if (columns and each.columns == size.columns) or (lines and each.lines == size.lines)
        ]

    def drawn(self, size: Size) -> None:
        """Clear what lies around the application on larger terminals, once it is drawn in its new size."""
        if (size.width, size.height) != self._size:
            self._covered = False  # it will be drawn in another size
        elif not self._covered:
            self._covered = True
            for link in self.links:
                link.write(_clear_around(size, link.size))
                link.flush()

    def request_keyboard(self, child_flags: int) -> None:
        """Enable the keyboard reports of the child in focus: releases, and all keys as sequences.

        Releases are then posted as `TerminalKeyRelease`.
        """
        self._keyboard = child_flags
        for link in self.links:
            link.request_keyboard(child_flags)

    @property
    def can_notify(self) -> bool:
        return self.link is not None and can_notify(self.link.outer.version, self.link.environ)

    def notify(self, title: str, text: str) -> None:
        """Show a desktop notification through the terminal; recordings do not contain it."""
        if self.link is not None:
            self._notified += 1
            outer, environ = self.link.outer, self.link.environ
            serial = self._notified
            self.link.write(notification(title, text, version=outer.version, environ=environ, serial=serial))
            self.link.flush()

    # -- Textual's interface -------------------------------------------------------------------------------

    @property
    def can_suspend(self) -> bool:
        """Never: stopping this process would stop its agents, and Ctrl+Z belongs to the child."""
        return False

    def send_message(self, message: Message) -> None:
        message.set_sender(self._app)
        self._app.post_message(message)

    def write(self, data: str) -> None:
        """Queue output; dropped as a whole while the terminal does not read."""
        for link in self.links:
            link.write(data)
        for tap in self.taps:
            tap.drawn(data)

    def flush(self) -> None:
        for link in self.links:
            link.flush()

    def start_application_mode(self) -> None:
        """Open the driver's own terminal, unless one is attached."""
        if self.links:
            return
        if self._own is not None:
            self.attach(TerminalLink(self._own, self._loop))
        for link in self.options.links:
            self.attach(link)

    def disable_input(self) -> None:
        """Stop reading; unread input is discarded when the attributes are restored."""
        if self.link is not None and self._own is not None:
            self.link.pause_input()

    def stop_application_mode(self) -> None:
        """Reset and release the driver's own terminal; attached ones are left unchanged."""
        for link in tuple(self.links):
            link.listener = None
            if self._own is not None:
                link.close()
        self.links.clear()

    def close(self) -> None:
        self.stop_application_mode()

    # -- input from the terminal ---------------------------------------------------------------------------

    def _take(self, link: TerminalLink, tokens: list[Token]) -> None:
        for token in tokens:
            if isinstance(token, FocusToken):
                self._focus(link, focused=token.focused)
                continue
            if not (isinstance(token, MouseToken) and token.event.kind == "move"):
                self.acting = link
            self._post([token])

    def _focus(self, link: TerminalLink, *, focused: bool) -> None:
        """Note whether a person is at a terminal; the application is in focus while it is at any of them."""
        before = bool(self._focused)
        self._focused = [each for each in self._focused if each is not link] + ([link] if focused else [])
        if focused or (before and not self._focused and self.links):
            self.process_message(events.AppFocus() if focused else events.AppBlur())

    def _post(self, tokens: list[Token]) -> None:
        for token in tokens:
            match token:
                case KeyToken(key, raw):
                    released = key.kind == "release"
                    self.process_message((TerminalKeyRelease if released else TerminalKey)(key, raw))
                case TextToken(text) if getattr(self._app, "takes_runs", False):
                    self.process_message(TerminalText(text))
                case TextToken():
                    self._post([*token.singly()])
                case PasteToken(text):
                    self.process_message(events.Paste(text))
                case MouseToken(report):
                    self.process_message(textual_mouse(report, self._last_cell))
                    self._last_cell = (report.x, report.y)

    def _replied(self, reaction: Reaction, raw: bytes) -> None:
        if reaction.synchronized:
            self._synchronize()
        if reaction.changed:
            self.send_message(OuterTerminalChanged(self.outer))
        if self.options.on_reply is not None:
            self.options.on_reply(raw)

    def _repaint(self) -> None:
        if self._app.is_running:
            self._app.refresh()

    def _lost(self) -> None:
        if self.options.on_hangup is not None:
            self.options.on_hangup()


def driver_class(given: DriverOptions) -> type[SynapseDriver]:
    class GivenTerminalDriver(SynapseDriver):
        options = given

    return GivenTerminalDriver
