"""What the doctor concludes from answers: nothing of what is drawn around them is in the artifact."""

from __future__ import annotations

import dataclasses

from synapse_tui.doctor.report import Outcome
from synapse_tui.doctor.turns import bullet_of, judge_answer, judge_bullets, judge_long_answer
from tests.unit.doctor_kit import seen, shipped

OK, FAILED, NOT_SHOWN = Outcome.OK, Outcome.FAILED, Outcome.NOT_SHOWN
DUMMY = shipped()


def test_an_artifact_with_a_row_of_the_frame() -> None:
    assert judge_answer(seen(), {"? for help"}, DUMMY).outcome is OK
    verdict = judge_answer(seen(answer="AB-CD\n      ? for help"), {"? for help"}, DUMMY)
    assert (verdict.outcome, verdict.advice[0].key) == (FAILED, "composer.hints")
    assert judge_answer(seen(answer=f"AB-CD\n{'─' * 40}"), (), DUMMY).outcome is FAILED
    own = seen(answer="AB-CD\n      ? for help", own_words="AB-CD\n      ? for help")
    assert judge_answer(own, {"? for help"}, DUMMY).outcome is OK
    missing = judge_answer(seen(answer="", proof=""), (), DUMMY)
    assert (missing.outcome, missing.advice[0].key) == (FAILED, "composer.above")


def test_an_artifact_with_the_tail_of_a_long_message() -> None:
    short, long = seen(answer="says: AB-CD"), seen(answer="… 62 lines in all\n\n● says: AB-CD")
    bare = dataclasses.replace(DUMMY, transcript=None)
    assert judge_long_answer(short, short, (), bare).outcome is OK
    verdict = judge_long_answer(long, short, (), bare)
    assert (verdict.outcome, "62 lines in all" in verdict.evidence) == (FAILED, True)
    assert judge_long_answer(long, short, (), shipped("claude")).outcome is NOT_SHOWN
    chatty = seen(answer="Sure:\nAB-CD")
    assert judge_long_answer(chatty, chatty, (), bare).outcome is OK


def test_an_artifact_with_a_bullet() -> None:
    screen = ["> say AB", "  CD", "", "● says: AB", "  CD", "", "❯ "]
    assert (bullet_of(screen, "AB"), bullet_of(screen[:2], "AB"), bullet_of([], "AB")) == ("●", "", "")
    assert judge_bullets(["Bash(ls)\n⎿  a\n\nDone.", "Here:\n● one\n● two"], "●") is None
    assert judge_bullets(["● Done."], "") is None
    verdict = judge_bullets(["fine", "  Bash(ls)\n  ⎿  a\n\n● Done."], "●")
    assert verdict is not None
    assert (verdict.outcome, "'● Done.'" in verdict.evidence) == (FAILED, True)


def test_an_artifact_is_not_proved_by_the_record() -> None:
    verdict = judge_answer(seen(answer="something else", proof="", recorded="whole"), (), DUMMY)
    assert verdict.outcome is NOT_SHOWN
