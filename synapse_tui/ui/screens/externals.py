"""External agents: add, open, message, inspect and remove them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from synapse_tui.a2a.external.registry import AddRequest, Candidate, ExternalAgent, read_header
from synapse_tui.core.errors import AddressError, InvalidValue, SynapseError
from synapse_tui.core.model import USER, Task
from synapse_tui.core.wording import moment, since, time_of
from synapse_tui.system.language import tr
from synapse_tui.widgets.conversation import ConversationPane, ConversationView
from synapse_tui.widgets.fit import pad, shorten
from synapse_tui.widgets.states import delivery_mark
from synapse_tui.widgets.text import one_line

from .dialog import Confirm, Form, ListDialog, Report, Row, label
from .messages import MessageActions
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.a2a.external.conversation import Conversation

_MENTION = re.compile(r"[@＠](\S+)\s+(\S.*)", re.DOTALL)


class ExternalActions:
    def __init__(self, app: Shell, messages: MessageActions) -> None:
        self._app = app
        self._main = app.main
        self._externals = app.host.externals
        self._messages = messages

    def action_add_external(self) -> None:
        def added(alias: str) -> None:
            self._app.notice(f"added @{alias}")
            self.action_open_external(alias)

        self._app.ask(AddExternal(self._externals.preview, self._externals.keep), added)

    def action_open_external(self, alias: str) -> None:
        if not self._externals.has(alias):
            self._app.notice(f"the external agent @{alias} no longer exists", "warning")
            return
        self._externals.set_opened(alias, opened=True)
        self._app.spawn(self._open(alias))

    async def _open(self, alias: str) -> None:
        await self._main.show_conversation(alias)
        if self._main.has_class("-whole"):
            self._main.remove_class("-sidebar")
        self._main.go_to(alias)

    def action_close_external(self, alias: str) -> None:
        """Close the tab; the conversation is saved and reopened by a new message."""
        self._externals.set_opened(alias, opened=False)

    def action_external_card(self, alias: str) -> None:
        try:
            agent = self._externals.get(alias)
        except SynapseError as error:
            self._app.notice_error(error)
        else:
            self._app.ask(Report(f"@{agent.alias}", card_text(agent, self._app.today())))

    def action_external_tasks(self, alias: str) -> None:
        conversation = self._externals.conversation(alias)
        if conversation is None or not conversation.tasks:
            self._app.notice(f"no messages to @{alias} yet")
        else:
            dialog = ListDialog(
                tr(f"Tasks of @{alias}"), lambda width: task_rows(conversation, width, self._app.today())
            )
            self._app.ask(dialog, self._messages.action_show)

    def action_cancel_external(self, alias: str) -> None:
        conversation = self._externals.conversation(alias)
        tasks: Sequence[Task] = conversation.tasks if conversation is not None else ()
        open_ = [task for task in tasks if not task.state.final]
        if open_:
            self._app.spawn(self._cancel(alias, open_[-1].id))
        else:
            self._app.notice(f"@{alias} has no open task of yours")

    async def _cancel(self, alias: str, task_id: str) -> None:
        await self._app.host.cancel_task(alias, task_id)
        self._app.notice(f"canceled the task of @{alias}")

    def action_new_external(self, alias: str) -> None:
        self._externals.begin_anew(alias)

    def action_scroll_external(self, alias: str) -> None:
        """Toggle between choosing entries of the conversation and writing."""
        pane = self._main.deck.pane(alias)
        if isinstance(pane, ConversationPane):
            self._main.go_to(alias)
            pane.talk.toggle_choosing()

    def action_not_external(self, alias: str) -> None:
        self._app.notice(
            f"@{alias} is an external agent: this works only for agents that run here", "warning"
        )

    def action_remove_external(self, alias: str) -> None:
        text = tr(
            f"The conversation with @{alias} in this project is deleted. The agent itself is not notified."
        )
        question = Confirm(tr(f"Remove @{alias}?"), text, tr("Remove it"))
        self._app.ask(question, lambda yes: self._app.spawn(self._remove(alias)) if yes else None)

    async def _remove(self, alias: str) -> None:
        await self._externals.remove(alias)
        self._app.notice(f"removed @{alias}")

    def send(self, view: ConversationView, text: str) -> None:
        """Send the text typed in an external agent's tab; `@agent text` goes to that agent instead."""
        self._app.spawn(self._send(view, text))

    async def _send(self, view: ConversationView, text: str) -> None:
        try:
            mention = self._mention(view.alias, text)
            if mention is not None:
                receipts = await self._app.host.send(mention[0], mention[1])
                self._app.notice(self._messages.sent(receipts))
            else:
                await self._externals.send(view.alias, text, sender=USER)
        except Exception:
            view.composer.give_back(text)
            raise

    def _mention(self, alias: str, text: str) -> tuple[str, str] | None:
        """Return address and message if the text mentions another agent."""
        found = _MENTION.fullmatch(text)
        if found is None:
            return None
        try:
            targets = self._app.host.resolve(found[1])
        except AddressError:
            return None
        return (found[1], found[2]) if [target.agent_id for target in targets] != [alias] else None


class AddExternal(Form[str]):
    """Fetches an agent's card, then adds the agent; closes with its alias."""

    VERB: ClassVar[str] = "Look"
    TITLE_TEXT: ClassVar[str] = "Add external agent"
    SUBTITLE: ClassVar[str] = "Tab next field · Enter shows its card · Esc cancels"
    AUTO_FOCUS = "#url"

    def __init__(
        self,
        find: Callable[[AddRequest], Awaitable[Candidate]],
        keep: Callable[[Candidate], Awaitable[ExternalAgent]],
    ) -> None:
        super().__init__()
        self._find = find
        self._keep = keep
        self._offer: Candidate | None = None

    def body(self) -> ComposeResult:
        yield label(tr("URL of the agent, or of its card"), "label -first")
        yield Input(id="url", placeholder="https://agent.example.com", max_length=2000, compact=True)
        yield label(tr("Alias"))
        yield Input(id="alias", placeholder=tr("from its name"), compact=True)
        yield label(tr("Environment variable with a bearer token"))
        yield Input(id="token", placeholder=tr("none"), max_length=100, compact=True)
        yield label(tr("Header"))
        yield Input(
            id="header", placeholder=tr("none, or NAME: VALUE"), max_length=4000, compact=True, password=True
        )
        with VerticalScroll(id="found", classes="body"):
            yield Static("", id="card", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(tr("Show its card"), id="look", variant="primary", compact=True)
        yield Button(tr("Cancel"), id="cancel", compact=True)

    def on_mount(self) -> None:
        self.query_one("#found").display = False

    @on(Input.Changed)
    def _changed(self) -> None:
        if self._offer is not None:
            self._show(None)

    def submit(self) -> None:
        offer = self._offer
        if offer is not None:
            self.attempt(lambda: self._added(offer))
            return
        try:
            order = self._order()
        except InvalidValue as error:
            self.show_error(error)
            return
        if not self.busy:
            self._set_busy()
            self.run_latest(partial(self._look, order), "look")

    async def _added(self, offer: Candidate) -> str:
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
        self.query_one("#look", Button).label = tr("Add it") if offer is not None else tr("Show its card")
        self._subtitle(tr("Enter adds it · Esc cancels") if offer is not None else self.SUBTITLE)
        if offer is not None:
            self.query_one("#card", Static).update(offer_text(offer, datetime.now(UTC)))

    def _order(self) -> AddRequest:
        url = self.value("url")
        if not url:
            raise InvalidValue("the URL is missing", "enter it as https://HOST")
        header = self.value("header")
        return AddRequest(
            url,
            alias=self.value("alias"),
            headers=dict([read_header(header)]) if header else {},
            token_env=self.value("token").removeprefix("$"),
        )


def offer_text(offer: Candidate, now: datetime) -> Content:
    return Content.assemble(
        *((f"▲ {tr(one_line(warning))}\n", "$needs") for warning in offer.warnings),
        card_text(offer.agent, now, brief=True),
    )


def card_text(agent: ExternalAgent, now: datetime, *, brief: bool = False) -> Content:
    def ago(text: str) -> str:
        at = time_of(text)
        if at is None:
            return text
        age = (now - at).total_seconds()
        # What is shown stays as it is, so that it counts no minutes.
        return tr("within the last hour") if age < 3600 else f"{since(age)}{tr(' ago')}"

    left_out = ("card hash", "added", "last seen", "card") if brief else ()
    parts: list[tuple[str, str]] = []
    facts = [(tr(name), one_line(value)) for name, value in agent.facts(ago) if name not in left_out]
    widest = max(cell_len(name) for name, _value in facts) + 2
    for name, value in facts:
        parts += [(pad(name, widest), "$muted"), (f"{value}\n", "$ink")]
    if agent.description:
        parts += [("\n", ""), (f"{agent.description}\n", "$ink")]
    skills = agent.skills()
    if skills:
        parts.append((tr("\nskills\n"), "bold $accent"))
    for name, about in skills[: 3 if brief else None]:
        parts += [(f"  {name}", "bold $ink"), (f"  {about}\n" if about else "\n", "$muted")]
    if brief and len(skills) > 3:
        parts.append((tr(f"  and {len(skills) - 3} more\n"), "$muted"))
    return Content.assemble(*parts).rstrip()


def task_rows(conversation: Conversation, width: int, now: datetime) -> Iterator[Row]:
    """Yield two lines per task, newest first: id, text, state, time; then reason or answer."""
    for task in reversed(conversation.tasks):
        mark = delivery_mark(task)
        head = f" {mark.glyph} {task.short_id}  "
        tail = f"{mark.word}  {moment(task.since, now)}"
        text = shorten(one_line(task.text), max(4, width - cell_len(head) - cell_len(tail) - 2))
        below = tr(one_line(task.reason)) or (f"↳ {one_line(task.answer)}" if task.answer else "")
        row = Content.assemble(
            (head, f"${mark.colour}"),
            (text, "bold $ink"),
            " " * max(1, width - cell_len(head) - cell_len(text) - cell_len(tail)),
            (tail, f"${mark.colour}"),
            ("\n     " + shorten(below, width - 5), "$muted"),
        )
        yield task.id, row
