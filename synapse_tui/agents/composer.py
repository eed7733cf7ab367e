"""Reads an agent's composer from the rendered screen: is it visible, is it empty, what does it contain.

Delivery depends on this reading, so anything doubtful reads as "not visible".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.damage import DamageTracker

from .composer_box import (
    Box,
    Refusal,
    before_cursor,
    cells,
    draft_texts,
    find_composer,
    is_placeholder,
    without_prompt,
)
from .dialogs import AgentDialog, find_choices, may_ask, read_choices, read_dialog
from .profiles.profile import ComposerRules, DialogKind, Profile

if TYPE_CHECKING:
    from synapse_tui.terminal import Terminal


class TextChange(NamedTuple):
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

    def take(self, terminal: Terminal) -> TextChange:
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
        return TextChange(text, bool(damage))

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

    @property
    def stripped(self) -> Sequence[str]:
        """The rows without trailing blanks."""
        return self._stripped[: len(self.rows)]

    def tail(self, count: int, first: int = 0) -> str:
        start = max(first, len(self.rows) - count)
        text = self._from.get(start)
        if text is None:
            text = self._from[start] = "\n".join(self._stripped[start : len(self.rows)])
        return text


_HALF = Refusal("a frame is being drawn")
_WRAP_SLACK = 4  # maximum free cells at the end of a wrapped row
_LONG_PASTE = 200  # shorter pastes are never replaced by a placeholder without numbers
_SCROLLED_ROWS = 3  # minimum rows that a composer shows of a long draft's end


@dataclass(frozen=True, slots=True)
class ComposerReading:
    visible: bool
    draft: str = ""
    rows: int = 0  # screen rows of the draft
    placeholder: bool = False
    dialog: AgentDialog | None = None
    pastes: tuple[re.Pattern[str], ...] = ()
    box: Box | None = None  # where it is; None if it is not visible
    refusal: Refusal | None = None  # why it is not visible; None without rules, or under a dialog
    # what may be the draft as well, if no rules say what is drawn around it: only a proof can tell
    others: tuple[str, ...] = ()
    # the screen up to the cursor, if no rules say where the composer is and it was not recognised
    before_cursor: str = ""

    @property
    def dialog_name(self) -> str:
        """Name of the dialog's rule; empty without a dialog."""
        return self.dialog.name if self.dialog is not None else ""

    @property
    def dialog_kind(self) -> DialogKind:
        return self.dialog.kind if self.dialog is not None else "permission"

    @property
    def dialog_title(self) -> str:
        """The agent's question; may be empty."""
        return self.dialog.title if self.dialog is not None else ""

    @property
    def vi_normal(self) -> bool:
        """Whether keys are commands: the composer is in the normal mode of vi."""
        return self.box is not None and self.box.vi_normal

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
    """Reads the composer of one agent.

    `fresh` says that the agent has got no key yet. Without rules, rows that are in its composer then, behind
    the cursor, are suggestions and status rows; they are no draft later either.
    """

    def __init__(self, profile: Profile, *, fresh: bool = False) -> None:
        self._profile = profile
        self._fresh = fresh
        self._untouched: set[str] = set()
        self._seen: object = None
        self._reading = ComposerReading(visible=False)

    def touched(self) -> None:
        """Note that the agent gets keys: from now on its composer may have a draft."""
        self._fresh = False

    def read(self, terminal: Terminal, text: ScreenText) -> ComposerReading:
        if terminal.modes.synchronized:
            return ComposerReading(visible=False, refusal=_HALF)  # half a frame proves nothing
        rules = self._profile.composer
        found = find_composer(terminal, text.rows, rules) if rules is not None else None
        box = found if isinstance(found, Box) else None
        refusal = found if isinstance(found, Refusal) else None
        dialog = self._dialog(terminal, text, box)
        if dialog is not None:
            return ComposerReading(visible=False, dialog=dialog)
        if box is not None and rules is not None:
            reading = self._read(terminal, text, rules, box)
            shown = reading.draft or (reading.placeholder and self._untouched)
            menu = _choices_in(terminal, text, box) if rules.auto and shown else None
            return reading if menu is None else ComposerReading(visible=False, dialog=menu)
        if not self._profile.receives:
            return ComposerReading(visible=False)  # a shell: menus in it belong to the user
        cursor = terminal.cursor.x, terminal.cursor.y
        numbered = rules is not None or not terminal.modes.cursor_visible
        choices = find_choices(text.rows, cursor, numbered=numbered, prompts=rules is None)
        if choices is not None:
            dialog = read_choices(choices, text.stripped, terminal)
            return ComposerReading(visible=False, dialog=dialog)
        before = before_cursor(terminal, text.rows) if rules is not None and rules.auto else ""
        return ComposerReading(visible=False, refusal=refusal, before_cursor=before)

    def _dialog(self, terminal: Terminal, text: ScreenText, box: Box | None) -> AgentDialog | None:
        """Return the dialog on the screen.

        If a composer has the cursor, only what is in or below it can be a dialog: the conversation above may
        quote one.
        """
        first = box.top if box is not None else 0
        for rule in self._profile.dialogs:
            shown = text.tail(rule.tail, first)
            if all(pattern.search(shown) for pattern in rule.screen):
                return read_dialog(rule, text.stripped, terminal, first=first)
        return None

    def _read(self, terminal: Terminal, text: ScreenText, rules: ComposerRules, box: Box) -> ComposerReading:
        rows = terminal.screen.rows[box.first : box.last + 1]
        cursor = terminal.cursor
        seen = (box, terminal.columns, cursor.x, cursor.y, rows, [row.stamp for row in rows])
        if seen != self._seen:
            self._seen = seen
            if self._fresh and rules.auto and box.cursor in (None, (box.column, box.first)):
                shown = [row for row in draft_texts(terminal, text.rows, rules, box) if row.strip()]
                if not any(may_ask(row) for row in shown):
                    self._untouched.update(map(_squash, shown))
            self._reading = _read(terminal, text.rows, rules, box, self._untouched)
        return self._reading


@dataclass(frozen=True, slots=True)
class ComposerExplanation:
    """What is read of a composer, for the author of a profile; rows and columns count from 0."""

    rules: str  # `profile`, `auto`, or `none`
    reading: ComposerReading
    rows: Sequence[str]  # the screen down to its last row with text
    cursor: tuple[int, int]  # column and row
    cursor_visible: bool

    def part(self, row: int) -> str:
        """Return what a row is: `draft`, `suggestion`, `padding`, `frame`; empty outside the composer."""
        box = self.reading.box
        if box is None or not box.outer <= row <= box.end:
            return ""
        if box.first <= row < box.first + max(1, self.reading.rows):
            return "suggestion" if self.reading.placeholder else "draft"
        return "padding" if box.top <= row <= box.bottom else "frame"


def explain_composer(
    terminal: Terminal, profile: Profile, reader: ComposerReader | None = None
) -> ComposerExplanation:
    text, rules, cursor = ScreenText.of(terminal), profile.composer, terminal.cursor
    reading = (reader or ComposerReader(profile)).read(terminal, text)
    drawn = reading.box.cursor if reading.box is not None else None
    return ComposerExplanation(
        "none" if rules is None else "auto" if rules.auto else "profile",
        reading,
        text.rows,
        drawn or (cursor.x, cursor.y),
        cursor.visible,
    )


def read_composer(terminal: Terminal, profile: Profile) -> ComposerReading:
    return ComposerReader(profile).read(terminal, ScreenText.of(terminal))


def screen_rows(terminal: Terminal) -> list[str]:
    return list(ScreenText.of(terminal).rows)


def _choices_in(terminal: Terminal, text: ScreenText, box: Box) -> AgentDialog | None:
    """Find choices in what looks like a composer with a draft, if no rules say that it is one."""
    cursor = box.cursor or (terminal.cursor.x, terminal.cursor.y)
    found = find_choices(text.rows, cursor, numbered=not terminal.modes.cursor_visible)
    return read_choices(found, text.stripped, terminal) if found is not None else None


def _read(
    terminal: Terminal,
    rows: Sequence[str],
    rules: ComposerRules,
    box: Box,
    untouched: AbstractSet[str] = frozenset(),
) -> ComposerReading:
    texts = _without_status(draft_texts(terminal, rows, rules, box), box, untouched)
    if _is_untouched(texts, box, untouched) or is_placeholder(terminal, rules, box, texts):
        shown = _end_of_draft(texts, box)
        return ComposerReading(visible=True, placeholder=True, rows=shown, pastes=rules.pastes, box=box)
    texts = texts[: _end_of_draft(texts, box)]
    width = (box.right if rules.auto else terminal.columns) - box.column
    draft = _join(texts, width)
    others: tuple[str, ...] = ()
    if (rules.auto or rules.below is None) and draft:
        found = draft_texts(terminal, rows, rules, box, loose=True)
        loose = _join(_without_status(found, box, untouched), width).rstrip()
        others = (loose,) if loose != draft else ()
    if not draft and box.cursor is not None and box.cursor[1] == box.first and box.cursor[0] > box.column:
        draft = " " * (box.cursor[0] - box.column)  # blanks show only in the cursor's position
    return ComposerReading(
        visible=True, draft=draft, rows=len(texts), pastes=rules.pastes, box=box, others=others
    )


def _without_status(texts: list[str], box: Box, untouched: AbstractSet[str]) -> list[str]:
    """Leave out rows at the end, below the cursor, that stood there before any key."""
    end = len(texts)
    least = box.cursor[1] - box.first + 1 if box.cursor is not None else 1
    while untouched and end > least and (not texts[end - 1].strip() or _squash(texts[end - 1]) in untouched):
        end -= 1
    return texts[:end]


def _is_untouched(texts: Sequence[str], box: Box, untouched: AbstractSet[str]) -> bool:
    """Whether all that is behind the cursor stood there before any key."""
    shown = [_squash(text) for text in texts if text.strip()]
    return (
        bool(shown)
        and box.cursor in (None, (box.column, box.first))
        and all(row in untouched for row in shown)
    )


def _end_of_draft(texts: Sequence[str], box: Box) -> int:
    """Return the number of rows with text, and those down to the cursor; blank ones below are padding."""
    end = len(texts)
    least = box.cursor[1] - box.first + 1 if box.cursor is not None else 1
    while end > least and not texts[end - 1]:
        end -= 1
    return end


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
    free = width - cells(before)
    if cells(words[0]) >= width - _WRAP_SLACK and free <= _WRAP_SLACK:
        return ""
    return " " if free <= cells(words[0]) + _WRAP_SLACK else "\n"


def _squash(text: str) -> str:
    return "".join(text.split())


@lru_cache(maxsize=64)
def unspaced(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Return a pattern that matches without blanks: a narrow pane wraps a placeholder anywhere."""
    loose = re.sub(r"( |\\s)\+", r"\1*", pattern.pattern)
    try:
        return re.compile(re.sub(r" (?![*?{])", " ?", loose), pattern.flags)
    except re.error:
        return pattern


def _stands_for(pattern: re.Pattern[str], draft: str, text: str) -> bool:
    found = unspaced(pattern).fullmatch(_squash(draft))
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
LINE_EDITOR = 200  # the same where nothing shows where the composer begins
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

    def reads(self, reading: ComposerReading) -> bool:
        """Whether the composer contains the text, as far as it shows it."""
        if reading.dialog:
            return False
        if reading.visible:
            return any(map(self.stands, (reading.draft, *reading.others)))
        return bool(reading.before_cursor) and self.ends(reading.before_cursor)

    def contains(self, draft: str, least: int = 1) -> bool:
        """Whether a draft is a part of the text: each of its rows is, and together they are long enough."""
        parts = [
            part if part in self._want else skeleton(without_prompt(row) or row)
            for row in draft.split("\n")
            if (part := skeleton(row))
        ]
        return sum(map(len, parts)) >= max(1, least) and all(part in self._want for part in parts)

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
            skeleton(begins).startswith(head)
            for row in screen.split("\n")
            for begins in (_PROMPT_SIGN.sub("", row), without_prompt(row) or "")
        )

    def ends(self, before_cursor: str) -> bool:
        """Whether a screen up to the cursor ends with a prompt and the text, or with much of the text.

        A line editor writes a draft of several lines like any other output.
        """
        rows, got = before_cursor.split("\n"), ""
        for place in range(len(rows) - 1, -1, -1):
            first = without_prompt(rows[place])
            if first is not None and skeleton(first) + got == self._want:
                return bool(self._want)
            more = skeleton(rows[place]) + got
            if not self._want.endswith(more):
                break
            got = more
        return len(got) >= LINE_EDITOR

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
    """Return the pieces between placeholders, and those; a narrow pane may wrap a placeholder."""
    if not any(pattern.search(draft) for pattern in pastes):
        draft, pastes = _squash(draft), [unspaced(pattern) for pattern in pastes]
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
