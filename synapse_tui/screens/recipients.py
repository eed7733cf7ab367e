"""Whom a message can go to, as the composer and the palette offer them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from synapse_tui.themes import agent_colour
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import one_line, pad, shorten
from synapse_tui.widgets.views import AgentView, Mark

if TYPE_CHECKING:
    from synapse_tui.addresses import Address

ALL = "all"


@dataclass(frozen=True, slots=True)
class Recipient:
    """Someone a message can go to.

    Attributes:
        address: What to write after the `@`: the shortest that means nobody else.
        agent_id: Its id; empty for all.
        agent_type: Its type.
        note: State, or folder of an agent elsewhere.
        mark: Mark of its state; None for one that is not here.
    """

    address: str
    agent_id: str
    agent_type: str
    note: str
    mark: Mark | None = None

    def row(self) -> Content:
        """Its line in a list."""
        glyph = (f" {self.mark.glyph} ", f"bold ${self.mark.colour}") if self.mark else ("   ", "")
        return Content.assemble(
            glyph,
            (
                pad(self.address, 24) + " ",
                f"bold ${agent_colour(self.agent_type) if self.agent_type else 'ink'}",
            ),
            (shorten(self.note, 40), "$ink-muted"),
        )


def recipients(addresses: Sequence[Address], agents: Mapping[str, AgentView]) -> list[Recipient]:
    """Everyone, the agents here first, and `all` when there are two or more of them.

    Args:
        addresses: What the host knows.
        agents: Pictures of the agents here, by id.
    """
    here = [address for address in addresses if address.agent_id in agents]
    elsewhere = [address for address in addresses if address.agent_id not in agents]
    types = Counter(address.agent_type for address in addresses if address.local)
    found = [_local(address, agents[address.agent_id], types) for address in here]
    if len(here) > 1:
        found.append(Recipient(ALL, "", "", f"all {len(here)} agents here"))
    for address in elsewhere:
        if address.external:
            note = f"external · {shorten(address.endpoint, 60)}"
            found.append(Recipient(address.agent_id, address.agent_id, address.agent_type, note))
            continue
        folder = short_path(Path(address.working_dir)) if address.working_dir else "another process"
        found.append(Recipient(address.agent_id, address.agent_id, address.agent_type, folder))
    return found


def _local(address: Address, agent: AgentView, types: Counter[str]) -> Recipient:
    if address.name:
        short = address.name
    elif types[address.agent_type] == 1:
        short = address.agent_type
    else:
        short = f"{address.agent_type}-{address.port}"
    return Recipient(one_line(short), address.agent_id, address.agent_type, agent.state_text, agent.mark())


def matching(found: Sequence[Recipient], typed: str) -> list[Recipient]:
    """Those whose address or id has what was typed, the ones that begin with it first."""
    word = typed.strip().removeprefix("@").removeprefix("＠").lower()
    if not word:
        return list(found)
    hits = [
        r for r in found if word in r.address.lower() or word in r.agent_id.lower() or word in r.agent_type
    ]
    return sorted(hits, key=lambda r: not r.address.lower().startswith(word))
