"""Locks and changes of files in the application: the panel, the dialogs, the proof of life, the question."""

import asyncio
from collections.abc import Sequence

import pytest

from synapse_tui.core.events import LocksChanged, SettingsChanged
from synapse_tui.core.locks import ChangeType, Lock
from synapse_tui.core.model import AgentSpec
from synapse_tui.hooks.install import Consent
from synapse_tui.ui.app import SynapseApp
from tests.ui.app_kit import at_main, at_rest, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"
LONG = "packages/テキスト処理/src/deeply/nested/folders/字句解析器のテスト.py"


def safe() -> FakeHost:
    host = three_agents()
    host.safety.enabled = True
    return host


def panel(app: SynapseApp) -> str:
    region = app.main.sidebar.locks.region
    rows = text_of(app).splitlines()[region.y : region.bottom]
    return "\n".join(row[app.main.sidebar.region.x :] for row in rows)


async def test_the_panel_tells_file_holder_since_when_why_and_time_left() -> None:
    host = safe()
    host.safety.lock("src/lexer.py", CODEX, intent="fix the lexer", seconds=72)
    async with running(host, sidebar=True) as (app, pilot):
        await until(lambda: "lexer" in panel(app))
        await pilot.pause()
        assert "Locks" in panel(app)
        assert " src/lexer.py " in panel(app)
        assert " 3:48 " in panel(app)
        assert "codex · 1:12 · fix the lexer" in panel(app)
        host.safety.free("src/lexer.py")
        await until(lambda: "no files are locked" in panel(app))


async def test_before_the_locks_are_read_the_panel_does_not_say_that_there_are_none() -> None:
    host = safe()
    host.safety.lock("src/lexer.py", CODEX)
    read, gate = host.safety.locks, asyncio.Event()

    async def late() -> Sequence[Lock]:
        await gate.wait()
        return await read()

    host.safety.locks = late
    async with running(host, sidebar=True) as (app, pilot):
        await until(lambda: "Locks" in panel(app))
        await pilot.pause()
        assert "no files are locked" not in panel(app)
        gate.set()
        await until(lambda: "lexer" in panel(app))


def switch(host: FakeHost, *, enabled: bool) -> None:
    host.safety.enabled = enabled
    host.events.publish(SettingsChanged(("env.SYNAPSE_FILE_SAFETY_ENABLED",)))


async def test_the_panel_comes_and_goes_with_the_setting() -> None:
    host = three_agents()
    host.safety.lock("a.py", CODEX)
    async with running(host, sidebar=True) as (app, pilot):
        await pilot.pause()
        assert "Locks" not in text_of(app)
        switch(host, enabled=True)
        await until(lambda: "a.py" in panel(app))
        await pilot.press("f6", "tab")
        assert app.main.sidebar.locks.has_focus_within
        assert "lock it" in hints(app)
        switch(host, enabled=False)
        await until(lambda: "Locks" not in text_of(app))
        await until(lambda: app.main.sidebar.query_one("#agents").has_focus)
        assert "take" not in hints(app)


def hints(app: SynapseApp) -> str:
    return "\n".join(row[app.main.sidebar.region.x :] for row in text_of(app).splitlines()[-3:-1])


async def test_the_keys_of_a_lock_go_with_it() -> None:
    host = safe()
    for file in ("a.py", "b.py"):
        host.safety.lock(file, CODEX)
    async with running(host, sidebar=True) as (app, pilot):
        await until(lambda: "b.py" in panel(app))
        await pilot.press("f6", "tab")
        await until(lambda: "lock it" in hints(app))
        host.safety.free("a.py")
        await until(lambda: "a.py" not in panel(app))
        await until(lambda: "lock it" not in hints(app), lambda: hints(app))
        await pilot.press("down")
        await until(lambda: "lock it" in hints(app), lambda: hints(app))


async def test_nobody_looks_while_the_sidebar_is_closed() -> None:
    host = safe()
    async with running(host) as (app, pilot):
        await pilot.pause()
        host.safety.lock("a.py", CODEX)
        await pilot.pause()
        clock = app.main.sidebar.locks._clock
        assert clock is not None
        assert not clock._active.is_set(), "the clock stands still"
        assert host.safety.looks == 0
        await pilot.press("f6")
        await until(lambda: "a.py" in panel(app))
        assert clock._active.is_set()
        await pilot.press("f6")
        await until(lambda: not clock._active.is_set())
        looks = host.safety.looks
        host.events.publish(LocksChanged(CODEX))
        await pilot.pause()
        assert host.safety.looks == looks


async def test_enter_shows_the_file_and_a_person_releases_it() -> None:
    host = safe()
    host.safety.change("src/lexer.py", CLAUDE, ChangeType.CREATE, "1-40")
    host.safety.change("src/lexer.py", CODEX, lines="3-7")
    host.safety.lock("src/lexer.py", CODEX, intent="fix [b]it[/b]")
    async with running(host) as (app, pilot):
        await pilot.press("f10", *"locks", "enter")
        await until(lambda: app.main.sidebar.locks.has_focus_within)
        await until(lambda: "lexer" in panel(app))
        await pilot.press("down", "enter")
        await until(lambda: "for fix [b]it[/b]" in text_of(app))
        shown = text_of(app)
        assert "locked by codex" in shown
        assert "lines 3-7" in shown
        assert shown.index("changed") < shown.index("created"), "the newest first"
        await pilot.press("r")
        await until(lambda: "Release src/lexer.py?" in text_of(app))
        await pilot.press("n")
        await until(lambda: at_main(app))
        assert await host.safety.locks()
        await pilot.press("r", "y")
        await until(lambda: "codex held it" in app.main.status_bar.notice)
        assert not await host.safety.locks()


async def test_a_person_takes_a_lock_from_an_agent_after_a_question() -> None:
    host = safe()
    host.safety.lock("a.py", CODEX)
    async with running(host, sidebar=True) as (app, pilot):
        await until(lambda: "a.py" in panel(app))
        app.main.enter_locks()
        await pilot.press("t")
        await until(lambda: "Lock a.py yourself?" in text_of(app))
        assert "codex holds it" in text_of(app)
        await pilot.press("n")
        await until(lambda: at_main(app))
        assert [lock.agent_id for lock in await host.safety.locks()] == [CODEX]
        await pilot.press("t", "y")
        await until(lambda: "locked by you for 5 minutes; codex held it" in app.main.status_bar.notice)
        await until(lambda: "you" in panel(app))
        assert [lock.agent_id for lock in await host.safety.locks()] == ["user"]
        app.main.enter_locks()
        await pilot.press("enter")
        await until(lambda: "Renew (t)" in text_of(app))


async def test_locks_are_not_enforced_until_a_hook_was_heard() -> None:
    host = safe()
    host.safety.waiting = {CLAUDE}
    async with running(host) as (app, pilot):
        await pilot.pause()
        assert "locks not enforced" in text_of(app)
        await pilot.press("f4")
        assert "locks not enforced" not in text_of(app)
        await pilot.press("f3")
        host.safety.heard(CLAUDE)
        await until(lambda: "locks not enforced" not in text_of(app))


@pytest.mark.parametrize(
    ("keys", "answer", "told"),
    [
        (["tab", "y"], Consent.YES, "from its next start"),
        (["tab", "n"], Consent.LATER, ""),
        (["escape"], Consent.LATER, ""),
        (["right", "right", "right", "enter"], Consent.NEVER, "runs without"),
    ],
)
async def test_hooks_that_must_be_installed_are_asked_for_once(
    keys: list[str], answer: Consent, told: str
) -> None:
    host = safe()
    async with running(host) as (app, pilot):
        gemini = f"synapse-gemini-{8111}"
        host.safety.asks = {gemini}
        host.add(AgentSpec("gemini"))
        await until(lambda: "Let Gemini lock files?" in text_of(app))
        at_rest(app)
        await pilot.press(*keys)
        await until(lambda: host.safety.answers == [(gemini, answer)])
        await until(lambda: told in app.main.status_bar.notice)
        assert at_main(app)
        host.add(AgentSpec("gemini"))
        await pilot.pause()
        assert at_main(app)
