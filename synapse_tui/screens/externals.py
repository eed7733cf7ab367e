"""What can be done with external agents: add, open, write, cancel, look at, remove."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from synapse_tui.errors import AddressError, SynapseError
from synapse_tui.model import USER
from synapse_tui.widgets.conversation import ConversationPane, ConversationView

from .confirm import Confirm
from .external_add import AddExternal, card_text
from .external_tasks import ExternalTasks
from .messages import MessageCommands
from .report import Report

if TYPE_CHECKING:
    from synapse_tui.a2a.external.conversation import Conversation

log = logging.getLogger(__name__)

_MENTION = re.compile(r"[@＠](\S+)\s+(\S.*)", re.DOTALL)
INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "close_agent": "close_external",
        "explain_state": "external_card",
        "interrupt": "cancel_external",
        "scroll": "scroll_external",
        "live": "scroll_external",
        "restart_agent": "new_external",
        "rename_agent": "not_external",
        "watch_agent": "not_external",
        "send_instructions": "not_external",
    }
)
"""What an action of hosted agents means where the tab of an external one has the keys."""


class ExternalCommands(MessageCommands):
    """The part of the commands that is about external agents."""

    def for_external(self, action_id: str, agent_id: str) -> str:
        """The action that is meant where it is about an external agent."""
        return INSTEAD.get(action_id, action_id) if self.host.externals.has(agent_id) else action_id

    def do_add_external(self, _agent_id: str, _task_id: str) -> None:
        """Ask for a URL, show the card, add the agent and open its tab."""
        externals = self.host.externals
        self._ask(AddExternal(externals.preview, externals.keep), self._added)

    def _added(self, alias: str) -> None:
        self.app.notice(f"@{alias} is added")
        self.do_open_external(alias, "")

    def do_open_external(self, alias: str, _task_id: str) -> None:
        """Open the tab of an external agent and go there."""
        if not self.host.externals.has(alias):
            self.app.notice(f"there is no external agent @{alias} any more", "warning")
            return
        self.host.externals.set_opened(alias, opened=True)
        self.run(self._open_external(alias))

    async def _open_external(self, alias: str) -> None:
        await self.main.show_talk(alias)
        if self.main.has_class("-overlay"):
            self.main.remove_class("-sidebar")
        self.main.go_to(alias)

    def do_close_external(self, alias: str, _task_id: str) -> None:
        """Close the tab; what was said stays, and a new message opens it again."""
        self.host.externals.set_opened(alias, opened=False)

    def do_external_card(self, alias: str, _task_id: str) -> None:
        """Show what an external agent says of itself."""
        try:
            agent = self.host.externals.get(alias)
        except SynapseError as error:
            self.app.notice_error(error)
        else:
            self._ask(Report(f"@{agent.alias}", card_text(agent)))

    def do_external_tasks(self, alias: str, _task_id: str) -> None:
        """List the tasks of a conversation."""
        talk = self._talk(alias)
        if talk is None or not talk.tasks:
            self.app.notice(f"nothing was sent to @{alias} yet")
        else:
            tasks = ExternalTasks(alias, lambda: talk.tasks, self.today)
            self._ask(tasks, lambda task_id: self.do_show("", task_id))

    def do_cancel_external(self, alias: str, _task_id: str) -> None:
        """Cancel the newest task that goes on."""
        talk = self._talk(alias)
        going = [task for task in talk.tasks if not task.state.final] if talk is not None else []
        if going:
            self.run(self._cancel_external(alias, going[-1].id))
        else:
            self.app.notice(f"@{alias} works on nothing of yours")

    async def _cancel_external(self, alias: str, task_id: str) -> None:
        await self.host.cancel_task(alias, task_id)
        self.app.notice(f"the task of @{alias} is canceled")

    def do_new_external(self, alias: str, _task_id: str) -> None:
        """Let the next message begin a new conversation."""
        self.host.externals.begin_anew(alias)

    def do_scroll_external(self, alias: str, _task_id: str) -> None:
        """Let keys choose among what was said, to copy it, or write again."""
        pane = self.main.deck.pane(alias)
        if isinstance(pane, ConversationPane):
            self.main.go_to(alias)
            pane.talk.toggle_choosing()

    def do_not_external(self, alias: str, _task_id: str) -> None:
        """Say that it is for agents in panes of their own only."""
        self.app.notice(f"@{alias} is an external agent: that is for agents that run here", "warning")

    def do_remove_external(self, alias: str, _task_id: str) -> None:
        """Ask, then forget an agent and what was said with it."""
        text = f"What was said with @{alias} in this project is deleted. The agent itself is not told."
        question = Confirm(f"Remove @{alias}?", text, "Remove it")
        self._ask(question, lambda yes: self.run(self._remove_external(alias)) if yes else None)

    async def _remove_external(self, alias: str) -> None:
        await self.host.externals.remove(alias)
        self.app.notice(f"@{alias} is removed")

    def send_talk(self, view: ConversationView, text: str) -> None:
        """Send what was written in the tab of an external agent; `@agent text` goes to that agent instead."""
        self.app.run_worker(self._send_talk(view, text), exit_on_error=False, group="talks")

    async def _send_talk(self, view: ConversationView, text: str) -> None:
        try:
            mention = self._mention(view.alias, text)
            if mention is not None:
                receipts = await self.host.send(mention[0], mention[1])
                self.app.notice(f"→ {self.summary(receipts)}")
            else:
                await self.host.externals.send(view.alias, text, sender=USER)
        except SynapseError as error:
            view.composer.give_back(text)
            self.app.notice_error(error)
        except Exception as error:
            log.exception("a message was not sent")
            view.composer.give_back(text)
            self.app.notice_error(error)

    def _mention(self, alias: str, text: str) -> tuple[str, str] | None:
        """Address and message where a text begins with an address that means somebody else."""
        found = _MENTION.fullmatch(text)
        if found is None:
            return None
        try:
            targets = self.host.resolve(found[1])
        except AddressError:
            return None
        return (found[1], found[2]) if [each.agent_id for each in targets] != [alias] else None

    def _talk(self, alias: str) -> Conversation | None:
        return self.host.externals.conversation(alias)
