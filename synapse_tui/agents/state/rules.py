"""Whether a state rule of a profile holds for what is known of an agent at one moment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from synapse_tui.agents.composer.reading import ComposerReading
from synapse_tui.agents.composer.screen_text import ScreenText
from synapse_tui.agents.profiles.profile import StateRule

_MATCHED_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of an agent at one moment.

    Attributes:
        screen: What the screen shows.
        composer: What is read of the composer and of dialogs.
        title: The window title.
        status: The last OSC 7501 state; empty for none.
        status_fields: Its fields.
        progress: The last OSC 9;4 state; None for none.
        quiet: Seconds since something last changed on the screen or in the title.
    """

    screen: ScreenText
    composer: ComposerReading
    title: str = ""
    status: str = ""
    status_fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    progress: int | None = None
    quiet: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rule that holds.

    Attributes:
        rule: The rule.
        matched: What it matched, at most 200 characters.
        detail: What a person should know; may be empty.
    """

    rule: StateRule
    matched: str
    detail: str = ""


def decide(rules: Sequence[StateRule], signals: Signals) -> Verdict | None:
    """The first rule that holds, or None.

    Args:
        rules: In their order.
        signals: What is known now.
    """
    for rule in rules:
        matched = _match(rule, signals)
        if matched is not None:
            return Verdict(rule, matched[:_MATCHED_LENGTH], _detail(rule, signals))
    return None


def next_change(rules: Sequence[StateRule], signals: Signals, holds: StateRule | None) -> float | None:
    """Seconds until silence alone may change which rule holds; None for never.

    Args:
        rules: In their order.
        signals: What is known now.
        holds: The rule that holds now: those behind it change nothing; None for none.
    """
    if holds is not None:
        rules = rules[: rules.index(holds) + 1]
    waits = [
        limit - signals.quiet
        for rule in rules
        for limit in (rule.silence, rule.active)
        if limit is not None and limit > signals.quiet
    ]
    return min(waits, default=None)


def _match(rule: StateRule, signals: Signals) -> str | None:
    """What a rule matched, or None when one of its conditions does not hold."""
    if not (_status_holds(rule, signals) and _composer_holds(rule, signals) and _quiet_holds(rule, signals)):
        return None
    if rule.progress and signals.progress not in rule.progress:
        return None
    parts: list[str] = []
    if rule.title is not None:
        found = rule.title.search(signals.title)
        if found is None:
            return None
        parts.append(signals.title.strip())
    if (rule.screen or rule.absent) and not _screen_holds(rule, signals, parts):
        return None
    return _told(rule, signals, parts)


def _status_holds(rule: StateRule, signals: Signals) -> bool:
    if rule.status and signals.status not in rule.status:
        return False
    return not rule.status_kinds or signals.status_fields.get("kind", "") in rule.status_kinds


def _composer_holds(rule: StateRule, signals: Signals) -> bool:
    if rule.dialog is not None and signals.composer.dialog is not rule.dialog:
        return False
    return rule.composer is None or signals.composer.visible is rule.composer


def _quiet_holds(rule: StateRule, signals: Signals) -> bool:
    if rule.silence is not None and signals.quiet < rule.silence:
        return False
    return rule.active is None or signals.quiet < rule.active


def _screen_holds(rule: StateRule, signals: Signals, parts: list[str]) -> bool:
    text = signals.screen.tail(rule.tail)
    for pattern in rule.screen:
        # A prompt's trailing blank cannot be told from an empty cell.
        found = pattern.search(text) or pattern.search(f"{text} ")
        if found is None:
            return False
        parts.append(_row_at(text, found))
    return not any(pattern.search(text) for pattern in rule.absent)


def _row_at(text: str, found: re.Match[str]) -> str:
    start = text.rfind("\n", 0, found.start()) + 1
    return text[start:].split("\n", 1)[0].strip()


def _told(rule: StateRule, signals: Signals, parts: list[str]) -> str:
    """What matched, in words for a person."""
    if rule.status:
        kind = signals.status_fields.get("kind", "")
        parts.append(f"OSC 7501 {signals.status}" + (f" {kind}" if kind else ""))
    if rule.progress:
        parts.append(f"OSC 9;4;{signals.progress}")
    if rule.dialog:
        parts.append(signals.composer.dialog_name)
    if rule.silence is not None:
        parts.append(f"nothing changed for {rule.silence:g} s")
    if rule.active is not None:
        parts.append(f"something changed within {rule.active:g} s")
    return " | ".join(parts)


def _detail(rule: StateRule, signals: Signals) -> str:
    if rule.detail is not None:
        found = rule.detail.search(signals.screen.tail(rule.tail))
        if found is not None:
            return found.group(found.lastindex or 0).strip()[:_MATCHED_LENGTH]
    if signals.composer.dialog:
        title = signals.composer.dialog_title
        return f"{signals.composer.dialog_kind}: {title}" if title else signals.composer.dialog_kind
    return signals.status_fields.get("msg", "")[:_MATCHED_LENGTH] if rule.status else ""
