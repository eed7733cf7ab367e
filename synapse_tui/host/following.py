"""Reloads settings and profiles of a running host when their files change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.core.errors import ProfileError, SynapseError
from synapse_tui.core.events import EventBus, Notice, SettingsChanged
from synapse_tui.settings import Settings, load_settings
from synapse_tui.settings.file_watch import FileWatch
from synapse_tui.settings.files import in_order
from synapse_tui.settings.layers import settings_files
from synapse_tui.settings.schema import find_setting
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.trust import TrustStore

log = logging.getLogger(__name__)

MOST = 3
"""Faults reported individually."""
PATIENCE = 0.5
"""Seconds before a fault is reported: the file may be half written, or about to be recorded as trusted."""


@dataclass(frozen=True, slots=True)
class ProfileFiles:
    """Where profiles are loaded from.

    Attributes:
        folders: Folders to watch; they need not exist.
        load: Loads the profiles given the previous ones; called in a thread.
    """

    folders: Sequence[Path] = ()
    load: Callable[[ProfileSet], ProfileSet] = lambda last: last


class SettingsFollower:
    """Follows the files of settings and profiles, and the list of trusted files.

    Args:
        settings: The initial settings.
        project: Folder of the project.
        paths: Folders of the user.
        environ: Variables that override the files.
        events: Receives changes and problems.
        profiles: The initial profiles.
        profile_files: Where to reload them from; by default they never change.
        native: Whether to use the kernel's file notifications.

    Attributes:
        settings: The current settings.
        profiles: The current profiles.
        listeners: Called with reloaded settings before `SettingsChanged` is published.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        project: Path,
        paths: UserPaths,
        environ: Mapping[str, str],
        events: EventBus,
        profiles: ProfileSet | None = None,
        profile_files: ProfileFiles | None = None,
        native: bool = True,
    ) -> None:
        self.settings = self._at_start = settings
        self.profiles = profiles or ProfileSet({})
        self.listeners: list[Callable[[Settings], None]] = []
        self._project = project
        self._paths = paths
        self._environ = environ
        self._events = events
        self._profile_files = profile_files or ProfileFiles()
        self._native = native
        self._watch: FileWatch | None = None
        self._reading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stale = False
        """Whether a file has changed since the last reading."""
        self._shown = False
        self._told: frozenset[str] = frozenset()
        """Current faults that have been reported."""

    # -- lifecycle ---

    def start(self) -> None:
        """Start following; calling it again does nothing."""
        if self._watch is None:
            files = [path for path, _own in settings_files(self._project, self._paths)]
            folders = self._profile_files.folders
            self._watch = FileWatch(
                [*files, self._paths.trusted], self._changed, folders=folders, native=self._native
            )

    def load(self) -> None:
        """Start reporting faults of the files; called once the first frame is drawn."""
        self._shown = True
        # The application itself handles untrusted files and broken profiles at startup.
        self._told = frozenset([*map(_asked, self.settings.untrusted), *self._wrong_profiles()])
        self._tell()

    async def stop(self) -> None:
        if self._watch is not None:
            await self._watch.close()
            self._watch = None
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> None:
        """Reload files that have changed, including changes the kernel has not reported."""
        if self._watch is not None:
            await self._watch.look()
            await self._catch_up()  # wait for a reload in progress

    # -- reading ---

    async def read_again(self) -> None:
        """Reload the files; broken ones keep their last good values."""
        async with self._reading:
            await self._read()

    async def _catch_up(self) -> None:
        async with self._reading:
            if self._stale:
                await self._read()

    async def _read(self) -> None:
        self._stale = False
        try:
            profiles, settings = await asyncio.to_thread(self._load)
        except asyncio.CancelledError:
            self._stale = True  # the caller was cancelled; leave the reload to the next one
            raise
        before, self.profiles = self.profiles.profiles, profiles
        names = {*before, *profiles.profiles}
        if changed := sorted(name for name in names if before.get(name) != profiles.profiles.get(name)):
            log.info("profiles have changed: %s", ", ".join(changed))
        self._take(settings)

    def _changed(self) -> None:
        self._stale = True
        task = asyncio.get_running_loop().create_task(self._follow(), name="follow-settings")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self) -> None:
        try:
            await self._follow_files()
        except Exception:
            log.exception("the settings were not followed")

    async def _follow_files(self) -> None:
        await self._catch_up()
        if self.settings.broken or self.settings.untrusted or self._wrong_profiles():
            await asyncio.sleep(PATIENCE)
            await self.read_again()
        if self._shown:
            self._tell()

    def _load(self) -> tuple[ProfileSet, Settings]:
        profiles = self._profile_files.load(self.profiles)
        # Read the trust list at the same time: another process may just have changed it.
        trust = TrustStore(self._paths.trusted)
        settings = load_settings(
            self._project,
            paths=self._paths,
            environ=self._environ,
            trusted=trust.trusts,
            # Settings may name a profile that is not trusted yet.
            types=[*profiles.profiles, *(file.path.stem for file in profiles.untrusted)],
            last=self.settings,
        )
        return profiles, settings

    def _take(self, settings: Settings) -> None:
        before, self.settings = self.settings, settings
        for listener in self.listeners:
            listener(settings)
        both = {*before.values, *settings.values}
        keys = tuple(key for key in in_order(both) if before.values.get(key) != settings.values.get(key))
        if not keys:
            return
        here = self._at_start.values
        restart = tuple(
            key for key in keys if _needs_restart(key) and settings.values.get(key) != here.get(key)
        )
        log.info("settings have changed: %s", ", ".join(keys))
        self._events.publish(SettingsChanged(keys, restart))

    # -- reporting ---

    def profile_warnings(self, name: str) -> list[str]:
        profile = self.profiles.profiles.get(name)
        source = profile.source if profile is not None else None
        return [text for path, text in self._faults_of_profiles() if path == source or path.stem == name]

    def _wrong_profiles(self) -> list[str]:
        return [text for _path, text in self._faults_of_profiles()]

    def _faults_of_profiles(self) -> list[tuple[Path, str]]:
        sources = {profile.source for profile in self.profiles.profiles.values()}
        problems = [
            (problem.path, _broken(problem, kept=problem.path in sources))
            for problem in self.profiles.problems
        ]
        waiting = [file.path for file in self.profiles.untrusted if file.path.suffix in (".yaml", ".yml")]
        return [*problems, *((path, _asked(path)) for path in waiting)]

    def _tell(self) -> None:
        settings = self.settings
        wrong = [*map(_said, settings.problems), *map(_asked, settings.untrusted), *self._wrong_profiles()]
        new = [text for text in wrong if text not in self._told]
        for text in new[:MOST]:
            self._events.publish(Notice(text, "warning"))
        if len(new) > MOST:
            rest = f"{len(new) - MOST} more in settings and profiles cannot be used: synapse config validate"
            self._events.publish(Notice(rest, "warning"))
        self._told = frozenset(wrong)


def _asked(path: Path) -> str:
    return f"{path} is new or changed and counts once you have seen it (palette: Read project files again)"


def _said(problem: SynapseError) -> str:
    return f"{tr(problem.message)} ({tr(problem.hint)})" if problem.hint else tr(problem.message)


def _broken(problem: ProfileError, *, kept: bool) -> str:
    return f"{problem}; its previous values stay in effect" if kept else str(problem)


def _needs_restart(key: str) -> bool:
    setting = find_setting(key)
    return setting is not None and setting.restart
