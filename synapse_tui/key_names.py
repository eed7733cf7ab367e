"""Names of keys as people write them in the settings (`ctrl+]`, `f5`, `alt+x`, `shift+tab`).

Only keys that every terminal tells apart can be named, without any further keyboard protocol: what xterm
sends in its default modes (ctlseqs, "PC-Style Function Keys" and "Alt and Meta Keys").
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

_FUNCTION = tuple(f"f{number}" for number in range(1, 21))
_CURSOR = ("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete")
_OTHER = ("enter", "tab", "space", "backspace", "escape")
_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "esc": "escape",
        "return": "enter",
        "del": "delete",
        "ins": "insert",
        "page_up": "pageup",
        "pgup": "pageup",
        "page_down": "pagedown",
        "pgdn": "pagedown",
        "comma": ",",
        "plus": "+",
        "control": "ctrl",
        "c": "ctrl",
        "option": "alt",
        "opt": "alt",
        "m": "alt",
        "s": "shift",
    }
)
_MODIFIERS = ("alt", "ctrl", "shift")
"""Modifiers in the order in which Textual names them."""
_FOREIGN = frozenset({"super", "meta", "hyper", "cmd", "command", "win", "fn"})
"""Modifiers that the desktop keeps for itself."""
_SAME_AS: Mapping[str, str] = MappingProxyType(
    {
        "ctrl+i": "Tab",
        "ctrl+m": "Enter",
        "ctrl+[": "Esc",
        "ctrl+h": "Backspace",
        "ctrl+?": "Backspace",
        "ctrl+@": "Ctrl+Space",
        "ctrl+enter": "Enter",
        "ctrl+tab": "Tab",
        "ctrl+escape": "Esc",
        "ctrl+backspace": "Backspace",
        "shift+enter": "Enter",
        "shift+escape": "Esc",
        "shift+backspace": "Backspace",
        "shift+space": "Space",
        "alt+b": "Ctrl+←",
        "alt+f": "Ctrl+→",
        "alt+backspace": "Ctrl+W",
    }
)
"""Keys that reach a program as another one: in the terminal, or in the widgets' own names."""
_NO_SHIFT = "terminals do not tell Shift with a letter beside Ctrl or Alt"
_BY_ITSELF = "write the character that it types"
_CONTROL = frozenset("abcdefghijklmnopqrstuvwxyz\\]^_")
_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "left": "←",
        "right": "→",
        "up": "↑",
        "down": "↓",
        "pageup": "PgUp",
        "pagedown": "PgDn",
        "escape": "Esc",
        "delete": "Del",
        "insert": "Ins",
    }
)
_TEXTUAL: Mapping[str, str] = MappingProxyType(
    {
        "solidus": "slash",
        "reverse_solidus": "backslash",
        "commercial_at": "at",
        "hyphen_minus": "minus",
        "plus_sign": "plus",
        "low_line": "underscore",
    }
)
"""Names of Unicode that Textual has replaced."""
_ESCAPE_SEQUENCES = frozenset("[]\\^_")
"""Characters that begin or end an escape sequence after ESC, which is also what Alt sends."""


def read_key(word: str) -> str:
    """A key in its one spelling.

    Args:
        word: As a person writes it: modifiers, `+`, and the name of a key or the character that it types.

    Returns:
        The same key: modifiers in a fixed order, small letters where they mean nothing.

    Raises:
        ValueError: No terminal sends it, or it cannot be told from another key.
    """
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
            raise ValueError(f"'{word}': '{each}' is no modifier, use ctrl, alt or shift")
        found.add(name)
    return [name for name in _MODIFIERS if name in found]


def _name(name: str, word: str) -> str:
    name = name.strip()
    if not name:
        raise ValueError(f"'{word}': the name of the key is missing")
    if len(name) == 1:
        if not name.isprintable():
            raise ValueError(f"'{word}': there is no such key")
        return name
    small = name.lower()
    small = _SYNONYMS.get(small, small) if len(small) > 1 else small
    known = (*_FUNCTION, *_CURSOR, *_OTHER)
    if small in known or len(small) == 1:
        return small
    if small[:1] == "f" and small[1:].isdigit():
        raise ValueError(f"'{word}': no terminal sends it, function keys are f1 to f20")
    near = difflib.get_close_matches(small, known, n=1)
    hint = f", did you mean '{near[0]}'?" if near else ""
    raise ValueError(f"'{word}': there is no such key{hint}")


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
    """Textual's name of a key (`ctrl+]` is `ctrl+right_square_bracket`)."""
    modifiers, name = _split(key)
    return "+".join([*modifiers, _textual_name(name) if len(name) == 1 else name])


def _textual_name(character: str) -> str:
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return _TEXTUAL.get(name, name)


def key_label(key: str) -> str:
    """A key as it is shown: `F1`, `^]`, `→`, `n`, `Shift+Tab`, `Alt+X`."""
    modifiers, name = _split(key)
    if modifiers == ["ctrl"] and len(name) == 1:
        return f"^{name.upper()}"
    label = name.capitalize() if len(name) > 1 or modifiers else name
    return "+".join([*(each.capitalize() for each in modifiers), _LABELS.get(name, label)])
