"""What the agents' hooks tell, and what they are answered; the shapes are those that real agents wrote."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import synapse_tui.hooks.client as client_module
from synapse_tui.agents.state import ASKS, HOOKED, WORKS
from synapse_tui.core.errors import ConfigError
from synapse_tui.core.locks import ChangeType
from synapse_tui.hooks import (
    Dialect,
    FileWrite,
    HookEvent,
    HookKind,
    context_answer,
    denial_answer,
    read_event,
)
from synapse_tui.hooks.dialects import files_of_patch
from synapse_tui.hooks.install import FILE, Consent, HookConsent, HookInstaller, HookStatus, place_of
from tests.unit.agent_screens import CLAUDE_DIALOG, Screen, claude, osc

CLIENT = [sys.executable, "-S", "-E", str(Path(client_module.__file__))]
PATCH = """*** Begin Patch
*** Add File: new.txt
+hello
*** Update File: src/a.py
*** Move to: src/b.py
@@
-x
+y
*** Delete File: old.txt
*** End Patch"""
PATCHED = (
    FileWrite("new.txt", ChangeType.CREATE),
    FileWrite("src/a.py", ChangeType.DELETE),
    FileWrite("src/b.py", ChangeType.CREATE),
    FileWrite("old.txt", ChangeType.DELETE),
)


def told(word: str, dialect: str, **fields: Any) -> HookEvent:
    return read_event(word, Dialect(dialect), json.dumps(fields).encode())


def test_claude_names_the_file_and_afterwards_its_lines() -> None:
    base: dict[str, Any] = {
        "session_id": "s",
        "cwd": "/repo",
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": "/repo/a.py", "old_string": "x", "new_string": "y"},
        "tool_use_id": "toolu_1",
    }
    event = told("pre", "claude", **base)
    assert (event.kind, event.tool, event.call, event.folder) == (
        HookKind.PRE,
        "Edit",
        "toolu_1",
        Path("/repo"),
    )
    assert event.writes == (FileWrite("/repo/a.py"),)
    hunks = [{"oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 2, "lines": [" a", "-x", "+y"]}]
    after = told(
        "post",
        "claude",
        **base | {"hook_event_name": "PostToolUse", "tool_response": {"structuredPatch": hunks}},
    )
    assert after.kind is HookKind.POST
    assert after.writes == (FileWrite("/repo/a.py", lines="4"),)
    failed = told(
        "post", "claude", **base | {"hook_event_name": "PostToolUseFailure", "error": "Exit code 3"}
    )
    assert failed.kind is HookKind.FAILED


@pytest.mark.parametrize(
    ("dialect", "fields", "path"),
    [
        ("claude", {"tool_name": "Write", "tool_input": {"file_path": "/p/a", "content": ""}}, "/p/a"),
        (
            "claude",
            {"tool_name": "NotebookEdit", "tool_input": {"notebook_path": "/p/a.ipynb"}},
            "/p/a.ipynb",
        ),
        ("gemini", {"tool_name": "write_file", "tool_input": {"file_path": "a", "content": ""}}, "a"),
        ("gemini", {"tool_name": "replace", "tool_input": {"file_path": "a", "old_string": ""}}, "a"),
        ("opencode", {"tool": "write", "callID": "c", "args": {"filePath": "/p/a"}}, "/p/a"),
        ("opencode", {"tool": "edit", "callID": "c", "args": {"filePath": "/p/a"}}, "/p/a"),
        ("copilot", {"toolName": "create", "toolArgs": {"path": "/p/a", "file_text": ""}}, "/p/a"),
        ("copilot", {"toolName": "edit", "toolArgs": '{"path": "/p/a", "old_str": ""}'}, "/p/a"),
    ],
)
def test_tools_that_write_one_file_name_it(dialect: str, fields: dict[str, Any], path: str) -> None:
    assert [write.path for write in told("pre", dialect, **fields).writes] == [path]


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [
        ("claude", {"tool_name": "Read", "tool_input": {"file_path": "/p/a"}}),
        ("claude", {"tool_name": "Bash", "tool_input": {"command": "cat a"}}),
        ("gemini", {"tool_name": "read_file", "tool_input": {"file_path": "a"}}),
        ("opencode", {"tool": "read", "args": {"filePath": "/p/a"}}),
        ("copilot", {"toolName": "view", "toolArgs": {"path": "/p/a"}}),
        ("codex", {"tool_name": "Bash", "tool_input": {"command": "sed -n 1p a"}}),
        ("claude", {}),
    ],
)
def test_what_does_not_write_names_none(dialect: str, fields: dict[str, Any]) -> None:
    event = told("pre", dialect, **fields)
    assert event.writes == ()
    path = next((value for value in ("/p/a", "a") if value in json.dumps(fields).split('"')), "")
    assert event.reads == ((path,) if path else ())


def test_codex_writes_by_patches_also_in_the_shell() -> None:
    tool = told("pre", "codex", cwd="/p", tool_name="apply_patch", tool_input={"command": PATCH})
    assert tool.writes == PATCHED
    heredoc = f"apply_patch <<'EOF'\n{PATCH}\nEOF"
    shell = told("pre", "codex", tool_name="Bash", tool_input={"command": heredoc})
    assert shell.writes == PATCHED
    assert shell.shell == heredoc
    assert files_of_patch("no patch") == ()


def test_gemini_and_opencode_tell_the_lines_by_a_diff() -> None:
    diff = "@@ -1,2 +1,3 @@\n a\n+b\n c\n"
    gemini = {"tool_name": "replace", "tool_input": {"file_path": "a"}}
    after = told("post", "gemini", **gemini, tool_response={"returnDisplay": {"fileDiff": diff}})
    assert after.writes == (FileWrite("a", lines="2"),)
    other = told("post", "opencode", tool="edit", args={"filePath": "a"}, metadata={"diff": diff})
    assert other.writes == (FileWrite("a", lines="2"),)


def test_a_call_without_an_id_is_known_by_its_arguments() -> None:
    fields = {"tool_name": "write_file", "tool_input": {"file_path": "a", "content": "1"}}
    before, after = told("pre", "gemini", **fields), told("post", "gemini", **fields)
    other = told("pre", "gemini", **fields | {"tool_input": {"file_path": "a", "content": "2"}})
    assert before.call
    assert before.call == after.call != other.call


@pytest.mark.parametrize(
    ("word", "name", "kind"),
    [
        ("prompt", "UserPromptSubmit", HookKind.PROMPT),
        ("idle", "Stop", HookKind.IDLE),
        ("idle", "Interrupt", HookKind.INTERRUPTED),
        ("start", "SessionStart", HookKind.START),
        ("asked", "PermissionRequest", HookKind.ASKED),
        ("end", "SessionEnd", HookKind.END),
    ],
)
def test_other_events_have_their_kinds(word: str, name: str, kind: HookKind) -> None:
    assert told(word, "claude", hook_event_name=name, prompt="hi").kind is kind


def test_a_dialog_is_known_to_be_about_the_call_that_ends() -> None:
    about: dict[str, Any] = {"tool_name": "Write", "tool_input": {"file_path": "a", "content": "x"}}
    asked = told("asked", "claude", hook_event_name="PermissionRequest", **about)
    ended = told("post", "claude", hook_event_name="PostToolUse", tool_use_id="toolu_1", **about)
    assert (ended.call, ended.call_hash) == ("toolu_1", asked.call_hash)
    about["tool_input"] = {"file_path": "b", "content": "x"}
    assert told("post", "claude", **about).call_hash != asked.call_hash


@pytest.mark.parametrize("data", [b"[]", b"{", b'"x"'])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_event("pre", Dialect.CLAUDE, data)


def test_no_answer_ever_allows() -> None:
    for dialect in Dialect:
        text = denial_answer(dialect, "held by もう一人").decode()
        assert "held by もう一人" in text
        assert "allow" not in text
        for kind in HookKind:
            assert b"allow" not in context_answer(dialect, kind, "note").lower()
            assert context_answer(dialect, kind, "") == b""


def test_words_for_the_model_go_only_where_they_are_told() -> None:
    assert context_answer(Dialect.GEMINI, HookKind.PRE, "note") == b""
    assert json.loads(context_answer(Dialect.GEMINI, HookKind.POST, "note")) == {
        "hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "note"}
    }
    assert json.loads(context_answer(Dialect.COPILOT, HookKind.PRE, "note")) == {"additionalContext": "note"}
    assert json.loads(context_answer(Dialect.OPENCODE, HookKind.POST, "note")) == {"context": "note"}


# -- the command ---


def served(path: Path, answer: bytes) -> tuple[socket.socket, list[bytes]]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    asked: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            head, _, body = connection.recv(65536).partition(b"\n")
            asked.append(head + b"\n" + body)
            left = int(head.split()[3]) - len(body)
            while left > 0:
                asked.append(connection.recv(65536))
                left -= len(asked[-1])
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return server, asked


def run(words: list[str], environ: dict[str, str], told: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*CLIENT, *words], input=told, env=environ, capture_output=True, check=False)


def test_the_command_prints_what_the_host_answers(tmp_path: Path) -> None:
    server, asked = served(tmp_path / "s", b'{"decision":"deny"}')
    environ = {"SYNAPSE_AGENT_ID": "synapse-claude-8100", "SYNAPSE_HOOKS": str(tmp_path / "s")}
    told = b'{"tool_input": "' + b"x" * 300_000 + b'"}'
    result = run(["pre", "--dialect", "claude"], environ, told)
    server.close()
    assert (result.returncode, result.stdout, result.stderr) == (0, b'{"decision":"deny"}', b"")
    head, _, body = b"".join(asked).partition(b"\n")
    assert head.split()[:3] == [b"pre", b"claude", b"synapse-claude-8100"]
    assert body == told


@pytest.mark.parametrize(
    "environ",
    [{}, {"SYNAPSE_AGENT_ID": "a"}, {"SYNAPSE_AGENT_ID": "a", "SYNAPSE_HOOKS": "/nowhere/s"}],
)
def test_the_command_says_nothing_where_nobody_is_to_answer(environ: dict[str, str]) -> None:
    result = run(["post", "--dialect", "copilot"], environ, b"{}")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_the_command_does_not_wait_for_a_host_that_hangs(tmp_path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    server.listen()
    begun = time.monotonic()
    result = run(
        ["pre", "--dialect", "claude"], {"SYNAPSE_AGENT_ID": "a", "SYNAPSE_HOOKS": str(tmp_path / "s")}
    )
    server.close()
    assert (result.returncode, result.stdout) == (0, b"")
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("environ", [{}, {"SYNAPSE_AGENT_ID": "a", "SYNAPSE_HOOKS": "/nowhere/s"}])
def test_the_command_does_not_wait_for_an_agent_that_goes_on_talking(environ: dict[str, str]) -> None:
    words = [*CLIENT, "pre", "--dialect", "claude"]
    with subprocess.Popen(words, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"{")
        process.stdin.flush()
        assert process.wait(30) == 0


# -- Asking for hooks that only a person can have installed: once, and the answer is remembered ---


class User:
    """A user, whose host may begin anew."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.place = place_of(Dialect.GEMINI, home, {})

    def host(self) -> HookConsent:
        return HookConsent(self.home / ".synapse/hooks", self.home, {})

    def standing(self) -> HookStatus:
        return HookInstaller(self.home / "state").standing(self.place)


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


async def test_only_agents_that_need_it_are_asked_for_and_only_once(user: User) -> None:
    host = user.host()
    for dialect in (None, *(each for each in Dialect if each is not Dialect.GEMINI)):
        assert not await host.wanted(dialect)
    assert await host.wanted(Dialect.GEMINI)
    assert not await host.wanted(Dialect.GEMINI)


async def test_yes_installs_and_is_remembered_also_when_it_is_taken_out_again(user: User) -> None:
    place = await user.host().answer(Dialect.GEMINI, Consent.YES)
    assert place == user.place.path
    assert user.standing() is HookStatus.INSTALLED
    assert not await user.host().wanted(Dialect.GEMINI)
    HookInstaller(user.home / "state").remove(user.place)
    assert not await user.host().wanted(Dialect.GEMINI), "it was taken out on purpose"
    assert user.standing() is HookStatus.MISSING


async def test_what_was_agreed_to_is_brought_up_to_date(user: User) -> None:
    await user.host().answer(Dialect.GEMINI, Consent.YES)
    (user.place.path / "hooks/hooks.json").write_text("{}")
    assert user.standing() is HookStatus.OLD
    assert not await user.host().wanted(Dialect.GEMINI)
    assert user.standing() is HookStatus.INSTALLED


async def test_never_is_remembered_and_not_now_is_not(user: User) -> None:
    assert await user.host().answer(Dialect.GEMINI, Consent.LATER) is None
    assert await user.host().wanted(Dialect.GEMINI)
    assert await user.host().answer(Dialect.GEMINI, Consent.NEVER) is None
    assert not await user.host().wanted(Dialect.GEMINI)
    assert user.standing() is HookStatus.MISSING


async def test_what_a_command_has_installed_is_not_asked_for(user: User) -> None:
    HookInstaller(user.home / "state").install(user.place)
    assert not await user.host().wanted(Dialect.GEMINI)


async def test_a_broken_memory_asks_again_and_a_folder_that_cannot_be_written_is_told(user: User) -> None:
    folder = user.home / ".synapse/hooks"
    folder.mkdir(parents=True)
    (folder / FILE).write_text("[broken")
    assert await user.host().wanted(Dialect.GEMINI)
    (user.home / ".gemini").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be written"):
        await user.host().answer(Dialect.GEMINI, Consent.YES)


# -- What hooks tell of a state: earlier than the screen, for some seconds, and never that an a ---


READY, WORKING, WAITING = "READY", "PROCESSING", "WAITING"
PROMPT, PRE, POST, ASKED = HookKind.PROMPT, HookKind.PRE, HookKind.POST, HookKind.ASKED
ENDS = [HookKind.IDLE, HookKind.INTERRUPTED, HookKind.END]


class Agent:
    """Claude Code, ready, whose hooks and screen the test works."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def hook(self, kind: HookKind, call: str = "") -> None:
        self.screen.detector.hooked(kind, call, self.screen.now)
        self.screen.detector.update(self.screen.terminal, self.screen.now)

    def works(self) -> None:
        self.screen.feed(osc("0;⠂ x"))

    def rests(self) -> None:
        self.screen.show(*claude())
        self.screen.feed(osc("0;✳ x"))

    def after(self, seconds: float) -> str:
        self.screen.wait(seconds)
        return self.screen.state

    @property
    def state(self) -> str:
        return self.screen.state

    @property
    def by_hook(self) -> bool:
        return self.screen.rule == HOOKED


@pytest.fixture
def agent() -> Agent:
    agent = Agent(Screen("claude"))
    agent.rests()
    assert agent.after(1) == READY
    return agent


def test_a_prompt_is_work_until_the_screen_decides(agent: Agent) -> None:
    agent.hook(PROMPT)
    assert (agent.state, agent.by_hook) == (WORKING, True)
    agent.works()
    assert (agent.state, agent.by_hook) == (WORKING, False)
    agent.rests()
    assert agent.after(0.3) == READY


@pytest.mark.parametrize(("kind", "state", "seconds"), [(PROMPT, WORKING, WORKS), (ASKED, WAITING, ASKS)])
def test_what_the_screen_never_shows_is_forgotten(
    agent: Agent, kind: HookKind, state: str, seconds: float
) -> None:
    agent.hook(kind)
    assert agent.after(seconds - 0.1) == state
    assert agent.after(0.5) == READY


def test_tools_of_a_turn_keep_it_working_and_those_of_background_work_do_not(agent: Agent) -> None:
    agent.hook(PRE, "background")
    assert agent.state == READY
    agent.hook(PROMPT)
    agent.screen.wait(WORKS - 0.5)
    agent.hook(PRE, "a")
    assert agent.after(WORKS - 0.5) == WORKING


@pytest.mark.parametrize("kind", ENDS)
def test_the_end_of_a_turn_only_lets_the_screen_decide(agent: Agent, kind: HookKind) -> None:
    agent.hook(PROMPT)
    agent.hook(kind)
    assert agent.after(0.3) == READY
    agent.works()
    agent.hook(kind)
    assert agent.after(30) == WORKING, "a hook alone never makes it ready"


def test_a_dialog_is_there_before_it_is_drawn_and_ends_with_the_screen(agent: Agent) -> None:
    agent.hook(ASKED, "a")
    assert (agent.state, agent.by_hook) == (WAITING, True)
    agent.works()
    assert agent.state == WAITING
    agent.screen.show(CLAUDE_DIALOG)
    assert (agent.state, agent.by_hook) == (WAITING, False)
    agent.rests()
    assert agent.after(0.5) == READY


@pytest.mark.parametrize(
    ("kind", "call"),
    [(POST, "b"), (POST, ""), (PROMPT, ""), (HookKind.IDLE, ""), (PRE, "a"), (HookKind.START, "")],
)
def test_what_takes_no_announced_dialog_back(agent: Agent, kind: HookKind, call: str) -> None:
    agent.hook(ASKED, "a")
    agent.hook(kind, call)
    assert agent.after(0.3) == WAITING


@pytest.mark.parametrize(
    ("kind", "call"),
    [(POST, "a"), (HookKind.FAILED, "a"), (HookKind.INTERRUPTED, ""), (HookKind.END, "")],
)
def test_the_end_of_that_very_tool_or_of_the_turn_takes_the_dialog_back(
    agent: Agent, kind: HookKind, call: str
) -> None:
    agent.hook(ASKED, "a")
    agent.hook(kind, call)
    assert agent.after(0.3) == READY


def test_what_hooks_tell_makes_no_agent_ready_or_working_that_starts() -> None:
    agent = Agent(Screen("claude", age=0.0))
    agent.screen.show(["Welcome"])
    for kind in (HookKind.START, PROMPT, HookKind.IDLE):
        agent.hook(kind)
        assert agent.state == "STARTING"
    agent.hook(ASKED)
    assert agent.state == WAITING
