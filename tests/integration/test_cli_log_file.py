"""The log of commands: written when it is asked for, and without what messages hold."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.integration.shell_kit import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell.scratch(tmp_path, apart=True)


def log_of(shell: Shell) -> Path:
    return shell.home / ".synapse/logs/synapse.log"


async def test_commands_are_logged_when_it_is_asked_for(shell: Shell) -> None:
    await shell.run("config", "get", "tui.layout")
    assert not log_of(shell).exists()
    assert (await shell.run("config", "set", "env.SYNAPSE_LOG_FILE", "true")).code == 0
    sent = await shell.run("send", "nobody", "a secret", "--priority=4", "--", "--hidden")
    text = log_of(shell).read_text()
    assert f"synapse send --priority in {shell.folder}" in text
    assert f"synapse send --priority ended with {sent.code} after" in text
    assert "secret" not in text
    assert "hidden" not in text
    assert stat.S_IMODE(log_of(shell).stat().st_mode) == 0o600
    shell.environ["SYNAPSE_LOG_LEVEL"] = "error"
    await shell.run("config", "get", "tui.layout")
    assert log_of(shell).read_text() == text, "less severe records are left out"
    shell.environ["SYNAPSE_LOG_FILE"] = "false"
    await shell.run("config", "get", "tui.layout")
    assert log_of(shell).read_text() == text


async def test_what_hinders_the_log_hinders_no_command(shell: Shell) -> None:
    (shell.home / ".synapse").mkdir()
    (shell.home / ".synapse/logs").write_text("no folder")
    shell.environ["SYNAPSE_LOG_FILE"] = "true"
    result = await shell.run("config", "get", "tui.layout")
    assert (result.code, result.out) == (0, "tabs\n"), result.err
