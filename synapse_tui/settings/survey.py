"""All settings at a glance: what holds, where it comes from, what each file says about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from synapse_tui.errors import ConfigError

from .files import LAYERS, Layer, LayerView, SettingsFiles, in_order, is_secret, shown
from .kinds import TABLES
from .layers import Settings
from .schema import ENV, Setting, find_setting

Origin = Literal["default", "user", "project", "local", "environment"]

LAYER_WORDS: Mapping[Origin, str] = {
    "default": "default",
    "user": "your file",
    "project": "project file",
    "local": "local file",
    "environment": "environment",
}
"""Where a value comes from, in a word or two."""
OTHERS = "Others"
_NOTHING = object()
_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Application", ("tui.",)),
    (
        "Who may reach agents",
        (
            *("a2a.bind", "a2a.allowed", "a2a.tls", "a2a.rate", "a2a.push", "env.SYNAPSE_AUTH"),
            *("env.SYNAPSE_API", "env.SYNAPSE_ADMIN", "env.SYNAPSE_ALLOW"),
        ),
    ),
    ("Messages", ("a2a.",)),
    ("Instructions", ("instructions.", "delegation.")),
    ("File safety", ("env.SYNAPSE_FILE_SAFETY",)),
    ("History and logs", ("env.SYNAPSE_HISTORY", "env.SYNAPSE_DATABASE", "env.SYNAPSE_LOG")),
)
"""Headings, and how the keys below them begin; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting.

    Attributes:
        setting: It.
        value: The value that holds.
        origin: Where that comes from.
        given: What the files say that can be used, whether they count or not.
        kept: Why the value is what a file said before, and not what it says now; empty where it is not.
    """

    setting: Setting
    value: object
    origin: Origin
    given: Mapping[Layer, object]
    kept: str = ""

    @property
    def key(self) -> str:
        """Its key."""
        return self.setting.key

    @property
    def group(self) -> str:
        """The heading that it stands below."""
        return next((name for name, starts in _GROUPS if self.key.startswith(starts)), OTHERS)

    @property
    def variable(self) -> str:
        """The variable of the environment that sets it too; empty for none."""
        return self.key.removeprefix(ENV) if self.key.startswith(ENV) else ""

    @property
    def best_layer(self) -> Layer:
        """The file that a change is most likely meant for: the one that counts now, else the person's own."""
        return next((layer for layer in LAYERS if layer == self.origin), "user")


@dataclass(frozen=True, slots=True)
class Survey:
    """All settings of a project.

    Attributes:
        entries: The settings, under their headings.
        files: What each file says.
        problems: What is wrong with files and variables.
    """

    entries: tuple[Entry, ...]
    files: Mapping[Layer, LayerView]
    problems: tuple[ConfigError, ...]

    def find(self, key: str) -> Entry | None:
        """The setting of a key, or None."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def name(self, layer: Layer) -> str:
        """A file as people write it: from the project on, or from the home folder on."""
        place = self.files[layer].path
        return f"~/.synapse/{place.name}" if layer == "user" else f".synapse/{place.name}"

    def shorter(self, text: str) -> str:
        """A text in which the files are named as people write them."""
        for layer, view in self.files.items():
            text = text.replace(str(view.path), self.name(layer))
        return text

    def places(self, setting: Setting) -> list[Layer]:
        """The files that may set a setting."""
        return [layer for layer in self.files if layer == "user" or setting.project]

    def obstacle(self, entry: Entry, layer: Layer) -> str:
        """Why a value does not count that a file gives; empty when it does."""
        if entry.origin == "environment":
            return f"${entry.variable} in the environment wins over all files"
        view = self.files[layer]
        if not view.trusted:
            return f"{self.name(layer)} counts once you have trusted it"
        later = list(self.files)[list(self.files).index(layer) + 1 :]
        winner = next((each for each in reversed(later) if self._counts(entry, each)), None)
        if winner is not None:
            return f"{self.name(winner)} wins: {value_text(entry.setting, entry.value)}"
        return ""

    def _counts(self, entry: Entry, layer: Layer) -> bool:
        if entry.kept and entry.origin == layer:
            return True
        return layer in entry.given and self.files[layer].trusted


def survey(files: SettingsFiles) -> Survey:
    """Read all files, for a person to look at."""
    settings = files.load()
    views = {layer: files.view(layer) for layer in files.layers}
    origins: dict[str, Origin] = {"default": "default", "environment": "environment"}
    for layer, view in views.items():
        origins[str(view.path)] = layer
    types = [f"instructions.{name}" for name in files.types()]
    entries = []
    for key in in_order({*settings.values, *types}):
        setting = find_setting(key)
        if setting is None:
            continue
        given = {layer: view.values[key] for layer, view in views.items() if key in view.values}
        origin = origins.get(settings.origins.get(key, "default"), "default")
        value = settings.values.get(key, setting.default)
        kept = ""
        giver: Layer | None = next((each for each in views if each == origin), None)
        if giver is not None and given.get(giver, _NOTHING) != value:
            kept = _why_kept(settings, views[giver])
        entries.append(Entry(setting, value, origin, given, kept))
    # What a file is told of by itself is the same problem, only without what still counts.
    problems = [*(each for view in views.values() for each in view.problems), *settings.problems]
    unique = {problem.message: problem for problem in problems}
    return Survey(tuple(_grouped(entries)), views, tuple(unique.values()))


def _why_kept(settings: Settings, view: LayerView) -> str:
    """Why a value of a file still counts that does not stand there now."""
    if view.path in settings.broken:
        return "the file cannot be read now"
    if view.path in settings.untrusted:
        return "the file waits for your trust"
    return "what it says now cannot be used"


def _grouped(entries: Iterable[Entry]) -> list[Entry]:
    headings = [*(name for name, _starts in _GROUPS), OTHERS]
    return sorted(entries, key=lambda entry: headings.index(entry.group))


def value_text(setting: Setting, value: object) -> str:
    """A value in one line; secrets are not shown."""
    if is_secret(setting.key) and value:
        return str(shown(setting.key, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "; ".join(value_lines(value)) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "none"


def value_lines(value: object) -> list[str]:
    """A list or a table as lines that can be edited: an item each, or `name = value`."""
    if isinstance(value, Mapping):
        return [
            f"{name} = {', '.join(each) if isinstance(each, list) else each}" for name, each in value.items()
        ]
    return list(map(str, value)) if isinstance(value, list) else [str(value)]


def read_lines(setting: Setting, text: str) -> object:
    """The way back from `value_lines`, as a file would hold it.

    Raises:
        ValueError: A line of a table has no `=`, or its name comes twice.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if setting.kind not in TABLES:
        return lines
    table: dict[str, str] = {}
    for line in lines:
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise ValueError(f"'{line}' must read NAME = VALUE")
        if name in table:
            raise ValueError(f"'{name}' comes twice")
        table[name] = value
    return table
