"""The words of `synapse-tui`'s command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.agents.profiles.profile import parse_spec
from synapse_tui.cli.tui import build_specs, split_arguments
from synapse_tui.errors import ConfigError
from synapse_tui.model import AgentSpec

BASE = Path("/base")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("claude", AgentSpec("claude")),
        ("claude:alice", AgentSpec("claude", "alice")),
        ("claude@sub", AgentSpec("claude", "", BASE / "sub")),
        ("claude:alice@/srv/a@b:c", AgentSpec("claude", "alice", Path("/srv/a@b:c"))),
        ("my-agent.2", AgentSpec("my-agent.2")),
    ],
)
def test_spec(text: str, spec: AgentSpec) -> None:
    assert parse_spec(text, base=BASE) == spec


def test_the_home_folder_may_be_written_short() -> None:
    assert parse_spec("codex@~/web", base=BASE).cwd == Path("~/web").expanduser()


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":alice",
        "claude:",
        "claude@",
        "claude:a b",
        "-x",
        "claude:all",
        "claude:User",
        "claude:claude-8100",
        "claude:synapse-x",
    ],
)
def test_no_spec(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_spec(text, base=BASE)


def test_arguments_of_the_agent_follow_two_dashes() -> None:
    assert split_arguments(["claude", "--port", "1"]) == (["claude", "--port", "1"], None)
    assert split_arguments(["claude", "--", "--continue", "--"]) == (["claude"], ("--continue", "--"))
    assert split_arguments(["claude", "--"]) == (["claude"], ())


def test_options_of_one_agent(tmp_path: Path) -> None:
    assert build_specs(["claude"], base=tmp_path, extra=("-c",), port=9000, prompt="hi") == [
        AgentSpec("claude", args=("-c",), port=9000, prompt="hi")
    ]
    both = build_specs(["claude", "codex"], base=tmp_path, extra=None, port=None, prompt="hi")
    assert [spec.prompt for spec in both] == ["hi", "hi"]


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for words, extra, port, prompt in (
        (["a", "b"], None, 9000, ""),
        ([], None, 9000, ""),
        (["a", "b"], ("-c",), None, ""),
        ([], None, None, "hi"),
    ):
        with pytest.raises(ConfigError):
            build_specs(words, base=tmp_path, extra=extra, port=port, prompt=prompt)
    with pytest.raises(ConfigError, match="not a folder"):
        build_specs([], base=tmp_path / "none", extra=None, port=None, prompt="")
