"""Scenes for snapshots: a host in some state, and the keys that lead to what is looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from synapse_tui.agents.composer_box import Box
from synapse_tui.agents.state import Timeline
from synapse_tui.agents.watch import WatchOrder, WatchState
from synapse_tui.core.errors import CommandNotFound
from synapse_tui.core.events import Notice
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, ExitStatus, TaskState
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.records import Change
from synapse_tui.system.trust import UntrustedFile
from synapse_tui.ui.app import SynapseApp
from synapse_tui.widgets.terminal_view import TerminalView
from tests.ui.app_kit import LEADER, make_app, until
from tests.ui.fakes import NOW, FakeHost, FakeSession

Run = Callable[[Pilot[None]], Awaitable[None]]

CLAUDE = """\x1b[38;2;215;119;87m ▐▛███▜▌\x1b[0m   Claude Code v2.1\r
\x1b[38;2;215;119;87m▝▜█████▛▘\x1b[0m  ~/code/parser\r
\r
> fix the tokenizer so that nested quotes survive\r
\r
\x1b[32m●\x1b[0m I'll look at the tokenizer first.\r
\r
\x1b[32m●\x1b[0m \x1b[1mRead\x1b[0m(src/tokenizer.py)\r
  └ Read 214 lines\r
\r
\x1b[38;5;208m✻\x1b[0m Reticulating… \x1b[2m(12s · esc to interrupt)\x1b[0m\r
"""
CODEX = """>_ \x1b[1mOpenAI Codex\x1b[0m (v0.98)\r
\r
› review src/lexer.rs\r
\r
• The lexer drops the last byte when a string ends at EOF.\r
  日本語のテキストも崩れません。\r
"""


ANSWER = """**Yes**: `test_totals.py` covers it, with two currencies and an empty cart.

1. `Cart.total` keeps its signature
2. rounding is half to even, as `__round__` does

```python
assert total(Cart()) == 0
```
## Next

Rename it where you like
and tell me.
"""


def populate(host: FakeHost) -> None:
    claude = host.add(AgentSpec("claude"))
    codex = host.add(AgentSpec("codex"))
    gemini = host.add(AgentSpec("gemini", name="alice"))
    claude.feed(CLAUDE)
    codex.feed(CODEX)
    gemini.feed(
        "\x1b[34m✦\x1b[0m Gemini CLI\r\n\r\nApply this change?\r\n ● 1. Yes, allow once\r\n   2. No\r\n"
    )
    claude.become(AgentState.PROCESSING)
    codex.become(AgentState.READY)
    gemini.become(AgentState.WAITING, "permission: WriteFile src/a.py")
    host.message(
        codex.agent_id,
        "review src/lexer.rs, please: does it drop bytes at the end of the file?",
        sender=claude.agent_id,
        delivery=DeliveryState.DONE,
        state=TaskState.COMPLETED,
        answer="The lexer drops the last byte when a string ends at EOF.",
        minutes=12,
    )
    host.message(
        gemini.agent_id,
        "写真のテストを書いてください",
        sender=codex.agent_id,
        delivery=DeliveryState.HELD,
        reason="permission dialog open",
        minutes=2,
    )
    host.message(claude.agent_id, "when you are done, commit", delivery=DeliveryState.QUEUED, minutes=0.5)


def make(name: str, host: FakeHost, **options: Any) -> tuple[SynapseApp, Run]:
    layout = name.split("_")[1] if name.startswith("layout_") else "tabs"
    app = make_app(host, layout=layout, **options)
    if name != "launcher":
        populate(host)
    if name == "many":
        for number in range(7):
            host.add(AgentSpec("dummy", name=f"worker-{number}"))
    if name == "trust":
        content = "name: claude\ncommand: ./run-me.sh\n"
        host.profiles.untrusted.append(
            UntrustedFile(Path("/home/me/code/parser/evil.yaml"), "", content, changed=False)
        )
        app.application._trust = lambda: None
    return app, SCENES.get(name, press())


def press(*keys: str) -> Run:
    async def run(pilot: Pilot[None]) -> None:
        await _all_shown(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    return run


async def _all_shown(pilot: Pilot[None]) -> None:
    app = _app(pilot)
    await until(lambda: app.begun and len(app.main.deck.panes) == len(app.host.agents))
    await pilot.pause()


async def _ended(pilot: Pilot[None]) -> None:
    await _all_shown(pilot)
    host = _app(pilot).host
    next(iter(host.agents.values())).end(ExitStatus(code=3))  # type: ignore[attr-defined]
    await pilot.pause()


async def _delivery(pilot: Pilot[None]) -> None:
    app = _app(pilot)
    await _all_shown(pilot)
    app.messages.send_mention("synapse-claude-8100", "alice", "look at the diff, please", 3)
    await pilot.pause()
    sent = app.host.tasks[-1]
    app.host.change(sent.id, delivery=DeliveryState.HELD, reason="permission dialog open")  # type: ignore[attr-defined]
    app.host.events.publish(Notice("codex: the port 8120 is taken; it was opened on 8121", "warning"))
    await until(lambda: app.main.agents[2].held == 2)
    await until(lambda: app.screen.query("Toast") or app.main.status_bar.notice)


async def _answer(pilot: Pilot[None]) -> None:
    """An answer with another one under it, over a composer with a draft."""
    app = _app(pilot)
    host: FakeHost = app.host  # type: ignore[assignment]
    await _all_shown(pilot)
    app.answers.clock = lambda: 75.0
    asker, answerer = "synapse-claude-8100", "synapse-codex-8120"
    author = {"author": "user"}
    for text in (ANSWER, ANSWER.replace("two", "three")):
        question = host.message(answerer, "does a test cover rounding?", sender=asker, metadata=author)
        host.answer(question.id, text)
    await until(lambda: "+1" in getattr(app.main.deck.panes[0].answer, "words", ""))
    session = host.agents[asker]
    session.composer, session.draft = True, "and rename total to gross?"
    rule = "─" * session.terminal.columns
    session.feed(f"\x1b[{session.terminal.lines - 3};1H{rule}\r\n❯ {session.draft}\x1b7\r\n{rule}\x1b8")
    row = session.terminal.lines - 3
    session.box = Box(row, row, row, row, 2, frame=(1, 1))
    app.answers.clock = lambda: 83.0
    app.answers.look()
    await pilot.pause()


async def _read_answer(pilot: Pilot[None]) -> None:
    await _answer(pilot)
    await press(LEADER, "v")(pilot)


async def _splits(pilot: Pilot[None]) -> None:
    """Split twice and arrange; each step is made when the programs have their new sizes, as they reflow."""
    await _all_shown(pilot)
    for keys in ((), (LEADER, "%"), (LEADER, '"'), (LEADER, "o", "left")):
        await pilot.press(*keys)
        await pilot.pause()
        await until(lambda: all(view._settling is None for view in _app(pilot).main.query(TerminalView)))


async def _why(pilot: Pilot[None]) -> None:
    host: FakeHost = _app(pilot).host  # type: ignore[assignment]
    claude = next(iter(host.agents.values()))
    claude.timeline = Timeline(today=lambda: NOW + timedelta(seconds=host.clock()))
    past = (
        (-3700, AgentState.READY, "title star", "✳ Claude Code"),
        (-95, AgentState.PROCESSING, "title spinner", "⠂ fix the tokenizer so that nested quotes survive"),
        (-61.5, AgentState.WAITING, "permission dialog", "permission"),
        (-20, AgentState.PROCESSING, "title spinner", "⠐ fix the tokenizer so that nested quotes survive"),
        (-2.25, AgentState.WAITING, "permission dialog", "permission"),
    )
    for seconds, state, rule, matched in past:
        host.clock = lambda now=seconds: now  # type: ignore[misc]
        detail = "permission: Bash command · rm -r build" if state is AgentState.WAITING else ""
        claude.become(state, detail, rule=rule, matched=matched)
    host.clock = lambda: 0.0
    host.message(claude.agent_id, "review this", state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED)
    host.message(claude.agent_id, "the tests fail now", sender="synapse-codex-8120")
    for task in claude.tasks:
        if task.delivery is DeliveryState.QUEUED:
            host.change(task.id, delivery=DeliveryState.HELD, reason="permission dialog open")
    _inform(host, claude)
    await press(LEADER, "w")(pilot)


def _inform(host: FakeHost, agent: FakeSession) -> None:
    info = host.message(agent.agent_id, "I took the port 8080", sender="synapse-codex-8120", priority=1)
    agent.outbox.unread.add(info.id)
    host.change(info.id, delivery=DeliveryState.QUEUED, reason=Reason.IN_INBOX)


async def _inbox(pilot: Pilot[None]) -> None:
    host: FakeHost = _app(pilot).host  # type: ignore[assignment]
    await _all_shown(pilot)
    for agent in (*host.agents.values(), next(iter(host.agents.values()))):
        _inform(host, agent)
    await press("f6")(pilot)


async def _detail(pilot: Pilot[None]) -> None:
    host: FakeHost = _app(pilot).host  # type: ignore[assignment]
    await _all_shown(pilot)
    (held,) = (task for task in host.tasks if task.delivery is DeliveryState.HELD)
    reasons = (("queued", "accepted"), ("held", "working"), ("held", held.reason))
    host.steps[held.id] = [
        Change(held.id, held.created_at + timedelta(seconds=seconds * 7), "submitted", *step)
        for seconds, step in enumerate(reasons)
    ]
    await press("f6", "enter")(pilot)


async def _watched(pilot: Pilot[None]) -> None:
    """One agent is watched, another was until the watch gave up; the first watch is looked at."""
    host: FakeHost = _app(pilot).host  # type: ignore[assignment]
    await _all_shown(pilot)
    claude, codex, _gemini = host.agents.values()
    for session in (claude, codex):
        session.watcher.begin(WatchOrder())
        session.watcher.watch.sent = 2
    claude.watcher.watch.note("nudge 2 of 5 was sent")
    claude.watcher.tell()
    codex.watcher.end(WatchState.GAVE_UP, "gave up: it worked less than 10 s after each of the last 2 nudges")
    await press("f6", LEADER, "W")(pilot)


async def _error(pilot: Pilot[None]) -> None:
    _app(pilot).host.fail["open"] = CommandNotFound("codex", "codex", "npm install -g @openai/codex")  # type: ignore[attr-defined]
    await press(LEADER, "n", "down", "enter")(pilot)


def _app(pilot: Pilot[None]) -> SynapseApp:
    assert isinstance(pilot.app, SynapseApp)
    return pilot.app


SCENES: dict[str, Run] = {
    "sidebar": press("f6"),
    "leader": press(LEADER),
    "help": press("f1"),
    "splits": _splits,
    "composer": press("f2", "a"),
    "interrupt": press("f8"),
    "palette": press("f10", *"agent"),
    "new_agent": press(LEADER, "n"),
    "new_agent_error": _error,
    "rename": press(LEADER, "r"),
    "close": press(LEADER, "x"),
    "quit": press(LEADER, "q"),
    "why": _why,
    "inbox": _inbox,
    "detail": _detail,
    "watch_form": press(LEADER, "W"),
    "watch": _watched,
    "ended": _ended,
    "delivery": _delivery,
    "answer": _answer,
    "read_answer": _read_answer,
    "many": press("f3"),
}
