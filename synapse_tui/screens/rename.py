"""Asks for another name of an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Input

from .dialog import Form, label


class Rename(Form[str]):
    """Leaves when the name was taken; an empty name takes the old one away."""

    VERB: ClassVar[str] = "Rename"
    SUBTITLE: ClassVar[str] = "Enter renames · Esc cancels"

    def __init__(self, agent: str, name: str, rename: Callable[[str], None]) -> None:
        super().__init__()
        self._agent = agent
        self._name_before = name
        self._rename = rename

    def title_text(self) -> str:
        return f"Rename {self._agent}"

    def body(self) -> ComposeResult:
        yield label("Name, by which @name addresses it; empty for none")
        yield Input(self._name_before, id="name", compact=True)

    def submit(self) -> None:
        name = self.query_one(Input).value.strip().removeprefix("@")

        async def work() -> str:
            self._rename(name)
            return name

        self.attempt(work)
