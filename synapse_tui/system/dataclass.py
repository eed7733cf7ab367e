"""`@dataclass` at a fraction of what the standard decorator costs an import.

That one compiles up to eight methods for each class: with three hundred classes, a third of the CPU time of
all imports before the first frame. This one compiles `__init__` only, when the first object of the class is
made (of most classes that is after the first frame), and shares the code of the other methods. `frozen` is
checked by mypy and gives a hash; nothing prevents an assignment at run time, which makes frozen objects
cheaper to create, too.
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
            cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise the signature is formatted for it
            cls = dataclasses.dataclass(cls, slots=slots, repr=False, eq=False, init=False)
            if "__init__" not in given:
                _compile_later(cls, slots=slots)
            if "__repr__" not in given:
                cls.__repr__ = _text
            if eq:
                _compare_fields(cls, given, hashable=frozen)
            return cls

        return define if cls is None else define(cls)


def _compile_later(cls: Any, *, slots: bool) -> None:
    """Give the class an `__init__` that replaces itself by the compiled one when it is first called."""

    def initialize(self: object, /, *values: object, **named: object) -> None:
        cls.__init__ = _compiled(cls, slots=slots)
        cls.__init__(self, *values, **named)

    cls.__init__ = initialize


def _compiled(cls: Any, *, slots: bool) -> Callable[..., None]:
    """Let the standard decorator compile `__init__` for a class with the same fields."""
    fields = dataclasses.fields(cls)
    body: dict[str, Any] = {
        field.name: dataclasses.field(
            default=field.default, default_factory=field.default_factory, init=field.init
        )
        for field in fields
    }
    body |= {
        "__qualname__": cls.__qualname__,
        "__module__": cls.__module__,
        "__doc__": "The fields of another class.",
    }
    body["__annotations__"] = dict.fromkeys((field.name for field in fields), object)
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__  # it is called if it is there
    alike: Any = dataclasses.dataclass(type(cls.__name__, (), body), slots=slots, repr=False, eq=False)
    initialize: Callable[..., None] = alike.__init__
    return initialize


def _text(self: DataclassInstance) -> str:
    fields = (
        f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr
    )
    return f"{type(self).__qualname__}({', '.join(fields)})"


def _compare_fields(cls: Any, given: set[str], *, hashable: bool) -> None:
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    values: Callable[[object], object] = attrgetter(*names) if names else lambda _: ()

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    if "__eq__" not in given:
        cls.__eq__ = equal
    if "__hash__" not in given:
        cls.__hash__ = hashed if hashable else None
