"""The changes of an agent: looked at, foreseen and merged, with a real git."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, OptionList

from synapse_tui.agents.worktrees import keep
from synapse_tui.agents.worktrees.changes import FileDiff, read_changes
from synapse_tui.agents.worktrees.trees import Repository
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.board import BoardActions
from synapse_tui.ui.screens.changes import ChangesView, CommitForm, MergeForm, RemarkForm, hunks, numbered
from synapse_tui.ui.screens.dialog import Confirm
from tests.ui.app_kit import LEADER, at_main, make_app, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost
from tests.ui.looks import every_look
from tests.worktree_kit import ENVIRON, add, commit, git, make_repository

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def worktrees(host: FakeHost, folder: Path) -> tuple[Path, Path, Path]:
    """Give two agents worktrees in which they change the same line."""
    repository = make_repository(folder / "shop")
    claude, codex = (add(repository, name).path for name in ("claude", "codex"))
    (claude / "a.py").write_text("ONE\ntwo\nthree\n")
    (claude / "翻訳.py").write_text("def total():\n    return 0\n")
    commit(codex, a_py="1\ntwo\nthree\n")
    host.agents[CLAUDE].cwd, host.agents[CODEX].cwd = claude, codex
    return repository.top, claude, codex


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, ENVIRON[name])


def shown(app: SynapseApp) -> ChangesView | None:
    view = app.screen
    read = isinstance(view, ChangesView) and view.ready and bool(view.query_one(OptionList).option_count)
    return view if read and isinstance(view, ChangesView) else None


def is_shown(app: SynapseApp, text: str) -> bool:
    return text in text_of(app)


async def test_changes_and_the_forecast_are_shown(tmp_path: Path) -> None:
    host = three_agents()
    worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        text = text_of(app)
        assert "synapse/claude → main" in text
        assert "will conflict with codex in a.py" in text
        assert "+ONE" in text
        assert "-one" in text
        await pilot.press("down")
        await until(lambda: "+def total():" in text_of(app))
        assert "+2" in text_of(app)
        assert "−0" not in text_of(app)
        await pilot.press("escape")
        await until(lambda: at_main(app))


async def test_a_worktree_is_merged_from_the_board(tmp_path: Path) -> None:
    host = three_agents()
    top, claude, _codex = worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "b", *["up"] * 5, "d")
        await until(lambda: shown(app))
        await pilot.press("m")
        await until(lambda: isinstance(app.screen, MergeForm) and app.screen.ready)
        assert app.screen.query_one(Input).value == "Work of claude"
        await pilot.press("enter")
        await until(lambda: at_main(app))
        assert (top / "a.py").read_text() == "ONE\ntwo\nthree\n"
        assert not git(claude, "status", "--porcelain")
        assert "main has the work of claude now" in app.main.status_bar.notice


async def test_conflicts_are_handed_to_the_agent(tmp_path: Path) -> None:
    host = three_agents()
    top, _claude, codex = worktrees(host, tmp_path)
    commit(top, a_py="main\ntwo\nthree\n")
    host.agents[CLAUDE].cwd = codex
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        await pilot.press("m")
        await until(lambda: isinstance(app.screen, MergeForm) and app.screen.ready)
        await pilot.press("enter")
        await until(lambda: at_main(app))
        assert (top / "a.py").read_text() == "main\ntwo\nthree\n"
        assert "<<<<<<<" in (codex / "a.py").read_text()
        assert "conflicts in a.py" in host.tasks[-1].text
        await until(lambda: at_main(app))
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        assert "in the middle of a merge: merge again once the agent has ended it" in text_of(app)
        assert host.tasks[-1].target == CLAUDE


async def test_remarks_on_lines_are_sent_as_one_message(tmp_path: Path) -> None:
    host = three_agents()
    worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        await pilot.press("tab", "down", "down", "enter")
        await until(lambda: isinstance(app.screen, RemarkForm) and app.screen.ready)
        await pilot.press(*"why", "enter")
        await until(lambda: "╰ why · not sent yet" in text_of(app))
        await pilot.press("escape")
        await until(lambda: at_main(app))
        await pilot.press(LEADER, "g")
        await until(lambda: "╰ why" in text_of(app), "the remark, which is not lost")
        await pilot.press("down", "tab", "down", "down", "enter")
        await until(lambda: isinstance(app.screen, RemarkForm) and app.screen.ready)
        await pilot.press(*"float?", "enter")
        await until(lambda: "Send 2 remarks" in text_of(app))
        await pilot.press("s")
        await until(lambda: at_main(app))
        assert host.tasks[-1].target == CLAUDE
        assert host.tasks[-1].text == (
            "Remarks on your changes:\n\na.py:1\n> +ONE\nwhy\n\n翻訳.py:2\n> +    return 0\nfloat?"
        )
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        assert "╰" not in text_of(app)


async def test_a_remark_is_changed_and_taken_back(tmp_path: Path) -> None:
    host = three_agents()
    worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        await pilot.press("tab", "down")
        for typed, seen in (("no", "╰ no ·"), ("ne", "╰ none ·")):
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, RemarkForm) and app.screen.ready)
            await pilot.press("end", *typed, "enter")
            await until(partial(is_shown, app, seen))
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, RemarkForm) and app.screen.ready)
        await pilot.press("end", "ctrl+u", "enter")
        await until(lambda: isinstance(app.screen, ChangesView) and "╰" not in text_of(app))


async def test_work_is_committed_for_an_agent_that_cannot(tmp_path: Path) -> None:
    host = three_agents()
    top, claude, _codex = worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        await pilot.press("c")
        await until(lambda: isinstance(app.screen, CommitForm) and app.screen.ready)
        await pilot.press("enter")
        await until(lambda: at_main(app))
        assert git(claude, "log", "-1", "--format=%s") == "Work of claude\n"
        assert not git(claude, "status", "--porcelain")
        assert (top / "a.py").read_text() == "one\ntwo\nthree\n"


async def test_a_worktree_is_discarded_after_a_question_and_kept(tmp_path: Path) -> None:
    host = three_agents()
    top, claude, _codex = worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        await pilot.press("D")
        await until(lambda: "kept for 30 days" in text_of(app))
        await pilot.press("n")
        await until(lambda: shown(app))
        assert claude.is_dir()
        await pilot.press("D")
        await until(lambda: isinstance(app.screen, Confirm) and app.screen.ready)
        await pilot.press("y")
        await until(lambda: at_main(app))
        assert CLAUDE not in host.agents
        assert not claude.exists()
        back = keep.restore(Repository(top, ENVIRON), keep.find_kept(Repository(top, ENVIRON), "claude"))
        assert (back.path / "a.py").read_text() == "ONE\ntwo\nthree\n"


async def test_a_worktree_in_which_a_program_runs_is_discarded_once_that_has_ended(tmp_path: Path) -> None:
    """The agent is closed by then."""
    host = three_agents()
    _top, claude, _codex = worktrees(host, tmp_path)
    process = await asyncio.create_subprocess_exec("sleep", "600", cwd=claude)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        await pilot.press("D", "y")
        await until(lambda: is_shown(app, f"process {process.pid} (sleep) runs in"))
        process.kill()
        await process.wait()
        await pilot.press("D", "y")
        await until(lambda: at_main(app))
        assert not claude.exists()
        assert "the worktree of claude is discarded" in app.main.status_bar.notice


def test_hunks_have_the_colours_of_their_language() -> None:
    lines = (
        "@@ -1,2 +1,2 @@",
        '-"""old',
        '+"""new',
        " still",
        ' """',
        "+def total(): return 1",
        "+",
        "\\ No",
    )
    drawn = hunks(FileDiff("a.py", 2, 1, lines))
    styles = [{str(span.style) for span in line.spans} for line in drawn]
    assert [line.plain for line in drawn] == list(lines)
    assert "$code-text" in styles[3], "the fourth line is in a string"
    assert {"$code-key", "$code-name", "$code-number", "on $add-ground"} <= styles[5]
    assert "on $del-ground" in styles[1]
    plain = hunks(FileDiff("what.ever", 2, 1, lines))
    assert [line.plain for line in plain] == list(lines)


def test_tabs_are_wide_and_no_other_control_ends_a_line(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "shop")
    tree = add(repository, "alice")
    (tree.path / "a.py").write_bytes(b"one\n\t\ttwo\nthr\x0cee\xe2\x80\xa8@@ -1 +500 @@\r\n")
    (file,) = read_changes(tree.path, ENVIRON).files
    rows = [row.plain for row in hunks(file)]
    assert rows[1:] == [" one", "-two", "-three", "+        two", "+thr ee @@ -1 +500 @@ "]
    assert [line.number for line in numbered(file)][-1] == 3


async def test_a_name_with_a_line_break_is_one_row(tmp_path: Path) -> None:
    host = three_agents()
    _top, claude, _codex = worktrees(host, tmp_path)
    (claude / "0\nbreak").write_text("x\n")
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        view = await until(lambda: shown(app))
        files = view.query_one("#files", OptionList)
        assert files.virtual_size.height == files.option_count
        assert "0 break" in text_of(app)


async def test_a_shared_folder_is_looked_at_but_not_merged(tmp_path: Path) -> None:
    host = three_agents()
    repository = make_repository(tmp_path / "shop")
    (repository.top / "new.py").write_text("x\n")
    host.agents[CLAUDE].cwd = repository.top
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        view = await until(lambda: shown(app))
        assert view is not None
        assert "+x" in text_of(app)
        assert not view.query_one("#merge").display
        await pilot.press("m")
        await until(lambda: "only a worktree can be merged" in text_of(app))


async def test_in_a_shared_folder_it_says_who_has_written_a_file(tmp_path: Path) -> None:
    host = three_agents()
    top = make_repository(tmp_path / "shop").top
    host.safety.enabled = True
    for name, writers in {"new.py": (CLAUDE, CODEX, CLAUDE), "mine.py": ()}.items():
        (top / name).write_text("x\n")
        for agent_id in writers:
            host.safety.change(str(top / name), agent_id)
    host.agents[CLAUDE].cwd = top
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        rows = [row for row in text_of(app).splitlines() if ".py" in row and "+1" in row]
        assert [row.split("+1")[0].split()[-3:] for row in rows] == [
            ["▌", "mine.py"],
            ["new.py", "claude,", "codex"],
        ]


async def test_files_that_hooks_report_are_counted_on_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = three_agents()
    _top, claude, _codex = worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "b")
        source = app.main.board.source
        assert isinstance(source, BoardActions)
        await until(lambda: source.changes.get(claude) is not None)
        touched: list[Path] = []
        monkeypatch.setattr(source.changes, "touch", touched.append)
        host.safety.change(str(claude / "b.py"), CLAUDE)
        await until(lambda: touched)
        assert touched == [claude / "b.py"]


async def test_the_keys_of_changes_are_those_of_the_field_in_focus(tmp_path: Path) -> None:
    host = three_agents()
    worktrees(host, tmp_path)
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: is_shown(app, "↑↓ file · Tab lines · r reads again"))
        await pilot.press("tab")
        await until(lambda: is_shown(app, "↑↓ line · Tab next field · Enter remark · r reads again"))
        await pilot.press("tab")
        await until(lambda: is_shown(app, "Tab next field · Enter presses it · r reads again"))


async def test_without_git_it_says_so(tmp_path: Path) -> None:
    host = three_agents()
    host.agents[CLAUDE].cwd = tmp_path
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "g")
        await until(lambda: "is not in a git repository" in text_of(app))
        assert "r reads again · Esc closes" in text_of(app)
        assert "Enter remark" not in text_of(app), "there is no line for one"
        await pilot.press("escape")
        await until(lambda: at_main(app))


@pytest.mark.usefixtures("same_everywhere")
@every_look
def test_look(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    host = three_agents()
    worktrees(host, tmp_path)
    app = make_app(host, theme=theme)

    async def run(pilot: Any) -> None:
        await until(lambda: app.begun and len(app.main.deck.panes) == len(host.agents))
        await pilot.press(LEADER, "g")
        await until(lambda: shown(app))
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=run)
