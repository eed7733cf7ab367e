"""Rows of the sidebar's lists: agents, messages, peers. Plain text in given styles, never markup."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from synapse_tui.model import Task
from synapse_tui.paths import tilde
from synapse_tui.themes import agent_colour

from .marks import delivery_mark
from .message_order import Place
from .parties import party
from .talk_picture import TalkPicture
from .text import age, markdown_line, one_line, shorten
from .views import AgentView

if TYPE_CHECKING:
    from synapse_tui.addresses import Address

_REPLY = "↳ "
_LEAST_WITH_UNREAD = 24
"""Cells for folder and port that leave room for a count."""


def agent_row(agent: AgentView, width: int, now: float, *, active: bool) -> Content:
    """Two lines: name, state and since when; folder, watch, unread messages and port.

    Args:
        agent: The agent.
        width: Cells of the row.
        now: The session's monotonic clock, seconds.
        active: Whether it is in focus.
    """
    mark = agent.mark()
    since = age(max(0.0, now - agent.since)) if agent.exit is None else ""
    head = f"{agent.number} "
    room = width - 3 - len(head) - cell_len(since) - 1
    name = shorten(agent.label, min(16, room))
    state = shorten(agent.state_text, room - cell_len(name) - 2)
    port = f":{agent.port}"
    watch = f"{agent.watch} · " if agent.watch else ""
    indent = 3 + len(head)
    if agent.unread and width - indent >= _LEAST_WITH_UNREAD:
        port = f"{agent.unread} unread · {port}"
    folder = shorten(short_path(agent.cwd), width - indent - len(watch) - len(port) - 1)
    return Content.assemble(
        ("▌" if active else " ", "$hot"),
        (head, "$ink-faint"),
        (f"{mark.glyph} ", f"bold ${mark.colour}"),
        (name, f"bold ${agent_colour(agent.agent_type)}"),
        (f"  {state}", f"${mark.colour}" if agent.needs_attention else "$ink-muted"),
        (" " * (room - cell_len(name) - 1 - cell_len(state)) + since, "$ink-faint"),
        "\n" + " " * indent,
        (folder, "$ink-faint"),
        (" " * (width - indent - cell_len(folder) - len(watch) - len(port)), ""),
        (agent.watch, "bold $alert" if agent.gave_up else "$hot"),
        (watch.removeprefix(agent.watch) + port, "$ink-faint"),
    )


def message_row(
    task: Task, labels: Mapping[str, str], width: int, now: datetime, place: Place | None = None
) -> Content:
    """Two lines and up to two more: who to whom, how far, since when; the text; why; the answer.

    Args:
        task: The message.
        labels: What agents are called, by id.
        width: Cells of the row.
        now: The time, aware.
        place: Where it stands among those that wait; None for one that does not.
    """
    mark = delivery_mark(task)
    old = age((now - task.updated_at).total_seconds())
    tail = (
        f"{mark.word} {old}" if place is None or place.count < 2 else f"{mark.word} #{place.position} {old}"
    )
    room = width - 4 - cell_len(tail)
    sender, target = party(task.sender.sender_id, labels), party(task.target, labels)
    sender = shorten(sender, max(4, room // 2 - 2))
    target = shorten(target, max(4, room - cell_len(sender) - 3))
    gap = max(1, width - 3 - cell_len(sender) - 3 - cell_len(target) - cell_len(tail))
    unproved = "" if task.sender.verified else "?"
    parts: list[str | tuple[str, str]] = [
        (f" {mark.glyph} ", f"bold ${mark.colour}"),
        (sender + unproved, "bold $ink"),
        (" → ", "$ink-faint"),
        (target, "bold $ink"),
        (" " * max(1, gap - len(unproved)), ""),
        (tail, f"${mark.colour}"),
        ("\n   " + shorten(one_line(task.text), width - 3), "$ink-muted"),
    ]
    if task.reason not in ("", mark.word):
        parts.append(("\n   " + shorten(one_line(task.reason), width - 3), f"${mark.colour}"))
    if task.artifacts:
        answer = markdown_line(task.artifacts[-1].text, "$ink", "$ink on $field")
        shown = Content.assemble(("   " + _REPLY, "$ink"), *answer).truncate(width, ellipsis=True)
        return Content.assemble(*parts, ("\n", "$ink"), shown)
    return Content.assemble(*parts)


def peer_row(peer: Address, width: int) -> Content:
    """One line: id and folder."""
    name = shorten(peer.agent_id, width - 3)
    folder = (
        shorten(short_path(Path(peer.working_dir)), width - 5 - cell_len(name)) if peer.working_dir else ""
    )
    return Content.assemble("   ", (name, f"${agent_colour(peer.agent_type)}"), (f"  {folder}", "$ink-faint"))


def external_row(picture: TalkPicture, width: int) -> Content:
    """One line: the state of the conversation, alias, name."""
    mark = picture.mark if picture.entries else None
    alias = shorten(picture.alias, width - 4)
    name = shorten(one_line(picture.name), max(0, width - 6 - cell_len(alias)))
    return Content.assemble(
        (f" {mark.glyph} " if mark else "   ", f"bold ${mark.colour}" if mark else ""),
        (alias, f"bold ${agent_colour('external')}"),
        (f"  {name}", "$ink-faint"),
    )


def short_path(path: Path) -> str:
    """A path with the home folder as `~`."""
    return tilde(one_line(str(path)))
