"""The trust store: contents, not files, are trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from synapse_tui.system.trust import TrustStore, UntrustedFile

if os.name != "posix":
    pytest.skip("file modes", allow_module_level=True)


def asked(store: TrustStore, path: Path) -> UntrustedFile | None:
    return store.check(path, path.read_bytes())


def test_a_content_is_trusted_once_it_was_shown(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "home" / "trusted.json")
    file = tmp_path / "p.yaml"
    file.write_text("command: a\n")
    question = asked(store, file)
    assert question is not None
    assert (question.content, question.changed) == ("command: a\n", False)
    store.trust([question])
    assert asked(store, file) is None
    assert asked(TrustStore(tmp_path / "home" / "trusted.json"), file) is None


def test_the_list_is_private(tmp_path: Path) -> None:
    file = tmp_path / "home" / "trusted.json"
    TrustStore(file).trust([UntrustedFile(tmp_path / "x", "00", "", changed=False)])
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_what_changed_between_showing_and_trusting_is_not_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trusted.json")
    file = tmp_path / "p.yaml"
    file.write_text("command: a\n")
    question = asked(store, file)
    file.write_text("command: b\n")
    assert question is not None
    store.trust([question])
    again = asked(store, file)
    assert again is not None
    assert again.changed


def test_another_file_of_the_same_content_is_not_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trusted.json")
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("x")
    other.write_text("x")
    question = asked(store, one)
    assert question is not None
    store.trust([question])
    assert asked(store, other) is not None


def test_trust_is_kept_of_others_and_taken_back(tmp_path: Path) -> None:
    list_file = tmp_path / "trusted.json"
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("1")
    other.write_text("2")
    first, second = TrustStore(list_file), TrustStore(list_file)
    for store, file in ((first, one), (second, other)):
        question = asked(store, file)
        assert question is not None
        store.trust([question])
    fresh = TrustStore(list_file)
    assert asked(fresh, one) is None
    assert asked(fresh, other) is None
    fresh.revoke(one)
    assert asked(TrustStore(list_file), one) is not None
    assert asked(TrustStore(list_file), other) is None


@pytest.mark.parametrize("content", ["{", "[]", '{"files": []}', '{"files": {"a": 1}}', "\x00"])
def test_a_broken_list_trusts_nothing(tmp_path: Path, content: str) -> None:
    list_file, file = tmp_path / "trusted.json", tmp_path / "a"
    list_file.write_text(content)
    file.write_text("x")
    store = TrustStore(list_file)
    question = asked(store, file)
    assert question is not None
    store.trust([question])
    assert json.loads(list_file.read_text())["files"] == {str(file.resolve()): question.digest}


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_a_list_that_cannot_be_read_is_named_and_trusts_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    file = tmp_path / "trusted.json"
    file.write_bytes(content)
    asking = tmp_path / "p.yaml"
    asking.write_text("x")
    assert asked(TrustStore(file), asking) is not None
    assert str(file) in caplog.text
    assert "remove it" in caplog.text
