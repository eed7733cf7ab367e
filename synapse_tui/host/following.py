"""The settings of a running host: read again when a file changes, and handed to all that live by them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any

from synapse_tui.agents.profiles.trust import TrustStore
from synapse_tui.events import EventBus, Notice, SettingsChanged
from synapse_tui.paths import UserPaths
from synapse_tui.settings import Settings, load_settings
from synapse_tui.settings.files import in_order
from synapse_tui.settings.layers import settings_files
from synapse_tui.settings.schema import find_setting
from synapse_tui.settings.watch import FileWatch

log = logging.getLogger(__name__)

MOST = 3
"""How many faults are told one by one."""
PATIENCE = 0.5
"""Seconds for which a file may be half written, or not yet noted as trusted, before that is told."""


class SettingsFollower:
    """Follows the files of the settings, and which of them the person trusts.

    Args:
        settings: The settings at the start.
        project: Folder of the project.
        paths: Folders of the user.
        environ: Variables that win over the files.
        types: Tells the names of the profiles.
        events: Told of what has changed and of what is wrong.
        native: Whether the kernel is asked to tell of changes.

    Attributes:
        settings: Those that hold now.
        listeners: Called with the settings when they were read again, before anybody else is told of them.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        project: Path,
        paths: UserPaths,
        environ: Mapping[str, str],
        types: Callable[[], Collection[str]],
        events: EventBus,
        native: bool = True,
    ) -> None:
        self.settings = settings
        self.listeners: list[Callable[[Settings], None]] = []
        self._project = project
        self._paths = paths
        self._environ = environ
        self._types = types
        self._events = events
        self._native = native
        self._watch: FileWatch | None = None
        self._reading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stale = False
        """Whether a file has changed since they were read."""
        self._shown = False
        self._told: frozenset[str] = frozenset()
        """What stands and has been told."""

    # -- life ---

    def start(self) -> None:
        """Follow from now on; calling it again does nothing."""
        if self._watch is None:
            files = [path for path, _own in settings_files(self._project, self._paths)]
            self._watch = FileWatch([*files, self._paths.trusted], self._changed, native=self._native)

    def load(self) -> None:
        """Tell from now on what is wrong with the files; called once the first frame is drawn."""
        self._shown = True
        # The application asks about these as it begins.
        self._told = frozenset(map(_asked, self.settings.untrusted))
        self._tell(self.settings)

    async def stop(self) -> None:
        """Follow no more."""
        if self._watch is not None:
            await self._watch.close()
            self._watch = None
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> None:
        """Make sure that what stands in the files now holds, whether the kernel has told of it or not."""
        if self._watch is not None:
            await self._watch.look()
            await self._catch_up()  # what is being read holds by then

    # -- reading ---

    async def read_again(self) -> None:
        """Read the files, and hand on what they say; what is broken gives what it gave before."""
        async with self._reading:
            await self._read()

    async def _catch_up(self) -> None:
        """Read the files if one has changed since, so that of all who hear of a change one reads it."""
        async with self._reading:
            if self._stale:
                await self._read()

    async def _read(self) -> None:
        self._stale = False
        try:
            settings = await asyncio.to_thread(self._load)
        except asyncio.CancelledError:
            self._stale = True  # who asked has gone; whoever else has heard of the change reads it
            raise
        self._take(settings)

    def _changed(self) -> None:
        self._stale = True
        self._begin(self._follow())

    async def _follow(self) -> None:
        try:
            await self._follow_files()
        except Exception:
            log.exception("the settings were not followed")

    async def _follow_files(self) -> None:
        await self._catch_up()
        if self.settings.broken or self.settings.untrusted:
            await asyncio.sleep(PATIENCE)
            await self.read_again()
        if self._shown:
            self._tell(self.settings)

    def _load(self) -> Settings:
        # What is trusted is read with them: another process may have noted it a moment ago.
        trust = TrustStore(self._paths.trusted)
        return load_settings(
            self._project,
            paths=self._paths,
            environ=self._environ,
            trusted=trust.trusts,
            types=self._types(),
            last=self.settings,
        )

    def _take(self, settings: Settings) -> None:
        before, self.settings = self.settings, settings
        for listener in self.listeners:
            listener(settings)
        both = {*before.values, *settings.values}
        keys = tuple(key for key in in_order(both) if before.values.get(key) != settings.values.get(key))
        if not keys:
            return
        restart = tuple(key for key in keys if _needs_restart(key))
        log.info("settings have changed: %s", ", ".join(keys))
        self._events.publish(SettingsChanged(keys, restart))
        if restart:
            verb = "counts" if len(restart) == 1 else "count"
            text = f"{', '.join(restart)} {verb} when this session is stopped and started again"
            self._events.publish(Notice(text, "information"))

    # -- telling ---

    def _tell(self, settings: Settings) -> None:
        """Tell what is wrong, once as long as it stands."""
        wrong = [*map(str, settings.problems), *map(_asked, settings.untrusted)]
        new = [text for text in wrong if text not in self._told]
        for text in new[:MOST]:
            self._events.publish(Notice(text, "warning"))
        if len(new) > MOST:
            rest = f"{len(new) - MOST} more in the settings cannot be used: synapse config validate"
            self._events.publish(Notice(rest, "warning"))
        self._told = frozenset(wrong)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="follow-settings")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _asked(path: Path) -> str:
    return f"{path} is new or changed and counts once you have seen it (palette: Read project files again)"


def _needs_restart(key: str) -> bool:
    setting = find_setting(key)
    return setting is not None and setting.restart
