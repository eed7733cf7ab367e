"""The dummy agent's application: keys in, turns run, screen drawn."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable, Sequence

from .composer import Composer
from .dialogs import Dialog, question
from .journal import Journal
from .keyboard import Keyboard
from .loop import Loop, Timer
from .options import Options, parse_options
from .painter import AlternateScreenPainter, MainScreenPainter, Painter
from .panel import PanelView, panel
from .runner import TurnRunner
from .screen import Style, Transcript
from .script import HELP
from .status import State, StatusSignals
from .tty import LateTty, Tty

SPIN = 0.12
RESIZE_WAIT = 0.02
EXIT_WINDOW = 2.0
"""Seconds in which a second Ctrl+C ends the program."""

DIALOG_STATES = ("permission", "question")
FOOTER_STATES = {"working": "working", "permission": "waiting", "question": "waiting", "error": "error"}


class DummyApp:
    """One run of the dummy agent.

    Args:
        options: How it behaves.
        tty: Its terminal, already in raw mode.
        loop: Its event loop.
        journal: Told of everything.
    """

    def __init__(self, options: Options, tty: Tty, loop: Loop, journal: Journal) -> None:
        self.options = options
        self.tty = tty
        self.loop = loop
        self.journal = journal
        self.exit_code = 0
        self.exit_signal = 0
        self.style = Style(color=options.color)
        self.transcript = Transcript(self.style, options.name)
        self.painter: Painter = (
            AlternateScreenPainter(tty.write, lambda: tty.size[1])
            if options.alternate_screen
            else MainScreenPainter(tty.write)
        )
        self.signals = StatusSignals(
            tty.write, options.name, title=options.title, status=options.status, progress=options.progress
        )
        self.runner = TurnRunner(self)
        self.state: State = "idle"
        self._resting: State = "idle"
        self.composer = Composer()
        self.dialogs: list[Dialog] = []
        self.queued: list[str] = []
        self.notice = ""
        self._notice_timer: Timer | None = None
        self._resize: Timer | None = None
        self._spinner: Timer | None = None
        self._step = 0

    # -- life

    def begin(self) -> None:
        """Show the first screen and listen."""
        self.painter.begin()
        modes = ("\x1b[?2004h" if self.options.paste else "") + ("\x1b[>1u" if self.options.kitty else "")
        self.tty.write(modes)
        keyboard = Keyboard(self)
        self.loop.read(self.tty.descriptor, keyboard.read)
        self.loop.on_signal(signal.SIGWINCH, self._resized)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.loop.on_signal(number, functools.partial(self.ended_by, number))
        self.loop.on_signal(signal.SIGUSR1, keyboard.surprise)
        columns, lines = self.tty.size
        self.journal.write("start", pid=os.getpid(), name=self.options.name, columns=columns, lines=lines)
        self.set_state("idle")
        if self.options.resume:
            self.transcript.add("note", "Resumed the last conversation.")
        if self.options.prompt:
            self.submit(self.options.prompt, "argument")
        self.paint()

    def end(self) -> None:
        """Give the terminal back."""
        self.runner.stop(at_once=True)
        self.signals.end()
        modes = ("\x1b[?2004l" if self.options.paste else "") + ("\x1b[<u" if self.options.kitty else "")
        self.tty.write(modes)
        self.painter.end()
        self.journal.write("exit", code=self.exit_code, signal=self.exit_signal)

    def leave(self, code: int = 0, number: int = 0) -> None:
        """End the program after what is going on now."""
        self.exit_code = code
        self.exit_signal = number
        self.loop.running = False

    def ended_by(self, number: int) -> None:
        """A signal asks for the end, or the terminal is gone."""
        if not self.options.stubborn:
            self.leave(number=number)

    # -- state and screen

    def set_state(self, state: State) -> None:
        """Tell a new state to the terminal, the journal and the user; an open dialog hides others."""
        if self.dialogs and state not in DIALOG_STATES:
            self._resting = state
            return
        self.state = state
        self.journal.write("state", state=state)
        self.signals.show(state)
        if state == "working" and self._spinner is None:
            self._spinner = self.loop.later(SPIN, self._spin)

    def paint(self) -> None:
        """Bring the screen up to date."""
        if self.runner.on_alternate_screen or self._resize is not None:
            return
        columns, lines = self.tty.size
        finished, tail = self.transcript.take(columns)
        view = PanelView(
            composer=self.composer,
            placeholder='Try "hello", or "@NAME hi" for another pane',
            dialog=self.dialog,
            working=self.runner.seconds,
            step=self._step,
            queued=self.queued,
            notice=self.notice,
            tail=tail,
            name=self.options.name,
            state=FOOTER_STATES.get(self.state, "ready"),
        )
        self.painter.paint(finished, panel(view, self.style, columns, lines))

    def repaint(self) -> None:
        """Draw everything anew."""
        if self.runner.on_alternate_screen:
            return
        self.painter.restart()
        self.transcript.replay()
        self.paint()

    @property
    def dialog(self) -> Dialog | None:
        """The dialog on the screen."""
        return self.dialogs[0] if self.dialogs else None

    def open_dialog(self, dialog: Dialog) -> None:
        """Let a dialog take the keys, after those that are open already."""
        self.dialogs.append(dialog)
        if len(self.dialogs) == 1:
            self._resting = self.state
            self._show_dialog(dialog)

    def close_dialog(self) -> None:
        """The dialog on the screen was answered."""
        answered = self.dialogs.pop(0)
        if self.dialogs:
            self._show_dialog(self.dialogs[0])
        else:
            self.set_state(self._resting)
        self.runner.answered(answered)

    def _show_dialog(self, dialog: Dialog) -> None:
        self.journal.write("dialog-open", kind=dialog.kind, question=dialog.question, body=dialog.body)
        self.set_state(dialog.kind)
        self.paint()

    def note(self, text: str, seconds: float = EXIT_WINDOW) -> None:
        """Show something in the footer for a while."""
        self.notice = text
        if self._notice_timer is not None:
            self._notice_timer.canceled = True
        self._notice_timer = self.loop.later(seconds, self._end_notice)

    def _end_notice(self) -> None:
        self.notice = ""
        self.paint()

    def _spin(self) -> None:
        self._spinner = None
        if self.runner.seconds is None:
            return
        self._spinner = self.loop.later(SPIN, self._spin)
        self._step += 1
        if self.state == "working":
            self.signals.spin(self._step // 8)
            self.paint()

    def _resized(self) -> None:
        """Draw anew soon: a window that is dragged has many sizes, of which the last one counts."""
        if self._resize is None:
            self._resize = self.loop.later(RESIZE_WAIT, self._draw_resized)

    def _draw_resized(self) -> None:
        self._resize = None
        columns, lines = self.tty.size
        self.journal.write("resize", columns=columns, lines=lines)
        self.repaint()

    # -- turns

    def submit(self, text: str, source: str) -> None:
        """Take a message: start a turn, or do as the options say when one runs.

        Args:
            text: The message.
            source: What submitted it, for the journal.
        """
        busy = self.runner.seconds is not None
        mode = self.options.while_working if busy else "now"
        self.journal.write("submit", text=text, mode=mode, source=source)
        if busy and mode == "queue":
            self.queued.append(text)
            return
        if busy:
            self.runner.interrupt(note=False)
        if text.startswith("/"):
            self._command(text.strip())
            return
        self.start_turn(text)

    def start_turn(self, text: str) -> None:
        """Work on a message."""
        self.transcript.add("user", text)
        self.journal.write("turn", text=text)
        self.set_state("working")
        self.runner.start(text)

    def next_turn(self) -> None:
        """Work on the first message that was queued."""
        if self.queued and self.runner.seconds is None:
            text = self.queued.pop(0)
            if text.startswith("/"):
                self._command(text.strip())
            else:
                self.start_turn(text)

    def _command(self, command: str) -> None:
        if command == "/help":
            self.transcript.add("note", HELP)
        elif command == "/clear":
            self.transcript.clear()
            self.painter.restart()
        elif command in ("/exit", "/quit"):
            self.leave(0)
        elif command == "/menu":
            self.open_dialog(question("Which one?|first|second|third"))
        else:
            name = command.split(maxsplit=1)[0]
            self.transcript.add("note", f"There is no command {name}; /help tells what there is.")
        self.next_turn()


def main(
    arguments: Sequence[str] | None = None,
    make: Callable[[Options, Tty, Loop, Journal], DummyApp] = DummyApp,
) -> int:
    """Run the dummy agent.

    Args:
        arguments: Of the command line; None for those of this process.
        make: Makes the application; test agents have one with turns of their own.

    Returns:
        The exit status.
    """
    options = parse_options(sys.argv[1:] if arguments is None else arguments)
    if not (os.isatty(0) and os.isatty(1)):
        sys.stderr.write("dummy: this program needs a terminal; run it in one, or as a pane of synapse-tui\n")
        return 2
    loop = Loop()
    tty = LateTty(loop, options.lag) if options.lag else Tty()
    if options.startup:
        loop.later(options.startup, lambda: setattr(loop, "running", False))
        loop.run()
        loop.running = True
    journal = Journal(options.log)
    tty.raw()
    app = make(options, tty, loop, journal)
    try:
        app.begin()
        loop.run()
        app.end()
    finally:
        tty.restore()
    journal.close()
    if app.exit_signal:
        with contextlib.suppress(OSError):  # SIGKILL has its default action already.
            signal.signal(app.exit_signal, signal.SIG_DFL)
        os.kill(os.getpid(), app.exit_signal)
    return app.exit_code
