"""The saved workspace: what comes back, and what becomes of files that cannot be read."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.agents.session import resumed_spec
from synapse_tui.core.model import AgentSpec
from synapse_tui.system.paths import UserPaths
from synapse_tui.workspace import SavedAgent, SavedView, SavedWorkspace, WorkspaceStore
from tests.profiles import shipped

AGENT = SavedAgent("claude", "synapse-claude-8100", 8100, "/srv/プロジェクト", "審査", ("--model", "x"), 0)
OTHER = SavedAgent("codex", "synapse-codex-8120", 8120, "/srv/x", order=1)
WORKSPACE = SavedWorkspace(
    project="/work",
    session="main",
    saved_at=datetime(2026, 11, 21, 18, 3, tzinfo=UTC),
    boot_id="abc",
    pid=77,
    agents=(AGENT, OTHER),
    view=SavedView(3, {"layout": "grid", "focus": "synapse-claude-8100", "zoom": None}),
)


@pytest.fixture
def store(tmp_path: Path) -> WorkspaceStore:
    return WorkspaceStore(UserPaths(tmp_path).workspaces, "0123abcd")


def test_files_are_private_and_nothing_else_is_left(store: WorkspaceStore) -> None:
    store.save(WORKSPACE)
    store.save_scrollback(AGENT.agent_id, b"line")
    store.save(WORKSPACE)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.path.iterdir()}
    assert modes == {"workspace.json": 0o600, "synapse-claude-8100.scrollback": 0o600}
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


CONTENT = json.loads(WORKSPACE.to_bytes())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cannot be understood"),
        (b"[]", "cannot be understood"),
        (b"[" * 100_000, "cannot be understood"),
        (b"\xff\xfe", "cannot be understood"),
        (json.dumps(CONTENT | {"version": "1"}).encode(), "'version'"),
        (json.dumps(CONTENT | {"agents": [{"profile": 3}]}).encode(), "'profile'"),
        (json.dumps(CONTENT | {"agents": "claude"}).encode(), "'agents'"),
        (json.dumps(CONTENT | {"saved_at": "yesterday"}).encode(), "'saved_at'"),
        (json.dumps(CONTENT | {"clean": 1}).encode(), "'clean'"),
        (json.dumps(CONTENT | {"view": {"version": 1}}).encode(), "'state'"),
        (json.dumps(CONTENT | {"version": 99}).encode(), "later version of synapse-tui"),
    ],
)
def test_what_cannot_be_read_is_moved_aside(store: WorkspaceStore, data: bytes, why: str) -> None:
    store.save(WORKSPACE)
    path = store.path / "workspace.json"
    path.write_bytes(data)
    assert store.load() is None
    assert why in store.problem
    assert "workspace.json.aside" in store.problem
    assert path.with_name("workspace.json.aside").read_bytes() == data
    store.save(WORKSPACE)
    assert store.load() == WORKSPACE


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(CONTENT)), inner),
        max_leaves=8,
    )
)
def test_no_content_makes_it_fall_over(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    store = WorkspaceStore(tmp_path_factory.mktemp("store"), "key")
    store.path.mkdir()
    content = CONTENT | value if isinstance(value, dict) else value
    (store.path / "workspace.json").write_text(json.dumps(content))
    store.load()


def test_fields_that_are_not_known_do_no_harm(store: WorkspaceStore) -> None:
    store.path.mkdir(parents=True)
    agents = [entry | {"colour": "red"} for entry in CONTENT["agents"]]
    (store.path / "workspace.json").write_text(json.dumps(CONTENT | {"agents": agents, "mood": "good"}))
    assert store.load() == WORKSPACE


def test_a_folder_that_is_no_text_comes_back(store: WorkspaceStore) -> None:
    odd = dataclasses.replace(AGENT, cwd=os.fsdecode(b"/srv/\xff"))
    store.save(dataclasses.replace(WORKSPACE, agents=(odd,)))
    found = store.load()
    assert found is not None
    assert found.agents == (odd,)


# Scrollbacks


def test_a_scrollback_comes_back(store: WorkspaceStore) -> None:
    assert store.load_scrollback("synapse-claude-8100") == b""
    data = "行\r\n".encode() * 10_000
    store.save_scrollback("synapse-claude-8100", data)
    assert store.load_scrollback("synapse-claude-8100") == data
    assert (store.path / "synapse-claude-8100.scrollback").stat().st_size < 2000


def test_the_oldest_lines_of_a_large_scrollback_are_left_out(tmp_path: Path) -> None:
    store = WorkspaceStore(tmp_path, "key", scrollback_bytes=20_000)
    lines = [f"{number} {os.urandom(20).hex()}".encode() for number in range(2000)]
    store.save_scrollback("a", b"\r\n".join(lines))
    assert 10_000 < (tmp_path / "key" / "a.scrollback").stat().st_size <= 20_000
    kept = store.load_scrollback("a").split(b"\r\n")
    assert kept == lines[-len(kept) :]
    assert len(kept) > 300


def test_a_broken_scrollback_is_moved_aside(store: WorkspaceStore) -> None:
    store.save_scrollback("a", b"text")
    (store.path / "a.scrollback").write_bytes(b"no zlib")
    assert store.load_scrollback("a") == b""
    assert "a.scrollback.aside" in store.problem


def test_scrollbacks_of_agents_that_are_gone_go_too(store: WorkspaceStore) -> None:
    for agent_id in (AGENT.agent_id, OTHER.agent_id):
        store.save_scrollback(agent_id, b"secret")
    store.save(dataclasses.replace(WORKSPACE, agents=(AGENT,)))
    assert store.load_scrollback(AGENT.agent_id) == b"secret"
    assert store.load_scrollback(OTHER.agent_id) == b""
    store.forget_scrollbacks()
    assert store.load_scrollback(AGENT.agent_id) == b""


def test_forgetting(store: WorkspaceStore) -> None:
    store.save(WORKSPACE)
    store.forget()
    assert store.load() is None
    assert not store.path.exists()
    store.forget()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\0b", "x" * 200])
def test_names_that_could_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a file"):
        WorkspaceStore(tmp_path, name)
    with pytest.raises(ValueError, match="cannot name a file"):
        WorkspaceStore(tmp_path, "key").load_scrollback(name)


# Opening again

PROFILES = shipped()


def test_the_spec_of_a_saved_agent() -> None:
    assert resumed_spec(AGENT, PROFILES.find("claude")) == AgentSpec(
        "claude",
        name="審査",
        cwd=Path("/srv/プロジェクト"),
        args=("--model", "x"),
        restore=True,
        resume=True,
        last_port=8100,
    )


def test_an_agent_that_cannot_resume_is_opened_anew() -> None:
    assert not resumed_spec(dataclasses.replace(AGENT, profile="shell"), PROFILES.find("shell")).resume


def test_arguments_that_resume_already_are_not_given_twice() -> None:
    saved = dataclasses.replace(OTHER, args=("resume", "--last", "--search"))
    assert not resumed_spec(saved, PROFILES.find("codex")).resume
