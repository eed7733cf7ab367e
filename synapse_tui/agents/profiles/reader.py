"""Parses a profile file into a `Profile`, with defaults, bounds and keys of the earlier format."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar, cast, get_args

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from synapse_tui.core.errors import ProfileError
from synapse_tui.core.model import AgentState
from synapse_tui.hooks import Dialect
from synapse_tui.system.dataclass import dataclass

from .profile import (
    AUTO_COMPOSER,
    DEFAULT_PORTS,
    DOCTOR_PROMPTS,
    MAX_FILE_BYTES,
    READY_DEBOUNCE,
    ComposerRules,
    DialogKind,
    DialogRule,
    DoctorPrompt,
    DoctorRules,
    DoctorYes,
    Hazards,
    Interrupt,
    Origin,
    PasteMethod,
    PlaceholderStyle,
    Profile,
    Quirks,
    Signal,
    Startup,
    StateRule,
    Submit,
    TranscriptLines,
    TranscriptRules,
    TranscriptUsage,
    ViModes,
    WorkingInput,
    key_bytes,
)

Value = TypeVar("Value")
Word = TypeVar("Word", bound=str)


_BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(slots=True)
class Faults:
    path: Path
    found: list[ProfileError] = field(default_factory=list)

    def add(self, node: Node | None, reason: str) -> None:
        line = node.start_mark.line + 1 if node is not None else 0
        self.found.append(ProfileError(self.path, line, reason))


class KeyEntry(NamedTuple):
    """A key of a section: its default, and its node in the file or None if it is not given."""

    key: str
    default: object
    given: Node | None
    section: ProfileSection | None  # the section below it, if it is a mapping


class ProfileSection:
    """A mapping in the file; keys that are never read are reported as unknown."""

    def __init__(self, node: MappingNode | None, faults: Faults, name: str = "") -> None:
        self.node = node
        self.faults = faults
        self.name = name
        self._values: dict[str, Node] = {}
        self._keys: dict[str, Node] = {}
        self._asked: dict[str, object] = {}  # every known key, in the order of reading, with its default
        self._below: dict[str, ProfileSection] = {}
        self._skipped: set[str] = set()
        for key, value in node.value if node is not None else ():
            self._take(key, value)

    def _take(self, key: Node, value: Node) -> None:
        if not isinstance(key, ScalarNode):
            self.faults.add(key, "a key must be a word")
        elif key.value in self._values:
            self.faults.add(key, f"'{self._path(key.value)}' is given twice")
        else:
            self._keys[key.value] = key
            self._values[key.value] = value

    def _path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def has(self, key: str) -> bool:
        return self._node(key) is not None

    def is_word(self, key: str) -> bool:
        return isinstance(self._node(key), ScalarNode)

    def _node(self, key: str, default: object = None) -> Node | None:
        if default is not None or key not in self._asked:
            self._asked[key] = default
        node = self._values.get(key)
        return None if node is not None and node.tag == "tag:yaml.org,2002:null" else node

    def _fault(self, node: Node, key: str, wanted: str) -> None:
        self.faults.add(node, f"'{self._path(key)}' must be {wanted}")

    def at(self, key: str) -> Node | None:
        """Return the node to report an error of the key at: its own or the section's."""
        return self._keys.get(key, self.node)

    def fault(self, key: str, reason: str) -> None:
        self.faults.add(self.at(key), f"'{self._path(key)}' {reason}")

    def text(self, key: str, default: str = "") -> str:
        """Read a string; numbers and booleans as written."""
        node = self._node(key, default)
        if node is None:
            return default
        if isinstance(node, ScalarNode):
            return self._passable(key, str(node.value), node)
        self._fault(node, key, "a text")
        return default

    def number(self, key: str, default: float, low: float = 0.0, high: float = 600.0) -> float:
        node = self._node(key, default)
        if node is None:
            return default
        value = _to_float(node)
        if value is None or not low <= value <= high:
            self._fault(node, key, f"a number from {low:g} to {high:g}")
            return default
        return value

    def count(self, key: str, default: int, low: int = 0, high: int = 100_000) -> int:
        value = self.number(key, default, low, high)
        if value != int(value):
            self.fault(key, "must be a whole number")
            return default
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        node = self._node(key, default)
        if node is None:
            return default
        value = _BOOLS.get(node.value.lower()) if isinstance(node, ScalarNode) else None
        if value is None:
            self._fault(node, key, "true or false")
            return default
        return value

    def maybe_flag(self, key: str) -> bool | None:
        return self.flag(key, default=False) if self.has(key) else None

    def maybe_number(self, key: str) -> float | None:
        return self.number(key, 0.0) if self.has(key) else None

    def choice(self, key: str, words: Sequence[Word], default: Word) -> Word:
        node = self._node(key, default)
        if node is None:
            return default
        if isinstance(node, ScalarNode) and node.value in words:
            return words[words.index(node.value)]
        given = node.value if isinstance(node, ScalarNode) else ""
        near = difflib.get_close_matches(given, words, 1)
        self._fault(
            node,
            key,
            f"'{near[0]}' perhaps, or one of {', '.join(words)}" if near else f"one of {', '.join(words)}",
        )
        return default

    def strings(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Read a list of strings; a single string is a list of one."""
        return tuple(self._passable(key, value, node) for value, node in self._strings(key, default))

    def _passable(self, key: str, value: str, node: Node | None) -> str:
        """Report a text that no program can be given, as an argument or in its environment."""
        if "\0" in value:
            self.faults.add(node, f"'{self._path(key)}' contains a NUL character")
        return value

    def _strings(self, key: str, default: tuple[str, ...] = ()) -> list[tuple[str, Node | None]]:
        node = self._node(key, default or None)
        if node is None:
            return [(value, None) for value in default]
        items = node.value if isinstance(node, SequenceNode) else [node]
        if not all(isinstance(item, ScalarNode) for item in items):
            self._fault(node, key, "a list of texts")
            return [(value, None) for value in default]
        return [(str(item.value), item) for item in items]

    def convert(
        self, key: str, reader: Callable[[str], Value], default: tuple[Value, ...] = ()
    ) -> tuple[Value, ...]:
        if self._node(key, default or None) is None:
            return default
        found: list[Value] = []
        for value, node in self._strings(key):
            try:
                found.append(reader(value))
            except ValueError as error:
                self.faults.add(node, f"'{self._path(key)}': {error}")
        return tuple(found)

    def patterns(self, key: str) -> tuple[re.Pattern[str], ...]:
        """Read a list of regular expressions; `^` and `$` match at each row."""
        return self.convert(key, _pattern)

    def pattern(self, key: str) -> re.Pattern[str] | None:
        found = self.patterns(key)
        if len(found) > 1:
            self.fault(key, "must be one pattern")
        return found[0] if found else None

    def mapping(self, key: str) -> dict[str, str]:
        section = self.section(key)
        return {name: section.text(name) for name in section._values}

    def section(self, key: str) -> ProfileSection:
        node = self._node(key)
        if node is not None and not isinstance(node, MappingNode):
            self._fault(node, key, "a mapping")
            node = None
        below = self._below[key] = ProfileSection(node, self.faults, self._path(key))
        return below

    def read(self, key: str, reader: Callable[[ProfileSection], Value]) -> Value:
        """Parse a nested mapping; keys that the reader does not read are errors."""
        section = self.section(key)
        found = reader(section)
        section.finish()
        return found

    def read_list(
        self, key: str, reader: Callable[[ProfileSection], Value], *, alone: bool = False
    ) -> tuple[Value, ...]:
        """Parse each item of a list of mappings; `alone` also accepts a single mapping."""
        found = []
        for section in self._sections(key, alone=alone):
            found.append(reader(section))
            section.finish()
        return tuple(found)

    def _sections(self, key: str, *, alone: bool) -> list[ProfileSection]:
        node = self._node(key)
        if node is None:
            return []
        if alone and isinstance(node, MappingNode):
            return [ProfileSection(node, self.faults, self._path(key))]
        if not isinstance(node, SequenceNode):
            self._fault(node, key, "a list of mappings")
            return []
        sections = []
        for index, item in enumerate(node.value):
            if isinstance(item, MappingNode):
                sections.append(ProfileSection(item, self.faults, f"{self._path(key)}[{index}]"))
            else:
                self._fault(item, f"{key}[{index}]", "a mapping")
        return sections

    def entries(self) -> Iterator[KeyEntry]:
        """Yield every known key of the section with what holds for it."""
        for key, default in self._asked.items():
            if key not in self._skipped:
                yield KeyEntry(key, default, self._values.get(key), self._below.get(key))

    def skip(self, *keys: str) -> None:
        self._skipped.update(keys)

    def finish(self) -> None:
        """Report each key that was never read, suggesting the closest known one."""
        for key, node in self._keys.items():
            if key in self._asked or key in self._skipped:
                continue
            near = difflib.get_close_matches(key, sorted(self._asked), 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(sorted(self._asked))}"
            self.faults.add(node, f"unknown key '{self._path(key)}': {hint}")


def _to_float(node: Node) -> float | None:
    if not isinstance(node, ScalarNode):
        return None
    try:
        return float(node.value)
    except ValueError:
        return None


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"'{text}' is not a regular expression: {error}") from error


_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""With libyaml where PyYAML has it: a quarter of the time for the profiles that a start reads."""


MAX_DEPTH = 50
"""Levels of nesting in a file. Composing is recursive; libyaml's crashes the process where the stack ends."""


class _NodeComposer(Composer, Resolver):
    """The nodes of one document from the events of a parser, at most `MAX_DEPTH` levels deep."""

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        Resolver.__init__(self)
        parser = _LOADER(text)
        self.check_event = parser.check_event
        self.peek_event: Callable[[], yaml.Event] = parser.peek_event
        self.get_event = parser.get_event
        self._depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        if self._depth > MAX_DEPTH:
            mark = cast("yaml.Mark", self.peek_event().start_mark)
            raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_TOO_DEEP = f"more than {MAX_DEPTH} levels of nesting, where a profile needs fewer than ten"
_PROBLEMS = {"exceeded maximum nesting depth": _TOO_DEEP}
"""What libyaml says of text it has read ahead, since PyYAML 6.0.4."""


def read_mapping(path: Path, data: bytes, faults: Faults) -> ProfileSection | None:
    if len(data) > MAX_FILE_BYTES:
        faults.add(None, f"the file is longer than {MAX_FILE_BYTES} bytes")
        return None
    try:
        node = _NodeComposer(data.decode("utf-8")).get_single_node()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        faults.found.append(ProfileError(path, line, "the file is not UTF-8"))
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 0
        problem = _PROBLEMS.get(error.problem or "", error.problem) or error.context
        faults.found.append(ProfileError(path, line, f"invalid YAML: {problem}"))
        return None
    except yaml.YAMLError as error:
        faults.add(None, f"invalid YAML: {error}")
        return None
    if not isinstance(node, MappingNode):
        faults.add(node, "the file must hold one mapping of keys to values")
        return None
    return ProfileSection(node, faults)


# placeholders in a message and in the pattern of its answer
PLACEHOLDERS = ("first", "second", "filler", "command", "seconds", "chars", "lines")


def read_doctor(section: ProfileSection) -> DoctorRules:
    base = DoctorRules()
    return DoctorRules(
        version=section.text("version"),
        version_args=section.strings("version_args", base.version_args),
        free=section.flag("free", default=False),
        permissions=section.flag("permissions", default=True),
        args=section.strings("args"),
        trust=tuple(filter(None, section.read_list("trust", _yes, alone=True))),
        approve=section.read("approve", _yes),
        prompts=MappingProxyType(section.read("prompts", _prompts)),
    )


def _yes(section: ProfileSection) -> DoctorYes | None:
    screen = section.pattern("screen")
    keys = section.convert("keys", key_bytes)
    if screen is None:
        return None
    return DoctorYes(screen, keys) if keys else DoctorYes(screen)


def _prompts(section: ProfileSection) -> dict[str, DoctorPrompt]:
    return {name: section.read(name, _prompt) for name in DOCTOR_PROMPTS}


def _prompt(section: ProfileSection) -> DoctorPrompt:
    expect = section.text("expect")
    try:
        re.compile(filled(expect, dict.fromkeys(PLACEHOLDERS, "1")))
    except re.error as error:
        section.fault("expect", f"'{expect}' is not a regular expression: {error}")
    return DoctorPrompt(text=section.text("text").strip(), expect=expect)


def filled(text: str, fields: dict[str, str]) -> str:
    """Replace `{name}` for the given fields; other braces stay, as patterns need them."""
    names = "|".join(map(re.escape, fields))
    return re.sub(rf"\{{({names})\}}", lambda match: fields[match[1]], text) if fields else text


_NAME = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
_RESERVED = frozenset({"all", "user", "system", "external", "synapse"})
_NOTHING = re.compile(r"(?!)")
_STATE_WORDS = tuple(state.value.lower() for state in (
    AgentState.READY, AgentState.PROCESSING, AgentState.WAITING, AgentState.ERROR, AgentState.STARTING
))  # fmt: skip
_STATUS_WORDS = ("idle", "working", "blocked", "done", "error")
_STATUS_STATES = {
    "blocked": AgentState.WAITING,
    "working": AgentState.PROCESSING,
    "error": AgentState.ERROR,
}
_PROGRESS_WORDS = ("none", "set", "error", "indeterminate", "paused")
_PROGRESSES = frozenset(map(_PROGRESS_WORDS.index, ("set", "indeterminate")))
_PROMPT_WORDS = ("prompt", "input", "output", "end")  # OSC 133 A to D
# keys of the original synapse-a2a without effect here: it guesses at dialogs, and answers them
_WITHOUT_MEANING = (
    "waiting_detection",
    "input_ready_pattern",
    "auto_approve",
    "submit_confirm_timeout",
    "submit_confirm_poll_interval",
    "submit_confirm_retries",
    "long_submit_confirm_timeout",
    "long_submit_confirm_retries",
)
_ORIGINAL = (
    "startup_delay",
    "write_delay",
    "bracketed_paste",
    "submit_sequence",
    "idle_regex",
    "output_idle_threshold",
    "idle_detection",
)
"""Keys of the original synapse-a2a, which are translated."""
_CONDITIONS = (
    "title",
    "status",
    "progress",
    "prompt",
    "screen",
    "dialog",
    "composer",
    "command",
    "silence",
    "active",
)


def read_profile(
    path: Path, data: bytes, origin: Origin, environ: Mapping[str, str]
) -> tuple[Profile | None, list[ProfileError]]:
    profile, _top, faults = read_file(path, data, origin, environ)
    return profile, faults


def read_file(
    path: Path, data: bytes, origin: Origin, environ: Mapping[str, str]
) -> tuple[Profile | None, ProfileSection | None, list[ProfileError]]:
    """Read a profile; the section has every known key with its default, None if it is not YAML."""
    faults = Faults(path)
    top = read_mapping(path, data, faults)
    if top is None:
        return None, None, faults.found
    profile = _profile(top, path, origin, environ)
    top.skip(*(key for key in _ORIGINAL if not top.has(key)))
    top.finish()
    return (None if faults.found else profile), top, faults.found


def _profile(top: ProfileSection, path: Path, origin: Origin, environ: Mapping[str, str]) -> Profile:
    name = _name(top, path)
    command, args = _command(top, environ)
    top.skip(*_WITHOUT_MEANING)
    asks = top.text("receives") == "ask"
    return Profile(
        name=name,
        display=top.text("display", name.capitalize()),
        command=command,
        aliases=tuple(alias.lower() for alias in top.strings("aliases")),
        color=top.text("color"),
        description=top.text("description"),
        args=(*args, *top.strings("args")),
        env=MappingProxyType(_variables(top)),
        ports=_ports(top),
        install=top.text("install"),
        receives=asks or top.flag("receives", default=True),
        asks=asks,
        instructions=top.flag("instructions", default=True),
        working_input=top.choice("working_input", get_args(WorkingInput), "hold"),
        hooks=_hooks(top),
        sandbox=top.flag("sandbox", default=False),
        startup=_startup(top),
        submit=_submit(top),
        interrupt=top.read("interrupt", _interrupt),
        deny=top.convert("deny", key_bytes, (b"\x1b",)),
        clear=top.convert("clear", key_bytes, (b"\x15",)),
        hazards=top.read("hazards", _hazards),
        composer=_composer_of(top),
        dialogs=top.read_list("dialogs", _dialog),
        states=_states(top),
        ignores=frozenset(top.convert("ignores", _word(get_args(Signal)))),
        resume=top.strings("resume"),
        transcript=top.read("transcript", _transcript) if top.has("transcript") else None,
        usage_database=top.text("usage_database"),
        quirks=top.read("quirks", _quirks),
        doctor=top.read("doctor", read_doctor),
        source=path,
        origin=origin,
    )


def _hooks(top: ProfileSection) -> Dialect | None:
    name = top.choice("hooks", ("none", *Dialect), "none")
    return None if name == "none" else Dialect(name)


def _variables(top: ProfileSection) -> dict[str, str]:
    found = top.mapping("env")
    for name in found:
        if not name or "=" in name or "\0" in name:
            top.fault("env", f"has a name that no variable can have: {name!r}")
    return found


def _command(top: ProfileSection, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    text = top.text("command").strip()
    try:
        words = [text] if os.path.exists(text) else shlex.split(text)  # noqa: PTH110 - never raises
    except ValueError as error:
        top.fault("command", f"is not a command line: {str(error).lower()}")
        words = [text]
    if not text:
        top.fault("command", "must name the program to start")
        words = [text]
    places = {"{python}": sys.executable, "{shell}": environ.get("SHELL") or "/bin/sh"}
    command, *args = [_filled(word, places) for word in words]
    return command, tuple(args)


def _filled(word: str, places: Mapping[str, str]) -> str:
    for place, value in places.items():
        word = word.replace(place, value)
    return word


def _name(top: ProfileSection, path: Path) -> str:
    name = top.text("name", path.stem)
    if not is_profile_name(name):
        top.fault(
            "name",
            f"'{name}' is not a name for a profile: use letters, digits and '-', and none of {_reserved()}",
        )
    return name


def is_profile_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and name not in _RESERVED and not re.search(r"-\d{4,5}$", name)


def _reserved() -> str:
    return ", ".join(sorted(_RESERVED))


def _ports(top: ProfileSection) -> tuple[int, int]:
    text = top.text("ports")
    if not text:
        return DEFAULT_PORTS
    match = re.fullmatch(r"(\d{1,5})\s*-\s*(\d{1,5})", text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1024 <= first <= last <= 65535:
        top.fault("ports", f"'{text}' is not a range of ports such as 8300-8309 (1024 to 65535)")
        return DEFAULT_PORTS
    return first, last


def _startup(top: ProfileSection) -> Startup:
    section, base = top.section("startup"), Startup()
    delay = top.number("startup_delay", base.delay)
    found = Startup(
        delay=section.number("delay", delay),
        timeout=section.number("timeout", base.timeout),
        composer=section.flag("composer", base.composer),
        prompt=section.flag("prompt", base.prompt),
    )
    section.finish()
    return found


def _submit(top: ProfileSection) -> Submit:
    section, base = top.section("submit"), Submit()
    original = top.convert("submit_sequence", _sequence)
    enter = b"".join(section.convert("enter", _sequence, original or (base.enter,)))
    pause = top.number("write_delay", base.pause, 0, 10) * 1000
    method: PasteMethod = "paste" if top.flag("bracketed_paste", default=True) else "typed"
    found = Submit(
        method=section.choice("method", get_args(PasteMethod), method),
        pause=section.number("pause", pause, 0, 10_000) / 1000,
        enter=enter or base.enter,
        multiline=section.flag("multiline", base.multiline),
        chunk=section.count("chunk", base.chunk),
        chunk_pause=section.number("chunk_pause", 20, 0, 10_000) / 1000,
        verify=section.number("verify", base.verify),
        retries=section.count("retries", base.retries, 0, 5),
        settle=section.number("settle", 0, 0, 5_000) / 1000,
        begin=section.number("begin", 0, 0, 5_000) / 1000,
    )
    section.finish()
    return found


def _sequence(text: str) -> bytes:
    """Parse a key name or literal control characters.

    Control characters may be escaped, which YAML decodes only in double quotes.
    """
    if text.startswith("\\"):
        try:
            text = text.encode("ascii").decode("unicode_escape")
        except ValueError:
            raise ValueError(f"'{text}' is not an escape such as \\r or \\n") from None
    if text and ord(text[0]) < 0x20:
        return text.encode()
    return key_bytes(text)


def _interrupt(section: ProfileSection) -> Interrupt:
    base = Interrupt()
    section.skip("default_mode", "pty_repeat", "graceful_supported")
    number = section.convert("signal", _signal)
    keys = section.convert("keys", key_bytes, () if number else base.keys)
    stopped = section.convert("stopped", _state, tuple(base.stopped))
    return Interrupt(
        keys=keys,
        gap=section.number("gap", base.gap, 0, 5),
        signal=number[0] if number else 0,
        stopped=frozenset(stopped) or base.stopped,
        screen=section.pattern("screen"),
        quiet=section.number("quiet", base.quiet, 0, 10),
        timeout=section.number("timeout", base.timeout, 0.1, 60),
        again=section.flag("again", base.again),
        restores_draft=section.flag("restores_draft", base.restores_draft),
    )


def _signal(text: str) -> int:
    word = text.upper() if text.upper().startswith("SIG") else f"SIG{text.upper()}"
    try:
        return int(signal.Signals[word])
    except KeyError:
        raise ValueError(f"no signal named '{text}'") from None


def _state(text: str) -> AgentState:
    if text.lower() not in _STATE_WORDS:
        raise ValueError(f"'{text}' is not a state: use {', '.join(_STATE_WORDS)}")
    return AgentState(text.upper())


def _hazards(section: ProfileSection) -> Hazards:
    return Hazards(
        leading=section.strings("leading", Hazards().leading),
        trailing_mention=section.flag("trailing_mention", default=True),
    )


def _composer_of(top: ProfileSection) -> ComposerRules | None:
    if not top.has("composer"):
        return None
    if top.is_word("composer"):
        if top.text("composer") != "auto":
            top.fault("composer", "must be a mapping of its keys, or 'auto'")
        return AUTO_COMPOSER
    return top.read("composer", _composer)


def _composer(section: ProfileSection) -> ComposerRules:
    if section.flag("auto", default=False):
        return replace(AUTO_COMPOSER, hints=section.patterns("hints"))
    prompt = section.pattern("prompt")
    if prompt is None:
        section.fault("prompt", "is needed to find the composer")
    above, below = section.count("margin_above", 0, 0, 10), section.count("margin_below", 0, 0, 10)
    return ComposerRules(
        prompt=prompt or _NOTHING,
        row=section.pattern("row") or re.compile(r"^\s*"),
        above=section.pattern("above"),
        below=section.pattern("below"),
        footer=section.count("footer", 12, 0, 500),
        background=section.flag("background", default=False),
        margin=(above, below),
        hints=section.patterns("hints"),
        right=section.pattern("right"),
        absent=section.patterns("absent"),
        cursor=section.flag("cursor", default=True),
        placeholder=section.read("placeholder", _placeholder),
        pastes=section.patterns("pastes"),
        vi=section.read("vi", _vi) if section.has("vi") else None,
    )


def _vi(section: ProfileSection) -> ViModes:
    modes = ViModes(section.pattern("normal"), section.pattern("insert"), section.convert("keys", key_bytes))
    if modes.normal is None and modes.insert is None:
        section.fault("normal", "or 'insert' is needed to know the mode")
    return modes


def _placeholder(section: ProfileSection) -> PlaceholderStyle:
    return PlaceholderStyle(
        dim=section.flag("dim", default=True),
        grey=section.flag("grey", default=False),
        text=section.pattern("text"),
    )


def _dialog(section: ProfileSection) -> DialogRule:
    screen = section.patterns("screen")
    if not screen:
        section.fault("screen", "must hold at least one pattern")
    return DialogRule(
        name=section.text("name", "dialog"),
        screen=screen,
        kind=section.choice("kind", get_args(DialogKind), "permission"),
        tail=section.count("tail", 40, 1, 500),
        title=section.patterns("title"),
        buttons=section.pattern("buttons"),
        keys=section.pattern("keys"),
    )


def _states(top: ProfileSection) -> tuple[StateRule, ...]:
    rules = top.read_list("states", _rule)
    legacy = _legacy_rules(top)
    return _with_defaults(rules or legacy, composer=top.has("composer"))


def _with_defaults(rules: tuple[StateRule, ...], *, composer: bool) -> tuple[StateRule, ...]:
    """Add the rules that hold for every agent, dialogs and what it reports itself, to a profile's rules.

    A profile's own rule for one of them takes precedence. The report of an idle agent comes after all rules
    that mean something other than READY, and after those before the profile's first READY: some agents report
    it before they draw the end of the answer, and some never report that they work.
    """
    words = frozenset[str]().union(*(rule.status for rule in rules))
    marks = frozenset[str]().union(*(rule.prompt for rule in rules))
    first = [
        StateRule(f"program status {word}", state, status=frozenset({word}))
        for word, state in _STATUS_STATES.items()
        if word not in words
    ]
    if not any(rule.dialog for rule in rules):
        first.insert(0, StateRule("dialog", AgentState.WAITING, dialog=True))
    if not any(rule.progress & _PROGRESSES for rule in rules):
        first.append(StateRule("progress", AgentState.PROCESSING, progress=_PROGRESSES))
    if "C" not in marks:
        first.append(StateRule("output mark", AgentState.PROCESSING, prompt=frozenset("C")))
    ready = StateRule("", AgentState.READY, dialog=False, composer=True if composer else None)
    idle = []
    if status := frozenset({"idle", "done"} - words):
        idle.append(replace(ready, name="program status idle", status=status))
    if not marks:
        idle.append(replace(ready, name="prompt mark", prompt=frozenset("AB"), debounce=READY_DEBOUNCE))
    places = [place for place, rule in enumerate(rules) if rule.state is AgentState.READY]
    others = [place + 1 for place, rule in enumerate(rules) if rule.state is not AgentState.READY]
    place = max((min(places, default=len(rules)), *others))
    return (*first, *rules[:place], *idle, *rules[place:])


def _rule(section: ProfileSection) -> StateRule:
    found = section.convert("state", _state)
    state = found[0] if found else AgentState.UNKNOWN
    if not section.has("state"):
        section.fault("state", "must be given")
    if not any(section.has(key) for key in _CONDITIONS):
        section.fault("name", f"has no condition: give one of {', '.join(_CONDITIONS)}")
    return StateRule(
        name=section.text("name", state.value.lower()),
        state=state,
        title=section.pattern("title"),
        status=frozenset(section.convert("status", _word(_STATUS_WORDS))),
        status_kinds=frozenset(section.strings("status_kind")),
        progress=frozenset(
            _PROGRESS_WORDS.index(word) for word in section.convert("progress", _word(_PROGRESS_WORDS))
        ),
        prompt=frozenset(
            "ABCD"[_PROMPT_WORDS.index(word)] for word in section.convert("prompt", _word(_PROMPT_WORDS))
        ),
        screen=section.patterns("screen"),
        absent=section.patterns("absent"),
        tail=section.count("tail", 40, 1, 500),
        dialog=section.maybe_flag("dialog"),
        composer=section.maybe_flag("composer"),
        command=section.flag("command", False),
        silence=section.maybe_number("silence"),
        active=section.maybe_number("active"),
        debounce=section.number("debounce", READY_DEBOUNCE if state is AgentState.READY else 0.0, 0, 30),
        detail=section.pattern("detail"),
    )


def _word(words: tuple[str, ...]) -> Callable[[str], str]:
    def reader(text: str) -> str:
        if text not in words:
            raise ValueError(f"'{text}' is not one of {', '.join(words)}")
        return text

    return reader


def _legacy_rules(top: ProfileSection) -> tuple[StateRule, ...]:
    """Build the rules of a profile without `states`: READY once output stops, as in the earlier format.

    `idle_regex`, or `idle_detection` with the strategy `pattern`, additionally needs a text on the screen;
    the earlier format's BRACKETED_PASTE_MODE is not such a text.
    """
    rest = top.number("output_idle_threshold", 1.5, 0.1, 60)
    idle = top.pattern("idle_regex")
    detection = top.section("idle_detection")
    strategy = detection.choice("strategy", ("pattern", "timeout", "hybrid"), "pattern")
    always = detection.choice("pattern_use", ("always", "startup_only", "never"), "always") == "always"
    pattern = detection.pattern("pattern")
    if top.has("idle_detection"):  # with other strategies, silence without the text is enough
        idle = pattern if strategy == "pattern" and always else None
    rest = detection.number("timeout", rest, 0.1, 60)
    detection.skip("task_protection_timeout")
    detection.finish()
    screen = (idle,) if idle is not None and idle.pattern != "BRACKETED_PASTE_MODE" else ()
    return (
        StateRule("output rests", AgentState.READY, screen=screen, silence=rest),
        StateRule("output flows", AgentState.PROCESSING, active=rest),
    )


def _transcript(section: ProfileSection) -> TranscriptRules:
    found = TranscriptRules(
        path=section.text("path"),
        user=section.read("user", _transcript_lines),
        agent=section.read("agent", _transcript_lines),
        usage=section.read("usage", _transcript_usage) if section.has("usage") else None,
    )
    if not (found.path and found.user.text and found.agent.text):
        section.fault("path", "needs 'path', 'user.text' and 'agent.text'")
    return found


def _transcript_lines(section: ProfileSection) -> TranscriptLines:
    return TranscriptLines(where=section.mapping("where"), text=section.text("text"))


def _transcript_usage(section: ProfileSection) -> TranscriptUsage:
    usage = TranscriptUsage(
        where=section.mapping("where"),
        tokens=section.strings("tokens"),
        cached=section.strings("cached"),
        id=section.text("id"),
        running=section.flag("running", default=False),
    )
    if not usage.tokens:
        section.fault("tokens", "must hold at least one path")
    return usage


def _quirks(section: ProfileSection) -> Quirks:
    term = section.strings("term_program", ("", ""))
    if len(term) != 2:
        section.fault("term_program", "must be a list of a program and its version")
        term = ("", "")
    return Quirks(
        term_program=(term[0], term[1]),
        alternate_screen=section.flag("alternate_screen", default=False),
        idle_output=section.flag("idle_output", default=False),
        exits_on_ctrl_c=section.flag("exits_on_ctrl_c", default=False),
        daemon=section.flag("daemon", default=False),
        hides_cursor=section.flag("hides_cursor", default=False),
        half_blanks=section.flag("half_blanks", default=False),
    )
