"""A user who types at random moments, and what the dummy's log tells of the keys that it was given."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from synapse_tui.dummy.editor import DummyComposer
from synapse_tui.dummy.terminal import Key, KeyDecoder, Text
from synapse_tui.terminal.events import Modes
from synapse_tui.terminal.input import encode_paste
from tests.integration.session_rig import Rig

MINE = "[A2A:"
"""How messages begin; what the user types never does."""
WORDS = ("fix", "the build", "日本語", "変換した文", "ｶﾅ", "👩‍💻", "e\u0301", "[A", "0;1", "~")
EDITS = (b"\x1b[D", b"\x1b[C", b"\x1b[H", b"\x1b[F", b"\x7f", b"\x1b[3~")
PASTES = ("one\ntwo", "a paste " * 150, "\n".join(f"line {number}" for number in range(9)))

Item = tuple[str, str]
"""A character, key or paste: its kind, and what it is."""


@dataclass
class Typed:
    """What a user typed.

    Attributes:
        items: In order, as the agent should get it.
        submitted: What Enter submitted, had nobody else typed.
    """

    items: list[Item]
    submitted: list[str]


class TypingUser:
    """Presses keys as people and input methods do.

    Args:
        rig: Whose agent is typed to.
        chance: Decides what is typed and when.
    """

    def __init__(self, rig: Rig, chance: random.Random) -> None:
        self._rig = rig
        self._chance = chance
        self._sent: list[bytes] = []

    async def burst(self) -> None:
        chance = self._chance
        for _ in range(chance.randint(1, 6)):
            await self._one()
        if chance.random() < 0.2:
            await self._press(b"\x1b", 0.06)
        if chance.random() < 0.7:
            await self._press(b"\r", chance.choice((0.0, 0.01, 0.1)))

    async def finish(self) -> None:
        await self._press(b"x", 0.3)
        await self._press(b"\r", 0)

    async def _one(self) -> None:
        chance, kind = self._chance, self._chance.random()
        gap = chance.choice((0.0, 0.003, 0.03, 0.12))
        if kind < 0.6:
            await self._press(chance.choice(WORDS).encode(), gap)
        elif kind < 0.75:
            await self._press(encode_paste(chance.choice(PASTES), Modes(bracketed_paste=True)), gap)
        elif kind < 0.85:
            for char in "typed":
                await self._press(char.encode(), gap)
        else:
            await self._press(chance.choice(EDITS), gap)

    async def _press(self, data: bytes, gap: float) -> None:
        self._sent.append(data)
        self._rig.session.user_input(data)
        if gap:
            await asyncio.sleep(gap)

    def typed(self) -> Typed:
        """Everything up to now, as an agent that nobody else types to would take it."""
        composer, found = DummyComposer(), Typed([], [])
        for data in self._sent:
            decoder = KeyDecoder()
            for token in (*decoder.feed(data), *decoder.flush()):
                if isinstance(token, Key):
                    found.items.append(("key", token.name))
                    if token.name == "enter":
                        found.submitted += [composer.take()] if composer.text.strip() else []
                    else:
                        composer.press(token.name)
                elif isinstance(token, Text):
                    found.items += [("char", char) for char in token.text]
                    composer.insert(token.text)
                else:
                    found.items.append(("paste", token.text))
                    composer.paste(token.text)
        return found


def given(records: Sequence[dict[str, Any]]) -> list[Item]:
    """What the agent got of the user: keys, characters and pastes, without those of the messages."""
    items: list[Item] = []
    for record in records:
        event, text = record["event"], record.get("text", "")
        if event == "submit" and text.startswith(MINE):
            assert items.pop() == ("key", "enter"), "a message was submitted by something else than Enter"
        elif event == "key":
            items += _pressed(record)
        elif event == "paste" and not text.startswith(MINE):
            items.append(("paste", text))
    return items


def _pressed(record: dict[str, Any]) -> Iterator[Item]:
    if record["key"] == "text":
        yield from (("char", char) for char in record["text"])
    elif record["key"] != "ctrl+u":  # only the typist clears here
        yield "key", record["key"]


def submitted(records: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """What was submitted: the user's own lines, and the messages without what stands before them."""
    texts = [record["text"] for record in records if record["event"] == "submit"]
    messages = [text.partition("] ")[2] for text in texts if text.startswith(MINE)]
    return [text for text in texts if not text.startswith(MINE)], messages


def merged(records: Sequence[dict[str, Any]]) -> list[str]:
    drafts = [record["text"] for record in records if record["event"] == "draft" and MINE in record["text"]]
    return [draft for draft in drafts if not draft.startswith(MINE) or draft.count(MINE) > 1]
