"""What the settings say about the application: at the start, and followed while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synapse_tui.events import SettingsChanged
from synapse_tui.keymap import Keymap
from synapse_tui.widgets.deck import as_layout

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp
    from synapse_tui.settings import Settings

KEYS = frozenset({"tui.leader", "tui.keys"})
FILE_SAFETY = "env.SYNAPSE_FILE_SAFETY_ENABLED"


def read_keymap(settings: Settings, leader: str | None = None) -> Keymap:
    """The keys as the settings say.

    Args:
        settings: The settings that hold.
        leader: A leader that is kept whatever they say; None for theirs.
    """
    table = settings.table("tui.keys")
    bindings = {name: [str(key) for key in keys] for name, keys in table.items() if isinstance(keys, list)}
    return Keymap.of(leader or settings.text("tui.leader"), bindings)


def follow(app: SynapseApp, event: SettingsChanged) -> None:
    """Live by changed settings from now on.

    Args:
        app: The application.
        event: What has changed; the host holds the new values already.
    """
    settings, changed = app.host.settings, frozenset(event.keys)
    if changed & KEYS:
        app.use_keys(read_keymap(settings))
    if "tui.theme" in changed:
        app.appearance.follow_setting()
    if "tui.layout" in changed:
        app.commands.set_layout(as_layout(settings.text("tui.layout")))
    if FILE_SAFETY in changed:
        app.main.follow_file_safety()
    if "tui.sidebar" in changed:
        app.main.set_class(settings.flag("tui.sidebar"), "-sidebar")
        app.main.back_to_pane()
