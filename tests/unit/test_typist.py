"""Typing a message under proof, against a scripted composer in a time of its own."""

import dataclasses

import pytest

from synapse_tui.agents.delivery.typist import LATE, SETTLES, USER_WAITS, Typed, Typist
from synapse_tui.agents.profiles.profile import Submit
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import AgentState
from tests.unit.delivery_fakes import FakeAgent, make_profile

TEXT = "[A2A:01234567:user] hello there"


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


def typist(agent: FakeAgent, **submit: object) -> Typist:
    return Typist(agent, agent.keyboard, make_profile(submit=Submit(**{"pause": 0.05, **submit})))  # type: ignore[arg-type]


async def nothing() -> None:
    pass


async def test_text_and_enter_are_separate_writes_with_the_profiles_pause_between(agent):
    result = await typist(agent, pause=0.4).type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.received == [b"\x1b[200~" + TEXT.encode() + b"\x1b[201~", b"\r"]
    assert agent.submitted == [TEXT]
    assert agent.now() >= 100.4


async def test_enter_is_committed_before_it_is_pressed(agent):
    seen: list[list[bytes]] = []

    async def commit() -> None:
        seen.append(list(agent.received))

    await typist(agent).type(TEXT, commit)
    assert [b"\r" in received for received in seen] == [False]


async def test_without_a_note_that_survives_enter_is_not_pressed(agent):
    async def commit() -> None:
        raise HistoryError("history cannot be written: database or disk is full")

    result = await typist(agent).type(TEXT, commit)
    assert (result.outcome, result.entered) == (Typed.REMOVED, False)
    assert result.reason == "history cannot be written: database or disk is full"
    assert b"\r" not in agent.received
    assert agent.draft == ""


async def test_an_enter_that_was_swallowed_is_not_repeated_without_a_note(agent):
    agent.swallow = 1
    notes = iter([None, HistoryError("the disk is full")])

    async def commit() -> None:
        if error := next(notes):
            raise error

    result = await typist(agent, verify=0.5).type(TEXT, commit)
    assert (result.outcome, result.entered) == (Typed.LEFT, True)
    assert agent.received.count(b"\r") == 1


async def test_an_enter_that_was_not_given_is_offered_again(agent):
    agent.restless = 3
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, agent.submitted) == (Typed.SUBMITTED, [TEXT])
    assert agent.received.count(b"\r") == 1


async def test_an_agent_that_is_never_at_rest_gives_the_composer_back(agent):
    agent.restless = 100
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered, result.reason) == (Typed.REMOVED, False, "the agent is busy")
    assert (agent.draft, agent.submitted) == ("", [])


async def test_a_dialog_seen_when_enter_is_offered_again_is_left_alone(agent):
    agent.restless = 1
    offered = agent.press

    async def press(*arguments: object) -> object:
        seen = await offered(*arguments)
        agent.open_dialog()
        return seen

    agent.press = press
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.BLOCKED, False)
    assert not agent.approved


async def test_keys_are_shown_once_the_agent_rests(agent):
    typing = typist(agent)
    assert await typing.keys_are_shown(), "none was typed"
    agent.keyboard.press(b"x")
    agent.busy_until = agent.now() + 5
    assert not await typing.keys_are_shown()
    agent.time = agent.busy_until
    assert await typing.keys_are_shown()
    agent.reads_at = agent.now() + 1
    assert not await typing.keys_are_shown()
    agent.never_rests = True
    agent.keyboard.press(b"\r")
    assert await typing.keys_are_shown(), "Enter ends a draft"
    agent.keyboard.press(b"x")
    assert not await typing.keys_are_shown()
    agent.time += LATE
    assert await typing.keys_are_shown(), "not for ever"


async def test_no_enter_before_the_text_stands(agent):
    agent.echo_delay = 1.5
    await typist(agent).type(TEXT, nothing)
    assert agent.submitted == [TEXT]


async def test_a_text_that_never_appears_is_not_entered(agent):
    agent.on_paste = lambda _text: None
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.REMOVED, False)
    assert b"\r" not in agent.received


async def test_something_else_in_the_composer_is_not_entered(agent):
    agent.on_paste = lambda text: setattr(agent, "draft", "half a line" + text)
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.LEFT, False)
    assert agent.submitted == []
    assert agent.draft == "half a line" + TEXT


async def test_keys_that_follow_a_text_that_is_left_do_not_send_it(agent):
    agent.on_paste = lambda text: setattr(agent, "draft", "half a line" + text)
    agent.after(0.1, lambda: [agent.keyboard.press(key) for key in (b"o", b"k", b"\r", b"y\r")])
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.LEFT, False)
    while agent.keyboard.holding:
        await agent.changed(1)
    await agent.changed(1)
    assert agent.submitted == []
    assert agent.draft == "half a line" + TEXT + "oky"


async def test_a_text_of_many_rows_is_taken_out_row_by_row(agent):
    text = "\n".join(f"row {number}" for number in range(60))
    agent.on_paste = lambda text: setattr(agent, "draft", text + "?")
    agent.keys[b"\x15"] = lambda: agent.after(
        0.02, lambda: setattr(agent, "draft", agent.draft.rpartition("\n")[0])
    )
    begun = agent.now()
    result = await typist(agent).type(text, nothing)
    assert (result.outcome, result.entered) == (Typed.REMOVED, False)
    assert agent.draft == ""
    assert agent.now() - begun < 6


async def test_a_text_of_which_only_the_middle_is_seen_is_taken_out_again(agent):
    text = "".join(f"word {number} " for number in range(40))
    agent.on_paste = lambda text: setattr(agent, "draft", text[60:-30])
    result = await typist(agent).type(text, nothing)
    assert (result.outcome, result.entered) == (Typed.REMOVED, False)
    assert agent.draft == ""


async def test_a_text_that_cannot_be_proved_is_taken_out_again(agent):
    agent.on_paste = lambda text: setattr(agent, "draft", text + " and something unreadable")
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.REMOVED, False)
    assert agent.draft == ""
    assert agent.submitted == []


async def test_a_swallowed_enter_is_repeated_once(agent):
    agent.swallow = 1
    result = await typist(agent).type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.received.count(b"\r") == 2
    assert agent.submitted == [TEXT]


async def test_after_two_swallowed_enters_the_text_is_left_and_told(agent):
    agent.swallow = 9
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.LEFT, True)
    assert agent.received.count(b"\r") == 2
    assert agent.draft == TEXT


async def test_an_agent_that_is_slow_to_take_enter_gets_no_other_key_meanwhile(agent):
    """Some fetch the text only when they have done something else: whatever is in the composer by then."""
    agent.busy_until = agent.now() + 6
    agent.keys[b"\r"] = lambda: agent.after(5, agent._enter)
    agent.after(0.3, lambda: agent.keyboard.press(b"mine"))
    result = await typist(agent).type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.submitted == [TEXT]
    assert agent.received[1:] == [b"\r", b"mine"]


async def test_an_enter_that_is_taken_just_before_it_is_repeated_is_not_repeated(agent):
    agent.keys[b"\r"] = lambda: None
    commits = []

    async def commit() -> None:
        commits.append(agent.now())
        if len(commits) == 2:
            agent._enter()

    result = await typist(agent).type(TEXT, commit)
    assert result.outcome is Typed.SUBMITTED
    assert agent.received.count(b"\r") == 1


@pytest.mark.parametrize("moment", [0.0, 0.005, 0.02, 0.045])
async def test_no_enter_falls_into_a_dialog_that_opens_meanwhile(agent, moment):
    agent.after(moment, agent.open_dialog)
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.BLOCKED, False)
    assert not agent.approved
    assert b"\r" not in agent.received


async def test_a_dialog_that_is_not_parsed_yet_is_seen_before_enter(agent):
    """Its output waits in the kernel: looking takes it in."""

    async def commit() -> None:
        agent.after(0, agent.open_dialog)

    result = await typist(agent).type(TEXT, commit)
    assert result.outcome is Typed.BLOCKED
    assert b"\r" not in agent.received


async def test_no_enter_when_the_text_is_gone_again(agent):
    async def commit() -> None:
        agent.draft = ""

    result = await typist(agent).type(TEXT, commit)
    assert (result.outcome, result.entered) == (Typed.REMOVED, False)
    assert b"\r" not in agent.received


async def test_no_second_enter_into_a_dialog(agent):
    agent.swallow = 1
    agent.after(0.5, agent.open_dialog)
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.BLOCKED, True)
    assert not agent.approved


async def test_a_dialog_right_after_the_agent_began_to_work_means_submitted(agent):
    agent.after(0.1, agent.open_dialog)
    result = await typist(agent).type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert not agent.approved


async def test_keys_of_the_user_come_out_after_the_message(agent):
    agent.after(0.02, lambda: agent.keyboard.press(b"mine"))
    result = await typist(agent).type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.received[-1] == b"mine"
    assert agent.submitted == [TEXT]


async def test_keys_wait_for_a_composer_that_is_made_anew(agent):
    agent.after(0.02, lambda: agent.keyboard.press(b"mine"))
    typing = typist(agent, settle=1.0)
    result = await typing.type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.keyboard.holding
    assert b"mine" not in agent.received
    agent.visible = False
    agent.time += 3
    assert typing.settles_in() > 0.9
    agent.visible, agent.empty_since = True, agent.time
    agent.time += 0.5
    assert typing.settles_in() == pytest.approx(0.5)
    agent.time += 0.5
    assert typing.settles_in() == 0


async def test_keys_wait_no_longer_for_a_composer_that_does_not_come_back(agent):
    typing = typist(agent, settle=1.0)
    await typing.type(TEXT, nothing)
    agent.visible = False
    agent.time += SETTLES
    assert typing.settles_in() == 0


async def test_keys_wait_for_the_turn_of_an_agent_that_drops_what_comes_before(agent):
    agent.works_after_enter = False
    agent.after(0.02, lambda: agent.keyboard.press(b"mine"))
    typing = typist(agent, begin=3.0)
    result = await typing.type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.keyboard.holding
    assert typing.settles_in() == pytest.approx(3.0, abs=0.5)
    agent.time += 1
    agent.set_state(AgentState.PROCESSING)
    assert typing.settles_in() == 0


async def test_keys_wait_no_longer_for_a_turn_than_it_takes_to_begin(agent):
    agent.works_after_enter = False
    typing = typist(agent, begin=3.0)
    await typing.type(TEXT, nothing)
    agent.time += 3
    assert typing.settles_in() == 0


async def test_keys_do_not_wait_for_a_turn_that_has_begun(agent):
    agent.after(0.02, lambda: agent.keyboard.press(b"mine"))
    await typist(agent, begin=3.0).type(TEXT, nothing)
    assert agent.received[-1] == b"mine"


async def test_a_message_gives_way_when_it_does_not_appear_and_the_user_types(agent):
    agent.on_paste = lambda _text: None
    agent.after(0.1, lambda: agent.keyboard.press(b"mine"))
    result = await typist(agent).type(TEXT, nothing)
    assert result.outcome is Typed.REMOVED
    assert agent.received[-1] == b"mine"
    assert agent.now() < 100.1 + USER_WAITS + 0.2


async def test_text_without_effect_is_cleared_before_the_users_keys(agent):
    agent.swallow = 9
    agent.after(0.3, lambda: agent.keyboard.press(b"mine"))
    result = await typist(agent).type(TEXT, nothing)
    assert result.outcome is Typed.UNCERTAIN
    await agent.changed(1)
    assert agent.draft == "mine"
    assert agent.submitted == []


async def test_the_agents_end_is_told(agent):
    agent.after(0.02, lambda: setattr(agent, "alive", False))
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.EXITED, False)


async def test_an_agent_that_hides_its_composer_while_it_works_has_taken_it(agent):
    agent.after(0.075, lambda: setattr(agent, "visible", False))
    assert (await typist(agent).type(TEXT, nothing)).outcome is Typed.SUBMITTED


async def test_a_composer_that_vanishes_without_work_is_uncertain(agent):
    agent.works_after_enter = False
    agent.after(0.055, lambda: setattr(agent, "visible", False))
    result = await typist(agent).type(TEXT, nothing)
    assert (result.outcome, result.entered) == (Typed.UNCERTAIN, True)
    assert agent.received.count(b"\r") == 1


async def test_without_bracketed_paste_no_line_feed_is_typed(agent):
    agent.modes = dataclasses.replace(agent.modes, bracketed_paste=False)
    result = await typist(agent).type("first\nsecond\tthird", nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.received == [b"first second third", b"\r"]


async def test_typed_in_chunks_where_the_profile_says_so(agent):
    await typist(agent, method="typed", chunk=10, chunk_pause=0).type(TEXT, nothing)
    assert [len(data) for data in agent.received[:-1]] == [10, 10, 10, 1]
    assert agent.submitted == [TEXT]


async def test_an_agent_without_a_known_composer_is_proved_by_its_screen(agent):
    profile = make_profile(composer=None, submit=Submit(pause=0.05))
    result = await Typist(agent, agent.keyboard, profile).type(TEXT, nothing)
    assert result.outcome is Typed.SUBMITTED
    assert agent.submitted == [TEXT]


async def test_a_text_is_cleared_line_by_line(agent):
    agent.draft = "one\ntwo\nthree"
    agent.keys[b"\x15"] = lambda: agent.after(
        0.01, lambda: setattr(agent, "draft", agent.draft.rpartition("\n")[0])
    )
    assert await typist(agent).clear("one\ntwo\nthree")
    assert agent.draft == ""


async def test_what_is_not_the_text_is_never_cleared(agent):
    agent.draft = "the user's own words"
    assert await typist(agent).clear(TEXT)
    assert agent.received == []


async def test_a_text_that_stands_already_is_submitted(agent):
    agent.draft = TEXT
    assert (await typist(agent).submit(TEXT, nothing)).outcome is Typed.SUBMITTED
    assert agent.received == [b"\r"]


async def test_waiting_is_not_processing(agent):
    agent.set_state(AgentState.WAITING)
    result = await typist(agent).type(TEXT, nothing)
    assert result.outcome is Typed.BLOCKED
