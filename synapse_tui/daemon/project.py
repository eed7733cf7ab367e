"""Profiles, settings and default agents of a project, read from its files and the user's."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from synapse_tui.agents.instructions.compose import DELEGATE, InstructionTexts, read_file
from synapse_tui.agents.profiles.finding import ProfileSet, load_profiles
from synapse_tui.agents.profiles.programs import parse_spec
from synapse_tui.agents.worktrees.setup import SCRIPT
from synapse_tui.core.errors import SpawnError, SynapseError
from synapse_tui.core.model import DEMO_AGENTS, AgentSpec
from synapse_tui.host.following import ProfileFiles
from synapse_tui.host.host import Host
from synapse_tui.settings import Settings, load_settings
from synapse_tui.settings.files import SettingsFiles
from synapse_tui.system.paths import UserPaths, shipped_profiles
from synapse_tui.system.pty.spawn import find_command
from synapse_tui.system.trust import TrustStore, UntrustedFile

_ALWAYS_THERE = frozenset({"dummy", "shell"})
"""Profiles that need nothing installed. If only these can be opened, there is no choice to offer."""


class ProjectFiles:
    """Profiles, settings and instructions of one project; `environ` overrides settings."""

    def __init__(self, folder: Path, paths: UserPaths, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = folder
        self.paths = paths
        self._environ = environ
        self.profiles = ProfileSet({})
        # In the home folder, the project's folder and the user's are the same.
        own = self.folder / ".synapse" == self.paths.synapse
        self._profiles_folder = None if own else self.folder / ".synapse" / "profiles"
        self.load()

    def load(self) -> None:
        """Read all files; untrusted ones are collected in `profiles.untrusted`."""
        profiles, self.settings, self._other_untrusted = self._read(self.profiles)
        self.profiles = self._with_others(profiles)

    def _read(self, last: ProfileSet) -> tuple[ProfileSet, Settings, list[UntrustedFile]]:
        """Read all files, in any thread: the host may be reading some of them meanwhile.

        Returns profiles, settings, and the untrusted files that are no profiles.
        """
        # Other processes may have saved a person's trust decisions.
        store = TrustStore(self.paths.trusted)
        others: list[UntrustedFile] = []

        def trusted(path: Path, data: bytes) -> bool:
            untrusted = store.check(path, data)
            if untrusted is not None:
                others.append(untrusted)
            return untrusted is None

        profiles = self._load_profiles(last, store)
        settings = load_settings(
            self.folder,
            paths=self.paths,
            environ=self._environ,
            trusted=trusted,
            types=[*profiles.profiles, *(file.path.stem for file in profiles.untrusted)],
        )
        if self.folder / ".synapse" != self.paths.synapse:
            selections = (InstructionTexts.of(settings, name) for name in profiles.profiles)
            names = dict.fromkeys(name for selection in selections for name in (*selection.names, DELEGATE))
            for path in (self.folder / ".synapse" / name for name in (*names, SCRIPT)):
                with contextlib.suppress(OSError):
                    trusted(path, read_file(path))
        return profiles, settings, others

    def _load_profiles(self, last: ProfileSet, trust: TrustStore | None = None) -> ProfileSet:
        trust = trust or TrustStore(self.paths.trusted)
        return load_profiles(
            shipped_profiles(), self.paths.profiles, self._profiles_folder, trust=trust, last=last
        )

    def _with_others(self, profiles: ProfileSet) -> ProfileSet:
        return dataclasses.replace(profiles, untrusted=[*profiles.untrusted, *self._other_untrusted])

    def settings_files(self) -> SettingsFiles:
        return SettingsFiles(
            self.folder,
            paths=self.paths,
            environ=self._environ,
            trust=TrustStore(self.paths.trusted),
            types=lambda: tuple(self.profiles.profiles),
            held=lambda: self.settings,
        )

    def new_host(self, folder: Path) -> Host:
        host = Host(
            self.folder,
            folder=folder,
            profiles=self.profiles,
            settings=self.settings,
            paths=self.paths,
            environ=dict(self._environ),
            profile_files=ProfileFiles(
                [each for each in (self.paths.profiles, self._profiles_folder) if each is not None],
                self._load_profiles,
            ),
        )

        def follow(settings: Settings) -> None:
            host.profiles = self._with_others(host.profiles)
            self.settings, self.profiles = settings, host.profiles

        host.following.listeners.append(follow)
        return host

    async def read_again(self, host: Host) -> None:
        """Read the files again, so that the person can be asked about changes."""
        _, _, self._other_untrusted = await asyncio.to_thread(self._read, self.profiles)
        # The host takes the rest itself, so that no older reading of its own comes after this one.
        await host.following.read_again()

    def trust(self, host: Host) -> None:
        """Trust the files that the person was shown and apply them to the host."""
        TrustStore(self.paths.trusted).trust(tuple(self.profiles.untrusted))
        self.load()
        host.profiles = self.profiles

    def agents(self) -> list[AgentSpec]:
        """Return the agents to open by default: those in the settings, or the demo if none is installed.

        Empty if there is a choice to make; the application then asks.
        """
        configured = [parse_spec(word, base=self.folder) for word in self.settings.words("tui.agents")]
        installed = (
            find_command(profile.command, env=self._environ, cwd=self.folder) is not None
            for profile in self.profiles.profiles.values()
            if profile.name not in _ALWAYS_THERE
        )
        return configured or ([] if any(installed) else list(DEMO_AGENTS))

    def layout(self, defaults: Sequence[AgentSpec]) -> str:
        """Return the layout for the agents opened by default; empty for the setting's.

        Both demo agents are shown, so that a message can be seen to arrive.
        """
        demo = tuple(defaults) == DEMO_AGENTS and self.settings.is_default("tui.layout")
        return "columns" if demo else ""


def check_any(host: Host, specs: Sequence[AgentSpec], environ: Mapping[str, str] | None = None) -> None:
    """Check that one of the agents can be opened, before taking over the terminal.

    Raises SynapseError if none can, with the reason of each.
    """
    errors: list[SynapseError] = []
    for spec in specs:
        try:
            host.check(spec, environ)
        except SynapseError as error:
            errors.append(error)
    # A profile of the project may still be trusted: the application asks.
    if not errors or len(errors) < len(specs) or host.profiles.untrusted:
        return
    names: dict[str, list[str]] = {}
    for spec, problem in zip(specs, errors, strict=True):
        names.setdefault(str(problem), []).append(spec.name or spec.profile)
    if len(names) == 1:
        raise errors[0]
    reasons = (f"{', '.join(each)} did not start: {reason}" for reason, each in names.items())
    raise SpawnError("; ".join(reasons))
