"""The results of an examination, with suggested changes to the profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"  # The agent does not behave as its profile says
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
class Report:
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
