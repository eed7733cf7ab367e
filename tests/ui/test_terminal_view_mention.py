"""Mentions typed over a pane: what is held, what is shown where, what reaches the agent in the end."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from textual import events
from textual.geometry import Offset, Size

from synapse_tui.core.addresses import Address, Completion
from synapse_tui.core.model import AgentState
from synapse_tui.messages.mention import MentionInterceptor, MentionView
from synapse_tui.widgets import mention_overlay
from synapse_tui.widgets.driver import TerminalKey
from synapse_tui.widgets.driver.tokenizer import KeyToken, TextToken, Tokenizer
from synapse_tui.widgets.fit import width_of
from synapse_tui.widgets.mention_overlay import (
    DrawnMention,
    draw_mention,
    place_mention,
    room_for_mention,
)
from synapse_tui.widgets.terminal_view import TerminalView
from synapse_tui.widgets.text import TypedRows
from synapse_tui.widgets.views import AgentView
from tests.ui.app_kit import until
from tests.ui.terminal_view_kit import FakeSession, PanesApp, pane, running, settle

AGENTS = [
    Address("synapse-claude-8100", "claude", "", 8100, "http://127.0.0.1:8100"),
    Address("synapse-gemini-8110", "gemini", "", 8110, "http://127.0.0.1:8110"),
    Address("synapse-codex-8120", "codex", "alice", 8120, "http://127.0.0.1:8120"),
]


def at_once() -> float:
    """A clock by which the screen shows in time what a key recalls."""
    return 0.0


class MentionApp(PanesApp):
    """Panes that hold mentions."""

    def __init__(
        self, *sessions: FakeSession, clock: Callable[[], float] = time.monotonic, **options: Any
    ) -> None:
        super().__init__(*sessions, **options)
        self.mentions = []
        self.clock = clock

    def make_view(self, session: FakeSession) -> TerminalView:
        return TerminalView(
            session,
            interceptor=MentionInterceptor(
                addresses=lambda: AGENTS, sender="synapse-claude-8100", clock=self.clock
            ),
        )

    def on_terminal_view_mentioned(self, message: TerminalView.Mentioned) -> None:
        self.mentions.append(message.mention)


def shown(app: PanesApp) -> str:
    return "\n".join(app.picture().display)


async def test_a_mention_is_held_completed_and_sent():
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20)) as (app, session, pilot):
        session.output("> ")
        await pilot.press("@", "g")
        await settle(pilot)
        assert session.taken() == b""
        assert "gemini" in shown(app)
        await pilot.press("tab", *"review this")
        await settle(pilot)
        assert "→ gemini" in shown(app)
        assert "review this" in shown(app)
        await pilot.press("enter")
        await settle(pilot)
        assert session.taken() == b""
        (mention,) = app.mentions
        assert (mention.address, mention.text) == ("synapse-gemini-8110", "review this")
        assert "gemini" not in shown(app)


async def test_a_mention_right_after_an_arrow_waits_for_the_screen_and_is_sent():
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20)) as (app, session, _):
        for key in ["up", *"@gemini", "space", "h", "i", "enter"]:
            app.view.on_key(events.Key(key, {"space": " ", "enter": "\r", "up": None}.get(key, key)))
        await until(lambda: app.mentions)
        assert [mention.text for mention in app.mentions] == ["hi"]
        assert session.taken() == b"\x1b[A"
        assert app.view.mention.drawn is None


async def test_a_draft_of_the_history_gets_the_mention_typed_behind_it():
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20), clock=at_once) as (app, session, _):
        for key in ["up", *"@gemini", "space", "h", "i", "enter"]:
            app.view.on_key(events.Key(key, {"space": " ", "enter": "\r", "up": None}.get(key, key)))
        session.output("> an old prompt")
        await until(lambda: session.input.endswith(b"\r"))
        assert session.taken() == b"\x1b[A@gemini hi\r"
        assert app.view.mention.drawn is None
        assert app.mentions == []


async def test_what_is_no_address_goes_to_the_agent_unchanged():
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20)) as (app, session, pilot):
        await pilot.press(*"@README.md")
        await settle(pilot)
        assert session.taken() == b"@README.md"
        assert app.view.mention.drawn is None


async def test_the_cursor_stands_in_what_is_typed():
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20)) as (app, session, pilot):
        session.output("\x1b[3;5H\x1b[?25l")
        await pilot.press(*"@gemini hi")
        await settle(pilot)
        picture = app.picture()
        assert picture.cursor.visible
        x, y = picture.cursor.x, picture.cursor.y
        assert picture.display[y][x - 2 : x] == "hi"
        assert y > 2
        await pilot.press("escape")
        await settle(pilot)
        picture = app.picture()
        assert (picture.cursor.x, picture.cursor.y, picture.cursor.visible) == (4, 2, False)
        assert session.taken() == b"@gemini hi"


async def test_enter_does_not_send_what_is_not_drawn():
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20)) as (app, session, pilot):
        await pilot.press(*"@gemini abc")
        await settle(pilot)
        app.view.mention.place_again(Size(0, 0), Offset(0, 0))
        app.view.on_key(events.Key("enter", "\r"))
        await settle(pilot)
        assert app.mentions == []
        app.view.mention.place_again(app.view.size, Offset(0, 0))
        await settle(pilot)
        await pilot.press("enter")
        assert [mention.text for mention in app.mentions] == ["abc"]
        assert session.taken() == b""


async def test_losing_the_focus_gives_back_what_is_held():
    first, second = FakeSession(40, 20), FakeSession(40, 20)
    app = MentionApp(first, second)
    async with running(app, (80, 20)) as pilot:
        await pilot.press(*"@gem")
        assert first.taken() == b""
        app.views[1].focus()
        await settle(pilot)
        assert first.taken() == b"@gem"
        assert app.views[0].mention.drawn is None


async def test_a_focus_that_moved_while_the_window_was_away_gives_back():
    first, second = FakeSession(40, 20), FakeSession(40, 20)
    app = MentionApp(first, second)
    async with running(app, (80, 20)) as pilot:
        await pilot.press(*"@gemini ab")
        app.post_message(events.AppBlur())
        await settle(pilot)
        app.views[1].focus()
        await settle(pilot)
        app.post_message(events.AppFocus())
        await settle(pilot)
        assert app.views[1].has_focus
        assert first.taken() == b"@gemini ab"
        assert app.views[0].mention.drawn is None


async def test_a_paste_goes_into_the_message():
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20)) as (app, session, pilot):
        await pilot.press(*"@gemini ")
        from textual.events import Paste

        app.view.post_message(Paste("two\nlines"))
        await settle(pilot)
        await pilot.press("enter")
        assert app.mentions[0].text == "two\nlines"
        assert session.taken() == b""


async def test_a_dialog_of_the_agent_is_never_intercepted():
    session = FakeSession(60, 20)
    session.composer = False
    app = MentionApp(session)
    async with running(app, (60, 20)) as pilot:
        await pilot.press("@", "g")
        assert session.taken() == b"@g"


def view(**changes: object) -> MentionView:
    values: dict[str, object] = {
        "composing": True,
        "address": "@gemini",
        "text": "hello",
        "cursor": 5,
        "target": "gemini",
        "completions": (),
        "selected": -1,
        "priority": 3,
    }
    return MentionView(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [8, 12, 20, 64, 200])
@pytest.mark.parametrize("height", [3, 4, 6, 20])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"text": "日本語 " * 40, "cursor": 120},
        {"text": "a\nb\n\n" * 10, "cursor": 3},
        {"text": "", "cursor": 0, "problem": "there is no message yet (type it)"},
        {"composing": False, "address": "@", "cursor": 1, "target": "", "selected": 0},
        {"composing": False, "address": "@c", "cursor": 2, "selected": 7},
        {"target": "", "selected": 1, "priority": 5},
    ],
)
def test_every_line_is_as_wide_as_the_frame_and_the_cursor_is_in_it(width, height, changes):
    if "selected" in changes:
        names = [f"agent-{number}" for number in range(9)]
        changes = changes | {"completions": tuple(Completion(name, (AGENTS[0],)) for name in names)}
    picture = draw_mention(view(**changes), width, height)
    assert {width_of(line) for line in picture.lines} == {picture.size.width}
    assert picture.size.height == len(picture.lines) <= max(3, height)
    assert picture.size.region.shrink((1, 2, 1, 2)).grow((0, 1, 0, 0)).contains_point(picture.cursor)


@pytest.mark.parametrize(
    ("text", "cursor", "rows", "place"),
    [
        ("", 0, [""], (0, 0)),
        ("abc", 3, ["abc"], (3, 0)),
        ("abcd", 4, ["abcd", ""], (0, 1)),
        ("abcdef", 2, ["abcd", "ef"], (2, 0)),
        ("abcdef", 4, ["abcd", "ef"], (0, 1)),
        ("a漢字b", 4, ["a漢", "字b"], (3, 1)),
        ("a\nb", 1, ["a", "b"], (1, 0)),
        ("a\nb", 2, ["a", "b"], (0, 1)),
        ("a\n", 2, ["a", ""], (0, 1)),
        ("abcd\ne", 4, ["abcd", "e"], (4, 0)),
        ("ab cd", 5, ["ab ", "cd"], (2, 1)),
        ("ab cdefg", 3, ["ab ", "cdef", "g"], (0, 1)),
        ("abcd ef", 4, ["abcd ", "ef"], (4, 0)),
        ("abcd ef", 5, ["abcd ", "ef"], (0, 1)),
        ("a 漢字", 4, ["a 漢", "字"], (2, 1)),
    ],
)
def test_wrapping_keeps_the_cursor_at_its_character(text, cursor, rows, place):
    wrapped = TypedRows()
    known, found = wrapped.around(text, cursor, 4, 9)
    assert ([wrapped[row] for row in range(known)], found) == (rows, Offset(*place))


@pytest.mark.parametrize("characters", ["ab \n", "a漢\n", "a❤\ufe0f\u0301\u200d👩"])
def test_a_change_wraps_as_if_all_of_the_text_were_new(characters):
    chance = random.Random(characters)
    typed, text = TypedRows(), ""
    for _ in range(400):
        at = chance.randint(0, len(text))
        change = "".join(chance.choices(characters, k=chance.choice((0, 1, 1, 1, 9))))
        text = text[:at] + change + text[at + chance.choice((0, 0, 1, 3)) :]
        fresh, cursor = TypedRows(), chance.randint(0, len(text))
        known, place = typed.around(text, cursor, 6, 6)
        known_fresh, place_fresh = fresh.around(text, cursor, 6, 6)
        assert place == place_fresh
        shown = range(max(0, place.y - 3), min(place.y + 3, known, known_fresh))
        assert [typed[row] for row in shown] == [fresh[row] for row in shown]


def test_receivers_are_shown_with_their_kind_and_state() -> None:
    alice, away = (
        Address("synapse-gemini-8110", "gemini", "alice", 8110, "http://127.0.0.1:8110"),
        Address("synapse-codex-8121", "codex", "", 8121, "http://127.0.0.1:8121", local=False),
    )
    gone = Address("synapse-claude-8101", "claude", "bob", 8101, "http://127.0.0.1:8101", live=False)
    agents = {alice.agent_id: AgentView(alice.agent_id, 1, "alice", "gemini", AgentState.PROCESSING)}
    offered = tuple(
        Completion(each.label if each.local else each.agent_id, (each,)) for each in (alice, away, gone)
    )
    choosing = view(composing=False, completions=(*offered, Completion("all", (alice, gone))), selected=1)
    picture = draw_mention(choosing, 64, 12, find=agents.get)
    rows = ["".join(piece.text for piece in line).rstrip() for line in picture.lines]
    assert rows == [
        "▌ message an agent",
        "▌ @gemini",
        "▌   alice               gemini    ◐ working",
        "▌ › synapse-codex-8121  codex     elsewhere",
        "▌   bob                 claude    × ended",
        "▌   all                 2 agents",
        "▌ Tab completes  Esc back",
    ]
    writing = draw_mention(view(target="alice", targets=(alice,)), 64, 12, find=agents.get)
    assert "".join(piece.text for piece in writing.lines[0]).startswith("▌ → alice  gemini    ◐ working")


@pytest.mark.parametrize("line", range(12))
def test_the_overlay_stays_in_the_pane_and_off_the_line_of_the_cursor(line):
    pane, anchor = Size(40, 12), Offset(0, line)
    height = min(6, room_for_mention(pane, anchor))
    row, _ = place_mention(pane, anchor, height)
    assert 0 <= row <= row + height <= pane.height
    assert not row <= line < row + height


async def test_a_look_at_another_window_leaves_the_mention_as_it_is():
    first, second = FakeSession(40, 20), FakeSession(40, 20)
    app = MentionApp(first, second)
    async with running(app, (80, 20)) as pilot:
        await pilot.press(*"@gemini ab")
        app.post_message(events.AppBlur())
        await settle(pilot)
        assert not app.views[0].has_focus
        app.post_message(events.AppFocus())
        await settle(pilot)
        assert app.views[0].has_focus
        assert first.taken() == b""
        await pilot.press("c", "enter")
        assert [mention.text for mention in app.mentions] == ["abc"]


@pytest.mark.parametrize("key", ["x", "\x1b[D"])
async def test_keys_that_come_together_are_drawn_together(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing a mention for each of thousands of keys would let nothing else of the host have its turn."""
    drawn: list[MentionView] = []

    def counted(view: MentionView, *arguments: Any) -> DrawnMention:
        drawn.append(view)
        return draw_mention(view, *arguments)

    monkeypatch.setattr(mention_overlay, "draw_mention", counted)
    async with pane(FakeSession(60, 20), MentionApp, size=(60, 20), clock=at_once) as (app, session, pilot):
        session.output("> ")
        await pilot.press("@", "g", "e", "m", "i", "n", "i", "space")
        drawn.clear()
        for token in Tokenizer().feed((key * 300).encode()):
            for each in token.singly() if isinstance(token, TextToken) else [token]:
                assert isinstance(each, KeyToken)
                app.post_message(TerminalKey(each.event, each.raw))
        await settle(pilot)
        assert drawn[-1].text == ("x" * 300 if key == "x" else "")
        assert len(drawn) <= 30, "not one for each of 300 keys"
