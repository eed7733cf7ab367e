"""Infers the rules of a profile from recorded screens: pure functions from screens to rules with evidence.

Nothing is guessed: rules for the composer are accepted only if the reader that messages rely on reads with
them what was typed on every recorded screen; signals only if they are on the screens of one state and on none
of another.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from synapse_tui.agents.answers import after_echo
from synapse_tui.agents.composer import ComposerReading, Proof, ScreenText, read_composer
from synapse_tui.agents.dialogs import find_choices
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.profiles.reader import read_profile
from synapse_tui.agents.profiles.writer import Plain, block
from synapse_tui.cli.trials.report import (
    CHOICE,
    CHOSEN,
    WORDS,
    choice_pattern,
    loose,
    plain_pattern,
    title_pattern,
)
from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal import Terminal
from synapse_tui.terminal.dump import dump

RUNNING = (1, 3)  # OSC 9;4 states in progress: set, indeterminate
COVERS = 0.75  # Share of the screens of a turn that signals must cover to be relied on
MAX_GAP = 2.0  # Seconds of a turn that may pass without any
ZONE = 16  # Rows with text, from the end, in which footers and spinners are looked for
_SHOWN = 10  # Rows of a screen in the evidence


@dataclass(frozen=True)
class Shot:
    """A recorded screen, with what the agent reported of its state by then."""

    rows: tuple[str, ...]  # Up to the last one with text, padded to the width
    screen: bytes = b""  # `dump` of the terminal
    columns: int = 80
    lines: int = 24
    at: float = 0.0
    title: str = ""
    status: str = ""  # The last OSC 7501 state
    progress: int | None = None  # The last OSC 9;4 state

    @classmethod
    def of(
        cls, terminal: Terminal, *, at: float = 0.0, status: str = "", progress: int | None = None
    ) -> Shot:
        return cls(
            tuple(ScreenText.of(terminal).rows),
            dump(terminal, scrollback_lines=0),
            terminal.columns,
            terminal.lines,
            at,
            terminal.title.strip(),
            status,
            progress,
        )

    def to_json(self) -> dict[str, Any]:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return given | {"rows": [], "screen": self.screen.decode(errors="surrogateescape")}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Shot:
        screen = value["screen"].encode(errors="surrogateescape")
        shot = cls(**{**value, "rows": (), "screen": screen})
        return replace(shot, rows=tuple(ScreenText.of(shot.terminal).rows))

    @cached_property
    def terminal(self) -> Terminal:
        terminal = Terminal(self.columns, self.lines, 0)
        terminal.feed(self.screen)
        terminal.take_replies()
        return terminal

    @property
    def cursor(self) -> tuple[int, int]:
        return self.terminal.cursor.x, self.terminal.cursor.y

    @cached_property
    def zone(self) -> tuple[str, ...]:
        """The last rows with text, the last one first."""
        return tuple(row.rstrip() for row in reversed(self.rows) if row.strip())[:ZONE]

    def read(self, profile: Profile) -> ComposerReading:
        return read_composer(self.terminal, profile)

    def excerpt(self, first: int, last: int) -> tuple[str, ...]:
        return tuple(row.rstrip() for row in self.rows[max(0, first) : last + 1])

    def end(self, count: int = _SHOWN) -> tuple[str, ...]:
        return tuple(reversed(self.zone[:count]))


@dataclass(frozen=True)
class TypedText:
    text: str
    shot: Shot


@dataclass(frozen=True)
class Finding:
    """A key of the profile with its value, and the screen that gave it."""

    key: str
    value: object  # As in YAML; None if nothing was seen, so that the default holds
    why: str
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchedTurn:
    """The screens of one turn, until it ended or was interrupted."""

    sent: str
    begun: float
    shots: tuple[Shot, ...]


@dataclass(frozen=True)
class Answered:
    """The screen after a turn whose answer was one line that the probe knows."""

    sent: str
    line: str
    shot: Shot


_END = 2  # Rows with text by which the screens of a dialog are known
_SHOTS = ("empty", "asking", "started", "watched")


@dataclass
class Evidence:
    """The recorded screens of one agent."""

    empty: list[Shot] = field(default_factory=list)  # The agent idle, nothing in its composer
    typed: list[TypedText] = field(default_factory=list)  # Idle, this text in its composer
    turns: list[WatchedTurn] = field(default_factory=list)
    answers: list[Answered] = field(default_factory=list)
    asking: list[Shot] = field(default_factory=list)  # A permission dialog is open
    asked: str = ""  # The message that made it ask
    started: list[Shot] = field(default_factory=list)  # A question at the start
    watched: list[Shot] = field(default_factory=list)  # The agent idle, from time to time

    def to_json(self) -> dict[str, Any]:
        shots = {name: [shot.to_json() for shot in getattr(self, name)] for name in _SHOTS}
        typed = [[typed.text, typed.shot.to_json()] for typed in self.typed]
        turns = [[turn.sent, turn.begun, [shot.to_json() for shot in turn.shots]] for turn in self.turns]
        answers = [[answer.sent, answer.line, answer.shot.to_json()] for answer in self.answers]
        return {**shots, "typed": typed, "turns": turns, "answers": answers, "asked": self.asked}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Evidence:
        typed = [TypedText(text, Shot.from_json(shot)) for text, shot in value["typed"]]
        turns = [
            WatchedTurn(sent, at, tuple(map(Shot.from_json, shots))) for sent, at, shots in value["turns"]
        ]
        answers = [Answered(sent, line, Shot.from_json(shot)) for sent, line, shot in value["answers"]]
        evidence = cls(typed=typed, turns=turns, answers=answers, asked=value["asked"])
        for name in _SHOTS:
            getattr(evidence, name).extend(map(Shot.from_json, value[name]))
        return evidence

    def ask(self, sent: str, shot: Shot) -> None:
        """Add a screen with a permission dialog, which ends the turn of the message `sent`."""
        self.asked = sent
        self.asking.append(shot)
        *others, last = self.turns or [WatchedTurn(sent, 0.0, ())]
        before = tuple(each for each in last.shots if each.zone[:_END] != shot.zone[:_END])
        self.turns = [*others, replace(last, shots=before)]

    @property
    def resting(self) -> list[Shot]:
        return [*self.empty, *(typed.shot for typed in self.typed), *self.watched]

    @property
    def longest(self) -> WatchedTurn:
        return max(self.turns, key=lambda turn: len(turn.shots), default=WatchedTurn("", 0.0, ()))

    @property
    def working(self) -> tuple[Shot, ...]:
        """The screens of the longest turn."""
        return self.longest.shots

    @property
    def other_turns(self) -> list[Shot]:
        return [shot for turn in self.turns if turn is not self.longest for shot in turn.shots]


# -- the composer ---

Rules = dict[str, Any]

_FRAME = re.compile(r"^( *)([^\w\s]?)(([^\w\s])\4{2,})")
_SIDE = re.compile(r" *[│┃║▌▐|] *$")
_MARGIN = 3  # Maximum rows between frame and draft
_KEY = 14  # Characters of a line by which it is found on the screen
_ORDINAL = 9  # A number up to this may also count the pastes
_FREE = 8  # Rows below the composer that the default of `footer` leaves room for
PLACEHOLDERS: tuple[Rules, ...] = ({}, {"placeholder": {"dim": True, "grey": True}})


@dataclass(frozen=True)
class TextPlace:
    """Where a text stands on a screen."""

    first: int
    last: int
    prompt: str  # What precedes it in its first row
    rows: frozenset[str]  # What precedes it in the others
    side: bool  # Whether a frame follows it in its rows


@dataclass(frozen=True)
class ComposerFound:
    rules: Rules | Plain  # A word for `composer: auto`
    read: tuple[TypedText, ...]
    unread: tuple[TypedText, ...]  # What could not be read with the rules
    rows: tuple[str, ...] = ()

    @property
    def profile(self) -> Profile:
        return profile_with({"composer": self.rules})


def find_composer(evidence: Evidence) -> ComposerFound | None:
    """Find rules with which the composer is read on all screens with it; None if there are none.

    Rules must read an empty composer as empty, and what was typed in a single line. Of those the first that
    read most of the rest are returned.
    """
    places = [(typed, place) for typed in evidence.typed if (place := find_place(typed)) is not None]
    if not places or not evidence.empty:
        return None
    best: ComposerFound | None = None
    for rules in _candidates(evidence, places):
        found = _tried(rules, evidence)
        if found is not None and (best is None or len(found.unread) < len(best.unread)):
            best = found
            if not best.unread:
                break
    if best is None or best.unread:
        auto = _tried(Plain("auto"), evidence)
        if auto is not None and (best is None or len(auto.unread) < len(best.unread)):
            best = auto
    if best is None:
        return None
    typed, place = places[0]
    return ComposerFound(
        best.rules, best.read, best.unread, typed.shot.excerpt(place.first - 2, place.last + 2)
    )


def profile_with(values: Mapping[str, Any]) -> Profile:
    """Return the profile that a file with these values would be."""
    text = "\n".join(
        line for key, value in {"command": "made", **values}.items() for line in block(key, value)
    )
    profile, faults = read_profile(Path("made.yaml"), f"{text}\n".encode(), "user", {})
    if profile is None:
        raise faults[0]
    return profile


def find_place(typed: TypedText) -> TextPlace | None:
    """Find a typed text on the screen; None if it is not there from beginning to end."""
    first = next((line for line in typed.text.split("\n") if line.strip()), "")[:_KEY]
    for y in range(len(typed.shot.rows) - 1, -1, -1):
        if (x := typed.shot.rows[y].find(first)) >= 0:
            return _place(typed, y, x)
    return None


def _place(typed: TypedText, first: int, x: int) -> TextPlace | None:
    rows = typed.shot.rows
    left = "".join(typed.text.split())
    prefixes: set[str] = set()
    side = True
    for y in range(first, len(rows)):
        row = rows[y]
        text = _SIDE.sub("", row)
        at = x if y == first else _begin(text, left)
        if at is None:
            return None
        part = "".join(text[at:].split())
        if not left.startswith(part):
            return None
        side = side and len(text.rstrip()) < len(row.rstrip())
        if y > first and part:
            prefixes.add(text[:at])
        left = left[len(part) :]
        if not left:
            return TextPlace(first, y, rows[first][:x], frozenset(prefixes), side)
    return None


def _begin(row: str, left: str) -> int | None:
    """Return where a row continues a text, None if it does not; the length of a row without any of it."""
    starts = (at for at in range(len(row)) if row[at] == left[:1])
    end = next((at for at in starts if left.startswith("".join(row[at:].split()))), None)
    return len(row) if end is None and not re.search(r"\w", row) else end


def _candidates(evidence: Evidence, places: Sequence[tuple[TypedText, TextPlace]]) -> Iterator[Rules]:
    prompt = _pattern_of({place.prompt for _, place in places})
    row = _pattern_of(set().union(*(place.rows for _, place in places)))
    base: Rules = {"prompt": prompt} | ({"row": row} if row else {})
    if all(place.side for _, place in places):
        base["right"] = r" *[│┃║▌▐|] *$"
    below = max(_rows_below(typed.shot, place.last) for typed, place in places)
    if below > _FREE:
        base["footer"] = below + _FREE
    if not any(place.first <= typed.shot.cursor[1] <= place.last + 1 for typed, place in places):
        base["cursor"] = False
    text = _placeholder_text(evidence, places)
    kinds = [*PLACEHOLDERS, *({"placeholder": {"dim": False, "text": each}} for each in text)]
    kinds += [{"placeholder": {"dim": True, "grey": True, "text": each}} for each in text]
    for frame, more in itertools.product((*_frames(places), {"background": True}, {}), kinds):
        if frame or prompt.strip("^ *"):
            yield {**base, **frame, **more}


def _pattern_of(prefixes: set[str]) -> str:
    """Return a pattern for what stands before the text in all rows; empty for none."""
    # A wrapped row may begin with the blank that it was wrapped at.
    shortest: dict[str, str] = {}
    for prefix in sorted(prefixes, key=len):
        shortest.setdefault(prefix.rstrip(" "), prefix)
    prefixes = set(shortest.values())
    if not prefixes:
        return ""
    if len(prefixes) == 1:
        return f"^{plain_pattern(next(iter(prefixes)))}"
    bare = {prefix.lstrip(" ") for prefix in prefixes}
    if len(bare) == 1 and (sign := bare.pop()):
        return f"^ *{plain_pattern(sign)}"
    return f"^(?:{'|'.join(plain_pattern(prefix) for prefix in sorted(prefixes, key=len, reverse=True))})"


def _rows_below(shot: Shot, last: int) -> int:
    return sum(bool(row.strip()) for row in shot.rows[last + 1 :])


def _frames(places: Sequence[tuple[TypedText, TextPlace]]) -> Iterator[Rules]:
    """Yield the frames around the texts: the same on all screens."""
    above = [_frame(typed.shot.rows, place.first, -1, place) for typed, place in places]
    below = [_frame(typed.shot.rows, place.last, 1, place) for typed, place in places]
    under = _same(below)
    if under is None:
        return
    over = _same(above)
    rules: Rules = {"below": under[0]} | ({"margin_below": under[1]} if under[1] else {})
    if over is not None:
        yield {"above": over[0], **rules} | ({"margin_above": over[1]} if over[1] else {})
    side = {place.prompt.strip(" ") for _, place in places} - {""}
    if over is None and side:
        yield rules | {"margin_above": 1}
        yield rules


def _same(found: Sequence[tuple[str, int] | None]) -> tuple[str, int] | None:
    if any(each is None for each in found):
        return None
    patterns = Counter(each for each in found if each is not None)
    pattern, margin = patterns.most_common(1)[0][0]
    return (pattern, margin) if all(other[0] == pattern for other in patterns) else None


def _frame(rows: Sequence[str], start: int, step: int, place: TextPlace) -> tuple[str, int] | None:
    for margin in range(_MARGIN + 1):
        y = start + step * (margin + 1)
        if not 0 <= y < len(rows):
            return None
        found = _FRAME.match(rows[y])
        if found is not None and len(found[3]) * 2 >= len(rows[y].strip()) // 2:
            least = 10 if len(found[3]) >= 10 else 3
            indent = " *" if found[1] else ""
            corner = plain_pattern(found[2]) if found[2] != found[4] else ""
            return f"^{indent}{corner}{plain_pattern(found[4])}{{{least},}}", margin
        blank = _SIDE.sub("", rows[y]).strip(" ") in ("", place.prompt.strip(" "))
        # Words may stand in the margin below, such as the name of the model.
        if not blank and (step < 0 or not rows[y].startswith(place.prompt.rstrip(" "))):
            return None
    return None


def _placeholder_text(evidence: Evidence, places: Sequence[tuple[TypedText, TextPlace]]) -> list[str]:
    """Return a pattern for the text in the empty composer if it is the same on all screens."""
    prompts = sorted({place.prompt for _, place in places}, key=len, reverse=True)
    found: set[str] = set()
    for shot in evidence.empty:
        row = shot.rows[shot.cursor[1]] if shot.cursor[1] < len(shot.rows) else ""
        text = next((row[len(prompt) :] for prompt in prompts if row.startswith(prompt)), "")
        found.add(" ".join(_SIDE.sub("", text).split()))
    found.discard("")
    return [f"^ *{loose(text[:40])}" for text in found] if len(found) == 1 else []


def _tried(rules: Rules | Plain, evidence: Evidence) -> ComposerFound | None:
    profile = profile_with({"composer": rules})
    if not all(shot.read(profile).empty for shot in evidence.empty):
        return None
    one = [
        typed
        for typed in evidence.typed
        if "\n" not in typed.text and len(typed.text) < typed.shot.columns // 2
    ]
    if not one or not all(_reads(typed, profile) for typed in one):
        return None
    if any(shot.read(profile).empty for shot in (*evidence.asking, *evidence.started)):
        return None
    if not isinstance(rules, Plain) and (pastes := _pastes(profile, evidence)):
        rules = {**rules, "pastes": pastes}
        profile = profile_with({"composer": rules})
    read = tuple(typed for typed in evidence.typed if _reads(typed, profile))
    return ComposerFound(rules, read, tuple(typed for typed in evidence.typed if typed not in read))


def _reads(typed: TypedText, profile: Profile) -> bool:
    reading = typed.shot.read(profile)
    return Proof(typed.text, reading.pastes).reads(reading)


def _pastes(profile: Profile, evidence: Evidence) -> list[str]:
    """Return patterns for what the composer shows instead of long texts."""
    shown: dict[tuple[str, ...], list[tuple[list[str], str]]] = {}
    for typed in evidence.typed:
        draft = " ".join(typed.shot.read(profile).draft.split())
        if draft and len(draft) < 60 and not _reads(typed, profile) and typed.text[:_KEY] not in draft:
            pieces = re.split(r"\d+", draft)
            shown.setdefault(tuple(pieces), []).append((re.findall(r"\d+", draft), typed.text))
    return [_stand_in(pieces, seen) for pieces, seen in shown.items()]


def _stand_in(pieces: Sequence[str], seen: Sequence[tuple[list[str], str]]) -> str:
    """Return a pattern for a placeholder; a number that is the size of each text proves it."""
    sizes = [_sizes(text) for _, text in seen]
    numbers = [numbers for numbers, _ in seen]
    pattern, used = plain_pattern(pieces[0]), set[str]()
    for at, piece in enumerate(pieces[1:]):
        names = [
            name
            for name in sizes[0]
            if all(size[name] == found[at] for size, found in zip(sizes, numbers, strict=True))
            and (len({found[at] for found in numbers}) > 1 or int(numbers[0][at]) > _ORDINAL)
        ]
        name = next((name for name in names if name not in used), "")
        used.add(name)
        pattern += (rf"(?P<{name}>\d+)" if name else r"\d+") + plain_pattern(piece)
    return pattern


def _sizes(text: str) -> dict[str, str]:
    lines = text.count("\n")
    return {"lines": str(lines + 1), "more": str(lines), "chars": str(len(text))}


# -- what stands around an answer ---

_WORDS = 2  # Least words that two rows must begin with alike


def with_hints(found: ComposerFound, evidence: Evidence) -> ComposerFound:
    """Add the rows that the agent puts around its answers: those around two or more that are alike."""
    around = [_around(answered, found.profile) for answered in evidence.answers]
    pairs = itertools.combinations(around, 2)
    hints = dict.fromkeys(
        pattern
        for one, other in pairs
        for row, twin in itertools.product(one, other)
        if (pattern := _alike(row, twin))
    )
    if not hints:
        return found
    rules = {"auto": True} if isinstance(found.rules, Plain) else found.rules
    return replace(found, rules={**rules, "hints": list(hints)})


def _around(answered: Answered, profile: Profile) -> list[str]:
    """Return the rows between message and answer, and between answer and composer."""
    reading = answered.shot.read(profile)
    if reading.box is None:
        return []
    rows = [row.rstrip() for row in answered.shot.rows[: reading.box.outer]]
    place = next((at for at in range(len(rows) - 1, -1, -1) if answered.line in rows[at]), None)
    if place is None:
        return []
    echo = after_echo(rows[:place], answered.sent, reading.pastes)
    return [row for row in (*(echo or ()), *rows[place + 1 :]) if re.search(r"\w", row)]


def _alike(row: str, twin: str) -> str:
    """Return a pattern for two rows that differ in numbers or at their end only; empty for others."""
    if loose(row) == loose(twin):
        return f"^{loose(row)}$"
    pairs = zip(row.split(), twin.split(), strict=False)
    words = [word for word, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)]
    start = " ".join(words)
    if len(words) < _WORDS or sum(map(str.isalpha, start)) < 5 or row[:1] != twin[:1]:
        return ""
    return rf"^\s*{loose(start)}\s"


# -- signals of the states ---


@dataclass(frozen=True)
class Signal:
    """A rule for a state, and the screens that it holds on."""

    rule: Rules
    holds: frozenset[int]  # Numbers of the screens
    row: str


_WORD = re.compile(r"[^\W\d_][\w'+-]*")
_TITLE_WORDS = 6  # Words from the beginning of a title that may distinguish it
_STOPS = re.compile(r"(?i)\b(?:esc|escape|interrupt|cancel|stop|ctrl|abort)\b")
_SPINNERS = (("⠀", "⣿"), ("◐", "◓"), ("🌑", "🌘"), ("🕐", "🕧"))
"""First and last characters: braille, circles, moons, clocks."""
_LONE = re.compile(r"^ *([^\w\s])(\ufe0f?)(?: *$| +·)")
_LINE_SPINNER = frozenset("|/-\\")
_STEADY = 0.6  # Share of the occurrences of a phrase that must be at about the same distance from the end
_LEAST = 0.3  # Least share of the screens that a signal must be on
_SLACK = 1.0  # Seconds by which a sign may come later in one turn than in another


def find_signals(evidence: Evidence) -> list[Signal]:
    """Find what is on the screens of a turn and never on those of an idle agent, the most reliable first.

    Titles and rows must also be on a screen of another turn: else they may be words of the model.
    """
    working, resting = evidence.working, evidence.resting
    if not working or not resting:
        return []
    found = [
        *_by_status(working, resting),
        *_by_title(working, resting, evidence.longest.sent),
        *_by_progress(working, resting),
        *_by_spinner(working, resting),
        *_by_lone_sign(evidence),
        *_by_phrase(evidence),
    ]
    return [signal for signal in found if any(_holds(signal.rule, shot) for shot in evidence.other_turns)]


def _holds(rule: Rules, shot: Shot) -> bool:
    """Whether a rule for "processing" holds on a screen."""
    if "screen" in rule:
        return any(re.search(rule["screen"], row) for row in shot.zone[: rule["tail"]])
    return "title" not in rule or re.search(rule["title"], shot.title) is not None


def covered(signals: Iterable[Signal], working: Sequence[Shot]) -> float:
    """Return the share of the screens on which at least one of the signals is."""
    holds = frozenset[int]().union(*(signal.holds for signal in signals))
    return len(holds) / len(working) if working else 0.0


def longest_gap(signals: Iterable[Signal], evidence: Evidence) -> float:
    """Return for how many seconds of a turn none of the signals was on the screen, at most at a time."""
    shots = evidence.working
    if not shots:
        return 0.0
    seen = frozenset[int]().union(*(signal.holds for signal in signals))
    times = [evidence.longest.begun, *(shots[at].at for at in sorted(seen)), shots[-1].at]
    return max(after - before for before, after in itertools.pairwise(times))


def _by_status(working: Sequence[Shot], resting: Sequence[Shot]) -> Iterator[Signal]:
    holds = frozenset(at for at, shot in enumerate(working) if shot.status == "working")
    if len(holds) >= _LEAST * len(working) and not any(shot.status == "working" for shot in resting):
        yield Signal({"status": "working"}, holds, "OSC 7501 state=working")


def _by_progress(working: Sequence[Shot], resting: Sequence[Shot]) -> Iterator[Signal]:
    holds = frozenset(at for at, shot in enumerate(working) if shot.progress in RUNNING)
    if len(holds) >= _LEAST * len(working) and not any(shot.progress in RUNNING for shot in resting):
        yield Signal(
            {"name": "progress", "state": "processing", "progress": ["set", "indeterminate"]},
            holds,
            "OSC 9;4",
        )


def _by_title(working: Sequence[Shot], resting: Sequence[Shot], sent: str) -> Iterator[Signal]:
    pattern = title_of(working, resting, sent)
    if pattern:
        holds = frozenset(at for at, shot in enumerate(working) if re.search(pattern, shot.title))
        yield Signal({"name": "title", "state": "processing", "title": pattern}, holds, working[-1].title)


def title_of(shown: Sequence[Shot], otherwise: Sequence[Shot], sent: str = "") -> str:
    """Return a pattern for the beginning of the titles of some screens that matches none of the others.

    It is as short as possible, and has no word of the message `sent`.
    """
    titles = Counter(shot.title for shot in shown if shot.title)
    starts = Counter(title[0] for title in titles.elements() if not title[0].isalnum())
    patterns = Counter(pattern for title in titles.elements() if (pattern := title_pattern(title)))
    if starts and sum(starts.values()) >= _LEAST * len(shown):
        patterns[f"^{glyphs(set(starts))}"] = sum(starts.values()) + 1
    for title, count in titles.items():
        for word in itertools.islice(_WORD.finditer(title), _TITLE_WORDS):
            if word[0] in sent:
                break
            patterns[rf"^{loose(title[: word.end()])}\b"] += count
    for pattern in sorted(patterns, key=lambda each: (-patterns[each], len(each))):
        holds = sum(bool(re.search(pattern, shot.title)) for shot in shown)
        if holds >= _LEAST * len(shown) and not any(re.search(pattern, shot.title) for shot in otherwise):
            return pattern
    return ""


def glyphs(signs: set[str]) -> str:
    """Return a class of characters with these signs, whole blocks of known spinners."""
    for first, last in _SPINNERS:
        if all(first <= sign <= last for sign in signs):
            return f"[{first}-{last}]"
    text = "".join(rf"\{sign}" if sign in r"\]^-[" else sign for sign in sorted(signs))
    return f"[{text}]"


def _by_spinner(working: Sequence[Shot], resting: Sequence[Shot]) -> Iterator[Signal]:
    """A sign that changes at the beginning of a row whose rest stays."""
    groups: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    depth: dict[str, int] = {}
    for at, shot in enumerate(working):
        for distance, row in enumerate(shot.zone):
            found = re.match(r"^( *)([^\w\s])( +)([^\W\d_]+)", row)
            if found is not None:
                groups[found[4]][found[2]].add(at)
                depth[found[4]] = max(depth.get(found[4], 0), distance)
    signs = {word: set(found) for word, found in groups.items() if len(found) > 1}
    if not signs:
        return
    known = set().union(*signs.values())
    pattern = rf"^ *{glyphs(known)} +[^\W\d_]"
    tail = max(depth[word] for word in signs) + 3
    signal = _screen_signal("spinner", pattern, tail, working, resting)
    if signal is not None and len(signal.holds) >= _LEAST * len(working):
        yield signal


def _screen_signal(
    name: str, pattern: str, tail: int, working: Sequence[Shot], resting: Sequence[Shot]
) -> Signal | None:
    """Return a rule for rows near the end, None if it holds on a screen of an idle agent."""
    compiled = re.compile(pattern)
    if any(compiled.search(row) for shot in resting for row in shot.zone[:tail]):
        return None
    rows = {at: row for at, shot in enumerate(working) for row in shot.zone[:tail] if compiled.search(row)}
    if not rows:
        return None
    rule = {"name": name, "state": "processing", "tail": tail, "screen": pattern}
    return Signal(rule, frozenset(rows), rows[max(rows)])


def _by_lone_sign(evidence: Evidence) -> Iterator[Signal]:
    """A sign that changes alone in its row, or before a tip, always about as far from the end.

    An agent may show it only until its model answers: in the longest turn hardly ever, but in each.
    """
    still = {found[1] for shot in evidence.resting for row in shot.zone if (found := _LONE.match(row))}
    signs: set[str] = set()
    places: dict[tuple[int, int], int] = {}  # By the turn and its screen
    selector = ""  # Whether it is followed by one that makes it an emoji
    for turn, at, shot in (
        (turn, at, shot) for turn, each in enumerate(evidence.turns) for at, shot in enumerate(each.shots)
    ):
        for distance, row in enumerate(shot.zone):
            found = _LONE.match(row)
            if found is None or found[1] in still or not _spins(found[1]):
                continue
            signs.add(found[1])
            places.setdefault((turn, at), distance)
            selector = selector or (r"\ufe0f?" if found[2] else "")
    changes = len(signs) > 1 or any(_known_spinner(sign) for sign in signs)
    if not changes or len({turn for turn, _ in places}) < 2 or not _is_steady(places.values()):
        return
    pattern = rf"^ *{glyphs(signs)}{selector}(?: *$| +·)"
    tail = max(places.values()) + 3
    if any(re.search(pattern, row) for shot in evidence.resting for row in shot.zone[:tail]):
        return
    turn, at = max(places)
    shown = evidence.turns[turn].shots[at].zone[places[turn, at]]
    longest = evidence.turns.index(evidence.longest)
    holds = frozenset(at for turn, at in places if turn == longest)
    yield Signal({"name": "sign", "state": "processing", "tail": tail, "screen": pattern}, holds, shown)


def _known_spinner(sign: str) -> bool:
    return any(first <= sign <= last for first, last in _SPINNERS)


def _spins(sign: str) -> bool:
    """Whether a sign may be a spinner's: no bracket, and no part of a frame."""
    return sign in _LINE_SPINNER or (unicodedata.category(sign) == "So" and not "─" <= sign <= "▟")


def _by_phrase(evidence: Evidence) -> Iterator[Signal]:
    """Words in rows near the end that are in each turn, about as far from it; not an echo of the message."""
    working, resting, longest = evidence.working, evidence.resting, evidence.longest
    where = _places(working)
    others = [(turn, _places(turn.shots)) for turn in evidence.turns if turn is not longest and turn.shots]
    never = {phrase for shot in resting for row in shot.zone for phrase in _phrases(row)}
    usable = {
        phrase: places
        for phrase, places in where.items()
        if phrase not in never
        and phrase not in longest.sent
        and len(places) >= _LEAST * len(working)
        and _is_steady(places.values())
        and _recurs(phrase, longest, places, others)
    }
    left = set(range(len(working)))
    for _ in range(3):
        best = max(sorted(usable), key=lambda phrase: _worth(phrase, usable[phrase], left), default="")
        if not best or not left & set(usable[best]):
            return
        tail = max(usable[best].values()) + 3
        pattern = rf"(?i)\b{loose(best)}\b"
        signal = _screen_signal(f"words {best}", pattern, tail, working, resting)
        usable.pop(best)
        if signal is not None:
            left -= signal.holds
            yield signal


def _places(shots: Sequence[Shot]) -> dict[str, dict[int, int]]:
    """Return by phrase the numbers of the screens that it is on, and how far from the end."""
    where: dict[str, dict[int, int]] = defaultdict(dict)
    for at, shot in enumerate(shots):
        for distance, row in enumerate(shot.zone):
            for phrase in _phrases(row):
                where[phrase].setdefault(at, distance)
    return where


def _recurs(
    phrase: str,
    longest: WatchedTurn,
    places: Mapping[int, int],
    others: Sequence[tuple[WatchedTurn, Mapping[str, Mapping[int, int]]]],
) -> bool:
    """Whether a phrase of the longest turn is at the same place in every other that lasted long enough."""
    usual = _usual(places.values())
    begins = longest.shots[min(places)].at - longest.begun + _SLACK
    seen = False
    for turn, where in others:
        found = where.get(phrase)
        if found is None:
            if turn.shots[-1].at - turn.begun >= begins:
                return False
            continue
        if abs(_usual(found.values()) - usual) > 1:
            return False
        seen = True
    return seen


def _phrases(row: str) -> set[str]:
    words = [(found[0], found.start(), found.end()) for found in _WORD.finditer(row)]
    phrases: set[str] = set()
    for at in range(len(words)):
        for size in range(1, 5):
            part = words[at : at + size]
            # Only one blank between words: columns of a footer are no phrase.
            if len(part) < size or any(right[1] - left[2] != 1 for left, right in itertools.pairwise(part)):
                break
            phrase = row[part[0][1] : part[-1][2]]
            if sum(char.isalpha() for char in phrase) >= 5:
                phrases.add(phrase)
    return phrases


def _is_steady(distances: Iterable[int]) -> bool:
    found = list(distances)
    usual = _usual(found)
    return sum(abs(each - usual) <= 1 for each in found) >= _STEADY * len(found)


def _usual(distances: Iterable[int]) -> int:
    return Counter(distances).most_common(1)[0][0]


def _worth(phrase: str, places: Mapping[int, int], left: set[int]) -> tuple[float, bool, int]:
    return round(len(left & set(places)) / max(1, len(left)), 1), bool(_STOPS.search(phrase)), len(phrase)


def find_states(evidence: Evidence, composer: ComposerFound | None) -> list[Finding]:
    """Find the rules for the states, in the order in which they are tried."""
    signals = find_signals(evidence)
    shown = composer.profile if composer is not None else None
    found: list[Finding] = []
    for signal in signals:
        why = f"on {len(signal.holds)} of {len(evidence.working)} screens of a turn, on none at rest"
        if not signal.holds:
            why = "on the first screens of turns, on none at rest"
        if "status" not in signal.rule:
            found.append(Finding("states", signal.rule, why, (signal.row,)))
        else:
            found.append(Finding("states", None, f"OSC 7501 needs no rule: {why}", (signal.row,)))
    hidden = _hidden(evidence, shown)
    if hidden is not None:
        found.append(hidden)
    share, gap = covered(signals, evidence.working), longest_gap(signals, evidence)
    return [*found, *_ready(evidence, share, gap, hidden, composer)]


def _hidden(evidence: Evidence, profile: Profile | None) -> Finding | None:
    """A rule for agents that show no composer while they work."""
    if profile is None or not evidence.working:
        return None
    absent = [shot for shot in evidence.working if not shot.read(profile).visible]
    if len(absent) < 0.9 * len(evidence.working):
        return None
    rule: Rules = {
        "name": "no composer",
        "state": "processing",
        "composer": False,
        "dialog": False,
        "active": 10,
    }
    return Finding("states", rule, "its composer is not on the screen during a turn", absent[-1].end(4))


def _ready(
    evidence: Evidence, share: float, gap: float, hidden: Finding | None, composer: ComposerFound | None
) -> Iterator[Finding]:
    if composer is None:
        return
    if any(shot.status in ("idle", "done") for shot in evidence.empty):
        yield Finding("states", None, "OSC 7501 needs no rule: idle or done at rest", ())
    others = [*evidence.working, *evidence.asking]
    if evidence.working and (title := title_of(evidence.empty, others)):
        rule: Rules = {
            "name": "title at rest",
            "state": "ready",
            "title": title,
            "composer": True,
            "dialog": False,
        }
        yield Finding(
            "states", {**rule, "debounce": 0.5}, "no title of a turn begins so", (evidence.empty[-1].title,)
        )
    if hidden is not None or (share >= COVERS and gap <= MAX_GAP):
        lasting = min(5.0, max(1.0, round(2 * gap, 1)))
        rule = {"name": "composer", "state": "ready", "composer": True, "dialog": False, "debounce": lasting}
        why = f"the composer is on the screen; during a turn a sign of it was never missing for {gap:.1f} s"
        yield Finding("states", rule, why)
        return
    seconds = 5 if evidence.working else 10
    seen = (
        f"only {share:.0%} of the screens of a turn showed a sign" if evidence.working else "no turn was seen"
    )
    changes = {"name": "output", "state": "processing", "active": seconds}
    yield Finding("states", changes, f"the screen changes; {seen}")
    rule = {"name": "composer rests", "state": "ready", "composer": True, "dialog": False, "silence": seconds}
    yield Finding("states", rule, f"the composer is on the screen, and nothing changes for long; {seen}")


# -- dialogs ---

_YES_NO = re.compile(r"(?i)\(y\)es|\(n\)o\b|[\[(]y/n\b[^\])\n]{0,20}[\])]|\by/n\b|\[yes\]|\byes/no\b")
_QUESTION = re.compile(r"\w[^│┃|]*[?？]")
_NUMBERED = re.compile(r"^\W*(?P<number>\d+)[.)] +(?P<answer>(?i:yes|no|allow|deny|approve|reject)\b)?")
_MOST_ANSWERS = 9
_LOOKS = 24  # Rows from the end in which a dialog is looked for


def looks_like_dialog(shot: Shot) -> bool:
    """Whether the end of a screen has a list of choices, or asks for yes or no."""
    hidden = not shot.terminal.modes.cursor_visible
    if find_choices(shot.rows, shot.cursor, numbered=hidden, prompts=True) is not None:
        return True
    if hidden and any(_grants(shot, y) for y in range(max(0, len(shot.rows) - _LOOKS), len(shot.rows))):
        return True
    if any(_YES_NO.search(row) for row in shot.zone[:4]):
        return True
    if hidden and _numbered_answers(shot.zone):
        return True
    rows = shot.zone[:_LOOKS]
    pointed = [row for row in rows if choice_pattern(row)]
    return any(re.match(r"\W*\d+[.)]", row) for row in pointed) and any(WORDS.search(row) for row in rows)


def _numbered_answers(zone: Sequence[str]) -> bool:
    """Whether the last rows are a numbered list with a yes or a no, and the keys for it right below.

    The chosen one may be known by its colour alone.
    """
    at = next((at for at, row in enumerate(zone[:3]) if WORDS.search(row)), None)
    if at is None:
        return False
    found = [_NUMBERED.match(row) for row in zone[at + 1 : at + 1 + _MOST_ANSWERS]]
    listed = [each for each in itertools.takewhile(bool, found) if each is not None]
    numbers = [int(each["number"]) for each in reversed(listed)]
    first = numbers.index(1) if 1 in numbers else len(numbers)
    in_order = numbers[first:] == list(range(1, len(numbers) - first + 1))
    return len(numbers) - first > 1 and in_order and any(each["answer"] for each in listed)


def _grants(shot: Shot, y: int) -> bool:
    """Whether a row is the marked one of a list of choices with a yes or a no."""
    mark = CHOICE.match(shot.rows[y])
    if mark is None:
        return False
    found = find_choices(shot.rows, (mark.start("pointer"), y), numbered=False)
    return found is not None and found.kind == "permission"


def find_dialog(evidence: Evidence, composer: ComposerFound | None) -> list[Finding]:
    """Find a rule for the permission dialog that was seen."""
    if not evidence.asking:
        return []
    values: Rules = {"composer": composer.rules} if composer is not None else {}
    quiet = [*evidence.resting, *evidence.working, *evidence.other_turns]
    rows = dialog_rows(evidence)
    for conditions in _dialog_conditions(rows, evidence.asking[-1]):
        rule: Rules = {"name": "permission", "kind": "permission", **conditions}
        if title := _question_pattern(rows):
            rule["title"] = title
        profile = profile_with({**values, "dialogs": [rule]})
        seen = all(shot.read(profile).dialog_name == "permission" for shot in evidence.asking)
        if seen and not any(shot.read(profile).dialog_name == "permission" for shot in quiet):
            why = "on every screen with the dialog, on no other"
            return [Finding("dialogs", rule, why, evidence.asking[-1].end())]
    return [_general_dialog(evidence, profile_with(values))]


def _general_dialog(evidence: Evidence, profile: Profile) -> Finding:
    rows = evidence.asking[-1].end()
    if all(shot.read(profile).dialog for shot in evidence.asking):
        return Finding("dialogs", None, "a list of choices is recognized without a rule", rows)
    if any(shot.read(profile).empty for shot in evidence.asking):
        return Finding("dialogs", None, "the dialog looks like an empty composer: write a rule", rows)
    return Finding(
        "dialogs", None, "no rule was found; messages are held, as no composer is on the screen", rows
    )


def dialog_rows(evidence: Evidence) -> list[str]:
    """Return the rows of a dialog, the last one first: neither the conversation nor the message's echo."""
    shown = (*evidence.resting, *evidence.working, *evidence.other_turns)
    known = {row for shot in shown for row in shot.zone}
    asked = "".join(evidence.asked.split())
    return [
        row
        for row in evidence.asking[-1].zone
        if row not in known
        and all(row in shot.zone for shot in evidence.asking)
        and "".join(re.sub(r"^\W+", "", row).split()) not in asked
    ]


def _dialog_conditions(common: Sequence[str], shot: Shot) -> Iterator[Rules]:
    """Yield conditions for a dialog with these rows, the strictest first."""
    choices = [pattern for row in common if (pattern := choice_pattern(row))]
    numbered = [pattern for pattern in choices if r"\d" in pattern]
    words = [f"(?i){loose(found[0])}" for row in common if (found := WORDS.search(row))]
    asked = [(row, found) for row in common[:4] if (found := _YES_NO.search(row))]
    for row, found in asked[:1]:
        # A line editor leaves the question in the conversation, with the answer behind it.
        ends = rf"(?i){loose(row[found.start() :])} *\w*$"
        end = next(at for at, each in enumerate(reversed(shot.rows), 1) if each.rstrip() == row)
        yield {"screen": [ends], "tail": end}
    for pattern, word in itertools.product([*numbered, *choices][:2], words[:2]):
        yield {"screen": [pattern, word]}
    for pattern in (*numbered[:1], *words[:2]):
        yield {"screen": [pattern]}
    for _, found in asked[:1]:
        yield {"screen": [f"(?i){loose(found[0])}"]}
    questions = [loose(found[0].strip()) for row in common if (found := _QUESTION.search(row))]
    for pattern, question in itertools.product(choices[:1], questions[:1]):
        yield {"screen": [pattern, question]}
    for question in questions[:1]:
        yield {"screen": [question]}


def _question_pattern(rows: Sequence[str]) -> str:
    for row in rows:
        if _QUESTION.search(row):
            return r"^[^\w\n]*(\w[^│┃|\n]*[?？])"
    return ""


def approval(evidence: Evidence, *, enters: bool = False) -> Rules | None:
    """Return how the dialog that was seen is answered with yes, None if that is not certain.

    `enters` is whether its "no" needs Enter.
    """
    rows = dialog_rows(evidence)
    if pattern := chosen_yes(rows):
        return {"screen": pattern}
    found = next((match for row in rows[:4] if (match := _YES_NO.search(row))), None)
    return (
        {"screen": f"(?i){loose(found[0])}", "keys": ["y", "enter"] if enters else ["y"]}
        if found is not None
        else None
    )


_FOLDER = re.compile(
    r"(?i)\btrust\b|\b(?:this|the|current) (?:folder|directory|workspace|project|repository)\b"
)


def consents_to_folder(rows: Sequence[str]) -> str:
    """Return a pattern for the chosen "yes" of a question about the folder; empty for any other."""
    return chosen_yes(rows) if any(_FOLDER.search(row) for row in rows) else ""


def chosen_yes(rows: Iterable[str]) -> str:
    """Return a pattern for the row of a dialog in which "yes" is chosen; empty if there is none."""
    found = next((match for row in rows if (match := CHOSEN.match(row))), None)
    return rf"^\s*{loose(found[0].strip())}\b" if found is not None else ""
