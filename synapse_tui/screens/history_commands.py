"""What can be done with the history: look at it, send a task of it again, write it to a file."""

from __future__ import annotations

from pathlib import Path

from synapse_tui.messages.records import Wanted
from synapse_tui.model import INTERRUPT_PRIORITY, Task
from synapse_tui.widgets.text import plural

from .composer import Draft
from .history import HistoryView, Surroundings
from .history_export import HistoryExport
from .messages import MessageCommands

HISTORY = "env.SYNAPSE_HISTORY_ENABLED"


class HistoryCommands(MessageCommands):
    """The part of the commands that is about the history."""

    def do_history(self, _agent_id: str, _task_id: str) -> None:
        """Show the history."""
        around = Surroundings(
            self.host.history.reader,
            self.host.project,
            labels=self.labels(),
            agents={agent.agent_type: f"every {agent.agent_type}" for agent in self.main.agents},
            kept=self.host.settings.flag(HISTORY),
            now=self.today,
            again=self._send_again,
            export=self._export,
        )
        self._ask(HistoryView(around))

    def _send_again(self, task: Task) -> None:
        """Open the composer with a message of before, and to whom it went where that agent is still there."""
        everyone = self.recipients()
        to = next((each.address for each in everyone if each.agent_id == task.target), "")
        priority = min(task.priority, INTERRUPT_PRIORITY - 1)
        self.compose(everyone, Draft(to, task.text.strip(), priority), self._tell)

    def _export(self, wanted: Wanted) -> None:
        async def write(form: str, path: Path) -> str:
            count = await self.host.history.reader.export(wanted, form, path)
            return f"{plural(count, 'task')} in {path}"

        self._ask(HistoryExport(self.host.project, self.today(), write), self._tell)

    def _tell(self, text: str) -> None:
        """Tell in the view, which lies over the status bar, and there too."""
        self.app.notice(text)
        if isinstance(self.app.screen, HistoryView):
            self.app.screen.tell(text)
