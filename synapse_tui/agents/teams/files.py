"""Files that name agents to open together: found, read, and written from agents that run.

A team is `teams/NAME.yaml` in the project's `.synapse`, else in the user's, else a shipped example. It
becomes `AgentSpec`s and nothing else, so everything that opens agents takes a team. That of a project counts
once a person has trusted its exact content, as its other files do.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace as replaced
from pathlib import Path

import yaml

from synapse_tui.agents.profiles.profile import MAX_FILE_BYTES, Origin
from synapse_tui.agents.profiles.reader import Faults, ProfileSection, read_mapping
from synapse_tui.agents.worktrees.trees import Repository
from synapse_tui.core.addresses import check_name
from synapse_tui.core.errors import ConfigError, TeamError, WorktreeError
from synapse_tui.core.model import LAYOUTS, AgentSpec
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import private_folder, read_own, read_regular, write_advice, write_private
from synapse_tui.system.paths import UserPaths, make_project_folder
from synapse_tui.system.trust import TrustStore, UntrustedFile

FOLDER = "teams"
MOST = 30
"""Agents of one team: a typing error must not open a thousand."""
_NAME = re.compile(r"[^\W_][\w.-]*")
_SUFFIXES = (".yaml", ".yml")
_WIDTH = 110


@dataclass(frozen=True, slots=True)
class Team:
    """A team as its file describes it.

    Attributes:
        origin: Whose file it is.
        about: What it is for, one line.
        layout: Layout of its panes; empty for that of the settings.
        agents: What would be opened, in order.
        untrusted: Its files that the person has not trusted: nothing of it may be opened until then.
    """

    name: str
    path: Path
    origin: Origin
    about: str
    layout: str
    agents: tuple[AgentSpec, ...]
    untrusted: tuple[UntrustedFile, ...] = ()


class Teams:
    """The teams that a person can open in a project."""

    def __init__(self, project: Path, paths: UserPaths) -> None:
        self._project = project
        self._paths = paths

    def names(self) -> list[str]:
        return sorted({path.stem for _origin, folder in self._folders() for path in _files(folder)})

    def find(self, name: str) -> Team:
        """Read a team: the project's, else the user's, else the shipped one.

        Raises:
            ConfigError: There is none of that name.
            TeamError: Its file, or one that it names, is invalid.
        """
        check_team_name(name)
        for origin, folder in self._folders():
            for suffix in _SUFFIXES:
                path = folder / f"{name}{suffix}"
                if os.path.lexists(path):
                    return self._read(path, origin)
        known = ", ".join(self.names())
        raise ConfigError(f"there is no team '{name}'", f"there are: {known}")

    def trust(self, team: Team) -> None:
        """Trust the files of a team with exactly the content that was read."""
        TrustStore(self._paths.trusted).trust(team.untrusted)

    def save(self, name: str, text: str, *, user: bool = False, replace: bool = False) -> Path:
        """Write the file of a team, the project's or the user's own.

        Raises:
            ConfigError: There is one, or it cannot be written.
        """
        check_team_name(name)
        try:
            above = self._paths.synapse if user or self._own else make_project_folder(self._project)
            folder = private_folder(above / FOLDER) if above == self._paths.synapse else above / FOLDER
            folder.mkdir(exist_ok=True)
            if folder.is_symlink():  # a cloned repository may contain a link to anywhere
                raise NotADirectoryError(f"{folder} is a link")
            found = (folder / f"{name}{suffix}" for suffix in _SUFFIXES)
            path = next(filter(os.path.lexists, found), folder / f"{name}.yaml")
            if os.path.lexists(path) and not replace:
                raise ConfigError(
                    f"{path} exists already", "choose another name; synapse team save --force replaces it"
                )
            write_private(path, text.encode())
        except OSError as error:
            raise ConfigError(
                f"the team '{name}' cannot be written: {error.strerror or error}", write_advice(error)
            ) from error
        return path

    @property
    def _own(self) -> bool:
        """Whether the project's files are the user's, as in the home folder."""
        return self._project / ".synapse" == self._paths.synapse

    def _folders(self) -> Iterator[tuple[Origin, Path]]:
        if not self._own:
            yield "project", self._project / ".synapse" / FOLDER
        yield "user", self._paths.synapse / FOLDER
        yield "shipped", Path(__file__).parent / "examples"

    def _read(self, path: Path, origin: Origin) -> Team:
        return _Reader(path, origin, self._project, TrustStore(self._paths.trusted)).team()


class _Reader:
    def __init__(self, path: Path, origin: Origin, project: Path, store: TrustStore) -> None:
        self._path = path
        self._origin = origin
        self._project = project
        self._store = store
        self._faults = Faults(path)
        self._untrusted: dict[Path, UntrustedFile] = {}
        self._names: set[str] = set()

    def team(self) -> Team:
        try:
            data = self._bytes(self._path)
        except OSError as error:
            raise TeamError(self._path, [(0, f"it cannot be read: {error.strerror or error}")]) from error
        section = read_mapping(self._path, data, self._faults)
        about = layout = ""
        agents: tuple[AgentSpec, ...] = ()
        if section is not None:
            about = " ".join(section.text("about").split())
            layout = section.choice("layout", LAYOUTS, "")
            agents = section.read_list("agents", self._agent)
            if not 0 < len(agents) <= MOST and not self._faults.found:
                section.fault("agents", f"must name 1 to {MOST} agents")
            section.finish()
        if self._faults.found:
            found = sorted(self._faults.found, key=lambda each: each.line)
            raise TeamError(self._path, [(each.line, each.reason) for each in found])
        untrusted = tuple(self._untrusted.values())
        return Team(self._path.stem, self._path, self._origin, about, layout, agents, untrusted)

    def _bytes(self, path: Path) -> bytes:
        """Read a file of the team, and note it if the person has yet to trust it."""
        data = (read_own if self._origin == "user" else read_regular)(path, MAX_FILE_BYTES)
        if self._origin == "project" and (file := self._store.check(path, data)) is not None:
            self._untrusted[file.path] = file
        return data

    def _agent(self, section: ProfileSection) -> AgentSpec:
        kind, name = section.text("kind"), section.text("name")
        if not kind:
            self._faults.add(section.node, "an agent needs a 'kind', such as claude")
        if name:
            try:
                check_name(name, taken=self._names)
            except ConfigError as error:
                self._faults.add(section.at("name"), f"{error.message}: {error.hint}")
            self._names.add(name.lower())
        folder = section.text("folder")
        return AgentSpec(
            kind,
            name,
            (self._project / Path(folder).expanduser()) if folder else self._project,
            args=section.strings("args"),
            prompt=section.text("task").strip(),
            worktree=section.flag("worktree", default=False),
            role=self._role(section),
        )

    def _role(self, section: ProfileSection) -> str:
        text, name = section.text("role"), section.text("role_file")
        if not name:
            return text.strip()
        if text:
            section.fault("role_file", "cannot be given beside 'role'")
        path = self._path.parent / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            section.fault("role_file", "must be a file beside the team's, or below")
            return ""
        try:
            return self._bytes(path).decode("utf-8-sig").strip()
        except OSError as error:
            section.fault("role_file", f"cannot be read: {path}: {error.strerror or error}")
        except UnicodeDecodeError:
            section.fault("role_file", f"is not UTF-8: {path}")
        return ""


def check_team_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"'{name}' is no name of a team", "use letters, digits, '.', '_' and '-'")


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [each for each in folder.iterdir() if each.suffix in _SUFFIXES and _NAME.fullmatch(each.stem)]
    return []


# -- writing


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are read."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def nameable(running: Iterable[AgentSpec]) -> list[AgentSpec]:
    """Return those of the agents that run that a team can name: profiles, not other programs.

    Raises:
        ConfigError: There is none.
    """
    found = [spec for spec in running if not spec.command]
    if not found:
        raise ConfigError("no agent runs that a team can name", "open one with a profile, such as claude")
    return found


def team_text(agents: Iterable[AgentSpec], layout: str, project: Path, environ: Mapping[str, str]) -> str:
    """Return the file of a team that opens these agents.

    Folders of the project are relative to it. An agent that works in its worktree gets one again.
    """
    content: dict[str, object] = {"layout": layout} if layout in LAYOUTS else {}
    content["agents"] = [_agent_content(_in_worktree(spec, project, environ), project) for spec in agents]
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def _in_worktree(spec: AgentSpec, project: Path, environ: Mapping[str, str]) -> AgentSpec:
    folder = spec.cwd or project
    try:
        repository = Repository(folder, environ)
        tree = repository.tree_at(folder)
    except WorktreeError:
        return spec
    if tree is None:
        return spec
    return replaced(spec, cwd=repository.top / folder.relative_to(tree.path), worktree=True)


def _agent_content(spec: AgentSpec, project: Path) -> Mapping[str, object]:
    folder = spec.cwd or project
    inside = folder.is_relative_to(project)
    content: dict[str, object] = {
        "kind": spec.profile,
        "name": spec.name,
        "folder": "" if folder == project else str(folder.relative_to(project) if inside else folder),
        "worktree": spec.worktree,
        "args": list(spec.args),
        "role": spec.role,
    }
    return {key: value for key, value in content.items() if value}
