"""What an examination says: results, and what to change in the profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAILED = "failed"  # The agent does something else than its profile says
    NOT_SHOWN = "not shown"
    """Neither proved nor refuted: the model or the agent's configuration did not give rise to it."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to do about a result."""

    key: str  # Key of the profile (`interrupt.keys`); empty when something else is to be done
    value: str  # The value to try, as YAML; or what to do
    why: str = ""  # What was seen that speaks for it


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found."""

    outcome: Outcome
    evidence: str  # What was seen, in a sentence
    advice: tuple[Advice, ...] = ()


def ok(evidence: str) -> Verdict:
    return Verdict(Outcome.OK, evidence)


def failed(evidence: str, *advice: Advice) -> Verdict:
    """It does not hold."""
    return Verdict(Outcome.FAILED, evidence, advice)


def not_shown(evidence: str, *advice: Advice) -> Verdict:
    """It could not be seen."""
    return Verdict(Outcome.NOT_SHOWN, evidence, advice)


def skipped(evidence: str) -> Verdict:
    """It was not tried."""
    return Verdict(Outcome.SKIPPED, evidence)


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the table."""

    check: str
    verdict: Verdict
    seconds: float = 0.0
    screen: str = ""  # The agent's screen at its end, where it did not hold; else empty


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found of one agent."""

    agent: str
    version: str  # The installed version; empty when unknown
    proved: str  # The version that the profile was last proved with; empty for none
    source: str
    shipped: bool  # Whether that is a profile of this installation
    folder: str  # The folder that the agent worked in
    results: Sequence[Result] = field(default_factory=tuple)  # In the order of the checks

    @property
    def failed(self) -> bool:
        return any(result.verdict.outcome is Outcome.FAILED for result in self.results)

    @property
    def advice(self) -> list[Advice]:
        """What to do, each once, in the order of the checks."""
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
