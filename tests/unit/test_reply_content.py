"""What a reply holds besides its text, as the command reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from synapse_tui.cli.reply import MAX_FILES, read_content, state_of
from synapse_tui.content import Part
from synapse_tui.errors import InvalidValue, MessageTooLarge
from synapse_tui.model import TaskState


def test_files_urls_and_data_are_parts_in_this_order(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    found = read_content([str(file)], ["https://example.org/a b"], ["[1, null]"])
    assert found.parts == (
        Part("file", path=str(file), name="x.json", media_type="application/json"),
        Part("url", "https://example.org/a b"),
        Part("data", data=[1, None]),
    )
    assert found.contents == {str(file): b"{}"}


def test_files_are_limited_together(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(bytes(MAX_FILES - 1))
    second.write_bytes(b"x")
    assert len(read_content([str(first), str(second)], [], []).contents) == 2
    second.write_bytes(b"xx")
    with pytest.raises(MessageTooLarge):
        read_content([str(first), str(second)], [], [])


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), str(tmp_path), "/dev/zero", str(tmp_path / "none"), "nul\0"):
        with pytest.raises(InvalidValue, match=r"cannot be read|not a regular file"):
            read_content([path], [], [])


@pytest.mark.parametrize("url", ["file:///etc/passwd", "example.org", "https://", "http://[", "javascript:1"])
def test_only_addresses_of_the_web_are_urls(url: str) -> None:
    with pytest.raises(InvalidValue, match="not a URL"):
        read_content([], [url], [])


@pytest.mark.parametrize("text", ["{count: 3}", "", "NaN", "[" * 100_000])
def test_data_is_json(text: str) -> None:
    with pytest.raises(InvalidValue, match="not JSON"):
        read_content([], [], [text])


def test_a_task_becomes_one_thing() -> None:
    assert state_of(None, failed=False, rejected=False) is TaskState.COMPLETED
    assert state_of("input-required", failed=False, rejected=False) is TaskState.INPUT_REQUIRED
    assert state_of("failed", failed=True, rejected=False) is TaskState.FAILED
    for state, failed, rejected in ((None, True, True), ("completed", True, False)):
        with pytest.raises(InvalidValue, match="cannot be"):
            state_of(state, failed=failed, rejected=rejected)
