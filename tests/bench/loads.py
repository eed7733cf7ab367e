"""Ten streams of output for a 120x40 terminal, after vtebench and the ways in which agents draw."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

COLUMNS, LINES = 120, 40
SIZE = 1_000_000

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789     .,;:()[]{}_-=+/"
_PROSE = "abcdefghij klmnop qrstuvwxyz"
_WORDS = (
    *(
        "漢字仮名交じり文",
        "こんにちは世界",
        "한국어 텍스트",
        "žluťoučký kůň",
        "naïve café e\u0301",
        "Привет мир",
    ),
    *("🎉✅❌🚀", "⚠️ warn", "👩\u200d💻", "🇩🇪🇫🇷", "┌──┐│└┘├┤", "ελληνικά", "שלום", "abc def", "⠋⠙⠹⠸⠼"),
)


def _text(source: random.Random, letters: str, length: int) -> str:
    return "".join(source.choice(letters) for _ in range(length))


def _plain(source: random.Random) -> Iterator[str]:
    while True:
        yield _text(source, _LETTERS, source.randint(10, 110)) + "\r\n"


def _log(source: random.Random) -> Iterator[str]:
    while True:
        minutes, seconds = source.randint(10, 59), source.randint(10, 59)
        color, level = source.choice((31, 32, 33, 34, 36)), source.choice(("INFO", "WARN", "DEBUG", "ERROR"))
        shade, module = source.randint(16, 255), source.randint(1, 99)
        text = _text(source, _PROSE, source.randint(20, 70))
        yield (
            f"\x1b[2m12:{minutes}:{seconds}\x1b[0m \x1b[{color};1m{level}\x1b[0m "
            f"\x1b[38;5;{shade}mmodule.{module}\x1b[39m: {text}\r\n"
        )


def _dense(_source: random.Random) -> Iterator[str]:
    for frame in count(1):
        yield "\x1b[H"
        for y in range(LINES):
            yield "".join(
                f"\x1b[38;2;{(x * 2 + frame) % 256};{(y * 6) % 256};{(x + y + frame) % 256}"
                f";48;2;{(frame * 3 + y) % 256};{x % 256};{(y * x) % 256}m{chr(97 + (x + y + frame) % 26)}"
                for x in range(COLUMNS)
            )
            if y < LINES - 1:
                yield f"\x1b[{y + 2};1H"


def _interface_line(source: random.Random, number: int) -> str:
    text = _text(source, _PROSE, source.randint(30, 90))
    kind = source.random()
    if kind < 0.3:
        return f"\x1b[38;2;136;136;136m│\x1b[39m {text} \x1b[38;2;136;136;136m│\x1b[39m"
    if kind < 0.6:
        return f"\x1b[38;2;215;119;87m⏺\x1b[39m \x1b[1m{text[:20]}\x1b[22m({text[20:40]})"
    if kind < 0.8:
        return f"  \x1b[48;2;34;92;43m\x1b[38;2;255;255;255m{number:4d} + {text[:60]}\x1b[49m\x1b[39m"
    return f"  ⎿  {text}"


def _ink(source: random.Random) -> Iterator[str]:
    """Ink: erase the live block line by line going up, and write it whole again, in synchronized frames."""
    live = 24
    lines = [_interface_line(source, number) for number in range(200)]
    for frame in count(1):
        erase = "" if frame == 1 else "\x1b[2K\x1b[1A" * (live - 1) + "\x1b[2K\x1b[G"
        block = "\r\n".join(lines[(frame // 4 + number) % 200] for number in range(live))
        yield f"\x1b[?2026h{erase}{block}\x1b[?2026l"
        if frame % 20 == 0:
            yield f"\r\n{lines[frame % 200]}\r\n"


def _motion(source: random.Random) -> Iterator[str]:
    while True:
        pieces = []
        for _ in range(60):
            place = f"\x1b[{source.randint(1, LINES)};{source.randint(1, COLUMNS - 12)}H"
            red, green, blue = (source.randint(0, 255) for _ in range(3))
            text = _text(source, "abcdefgh ijkl", source.randint(2, 12))
            pieces.append(f"{place}\x1b[38;2;{red};{green};{blue};49m{text}")
        yield "\x1b[?2026h\x1b[?25l" + "".join(pieces) + "\x1b[0m\x1b[?2026l"


def _unicode(source: random.Random) -> Iterator[str]:
    while True:
        line = ""
        while len(line) < 55:
            line += source.choice(_WORDS) + " "
        yield line + "\r\n"


def _cjk(source: random.Random) -> Iterator[str]:
    return _words(source, "漢字仮名", "交じり文", "こんにちは", "世界", "한국어", "텍스트", "，", "。")


def _emoji(source: random.Random) -> Iterator[str]:
    return _words(source, "⚠️", "warn", "❤️", "✔️", "ok", "✈️", "ℹ️", "info")


def _decomposed(source: random.Random) -> Iterator[str]:
    return _words(source, "cafe\u0301", "nai\u0308ve", "z\u030clut\u030couc\u030cky\u0301", "abc")


def _words(source: random.Random, *words: str) -> Iterator[str]:
    while True:
        line = ""
        while len(line) < 55:
            line += source.choice(words) + " "
        yield f"\x1b[32m{source.randint(1, 9999):6d}\x1b[0m {line}\r\n"


def _region(source: random.Random) -> Iterator[str]:
    while True:
        yield "\n\r" + _text(source, "abcdefghij klmnop", source.randint(5, 100))


_MAKERS: dict[str, tuple[int, str, Callable[[random.Random], Iterator[str]]]] = {
    "plain": (1, "", _plain),
    "log": (2, "", _log),
    "dense": (3, "", _dense),
    "ink": (4, "", _ink),
    "motion": (5, "", _motion),
    "unicode": (6, "", _unicode),
    "region": (7, "\x1b[3;36r\x1b[36;1H", _region),
    "cjk": (8, "", _cjk),
    "emoji": (9, "", _emoji),
    "decomposed": (10, "", _decomposed),
}
NAMES = tuple(_MAKERS)


def load(name: str, size: int = SIZE) -> bytes:
    """The bytes of one load, always the same."""
    seed, start, maker = _MAKERS[name]
    pieces, total = [start], 0
    for piece in maker(random.Random(seed)):
        pieces.append(piece)
        total += len(piece.encode())
        if total >= size:
            break
    return "".join(pieces).encode()
