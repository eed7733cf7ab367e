"""Our `@dataclass` gives the same objects as the standard one."""

import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from synapse_tui.system.dataclass import dataclass as ours


def define(decorator: Callable[..., Any], **options: bool) -> list[type[Any]]:
    @decorator(**options)
    class Point:
        x: int
        label: str = field(default="", compare=False)
        token: str = field(default="", repr=False)

    @decorator(**options)
    class Corner(Point):
        names: tuple[str, ...] = ()

    @decorator(**options)
    class Empty:
        pass

    @decorator(**options)
    class Odd:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "odd"

    @decorator(**options)
    class Counted:
        names: list[str] = field(default_factory=list)
        count: int = field(init=False, default=5)

        def __post_init__(self) -> None:
            self.count += len(self.names)

    class Undecorated(Counted):
        def __init__(self) -> None:
            super().__init__(["a", "b"])  # type: ignore[call-arg]  # mypy does not know the decorator

    @decorator(**options)
    class Own:
        x: int

        def __init__(self, x: int = 11) -> None:
            object.__setattr__(self, "x", x)

    return [Point, Corner, Empty, Odd, Counted, Undecorated, Own]


def described(classes: list[type[Any]]) -> list[object]:
    point, corner, empty, odd, counted, undecorated, own = classes
    made = [
        point(1),
        point(1, "a"),
        point(1, "a", "secret"),
        point(2),
        corner(1),
        empty(),
        empty(),
        odd(1),
        odd(2),
        own(),
    ]
    if counted.__hash__ is None:  # the standard decorator lets nothing frozen be changed after `__init__`
        made += [counted(), counted(["a"]), undecorated(), counted(["b"])]
    hashed = [each for each in made if each.__hash__ is not None]
    hashes = [hash(each) == hash(other) for each in hashed for other in hashed]
    equal = [each == other for each in made for other in made]
    return [
        *map(repr, made),
        *hashes,
        *equal,
        *map(dataclasses.asdict, made),
        [each.__match_args__ for each in classes],
    ]


@pytest.mark.parametrize(
    "options", [{}, {"slots": True}, {"frozen": True, "slots": True}, {"slots": True, "eq": False}], ids=str
)
def test_objects_are_those_of_the_standard_decorator(options: dict[str, bool]) -> None:
    assert described(define(ours, **options)) == described(define(dataclasses.dataclass, **options))


def test_a_secret_is_not_in_the_text_and_a_copy_differs_where_it_is_asked_to() -> None:
    point = define(ours, frozen=True, slots=True)[0](1, "a", "secret")
    assert "secret" not in repr(point)
    assert dataclasses.replace(point, x=3).x == 3


def test_init_is_compiled_with_the_first_object_and_names_its_class() -> None:
    point, corner, *_ = define(ours, slots=True)
    later = corner.__init__
    with pytest.raises(TypeError, match=r"Corner\.__init__\(\) missing 1 required positional argument: 'x'"):
        corner()
    assert corner.__init__ is not later
    compiled = corner.__init__
    assert corner(1, "a", names=("b",)) == corner(1, "c", "", ("b",))
    assert corner.__init__ is compiled
    assert point(1, "a").label == "a"
