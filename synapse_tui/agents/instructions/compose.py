"""Composes the instructions of one agent from its texts and placeholder values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from synapse_tui.agents.worktrees.trees import branch_of
from synapse_tui.core.addresses import Address, forms_of
from synapse_tui.core.errors import NoRuleFits, RulesBroken, RulesUndecided
from synapse_tui.settings import Settings
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import read_own, read_regular
from synapse_tui.system.language import language, tr

DELEGATE = "delegate.md"
ANYTHING = "*"  # keyword of the fallback row

_COLUMNS = ("kind", "keywords", "agent")
# A letter of a script that separates words with spaces.
_LETTER = r"[^\W_\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    kind: str
    keywords: tuple[str, ...]  # folded; a trailing `*` matches the beginning of a word
    agent: str
    line: int  # in the file, from 1


@dataclass(frozen=True, slots=True)
class PickedRule:
    """The row chosen for a task, and the keywords that matched."""

    rule: Rule
    matched: tuple[str, ...]  # longest first; empty for the fallback row

    @property
    def why(self) -> str:
        where = f"rule '{self.rule.kind}' (line {self.rule.line})"
        if not self.matched:
            return f"{where} for what fits no other rule"
        return f"{where} by {', '.join(map(repr, self.matched))}"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rows of a file, and the lines and reasons of invalid ones."""

    rows: tuple[Rule, ...]
    problems: tuple[tuple[int, str], ...] = ()

    @classmethod
    def read(cls, text: str, *, first_line: int = 1) -> Rules:
        """Parse every table that has the three columns; other text is ignored."""
        rows: list[Rule] = []
        problems: list[tuple[int, str]] = []
        head: list[str] = []
        for number, line in enumerate(text.split("\n"), first_line):
            cells = [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
            if "|" not in line:
                head = []
            elif not head:
                names = list(map(fold, cells))
                head = names if set(_COLUMNS) <= set(names) else []
            elif any(cell.strip(":-") for cell in cells):
                try:
                    rows.append(_row(head, cells, number))
                except ValueError as error:
                    problems.append((number, str(error)))
        return cls(tuple(rows), tuple(problems))

    def pick(self, task: str) -> PickedRule:
        """Return the row with the longest matching keyword, then the most matches, else the fallback row."""
        folded = fold(task)
        fitting = [PickedRule(row, found) for row in self.rows if (found := _matches(row, folded))]
        if not fitting:
            anything = next((row for row in self.rows if ANYTHING in row.keywords), None)
            if anything is None:
                raise NoRuleFits(
                    "no rule of delegation fits the task",
                    f"name the agent with `synapse send`, or add a row with the keyword {ANYTHING}",
                )
            return PickedRule(anything, ())
        best = max(map(_weight, fitting))
        winners = [pick for pick in fitting if _weight(pick) == best]
        if len({fold(pick.rule.agent).removeprefix("@") for pick in winners}) > 1:
            raise RulesUndecided([f"{pick.rule.agent}, {pick.why}" for pick in winners])
        return winners[0]


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """The rules and the file they came from; unusable files are reported as faults."""

    rules: Rules
    file: TextFile
    faults: tuple[Fault, ...]


def load_rules(folders: TextFolders) -> LoadedRules:
    """Load the rules from the first usable file; raises RulesBroken."""
    found = folders.find(DELEGATE)
    rules = Rules.read(found.file.text, first_line=found.file.first_line) if found.file else Rules(())
    if found.file is not None and rules.problems:
        line, reason = rules.problems[0]
        raise RulesBroken(f"{found.file.path}:{line}: {reason}", "correct the table")
    if found.file is not None and rules.rows:
        return LoadedRules(rules, found.file, found.faults)
    if found.faults:
        raise RulesBroken(
            f"the rules of delegation cannot be used: {'; '.join(map(str, found.faults))}",
            "correct or trust the file",
        )
    raise RulesBroken(
        "there are no rules of delegation",
        f"put a table with the columns kind, keywords and agent into .synapse/{DELEGATE}",
    )


def fold(text: str) -> str:
    """Normalize case, character width and whitespace."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _row(head: list[str], cells: list[str], line: int) -> Rule:
    if len(cells) != len(head):
        raise ValueError(f"the row has {len(cells)} cells and the table {len(head)} columns")
    kind, words, agent = (cells[head.index(name)] for name in _COLUMNS)
    kind, agent = kind.strip("*_ "), agent.strip("*_ ")
    keywords = tuple(filter(None, (fold(word.strip(" `")) for word in re.split(r"[,;、，；]", words))))
    if not agent:
        raise ValueError("the row names no agent")
    if not keywords:
        raise ValueError(f"the row has no keywords: give words, or {ANYTHING} for what fits no other row")
    return Rule(kind, keywords, agent, line)


def _matches(rule: Rule, task: str) -> tuple[str, ...]:
    found = (word for word in rule.keywords if word != ANYTHING and re.search(_pattern(word), task))
    return tuple(sorted(found, key=len, reverse=True))


def _pattern(keyword: str) -> str:
    word = keyword.removesuffix("*")
    before = f"(?<!{_LETTER})" if re.match(_LETTER, word) else ""
    after = f"(?!{_LETTER})" if word == keyword and re.match(_LETTER, word[-1]) else ""
    return f"{before}{re.escape(word)}{after}"


def _weight(pick: PickedRule) -> tuple[int, int]:
    return len(pick.matched[0]), len(pick.matched)


Origin = Literal["project", "user", "shipped"]
# Whether the person has trusted this content of a project's file.
Trusted = Callable[[Path, bytes], bool]

MAX_BYTES = 64 * 1024  # agents pay for every character of it
UNTRUSTED = "its content has not been trusted: synapse trust (or in the palette: Read project files again)"


@dataclass(frozen=True, slots=True)
class TextFile:
    path: Path
    origin: Origin
    text: str
    first_line: int = 1  # number of the text's first line in the file, from 1


@dataclass(frozen=True, slots=True)
class Fault:
    """A file, or part of one, that cannot be used."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Found:
    """The result of looking up a file."""

    file: TextFile | None  # the first usable one
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class TextFolders:
    """The folders to search, in order."""

    project: Path | None  # the project's `.synapse`; None outside a project
    user: Path  # `~/.synapse`
    trusted: Trusted  # called for every project file, with the bytes that will be used

    def find(self, name: str) -> Found:
        """Return the first usable file of that name; an empty file is usable and gives no text."""
        faults: list[Fault] = []
        for origin, folder in self._folders():
            path = folder / name
            try:
                data = read_own(path, MAX_BYTES) if origin == "user" else read_file(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                faults.append(Fault(path, error.strerror or str(error)))
                continue
            reason = self._why_not(origin, path, data)
            if not reason:
                return Found(_text_file(path, origin, data.decode("utf-8-sig")), tuple(faults))
            faults.append(Fault(path, reason))
        return Found(None, tuple(faults))

    def shipped(self, name: str) -> str:
        """Return the text shipped under that name; empty if there is none."""
        paths = (folder / name for folder in shipped_texts())
        path = next((path for path in paths if path.is_file()), None)
        return _text_file(path, "shipped", path.read_text(encoding="utf-8")).text if path is not None else ""

    def _folders(self) -> Iterator[tuple[Origin, Path]]:
        if self.project is not None and self.project != self.user:
            yield "project", self.project
        yield "user", self.user
        yield from (("shipped", folder) for folder in shipped_texts())

    def _why_not(self, origin: Origin, path: Path, data: bytes) -> str:
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return f"byte {error.start + 1} is not UTF-8"
        return UNTRUSTED if origin == "project" and not self.trusted(path, data) else ""


def shipped_texts() -> tuple[Path, ...]:
    """Return the folders of shipped texts, in order: that of the person's language, then all in English."""
    texts = Path(__file__).parent / "texts"
    return (texts,) if language() == "en" else (texts / language(), texts)


def read_file(path: Path) -> bytes:
    return read_regular(path, MAX_BYTES)


def _text_file(path: Path, origin: Origin, content: str) -> TextFile:
    text = content.replace("\r\n", "\n").replace("\r", "\n")
    before = len(text) - len(text.lstrip())
    return TextFile(path, origin, text.strip(), text.count("\n", 0, before) + 1)


# First line of the instructions; a `<type>.md` that begins with it replaces the other texts.
HEADER = "[Synapse A2A Protocol Instructions]"
DEFAULT = "default.md"
FILES, WORKTREE = "files.md", "worktree.md"  # how files are shared: those of one folder, or by merging
FILE_SAFETY = "file-safety.md"
COMMAND = "$SYNAPSE_BIN"  # how agents call `synapse`, because login shells reset PATH

_NOTHING: Mapping[str, str] = MappingProxyType({})
_PLACEHOLDER = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class InstructionTexts:
    """The texts that an agent gets."""

    default: str = DEFAULT  # file for all types; empty for none
    own: str = ""  # file for its type; empty for none
    own_wanted: bool = False
    delegation: bool = False
    file_safety: bool = False

    @classmethod
    def of(cls, settings: Settings, agent_type: str) -> InstructionTexts:
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


def compose(
    selection: InstructionTexts, values: Mapping[str, str], folders: TextFolders, role: str = ""
) -> Composed:
    """Compose an agent's instructions; unusable files are omitted and reported as faults.

    `role` is a text for this agent alone, which comes last.
    """
    return _Composer(values, folders).compose(selection, role)


class _Composer:
    def __init__(self, values: Mapping[str, str], folders: TextFolders) -> None:
        self._folders = folders
        self._values = values
        self._files: list[TextFile] = []
        self._faults: list[Fault] = []

    def compose(self, selection: InstructionTexts, role: str) -> Composed:
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
        texts = (f"{HEADER}\n{body}" if body else "", self._filled(role).strip())
        text = "\n\n".join(filter(None, texts))
        return Composed(text, tuple(self._files), tuple(self._faults))

    def _own(self, selection: InstructionTexts) -> TextFile | None:
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
            if name == "files":
                return self._filled(self._folders.shipped(WORKTREE if self._values["branch"] else FILES))
            return more[name] if name in more else self._values.get(name, match[0])

        return _PLACEHOLDER.sub(value, text)


def placeholders(
    own: Address, everyone: Sequence[Address], *, project: Path, command: Path
) -> Mapping[str, str]:
    """Return the placeholder values for an agent; reads files, to tell whether it works in a worktree.

    `command` is the `synapse` command to use.
    """
    name = _line(own.name)
    about = f"{tr('type')} {own.agent_type}" + (f", {tr('name')} {name}" if name else "")
    forms = list(map(_line, forms_of(own, everyone))) or [own.agent_id]
    others = (
        _described(address, own, project)
        for address in everyone
        if address.local and address.live and address.receives and address.agent_id != own.agent_id
    )
    spaced = any(char.isspace() for char in str(command))
    return {
        "agent_id": own.agent_id,
        "agent_name": name or own.agent_id,
        "agent_type": own.agent_type,
        "identity": f"{own.agent_id} ({about})",
        "addresses": tr(" or ").join(filter(None, (", ".join(forms[:-1]), forms[-1]))),
        "port": str(own.port),
        "agents": "\n".join(others) or tr("none besides you"),
        "branch": branch_of(Path(own.working_dir)) if own.working_dir else "",
        "synapse": f'"{COMMAND}"' if spaced else COMMAND,
    }


def _described(agent: Address, own: Address, project: Path) -> str:
    about = [agent.agent_type]
    if agent.name:
        about.append(f"{tr('name')} {agent.name}")
    if agent.working_dir not in ("", own.working_dir):
        folder = Path(agent.working_dir)
        if folder == project:
            about.append(tr("in the project's folder"))
        else:
            folder = folder.relative_to(project) if folder.is_relative_to(project) else folder
            about.append(f"{tr('in')} {folder}")
    return _line(f"- {agent.agent_id} ({', '.join(about)})")


def _line(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text).strip()
