"""Adds an external agent: its URL, what its card says, and only then whether it is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from synapse_tui.a2a.external.registry import AddRequest, Candidate, ExternalAgent, read_header
from synapse_tui.errors import InvalidValue, SynapseError
from synapse_tui.widgets.text import one_line

from .dialog import BUSY, Form, label

Find = Callable[[AddRequest], Awaitable[Candidate]]
Keep = Callable[[Candidate], Awaitable[ExternalAgent]]


class AddExternal(Form[str]):
    """Leaves with the alias of the agent when it was added.

    Args:
        find: Finds an agent as it would be kept.
        keep: Keeps it.
    """

    VERB: ClassVar[str] = "Look"
    TITLE_TEXT: ClassVar[str] = "Add external agent"
    SUBTITLE: ClassVar[str] = "Tab next field · Enter looks at its card · Esc cancels"
    AUTO_FOCUS = "#url"

    def __init__(self, find: Find, keep: Keep) -> None:
        super().__init__()
        self._find = find
        self._keep = keep
        self._offer: Candidate | None = None

    def body(self) -> ComposeResult:
        """The fields, and below them what was found."""
        yield label("URL of the agent, or of its card", "label -first")
        yield Input(id="url", placeholder="https://agent.example.com", max_length=2000, compact=True)
        yield label("Alias")
        yield Input(id="alias", placeholder="made of its name", compact=True)
        yield label("Environment variable with a bearer token")
        yield Input(id="token", placeholder="none", max_length=100, compact=True)
        yield label("Header")
        yield Input(
            id="header", placeholder="none, or NAME: VALUE", max_length=4000, compact=True, password=True
        )
        with VerticalScroll(id="found", classes="body"):
            yield Static("", id="card", markup=False)

    def buttons(self) -> ComposeResult:
        """Look, add and cancel."""
        yield Button("Look at its card", id="look", variant="primary", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
        """Nothing was found yet."""
        self.query_one("#found").display = False

    @on(Input.Changed)
    def _changed(self) -> None:
        """What was found is no longer what is asked for."""
        if self._offer is not None:
            self._show(None)

    def submit(self) -> None:
        """Look at the card, or keep the agent when its card is on the screen."""
        offer = self._offer
        if offer is not None:
            self.attempt(lambda: self._kept(offer))
            return
        try:
            order = self._order()
        except InvalidValue as error:
            self.show_error(error)
            return
        if not self.busy:
            self.busy = True
            self.show_error("")
            self._subtitle(BUSY)
            self.run_worker(self._look(order), exit_on_error=False, group="look", exclusive=True)

    async def _kept(self, offer: Candidate) -> str:
        return (await self._keep(offer)).alias

    async def _look(self, order: AddRequest) -> None:
        try:
            offer = await self._find(order)
        except SynapseError as error:
            self._failed(error)
        else:
            if self.is_current:
                self._subtitle(self.SUBTITLE)
                self._show(offer)
                self._become_ready()
        finally:
            self.busy = False

    def _show(self, offer: Candidate | None) -> None:
        self._offer = offer
        self.query_one("#found").display = offer is not None
        self.query_one("#look", Button).label = "Add it" if offer is not None else "Look at its card"
        if offer is None:
            self._subtitle(self.SUBTITLE)
            return
        self._subtitle("Enter adds it · Esc cancels")
        self.query_one("#card", Static).update(offer_text(offer))

    def _order(self) -> AddRequest:
        url = self.query_one("#url", Input).value.strip()
        if not url:
            raise InvalidValue("there is no URL yet", "give it as https://HOST")
        header = self.query_one("#header", Input).value.strip()
        return AddRequest(
            url,
            alias=self.query_one("#alias", Input).value.strip(),
            headers=dict([read_header(header)]) if header else {},
            token_env=self.query_one("#token", Input).value.strip().removeprefix("$"),
        )


def offer_text(offer: Candidate) -> Content:
    """What was found, with what a person should know first."""
    return Content.assemble(
        *((f"▲ {one_line(warning)}\n", "$state-waiting") for warning in offer.warnings),
        card_text(offer.agent, brief=True),
    )


def card_text(agent: ExternalAgent, *, brief: bool = False) -> Content:
    """What is known of an agent, and what it says of itself.

    Args:
        agent: The agent.
        brief: Whether it is not added yet, and little room.
    """
    left_out = ("card hash", "added", "last seen", "card") if brief else ()
    parts: list[tuple[str, str]] = []
    for name, value in agent.facts():
        if name not in left_out:
            parts += [(f"{name:<12} ", "$ink-muted"), (f"{one_line(value)}\n", "$ink")]
    if agent.description:
        parts += [("\n", ""), (f"{agent.description}\n", "$ink")]
    skills = agent.skills()
    if skills:
        parts.append(("\nskills\n", "bold $hot"))
    for name, told in skills[: 3 if brief else None]:
        parts += [(f"  {name}", "bold $ink"), (f"  {told}\n" if told else "\n", "$ink-muted")]
    if brief and len(skills) > 3:
        parts.append((f"  and {len(skills) - 3} more\n", "$ink-muted"))
    return Content.assemble(*parts).rstrip()
