"""The terminal: event loop, raw mode, size, input and output."""

from __future__ import annotations

import contextlib
import heapq
import os
import re
import select
import signal
import termios
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass, field  # noqa: TID251 - it compares by order
from itertools import count


@dataclass(order=True, slots=True)
class DueCall:
    due: float
    order: int
    callback: Callable[[], None] = field(compare=False)
    canceled: bool = field(default=False, compare=False)


class Loop:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.running = True
        self._timers: list[DueCall] = []
        self._order = count()
        self._readers: dict[int, Callable[[], None]] = {}
        self._signals: dict[int, Callable[[], None]] = {}
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)

    def later(self, seconds: float, callback: Callable[[], None]) -> DueCall:
        timer = DueCall(self.clock() + seconds, next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    def read(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._readers[descriptor] = callback

    def unread(self, descriptor: int) -> None:
        self._readers.pop(descriptor, None)

    def on_signal(self, number: int, callback: Callable[[], None]) -> None:
        self._signals[number] = callback
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(number, lambda _number, _frame: None)

    def run(self) -> None:
        while self.running:
            self._wait()
            self._run_timers()

    def _wait(self) -> None:
        timeout = max(0.0, self._timers[0].due - self.clock()) if self._timers else None
        ready, _, _ = select.select([self._wake, *self._readers], [], [], timeout)
        for descriptor in ready:
            if descriptor == self._wake:
                for number in set(os.read(self._wake, 4096)):
                    callback = self._signals.get(number)
                    if callback is not None:
                        callback()
            elif descriptor in self._readers:
                self._readers[descriptor]()

    def _run_timers(self) -> None:
        now = self.clock()
        while self.running and self._timers and self._timers[0].due <= now:
            timer = heapq.heappop(self._timers)
            if not timer.canceled:
                timer.callback()


class Tty:
    def __init__(self, descriptor: int = 0, output: int = 1) -> None:
        self.descriptor = descriptor
        self._output = output
        self._saved: list[int | list[bytes | int]] | None = None

    def raw(self) -> None:
        """Enter raw mode, discarding earlier input."""
        self._saved = termios.tcgetattr(self.descriptor)
        tty.setraw(self.descriptor, termios.TCSAFLUSH)

    def restore(self) -> None:
        if self._saved is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.descriptor, termios.TCSANOW, self._saved)
            self._saved = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, at least 20 and 5."""
        try:
            size = os.get_terminal_size(self._output)
        except OSError:
            return 80, 24
        return max(size.columns, 20), max(size.lines, 5)

    def write(self, text: str) -> None:
        """Write a text; surrogate escapes become the bytes that they represent.

        Output is dropped if the terminal is gone, which the next read detects.
        """
        data = memoryview(text.encode("utf-8", "surrogateescape"))
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(self._output, data) :]

    def read(self, most: int = 65536) -> bytes:
        try:
            return os.read(self.descriptor, most)
        except OSError:
            return b""


class LateTty(Tty):
    """A terminal with delayed output: the program is ahead of its screen."""

    def __init__(self, loop: Loop, seconds: float) -> None:
        super().__init__()
        self._loop = loop
        self._seconds = seconds
        self._late: list[str] = []

    def write(self, text: str) -> None:
        """Write after a delay, together with everything written until then."""
        if not self._late:
            self._loop.later(self._seconds, self._show)
        self._late.append(text)

    def restore(self) -> None:
        self._show()
        super().restore()

    def _show(self) -> None:
        late, self._late = "".join(self._late), []
        if late:
            super().write(late)


PASTE_START = b"\x1b[200~"
PASTE_END = b"\x1b[201~"
ESCAPE_WAIT = 0.03  # Seconds after which a lone ESC is the Escape key

_CSI = re.compile(rb"\x1b\[([0-?]*)([ -/]*)([@-~])")
_CSI_START = re.compile(rb"\x1b\[[0-?]*[ -/]*\Z")
_STRING = re.compile(rb"\x1b[\]PX^_].*?(?:\x1b\\|\x07)", re.DOTALL)
_TEXT = re.compile(rb"[^\x00-\x1f\x7f]+")

_FINALS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "Z": "shift+tab"}
_NUMBERS = {1: "home", 3: "delete", 4: "end", 5: "pageup", 6: "pagedown", 7: "home", 8: "end"}
_CODES = {9: "tab", 13: "enter", 27: "escape", 127: "backspace", 57414: "enter"}
_CONTROLS = {0x08: "backspace", 0x09: "tab", 0x0D: "enter", 0x7F: "backspace"}
_MODIFIERS = ((4, "ctrl"), (2, "alt"), (1, "shift"))


@dataclass(frozen=True, slots=True)
class Key:
    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """Typed characters, or pasted ones without bracketed paste."""

    text: str


@dataclass(frozen=True, slots=True)
class Paste:
    """A complete bracketed paste, with line feeds."""

    text: str


Token = Key | Text | Paste


class KeyDecoder:
    def __init__(self, *, paste: bool = True) -> None:
        self._paste = paste
        self._buffer = b""
        self._pasted: list[bytes] | None = None

    @property
    def waiting(self) -> bool:
        """Whether an ESC was read that may become the Escape key (see `ESCAPE_WAIT`)."""
        return self._pasted is None and self._buffer.startswith(b"\x1b")

    def feed(self, data: bytes) -> list[Token]:
        self._buffer += data
        tokens: list[Token] = []
        while self._buffer and self._step(tokens):
            pass
        return tokens

    def flush(self) -> list[Token]:
        """Decode a pending ESC as the Escape key, and what came with it."""
        if not self.waiting:
            return []
        self._buffer = self._buffer[1:]
        return [Key("escape"), *self.feed(b"")]

    def _step(self, tokens: list[Token]) -> bool:
        if self._pasted is not None:
            return self._end_paste(tokens)
        first = self._buffer[0]
        if first == 0x1B:
            return self._escape(tokens)
        if first < 0x20 or first == 0x7F:
            self._buffer = self._buffer[1:]
            tokens.append(Key(_CONTROLS.get(first) or f"ctrl+{chr(first + 0x60)}"))
            return True
        return self._text(tokens)

    def _text(self, tokens: list[Token]) -> bool:
        match = _TEXT.match(self._buffer)
        raw = match[0] if match else self._buffer[:1]
        whole = raw if len(raw) < len(self._buffer) else _whole_characters(raw)
        if not whole:
            return False
        tokens.append(Text(whole.decode("utf-8", "replace")))
        self._buffer = self._buffer[len(whole) :]
        return len(whole) == len(raw)

    def _escape(self, tokens: list[Token]) -> bool:
        if self._paste and self._buffer.startswith(PASTE_START):
            self._buffer = self._buffer[len(PASTE_START) :]
            self._pasted = []
            return True
        if match := _CSI.match(self._buffer):
            self._take(match.end(), csi_key(match[1].decode(), match[3].decode()), tokens)
            return True
        if match := _STRING.match(self._buffer):
            self._take(match.end(), None, tokens)
            return True
        if len(self._buffer) == 1 or _CSI_START.match(self._buffer) or self._buffer[1] in b"]PX^_O":
            # ESC O and a letter: the arrow keys in application mode.
            if self._buffer[1:2] != b"O" or len(self._buffer) < 3:
                return False
            self._take(3, csi_key("", chr(self._buffer[2])), tokens)
            return True
        if self._buffer[1] == 0x1B:
            self._take(1, Key("escape"), tokens)
            return True
        second = self._buffer[1]
        name = _CONTROLS.get(second) or (chr(second) if 0x20 <= second < 0x7F else "")
        self._take(2, Key(f"alt+{name}") if name else None, tokens)
        return True

    def _take(self, count: int, key: Key | None, tokens: list[Token]) -> None:
        self._buffer = self._buffer[count:]
        if key is not None:
            tokens.append(key)

    def _end_paste(self, tokens: list[Token]) -> bool:
        pasted = self._pasted if self._pasted is not None else []
        before, mark, after = self._buffer.partition(PASTE_END)
        if not mark:
            # The end mark may be split.
            keep = max(self._buffer.rfind(b"\x1b"), len(self._buffer) - len(PASTE_END))
            cut = keep if b"\x1b" in self._buffer[keep:] else len(self._buffer)
            pasted.append(self._buffer[:cut])
            self._buffer = self._buffer[cut:]
            return False
        pasted.append(before)
        self._pasted = None
        self._buffer = after
        text = b"".join(pasted).decode("utf-8", "replace")
        tokens.append(Paste(text.replace("\r\n", "\n").replace("\r", "\n")))
        return True


def csi_key(parameters: str, final: str) -> Key | None:
    """Decode a control sequence: legacy, modifyOtherKeys (`27;M;C~`) or kitty (`C;Mu`)."""
    if parameters[:1] in ("<", "=", ">", "?"):
        return None
    numbers = [_numbers(field) for field in parameters.split(";")]
    code, modifier = numbers[0][0], 1
    if len(numbers) > 1:
        modifier = numbers[1][0]
        if numbers[1][1:2] == [3]:
            return None  # A key release.
    if final == "~" and code == 27 and len(numbers) > 2:
        return _named(numbers[2][0], modifier)
    if final == "u":
        return _named(code, modifier)
    name = _NUMBERS.get(code) if final == "~" else _FINALS.get(final)
    return Key(_modified(name, modifier)) if name else None


def _numbers(field: str) -> list[int]:
    return [int(part) if part.isdigit() else 0 for part in field.split(":")]


def _named(code: int, modifier: int) -> Key | None:
    name = _CODES.get(code) or (chr(code) if 0x20 < code < 0xE000 else "")
    return Key(_modified(name, modifier)) if name else None


def _modified(name: str, modifier: int) -> str:
    bits = max(modifier - 1, 0)
    return "".join(f"{word}+" for bit, word in _MODIFIERS if bits & bit) + name


def _whole_characters(raw: bytes) -> bytes:
    for back in range(1, min(4, len(raw) + 1)):
        byte = raw[-back]
        if byte >= 0xC0:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return raw if back >= need else raw[:-back]
        if byte < 0x80:
            return raw
    return raw
