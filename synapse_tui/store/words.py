"""What the words of a search mean: texts are compared without regard to case, width and forms of letters."""

from __future__ import annotations

import re
import unicodedata

_TERM = re.compile(r'"([^"]*)"|(\S+)')


def folded(value: str) -> str:
    """A text as it is compared: without regard to case, width and forms of letters."""
    return unicodedata.normalize("NFKC", value).casefold()


def terms_of(query: str) -> list[str]:
    """The terms of a query, all of which must be found: words, or several in quotes."""
    found = (quoted or word.strip('"') for quoted, word in _TERM.findall(query))
    return [term for each in found if (term := folded(each).strip())]
