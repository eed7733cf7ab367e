"""Random texts: what programs send to an agent, and what a person types to it."""

from __future__ import annotations

from random import Random

LONGEST = 19_850
"""Bytes of the longest message: with what is put before it, it fits the 20,000 characters that are logged."""


def _pool(*rows: str) -> list[str]:
    return " ".join(rows).split()


_WORDS = _pool(
    "please look at this function and tell whether the loop ends when its list is empty or holds one item",
    'that is larger than the limit: it returns early, (see "notes" below) = 42; path/to/file.py:17 -- x < y',
    "&& z | 'quoted' `code` {\"key\": [1, 2.5, null]} $HOME ~/.config 100% a_b-c I'd don't ... ? <tag v='w'>",
    "\\d+ #7 a@b.example *bold* _it_",
)
_JAPANESE = _pool(
    "これは日本語の文章です。 テストを実行して、 結果を教えてください。 関数の戻り値が「空」のとき、",
    "どうなりますか？ 全角ＡＢＣ１２３ ｶﾀｶﾅ・ひらがな 長音ー 漢字仮名交じり文、 よろしく 改行のあとに続く行",
)
_EMOJI = _pool(
    "👍🏽 👩\u200d💻 🇯🇵 ⚠️ 🎉 ✅ 🚀 👨\u200d👩\u200d👧 ❤️ 1️⃣ 😀 🏳️\u200d🌈 é ñ e\u0301",
    "한국어 Ω≈ç √∫ «guillemets» → ✓ „quotes“ €",
)
_JOINED = _pool(
    "👨\u200d👩\u200d👧\u200d👦 🧑🏿\u200d🚀 👩🏽\u200d❤️\u200d💋\u200d👨🏻 🏴\u200d☠️ 🐻\u200d❄️ 👁️\u200d🗨️",
    "✊🏾 🤦🏼\u200d♂️ 🫱🏻\u200d🫲🏿 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f ☝🏻 ✌️ ☎️",
    "☎\ufe0e ⌚\ufe0e ©️ ™️ #️⃣ *️⃣ 9️⃣ 🅰️ ℹ️ 🈚 🇺🇳 🇨🇭 🕴️ ♾️ 🪿",
)
_KINDS = ("words", "lines", "japanese", "emoji", "mixed", "!", "/", "#", "@README", "tiny")


def message_texts(random: Random, count: int) -> list[str]:
    """So many messages of 1 byte to 20 kB in which every kind and both ends of the range occur."""
    kinds = [_KINDS[index % len(_KINDS)] for index in range(count)]
    random.shuffle(kinds)
    texts = [_message(random, kind, int(LONGEST ** random.random())) for kind in kinds]
    long = [index for index, kind in enumerate(kinds) if kind not in ("tiny", "/")]
    for place, kind in zip(random.sample(long, 3), ("words", "lines", "japanese"), strict=True):
        texts[place] = _message(random, kind, LONGEST)
    return texts


def emoji_texts(random: Random, count: int) -> list[str]:
    """So many messages of 20 bytes to 1.5 kB full of joined emoji; in every third they stand close by."""
    close = ["".join(random.choices(_EMOJI + _JOINED, k=random.randint(2, 6))) for _ in range(40)]
    pools = (_EMOJI + _WORDS[:6], _EMOJI + _JOINED + _WORDS[:12], close)
    return [_fill(random, pools[index % 3], int(20 * 75 ** random.random())) for index in range(count)]


def draft_words(random: Random, count: int) -> list[str]:
    """So many pieces as a person types them: words and what an input method commits at once."""
    pieces = ["then", "and", "the", "tests", "again", "why", "is", "it", "slow", "see", "line", "12"]
    return [random.choice(_JAPANESE if random.random() < 0.3 else pieces) for _ in range(count)]


def _message(random: Random, kind: str, size: int) -> str:
    match kind:
        case "tiny":
            return random.choice(["a", "1", "?", "!", "/", "#", "@", "\\", "あ", "🎉", "ok", "é"])
        case "!" | "/" | "#":
            start = {"!": "!ls -la ", "/": "/quit ", "#": "# note "}[kind]
            return start + _fill(random, _WORDS, max(1, size - len(start)))
        case "@README":
            return _fill(random, _WORDS, max(1, size - 8)) + " @README"
        case "lines":
            return _lines(random, size)
        case _:
            pool = {"words": _WORDS, "japanese": _JAPANESE, "emoji": _EMOJI + _WORDS[:6]}
            return _fill(random, pool.get(kind, _WORDS + _JAPANESE + _EMOJI), size)


def _fill(random: Random, pool: list[str], size: int, joint: str = " ") -> str:
    """Words up to so many bytes, at least one; only their beginning when that alone is too long."""
    text = ""
    while True:
        word = random.choice(pool)
        if len((text + word).encode()) > size:
            return text.rstrip() or _cut(word, size)
        text += word + joint


def _cut(word: str, size: int) -> str:
    """As much of a word as fits, at least a character; an emoji of several code points becomes a letter."""
    return word[:1] if word[0].isascii() or "ぁ" <= word[0] <= "鿿" else "x"


def _lines(random: Random, size: int) -> str:
    rows: list[str] = []
    left = size
    while left > 0:
        if rows and random.random() < 0.1:
            rows.append("")
            left -= 1
            continue
        indent = " " * random.choice((0, 0, 0, 2, 4, 8)) if rows else ""
        row = indent + _fill(random, random.choice((_WORDS, _JAPANESE)), min(left, random.randint(1, 160)))
        rows.append(row)
        left -= len(row.encode()) + 1
    text = "\n".join(rows)
    return text.encode()[:size].decode(errors="ignore").strip() or "x"
