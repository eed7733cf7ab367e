"""The results of an examination, with suggested changes to the profile."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, field
from enum import StrEnum
from typing import Any

from synapse_tui.cli.trials.examination import Sample
from synapse_tui.core.model import AgentState
from synapse_tui.system.dataclass import dataclass


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"  # The agent does not behave as in its profile
    NOT_SHOWN = "not shown"
    """Inconclusive: the model or the agent's configuration did not produce the situation."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Advice:
    key: str  # Key of the profile (`interrupt.keys`); empty for other suggestions
    value: str  # The value to try, as YAML, or what to do
    why: str = ""  # The observation that supports it


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    evidence: str  # The observation, in a sentence
    advice: tuple[Advice, ...] = ()


def ok(evidence: str) -> Verdict:
    return Verdict(Outcome.OK, evidence)


def failed(evidence: str, *advice: Advice) -> Verdict:
    return Verdict(Outcome.FAILED, evidence, advice)


def not_shown(evidence: str, *advice: Advice) -> Verdict:
    return Verdict(Outcome.NOT_SHOWN, evidence, advice)


def skipped(evidence: str) -> Verdict:
    return Verdict(Outcome.SKIPPED, evidence)


@dataclass(frozen=True, slots=True)
class Result:
    check: str
    verdict: Verdict
    seconds: float = 0.0
    screen: str = ""  # The agent's screen at the end of a failed check


@dataclass(frozen=True, slots=True)
class DoctorReport:
    agent: str
    version: str  # The installed version; empty if unknown
    proved: str  # The version that the profile was last verified with; empty for none
    source: str
    shipped: bool  # Whether the profile is one of this installation
    folder: str  # The folder that the agent worked in
    results: Sequence[Result] = field(default_factory=tuple)  # In the order of the checks

    @property
    def failed(self) -> bool:
        return any(result.verdict.outcome is Outcome.FAILED for result in self.results)

    @property
    def advice(self) -> list[Advice]:
        return list(dict.fromkeys(advice for result in self.results for advice in result.verdict.advice))

    def json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "version": self.version,
            "profile_version": self.proved,
            "profile": self.source,
            "folder": self.folder,
            "ok": not self.failed,
            "checks": [
                {
                    "check": result.check,
                    "outcome": result.verdict.outcome.value,
                    "seconds": round(result.seconds, 2),
                    "evidence": result.verdict.evidence,
                    "advice": [asdict(advice) for advice in result.verdict.advice],
                    "screen": result.screen,
                }
                for result in self.results
            ],
            "advice": [asdict(advice) for advice in self.advice],
        }


_RUNNING = (1, 3)  # OSC 9;4 states in progress: set, indeterminate
_LAST_ROWS = 3
_BRAILLE = re.compile(r"[\u2800-\u28ff]")
CHOICE = re.compile(r"^(?P<before>\W*?)(?P<pointer>[❯›>●→▶*])\s*(?:\d+[.)]\s+)?(?:[^\w\s│┃|] )?\w")
_NUMBERED = re.compile(r"^\W*?[❯›>●→▶*]\s*\d+[.)]")
CHOSEN = re.compile(
    r"^\W*?[❯›>●→▶*]\s*(?:\d+[.)]\s*)?(?:[^\w\s│┃|] )?(?i:yes|allow|approve|proceed|run|trust)\b"
)
WORDS = re.compile(
    r"(?i)\b(?:esc(?:ape)?|enter)\b.{0,20}\b(?:cancel|reject|deny|exit|confirm|select|submit)|\(y/n\)|\[y/n\]"
)


def suggest_rule(state: AgentState, shown: Sequence[Sample], otherwise: Sequence[Sample]) -> str:
    for condition in (_by_progress, _by_title, _by_row):
        if found := condition(state, shown, otherwise):
            return _entry(state, found)
    if state is AgentState.READY and all(sample.composer for sample in shown):
        return _entry(state, "composer: true, dialog: false, debounce: 1")
    silent = "silence: 1.5" if state is AgentState.READY else "active: 1.5"
    return _entry(state, silent)


def suggest_dialog(shown: Sample) -> str:
    """Return a dialog rule for what an agent shows; empty if nothing looks like a dialog."""
    if shown.composer:
        return ""
    choices = [row for row in shown.rows if CHOICE.match(row)]
    words = [f"(?i){loose(found[0])}" for row in shown.rows if (found := WORDS.search(row))][:1]
    numbered = [row for row in choices if _NUMBERED.match(row)]
    # A pointer alone may be the prompt of a composer.
    chosen = (numbered or choices if words else numbered)[:1]
    patterns = [*map(choice_pattern, chosen), *words]
    if not patterns:
        return ""
    return f"{{name: permission, kind: permission, screen: [{', '.join(map(quoted, patterns))}]}}"


def suggest_chosen(rows: Sequence[str]) -> str:
    """Return a pattern for the selected row of a dialog, up to its first word; empty if there is none."""
    found = next((match for row in rows if (match := CHOSEN.match(row))), None)
    return quoted(rf"^\s*{loose(found[0].strip())}\b") if found is not None else ""


def suggest_row(row: str) -> str:
    return quoted(rf"^\s*{loose(row.strip())}$")


def suggest_stand_in(draft: str) -> str:
    """Return a pattern for the placeholder of a long paste; empty if the draft has none."""
    found = re.search(r"\[[^\[\]\n]*\d[^\[\]\n]*\]", draft)
    return quoted(loose(found[0])) if found else ""


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _entry(state: AgentState, condition: str) -> str:
    return f"{{name: seen by the doctor, state: {state.value.lower()}, {condition}}}"


def _by_progress(state: AgentState, shown: Sequence[Sample], otherwise: Sequence[Sample]) -> str:
    if state is not AgentState.PROCESSING or not all(sample.progress in _RUNNING for sample in shown):
        return ""
    return (
        "" if any(sample.progress in _RUNNING for sample in otherwise) else "progress: [set, indeterminate]"
    )


def _by_title(state: AgentState, shown: Sequence[Sample], otherwise: Sequence[Sample]) -> str:
    patterns = {title_pattern(sample.title) for sample in shown}
    pattern = patterns.pop() if len(patterns) == 1 else ""
    if not pattern or any(re.search(pattern, sample.title) for sample in otherwise):
        return ""
    composer = ", composer: true, dialog: false" if state is AgentState.READY and shown[-1].composer else ""
    return f"title: {quoted(pattern)}{composer}"


def title_pattern(title: str) -> str:
    """Return a pattern for the start of a title: its leading symbol or first word; empty for neither."""
    if not title:
        return ""
    if _BRAILLE.match(title):
        return "^[⠀-⣿]"
    if unicodedata.category(title[0]) in ("So", "Sm", "Po"):
        return f"^{plain_pattern(title[0])}"
    return f"^{plain_pattern(title.split(maxsplit=1)[0])}\\b" if title[0].isalpha() else ""


def _by_row(state: AgentState, shown: Sequence[Sample], otherwise: Sequence[Sample]) -> str:
    if not otherwise:
        return ""
    always = set.intersection(*(_patterns(sample.rows[-_LAST_ROWS:]) for sample in shown))
    never = set.union(*(_patterns(sample.rows) for sample in otherwise))
    if not (found := sorted(always - never, key=len)):
        return ""
    composer = ", composer: true, dialog: false" if state is AgentState.READY and shown[-1].composer else ""
    return f"tail: {_LAST_ROWS}, screen: {quoted(found[-1])}{composer}"


def _patterns(rows: Iterable[str]) -> set[str]:
    return {f"^{loose(row.rstrip())}$" for row in rows if any(char.isalpha() for char in row)}


def choice_pattern(row: str) -> str:
    """Return a pattern for the marked row of a list of choices; empty if the row has no mark."""
    found = CHOICE.match(row)
    if found is None:
        return ""
    return (
        "^"
        + re.sub(r"\\?\s+", r"\\s*", loose(row[: found.end("pointer")]))
        + r"\s*"
        + (r"\d+[.)]" if re.match(r"\s*\d+[.)]", row[found.end("pointer") :]) else r"(?:[^\w\s] )?\w")
    )


def loose(text: str) -> str:
    pieces = re.split(r"(\d+|\s+)", text)
    return "".join(
        r"\d+" if piece.isdigit() else r"\s+" if piece.isspace() else plain_pattern(piece) for piece in pieces
    )


def plain_pattern(text: str) -> str:
    """Escape a text as a readable pattern: only special characters are escaped."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)
