"""The first run on a machine without agents, used by keys, by the mouse, at several sizes."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Launch, Ready
from tests.e2e.test_signals import assert_clean

Log = Callable[..., list[dict[str, object]]]


def texts(log: list[dict[str, object]]) -> list[str]:
    return [str(entry["text"]) for entry in log]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_without_agents_alice_and_bob_open_side_by_side_and_the_readme_example_works(
    launch: Launch, agents: Ready, dummy_log: Log, columns: int, lines: int
) -> None:
    terminal = launch(columns=columns, lines=lines)
    first, _second = agents(terminal, 2)
    terminal.wait(lambda: terminal.screen.count("❯") == 2, "two panes side by side")
    assert "alice" in terminal.rows[1]
    assert "bob" in terminal.rows[1]
    terminal.wait_for("Let one write to the other", "Space type it for me")
    terminal.type("@bob hello")
    terminal.wait_for("@bob hello")
    assert not dummy_log("submit")
    terminal.keys("Enter")
    terminal.wait(lambda: len(dummy_log("submit")) == 1, "the message to be submitted")
    (entry,) = dummy_log("submit")
    assert str(entry["text"]).endswith(f"synapse-{first}] hello")
    terminal.wait_for("I have your message: hello", *(["bob answers you"] if columns > 80 else []))
    terminal.wait_for("bob has answered")
    terminal.keys("C-]", ".")
    terminal.wait_gone("bob has answered")


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_the_tour_by_keys_alone(
    launch: Launch, agents: Ready, dummy_log: Log, home: Path, columns: int, lines: int
) -> None:
    terminal = launch(columns=columns, lines=lines)
    agents(terminal, 2)
    for seen in ("Space type it for me", "bob has answered"):
        terminal.wait_for(seen, "   Esc end the tour")
        terminal.keys("Space")
    terminal.wait_for("without Enter")
    terminal.keys("F4")
    terminal.type("my own words")
    terminal.wait_for("it is held", "Enter send your line")
    assert "are you busy" not in terminal.screen
    terminal.keys("Enter")
    terminal.wait_for("Your line went first", "Space next   Esc")  # the key is for the tour again
    assert [text.partition("] ")[2] or text for text in texts(dummy_log("submit"))] == [
        "hello",
        "my own words",
        "are you busy?",
    ]
    terminal.keys("Space")
    terminal.wait_for("bob needs you", "Space go there")
    terminal.keys("C-]", "a")
    terminal.wait_for("3 No", "Esc to cancel")
    terminal.keys("3")
    terminal.wait_for("The dialog is closed.", "Space next   Esc")
    assert [entry["choice"] for entry in dummy_log("dialog-answer")] == [3]
    terminal.keys("Right")
    terminal.wait_for("npm install -g @anthropic-ai/claude-code", "Esc close")
    terminal.keys("Escape")
    terminal.wait_gone("Your own agents")
    settings = home / ".synapse" / "settings.json"
    terminal.wait(settings.exists, "the end of the tour to be remembered")
    assert json.loads(settings.read_text()) == {"tui": {"tour": False}}
    terminal.keys("C-]", "q", "y")
    terminal.wait_for("all agents are stopped")
    terminal.keys("clear; synapse-tui", "Enter")
    terminal.wait_for("I am alice", "I am bob", "F1")
    assert "Let one write" not in terminal.screen


def test_the_tour_by_the_mouse_alone(launch: Launch, agents: Ready, dummy_log: Log) -> None:
    terminal = launch()
    agents(terminal, 2)

    def click(word: str) -> None:
        terminal.wait_for(word)
        terminal.click(*terminal.find(word))

    click("type it for me")
    terminal.wait_for("bob has answered")
    click("Space next")
    click("type it for me")
    click("Enter send your line")
    terminal.wait_for("Your line went first")
    click("Space next")
    click("Space go there")
    click("3 No")
    terminal.wait_for("The dialog is closed.")
    assert [entry["choice"] for entry in dummy_log("dialog-answer")] == [3]
    click("Space next")
    terminal.wait_for("Your own agents")
    click("Esc close")
    terminal.wait_gone("Your own agents")


def test_a_file_mention_reaches_the_agent_character_by_character(
    launch: Launch, agents: Ready, dummy_log: Log
) -> None:
    terminal = launch("dummy", "dummy")
    agents(terminal, 2)
    for character in "@README.md is it":
        terminal.type(character)
    terminal.wait_for("❯ @README.md is it")
    terminal.keys("Enter")
    terminal.wait(lambda: bool(dummy_log("submit")), "the prompt to be submitted")
    assert texts(dummy_log("submit")) == ["@README.md is it"]


def test_a_half_typed_draft_is_left_alone(
    launch: Launch, agents: Ready, dummy_log: Log, environ: dict[str, str], project: Path
) -> None:
    terminal = launch("dummy")
    agents(terminal, 1)
    terminal.type("half a li")
    terminal.wait_for("❯ half a li")
    subprocess.run(
        ["synapse", "send", "dummy", "wait", "--no-response"], env=environ, check=True, cwd=project
    )
    terminal.wait_for("you have a draft")
    time.sleep(0.5)  # in which it might be typed
    assert "half a li" in terminal.screen
    assert not dummy_log("submit")
    terminal.type("ne")
    terminal.keys("Enter")
    terminal.wait(lambda: len(dummy_log("submit")) == 2, "both to be submitted")
    first, second = texts(dummy_log("submit"))
    assert first == "half a line"
    assert second.endswith("wait")


def test_keys_alone(launch: Launch, agents: Ready, dummy_log: Log) -> None:
    terminal = launch("dummy", "dummy")
    agents(terminal, 2)
    for key in ("F5", "F5", "F5", "F5"):
        terminal.keys(key)
    terminal.keys("C-]", "2")
    terminal.type("to the second")
    terminal.wait_for("❯ to the second")
    terminal.keys("Enter")
    terminal.wait(lambda: texts(dummy_log("submit")) == ["to the second"], "the prompt")
    terminal.keys("F1")
    terminal.wait_for("Next agent that needs you")
    terminal.keys("Escape")
    terminal.wait_gone("Next agent that needs you")
    terminal.keys("F6")
    terminal.wait_for("Messages")
    terminal.keys("F6")
    terminal.wait_gone("Messages")
    terminal.keys("F10")
    terminal.type("rename")
    terminal.wait_for("Rename agent")
    terminal.keys("Enter")
    terminal.wait_for("Name")
    terminal.type("bob")
    terminal.keys("Enter")
    terminal.wait_for("bob")
    agents(terminal, 2)
    terminal.keys("C-]", "x")
    terminal.wait_for("Close bob?")
    terminal.keys("y")
    terminal.wait_gone("bob")


PANES_AT_80 = {"tabs": 1, "columns": 2, "grid": 3, "main": 3}
"""Panes that show at 80 columns: one that would be too narrow to work in is not shown."""


def test_every_layout_at_every_size(launch: Launch, agents: Ready) -> None:
    terminal = launch("--layout", "main", "dummy", "dummy", "dummy", columns=120, lines=40)
    agents(terminal, 3)
    for columns, lines in ((120, 40), (80, 24), (200, 60)):
        terminal.resize(columns, lines)
        terminal.wait(lambda lines=lines: len(terminal.rows) == lines, f"{lines} rows")  # type: ignore[misc]
        for layout in ("tabs", "columns", "grid", "main"):
            terminal.keys("F5")
            panes = PANES_AT_80[layout] if columns == 80 else 1 if layout == "tabs" else 3
            terminal.wait_for(f"layout: {layout}")
            terminal.wait(lambda panes=panes: terminal.screen.count("❯") == panes, f"{panes} panes")  # type: ignore[misc]
            assert all(len(row) <= columns for row in terminal.rows)


@pytest.mark.parametrize(("term", "extra"), [("xterm-16color", {}), ("tmux-256color", {"NO_COLOR": "1"})])
def test_poor_terminals(launch: Launch, agents: Ready, term: str, extra: dict[str, str]) -> None:
    terminal = launch("dummy", "dummy", term=term, **extra)
    agents(terminal, 2)
    colours = terminal.ansi
    assert "[38;2;" not in colours
    if extra:
        assert "[38;5" not in colours


def test_bad_arguments_say_what_to_do(launch: Launch) -> None:
    terminal = launch(command=("true",))
    for number, (arguments, said) in enumerate(
        (
            ("nothing-like-it", "there is no profile"),
            ("dummy@/no/such/folder", "folder"),
            ("claude", "not on PATH"),
            ("dummy --port 99999", "99999"),
            ("--cwd /no/such/folder", "folder"),
            ("dummy --layout circle", "circle"),
        )
    ):
        terminal.keys(f"clear; synapse-tui {arguments}; echo en''ded {number}", "Enter")
        terminal.wait_for(f"ended {number}")
        told = terminal.screen.replace(f"synapse-tui {arguments}", "")
        assert said in told
        assert "Traceback" not in told
    assert_clean(terminal)


def test_no_terminal(environ: dict[str, str], project: Path) -> None:
    done = subprocess.run(
        ["synapse-tui"],
        env=environ,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode != 0
    assert "needs a terminal" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_works_by_itself_and_leaves_nothing(
    launch: Launch, environ: dict[str, str], home: Path, tmp_path: Path
) -> None:
    before = sorted(home.rglob("*"))
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    terminal = launch("demo", TMPDIR=str(scratch))
    terminal.wait_for("Four agents", "I am mia", "I am tom")
    assert list(scratch.iterdir())
    terminal.wait_for("They write to one another", "which tests cover", timeout=90)
    terminal.wait_for("One writer for each file", "mention the new", timeout=90)
    terminal.wait_for("Your draft is safe", "║1", timeout=90)
    terminal.keys("C-]", "q")
    terminal.wait_for("Quit synapse-tui?")
    terminal.keys("y")
    terminal.wait(lambda: not list(scratch.iterdir()), "its folders to be removed")
    assert sorted(home.rglob("*")) == before


def test_the_tour_can_be_seen_again(launch: Launch) -> None:
    terminal = launch("demo", "--tour", columns=80, lines=24)
    terminal.wait_for("Let one write to the other", "I am alice", "I am bob")


def test_the_first_run_in_japanese(launch: Launch, agents: Ready, environ: dict[str, str]) -> None:
    environ["LANG"] = "ja_JP.UTF-8"
    environ["LC_CTYPE"] = "C.UTF-8"  # for tmux, on machines without that locale
    terminal = launch(columns=100, lines=30)
    agents(terminal, 2)
    terminal.wait_for("一方からもう一方へ書いてみる", "Space 代わりに入力する", "F1 ヘルプ", "● 待機中")
    terminal.keys("Space")
    terminal.wait_for("届いて、bob が回答しました。", "   Esc ツアーを終える")
    terminal.keys("Escape")
    terminal.wait_gone("ツアーを終える")
    terminal.keys("F1")
    terminal.wait_for("最後の次は最初に戻ります。")
