"""What the checks of the doctor conclude from what was seen, and which key of the profile they name."""

from __future__ import annotations

import dataclasses

import pytest

from synapse_tui.agents.profiles.profile import Hazards
from synapse_tui.agents.state import decide
from synapse_tui.cli.trials.checks import (
    Begin,
    DialogTrial,
    Replying,
    Stop,
    Work,
    judge_dialog,
    judge_reply,
    judge_signals,
    judge_start,
    judge_stop,
    judge_working,
)
from synapse_tui.cli.trials.examination import RuleUse, Sample
from synapse_tui.cli.trials.report import Outcome
from synapse_tui.cli.trials.turns import (
    judge_answer,
    judge_hazards,
    judge_turn,
)
from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from tests.unit.doctor_kit import keys, rule_of, seen, shipped, signals, task, unsent

READY, WORKING, WAITING, UNKNOWN = (
    AgentState.READY, AgentState.PROCESSING, AgentState.WAITING, AgentState.UNKNOWN,
)  # fmt: skip
OK, FAILED, NOT_SHOWN = Outcome.OK, Outcome.FAILED, Outcome.NOT_SHOWN
DUMMY = shipped()
REST = Sample(0.0, UNKNOWN, title="✳ Ready", status="idle", rows=("❯ ", "  dummy · ready"), composer=True)
ASKING = Sample(0.0, WORKING, rows=(" Run it?", " ❯ 1. Yes", "   2. No", " Esc to cancel"))


# -- start -----------------------------------------------------------------------------------------------


def test_an_agent_that_never_gets_ready_gets_a_rule_for_what_it_shows(tmp_path) -> None:
    verdict = judge_start(Begin(False, 9.0, "no rule matches", samples=(REST, REST)), DUMMY)
    assert verdict.outcome is FAILED
    ((key, rule),) = keys(verdict)
    assert key == "states"
    made = rule_of(tmp_path, rule)
    assert (made.state, decide((made,), signals(REST)) is not None) == (READY, True)


# -- messages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "fields", "wanted"),
    [
        ("composer not visible", {}, "composer.prompt"),
        ("the composer does not show the message; the text was left in the composer",
         {"draft": "[Pasted block #1, 287 lines]"}, "composer.pastes"),
        ("agent did not take the text", {"draft": "half of the text"}, "composer.row"),
        ("agent did not take the text", {}, "composer.prompt"),
        ("agent did not take Enter; the text was left in the composer", {}, "submit.pause"),
        ("uncertain whether it was sent: Enter was pressed, and the screen does not tell whether it went", {},
         "submit.verify"),
        ("you have a draft", {}, "composer.placeholder"),
        ("state unknown", {"last": ASKING}, "dialogs"),
        ("state unknown", {"last": REST}, "states"),
        ("permission dialog open", {"last": ASKING}, ""),
        ("agent does not read its input", {}, "submit"),
    ],
)  # fmt: skip
def test_a_message_that_was_not_submitted_names_the_key(
    reason: str, fields: dict[str, object], wanted: str
) -> None:
    verdict = judge_turn(unsent(reason, **fields), DUMMY)
    assert verdict.outcome is FAILED
    assert reason in verdict.evidence
    assert verdict.advice[0].key == wanted


def test_hazards_name_the_sign_that_the_profile_lacks() -> None:
    profile = dataclasses.replace(DUMMY, hazards=Hazards(leading=("!",), trailing_mention=False))
    lost = unsent("agent did not take the text")
    found = [("!", seen()), ("/", lost), ("#", lost), ("@READ", lost)]
    verdict = judge_hazards(found, profile)
    assert verdict.outcome is FAILED
    assert keys(verdict) == [("hazards.leading", '["!", "/", "#"]'), ("hazards.trailing_mention", "true")]
    known = judge_hazards([("!", lost)], profile)
    assert (known.outcome, known.advice[0].key) == (FAILED, "composer.prompt")
    assert judge_hazards([("!", seen()), ("@READ", seen())], profile).outcome is OK
    unproved = seen(answer="?", proof="", recorded="whole")
    assert judge_hazards([("!", unproved)], profile).outcome is NOT_SHOWN
    assert judge_hazards([("@READ", unproved)], profile).outcome is OK


# -- working and the interrupt ---------------------------------------------------------------------------

BUSY = Sample(0.0, READY, title="⠂ Working", status="working", rows=("❯ ", "  working"))
RUNNING = task(TaskState.WORKING, DeliveryState.SUBMITTED)


def work(**fields: object) -> Work:
    values = {"seen": seen(RUNNING, ended=False), "working": True, "steady": True, "ended": False}
    return Work(**{**values, **fields})  # type: ignore[arg-type]


def test_work_that_no_rule_told_gets_a_rule(tmp_path) -> None:
    verdict = judge_working(work(working=False, steady=False, shown=(BUSY,), idle=(REST,)), DUMMY)
    assert verdict.outcome is FAILED
    ((key, rule),) = keys(verdict)
    assert key == "states"
    made = rule_of(tmp_path, rule)
    assert made.state is WORKING
    assert decide((made,), signals(BUSY)) is not None
    assert decide((made,), signals(REST)) is None


def test_work_that_flickers_fails_and_work_that_is_over_too_soon_is_not_shown() -> None:
    assert judge_working(work(steady=False, shown=(BUSY,)), DUMMY).outcome is FAILED
    assert judge_working(work(steady=False, ended=True), DUMMY).outcome is NOT_SHOWN
    ended = seen(task(TaskState.FAILED, DeliveryState.FAILED, "model error"))
    assert "model error" in judge_working(work(seen=ended, steady=False, ended=True), DUMMY).evidence
    lost = judge_working(work(seen=unsent("you have a draft"), working=False, steady=False), DUMMY)
    assert (lost.outcome, lost.advice[0].key) == (FAILED, "composer.placeholder")


@pytest.mark.parametrize(
    ("stop", "key", "value"),
    [
        (Stop(True, False, 0.1, "agent exited"), "interrupt.keys", "[escape]"),
        (Stop(False, True, 4.0, other=(b"\x1b", b"\x1b")), "interrupt.keys", "[escape, escape]"),
        (Stop(False, True, 4.0, rested=True, last=REST), "states", "title: '^✳'"),
        (Stop(False, True, 4.0, last=ASKING), "interrupt.keys", "screen"),
        (Stop(True, True, 0.1, writes=True), "interrupt.quiet", "1"),
        (Stop(True, True, 0.1, draft="left"), "clear", "ctrl+u"),
    ],
)  # fmt: skip
def test_an_interrupt_that_does_not_work_names_the_key(stop: Stop, key: str, value: str) -> None:
    verdict = judge_stop(stop, DUMMY)
    assert verdict.outcome is FAILED
    assert verdict.advice[0].key == key
    assert value in verdict.advice[0].value


# -- dialogs ---------------------------------------------------------------------------------------------

GOOD = DialogTrial(
    True, "permission: touch x", held="permission dialog open", closed=True, delivered=True, last=ASKING
)


@pytest.mark.parametrize(
    ("changes", "outcome", "key"),
    [
        ({"ran": True}, FAILED, "deny"),
        ({"closed": False, "other": (b"n",)}, FAILED, "deny"),
        ({"closed": False}, FAILED, "deny"),
        ({"held": ""}, FAILED, "dialogs"),
        ({"steady": False}, FAILED, "dialogs"),
        ({"delivered": False}, FAILED, None),
        ({"asked": False, "ran": True}, NOT_SHOWN, ""),
        ({"asked": False, "answer": "I may not", "last": REST}, NOT_SHOWN, ""),
        ({"asked": False}, FAILED, "dialogs"),
        ({"asked": False, "rested": True, "last": REST}, FAILED, "dialogs"),
    ],
)
def test_a_dialog_that_goes_wrong(changes: dict[str, object], outcome: Outcome, key: str | None) -> None:
    verdict = judge_dialog(dataclasses.replace(GOOD, **changes), DUMMY)  # type: ignore[arg-type]
    assert verdict.outcome is outcome
    assert (verdict.advice[0].key if verdict.advice else None) == key


def test_an_agent_without_dialogs_is_proved_to_have_none() -> None:
    silent = dataclasses.replace(DUMMY, doctor=dataclasses.replace(DUMMY.doctor, permissions=False))
    assert judge_dialog(dataclasses.replace(GOOD, asked=False, ran=True), silent).outcome is OK
    asked = judge_dialog(GOOD, silent)
    assert (asked.outcome, asked.advice[0].key) == (FAILED, "doctor.permissions")
    refused = dataclasses.replace(GOOD, asked=False, answer="I may not", last=REST)
    assert judge_dialog(refused, silent).outcome is NOT_SHOWN
    reports = [(READY, ""), (WORKING, "")]
    uses = {rule.name: RuleUse() for rule in DUMMY.states}
    assert judge_signals(uses, reports, 0.0, silent).outcome is OK
    assert judge_signals(uses, reports, 0.0, DUMMY).outcome is NOT_SHOWN


# -- the reply -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "outcome", "key"),
    [
        ({"replied": True, "text": "AB-CD", "approved": 1}, OK, None),
        ({"replied": True, "text": "thanks"}, NOT_SHOWN, None),
        ({"replied": False, "refused": True, "last": ASKING}, NOT_SHOWN, None),
        ({"replied": False, "approved": 1, "text": "connect: EPERM"}, FAILED, "sandbox"),
        ({"replied": False, "text": "I will not"}, NOT_SHOWN, ""),
    ],
)
def test_what_came_of_synapse_reply(fields: dict[str, object], outcome: Outcome, key: str | None) -> None:
    verdict = judge_reply(Replying("AB-CD", **fields), DUMMY)  # type: ignore[arg-type]
    assert verdict.outcome is outcome
    assert (verdict.advice[0].key if verdict.advice else None) == key


# -- signals and the end ---------------------------------------------------------------------------------


# -- the report ------------------------------------------------------------------------------------------


def test_an_artifact_with_a_row_of_the_frame() -> None:
    assert judge_answer(seen(), {"? for help"}, DUMMY).outcome is OK
    verdict = judge_answer(seen(answer="AB-CD\n      ? for help"), {"? for help"}, DUMMY)
    assert (verdict.outcome, verdict.advice[0].key) == (FAILED, "composer.hints")
    assert judge_answer(seen(answer=f"AB-CD\n{'─' * 40}"), (), DUMMY).outcome is FAILED
    own = seen(answer="AB-CD\n      ? for help", own_words="AB-CD\n      ? for help")
    assert judge_answer(own, {"? for help"}, DUMMY).outcome is OK
    echoed = judge_answer(seen(answer=f"You said:\n> {seen().typed}\nAB-CD"), (), DUMMY)
    assert echoed.outcome is FAILED
    assert "holds the message itself" in echoed.evidence
    missing = judge_answer(seen(answer="", proof=""), (), DUMMY)
    assert (missing.outcome, missing.advice[0].key) == (FAILED, "composer.above")
