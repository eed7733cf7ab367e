"""`@dataclass` at a third of what the standard decorator costs an import.

That one compiles up to eight methods for each class: with three hundred classes, a third of the CPU time of
all imports before the first frame. This one compiles `__init__` only and shares the code of the others.
`frozen` is checked by mypy and gives a hash; nothing prevents an assignment at run time, which makes frozen
objects cheaper to create, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass

    from _typeshed import DataclassInstance
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        def define(cls: type) -> type:
            given = set(vars(cls))
            cls = dataclasses.dataclass(cls, slots=slots, repr=False, eq=False)
            if "__repr__" not in given:
                cls.__repr__ = _text
            if eq:
                _compare_fields(cls, given, hashable=frozen)
            return cls

        return define if cls is None else define(cls)


def _text(self: DataclassInstance) -> str:
    fields = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(fields)})"


def _compare_fields(cls: Any, given: set[str], *, hashable: bool) -> None:
    names = [each.name for each in dataclasses.fields(cls) if each.compare]
    values: Callable[[object], object] = attrgetter(*names) if names else lambda _: ()

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    if "__eq__" not in given:
        cls.__eq__ = equal
    if "__hash__" not in given:
        cls.__hash__ = hashed if hashable else None
