"""Finds an agent's composer on the rendered screen: by a profile's rules, or by its cursor alone.

Without rules (`composer: auto`) the composer is what is drawn around the cursor: a frame, two lines, a bar at
the left or a background of its own. Without any of these it is a prompt before the cursor: `>`, `❯` and the
like, perhaps after one word. Every text in it that is neither its prompt nor faint counts as a draft, so what
is not understood is never typed into. What cannot be recognised is refused with the reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from synapse_tui.agents.profiles.profile import ComposerRules, PlaceholderStyle, ViModes
from synapse_tui.system.dataclass import dataclass

if TYPE_CHECKING:
    from synapse_tui.terminal import Style, Terminal

_DEFAULT_BACKGROUND = -1
_MAX_HINTS = 8  # rows above a composer that are searched for hints
_FILLS = 8  # minimum rows of a composer that has pushed its frame off the top of the screen
_SCROLLED = 3  # minimum rows that a composer shows of a draft whose beginning is not visible


@dataclass(frozen=True, slots=True)
class Box:
    """Where the composer is on the screen; rows and columns count from 0."""

    top: int  # its rows inside the frame
    bottom: int
    first: int  # the rows of the draft; blank rows around it are padding
    last: int
    column: int  # where the draft begins in the first row
    scrolled: bool = False
    found_by: str = "rules"
    prompt: str = ""
    left: int = 0  # columns inside the frame; `right` is exclusive
    right: int = 0
    cursor: tuple[int, int] | None = None  # column and row; None if the cursor proves nothing
    frame: tuple[int, int] = (0, 0)  # rows of its frame over and under it
    vi_normal: bool = False  # whether it is in the normal mode of vi

    @property
    def outer(self) -> int:
        return self.top - self.frame[0]

    @property
    def end(self) -> int:
        return self.bottom + self.frame[1]


class Refusal(NamedTuple):
    reason: str
    row: int | None = None


def find_composer(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | Refusal:
    """Find the composer that has the input focus, or the reason why that is not certain."""
    if rules.auto:
        return _Finder(terminal, rows).find()
    box = _framed(terminal, rows, rules) if rules.below is not None else _unframed(terminal, rows, rules)
    if isinstance(box, Refusal):
        return box
    y = terminal.cursor.y
    if rules.cursor and not box.first <= y <= box.last:
        return Refusal(f"the cursor is not in its rows {box.first + 1} to {box.last + 1}", y)
    below = "\n".join(row.rstrip() for row in rows[box.top :])
    for pattern in rules.absent:
        if (found := pattern.search(below)) is not None:
            return Refusal("'absent' matches", box.top + below.count("\n", 0, found.start()))
    return replace(box, vi_normal=True) if rules.vi is not None and _in_normal_mode(rules.vi, below) else box


def before_cursor(terminal: Terminal, rows: Sequence[str]) -> str:
    """Return the screen up to a visible cursor, if it is right behind a text; else nothing."""
    x, y = terminal.cursor.x, terminal.cursor.y
    row = rows[y] if y < len(rows) else ""
    before = "".join(terminal.cell(column, y).text for column in range(x)) if row.strip() else ""
    if not terminal.cursor.visible or not before.strip() or len(before.rstrip()) < len(row.rstrip()):
        return ""
    return "\n".join([*(above.rstrip() for above in rows[:y]), before])


def without_prompt(row: str) -> str | None:
    """Return what follows the prompt that a row begins with; None without one."""
    sign = _SIGN.match(row)
    return row[sign.end() :] if sign is not None else None


def _in_normal_mode(vi: ViModes, below: str) -> bool:
    if vi.normal is not None and vi.normal.search(below):
        return True
    return vi.insert is not None and not vi.insert.search(below)


def find_box(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | None:
    found = find_composer(terminal, rows, rules)
    return found if isinstance(found, Box) else None


def end_of_conversation(rows: Sequence[str], box: Box, rules: ComposerRules) -> int:
    end = top = box.outer if rules.auto else box.top
    for place in range(top - 1, max(-1, top - 1 - _MAX_HINTS), -1):
        row = rows[place].rstrip()
        if any(pattern.search(row) for pattern in rules.hints):
            end = place
        elif row and not (rules.above is not None and rules.above.search(row)):
            break
    return end


# -- by a profile's rules ---


def _framed(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | Refusal:
    under = 0
    refusal = Refusal("no row matches 'below'")
    for y in range(len(rows) - 1, 0, -1):
        if under > rules.footer:
            too_high = Refusal(f"more than 'footer' rows ({rules.footer}) are below it", y)
            return refusal if refusal.row is not None else too_high
        if rules.below is not None and rules.below.match(rows[y]):
            box = _above(terminal, rows, rules, y - 1)
            if isinstance(box, Box):
                return box
            refusal = box if refusal.row is None else refusal
        under += bool(rows[y].strip())
    return refusal


def _above(terminal: Terminal, rows: Sequence[str], rules: ComposerRules, bottom: int) -> Box | Refusal:
    top = bottom + 1
    while top > 0 and (rules.row.match(rows[top - 1]) or rules.prompt.match(rows[top - 1])):
        if rules.above is not None and rules.above.match(rows[top - 1]):
            break
        top -= 1
    if rules.above is not None and not _begins_at(rows, rules, top, bottom):
        return Refusal("matches neither 'row', 'prompt' nor 'above'", max(0, top - 1))
    first, last = top + rules.margin[0], bottom - rules.margin[1]
    if first > last:
        return Refusal("no row is left inside the frame and its margins", bottom)
    return _body(terminal, rows, rules, Box(top, bottom, first, last, 0))


def _begins_at(rows: Sequence[str], rules: ComposerRules, top: int, bottom: int) -> bool:
    if top == 0:
        return bottom + 1 >= _FILLS and bool(rows[0].strip())
    return rules.above is not None and rules.above.match(rows[top - 1]) is not None


def _body(terminal: Terminal, rows: Sequence[str], rules: ComposerRules, box: Box) -> Box | Refusal:
    for y in range(box.first, box.last + 1):
        if (prompt := rules.prompt.match(rows[y])) is not None:
            return _ruled(terminal, rules, box.top, box.bottom, y, box.last, prompt)
        if _cut(rows[y], rules.row, rules):
            break  # rows over the prompt are padding only if they are blank
    if box.last - box.first < _SCROLLED - 1:
        return Refusal("'prompt' does not match", box.first)
    return _ruled(
        terminal,
        rules,
        box.top,
        box.bottom,
        box.first,
        box.last,
        rules.row.match(rows[box.first]),
        scrolled=True,
    )


def _ruled(
    terminal: Terminal,
    rules: ComposerRules,
    top: int,
    bottom: int,
    first: int,
    last: int,
    prefix: re.Match[str] | None,
    *,
    scrolled: bool = False,
) -> Box:
    cursor = terminal.cursor
    return Box(
        top,
        bottom,
        first,
        last,
        prefix.end() if prefix is not None else 0,
        scrolled,
        prompt=prefix[0] if prefix is not None and not scrolled else "",
        right=terminal.columns,
        cursor=(cursor.x, cursor.y) if rules.cursor else None,
        frame=(int(rules.above is not None and top > 0), int(rules.below is not None)),
    )


def _unframed(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | Refusal:
    if (scrolled := _scrolled_prompts(terminal, rows, rules)) is not None:
        return scrolled
    for y in range(len(rows) - 1, -1, -1):
        prompt = rules.prompt.match(rows[y])
        if prompt is None:
            continue
        first = y
        while first > 0 and rules.row.match(rows[first]) and _is_prompt(rows[first - 1], rules):
            first -= 1  # unless `row` denies it, every row of a draft may begin with the prompt
        while first < y and not _cut(rows[first], rules.prompt, rules):
            first += 1  # an Enter in an empty composer
        last = _last_row(terminal, rows, rules, y)
        if sum(bool(row.strip()) for row in rows[last + 1 :]) > rules.footer:
            return Refusal(f"more than 'footer' rows ({rules.footer}) are below it", y)
        return _ruled(terminal, rules, first, last, first, last, rules.prompt.match(rows[first]))
    return Refusal("no row matches 'prompt'")


def _is_prompt(row: str, rules: ComposerRules) -> bool:
    found = rules.prompt.match(row)
    return found is not None and bool(found[0].strip(_PADDING))


def _scrolled_prompts(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | None:
    """Find the end of a long draft whose rows begin with a prompt of their own, and its first row is gone."""
    y = last = terminal.cursor.y
    if not rules.cursor or y >= len(rows) or not _continues(rows[y], rules):
        return None
    while y > 0 and _continues(rows[y], rules) and not rules.prompt.match(rows[y]):
        y -= 1
    if rules.prompt.match(rows[y]):
        return None
    first = y if _continues(rows[y], rules) else y + 1
    while last + 1 < len(rows) and _continues(rows[last + 1], rules):
        last += 1
    if last - first < _SCROLLED - 1:
        return None
    return _ruled(terminal, rules, first, last, first, last, rules.row.match(rows[first]), scrolled=True)


def _continues(row: str, rules: ComposerRules) -> bool:
    """Whether a row begins with a continuation prompt: more than blanks and frames before its text."""
    found = rules.row.match(row)
    return found is not None and bool(found[0].strip(_PADDING))


def _last_row(terminal: Terminal, rows: Sequence[str], rules: ComposerRules, first: int) -> int:
    background = terminal.cell(0, first).style.bg
    if rules.background and background != _DEFAULT_BACKGROUND:
        return _last_tinted(terminal, rows, first, background)
    begun = first
    while begun + 1 < len(rows) and _continues(rows[begun + 1], rules):
        begun += 1
    footer = len(rows)
    while footer > begun + 1 and rows[footer - 1].strip():
        footer -= 1
    last = footer - 1
    while last > begun and not rows[last].strip() and terminal.cursor.y < last:
        last -= 1
    last = max(last, begun)
    prompt = rules.prompt.match(rows[first])
    if prompt is not None and rows[first][prompt.end() :].strip():
        # Without a footer only the cursor shows how far a draft goes.
        end = min(terminal.cursor.y, len(rows) - 1)
        while last < end and rows[last + 1].strip() and rules.row.match(rows[last + 1]):
            last += 1
    return last


def _last_tinted(terminal: Terminal, rows: Sequence[str], first: int, background: int) -> int:
    last = first
    while last + 1 < terminal.lines and terminal.cell(0, last + 1).style.bg == background:
        last += 1
    while last > first and (last >= len(rows) or not rows[last].strip()) and terminal.cursor.y < last:
        last -= 1
    return last


# -- without rules ---

_SIDES = frozenset("│┃║|▌▐▎▏▍▋▊▉█┆┇┊┋╎╏")
_DRAWN_SIDES = frozenset("│┃║")
_PADDING = "".join(_SIDES) + " \xa0"
_LINES = frozenset("─━═╌╍┄┅┈┉▀▄▁▂▔—_-=╴╸")
_CORNERS = frozenset("╭╮╰╯┌┐└┘┏┓┗┛╔╗╚╝├┤┣┫╠╣╞╡╒╕╘╛╓╖╙╜╻╹+┬┴") | _LINES
_LINE = re.compile(
    r"^\s{0,4}[╭┌╔┏├╞╰└╚┗╻╹+]?(?:([─━═╌┄▀▄▁▂▔—_=-])\1{9,}|([─━═])\2+ .* \2{3,}[╮┐╗┓┤╡╯┘╝┛+]?\s*$)"
)
_SIGN = re.compile(
    r"(?:(?:[A-Za-z][\w.-]{0,15} ?)?[>❯›»➜→λ▶⟩⏵]{1,3}|(?i:user|you|human|me|prompt|ask|chat) ?:)(?=[ \xa0]|$)"
)
_FRAMED_SIGN = re.compile(r"[●○◆◇•∙⏺](?=[ \xa0]|$)")
_BLOCKS = "▋▌▊▉█▮"  # cursors that are characters
_SHELL = re.compile(r".*[$#%] ?$")
_ASKS = re.compile(
    r"[?？:：]\s*$|\b(?:y/n|yes/no)\b|\[y/n\]|\b(?:press|hit) (?:any key|\W?(?:enter|return)\W? to "
    r"(?:continue|confirm|proceed|accept|approve))\b",
    re.IGNORECASE,
)
_DOTS = re.compile(r"[^\w\s]{1,4}[ \xa0]")  # a continuation prompt such as `... `
_BAR_MARKS = "█▓▒░▐▌┃│║↑↓▲▼"  # scroll bars, at the end of rows
_INDENT = 4  # columns before the draft in a blank frame
_BLANK_ROWS = 12  # rows of a blank frame that is something else than a composer
_MIN_WIDTH = 20  # columns of a background that may be a composer


class _Region(NamedTuple):
    found_by: str
    top: int  # rows inside
    bottom: int
    left: int  # columns inside; `right` is exclusive
    right: int
    frame: int = 0  # rows of its frame over it, and under it


class _Finder:
    def __init__(self, terminal: Terminal, rows: Sequence[str]) -> None:
        self._terminal = terminal
        self._rows = rows
        self._cells: dict[int, Sequence[str]] = {}

    def find(self) -> Box | Refusal:
        cursor = self._terminal.cursor
        x, y = cursor.x, cursor.y
        if not cursor.visible and (drawn := self._drawn_cursor() or self._block_cursor()) is not None:
            x, y = drawn
        region = self._closed(x, y) or self._lined(y) or self._barred(x, y) or self._tinted(x, y)
        if region is not None:
            return self._inside(region, x, y)
        if not cursor.visible:
            return Refusal("its cursor is hidden, and no frame is around it", y)
        return self._after_prompt(x, y)

    def _row(self, y: int) -> Sequence[str]:
        """Return the cells of a row; the right half of a wide character is empty."""
        if (cells := self._cells.get(y)) is None:
            columns = self._terminal.columns
            cells = self._rows[y] if y < len(self._rows) else " " * columns
            if len(cells) != columns:
                line = self._terminal.line(y)
                cells = [line.cell(x).text or ("" if x else " ") for x in range(columns)]
            self._cells[y] = cells
        return cells

    def _text(self, y: int, left: int = 0, right: int | None = None) -> str:
        return "".join(self._row(y)[left:right])

    def _drawn_cursor(self) -> tuple[int, int] | None:
        """Return the one reversed cell on the screen: programs that hide the cursor draw it so."""
        found: tuple[int, int] | None = None
        screen = self._terminal.screen
        for y in range(screen.lines):
            row = screen.rows[y]
            if not (row.spans if row.cells is None else any(row.styles)):
                continue
            line, run = self._terminal.line(y), 0
            if not any(style.reverse for _, style, _ in line.coded_runs()):
                continue  # looking at each cell takes a hundred times as long
            for x in range(screen.columns + 1):
                cell = line.cell(x) if x < screen.columns else None
                if cell is not None and cell.style.reverse:
                    run += bool(cell.text)
                    continue
                if run == 1 and found is not None:
                    return None
                if run == 1:
                    found = next(at for at in range(x - 1, -1, -1) if line.cell(at).text), y
                run = 0
        return found

    def _block_cursor(self) -> tuple[int, int] | None:
        """Return the one block on the screen: some programs draw their cursor as a character."""
        for block in _BLOCKS:
            rows = [y for y, row in enumerate(self._rows) if block in row]
            if len(rows) == 1 and self._rows[rows[0]].count(block) == 1:
                return next(x for x, cell in enumerate(self._row(rows[0])) if cell == block), rows[0]
        return None

    # regions around the cursor

    def _closed(self, x: int, y: int) -> _Region | None:
        for left in range(x - 1, -1, -1):
            if self._row(y)[left] not in _SIDES:
                continue
            top, bottom = self._span(left, y)
            if not (self._is_edge(top - 1, left) and self._is_edge(bottom + 1, left)):
                continue
            right = next(
                (
                    column
                    for column in range(self._terminal.columns - 1, x, -1)
                    if self._at(top - 1, column) in _CORNERS
                    and all(self._at(row, column) in _SIDES for row in range(top, bottom + 1))
                ),
                self._terminal.columns,
            )
            return _Region("a frame", top, bottom, left + 1, right, 1)
        return None

    def _lined(self, y: int) -> _Region | None:
        top = next((row for row in range(y - 1, -1, -1) if self._is_line(row)), None)
        bottom = next((row for row in range(y + 1, len(self._rows)) if self._is_line(row)), None)
        if top is None or bottom is None or self._is_line(y):
            return None
        return _Region("two lines", top + 1, bottom - 1, 0, self._terminal.columns, 1)

    def _barred(self, x: int, y: int) -> _Region | None:
        text = self._text(y)
        left = len(text) - len(text.lstrip())
        if left >= x or text[left] not in _SIDES or text[left] == "|":
            return None
        top, bottom = self._span(left, y)
        return _Region("a bar at the left", top, bottom, left + 1, self._terminal.columns)

    def _tinted(self, x: int, y: int) -> _Region | None:
        tint = self._tint(x, y)
        if tint == _DEFAULT_BACKGROUND:
            return None
        left, right, top, bottom = x, x + 1, y, y
        while left > 0 and self._tint(left - 1, y) == tint:
            left -= 1
        while right < self._terminal.columns and self._tint(right, y) == tint:
            right += 1
        while top > 0 and self._tint(x, top - 1) == tint:
            top -= 1
        while bottom + 1 < self._terminal.lines and self._tint(x, bottom + 1) == tint:
            bottom += 1
        if right - left < _MIN_WIDTH or bottom - top + 1 > self._terminal.lines // 2:
            return None  # a mark, or the background of everything
        return _Region("a background", top, bottom, left, right)

    def _span(self, column: int, y: int) -> tuple[int, int]:
        top = bottom = y
        while top > 0 and self._at(top - 1, column) in _SIDES:
            top -= 1
        while bottom + 1 < len(self._rows) and self._at(bottom + 1, column) in _SIDES:
            bottom += 1
        return top, bottom

    def _at(self, y: int, x: int) -> str:
        return self._row(y)[x] if 0 <= y < self._terminal.lines else ""

    def _is_edge(self, y: int, left: int) -> bool:
        beside = self._at(y, left + 1) if left + 1 < self._terminal.columns else ""
        return self._at(y, left) in _CORNERS and beside in _LINES

    def _is_line(self, y: int) -> bool:
        return _LINE.match(self._text(y)) is not None

    def _tint(self, x: int, y: int) -> int:
        style = self._terminal.cell(x, y).style
        return style.fg if style.reverse else style.bg

    # what is in them

    def _inside(self, region: _Region, x: int, y: int) -> Box | Refusal:
        first = next(
            (
                row
                for row in range(region.top, region.bottom + 1)
                if self._text(row, region.left, region.right).strip()
            ),
            None,
        )
        if first is None and (x - region.left > _INDENT or region.bottom - region.top >= _BLANK_ROWS):
            return Refusal(f"nothing in {region.found_by} at its cursor shows where a draft begins", y)
        column, prompt = region.left, ""
        if first is None or first > y:
            first, column = y, x  # blank, or text only below the cursor: a draft
        else:
            text = self._text(first, region.left, region.right)
            indent = len(text) - len(text.lstrip())
            sign = _SIGN.match(text, indent) or _FRAMED_SIGN.match(text, indent)
            if sign is not None:
                column, prompt = self._behind(region.left + sign.end(), first, x, y), text[: sign.end()]
            elif first == y and not self._text(y, region.left, x).strip():
                column = x
        return Box(
            region.top,
            region.bottom,
            first,
            region.bottom,
            column,
            found_by=region.found_by,
            frame=(region.frame, region.frame),
            prompt=prompt,
            left=region.left,
            right=region.right,
            cursor=(x, y),
        )

    def _behind(self, end: int, first: int, x: int, y: int) -> int:
        """Return the column behind a prompt: after one blank, unless the cursor is right behind its sign."""
        return end if (x, y) == (end, first) else end + 1

    # a prompt without a frame

    def _after_prompt(self, x: int, y: int) -> Box | Refusal:
        at = self._prompt_row(x, y)
        if at is None:
            if _SHELL.match(self._text(y, 0, x)):
                return Refusal("the prompt looks like a shell's, which would run the message", y)
            return Refusal("neither a frame nor a prompt such as '> ' is at its cursor", y)
        text = self._text(at)
        indent = len(text) - len(text.lstrip())
        sign = _SIGN.match(text, indent)
        assert sign is not None
        prompt = text[: sign.end()]
        first = at
        while first > 0 and self._text(first - 1).startswith(prompt):
            first -= 1
        while first < at and not self._text(first, sign.end()).strip():
            first += 1
        if first > 0 and _ASKS.search(self._text(first - 1).rstrip()):
            return Refusal("it is unclear whether the row over the prompt asks for something", first - 1)
        column = self._behind(sign.end(), first, x, y)
        last = y
        for row in range(y + 1, len(self._rows)):
            below = self._text(row)
            if below.strip() and not self._marked(row) and (row == last + 1 or not below[:column].strip()):
                last = row
        return Box(
            first,
            last,
            first,
            last,
            column,
            found_by="a prompt",
            prompt=prompt,
            right=self._terminal.columns,
            cursor=(x, y),
        )

    def _prompt_row(self, x: int, y: int) -> int | None:
        for row in range(y, -1, -1):
            text = self._text(row)
            indent = len(text) - len(text.lstrip())
            sign = _SIGN.match(text, indent) if indent <= 4 else None
            if sign is not None:
                rest = range(row + 1, y + 1)
                known = all(self._continued(at, sign.end() + 1) for at in rest)
                inside = x >= sign.end() if row == y else bool(self._text(y).strip()) or x > sign.end()
                return row if known and inside else None
            if row < y - self._terminal.lines or not self._continued(row, 2):
                return None
        return None

    def _continued(self, y: int, width: int) -> bool:
        """Whether a row may be a draft's, below its first one: indented, with a prompt, or wrapped."""
        text = self._text(y)
        if not text[:width].strip() or _DOTS.match(text):
            return True
        return y > 0 and len(self._text(y - 1).rstrip()) >= self._terminal.columns - 1

    def _marked(self, y: int) -> bool:
        """Whether a row is drawn unlike typed text: faint, or in reverse."""
        line = self._terminal.line(y)
        cells = (line.cell(x) for x in range(self._terminal.columns))
        return all(cell.style.reverse or faint(cell.style, _FAINT) for cell in cells if cell.text.strip())


# -- what is in the composer ---


def draft_texts(
    terminal: Terminal, rows: Sequence[str], rules: ComposerRules, box: Box, *, loose: bool = False
) -> list[str]:
    """Return the text of each row of the draft, without prompts and frames.

    `loose` leaves out more where no rules say what it is: continuation prompts, scroll bars, faint text.
    """
    if not rules.auto:
        return [
            _cut(
                row,
                rules.prompt if y == box.first and not box.scrolled else _prefix(row, rules, loose),
                rules,
            )
            for y in range(box.first, box.last + 1)
            for row in (rows[y] if y < len(rows) else "",)
        ]
    found = []
    width = max(0, box.column - box.left)
    for y in range(box.first, box.last + 1):
        line = terminal.line(y)
        cells = [line.cell(x) for x in range(box.left, box.right)]
        texts = [
            cell.text if cell.text and not (loose and faint(cell.style, _FAINT)) else " " if cell.text else ""
            for cell in cells
        ]
        if (
            box.cursor is not None
            and box.cursor[1] == y
            and 0 <= (x := box.cursor[0] - box.left) < len(texts)
        ):
            texts[x] = " " if texts[x] in _BLOCKS else texts[x]
        prefix = "".join(texts[:width])
        if y == box.first or not prefix.strip() or (box.prompt and prefix.startswith(box.prompt)):
            text = "".join(texts[width:])
        else:
            text = "".join(texts)
            if loose and (dots := _DOTS.match(text.lstrip())) is not None:
                text = text.lstrip()[dots.end() :]
        text = text.rstrip()
        found.append(text.rstrip(_BAR_MARKS).rstrip() if loose else text)
    return found


def _prefix(row: str, rules: ComposerRules, loose: bool) -> re.Pattern[str]:
    return rules.prompt if loose and _is_prompt(row, rules) and not _continues(row, rules) else rules.row


def _cut(row: str, prefix: re.Pattern[str], rules: ComposerRules) -> str:
    begins = prefix.match(row)
    text = row[begins.end() :] if begins is not None else row
    if rules.right is not None:
        end = rules.right.search(text)
        return (text[: end.start()] if end is not None else text).rstrip()
    text = text.rstrip()
    side = next((char for char in begins[0] if char in _DRAWN_SIDES), "") if begins is not None else ""
    return text.removesuffix(side).rstrip() if side else text


def cells(text: str) -> int:
    return sum(2 if ord(character) >= 0x1100 and _wide(character) else 1 for character in text)


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


_RGB = 1 << 24
# the 24 greys of the 256-colour palette, from rgb 8,8,8 in steps of 10 (xterm's 256colres)
_GREY_PALETTE = range(232, 256)
# A suggestion's grey is in this range; darker is text on a light screen, brighter on a dark one
_DARKEST, _BRIGHTEST = 0x50, 0xB8
_COLORLESS = 0x1A  # maximum difference between the channels of a grey
_FAINT = PlaceholderStyle(dim=True, grey=True)


def is_placeholder(terminal: Terminal, rules: ComposerRules, box: Box, texts: Sequence[str]) -> bool:
    style = rules.placeholder
    text = " ".join(texts).strip()
    if not text or box.scrolled:
        return False
    if box.cursor is not None and box.cursor != (box.column, box.first):
        return False
    if style.text is not None and not style.text.search(text):
        return False
    if not (style.dim or style.grey):
        return style.text is not None
    return all(faint(found, style) for found in _styles(terminal, box, texts))


def _styles(terminal: Terminal, box: Box, texts: Sequence[str]) -> Iterator[Style]:
    cursors = (box.cursor, (terminal.cursor.x, terminal.cursor.y))
    for y, text in enumerate(texts, box.first):
        # Texts of later rows may begin further left; what is drawn right of a text is a frame.
        for x in range(box.column, min(box.right, box.column + cells(text))):
            cell = terminal.cell(x, y)
            if cell.text.strip() and (x, y) not in cursors:
                yield cell.style


def faint(style: Style, wanted: PlaceholderStyle) -> bool:
    return (wanted.dim and style.dim) or (wanted.grey and _grey(style.fg))


def _grey(color: int) -> bool:
    if color == 8:  # bright black
        return True
    if color in _GREY_PALETTE:
        return _DARKEST <= 8 + 10 * (color - 232) <= _BRIGHTEST
    if color < _RGB:
        return False
    channels = (color >> 16 & 255, color >> 8 & 255, color & 255)
    return max(channels) - min(channels) < _COLORLESS and _DARKEST <= sum(channels) / 3 <= _BRIGHTEST
