"""Decides an agent's state from its terminal's signals, by the ordered rules of its profile."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from synapse_tui.agents.composer import ComposerReader, ComposerReading, ScreenText
from synapse_tui.agents.dialogs import DialogLog
from synapse_tui.agents.profiles.profile import READY_DEBOUNCE, Profile, StateRule
from synapse_tui.core.model import AgentState, StateReport
from synapse_tui.hooks import HookKind
from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.events import ProgramStatus, ProgressChanged, PromptMark, TerminalEvent

if TYPE_CHECKING:
    from synapse_tui.terminal import Terminal

MAX_PASSAGES = 200  # maximum passages in a timeline


@dataclass(frozen=True, slots=True)
class Passage:
    report: StateReport
    began: float  # seconds on the session's monotonic clock; after `report.since` if only the rule changed
    at: datetime  # aware; the monotonic clock stops while the machine sleeps

    @property
    def state(self) -> AgentState:
        return self.report.state

    def to_json(self) -> dict[str, object]:
        report = self.report
        return {
            "state": report.state.value,
            "rule": report.rule,
            "matched": report.matched,
            "detail": report.detail,
            "since": report.since,
            "began": self.began,
            "at": self.at.isoformat(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Passage:
        report = StateReport(
            AgentState(content["state"]),
            str(content["rule"]),
            str(content["matched"]),
            float(content["since"]),
            str(content["detail"]),
        )
        return cls(report, float(content["began"]), datetime.fromisoformat(content["at"]))


class Timeline:
    def __init__(
        self,
        passages: Sequence[Passage] = (),
        *,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
        limit: int = MAX_PASSAGES,
    ) -> None:
        self._today = today
        self._passages: deque[Passage] = deque(passages, maxlen=limit)

    @property
    def passages(self) -> Sequence[Passage]:
        return tuple(self._passages)

    @property
    def last(self) -> StateReport | None:
        return self._passages[-1].report if self._passages else None

    def add(self, report: StateReport, now: float) -> None:
        self._passages.append(Passage(report, now, self._today()))

    def since(self) -> datetime:
        """Return when the current state began, whichever rules decided it, as far back as is remembered."""
        found = self._passages[-1]
        for passage in reversed(self._passages):
            if passage.state is not found.state:
                break
            found = passage
        return found.at

    @property
    def ended_at(self) -> datetime | None:
        """When the process ended last; None if it never has."""
        ends = [passage.at for passage in self._passages if passage.state is AgentState.EXITED]
        return ends[-1] if ends else None

    def worked_after(self, at: datetime) -> bool:
        """Whether the agent began to work, or to ask, after that time."""
        busy = (AgentState.PROCESSING, AgentState.WAITING)
        return any(passage.at > at and passage.state in busy for passage in self._passages)

    def past(self, now: float) -> Sequence[tuple[Passage, float]]:
        ends = [*(passage.began for passage in self.passages[1:]), now]
        return [
            (passage, max(0.0, end - passage.began))
            for passage, end in zip(self._passages, ends, strict=True)
        ]


_MATCHED_LENGTH = 200
_SHORTEST = 0.001  # seconds: a wait that rounding makes none would never be looked at again


@dataclass(frozen=True, slots=True)
class Signals:
    screen: ScreenText
    composer: ComposerReading
    title: str = ""
    status: str = ""  # last OSC 7501 state
    status_fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    progress: int | None = None  # last OSC 9;4 state
    prompt: str = ""  # letter of the last OSC 133 mark; empty if the program does not mark its output
    command: bool = False  # whether a command runs in the foreground
    quiet: float = 0.0  # seconds since the screen or title last changed


@dataclass(frozen=True, slots=True)
class RuleMatch:
    rule: StateRule
    matched: str  # matched text, at most 200 characters
    detail: str = ""  # detail to show to users; may be empty


def decide(rules: Sequence[StateRule], signals: Signals) -> RuleMatch | None:
    for rule in rules:
        matched = _match(rule, signals)
        if matched is not None:
            return RuleMatch(rule, matched[:_MATCHED_LENGTH], _detail(rule, signals))
    return None


def next_change(rules: Sequence[StateRule], signals: Signals, holds: StateRule | None) -> float | None:
    """Return the seconds until silence alone may change which rule matches; None if it cannot."""
    if holds is not None:
        rules = rules[: rules.index(holds) + 1]
    waits = [
        max(limit - signals.quiet, _SHORTEST)
        for rule in rules
        for limit in (rule.silence, rule.active)
        if limit is not None and limit > signals.quiet
    ]
    return min(waits, default=None)


def _match(rule: StateRule, signals: Signals) -> str | None:
    if not (_status_holds(rule, signals) and _composer_holds(rule, signals) and _quiet_holds(rule, signals)):
        return None
    if rule.command and not signals.command:
        return None
    if rule.progress and signals.progress not in rule.progress:
        return None
    if rule.prompt and signals.prompt not in rule.prompt:
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
    if rule.dialog is not None and (signals.composer.dialog is not None) is not rule.dialog:
        return False
    return rule.composer is None or signals.composer.visible is rule.composer


def _quiet_holds(rule: StateRule, signals: Signals) -> bool:
    if rule.silence is not None and signals.quiet < rule.silence:
        return False
    return rule.active is None or signals.quiet < rule.active


def _screen_holds(rule: StateRule, signals: Signals, parts: list[str]) -> bool:
    text = signals.screen.tail(rule.tail)
    for pattern in rule.screen:
        # A prompt's trailing blank looks like an empty cell.
        found = pattern.search(text) or pattern.search(f"{text} ")
        if found is None:
            return False
        parts.append(_row_at(text, found))
    return not any(pattern.search(text) for pattern in rule.absent)


def _row_at(text: str, found: re.Match[str]) -> str:
    start = text.rfind("\n", 0, found.start()) + 1
    return text[start:].split("\n", 1)[0].strip()


def _told(rule: StateRule, signals: Signals, parts: list[str]) -> str:
    if rule.status:
        kind = signals.status_fields.get("kind", "")
        parts.append(f"OSC 7501 {signals.status}" + (f" {kind}" if kind else ""))
    if rule.progress:
        parts.append(f"OSC 9;4;{signals.progress}")
    if rule.prompt:
        parts.append(f"OSC 133;{signals.prompt}")
    if rule.dialog:
        parts.append(signals.composer.dialog_name)
    if rule.command:
        parts.append("a command runs in the foreground")
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


HOOKED = "hook"  # rule name of a state that only a hook has reported
TURN_ENDED = "hook: turn ended"  # the same for the end of a turn, with the composer on the screen
# seconds after a prompt or a tool call within which the screen shows that the agent works
WORKS = 3.0
ASKS = 5.0  # seconds within which an announced dialog appears: Codex takes almost one
_NEVER = float("-inf")
_ENDS = (HookKind.IDLE, HookKind.INTERRUPTED, HookKind.END)
_GOES_ON = (HookKind.PROMPT, HookKind.PRE, HookKind.POST, HookKind.FAILED, HookKind.ASKED)


class HookHints:
    """What hooks have reported, until it expires."""

    def __init__(self) -> None:
        self._works = _NEVER  # until when the agent counts as working
        self._asks = _NEVER  # until when a dialog is expected
        self._call = ""  # tool call that the dialog is about; empty if unknown
        # whether a prompt was reported without the end of its turn
        self._in_turn = False
        self.ended = False  # whether the end of a turn was reported, and nothing since

    def take(self, kind: HookKind, call: str, now: float) -> None:
        self.ended = kind is HookKind.IDLE or (self.ended and kind not in _GOES_ON)
        if kind in _ENDS:
            self._works, self._in_turn = _NEVER, False
            if kind is not HookKind.IDLE:  # background work may ask after the end of the turn
                self._asks = _NEVER
        elif kind is HookKind.PROMPT:
            self._works, self._in_turn = now + WORKS, True
        elif kind is HookKind.PRE and self._in_turn:
            self._works = now + WORKS
        elif kind is HookKind.ASKED:
            self._asks, self._call = now + ASKS, call
        elif kind in (HookKind.POST, HookKind.FAILED) and call and call == self._call:
            self._asks = _NEVER  # answered elsewhere: no dialog will open

    def state(self, screen: AgentState | None, now: float) -> AgentState | None:
        if screen is AgentState.WAITING:
            self._asks = self._works = _NEVER
        elif now < self._asks:
            return AgentState.WAITING
        elif screen is AgentState.PROCESSING:
            self._works = _NEVER
        elif now < self._works and screen in (AgentState.READY, None):
            return AgentState.PROCESSING
        return None

    def deadline(self, now: float) -> float | None:
        return min((until for until in (self._works, self._asks) if until > now), default=None)


# agents without synchronized output briefly show half frames, which match no rule
_UNKNOWN_DEBOUNCE = READY_DEBOUNCE

_FRAME_TIMEOUT = 0.2  # maximum seconds for one synchronized frame (DEC mode 2026)
_REDRAW = 0.5  # seconds within which a program has drawn its screen for a new size: no sign of work


class StateDetector:
    """Tracks the state of one process of an agent.

    READY needs a rule that matches, never just the absence of others: what no rule matches is UNKNOWN.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        now: float,
        timeline: Timeline | None = None,
        report: StateReport | None = None,
        runs_command: Callable[[], bool] = lambda: False,
    ) -> None:
        self._profile = profile
        self._runs_command = runs_command
        self._spawned = now
        self._status = ""
        self._status_fields: Mapping[str, str] = MappingProxyType({})
        self._progress: int | None = None
        self._prompt = ""
        self._marks: set[str] = set()
        self._text = ScreenText()
        self._title = ""
        self.composer = ComposerReader(profile, fresh=report is None)
        self._reading = ComposerReading(visible=False)
        self.dialogs = DialogLog()
        self._half = False  # whether the reading was taken mid-frame
        self._changed = now
        self._resized = _NEVER
        self._touched = False
        self._frame_began: float | None = None
        self._deadline: float | None = now + profile.startup.timeout
        self._timeline = timeline if timeline is not None else Timeline()
        self.report = report or StateReport(AgentState.STARTING, "starting", "", now)
        if report is None:
            self._timeline.add(self.report, now)
        self.suspended = False  # whether the process is stopped
        self._was_ready = self.report.state is AgentState.READY
        self._hints = HookHints()
        self._candidate = self.report.state
        self._candidate_since = self.report.since

    def follow(self, profile: Profile) -> None:
        """Decide by a changed profile, from the next update on."""
        self._profile = profile
        self.composer = ComposerReader(profile)
        self._half = True  # what was read by the old rules proves nothing
        if "status" in profile.ignores:
            self._status, self._status_fields = "", MappingProxyType({})
        if "progress" in profile.ignores:
            self._progress = None
        if "prompt" in profile.ignores:
            self._prompt = ""

    @property
    def timeline(self) -> Sequence[StateReport]:
        return tuple(passage.report for passage in self._timeline.passages)

    @property
    def deadline(self) -> float | None:
        """Return when `update` must be called even without output; None to wait for output."""
        return self._deadline

    @property
    def reading(self) -> ComposerReading:
        return self._reading

    @property
    def reports_status(self) -> bool:
        return bool(self._status)

    @property
    def marks_outputs(self) -> bool:
        """Whether OSC 133 proves anything: some programs put marks around messages, also earlier ones."""
        return self._marks >= {"C", "D"}

    def announces_dialog(self, now: float) -> bool:
        """Whether the agent waits for a person, but still shows its composer, and no dialog for now.

        Only where it tells so other than by its screen, and where its dialogs can be recognized.
        """
        report, profile, reading = self.report, self._profile, self._reading
        if report.state is not AgentState.WAITING or not reading.visible or reading.dialog is not None:
            return False
        rule = next((rule for rule in profile.states if rule.name == report.rule), None)
        return bool(profile.dialogs) and not (rule is not None and rule.screen) and now < self._shows_by()

    def _shows_by(self) -> float:
        """Return when an announced dialog should have been drawn; another may follow the one before."""
        return max(self.report.since, self.dialogs.gone_at or _NEVER) + ASKS

    def drawing(self, now: float) -> bool:
        """Whether a synchronized frame has begun and is awaited, so that the reading is older."""
        return self._frame_began is not None and now < self._frame_began + _FRAME_TIMEOUT

    def event(self, event: TerminalEvent, now: float) -> None:
        if self.report.state is AgentState.EXITED:
            return
        match event:
            case ProgramStatus(state="clear"):
                self._status, self._status_fields = "", MappingProxyType({})
            case ProgramStatus(state=state, fields=fields):
                self._status, self._status_fields = state, fields
            case ProgressChanged(state=progress):
                self._progress = progress
            case PromptMark(kind=kind) if kind in "ABCD":
                self._marks.add(kind)
                if not self.marks_outputs:
                    return
                self._prompt = kind
            case _:
                return
        self._changed = now

    def touched(self) -> None:
        """Note that the agent gets keys."""
        self._resized = _NEVER
        self._touched = True
        self.composer.touched()

    def resized(self, now: float) -> None:
        """Note that the program is about to draw its screen anew; what it draws at work is still work."""
        if self.report.state is AgentState.READY:
            self._resized = now

    def hooked(self, kind: HookKind, call: str, now: float) -> None:
        self._hints.take(kind, call, now)

    def update(self, terminal: Terminal, now: float) -> StateReport | None:
        if self.report.state is AgentState.EXITED:
            return None
        self._look(terminal, now)
        if self.suspended:  # what the terminal echoes is not its work
            self._deadline = None
            if self.report.state is AgentState.SUSPENDED:
                return None
            self._candidate, self._candidate_since = AgentState.SUSPENDED, now
            return self._report(StateReport(AgentState.SUSPENDED, "process", "", now), now)
        signals = self.signals(now)
        verdict = decide(self._profile.states, signals)
        hinted = self._hinted(verdict, now)
        state, wait = (hinted, 0.0) if hinted is not None else self._wanted(verdict, now)
        if state is not self._candidate:
            self._candidate, self._candidate_since = state, now
        held = self._candidate_since + wait
        rule = verdict.rule if verdict is not None else None
        report = self._settle(state, verdict, now, hooked=hinted is not None) if now >= held else None
        self._set_deadline(next_change(self._profile.states, signals, rule), now, held)
        return report

    def signals(self, now: float) -> Signals:
        """Return what the rules are tried on."""
        return Signals(
            screen=self._text,
            composer=self._reading,
            title=self._title,
            status=self._status,
            status_fields=self._status_fields,
            progress=self._progress,
            prompt=self._prompt,
            command=any(rule.command for rule in self._profile.states) and self._runs_command(),
            quiet=now - self._changed,
        )

    def exited(self, now: float, how: str = "") -> StateReport:
        """Record the end of the process; the state is final."""
        self._deadline = None
        self.dialogs.look(None, now)
        if self.report.state is not AgentState.EXITED:
            self._report(StateReport(AgentState.EXITED, "process", "", now, how), now)
        return self.report

    def _look(self, terminal: Terminal, now: float) -> None:
        if not terminal.modes.synchronized:
            self._frame_began = None
        elif self._frame_began is None:
            self._frame_began = now
        if self.drawing(now):
            return
        change = self._text.take(terminal)
        written = change.text and now >= self._resized + _REDRAW
        if written or terminal.title != self._title:
            self._changed = now
        self._title = terminal.title
        if change.any or self._half or terminal.modes.synchronized:
            self._reading = self.composer.read(terminal, self._text)
            self._half = terminal.modes.synchronized
        self.dialogs.look(self._reading.dialog, now)

    def _hinted(self, verdict: RuleMatch | None, now: float) -> AgentState | None:
        hinted = self._hints.state(verdict.rule.state if verdict is not None else None, now)
        # During startup only the screen shows READY; a dialog may still open.
        return hinted if self._was_ready or hinted is AgentState.WAITING else None

    def _wanted(self, verdict: RuleMatch | None, now: float) -> tuple[AgentState, float]:
        if verdict is None and self._was_ready and self._hints.ended and self._reading.visible:
            return AgentState.READY, READY_DEBOUNCE  # the screen shows nothing that the profile knows
        startup = self._profile.startup
        starts = self.report.state is AgentState.STARTING and now < self._spawned + startup.timeout
        if verdict is None:
            return (AgentState.STARTING, 0.0) if starts else (AgentState.UNKNOWN, _UNKNOWN_DEBOUNCE)
        rule = verdict.rule
        if rule.active is not None and starts and startup.prompt and not self._touched:
            return AgentState.STARTING, 0.0
        if rule.state is AgentState.READY and not self._was_ready and not self._started(now):
            return AgentState.STARTING, 0.0
        return rule.state, rule.debounce

    def _started(self, now: float) -> bool:
        startup = self._profile.startup
        return now >= self._spawned + startup.delay and (self._reading.visible or not startup.composer)

    def _set_deadline(self, wait: float | None, now: float, held: float) -> None:
        times = [held] if now < held else []
        if (until := self._hints.deadline(now)) is not None:
            times.append(until)
        if self._frame_began is not None:
            times.append(self._frame_began + _FRAME_TIMEOUT)
        if wait is not None:
            times.append(now + wait)
        if self.announces_dialog(now):
            times.append(self._shows_by())
        if not self._was_ready:
            startup = self._profile.startup
            times += [self._spawned + seconds for seconds in (startup.delay, startup.timeout)]
        self._deadline = min((time for time in times if time > now), default=None)

    def _settle(
        self, state: AgentState, verdict: RuleMatch | None, now: float, *, hooked: bool
    ) -> StateReport | None:
        before = self.report
        self._was_ready = self._was_ready or state is AgentState.READY
        known = verdict is not None and verdict.rule.state is state
        ended = verdict is None and state is AgentState.READY
        rule = verdict.rule.name if verdict is not None and known else _unruled(state, hooked=hooked)
        rule = TURN_ENDED if ended else rule
        detail = verdict.detail if verdict is not None and known else ""
        if (before.state, before.rule, before.detail) == (state, rule, detail):
            return None
        since = before.since if before.state is state else now
        matched = verdict.matched if verdict is not None and not hooked else ""
        return self._report(StateReport(state, rule, matched, since, detail), now)

    def _report(self, report: StateReport, now: float) -> StateReport:
        self.report = report
        self._timeline.add(report, now)
        return report


def _unruled(state: AgentState, *, hooked: bool) -> str:
    if hooked:
        return HOOKED
    return "starting" if state is AgentState.STARTING else "no rule matches"
