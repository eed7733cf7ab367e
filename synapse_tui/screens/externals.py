"""What can be done with external agents: add, open, write, cancel, look at, remove."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.a2a.external.registry import AddRequest, Candidate, ExternalAgent, read_header
from synapse_tui.durations import moment
from synapse_tui.errors import AddressError, InvalidValue, SynapseError
from synapse_tui.model import USER, Task
from synapse_tui.widgets.conversation import ConversationPane, ConversationView
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.text import one_line, shorten
from synapse_tui.widgets.views import delivery_mark

from .dialog import BUSY, Confirm, Dialog, Form, Report, label
from .messages import MessageCommands

if TYPE_CHECKING:
    from synapse_tui.a2a.external.conversation import Conversation

Find = Callable[[AddRequest], Awaitable[Candidate]]
Keep = Callable[[Candidate], Awaitable[ExternalAgent]]


class AddExternal(Form[str]):
    """Leaves with the alias of the agent when it was added."""

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
        yield Button("Look at its card", id="look", variant="primary", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
        self.query_one("#found").display = False

    @on(Input.Changed)
    def _changed(self) -> None:
        if self._offer is not None:
            self._show(None)

    def submit(self) -> None:
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
    """What is known of an agent, and what it says of itself."""
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


class ExternalTasks(Dialog[str]):
    """Leaves with the id of a task that is to be shown whole."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter shows it whole · Esc closes"
    AUTO_FOCUS = "#tasks"

    def __init__(self, alias: str, look: Callable[[], Sequence[Task]], now: Callable[[], datetime]) -> None:
        super().__init__()
        self._alias = alias
        self._look = look
        self._now = now

    def title_text(self) -> str:
        return f"Tasks of @{self._alias}"

    def body(self) -> ComposeResult:
        yield Choices(id="tasks", markup=False, compact=True)

    def buttons(self) -> ComposeResult:
        yield Button("Close", id="close", compact=True)

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_news)

    def show_news(self) -> None:
        view = self.query_one("#tasks", OptionList)
        width, now, marked = view.size.width - 1, self._now(), view.highlighted
        if width > 0:
            view.clear_options()
            view.add_options([Option(_row(each, width, now), id=each.id) for each in reversed(self._look())])
            view.highlighted = marked or 0

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    @on(Button.Pressed)
    def _pressed(self) -> None:
        self.dismiss(None)


def _row(task: Task, width: int, now: datetime) -> Content:
    """Two lines: id, how far, since when; the message, or why."""
    mark = delivery_mark(task)
    head = f" {mark.glyph} {task.short_id}  "
    tail = f"{mark.word}  {moment(task.updated_at, now)}"
    text = shorten(one_line(task.text), max(4, width - cell_len(head) - cell_len(tail) - 2))
    below = one_line(task.reason) or (f"↳ {one_line(task.answer)}" if task.answer else "")
    return Content.assemble(
        (head, f"${mark.colour}"),
        (text, "bold $ink"),
        " " * max(1, width - cell_len(head) - cell_len(text) - cell_len(tail)),
        (tail, f"${mark.colour}"),
        ("\n     " + shorten(below, width - 5), "$ink-muted"),
    )


log = logging.getLogger(__name__)

_MENTION = re.compile(r"[@＠](\S+)\s+(\S.*)", re.DOTALL)
# What an action of hosted agents means where the tab of an external one has the keys
INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "close_agent": "close_external",
        "explain_state": "external_card",
        "interrupt": "cancel_external",
        "scroll": "scroll_external",
        "live": "scroll_external",
        "restart_agent": "new_external",
        "rename_agent": "not_external",
        "watch_agent": "not_external",
        "send_instructions": "not_external",
    }
)


class ExternalCommands(MessageCommands):
    """The part of the commands that is about external agents."""

    def for_external(self, action_id: str, agent_id: str) -> str:
        return INSTEAD.get(action_id, action_id) if self.host.externals.has(agent_id) else action_id

    def do_add_external(self, _agent_id: str, _task_id: str) -> None:
        externals = self.host.externals
        self._ask(AddExternal(externals.preview, externals.keep), self._added)

    def _added(self, alias: str) -> None:
        self.app.notice(f"@{alias} is added")
        self.do_open_external(alias, "")

    def do_open_external(self, alias: str, _task_id: str) -> None:
        if not self.host.externals.has(alias):
            self.app.notice(f"there is no external agent @{alias} any more", "warning")
            return
        self.host.externals.set_opened(alias, opened=True)
        self.run(self._open_external(alias))

    async def _open_external(self, alias: str) -> None:
        await self.main.show_talk(alias)
        if self.main.has_class("-overlay"):
            self.main.remove_class("-sidebar")
        self.main.go_to(alias)

    def do_close_external(self, alias: str, _task_id: str) -> None:
        """Close the tab; what was said stays, and a new message opens it again."""
        self.host.externals.set_opened(alias, opened=False)

    def do_external_card(self, alias: str, _task_id: str) -> None:
        try:
            agent = self.host.externals.get(alias)
        except SynapseError as error:
            self.app.notice_error(error)
        else:
            self._ask(Report(f"@{agent.alias}", card_text(agent)))

    def do_external_tasks(self, alias: str, _task_id: str) -> None:
        talk = self._talk(alias)
        if talk is None or not talk.tasks:
            self.app.notice(f"nothing was sent to @{alias} yet")
        else:
            tasks = ExternalTasks(alias, lambda: talk.tasks, self.today)
            self._ask(tasks, lambda task_id: self.do_show("", task_id))

    def do_cancel_external(self, alias: str, _task_id: str) -> None:
        talk = self._talk(alias)
        going = [task for task in talk.tasks if not task.state.final] if talk is not None else []
        if going:
            self.run(self._cancel_external(alias, going[-1].id))
        else:
            self.app.notice(f"@{alias} works on nothing of yours")

    async def _cancel_external(self, alias: str, task_id: str) -> None:
        await self.host.cancel_task(alias, task_id)
        self.app.notice(f"the task of @{alias} is canceled")

    def do_new_external(self, alias: str, _task_id: str) -> None:
        self.host.externals.begin_anew(alias)

    def do_scroll_external(self, alias: str, _task_id: str) -> None:
        pane = self.main.deck.pane(alias)
        if isinstance(pane, ConversationPane):
            self.main.go_to(alias)
            pane.talk.toggle_choosing()

    def do_not_external(self, alias: str, _task_id: str) -> None:
        self.app.notice(f"@{alias} is an external agent: that is for agents that run here", "warning")

    def do_remove_external(self, alias: str, _task_id: str) -> None:
        text = f"What was said with @{alias} in this project is deleted. The agent itself is not told."
        question = Confirm(f"Remove @{alias}?", text, "Remove it")
        self._ask(question, lambda yes: self.run(self._remove_external(alias)) if yes else None)

    async def _remove_external(self, alias: str) -> None:
        await self.host.externals.remove(alias)
        self.app.notice(f"@{alias} is removed")

    def send_talk(self, view: ConversationView, text: str) -> None:
        """Send what was written in the tab of an external agent; `@agent text` goes to that agent instead."""
        self.app.run_worker(self._send_talk(view, text), exit_on_error=False, group="talks")

    async def _send_talk(self, view: ConversationView, text: str) -> None:
        try:
            mention = self._mention(view.alias, text)
            if mention is not None:
                receipts = await self.host.send(mention[0], mention[1])
                self.app.notice(f"→ {self.summary(receipts)}")
            else:
                await self.host.externals.send(view.alias, text, sender=USER)
        except SynapseError as error:
            view.composer.give_back(text)
            self.app.notice_error(error)
        except Exception as error:
            log.exception("a message was not sent")
            view.composer.give_back(text)
            self.app.notice_error(error)

    def _mention(self, alias: str, text: str) -> tuple[str, str] | None:
        found = _MENTION.fullmatch(text)
        if found is None:
            return None
        try:
            targets = self.host.resolve(found[1])
        except AddressError:
            return None
        return (found[1], found[2]) if [each.agent_id for each in targets] != [alias] else None

    def _talk(self, alias: str) -> Conversation | None:
        return self.host.externals.conversation(alias)
