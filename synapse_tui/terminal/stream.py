"""The stream: bytes in, screen calls out. Never raises; runs in time linear in the input."""

from __future__ import annotations

import codecs
import contextlib
import math
import re
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyte

from .cells import CLUSTER, EXTENDERS, MAX_CLUSTER, VS16, ZWJ, cluster_width
from .charsets import LINUX
from .core import has_c1, scan
from .screen import Screen

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_TEXT = "[^\\x00-\\x1f\\x7f-\\x9f]"

# One scanner runs over decoded text (ECMA-48 5.4). What ordinary programs send in bulk is one token: text
# with its line break, a rendition with the following text, a cursor position with both. Anything it does not
# match is an incomplete sequence, one containing a control, or a long string: the stream handles these
# separately, so that the time stays linear in the input.
TOKENS = re.compile(
    f"({_TEXT}+)(\r\n)?"  # 1 text, 2 line break
    f"|\x1b\\[([0-9;:]*)m({_TEXT}*)(\r\n)?"  # 3 SGR, 4 text, 5 line break
    # 6 row, 7 column, 8 SGR, 9 text
    f"|\x1b\\[([0-9]{{1,5}});([0-9]{{1,5}})H(?:\x1b\\[([0-9;:]*)m({_TEXT}*))?"
    "|\r(\n)"  # 10
    "|\x1b\\[([<=>?]?)([0-9;:]*)([ -/]*)([@-~])"  # 11 prefix, 12 parameters, 13 intermediates, 14 final
    "|(\t+|[\x00-\x1a\x1c-\x1f\x7f])"  # 15 control, or tabs
    "|\x1b([ -/]+)([0-~])"  # 16 intermediates, 17 final
    "|\x1b([0-OQ-WYZ\\\\`-~])"  # 18 final
    "|\x1b\\]([^\x07\x18\x1a\x1b]*)(\x07|\x1b\\\\)"  # 19 OSC, 20 its end
)
GROUPS = TOKENS.groups

C1 = re.compile("[\x80-\x9f]")
_has_c1 = has_c1 or C1.search
C1_TO_ESCAPE = {code: f"\x1b{chr(code - 0x40)}" for code in range(0x80, 0xA0)}
"""ECMA-48 5.3: a C1 control equals ESC and the character 0x40 below."""

ESCAPES_IN_A_ROW = re.compile("\x1b+")
STRING_END = re.compile("[\x18\x1a\x1b]")
OSC_END = re.compile("[\x07\x18\x1a\x1b]")

MAX_SEQUENCE = 1024
"""Characters stored of an incomplete sequence; further parameters are dropped."""
MAX_STRING = 4_000_000  # Characters stored of a string (OSC, DCS, APC, PM, SOS); longer ones are skipped


_ERRORS = "synapse-tui-utf8"
_LONGEST_CHARACTER = 6


class Utf8Decoder(codecs.BufferedIncrementalDecoder):
    """Incremental UTF-8 decoder; an incomplete character waits for its remaining bytes.

    Overlong forms, surrogates and values beyond Unicode each become one U+FFFD (as xterm's `decodeUtf8`
    without the resource `utf8Weblike`, and libvterm).
    """

    def _buffer_decode(self, data: Buffer, _errors: str, final: bool) -> tuple[str, int]:
        raw = bytes(data)
        end = len(raw) if final else _whole(raw)
        return raw[:end].decode("utf-8", _ERRORS), end


def _length(lead: int) -> int:
    """Return the byte count of a character from its first byte, up to six (RFC 2279); 1 if invalid."""
    return 1 if lead < 0xC0 or lead > 0xFD else 8 - (lead ^ 0xFF).bit_length()


def _whole(data: bytes) -> int:
    end = len(data)
    for at in range(end - 1, max(end - _LONGEST_CHARACTER, -1), -1):
        byte = data[at]
        if byte >= 0xC0:
            return at if at + _length(byte) > end else end
        if byte < 0x80:
            break
    return end


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start + 1
    end = min(error.start + _length(data[error.start]), len(data))
    while at < end and 0x80 <= data[at] < 0xC0:
        at += 1
    return "\ufffd", at


codecs.register_error(_ERRORS, _replace)


_RENDITIONS = "(?:\x1b\\[[\\d;:]*m)*"
_STRING = "\x1b[\\]PX^_][^\x07\x1b]*"
_HALF = re.compile(f"({VS16}(?:[{EXTENDERS}]|(?<={ZWJ})[^\x00-\x7f])*)({_RENDITIONS}) |{_STRING}")
_OPEN = re.compile(f"{CLUSTER}{_RENDITIONS}(?:\x1b(?:\\[[\\d;:]*)?)?\\Z")
"""Output that may continue as above."""
_LONGEST_OPEN = MAX_CLUSTER + 64
_KEYCAPS = frozenset("0123456789#*")


class HalfBlanks:
    """Removes blanks written for the right half of a wide character from a program's output.

    Some programs reserve two cells for an emoji with a variation selector (U+FE0F), write the emoji, and
    write a blank for its second cell without moving the cursor: ratatui does, for terminals that show such an
    emoji in one cell. Here that blank would take a third cell and shift the rest of the row. An intended
    blank looks the same in the output, so the caller must know which programs do this.
    """

    def __init__(self) -> None:
        self._before = ""

    def taken_out(self, text: str) -> str:
        whole = self._before + text
        kept = _HALF.sub(_without_blank, whole)[len(self._before) :] if VS16 in whole else text
        self._before = _open_end(whole)
        return kept


def _open_end(text: str) -> str:
    end = text[-_LONGEST_OPEN:]
    if end.isascii() and end[-1:] not in _KEYCAPS:
        return ""
    found = _OPEN.search(end)
    return found.group() if found is not None else ""


def _without_blank(match: re.Match[str]) -> str:
    selected, renditions = match.groups()
    if selected is None:
        return match.group()
    base = match.string[max(0, match.start() - 1) : match.start()]
    return f"{selected}{renditions}" if base and cluster_width(base + VS16) == 2 else match.group()


Handler = Callable[..., None]
MANY = 64
PARAMETER_LIMIT = 99_999

CONTROL_SEQUENCES: dict[str, tuple[Handler, int]] = {
    "@": (Screen.insert_characters, 1),
    "A": (Screen.cursor_up, 1),
    "B": (Screen.cursor_down, 1),
    "C": (Screen.cursor_forward, 1),
    "D": (Screen.cursor_back, 1),
    "E": (Screen.cursor_down1, 1),
    "F": (Screen.cursor_up1, 1),
    "G": (Screen.cursor_to_column, 1),
    "H": (Screen.cursor_position, 2),
    "I": (Screen.tab_forward, 1),
    "J": (Screen.erase_in_display, 1),
    "K": (Screen.erase_in_line, 1),
    "L": (Screen.insert_lines, 1),
    "M": (Screen.delete_lines, 1),
    "P": (Screen.delete_characters, 1),
    "S": (Screen.scroll_up, 1),
    "T": (Screen.scroll_down_or_track, MANY),
    "X": (Screen.erase_characters, 1),
    "Z": (Screen.tab_back, 1),
    "^": (Screen.scroll_down, 1),
    "`": (Screen.cursor_to_column, 1),
    "a": (Screen.column_relative, 1),
    "b": (Screen.repeat, 1),
    "c": (Screen.report_device_attributes, 1),
    "d": (Screen.cursor_to_line, 1),
    "e": (Screen.line_relative, 1),
    "f": (Screen.cursor_position, 2),
    "g": (Screen.clear_tab_stop, 1),
    "h": (Screen.set_ansi_mode, MANY),
    "j": (Screen.column_back, 1),
    "k": (Screen.line_back, 1),
    "l": (Screen.reset_ansi_mode, MANY),
    "n": (Screen.report_device_status, 1),
    "r": (Screen.set_margins, 2),
    "s": (Screen.save_cursor_or_side_margins, MANY),
    "t": (Screen.window_operation, 3),
    "u": (Screen.decrc, MANY),
    "?J": (Screen.selective_erase_in_display, 1),
    "?K": (Screen.selective_erase_in_line, 1),
    "?W": (Screen.reset_tab_stops, 1),
    "?h": (Screen.set_private_mode, MANY),
    "?l": (Screen.reset_private_mode, MANY),
    "?m": (Screen.report_key_modifiers, MANY),
    "?n": (Screen.report_private_status, 2),
    "?r": (Screen.restore_modes, MANY),
    "?s": (Screen.save_modes, MANY),
    "?u": (Screen.report_keyboard, 1),
    ">c": (Screen.report_secondary_attributes, 1),
    ">m": (Screen.set_key_modifiers, 2),
    ">n": (Screen.disable_key_modifiers, 1),
    ">q": (Screen.report_version, 1),
    ">u": (Screen.push_keyboard, 1),
    "<u": (Screen.pop_keyboard, 1),
    "=c": (Screen.report_tertiary_attributes, 1),
    "=u": (Screen.set_keyboard, 2),
    " @": (Screen.shift_left, 1),
    " A": (Screen.shift_right, 1),
    " q": (Screen.set_cursor_style, 1),
    "!p": (Screen.soft_reset, 0),
    '"p': (Screen.set_conformance, 2),
    '"q': (Screen.protect, 1),
    '"v': (Screen.report_displayed_extent, 0),
    "#p": (Screen.push_rendition, MANY),
    "#q": (Screen.pop_rendition, 0),
    "#{": (Screen.push_rendition, MANY),
    "#}": (Screen.pop_rendition, 0),
    "#y": (Screen.select_checksum, 1),
    "#|": (Screen.report_area_rendition, 4),
    "$p": (Screen.request_mode, 1),
    "$r": (Screen.change_attributes, MANY),
    "$t": (Screen.reverse_attributes, MANY),
    "$v": (Screen.copy_area, 8),
    "$w": (Screen.report_presentation_state, 1),
    "$x": (Screen.fill_area, 5),
    "$z": (Screen.erase_area, 4),
    "${": (Screen.selective_erase_area, 4),
    "?$p": (Screen.request_private_mode, 1),
    "'}": (Screen.insert_columns, 1),
    "'~": (Screen.delete_columns, 1),
    "*x": (Screen.select_attribute_extent, 1),
    "*y": (Screen.report_checksum, 6),
}

ESCAPES: dict[str, Handler] = {
    "6": Screen.back_index,
    "7": Screen.decsc,
    "8": Screen.decrc,
    "9": Screen.forward_index,
    "=": Screen.keypad_application,
    ">": Screen.keypad_numeric,
    "D": Screen.index,
    "E": Screen.next_line,
    "H": Screen.set_tab_stop,
    "M": Screen.reverse_index,
    "N": lambda screen: screen.shift_once(2),
    "O": lambda screen: screen.shift_once(3),
    "V": Screen.start_protected_area,
    "W": Screen.end_protected_area,
    "Z": Screen.report_device_attributes,
    "c": Screen.full_reset,
    "n": lambda screen: screen.lock_shift(2),
    "o": lambda screen: screen.lock_shift(3),
}

CONTROLS: dict[str, Handler] = {
    "\x07": Screen.bell,
    "\b": Screen.backspace,
    "\t": Screen.tab,
    "\n": Screen.linefeed,
    "\x0b": Screen.linefeed,
    "\x0c": Screen.linefeed,
    "\r": Screen.carriage_return,
    "\x0e": Screen.shift_out,
    "\x0f": Screen.shift_in,
}


Call = tuple[Handler, tuple[int, ...]]  # A method of the screen and its parameters


def bound(screen: Screen, handler: Handler) -> Handler:
    own = getattr(screen, handler.__name__, None)
    return partial(handler, screen) if own is None else cast("Handler", own)


def numbers_of(parameters: str) -> tuple[int, ...]:
    return tuple(min(int(part), PARAMETER_LIMIT) if part else 0 for part in parameters.split(";"))


def call_of(prefix: str, parameters: str, intermediates: str, final: str) -> Call | None:
    found = CONTROL_SEQUENCES.get(prefix + intermediates + final)
    if found is None or ":" in parameters:
        return None
    handler, most = found
    if not parameters:
        return handler, ()
    return handler, numbers_of(parameters)[:most]


def escape_sequence(screen: Screen, intermediates: str, final: str) -> None:
    """Run an escape sequence (ECMA-35); without intermediates it is one of `ESCAPES`."""
    if intermediates == "#":
        if final == "8":
            screen.alignment_display()
    elif intermediates == " ":
        if final in "FG":
            screen.eight_bit_replies = final == "G"
    elif intermediates != "%":
        screen.define_charset(intermediates[1:] + final, intermediates[0])


Token = re.Match[str]
_INTRODUCERS = frozenset("]PX^_")
_CALLS_KEPT, _LONGEST_KEPT = 2048, 64
_PLACES = {str(number): number - 1 for number in range(1, 512)}
_FAR = 99_999


_WALK = 64  # The same within a sequence: each of its controls may scroll
_WINDOW = 1024  # Characters between two clock checks; most cost a few microseconds at worst


class _Pause(Exception):
    """The time limit of this `feed` was reached; the current sequence is complete."""


class Stream(pyte.ByteStream):
    """Parses output of a child and drives one screen.

    Attributes:
        half_blanks: Removes blanks written for half a character; None disables it.
    """

    screen: Screen

    def __init__(
        self,
        screen: Screen | None = None,
        strict: bool = True,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._until = math.inf  # When to pause, on the clock
        self._unparsed = ""  # Decoded input after a pause
        self._pending = ""  # The incomplete sequence at the end of the last piece
        self._resumed = 0  # Where this piece continues after completing the last one's sequence
        self._after_text = False  # Whether the last piece ended in a graphic character
        self._string = ""  # Introducer of the incomplete string; empty outside of strings
        self._string_parts: list[str] = []
        self._string_size = 0
        self.half_blanks: HalfBlanks | None = None
        super().__init__(screen, strict)
        self.utf8_decoder = Utf8Decoder()

    def attach(self, screen: pyte.Screen) -> None:
        assert isinstance(screen, Screen)
        self.listener = self.screen = screen
        self._renditions = screen.sgr.known
        self.calls: dict[str, Call] = {}
        self._repeat = bound(screen, Screen.repeat)
        self._controls = {char: bound(screen, handler) for char, handler in CONTROLS.items()}
        self._escapes = {final: bound(screen, handler) for final, handler in ESCAPES.items()}
        self._draw = screen.draw if _has_own(screen, "draw") else super(Screen, screen).draw
        self._new_line = screen.new_line
        if _has_own(screen, "carriage_return", "linefeed"):
            self._new_line = self._return_and_feed
        handlers: list[Callable[[Token], None]] = [self._control] * (GROUPS + 1)
        handlers[1] = self._text
        handlers[2] = self._text_line
        handlers[4] = self._styled
        handlers[5] = self._styled_line
        handlers[7] = self._position
        handlers[9] = self._position_styled
        fast = ("draw", "carriage_return", "linefeed", "cursor_position", "cursor_up", "erase_in_line")
        self._compiled = scan is not None and not _has_own(screen, *fast, "select_graphic_rendition")
        if _has_own(screen, "cursor_position", "select_graphic_rendition"):
            handlers[4] = handlers[5] = handlers[7] = handlers[9] = self._one_by_one
        handlers[10] = self._line_break
        # A few bytes of these may cost as much as a whole screen, or the event handlers they trigger.
        handlers[14] = self._timed(self._control_sequence)
        handlers[17] = self._timed(self._escape)
        handlers[18] = self._timed(self._plain_escape)
        handlers[20] = self._timed(self._system_command)
        self._handlers = tuple(handlers)

    def _timed(self, handler: Callable[[Token], None]) -> Callable[[Token], None]:
        def handle(token: Token) -> None:
            handler(token)
            if self._until < math.inf and self._clock() >= self._until:
                raise _Pause

        return handle

    @property
    def paused(self) -> bool:
        """Whether input is waiting because the last `feed` ran out of time; the next call continues."""
        return bool(self._unparsed)

    def feed(self, data: bytes, seconds: float = math.inf) -> None:  # type: ignore[override]  # pyte's has no limit
        """Parse output of the child, split anywhere; after `seconds` pause after the current sequence."""
        self._until = self._clock() + seconds if seconds < math.inf else math.inf
        self.feed_text(self.utf8_decoder.decode(data) if self.use_utf8 else data.decode("latin-1"))
        self._until = math.inf

    def feed_text(self, text: str) -> None:
        if not text.isascii() and _has_c1(text):
            text = text.translate(C1_TO_ESCAPE)
        if self.half_blanks is not None:
            text = self.half_blanks.taken_out(text)
        if self._unparsed:
            text, self._unparsed = self._unparsed + text, ""
        index = self._resumed = self._resume(text)
        end = len(text)
        while index < end and self._clock() < self._until:
            index = self._scan(text, index)
            if index < end and text[index] == "\x1b" and self._clock() < self._until:
                index = self._walk("\x1b", text, index + 1)
        if index < end:
            text, self._unparsed = text[:index], text[index:]
        self._remember_end(text)

    def _resume(self, text: str) -> int:
        pending, self._pending = self._pending, ""
        if self._string:
            return self._escape_in_string(text, 0) if pending else self._in_string(text, 0)
        return self._walk(pending, text, 0) if pending else 0

    def _scan_compiled(self, text: str, index: int) -> int:
        end, limited = len(text), self._until < math.inf
        while index < end:
            stop = min(index + _WINDOW, end)
            index = scan(self, self.screen, text, index, stop, limited)
            if index < stop or (limited and self.late()):
                break
        return index

    def late(self) -> bool:
        """Whether the time of this `feed` is over."""
        return self._clock() >= self._until

    def call(self, text: str, index: int, window: int) -> int:
        """Carry out one token for the compiled scanner.

        Returns:
            Where it ends, as a negative number if the time is over; `index` if there is no complete token.
        """
        token = TOKENS.match(text, index, window) or TOKENS.match(text, index)
        if token is None or token.lastindex is None:
            return index
        try:
            self._handlers[token.lastindex](token)
        except _Pause:
            return -token.end()
        return token.end()

    def _scan(self, text: str, index: int) -> int:
        if self._compiled:
            return self._scan_compiled(text, index)
        handlers = self._handlers
        token: Any = None
        end = len(text)
        try:
            while index < end:
                # A token cut by the window is text, which continues, or is matched with everything after it.
                window = index + _WINDOW
                scanner = TOKENS.scanner(text, index, window)  # type: ignore[attr-defined]  # not in typeshed
                for token in iter(scanner.match, None):
                    handlers[token.lastindex](token)
                if token is None or token.end() == index:
                    token = TOKENS.match(text, index)
                    if token is None:
                        break
                    handlers[token.lastindex](token)
                index = token.end()
                if self._clock() >= self._until:
                    break
        except _Pause:
            index = token.end()
        return index

    @property
    def incomplete(self) -> bool:
        """Whether the input so far ends inside a sequence or a string."""
        return bool(self._pending or self._string or self._unparsed)

    @property
    def unfinished(self) -> bytes:
        """The incomplete or unparsed input, to be fed to another stream.

        A sequence, a string, or the first bytes of a character. A string over the limit is shortened to one
        without an effect.
        """
        text = self._pending
        if self._string:
            kept = "?" if self._string_size > MAX_STRING else "".join(self._string_parts)
            text = f"\x1b{self._string}{kept}{text}"
        partial: bytes = self.utf8_decoder.getstate()[0]
        return (text + self._unparsed).encode() + partial

    # Complete tokens

    def _text(self, token: Token) -> None:
        self._draw(token.group(1))

    def _text_line(self, token: Token) -> None:
        self._draw(token.group(1))
        self._new_line()

    def _return_and_feed(self) -> None:
        self.screen.carriage_return()
        self.screen.linefeed()

    def _one_by_one(self, token: Token) -> None:
        kind = token.lastindex or 0
        line, column = token.group(6, 7)
        parameters, text = token.group(3, 4) if kind < 6 else token.group(8, 9)
        if line is not None:
            self.screen.cursor_position(int(line), int(column))
        if parameters is not None and ":" in parameters:
            self.screen.render(parameters)
        elif parameters is not None:
            self.screen.select_graphic_rendition(*numbers_of(parameters))
        if text:
            self._draw(text)
        if kind == 5:
            self._new_line()

    def _styled(self, token: Token) -> None:
        parameters, text = token.group(3, 4)
        screen = self.screen
        change = self._renditions.get(parameters)
        if change is None:
            change = screen.sgr.learn(parameters)
        screen.style = screen.style & change[0] | change[1]
        if text:
            self._draw(text)

    def _styled_line(self, token: Token) -> None:
        self._styled(token)
        self._new_line()

    def _position(self, token: Token) -> None:
        line, column = token.group(6, 7)
        self._go(line, column)

    def _go(self, line: str, column: str) -> None:
        """CUP, with a fast path for positions on the screen outside of origin mode."""
        screen = self.screen
        y, x = _PLACES.get(line, _FAR), _PLACES.get(column, _FAR)
        if y < screen.lines and x < screen.columns and not screen.modes.origin:
            screen.y = y
            screen.x = x
        else:
            screen.cursor_position(int(line), int(column))

    def _position_styled(self, token: Token) -> None:
        line, column, parameters, text = token.group(6, 7, 8, 9)
        self._go(line, column)
        screen = self.screen
        change = self._renditions.get(parameters)
        if change is None:
            change = screen.sgr.learn(parameters)
        screen.style = screen.style & change[0] | change[1]
        if text:
            self._draw(text)

    def _line_break(self, _token: Token) -> None:
        self._new_line()

    def _control_sequence(self, token: Token) -> None:
        sequence = token.group()
        call = self.calls.get(sequence)
        if call is None:
            call = self._learn(sequence, *token.group(11, 12, 13, 14))
        handler, parameters = call
        if handler is not self._repeat or self._follows_text(token):
            handler(*parameters)

    def _learn(self, sequence: str, prefix: str, parameters: str, intermediates: str, final: str) -> Call:
        found = call_of(prefix, parameters, intermediates, final)
        if found is None:
            call: Call = self.screen.debug, numbers_of(parameters) if ":" not in parameters else ()
        else:
            handler = self._repeat if found[0] is Screen.repeat else bound(self.screen, found[0])
            call = handler, found[1]
        if len(self.calls) >= _CALLS_KEPT:
            self.calls.clear()
        if len(sequence) <= _LONGEST_KEPT:
            self.calls[sequence] = call
        return call

    def _follows_text(self, token: Token) -> bool:
        """Whether a graphic character directly precedes: REP repeats nothing else (ECMA-48 8.3.103)."""
        start = token.start()
        if start > self._resumed:
            return _ends_in_text(token.string, start)
        return self._after_text and not start

    def _remember_end(self, text: str) -> None:
        end = len(text) - len(self._pending)
        if end > 0:
            self._after_text = not self._string and end > self._resumed and _ends_in_text(text, end)

    def _control(self, token: Token) -> None:
        control = token.group()
        if len(control) > 1:
            self._tabs(len(control))
            return
        handler = self._controls.get(control)
        if handler is not None:
            handler()

    def _tabs(self, count: int) -> None:
        """Run tabs in a row: as soon as one of them does not move the cursor, the others do not either."""
        screen, tab = self.screen, self._controls["\t"]
        for _ in range(count):
            before = screen.x, screen.y
            tab()
            if (screen.x, screen.y) == before:
                break

    def _escape(self, token: Token) -> None:
        intermediates, final = token.group(16, 17)
        # The Linux console's sets are for 8-bit text: xterm does not support them.
        if not (self.use_utf8 and final in LINUX and len(intermediates) == 1):
            escape_sequence(self.screen, intermediates, final)

    def _plain_escape(self, token: Token) -> None:
        handler = self._escapes.get(token.group(18))
        if handler is not None:
            handler()

    def _system_command(self, token: Token) -> None:
        payload, terminator = token.group(19, 20)
        self.screen.system_command(payload, terminator)

    # Not matched by the scanner: ESC followed by something irregular

    def _walk(self, kept: str, text: str, index: int) -> int:
        """Assemble a sequence character by character, running the controls inside it.

        `kept` is the sequence so far, including ESC. Returns the index to continue at: the end of the text if
        the sequence is still incomplete, or less if the time is over.
        """
        for at in range(index, len(text)):
            char = text[at]
            if at > index and not at % _WALK and self._clock() >= self._until:
                text = text[:at]
                break
            if char < " ":
                if char in "\x18\x1a\x1b":
                    # Of several ESC in a row each begins anew.
                    found = ESCAPES_IN_A_ROW.match(text, at)
                    return found.end() - 1 if found is not None else at + 1
                handler = self._controls.get(char)
                if handler is not None:
                    handler()
            elif char < "\x7f":
                kept = kept[:MAX_SEQUENCE] + char
                if _is_complete(kept):
                    return self._replay(kept, text, at + 1)
            elif char > "\x7f" and kept == "\x1b":
                return at
        self._pending = kept
        return len(text)

    def _replay(self, sequence: str, text: str, index: int) -> int:
        if sequence[1:] in _INTRODUCERS:
            self._string = sequence[1]
            return self._in_string(text, index)
        token = TOKENS.match(sequence)
        if token is not None and token.lastindex is not None:
            with contextlib.suppress(_Pause):  # `feed_text` checks the clock itself
                self._handlers[token.lastindex](token)
        return index

    # Strings

    def _in_string(self, text: str, index: int) -> int:
        ends = OSC_END if self._string == "]" else STRING_END
        found = ends.search(text, index)
        if found is None:
            self._keep(text[index:])
            return len(text)
        at, mark = found.start(), found.group()
        self._keep(text[index:at])
        if mark == "\x1b":
            return self._escape_in_string(text, at + 1)
        if mark == "\x07":
            self._end_string("\x07")
        else:
            self._drop_string()
        return at + 1

    def _escape_in_string(self, text: str, index: int) -> int:
        """Handle the character after ESC: ST ends the string, any other sequence aborts it."""
        following = text[index : index + 1]
        if following == "\\":
            self._end_string("\x1b\\")
            return index + 1
        if not following:
            self._pending = "\x1b"
            return index
        self._drop_string()
        return self._walk("\x1b", text, index)

    def _keep(self, part: str) -> None:
        self._string_size += len(part)
        if self._string in "]P" and self._string_size <= MAX_STRING:
            self._string_parts.append(part)
        else:
            self._string_parts.clear()

    def _end_string(self, terminator: str) -> None:
        kind, payload, size = self._string, "".join(self._string_parts), self._string_size
        self._drop_string()
        if size > MAX_STRING:
            return
        if kind == "]":
            self.screen.system_command(payload, terminator)
        elif kind == "P":
            self.screen.device_control(payload)

    def _drop_string(self) -> None:
        self._string = ""
        self._string_parts = []
        self._string_size = 0

    def _initialize_parser(self) -> None:
        """Pyte's own parser is not used."""


def _has_own(screen: Screen, *names: str) -> bool:
    return any(
        name in vars(screen) or getattr(type(screen), name) is not getattr(Screen, name) for name in names
    )


def _is_complete(sequence: str) -> bool:
    kind, last = sequence[1], sequence[-1]
    if kind == "[":
        return len(sequence) > 2 and last >= "@"
    return kind > "/" or last > "/"


def _ends_in_text(text: str, end: int) -> bool:
    if text[end - 1] < " " or text[end - 1] == "\x7f":
        return False
    escape = text.rfind("\x1b", 0, end)
    token = TOKENS.match(text, escape, end) if escape >= 0 else None
    if token is None or token.end() < end:
        return True
    return token.lastindex in (4, 9) and bool(token.group(token.lastindex))
