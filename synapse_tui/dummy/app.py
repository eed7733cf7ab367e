"""The dummy agent's application: reads keys, runs turns, draws the screen."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from synapse_tui import __version__
from synapse_tui.system.language import tr

from .editor import DummyComposer
from .parts import PARTS, invitation
from .runner import State, StatusSignals, TurnRunner
from .screen import (
    AlternateScreenPainter,
    AnsiStyle,
    DummyTranscript,
    MainScreenPainter,
    Painter,
    PanelView,
    panel,
)
from .script import DIRECTIVES_HELP, HELP, ScriptedDialog, directives, permission, question
from .terminal import ESCAPE_WAIT, DueCall, Key, KeyDecoder, LateTty, Loop, Paste, Text, Token, Tty

SLOW_READ = 0.02  # Seconds between two reads with a limited rate
NEWLINE_KEYS = ("shift+enter", "alt+enter", "ctrl+enter", "ctrl+j")
PLACEHOLDER = 'Try "hello", or "@NAME hi" for another pane'


class DummyKeyboard:
    def __init__(self, app: DummyApp) -> None:
        self._app = app
        self._decoder = KeyDecoder(paste=app.options.paste)
        self._escape: DueCall | None = None
        self._swallow = 0
        self._typed_at = float("-inf")
        self._draft = ""

    def read(self) -> None:
        data = self._read()
        if not data:
            self._app.loop.unread(self._app.tty.descriptor)
            self._app.ended_by(signal.SIGHUP)
            return
        self._handle(self._decoder.feed(data))
        if self._escape is not None:
            self._escape.canceled = True
        self._escape = self._app.loop.later(ESCAPE_WAIT, self._flush) if self._decoder.waiting else None

    def _read(self) -> bytes:
        """Read all available input, or at a limited rate a piece of it."""
        loop, tty, rate = self._app.loop, self._app.tty, self._app.options.read_rate
        if not rate:
            return tty.read()
        loop.unread(tty.descriptor)
        loop.later(SLOW_READ, lambda: loop.read(tty.descriptor, self.read))
        return tty.read(max(1, int(rate * SLOW_READ)))

    def _flush(self) -> None:
        self._escape = None
        self._handle(self._decoder.flush())

    def _handle(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if not self._app.loop.running:
                return
            if self._app.dialog is not None:
                self._to_dialog(self._app.dialog, token)
            elif isinstance(token, Key):
                self._app.journal.write("key", key=token.name)
                self._press(token.name)
            else:
                self._insert(token)
        shown = self._app.composer.shown
        if shown != self._draft:
            self._draft = shown
            self._app.journal.write("draft", text=shown)
        if self._app.loop.running:
            self._app.paint()

    def _insert(self, token: Text | Paste) -> None:
        if isinstance(token, Text):
            self._app.journal.write("key", key="text", text=token.text)
            self._app.composer.insert(token.text)
            self._typed_at = self._app.loop.clock()
            return
        self._app.journal.write("paste", text=token.text)
        self._app.composer.paste(token.text)
        self._swallow = self._app.options.swallow_enter
        if self._app.options.dialog_after_paste >= 0:
            self._app.loop.later(self._app.options.dialog_after_paste, self.surprise)
        for directive in directives(token.text):
            if directive.name == "surprise":
                self._app.loop.later(directive.instant(), self.surprise)

    def _to_dialog(self, dialog: ScriptedDialog, token: Token) -> None:
        if isinstance(token, Paste):
            self._app.journal.write("paste", text=token.text, dialog=True)
            return
        if isinstance(token, Key):
            self._app.journal.write("key", key=token.name, dialog=True)
            dialog.press(token.name)
        else:
            self._app.journal.write("key", key="text", text=token.text, dialog=True)
            dialog.type(token.text)
        if dialog.answer is not None:
            self._answered(dialog)

    def _answered(self, dialog: ScriptedDialog) -> None:
        answer = dialog.answer
        if answer is not None:
            self._app.journal.write(
                "dialog-answer",
                kind=dialog.kind,
                body=dialog.body,
                choice=answer.choice,
                answer=answer.text,
                key=answer.key,
            )
        self._app.close_dialog()

    def surprise(self) -> None:
        """Open an unexpected dialog, as when a background task of a real agent needs something."""
        self._app.open_dialog(permission("touch surprise"))

    def _press(self, key: str) -> None:
        if key == "enter" and self._app.loop.clock() - self._typed_at < self._app.options.burst:
            self._app.composer.insert("\n")
        elif key == "enter":
            self._enter()
        elif key in NEWLINE_KEYS:
            self._app.composer.insert("\n")
        elif key == "escape":
            self._interrupt("escape")
        elif key in ("ctrl+c", "ctrl+d"):
            self._break(key)
        elif key == "ctrl+l":
            self._app.repaint()
        else:
            self._app.composer.press(key)

    def _enter(self) -> None:
        if self._swallow > 0:
            self._swallow -= 1
            self._app.journal.write("enter-swallowed")
            return
        busy = self._app.runner.seconds is not None
        if self._app.composer.text.strip() and not (busy and self._app.options.while_working == "ignore"):
            self._app.submit(self._app.composer.take(), "enter")

    def _interrupt(self, key: str) -> None:
        if self._app.runner.seconds is None:
            return
        text = self._app.runner.text
        self._app.journal.write("interrupt", key=key, text=text)
        self._app.runner.interrupt()
        if self._app.options.requeue and self._app.composer.empty:
            self._app.composer.set("\n".join([text, *self._app.queued]))
            self._app.queued.clear()
        else:
            self._app.next_turn()

    def _break(self, key: str) -> None:
        again = tr(f"Press Ctrl+{key[-1].upper()} again to exit")
        if key == "ctrl+c" and self._app.runner.seconds is not None:
            self._interrupt(key)
        elif self._app.notice == again:
            self._app.leave(0)
        elif key == "ctrl+c" or self._app.composer.empty:
            self._app.composer.press("ctrl+u" if key == "ctrl+c" else "")
            self._app.note(again)
        else:
            self._app.composer.press("delete")


class JsonLinesFile:
    """Writes one JSON object per line in a single write, so that readers never see half a line."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._descriptor = -1
        if path:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: str, **fields: object) -> None:
        """Add a line `{"t", "event", ...}`."""
        if self._descriptor < 0:
            return
        record = {"t": round(self._clock(), 6), "event": event, **fields}
        line = json.dumps(record, ensure_ascii=False) + "\n"
        os.write(self._descriptor, line.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Options(argparse.Namespace):
    """Command line options; times are in seconds."""

    prompt: str
    name: str
    reply: str
    part: str
    log: str
    resume: bool
    alternate_screen: bool
    word_delay: float
    startup: float
    title: bool
    status: bool
    progress: bool
    paste: bool
    kitty: bool
    color: bool
    while_working: Literal["ignore", "queue", "steer"]
    requeue: bool
    dialog_after_paste: float
    announce: float
    swallow_enter: int
    burst: float
    read_rate: int  # bytes per second; 0 for no limit
    lag: float
    stubborn: bool


def _milliseconds(text: str) -> float:
    return float(text) / 1000


def _kilobytes(text: str) -> int:
    return int(float(text) * 1000)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m synapse_tui.dummy",
        description="A scripted agent that behaves like a coding agent's program. It needs no model.",
        epilog=DIRECTIVES_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("prompt", nargs="?", default="", help="submitted as soon as it has started")
    add("--name", default="", help="what it calls itself (default: its address, or dummy)")
    add("--reply", default="", metavar="TEXT", help="answer everything with this; {text} is what was asked")
    add("--part", default="", choices=("", *PARTS), help="play a part of the tour or the demo")
    add("--version", action="version", version=f"dummy {__version__}")
    add("--resume", action="store_true", help="say that the last conversation was resumed")
    help_of_log = "log all input as JSON lines; also $SYNAPSE_DUMMY_LOG"
    add("--log", default="", metavar="FILE", help=help_of_log)

    add = parser.add_argument_group("screen").add_argument
    add("--alt-screen", dest="alternate_screen", action="store_true", help="draw on the alternate screen")
    pause = "pause between words (default: %(default)s)"
    add("--word-delay", type=_milliseconds, default="20", metavar="MS", help=pause)
    add("--startup", type=float, default=0, metavar="SECS", help="show nothing and ignore input at first")

    add = parser.add_argument_group("state signals").add_argument
    add("--no-title", dest="title", action="store_false", help="do not set the window title")
    add("--no-status", dest="status", action="store_false", help="send no program status (OSC 7501)")
    add("--progress", action="store_true", help="send progress (OSC 9;4) too")

    add = parser.add_argument_group("input, and faults of real agents").add_argument
    add("--no-paste", dest="paste", action="store_false", help="do not ask for bracketed paste")
    add("--no-kitty", dest="kitty", action="store_false", help="do not ask for the kitty keyboard protocol")
    add(
        "--while-working",
        choices=("ignore", "queue", "steer"),
        default="queue",
        help="what to do with a message submitted during a turn (default: %(default)s)",
    )
    requeue = "put interrupted text back into the composer"
    add("--requeue-on-interrupt", dest="requeue", action="store_true", help=requeue)
    late = "open a dialog this long after a paste"
    add("--dialog-after-paste", type=_milliseconds, default="-1", metavar="MS", help=late)
    early = "report a dialog this long before it is drawn; it takes all keys by then"
    add("--announce", type=_milliseconds, default=0, metavar="MS", help=early)
    add("--swallow-enter", type=int, default=0, metavar="N", help="ignore N Enters after each paste")
    burst = "treat Enter this soon after typed text as part of a paste"
    add("--burst", type=_milliseconds, default=0, metavar="MS", help=burst)
    rate = "read at most this many kB per second"
    add("--read-rate", type=_kilobytes, default=0, metavar="KB", help=rate)
    lag = "delay all output by this time"
    add("--lag", type=_milliseconds, default=0, metavar="MS", help=lag)
    add("--stubborn", action="store_true", help="ignore SIGHUP and SIGTERM")
    return parser


def parse_options(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> Options:
    """Parse the command line; invalid arguments exit with status 2 and a usage line."""
    options = make_parser().parse_args(arguments, Options())
    own = environ.get("SYNAPSE_AGENT_ID", "").removeprefix("synapse-")
    options.name = options.name or own or "dummy"
    options.log = options.log or environ.get("SYNAPSE_DUMMY_LOG", "")
    options.color = not environ.get("NO_COLOR")
    return options


SPIN = 0.12
RESIZE_WAIT = 0.02
EXIT_WINDOW = 2.0  # Seconds in which a second Ctrl+C exits

DIALOG_STATES = ("permission", "question")
FOOTER_STATES = {"working": "working", "permission": "waiting", "question": "waiting", "error": "error"}


class DummyApp:
    def __init__(self, options: Options, tty: Tty, loop: Loop, journal: JsonLinesFile) -> None:
        self.options = options
        self.tty = tty
        self.loop = loop
        self.journal = journal
        self.exit_code = 0
        self.exit_signal = 0
        self.style = AnsiStyle(color=options.color)
        self.transcript = DummyTranscript(
            self.style, options.name, PARTS[options.part].greeting if options.part else ""
        )
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
        self.composer = DummyComposer()
        self.dialogs: list[ScriptedDialog] = []
        self._undrawn: ScriptedDialog | None = None
        self.queued: list[str] = []
        self.notice = ""
        self._notice_timer: DueCall | None = None
        self._resize: DueCall | None = None
        self._spinner: DueCall | None = None
        self._step = 0

    # -- lifecycle

    def begin(self) -> None:
        self.painter.begin()
        modes = ("\x1b[?2004h" if self.options.paste else "") + ("\x1b[>1u" if self.options.kitty else "")
        self.tty.write(modes)
        keyboard = DummyKeyboard(self)
        self.loop.read(self.tty.descriptor, keyboard.read)
        self.loop.on_signal(signal.SIGWINCH, self._resized)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.loop.on_signal(number, functools.partial(self.ended_by, number))
        self.loop.on_signal(signal.SIGUSR1, keyboard.surprise)
        columns, lines = self.tty.size
        self.journal.write("start", pid=os.getpid(), name=self.options.name, columns=columns, lines=lines)
        self.set_state("idle")
        if self.options.resume:
            self.transcript.add("note", tr("Resumed the last conversation."))
        if self.options.prompt:
            self.submit(self.options.prompt, "argument")
        self.paint()

    def end(self) -> None:
        self.runner.stop(at_once=True)
        self.signals.end()
        modes = ("\x1b[?2004l" if self.options.paste else "") + ("\x1b[<u" if self.options.kitty else "")
        self.tty.write(modes)
        self.painter.end()
        self.journal.write("exit", code=self.exit_code, signal=self.exit_signal)

    def leave(self, code: int = 0, number: int = 0) -> None:
        self.exit_code = code
        self.exit_signal = number
        self.loop.running = False

    def ended_by(self, number: int) -> None:
        if not self.options.stubborn:
            self.leave(number=number)

    # -- state and screen

    def set_state(self, state: State) -> None:
        """Report a new state to the terminal, the journal and the user; an open dialog hides other states."""
        if self.dialogs and state not in DIALOG_STATES:
            self._resting = state
            return
        self.state = state
        self.journal.write("state", state=state)
        self.signals.show(state)
        if state == "working" and self._spinner is None:
            self._spinner = self.loop.later(SPIN, self._spin)

    def paint(self) -> None:
        if self.runner.on_alternate_screen or self._resize is not None:
            return
        columns, lines = self.tty.size
        finished, tail = self.transcript.take(columns)
        view = PanelView(
            composer=self.composer,
            placeholder=invitation(self.options.name) if self.options.part else tr(PLACEHOLDER),
            dialog=self.dialog if self.dialog is not self._undrawn else None,
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
        if self.runner.on_alternate_screen:
            return
        self.painter.restart()
        self.transcript.replay()
        self.paint()

    @property
    def dialog(self) -> ScriptedDialog | None:
        return self.dialogs[0] if self.dialogs else None

    def open_dialog(self, dialog: ScriptedDialog) -> None:
        self.dialogs.append(dialog)
        if len(self.dialogs) == 1:
            self._resting = self.state
            self._show_dialog(dialog)

    def close_dialog(self) -> None:
        answered = self.dialogs.pop(0)
        if self.dialogs:
            self._show_dialog(self.dialogs[0])
        else:
            self.set_state(self._resting)
        self.runner.answered(answered)

    def _show_dialog(self, dialog: ScriptedDialog) -> None:
        self.journal.write("dialog-open", kind=dialog.kind, question=dialog.question, body=dialog.body)
        self._undrawn = dialog if self.options.announce else None
        self.set_state(dialog.kind)
        if self._undrawn is None:
            self.paint()
        else:
            self.loop.later(self.options.announce, self._draw_dialog)

    def _draw_dialog(self) -> None:
        self._undrawn = None
        self.paint()

    def note(self, text: str, seconds: float = EXIT_WINDOW) -> None:
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
        """Redraw soon: a window being resized has many sizes, and only the last one counts."""
        if self._resize is None:
            self._resize = self.loop.later(RESIZE_WAIT, self._draw_resized)

    def _draw_resized(self) -> None:
        self._resize = None
        columns, lines = self.tty.size
        self.journal.write("resize", columns=columns, lines=lines)
        self.repaint()

    # -- turns

    def submit(self, text: str, source: str) -> None:
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
        self.transcript.add("user", text)
        self.journal.write("turn", text=text)
        self.set_state("working")
        self.runner.start(text)

    def next_turn(self) -> None:
        if self.queued and self.runner.seconds is None:
            text = self.queued.pop(0)
            if text.startswith("/"):
                self._command(text.strip())
            else:
                self.start_turn(text)

    def _command(self, command: str) -> None:
        if command == "/help":
            self.transcript.add("note", tr(HELP))
        elif command == "/clear":
            self.transcript.clear()
            self.painter.restart()
        elif command in ("/exit", "/quit"):
            self.leave(0)
        elif command == "/menu":
            self.open_dialog(question(tr("Which one?|first|second|third")))
        else:
            name = command.split(maxsplit=1)[0]
            self.transcript.add("note", tr(f"There is no command {name}; /help lists what there is."))
        self.next_turn()


def main(
    arguments: Sequence[str] | None = None,
    make: Callable[[Options, Tty, Loop, JsonLinesFile], DummyApp] = DummyApp,
) -> int:
    options = parse_options(sys.argv[1:] if arguments is None else arguments)
    if not (os.isatty(0) and os.isatty(1)):
        needs = tr("dummy: this program needs a terminal; run it in one, or as a pane of synapse-tui")
        sys.stderr.write(f"{needs}\n")
        return 2
    loop = Loop()
    tty = LateTty(loop, options.lag) if options.lag else Tty()
    if options.startup:
        loop.later(options.startup, lambda: setattr(loop, "running", False))
        loop.run()
        loop.running = True
    journal = JsonLinesFile(options.log)
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
        with contextlib.suppress(OSError):  # SIGKILL already has its default action.
            signal.signal(app.exit_signal, signal.SIG_DFL)
        os.kill(os.getpid(), app.exit_signal)
    return app.exit_code
