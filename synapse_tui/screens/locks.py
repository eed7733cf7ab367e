"""What can be done with locks and changes of files: look at them, release a lock, copy a path."""

from __future__ import annotations

from synapse_tui.file_safety import Lock, ModificationQuery
from synapse_tui.hooks.consent import Consent
from synapse_tui.model import USER
from synapse_tui.widgets.text import one_line, shorten_middle

from .confirm import Confirm
from .file_story import Choice, FileStory, RecentChanges
from .hook_question import HookQuestion
from .messages import MessageCommands

SHOWN = 200  # how many changes are listed
NAME_CELLS = 32  # how much of a path stands in a notice
OFF = "file safety is off: synapse config set env.SYNAPSE_FILE_SAFETY_ENABLED true"


class LockCommands(MessageCommands):
    """The part of the commands that is about files."""

    def do_locks(self, _agent_id: str, _task_id: str) -> None:
        if self._watched():
            self.main.enter_locks()
            self.run(self._tell_when_none())

    async def _tell_when_none(self) -> None:
        """Say that nothing is locked: where the sidebar was open already, nothing else is new."""
        if not await self.host.safety.locks():
            self.app.notice("no file is locked")

    def do_recent_changes(self, _agent_id: str, _task_id: str) -> None:
        if self._watched():
            query = ModificationQuery(limit=SHOWN)
            changes = RecentChanges(lambda: self.host.safety.changes(query), self.labels(), self.today)
            self._ask(changes, lambda file: self.do_show_file("", file))

    def do_show_file(self, _agent_id: str, file: str) -> None:
        query = ModificationQuery(file=file, limit=SHOWN)

        async def lock() -> Lock | None:
            return next((each for each in await self.host.safety.locks() if each.file == file), None)

        story = FileStory(
            file,
            lock=lock,
            changes=lambda: self.host.safety.changes(query),
            labels=self.labels(),
            now=self.today,
        )
        self._ask(story, lambda choice: self._with_file(file, choice))

    def _with_file(self, file: str, choice: Choice) -> None:
        if choice == "release":
            self.do_release_lock("", file)
        elif choice == "take":
            self.do_take_lock("", file)
        else:
            path = str(self.host.safety.keys.path(file))
            self.app.copy_to_clipboard(path)
            self.app.notice(f"copied {path}")

    def do_release_lock(self, _agent_id: str, file: str) -> None:
        name = shorten_middle(one_line(file), 50)
        text = (
            "Its holder is not stopped: a write of it that is under way goes on, and others may write "
            "the file from now on."
        )
        question = Confirm(f"Release {name}?", text, "Release it")
        self._ask(question, lambda yes: self.run(self._release(file)) if yes else None)

    def do_take_lock(self, _agent_id: str, file: str) -> None:
        self.run(self._ask_to_take(file))

    async def _ask_to_take(self, file: str) -> None:
        held = next((each for each in await self.host.safety.locks() if each.file == file), None)
        if held is None or held.agent_id == USER.sender_id:
            await self._take(file)
            return
        name = shorten_middle(one_line(file), 50)
        text = (
            f"{self.label(held.agent_id)} holds it, and is not stopped: a write of it that is under way goes "
            "on. Until you release it, for 5 minutes at most, agents that would write it are told to wait."
        )
        question = Confirm(f"Lock {name} yourself?", text, "Lock it")
        self._ask(question, lambda yes: self.run(self._take(file)) if yes else None)

    async def _take(self, file: str) -> None:
        before = await self.host.safety.take_lock(file)
        whose = f"; {self.label(before.agent_id)} held it" if before is not None else ""
        self.app.notice(f"{shorten_middle(one_line(file), NAME_CELLS)} is locked by you for 5 minutes{whose}")

    async def _release(self, file: str) -> None:
        broken = await self.host.safety.break_lock(file)
        name = shorten_middle(one_line(file), NAME_CELLS)
        if broken is None:
            self.app.notice(f"{name} is not locked any more")
        else:
            self.app.notice(f"{name} is released; {self.label(broken.agent_id)} held it")

    def ask_for_hooks(self, agent_id: str) -> None:
        """Ask, where that was not done yet, whether hooks may be installed for an agent that was opened."""
        if self.host.safety.enabled:
            self.run(self._ask_for_hooks(agent_id))

    async def _ask_for_hooks(self, agent_id: str) -> None:
        session = self.host.agents.get(agent_id)
        if session is None or not await self.host.safety.asks_for_hooks(agent_id):
            return
        name = session.profile.display

        def answered(answer: Consent | None) -> None:
            if answer is not None:
                self.run(self._install(agent_id, name, answer))

        self.app.questions.ask(lambda: HookQuestion(name), answered)

    async def _install(self, agent_id: str, name: str, answer: Consent) -> None:
        place = await self.host.safety.answer_for_hooks(agent_id, answer)
        if place is not None:
            self.app.notice(f"{name} has its hooks in {place}: from its next start it locks files")
        elif answer is Consent.NEVER:
            self.app.notice(f"{name} goes on without hooks; 'synapse hooks install' puts them there")

    def _watched(self) -> bool:
        """Whether files are locked at all; a person who asks is told how."""
        if not self.host.safety.enabled:
            self.app.notice(OFF, "warning")
        return self.host.safety.enabled
