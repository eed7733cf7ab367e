"""Rows and detail texts of settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from textual.content import Content

from synapse_tui.settings.files import LAYER_WORDS, Entry, Layer, Survey, value_text

from .text import one_line, pad, shorten, shorten_middle

ORIGIN_CELLS = max(map(len, LAYER_WORDS.values()))
KEY_PART, LEAST_KEY = 0.45, 10  # maximum share of a row and minimum cells for the keys
GAP = 2
MARK = "•"  # marks non-default settings, also without colours


def key_cells(entries: Iterable[Entry], width: int) -> int:
    widest = max((cell_len(entry.key) for entry in entries), default=0)
    return max(LEAST_KEY, min(widest, int(width * KEY_PART)))


def setting_row(entry: Entry, keys: int, width: int) -> Content:
    is_set = entry.origin != "default"
    values = max(0, width - keys - ORIGIN_CELLS - 2 * GAP - 3)
    value = one_line(value_text(entry.setting, entry.value))
    return Content.assemble(
        (f" {MARK if is_set else ' '} ", "bold $ink"),
        (pad(shorten_middle(entry.key, keys), keys), "$ink"),
        " " * GAP,
        (pad(value, values), "bold $ink" if is_set else "$ink-muted"),
        " " * GAP,
        (pad(LAYER_WORDS[entry.origin], ORIGIN_CELLS), "$ink" if is_set else "$ink-faint"),
    )


def heading_row(group: str) -> Content:
    return Content.styled(f" {group}", "bold $hot")


def about(entry: Entry, survey: Survey, width: int) -> Content:
    setting = entry.setting
    default = shorten(one_line(value_text(setting, setting.default)), width // 2)
    choices = f" · one of {', '.join(setting.choices)}" if setting.choices else ""
    room = width - cell_len(default) - len("default ")
    lines = [
        Content.styled(setting.help, "$ink"),
        Content.assemble(
            ("default ", "$ink-faint"),
            (default, "$ink-muted"),
            (shorten(choices, room) if room > 0 else "", "$ink-faint"),
            (" · counts from the next start of the session" if setting.restart else "", "$state-waiting"),
        ),
        says(entry, survey),
    ]
    return Content("\n").join(lines)


def says(entry: Entry, survey: Survey) -> Content:
    parts: list[tuple[str, str]] = []
    if entry.origin == "environment":
        parts += [
            (f"${entry.variable} ", "$ink-muted"),
            (value_text(entry.setting, entry.value), "bold $ink"),
        ]
    if entry.kept and entry.origin in survey.files:
        parts += [
            (f"{LAYER_WORDS[entry.origin]} ", "$ink-muted"),
            (one_line(value_text(entry.setting, entry.value)), "bold $ink"),
            (f" as before: {entry.kept}", "$state-waiting"),
        ]
    for layer, value in reversed(list(entry.given.items())):
        counts = entry.origin == layer and not entry.kept
        parts += [
            (" · " if parts else "", "$ink-faint"),
            (f"{LAYER_WORDS[layer]} ", "$ink-muted"),
            (one_line(value_text(entry.setting, value)), "bold $ink" if counts else "$ink-faint strike"),
        ]
        if not survey.files[layer].trusted:
            parts.append((" (not trusted yet)", "$state-waiting"))
    return Content.assemble(*parts) if parts else Content.styled("set nowhere", "$ink-faint")


def layer_row(entry: Entry, survey: Survey, layer: Layer, width: int) -> Content:
    path = survey.name(layer)
    now = value_text(entry.setting, entry.given[layer]) if layer in entry.given else "—"
    what = _WHOSE[layer]
    room = width - cell_len(what) - cell_len(path) - 6
    return Content.assemble(
        (f" {what}", "$ink"),
        (f"  {path}", "$ink-muted"),
        (f"  {shorten(one_line(now), max(0, room))}", "$ink-faint"),
    )


_WHOSE: dict[Layer, str] = {
    "user": "Your own file",
    "project": "The project's, for all",
    "local": "Yours in this project",
}


def matching(entries: Sequence[Entry], query: str) -> list[Entry]:
    """Return the settings that contain every word in key, help, heading, value or origin."""
    words = query.casefold().split()
    return [entry for entry in entries if all(word in _text(entry) for word in words)]


def _text(entry: Entry) -> str:
    value = value_text(entry.setting, entry.value)
    parts = (entry.key, entry.setting.help, entry.group, value, LAYER_WORDS[entry.origin])
    return " ".join(parts).casefold()
