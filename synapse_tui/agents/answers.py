"""Extracts the agent's answer of a turn from the rows that scrolled over its screen."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import accumulate, chain, pairwise, takewhile
from typing import Any

from synapse_tui.core.content import Artifact

from .composer import skeleton, unspaced

MOST_WRAPPED = 6  # rows of a placeholder in a narrow pane
MAX_ROWS = 5_000  # rows in memory; the oldest are dropped first
MIN_FOUND = 2  # distinct rows that must match before a scroll is assumed
MAX_CANDIDATES = 8
NEAR = 400  # number of latest rows searched for those on the screen
JUMP = 6  # rows that must differ without any match before the old text counts as scrolled away
ANEW_LOOKS = 8  # looks after a resize in which an agent must have drawn something that is known
SAME = (80, 40, 20)  # letters by which text is found again that is wrapped at another width
STICKY = 3  # rows at the top that may stay fixed while the text scrolls below them


class StitchedRows:
    """The text that scrolled over a screen, as far as it was seen.

    The terminal reports rows that scroll off the screen. If an agent repaints scrolled text in place, the
    offset is found by matching changed rows with known ones.
    """

    def __init__(self, screen: Sequence[str]) -> None:
        self.rows: list[str] = list(screen)
        self.truncated = False
        self._screen: list[str] = list(screen)
        self._top = 0
        self._scrolled = 0
        self._before: _Before | None = None  # the text as it was before it was wrapped anew
        self._looks = 0  # looks left in which it must be found on the screen

    def state(self) -> dict[str, object]:
        return {
            "rows": self.rows,
            "truncated": self.truncated,
            "screen": self._screen,
            "top": self._top,
            "scrolled": self._scrolled,
            "before": self._before.rows if self._before is not None else None,
            "looks": self._looks,
        }

    @classmethod
    def resumed(cls, state: Mapping[str, Any]) -> StitchedRows:
        stitched = cls(state["screen"])
        stitched.rows = list(state["rows"])
        stitched.truncated = bool(state["truncated"])
        stitched._top, stitched._scrolled = int(state["top"]), int(state["scrolled"])
        stitched._before = _Before(state["before"]) if state.get("before") is not None else None
        stitched._looks = int(state.get("looks", 0))
        return stitched

    def drawn_anew(self) -> None:
        """Note that the rows will stand elsewhere, wrapped at another width."""
        if self._before is None or not self._looks:
            self._before = _Before(self.rows)
        self._looks = ANEW_LOOKS

    def scrolled(self, row: str) -> None:
        if self._before is not None:
            if self._looks:  # all of it is printed again
                self._top = len(self.rows)
            self._before = None
        self.rows[self._top : self._top + 1] = [row]
        self._top += 1
        self._scrolled += 1
        if self._top > MAX_ROWS:
            count = self._top - MAX_ROWS
            del self.rows[:count]
            self._top -= count
            self.truncated = True

    def look(self, screen: Sequence[str]) -> bool:
        new, old = list(screen), self._screen
        moved, self._scrolled = self._scrolled, 0
        if new == old and not moved:
            return False
        if not any(row.strip() for row in new):
            return True  # cleared before a redraw
        self._screen = new
        if self._before is not None and self._continue(new):
            return True
        top, head = self._top, 0 if moved else common(old, new)
        if not moved:
            self._follow(old, new, head)
        self._write(new, head, () if moved else self._held(old, new, painted=self._top != top))
        return True

    def _continue(self, new: Sequence[str]) -> bool:
        """Put a screen that is wrapped at another width where it begins in the text of before.

        Each look is put into the same text, since the first ones may show rows that are cut or half drawn.
        """
        assert self._before is not None
        if (place := self._before.place(new)) is not None:
            rows, first = place
            self.rows, self._top = [*rows, *new[first:]], max(0, len(rows) - first)
            self._looks = 0
            return True
        if self._looks:
            self.rows, self._top = [*self._before.rows, *new], len(self._before.rows)
            self._looks -= 1
            return True
        self._before = None
        return False

    def _follow(self, old: Sequence[str], new: Sequence[str], head: int) -> None:
        tail = common(old[:head:-1], new[:head:-1])
        middle = range(head, len(new) - tail)
        changed = [index for index in middle if len(new[index].strip()) > 1]
        candidates = self._candidates(new, changed)
        scores = {top: self._score(new, middle, top) for top in (self._top, *candidates)}
        best = max(scores, key=lambda top: (scores[top], -abs(top - self._top)))
        if best != self._top:
            self._top = best
        elif (
            not candidates
            and len(changed) >= JUMP
            and sum(map(bool, old[head:])) >= JUMP
            and not (head and _leave_room(old, new))
        ):
            self._top = len(self.rows)
            self.truncated = True

    def _candidates(self, new: Sequence[str], changed: Sequence[int]) -> list[int]:
        places: dict[str, list[int]] = {}
        for place in range(max(0, len(self.rows) - NEAR), len(self.rows)):
            places.setdefault(self.rows[place], []).append(place)
        found: dict[int, set[str]] = {}
        for index in changed:
            for place in places.get(new[index], ()):
                found.setdefault(place - index, set()).add(new[index])
        # Repeated rows prove nothing, so each text counts once.
        likely = sorted(found, key=lambda top: (-len(found[top]), abs(top - self._top)))
        return [top for top in likely[:MAX_CANDIDATES] if top >= 0 and len(found[top]) >= MIN_FOUND]

    def _score(self, new: Sequence[str], middle: range, top: int) -> int:
        pairs = zip(new[middle.start : middle.stop], self.rows[top + middle.start :], strict=False)
        return sum(1 if a == b else -1 for a, b in pairs if a and b)

    def _held(self, old: Sequence[str], new: Sequence[str], *, painted: bool) -> list[int]:
        """Return the rows at the top that cover the text: a header, or what was asked.

        Such a row is known from above, and stood there before or came as the text was painted further up.
        What is written in its place, or goes on with what stood there, is text that was said before.
        """
        kept = self.rows[self._top : self._top + STICKY]
        covers = [
            index
            for index, (under, was, row) in enumerate(zip(kept, old, new, strict=False))
            if row.strip()
            and row != under
            and (row == was or (painted and not (under and row.startswith(under))))
        ]
        above = set(self.rows[max(0, self._top - NEAR) : self._top]) if covers else ()
        return [index for index in covers if new[index] in above]

    def _write(self, new: Sequence[str], head: int, held: Sequence[int]) -> None:
        kept = self.rows[self._top : self._top + len(new)]
        written = list(new)
        for index in range(min(len(kept), len(new))):
            if index < head or index in held:
                written[index] = kept[index]
        self.rows[self._top :] = written


def _leave_room(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the screen was not full before and is not now, so that nothing had to scroll."""
    last = max(index for rows in (old, new) for index, row in enumerate(rows) if row.strip())
    return last < max(len(old), len(new)) - 2


class _Before:
    """The text before it was wrapped anew, searched by its letters."""

    def __init__(self, rows: Sequence[str]) -> None:
        self.rows = list(rows)
        self._first = max(0, len(rows) - NEAR)
        letters = [_echo_skeleton(row) for row in rows[self._first :]]
        self._text = "".join(letters)
        self._starts = list(accumulate(map(len, letters), initial=0))

    def place(self, screen: Sequence[str]) -> tuple[list[str], int] | None:
        """Return the rows above a screen that shows the end of the text, and the first of it below these."""
        letters = [_echo_skeleton(row) for row in screen]
        for first in range(min(len(screen), STICKY + 1)):
            shown = "".join(letters[first:])
            places = (self._text.rfind(shown[:size]) for size in SAME if len(shown) >= SAME[-1])
            found = next((at for at in places if at >= 0), -1)
            if found >= 0:
                place = bisect_right(self._starts, found, hi=len(self._starts) - 1) - 1
                row = self._first + place
                begun = _beginning(self.rows[row], found - self._starts[place])
                above = [*self.rows[:row], *([begun] if begun else [])]
                return above, first if above else 0
        begins = self._text[: SAME[0]]
        return ([], 0) if len(begins) >= SAME[-1] and not self._first and begins in "".join(letters) else None


def _beginning(row: str, letters: int) -> str:
    """Return the beginning of a row with so many letters."""
    return next((row[:end] for end in range(len(row)) if len(_echo_skeleton(row[:end])) >= letters > 0), "")


def common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


_BULLET = re.compile(r"^(\s*)([●•✦⏺◆◇○◉∙·])[\ufe0e\ufe0f]?\s+(?=\S)")
_OWN = frozenset("●⏺✦◆")  # bullets that agents draw and that rarely start list items
_WORD = re.compile(r"\w")
_ITEM = re.compile(r"^\s*[^\w\s\"'`(\[{<]\S*\s")


def without_bullets(rows: Sequence[str]) -> list[str]:
    """Remove the bullets that the agent put before each piece of its answer.

    An answer has several pieces if tools were used in between. A bullet is the agent's if it is at the
    answer's leftmost column and starts a piece; bullets on consecutive rows are a list in the text.
    """
    first = _BULLET.match(rows[0]) if rows else None
    column = len(first[1]) if first else min(map(indent_of, filter(None, rows)), default=0)
    signs = frozenset(first[2]) if first else _signs(rows, column)
    kept: list[str] = []
    width = column
    for place, row in enumerate(rows):
        bullet = _BULLET.match(row)
        if bullet and len(bullet[1]) == column and bullet[2] in signs and _begins_piece(rows, place):
            width = bullet.end()
            kept.append(row[width:])
            continue
        if row and indent_of(row) <= column:
            width = column
        kept.append(row[min(width, indent_of(row)) :])
    return kept


def _signs(rows: Sequence[str], column: int) -> frozenset[str]:
    heads = [row for row in rows if row and indent_of(row) == column]
    every = all(map(_ITEM.match, heads))
    found = [match[2] for row in heads if (match := _BULLET.match(row))]
    return frozenset(sign for sign in found if every or sign in _OWN)


def _begins_piece(rows: Sequence[str], place: int) -> bool:
    if place and _WORD.search(rows[place - 1]):
        return False
    column = indent_of(rows[place])
    below = takewhile(bool, rows[place + 1 :])
    following = next((row for row in below if indent_of(row) <= column), "")
    return not following or following[: column + 1] != rows[place][: column + 1]


def indent_of(row: str) -> int:
    return len(row) - len(row.lstrip())


_SIGN = re.compile(r"[^\w\s]+ ")
_GUTTER = re.compile(r"^[^\w\[\(\"'`<{#\uff3b-]*")
_DIGITS = re.compile(r"\d+")
_RULE = re.compile(r"^[\s─━═▀▄▁▔╭╮╰╯┌┐└┘│┃╷╵╹╻]*$")
# duration and end time, which some agents print under an answer
_STATUS = re.compile(
    r"^\s*(?:[✻✽✢✶✳·∗*─▣]+ .*?\b|Worked for )(?:<?\d+(?:\.\d+)?(?:h|m|s|ms) ?)+"
    r"(?:[•·] (?:\w+ )?\d+:\d+(?: [AP]M)? *)?─*\s*$"
)
_TIP = re.compile(r"^\s*[└⎿] +Tip: ")  # tips under the spinner
# what an agent shows while it works, still there when a turn is interrupted
_WORKING = re.compile(r"^\s*[^\w\s]\s+\S.*\((?=[^()]*\besc\b)(?=[^()]*\b\d+s\b)[^()]*\)\s*$")
# A few words at the right edge above the composer that appear while it is empty
_HINT = re.compile(r"^\s{40,}\S(?:.{0,30}\S)?\s*$")
_SIDE = re.compile(r"^\s*[│┃▌▏|]\s?")
_FAR_RIGHT = re.compile(r"(?<=\S)\s{3,}\S{1,12}\s*$")
_SIDE_END = re.compile(r"\s*[│┃▐▕|]\s*$")
_ELLIPSIS = re.compile(r"\s*(?:…|⋯|\.{3})$")
# shown by some agents instead of the end of a long message
_NOTE = re.compile(
    r"^\W*(?:…|⋯|\.{3})|(?:…|⋯|\.{3})\W*$"
    r"|\d\s*(?:\w+ )?(?:lines?|rows?|char(?:acter)?s?|words?)\b|\b(?:hidden|truncated|omitted|collapsed)\b",
    re.IGNORECASE,
)
_NOTE_LENGTH = 60
_MIN_ECHO = 8
_MIN_CUT_ECHO = 24
_HEAD = 14  # minimum characters of the message's first word in the first row of its echo


def without_frame(rows: Sequence[str], idle: Sequence[str]) -> list[str]:
    end = len(rows)
    for old, new in zip(reversed(idle), reversed(rows), strict=False):
        if _plain(old) != _plain(new):
            break
        end -= 1
    return list(rows[:end])


def after_echo(
    rows: Sequence[str], text: str, pastes: Sequence[re.Pattern[str]] = (), *, known: int = 0
) -> list[str] | None:
    """Return the rows after the echo of the message, or None if it is not shown.

    If the agent reprints its conversation, the last echo counts. A message quoted in the answer does not
    count.
    """
    found = _echoes(rows, text, pastes, known)
    cut = _cut_echo_end(rows, skeleton(text), known)
    if cut is not None and (not found or cut <= found[0][0]):
        return list(rows[cut:])
    if not found:
        return None
    chosen = found[0][1]
    for (above, first), (again, second) in pairwise(found):
        reprinted = _begins_alike(rows[first:], rows[second:]) or _ends_alike(rows[:above], rows[:again])
        if chosen == first and reprinted:
            chosen = second
    return list(rows[chosen:])


def after_last_echo(
    rows: Sequence[str], text: str, pastes: Sequence[re.Pattern[str]] = (), *, drawn: Sequence[str]
) -> list[str] | None:
    """Return the rows after the last echo in a conversation that may have had the same message before.

    `drawn` has the rows with what is drawn before them. The first echo is no quote; the others begin alike.
    """
    head = _head(text)
    found = _echoes(rows, text, pastes, 0)
    begins = [
        drawn[start].partition(head)[0] if head in drawn[start] else _gutter(drawn[start])
        for start, _ in found
    ]
    ends = [end for (_, end), begin in zip(found, begins, strict=True) if begin == begins[0]]
    return list(rows[ends[-1] :]) if ends else after_echo(rows, text, pastes)


def _echoes(
    rows: Sequence[str], text: str, pastes: Sequence[re.Pattern[str]], known: int
) -> list[tuple[int, int]]:
    want, head = skeleton(text), _head(text)
    found: list[tuple[int, int]] = []
    for start, row in enumerate(rows[known:], known):
        end = _paste_end(rows, start, pastes)
        if end is None and head in row:
            end = _echo_end(rows, start, want)
        if end is not None:
            found.append((start, end))
    return found


def _paste_end(rows: Sequence[str], start: int, pastes: Sequence[re.Pattern[str]]) -> int | None:
    """Return the end of a placeholder that begins in a row, which a narrow pane may wrap."""
    first = _GUTTER.sub("", rows[start])
    if any(pattern.match(first) for pattern in pastes):
        return start + 1
    if not first.startswith("["):
        return None
    for end in range(start + 2, min(start + MOST_WRAPPED, len(rows)) + 1):
        whole = "".join("".join((first, *rows[start + 1 : end])).split())
        if any(unspaced(pattern).fullmatch(whole) for pattern in pastes):
            return end
    return None


def _head(text: str) -> str:
    return text.split(maxsplit=1)[0][:_HEAD] if text.strip() else ""


def _gutter(row: str) -> str:
    return row[: len(row) - len(_GUTTER.sub("", row))]


def cut_prompts(rows: Sequence[str], prompts: Sequence[str]) -> list[str]:
    wanted = [want for prompt in prompts if (want := skeleton(_GUTTER.sub("", prompt)))]
    for start, row in enumerate(rows):
        if any(_begins_echo(row, want) for want in wanted):
            return list(rows[:start])
    return list(rows)


def _begins_echo(row: str, want: str) -> bool:
    rest = _before_ellipsis(row, want)
    return (rest is not None and len(want) - len(rest) > _MIN_ECHO) or any(
        got == want or (len(got) > _MIN_ECHO and want.startswith(got)) for got in _echo_skeletons_untimed(row)
    )


def cut_work(rows: Sequence[str], working: Sequence[tuple[re.Pattern[str], int]]) -> list[str]:
    ends = [
        place
        for pattern, reach in working
        for place in range(max(0, len(rows) - reach), len(rows))
        if pattern.search(rows[place])
    ]
    return list(rows[: max(ends)]) if ends else list(rows)


def without_labels(rows: Sequence[str], labels: Sequence[re.Pattern[str]]) -> Sequence[str]:
    def is_label(row: str) -> bool:
        return any(label.search(row) for label in labels)

    start, end = 0, len(rows)
    for place, row in enumerate(rows):
        if is_label(row):
            start = place + 1
        elif not _RULE.match(row):
            break
    while end > start and (is_label(rows[end - 1]) or _RULE.match(rows[end - 1])):
        end -= 1
    return rows[start:end]


def without_prompts(rows: Sequence[str], prompts: Sequence[str]) -> list[str]:
    kept = list(rows)
    for prompt in prompts:
        want, head = skeleton(prompt), prompt.split(maxsplit=1)[0][:_HEAD]
        for start, row in enumerate(kept):
            if head in row and (end := _echo_end(kept, start, want)) is not None:
                del kept[start:end]
                break
    return kept


def without_note(text: str) -> str:
    """Remove a trailing note of the agent: a separate last row that starts with a sign."""
    answer, _, last = text.rpartition("\n\n")
    return answer if answer and "\n" not in last and _SIGN.match(last) else text


def tidy(rows: Sequence[str]) -> str:
    rows = _trim(_without_sides([row.rstrip() for row in rows]))
    if not rows:
        return ""
    rows = without_bullets(rows)
    indent = min((indent_of(row) for row in rows if row.strip()), default=0)
    return "\n".join(row[indent:] for row in rows)


_UNDER_ANSWER = (_RULE, _STATUS, _TIP, _WORKING, _HINT)


def _trim(rows: list[str]) -> list[str]:
    start, end = 0, len(rows)
    while start < end and _RULE.match(rows[start]):
        start += 1
    while end > start and any(pattern.match(rows[end - 1]) for pattern in _UNDER_ANSWER):
        end -= 1
    return rows[start:end]


def _without_sides(rows: list[str]) -> list[str]:
    filled = [row for row in rows if row.strip()]
    if filled and all(_SIDE.match(row) for row in filled):
        return [_SIDE_END.sub("", _SIDE.sub("", row)) for row in rows]
    return rows


def _plain(row: str) -> str:
    return _DIGITS.sub("0", row.strip())


def _echo_end(rows: Sequence[str], start: int, want: str) -> int | None:
    place, rest, cut = start, want, False
    while rest and place < len(rows) and not (cut and not rows[place].strip()):
        row = rows[place]
        got = next(filter(rest.startswith, _echo_skeletons_untimed(row)), None)
        if got or (got is not None and not (cut or _NOTE.search(row))):
            rest = rest[len(got) :]
        elif (left := _after_elision(rows, start, place, rest, want)) is not None:
            rest = left
        elif (left := _before_ellipsis(row, rest)) is not None:
            rest, cut = left, True
        else:
            break
        place += 1
    done = len(want) - len(rest)
    if done < min(len(want), 3 * _MIN_ECHO):
        return None
    return place + (bool(rest) and _tells_of_more(rows, start, place))


def _before_ellipsis(row: str, rest: str) -> str | None:
    row = _SIDE_END.sub("", _FAR_RIGHT.sub("", row.rstrip()))
    text = _ELLIPSIS.sub("", row)
    got = next(filter(rest.startswith, _echo_skeletons(text)), "") if text != row else ""
    return rest[len(got) :] if got else None


def _tells_of_more(rows: Sequence[str], start: int, place: int) -> bool:
    note = rows[place].strip() if place < len(rows) else ""
    return bool(len(note) <= _NOTE_LENGTH and _NOTE.search(note) and _is_within(rows, start, place))


def _is_within(rows: Sequence[str], start: int, place: int) -> bool:
    shown = [indent_of(row) for row in rows[start + 1 : place] if row.strip()]
    return bool(rows[place - 1].strip()) or indent_of(rows[place]) == min(shown, default=-1)


def _after_elision(rows: Sequence[str], start: int, place: int, rest: str, want: str) -> str | None:
    following = _echo_skeleton(rows[place + 1]) if len(rows) > place + 1 else ""
    if min(len(want) - len(rest), len(following)) < _MIN_ECHO or not _is_within(rows, start, place):
        return None
    found = rest.find(following)
    return rest[found:] if found >= 0 else None


def _cut_echo_end(rows: Sequence[str], want: str, known: int) -> int | None:
    for place, row in enumerate(rows[known:], known):
        got = next(filter(want.endswith, _echo_skeletons(row)), "")
        if not got:
            continue
        for above in reversed(rows[:place]):
            longer = next((way + got for way in _echo_skeletons(above) if want.endswith(way + got)), None)
            if len(got) >= _MIN_CUT_ECHO or longer is None:
                break
            got = longer
        if len(got) >= _MIN_CUT_ECHO:
            return place + 1
    return None


def _echo_skeleton(row: str) -> str:
    return skeleton(_SIDE_END.sub("", _GUTTER.sub("", row)))


def _echo_skeletons(row: str) -> Iterator[str]:
    """Yield what a row may show of a message, longest first; signs at its ends may be the agent's."""
    text = _GUTTER.sub("", row)
    signs = skeleton(row[: len(row) - len(text)])
    for body in map(skeleton, (text, _SIDE_END.sub("", text))):
        yield from (signs[place:] + body for place in range(len(signs) + 1))


def _echo_skeletons_untimed(row: str) -> Iterator[str]:
    return chain(_echo_skeletons(row), _echo_skeletons(_FAR_RIGHT.sub("", row)))


def _begins_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    one, two = (next(filter(str.strip, rows), "") for rows in (first, second))
    return one == two


def _ends_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    one, two = (next(filter(str.strip, reversed(rows)), "") for rows in (first, second))
    return bool(one) and one == two


_BARS = frozenset("┃│▐█▌░▒▓|")
_FAR = 40
# at the right edge, separated from the text; table rows have borders too
_SCROLLBAR = re.compile(r"\s{2,}[┃│▐█▌░▒▓]$")


class AnswerCollector:
    """Collects the rows of one answer, including from agents that paint their own scrolling.

    `row` matches what the composer draws before each row of a draft; a line editor leaves it on the screen.
    `labels` match rows that the agent puts above and below an answer. `above` gives the last rows that have
    scrolled off the screen, at most so many: they are read where a resize or the agent has wrapped all anew.
    """

    def __init__(
        self,
        text: str,
        screen: Callable[[], Sequence[str]],
        pastes: Sequence[re.Pattern[str]] = (),
        *,
        row: re.Pattern[str] | None = None,
        labels: Sequence[re.Pattern[str]] = (),
        above: Callable[[int], Sequence[str]] = lambda _count: (),
        below: Callable[[int], int] = lambda _rows: 0,
        working: Sequence[tuple[re.Pattern[str], int]] = (),
    ) -> None:
        self._text = text
        self._screen = screen
        self._pastes = pastes
        self._row = row
        self._labels = labels
        self._above = above
        self._count_below = below
        self._working = working
        self._idle = _rows(screen())
        self._below = below(len(self._idle))
        # Unchanged rows are frame, but an answer equal to the previous one does not change either.
        self._frame = [] if self._below else self._idle
        self._seen = StitchedRows(self._idle)
        self._before: Sequence[str] = ()  # rows just before Enter, down to the draft
        # rows seen before the composer disappeared; None while it is visible or if it never was
        self._kept: list[str] | None = None
        self._anew = False  # whether the text was drawn anew since the turn began

    def state(self) -> dict[str, object]:
        return {
            "idle": self._idle,
            "before": self._before,
            "framed": bool(self._frame),
            "seen": self._seen.state(),
            "kept": self._kept,
            "below": self._below,
            "anew": self._anew,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        self._idle = list(state["idle"])
        self._before = list(state.get("before", ()))
        self._frame = self._idle if state["framed"] else []
        self._seen = StitchedRows.resumed(state["seen"])
        self._kept = state.get("kept")
        self._below = state.get("below", 0)
        self._anew = bool(state.get("anew"))

    def begin(self) -> None:
        """Mark the current screen as not part of the answer; called just before Enter."""
        rows = _rows(self._screen())
        self._seen = StitchedRows(rows)
        # A draft of several rows, or another size, has moved what stood there at rest.
        drafts = (at for at in range(len(rows)) if self._is_draft(rows, at))
        self._before = rows[: next(drafts, len(rows))]
        self._kept = None
        self._anew = False

    def _is_draft(self, rows: Sequence[str], at: int) -> bool:
        return _head(self._text) in rows[at] or _paste_end(rows, at, self._pastes) is not None

    def drawn_anew(self) -> None:
        """Note that the terminal was resized, or the agent cleared it: all rows may be drawn once more."""
        self._anew = True
        self._seen.drawn_anew()

    def scrolled(self, row: str) -> None:
        self._seen.scrolled(row.rstrip())

    def observe(self) -> bool:
        rows = self._screen()
        below = self._count_below(len(rows))
        if below:
            self._below, self._kept = below, None
        elif self._kept is None and not self._frame:
            shown = self._shown()
            self._kept = shown if shown is not None else list(self._seen.rows)
        return self._seen.look(_rows(rows))

    def peek(self) -> str:
        return self._read(())[0]

    def so_far(
        self, prompts: Sequence[str] = (), steered_by: Sequence[str] = ()
    ) -> tuple[Callable[[], str], int]:
        still = copy(self)
        still._seen = StitchedRows.resumed(self._seen.state())
        above: Sequence[str] = ()
        if self._anew:  # a thread must not read the terminal
            screen, above = list(self._screen()), list(self._above(self._most_above))
            still._screen, still._above = lambda: screen, lambda most: above[-most:]
        cuts = tuple(prompts), tuple(steered_by)

        def read() -> str:
            text, found, _ = still._read(*cuts, working=True)
            return text if found else ""

        return read, len(still._seen.rows) + len(above)

    def echoed(self) -> bool:
        return self._read(())[1]

    def followed(self, prompts: Sequence[str]) -> bool:
        """Whether one of the later prompts is shown below the echo of the message."""
        if not prompts:
            return False
        shown = self._shown()
        rows = self._after_echo(self._seen.rows if shown is None else shown, whole=shown is not None)
        return rows is not None and len(cut_prompts(rows, prompts)) < len(rows)

    def finish(
        self, prompts: Sequence[str] = (), steered_by: Sequence[str] = (), *, working: bool = False
    ) -> Artifact:
        """Return the answer; `working` if the agent was stopped while it wrote it."""
        self.observe()
        text, found, truncated = self._read(prompts, steered_by, working=working)
        return Artifact(text, truncated=truncated or not found)

    def _read(
        self, prompts: Sequence[str], steered_by: Sequence[str] = (), *, working: bool = False
    ) -> tuple[str, bool, bool]:
        """Return the answer, whether the echo of the message was found, and whether rows may be missing."""
        shown = self._shown()
        rows = without_frame(self._seen.rows if shown is None else shown, self._frame)
        if working:
            reach = [(pattern, tail - self._below) for pattern, tail in self._working]
            rows = cut_work(rows if self._kept is None else self._kept, reach)
        answer = self._after_echo(rows, whole=shown is not None)
        if answer is None:
            before = set(self._idle)
            rows = [row for row in rows if not row or row not in before]
        rows = without_prompts(rows if answer is None else answer, steered_by)
        text = tidy(without_labels(cut_prompts(rows, prompts), self._labels))
        return text, answer is not None, shown is None and self._seen.truncated

    @property
    def _most_above(self) -> int:
        """The number of rows above the screen that the turn's text may fill, also at a smaller width."""
        return 100 + 4 * len(self._seen.rows)

    def _shown(self) -> list[str] | None:
        """Return the text that was drawn anew as the terminal has it; None if that lacks the echo."""
        if not self._anew:
            return None
        screen = _rows(self._screen())
        for most in (self._most_above, MAX_ROWS):
            above = _rows(self._above(most))
            rows = [*above, *screen]
            if self._after_echo(rows, whole=True) is not None:
                return rows
            if len(above) < most:
                break
        return None

    def _after_echo(self, rows: Sequence[str], *, whole: bool) -> list[str] | None:
        typed = [_without_prompt(row, self._row) for row in rows]
        if whole:
            echo = after_last_echo(typed, self._text, self._pastes, drawn=rows)
        else:
            known = max(common(rows, self._idle), common(rows, self._before))
            echo = after_echo(typed, self._text, self._pastes, known=known)
        return list(rows[len(rows) - len(echo) :]) if echo is not None else None


def _without_prompt(row: str, prompt: re.Pattern[str] | None) -> str:
    found = prompt.match(row) if prompt is not None else None
    return row[found.end() :] if found is not None and found[0].strip() else row


def _rows(display: Sequence[str]) -> list[str]:
    return [_without_scrollbar(row.rstrip()) for row in display]


def _without_scrollbar(row: str) -> str:
    first = row.lstrip()[:1]
    if first in _BARS:
        alone = len(row.lstrip()) == 1 and len(row) > _FAR
        return "" if alone else row
    return _SCROLLBAR.sub("", row)
