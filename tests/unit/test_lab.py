"""The lab of real agents: its fake model, its isolation, and how versions are compared."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.lab import versions
from tests.lab.agents import AGENTS, known_version
from tests.lab.fake_model import FakeModel
from tests.lab.run import isolated
from tests.lab.versions import Result, status_of

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def anthropic(text: str) -> tuple[str, dict[str, Any]]:
    tools = [{"name": "Bash", "input_schema": SHELL}]
    return "/v1/messages", {"messages": [{"role": "user", "content": text}], "tools": tools, "stream": True}


def chat(text: str) -> tuple[str, dict[str, Any]]:
    tools = [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}]
    messages = [{"role": "system", "content": "You help."}, {"role": "user", "content": text}]
    return "/v1/chat/completions", {"messages": messages, "tools": tools, "stream": True}


def responses(text: str) -> tuple[str, dict[str, Any]]:
    tools = [{"type": "function", "name": "shell", "parameters": SHELL}]
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return "/v1/responses", {"input": [item], "tools": tools, "stream": True}


def gemini(text: str) -> tuple[str, dict[str, Any]]:
    function = {"name": "run_shell_command", "parameters": SHELL}
    content = {"role": "user", "parts": [{"text": text}]}
    body = {"contents": [content], "tools": [{"functionDeclarations": [function]}]}
    return "/v1beta/models/any:streamGenerateContent?alt=sse", body


APIS = (anthropic, chat, responses, gemini)
TEXT = {
    anthropic: lambda event: event.get("delta", {}).get("text", ""),
    chat: lambda event: "".join(each["delta"].get("content") or "" for each in event.get("choices", ())),
    responses: lambda event: event["delta"] if event["type"] == "response.output_text.delta" else "",
    gemini: lambda event: event["candidates"][0]["content"]["parts"][0].get("text", ""),
}


def asked(model: FakeModel, path: str, body: dict[str, Any]) -> list[Any]:
    answer = httpx.post(model.url + path, json=body, timeout=20)
    rows = [row.removeprefix("data: ") for row in answer.text.splitlines() if row.startswith("data: ")]
    return [json.loads(row) for row in rows if row != "[DONE]"]


@pytest.fixture
def model(tmp_path: Path):
    model = FakeModel(tmp_path / "log")
    yield model
    model.shutdown()
    model.server_close()


@pytest.mark.parametrize("api", APIS)
def test_a_prompt_is_echoed_and_logged(api, model, tmp_path):
    path, body = api("two\nlines 日本語")
    events = asked(model, path, body)
    assert "".join(map(TEXT[api], events)) == "ECHO[13 chars 2 lines]: two\nlines 日本語"
    (entry,) = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert (entry["last_user"], entry["prompt"], entry["body"]) == ("two\nlines 日本語", True, body)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "prompt",
    [
        "please %%run:touch 'a b'%%",
        "Run exactly this command with your shell tool, once. Say whether, then stop. touch 'a b'",
    ],
)
def test_a_command_is_given_to_the_agents_shell_tool(api, prompt, model):
    events = asked(model, *api(prompt))
    pieces = "".join(
        event.get("delta", {}).get("partial_json", "") if api is anthropic else json.dumps(event)
        for event in events
    )
    assert "touch 'a b'" in pieces
    assert ("tool_use" in json.dumps(events)) is (api is anthropic)


def test_a_prompt_of_the_doctor_is_obeyed(model):
    text = "Use no tools. Reply with exactly one line: the two codes ABCDE and 23456, joined by a hyphen."
    assert "".join(map(TEXT[chat], asked(model, *chat(text)))) == "ABCDE-23456"


def test_a_command_sees_no_network_no_setting_and_no_other_process(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    if (
        shutil.which("unshare") is None
        or subprocess.run(isolated(["true"], tmp_path, {}), check=False).returncode
    ):
        pytest.skip("no permission to unshare")
    script = "env; tail -n +3 /proc/net/dev; ls -d /proc/[0-9]*"
    words = isolated(["sh", "-c", script], tmp_path, {"EXTRA": "1"})
    rows = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "EXTRA=1" in rows
    assert not [row for row in rows if "secret" in row]
    assert [row.split(":")[0].strip() for row in rows if ": " in row] == ["lo"]
    assert len([row for row in rows if row.startswith("/proc/")]) < 5


def test_a_versions_results_are_those_of_the_doctor_and_the_tests(tmp_path):
    checks = [{"check": "start", "outcome": "ok"}, {"check": "answer", "outcome": "failed"}]
    (tmp_path / "doctor.json").write_text(json.dumps([{"checks": checks}]))
    bad, good = versions.CHECKS["dialog"], versions.CHECKS["messages"]
    cases = f'<testcase name="{bad}[x]"><failure/></testcase><testcase name="{good}[x]"/>'
    (tmp_path / "tests.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert versions.doctor_result(tmp_path / "doctor.json") == "failed: answer"
    checks[1:] = [{"check": "blocked", "outcome": "not shown"}, {"check": "reply", "outcome": "not shown"}]
    (tmp_path / "doctor.json").write_text(json.dumps([{"checks": checks}]))
    assert versions.doctor_result(tmp_path / "doctor.json") == "not shown: blocked reply"
    found = versions.test_results(tmp_path / "tests.xml")
    assert found == {"messages": "ok", "dialog": "failed", "interrupt": "no report", "answer": "no report"}


@pytest.mark.parametrize(
    ("version", "found", "status"),
    [("1.0", "ok", 0), ("1.1", "ok", 3), ("1.1", "failed", 1), ("1.0", "failed", 1)],
)
def test_the_exit_status_says_what_differs(version, found, status):
    before = {"claude": Result("claude", "1.0", "2026-01-01", {"doctor": "ok"})}
    result = Result("claude", version, "2026-01-02", {"doctor": found})
    assert status_of([result], before) == status
    assert status_of([Result("claude", "", trouble="no network")], before) == 1


@pytest.mark.parametrize(
    ("before", "found", "status"),
    [
        ("ok", "not shown: blocked", 1),
        ("not shown: reply", "not shown: blocked", 1),
        ("not shown: blocked", "not shown: blocked", 0),
        ("not shown: blocked reply", "not shown: blocked", 3),
        ("not shown: blocked", "ok", 3),
    ],
)
def test_a_check_that_can_no_longer_be_made_fails(before, found, status):
    known = {"pi": Result("pi", "1.0", "2026-01-01", {"doctor": before})}
    assert status_of([Result("pi", "1.0", "2026-01-02", {"doctor": found})], known) == status


def test_every_agent_of_the_lab_has_a_recorded_version():
    assert [name for name in AGENTS if not known_version(name)] == []
