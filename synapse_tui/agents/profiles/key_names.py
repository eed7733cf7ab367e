"""The keys that profiles name, as the bytes a terminal sends for them."""

from __future__ import annotations

import difflib

_NAMED = {
    "escape": b"\x1b",
    "esc": b"\x1b",
    "enter": b"\r",
    "cr": b"\r",
    "lf": b"\n",
    "tab": b"\t",
    "space": b" ",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
}


def key_bytes(name: str) -> bytes:
    r"""The bytes of a key as xterm sends them in its default modes (ctlseqs, "PC-Style Function Keys").

    Agents take these also after they have pushed the kitty keyboard or modifyOtherKeys modes.

    Args:
        name: `escape`, `enter`, `ctrl+c`, `up`, a single character, or a text that starts with the escape
            character (`"\e[1;2A"` in YAML), which is taken as it is.

    Raises:
        ValueError: There is no such key.
    """
    word = name.lower()
    if word in _NAMED:
        return _NAMED[word]
    if word.startswith("ctrl+") and len(word) == 6 and "a" <= word[5] <= "z":
        return bytes([ord(word[5]) - 0x60])
    if len(name) == 1 or name[:1] == "\x1b":
        return name.encode()
    near = difflib.get_close_matches(word, _NAMED, 1)
    raise ValueError(f"there is no key '{name}'" + (f": did you mean '{near[0]}'?" if near else ""))


def key_names(keys: tuple[bytes, ...]) -> str:
    """Keys as a profile names them, `[escape, ctrl+c]`: the reverse of `key_bytes`."""
    return f"[{', '.join(map(_name, keys))}]"


def _name(key: bytes) -> str:
    for name, data in _NAMED.items():
        if data == key:
            return name
    if len(key) == 1 and 1 <= key[0] <= 26:
        return f"ctrl+{chr(key[0] + 0x60)}"
    text = key.decode("utf-8", "replace")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\x1b", "\\e") + '"'
