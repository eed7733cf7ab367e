"""Whether a text stands in a composer."""

import re
import textwrap

import pytest

from synapse_tui.agents.composer import Proof

PASTES = (
    re.compile(r"\[Pasted text #\d+(?: \+(?P<more>\d+) lines)?\]"),
    re.compile(r"\[Pasted Content (?P<chars>\d+) chars\]"),
    re.compile(r"\[Pasted ~(?P<lines>\d+) lines\]"),
)
TEXT = (
    "[A2A:01234567:user] please review the changes in the parser and tell me what you think of them, thanks"
)


def stands(draft: str, text: str, pastes: tuple[re.Pattern[str], ...] = ()) -> bool:
    return Proof(text, pastes).stands(draft)


@pytest.mark.parametrize(
    ("draft", "wanted"),
    [
        (TEXT, True),
        (TEXT.replace(" ", "\n  "), True),  # wrapped
        (TEXT[30:], True),  # the end of it, in a small composer
        ("", False),
        ("   ", False),
        (TEXT[:50], False),
        (TEXT[-20:], False),
        ("x" + TEXT, False),
        (TEXT + " and more", False),
        ("half a line", False),
        ("half a line" + TEXT, False),
        (TEXT[:60] + "…", True),  # cut at its end, and the agent says so
        (TEXT[:18] + "…", False),
        ("half a line" + TEXT[:60] + "…", False),
        (TEXT.replace("please", "pleas").replace("thanks", "hanks"), False),  # no emoji are joined
    ],
)
def test_a_draft_is_the_text_or_not(draft: str, wanted: bool) -> None:
    assert stands(draft, TEXT) is wanted


def test_wide_characters_and_emoji():
    text = "[A2A:01234567:user] 日本語のテキスト 👩‍💻 ok ⚠️ 終わり"
    assert stands(text.replace("👩‍💻", "👩 💻").replace("️", ""), text)
    assert not stands(text.replace("終わり", "終"), text)


EMOJI = "[A2A:01234567:user] 😀 please look ⚠️ 한국어 ❤️ € 🏳️\u200d🌈 at this function 1️⃣"


@pytest.mark.parametrize(
    "draft",
    [
        EMOJI.replace("⚠️ 한국어", "⚠️   국어"),
        EMOJI.replace("function 1️⃣", "functio1️⃣"),
        EMOJI.replace("at this", "hat this"),
        EMOJI.replace("⚠️ 한국어", "⚠️   국어").replace("look", "lok").replace("function 1️⃣", "functio1️⃣"),
    ],
)
def test_neighbours_of_joined_emoji_may_be_lost_or_be_old(draft):
    assert stands(draft, EMOJI)


@pytest.mark.parametrize(
    "draft",
    [
        EMOJI.replace("01234567", "01234568"),  # before the first emoji all must be there
        "half a line" + EMOJI,
        EMOJI + " and more",
        EMOJI.removesuffix("1️⃣"),
        EMOJI.removesuffix("at this function 1️⃣"),
        EMOJI[:24] + EMOJI[-9:],
        "😀 ⚠️ another draft of the user's, which is about as long as the message 1️⃣",
        "",
    ],
)
def test_a_draft_that_is_not_the_text_is_none_for_its_emoji(draft):
    assert not stands(draft, EMOJI)


def test_a_text_of_emoji_only():
    assert stands("🎉 🎉", "🎉 🎉")
    assert not stands("🎉", "👍")


def test_a_text_cut_in_the_middle_stands():
    text = TEXT + " middle " * 50 + "the end of it"
    assert stands(text[:100] + "\n…\n" + text[-60:], text)


@pytest.mark.parametrize(
    ("draft", "lines"),
    [("[Pasted text #1 +2 lines]", 3), ("[Pasted ~3 lines]", 3), ("[Pasted text #7]", 1)],
)
def test_a_stand_in_is_the_text(draft, lines):
    assert stands(draft, "\n".join(["line"] * lines), PASTES)


@pytest.mark.parametrize("width", range(8, 26))
def test_a_stand_in_that_a_narrow_pane_wraps_is_the_text(width):
    stand_in, text = "[Pasted text #1 +2 lines]", "a\nb\nc"
    for wrapped in (
        [stand_in[at : at + width].strip() for at in range(0, len(stand_in), width)],
        textwrap.wrap(stand_in, width),
    ):
        assert stands("\n".join(wrapped), text, PASTES)
        assert not stands("\n".join(wrapped), text + "\nd\ne\nf", PASTES)


def test_a_stand_in_of_another_size_is_not():
    assert not stands("[Pasted text #1 +90 lines]", "a\nb", PASTES)
    assert not stands("[Pasted Content 500 chars]", "x" * 900, PASTES)
    assert stands("[Pasted Content 900 chars]", "x" * 900, PASTES)


def test_text_around_a_stand_in_must_be_of_the_message():
    text = "start here\n" + "x\n" * 40 + "the end"
    assert stands("start here\n[Pasted text #1 +40 lines]the end", text, PASTES)
    assert not stands("half a line [Pasted text #1 +40 lines]", text, PASTES)
    assert not stands("[Pasted text #1 +40 lines] half a line", text, PASTES)


def test_only_the_text_itself_counts_as_put_back():
    assert Proof("do it", PASTES).restored("do it")
    assert not Proof("", PASTES).restored("")
    assert not Proof(TEXT, PASTES).restored("")
    changed = TEXT.replace("the changes", "my own changes")
    assert Proof(TEXT, PASTES).stands(changed)
    assert not Proof(TEXT, PASTES).restored(changed)


def test_a_text_is_found_on_a_screen():
    assert Proof(TEXT).on(f"old text\n> {TEXT[:40]}\n  {TEXT[40:]}\nfooter")
    assert not Proof(TEXT).on("old text")


@pytest.mark.parametrize(
    ("draft", "least", "ours"),
    [
        ("second line", 1, True),
        ("diff> second line\ndiff> third", 1, True),  # prompts that no rule knows
        ("second line\nand mine", 1, False),
        ("mine", 1, False),
        ("", 1, False),
        ("line", 20, False),  # too short, if somebody else may have typed
    ],
)
def test_a_draft_of_which_every_row_is_a_part_of_the_text(draft: str, least: int, ours: bool) -> None:
    assert Proof("first line\nsecond line\nthird").contains(draft, least) is ours


@pytest.mark.parametrize(
    ("screen", "ours"),
    [
        ("an answer\n> first line\nsecond line", True),
        ("first line\nsecond line", False),  # no prompt shows where it begins
        ("> my first line\nsecond line", False),
        ("> first line\nsecond line and mine", False),
    ],
)
def test_a_text_before_the_cursor_of_a_line_editor(screen: str, ours: bool) -> None:
    assert Proof("first line\nsecond line").ends(screen) is ours


def test_the_end_of_a_text_that_is_longer_than_the_screen() -> None:
    lines = [f"line {number} of a long text that has scrolled" for number in range(40)]
    proof = Proof("\n".join(lines))
    assert proof.ends("\n".join(lines[20:]))
    assert not proof.ends("\n".join(lines[-2:])), "too little of it"
    assert not proof.ends("\n".join([*lines[20:], "mine"]))
