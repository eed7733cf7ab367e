"""Notes what an agent showed during an examination: its states, and the signals and rules behind them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from synapse_tui.agents.composer import ScreenText
from synapse_tui.agents.session import AgentSession
from synapse_tui.agents.state import Signals, decide
from synapse_tui.events import AgentStateChanged, Event, EventBus
from synapse_tui.model import AgentState
from synapse_tui.terminal.events import ProgramStatus, ProgressChanged

PERIOD = 0.1
"""Seconds between two samples."""
MAX_SAMPLES = 6000
TAIL = 12
"""Rows with text at the end of the screen that a sample keeps."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What an agent showed at one moment.

    Attributes:
        at: Seconds on the session's clock.
        state: What the detector had decided.
        title: The window title.
        status: The last OSC 7501 state; empty for none.
        progress: The last OSC 9;4 state; None for none.
        composer: Whether the composer was there and took keys.
        dialog: Whether a rule saw a dialog.
        rows: The last rows with text.
        cursor: The row of the cursor.
        quiet: Seconds since the rows or the title last changed.
    """

    at: float
    state: AgentState
    title: str = ""
    status: str = ""
    progress: int | None = None
    composer: bool = False
    dialog: bool = False
    rows: tuple[str, ...] = ()
    cursor: str = ""
    quiet: float = 0.0


@dataclass(slots=True)
class RuleUse:
    """What became of one rule of the profile.

    Attributes:
        decided: How often it decided the state.
        held: In how many samples it held, by the state that was reported then.
    """

    decided: int = 0
    held: Counter[AgentState] = field(default_factory=Counter)


class Recorder:
    """Takes samples of one session, and hears its reports.

    Args:
        session: The session; it is started.
        events: The bus that it tells its reports on.
    """

    def __init__(self, session: AgentSession, events: EventBus) -> None:
        self._session = session
        self.samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self.reports: list[tuple[AgentState, str]] = []
        """State and rule of every report."""
        self._uses = {rule.name: RuleUse() for rule in session.profile.states}
        self._text = ScreenText()
        self._shown: tuple[object, ...] = ()
        self._changed = session.console.now()
        self._unsubscribe = events.subscribe(self._heard)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="doctor-recorder")

    @property
    def uses(self) -> Mapping[str, RuleUse]:
        """Every rule of the profile by its name, in order."""
        return MappingProxyType(self._uses)

    async def close(self) -> None:
        """Take no more samples."""
        self._unsubscribe()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def since(self, at: float) -> list[Sample]:
        """The samples from a time on."""
        return [sample for sample in self.samples if sample.at >= at]

    def seconds_in(self, state: AgentState) -> float:
        """Seconds that the agent was seen in a state, by the samples."""
        return sum(sample.state is state for sample in self.samples) * PERIOD

    def take(self) -> Sample:
        """Take a sample now."""
        session = self._session
        console, terminal, reading = session.console, session.terminal, session.reading()
        self._text.take(terminal)
        rows = tuple(row for row in self._text.tail(len(self._text.rows)).split("\n") if row.strip())
        if (shown := (self._text.tail(len(self._text.rows)), terminal.title)) != self._shown:
            self._shown, self._changed = shown, console.now()
        status, progress = console.signals.get("status"), console.signals.get("progress")
        told = status if isinstance(status, ProgramStatus) and status.state != "clear" else None
        sample = Sample(
            at=console.now(),
            state=session.report.state,
            title=terminal.title.strip(),
            status=told.state if told is not None else "",
            progress=progress.state if isinstance(progress, ProgressChanged) else None,
            composer=reading.visible,
            dialog=reading.dialog,
            rows=rows[-TAIL:],
            cursor=terminal.display[terminal.cursor.y].rstrip(),
            quiet=console.now() - self._changed,
        )
        self.samples.append(sample)
        self._try_rules(sample, told.fields if told is not None else {})
        return sample

    def _try_rules(self, sample: Sample, fields: Mapping[str, str]) -> None:
        """See which rules hold, also those that come after the one that decides."""
        signals = Signals(
            screen=self._text,
            composer=self._session.reading(),
            title=self._session.terminal.title,
            status=sample.status,
            status_fields=fields,
            progress=sample.progress,
            quiet=sample.quiet,
        )
        for rule in self._session.profile.states:
            if decide((rule,), signals) is not None:
                self._uses[rule.name].held[sample.state] += 1

    def _heard(self, event: Event) -> None:
        if isinstance(event, AgentStateChanged):
            self.reports.append((event.report.state, event.report.rule))
            if event.report.rule in self._uses:
                self._uses[event.report.rule].decided += 1

    async def _run(self) -> None:
        while True:
            if self._session.exit is None and not self._session.terminal.modes.synchronized:
                self.take()
            await asyncio.sleep(PERIOD)
