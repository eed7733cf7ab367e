"""Help: all keys from the table of actions, and how `@agent` works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.cells import cell_len
from textual.content import Content

from synapse_tui.actions import GROUPS, Action
from synapse_tui.key_names import key_label
from synapse_tui.keymap import Keymap, leader_label
from synapse_tui.model import AgentState
from synapse_tui.widgets.text import pad
from synapse_tui.widgets.views import state_mark

TITLE = 29
WHAT = 27
LEAST = 30
"""Cells that an explanation needs beside what it explains."""

MENTIONS = (
    ("@gemini review this", "in an empty composer sends it to Gemini instead of the agent you type to"),
    ("@alice …  @claude-8101 …", "by name, or by type and port where there are two of a kind"),
    ("@all …", "to all other agents of this project"),
    ("@gemini !5 stop that", "with a priority: 1 information … 5 interrupts"),
    ("Tab", "completes the name; Enter sends; Esc gives what you typed to the agent after all"),
    ("@README.md", "is no agent, so it reaches the agent key by key, as a mention of a file"),
)
MOUSE = (
    ("click", "focuses a pane, opens a tab, presses what is underlined"),
    ("middle click", "on a tab closes its agent"),
    ("double click", "on a pane's title zooms it"),
    ("wheel", "scrolls what the agent wrote; drag selects and copies"),
)


def help_text(keymap: Keymap, width: int) -> Content:
    """The whole help.

    Args:
        keymap: The keys that hold.
        width: Cells of a line.
    """
    label = key_label(keymap.leader)
    parts: list[str | tuple[str, str]] = [
        ("Every key goes to the agent in focus, except the function keys and ", "$ink"),
        (label, "bold $hot"),
        (f". {label} before one of these sends it once.\n", "$ink"),
    ]
    actions = [action for group in GROUPS for action in keymap.in_group(group)]
    rows = dict(zip((action.id for action in actions), _action_rows(actions, label, width), strict=True))
    for group in GROUPS:
        parts.append((f"\n{group}\n", "bold $hot"))
        for action in keymap.in_group(group):
            parts += rows[action.id]
    parts.append(("\nMessages to other agents\n", "bold $hot"))
    parts += _pairs(MENTIONS, width)
    parts.append(("\nMouse\n", "bold $hot"))
    parts += _pairs(MOUSE, width)
    parts.append(("\nMarks\n", "bold $hot"))
    for state in AgentState:
        mark = state_mark(state)
        parts += [(f"  {mark.glyph} ", f"bold ${mark.colour}"), (pad(mark.word, 12), "$ink")]
    unseen = state_mark(AgentState.READY, unseen=True)
    parts += [
        (f"  {unseen.glyph} ", f"bold ${unseen.colour}"),
        ("finished while you looked elsewhere", "$ink"),
    ]
    return Content.assemble(*parts).rstrip()


def _action_rows(actions: Sequence[Action], leader: str, width: int) -> Iterator[list[tuple[str, str]]]:
    """One row for each action: its key, its key after the leader, its title, what it does."""
    keys = [key_label(action.keys[0]) if action.keys else "" for action in actions]
    after = [f"{leader} {leader_label(action)}" if action.leader else "" for action in actions]
    key_width, after_width = (max(map(cell_len, column)) + 1 for column in (keys, after))
    indent = 2 + key_width + after_width + TITLE
    for action, key, follow in zip(actions, keys, after, strict=True):
        yield [
            (f"  {pad(key, key_width)}", "bold $hot"),
            (pad(follow, after_width), "$ink"),
            (pad(action.title, TITLE), "$ink"),
            (_hanging(action.help, indent, width), "$ink-muted"),
        ]


def _pairs(rows: tuple[tuple[str, str], ...], width: int) -> list[tuple[str, str]]:
    parts = []
    for what, means in rows:
        parts += [(f"  {pad(what, WHAT)}", "$ink"), (_hanging(means, 2 + WHAT, width), "$ink-muted")]
    return parts


def _hanging(text: str, indent: int, width: int) -> str:
    """The text in lines that begin below one another; on lines of its own where there is little room."""
    if width - indent < LEAST:
        lines = wrap(text, max(LEAST, width - 6))
        return "".join(f"\n      {line}" for line in lines) + "\n"
    return f"\n{' ' * indent}".join(wrap(text, width - indent)) + "\n"
