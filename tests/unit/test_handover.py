"""What a host writes for the version that it executes in its place."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.core.errors import HandoverError
from synapse_tui.workspace import AgentHandover, GuardianHandover, Handover

AGENT = AgentHandover(
    agent_id="synapse-claude-8100",
    profile="claude",
    name="審査",
    cwd="/work",
    spec={"args": ["--model", "x"]},
    pid=123,
    start="456",
    fd=7,
    pending=b"\xff\x00half a paste",
    columns=120,
    lines=40,
    terminal="\x1b[31m漢字".encode(),
    restored="前の行".encode(),
    signals={"status": "working"},
    tasks=({"id": "a"}, {"id": "b"}),
    outbox=({"task_id": "b"},),
    context_id="uuid",
    token="secret",
    port=8100,
    sockets=(8, 9),
    environ={"PATH": "/bin"},
    extra={"unseen": True},
)
ENDED = AgentHandover("synapse-codex-8120", "codex", exit={"code": 3})
HANDOVER = Handover(
    build="1.2",
    session="main",
    agents=(AGENT, ENDED),
    guardian=GuardianHandover(55, 11, {123: "456"}),
    extra={"x": 1},
)


def written(content: object) -> int:
    """A descriptor of a file with that content."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read


def content_of(handover: Handover) -> dict[str, object]:
    with os.fdopen(handover.write(), "rb") as file:
        content: dict[str, object] = json.loads(file.read())
    return content


def test_it_is_read_as_it_was_written() -> None:
    descriptor = HANDOVER.write()
    assert os.get_inheritable(descriptor)
    assert Handover.read(descriptor) == HANDOVER
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_keys_of_other_versions_do_no_harm() -> None:
    older = {"version": 1, "build": "0.9", "agents": [{"agent_id": "a", "profile": "p"}]}
    assert Handover.read(written(older)) == Handover("0.9", agents=(AgentHandover("a", "p"),))
    newer = content_of(HANDOVER) | {"moon": "full"}
    assert Handover.read(written(newer)) == HANDOVER


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "its version is 2"),
        ({"build": None}, "'build'"),
        ({"agents": [{"agent_id": "a"}]}, "'profile'"),
        ({"agents": [{"agent_id": "a", "profile": "p", "pid": "1"}]}, "'pid'"),
        ({"agents": [{"agent_id": "a", "profile": "p", "terminal": "?"}]}, "base64"),
        ({"agents": [{"agent_id": "a", "profile": "p", "tasks": [1]}]}, "'tasks'"),
        ({"agents": [{"agent_id": "a", "profile": "p", "sockets": ["1"]}]}, "'sockets'"),
        ({"guardian": {"leaders": {"x": "1"}}}, "invalid literal"),
    ],
)
def test_what_cannot_be_understood_is_told(change: dict[str, object], why: str) -> None:
    with pytest.raises(HandoverError, match="cannot be understood") as told:
        Handover.read(written(content_of(HANDOVER) | change))
    assert why in told.value.message
    assert told.value.hint


def test_no_descriptor_and_no_json() -> None:
    with pytest.raises(HandoverError, match="cannot be read"):
        Handover.read(98765)
    with pytest.raises(HandoverError, match="cannot be understood"):
        Handover.read(written(b"\xff"))
    with pytest.raises(HandoverError, match="cannot be understood"):
        Handover.read(written(b"[" * 50_000))


@settings(max_examples=30, deadline=None)
@given(st.binary(), st.binary(), st.text(), st.dictionaries(st.text(), st.integers() | st.text()))
def test_any_content(pending: bytes, terminal: bytes, name: str, extra: dict[str, object]) -> None:
    agent = AgentHandover("a", "p", name=name, pending=pending, terminal=terminal, extra=extra)
    assert Handover.read(Handover("1", agents=(agent,)).write()).agents == (agent,)
