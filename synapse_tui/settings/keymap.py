"""The key bindings in effect: the defaults in `actions.py`, overridden by `tui.keys` in the settings.

Keys are named as users write them (`ctrl+]`, `f5`, `alt+x`, `shift+tab`). Only keys that every terminal can
distinguish without a keyboard protocol are accepted: those that xterm sends in its default modes (ctlseqs,
"PC-Style Function Keys" and "Alt and Meta Keys").
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from synapse_tui.system.dataclass import dataclass

from .actions import ACTIONS, DEFAULT_LEADER, DIGITS, Action

# fmt: off
_FUNCTION = tuple(f"f{number}" for number in range(1, 21))
_CURSOR = ("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete")
_OTHER = ("enter", "tab", "space", "backspace", "escape")
_SYNONYMS = {
    "esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "page_up": "pageup",
    "pgup": "pageup", "page_down": "pagedown", "pgdn": "pagedown", "comma": ",", "plus": "+",
    "control": "ctrl", "c": "ctrl", "option": "alt", "opt": "alt", "m": "alt", "s": "shift",
}
_MODIFIERS = ("alt", "ctrl", "shift")  # in Textual's order
_FOREIGN = frozenset({"super", "meta", "hyper", "cmd", "command", "win", "fn"})  # reserved by the desktop
_SAME_AS = {  # keys that arrive as a different key, either from the terminal or from Textual's widgets
    "ctrl+i": "Tab", "ctrl+m": "Enter", "ctrl+[": "Esc", "ctrl+h": "Backspace", "ctrl+?": "Backspace",
    "ctrl+@": "Ctrl+Space", "ctrl+enter": "Enter", "ctrl+tab": "Tab", "ctrl+escape": "Esc",
    "ctrl+backspace": "Backspace", "shift+enter": "Enter", "shift+escape": "Esc",
    "shift+backspace": "Backspace", "shift+space": "Space", "alt+b": "Ctrl+←",
    "alt+f": "Ctrl+→", "alt+backspace": "Ctrl+W",
}
_LABELS = {
    "left": "←", "right": "→", "up": "↑", "down": "↓", "pageup": "PgUp", "pagedown": "PgDn",
    "escape": "Esc", "delete": "Del", "insert": "Ins",
}
_TEXTUAL = {  # Unicode names that Textual replaces
    "solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus",
    "plus_sign": "plus", "low_line": "underscore",
}
# fmt: on
_NO_SHIFT = "terminals cannot report Shift with a letter together with Ctrl or Alt"
_BY_ITSELF = "write the character that it types"
_CONTROL = frozenset("abcdefghijklmnopqrstuvwxyz\\]^_")
_ESCAPE_SEQUENCES = frozenset("[]\\^_")  # Alt sends ESC first, so these would start or end an escape sequence


def read_key(word: str) -> str:
    text = word.strip()
    if not text:
        raise ValueError("'': a key is missing")
    held, name = _split(text)
    modifiers = _modifiers(held, word)
    key = _name(name, word)
    if key.isalpha() and len(key) == 1 and modifiers:
        if "shift" in modifiers:
            raise ValueError(f"'{word}': {_NO_SHIFT if len(modifiers) > 1 else _BY_ITSELF}")
        key = key.lower()
    full = "+".join([*modifiers, key])
    _check(full, modifiers, key, word)
    return full


def _split(key: str) -> tuple[list[str], str]:
    if key == "+" or key.endswith("++"):
        return key[:-2].split("+") if len(key) > 1 else [], "+"
    *held, name = key.split("+")
    return held, name


def _modifiers(held: list[str], word: str) -> list[str]:
    found = set()
    for each in held:
        name = each.strip().lower()
        name = _SYNONYMS.get(name, name)
        if name in _FOREIGN:
            raise ValueError(f"'{word}': no terminal sends {each}, use ctrl, alt or shift")
        if name not in _MODIFIERS:
            raise ValueError(f"'{word}': '{each}' is not a modifier, use ctrl, alt or shift")
        found.add(name)
    return [name for name in _MODIFIERS if name in found]


def _name(name: str, word: str) -> str:
    name = name.strip()
    if not name:
        raise ValueError(f"'{word}': the name of the key is missing")
    if len(name) == 1:
        if not name.isprintable():
            raise ValueError(f"'{word}': no such key")
        return name
    small = name.lower()
    small = _SYNONYMS.get(small, small) if len(small) > 1 else small
    known = (*_FUNCTION, *_CURSOR, *_OTHER)
    if small in known or len(small) == 1:
        return small
    if small[:1] == "f" and small[1:].isdigit():
        raise ValueError(f"'{word}': no terminal sends it, function keys are f1 to f20")
    near = difflib.get_close_matches(small, known, n=1)
    if near:
        raise ValueError(f"'{word}': no such key, did you mean '{near[0]}'?")
    raise ValueError(f"'{word}': no such key")


def _check(full: str, modifiers: list[str], key: str, word: str) -> None:
    if full in _SAME_AS:
        raise ValueError(f"'{word}': in a terminal that is {_SAME_AS[full]}")
    if not modifiers or key in _FUNCTION or key in _CURSOR:
        return
    if modifiers == ["shift"]:
        if len(key) == 1:
            raise ValueError(f"'{word}': {_BY_ITSELF}")
        possible = key == "tab"
    elif modifiers == ["ctrl"]:
        possible = key in _CONTROL or key == "space"
    elif modifiers == ["alt"]:
        possible = (len(key) == 1 and key not in _ESCAPE_SEQUENCES) or key in ("enter", "space")
    else:
        possible = modifiers == ["alt", "ctrl"] and key in _CONTROL and key not in "im"
    if not possible:
        raise ValueError(f"'{word}': no terminal sends it")


def textual_key(key: str) -> str:
    """Return Textual's name for a key (`ctrl+right_square_bracket` for `ctrl+]`)."""
    modifiers, name = _split(key)
    return "+".join([*modifiers, _textual_name(name) if len(name) == 1 else name])


def _textual_name(character: str) -> str:
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return _TEXTUAL.get(name, name)


def key_label(key: str) -> str:
    """Return a key as displayed: `F1`, `^]`, `→`, `n`, `Shift+Tab`, `Alt+X`."""
    modifiers, name = _split(key)
    if modifiers == ["ctrl"] and len(name) == 1:
        return f"^{name.upper()}"
    label = name.capitalize() if len(name) > 1 or modifiers else name
    return "+".join([*(modifier.capitalize() for modifier in modifiers), _LABELS.get(name, label)])


LEADER = "leader"  # prefix of a key that follows the leader: `leader z`
_WITHOUT = frozenset({"ctrl+c"})  # keys that agents need
_CANCEL = frozenset({"escape", "ctrl+c"})  # keys that cancel the leader

# action id, for one kind of agent `PROFILE.ACTION`, to keys, each `leader KEY` or `KEY`
Bindings = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Keymap:
    """The actions with their keys.

    Attributes:
        problem: Why a setting has no effect; empty if all have.
        profiles: The keys while an agent of a profile has the focus, if they are others.
    """

    leader: str = DEFAULT_LEADER
    actions: tuple[Action, ...] = ACTIONS
    problem: str = ""
    profiles: Mapping[str, Keymap] = field(default_factory=dict, repr=False)
    # by Textual's names of direct keys, since every key is looked up
    _own: Mapping[str, Action] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = {textual_key(key): action for action in reversed(self.actions) for key in action.keys}
        object.__setattr__(self, "_own", own)

    @classmethod
    def of(cls, leader: str, bindings: Bindings) -> Keymap:
        """Apply the settings; a binding of the leader key itself is ignored."""
        general, own = _by_profile(bindings)
        profiles = {profile: cls.of(leader, general | keys) for profile, keys in own.items()}
        bindings = general
        actions = [_with_keys(action, bindings) for action in ACTIONS]
        clash = next((action.id for action in actions if action.id in bindings and leader in action.keys), "")
        problem = f"'{leader}' is the leader, so it is not a key of '{clash}'" if clash else ""
        return cls(leader, tuple(_without(action, leader) for action in actions), problem, profiles)

    def within(self, profile: str) -> Keymap:
        """Return the keys while an agent of a profile has the focus."""
        return self.profiles.get(profile, self)

    def find(self, action_id: str) -> Action:
        for action in self.actions:
            if action.id == action_id:
                return action
        raise KeyError(action_id)

    def by_leader_key(self, key: str) -> Action | None:
        name = "space" if key == " " else key
        pairs = ((action, each) for action in self.actions for each in action.leader)
        return next((action for action, each in pairs if name in (each, textual_key(each))), None)

    def by_key(self, key: str) -> Action | None:
        return self._own.get(key)

    def with_keys(self) -> Iterator[Action]:
        """Yield the actions that have a direct key: function keys in order, then the others."""
        yield from sorted((action for action in self.actions if action.keys), key=_place)

    def in_group(self, group: str) -> Iterator[Action]:
        return (action for action in self.actions if action.group == group)

    def way(self, action_id: str) -> str:
        """Describe how to perform an action: `F2`, `^] n`, or `the command palette`."""
        action = self.find(action_id)
        if action.keys:
            return key_label(action.keys[0])
        if action.leader:
            return f"{key_label(self.leader)} {leader_label(action)}"
        return "the command palette"


def leader_label(action: Action) -> str:
    """Return the leader keys of an action as displayed: the first one, or a range."""
    if action.id == DIGITS:
        return f"{action.leader[0]}-{action.leader[-1]}"
    if action.takes_key:
        return key_label(action.leader[0]) + _LABELS["right"]
    return key_label(action.leader[0]) if action.leader else ""


def _place(action: Action) -> tuple[int, str]:
    first = action.keys[0]
    return (int(first[1:]), "") if first[:1] == "f" and first[1:].isdigit() else (100, first)


def read_leader(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string such as ctrl+]")
    try:
        return _own_key(value)
    except ValueError as error:
        raise ValueError(f"cannot be {error}") from None


def read_bindings(value: object) -> dict[str, list[str]]:
    if not isinstance(value, Mapping):
        raise ValueError('must be a table of actions and their keys: {"zoom": "f11, leader z"}')
    bindings = {_read_name(str(name)): _read_keys(str(name), keys) for name, keys in value.items()}
    general, own = _by_profile(bindings)
    _check_conflicts(general)
    for profile, keys in own.items():
        _check_conflicts(general | keys, {action_id: f"{profile}.{action_id}" for action_id in keys})
    return bindings


def _by_profile(bindings: Bindings) -> tuple[dict[str, list[str]], dict[str, dict[str, list[str]]]]:
    """Return the bindings for all agents, and those of each profile."""
    general: dict[str, list[str]] = {}
    own: dict[str, dict[str, list[str]]] = {}
    for name, keys in bindings.items():
        profile, _dot, action_id = name.rpartition(".")
        (own.setdefault(profile, {}) if profile else general)[action_id] = keys
    return general, own


def _read_name(name: str) -> str:
    profile, dot, action_id = name.rpartition(".")
    return profile + dot + _action_id(action_id if profile else name, profile + dot)


def _action_id(name: str, within: str) -> str:
    ids = [action.id for action in ACTIONS]
    if any(action.takes_key for action in ACTIONS if action.id == name):
        raise ValueError(
            f"cannot change '{within}{name}': its keys are the {'digits' if name == DIGITS else 'arrows'}"
        )
    if name not in ids:
        near = difflib.get_close_matches(name, ids, n=1, cutoff=0.5)
        if near:
            raise ValueError(
                f"names '{within}{name}', which is not an action: did you mean '{within}{near[0]}'?"
            )
        raise ValueError(f"names '{within}{name}', which is not an action; docs/keys.md lists them")
    return name


def _read_keys(name: str, value: object) -> list[str]:
    words = [word for word in value.split(",") if word.strip()] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"must be a string such as \"f11, leader z\", or a list of strings, for '{name}'")
    try:
        return list(dict.fromkeys(_read_one(word) for word in words))
    except ValueError as error:
        raise ValueError(f"cannot give '{name}' the key {error}") from None


def _read_one(word: str) -> str:
    first, _space, after = word.strip().partition(" ")
    if first.lower() != LEADER:
        return _own_key(word)
    key = read_key(after)
    if key in _CANCEL:
        raise ValueError(f"'{word.strip()}': it cancels the leader")
    if is_function_key(key):
        raise ValueError(f"'{word.strip()}': after the leader a function key goes to the agent")
    return f"{LEADER} {key}"


def _own_key(word: str) -> str:
    key = read_key(word)
    if key in _WITHOUT or not ("+" in key[1:] or is_function_key(key)):
        raise ValueError(
            f"'{word.strip()}': it belongs to the agents, use a function key or one with ctrl or alt"
        )
    return key


def is_function_key(key: str) -> bool:
    name = key.rpartition("+")[2]
    return len(name) > 1 and name[0] == "f" and name[1:].isdigit()


def _with_keys(action: Action, bindings: Bindings) -> Action:
    if action.id not in bindings:
        return action
    words = bindings[action.id]
    own = tuple(word for word in words if not word.startswith(f"{LEADER} "))
    after = tuple(word.removeprefix(f"{LEADER} ") for word in words if word not in own)
    return replace(action, keys=own, leader=after)


def _without(action: Action, key: str) -> Action:
    return replace(action, keys=tuple(each for each in action.keys if each != key))


def _check_conflicts(bindings: Bindings, names: Mapping[str, str] | None = None) -> None:
    names = names or {}
    taken: dict[str, str] = {}
    # The user's bindings come last, so that an error names them.
    actions = sorted(ACTIONS, key=lambda action: (action.id in bindings, action.id in names))
    for action in (_with_keys(each, bindings) for each in actions):
        for key in (*action.keys, *(f"{LEADER} {each}" for each in action.leader)):
            if key in taken:
                raise ValueError(
                    f"gives '{key}' to '{names.get(action.id, action.id)}', "
                    f"but it is the key of '{taken[key]}': change one of them"
                )
            taken[key] = action.id
