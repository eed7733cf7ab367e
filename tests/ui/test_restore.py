"""The question about a lost workspace."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.core.model import AgentSpec
from synapse_tui.daemon.display import Display, Opening
from synapse_tui.system.trust import UntrustedFile
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.application import Quit
from synapse_tui.ui.screens.questions import NotStarted, RestoreOffer, RestoreQuestion, TrustQuestion
from tests.ui.app_kit import at_rest, running, text_of, until
from tests.ui.fakes import FakeHost


def offer(waiting: Callable[[], Awaitable[int]]) -> RestoreOffer:
    async def open_them(_sizes: object) -> list[NotStarted]:
        return []

    saved_at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    return RestoreOffer(["claude  /work"], saved_at, True, {}, open_them, lambda: None, waiting, list)


@pytest.mark.parametrize(("count", "told"), [(1, "1 message waits"), (3, "3 messages wait"), (0, "")])
async def test_it_tells_how_many_messages_wait(count: int, told: str) -> None:
    counted = asyncio.Event()

    async def waiting() -> int:
        await counted.wait()
        return count

    async with running(FakeHost(), restore=offer(waiting)) as (app, pilot):
        assert isinstance(app.screen, RestoreQuestion)
        await until(lambda: "claude  /work" in text_of(app))
        assert "without being closed (saved 2026-01-0" in text_of(app)
        assert "wait" not in text_of(app), "the question does not wait for the count"
        assert "messages are being counted" in text_of(app)
        assert not app.main.deck.empty, "what to do without agents is said after the answer"
        counted.set()
        await pilot.pause()
        await until(lambda: told in text_of(app))
        assert ("wait" in text_of(app)) == bool(told)
        assert "counted" not in text_of(app)
        assert "It resumes its last conversation" in text_of(app)
        assert "them" not in text_of(app)
        at_rest(app)
        await pilot.press("escape")
        await until(lambda: "no agents here yet" in app.main.deck.empty)


@pytest.mark.parametrize(
    ("history", "lost"),
    [
        (True, "Drafts and the cards of answers are lost either way; the answers are in the history."),
        (False, "Drafts and unread answers are lost either way."),
    ],
)
async def test_it_says_what_is_lost_either_way(history: bool, lost: str) -> None:
    counted = asyncio.Event()

    async def waiting() -> int:
        await counted.wait()
        return 1

    settings: dict[str, Any] = {"env.SYNAPSE_HISTORY_ENABLED": history}
    async with running(FakeHost(**settings), restore=offer(waiting)) as (app, _pilot):
        await until(lambda: lost in " ".join(text_of(app).replace("▌", "").split()))
        counted.set()
        await until(lambda: "1 message waits" in text_of(app))
        shown = " ".join(text_of(app).replace("▌", "").split())
        assert lost in shown
        assert "nothing is lost" not in shown


@pytest.mark.parametrize(("wanted", "opened"), [(True, ["dummy"]), (False, ["dummy", "shell", "codex"])])
async def test_what_was_asked_for_is_opened_beside_the_lost_workspace(
    wanted: bool, opened: list[str]
) -> None:
    host = FakeHost()

    async def none() -> int:
        return 0

    def missing(specs: Sequence[AgentSpec]) -> list[AgentSpec]:
        return [spec for spec in specs if spec.profile != "shell"]

    asked = [AgentSpec("dummy", args=("--log", "F")), AgentSpec("shell")]
    offered = dataclasses.replace(offer(none), missing=missing)
    async with running(host, restore=offered, specs=asked, defaults=[AgentSpec("codex")]) as (app, pilot):
        at_rest(app)
        await pilot.press("tab", "y" if wanted else "n")
        await until(lambda: [spec.profile for spec in host.opened] == opened)


@pytest.mark.parametrize("wanted", [True, False])
async def test_what_else_is_to_be_opened_waits_for_the_answer(wanted: bool) -> None:
    host, lost = FakeHost(), asyncio.Event()

    async def none() -> int:
        return 0

    async def open_them(_sizes: object) -> list[NotStarted]:
        lost.set()
        return []

    offered = dataclasses.replace(offer(none), open=open_them)
    async with running(host, restore=offered) as (app, pilot):
        app.open_agents([AgentSpec("dummy")])  # a client came later than the question
        await pilot.pause()
        assert not host.opened
        at_rest(app)
        await pilot.press("tab", "y" if wanted else "n")
        await until(lambda: lost.is_set() if wanted else host.opened)
        await pilot.pause()
        await until(lambda: [spec.profile for spec in host.opened] == ["dummy"])
        app.open_agents([AgentSpec("dummy", "later")])
        await until(lambda: "later" in [spec.name for spec in host.opened])


async def test_an_offer_outlives_an_application_that_fails_before_its_answer(monkeypatch) -> None:
    async def none() -> int:
        return 0

    host, offered = FakeHost(), offer(none)
    opening = Opening(specs=[AgentSpec("dummy")], restore=offered)
    display = Display(host, None, "", opening)  # type: ignore[arg-type]
    made: list[SynapseApp] = []

    class Failing(SynapseApp):
        async def run_async(self, **_options: object) -> None:
            raise RuntimeError

    def make() -> SynapseApp:
        begin, display._opening = display._opening, Opening()
        made.append(Failing(host, specs=begin.specs, restore=begin.restore))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(display, "_make_app", make)
    for _ in range(2):
        assert isinstance(await display._run_once(), RuntimeError)
        assert display.offering
    assert made[1].unanswered is offered
    assert made[1].requested == ([AgentSpec("dummy")], [])


async def test_agents_that_are_opened_unasked_do_not_wait_for_trust(tmp_path: Path) -> None:
    host, opened = FakeHost(), asyncio.Event()
    host.profiles.untrusted.append(UntrustedFile(tmp_path / "settings.json", "0" * 64, "{}", changed=True))

    async def none() -> int:
        return 0

    async def open_them(_sizes: object) -> list[NotStarted]:
        opened.set()
        return []

    offered = dataclasses.replace(offer(none), ask=False, open=open_them)
    async with running(host, restore=offered, trust=lambda: None) as (app, _pilot):
        await until(opened.is_set)
        await until(lambda: isinstance(app.screen, TrustQuestion))


async def test_the_waiting_messages_are_counted_again(monkeypatch):
    monkeypatch.setattr("synapse_tui.ui.screens.questions.COUNT_SECONDS", 0.05)
    left = [2]

    async def waiting() -> int:
        return left[0]

    async with running(FakeHost(), restore=offer(waiting)) as (app, _pilot):
        await until(lambda: "2 messages wait" in text_of(app))
        left[0] = 0  # they were canceled by a command
        await until(lambda: "wait" not in text_of(app))


@pytest.mark.parametrize("dialog", ["leave", "restore"])
async def test_paragraphs_of_a_dialog_are_one_blank_row_apart(dialog):
    async def waiting() -> int:
        return 3

    async with running(FakeHost(), (80, 24)) as (app, pilot):
        leaves = dialog == "leave"
        app.push_screen(
            Quit("Leave?", "Quitting stops it.", "Stop")
            if leaves
            else RestoreQuestion(offer(waiting), history=True)
        )
        word = "Quitting stops" if leaves else "3 messages wait"
        await until(lambda: word in text_of(app))
        await pilot.pause()
        box = app.screen.query_one(".dialog").region
        rows = [row.strip(" ▌") for row in text_of(app).splitlines()[-24:][box.y : box.bottom]]
        assert all(one or other for one, other in pairwise(rows))
