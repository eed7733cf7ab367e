"""The rules of delegation: tables read with their lines, and the row that a task falls under."""

from __future__ import annotations

import pytest

from synapse_tui.agents.instructions import Rules
from synapse_tui.core.errors import RulesUndecided

TABLE = """\
Hand on what others do better.

| Kind   | Keywords                     | Agent     |
|--------|:----------------------------:|-----------|
| tests  | test*, unit test, `pytest`   | `codex`   |
| review | review, code review, レビュー | @gemini   |
| 文書   | ドキュメント、説明書、docs      | **alice** |
| C      | c, c++                       | bob       |
| rest   | *                            | claude    |
"""


def agent(task: str, table: str = TABLE) -> str:
    return Rules.read(table).pick(task).rule.agent


def test_a_table_among_prose_is_read_with_its_lines() -> None:
    rules = Rules.read(TABLE, first_line=4)
    assert not rules.problems
    assert [(rule.kind, rule.agent, rule.line) for rule in rules.rows] == [
        ("tests", "codex", 8),
        ("review", "@gemini", 9),
        ("文書", "alice", 10),
        ("C", "bob", 11),
        ("rest", "claude", 12),
    ]
    assert rules.rows[0].keywords == ("test*", "unit test", "pytest")


@pytest.mark.parametrize(
    ("task", "receiver"),
    [
        ("Write a UNIT  TEST for the parser", "codex"),
        ("testing is missing", "codex"),
        ("run pytest", "codex"),
        ("the latest contest", "claude"),
        ("please re-view it", "claude"),
        ("please (review) it", "@gemini"),
        ("このコードをレビューしてください", "@gemini"),
        ("ドキュメントを直す", "alice"),
        ("ﾄﾞｷｭﾒﾝﾄを直す", "alice"),
        ("ｄｏｃｓを直す", "alice"),
        ("説明書", "alice"),
        ("port it to C++", "bob"),
        ("port it to c", "bob"),
        ("port it to C#", "bob"),
        ("nothing known", "claude"),
        ("", "claude"),
    ],
)
def test_keywords_are_words_without_regard_to_case_and_width(task: str, receiver: str) -> None:
    assert agent(task) == receiver


def test_the_longest_keyword_wins_then_the_most_and_it_says_why() -> None:
    pick = Rules.read(TABLE).pick("code review of the tests in pytest")
    assert pick.rule.agent == "@gemini"
    assert pick.matched == ("code review", "review")
    assert pick.why == "rule 'review' (line 6) by 'code review', 'review'"
    table = "|kind|keywords|agent|\n|-|-|-|\n|a|plan, data|x|\n|b|plan|y|"
    assert agent("plan the data", table) == "x"
    assert Rules.read(TABLE).pick("?").why == "rule 'rest' (line 9) for what fits no other rule"


def test_ties_are_told_and_not_broken() -> None:
    table = "|kind|keywords|agent|\n|-|-|-|\n|a|plan|x|\n|b|data|y|\n|c|code|@X|"
    with pytest.raises(RulesUndecided) as caught:
        Rules.read(table).pick("plan the data")
    assert caught.value.fitting == ("x, rule 'a' (line 3) by 'plan'", "y, rule 'b' (line 4) by 'data'")
    assert agent("plan the code", table) == "x"  # both rows name the same agent


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("| a | b |", (3, "the row has 2 cells and the table 3 columns")),
        ("| a | b | c | d |", (3, "the row has 4 cells and the table 3 columns")),
        ("| a | b |  |", (3, "the row names no agent")),
        ("| a | , | c |", (3, "the row has no keywords: give words, or * for what fits no other row")),
    ],
)
def test_what_is_wrong_with_a_row_is_told_with_its_line(rows: str, problem: tuple[int, str]) -> None:
    assert Rules.read(f"| kind | keywords | agent |\n|---|---|---|\n{rows}").problems == (problem,)


def test_columns_may_stand_in_any_order_and_other_tables_are_prose() -> None:
    (row,) = Rules.read("Agent | Kind | Note | Keywords\n--|--|--|--\ncodex | a b | n | `x y`\n").rows
    assert (row.kind, row.keywords, row.agent) == ("a b", ("x y",), "codex")
    assert Rules.read("| file | agent |\n|-|-|\n| a | b |\n\nsay a | b") == Rules(())
