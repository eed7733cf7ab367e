"""The name of a PostgreSQL database as a person sets it: what is wrong with one."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from synapse_tui.errors import DatabaseNameError

VARIABLE = "SYNAPSE_DATABASE_URL"
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_FORM = "write postgresql://USER@HOST/DATABASE, the password in ~/.pgpass or as USER:PASSWORD"


def fault_of(url: str) -> str:
    """What is wrong with the setting, to be read behind its name; empty for nothing."""
    problem = problem_of(url.strip()) if url.strip() else None
    return f"{problem.message.removeprefix(VARIABLE).strip()}: {problem.hint}" if problem is not None else ""


def problem_of(url: str) -> DatabaseNameError | None:
    """What is wrong with a URL; what stands in it is not told, since it could be the password."""
    scheme, _, rest = url.partition("://")
    authority, *others = re.split(r"[/?#]", rest)
    if scheme not in _SCHEMES:
        return DatabaseNameError(f"{VARIABLE} is no URL of a PostgreSQL database", _FORM)
    if authority.count("@") > 1 or "@" in "".join(others) or "#" in rest:
        return DatabaseNameError(
            f"{VARIABLE} cannot be read: a character of its user or password has a meaning there",
            "write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25 in them",
        )
    try:
        urlsplit(url).port  # noqa: B018 - raises where it is none
    except ValueError:
        return DatabaseNameError(f"{VARIABLE} is no URL of a PostgreSQL database", _FORM)
    return None
