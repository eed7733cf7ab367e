"""The language of what people read: the code says everything in English, `tr` says it in theirs.

`tr` stands where a sentence is shown: around a text of the application, in the functions that print a note
or an error. What is typed, written or sent by people, agents and other programs never goes through it, nor
do logs, JSON and HTTP. A catalogue (`languages/ja.json`) maps English to the other language. What differs
from time to time stands in both as `{0}`, `{1}`; so an error that another process reported in English is
found as well:

    "no agent is named '{0}'": "「{0}」という名前のエージェントはありません"

`{0:t}` says that what stands there is a sentence of ours too, `{0:n}` that it is a list of names, which the
other language may separate in its own way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from string import Formatter
from typing import NamedTuple

from .files import read_regular

LANGUAGES = ("en", "ja")
_KEY = "tui.language"
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables that name the language, the first that is set counts."""
VARIABLE = "SYNAPSE_LANGUAGE"
"""The language of the session, in the environment of its agents: all that is in it speaks one language."""
_SHORT = 12  # characters
_LEADER = re.compile(r"(?:^|[^!-~])\^\S$")  # a leader key, which another one follows
_NAMES_SEPARATOR = {"ja": "、"}  # else a comma
_STOPS = ("、", "。")  # have their blank within
_OPENING = "「『（［【〈《\u200d"
CLOSING = "、。，．」』）］】〉》？！：；・…ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々"
"""Signs after which, and before which, no line is broken."""
_LIKE_NAMES = frozenset("@~/()<>[]$^'\"+-#&%*")
_WORD = re.compile(r"\w+")
_PROSE = re.compile(r"[a-z],? [a-z]")


def tr(text: str) -> str:
    """Return a text of ours in the language of the person, or unchanged if it is not known."""
    if language() == "en" or not (body := text.strip()):
        return text
    start = text.index(body)
    said, after = _translated(body), text[start + len(body) :]
    after = after.lstrip(" ") if said.endswith(_STOPS) else after
    return f"{text[:start]}{said}{after}"


def english(text: str) -> str:
    """Return the English of what `tr` gave for a text without values, or nothing if that is not known."""
    return "" if language() == "en" else catalogue(language()).english(text)


@lru_cache(maxsize=1)
def language() -> str:
    """Return the language of this process: of its session, else of the settings, else of the locale."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in LANGUAGES:
        wanted = _setting()
    if wanted not in LANGUAGES:
        wanted = next((value for name in LOCALE if (value := os.environ.get(name, ""))), "")[:2].lower()
    return wanted if wanted in LANGUAGES else LANGUAGES[0]


def _setting() -> str:
    # Every command asks this, so the settings are parsed only if they speak of it.
    try:
        content = read_regular(os.path.expanduser("~/.synapse/settings.json"))  # noqa: PTH111
        if b"language" not in content:
            return ""
        import json  # noqa: PLC0415

        data = json.loads(content)
        tui = data.get("tui", {})
        return str(data.get(_KEY, tui.get("language") if isinstance(tui, dict) else ""))
    except (OSError, ValueError, AttributeError, RecursionError):  # the settings say what is wrong with them
        return ""


@lru_cache(maxsize=4096)
def _translated(text: str) -> str:
    return catalogue(language()).translate(text)


@lru_cache(maxsize=1)
def catalogue(name: str) -> Catalogue:
    import json  # noqa: PLC0415 - not for English
    from pathlib import Path  # noqa: PLC0415

    path = Path(__file__).parent.parent / "languages" / f"{name}.json"
    return Catalogue(json.loads(path.read_text(encoding="utf-8")))


def breakable(text: str) -> Iterator[str]:
    """Yield the parts between which a line may be broken: words, and wide characters with their punctuation.

    Blanks belong to the word that they precede, and the leader key to the key that follows it.
    """
    import unicodedata  # noqa: PLC0415 - not for English

    part = ""
    for char in text:
        wide = unicodedata.east_asian_width(char) in "WF"
        blank = char.isspace()
        before = part[-1:]
        between = wide or unicodedata.east_asian_width(before or " ") in "WF" or (blank > before.isspace())
        continues = char in CLOSING or unicodedata.category(char) in ("Mn", "Me", "Cf", "Sk")
        continues = continues or (blank and _LEADER.search(part) is not None)
        if part and between and before not in _OPENING and not continues:
            yield part
            part = ""
        part += char
    if part:
        yield part


_FEW = 5  # wide characters that stand on a last row by themselves only if they must
_FEWER = 3  # of those, as many as may be the end of a verb


def last_break(text: str, start: int, end: int) -> int:
    """Return where the last row of a wrapped text begins, if that before it begins at `start`.

    Where it would be a few wide characters, as of the end of a verb, phrases before it go along until it has
    more. A phrase begins where kana are followed by another script, and after a comma or a blank.
    """
    rest = text[end:].rstrip().rstrip(CLOSING + ":")
    if not 0 < len(rest) <= _FEW or not all(map(_is_wide, rest)):
        return end
    room = _cells(text[start:end]) - _cells(text[end:].rstrip())
    found = end
    for at in range(end - 1, start, -1):
        room -= 1 + _is_wide(text[at])
        if room < 0:
            break
        if _begins_phrase(text, at):
            found = at
            if end - at + len(rest) > _FEW:
                return at
    if found < end or len(rest) > _FEWER:
        return found
    if not _is_wide(text[end - 1]):
        return end
    few = _FEWER + 1 - len(rest)  # that many more at least
    for at in (end - max(few, 2), end - few, end - few - 1):
        fits = at > start and _cells(text[at:].rstrip()) <= _cells(text[start:end])
        if fits and text[at] not in CLOSING and all(map(_is_hiragana, text[at:end])):
            return at
    return end


def _begins_phrase(text: str, at: int) -> bool:
    before, char = _script(text[at - 1]), _script(text[at])
    if not before or char == before or text[at] in CLOSING or text[at] == " ":
        return False
    if not char:  # a name, a number or a key, and what opens a quotation
        return (text[at] in _OPENING and _is_wide(text[at])) or (
            text[at - 1] == " " and _is_wide(text[at - 2])
        )
    return char != "hiragana" or before == "sign"


def _cells(text: str) -> int:
    return sum(1 + _is_wide(char) for char in text)


def join_rows(rows: Iterable[str]) -> str:
    """Join the rows of a wrapped text: with a blank, but between wide characters, as of Japanese, without."""
    joined = ""
    for row in filter(None, map(str.strip, rows)):
        wide = not joined or (_is_wide(joined[-1]) and _is_wide(row[0]))
        joined += row if wide else f" {row}"
    return joined


def _is_wide(char: str) -> bool:
    import unicodedata  # noqa: PLC0415 - not for English

    return unicodedata.east_asian_width(char) in "WF"


def _is_hiragana(char: str) -> bool:
    return "\u3041" <= char <= "\u3096"


def _script(char: str) -> str:
    """Return what kind of wide character this is; empty for what begins or ends no phrase."""
    if char in CLOSING or char == " ":
        return "sign" if char in "、。，．」』） " else ""
    if _is_hiragana(char):
        return "hiragana"
    if "\u30a1" <= char <= "\u30fa":
        return "katakana"
    return "kanji" if _is_wide(char) and char not in _OPENING else ""


class Template(NamedTuple):
    """An English text with places for values, and the other language's."""

    parts: tuple[str, ...]
    said: str

    @property
    def weight(self) -> int:
        """The number of characters that it knows: of two that fit, the one that knows more is meant."""
        return sum(map(len, self.parts))

    def fill(self, text: str) -> str | None:
        # What knows one short word only is no sentence: there, a value is a word too.
        value = r"(\S*?)" if len(self.parts) == 2 and not self.parts[0] and self.weight < _SHORT else "(.*?)"
        pattern = value.join(map(re.escape, self.parts))
        found = re.fullmatch(pattern, text, re.DOTALL)
        if found is None or self._is_guess(found.groups()):
            return None
        said = ""
        for fixed, field, spec, _conversion in Formatter().parse(self.said):
            said = _joined(said, fixed)
            if field is not None:
                value = found.group(int(field) + 1)
                if spec == "n":
                    value = name_list(value.split(", "))
                said = _joined(said, _value(value) if spec == "t" else value)
        return said

    def _is_guess(self, values: Sequence[str]) -> bool:
        """Whether few letters are known and words stand around them, as in a sentence that is not ours."""
        if self.parts[0] or len(values) < 2 or self.weight >= _SHORT:
            return False
        return any(
            _PROSE.search(value)
            for before, value in zip(self.parts[:-1], values, strict=True)
            if not before.endswith(": ")
        )


def _value(text: str) -> str:
    """Translate a value, also a state and its reason: `held: you are typing`."""
    said = tr(text)
    word, colon, reason = text.partition(": ")
    return f"{tr(word)}{colon}{tr(reason)}" if said == text and colon else said


def name_list(names: Iterable[str]) -> str:
    """Join names as a sentence of the person's language lists them."""
    return _NAMES_SEPARATOR.get(language(), ", ").join(names)


def _joined(before: str, after: str) -> str:
    """Join a value to what stands beside it: narrow and wide characters have a blank between them.

    Wide ones have none before a particle, of which all that are meant here are hiragana.
    """
    last, first = before[-1:], after[:1]
    if first == " " and _is_wide_letter(last) and _is_hiragana(after[1:2]):
        return before + after[1:]
    narrow = _is_narrow(last) and last != "@"  # which belongs to the name behind it
    between = (_is_wide_letter(last) and _is_narrow(first)) or (narrow and _is_wide_letter(first))
    return f"{before} {after}" if between else before + after


def _is_wide_letter(char: str) -> bool:
    return char.isalnum() and _is_wide(char)


def _is_narrow(char: str) -> bool:
    """Whether this can begin or end a name, a number, a path or a key."""
    return char in _LIKE_NAMES or (char.isalnum() and not _is_wide(char))


class Catalogue:
    """Texts of another language, by the English ones."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts: dict[str, str] = {}
        self._templates: dict[str, list[Template]] = {}
        for said_in_english, said in texts.items():
            parts = tuple(parts_of(said_in_english))
            if len(parts) == 1:
                self._texts[parts[0]] = said.format()
            else:
                self._templates.setdefault(_key(parts), []).append(Template(parts, said))
        for templates in self._templates.values():
            templates.sort(key=lambda each: -each.weight)

    def english(self, said: str) -> str:
        return " ".join(text for text, translated in self._texts.items() if translated == said)

    def translate(self, text: str) -> str:
        exact = self._texts.get(text)
        if exact is not None:
            return exact
        if (hinted := self._with_hint(text)) is not None:
            return hinted
        words = {"", *_WORD.findall(text)}
        fitting = (each for word in words for each in self._templates.get(word, ()))
        for template in sorted(fitting, key=lambda each: -each.weight):
            filled = template.fill(text)
            if filled is not None:
                return filled
        return text

    def _with_hint(self, text: str) -> str | None:
        """Translate an error that is followed by its hint in parentheses, if both are known."""
        message, _opening, rest = text.rpartition(" (")
        is_sentence = message and " " in rest and rest.endswith(")")
        hint = self._texts.get(rest.removesuffix(")")) if is_sentence else None
        said = self.translate(message) if hint is not None else message
        return f"{said} ({hint})" if said != message else None


def parts_of(template: str) -> Iterator[str]:
    """Return the fixed texts between the places of a template: one more than there are places."""
    part = ""
    for fixed, field, _spec, _conversion in Formatter().parse(template):
        part += fixed
        if field is not None:
            yield part
            part = ""
    yield part


def _key(parts: tuple[str, ...]) -> str:
    """Return the longest word that every text of a template holds as a word of its own; it is filed there."""
    words = [
        found.group()
        for at, part in enumerate(parts)
        for found in _WORD.finditer(part)
        # A value may continue a word that touches it.
        if (at == 0 or found.start() > 0) and (at == len(parts) - 1 or found.end() < len(part))
    ]
    return max(words, key=len, default="")
