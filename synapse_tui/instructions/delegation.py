"""The rules of delegation: a Markdown table of kind, keywords and agent, read and applied.

Keywords are compared without regard to case and width. The letters of scripts that put spaces between words
must stand as words of their own; those of scripts that do not (Japanese, Chinese, Korean, Thai) are found
anywhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from synapse_tui.errors import NoRuleFits, RulesBroken, RulesUndecided

from .files import Fault, Shelves, TextFile

DELEGATE = "delegate.md"  # the file with the rules
ANYTHING = "*"  # keyword of the row for what fits no other one

_COLUMNS = ("kind", "keywords", "agent")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_CELL = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r":?-+:?")
_COMMA = re.compile(r"[,;、，；]")
# thai, Lao, Burmese, Khmer; the East Asian scripts are told by their width
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row."""

    kind: str
    keywords: tuple[str, ...]  # words and phrases, folded; one that ends in `*` is the beginning of a word
    agent: str
    line: int  # number of its line in the file, from 1

    @property
    def anything(self) -> bool:
        """Whether it is the row for what fits no other one."""
        return self.keywords == (ANYTHING,)


@dataclass(frozen=True, slots=True)
class Pick:
    """The row that a task falls under."""

    rule: Rule
    matched: tuple[str, ...]

    @property
    def why(self) -> str:
        """Why it was picked, in a few words."""
        where = f"rule '{self.rule.kind}' (line {self.rule.line})"
        if not self.matched:
            return f"{where} for what fits no other rule"
        return f"{where} by {', '.join(repr(word) for word in self.matched)}"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rows of all tables of a file."""

    rows: tuple[Rule, ...]  # the rows that are whole, in order
    problems: tuple[tuple[int, str], ...] = ()

    @classmethod
    def read(cls, text: str, *, first_line: int = 1) -> Rules:
        """Read the tables in a text; one that has not at least two of the columns is about something else."""
        reader = _Reader(text.split("\n"), first_line)
        reader.read()
        return cls(tuple(reader.rows), tuple(reader.problems))

    def pick(self, task: str) -> Pick:
        """The row that a task falls under.

        That is the one with the longest keyword in the task, of several such the one with most keywords
        in it; else the row for anything.
        """
        folded = fold(task)
        fitting = [
            Pick(rule, found) for rule in self.rows if not rule.anything and (found := _matches(rule, folded))
        ]
        if not fitting:
            anything = next((rule for rule in self.rows if rule.anything), None)
            if anything is None:
                raise NoRuleFits(
                    "no rule of delegation fits the task",
                    f"name the agent with `synapse send`, or add a row with the keyword {ANYTHING}",
                )
            return Pick(anything, ())
        best = max(map(_specificity, fitting))
        winners = [pick for pick in fitting if _specificity(pick) == best]
        if len({fold(pick.rule.agent).removeprefix("@") for pick in winners}) > 1:
            raise RulesUndecided([f"{pick.rule.agent}, {pick.why}" for pick in winners])
        return winners[0]


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """Rules and where they come from."""

    rules: Rules
    file: TextFile
    faults: tuple[Fault, ...]


def load_rules(shelves: Shelves) -> LoadedRules:
    """The rules of the first file that can be used."""
    found = shelves.find(DELEGATE)
    rules = Rules.read(found.file.text, first_line=found.file.first_line) if found.file else Rules(())
    if found.file is not None and rules.problems:
        line, reason = rules.problems[0]
        more = f" (and {len(rules.problems) - 1} more)" if len(rules.problems) > 1 else ""
        raise RulesBroken(f"{found.file.path}:{line}: {reason}{more}", "correct the table")
    if rules.rows and found.file is not None:
        return LoadedRules(rules, found.file, found.faults)
    if found.faults:
        left = "; ".join(map(str, found.faults))
        raise RulesBroken(f"the rules of delegation are left out: {left}", "mend or trust the file")
    raise RulesBroken(
        "there are no rules of delegation",
        f"a table with the columns kind, keywords and agent belongs into .synapse/{DELEGATE}",
    )


def fold(text: str) -> str:
    """A text as keywords are compared: without regard to case and width, blanks made one."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _matches(rule: Rule, task: str) -> tuple[str, ...]:
    found = [word for word in rule.keywords if _stands_in(word, task)]
    return tuple(sorted(found, key=_weight, reverse=True))


def _specificity(pick: Pick) -> tuple[int, int]:
    return _weight(pick.matched[0]), len(pick.matched)


def _weight(keyword: str) -> int:
    """How much a keyword says: its columns on a terminal, so that 計画 counts like `plan`."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in keyword.rstrip("*"))


def _stands_in(keyword: str, task: str) -> bool:
    word = keyword.removesuffix("*")
    start = task.find(word)
    while start >= 0:
        end = start + len(word)
        before = start == 0 or not _joined(task[start - 1], word[0])
        after = keyword.endswith("*") or end == len(task) or not _joined(word[-1], task[end])
        if before and after:
            return True
        start = task.find(word, start + 1)
    return False


def _joined(left: str, right: str) -> bool:
    return _spaced(left) and _spaced(right)


def _spaced(char: str) -> bool:
    if not char.isalnum() and not unicodedata.combining(char):
        return False
    return unicodedata.east_asian_width(char) not in "WF" and _UNSPACED.match(char) is None


class _Reader:
    """Reads the tables in some lines."""

    def __init__(self, lines: Sequence[str], first_line: int) -> None:
        self.rows: list[Rule] = []
        self.problems: list[tuple[int, str]] = []
        self._lines = lines
        self._first = first_line

    def read(self) -> None:
        """Read all of them; what stands between fences is no table."""
        fenced = False
        at = 0
        while at < len(self._lines):
            fenced ^= _FENCE.match(self._lines[at]) is not None
            at = at + 1 if fenced else self._table(at)

    def _table(self, at: int) -> int:
        names = _columns(_cells(self._lines[at]))
        wanted = [name for name in _COLUMNS if name in names]
        ruled = at + 1 < len(self._lines) and _is_ruler(self._lines[at + 1])
        if len(wanted) < len(_COLUMNS) - ruled:
            return at + 1
        if not ruled:
            self._problem(at, "the table has no line of dashes below its head: |---|---|---|")
            return at + 1
        if len(wanted) < len(_COLUMNS):
            missing = next(name for name in _COLUMNS if name not in names)
            self._problem(at, f"the table has no column '{missing}'")
        end = at + 2
        while end < len(self._lines) and "|" in self._lines[end]:
            if len(wanted) == len(_COLUMNS):
                self._row(end, names)
            end += 1
        return end

    def _row(self, at: int, names: Sequence[str]) -> None:
        cells = _cells(self._lines[at])
        if len(cells) != len(names):
            self._problem(at, f"the row has {len(cells)} cells and the table {len(names)} columns")
            return
        kind, words, agent = (cells[names.index(name)] for name in _COLUMNS)
        rule = Rule(_plain(kind), _keywords(words), _plain(agent), self._first + at)
        if problem := self._wrong(rule):
            self._problem(at, problem)
        else:
            self.rows.append(rule)

    def _wrong(self, rule: Rule) -> str:
        if not rule.agent:
            return "the row names no agent"
        if not rule.keywords:
            return f"the row has no keywords: give words, or {ANYTHING} for what fits no other row"
        if ANYTHING in rule.keywords and not rule.anything:
            return f"{ANYTHING} stands alone: for what fits no other row"
        first = next((row for row in self.rows if row.anything), None)
        return f"line {first.line} has the keyword {ANYTHING} already" if rule.anything and first else ""

    def _problem(self, at: int, reason: str) -> None:
        self.problems.append((self._first + at, reason))


def _columns(cells: Sequence[str]) -> list[str]:
    heads = [fold(_plain(cell)) for cell in cells]
    return [next((name for name in _COLUMNS if head.rstrip("s") == name.rstrip("s")), head) for head in heads]


def _is_ruler(line: str) -> bool:
    return "|" in line and all(_DASHES.fullmatch(cell) for cell in _cells(line))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(inner)]


def _keywords(cell: str) -> tuple[str, ...]:
    words = (fold(part.strip().strip("`").replace("\\*", ANYTHING)) for part in _COMMA.split(cell))
    return tuple(dict.fromkeys(word for word in words if word))


def _plain(cell: str) -> str:
    return cell.strip("`*_ ")
