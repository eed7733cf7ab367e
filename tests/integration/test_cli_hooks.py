"""`synapse hooks` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.shell_kit import Shell


async def test_hooks_come_and_go_and_leave_no_trace(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_bytes(b'{\r\n\t"model": "opus"\r\n}')
    result = await shell.run("hooks", "install", "claude", "codex", "--json")
    assert [(each["agent"], each["installed"]) for each in json.loads(result.out)] == [
        ("claude", True),
        ("codex", True),
    ]
    assert "/hooks in Codex" in result.err
    assert b"PreToolUse" in settings.read_bytes()
    assert (await shell.run("hooks", "remove")).code == 0
    assert settings.read_bytes() == b'{\r\n\t"model": "opus"\r\n}'
    assert not (tmp_path / ".codex/hooks.json").exists()
    assert (await shell.run("hooks", "status")).out.count("not installed") == 5


async def test_a_broken_file_of_one_agent_does_not_keep_the_others_from_their_hooks(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"} // mine')
    result = await shell.run("hooks", "install", "claude", "copilot", "--json")
    claude, copilot = json.loads(result.out)
    assert result.code == 2
    assert (claude["installed"], copilot["installed"]) == (False, True)
    assert "not valid JSON" in claude["problem"]
    assert "not valid JSON" in result.err
    settings.write_text('{"hooks": "…client.py…"} // mine')
    result = await shell.run("hooks", "remove")
    assert result.code == 2
    assert "unknown" in result.out
    assert not (tmp_path / ".copilot/hooks/synapse.json").exists()
    assert settings.read_text() == '{"hooks": "…client.py…"} // mine'
