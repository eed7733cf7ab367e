"""Recording the terminal of one agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.agents.session import AgentSession
from synapse_tui.terminal.dump import dump_screen

from .recorder import ScreenRecorder

_RESET = b"\x1bc"
"""RIS: what follows is meant for a terminal as it is after switching on."""


class PaneRecorder:
    """Records an agent from its present screen on, through restarts, until it is closed.

    Args:
        session: The agent.
        recorder: Takes what it puts out; made for the present size of its terminal.
    """

    def __init__(self, session: AgentSession, recorder: ScreenRecorder) -> None:
        self.recorder = recorder
        self._session = session
        self._terminal = session.terminal
        self._size = self._size_now()
        recorder.on_gap = self._repaint
        recorder.output(dump_screen(self._terminal))
        session.taps.append(self._output)

    @classmethod
    async def start(
        cls,
        session: AgentSession,
        path: Path,
        *,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
        overwrite: bool = False,
    ) -> PaneRecorder:
        """Begin to record into a new file; the arguments are those of `ScreenRecorder`.

        Raises:
            SynapseError: The file is there already, or cannot be made.
        """
        columns, lines = session.terminal.columns, session.terminal.lines
        title = session.name or session.agent_id

        def make() -> ScreenRecorder:
            return ScreenRecorder(
                path, columns, lines, environ=environ, title=title, clock=clock, overwrite=overwrite
            )

        recorder = await asyncio.to_thread(make)
        if (columns, lines) != (session.terminal.columns, session.terminal.lines):
            recorder.resized(session.terminal.columns, session.terminal.lines)
        return cls(session, recorder)

    async def close(self) -> None:
        """Stop recording; return when all is written."""
        if self._output in self._session.taps:
            self._session.taps.remove(self._output)
        self._follow()
        await self.recorder.close()

    def _output(self, data: bytes) -> None:
        self._follow()
        self.recorder.output(data)

    def _follow(self) -> None:
        """Note another size, and a terminal that is new because the agent was restarted."""
        if (size := self._size_now()) != self._size:
            self._size = size
            self.recorder.resized(*size)
        if self._session.terminal is not self._terminal:
            self._terminal = self._session.terminal
            self.recorder.output(_RESET)

    def _repaint(self) -> None:
        self.recorder.output(_RESET + dump_screen(self._session.terminal))
        self._size = self._size_now()
        self._terminal = self._session.terminal

    def _size_now(self) -> tuple[int, int]:
        return self._session.terminal.columns, self._session.terminal.lines
