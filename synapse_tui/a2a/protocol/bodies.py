"""Bodies that JSON can write and the protocol cannot hold: found before the SDK stumbles over them."""

from __future__ import annotations

import json

from a2a.utils.errors import InvalidParamsError, JSONParseError
from starlette.requests import Request

_SUSPECT = (b"\\u", b"NaN", b"Infinity")
"""What bodies hold that may hold half a surrogate pair, or a number that is none."""


async def check_body(request: Request) -> None:
    """See that a body is JSON that UTF-8 and protobuf can carry.

    Raises:
        JSONParseError: It is no JSON.
        InvalidParamsError: It holds half a surrogate pair, or a number that is not finite.
    """
    body = await request.body()
    if not body:
        return
    try:
        value = json.loads(body)
    except RecursionError:
        raise JSONParseError("the body is nested too deeply") from None
    except ValueError as error:
        raise JSONParseError(f"the body is no JSON: {error}") from error
    if any(each in body for each in _SUSPECT):
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError:
            raise InvalidParamsError("a text holds half a surrogate pair") from None
        except ValueError:
            raise InvalidParamsError("a number is not finite") from None
