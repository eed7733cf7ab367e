"""What `synapse profile new` concludes from recorded screens, and what it refuses to conclude."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import pytest

from synapse_tui.cli.trials.examination import Examination
from synapse_tui.cli.trials.inference import (
    Answered,
    Evidence,
    Shot,
    TypedText,
    WatchedTurn,
    approval,
    consents_to_folder,
    find_composer,
    find_dialog,
    find_signals,
    find_states,
    looks_like_dialog,
    profile_with,
    with_hints,
)
from synapse_tui.cli.trials.probe import Person, Probe
from synapse_tui.terminal import Terminal
from tests.unit.agent_screens import COMPOSERS, DIALOGS

COLUMNS, LINES = 60, 20
ONE, LONG = "zulu bruggle fordo", "zulu " + " ".join(f"longish{number:02}" for number in range(12))
SEVERAL = "zulu first of four\nbruggle second\n\nfordo fourth of four"
EMPTY = ""


def shot(rows: Sequence[str], cursor: tuple[int, int] | None = None, **more: object) -> Shot:
    terminal = Terminal(COLUMNS, LINES, 0)
    x, y = cursor or (len(rows[-1]), len(rows) - 1)
    terminal.feed(("\r\n".join(rows) + f"\x1b[{y + 1};{x + 1}H").encode())
    return replace(Shot.of(terminal), **more)  # type: ignore[arg-type]


def wrapped(text: str, width: int) -> list[str]:
    return [row[at : at + width] for row in text.split("\n") for at in range(0, max(1, len(row)), width)]


def boxed(text: str) -> Shot:
    inside = [f"│ {' ' if at else '>'} {row:52} │" for at, row in enumerate(wrapped(text, 52))]
    box = [f"╭{'─' * 56}╮", *inside, f"╰{'─' * 56}╯"]
    row = inside[-1].removesuffix(" │").rstrip() if text else inside[-1][:4]
    return shot(["Hello", "", *box, "  model: none"], (len(row), 2 + len(inside)))


def lined(text: str) -> Shot:
    return known("dummy", text)


def known(agent: str, text: str) -> Shot:
    """The composer of an agent that has a shipped profile."""
    return shot(*COMPOSERS[agent](*(wrapped(text, 50) if text else ()), above=["Hello", ""]))


def bare(text: str) -> Shot:
    inside = [f"{'... ' if at else 'ask> '}{row}" for at, row in enumerate(wrapped(text, 50))]
    return shot(["Hello", "", *inside])


def silent(text: str) -> Shot:
    return shot(["Hello", "", "Password: "])


def evidence_of(draw: Callable[[str], Shot]) -> Evidence:
    typed = [TypedText(text, draw(text)) for text in (ONE, SEVERAL, LONG)]
    return Evidence(empty=[draw(EMPTY)], typed=typed)


DRAWN: dict[str, Callable[[str], Shot]] = {
    "boxed": boxed,
    "bare": bare,
    **{agent: partial(known, agent) for agent in COMPOSERS},
}


@pytest.mark.parametrize("name", DRAWN)
def test_reads_all_that_was_typed_with_the_rules_that_it_finds(name: str) -> None:
    draw = DRAWN[name]
    evidence = evidence_of(draw)
    evidence.asking = [shot(DIALOGS.get(name, DIALOGS["dummy"]), (0, 0))]
    evidence = Evidence.from_json(json.loads(json.dumps(evidence.to_json())))
    found = find_composer(evidence)
    assert found is not None
    assert not found.unread, [each.shot.end() for each in found.unread]
    other = draw("something else entirely").read(found.profile)
    assert (other.visible, other.draft.strip()) == (True, "something else entirely")
    (dialog,) = find_dialog(evidence, found)
    values = {"composer": found.rules} | ({"dialogs": [dialog.value]} if dialog.value else {})
    assert not evidence.asking[0].read(profile_with(values)).visible


def moving(indent: int, text: str) -> Shot:
    bar = f"{' ' * indent}┃"
    inside = [f"{bar}  {row}" for row in wrapped(text, 40)]
    box = [bar, *inside, bar, f"{bar}  Some Model", f"{' ' * indent}╹{'▀' * 42}"]
    return shot(["Hello", "", *box, "  a folder"], (len(inside[-1]), 2 + len(inside)))


def test_reads_a_composer_that_is_centred_before_the_first_message_only() -> None:
    first, later = partial(moving, 12), partial(moving, 2)
    typed = [TypedText(ONE, first(ONE)), *(TypedText(text, later(text)) for text in (SEVERAL, LONG))]
    found = find_composer(Evidence(empty=[first(EMPTY), later(EMPTY)], typed=typed))
    assert found is not None
    assert not found.unread
    for draw in (first, later, partial(moving, 7)):  # the last one in a narrower terminal
        assert draw("something else").read(found.profile).draft.strip() == "something else"


def test_a_screen_that_was_taken_in_the_midst_of_a_character_can_be_kept() -> None:
    terminal = Terminal(COLUMNS, LINES, 0)
    terminal.feed("日本".encode()[:-1])
    taken = Shot.of(terminal)
    again = Shot.from_json(json.loads(json.dumps(taken.to_json())))
    assert (again.rows, again.screen) == (taken.rows, taken.screen)


def test_finds_no_composer_where_what_is_typed_is_not_shown() -> None:
    assert find_composer(evidence_of(silent)) is None


def test_a_paste_is_proved_by_the_number_that_is_its_size() -> None:
    evidence = evidence_of(lined)
    for lines in (12, 62):
        text = "\n".join(f"zulu line {at} of many" for at in range(lines))
        evidence.typed.append(TypedText(text, lined(f"[Pasted #{len(evidence.typed)}: {lines} lines]")))
    found = find_composer(evidence)
    assert found is not None
    assert not isinstance(found.rules, str)
    assert found.rules["pastes"] == [r"\[Pasted #\d+: (?P<lines>\d+) lines\]"]


def working(seconds: float, sent: str, **more: object) -> Shot:
    spinner = f"{'◐◓◑◒'[int(seconds * 5) % 4]} Thinking {seconds:.0f}s · ctrl+g stops"
    return shot(
        ["Hello", f"> {sent}", spinner, *(row for row in ("─" * 60, "❯ ", "─" * 60))],
        (2, 4),
        at=seconds,
        **more,
    )


def turn(**more: object) -> Evidence:
    evidence = evidence_of(lined)
    sent = "count the sentences aloud"
    evidence.empty.append(shot(["Hello", "> hi", "● hi", "─" * 60, "❯ ", "─" * 60], (2, 4)))
    evidence.turns = [
        WatchedTurn(sent, 0.0, tuple(working(at / 5, sent, **more) for at in range(1, 30))),
        WatchedTurn("joke", 0.0, tuple(working(at / 5, "joke", **more) for at in range(1, 4))),
    ]
    return evidence


def test_a_sign_of_work_is_on_the_screens_of_a_turn_only_and_not_the_echo_of_its_message() -> None:
    signals = find_signals(turn(title="◐ busy"))
    assert [signal.rule["name"] for signal in signals] == ["title", "spinner", "words ctrl+g stops"]
    assert all(len(signal.holds) == 29 for signal in signals)
    quiet = turn(title="me")
    quiet.empty = [replace(each, title="me") for each in quiet.empty]
    quiet.empty.append(quiet.working[3])
    assert find_signals(quiet) == [], "all of it is also on a screen at rest"


TIPS = ("shift+tab: plan mode", "@: mention files", "/compact: shorten the context")


def tipped(each: Shot, tip: str) -> Shot:
    """A screen whose footer has a tip."""
    rows = [row.rstrip() for row in each.rows if "a model" not in row]
    return shot([*rows, f"  a model{tip:>40}"], each.cursor, at=each.at)


def with_tips(*tips: str) -> Evidence:
    """Turns beside each of which a tip was shown, and another one at rest; nothing else is a sign of work."""
    evidence = turn()
    idle = tipped(evidence.empty[-1], TIPS[1])
    evidence.empty = [tipped(each, TIPS[1]) for each in evidence.empty]
    evidence.typed = [replace(each, shot=tipped(each.shot, TIPS[1])) for each in evidence.typed]
    evidence.turns = [
        WatchedTurn(
            f"joke {at}",
            0.0,
            tuple(replace(tipped(idle, tip), at=number / 5) for number in range(1, 30 - at)),
        )
        for at, tip in enumerate(tips)
    ]
    return evidence


def test_a_tip_that_is_shown_beside_some_turns_only_is_no_sign_of_work() -> None:
    assert find_signals(with_tips(TIPS[0], TIPS[0], TIPS[2])) == []


def test_a_tip_that_is_shown_once_at_rest_is_no_sign_of_work() -> None:
    evidence = with_tips(TIPS[0], TIPS[0], TIPS[0])
    assert [signal.rule["name"] for signal in find_signals(evidence)] == ["words plan mode"]
    evidence.watched = [tipped(evidence.empty[-1], tip) for tip in TIPS]
    evidence = Evidence.from_json(json.loads(json.dumps(evidence.to_json())))
    assert find_signals(evidence) == []


async def test_an_agent_at_rest_is_watched_for_what_it_shows_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock:
        now = 0.0

        async def until(self, condition: Callable[[], bool], limit: float) -> bool:
            deadline = self.now + limit
            while not (found := condition()) and self.now < deadline:
                self.now += 1.0
            return found

    clock = Clock()
    probe = Probe(cast("Examination", clock), cast("Person", None), rest=60)
    monkeypatch.setattr(probe, "_over", lambda: True)
    monkeypatch.setattr(probe, "_take", lambda: tipped(lined(EMPTY), TIPS[int(clock.now) // 20 % len(TIPS)]))
    await probe._rest(60)
    assert clock.now == 60
    assert probe.evidence.watched == [tipped(lined(EMPTY), tip) for tip in TIPS]


def test_words_that_move_from_turn_to_turn_are_no_sign_of_work() -> None:
    evidence = turn()
    short = evidence.turns[1]
    moved = [
        shot([*map(str.rstrip, each.rows), "a footer", "another"], each.cursor, at=each.at)
        for each in short.shots
    ]
    evidence.turns[1] = replace(short, shots=tuple(moved))
    assert "words ctrl+g stops" not in [signal.rule["name"] for signal in find_signals(evidence)]


def test_words_that_come_late_in_a_turn_need_not_be_in_a_short_one() -> None:
    evidence = turn()
    plain = [replace(each, at=each.at / 4) for each in evidence.turns[1].shots]
    rows = [each.rows for each in plain]
    without = [
        shot([row.rstrip().replace("ctrl+g stops", "") for row in each], plain[0].cursor, at=at / 20)
        for at, each in enumerate(rows, 1)
    ]
    evidence.turns.append(WatchedTurn("a third", 0.0, tuple(without)))
    assert "words ctrl+g stops" in [signal.rule["name"] for signal in find_signals(evidence)]


@pytest.mark.parametrize(
    ("signs", "pattern"),
    [
        ("🌑🌒🌓🌔🌕🌖🌗🌘", "^ *[🌑-🌘](?: *$| +·)"),
        ("⠋⠙⠹⠸⠼", "^ *[⠀-⣿](?: *$| +·)"),
        ("|/-\\", r"^ *[\-/\\|](?: *$| +·)"),
        ("}", ""),
        ("{}();", ""),
        ("│", ""),
    ],
)
def test_a_spinner_may_stand_alone_in_its_row(signs: str, pattern: str) -> None:
    def lone(at: int, sent: str) -> Shot:
        sign = signs[at % len(signs)]
        return shot(["Hello", f"> {sent}", "", sign, "", *("─" * 60, "❯ ", "─" * 60)], (2, 6), at=at / 5)

    evidence = turn()
    evidence.turns = [
        WatchedTurn("slow", 0.0, tuple(lone(at, "slow") for at in range(30))),
        WatchedTurn("joke", 0.0, tuple(lone(at, "joke") for at in range(3))),
    ]
    found = find_signals(evidence)
    assert [(signal.rule["name"], signal.rule["screen"]) for signal in found] == (
        [("sign", pattern)] if pattern else []
    )


def test_a_spinner_that_only_precedes_an_answer_is_learned_from_all_turns() -> None:
    def waits(at: int, sent: str, tip: str) -> Shot:
        row = f"  {'🌑🌒🌓🌔'[at]}{tip}"
        return shot(["Hello", f"> {sent}", "", row, "", *("─" * 60, "❯ ", "─" * 60)], (2, 6), at=at / 10)

    evidence = turn()
    for at, sent in enumerate(("a", "b", "c")):
        evidence.turns.append(WatchedTurn(sent, 0.0, (waits(at, sent, " · Tip: ask it" if at else ""),)))
    found = find_signals(evidence)
    assert [signal.rule["name"] for signal in found] == ["spinner", "sign", "words ctrl+g stops"]
    assert found[1].rule["screen"] == "^ *[🌑-🌘](?: *$| +·)"
    states = [finding.value for finding in find_states(evidence, find_composer(evidence))]
    assert found[1].rule in states
    evidence.turns[-1] = replace(evidence.turns[-1], shots=evidence.turns[2].shots)
    assert "sign" in [signal.rule["name"] for signal in find_signals(evidence)], "a known spinner"
    evidence.turns = evidence.turns[:3]
    assert "sign" not in [signal.rule["name"] for signal in find_signals(evidence)], "a single screen"


def test_a_sign_alone_in_its_row_at_rest_is_no_spinner() -> None:
    evidence = turn()
    moons = [
        shot(["Hello", "🌑🌒🌓🌔"[at % 4], "─" * 60, "❯ ", "─" * 60], (2, 3), at=at / 5) for at in range(30)
    ]
    evidence.turns = [WatchedTurn("slow", 0.0, tuple(moons)), WatchedTurn("joke", 0.0, tuple(moons[:5]))]
    assert find_signals(evidence)
    evidence.empty.append(moons[-1])
    assert find_signals(evidence) == []


def test_a_title_is_known_by_its_first_words_that_differ() -> None:
    evidence = turn(title="odd - ⌨️ busy counting - folder")
    evidence.empty = [replace(each, title="odd - ⌨️ waiting for input - folder") for each in evidence.empty]
    evidence.typed = [
        replace(each, shot=replace(each.shot, title="odd - ⌨️ waiting for input - folder"))
        for each in evidence.typed
    ]
    title = find_signals(evidence)[0].rule["title"]
    assert re.search(title, "odd - ⌨️ busy elsewhere")
    assert not re.search(title, "odd - ⌨️ waiting for input - folder")
    assert "folder" not in title


def test_rest_needs_silence_where_a_turn_shows_no_sign() -> None:
    evidence = turn()
    composer = find_composer(evidence)
    rules = [finding.value for finding in find_states(evidence, composer)]
    assert isinstance(rules[-1], dict)
    assert "silence" not in rules[-1]
    assert rules[-1]["composer"]
    evidence.turns = [WatchedTurn("", 0.0, tuple(evidence.empty[:1] * 5))] * 2
    rules = [finding.value for finding in find_states(evidence, composer)]
    assert [rule["state"] for rule in rules if isinstance(rule, dict)] == ["processing", "ready"]
    assert isinstance(rules[-1], dict)
    assert rules[-1]["silence"] == 5


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["Trust it?", "> Yes, continue", "  No, exit", ""], True),
        (["Run it? [y/N] "], True),
        (["Proceed?", "   1. Yes", "   2. Yes, always", "   3. No", "", "Enter select • Esc cancel"], True),
        (["My steps:", "   1. Yes", "   2. No", "", "So it is.", "esc to cancel"], False),
        (["My steps:", "   1. Read the file", "   2. Write it", "esc to cancel"], False),
        (["> zulu bruggle", "  fordo", ""], False),
        (["● An answer", "> Say whether it was allowed", "  then stop", ""], False),
    ],
)
def test_a_menu_is_not_taken_for_a_composer_although_the_cursor_is_hidden(
    rows: list[str], expected: bool
) -> None:
    terminal = Terminal(COLUMNS, LINES, 0)
    terminal.feed(("\r\n".join(rows) + "\x1b[?25l").encode())
    assert looks_like_dialog(Shot.of(terminal)) is expected


@pytest.mark.parametrize(
    ("rows", "yes"),
    [
        (
            [" Trust this folder?", " /tmp/project", "   ❯ Trust this folder", "     Don't trust"],
            "   ❯ Trust this folder",
        ),
        (["Do you trust the files here?", "❯ 1. Yes, proceed", "  2. No, exit"], "❯ 1. Yes, proceed"),
        (
            ["May it read and write in the current directory?", "> Allow", "  Exit"],
            "> Allow",
        ),
        (["Trust this folder?", "  Trust this folder", "❯ Don't trust"], None),
        (["Trust this folder?", "  Yes", "❯ No"], None),
        (["Send reports of crashes?", "❯ Yes", "  No"], None),
    ],
)
def test_only_a_question_about_the_folder_with_yes_chosen_is_answered_unasked(
    rows: list[str], yes: str | None
) -> None:
    pattern = consents_to_folder(shot([*rows, ""]).zone)
    assert [row for row in rows if pattern and re.search(pattern, row)] == ([yes] if yes else [])


def asking(rows: Sequence[str], asked: str) -> Evidence:
    evidence = turn()
    evidence.asked = asked
    screen = shot(["Hello", f"> {asked}", "", *rows])
    evidence.asking = [screen, screen]
    return evidence


@pytest.mark.parametrize(
    ("rows", "patterns", "keys"),
    [
        (["Run it? (y/n) "], [r"(?i)\(y/n\) *\w*$"], ["y"]),
        (["Run it? [Y/n/e/?] "], [r"(?i)\[Y/n/e/\?\] *\w*$"], ["y"]),
        (
            ["Run it?", "❯ 1. Yes", "  2. No", "Esc to cancel"],
            [r"^❯\s*\d+[.)]", r"(?i)Esc\s+to\s+cancel"],
            None,
        ),
    ],
)
def test_a_dialog_is_known_by_its_own_rows_not_by_the_message_that_caused_it(
    rows: list[str], patterns: list[str], keys: list[str] | None
) -> None:
    evidence = asking(rows, "Run Allow or Yes (y/n)")
    composer = find_composer(evidence)
    (finding,) = find_dialog(evidence, composer)
    assert isinstance(finding.value, dict)
    assert finding.value["screen"] == patterns
    yes = approval(evidence)
    assert yes is not None
    assert yes.get("keys") == keys


@pytest.mark.parametrize(
    ("rows", "pattern"),
    [
        (
            ["┃  Permission required", "┃  Allow once   Reject     ⇆ select  enter confirm"],
            r"(?i)enter\s+confirm",
        ),
        (["Do you want to proceed?", " 1. Yes", " 2. No", "Esc cancel"], r"(?i)Esc\s+cancel"),
    ],
)
def test_screens_of_a_dialog_are_no_part_of_the_turn_before_it(rows: list[str], pattern: str) -> None:
    evidence = turn()
    dialog = shot(["Hello", "> joke", "", *rows])
    drawn = shot(["Hello", "> joke", "", "I use a tool", *rows])
    evidence.turns.append(WatchedTurn("joke", 0.0, (working(0.1, "joke"), drawn, dialog)))
    evidence.ask("joke", dialog)
    (finding,) = find_dialog(evidence, find_composer(evidence))
    assert isinstance(finding.value, dict)
    assert finding.value["screen"] == [pattern]


def test_a_question_that_stays_on_the_screen_with_its_answer_is_no_dialog() -> None:
    evidence = asking(["Run it? [Y/n]"], "Run it, please")
    (finding,) = find_dialog(evidence, None)
    profile = profile_with({"dialogs": [finding.value]})
    assert shot(["Hello", "Run it? [Y/n] n"]).read(profile).dialog_name == "permission"
    assert shot(["Hello", "Run it? [Y/n] n", "", "Declined."]).read(profile).dialog is None


def test_words_of_the_model_are_no_sign_of_work() -> None:
    evidence = turn()
    longest = evidence.longest
    spoken = tuple(
        shot([*map(str.rstrip, each.rows[:3]), "the answer goes on", *each.rows[3:]], each.cursor, at=each.at)
        for each in longest.shots
    )
    evidence.turns[evidence.turns.index(longest)] = replace(longest, shots=spoken)
    assert [signal.rule["name"] for signal in find_signals(evidence)] == ["spinner", "words ctrl+g stops"]
    evidence.turns = [evidence.longest]
    assert find_signals(evidence) == [], "a single turn proves nothing"


def test_a_menu_with_signs_before_its_choices_is_a_dialog() -> None:
    evidence = asking(["Run it?", "> ✓ Yes, run it", "  ✗ No", "", "Press Escape to cancel"], "joke")
    composer = find_composer(evidence)
    (finding,) = find_dialog(evidence, composer)
    assert isinstance(finding.value, dict)
    profile = profile_with({"composer": composer.rules if composer else "auto", "dialogs": [finding.value]})
    assert all(each.read(profile).dialog_name == "permission" for each in evidence.asking)
    assert not any(each.read(profile).dialog for each in (*evidence.resting, *evidence.working))


def test_a_number_that_may_count_pastes_proves_no_size() -> None:
    evidence = evidence_of(lined)
    evidence.typed.append(TypedText("zulu " * 200, lined("[Paste #1]")))
    found = find_composer(evidence)
    assert found is not None
    assert not isinstance(found.rules, str)
    assert found.rules["pastes"] == [r"\[Paste #\d+\]"]


def test_rows_around_two_answers_are_hints() -> None:
    evidence = evidence_of(lined)
    for at, (line, word) in enumerate((("AB-CD", "brisk"), ("EF-GH", "keen"))):
        said = [
            f"> ask {at}",
            f"~{at + 7} tokens",
            "",
            line,
            "",
            f"Worked for a {word} {at}s.",
            "─" * 60,
            "❯ ",
        ]
        evidence.answers.append(Answered(f"ask {at}", line, shot([*said, "─" * 60], (2, len(said) - 1))))
    found = find_composer(evidence)
    assert found is not None
    hints = with_hints(found, evidence).profile.composer
    assert hints is not None
    assert [pattern.pattern for pattern in hints.hints] == [r"^~\d+\s+tokens$", r"^\s*Worked\s+for\s+a\s"]
