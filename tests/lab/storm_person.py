"""A person at one agent's keyboard, who types key by key and looks at the screen."""

from __future__ import annotations

import asyncio
import time
from random import Random

from synapse_tui.core.model import AgentState
from synapse_tui.terminal.input import KeyEvent, encode_key, encode_paste
from tests.lab.lab_kit import Lab, squeezed
from tests.lab.storm_texts import draft_words

SEEN = 40.0
"""Seconds in which what was typed must stand in the composer; a message may be typed before it."""
GONE = 10.0
"""Seconds in which a prompt must have left the composer after Enter."""
FLICKER = 1.0
"""Seconds for which a composer that is being redrawn may show something else."""


class Person:
    """Types drafts and prompts; every one begins with a word of its own, by which it is found in the log.

    Args:
        lab: The agent.
        random: Decides how it is typed.
    """

    def __init__(self, lab: Lab, random: Random) -> None:
        self.prompts: list[str] = []
        """What was submitted, in order."""
        self.dropped: list[str] = []
        """Drafts that were cleared and must never be submitted."""
        self.held = 0
        """Keys that were held back because a message was being typed."""
        self.keys: set[bytes] = set()
        """What was pressed in dialogs."""
        self._lab = lab
        self._random = random
        self.hurries = False
        """Whether the keys follow one another as fast as somebody types who does not look."""
        self._text = ""
        self._place = 0
        self._count = 0

    @property
    def text(self) -> str:
        return self._text

    # -- typing ---

    async def begin(self, *words: str) -> None:
        assert not self._text, "one draft at a time"
        self._count += 1
        await self.type(f"usr{self._count:02}x{self._random.randrange(16**5):05x}")
        for word in words or draft_words(self._random, self._random.randint(1, 6)):
            await self.type(" ")
            await self.type(word)

    async def type(self, text: str) -> None:
        """Type a text: ASCII key by key, the rest as an input method commits it."""
        for piece in [text] if not text.isascii() else text:
            self._insert(piece)
            self._sends(self._encoded(piece))
            await self._pause()

    async def edit(self) -> None:
        """Change the end of the draft: take some of it back, put something in before the end, paste."""
        match self._random.choice(("back", "before", "more", "paste")):
            case "back":
                for _ in range(self._random.randint(1, min(4, len(self._text.split()[-1])))):
                    await self._backspace()
                await self.type("end")
            case "before":
                steps = self._random.randint(1, 3)
                for _ in range(steps):
                    await self._press("left")
                    self._place -= 1
                await self.type("in")
                for _ in range(steps):
                    await self._press("right")
                    self._place += 1
            case "paste":
                text = " pasted 文字 text"
                self._insert(text)
                self._sends(encode_paste(text, self._lab.session.terminal.modes))
                await self._pause()
            case _:
                for word in draft_words(self._random, 2):
                    await self.type(" ")
                    await self.type(word)

    async def _backspace(self) -> None:
        if len(self._text.split()) < 2:
            return  # the draft's own word stays
        self._text = self._text[: self._place - 1] + self._text[self._place :]
        self._place -= 1
        await self._press("backspace")

    def _insert(self, text: str) -> None:
        self._text = self._text[: self._place] + text + self._text[self._place :]
        self._place += len(text)

    async def _press(self, key: str) -> None:
        self._sends(encode_key(KeyEvent(key), self._lab.session.terminal.modes))
        await self._pause()

    def _sends(self, data: bytes) -> None:
        self.held += self._held()
        self._lab.session.user_input(data)

    def _encoded(self, piece: str) -> bytes:
        modes = self._lab.session.terminal.modes
        return b"".join(encode_key(KeyEvent.of_text(character), modes) for character in piece)

    async def _pause(self) -> None:
        if self.hurries:
            await asyncio.sleep(self._random.uniform(0.01, 0.06))
            return
        slow = self._random.random() < 0.03  # longer than it takes to count as not typing
        await asyncio.sleep(self._random.uniform(0.9, 1.6) if slow else self._random.uniform(0.03, 0.18))

    # -- looking ---

    def sees_draft(self) -> bool:
        reading = self._lab.session.reading()
        return reading.visible and squeezed(reading.draft) == squeezed(self._text)

    async def looks(self) -> None:
        await self._lab.until(self.sees_draft, f"the draft {self._text!r}", SEEN)

    async def leaves(self, seconds: float) -> None:
        await self.looks()
        end, wrong_since = time.monotonic() + seconds, 0.0
        while (now := time.monotonic()) < end:
            reading = self._lab.session.reading()
            if not reading.visible or self.sees_draft():
                wrong_since = 0.0
            else:
                wrong_since = wrong_since or now
                assert now - wrong_since < FLICKER, f"changed: {self._text!r}\n{self._lab.screen()}"
            await asyncio.sleep(0.02)
        await self.looks()

    # -- ending a draft ---

    async def submits(self, *, patient: bool = True) -> str:
        """Press Enter, once the draft is to be seen and, if patient, the agent is ready."""
        await self.looks()
        await asyncio.sleep(self._random.uniform(0.4, 1.0))
        if patient:
            await self._lab.state(AgentState.READY)
        self._sends(encode_key(KeyEvent("enter"), self._lab.session.terminal.modes))
        return await self._sent()

    async def submits_blindly(self) -> str:
        """Press Enter without having seen the draft, a moment after its last key; look only then."""
        await asyncio.sleep(self._random.uniform(0.05, 0.3))
        self._sends(encode_key(KeyEvent("enter"), self._lab.session.terminal.modes))
        text = await self._sent()
        await asyncio.sleep(self._random.uniform(0.5, 1.5))
        return text

    async def _sent(self) -> str:
        text = self._text
        self.prompts.append(text)
        self._lab.note(f"user submitted {text!r}")
        await self._lab.until(
            lambda: self._word not in self._lab.session.reading().draft and not self._held(),
            f"{text!r} to leave the composer",
            SEEN,
        )
        self._text, self._place = "", 0
        return text

    def _held(self) -> bool:
        return self._lab.session.keyboard.holding

    @property
    def _word(self) -> str:
        return self._text.split()[0] if self._text else "\0"

    async def clears(self) -> None:
        await self.looks()
        for _ in range(40):
            if self._lab.session.reading().empty:
                break
            for key in self._lab.profile.clear:
                self._sends(key)
                await asyncio.sleep(0.1)
        self.dropped.append(self._text)
        self._lab.note(f"user cleared {self._text!r}")
        word, self._text, self._place = self._word, "", 0
        await self._lab.until(
            lambda: word not in self._lab.session.reading().draft, f"{word} to leave the composer", GONE
        )

    # -- dialogs ---

    async def denies(self) -> None:
        session = self._lab.session
        for _ in range(3):
            await self._lab.until(
                lambda: not session.keyboard.guard.answers_in(session.console.now()), "a pause"
            )
            key = encode_key(KeyEvent("escape"), self._lab.session.terminal.modes)
            self.keys.add(key)
            self._sends(key)
            for _ in range(40):
                if self._lab.session.report.state is not AgentState.WAITING:
                    return
                await asyncio.sleep(0.05)
        raise AssertionError(f"the dialog stays\n{self._lab.screen()}")
