"""What can be done with the settings: look at them, change them, keep a theme."""

from __future__ import annotations

import asyncio

from synapse_tui.settings.files import survey

from .messages import MessageCommands
from .settings_list import SettingsScreen

NOBODY = "the settings cannot be changed from here; 'synapse config' can"
THEME = "tui.theme"


class SettingsCommands(MessageCommands):
    """The part of the commands that is about settings."""

    def do_settings(self, _agent_id: str, _task_id: str) -> None:
        """Show the settings."""
        if self.app.settings_files is None:
            self.app.notice(NOBODY, "warning")
        else:
            self.app.push_screen(SettingsScreen(self.app.settings_files))

    def keep_theme(self, name: str) -> None:
        """Take colours, and keep them in the person's own settings."""
        self.run(self._keep_theme(name))

    async def _keep_theme(self, name: str) -> None:
        files = self.app.settings_files
        self.app.appearance.choose(name)
        if files is None:
            self.app.notice(f"colours: {name}")
            return

        def write() -> str:
            files().change("user", lambda file: file.put(THEME, name))
            now = survey(files())
            entry = now.find(THEME)
            return now.obstacle(entry, "user") if entry is not None else ""

        obstacle = await asyncio.to_thread(write)
        kept = f"for this session only: {obstacle}" if obstacle else "kept in ~/.synapse/settings.json"
        self.app.notice(f"colours: {name}, {kept}")
