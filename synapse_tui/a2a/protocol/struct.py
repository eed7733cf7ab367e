"""JSON values and protobuf's Struct: what the one can hold and the other cannot is made to fit."""

from __future__ import annotations

import math
from collections.abc import Mapping

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct, Value

from synapse_tui.a2a.wire import sound

MAX_EXACT = 2**53
"""Greater whole numbers are no numbers of JSON that everybody reads alike; they are told as text."""


def struct_of(fields: Mapping[str, object]) -> Struct:
    """A Struct of a JSON object."""
    fitting = _fitting(fields)
    assert isinstance(fitting, dict)
    return ParseDict(fitting, Struct())


def value_of(value: object) -> Value:
    """A Value of a JSON value."""
    return struct_of({"": value}).fields[""]


def json_of(message: Struct | Value) -> object:
    """The JSON value of a Struct or a Value; whole numbers are integers again."""
    return _whole(MessageToDict(message))


def object_of(struct: Struct) -> dict[str, object]:
    """The JSON object of a Struct."""
    found = json_of(struct)
    assert isinstance(found, dict)
    return found


def _fitting(value: object) -> object:
    if isinstance(value, Mapping):
        return {sound(str(key)): _fitting(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fitting(inner) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return sound(str(value))


def _whole(value: object) -> object:
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT:
        return int(value)
    return value
