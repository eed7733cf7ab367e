"""What the agent wrote in a turn."""

import json
import random
import re
import textwrap

import pytest

from synapse_tui.agents.answers import (
    ANEW_LOOKS,
    MAX_ROWS,
    AnswerCollector,
    StitchedRows,
    after_echo,
    after_last_echo,
    cut_prompts,
    tidy,
    without_frame,
)

TEXT = "[A2A:01234567:user] say something about the weather please"
IDLE = ["welcome", "", "", "", "", "──────────", "> ", "──────────", "  ready, 12 tokens"]


class Screen:
    """A screen of nine rows whose last four are the composer."""

    def __init__(self) -> None:
        self.rows = list(IDLE)

    def __call__(self) -> list[str]:
        return [row.ljust(40) for row in self.rows]

    def show(self, *body: str, footer: str = "  ready, 99 tokens") -> None:
        shown = list(body)[-5:]
        self.rows = [*shown, *[""] * (5 - len(shown)), "──────────", "> ", "──────────", footer]


def collect(screen: Screen, text: str = TEXT) -> AnswerCollector:
    collector = AnswerCollector(text, screen, [re.compile(r"\[Pasted \d+ lines\]")])
    collector.begin()
    return collector


def test_the_answer_stands_between_the_echo_and_the_frame():
    screen = Screen()
    collector = collect(screen)
    screen.show("welcome", f"> {TEXT}", "", "● It is fine.", "  Really.")
    artifact = collector.finish()
    assert artifact.text == "It is fine.\nReally."
    assert not artifact.truncated


def test_a_wrapped_echo_is_no_part_of_it():
    screen = Screen()
    collector = collect(screen)
    screen.show(f"> {TEXT[:30]}", f"  {TEXT[30:].strip()}", "", "fine", "")
    assert collector.finish().text == "fine"


def test_an_older_message_that_ended_alike_is_no_echo():
    ending = "and answer with nothing but one short line please"
    before = ["> [A2A:00000001:user] add", f"  {ending}", "● 1 + 1"]
    screen = Screen()
    screen.show(*before)
    text = f"[A2A:00000002:user] divide {ending}"
    collector = collect(screen, text)
    screen.show(*before, f"> {text}", "● 4 / 2")
    assert collector.finish().text == "4 / 2"


def test_rows_that_scroll_off_are_collected():
    screen = Screen()
    collector = collect(screen)
    rows = [f"> {TEXT}", *(f"row {number} of the answer" for number in range(50))]
    shown: list[str] = []
    for row in rows:
        shown.append(row)
        if len(shown) > 5:
            collector.scrolled(shown.pop(0))
        screen.show(*shown)
        collector.observe()
    artifact = collector.finish()
    assert artifact.text.splitlines() == rows[1:]
    assert not artifact.truncated


def test_rows_that_an_agent_moves_by_painting_are_collected():
    screen = Screen()
    collector = collect(screen)
    rows = [f"> {TEXT}", *(f"row {number} of the answer" for number in range(50))]
    for end in range(1, len(rows) + 1):
        screen.show(*rows[max(0, end - 5) : end], footer=f"  working, {end} tokens")
        collector.observe()
    screen.show(*rows[-5:])
    assert collector.finish().text.splitlines() == rows[1:]


def test_an_answer_whose_beginning_was_missed_says_so():
    screen = Screen()
    collector = collect(screen)
    screen.show(*(f"row {number} of the answer" for number in range(90, 95)))
    artifact = collector.finish()
    assert artifact.text.splitlines() == [f"row {number} of the answer" for number in range(90, 95)]
    assert artifact.truncated


def test_what_was_there_before_is_no_answer():
    screen = Screen()
    collector = collect(screen)
    assert collector.finish().text == ""


def test_a_conversation_that_is_printed_anew_counts_once():
    rows = [f"> {TEXT}", "", "fine"]
    assert after_echo([*rows, "half", *rows, "and sunny"], TEXT) == ["", "fine", "and sunny"]


def test_a_conversation_that_is_printed_anew_before_the_answer_counts_once():
    old = ["v1.5.47", " an older question", "● an older answer", "", f" {TEXT}"]
    assert after_echo([*old, "", *old, "", "● fine"], TEXT) == ["", "● fine"]


def test_a_message_quoted_in_the_answer_is_no_echo():
    rows = [f"> {TEXT}", "you wrote:", TEXT, "and I say: fine"]
    assert after_echo(rows, TEXT) == rows[1:]


def test_an_echo_shown_as_a_stand_in():
    rows = ["> [Pasted 62 lines]", "", "fine"]
    assert after_echo(rows, "line\n" * 62, [re.compile(r"\[Pasted \d+ lines\]")]) == ["", "fine"]
    for wrapped in (["> [Pasted 62", "  lines]"], ["> [Pasted 6", "  2 lin", "  es]"]):
        rows = [*wrapped, "", "[Fine] it is"]
        pastes = [re.compile(r"\[Pasted \d+ lines\]")]
        assert after_echo(rows, "line\n" * 62, pastes) == ["", "[Fine] it is"]


def test_an_echo_whose_beginning_never_was_on_the_screen():
    text = TEXT + "".join(f"\nline {number} of the message" for number in range(40))
    shown = [f"  line {number} of the message" for number in range(30, 40)]
    rows = ["header", *shown, "", "● fine", "  line 39"]
    assert after_echo(rows, text) == ["", "● fine", "  line 39"]


def test_an_echo_whose_rows_a_line_editor_left_behind_their_prompts():
    lines = [TEXT, *(f"line {number} of the message" for number in range(40))]
    shown = ["Tokens: 7 sent", "diff> "]
    collector = AnswerCollector("\n".join(lines), lambda: shown, row=re.compile(r"^[\w-]*> "))
    collector.begin()
    shown[1:] = [*(f"diff> {line}" for line in lines), "", "fine", "> quoted", "Tokens: 8 sent", "diff> "]
    assert collector.finish().text == "fine\n> quoted"


def test_a_quote_is_no_echo_when_the_end_of_the_real_one_stands_above():
    text = TEXT + " word" * 200 + " the very end of it all"
    quote = ["● you said:", f"  {TEXT} word word", "fine"]
    rows = ["  word word word word", "  word the very end of it all", *quote]
    assert after_echo(rows, text) == quote


def test_an_echo_that_begins_out_of_sight_below_older_rows():
    text = TEXT + " word" * 200 + " the very end of it all"
    older = ["older answer", "of some time ago"]
    rows = [*older, "┃ word word word", "┃ word the very end of", "┃ it all", "", "fine"]
    assert after_echo(rows, text) == ["", "fine"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("[A2A:1:user] --- a/file\n+++ b/file", ["> [A2A:1:user] --- a/file", "  +++ b/file"]),
        ("[A2A:1:user] Mend:\n- one\n- two", ["❯ [A2A:1:user] Mend:", "  - one", "  - two"]),
        ("[A2A:1:user] > quoted\n● dot\n---", ["> [A2A:1:user] > quoted", "  ● dot", "  ---"]),
        (
            "[A2A:1:user] Sum:\n| a | b |\n|---|---|\n| 1 | 2 |",
            ["> [A2A:1:user] Sum:", "  | a | b |", "  |---|---|", "  | 1 | 2 |"],
        ),
        ("[A2A:1:user] framed\nby us", ["│ > [A2A:1:user] framed     │", "│   by us                   │"]),
        ("- [ ] write\n- [x] read", ["› - [ ] write", "  - [x] read"]),
    ],
)
def test_signs_that_begin_lines_of_the_message_are_its_own(text, rows):
    assert after_echo([*rows, "", "● fine", *rows], text) == ["", "● fine", *rows]


def test_an_echo_of_a_list_whose_beginning_never_was_on_the_screen():
    text = "\n".join(f"- point {number} of them" for number in range(30))
    rows = [f"  {line}" for line in text.splitlines()[20:]]
    assert after_echo([*rows, "", "● fine"], text) == ["", "● fine"]


def test_an_echo_with_the_time_at_the_right_edge():
    assert after_echo([f"  ❯ {TEXT[:40]}          00:06", f"    {TEXT[40:]}", "fine"], TEXT) == ["fine"]


def test_a_header_that_stays_and_a_scrollbar_are_no_part_of_it():
    screen = Screen()
    collector = collect(screen)
    rows = [f"> {TEXT}", *("" if number % 9 == 5 else f"row {number} of it" for number in range(50))]
    for end in range(1, len(rows) + 1):
        screen.show("Home   Sessions", *(f"{row:80}┃" for row in rows[max(0, end - 4) : end]))
        collector.observe()
    assert collector.finish().text.splitlines() == rows[1:]


def test_a_table_keeps_its_borders():
    screen = Screen()
    collector = collect(screen)
    screen.show(f"> {TEXT}", "│ a  │ b  │", "│ 1  │ 2  │", "text")
    assert collector.finish().text == "│ a  │ b  │\n│ 1  │ 2  │\ntext"


def test_an_echo_with_lines_left_out():
    text = TEXT + "".join(f"\nline {number} of the message" for number in range(400))
    elided = ["  line 0 of the message", "  ─── (398 lines hidden) ───", "  line 399 of the message"]
    shown = [f"> {TEXT}", *elided]
    assert after_echo([*shown, "", "fine"], text) == ["", "fine"]


def test_a_message_that_is_nowhere():
    assert after_echo(["something", "else"], TEXT) is None


def test_a_later_prompt_of_the_user_ends_the_answer():
    assert cut_prompts(["fine", "> and now my own", "● ok"], ["and now my own"]) == ["fine"]
    assert cut_prompts(["fine", "sunny"], ["and now my own"]) == ["fine", "sunny"]
    timed = [" ❯ and now my own            10:49", "   in two lines", "● ok"]
    assert cut_prompts(["fine", *timed], ["and now my own\nin two lines"]) == ["fine"]


def test_the_frame_is_what_stood_there_before():
    assert without_frame(
        ["answer", "────", "> ", "────", " 17 tokens"], ["", "────", "> ", "────", " 3 tokens"]
    ) == ["answer"]


def test_a_bullet_drawn_as_text_is_taken_off():
    assert tidy(["  ◆\ufe0e one", "    two"]) == "one\ntwo"


def test_side_borders_and_bullets_are_taken_off():
    assert tidy(["┃  one", "┃    two", "┃"]) == "one\n  two"
    assert tidy(["● one", "", "  two"]) == "one\n\ntwo"
    assert tidy(["────", "text", "────"]) == "text"
    assert tidy(["| a | b |", "|---|---|", "text"]) == "| a | b |\n|---|---|\ntext"
    assert tidy(["text", "", "▣  Build · Some Model · 22.0s"]) == "text"
    assert tidy(["text", "", "✻ Churned for 1m 3s"]) == "text"
    assert tidy(["text", "─ Worked for 1m 03s ─────"]) == "text"
    assert tidy(["text", "", "  Worked for 18s • 00:36"]) == "text"
    assert tidy(["text", "", "  Worked for <1s • 00:36"]) == "text"
    assert tidy(["text", "", "✻ Crunched for 1s · done 11:52 PM"]) == "text"
    assert tidy(["text", "", "✻ Sautéed for 1m 3s · done 23:52"]) == "text"
    assert tidy(["text", "", "* it took 3s · see below"]) == "text\n\n* it took 3s · see below"
    assert tidy(["text", "", "✳ Working… (610s · esc to interrupt)"]) == "text"
    assert tidy(["text", "• Working (12s • esc to interrupt)"]) == "text"
    assert tidy(["text", "- leave it with Esc (it takes 3s)"]) == "text\n- leave it with Esc (it takes 3s)"
    assert tidy(["text", "  └ Tip: Use /export to save your conversation as Markdown."]) == "text"
    assert tidy(["text", "", " " * 84 + "? for shortcuts"]) == "text"
    assert tidy([]) == ""


class FramelessScreen(Screen):
    """The same screen, of which the rows over the composer are given, as long as that is seen."""

    def __call__(self) -> list[str]:
        rows = super().__call__()
        return rows[:-4] if "> " in self.rows else rows

    def collect(self) -> AnswerCollector:
        working = [(re.compile(r"^. Working"), 6), (re.compile("^fine"), 4)]
        below = lambda count: len(self.rows) - count  # noqa: E731
        collector = AnswerCollector(TEXT, self, below=below, working=working)
        collector.begin()
        return collector


ENDING = [
    ["", "", "", "Terminated", ""],
    ["✻ Working (3s)", "──────────", "> and now", "──────────", "  bye"],
]


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("ending", ENDING)
def test_what_an_agent_draws_at_its_end_is_no_answer(ending, resumed):
    screen = FramelessScreen()
    collector = screen.collect()
    screen.show(f"> {TEXT}", "● fine so far", "", "✻ Working (2s)")
    collector.observe()
    screen.rows = [f"> {TEXT}", "● fine so far", "", "✻ Working (2s)", *ending]
    if resumed:
        collector.observe()
        state, collector = collector.state(), screen.collect()
        collector.resume(state)
    assert collector.finish(working=True).text == "fine so far"


def test_only_what_stands_low_enough_tells_of_work():
    screen = FramelessScreen()
    collector = screen.collect()
    screen.show(f"> {TEXT}", "fine", "✻ Working hard", "fine it is", "done")
    assert collector.finish(working=True).text == "fine\n✻ Working hard\nfine it is\ndone"
    assert collector.finish().text == "fine\n✻ Working hard\nfine it is\ndone"


def test_a_composer_that_comes_back_into_sight_ends_what_was_kept():
    screen = FramelessScreen()
    collector = screen.collect()
    screen.show(f"> {TEXT}", "one")
    collector.observe()
    screen.rows = [f"> {TEXT}", "one", "", "1. Yes", "2. No", "", "", "", ""]
    collector.observe()
    screen.show(f"> {TEXT}", "one", "two")
    assert collector.finish(working=True).text == "one\ntwo"


LONG = TEXT + "".join(f"\nline {number} of the message" for number in range(40))
SHOWN = [f"> {TEXT}", *(f"  line {number} of the message" for number in range(8))]


@pytest.mark.parametrize(
    "note",
    [
        ["  … 41 lines in all"],
        ["  … +32 lines"],
        ["  ... (32 more lines)"],
        ["  [32 more lines]"],
        ["  ⋯"],
        ["  line 8 of the…"],
        ["  line 8 of …", "  … 32 lines (ctrl+o to expand)"],
        ["  (truncated)"],
        [],
    ],
)
def test_an_echo_of_which_the_end_is_not_shown(note):
    answer = ["", "● you say:", "  line 8 of the message", "  and 32 more lines"]
    found = after_echo([*SHOWN, *note, *answer], LONG)
    assert found is not None
    assert found[-3:] == answer[1:]
    assert tidy(found).startswith("you say:\nline 8")


def test_an_echo_whose_end_is_left_out_after_an_empty_line():
    text = LONG.replace("\n", "\n\n")
    shown = [row for line in SHOWN for row in (line, "")]
    assert after_echo([*shown, "  … 81 lines in all", "", "● fine"], text) == ["", "● fine"]
    assert after_echo([*shown, "… as you say", "fine"], text) == ["… as you say", "fine"]


def test_a_long_line_of_which_the_end_is_left_out():
    text = TEXT + " word" * 300
    rows = [f"> {TEXT}", *["  " + "word " * 7] * 10]
    assert after_echo([*rows, "  … 1 lines in all", "", "● fine"], text) == ["", "● fine"]
    assert after_echo([f"› {TEXT} wor…", "", "• fine"], text) == ["", "• fine"]
    assert after_echo([f"› {TEXT} wor…    20:46", "", "• fine"], text) == ["", "• fine"]


def test_a_later_prompt_that_is_cut_off_ends_the_answer():
    prompt = "and now something that is longer than the screen is wide"
    assert cut_prompts(["fine", f"› {prompt[:30]}…", "● ok"], [prompt]) == ["fine"]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            ["● Bash(ls)", "  ⎿  a", "     b", "", "● Done.", "", "  All of it."],
            "Bash(ls)\n⎿  a\n   b\n\nDone.\n\nAll of it.",
        ),
        (["bytes: ��", "", "● Done.", "  (31 characters)"], "bytes: ��\n\nDone.\n(31 characters)"),
        (
            ["✔ You approved it", "  this time", "", "• Ran ls", "  └ a", "", "• Done.", "  Really."],
            "✔ You approved it\n  this time\n\nRan ls\n└ a\n\nDone.\nReally.",
        ),
        (
            [" ● I will.", "", " $ Shell ls", "   a", "", " ● Done:", "   - one", "     more"],
            "I will.\n\n$ Shell ls\n  a\n\nDone:\n- one\n  more",
        ),
        (["● Two:", "", "  ● one", "  ● two", "", "● Done."], "Two:\n\n● one\n● two\n\nDone."),
        (["• one", "  and more", "• two"], "• one\n  and more\n• two"),
        (["Two:", "", "• one", "", "• two", "", "Done."], "Two:\n\n• one\n\n• two\n\nDone."),
        (["Two:", "", "● one", "● two"], "Two:\n\n● one\n● two"),
        (["● one", "│ a │", "", "● two"], "one\n│ a │\n\ntwo"),
    ],
)
def test_every_piece_of_an_answer_loses_its_bullet_and_lists_keep_theirs(rows, told):
    assert tidy(rows) == told


# -- Many looks at a screen, put together to one text ---


HEIGHT = 20


def frames(seed: int, text: list[str], header: list[str]) -> list[list[str]]:
    """What an agent that paints its own scrolling shows: its text moves up, and at times back."""
    chance = random.Random(seed)
    shown = []
    end = 0
    while end < len(text):
        end = min(len(text), end + chance.choice([0, 1, 1, 1, 2, 5]))
        last = [*text[:end], *([f"working {end}"] if chance.random() < 0.5 else [])]
        if end < len(text) and chance.random() < 0.7:
            last.append(text[end][: chance.randrange(len(text[end]) + 1)])
        window = HEIGHT - len(header)
        body = last[-window:]
        shown.append([*header, *body, *[""] * (window - len(body))])
    shown.append([*header, *text[-window:]])
    return shown


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("header", [[], ["Home   Sessions", ""]])
def test_a_text_that_is_painted_is_whole(seed, header):
    chance = random.Random(seed)
    kinds = ["row {} of it", "row {} of it", "row {} of it", "row {} of it", "", "same again"]
    text = [chance.choice(kinds).format(number) for number in range(120)]
    text[-1] = "the end"
    looks = frames(seed, text, header)
    seen = StitchedRows(looks[0])
    for look in looks[1:]:
        seen.look(look)
    rows = seen.rows[len(header) :]
    assert [row for row in rows if row.startswith("row")] == [row for row in text if row.startswith("row")]
    assert not seen.truncated


@pytest.mark.parametrize("seed", range(10))
def test_a_text_that_the_terminal_scrolls_is_whole(seed):
    chance = random.Random(seed)
    text = [f"row {number % 7}" for number in range(300)]
    screen = [""] * HEIGHT
    seen = StitchedRows(screen)
    used = 0
    for number, row in enumerate(text):
        if used == HEIGHT:
            seen.scrolled(screen.pop(0))
            screen.append("")
            used -= 1
        screen[used] = row
        used += 1
        if chance.random() < 0.3 or number == len(text) - 1:
            seen.look(screen)
    assert seen.rows == text


@pytest.mark.parametrize("room", [3, 20])
def test_a_dialog_that_gives_way_to_its_answer_leaves_nothing_out(room):
    """A screen with room below has not scrolled, however little of it stays."""
    top = ["> %%perm:make all%%"]
    dialog = ["Bash command", "make all", "", "Proceed?", "1. Yes", "2. Always", "3. No", "", "Esc cancels"]
    answer = ["", "Bash(make all)", "allowed", "rehearsed", "", "Done.", "", "Working", "", "-----"]
    seen = StitchedRows([*top, *[""] * (9 + room)])
    seen.look([*top, *dialog, *[""] * room])
    seen.look([*top, *answer])
    assert not seen.truncated
    assert [row for row in seen.rows if row] == [*top, *filter(None, answer)]


def test_a_jump_out_of_sight_below_a_header_is_known():
    seen = StitchedRows(["Header", *(f"row {number}" for number in range(HEIGHT))])
    seen.look(["Header", *(f"row {number}" for number in range(500, 500 + HEIGHT))])
    assert seen.truncated


def test_a_jump_out_of_sight_is_known():
    seen = StitchedRows([f"row {number}" for number in range(HEIGHT)])
    seen.look([f"row {number}" for number in range(500, 500 + HEIGHT)])
    assert seen.truncated
    assert seen.rows[:HEIGHT] == [f"row {number}" for number in range(HEIGHT)]
    assert seen.rows[-1] == f"row {499 + HEIGHT}"


def test_something_in_front_for_a_while_changes_nothing():
    text = [f"row {number}" for number in range(HEIGHT)]
    seen = StitchedRows(text)
    seen.look([f"help {number}" for number in range(HEIGHT)])
    seen.look([""] * HEIGHT)
    seen.look(text)
    assert [row for row in seen.rows if row.startswith("row")] == text


def test_a_screen_that_is_cleared_and_drawn_anew_is_the_same():
    text = [f"row {number}" for number in range(HEIGHT)]
    seen = StitchedRows(text)
    assert seen.look([""] * HEIGHT)
    seen.look(text[:5] + [""] * (HEIGHT - 5))
    seen.look(text)
    assert seen.rows == text
    assert not seen.truncated


def test_a_screen_that_is_cleared_and_drawn_anew_further_on_has_moved():
    text = [f"row {number}" for number in range(HEIGHT + 5)]
    seen = StitchedRows(text[:HEIGHT])
    seen.look([""] * HEIGHT)
    seen.look(text[5:])
    assert seen.rows == text


def test_a_row_that_comes_back_to_the_top_covers_nothing():
    text = ["> what I asked", *(f"row {number}" for number in range(60))]
    seen = StitchedRows(text[:HEIGHT])
    for start in range(1, len(text) - HEIGHT + 1):
        look = text[start : start + HEIGHT]
        seen.look([text[0], *look[1:]] if start > 5 else look)
    assert seen.rows == text


def test_a_row_that_is_held_at_the_top_covers_nothing():
    text = ["> what I asked", *(f"row {number}" for number in range(60))]
    seen = StitchedRows(text[:HEIGHT])
    for start in range(1, len(text) - HEIGHT + 1):
        seen.look([text[0], *text[start + 1 : start + HEIGHT]])
    assert seen.rows == text


def test_what_was_written_below_and_is_gone_is_forgotten():
    seen = StitchedRows(["one", "two", "working", "hint"])
    seen.look(["one", "two", "three", ""])
    assert seen.rows == ["one", "two", "three", ""]


def test_the_number_of_rows_is_bounded():
    seen = StitchedRows([""])
    for number in range(MAX_ROWS + 100):
        seen.scrolled(f"row {number}")
    assert len(seen.rows) <= MAX_ROWS + 1
    assert seen.truncated


def test_a_row_that_is_said_again_is_no_header_where_the_terminal_scrolls():
    before = ["> one", "  two", "", "────", "> ", "────"]
    seen = StitchedRows(before)
    for row in before[:3]:
        seen.scrolled(row)
    after = ["● one", "  two", "", "────", "> ", "────"]
    seen.look(after)
    assert seen.rows == [*before[:3], *after]


@pytest.mark.parametrize("place", range(3))
def test_a_row_that_is_written_anew_as_it_was_before_is_no_header(place):
    above = [f"row {number}" for number in range(place)]
    seen = StitchedRows(["● Done. (52 characters, 1 line)", *[""] * 5])
    for row in ["● Done. (52 characters, 1 line)", "> again"]:
        seen.scrolled(row)
    for said in ["● Done.", "● Done. (52 characters, 1", "● Done. (52 characters, 1 line)"]:
        seen.look([*above, said, "", "✻ Working…", "────"])
    assert seen.rows == ["● Done. (52 characters, 1 line)", "> again", *above, said, "", "✻ Working…", "────"]


def test_a_row_that_is_written_while_the_text_is_painted_further_up_is_no_header():
    seen = StitchedRows(["all is well", "", "one", "two", "three", "all is", "", ""])
    seen.look(["two", "three", "all is well", "", "four", "", "", ""])
    assert seen.rows[:7] == ["all is well", "", "one", "two", "three", "all is well", ""]


# -- Text that is wrapped anew in the middle of a turn ---


def wrapped(lines: list[str], width: int) -> list[str]:
    return [row for line in lines for row in textwrap.wrap(line, width, drop_whitespace=True) or [""]]


ASKED = ["welcome", f"> {TEXT}", "● it rains", ""]
ANSWERED = [
    f"> {TEXT}",
    "● now the sun shines, and it is as warm as it can be in the month of May",
    "",
    "● bye",
]


def test_what_is_printed_once_more_at_another_width_is_read_once():
    """Also where the same was asked, and answered, before."""
    screen, scrolled = Screen(), [*wrapped(ASKED, 60)]
    collector = AnswerCollector(TEXT, screen, above=lambda most: scrolled[-most:])
    collector.begin()
    screen.show(*wrapped(ANSWERED, 60)[:3])
    collector.observe()
    collector.drawn_anew()
    again = wrapped([*ASKED, *ANSWERED], 20)
    for end in range(1, len(again) + 1):
        if end > 5:
            collector.scrolled(again[end - 6])
        scrolled[:] = again[: max(0, end - 5)]
        screen.show(*again[max(0, end - 5) : end])
        collector.observe()
    artifact = collector.finish()
    assert artifact.text.split() == " ".join(ANSWERED[1:]).replace("●", "").split()
    assert not artifact.truncated
    read, _ = collector.so_far()
    scrolled.clear()
    screen.rows = list(IDLE)
    assert read() == artifact.text, "what a reader gets later is what stood there when it asked"


def test_a_quote_of_the_message_is_no_echo_in_what_is_printed_once_more():
    rows = [f"> {TEXT}", "one", f"> {TEXT}", f"  > {TEXT}", "two"]
    assert after_last_echo(rows, TEXT, drawn=rows) == [f"  > {TEXT}", "two"]


def test_without_the_message_above_it_what_was_seen_before_counts():
    screen = Screen()
    collector = AnswerCollector(TEXT, screen, above=lambda _most: ["● another conversation"])
    collector.begin()
    screen.show(f"> {TEXT}", "● fine weather today", "  at last")
    collector.observe()
    collector.drawn_anew()
    screen.show("● fine", "  weather today", "  at last", "and", "tomorrow")
    assert collector.finish().text.split() == ["fine", "weather", "today", "at", "last", "and", "tomorrow"]


LINES = [f"row {number} of it, and {number * 7919} more words of that row" for number in range(80)]


@pytest.mark.parametrize(("before", "after"), [(60, 23), (23, 60), (40, 37)])
@pytest.mark.parametrize("header", [[], ["Home   Sessions", ""]])
def test_a_screen_that_is_painted_at_another_width_goes_on_with_the_text(before, after, header):
    window = HEIGHT - len(header)
    old, new = wrapped(LINES[:50], before), wrapped(LINES[:50], after)
    seen = StitchedRows([*header, *old[:window]])
    for end in range(window, len(old) + 1):
        seen.look([*header, *old[end - window : end]])
    seen.drawn_anew()
    cropped = [*header, *(row[:20] for row in old[-window:])]
    for look in (cropped, [""] * HEIGHT, [*header, *new[-window:][:5]], [*header, *new[-window:]]):
        seen.look(look)
    new = wrapped(LINES, after)
    for end in range(len(wrapped(LINES[:50], after)), len(new) + 1):
        seen.look([*header, *new[end - window : end]])
    assert " ".join(seen.rows[len(header) :]).split() == " ".join(LINES).split()
    assert not seen.truncated


def test_a_higher_screen_shows_the_text_from_its_beginning():
    old, new = wrapped(LINES[:5], 60), wrapped(["welcome", *LINES[:5]], 100)
    seen = StitchedRows(old)
    seen.drawn_anew()
    seen.look(new)
    assert seen.rows == new


def test_a_screen_that_shows_nothing_known_after_a_resize_is_added():
    seen = StitchedRows(LINES[:10])
    seen.drawn_anew()
    for _ in range(ANEW_LOOKS + 3):
        seen.look(LINES[20:30])
    assert seen.rows == [*LINES[:10], *LINES[20:30]]


@pytest.mark.parametrize("looked", [0, 1, 2])
def test_a_text_that_was_wrapped_anew_goes_on_in_another_host(looked):
    seen = StitchedRows(wrapped(LINES[:8], 60))
    seen.drawn_anew()
    for look in (LINES[20:25], wrapped(LINES[4:8], 23))[:looked]:
        seen.look(look)
    seen = StitchedRows.resumed(json.loads(json.dumps(seen.state())))
    seen.look(wrapped(LINES[4:9], 23))
    assert " ".join(seen.rows).split() == " ".join(LINES[:9]).split()
