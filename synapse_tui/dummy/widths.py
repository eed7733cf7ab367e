"""Text in terminal cells: clusters, widths, wrapping, by the interpreter's Unicode version."""

from __future__ import annotations

import re
import unicodedata

from synapse_tui.system.language import CLOSING

_CONTROLS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X].*?(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]", re.DOTALL
)

ZWJ = "\u200d"
EMOJI_PRESENTATION = "\ufe0f"


def printable(text: str) -> str:
    return _CONTROLS.sub("", text)


def _extends(char: str, previous: str) -> bool:
    """Whether a character belongs to the cluster before it (UAX #29, simplified)."""
    if not previous:
        return False
    if previous[-1] == ZWJ or char == ZWJ or unicodedata.category(char) in ("Mn", "Me", "Mc"):
        return True
    code = ord(char)
    if 0x1160 <= code <= 0x11FF or 0x1F3FB <= code <= 0x1F3FF:  # Hangul vowels and finals, skin tones
        return True
    return _regional(char) and len(previous) == 1 and _regional(previous)


def _regional(char: str) -> bool:
    return 0x1F1E6 <= ord(char) <= 0x1F1FF


def clusters(text: str) -> list[str]:
    if text.isascii():
        return list(text)
    found: list[str] = []
    for char in text:
        if found and _extends(char, found[-1]):
            found[-1] += char
        else:
            found.append(char)
    return found


def cluster_width(cluster: str) -> int:
    first = cluster[0]
    if first < "\u0300":
        return 2 if EMOJI_PRESENTATION in cluster else int(first >= " ")
    if unicodedata.category(first) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    wide = unicodedata.east_asian_width(first) in ("W", "F") or EMOJI_PRESENTATION in cluster
    return 2 if wide or (_regional(first) and len(cluster) > 1) else 1


def width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(cluster_width, clusters(text)))


def clip(text: str, cells: int) -> str:
    if width(text) <= cells:
        return text
    kept = ""
    used = 0
    for cluster in clusters(text):
        used += cluster_width(cluster)
        if used > cells - 1:
            break
        kept += cluster
    return kept + "…" if cells > 0 else ""


def wrap(text: str, cells: int) -> list[str]:
    """Break a text into rows at line feeds and blanks; words longer than a row are broken anywhere.

    Appended text changes only the last row.
    """
    rows: list[str] = []
    for line in text.split("\n"):
        rows += _wrap_line(line.expandtabs(4), max(cells, 2))
    return rows


def _wrap_line(line: str, cells: int) -> list[str]:
    rows = [""]
    used = 0
    for word in _words(line):
        if used and used + width(word) > cells:
            rows[-1] = rows[-1].rstrip(" ")
            rows.append("")
            used = 0
        fitting = word if used or len(rows) == 1 else word.lstrip(" ")
        if width(fitting) > cells:
            *whole, fitting = _pieces(fitting, cells)
            rows[-1:] = [*whole, ""]
        rows[-1] += fitting
        used += width(fitting)
    return rows


def _words(line: str) -> list[str]:
    """Split a line into words with the blanks before them, and between wide characters.

    Signs that must not begin a row belong to what they follow.
    """
    words: list[str] = []
    previous = ""
    for cluster in clusters(line):
        wide = cluster_width(cluster) == 2 or (previous and cluster_width(previous) == 2)
        wide = wide and cluster[0] not in CLOSING
        starts = (cluster == " ") if previous != " " else False
        if not words or starts or (wide and previous != " "):
            words.append(cluster)
        else:
            words[-1] += cluster
        previous = cluster
    return words


def _pieces(word: str, cells: int) -> list[str]:
    pieces = [""]
    for cluster in clusters(word):
        if width(pieces[-1]) + cluster_width(cluster) > cells:
            pieces.append("")
        pieces[-1] += cluster
    return pieces
