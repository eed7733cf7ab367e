"""Prepares text from agents for display: removes control characters, wraps it to a width."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from rich._wrap import divide_line
from rich.cells import cell_len, chop_cells, split_graphemes
from textual import content
from textual.geometry import Offset

from synapse_tui.core.addresses import parse_agent_id
from synapse_tui.core.content import artifact_words
from synapse_tui.system.language import breakable, join_rows, last_break, tr

from .fit import shorten

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from synapse_tui.core.model import Task

# control characters, line separators and bidirectional controls (Unicode TR9)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")

_LOOKS = {"strong": "bold", "em": "italic", "heading": "bold"}
_CODE = frozenset({"code_inline", "code_block", "fence"})
_MARKDOWN_CHARS = 1000  # characters of a Markdown text that are parsed; a line shows no more


def one_line(text: str) -> str:
    """Replace control characters and runs of white space with single spaces."""
    return " ".join(_CONTROLS.sub(" ", text).split())


def printable(text: str) -> str:
    """Replace control characters, except for line breaks, with spaces."""
    return "\n".join(_CONTROLS.sub(" ", line) for line in text.splitlines())


def code_line(line: str) -> str:
    """Replace tabs and other control characters with spaces, so that it stays one line."""
    return _CONTROLS.sub(" ", line.replace("\t", "    "))


@lru_cache(maxsize=512)
def markdown_line(text: str, style: str, code: str) -> Sequence[tuple[str, str]]:
    """Render the start of a Markdown text on one line, as runs of text and styles.

    Underscores are not markup: agents mention `__init__` more often than they use them for emphasis.
    """
    runs: list[tuple[str, str]] = []
    for words, look in _markdown_runs(_markdown().parse(printable(text[:_MARKDOWN_CHARS])), style, code):
        joined = re.sub(r"\s+", " ", words)
        at_gap = not runs or runs[-1][0].endswith(" ")
        runs.append((joined.removeprefix(" ") if at_gap else joined, look))
    while runs and not runs[-1][0].strip():
        runs.pop()
    return [run for run in runs if run[0]]


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - not needed for the first frame

    return MarkdownIt("commonmark", {"html": False})


def _markdown_runs(tokens: Sequence[Token], style: str, code: str) -> Iterator[tuple[str, str]]:
    looks = [style]
    for token in tokens:
        kind, _, edge = token.type.rpartition("_")
        if kind in _LOOKS and token.markup[:1] != "_":
            if edge == "open":
                looks.append(f"{_LOOKS[kind]} {looks[-1]}")
            else:
                looks.pop()
        elif token.type == "inline":
            yield from _markdown_runs(token.children or (), looks[-1], code)
            yield " ", style
        else:
            yield _markdown_words(token), code if token.type in _CODE else looks[-1]


def _markdown_words(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "list_item_open":
        return f"{token.info}. " if token.info else "• "
    return token.content or (token.markup if token.markup[:1] == "_" else "")


# Tool calls in an answer that was read from a screen, as agents draw them: `Bash(make)` and results behind a
# corner, boxes with a round corner or a heavy edge, a prompt of a shell, or a count of what was done.
_CALL = re.compile(r"[A-Z]\w*\([^()]*(?:\([^()]*\)[^()]*)*\)")
_TOOL_RESULT = re.compile(r"(?m)^ *[⎿└] ")
_TOOL_BOX = re.compile(r"(?:╭.*|│ +[✓✔✗✕⊷⊶?] .*)(?:\n *[│╰].*)*|┃.*(?:\n *┃.*)*")
_TOOL_PROMPT = re.compile(r"\$ \S|[✔✗] You (?:approved|canceled|denied)\b")
_TOOL_COUNT = re.compile(
    r"(?:Ran|Read|Searched|Listed|Wrote|Edited|Fetched)(?: for)? \d+ \w[\w ,]*(?: \(ctrl\+\w [\w ]+\))?"
)
_HEADING = re.compile(r"#+ .*")
_FENCE = re.compile(r"^ *(?:```|~~~)")
_BLOCK = re.compile(r" *(?:[-*+•#|>]|\d+[.)] |```|~~~)")  # what begins a line of its own in Markdown


@lru_cache(maxsize=128)
def said(answer: str) -> Sequence[str]:
    """Return the paragraphs of an answer without tool calls; a heading, or a colon, takes the next along."""
    kept: list[str] = []
    corner = -1  # column of the corner before the result of the tool call above
    for paragraph in _paragraphs(answer):
        rows = paragraph.split("\n")
        result = _TOOL_RESULT.search(paragraph)
        if corner >= 0 and all(len(row) - len(row.lstrip()) > corner + 1 for row in rows):
            continue  # the result goes on below a blank row
        corner = -1
        if not _FENCE.match(paragraph) and (result or _is_tool(paragraph)):
            corner = len(result[0]) - 2 if result else -1
            continue
        paragraph = paragraph.strip()  # noqa: PLW2901
        if kept and (kept[-1].endswith((":", "：")) or _HEADING.fullmatch(kept[-1])):
            kept[-1] += f"\n\n{paragraph}"
        else:
            kept.append(paragraph)
    return tuple(kept)


def last_words(answer: str) -> str:
    """Return the last paragraph of an answer; empty if all of it is tool calls."""
    return (said(answer) or ("",))[-1]


def answer_words(task: Task) -> str:
    """Return what sums up an answer: what was written for the asker, or a turn's last words, unwrapped.

    What an external agent answers is no turn read from a screen.
    """
    if not task.artifacts:
        return ""
    words = artifact_words(task.artifacts[-1])
    if task.replied or parse_agent_id(task.target) is None:
        return words
    return rewrapped(last_words(words), 0)


def _is_tool(paragraph: str) -> bool:
    text = paragraph.strip()
    return bool(
        _TOOL_BOX.fullmatch(text)
        or _TOOL_PROMPT.match(text)
        or _CALL.fullmatch(text)
        or _TOOL_COUNT.fullmatch(text)
    )


def _paragraphs(text: str) -> Iterator[str]:
    rows: list[str] = []
    fenced = False
    for row in text.split("\n"):
        fenced ^= _FENCE.match(row) is not None
        if row.strip() or fenced:
            rows.append(row)
        elif rows:
            yield "\n".join(rows)
            rows = []
    if rows:
        yield "\n".join(rows)


def rewrapped(text: str, width: int) -> str:
    """Join the rows that an agent wrapped at its own width, if one of them is too wide for the given one."""
    rows = text.split("\n")
    widest = max(map(cell_len, rows))
    if widest <= width:
        return text
    joined = [rows[0]]
    fenced = _FENCE.match(rows[0]) is not None
    for above, row in pairwise(rows):
        word = row.split(maxsplit=1)[0] if row.strip() else ""
        full = cell_len(above) + 1 + cell_len(word) > widest
        if word and full and above.strip() and not fenced and not _BLOCK.match(row):
            start = len(joined[-1]) - len(joined[-1].lstrip())
            joined[-1] = joined[-1][:start] + join_rows((joined[-1], row))
        else:
            joined.append(row)
        fenced ^= _FENCE.match(row) is not None
    return "\n".join(joined)


def plural(count: int, noun: str) -> str:
    return tr(f"# {noun}" if count == 1 else f"# {noun}s").replace("#", str(count))


MAX_LINES = 5000  # maximum lines shown of one text
# characters of a line wrapped as a unit: if the line grows, only the last unit is wrapped again
MAX_LINE = 10_000
TAB = 4
# emoji joiners and modifiers, whose widths differ between programs
_MODIFIERS = re.compile("[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")


def wrapped(text: str, width: int) -> tuple[str, ...]:
    """Wrap text to a width in cells, preserving line breaks."""
    lines: list[str] = []
    for line in text.split("\n", MAX_LINES + 1):
        for part in _parts_of(line):
            lines += wrapped_line(part, max(2, width))
            if len(lines) > MAX_LINES:
                break
        if len(lines) > MAX_LINES:
            return (*lines[:MAX_LINES], tr("… copy it to see all of it"))
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines) or ("",)


def _parts_of(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > MAX_LINE:
        end = line.rfind(" ", start, start + MAX_LINE) + 1
        end = end if end > start else start + MAX_LINE
        yield line[start:end]
        start = end
    yield line[start:]


@lru_cache(maxsize=2048)
def wrapped_line(line: str, width: int) -> tuple[str, ...]:
    """Wrap one line between words and around wide characters."""
    text = _MODIFIERS.sub("", printable(line.replace("\t", " " * TAB))) if line else ""
    if cell_len(text) <= width:
        return (text,)
    done: list[str] = []
    current = ""
    for word in breakable(text):
        if cell_len(current) + cell_len(word.rstrip()) <= width:
            current += word
            continue
        if current.strip():
            done.append(current.rstrip())
        *full, current = chop_cells(word.lstrip() if current.strip() else word, width) or [""]
        done += full
    if not current.strip():
        return tuple(done)
    if done and not text.isascii():
        at = len(done[-1])
        both = done[-1] + current
        new = last_break(both, 0, at)
        done[-1], current = both[:new].rstrip(), both[new:]
    return (*done, current.rstrip())


def _break_offsets(text: str, width: int, fold: bool = True) -> list[int]:
    """Return where Textual breaks a line: as rich's `divide_line`, but also around wide characters."""
    if (text.isascii() and "^" not in text) or not fold:
        return divide_line(text, width, fold)
    offsets: list[int] = []
    start = used = 0
    for part in breakable(text):
        if used and used + cell_len(part) > width:
            blanks = len(part) - len(part.lstrip())  # they end the line before
            start += blanks
            part = part[blanks:]  # noqa: PLW2901
            offsets.append(start)
            used = 0
        *full, rest = chop_cells(part, width) if cell_len(part) > width else [part]
        for piece in full:
            start += len(piece)
            offsets.append(start)
        start += len(rest)
        used += cell_len(rest)
    if offsets:
        offsets[-1] = last_break(text, offsets[-2] if len(offsets) > 1 else 0, offsets[-1])
    return offsets


# Textual breaks lines at blanks only, and Japanese has none.
content.divide_line = _break_offsets  # type: ignore[attr-defined]


_ROW_CHARS = 256  # characters of one row, however many of them take no cell


class TypedRows:
    """The rows of a text that is being typed, wrapped only as far as they are shown.

    What stands before a change is not wrapped again, so a key costs as much in a long text as in a short one.
    """

    def __init__(self) -> None:
        self._text = ""
        self._width = 0
        self._starts = [0]  # where the known rows begin
        self._end = False  # whether the last known row is the last one

    def around(self, text: str, cursor: int, width: int, shown: int) -> tuple[int, Offset]:
        """Wrap a text so far that the cursor's row can stand amid those that are shown.

        Returns how many rows are known, and where the cursor is in them.
        """
        self._keep_before_change(text, width)
        while self._starts[-1] <= cursor and not self._end:
            self._wrap_row()
        row = bisect_right(self._starts, cursor) - 1
        used = 0
        for _, end, cells in split_graphemes(self[row])[0]:
            if self._starts[row] + end > cursor:
                break
            used += cells
        if cursor >= len(text) and used >= width:
            return len(self._starts) + 1, Offset(0, row + 1)
        while len(self._starts) < max(shown, row + (shown + 1) // 2) and not self._end:
            self._wrap_row()
        return len(self._starts), Offset(used, row)

    def __getitem__(self, row: int) -> str:
        start, *following = self._starts[row : row + 2] or [len(self._text)]
        end = following[0] if following else self._row_end(start)
        return self._text[start:end].removesuffix("\n")

    def _keep_before_change(self, text: str, width: int) -> None:
        if width != self._width:
            self._text, self._width, self._starts, self._end = text, width, [0], False
        elif text != self._text:
            same = _same_start(text, self._text)
            # A mark may change how wide the character before it is, and so which row that stands in.
            del self._starts[max(1, bisect_left(self._starts, same) - 1) :]
            self._text, self._end = text, False

    def _wrap_row(self) -> None:
        end = self._row_end(self._starts[-1])
        self._end = end >= len(self._text) and not self._text.endswith("\n", self._starts[-1], end)
        if not self._end:
            self._starts.append(end)

    def _row_end(self, start: int) -> int:
        """Return where the next row begins: after a line break, or with what does not fit."""
        text, width = self._text, self._width
        most = width + 2
        while True:
            line_end = text.find("\n", start, start + most)
            end = line_end if line_end >= 0 else min(start + most, len(text))
            whole = line_end >= 0 or end == len(text)
            part = text[start:end]
            if part.isascii() and part.isprintable():
                full = len(part) > width
                return _row_break(text, start, start + width) if full else end + (line_end >= 0)
            used = 0
            for first, last, cells in split_graphemes(part)[0]:
                if not whole and last == len(part):
                    break  # it may go on
                if first and used + cells > width:
                    return _row_break(text, start, start + first)
                used += cells
            if whole:
                return end + (line_end >= 0)
            if most >= _ROW_CHARS:
                return end
            most *= 2


def _row_break(text: str, start: int, full: int) -> int:
    """Return where a row ends of which all before `full` has room: with a word, unless that fills the row.

    The blank after the last word hangs over. Around wide characters a row may end anywhere.
    """
    if text[full] == " ":
        return full + 1
    for at in range(full, start, -1):
        before = text[at - 1]
        wide = cell_len(before) == 2 or cell_len(text[at]) == 2
        if before == " " or (wide and cell_len(text[at]) and before != "\u200d"):
            return at
    return full


def _same_start(text: str, other: str) -> int:
    """Return how many characters both begin with."""
    if text.startswith(other) or other.startswith(text):
        return min(len(text), len(other))
    least, most = 0, min(len(text), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if text[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def wrap_words(text: str, width: int, most: int) -> list[str]:
    """Wrap text to at most so many lines; the last one is shortened if there are more."""
    words = " ".join(text.split())
    rows = list(wrapped_line(words, max(2, width))) if words else []
    if len(rows) > most > 0:
        rows[most - 1 :] = [shorten(join_rows(rows[most - 1 :]), width)]
    return rows[: max(0, most)]
