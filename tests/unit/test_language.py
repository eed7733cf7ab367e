"""The catalogue of another language, and how a text is found in it."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from textual.content import Content

from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.external.transport import problem_of
from synapse_tui.agents.worktrees.line_counts import FolderChange
from synapse_tui.cli.output import cells
from synapse_tui.cli.sending import receipt, still_open, timed_out
from synapse_tui.cli.sessions import _report_end
from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from synapse_tui.core.wording import standing_words
from synapse_tui.dummy.app import DummyApp, JsonLinesFile, parse_options
from synapse_tui.dummy.editor import DummyComposer
from synapse_tui.dummy.parts import PARTS
from synapse_tui.dummy.screen import AnsiStyle, PanelView, panel
from synapse_tui.dummy.script import Directive, ScriptedDialog, permission
from synapse_tui.dummy.terminal import Loop, Tty
from synapse_tui.messages.records import Change
from synapse_tui.sessions.client import Ended
from synapse_tui.sessions.places import SessionPlace
from synapse_tui.sessions.registry import Registry, RegistryEntry
from synapse_tui.settings.actions import GROUPS
from synapse_tui.settings.files import SettingEntry, survey
from synapse_tui.settings.keymap import Keymap
from synapse_tui.settings.schema import SCHEMA, words_for
from synapse_tui.system import language
from synapse_tui.system.language import Catalogue, breakable, parts_of
from synapse_tui.terminal import Terminal
from synapse_tui.ui.screens.application import help_text
from synapse_tui.ui.screens.messages import timeline_text
from synapse_tui.ui.screens.new_agent import profile_row
from synapse_tui.ui.screens.panes import PaneActions
from synapse_tui.ui.screens.settings import problem_lines, sentence_row
from synapse_tui.widgets.agent_rows import changed
from synapse_tui.widgets.deck import layout_name
from synapse_tui.widgets.text import wrapped_line  # also teaches Textual
from tests.command_line import Result, call
from tests.profiles import shipped
from tests.texts import CATALOGUES, lists, texts
from tests.ui.settings_kit import Files
from tests.unit.agent_screens import Screen

if TYPE_CHECKING:
    from synapse_tui.ui.screens.shell import Shell

TEXT = (CATALOGUES / "ja.json").read_text(encoding="utf-8")
CATALOGUE = json.loads(TEXT)


def fields(template: str) -> list[str]:
    return sorted(re.findall(r"(?<!\{)\{(\d+)(?::[tn])?\}", template))


def test_everything_that_a_person_reads_is_in_the_catalogue_and_nothing_else() -> None:
    found = texts()
    lacking = {text: where for text, where in found.items() if text not in CATALOGUE}
    assert not lacking, "python -m tests.texts prints them, to be filled in"
    assert not CATALOGUE.keys() - found.keys()


def test_the_catalogue_has_each_text_once() -> None:
    assert len(json.loads(TEXT, object_pairs_hook=list)) == len(CATALOGUE)


def test_what_waits_is_not_called_as_an_agent_that_is_ready() -> None:
    assert CATALOGUE["waiting"] not in CATALOGUE["ready"]


def test_the_places_of_the_message_mark_are_in_the_readers_language() -> None:
    text = "How a typed message is marked: `[A2A:task:sender] text`, or `A2A: text`."
    assert "task:sender" not in CATALOGUE[text]


def test_a_list_of_names_is_one_in_the_translation_too() -> None:
    """So `alice, bob` has the comma of that language."""
    wrong = {}
    for text in set(lists()):
        said = CATALOGUE.get(text.replace(":n", ""), "")
        if said and not {*re.findall(r"\{\d:n\}", text)} <= {*re.findall(r"\{\d:n\}", said)}:
            wrong[text] = said
    assert not wrong


def test_each_translation_has_the_places_of_its_text() -> None:
    assert not {text: said for text, said in CATALOGUE.items() if fields(text) != fields(said)}


def test_values_without_a_text_between_them_are_so_in_both_languages() -> None:
    """Nothing says where the first of them ends, so the second gets all of it."""
    wrong = {}
    for text, said in CATALOGUE.items():
        for pair in re.findall(r"(?=(\{\d\}\{\d\}))", text):
            if pair not in said:
                wrong[text] = said
    assert not wrong


def test_a_text_with_values_is_found_by_its_own_template() -> None:
    catalogue = Catalogue(CATALOGUE)
    values = [f"V{number}" for number in range(12)]
    wrong = {
        text: catalogue.translate(text.format(*values))
        for text, said in CATALOGUE.items()
        if sorted(re.findall(r"V\d+", catalogue.translate(text.format(*values))))
        != sorted(re.findall(r"V\d+", re.sub(":[tn]", "", said).format(*values)))
    }
    assert not wrong


CASES = {
    "the agent runs": "動作中",
    "no agent is named '{0}'": "「{0}」はありません",
    "no agent is named '{0}' in {1}": "{1}に「{0}」はありません",
    "{0} holds it: {1}": "{0}が保留: {1:t}",
    "{0} open": "{0}件",
    "Close {0}?": "{0} を閉じますか？",
    "Close {0}!": "{0:t} を閉じますか？",
    "{{{0}}} is a place": "{{{0}}}は場所です",
    "{0} in {1}": "{1}の{0}",
    "stops {0}: {1}.": "{0}を止めます: {1:n}。",
    "without {0}": "{0:n}を除いて",
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the agent runs", "動作中"),
        ("no agent is named 'bob'", "「bob」はありません"),
        ("no agent is named 'bob' in /tmp/a b", "/tmp/a b に「bob」はありません"),
        ("bob holds it: the agent runs", "bob が保留: 動作中"),
        ("bob holds it: something else", "bob が保留: something else"),
        ("翻訳 holds it: x", "翻訳が保留: x"),
        ("two\nlines holds it: x", "two\nlines が保留: x"),
        ("3 open", "3 件"),
        ("Close bob?", "bob を閉じますか？"),
        ("Close 翻訳?", "翻訳を閉じますか？"),
        ("Close the agent runs!", "動作中を閉じますか？"),
        ("it is open", "it is open"),
        ("no agent is named 'bob' (the agent runs)", "「bob」はありません (動作中)"),
        ("bob is (the agent runs)", "bob is (the agent runs)"),
        ("{x} is a place", "{x}は場所です"),
        ("the agent runs away", "the agent runs away"),
        ("3 件 in /tmp/a", "/tmp/a の 3 件"),
        ("2026-02-28 22:24 in parser", "parser の 2026-02-28 22:24"),
        ("a plain shell in the project", "a plain shell in the project"),
        ("Google's agent in a box", "Google's agent in a box"),
        ("put it, then look in it", "put it, then look in it"),
        ("stops 太郎: 太郎, じろう, shell.", "太郎を止めます: 太郎、じろう、shell。"),
        ("without alice, bob", "alice、bob を除いて"),
        ("without alice", "alice を除いて"),
        ("", ""),
    ],
)
def test_a_text_is_found_by_what_stands_between_its_values(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue(CASES)
    monkeypatch.setattr(language, "tr", catalogue.translate)
    monkeypatch.setattr(language, "language", lambda: "ja")
    assert catalogue.translate(text) == said


def test_parts() -> None:
    assert list(parts_of("a {0} b {1}")) == ["a ", " b ", ""]
    assert list(parts_of("{{a}}")) == ["{a}"]


def command(folder: Path, *words: str, **more: str) -> Result:
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"], "SYNAPSE_TEST_LOCALE": "ja_JP.UTF-8"}
    return call("synapse", *words, environ=environ | more, folder=folder)


@pytest.mark.usefixtures("japanese")
def test_layouts_are_called_by_their_japanese_names() -> None:
    assert [layout_name(each) for each in ("custom", "tabs", "mine")] == [
        "カスタム",
        words_for("tui.layout", "tabs"),
        "mine",
    ]


@pytest.mark.usefixtures("japanese")
def test_values_of_settings_are_said_in_japanese() -> None:
    said = [words_for("worktrees.place", value) for value in ("beside", "inside", "/srv/trees")]
    assert said == ["リポジトリの隣", "リポジトリの .synapse の中", "/srv/trees"]
    assert words_for("tui.quiet_hours", "none") == "なし"


@pytest.mark.usefixtures("japanese")
def test_commands_speak_japanese(tmp_path: Path) -> None:
    helped = command(tmp_path, "send", "--help")
    assert "使い方: synapse send" in helped.out
    assert "オプション:" in helped.out
    assert max(map(cells, helped.out.splitlines())) <= 110
    assert "エージェント" in command(tmp_path, "status", "nobody").err
    environ = {"HOME": str(tmp_path), "SYNAPSE_TEST_LOCALE": "ja_JP.UTF-8"}
    listed = call("synapse-tui", "ls", environ=environ, folder=tmp_path)
    assert "動作中のセッションはありません" in listed.err


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["send", "--nonsense"], "オプション --nonsense はありません"),
        (["send", "bob", "x", "--prioritx", "3"], "オプション --prioritx はありません。"),
        (["send", "bob", "x", "--priority"], "値が必要です"),
        (["send", "bob", "x", "--priority", "nine"], "「nine」は整数ではありません"),
        (["doctor", "--timeout", "x"], "「x」は数値ではありません"),
        (["list", "extra"], "余分な引数があります (extra)"),
        (["send", "bob"], "引数「MESSAGE」がありません"),
        (["history", "list", "--status", "x"], "「x」は使えません。次のどれかにしてください: "),
        (
            ["config", "set", "tui.theme", "x"],
            "設定「tui.theme」は次のどれかでなければなりません: auto、dark",
        ),
        (["config", "set", "tui.scrollback", "x"], "設定「tui.scrollback」は整数でなければなりません"),
    ],
)
def test_a_wrong_command_line_is_refused_in_japanese(tmp_path: Path, arguments: list[str], said: str) -> None:
    wrong = command(tmp_path, *arguments)
    assert wrong.code == 2
    assert said in wrong.err
    assert not re.search(
        r"(?i)no such|not a valid|requires|missing|unexpected|did you mean|must be|one of", wrong.err
    )


@pytest.mark.usefixtures("japanese")
def test_profiles_and_project_files_are_listed_in_japanese(tmp_path: Path) -> None:
    profiles = command(tmp_path, "profile", "list").out
    assert "付属" in profiles
    assert "メッセージを受け付けません" in profiles
    assert "not installed" not in profiles
    assert "0 件、問題はありません" in command(tmp_path, "profile", "check").err
    assert "書く" in command(tmp_path, "init", "--user").out
    kept = command(tmp_path, "init", "--user").out
    assert "そのまま" in kept
    assert "もうあります" in kept


@pytest.mark.usefixtures("japanese")
def test_an_address_is_not_taken_apart() -> None:
    assert language.tr("no agent answers to '@翻訳者'") == "「@翻訳者」に当たるエージェントはありません"
    assert language.tr("no agent answers to '@bob'") == "「@bob」に当たるエージェントはありません"


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ("3 エージェント still running", "3 エージェントは動き続けています"),
        ("no agents run", "動作中のエージェントはありません"),
    ],
)
def test_the_line_after_detaching_is_japanese(
    agents: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"detached from session 'proj': {agents}; to come back: synapse-tui attach proj"
    _report_end(SessionPlace(tmp_path, "proj", tmp_path), Ended("detached", text), tmp_path)
    line = f"[セッション「proj」から切り離しました: {said}。戻るには: synapse-tui attach proj]\n"
    assert capsys.readouterr().err == line


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(
    ("status", "said"), [("queued", "受付済"), ("held: you have a draft", "保留: 下書きがあります")]
)
def test_the_state_of_a_message_is_japanese_with_its_reason(status: str, said: str) -> None:
    assert language.tr(f"ada: {standing_words(status)} (task b138e630)") == f"ada: {said} (タスク b138e630)"


@pytest.mark.usefixtures("japanese")
def test_a_wait_that_ended_is_told_in_japanese() -> None:
    task = PeerTask("7fddb907" * 4, delivery="held", reason="permission dialog open")
    for error in (
        timed_out("leo", task, 2),
        timed_out("leo", task, 2, arrives=True),
        still_open("leo", task),
    ):
        assert "保留: 許可の確認が開いています" in language.tr(error.message)
        assert not re.search(r"\b(?!synapse|result|wait|timeout)[a-z]{4,}", language.tr(error.hint))


@pytest.mark.usefixtures("japanese")
def test_a_receipt_is_japanese() -> None:
    task = PeerTask("7fddb907" * 4, delivery="held", reason="permission dialog open")
    assert receipt("leo", task) == "leo: 保留: 許可の確認が開いています (タスク 7fddb907)"
    followed = replace(task, follow_up=replace(task, task_id="b138e630" * 4))
    assert receipt("leo", followed).endswith(" (メッセージ b138e630、タスク 7fddb907)")


@pytest.mark.usefixtures("japanese")
def test_a_table_is_japanese_and_its_json_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = RegistryEntry(
        "synapse-dummy-8300", "dummy", 8300, "http://127.0.0.1:8300", 1, status="PROCESSING"
    )
    monkeypatch.setattr(Registry, "list", lambda _self: [entry])
    heads, row = command(tmp_path, "list", "--all").out.splitlines()
    assert heads.split() == ["ID", "種類", "名前", "状態", "ポート", "フォルダー"]
    assert "作業中" in row
    (data,) = json.loads(command(tmp_path, "list", "--all", "--json").out)
    assert data["status"] == "PROCESSING"


@pytest.mark.usefixtures("japanese")
def test_a_line_on_standard_output_is_japanese_and_its_json_is_not(tmp_path: Path) -> None:
    status = command(tmp_path, "auth", "status").out.splitlines()
    assert status[0] == "キーの要求: いいえ（既定）"
    assert command(tmp_path, "auth", "status", "--json").json["enabled"] is False
    assert "ファイルの保護は" in command(tmp_path, "file-safety", "status").out


@pytest.mark.usefixtures("japanese")
def test_data_stays_as_it_is(tmp_path: Path) -> None:
    error = command(tmp_path, "status", "nobody", "--json").json["error"]
    assert isinstance(error, dict)
    assert error["message"].isascii()


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(
    ("error", "sends", "said"),
    [
        (httpx.ReadError("reset"), True, "接続が切れました: reset (メッセージが届いたかどうかは不明です。"),
        (httpx.ReadTimeout(""), False, "が時間内に応答しませんでした (もう一度試してください)"),
        (httpx.ConnectError(""), True, "接続できません (エージェントは動いていますか？)"),
        (httpx.ConnectError("no"), True, "接続できません (no) (エージェントは動いていますか？)"),
    ],
)
def test_why_an_external_agent_did_not_answer_is_japanese(error: Exception, sends: bool, said: str) -> None:
    assert said in language.tr(str(problem_of(error, "http://127.0.0.1:9", sends=sends)))


def built_in_agent(**view: Any) -> Screen:
    """The screen with what the built-in agent shows at the bottom."""
    shown = PanelView(DummyComposer(), "write here", name="alice", **view)
    frame = panel(shown, AnsiStyle(color=False), 80, 24)
    screen = Screen("dummy", columns=80)
    screen.show(frame.lines, frame.cursor)
    screen.wait(1.0)
    return screen


@pytest.mark.usefixtures("japanese")
def test_the_built_in_agent_asks_in_japanese() -> None:
    dialog = built_in_agent(dialog=permission("rm -rf build")).detector.dialogs.current
    assert dialog is not None
    words = re.findall("[A-Za-z]{2,}", "".join(dialog.text).replace("rm -rf build", ""))
    assert {word.lower() for word in words} <= {"esc", "enter"}
    assert dialog.asks == "wants to run rm -rf build"
    judged = [(option.allows_once, option.denies, option.escape) for option in dialog.options]
    assert judged == [(True, False, False), (False, False, False), (False, True, True)]


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(
    ("word", "state"),
    [("working", AgentState.PROCESSING), ("ready", AgentState.READY), ("error", AgentState.ERROR)],
)
def test_the_state_of_the_built_in_agent_is_read_in_japanese(word: str, state: AgentState) -> None:
    screen = built_in_agent(state=word, working=3.0 if word == "working" else None)
    text = "\n".join(screen.terminal.display)
    assert language.tr(word) in text
    assert word not in text.lower()
    assert screen.detector.report.state is state


class Obliging(DummyApp):
    """Its dialogs are answered with what they offer first."""

    def _show_dialog(self, dialog: ScriptedDialog) -> None:
        super()._show_dialog(dialog)
        dialog.press("enter")
        self.loop.later(0, self.close_dialog)


class Paper(Tty):
    """A terminal that shows all that was ever written."""

    def __init__(self) -> None:
        super().__init__()
        self.terminal = Terminal(80, 300)

    @property
    def size(self) -> tuple[int, int]:
        return self.terminal.columns, self.terminal.lines

    def write(self, text: str) -> None:
        self.terminal.feed(text.encode("utf-8", "surrogateescape"))


@pytest.mark.usefixtures("japanese")
def test_all_that_the_built_in_agent_says_of_itself_is_japanese() -> None:
    loop, paper = Loop(itertools.count().__next__), Paper()
    options = parse_options(["--name", "alice", "--resume", "--word-delay", "0"], {"HOME": "/"})
    app = Obliging(options, paper, loop, JsonLinesFile(""))
    app.paint()
    placeholder = "\n".join(paper.terminal.display)
    talk = ("一", "[A2A:1234abcd:bob] 二", *"三四五六七")
    for text in (*talk, "%%slow:1%%", "%%ask%%", "%%error%%", "/menu", "/nix", "!seq 99", "!false"):
        app.submit(text, "test")
    app.paint()
    queued = "\n".join(paper.terminal.display)
    app.submit("/exit", "test")
    loop.run()
    said = "\n".join([placeholder, queued, *paper.terminal.display])
    said += "\n".join(str(paper.terminal.scrollback[at].text) for at in range(len(paper.terminal.scrollback)))
    ours = re.sub(r"%%.*?%%|`.*?`|@NAME|/\w+|A2A:\w+:bob|\S*/\S*|END-OF-SLOW", "", said)
    known = {"alice", "bob", "cwd", "enter", "esc", "shift", "hello", "hi", "bash", "seq", "false"}
    assert {word.lower() for word in re.findall("[A-Za-z]{2,}", ours)} <= known
    assert "(1 文字、1 行)" in said
    assert "終了コード 1" in said


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize("width", [30, 56, 100])
def test_the_reason_of_a_step_stays_in_its_column(width: int) -> None:
    day = datetime(2026, 2, 28, tzinfo=UTC)
    reason = "permission dialog open"
    step = Change("task", day, TaskState.SUBMITTED, DeliveryState.HELD, reason)
    text = timeline_text([step], day + timedelta(days=9), width, {})
    _, _, _, *rows = (row.rstrip() for row in text.plain.splitlines())
    assert all(cells(row) <= width for row in rows)
    assert all(row.startswith("    ") for row in rows[1:])
    assert rows[0].endswith("held") == (width == 30), "it begins beneath where there is little room"
    assert "".join(row.strip() for row in rows).endswith(language.tr(reason))


@pytest.mark.parametrize("count", [1, 2, 10])
@pytest.mark.usefixtures("japanese")
def test_numbers_of_files_stand_beneath_each_other(count: int) -> None:
    change = FolderChange(tuple((f"{at}.py", 1, 0) for at in range(count)))
    assert changed(change, files=True)[-1].text == f"{count:>5} 件"


@pytest.mark.usefixtures("japanese")
def test_why_a_setting_does_not_count_is_japanese(tmp_path: Path) -> None:
    files = Files(tmp_path, {"SYNAPSE_LOG_LEVEL": "ERROR"})
    files.write(files.user, {"tui": {"layout": "grid", "layuot": "grid"}})
    files.write(files.shared, {"tui": {"layout": "tabs"}}, trusted=False)
    files.write(files.local, {"tui": {"layout": "main"}})
    now = survey(files())
    log_level, layout = now.find("env.SYNAPSE_LOG_LEVEL"), now.find("tui.layout")
    assert log_level is not None
    assert layout is not None
    assert now.obstacle(log_level, "user") == "環境変数 $SYNAPSE_LOG_LEVEL がどのファイルよりも優先します"
    assert now.obstacle(layout, "user") == ".synapse/settings.local.json が優先します: main"
    assert now.obstacle(layout, "project") == ".synapse/settings.json は信頼するまで効果がありません"
    assert problem_lines(now) == ["▲ ~/.synapse/settings.json: 知られていない設定「tui.layuot」"]


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(
    ("key", "typed", "said"),
    [
        ("tui.scrollback", "many", "値は整数でなければなりません"),
        ("a2a.card", "v9", "値は次のどれかでなければなりません: dual、v1"),
        ("tui.quiet_hours", "night", "値は 22:00-08:00 のような二つの時刻か、空でなければなりません"),
        (
            "env.SYNAPSE_API_KEYS",
            "a b",
            "値に空のキーか、空白や使えない文字のあるキーがあります（キー 1）",
        ),
    ],
)
def test_what_is_wrong_with_a_value_is_japanese(key: str, typed: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as wrong:
        SCHEMA[key].accept(typed)
    assert language.tr(f"the value {wrong.value}") == said


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize(("layout", "said"), [("columns", "横並び"), ("mine", "mine")])
def test_a_layout_is_called_as_in_the_settings(layout: str, said: str) -> None:
    told: list[str] = []
    deck = SimpleNamespace(
        use=lambda _name: None, arrangement=layout, panes=(), tiles=lambda _size: (), size=None
    )
    main = SimpleNamespace(deck=deck, leave_board=lambda: None)
    PaneActions(
        cast("Shell", SimpleNamespace(main=main, notice=lambda text, **_more: told.append(text)))
    ).action_set_layout(layout)
    assert list(map(language.tr, told)) == [f"レイアウト: {said}"]


@pytest.mark.usefixtures("japanese")
def test_what_a_person_wrote_of_an_agent_is_shown_as_written() -> None:
    shipped_one = shipped().profiles["shell"]
    own = replace(shipped_one, origin="user", description="Close the last issue?")
    assert language.tr(own.description) != own.description
    assert own.description in profile_row(own, 10).plain
    assert language.tr(shipped_one.description) in profile_row(shipped_one, 10).plain


@pytest.mark.usefixtures("japanese")
def test_no_blank_follows_wide_punctuation() -> None:
    said = language.tr("Type a few words to alice or bob, ")
    assert said == "alice か bob に少し入力してください、"
    assert language.tr("In alice's pane, type ").endswith(" "), "one between scripts stays"


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize("width", range(60, 110, 7))
@pytest.mark.parametrize("query", ["scroll", "スクロール", "ワークツリー", "worktree", "click", "suspended"])
def test_help_finds_words_of_both_languages_wherever_a_row_is_broken(query: str, width: int) -> None:
    found = help_text(Keymap(), None, width, query).plain
    assert found != language.tr("nothing found")
    assert len(found.splitlines()) < 25, "only rows that hold it"


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize("width", [72, 110])
def test_help_cuts_no_name_of_an_action(width: int) -> None:
    shown = help_text(Keymap(), None, width).plain
    titles = {language.tr(action.title) for group in GROUPS for action in Keymap().in_group(group)}
    assert not {title for title in titles if not re.search(f"{re.escape(title)}\\s", shown)}


@pytest.mark.usefixtures("japanese")
def test_the_setting_comes_before_the_locale(tmp_path: Path) -> None:
    (tmp_path / ".synapse").mkdir(mode=0o700)
    (tmp_path / ".synapse" / "settings.json").write_text('{"tui": {"language": "en"}}')
    assert "Usage: synapse send" in command(tmp_path, "send", "--help").out


@pytest.mark.usefixtures("japanese")
def test_the_language_of_the_session_comes_before_the_setting(tmp_path: Path) -> None:
    (tmp_path / ".synapse").mkdir(mode=0o700)
    (tmp_path / ".synapse" / "settings.json").write_text('{"tui": {"language": "en"}}')
    assert "使い方: synapse send" in command(tmp_path, "send", "--help", SYNAPSE_LANGUAGE="ja").out


@pytest.mark.usefixtures("japanese")
def test_a_language_that_is_none_counts_as_not_set(tmp_path: Path) -> None:
    assert "使い方: synapse send" in command(tmp_path, "send", "--help", SYNAPSE_LANGUAGE="xx").out


def test_settings_that_cannot_be_read_say_nothing_of_the_language(tmp_path: Path) -> None:
    (tmp_path / ".synapse").mkdir(mode=0o700)
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / ".synapse" / "settings.json").write_text('{"tui": {"language": "ja"}, "x": ' + deep + "}")
    assert "Usage: synapse send" in command(tmp_path, "send", "--help").out


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("two words", ["two", " words"]),
        ("日本語です。", ["日", "本", "語", "で", "す。"]),
        ("「ab」と cd", ["「ab」", "と", " cd"]),
        ("が\u3099ん", ["が\u3099", "ん"]),
        ("で ^] u を、^] Shift+Tab x", ["で", " ^] u", " ", "を、^] Shift+Tab", " x"]),
        ("👩\u200d💻👍🏽 ok", ["👩\u200d💻", "👍🏽", " ok"]),
        ("", []),
    ],
)
def test_a_line_may_be_broken_around_wide_characters(text: str, parts: list[str]) -> None:
    assert list(breakable(text)) == parts


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("plain words only", 11, ["plain words", "only"]),
        ("abc 日本語の文です。", 10, ["abc 日本語", "の文です。"]),
        ("a… word after", 7, ["a… word", "after"]),
        ("日本。日本。", 5, ["日", "本。", "日", "本。"]),
        ("…unbreakableword", 6, ["…unbre", "akable", "word"]),
        ("press ^] u to go", 9, ["press", "^] u to", "go"]),
        ("", 5, [""]),
    ],
)
def test_textual_breaks_lines_around_wide_characters(text: str, width: int, lines: list[str]) -> None:
    assert [line.plain.rstrip() for line in Content(text).wrap(width)] == lines


@pytest.mark.parametrize("text", [each for each in CATALOGUE if each.endswith(("Esc cancels", "Esc closes"))])
def test_the_hints_of_all_dialogs_are_separated_and_named_alike(text: str) -> None:
    said = CATALOGUE[text]
    assert said.count("・") == text.count(" · ")
    assert "· " not in said
    assert said.endswith("Esc キャンセル" if text.endswith("cancels") else "Esc 閉じる")


def test_no_two_settings_read_alike() -> None:
    sentences = {setting.sentence.replace("{", "{{").replace("}", "}}") for setting in SCHEMA.values()}
    heads = Counter(CATALOGUE[each].partition("{{")[0] for each in sentences if each in CATALOGUE)
    assert [head for head, count in heads.items() if head and count > 1] == []


def cut_sentences() -> list[str]:
    """The settings whose sentence, with its default, is cut on a screen of 120 columns."""
    entries = [SettingEntry(setting, setting.default, "default", {}) for setting in SCHEMA.values()]
    rows = {each.key: sentence_row(each, 56, chosen=True, by_name=False, boxed=False) for each in entries}
    return [f"{key}: {row.plain}" for key, row in rows.items() if "…" in row.plain]


def test_no_setting_is_cut() -> None:
    assert cut_sentences() == []


@pytest.mark.usefixtures("japanese")
def test_no_setting_is_cut_in_japanese() -> None:
    assert cut_sentences() == []


LONE = re.compile("[\u3041-\u3096]{1,3}[。、:]?")
FEW = re.compile("[\u3041-\u30fa\u4e00-\u9fff]{1,5}[。、:]?")
PHRASE = re.compile("[\u3041-\u3096、][\u30a1-\u30fa\u4e00-\u9fff]")


def test_no_last_row_is_the_end_of_a_verb_alone() -> None:
    wide = re.compile("[\u3041-\u30fa\u4e00-\u9fff]$")
    for width in range(20, 80, 9):
        for said in CATALOGUE.values():
            text = " ".join(said.split())
            rows = wrapped_line(text, width)
            assert "".join(rows).replace(" ", "") == text.replace(" ", "")
            assert max(map(cells, rows)) <= width, rows
            content = [str(row).rstrip() for row in Content(text).wrap(width)]
            for *_, above, last in (each for each in (rows, content) if len(each) > 1):
                assert not (LONE.fullmatch(last) and wide.search(above)), (above, last)
                phrases = (above[begins.start() + 1 :] for begins in PHRASE.finditer(above))
                fits = any(cells(phrase + last) <= cells(above) for phrase in phrases)
                assert not (FEW.fullmatch(last) and wide.search(above) and fits), (above, last)


@pytest.mark.usefixtures("japanese")
def test_what_a_command_said_of_a_message_is_shown_in_japanese() -> None:
    assert language.tr("leo: queued (task 7fddb907)") == "leo: 受付済 (タスク 7fddb907)"


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize("asked", ["build フォルダーを消して", "remove the build folder"])
def test_the_demo_agents_speak_japanese(asked: str) -> None:
    assert PARTS["bob"].greeting.startswith("bob です。")
    words = ["許可があれば行います。", Directive("perm", "rm -rf build"), "この件は以上です。"]
    assert list(PARTS["bob"].perform(asked) or ()) == words
    assert list(PARTS["alice"].perform("hello") or ()) == ["受け取りました: hello"]


@pytest.mark.parametrize("text", ["open one with ^] n", "To quit: ^] q", "permission: Bash command · rm"])
def test_a_value_with_blanks_is_found_after_a_short_text(text: str) -> None:
    said = Catalogue(CATALOGUE).translate(text)
    assert said != text
    assert text.rpartition("] ")[2].rpartition(": ")[2] in said
