"""Bodies that JSON can write and the protocol cannot hold: found before the SDK stumbles over them."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from a2a.utils.errors import InvalidParamsError, JSONParseError
from starlette.requests import Request


async def check_body(request: Request, *, needed: bool) -> None:
    """See that a body is JSON that UTF-8 and protobuf can carry.

    Args:
        request: The request.
        needed: Whether there must be one.

    Raises:
        JSONParseError: It is no JSON.
        InvalidParamsError: It holds half a surrogate pair, or a number that is not finite.
    """
    body = await request.body()
    if not body and not needed:
        return
    try:
        value = json.loads(body, parse_float=_finite, parse_constant=_not_finite)
        sound = b"\\u" not in body or encodable(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        raise JSONParseError("the body is nested too deeply") from None
    except ValueError as error:
        raise JSONParseError(f"the body is no JSON: {error}") from error
    if not sound:
        raise InvalidParamsError("a text holds half a surrogate pair")


def encodable(text: str) -> bool:
    """Whether UTF-8 can carry a text: it holds no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _finite(number: str) -> float:
    found = float(number)
    return found if math.isfinite(found) else _not_finite(number)


def _not_finite(_number: str) -> NoReturn:
    raise InvalidParamsError("a number is not finite")
