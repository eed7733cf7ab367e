"""The keys that hold, for widgets that name some: those of the application, or else the usual ones."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from synapse_tui.keymap import Keymap


@runtime_checkable
class Keyed(Protocol):
    """An application with keys."""

    keymap: Keymap


def keys_of(app: object) -> Keymap:
    """The keys of an application."""
    return app.keymap if isinstance(app, Keyed) else Keymap()
