"""The keys that hold: those of the table of actions, or what `tui.keys` in the settings says instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .actions import ACTIONS, DEFAULT_LEADER, DIGITS, GROUPS, Action
from .key_names import key_label, read_key, textual_key

LEADER = "leader"
"""The word before a key that follows the leader: `leader z`."""
_WITHOUT = frozenset({"ctrl+c"})
"""Keys that agents cannot do without."""
_CANCEL = frozenset({"escape", "ctrl+c"})
"""Keys that give up a command after the leader."""

Bindings = Mapping[str, list[str]]
"""Action id to its keys, each `leader KEY` or `KEY`."""


@dataclass(frozen=True, slots=True)
class Keymap:
    """The actions with the keys that they have.

    Attributes:
        leader: The leader in the settings' words.
        actions: All actions, in the order of the table.
        problem: What the settings say and cannot be; empty for nothing.
    """

    leader: str = DEFAULT_LEADER
    actions: tuple[Action, ...] = ACTIONS
    problem: str = ""
    _own: Mapping[str, Action] = field(init=False, repr=False, compare=False)
    """The actions that have keys of their own, by Textual's names of these: looked up with every key."""

    def __post_init__(self) -> None:
        own = {textual_key(key): action for action in reversed(self.actions) for key in action.keys}
        object.__setattr__(self, "_own", own)

    @classmethod
    def of(cls, leader: str, bindings: Bindings) -> Keymap:
        """The keys as the settings say; a key that is the leader is no key of an action.

        Args:
            leader: The leader, as it was read (`read_leader`).
            bindings: Keys of actions, as they were read (`read_bindings`).
        """
        actions = [_with_keys(action, bindings) for action in ACTIONS]
        clash = next((action.id for action in actions if action.id in bindings and leader in action.keys), "")
        problem = f"'{leader}' is the leader: it is no key of '{clash}'" if clash else ""
        return cls(leader, tuple(_without(action, leader) for action in actions), problem)

    def find(self, action_id: str) -> Action:
        """The action of that id.

        Raises:
            KeyError: There is none.
        """
        for action in self.actions:
            if action.id == action_id:
                return action
        raise KeyError(action_id)

    def by_leader_key(self, key: str) -> Action | None:
        """The action of a key after the leader, or None.

        Args:
            key: The character typed, or Textual's name of a key without one (`left`).
        """
        name = "space" if key == " " else key
        pairs = ((action, each) for action in self.actions for each in action.leader)
        return next((action for action, each in pairs if name in (each, textual_key(each))), None)

    def by_key(self, key: str) -> Action | None:
        """The action of a key of its own, or None.

        Args:
            key: Textual's name of it.
        """
        return self._own.get(key)

    def with_keys(self) -> Iterator[Action]:
        """Actions that have a key of their own: function keys by their number, then the others."""
        yield from sorted((action for action in self.actions if action.keys), key=_place)

    def in_group(self, group: str) -> Iterator[Action]:
        """Actions under one heading, in the order of the table."""
        return (action for action in self.actions if action.group == group)

    def way(self, action_id: str) -> str:
        """How an action is done, in a few words: `F2`, `^] n`, or `the palette`."""
        action = self.find(action_id)
        if action.keys:
            return key_label(action.keys[0])
        if action.leader:
            return f"{key_label(self.leader)} {leader_label(action)}"
        return "the command palette"

    def markdown(self) -> str:
        lines: list[str] = []
        for group in GROUPS:
            lines += [
                f"## {group}",
                "",
                f"| Key | After `{self.leader}` | Action | What it does | Name |",
                "|---|---|---|---|---|",
            ]
            for action in self.in_group(group):
                own = ", ".join(f"`{key_label(key)}`" for key in action.keys)
                name = f"`{action.id}`" if action.id != DIGITS else ""
                lines.append(f"| {own} | {_leader_cell(action)} | {action.title} | {action.help} | {name} |")
            lines.append("")
        return "\n".join(lines)


def leader_label(action: Action) -> str:
    """The leader keys of an action as shown: the first one, or a range."""
    if action.id == DIGITS:
        return f"{action.leader[0]}-{action.leader[-1]}"
    return key_label(action.leader[0]) if action.leader else ""


def _leader_cell(action: Action) -> str:
    if action.id == DIGITS:
        return f"`{leader_label(action)}`"
    return ", ".join(f"`{key_label(key)}`" for key in action.leader)


def _place(action: Action) -> tuple[int, str]:
    first = action.keys[0]
    return (int(first[1:]), "") if first[:1] == "f" and first[1:].isdigit() else (100, first)


def read_leader(value: object) -> str:
    """The leader of the settings.

    Raises:
        ValueError: It is no key, or one that a person or an agent needs.
    """
    if not isinstance(value, str):
        raise ValueError("must be a text such as ctrl+]")
    try:
        return _own_key(value)
    except ValueError as error:
        raise ValueError(f"cannot be {error}") from None


def read_bindings(value: object) -> dict[str, list[str]]:
    """The keys of the settings: a table of an action's name and its keys.

    Args:
        value: Keys as one text (`"f11, leader z"`), or as a list of texts; an empty one takes them away.

    Raises:
        ValueError: An action is not known, a key cannot be sent, or two actions have the same.
    """
    if not isinstance(value, Mapping):
        raise ValueError('must be a table of actions and their keys: {"zoom": "f11, leader z"}')
    bindings = {_action_id(str(name)): _read_keys(str(name), keys) for name, keys in value.items()}
    _check_conflicts(bindings)
    return bindings


def _action_id(name: str) -> str:
    ids = [action.id for action in ACTIONS]
    if name == DIGITS:
        raise ValueError(f"cannot change '{DIGITS}': its keys are the digits")
    if name not in ids:
        near = difflib.get_close_matches(name, ids, n=1, cutoff=0.5)
        hint = f": did you mean '{near[0]}'?" if near else "; docs/keys.md names all"
        raise ValueError(f"names '{name}', which is no action{hint}")
    return name


def _read_keys(name: str, value: object) -> list[str]:
    words = [word for word in value.split(",") if word.strip()] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"must hold for '{name}' a text such as \"f11, leader z\", or a list of texts")
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
        raise ValueError(f"'{word.strip()}': it gives up what the leader began")
    if is_function_key(key):
        raise ValueError(f"'{word.strip()}': after the leader a function key goes to the agent")
    return f"{LEADER} {key}"


def _own_key(word: str) -> str:
    """A key that is taken from the agents.

    Raises:
        ValueError: They need it.
    """
    key = read_key(word)
    if key in _WITHOUT or not ("+" in key[1:] or is_function_key(key)):
        raise ValueError(
            f"'{word.strip()}': it is for the agents, take a function key or one with ctrl or alt"
        )
    return key


def is_function_key(key: str) -> bool:
    """Whether a key is F1 to F24, with or without modifiers."""
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


def _check_conflicts(bindings: Bindings) -> None:
    """Make sure that no key has two actions.

    Raises:
        ValueError: One has; the message names both.
    """
    taken: dict[str, str] = {}
    actions = sorted(ACTIONS, key=lambda action: action.id in bindings)  # the person's own ones are blamed
    for action in (_with_keys(each, bindings) for each in actions):
        for key in (*action.keys, *(f"{LEADER} {each}" for each in action.leader)):
            if key in taken:
                raise ValueError(
                    f"gives '{key}' to '{action.id}', but it is the key of '{taken[key]}': change one of them"
                )
            taken[key] = action.id
