"""The watch over an agent that is left alone: asks for it, shows it, ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from synapse_tui.agents.watch.order import (
    CONTINUE_OR_REPLY,
    DEFAULT_EVERY,
    DEFAULT_TIMES,
    WatchOrder,
    seconds_text,
)
from synapse_tui.agents.watch.watch import WatchReport
from synapse_tui.errors import InvalidValue
from synapse_tui.widgets.text import printable

from .dialog import Dialog, Form, label

if TYPE_CHECKING:
    from synapse_tui.agents.watch.watcher import Watcher

SECOND = 1.0


class WatchForm(Form[str]):
    """Leaves with a sentence when the watch has begun."""

    VERB: ClassVar[str] = "Watch"
    SUBTITLE: ClassVar[str] = "Tab next field · Enter begins · Esc cancels"

    def __init__(self, agent: str, watcher: Watcher) -> None:
        super().__init__()
        self._agent = agent
        self._watcher = watcher

    def title_text(self) -> str:
        return f"Watch {self._agent}"

    def body(self) -> ComposeResult:
        yield label("Keeps its task going until the agent says that it is done.", "faint")
        with Horizontal(classes="row"):
            with Vertical():
                yield label("Nudge after seconds of rest")
                yield Input(f"{DEFAULT_EVERY:g}", id="every", max_length=8, compact=True)
            with Vertical(classes="-last"):
                yield label("At most so many times")
                yield Input(str(DEFAULT_TIMES), id="times", max_length=3, compact=True)
        yield label("What it is told")
        yield Input(id="nudge", placeholder=CONTINUE_OR_REPLY, compact=True)
        yield label("Done also when its answer matches (a regular expression)")
        yield Input(id="until", placeholder="none", compact=True)

    def submit(self) -> None:

        async def work() -> str:
            order = self._order()
            self._watcher.begin(order)
            rest = seconds_text(order.every)
            return f"{self._agent} is watched: nudged after {rest} of rest, at most {order.times} times"

        self.attempt(work)

    def _order(self) -> WatchOrder:
        return WatchOrder(
            every=_number(self._value("every"), "seconds of rest"),
            nudge=self._value("nudge"),
            times=int(_number(self._value("times"), "number of times")),
            until=self._value("until"),
        )

    def _value(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value.strip()


class WatchView(Dialog[str]):
    """Shows a watch; leaves with a sentence when it was ended."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "s stops the watch · ↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [Binding("s", "stop", show=False), Binding("q,enter", "leave", show=False)]

    def __init__(self, agent_id: str, agent: str, watcher: Watcher) -> None:
        super().__init__()
        self.agent_id = agent_id
        self._agent = agent
        self._watcher = watcher

    def title_text(self) -> str:
        return f"Watch over {self._agent}"

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static(self._text(), id="watch", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button("Stop watching (s)", id="stop", compact=True)
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        self.set_interval(SECOND, self.show_news)

    def show_news(self) -> None:
        self.query_one("#watch", Static).update(self._text())
        self.query_one("#stop", Button).display = self._watcher.on

    def action_stop(self) -> None:
        if self._watcher.on:
            self._watcher.stop("stopped by you")
            self.dismiss(f"{self._agent} is no longer watched")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "stop":
            self.action_stop()
        else:
            self.dismiss(None)

    def _text(self) -> Content:
        report = self._watcher.report
        return watch_text(report) if report is not None else Content("")


def watch_text(report: WatchReport) -> Content:
    head = f"watched {report.count}" if report.on else f"{report.state.value} {report.count}"
    helped = f", {report.helped} helped" if report.helped else ""
    parts: list[tuple[str, str]] = [
        (f"{head}{helped}", "bold $hot"),
        (f"  {printable(report.waits_for)}\n" if report.waits_for else "\n", "$ink"),
        (f"task {report.task_id[:8]}", "$ink-muted"),
        (f" · until '{printable(report.order.until)}'" if report.order.until else "", "$ink-muted"),
        ("\n\n", ""),
    ]
    for step in report.steps:
        parts += [
            (f"{step.at.astimezone():%H:%M:%S}  ", "$ink-faint"),
            (f"{printable(step.text)}\n", "$ink"),
        ]
    return Content.assemble(*parts).rstrip()


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidValue(f"'{text}' is no {what}", "give a number") from None
    if what == "number of times" and not number.is_integer():
        raise InvalidValue(f"'{text}' is no {what}", "give a whole number")
    return number
