"""Many keys in one read do what the same keys do one by one, in their order and byte by byte."""

from __future__ import annotations

from typing import Any

import pytest
from textual.widgets import Input, TextArea

from synapse_tui.ui.app import SynapseApp
from synapse_tui.widgets.driver.input_events import TerminalKey, TerminalText
from synapse_tui.widgets.driver.tokenizer import KeyToken, TextToken, Tokenizer
from tests.ui.app_kit import at_main, running, three_agents, until
from tests.ui.fakes import FakeHost, FakeSession

RUN = "the quick brown 漢字 fox"
CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def feed(app: SynapseApp, text: str, *, whole: bool) -> None:
    """What the driver posts for one read of the terminal; with whole false as if the keys had come singly."""
    for token in Tokenizer().feed(text.encode()):
        if isinstance(token, TextToken) and whole:
            app.post_message(TerminalText(token.text))
        else:
            assert isinstance(token, TextToken | KeyToken)
            for key in token.singly() if isinstance(token, TextToken) else [token]:
                app.post_message(TerminalKey(key.event, key.raw))


def pieces_of(session: FakeSession, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    pieces: list[bytes] = []
    monkeypatch.setattr(session, "user_input", pieces.append)
    return pieces


async def test_plain_keys_reach_the_agent_as_one_piece(monkeypatch):
    host = three_agents()
    async with running(host) as (app, _pilot):
        pieces = pieces_of(host.agents[CLAUDE], monkeypatch)
        feed(app, f"a\r{RUN}\r{RUN}b", whole=True)
        await until(lambda: len(pieces) == 5)
        assert pieces == [b"a", b"\r", RUN.encode(), b"\r", f"{RUN}b".encode()]


async def test_each_key_is_encoded_for_the_child(monkeypatch):
    host = three_agents()
    async with running(host) as (app, _pilot):
        session = host.agents[CLAUDE]
        session.feed("\x1b[>9u")
        feed(app, RUN, whole=False)
        await until(lambda: session.typed.count(b"\x1b[") == len(RUN))
        singly = bytes(session.typed)
        pieces = pieces_of(session, monkeypatch)
        feed(app, RUN, whole=True)
        await until(lambda: pieces)
        assert pieces == [singly]


SCRIPTS = {
    "runs and keys": f"x{RUN}\r{RUN}\x7f\t{RUN}é",
    "a mention in a run": f"@codex {RUN}\r{RUN}",
    "an @ within a run": f"{RUN}@codex {RUN}\r",
    "a mention that is given up": f"@codex {RUN}\x1b[A{RUN}\r",
    "a leader before a run": f"{RUN}\x1d2{RUN}\r",
    "a leader alone before a run": f"\x1dzzz{RUN}{RUN}\r",
    "a dialog in between": f"{RUN}\x1dr\x15bob\r{RUN}\r",
    "scrolling in between": f"{RUN}\x1dc{RUN}q{RUN}\r",
    "the palette in between": f"\x1dpnone here\x03{RUN}{RUN}\r",
    "the composer in between": f"\x1dmcodex\t{RUN}{RUN}\x1b[D{RUN}\r{RUN}\r",
    "the receivers of the composer": f"\x1dmcodex{RUN}\x1b{RUN}\r",
}


END = "§"
"""Typed after each script: keys are handled in order, so all before it has been once it has arrived."""


async def outcome(script: str, *, whole: bool) -> object:
    """What agents and host were told by a script that comes in one read."""
    host = three_agents()
    async with running(host) as (app, pilot):
        feed(app, script + END, whole=whole)
        await until(lambda: has_arrived(app, host), "the last key")
        await pilot.pause()
        typed = {agent: bytes(session.typed) for agent, session in host.agents.items()}
        calls = [call for call in host.calls if call[0] != "resize"]
        return typed, calls, at_main(app), app.main.active, fields(app)


def has_arrived(app: SynapseApp, host: FakeHost) -> bool:
    """Whether the last key has reached an agent, or the field of a dialog."""
    typed = [session.typed.decode() for session in host.agents.values()]
    return any(END in text for text in [*typed, *fields(app)])


def fields(app: SynapseApp) -> list[str]:
    texts = [field.text for field in app.screen.query(TextArea)]
    return [*texts, *(field.value for field in app.screen.query(Input))]


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_in_one_read_does_what_its_keys_do(name):
    assert await outcome(SCRIPTS[name], whole=True) == await outcome(SCRIPTS[name], whole=False)


async def test_a_run_for_the_agent_that_a_key_before_it_chose():
    host = three_agents()
    async with running(host) as (app, _pilot):
        feed(app, f"{RUN}\x1d2{RUN}!", whole=True)
        await until(lambda: bytes(host.agents[CODEX].typed) == f"{RUN}!".encode())
        assert bytes(host.agents[CLAUDE].typed) == RUN.encode()


@pytest.mark.parametrize("opening", ["\x1dmcodex\t", "\x1dp", "\x1dh"])
async def test_keys_for_a_field_of_a_dialog_are_one_change_of_it(opening: str, monkeypatch):
    """A change costs more the longer the text is: one for each key would take minutes for a long text."""
    changes = 0
    for kind, name in ((TextArea, "edit"), (Input, "replace")):
        change = getattr(kind, name)

        def counted(*arguments: Any, change: Any = change) -> Any:
            nonlocal changes
            changes += 1
            return change(*arguments)

        monkeypatch.setattr(kind, name, counted)
    async with running(three_agents()) as (app, _pilot):
        feed(app, opening, whole=True)
        await until(lambda: app.screen is not app.main and app.screen.focused is not None)
        before = changes
        for _ in range(20):
            feed(app, RUN * 5, whole=True)
        await until(lambda: RUN * 100 in "".join(fields(app)), "all that was typed")
        assert changes - before <= 100, "of 2,300 keys"
        feed(app, END, whole=True)
        await until(lambda: END in "".join(fields(app)))
        assert "".join(fields(app)) == f"{RUN * 100}{END}", "each of them once"
