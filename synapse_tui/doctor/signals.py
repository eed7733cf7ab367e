"""The check of the state rules: which decided, which would have held besides, which never did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.model import AgentState

from .examination import Examination
from .recorder import RuleUse
from .report import Advice, Verdict, failed, not_shown, ok

WANTED = (AgentState.READY, AgentState.PROCESSING, AgentState.WAITING)
UNKNOWN_SECONDS = 1.0
"""Seconds of UNKNOWN after the first READY that are too many."""


async def signals(examination: Examination) -> Verdict:
    """Every state was told by a rule."""
    recorder = examination.recorder
    return judge_signals(recorder.uses, recorder.reports, unknown_seconds(examination), examination.profile)


def unknown_seconds(examination: Examination) -> float:
    """Seconds of UNKNOWN after the first READY."""
    samples = list(examination.recorder.samples)
    first = next((at for at, sample in enumerate(samples) if sample.state is AgentState.READY), len(samples))
    seconds = 0.0
    for before, after in zip(samples[first:], samples[first + 1 :], strict=False):
        seconds += (after.at - before.at) if before.state is AgentState.UNKNOWN else 0.0
    return seconds


def judge_signals(
    uses: Mapping[str, RuleUse],
    reports: Sequence[tuple[AgentState, str]],
    unknown: float,
    profile: Profile,
) -> Verdict:
    """Say what the rules did.

    Args:
        uses: What became of each rule.
        reports: Every state that was reported, with its rule.
        unknown: Seconds of UNKNOWN after the first READY.
        profile: Its rules say which states they decide.
    """
    decided = [name for name, use in uses.items() if use.decided]
    agreed = [rule.name for rule in profile.states if _agreed(uses[rule.name], rule.state)]
    never = [name for name in uses if name not in decided and name not in agreed]
    told = "; ".join(
        f"{words}: {', '.join(names)}"
        for words, names in (("decided", decided), ("held besides", agreed), ("never held", never))
        if names
    )
    if unknown > UNKNOWN_SECONDS:
        return failed(
            f"UNKNOWN for {unknown:.1f} s in all; {told}",
            Advice("states", "a rule for what it showed then", "messages are held while no rule matches"),
        )
    seen = {state for state, _ in reports}
    missing = [state.value for state in WANTED if state not in seen]
    if missing:
        return not_shown(f"{', '.join(missing)} was never reported; {told}")
    return ok(told)


def _agreed(use: RuleUse, state: AgentState) -> bool:
    """Whether a rule that never decided would have told the same as the one that did."""
    return not use.decided and use.held[state] > 0
