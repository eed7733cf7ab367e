"""Turns of the dummy agent, run step by step; its shell commands and status signals."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Literal

from synapse_tui.system.language import tr

from .parts import PARTS
from .screen import Block, Frame
from .script import WIDE, Directive, ScriptedDialog, answer, directives, permission, question, slow_text
from .widths import clip, printable

if TYPE_CHECKING:
    import subprocess

    from .app import DummyApp
    from .terminal import DueCall, Loop

KILL_DELAY = 0.5  # Seconds from SIGTERM to SIGKILL

POLL = 0.01


class ShellCommand:
    """A shell command with its output read from a pipe.

    Like other agents' tools it leads a session without a terminal, so that all of it can be stopped.
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
        """Poll for the exit: the output may have been closed long before."""
        if self._process.stdout is not None:
            self._process.stdout.close()
        status = self._process.poll()
        if status is None:
            self._loop.later(POLL, self._finish)
        else:
            self._on_end(status)

    def _signal(self, number: int) -> None:
        # Until it is reaped, its pid cannot be reused.
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
    """Window title, program status (OSC 7501) and progress (OSC 9;4), each if enabled."""

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
        self._set_title(_TITLES.get(state, _SPINNER[0]))
        if self._status:
            self._write(f"\x1b]7501;state={_PROGRAM_STATES.get(state, state)}\x1b\\")
        if self._progress:
            self._write(f"\x1b]9;4;{_PROGRESS.get(state, '3')}\x1b\\")

    def spin(self, step: int) -> None:
        self._set_title(_SPINNER[step % 2])

    def end(self) -> None:
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
        self._shown = printable(text)
        self._write(f"\x1b]0;{self._shown}\x1b\\")


def notification(text: str) -> str:
    """OSC 9, a desktop notification (iTerm2)."""
    return f"\x1b]9;{printable(text)}\x1b\\"


def clipboard(text: str) -> str:
    """OSC 52, a write to the clipboard (xterm ctlseqs)."""
    return f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x1b\\"


THINKING = 0.15  # Seconds before the first word
FLOOD_ROWS = 200

Step = float | str | None
"""A step of a turn: seconds to wait, text to say, or None to wait for `advance`."""
Turn = Generator[Step, object, None]


class TurnRunner:
    def __init__(self, app: DummyApp) -> None:
        self._app = app
        self._turn: Turn | None = None
        self._number = 0  # Number of completed turns
        self._allowed = False  # Whether permissions are granted without asking
        self._error = ""
        self._timer: DueCall | None = None
        self._command: ShellCommand | None = None
        self._asked: ScriptedDialog | None = None
        self._said: Block | None = None
        self._output: Block | None = None
        self._started = 0.0
        self.text = ""
        self.on_alternate_screen = False

    @property
    def seconds(self) -> float | None:
        return None if self._turn is None else self._app.loop.clock() - self._started

    def start(self, text: str) -> None:
        self.begin(text, self._perform(text))

    def begin(self, text: str, turn: Turn) -> None:
        self.text = text
        self._started = self._app.loop.clock()
        self._turn = turn
        self._timer = self._app.loop.later(0, self.advance)

    def advance(self, value: object = None) -> None:
        while self._turn is not None:
            try:
                step = self._turn.send(value)
            except StopIteration:
                error, self._error = self._error, ""
                self._close()
                self._app.journal.write("turn-end", text=self.text, **({"error": error} if error else {}))
                self._app.set_state("error" if error else "done")
                self._app.next_turn()
                break
            value = None
            if isinstance(step, str):
                if self._said is None or self._said.closed:
                    self._said = self._app.transcript.add("agent", step.lstrip(), closed=False)
                else:
                    self._said.text += step
                continue
            if step is not None:
                self._timer = self._app.loop.later(step, self.advance)
            break
        self._app.paint()

    def interrupt(self, *, note: bool = True) -> None:
        self.stop()
        self._app.journal.write("turn-end", text=self.text, interrupted=True)
        if note:
            self._app.transcript.add("note", tr("Interrupted by the user."))
        self._app.set_state("idle")

    def stop(self, *, at_once: bool = False) -> None:
        if self._timer is not None:
            self._timer.canceled = True
        if self._command is not None:
            self._command.stop(at_once=at_once)
            self._command = None
        if self.on_alternate_screen:
            self._leave_alternate()
        self._close()

    def answered(self, dialog: ScriptedDialog) -> None:
        if dialog is self._asked:
            self._asked = None
            self.advance()

    def _close(self) -> None:
        if self._turn is not None:
            self._turn.close()
            self._number += 1
        self._turn = self._said = self._output = None
        self._app.transcript.close()

    def _perform(self, text: str) -> Turn:
        if text.startswith("!"):
            yield from self._run(text[1:].strip())
            return
        yield THINKING
        part = PARTS.get(self._app.options.part)
        steps = part.perform(text) if part is not None else None
        if steps is not None:
            yield from self._play(steps)
            return
        slow = 0.0
        for directive in directives(text):
            if directive.name == "slow":
                slow = directive.seconds()
            else:
                yield from _ACTIONS[directive.name](self, directive)
            if self._error:
                return
        reply = answer(text, turn=self._number, reply=self._app.options.reply)
        yield from self._stream(slow_text(reply, slow) if slow else reply, slow)

    def _play(self, steps: Iterable[str | Directive]) -> Turn:
        for step in steps:
            if isinstance(step, str):
                self._said = None
                yield from self._stream(step, 0.0)
            else:
                yield from _ACTIONS[step.name](self, step)

    def _stream(self, text: str, seconds: float) -> Turn:
        words = re.findall(r"\s*\S+", text)
        pause = seconds / max(len(words), 1) if seconds else self._app.options.word_delay
        for word in words:
            yield word
            if pause:
                yield pause

    def _show_tool(self, command: str, output: str = "") -> None:
        self._app.transcript.add("tool", f"Bash({command})")
        if output:
            self._app.transcript.add("output", output)

    def _run(self, command: str) -> Turn:
        self._show_tool(command)
        try:
            self._command = ShellCommand(command, self._app.loop, self._more_output, self._command_ended)
        except OSError as error:
            self._app.transcript.add("output", str(error))
            return
        self._output = None
        status = yield None
        if status:
            self._app.transcript.add("output", tr(f"exit status {status}"))

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

    # -- directives

    def _hang(self, directive: Directive) -> Turn:
        yield directive.seconds()

    def _ask_dialog(self, dialog: ScriptedDialog) -> Turn:
        self._asked = dialog
        self._app.open_dialog(dialog)
        yield None

    def _permit(self, command: str) -> Generator[Step, object, bool]:
        if self._allowed:
            return True
        dialog = permission(command)
        yield from self._ask_dialog(dialog)
        self._allowed = dialog.answer is not None and dialog.answer.choice == 2
        return dialog.allowed

    def _perm(self, directive: Directive) -> Turn:
        command = directive.argument or "rm -rf build"
        permitted = yield from self._permit(command)
        allowed = tr("allowed (and not run: this is a rehearsal)")
        self._show_tool(command, allowed if permitted else tr("denied by the user"))

    def _run_asking(self, directive: Directive) -> Turn:
        if (yield from self._permit(directive.argument)):
            yield from self._run(directive.argument)
        else:
            self._show_tool(directive.argument, tr("denied by the user"))

    def _do(self, directive: Directive) -> Turn:
        yield from self._run(directive.argument)

    def _ask(self, directive: Directive) -> Turn:
        dialog = question(directive.argument or tr("Shall I continue?"))
        yield from self._ask_dialog(dialog)
        chosen = dialog.answer.text if dialog.answer else tr("none")
        yield tr(f"Your answer: {chosen}\n")

    def _wide(self, _directive: Directive) -> Turn:
        yield WIDE + "\n"

    def _emit(self, directive: Directive) -> Turn:
        if directive.name == "title":
            self._app.signals.force_title(directive.argument)
        else:
            make = {"bell": lambda _text: "\a", "notify": notification, "clip": clipboard}[directive.name]
            self._app.tty.write(make(directive.argument))
        yield from ()

    def _invalid(self, _directive: Directive) -> Turn:
        data = b"bytes that are no text: \xff\xfe \xc3( \xe2\x82 \xf0\x9f end"
        self._app.transcript.add("raw", data.decode("utf-8", "surrogateescape"))
        yield from ()

    def _fail(self, directive: Directive) -> Turn:
        self._error = directive.argument or tr("the model does not answer")
        self._app.transcript.add("note", tr(f"Error: {self._error}"))
        yield from ()

    def _exit(self, directive: Directive) -> Turn:
        self._app.leave(int(directive.argument) & 0xFF if directive.argument.isdecimal() else 0)
        yield None

    def _crash(self, directive: Directive) -> Turn:
        name = directive.argument.upper().removeprefix("SIG") or "ABRT"
        number = int(name) if name.isdecimal() else getattr(signal.Signals, f"SIG{name}", signal.SIGABRT)
        self._app.leave(number=int(number))
        yield None

    def _surprise(self, _directive: Directive) -> Turn:
        yield from ()  # the keyboard opens the dialog

    def _flood(self, directive: Directive) -> Turn:
        self._flood_rows(self._app.loop.clock() + directive.seconds(), 0)
        yield None

    def _flood_rows(self, until: float, number: int) -> None:
        columns, _ = self._app.tty.size
        rows = [
            f"\x1b[32m{index:8d}\x1b[39m {'flood ' * 40}"[: columns + 9]
            for index in range(number, number + FLOOD_ROWS)
        ]
        self._app.painter.paint(rows, Frame([self._app.style.dim(tr("  flooding · esc to interrupt"))]))
        flooding = self._app.loop.clock() < until
        following = (lambda: self._flood_rows(until, number + FLOOD_ROWS)) if flooding else self.advance
        self._timer = self._app.loop.later(0, following)

    def _show_alternate(self, directive: Directive) -> Turn:
        columns, lines = self._app.tty.size
        self.on_alternate_screen = True
        page = clip(tr(" A page on the alternate screen, gone in a moment."), columns)
        self._app.tty.write(f"\x1b[?1049h\x1b[2J\x1b[{max(lines // 2, 1)}H{page}")
        yield directive.seconds()
        self._leave_alternate()

    def _leave_alternate(self) -> None:
        self.on_alternate_screen = False
        self._app.tty.write("\x1b[?1049l")
        if self._app.options.alternate_screen:
            self._app.tty.write("\x1b[?1049h")
        self._app.repaint()


_ACTIONS: dict[str, Callable[[TurnRunner, Directive], Turn]] = {
    "hang": TurnRunner._hang,
    "perm": TurnRunner._perm,
    "run": TurnRunner._run_asking,
    "do": TurnRunner._do,
    "ask": TurnRunner._ask,
    "wide": TurnRunner._wide,
    "flood": TurnRunner._flood,
    "alt": TurnRunner._show_alternate,
    "bell": TurnRunner._emit,
    "notify": TurnRunner._emit,
    "clip": TurnRunner._emit,
    "title": TurnRunner._emit,
    "invalid": TurnRunner._invalid,
    "error": TurnRunner._fail,
    "exit": TurnRunner._exit,
    "crash": TurnRunner._crash,
    "surprise": TurnRunner._surprise,
}
