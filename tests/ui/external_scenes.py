"""Scenes of external agents for snapshots."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from synapse_tui.a2a.external.peer import TaskUpdate, artifact_of, piece_of
from synapse_tui.a2a.external.registry import Candidate, ExternalAgent, Interface
from synapse_tui.core.content import Part, TaskMessage
from synapse_tui.core.model import USER, Sender, TaskState
from synapse_tui.ui.app import SynapseApp
from tests.ui.app_kit import LEADER, until
from tests.ui.fakes import FakeHost

Run = Callable[[Pilot[None]], Awaitable[None]]

REPORT = """The lexer drops the last byte when a string ends at EOF. I looked at three places:

1. `src/lexer.rs:88`: the loop ends one too early, since `peek` returns None at the last byte.
2. `src/lexer.rs:140`: the same for raw strings.
3. 日本語のテキストも正しく折り返されます。全角文字は二つのセルを占めるので、行の終わりで切れてはいけません。

\tfn finish(&mut self) -> Token { self.flush() }"""


def said(text: str, message_id: str = "q") -> TaskMessage:
    return TaskMessage(message_id, "agent", (Part(text=text),))


def talk(host: FakeHost, alias: str = "docs") -> None:
    externals = host.externals
    conversation = externals.add(alias, name="Docs Agent")
    task = conversation.begin("review src/lexer.rs, please: does it drop bytes?", USER, expected=False)
    reading = said("reading src/lexer.rs", "p1")
    conversation.apply(task.id, TaskUpdate("r1", "c1", TaskState.WORKING, reading))
    conversation.apply(task.id, piece_of("r1", "c1", artifact_of((Part(text=REPORT),), artifact_id="a1")))
    conversation.apply(task.id, TaskUpdate("r1", "c1", TaskState.COMPLETED))
    codex = Sender("synapse-codex-8120", "codex", verified=True)
    failed = conversation.begin("and the parser?", codex, expected=True)
    conversation.apply(failed.id, TaskUpdate("r2", "c1", TaskState.WORKING))
    conversation.fail(failed.id, "https://echo.example did not answer in time (is the agent running?)")
    asked = conversation.begin("写真のテストを書いてください", USER, expected=False)
    question = said("Which framework: pytest or unittest?")
    conversation.apply(asked.id, TaskUpdate("r3", "c1", TaskState.INPUT_REQUIRED, question))
    conversation.opened = True
    externals.told(alias, conversation.get(asked.id))


def streaming(host: FakeHost, alias: str = "docs") -> None:
    conversation = host.externals.add(alias, name="Docs Agent")
    task = conversation.begin("tell me of the lexer", USER, expected=False)
    begun = artifact_of((Part(text="It reads bytes, and"),), artifact_id="a")
    conversation.apply(task.id, piece_of("r1", "c1", begun))
    conversation.opened = True
    host.externals.told(alias, conversation.get(task.id))


def offer() -> Candidate:
    card = {
        "name": "Docs Agent",
        "description": "Answers questions about the documentation.",
        "capabilities": {"streaming": True},
        "skills": [
            {"name": "Search", "description": "finds pages"},
            {"name": "Explain", "description": "explains them [b]plainly[/b]"},
        ],
    }
    agent = ExternalAgent(
        "docs",
        "https://docs.example",
        card_url="https://docs.example/.well-known/agent-card.json",
        card=card,
        interface=Interface("https://docs.example/rpc"),
        token_env="DOCS_TOKEN",
    )
    return Candidate(
        agent, ("it asks for credentials: name a variable with a bearer token, or give a header",)
    )


async def _open(pilot: Pilot[None], alias: str = "docs") -> SynapseApp:
    app = pilot.app
    assert isinstance(app, SynapseApp)
    await until(lambda: app.begun and app.main.deck.pane(alias) is not None)
    app.main.go_to(alias)
    await pilot.pause()
    return app


async def _talk(pilot: Pilot[None]) -> None:
    await _open(pilot)


async def _typing(pilot: Pilot[None]) -> None:
    await _open(pilot)
    await pilot.press(*"pytest", "shift+enter", *"and 日本語")
    await pilot.pause()


async def _choosing(pilot: Pilot[None]) -> None:
    await _open(pilot)
    await pilot.press("f7", "up", "up")
    await pilot.pause()


async def _empty(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, SynapseApp)
    await until(lambda: app.begun)
    app.host.externals.add("docs", name="Docs Agent")  # type: ignore[attr-defined]
    app.perform("open_external", "docs")
    await until(lambda: app.main.active == "docs")
    await pilot.pause()


async def _sidebar(pilot: Pilot[None]) -> None:
    await _open(pilot)
    await pilot.press("f6")
    await pilot.pause()


async def _dialog(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, SynapseApp)
    await until(lambda: app.begun)
    app.host.externals.offer = offer()  # type: ignore[attr-defined]
    await pilot.press(LEADER, "e")
    await pilot.press(*"https://docs.example", "enter")
    await until(lambda: app.screen.query_one("#found").display)
    await pilot.pause()


async def _card(pilot: Pilot[None]) -> None:
    await _open(pilot)
    await pilot.press(LEADER, "w")
    await pilot.pause()


async def _tasks(pilot: Pilot[None]) -> None:
    app = await _open(pilot)
    app.perform("external_tasks", "docs")
    await pilot.pause()


SCENES: dict[str, tuple[Callable[[FakeHost], None] | None, Run]] = {
    "talk": (talk, _talk),
    "streaming": (streaming, _talk),
    "typing": (talk, _typing),
    "choosing": (talk, _choosing),
    "empty": (None, _empty),
    "sidebar": (talk, _sidebar),
    "dialog": (None, _dialog),
    "card": (talk, _card),
    "tasks": (talk, _tasks),
}
