"""Many looks at a screen, put together to one text."""

import random

import pytest

from synapse_tui.agents.answers import MAX_ROWS, StitchedRows

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
