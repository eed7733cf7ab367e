"""The instructions of one agent: which texts, in which order, with what in place of placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from synapse_tui.addresses import Address, forms_of
from synapse_tui.settings import Settings

from .delegation import DELEGATE, Rules
from .files import Fault, Shelves, TextFile

# how the text begins; a `<type>.md` that begins so is the whole text of its type
HEADER = "[Synapse A2A Protocol Instructions]"
DEFAULT = "default.md"
FILE_SAFETY = "file-safety.md"
COMMAND = "$SYNAPSE_BIN"  # what agents type for `synapse`: login shells reset PATH

_NOTHING: Mapping[str, str] = MappingProxyType({})
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which texts an agent gets."""

    default: str = DEFAULT  # file of the text for all types; empty for none
    own: str = ""  # file of the text of its type; empty for none
    own_wanted: bool = False
    delegation: bool = False
    file_safety: bool = False

    @classmethod
    def of(cls, settings: Settings, agent_type: str) -> Selection:
        """What the settings say of a type."""
        key = f"instructions.{agent_type}"
        named = str(settings.values.get(key, ""))
        return cls(
            settings.text("instructions.default"),
            # A file of the type's name is used without being named: who wrote it means it to be read.
            named or f"{agent_type}.md",
            bool(named) and settings.origins.get(key) != "default",
            settings.flag("delegation.enabled"),
            settings.flag("env.SYNAPSE_FILE_SAFETY_ENABLED"),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The files, in order."""
        wanted = (
            self.default,
            self.own,
            DELEGATE if self.delegation else "",
            FILE_SAFETY if self.file_safety else "",
        )
        return tuple(name for name in wanted if name)


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent that is told."""

    agent_id: str  # `synapse-{type}-{port}`
    agent_type: str
    name: str  # name given by the user; empty for none
    port: int
    addresses: tuple[str, ...] = ()  # what others can call it at this moment, without `@`
    command: str = COMMAND  # what it types for `synapse`


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another agent of the project."""

    agent_id: str  # `synapse-{type}-{port}`
    agent_type: str
    name: str = ""  # name given by the user; empty for none
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Composed:
    """Instructions."""

    text: str  # what the agent is told; empty for nothing
    files: tuple[TextFile, ...] = ()
    faults: tuple[Fault, ...] = ()


def compose(
    selection: Selection, subject: Subject, neighbours: Sequence[Neighbour], shelves: Shelves
) -> Composed:
    """Put the instructions of an agent together; what cannot be read is told and the rest stands."""
    return _Composer(subject, neighbours, shelves).compose(selection)


class _Composer:
    """Collects the parts of one text."""

    def __init__(self, subject: Subject, neighbours: Sequence[Neighbour], shelves: Shelves) -> None:
        self._shelves = shelves
        self._values = _values(subject, neighbours)
        self._files: list[TextFile] = []
        self._faults: list[Fault] = []

    def compose(self, selection: Selection) -> Composed:
        own = self._own(selection)
        whole = own is not None and own.text.startswith(HEADER)
        parts = [] if whole else [self._default(selection.default)]
        if own is not None:
            self._files.append(own)
            shipped = selection.own if self._shelves.shipped(selection.own) else ""
            parts.append(self._filled(own.text, shipped=DEFAULT if whole else shipped))
        if selection.delegation:
            parts.append(self._delegation())
        if selection.file_safety:
            parts.append(self._part(FILE_SAFETY))
        body = "\n\n".join(part for part in parts if part).removeprefix(HEADER).strip()
        text = f"{HEADER}\n{body}" if body else ""
        return Composed(text, tuple(self._files), tuple(self._faults))

    def _own(self, selection: Selection) -> TextFile | None:
        if not selection.own or selection.own == selection.default:
            return None
        return self._find(selection.own, wanted=selection.own_wanted)

    def _default(self, name: str) -> str:
        if not name:
            return ""
        found = self._find(name, wanted=True)
        if found is None:
            return self._part(DEFAULT)
        self._files.append(found)
        return self._filled(found.text, shipped=DEFAULT)

    def _part(self, name: str) -> str:
        found = self._find(name, wanted=True)
        if found is None:
            return ""
        self._files.append(found)
        return self._filled(found.text, shipped=name)

    def _find(self, name: str, *, wanted: bool) -> TextFile | None:
        found = self._shelves.find(name)
        self._faults += found.faults
        if found.file is None and wanted and not found.faults:
            self._faults.append(Fault(self._shelves.user / name, "a setting names it, and it is not there"))
        return found.file

    def _delegation(self) -> str:
        rules = self._part(DELEGATE)
        if not rules:
            return ""
        self._faults += _broken(self._files[-1])
        return self._filled(self._shelves.shipped("delegation.md"), more={"rules": rules})

    def _filled(self, text: str, *, shipped: str = "", more: Mapping[str, str] = _NOTHING) -> str:

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name == "shipped" and shipped:
                return self._filled(self._shelves.shipped(shipped))
            return more[name] if name in more else self._values.get(name, match[0])

        return _PLACEHOLDER.sub(value, text)


def _broken(file: TextFile) -> list[Fault]:
    rules = Rules.read(file.text, first_line=file.first_line)
    return [Fault(file.path, f"line {line}: {reason}") for line, reason in rules.problems]


def _values(subject: Subject, neighbours: Sequence[Neighbour]) -> dict[str, str]:
    name = _line(subject.name)
    about = f"type {subject.agent_type}" + (f", name {name}" if name else "")
    return {
        "agent_id": subject.agent_id,
        "agent_name": name or subject.agent_id,
        "agent_type": subject.agent_type,
        "identity": f"{subject.agent_id} ({about})",
        "addresses": _alternatives([_line(each) for each in subject.addresses] or [subject.agent_id]),
        "port": str(subject.port),
        "agents": "\n".join(map(_neighbour, neighbours)) or "none besides you",
        "synapse": subject.command,
    }


def _neighbour(agent: Neighbour) -> str:
    about = [agent.agent_type]
    if agent.name:
        about.append(f"name {agent.name}")
    if agent.folder:
        about.append(f"in {agent.folder}")
    return _line(f"- {agent.agent_id} ({', '.join(about)})")


def _alternatives(words: Sequence[str]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def _line(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text).strip()


def subject_of(own: Address, everyone: Sequence[Address], *, command: Path) -> Subject:
    """The agent that is told."""
    spaced = any(char.isspace() for char in str(command))
    return Subject(
        own.agent_id,
        own.agent_type,
        own.name,
        own.port,
        tuple(forms_of(own, everyone)),
        f'"{COMMAND}"' if spaced else COMMAND,
    )


def neighbours_of(own: Address, everyone: Sequence[Address], *, project: Path) -> list[Neighbour]:
    """The other agents of the project that run and take messages."""
    return [
        Neighbour(each.agent_id, each.agent_type, each.name, _folder(each, own, project))
        for each in everyone
        if each.local and each.live and each.receives and each.agent_id != own.agent_id
    ]


def _folder(agent: Address, own: Address, project: Path) -> str:
    if agent.working_dir in ("", own.working_dir):
        return ""
    folder = Path(agent.working_dir)
    if folder == project:
        return "the project's folder"
    return str(folder.relative_to(project)) if folder.is_relative_to(project) else str(folder)
