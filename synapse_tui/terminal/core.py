"""The hot path of the core, compiled or in plain Python, which do the same.

`_core.pyx` is compiled when the package is built where there is a C compiler. `SYNAPSE_TUI_PURE=1` leaves it
out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

FIELDS = ("cells", "fill", "joined", "last", "size", "spans", "stamp", "styles", "text", "wide", "wrapped")
_NO_STYLES: list[int] = []


class RowState:
    __slots__ = FIELDS

    def __init__(self, fill: int = 0, stamp: int = 0) -> None:
        self.wrapped = False
        self.stamp = stamp
        self.clear(fill)

    def clear(self, fill: int) -> None:
        """Erase the whole row; it is compact then."""
        self.text = ""
        self.size = 0
        self.spans: list[int] = []
        self.last = 0
        self.fill = fill
        self.joined = False
        self.cells: list[str] | None = None
        self.styles = _NO_STYLES
        self.wide = False


class ScreenState:
    """Its attributes are those of `Grid`; the compiled one keeps them outside of the object's dictionary."""


has_c1: Any = None
pack_simple: Any = None
scan: Any = None
"""The scanner of `Stream`, if it is compiled."""

if not TYPE_CHECKING and not os.environ.get("SYNAPSE_TUI_PURE"):
    try:
        from ._core import RowState, ScreenState, has_c1, pack_simple, scan, set_classes  # noqa: F401
    except ImportError:  # built without a compiler
        pass
    else:
        from .cells import encode_cluster, make_classes

        set_classes(make_classes(), encode_cluster)
