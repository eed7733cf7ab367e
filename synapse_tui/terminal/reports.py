"""Replies to queries of the child, and OSC and DCS strings (xterm ctlseqs, and other terminals)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from .areas import Areas
from .events import (
    ClipboardSet,
    ColorsChanged,
    Notification,
    PointerShape,
    ProgramStatus,
    ProgressChanged,
    PromptMark,
    WorkingDirectory,
)
from .grid import since_level
from .style import (
    BG,
    BLINK,
    BOLD,
    DIM,
    DYNAMIC,
    FG,
    HIDDEN,
    ITALIC,
    LINK_SHIFT,
    NO_LINK,
    PROTECTED,
    RENDITION,
    REVERSE,
    SPECIAL,
    STRIKE,
    UNDERLINE,
    UNDERLINE_COLOR,
    color_spec,
    parse_color,
    unparse,
)

VERSION = "synapse-tui"
PRIMARY_ATTRIBUTES = "\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c"
"""Xterm as a VT420 without graphics, which programs recognize."""
SECONDARY_ATTRIBUTES = "\x1b[>41;380;0c"
"""VT420 as xterm reports it, with a patch level from which programs expect all features supported here."""
TERTIARY_ATTRIBUTES = "\x1bP!|00000000\x1b\\"
TITLES_KEPT = 10
RENDITIONS_KEPT = 10


_PARTS = {
    0: 0,
    1: BOLD,
    2: DIM,
    3: ITALIC,
    4: UNDERLINE | UNDERLINE_COLOR,
    5: BLINK,
    7: REVERSE,
    8: HIDDEN,
    9: STRIKE,
    10: FG,
    11: BG,
    21: UNDERLINE | UNDERLINE_COLOR,
    30: FG,
    31: BG,
}
"""Parameters of XTPUSHSGR; 10 and 11 are aliases for the colours from old versions of xterm."""

_STATUS_ANSWERS = {
    15: "?13n",  # no printer
    25: "?20n",  # user defined keys are not locked
    26: "?27;1;0;0n",  # North American keyboard
    53: "?53n",  # no locator
    55: "?53n",
    56: "?57;0n",
    62: "0000*{",  # no space for macros
    75: "?70n",  # no data errors
    85: "?83n",  # one session
}


TITLE_LENGTH = 1024
TEXT_LENGTH = 4096
URI_LENGTH = 2083
NOTICES_KEPT = 8
_FIELDS = 32
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SELECTION = re.compile(r"[cpqs0-7]*\Z")


def clean(text: str, length: int) -> str:
    return _CONTROLS.sub("", text[:length])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def _fields(parts: list[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts[:_FIELDS])
    return {clean(key, 64): clean(value, TEXT_LENGTH) for key, mark, value in pairs if mark}


def _decoded(text: str, length: int) -> str:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.decode("utf-8", "replace")[:length]


_CAPABILITIES = {
    "TN": "xterm-256color",
    "name": "xterm-256color",
    "Co": "256",
    "colors": "256",
    "RGB": "8/8/8",
    "Tc": "",
    "Su": "",
    "Ss": "\x1b[%p1%d q",
    "Se": "\x1b[2 q",
    "Ms": "\x1b]52;%p1%s;%p2%s\x1b\\",
    "Smulx": "\x1b[4:%p1%dm",
    "Setulc": "\x1b[58:2:%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:%p1%{255}%&%d%;m",
    "Sync": "\x1b[?2026%?%p1%{1}%-%tl%eh%;",
    "XT": "",
    "xterm-version": VERSION,
}


class Reports(Areas):
    def report_device_attributes(self, mode: int = 0, **_more: bool) -> None:
        if mode == 0:
            self.reply(PRIMARY_ATTRIBUTES)

    def report_secondary_attributes(self, mode: int = 0) -> None:
        if mode == 0:
            self.reply(SECONDARY_ATTRIBUTES)

    def report_tertiary_attributes(self, mode: int = 0) -> None:
        if mode == 0:
            self.reply(TERTIARY_ATTRIBUTES)

    def report_version(self, mode: int = 0) -> None:
        if mode == 0:
            self.reply(f"\x1bP>|{VERSION}\x1b\\")

    def report_device_status(self, mode: int = 0) -> None:
        """DSR: operating status (5), cursor position (6)."""
        if mode == 5:
            self.reply("\x1b[0n")
        elif mode == 6:
            line, column = self._reported_position()
            self.reply(f"\x1b[{line};{column}R")

    def report_private_status(self, mode: int = 0, request: int = 0) -> None:
        """DSR for DEC: cursor position with page (6), colour scheme (996), devices that do not exist."""
        if mode == 6:
            line, column = self._reported_position()
            page = ";1" if self.level >= 4 else ""
            self.reply(f"\x1b[?{line};{column}{page}R")
        elif mode == 996:
            self.report_color_scheme()
        elif mode == 63:
            self.reply(f"\x1bP{request}!~0000\x1b\\")
        elif mode in _STATUS_ANSWERS:
            self.reply(f"\x1b[{_STATUS_ANSWERS[mode]}")

    def report_color_scheme(self) -> None:
        """Dark (1) or light (2)."""
        self.reply(f"\x1b[?997;{1 if self.colors.is_dark else 2}n")

    def _reported_position(self) -> tuple[int, int]:
        line, column = self.y + 1, self.column + 1
        if self.modes.origin:
            line -= self.top
            column -= self.left
        return line, column

    def window_operation(self, operation: int = 0, *arguments: int) -> None:
        """XTWINOPS: size reports and the title stack; the window cannot be moved or resized."""
        width, height = self.cell_pixels
        pixels = f"{self.lines * height};{self.columns * width}t"
        answers = {
            11: "1t",
            13: "3;0;0t",
            14: f"4;{pixels}",
            15: f"5;{pixels}",
            16: f"6;{height};{width}t",
            18: f"8;{self.lines};{self.columns}t",
            19: f"9;{self.lines};{self.columns}t",
        }
        if operation in answers:
            self.reply(f"\x1b[{answers[operation]}")
        elif operation == 22:
            self._push_title(arguments[0] if arguments else 0)
        elif operation == 23:
            which = arguments[0] if arguments else 0
            if which in (0, 1) and self.icon_stack:
                self.icon_name = self.icon_stack.pop()
            if which in (0, 2) and self.title_stack:
                self.change_title(self.title_stack.pop())
        elif operation in (20, 21):
            # Answer with an empty title: one that can be read back lets a child type into the terminal.
            self.reply("\x1b]L\x1b\\" if operation == 20 else "\x1b]l\x1b\\")

    def _push_title(self, which: int) -> None:
        if which in (0, 1):
            self.icon_stack.append(self.icon_name)
            del self.icon_stack[:-TITLES_KEPT]
        if which in (0, 2):
            self.title_stack.append(self.title)
            del self.title_stack[:-TITLES_KEPT]

    def report_displayed_extent(self) -> None:
        """DECRQDE: the whole page is displayed."""
        self.reply(f'\x1b[{self.lines};{self.columns};1;1;1"w')

    @since_level(3)
    def report_presentation_state(self, kind: int = 0) -> None:
        """DECRQPSR: the cursor's state (1, DECCIR) or the tab stops (2, DECTABSR)."""
        if kind == 1:
            self.reply(f"\x1bP1$u{self._cursor_information()}\x1b\\")
        elif kind == 2:
            stops = "/".join(str(stop + 1) for stop in sorted(self.tabstops) if stop < self.columns)
            self.reply(f"\x1bP2$u{stops}\x1b\\")

    def _cursor_information(self) -> str:
        style = self.style
        bits = ((REVERSE, 8), (BLINK, 4), (UNDERLINE, 2), (BOLD, 1))
        rendition = chr(0x40 + sum(bit for mask, bit in bits if style & mask))
        protection = chr(0x40 + bool(style & PROTECTED))
        pending = self.x >= self.columns
        shifts = {3: 4, 2: 2}.get(self.single_shift, 0)
        flags = chr(0x40 + 8 * pending + shifts + self.modes.origin)
        sets = "".join(self.charsets)
        position = f"{self.y + 1};{self.column + 1};1"
        return f"{position};{rendition};{protection};{flags};{self.shift};2;@;{sets}"

    def set_cursor_style(self, style: int = 0) -> None:
        """DECSCUSR: 0 default, 1-2 block, 3-4 underline, 5-6 bar; odd ones blink."""
        if style <= 6:
            self.cursor_shape = style

    # Renditions

    def push_rendition(self, *parts: int) -> None:
        """XTPUSHSGR: push the rendition; `parts` selects what XTPOPSGR restores, everything if empty."""
        self.saved_styles.append(self.style)
        self.saved_parts.append(tuple(part if part in _PARTS else 0 for part in parts[: len(_PARTS)]))
        del self.saved_styles[:-RENDITIONS_KEPT], self.saved_parts[:-RENDITIONS_KEPT]

    def pop_rendition(self) -> None:
        """XTPOPSGR: pop the rendition; link and protection are unchanged."""
        if not self.saved_styles:
            return
        style, parts, taken = self.saved_styles.pop(), self.saved_parts.pop(), 0
        for part in parts:
            taken |= _PARTS[part]
        taken = taken if parts else RENDITION
        self.style = self.style & ~taken | style & taken

    def system_command(self, payload: str, terminator: str = "\x1b\\") -> None:
        """Run an OSC string; answers use the same terminator."""
        code, _, rest = payload.partition(";")
        command = _COMMANDS.get(code)
        number = _number(code)
        if command is not None:
            command(self, rest, terminator)
        elif number in DYNAMIC:
            self._dynamic(number, rest, terminator)
        elif number - 100 in DYNAMIC:
            self.colors.own.pop(number - 100, None)
            self._colors_changed()

    # Titles

    def set_title(self, param: str) -> None:
        self.change_title(clean(param, TITLE_LENGTH))

    def set_icon_name(self, param: str) -> None:
        self.icon_name = clean(param, TITLE_LENGTH)

    def both_titles(self, rest: str, _end: str) -> None:
        self.set_icon_name(rest)
        self.set_title(rest)

    def title_command(self, rest: str, _end: str) -> None:
        self.set_title(rest)

    def icon_command(self, rest: str, _end: str) -> None:
        self.set_icon_name(rest)

    # Colours

    def palette_command(self, rest: str, end: str) -> None:
        """OSC 4: pairs of an index and a colour or `?`."""
        self._indexed(4, range(SPECIAL.stop), rest, end)

    def special_command(self, rest: str, end: str) -> None:
        """OSC 5: likewise for the special colours, from 0."""
        self._indexed(5, SPECIAL, rest, end)

    def _indexed(self, code: int, indices: range, rest: str, end: str) -> None:
        parts = rest.split(";")[: 2 * SPECIAL.stop]
        changed = False
        for name, spec in zip(parts[::2], parts[1::2], strict=False):
            number = _number(name)
            if not 0 <= number < len(indices):
                continue
            index = indices[number]
            if spec == "?":
                self.reply(f"\x1b]{code};{number};{color_spec(self.colors.indexed(index))}{end}")
            elif (color := parse_color(spec)) is not None:
                self.colors.palette[index] = color
                changed = True
        if changed:
            self._colors_changed()

    def reset_palette(self, rest: str, _end: str) -> None:
        """OSC 104: reset some indexed colours, or all including the special ones."""
        self._reset_indexed(range(SPECIAL.stop), rest or ";".join(map(str, range(SPECIAL.stop))))

    def reset_special(self, rest: str, _end: str) -> None:
        self._reset_indexed(SPECIAL, rest or ";".join(map(str, range(len(SPECIAL)))))

    def _reset_indexed(self, indices: range, names: str) -> None:
        for name in names.split(";")[: SPECIAL.stop]:
            number = _number(name)
            if 0 <= number < len(indices):
                self.colors.palette.pop(indices[number], None)
        self._colors_changed()

    def _dynamic(self, number: int, rest: str, end: str) -> None:
        """OSC 10 to 19: each further part is for the next number."""
        changed = False
        for current, spec in zip(range(number, DYNAMIC.stop), rest.split(";"), strict=False):
            if spec == "?":
                self.reply(f"\x1b]{current};{color_spec(self.colors.dynamic(current))}{end}")
            elif (color := parse_color(spec)) is not None:
                self.colors.own[current] = color
                changed = True
        if changed:
            self._colors_changed()

    def _colors_changed(self) -> None:
        self.touch_all()
        self.emit(ColorsChanged())

    # Links, clipboard, folders

    def link_command(self, rest: str, _end: str) -> None:
        """OSC 8: parameters, `;`, URI; an empty URI ends the link."""
        parameters, _, uri = rest.partition(";")
        number = 0
        if uri and len(uri) <= URI_LENGTH:
            group = _fields(parameters.split(":")).get("id", "")
            number = self.table.link(clean(uri, URI_LENGTH), group)
        self.style = self.style & NO_LINK | number << LINK_SHIFT

    def clipboard_command(self, rest: str, _end: str) -> None:
        """OSC 52, write only: reading is not supported."""
        selection, _, data = rest.partition(";")
        if data == "?" or not _SELECTION.match(selection):
            return
        self.emit(ClipboardSet(selection or "c", _decoded(data, len(data))))

    def folder_command(self, rest: str, _end: str) -> None:
        self.emit(WorkingDirectory(clean(rest, TEXT_LENGTH)))

    def pointer_command(self, rest: str, _end: str) -> None:
        self.emit(PointerShape(clean(rest, 64)))

    # Notices

    def notice_command(self, rest: str, _end: str) -> None:
        """OSC 9: a progress report of ConEmu (`4;state;value`), or a notification of iTerm2."""
        parts = rest.split(";")
        if parts[0] == "4":
            state = _number(parts[1]) if len(parts) > 1 else 0
            value = _number(parts[2]) if len(parts) > 2 else 0
            if 0 <= state <= 4:
                self.emit(ProgressChanged(state, max(0, min(value, 100))))
        elif not (len(parts) > 1 and _number(parts[0]) >= 0):
            self.emit(Notification("", clean(rest, TEXT_LENGTH)))

    def kitty_notice(self, rest: str, end: str) -> None:
        """OSC 99: metadata, `;`, payload; title and body may arrive in pieces (`d=0`) with the same id."""
        metadata, _, payload = rest.partition(";")
        fields = _fields(metadata.split(":"))
        kind, name = fields.get("p", "title"), fields.get("i", "0")
        if kind == "?":
            self.reply(f"\x1b]99;i={name}:p=?;p=title,body{end}")
        elif kind in ("title", "body"):
            text = _decoded(payload, TEXT_LENGTH) if fields.get("e") == "1" else payload
            self._notice_piece(name, kind == "body", clean(text, TEXT_LENGTH), more=fields.get("d") == "0")

    def _notice_piece(self, name: str, body: bool, text: str, *, more: bool) -> None:
        pieces = self.notices.pop(name, ["", ""])
        pieces[body] = (pieces[body] + text)[:TEXT_LENGTH]
        if more:
            self.notices[name] = pieces
            if len(self.notices) > NOTICES_KEPT:
                del self.notices[next(iter(self.notices))]
        else:
            self.emit(Notification(*pieces))

    def urxvt_notice(self, rest: str, _end: str) -> None:
        """OSC 777: `notify;title;body`."""
        kind, _, text = rest.partition(";")
        if kind == "notify":
            title, _, body = text.partition(";")
            self.emit(Notification(clean(title, TEXT_LENGTH), clean(body, TEXT_LENGTH)))

    def iterm_command(self, rest: str, _end: str) -> None:
        """OSC 1337: only the current folder of iTerm2's commands."""
        key, mark, value = rest.partition("=")
        if mark and key == "CurrentDir":
            self.emit(WorkingDirectory("file://" + clean(value, TEXT_LENGTH)))

    def prompt_mark(self, rest: str, _end: str) -> None:
        kind, *parts = rest.split(";")
        fields = _fields(parts)
        if kind == "D" and parts and "=" not in parts[0]:
            fields["status"] = clean(parts[0], 16)
        if kind:
            self.emit(PromptMark(clean(kind, 1), fields))

    def program_status(self, rest: str, end: str) -> None:
        """OSC 7501, the Program Status Protocol: `state=...` and more between `:`; `?` queries support."""
        if rest == "?":
            self.reply(f"\x1b]7501;?{end}")
            return
        fields = _fields(rest.split(":"))
        state = fields.pop("state", "")
        for key in ("title", "msg"):
            if key in fields:
                fields[key] = clean(_decoded(fields[key], TEXT_LENGTH), TEXT_LENGTH)
        if state:
            self.emit(ProgramStatus(state, fields))

    def device_control(self, payload: str) -> None:
        """Run a DCS string; sixels, user keys and the like are ignored."""
        if payload.startswith("$q"):
            self._report_setting(payload[2:])
        elif payload.startswith("+q"):
            for name in payload[2:].split(";")[:64]:
                self._report_capability(name)

    def _report_setting(self, name: str) -> None:
        """DECRQSS: answer 1 and the setting, or 0 (xterm's meaning of the numbers)."""
        setting = self._setting(name)
        self.reply("\x1bP0$r\x1b\\" if setting is None else f"\x1bP1$r{setting}{name}\x1b\\")

    def _setting(self, name: str) -> str | None:
        if name == '"p':
            return f"{60 + self.level};{0 if self.eight_bit_replies else 1}"
        simple = {
            "m": unparse(self.style),
            "r": f"{self.top + 1};{self.bottom + 1}",
            "s": f"{self.left + 1};{self.right + 1}",
            " q": str(self.cursor_shape or 2),
            '"q': "1" if self.style & PROTECTED and not self.iso_protection else "0",
            "t": str(self.lines),
            "$|": str(self.columns),
            "*|": str(self.lines),
            "$}": "0",
            "$~": "0",
            "*x": str(self.attribute_extent),
        }
        return simple.get(name)

    def _report_capability(self, encoded: str) -> None:
        try:
            name = binascii.unhexlify(encoded).decode("ascii")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            name = ""
        value = _CAPABILITIES.get(name)
        if value is None:
            self.reply(f"\x1bP0+r{encoded[:128] if encoded.isalnum() and encoded.isascii() else ''}\x1b\\")
        elif value:
            self.reply(f"\x1bP1+r{encoded}={value.encode().hex().upper()}\x1b\\")
        else:
            self.reply(f"\x1bP1+r{encoded}\x1b\\")


_COMMANDS: Mapping[str, Callable[[Reports, str, str], None]] = MappingProxyType(
    {
        "0": Reports.both_titles,
        "": Reports.both_titles,
        "1": Reports.icon_command,
        "2": Reports.title_command,
        "4": Reports.palette_command,
        "5": Reports.special_command,
        "7": Reports.folder_command,
        "8": Reports.link_command,
        "9": Reports.notice_command,
        "22": Reports.pointer_command,
        "52": Reports.clipboard_command,
        "99": Reports.kitty_notice,
        "104": Reports.reset_palette,
        "105": Reports.reset_special,
        "133": Reports.prompt_mark,
        "777": Reports.urxvt_notice,
        "1337": Reports.iterm_command,
        "7501": Reports.program_status,
    }
)
