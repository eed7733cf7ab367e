"""Composes the instructions of one agent from its texts and placeholder values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from synapse_tui.addresses import Address, forms_of
from synapse_tui.settings import Settings

from .delegation import DELEGATE, Rules
from .files import Fault, TextFile, TextFolders

# First line of the instructions; a `<type>.md` that begins with it replaces the other texts.
HEADER = "[Synapse A2A Protocol Instructions]"
DEFAULT = "default.md"
FILE_SAFETY = "file-safety.md"
COMMAND = "$SYNAPSE_BIN"  # how agents call `synapse`, because login shells reset PATH

_NOTHING: Mapping[str, str] = MappingProxyType({})
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Selection:
    """The texts that an agent gets."""

    default: str = DEFAULT  # file for all types; empty for none
    own: str = ""  # file for its type; empty for none
    own_wanted: bool = False
    delegation: bool = False
    file_safety: bool = False

    @classmethod
    def of(cls, settings: Settings, agent_type: str) -> Selection:
        key = f"instructions.{agent_type}"
        named = str(settings.values.get(key, ""))
        return cls(
            settings.text("instructions.default"),
            # A file with the type's name is used even if no setting names it.
            named or f"{agent_type}.md",
            bool(named) and settings.origins.get(key) != "default",
            settings.flag("delegation.enabled"),
            settings.flag("env.SYNAPSE_FILE_SAFETY_ENABLED"),
        )

    @property
    def names(self) -> tuple[str, ...]:
        wanted = (
            self.default,
            self.own,
            DELEGATE if self.delegation else "",
            FILE_SAFETY if self.file_safety else "",
        )
        return tuple(name for name in wanted if name)


@dataclass(frozen=True, slots=True)
class Composed:
    text: str  # empty if there are no instructions
    files: tuple[TextFile, ...] = ()
    faults: tuple[Fault, ...] = ()


def compose(selection: Selection, values: Mapping[str, str], folders: TextFolders) -> Composed:
    """Compose an agent's instructions; unusable files are omitted and reported as faults."""
    return _Composer(values, folders).compose(selection)


class _Composer:
    def __init__(self, values: Mapping[str, str], folders: TextFolders) -> None:
        self._folders = folders
        self._values = values
        self._files: list[TextFile] = []
        self._faults: list[Fault] = []

    def compose(self, selection: Selection) -> Composed:
        own = self._own(selection)
        whole = own is not None and own.text.startswith(HEADER)
        parts = [] if whole else [self._default(selection.default)]
        if own is not None:
            self._files.append(own)
            shipped = selection.own if self._folders.shipped(selection.own) else ""
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
        found = self._folders.find(name)
        self._faults += found.faults
        if found.file is None and wanted and not found.faults:
            self._faults.append(Fault(self._folders.user / name, "a setting names it, and it is not there"))
        return found.file

    def _delegation(self) -> str:
        rules = self._part(DELEGATE)
        if not rules:
            return ""
        file = self._files[-1]
        problems = Rules.read(file.text, first_line=file.first_line).problems
        self._faults += [Fault(file.path, f"line {line}: {reason}") for line, reason in problems]
        return self._filled(self._folders.shipped("delegation.md"), more={"rules": rules})

    def _filled(self, text: str, *, shipped: str = "", more: Mapping[str, str] = _NOTHING) -> str:

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name == "shipped" and shipped:
                return self._filled(self._folders.shipped(shipped))
            return more[name] if name in more else self._values.get(name, match[0])

        return _PLACEHOLDER.sub(value, text)


def placeholders(
    own: Address, everyone: Sequence[Address], *, project: Path, command: Path
) -> Mapping[str, str]:
    """Return the placeholder values for an agent; `command` is the `synapse` command to use."""
    name = _line(own.name)
    about = f"type {own.agent_type}" + (f", name {name}" if name else "")
    forms = list(map(_line, forms_of(own, everyone))) or [own.agent_id]
    others = (
        _described(each, own, project)
        for each in everyone
        if each.local and each.live and each.receives and each.agent_id != own.agent_id
    )
    spaced = any(char.isspace() for char in str(command))
    return {
        "agent_id": own.agent_id,
        "agent_name": name or own.agent_id,
        "agent_type": own.agent_type,
        "identity": f"{own.agent_id} ({about})",
        "addresses": " or ".join(filter(None, (", ".join(forms[:-1]), forms[-1]))),
        "port": str(own.port),
        "agents": "\n".join(others) or "none besides you",
        "synapse": f'"{COMMAND}"' if spaced else COMMAND,
    }


def _described(agent: Address, own: Address, project: Path) -> str:
    about = [agent.agent_type]
    if agent.name:
        about.append(f"name {agent.name}")
    if agent.working_dir not in ("", own.working_dir):
        folder = Path(agent.working_dir)
        if folder == project:
            about.append("in the project's folder")
        else:
            about.append(f"in {folder.relative_to(project) if folder.is_relative_to(project) else folder}")
    return _line(f"- {agent.agent_id} ({', '.join(about)})")


def _line(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text).strip()
