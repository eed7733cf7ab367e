"""Reads the answer out of rows of a screen: where it begins, where it ends, what decorates it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from synapse_tui.agents.composer.proof import skeleton

_GUTTER = re.compile(r"^[^\w\[\(\"'`<{#\uff3b-]*")
_DIGITS = re.compile(r"\d+")
_RULE = re.compile(r"^[\s─━═▀▄▁▔╭╮╰╯┌┐└┘│┃╷╵╹╻]*$")
_STATUS = re.compile(
    r"^\s*(?:[✻✽✢✶✳·∗*─▣]+ .*?\b|Worked for )(?:<?\d+(?:\.\d+)?(?:h|m|s|ms) ?)+(?:• \d+:\d+ *)?─*\s*$"
)
"""How long it took, as some agents say under an answer."""
_TIP = re.compile(r"^\s*[└⎿] +Tip: ")
"""What some agents show under their spinner."""
_HINT = re.compile(r"^\s{40,}\S(?:.{0,30}\S)?\s*$")
"""A few words at the right edge over the composer, which come and go while it is empty."""
_BULLET = re.compile(r"^(\s*[●•✦⏺◆◇○◉∙·]\s+)(?=\S)")
_SIDE = re.compile(r"^\s*[│┃▌▏|]\s?")
_FAR_RIGHT = re.compile(r"(?<=\S)\s{3,}\S{1,12}\s*$")
_SIDE_END = re.compile(r"\s*[│┃▐▕|]\s*$")
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
    return any(
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


def tidy(rows: Sequence[str]) -> str:
    """The text of an answer without side borders, bullet and rules, indented as little as can be."""
    rows = _trim(_without_sides([row.rstrip() for row in rows]))
    if not rows:
        return ""
    bullet = _BULLET.match(rows[0])
    if bullet:
        rows[0] = " " * len(bullet[1]) + rows[0][bullet.end() :]
    indent = min((len(row) - len(row.lstrip()) for row in rows if row.strip()), default=0)
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
    place, rest = start, want
    while rest and place < len(rows):
        got = next(filter(rest.startswith, _echo_skeletons_untimed(rows[place])), None)
        if got is not None:
            rest = rest[len(got) :]
        elif (left := _after_elision(rows[place:], rest, want)) is not None:
            rest = left
        else:
            break
        place += 1
    done = len(want) - len(rest)
    return place if done == len(want) or done >= min(len(want), 3 * _MIN_ECHO) else None


def _after_elision(rows: Sequence[str], rest: str, want: str) -> str | None:
    """What is left of a message when a row stands for some lines of it; None when none does."""
    following = _echo_skeleton(rows[1]) if len(rows) > 1 else ""
    if len(want) - len(rest) < _MIN_ECHO or len(following) < _MIN_ECHO:
        return None
    place = rest.find(following)
    return rest[place:] if place >= 0 else None


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
