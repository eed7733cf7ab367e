"""Delegation rules: a Markdown table that assigns tasks to agents by keyword.

Keywords ignore case and character width. They match whole words in scripts that separate words with spaces,
and
anywhere in scripts that do not (Japanese, Chinese, Korean, Thai).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from synapse_tui.errors import NoRuleFits, RulesBroken, RulesUndecided

from .files import Fault, TextFile, TextFolders

DELEGATE = "delegate.md"
ANYTHING = "*"  # keyword of the fallback row

_COLUMNS = ("kind", "keywords", "agent")
# A letter of a script that separates words with spaces.
_LETTER = r"[^\W_\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    kind: str
    keywords: tuple[str, ...]  # folded; a trailing `*` matches the beginning of a word
    agent: str
    line: int  # in the file, from 1


@dataclass(frozen=True, slots=True)
class Pick:
    """The row chosen for a task, and the keywords that matched."""

    rule: Rule
    matched: tuple[str, ...]  # longest first; empty for the fallback row

    @property
    def why(self) -> str:
        where = f"rule '{self.rule.kind}' (line {self.rule.line})"
        if not self.matched:
            return f"{where} for what fits no other rule"
        return f"{where} by {', '.join(map(repr, self.matched))}"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rows of a file, and the lines and reasons of invalid ones."""

    rows: tuple[Rule, ...]
    problems: tuple[tuple[int, str], ...] = ()

    @classmethod
    def read(cls, text: str, *, first_line: int = 1) -> Rules:
        """Parse every table that has the three columns; other text is ignored."""
        rows: list[Rule] = []
        problems: list[tuple[int, str]] = []
        head: list[str] = []
        for number, line in enumerate(text.split("\n"), first_line):
            cells = [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
            if "|" not in line:
                head = []
            elif not head:
                names = list(map(fold, cells))
                head = names if set(_COLUMNS) <= set(names) else []
            elif any(cell.strip(":-") for cell in cells):
                try:
                    rows.append(_row(head, cells, number))
                except ValueError as error:
                    problems.append((number, str(error)))
        return cls(tuple(rows), tuple(problems))

    def pick(self, task: str) -> Pick:
        """Return the row with the longest matching keyword, then the most matches, else the fallback row."""
        folded = fold(task)
        fitting = [Pick(row, found) for row in self.rows if (found := _matches(row, folded))]
        if not fitting:
            anything = next((row for row in self.rows if ANYTHING in row.keywords), None)
            if anything is None:
                raise NoRuleFits(
                    "no rule of delegation fits the task",
                    f"name the agent with `synapse send`, or add a row with the keyword {ANYTHING}",
                )
            return Pick(anything, ())
        best = max(map(_weight, fitting))
        winners = [pick for pick in fitting if _weight(pick) == best]
        if len({fold(pick.rule.agent).removeprefix("@") for pick in winners}) > 1:
            raise RulesUndecided([f"{pick.rule.agent}, {pick.why}" for pick in winners])
        return winners[0]


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """The rules and the file they came from; unusable files are reported as faults."""

    rules: Rules
    file: TextFile
    faults: tuple[Fault, ...]


def load_rules(folders: TextFolders) -> LoadedRules:
    """Load the rules from the first usable file; raises RulesBroken."""
    found = folders.find(DELEGATE)
    rules = Rules.read(found.file.text, first_line=found.file.first_line) if found.file else Rules(())
    if found.file is not None and rules.problems:
        line, reason = rules.problems[0]
        raise RulesBroken(f"{found.file.path}:{line}: {reason}", "correct the table")
    if found.file is not None and rules.rows:
        return LoadedRules(rules, found.file, found.faults)
    if found.faults:
        raise RulesBroken(
            f"the rules of delegation cannot be used: {'; '.join(map(str, found.faults))}",
            "correct or trust the file",
        )
    raise RulesBroken(
        "there are no rules of delegation",
        f"put a table with the columns kind, keywords and agent into .synapse/{DELEGATE}",
    )


def fold(text: str) -> str:
    """Normalize case, character width and whitespace."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _row(head: list[str], cells: list[str], line: int) -> Rule:
    if len(cells) != len(head):
        raise ValueError(f"the row has {len(cells)} cells and the table {len(head)} columns")
    kind, words, agent = (cells[head.index(name)] for name in _COLUMNS)
    kind, agent = kind.strip("*_ "), agent.strip("*_ ")
    keywords = tuple(filter(None, (fold(word.strip(" `")) for word in re.split(r"[,;、，；]", words))))
    if not agent:
        raise ValueError("the row names no agent")
    if not keywords:
        raise ValueError(f"the row has no keywords: give words, or {ANYTHING} for what fits no other row")
    return Rule(kind, keywords, agent, line)


def _matches(rule: Rule, task: str) -> tuple[str, ...]:
    found = (word for word in rule.keywords if word != ANYTHING and re.search(_pattern(word), task))
    return tuple(sorted(found, key=len, reverse=True))


def _pattern(keyword: str) -> str:
    word = keyword.removesuffix("*")
    before = f"(?<!{_LETTER})" if re.match(_LETTER, word) else ""
    after = f"(?!{_LETTER})" if word == keyword and re.match(_LETTER, word[-1]) else ""
    return f"{before}{re.escape(word)}{after}"


def _weight(pick: Pick) -> tuple[int, int]:
    return len(pick.matched[0]), len(pick.matched)
