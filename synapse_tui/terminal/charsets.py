"""Character sets selected by ESC ( F and similar (DEC STD 070, xterm ctlseqs "Designate Character Set")."""

from __future__ import annotations

from pyte.charsets import MAPS

Translation = dict[int, int]

_GRAPHICS = " ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"
DEC_GRAPHICS: Translation = {0x5F + index: ord(char) for index, char in enumerate(_GRAPHICS)}


def _national(chars: str) -> Translation:
    r"""Return a set that differs from ASCII at `#@[\\]^_`{|}~`, in this order."""
    return {ord(old): ord(new) for old, new in zip("#@[\\]^_`{|}~", chars, strict=True) if old != new}


_DUTCH = _national("£¾ĳ½|^_`¨ƒ¼´")
_FINNISH = _national("#@ÄÖÅÜ_éäöåü")
_FRENCH = _national("£à°ç§^_`éùè¨")
_FRENCH_CANADIAN = _national("#àâçêî_ôéùèû")
_GERMAN = _national("#§ÄÖÜ^_`äöüß")
_ITALIAN = _national("£§°çé^_ùàòèì")
_NORWEGIAN = _national("#ÄÆØÅÜ_äæøåü")
_PORTUGUESE = _national("#@ÃÇÕ^_`ãçõ~")
_SPANISH = _national("£§¡Ñ¿^_`°ñç~")
_SWEDISH = _national("#ÉÄÖÅÜ_éäöåü")
_SWISS = _national("ùàéçêîèôäöüû")
_TECHNICAL_LOW = "⎷┌─⌠⌡│⎡⎣⎤⎦⎛⎝⎞⎠⎨⎬"
_TECHNICAL_HIGH = "≤≠≥∫∴∝∞÷Δ∇ΦΓ∼≃Θ×Λ⇔⇒≡ΠΨ Σ  √ΩΞΥ⊂⊃∩∪∧∨¬αβχδεφγηιθκλ ν∂πψρστ ƒωξυζ←↑→↓"
TECHNICAL: Translation = {0x21 + index: ord(char) for index, char in enumerate(_TECHNICAL_LOW)} | {
    0x3C + index: ord(char) for index, char in enumerate(_TECHNICAL_HIGH) if char != " "
}
"""DEC Technical; undefined codes are unchanged."""

ASCII = "B"
LATIN_1, LINUX = MAPS["B"], ("U", "V")
"""Pyte's ASCII, and the sets of the Linux console only: code page 437, VAX42."""
CHARSETS: dict[str, Translation | None] = {
    "B": None,
    "0": DEC_GRAPHICS,
    "A": {0x23: 0xA3},
    ">": TECHNICAL,
    "4": _DUTCH,
    "C": _FINNISH,
    "5": _FINNISH,
    "R": _FRENCH,
    "f": _FRENCH,
    "Q": _FRENCH_CANADIAN,
    "9": _FRENCH_CANADIAN,
    "K": _GERMAN,
    "Y": _ITALIAN,
    "`": _NORWEGIAN,
    "E": _NORWEGIAN,
    "6": _NORWEGIAN,
    "%6": _PORTUGUESE,
    "Z": _SPANISH,
    "H": _SWEDISH,
    "7": _SWEDISH,
    "=": _SWISS,
    **{code: {at: ord(char) for at, char in enumerate(MAPS[code]) if at != ord(char)} for code in LINUX},
}
"""Final of the designating sequence, with a second intermediate, → translation; None is ASCII."""
NATIONAL = frozenset(CHARSETS) - {ASCII, "0", "A", ">", *LINUX}
"""Replacement sets: available only in mode 42 (DECNRCM), otherwise they mean ASCII (xterm)."""


def pyte_map(code: str) -> str:
    """Return a set as in pyte: the character for each of the 256 codes."""
    return MAPS[code] if code in MAPS else LATIN_1.translate(CHARSETS.get(code) or {})


def code_of(mapping: str) -> str:
    for code in CHARSETS:
        if pyte_map(code) == mapping:
            return code
    raise ValueError("unknown character set: take one of pyte.charsets, or designate it by `define_charset`")
