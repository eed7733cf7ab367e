"""What the keys do: into the composer, to a dialog, to the turn that runs."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .dialogs import Dialog, permission
from .keys import ESCAPE_WAIT, Key, KeyDecoder, Paste, Text, Token
from .script import directives

if TYPE_CHECKING:
    from .app import DummyApp
    from .loop import Timer

SLOW_READ = 0.02
"""Seconds between two reads of one who reads slowly."""
NEWLINE_KEYS = ("shift+enter", "alt+enter", "ctrl+enter", "ctrl+j")
EXIT_NOTICE = "Press Ctrl+{} again to exit"


class Keyboard:
    """Takes the input of the terminal.

    Args:
        app: Is told what to do.
    """

    def __init__(self, app: DummyApp) -> None:
        self._app = app
        self._decoder = KeyDecoder(paste=app.options.paste)
        self._escape: Timer | None = None
        self._swallow = 0
        self._typed_at = float("-inf")
        self._draft = ""

    def read(self) -> None:
        """Take what the terminal has."""
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
        """All that is there; at a rate, a piece of it, and the next one later."""
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
        self._tell_draft()
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

    def _to_dialog(self, dialog: Dialog, token: Token) -> None:
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

    def _answered(self, dialog: Dialog) -> None:
        answer = dialog.answer
        if answer is not None:
            told = {"choice": answer.choice, "answer": answer.text, "key": answer.key}
            self._app.journal.write("dialog-answer", kind=dialog.kind, body=dialog.body, **told)
        self._app.close_dialog()

    def surprise(self) -> None:
        """A dialog that nobody asked for, as when a background task of a real agent wants something."""
        self._app.open_dialog(permission("touch surprise"))

    def _tell_draft(self) -> None:
        shown = self._app.composer.shown
        if shown != self._draft:
            self._draft = shown
            self._app.journal.write("draft", text=shown)

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
        if key == "ctrl+c" and self._app.runner.seconds is not None:
            self._interrupt(key)
        elif self._app.notice == EXIT_NOTICE.format(key[-1].upper()):
            self._app.leave(0)
        elif key == "ctrl+c" or self._app.composer.empty:
            self._app.composer.press("ctrl+u" if key == "ctrl+c" else "")
            self._app.note(EXIT_NOTICE.format(key[-1].upper()))
        else:
            self._app.composer.press("delete")
