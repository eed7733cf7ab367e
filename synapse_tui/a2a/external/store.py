"""Stores the conversations of a project in this machine's history, through its writer thread."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from synapse_tui.core.model import Task
from synapse_tui.messages.conversations import (
    CONVERSATIONS,
    ENTRIES,
    TASKS,
    ConversationEntry,
    SavedConversation,
    conversation_folder,
    conversation_row,
    entry_row,
    external_task_row,
    received_files,
    unimported,
)
from synapse_tui.messages.history import History
from synapse_tui.messages.records import Rows

from .conversation import Conversation


class ConversationStore:
    """`folder` is `~/.synapse/external`, for the files of agents."""

    def __init__(self, history: History, project: Path, folder: Path) -> None:
        self._history = history
        self._project = project
        self._folder = folder
        self._written: dict[str, dict[str, object]] = {}

    def files(self, alias: str) -> Path:
        return received_files(conversation_folder(self._folder, self._project), alias)

    def note(self, conversation: Conversation) -> None:
        """Write what has changed since the last call; an entry that still grows is written at its end."""
        project, alias = str(self._project), conversation.alias
        written = self._written.setdefault(alias, {})
        rows: Rows = {}
        if _is_new(written, "", about := _about(conversation)):
            rows[CONVERSATIONS, f"{project}\n{alias}"] = conversation_row(project, alias, about)
        for task in conversation.tasks:
            if _is_new(written, task.id, task):
                rows[TASKS, task.id] = external_task_row(project, task, self._history.owner)
        for entry in conversation.entries:
            if not entry.growing and _is_new(written, entry.key, entry):
                rows[ENTRIES, entry.key] = entry_row(project, alias, entry)
        if rows:
            self._history.note_rows(rows)

    def note_again(self, conversations: Iterable[Conversation]) -> None:
        """Write everything: a new history was begun."""
        self._written.clear()
        for conversation in conversations:
            self.note(conversation)

    async def commit(self) -> None:
        """Wait until all notes are on disk; raises HistoryError."""
        await self._history.flush()

    async def load(self, *, claim: bool) -> list[SavedConversation]:
        """Read all conversations; with `claim`, continue what ended processes began. Raises HistoryError."""
        folder = conversation_folder(self._folder, self._project)
        if not (self._history.exists or unimported(folder)):
            return []
        await self.commit()
        saved = await self._history.read(
            lambda database: database.conversations(self._project, self._folder, claim=claim)
        )
        for each in saved:
            values: list[Task | ConversationEntry] = [*each.tasks, *each.entries]
            written = {value.id if isinstance(value, Task) else value.key: value for value in values}
            self._written[each.alias] = {**written, "": _about(each)}
        return saved

    async def forget(self, alias: str) -> None:
        """Delete a conversation and the files of its agent; raises HistoryError."""
        self._written.pop(alias, None)
        await self._history.read(
            lambda database: database.forget_conversation(self._project, self._folder, alias)
        )


def _about(conversation: Conversation | SavedConversation) -> dict[str, str | bool]:
    return {name: getattr(conversation, name) for name in ("agent", "context_id", "opened")}


def _is_new(written: dict[str, object], key: str, value: object) -> bool:
    """Whether a value differs from what was written; it is then recorded as written."""
    known = written.get(key)
    if known is value or known == value:
        return False
    written[key] = value
    return True
