"""Answers read out of the files in which the agents keep their conversations."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from synapse_tui.agents.answers import AnswerCollector, tidy
from synapse_tui.agents.profiles.profile import TranscriptRules
from synapse_tui.agents.transcript import TAIL, AnswerReader, UsageReader, agrees, read_answer
from synapse_tui.agents.turns import Conclusion, Turn
from synapse_tui.core.content import Artifact
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import USER, MessageRequest, TaskState
from synapse_tui.messages.follow_ups import TurnTasks
from synapse_tui.messages.tasks import TaskStore
from tests.profiles import shipped

PROFILES = shipped()
CWD = Path("/srv/my.project")
ASKED = "[A2A:19b094bd:synapse-codex-8120] how many?"


def claude(kind: str, content: object, **fields: object) -> dict[str, object]:
    return {"type": kind, "isSidechain": False, "message": {"role": kind, "content": content}, **fields}


def texts(*parts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": part} for part in parts]


def codex(role: str, text: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}


FILES: dict[str, tuple[str, list[dict[str, object]], str]] = {
    "claude": (
        ".claude/projects/-srv-my-project/one.jsonl",
        [
            {"type": "mode", "mode": "x"},
            claude("user", ASKED),
            claude("assistant", [{"type": "tool_use", "name": "Bash"}, *texts("I count.")]),
            claude("user", [{"type": "tool_result", "content": "3"}]),
            claude("assistant", texts("a subagent's"), isSidechain=True),
            claude("assistant", texts("**Three**:", "| a | b |")),
        ],
        "I count.\n\n**Three**:\n| a | b |",
    ),
    "codex": (
        ".codex/sessions/2026/01/02/rollout-1.jsonl",
        [
            codex("developer", "be brief"),
            codex("user", "<environment_context>"),
            codex("user", ASKED),
            {"type": "event_msg", "payload": {"type": "agent_message", "message": "Three"}},
            codex("assistant", "Three"),
        ],
        "Three",
    ),
    "gemini": (
        ".gemini/tmp/project/chats/session-1.jsonl",
        [
            {"type": "user", "content": [{"text": ASKED}]},
            {"$set": {"lastUpdated": "now"}},
            {"type": "gemini", "content": "Three"},
        ],
        "Three",
    ),
    "copilot": (
        ".copilot/session-state/1234/events.jsonl",
        [
            {"type": "user.message", "data": {"content": ASKED}},
            {"type": "assistant.message", "data": {"content": ""}},
            {"type": "assistant.message", "data": {"content": "Three"}},
        ],
        "Three",
    ),
}


def transcript(agent: str = "claude") -> TranscriptRules:
    found = PROFILES.find(agent).transcript
    assert found is not None
    return found


def write(home: Path, agent: str, lines: list[dict[str, object]], name: str = "") -> Path:
    path = home / (name or FILES[agent][0])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return path


def read(home: Path, agent: str = "claude", text: str = ASKED, since: float = 0.0) -> str:
    return read_answer(transcript(agent), text, since=since, cwd=CWD, environ={"HOME": str(home)})


@pytest.mark.parametrize("agent", FILES)
def test_every_agent_that_keeps_lines_of_json(tmp_path: Path, agent: str) -> None:
    _, lines, answer = FILES[agent]
    write(tmp_path, agent, lines)
    assert read(tmp_path, agent) == answer


def test_an_answer_ends_where_the_user_speaks_again(tmp_path: Path) -> None:
    other = [claude("user", "and now?"), claude("assistant", texts("something else"))]
    write(tmp_path, "claude", [claude("user", ASKED), claude("assistant", texts("three")), *other])
    assert read(tmp_path) == "three"


def test_the_newest_of_equal_prompts_counts(tmp_path: Path) -> None:
    lines = [claude("user", ASKED), claude("assistant", texts("old"))]
    write(tmp_path, "claude", [*lines, claude("user", ASKED), claude("assistant", texts("new"))])
    assert read(tmp_path) == "new"


def test_what_cannot_be_read_is_no_answer(tmp_path: Path) -> None:
    assert read(tmp_path) == ""
    path = write(tmp_path, "claude", [claude("user", "something else"), claude("assistant", texts("no"))])
    assert read(tmp_path) == ""
    path.write_bytes(b"\xff\xfe not json\n[1, 2]\n" + b"[" * 100_000 + b"\n" + path.read_bytes()[:-20])
    assert read(tmp_path) == ""


def test_files_from_before_the_turn_are_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "claude", [claude("user", ASKED), claude("assistant", texts("old"))])
    os.utime(path, (1000, 1000))
    assert read(tmp_path, since=2000) == ""
    assert read(tmp_path, since=1000) == "old"


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    lines = [claude("user", "x" * (TAIL // 2)) for _ in range(3)]
    write(tmp_path, "claude", [*lines, claude("user", ASKED), claude("assistant", texts("three"))])
    assert read(tmp_path) == "three"


def test_a_variable_moves_the_folder(tmp_path: Path) -> None:
    write(tmp_path, "claude", FILES["claude"][1], "elsewhere/projects/-srv-my-project/1.jsonl")
    environ = {"HOME": str(tmp_path / "home"), "CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")}
    assert read_answer(transcript(), ASKED, since=0, cwd=CWD, environ=environ).startswith("I count.")


def test_agreement_with_the_screen() -> None:
    assert agrees("**Three** of `them`:\n- one\n- two", "Three of them:\n• one\n• two")
    assert not agrees("I look at it.", "I look at it.\nThere are three."), "its end is not written yet"
    assert not agrees("", "three")
    assert agrees("three", ""), "the screen showed nothing of it"


async def test_the_file_is_taken_when_it_agrees_and_the_screen_when_not(tmp_path: Path) -> None:
    found: list[Artifact] = []
    reader = AnswerReader(transcript(), cwd=CWD, environ={"HOME": str(tmp_path)})
    reader.read(ASKED, Artifact("three", truncated=True), age=1, done=found.append)
    assert not found
    await reader.settle()
    assert found == [Artifact("three", truncated=True)]
    write(tmp_path, "claude", [claude("user", ASKED), claude("assistant", texts("two\n\n*three*"))])
    reader.read(ASKED, Artifact("three", truncated=True), age=1, done=found.append)
    await reader.settle()
    assert found[1:] == [Artifact("two\n\n*three*")]


@pytest.mark.parametrize(
    ("last", "wanted"),
    [
        ("✻ Crunched for 1s · done 11:52 PM", "two\n\n*three*"),
        ("✻ A note of a version to come", "two\n\n*three*"),
        ("And four, which the file does not hold yet.", ""),
    ],
)
async def test_a_note_of_the_agent_below_its_answer_is_no_reason_not_to_take_the_file(
    tmp_path: Path, last: str, wanted: str
) -> None:
    write(tmp_path, "claude", [claude("user", ASKED), claude("assistant", texts("two\n\n*three*"))])
    found: list[Artifact] = []
    reader = AnswerReader(transcript(), cwd=CWD, environ={"HOME": str(tmp_path)})
    screen = tidy(["● two", "", "  three", "", last])
    reader.read(ASKED, Artifact(screen), age=1, done=found.append)
    await reader.settle()
    assert found == [Artifact(wanted or screen)]


QUEUED = "[A2A:28c105ce:synapse-codex-8120] and how many of them are new?"


@pytest.mark.parametrize("taken_in", [True, False])
async def test_the_file_tells_whether_a_queued_message_was_taken_into_the_turn(
    tmp_path: Path, *, taken_in: bool
) -> None:
    attachment: dict[str, object] = {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": QUEUED},
    }
    lines = [
        claude("user", ASKED),
        claude("assistant", texts("I count.")),
        claude("user", [{"type": "tool_result", "content": "3"}]),
        attachment if taken_in else claude("user", QUEUED),
        claude("assistant", texts("Three, and one.")),
    ]
    write(tmp_path, "claude", lines)
    rows: list[str] = []
    collector = AnswerCollector(ASKED, lambda: rows)
    collector.begin()
    rows += [
        f"> {ASKED}",
        "I count.",
        "Bash(wc)",
        "  (no error)",
        "  (3 rows)",
        f"> {QUEUED}",
        "Three, and one.",
    ]
    book = TaskStore("synapse-claude-8100", "ctx", EventBus())
    task = book.create(MessageRequest(ASKED, USER))
    reader = AnswerReader(transcript(), cwd=CWD, environ={"HOME": str(tmp_path)})
    conclusion = Conclusion(book, TurnTasks(), reader, lambda: 1.0, lambda _task_id: False)
    conclusion.end(Turn(task.id, ASKED, 0.0, collector, prompts=[QUEUED]), TaskState.COMPLETED, "")
    await reader.settle()
    wanted = "I count.\n\nThree, and one." if taken_in else "I count.\nBash(wc)\n  (no error)\n  (3 rows)"
    assert book.get(task.id).artifacts[0].text == wanted


def total(tokens: int) -> dict[str, object]:
    usage = {"total_tokens": tokens + 30, "cached_input_tokens": 30}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": usage}}}


def spent(call: str, tokens: int) -> dict[str, object]:
    usage = {"input_tokens": tokens - 5, "output_tokens": 5, "cache_read_input_tokens": 5000}
    return {"type": "assistant", "message": {"id": call, "content": [], "usage": usage}}


def copilot_call(tokens: int) -> dict[str, object]:
    usage = {"inputTokens": tokens + 20, "outputTokens": 10, "cacheReadTokens": 30}
    return {"type": "session.usage_record", "data": {"usage": usage}}


# lines that together state 300 tokens, as each agent states them
USED: dict[str, list[dict[str, object]]] = {
    "claude": [spent("one", 100), spent("two", 50), spent("two", 200)],  # a line for each block of an answer
    "codex": [total(100), total(300)],
    "gemini": [
        {"type": "gemini", "id": "one", "tokens": {"total": 90, "cached": 0}},
        {"type": "gemini", "id": "one", "tokens": {"total": 100, "cached": 0}},
        {"type": "gemini", "id": "two", "tokens": {"total": 250, "cached": 50}},
    ],
    "copilot": [copilot_call(100), copilot_call(200)],
}


async def counted(reader: UsageReader, text: str = ASKED) -> int | None:
    reader.look(text)
    await reader.settle()
    return reader.tokens


@pytest.mark.parametrize("agent", USED)
async def test_tokens_as_every_agent_states_them(tmp_path: Path, agent: str) -> None:
    write(tmp_path, agent, [*FILES[agent][1], *USED[agent]])
    reader = UsageReader(transcript(agent), cwd=CWD, environ={"HOME": str(tmp_path)}, clock=lambda: 0.0)
    assert await counted(reader) == 300


async def test_tokens_go_on_from_what_was_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "claude", [claude("user", ASKED), spent("one", 100)])
    reader = UsageReader(transcript(), cwd=CWD, environ={"HOME": str(tmp_path)}, clock=lambda: 0.0)
    assert await counted(reader) == 100
    with path.open("a") as file:
        file.write(json.dumps(claude("user", "go on")) + "\n" + json.dumps(spent("two", 20)))
    assert await counted(reader, "go on") == 100  # half a line
    with path.open("a") as file:
        file.write("\n")
    assert await counted(reader, "go on") == 120
    write(tmp_path, "claude", [claude("user", "new"), spent("three", 7)])
    assert await counted(reader, "new") == 7


async def test_tokens_of_another_agent_in_the_folder_are_not_ours(tmp_path: Path) -> None:
    other = ".claude/projects/-srv-my-project/other.jsonl"
    write(tmp_path, "claude", [claude("user", "to the other"), spent("one", 1000)], other)
    reader = UsageReader(transcript(), cwd=CWD, environ={"HOME": str(tmp_path)}, clock=lambda: 0.0)
    assert await counted(reader) is None
    write(tmp_path, "claude", [claude("user", ASKED), spent("one", 100)])
    assert await counted(reader) == 100
    assert await counted(reader, "what no log has") == 100


async def test_no_tokens_where_none_are_stated(tmp_path: Path) -> None:
    write(tmp_path, "claude", [claude("user", ASKED), {"type": "assistant", "message": {"usage": "many"}}])
    reader = UsageReader(transcript(), cwd=CWD, environ={"HOME": str(tmp_path)}, clock=lambda: 0.0)
    assert not await counted(reader)
    assert await counted(UsageReader(None, cwd=CWD, environ={})) is None


async def test_tokens_in_a_database(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    numbers = ("tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_write")
    database = sqlite3.connect(path)
    columns = ", ".join(f"{name} integer" for name in numbers)
    database.execute(f"create table session (id, parent_id, directory, time_updated integer, {columns})")

    def add(name: str, parent: str | None, folder: str, updated: float) -> None:
        values = (name, parent, folder, updated * 1000, 60, 20, 15, 5)
        database.execute("insert into session values (?, ?, ?, ?, ?, ?, ?, ?)", values)
        database.commit()

    home = {"HOME": str(tmp_path)}
    shown = PROFILES.find("opencode").usage_database
    reader = UsageReader(None, cwd=CWD, environ=home, clock=lambda: 500.0, database=shown)
    add("old", None, str(CWD), 400)
    add("elsewhere", None, "/srv/other", 600)
    assert await counted(reader) is None
    add("ours", None, str(CWD), 600)
    add("a subagent's", "ours", str(CWD), 600)
    assert await counted(reader) == 200
    add("another agent's", None, str(CWD), 600)
    again = UsageReader(None, cwd=CWD, environ=home, clock=lambda: 500.0, database=shown)
    assert await counted(again) is None
    database.close()
