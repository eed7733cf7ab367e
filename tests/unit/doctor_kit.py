"""Facts of an examination, made by hand."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from synapse_tui.agents.composer import ComposerReading, ScreenText
from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.profiles.profile import Profile, StateRule
from synapse_tui.agents.state import Signals
from synapse_tui.cli.trials.examination import DoctorQuestion, Sample, Seen
from synapse_tui.cli.trials.report import Verdict
from synapse_tui.core.model import AgentState, DeliveryState, Sender, Task, TaskState
from synapse_tui.system.paths import shipped_profiles
from synapse_tui.terminal import Terminal

NOW = datetime(2026, 11, 22, tzinfo=UTC)
QUESTION = DoctorQuestion("say {AB}", "AB-CD", ("AB", "CD"))
WIDE = 100


def shipped(name: str = "dummy", **changes: Any) -> Profile:
    """A shipped profile, with changes."""
    return dataclasses.replace(load_profiles(shipped_profiles(), environ={}).find(name), **changes)


def profile_of(folder: Path, text: str) -> Profile:
    """The profile of a file with that text; it must be a sound one."""
    (folder / "made.yaml").write_text(f"command: made\n{text}", encoding="utf-8")
    found = load_profiles(folder, environ={})
    assert found.problems == []
    return found.profiles["made"]


def rule_of(folder: Path, rule: str) -> StateRule:
    """A rule as a profile has it that was made of one entry of `states`."""
    before = {rule.name for rule in profile_of(folder, "").states}
    (made,) = (made for made in profile_of(folder, f"states: [{rule}]\n").states if made.name not in before)
    return made


def task(
    state: TaskState = TaskState.COMPLETED, delivery: DeliveryState = DeliveryState.DONE, reason: str = ""
) -> Task:
    return Task(
        "12345678-0000",
        "context",
        "synapse-made-8980",
        Sender("synapse-doctor", "system"),
        "text",
        3,
        NOW,
        NOW,
        state=state,
        delivery=delivery,
        reason=reason,
    )


def held(reason: str) -> Task:
    return task(TaskState.SUBMITTED, DeliveryState.HELD, reason)


def seen(made: Task | None = None, **fields: Any) -> Seen:
    """A turn that ended well, with changes."""
    values: dict[str, Any] = {"ended": True, "answer": "AB-CD", "proof": "AB-CD"}
    values["states"] = (AgentState.READY, AgentState.PROCESSING, AgentState.READY)
    return Seen(QUESTION, "[A2A:12345678:synapse-doctor] say", made or task(), **{**values, **fields})


def unsent(reason: str, **fields: Any) -> Seen:
    """A message that was never submitted."""
    return seen(held(reason), ended=False, answer="", proof="", states=(AgentState.READY,), **fields)


def signals(sample: Sample) -> Signals:
    """What the rules would have seen of a sample."""
    terminal = Terminal(WIDE, 24)
    terminal.feed("\r\n".join(sample.rows).encode())
    return Signals(
        screen=ScreenText.of(terminal),
        composer=ComposerReading(visible=sample.composer, dialog=AgentDialog() if sample.dialog else None),
        title=sample.title,
        status=sample.status,
        progress=sample.progress,
        quiet=sample.quiet,
    )


def keys(verdict: Verdict) -> list[tuple[str, str]]:
    """The advice, without the reasons."""
    return [(advice.key, advice.value) for advice in verdict.advice]
