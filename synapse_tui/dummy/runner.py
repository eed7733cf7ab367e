"""Carries out the steps of a turn."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from . import turn
from .screen import Block, Frame
from .turn import Dialog, Step, Steps, TurnContext, perform
from .widths import clip, printable

if TYPE_CHECKING:
    import subprocess

    from .app import DummyApp
    from .terminal import Loop, Timer

KILL_DELAY = 0.5  # Seconds from SIGTERM to SIGKILL

POLL = 0.01


class ShellCommand:
    """A command that runs in a shell, its output taken from a pipe.

    As with other agents' tools it leads a session without a terminal, so that all of it can be stopped.
    """

    def __init__(
        self, command: str, loop: Loop, on_output: Callable[[str], None], on_end: Callable[[int], None]
    ) -> None:
        import subprocess  # noqa: PLC0415 - most runs of the dummy never need it

        self._loop = loop
        self._on_output = on_output
        self._on_end = on_end
        self._process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - that is what the tool is for
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._pipe = self._process.stdout.fileno() if self._process.stdout else -1
        loop.read(self._pipe, self._read)

    def stop(self, *, at_once: bool = False) -> None:
        """End it, with everything it started; `on_end` is not called."""
        self._loop.unread(self._pipe)
        self._on_end = lambda _status: None
        self._signal(signal.SIGKILL if at_once else signal.SIGTERM)
        if not at_once:
            self._loop.later(KILL_DELAY, lambda: self._signal(signal.SIGKILL))
        self._finish()

    def _read(self) -> None:
        data = os.read(self._pipe, 65536)
        if data:
            self._on_output(data.decode("utf-8", "replace"))
            return
        self._loop.unread(self._pipe)
        self._finish()

    def _finish(self) -> None:
        """Wait for its end without blocking: it may have closed its output long before."""
        if self._process.stdout is not None:
            self._process.stdout.close()
        status = self._process.poll()
        if status is None:
            self._loop.later(POLL, self._finish)
        else:
            self._on_end(status)

    def _signal(self, number: int) -> None:
        # As long as it was not waited for, its number belongs to no other process.
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)


State = Literal["idle", "working", "permission", "question", "done", "error"]

_TITLES = {
    "idle": "✳ Ready",
    "done": "✳ Ready",
    "permission": "✋ Waiting",
    "question": "✋ Waiting",
    "error": "✘ Error",
}
_SPINNER = ("⠂ Working", "⠐ Working")
_PROGRAM_STATES = {"permission": "blocked:kind=permission", "question": "blocked:kind=question"}
_PROGRESS = {"idle": "0", "done": "0", "error": "2;100"}


class StatusSignals:
    """Window title, program status (OSC 7501) and progress (OSC 9;4), each only where it is wanted."""

    def __init__(
        self, write: Callable[[str], None], name: str, *, title: bool, status: bool, progress: bool
    ) -> None:
        self._write = write
        self._name = name
        self._title = title
        self._status = status
        self._progress = progress
        self._shown = ""

    def show(self, state: State) -> None:
        """Tell a new state by all means that are on."""
        self._set_title(_TITLES.get(state, _SPINNER[0]))
        if self._status:
            self._write(f"\x1b]7501;state={_PROGRAM_STATES.get(state, state)}\x1b\\")
        if self._progress:
            self._write(f"\x1b]9;4;{_PROGRESS.get(state, '3')}\x1b\\")

    def spin(self, step: int) -> None:
        """Move the spinner of the title."""
        self._set_title(_SPINNER[step % 2])

    def end(self) -> None:
        """The program ends: nothing of the above holds any more."""
        if self._status:
            self._write("\x1b]7501;state=clear\x1b\\")
        if self._progress:
            self._write("\x1b]9;4;0\x1b\\")
        if self._title:
            self._write("\x1b]0;\x1b\\")

    def _set_title(self, text: str) -> None:
        title = f"{text} · {self._name}"
        if self._title and title != self._shown:
            self._shown = title
            self._write(f"\x1b]0;{title}\x1b\\")

    def force_title(self, text: str) -> None:
        """Set any title, whatever else is off."""
        self._shown = printable(text)
        self._write(f"\x1b]0;{self._shown}\x1b\\")


def notification(text: str) -> str:
    """OSC 9, a desktop notification (iTerm2)."""
    return f"\x1b]9;{printable(text)}\x1b\\"


def clipboard(text: str) -> str:
    """OSC 52, a write to the clipboard (xterm ctlseqs)."""
    return f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x1b\\"


FLOOD_ROWS = 200


class TurnRunner:
    """Runs at most one turn at a time."""

    def __init__(self, app: DummyApp) -> None:
        self._app = app
        self._context = TurnContext(0, app.options.reply, app.options.word_delay)
        self._steps: Steps | None = None
        self._timer: Timer | None = None
        self._command: ShellCommand | None = None
        self._asked: Dialog | None = None
        self._said: Block | None = None
        self._output: Block | None = None
        self._started = 0.0
        self.text = ""
        self.on_alternate_screen = False

    @property
    def seconds(self) -> float | None:
        """How long the turn has run; None when none runs."""
        return None if self._steps is None else self._app.loop.clock() - self._started

    def start(self, text: str) -> None:
        """Begin a turn."""
        self.text = text
        self._started = self._app.loop.clock()
        self._steps = perform(text, self._context)
        self._timer = self._app.loop.later(0, lambda: self.advance(None))

    def advance(self, value: object) -> None:
        """Go on with the result of the last step, up to one that takes time."""
        while self._steps is not None:
            try:
                step = self._steps.send(value)
            except StopIteration:
                self._end()
                self._app.journal.write("turn-end", text=self.text)
                self._app.set_state("done")
                self._app.next_turn()
                break
            value = None
            if self._perform(step):
                break
        self._app.paint()

    def interrupt(self, *, note: bool = True) -> None:
        """Stop the turn where it stands."""
        self.stop()
        self._app.journal.write("turn-end", text=self.text, interrupted=True)
        if note:
            self._app.transcript.add("note", "Interrupted by the user.")
        self._app.set_state("idle")

    def stop(self, *, at_once: bool = False) -> None:
        """Stop whatever runs, without a word."""
        if self._timer is not None:
            self._timer.canceled = True
        if self._command is not None:
            self._command.stop(at_once=at_once)
            self._command = None
        if self.on_alternate_screen:
            self._leave_alternate()
        self._end()

    def _end(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._context.number += 1
        self._steps = None
        self._said = None
        self._output = None
        self._app.transcript.close()

    def _perform(self, step: Step) -> bool:
        """Do a step; True when it takes time and `advance` is called by itself later."""
        handler: Callable[[Any], bool] = getattr(self, f"_do_{type(step).__name__.lower()}")
        return handler(step)

    def _do_sleep(self, step: turn.Sleep) -> bool:
        self._timer = self._app.loop.later(step.seconds, lambda: self.advance(None))
        return True

    def answered(self, dialog: Dialog) -> None:
        """A dialog was answered; the turn goes on if it was the turn's own."""
        if dialog is self._asked:
            self._asked = None
            self.advance(None)

    def _do_ask(self, step: turn.Ask) -> bool:
        self._asked = step.dialog
        self._app.open_dialog(step.dialog)
        return True

    def _do_say(self, step: turn.Say) -> bool:
        if self._said is None or self._said.closed:
            self._said = self._app.transcript.add("agent", step.text.lstrip(), closed=False)
        else:
            self._said.text += step.text
        return False

    def _do_tool(self, step: turn.Tool) -> bool:
        self._app.transcript.add("tool", step.text)
        return False

    def _do_output(self, step: turn.Output) -> bool:
        self._app.transcript.add("output", step.text)
        return False

    def _do_raw(self, step: turn.Raw) -> bool:
        self._app.transcript.add("raw", step.text)
        return False

    def _do_runcommand(self, step: turn.RunCommand) -> bool:
        try:
            self._command = ShellCommand(step.command, self._app.loop, self._more_output, self._command_ended)
        except OSError as error:
            self._app.transcript.add("output", str(error))
            return False
        self._output = None
        return True

    def _more_output(self, text: str) -> None:
        if self._output is None:
            self._output = self._app.transcript.add("output", "", closed=False)
        self._output.text += text.replace("\r", "")
        self._app.paint()

    def _command_ended(self, status: int) -> None:
        self._command = None
        if self._output is not None:
            self._output.text = self._output.text.rstrip("\n")
        self._app.transcript.close()
        self._app.journal.write("command-end", status=status)
        self.advance(status)

    def _do_emit(self, step: turn.Emit) -> bool:
        if step.kind == "title":
            self._app.signals.force_title(step.text)
        else:
            make = {"bell": lambda _text: "\a", "notify": notification, "clip": clipboard}[step.kind]
            self._app.tty.write(make(step.text))
        return False

    def _do_fail(self, step: turn.Fail) -> bool:
        self._app.transcript.add("note", f"Error: {step.text}")
        self._end()
        self._app.journal.write("turn-end", text=self.text, error=step.text)
        self._app.set_state("error")
        self._app.next_turn()
        return True

    def _do_leave(self, step: turn.Leave) -> bool:
        self._app.leave(step.code, step.signal)
        return True

    def _do_flood(self, step: turn.Flood) -> bool:
        self._flood(self._app.loop.clock() + step.seconds, 0)
        return True

    def _flood(self, until: float, number: int) -> None:
        columns, _ = self._app.tty.size
        rows = [
            f"\x1b[32m{index:8d}\x1b[39m {'flood ' * 40}"[: columns + 9]
            for index in range(number, number + FLOOD_ROWS)
        ]
        self._app.painter.paint(rows, Frame([self._app.style.dim("  flooding · esc to interrupt")]))
        if self._app.loop.clock() < until:
            self._timer = self._app.loop.later(0, lambda: self._flood(until, number + FLOOD_ROWS))
        else:
            self._timer = self._app.loop.later(0, lambda: self.advance(None))

    def _do_showalternate(self, step: turn.ShowAlternate) -> bool:
        columns, lines = self._app.tty.size
        self.on_alternate_screen = True
        page = clip(" A page on the alternate screen, gone in a moment.", columns)
        self._app.tty.write(f"\x1b[?1049h\x1b[2J\x1b[{max(lines // 2, 1)}H{page}")
        self._timer = self._app.loop.later(step.seconds, self._back)
        return True

    def _back(self) -> None:
        self._leave_alternate()
        self.advance(None)

    def _leave_alternate(self) -> None:
        self.on_alternate_screen = False
        self._app.tty.write("\x1b[?1049l")
        if self._app.options.alternate_screen:
            self._app.tty.write("\x1b[?1049h")
        self._app.repaint()
