"""Reads an agent's composer from the rendered screen: is it visible, is it empty, what does it contain.

Delivery depends on this reading, so anything doubtful reads as "not visible".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from synapse_tui.agents.profiles.profile import (
    ComposerRules,
    DialogKind,
    DialogRule,
    PlaceholderStyle,
    Profile,
)
from synapse_tui.terminal.damage import DamageTracker

if TYPE_CHECKING:
    from synapse_tui.terminal import Style, Terminal

_DEFAULT_BACKGROUND = -1
_MAX_HINTS = 8  # rows above a composer that are searched for hints
_FILLS = 8  # minimum rows of a composer that has pushed its frame off the top of the screen


@dataclass(frozen=True, slots=True)
class Box:
    top: int
    bottom: int
    first: int
    last: int
    column: int
    scrolled: bool = False


def find_box(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | None:
    """Find the composer that has the input focus, or None if that is not certain."""
    box = _framed(rows, rules) if rules.below is not None else _unframed(terminal, rows, rules)
    if box is None or (rules.cursor and not has_cursor(terminal, box)):
        return None
    below = "\n".join(row.rstrip() for row in rows[box.top :])
    return None if any(pattern.search(below) for pattern in rules.absent) else box


def end_of_conversation(rows: Sequence[str], box: Box, rules: ComposerRules) -> int:
    end = box.top
    for place in range(box.top - 1, max(-1, box.top - 1 - _MAX_HINTS), -1):
        row = rows[place].rstrip()
        if any(pattern.search(row) for pattern in rules.hints):
            end = place
        elif row and not (rules.above is not None and rules.above.search(row)):
            break
    return end


def has_cursor(terminal: Terminal, box: Box) -> bool:
    return box.first <= terminal.cursor.y <= box.last


def _framed(rows: Sequence[str], rules: ComposerRules) -> Box | None:
    under = 0
    for y in range(len(rows) - 1, 0, -1):
        if under > rules.footer:
            return None
        if rules.below is not None and rules.below.match(rows[y]):
            box = _above(rows, rules, y - 1)
            if box is not None:
                return box
        under += bool(rows[y].strip())
    return None


def _above(rows: Sequence[str], rules: ComposerRules, bottom: int) -> Box | None:
    top = bottom + 1
    while top > 0 and (rules.row.match(rows[top - 1]) or rules.prompt.match(rows[top - 1])):
        if rules.above is not None and rules.above.match(rows[top - 1]):
            break
        top -= 1
    if rules.above is not None and not _begins_at(rows, rules, top, bottom):
        return None
    first, last = top + rules.margin[0], bottom - rules.margin[1]
    if first > last:
        return None
    return _body(rows, rules, top, bottom, first, last)


def _begins_at(rows: Sequence[str], rules: ComposerRules, top: int, bottom: int) -> bool:
    if top == 0:
        return bottom + 1 >= _FILLS and bool(rows[0].strip())
    return rules.above is not None and rules.above.match(rows[top - 1]) is not None


def _body(
    rows: Sequence[str], rules: ComposerRules, top: int, bottom: int, first: int, last: int
) -> Box | None:
    prompt = rules.prompt.match(rows[first])
    if prompt is not None:
        return Box(top, bottom, first, last, prompt.end())
    if last - first < 2:
        return None
    prefix = rules.row.match(rows[first])
    return Box(top, bottom, first, last, prefix.end() if prefix is not None else 0, scrolled=True)


def _unframed(terminal: Terminal, rows: Sequence[str], rules: ComposerRules) -> Box | None:
    for y in range(len(rows) - 1, -1, -1):
        prompt = rules.prompt.match(rows[y])
        if prompt is None:
            continue
        last = _last_row(terminal, rows, rules, y)
        if sum(bool(row.strip()) for row in rows[last + 1 :]) > rules.footer:
            return None
        return Box(y, last, y, last, prompt.end())
    return None


def _last_row(terminal: Terminal, rows: Sequence[str], rules: ComposerRules, first: int) -> int:
    background = terminal.cell(0, first).style.bg
    last = first
    if rules.background and background != _DEFAULT_BACKGROUND:
        while last + 1 < terminal.lines and terminal.cell(0, last + 1).style.bg == background:
            last += 1
        while last > first and (last >= len(rows) or not rows[last].strip()) and terminal.cursor.y < last:
            last -= 1
        return last
    footer = len(rows)
    while footer > first + 1 and rows[footer - 1].strip():
        footer -= 1
    last = footer - 1
    while last > first and not rows[last].strip() and terminal.cursor.y < last:
        last -= 1
    return max(last, first)


_MARKS = "❯›▶▸➤→●◉>"
_ROW = re.compile(rf"^[ \xa0│┃║|]*(?:(?P<mark>[{_MARKS}]) +)?(?P<text>(?:(?P<number>\d+)[.)] +)?\S.*)")
_CHOICE_PROMPT = re.compile(rf"[ \xa0│┃║|]*[{_MARKS}][ \xa0│┃║|]*")
_QUESTION = re.compile(r"\W*(\w.*[?？])")
_GRANTS = re.compile(r"\b(?:yes|no|allow|approve|accept|deny|reject|trust|proceed)\b", re.IGNORECASE)
_TAIL = 40
_FOOTER = 6  # maximum rows of text below the choices


@dataclass(frozen=True, slots=True)
class Choices:
    kind: DialogKind  # `permission` if one of the choices is a yes or a no
    title: str  # nearest question above the choices; may be empty


def find_choices(
    rows: Sequence[str], cursor: tuple[int, int], *, numbered: bool, prompts: bool = False
) -> Choices | None:
    """Find the focused list of choices; only for screens without the cursor in a composer."""
    x, y = cursor
    for place in range(len(rows) - 1, max(-1, len(rows) - 1 - _TAIL), -1):
        row = _ROW.match(rows[place])
        if row is None or row["mark"] is None:
            numbered = numbered and not (prompts and _CHOICE_PROMPT.fullmatch(rows[place]))
            continue
        if (row.start("mark"), place) != (x, y) and not (numbered and row["number"]):
            numbered = numbered and not prompts
            continue
        found = _choices(rows, place, row)
        if len(found) > 1 and sum(bool(below.strip()) for below in rows[found[-1] + 1 :]) <= _FOOTER:
            grants = any(_GRANTS.search(rows[choice]) for choice in found)
            return Choices("permission" if grants else "question", _choices_title(rows, found[0]))
    return None


def _choices(rows: Sequence[str], place: int, marked: re.Match[str]) -> list[int]:
    column, found = marked.start("text"), [place]
    for step in (-1, 1):
        number, blanks = int(marked["number"] or 0), 0
        other = place + step
        while 0 <= other < len(rows) and blanks < 2:
            row = _ROW.match(rows[other])
            blanks = blanks + 1 if row is None else 0
            if row is not None and row.start("text") < column:
                break
            if row is not None and row.start("text") == column:
                number += step
                if row["mark"] is not None:
                    return []
                if marked["number"] and row["number"] != str(number):
                    break
                found.append(other)
            other += step
    return sorted(found)


def _choices_title(rows: Sequence[str], first: int) -> str:
    for row in reversed(rows[max(0, first - _TAIL) : first]):
        if question := _QUESTION.match(row):
            return " ".join(question[1].split())
    return ""


_RGB = 1 << 24
# the 24 greys of the 256-colour palette, from rgb 8,8,8 in steps of 10 (xterm's 256colres)
_GREY_PALETTE = range(232, 256)
# A suggestion's grey is in this range; darker is text on a light screen, brighter on a dark one
_DARKEST, _BRIGHTEST = 0x50, 0xB8
_COLORLESS = 0x1A  # maximum difference between the channels of a grey


def is_placeholder(terminal: Terminal, rules: ComposerRules, box: Box, texts: Sequence[str]) -> bool:
    style = rules.placeholder
    text = " ".join(texts).strip()
    if not text or box.scrolled:
        return False
    if rules.cursor and (terminal.cursor.x, terminal.cursor.y) != (box.column, box.first):
        return False
    if style.text is not None and not style.text.search(text):
        return False
    return all(_faint(found, style) for found in _styles(terminal, box))


def _styles(terminal: Terminal, box: Box) -> Iterator[Style]:
    cursor = terminal.cursor
    for y in range(box.first, box.last + 1):
        for x in range(box.column, terminal.columns):
            cell = terminal.cell(x, y)
            if cell.text.strip() and (x, y) != (cursor.x, cursor.y):
                yield cell.style


def _faint(style: Style, wanted: PlaceholderStyle) -> bool:
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


class Change(NamedTuple):
    text: bool
    any: bool


class ScreenText:
    """Caches the text of one screen; a different terminal is read from scratch."""

    def __init__(self) -> None:
        self.rows: Sequence[str] = ()  # rows up to the last one with text, padded to the screen width
        self._terminal: Terminal | None = None
        self._tracker: DamageTracker | None = None
        self._all: list[str] = []
        self._stripped: list[str] = []
        self._from: dict[int, str] = {}

    @classmethod
    def of(cls, terminal: Terminal) -> ScreenText:
        text = cls()
        text.take(terminal)
        return text

    def take(self, terminal: Terminal) -> Change:
        if self._tracker is None or terminal is not self._terminal:
            self._terminal = terminal
            self._tracker = DamageTracker(terminal.screen, scrolls=False)
            self._all = []
        damage = self._tracker.take()
        text = self._read(terminal, damage.rows)
        if text:
            last = len(self._all)
            while last and not self._stripped[last - 1]:
                last -= 1
            self.rows = self._all[:last]
            self._from.clear()
        return Change(text, bool(damage))

    def _read(self, terminal: Terminal, rows: frozenset[int]) -> bool:
        screen = terminal.screen
        changed = len(self._all) != screen.lines
        if changed:
            self._all, self._stripped = [""] * screen.lines, [""] * screen.lines
            rows = frozenset(range(screen.lines))
        for y in rows:
            text = screen.rows[y].content(screen.columns)
            if text != self._all[y]:
                self._all[y], self._stripped[y] = text, text.rstrip()
                changed = True
        return changed

    def tail(self, count: int, first: int = 0) -> str:
        start = max(first, len(self.rows) - count)
        text = self._from.get(start)
        if text is None:
            text = self._from[start] = "\n".join(self._stripped[start : len(self.rows)])
        return text


CHOICES = "list of choices"  # name of dialogs that are recognized only by their structure
_WRAP_SLACK = 4  # maximum free cells at the end of a wrapped row
_TITLE_LENGTH = 200
_LONG_PASTE = 200  # shorter pastes are never replaced by a placeholder without numbers
_SCROLLED_ROWS = 3  # minimum rows that a composer shows of a long draft's end


@dataclass(frozen=True, slots=True)
class ComposerReading:
    visible: bool
    draft: str = ""
    rows: int = 0  # screen rows of the draft
    placeholder: bool = False
    dialog: bool = False
    dialog_name: str = ""  # name of the matching rule; empty without a dialog
    dialog_kind: DialogKind = "permission"
    dialog_title: str = ""  # the agent's question; may be empty
    pastes: tuple[re.Pattern[str], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the composer is visible and empty: only then may a message be typed."""
        return self.visible and not self.draft

    def shows(self, text: str) -> bool:
        """Whether the composer contains exactly this text, or the agent's placeholder for its paste.

        White space is ignored, since agents wrap. A scrolling composer may show only the end of the text.
        """
        if not self.visible or not self.draft:
            return False
        shown, wanted = _squash(self.draft), _squash(text)
        if shown == wanted:
            return True
        if self.rows >= _SCROLLED_ROWS and wanted.endswith(shown):
            return True
        return any(_stands_for(pattern, self.draft, text) for pattern in self.pastes)


class ComposerReader:
    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._seen: object = None
        self._reading = ComposerReading(visible=False)

    def read(self, terminal: Terminal, text: ScreenText) -> ComposerReading:
        if terminal.modes.synchronized:
            return ComposerReading(visible=False)  # half a frame proves nothing
        rules = self._profile.composer
        box = find_box(terminal, text.rows, rules) if rules is not None else None
        asked = _dialog(self._profile.dialogs, text, box)
        if asked is not None:
            rule, title = asked
            return ComposerReading(
                visible=False, dialog=True, dialog_name=rule.name, dialog_kind=rule.kind, dialog_title=title
            )
        if box is None or rules is None:
            if not self._profile.receives:
                return ComposerReading(visible=False)  # a shell: menus in it belong to the user
            cursor = terminal.cursor.x, terminal.cursor.y
            numbered = rules is not None or not terminal.modes.cursor_visible
            return _unknown(find_choices(text.rows, cursor, numbered=numbered, prompts=rules is None))
        return self._read(terminal, text, rules, box)

    def _read(self, terminal: Terminal, text: ScreenText, rules: ComposerRules, box: Box) -> ComposerReading:
        rows = terminal.screen.rows[box.first : box.last + 1]
        cursor = terminal.cursor
        seen = (box, terminal.columns, cursor.x, cursor.y, rows, [row.stamp for row in rows])
        if seen != self._seen:
            self._seen = seen
            self._reading = _read(terminal, text.rows, rules, box)
        return self._reading


def read_composer(terminal: Terminal, profile: Profile) -> ComposerReading:
    return ComposerReader(profile).read(terminal, ScreenText.of(terminal))


def screen_rows(terminal: Terminal) -> list[str]:
    return list(ScreenText.of(terminal).rows)


def _dialog(
    rules: Sequence[DialogRule], screen: ScreenText, box: Box | None
) -> tuple[DialogRule, str] | None:
    """Return the dialog on the screen and its title.

    If a composer has the cursor, only what is in or below it can be a dialog: the conversation above may
    quote one.
    """
    first = box.top if box is not None else 0
    for rule in rules:
        text = screen.tail(rule.tail, first)
        if all(pattern.search(text) for pattern in rule.screen):
            return rule, _title(rule, text)
    return None


def _unknown(choices: Choices | None) -> ComposerReading:
    if choices is None:
        return ComposerReading(visible=False)
    return ComposerReading(
        visible=False,
        dialog=True,
        dialog_name=CHOICES,
        dialog_kind=choices.kind,
        dialog_title=choices.title[:_TITLE_LENGTH],
    )


def _title(rule: DialogRule, text: str) -> str:
    parts: list[str] = []
    for pattern in rule.title:
        found = list(pattern.finditer(text))
        if found:
            parts.append(" ".join(found[-1].group(found[-1].lastindex or 0).split()))
    return " · ".join(part for part in parts if part)[:_TITLE_LENGTH]


def _read(terminal: Terminal, rows: Sequence[str], rules: ComposerRules, box: Box) -> ComposerReading:
    texts = [
        _cut(rows[y] if y < len(rows) else "", rules, first=y == box.first and not box.scrolled)
        for y in range(box.first, box.last + 1)
    ]
    if is_placeholder(terminal, rules, box, texts):
        return ComposerReading(visible=True, placeholder=True, pastes=rules.pastes)
    draft = _join(texts, terminal.columns - box.column)
    if not draft and rules.cursor and terminal.cursor.y == box.first and terminal.cursor.x > box.column:
        draft = " " * (terminal.cursor.x - box.column)  # blanks show only in the cursor's position
    return ComposerReading(visible=True, draft=draft, rows=len(texts), pastes=rules.pastes)


def _cut(row: str, rules: ComposerRules, *, first: bool) -> str:
    prefix = (rules.prompt if first else rules.row).match(row)
    text = row[prefix.end() :] if prefix is not None else row
    end = rules.right.search(text) if rules.right is not None else None
    return (text[: end.start()] if end is not None else text).rstrip()


def _join(texts: Sequence[str], width: int) -> str:
    joined = ""
    for index, text in enumerate(texts):
        if index:
            joined += _seam(texts[index - 1], text, width)
        joined += text
    return joined


def _seam(before: str, after: str, width: int) -> str:
    words = after.split(maxsplit=1)
    if not before or not words:
        return "\n"
    free = width - _cells(before)
    if _cells(words[0]) >= width - _WRAP_SLACK and free <= _WRAP_SLACK:
        return ""
    return " " if free <= _cells(words[0]) + _WRAP_SLACK else "\n"


def _cells(text: str) -> int:
    return sum(2 if ord(character) >= 0x1100 and _wide(character) else 1 for character in text)


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _squash(text: str) -> str:
    return "".join(text.split())


def _stands_for(pattern: re.Pattern[str], draft: str, text: str) -> bool:
    found = pattern.fullmatch(" ".join(draft.split()))
    if found is None:
        return False
    lines = text.count("\n") + 1
    wanted = {"lines": (lines,), "more": (lines - 1,), "chars": (len(text), len(text.encode()))}
    numbers = {name: int(number) for name, number in found.groupdict().items() if number is not None}
    if not numbers:
        return len(text) >= _LONG_PASTE
    return all(number in wanted[name] for name, number in numbers.items() if name in wanted)


# minimum characters that a composer must show of the end of a text that does not fit
WINDOW = 40
HEAD = 20
TAIL = 8
# characters per lost or extra one, if characters of disputed width are near
MOST_LOST = 4
ALIKE = 4  # matching characters needed to continue after a gap; fewer only at the end
_GAP = 8  # maximum lost or extra characters in one place
_STEPS = sorted(
    ((more, less) for more in range(_GAP + 1) for less in range(_GAP + 1) if more or less),
    key=lambda step: (sum(step), max(step)),
)
# categories that agents and terminals lay out differently (white space, emoji, invisible characters)
_UNSTABLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "So", "Sk", "Zl", "Zp", "Zs"})


# categories that joined emoji and combining marks consist of
_DISPUTED = frozenset({"Cf", "Mc", "Me", "Mn", "Sk", "So"})
_PROMPT_SIGN = re.compile(r"^[^\w\[]*")


class _Stable(dict[int, int | None]):
    """Cached map from characters to themselves, or to nothing if they are not drawn alike everywhere."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        drop = unicodedata.category(char) in _UNSTABLE or "\ufe00" <= char <= "\ufe0f"
        self[code] = None if drop else code
        return self[code]


_STABLE = _Stable()


def skeleton(text: str) -> str:
    """Return what every agent draws alike: NFC, without white space, symbols and invisible characters."""
    return unicodedata.normalize("NFC", text).translate(_STABLE)


class Proof:
    """Decides whether a composer contains a text.

    Characters whose width is disputed between agent and terminal (joined emoji, marks) may damage their
    neighbours. From the first such character on, a few characters may be lost or extra; everything before it,
    most of the rest and the end must match.
    """

    def __init__(self, text: str, pastes: Sequence[re.Pattern[str]] = ()) -> None:
        self.text = text
        self._pastes = pastes
        self._want = skeleton(text)
        self._certain = _certain(text)

    def stands(self, draft: str) -> bool:
        """Whether a draft is the text, or as much of it as the composer shows.

        The composer was empty and the user's keys are held, so the draft can only be our text, a partly drawn
        text, or something of the agent's.
        """
        if self._is(draft):
            return True
        got = skeleton(draft)
        return (
            _cut_in_the_middle(got, self._want)
            or _cut_at_the_end(got, self._want)
            or _laid_out_apart(got, self._want, self._certain)
        )

    def restored(self, draft: str) -> bool:
        """Whether a draft is the text restored by the agent, without edits by the user."""
        return bool(skeleton(draft)) and self._is(draft)

    def begun(self, draft: str, screen: str) -> bool:
        head = self._want[:HEAD]
        if not head:
            return False
        got = skeleton(draft)
        if got.startswith(head) or (len(got) >= WINDOW and got in self._want):
            return True
        return not draft and any(
            skeleton(_PROMPT_SIGN.sub("", row)).startswith(head) for row in screen.split("\n")
        )

    def on(self, screen: str) -> bool:
        return self._want in skeleton(screen)

    def _is(self, draft: str) -> bool:
        pieces, found = _split(draft, self._pastes)
        want = self._want
        if not found:
            got = skeleton(draft)
            if not got:
                return bool(draft.strip()) and draft.split() == self.text.split()
            return got == want or (len(got) >= WINDOW and want.endswith(got))
        first, *middle, last = (skeleton(piece) for piece in pieces)
        if not any((first, *middle, last)):
            return len(found) > 1 or _counts(found[0], self.text)
        return want.startswith(first) and want.endswith(last) and all(piece in want for piece in middle)


def _cut_in_the_middle(got: str, want: str) -> bool:
    return len(want) > HEAD + TAIL and got[:HEAD] == want[:HEAD] and got[-TAIL:] == want[-TAIL:]


def _cut_at_the_end(got: str, want: str) -> bool:
    shown = got.removesuffix("…")
    return HEAD <= len(shown) < len(got) and want.startswith(shown)


def _certain(text: str) -> int:
    first = next((place for place, char in enumerate(text) if _disputed(char)), len(text))
    return len(skeleton(text[: max(0, first - 1)])) if first < len(text) else len(text)


def _disputed(char: str) -> bool:
    return char > "\u02ff" and unicodedata.category(char) in _DISPUTED


def _laid_out_apart(got: str, want: str, certain: int) -> bool:
    """Whether two texts are equal except for a few characters near ones of disputed width.

    Runs in linear time.
    """
    left = len(want) // MOST_LOST
    here = there = 0
    while here < len(got) and there < len(want):
        if got[here] == want[there]:
            here, there = here + 1, there + 1
            continue
        step = next((step for step in _STEPS if _alike(got, here + step[0], want, there + step[1])), None)
        if there < certain or step is None or max(step) > left:
            return False
        here, there, left = here + step[0], there + step[1], left - max(step)
    return bool(want) and here == len(got) and there == len(want)


def _alike(got: str, here: int, want: str, there: int) -> bool:
    following = got[here : here + ALIKE]
    return bool(following) and following == want[there : there + ALIKE]


def _split(draft: str, pastes: Sequence[re.Pattern[str]]) -> tuple[list[str], list[re.Match[str]]]:
    found = sorted((match for pattern in pastes for match in pattern.finditer(draft)), key=re.Match.start)
    pieces, place, kept = [], 0, []
    for match in found:
        if match.start() < place:
            continue
        pieces.append(draft[place : match.start()])
        place = match.end()
        kept.append(match)
    pieces.append(draft[place:])
    return pieces, kept


def _counts(match: re.Match[str], text: str) -> bool:
    groups = {name: value for name, value in match.groupdict().items() if value}
    breaks = text.count("\n")
    if "more" in groups:
        return abs(int(groups["more"]) - breaks) <= 1
    if "lines" in groups:
        return abs(int(groups["lines"]) - breaks - 1) <= 1
    if "chars" in groups:
        lengths = (len(text), len(text.encode("utf-16-le")) // 2, len(text.encode()))
        return any(abs(int(groups["chars"]) - length) <= 4 for length in lengths)
    return True
