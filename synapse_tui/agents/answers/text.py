"""Reads the answer out of rows of a screen: where it begins, where it ends, what decorates it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from synapse_tui.agents.composer.proof import skeleton

from .bullets import indent_of, without_bullets

_SIGN = re.compile(r"[^\w\s]+ ")
_GUTTER = re.compile(r"^[^\w\[\(\"'`<{#\uff3b-]*")
_DIGITS = re.compile(r"\d+")
_RULE = re.compile(r"^[\s─━═▀▄▁▔╭╮╰╯┌┐└┘│┃╷╵╹╻]*$")
_STATUS = re.compile(
    r"^\s*(?:[✻✽✢✶✳·∗*─▣]+ .*?\b|Worked for )(?:<?\d+(?:\.\d+)?(?:h|m|s|ms) ?)+"
    r"(?:[•·] (?:\w+ )?\d+:\d+(?: [AP]M)? *)?─*\s*$"
)
"""How long it took, and when it ended, as some agents say under an answer."""
_TIP = re.compile(r"^\s*[└⎿] +Tip: ")
"""What some agents show under their spinner."""
_HINT = re.compile(r"^\s{40,}\S(?:.{0,30}\S)?\s*$")
"""A few words at the right edge over the composer, which come and go while it is empty."""
_SIDE = re.compile(r"^\s*[│┃▌▏|]\s?")
_FAR_RIGHT = re.compile(r"(?<=\S)\s{3,}\S{1,12}\s*$")
_SIDE_END = re.compile(r"\s*[│┃▐▕|]\s*$")
_ELLIPSIS = re.compile(r"\s*(?:…|⋯|\.{3})$")
_NOTE = re.compile(
    r"^\W*(?:…|⋯|\.{3})|(?:…|⋯|\.{3})\W*$"
    r"|\d\s*(?:\w+ )?(?:lines?|rows?|char(?:acter)?s?|words?)\b|\b(?:hidden|truncated|omitted|collapsed)\b",
    re.IGNORECASE,
)
"""What some agents show in place of the end of a long message."""
_NOTE_LENGTH = 60
_MIN_ECHO = 8
_MIN_CUT_ECHO = 24
_HEAD = 14
"""Characters of a message's first word that a row must hold for it to be the first of its echo."""


def without_frame(rows: Sequence[str], idle: Sequence[str]) -> list[str]:
    """Rows of a screen without the composer and the footer.

    Args:
        rows: The screen after the turn, its composer empty.
        idle: The screen before it, its composer empty.
    """
    end = len(rows)
    for old, new in zip(reversed(idle), reversed(rows), strict=False):
        if _plain(old) != _plain(new):
            break
        end -= 1
    return list(rows[:end])


def after_echo(
    rows: Sequence[str], text: str, pastes: Sequence[re.Pattern[str]] = (), *, known: int = 0
) -> list[str] | None:
    """The rows after the place where the agent shows the message; None when it does not show it.

    An agent that prints all of its conversation anew shows the message twice: the last one counts then. A
    message that is quoted in the answer does not.

    Args:
        rows: What was seen of the conversation.
        text: The message.
        pastes: Stand-ins of the agent for a long message.
        known: So many rows stood there before the message: one that ended alike may be among them.
    """
    want = skeleton(text)
    head = text.split(maxsplit=1)[0][:_HEAD] if text.strip() else ""
    found: list[tuple[int, int]] = []
    for start, row in enumerate(rows[known:], known):
        if any(pattern.match(_GUTTER.sub("", row)) for pattern in pastes):
            found.append((start, start + 1))
        elif head in row and (end := _echo_end(rows, start, want)) is not None:
            found.append((start, end))
    cut = _cut_echo_end(rows, want, known)
    if cut is not None and (not found or cut <= found[0][0]):
        return list(rows[cut:])
    if not found:
        return None
    chosen = found[0][1]
    for (_, first), (_, second) in pairwise(found):
        if chosen == first and _begins_alike(rows[first:], rows[second:]):
            chosen = second
    return list(rows[chosen:])


def cut_prompts(rows: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Rows up to the place where the agent shows a later prompt of the user."""
    wanted = [want for prompt in prompts if (want := skeleton(_GUTTER.sub("", prompt)))]
    for start, row in enumerate(rows):
        if any(_begins_echo(row, want) for want in wanted):
            return list(rows[:start])
    return list(rows)


def _begins_echo(row: str, want: str) -> bool:
    """Whether a row shows the beginning of a prompt."""
    rest = _before_ellipsis(row, want)
    return (rest is not None and len(want) - len(rest) > _MIN_ECHO) or any(
        got == want or (len(got) > _MIN_ECHO and want.startswith(got)) for got in _echo_skeletons_untimed(row)
    )


def cut_work(rows: Sequence[str], working: Sequence[tuple[re.Pattern[str], int]]) -> list[str]:
    """Rows up to the one under the answer that tells that the agent works.

    Args:
        rows: What was seen of the conversation.
        working: What tells it, and among how many of the last rows it is.
    """
    ends = [
        place
        for pattern, reach in working
        for place in range(max(0, len(rows) - reach), len(rows))
        if pattern.search(rows[place])
    ]
    return list(rows[: max(ends)]) if ends else list(rows)


def without_prompts(rows: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Rows without those in which the agent shows messages that came in the midst of the turn."""
    kept = list(rows)
    for prompt in prompts:
        want, head = skeleton(prompt), prompt.split(maxsplit=1)[0][:_HEAD]
        for start, row in enumerate(kept):
            if head in row and (end := _echo_end(kept, start, want)) is not None:
                del kept[start:end]
                break
    return kept


def without_note(text: str) -> str:
    """An answer without its last row, where that stands apart and begins with a sign: a note of the agent."""
    answer, _, last = text.rpartition("\n\n")
    return answer if answer and "\n" not in last and _SIGN.match(last) else text


def tidy(rows: Sequence[str]) -> str:
    """The text of an answer without side borders, bullets and rules, indented as little as can be."""
    rows = _trim(_without_sides([row.rstrip() for row in rows]))
    if not rows:
        return ""
    rows = without_bullets(rows)
    indent = min((indent_of(row) for row in rows if row.strip()), default=0)
    return "\n".join(row[indent:] for row in rows)


def _trim(rows: list[str]) -> list[str]:
    start, end = 0, len(rows)
    while start < end and _RULE.match(rows[start]):
        start += 1
    while end > start and any(pattern.match(rows[end - 1]) for pattern in (_RULE, _STATUS, _TIP, _HINT)):
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
    """Where the echo of a text that begins in a row ends; None when none begins there."""
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
    """What is left of a message when a row ends with an ellipsis in place of that; None when it does not."""
    row = _SIDE_END.sub("", _FAR_RIGHT.sub("", row.rstrip()))
    text = _ELLIPSIS.sub("", row)
    got = next(filter(rest.startswith, _echo_skeletons(text)), "") if text != row else ""
    return rest[len(got) :] if got else None


def _tells_of_more(rows: Sequence[str], start: int, place: int) -> bool:
    """Whether a row stands in an echo in place of the end of the message.

    Args:
        rows: What was seen of the conversation.
        start: The first row of the echo.
        place: The row below what is shown of the message.
    """
    note = rows[place].strip() if place < len(rows) else ""
    return bool(len(note) <= _NOTE_LENGTH and _NOTE.search(note) and _is_within(rows, start, place))


def _is_within(rows: Sequence[str], start: int, place: int) -> bool:
    """Whether a row that is not of the message may be of its echo: an answer stands apart, or elsewhere."""
    shown = [indent_of(row) for row in rows[start + 1 : place] if row.strip()]
    return bool(rows[place - 1].strip()) or indent_of(rows[place]) == min(shown, default=-1)


def _after_elision(rows: Sequence[str], start: int, place: int, rest: str, want: str) -> str | None:
    """What is left of a message when a row stands for some lines of it; None when none does."""
    following = _echo_skeleton(rows[place + 1]) if len(rows) > place + 1 else ""
    if min(len(want) - len(rest), len(following)) < _MIN_ECHO or not _is_within(rows, start, place):
        return None
    found = rest.find(following)
    return rest[found:] if found >= 0 else None


def _cut_echo_end(rows: Sequence[str], want: str, known: int) -> int | None:
    """Where an echo ends whose beginning was never seen: rows that are together the end of the message."""
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
    """What a row may show of a message, the longest first: signs at its ends may be the agent's."""
    text = _GUTTER.sub("", row)
    signs = skeleton(row[: len(row) - len(text)])
    for body in map(skeleton, (text, _SIDE_END.sub("", text))):
        yield from (signs[place:] + body for place in range(len(signs) + 1))


def _echo_skeletons_untimed(row: str) -> Iterator[str]:
    """The same, and without the time that some agents put at the right edge."""
    return chain(_echo_skeletons(row), _echo_skeletons(_FAR_RIGHT.sub("", row)))


def _begins_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    one, two = (next((row for row in rows if row.strip()), "") for rows in (first, second))
    return one == two
