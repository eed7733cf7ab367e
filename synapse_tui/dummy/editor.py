"""The composer: an editor for the message being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from synapse_tui.system.dataclass import dataclass

from .widths import cluster_width, clusters, width

PASTE_CHARS = 800
PASTE_LINES = 3  # A paste with more text or lines is shown as a placeholder


@dataclass(frozen=True, slots=True)
class PastedText:
    """A long paste, shown in the composer as one character."""

    number: int
    text: str

    @property
    def label(self) -> str:
        more = self.text.count("\n")
        return f"[Pasted text #{self.number} +{more} lines]" if more else f"[Pasted text #{self.number}]"


Atom = str | PastedText  # One cursor step: a cluster, a line feed, a long paste


@dataclass(frozen=True, slots=True)
class Layout:
    """The composer's rows and the cursor in them (from 0, in cells)."""

    rows: list[str]
    x: int
    y: int


class DummyComposer:
    def __init__(self) -> None:
        self._atoms: list[Atom] = []
        self._cursor = 0
        self._pastes = 0
        self._history: list[list[Atom]] = []
        self._place = 0

    @property
    def empty(self) -> bool:
        return not self._atoms

    @property
    def text(self) -> str:
        """The text to submit, with the full text of pastes."""
        return "".join(atom if isinstance(atom, str) else atom.text for atom in self._atoms)

    @property
    def shown(self) -> str:
        return "".join(_label(atom) for atom in self._atoms)

    def insert(self, text: str) -> None:
        clean = "".join(char for char in text if char >= " " or char in "\n\t")
        # A combining character may join the cluster before the cursor.
        before = self._atoms[self._cursor - 1] if self._cursor else None
        if isinstance(before, str) and before != "\n":
            self._cursor -= 1
            del self._atoms[self._cursor]
            clean = before + clean
        atoms = [part for piece in _lines(clean) for part in clusters(piece)]
        self._atoms[self._cursor : self._cursor] = atoms
        self._cursor += len(atoms)

    def paste(self, text: str) -> None:
        if len(text) > PASTE_CHARS or text.count("\n") >= PASTE_LINES:
            self._pastes += 1
            self._atoms.insert(self._cursor, PastedText(self._pastes, text))
            self._cursor += 1
        else:
            self.insert(text)

    def set(self, text: str) -> None:
        self._atoms.clear()
        self._cursor = 0
        self.paste(text)

    def take(self) -> str:
        """Clear the composer, add its text to the history for `up`, and return it."""
        text = self.text
        if self._atoms:
            self._history.append(self._atoms)
        self._place = len(self._history)
        self._atoms = []
        self._cursor = 0
        return text

    def press(self, key: str) -> bool:
        action = self._actions().get(key)
        if action is not None:
            action()
        return action is not None

    def layout(self, cells: int) -> Layout:
        rows, used = [""], 0
        place: tuple[int, int] | None = None
        for index, cluster in self._shown_clusters():
            breaks = cluster == "\n" or used + cluster_width(cluster) > cells
            if index == self._cursor and place is None and not (breaks and cluster != "\n"):
                place = (used, len(rows) - 1)
            if breaks:
                rows.append("")
                used = 0
            if index == self._cursor and place is None:
                place = (0, len(rows) - 1)
            rows[-1] += cluster.removesuffix("\n")
            used += cluster_width(cluster)
        x, y = place or (used, len(rows) - 1)
        if x >= cells:
            rows.insert(y + 1, "")
            x, y = 0, y + 1
        return Layout(rows, x, y)

    def _shown_clusters(self) -> Iterator[tuple[int, str]]:
        for index, atom in enumerate(self._atoms):
            for cluster in clusters(_label(atom).replace("\t", "    ")):
                yield index, cluster

    def _actions(self) -> dict[str, Callable[[], None]]:
        return {
            "left": lambda: self._move(-1),
            "ctrl+b": lambda: self._move(-1),
            "right": lambda: self._move(1),
            "ctrl+f": lambda: self._move(1),
            "home": lambda: self._go(self._line_start()),
            "ctrl+a": lambda: self._go(self._line_start()),
            "end": lambda: self._go(self._line_end()),
            "ctrl+e": lambda: self._go(self._line_end()),
            "backspace": lambda: self._delete(self._cursor - 1, self._cursor),
            "delete": lambda: self._delete(self._cursor, self._cursor + 1),
            "ctrl+w": lambda: self._delete(self._word_start(), self._cursor),
            "alt+backspace": lambda: self._delete(self._word_start(), self._cursor),
            "ctrl+k": lambda: self._delete(self._cursor, self._line_end()),
            "ctrl+u": lambda: self._delete(0, len(self._atoms)),
            "up": lambda: self._vertical(-1),
            "down": lambda: self._vertical(1),
            "alt+b": lambda: self._go(self._word_start()),
        }

    def _move(self, step: int) -> None:
        self._go(self._cursor + step)

    def _go(self, place: int) -> None:
        self._cursor = max(0, min(place, len(self._atoms)))

    def _delete(self, start: int, end: int) -> None:
        start = max(start, 0)
        del self._atoms[start:end]
        self._cursor = min(start, len(self._atoms))

    def _line_start(self) -> int:
        place = self._cursor
        while place > 0 and self._atoms[place - 1] != "\n":
            place -= 1
        return place

    def _line_end(self) -> int:
        place = self._cursor
        while place < len(self._atoms) and self._atoms[place] != "\n":
            place += 1
        return place

    def _word_start(self) -> int:
        place = self._cursor
        while place > 0 and self._atoms[place - 1] == " ":
            place -= 1
        while place > 0 and self._atoms[place - 1] not in (" ", "\n"):
            place -= 1
        return place

    def _vertical(self, step: int) -> None:
        start = self._line_start()
        column = width("".join(_label(atom) for atom in self._atoms[start : self._cursor]))
        target = start - 1 if step < 0 else self._line_end() + 1
        if 0 <= target <= len(self._atoms):
            self._cursor = target
            self._cursor = self._line_start()
            end = self._line_end()
            while self._cursor < end and column > 0:
                column -= width(_label(self._atoms[self._cursor]))
                self._cursor += 1
        else:
            self._recall(self._place + step)

    def _recall(self, place: int) -> None:
        if not 0 <= place <= len(self._history):
            return
        self._place = place
        self._atoms = list(self._history[place]) if place < len(self._history) else []
        self._cursor = len(self._atoms)


def _label(atom: Atom) -> str:
    return atom if isinstance(atom, str) else atom.label


def _lines(text: str) -> list[str]:
    parts: list[str] = []
    for line in text.split("\n"):
        parts += [line, "\n"]
    return parts[:-1]
