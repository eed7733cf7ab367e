"""Dialogs on an agent's screen: where they are, what they ask, and their options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from hashlib import blake2s
from typing import TYPE_CHECKING, NamedTuple

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import join_rows

from .profiles.profile import DialogKind, DialogRule, key_bytes

if TYPE_CHECKING:
    from synapse_tui.terminal import Line, Terminal

CHOICES = "list of choices"  # name of dialogs that are recognized only by their structure
FLICKER = 0.15  # seconds for which a dialog may disappear while it is redrawn

_MARKS = "❯›▶▸➤→●◉>"
_ROW = re.compile(rf"^[ \xa0│┃║|]*(?:(?P<mark>[{_MARKS}]) +)?(?P<text>(?:(?P<number>\d+)[.)] +)?\S.*)")
_CHOICE_PROMPT = re.compile(rf"[ \xa0│┃║|]*[{_MARKS}][ \xa0│┃║|]*")
_QUESTION = re.compile(r"\W*(\w.*[?？])")
_GRANTS = re.compile(
    r"\b(?:yes|no|allow|approve|accept|deny|reject|trust|proceed)\b|はい|いいえ|許可|承認|拒否", re.IGNORECASE
)
_ASKS = re.compile(
    r"\b(?:y/n|press|hit)\b|\b(?:enter|return) to (?:continue|confirm|accept)\b", re.IGNORECASE
)
_TAIL = 40
_FOOTER = 6  # maximum rows of text below the choices
_TITLE_LENGTH = 200
_FRAME = re.compile(r"[\s─-╿▀-▟]*")
_SIDES = " \xa0│┃║|"
_CHECKBOX = re.compile(r"^(?:\[[ xX✓✔]?\]|[☐☑☒○◯◉✓✔]) +")
_SPINNER = re.compile("[⠀-⣿]")
_KEYED = re.compile(r"(?P<key>\S+) to (?P<words>\S.*)", re.IGNORECASE)
_GAP = re.compile(r" {2,}")
_SCROLLBAR = re.compile(r"(?<=\s)[█▓▒░▐▕]$")  # it comes and goes


class Option(NamedTuple):
    """One answer that a dialog offers.

    Attributes:
        words: As the agent words it, without its mark and number.
        number: The number that the agent shows, else its place; from 1.
        allows_once: It allows what is asked, this once and nothing else; at most one option does.
        denies: It denies what is asked; at most one option does.
        key: Name of the key that chooses it, if the agent names one; else the mark is moved to it.
    """

    words: str
    number: int
    allows_once: bool = False
    denies: bool = False
    key: str = ""

    @property
    def escape(self) -> bool:
        """Whether its words say that Escape chooses it: Enter may only begin a text there."""
        return _ESCAPE.search(self.words) is not None


@dataclass(frozen=True, slots=True)
class AgentDialog:
    """A dialog on the screen.

    Attributes:
        name: Name of the profile's rule; empty if only the agent's state shows the dialog.
        title: The agent's question with what it is about; may be empty.
        asks: What it asks, in one line that begins with a verb.
        options: Empty if they cannot be read: it can then be answered only in its pane.
        marked: Index of the option that Enter would choose; None if no mark is seen.
        across: Whether the options are side by side.
        whole: Whether its beginning is on the screen.
        body: Its rows above the options.
        text: All of its rows, without the mark.
        lines: The same as they are drawn, with styles.
        serial: Number of the dialog in its agent: another dialog has another number.
        since: When it began to look as it does, on the clock of the agent's states.
        announced: The agent says that it asks, and has not drawn the dialog yet.
    """

    name: str = ""
    title: str = ""
    kind: DialogKind = "permission"
    asks: str = ""
    options: tuple[Option, ...] = ()
    marked: int | None = None
    across: bool = False
    whole: bool = True
    body: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    lines: tuple[Line, ...] = field(default=(), compare=False)
    serial: int = 0
    since: float = 0.0
    announced: bool = False

    @property
    def grants(self) -> bool:
        return self.kind == "permission"

    @property
    def fingerprint(self) -> str:
        """Identifies what is on the screen: the text of all rows, and where the mark is."""
        seen = "\n".join((self.name, str(self.marked), *self.text))
        return blake2s(seen.encode("utf-8", "replace"), digest_size=16).hexdigest()

    def same_question(self, other: AgentDialog) -> bool:
        """Whether both ask the same, whatever the mark, checkboxes and hints of keys show."""
        mine = [option.words for option in self.options]
        return (self.name, self.title, self.kind, self.body, mine) == (
            other.name,
            other.title,
            other.kind,
            other.body,
            [option.words for option in other.options],
        )

    def find(self, words: str) -> int | None:
        """Return the index of the option with these words; None unless there is exactly one."""
        found = [place for place, option in enumerate(self.options) if option.words == words]
        return found[0] if len(found) == 1 else None


class DialogLog:
    """Numbers the dialogs of one process, and notes since when each looks as it does."""

    def __init__(self) -> None:
        self.current: AgentDialog | None = None  # None also while it disappears for a moment
        self._last: AgentDialog | None = None
        self._serial = 0
        self.gone_at: float | None = None  # since when there is none; None also before the first

    def look(self, dialog: AgentDialog | None, now: float) -> None:
        if dialog is None:
            self.current = None
            self.gone_at = now if self.gone_at is None else self.gone_at
            return
        last, self._last = self._last, dialog
        gone = self.gone_at is not None and now - self.gone_at >= FLICKER
        self.gone_at = None
        since = now
        if last is None or gone or not last.same_question(dialog):
            self._serial += 1
        elif last.text == dialog.text:
            since = self.current.since if self.current is not None else now
        self.current = replace(dialog, serial=self._serial, since=since)

    def answered(self, now: float) -> None:
        """Count the open dialog as a new one: an answer was given, and it may be the next of its kind."""
        self._last = None
        self.look(self.current, now)


# -- reading ---


def read_dialog(rule: DialogRule, rows: Sequence[str], terminal: Terminal, *, first: int = 0) -> AgentDialog:
    """Read the dialog that a rule has found.

    Args:
        rule: The rule.
        rows: The screen down to its last row with text, without trailing blanks.
        terminal: The screen's terminal, for styles.
        first: The first row that may belong to a dialog.
    """
    rows = [_SCROLLBAR.sub("", row).rstrip() for row in rows]
    marked = _ROW.match(rows[first])
    if marked is not None and marked["mark"] and marked["number"]:
        first = 0  # what looks like a composer is the marked option
    start = max(first, len(rows) - rule.tail)
    parts, top, headed = _title(rule, rows, start)
    least = top or start
    found = _keyed(rule, rows, least) or _buttons(rule, rows, least, terminal) or _listed(rows, least)
    if top is None:
        top = _top(rows, found.rows[0], start) if found is not None else start
    dialog = AgentDialog(
        rule.name, " · ".join(parts)[:_TITLE_LENGTH], rule.kind, asks=_asks(rule.kind, parts)
    )
    end = _bottom(rows, found) if found is not None else len(rows)
    whole = headed if rule.title else top > 0
    return _drawn(dialog, rows, terminal, top, end, found=found, whole=whole)


def read_choices(choices: DialogChoices, rows: Sequence[str], terminal: Terminal) -> AgentDialog:
    """Read a dialog that no rule describes: a list of choices, and the question above."""
    found = _Options(choices.rows, choices.marked, _vertical(rows, choices.rows))
    title = choices.title[:_TITLE_LENGTH]
    dialog = AgentDialog(CHOICES, title, choices.kind, asks=_asks(choices.kind, [title] if title else []))
    top = _top(rows, choices.rows[0], 0)
    return _drawn(dialog, rows, terminal, top, _bottom(rows, found), found=found, whole=top > 0)


class _Options(NamedTuple):
    rows: Sequence[int]  # first row of each option
    marked: int | None  # index of the marked one
    words: Sequence[tuple[str, int]]  # words and number of each
    across: bool = False
    keys: Sequence[str] = ()  # the key of each, if the agent names them


def _drawn(
    dialog: AgentDialog,
    rows: Sequence[str],
    terminal: Terminal,
    top: int,
    end: int,
    *,
    whole: bool,
    found: _Options | None = None,
) -> AgentDialog:
    text = [_SPINNER.sub(" ", row).rstrip(_SIDES) for row in rows[top:end]]
    keys = found.keys if found is not None else ()
    if found is not None and found.marked is not None and not found.across:
        at = found.rows[found.marked] - top
        text[at] = _unmarked(text[at])
    first = found.rows[0] - top if found is not None else len(text)
    words = found.words if found is not None else ()
    return replace(
        dialog,
        options=_judged(words, keys, grants=dialog.grants and whole),
        marked=found.marked if found is not None else None,
        across=found is not None and found.across,
        whole=whole,
        body=tuple(text[:first]),
        text=tuple(text),
        lines=tuple(terminal.line(y).copy() for y in range(top, end)),
    )


def _unmarked(row: str) -> str:
    found = _ROW.match(row)
    if found is None or found["mark"] is None:
        return row
    return row[: found.start("mark")] + " " + row[found.end("mark") :]


def _top(rows: Sequence[str], first: int, least: int) -> int:
    """Return where a dialog begins that is known only by its options: below a frame, or two blank rows."""
    place, blanks = first, 0
    for y in range(first - 1, max(least, first - _TAIL) - 1, -1):
        row = rows[y].strip()
        if not row:
            blanks += 1
            if blanks == 2:
                break
            continue
        if _FRAME.fullmatch(row) and len(row) > 2:
            return y
        blanks, place = 0, y
    return place


def _bottom(rows: Sequence[str], found: _Options) -> int:
    """Return the row after the dialog: after its frame, or the hints of keys below the options."""
    last, texts = found.rows[-1] + 1, 0
    for y in range(last, len(rows)):
        row = rows[y].strip()
        if row and _FRAME.fullmatch(row) and row[0] in "╰└╚╹▀":
            return y + 1
        texts += bool(row.strip(_SIDES))
        if texts > _FOOTER:
            break
        last = y + 1 if row else last
    return last


# -- title ---


def _title(rule: DialogRule, rows: Sequence[str], start: int) -> tuple[list[str], int | None, bool]:
    """Return the parts of the title, its first row, and whether it begins with the rule's first pattern."""
    text, parts, top, headed = "\n".join(rows[start:]), list[str](), None, False
    for place, pattern in enumerate(rule.title):
        found = [match for match in pattern.finditer(text) if top is None or match.start() >= top]
        if found:
            if top is None:
                top, headed = found[-1].start(), place == 0
            parts.append(" ".join(found[-1].group(found[-1].lastindex or 0).split()))
    if top is None:
        return parts, None, False
    y = start + text.count("\n", 0, top)
    if y > start and _FRAME.fullmatch(rows[y - 1]) and rows[y - 1].strip():
        y -= 1
    return [part for part in parts if part], y, headed


# What is asked for, by words in the question or in the line above it; the first that fits.
_VERBS = {
    "run": re.compile(r"\b(?:run|execut\w+|commands?|bash|shell)\b|コマンド|実行", re.IGNORECASE),
    "reach": re.compile(r"\b(?:access|fetch\w*|urls?|network|connect|domain|web\w*)\b", re.IGNORECASE),
    "edit": re.compile(r"\b(?:edits?|write\w*|creat\w+|overwrite|apply|changes?|modify)\b", re.IGNORECASE),
    "read": re.compile(r"\b(?:read\w*|search\w*|list)\b", re.IGNORECASE),
    "use": re.compile(r"\b(?:tools?|mcp)\b", re.IGNORECASE),
}
_WISH = re.compile(
    r"(?:do you want|would you like) to (?:allow )?(?!proceed|continue)(.+?)[?？]", re.IGNORECASE
)


def _asks(kind: DialogKind, parts: Sequence[str]) -> str:
    """Return what a dialog asks, in one line that begins with a verb."""
    if not parts:
        return {"permission": "asks for permission", "question": "asks you", "notice": "shows a notice"}[kind]
    questions = [part for part in parts if part.endswith(("?", "？"))]
    subjects = [part for part in parts if part not in questions]
    if kind == "permission" and (wants := _wants(questions, subjects)):
        return f"wants to {wants}"[:_TITLE_LENGTH]
    whole = questions[-1] if questions and not questions[-1][0].islower() else parts[0]
    return f"shows: {whole}" if kind == "notice" else f"asks: {whole}"


def _wants(questions: Sequence[str], subjects: Sequence[str]) -> str:
    for text in (*questions, *subjects[:1]):
        verb = next((verb for verb, words in _VERBS.items() if words.search(text)), "")
        if not verb or not subjects:
            continue
        first, _, rest = subjects[-1].partition(" ")
        if len(subjects) == 1 and rest and _VERBS[verb].search(first):
            return f"{verb} {rest}"  # "Shell rm -rf build"
        if text in questions or len(subjects) > 1:
            return f"{verb} {subjects[-1]}"
    return next((found[1] for question in questions if (found := _WISH.match(question))), "")


# -- options ---

# What allows exactly what is asked. Strict on purpose: what says more may also allow more.
_ALLOWS = re.compile(
    r"(?:yes|allow|approve|accept|run)"
    r"(?:,? (?:proceed|allow|allow once|run it|just this once|this time|once|it|this command|this once))?"
    r"|はい|(?:一度だけ|今回だけ)?(?:許可|承認|実行)(?:する)?",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"(?:no|deny|reject|decline|cancel|refuse|don['’]t (?:allow|run)|do not allow)\b"
    r"|いいえ|拒否|許可しない|キャンセル",
    re.IGNORECASE,
)
_FOR_LONG = re.compile(
    r"\b(?:always|never|again|session|permanent\w*|every|remember|all)\b|常に|今後|以後|セッション|すべて|全て|二度と",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\(esc(?:ape)?\b[^)]*\)$", re.IGNORECASE)
_SHORTCUT = re.compile(r" *\((?:[a-z]|esc\w*|enter|shift\+tab|ctrl\+[a-z])\)$", re.IGNORECASE)


def _judged(words: Sequence[tuple[str, int]], keys: Sequence[str], *, grants: bool) -> tuple[Option, ...]:
    named = keys or [""] * len(words)
    options = [Option(text, number, key=key) for (text, number), key in zip(words, named, strict=True)]
    if not grants:
        return tuple(options)
    plain = [_SHORTCUT.sub("", text) for text, _ in words]
    allows = [place for place, text in enumerate(plain) if _ALLOWS.fullmatch(text)]
    denies = [place for place, text in enumerate(plain) if _DENIES.match(text) and not _FOR_LONG.search(text)]
    if len(allows) == 1:
        options[allows[0]] = options[allows[0]]._replace(allows_once=True)
    if len(denies) == 1:
        options[denies[0]] = options[denies[0]]._replace(denies=True)
    return tuple(options)


def _listed(rows: Sequence[str], top: int) -> _Options | None:
    """Find the options below each other: the last list of rows of which one is marked."""
    for place in range(len(rows) - 1, top - 1, -1):
        row = _ROW.match(rows[place])
        if row is None or row["mark"] is None:
            continue
        found = [y for y in _choices(rows, place, row) if y >= top]
        if len(found) > 1:
            return _Options(found, found.index(place), _vertical(rows, found))
    return None


def _vertical(rows: Sequence[str], found: Sequence[int]) -> list[tuple[str, int]]:
    options = []
    column = 0
    for place, y in enumerate(found):
        row = _ROW.match(rows[y])
        if row is None:
            continue
        column = row.start("text")
        number = int(row["number"]) if row["number"] else place + 1
        text = row["text"][row.end("number") + 1 - column if row["number"] else 0 :]
        below = found[place + 1] if place + 1 < len(found) else len(rows)
        parts = [_inner(text)]
        for more in range(y + 1, below):
            further = _ROW.match(rows[more])
            if further is None or further.start("text") <= column or _FRAME.fullmatch(rows[more]):
                break
            parts.append(_inner(further["text"]))
        options.append((_CHECKBOX.sub("", " ".join(join_rows(parts).split())), number))
    return options


def _inner(text: str) -> str:
    return text.rstrip().rstrip(_SIDES).strip()


def _keyed(rule: DialogRule, rows: Sequence[str], top: int) -> _Options | None:
    """Find options that are named with their keys: `Enter to stay · Esc to cancel`, perhaps over two rows."""
    text = "\n".join(rows[top:])
    found = list(rule.keys.finditer(text)) if rule.keys is not None else []
    if not found:
        return None
    group = found[-1].lastindex or 0
    named = [_KEYED.fullmatch(" ".join(part.split())) for part in found[-1].group(group).split("·")]
    options = [(match["key"], match["words"]) for match in named if match is not None]
    if len(options) != len(named) or not all(_is_key(key) for key, _ in options):
        return None
    y = top + text.count("\n", 0, found[-1].start(group))
    words = [(text, place) for place, (_, text) in enumerate(options, 1)]
    return _Options([y] * len(words), None, words, across=True, keys=[key for key, _ in options])


def _is_key(name: str) -> bool:
    """Whether it is a key that does one thing only; letters and digits may be typed into a text."""
    try:
        return len(name) > 1 and bool(key_bytes(name))
    except ValueError:
        return False


def _buttons(rule: DialogRule, rows: Sequence[str], top: int, terminal: Terminal) -> _Options | None:
    """Find the options side by side; the marked one has another background than the row."""
    if rule.buttons is None:
        return None
    for y in range(len(rows) - 1, top - 1, -1):
        found = rule.buttons.search(rows[y])
        if found is None:
            continue
        group = found.lastindex or 0
        starts, place = [], found.start(group)
        for text in _GAP.split(found.group(group)):
            place = rows[y].index(text, place)
            starts.append((text.strip(), place))
            place += len(text)
        named = [(text, x) for text, x in starts if text]
        cells = [_ground(terminal, x, y) for x in range(terminal.columns)]
        plain = Counter(cells).most_common(1)[0][0]
        marked = [place for place, (_, x) in enumerate(named) if cells[x] != plain]
        words = [(text, place + 1) for place, (text, _) in enumerate(named)]
        return _Options([y] * len(words), marked[0] if len(marked) == 1 else None, words, across=True)
    return None


def _ground(terminal: Terminal, x: int, y: int) -> tuple[int, bool]:
    style = terminal.cell(x, y).style
    return style.bg, style.reverse


@dataclass(frozen=True, slots=True)
class DialogChoices:
    kind: DialogKind  # `permission` if one of the choices is a yes or a no
    title: str  # nearest question above the choices; may be empty
    rows: tuple[int, ...] = field(default=(), compare=False)  # of the choices
    marked: int = field(default=0, compare=False)  # index of the marked one


def find_choices(
    rows: Sequence[str], cursor: tuple[int, int], *, numbered: bool, prompts: bool = False
) -> DialogChoices | None:
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
            title = _choices_title(rows, found[0])
            return DialogChoices(
                "permission" if grants else "question", title, tuple(found), found.index(place)
            )
    return None


def may_ask(row: str) -> bool:
    """Whether a row may be of a question, wherever it stands."""
    return _GRANTS.search(row) is not None or _ASKS.search(row) is not None


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
