"""The files of a spool, and the host's handling of one folder."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from synapse_tui.spool import files as messages
from synapse_tui.spool import folder as folder_module
from synapse_tui.spool.files import SpoolAnswer, SpoolRequest, is_abandoned, read_private, write_whole
from synapse_tui.spool.folder import SpoolFolder

REQUEST = SpoolRequest(
    "POST",
    "http://127.0.0.1:8100",
    "/tasks/send-priority?priority=3",
    "日本語\n\x00 %".encode(),
    {"X-Synapse-Sender": "synapse-codex-8120"},
    10.0,
    1_000_000.5,
)
NAME = "0123456789abcdef" * 2


@pytest.fixture
def spool(tmp_path: Path) -> SpoolFolder:
    return SpoolFolder.create(tmp_path / "spool")


def put(spool: SpoolFolder, name: str = NAME, request: SpoolRequest = REQUEST) -> Path:
    write_whole(spool.path, f"{name}.request", request.encode())
    return spool.path / f"{name}.request"


def names(spool: SpoolFolder) -> set[str]:
    return {path.name for path in spool.path.iterdir()}


def test_requests_and_answers_are_read_as_they_were_written() -> None:
    assert SpoolRequest.decode(REQUEST.encode()) == REQUEST
    for answer in (SpoolAnswer(200, b'{"a": 1}\n\n'), SpoolAnswer(message="nobody — 誰も", hint="wait")):
        assert SpoolAnswer.decode(answer.encode()) == answer


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"v": 2', b'"v": 1'),
        (b'"POST"', b'"DELETE"'),
        (b'"POST"', b"1"),
        (b"/tasks/send-priority", b"tasks/send-priority"),
        (b"/tasks/send-priority", b"/tasks/ HTTP/1.1\\r\\nHost: elsewhere"),
        (b"/tasks/send-priority", b"/tasks#"),
        (b'"endpoint"', b'"endpount"'),
        *(
            (b"http://127.0.0.1:8100", endpoint)
            for endpoint in (
                b"wss://127.0.0.1:8100",
                b"http://192.0.2.1:80",
                b"http://127.0.0.1:8100@192.0.2.1:80",
                b"http://127.0.0.1:80@192.0.2.1/",
                b"http://127.0.0.1",
                b"http://[::1",
                b"http://127.0.0.1:8100/?a",
                b"file:///etc/passwd",
                b"",
            )
        ),
        (b'"timeout": 10.0', b'"timeout": -1'),
        (b'"timeout": 10.0', b'"timeout": NaN'),
        (b'"timeout": 10.0', b'"timeout": Infinity'),
        (b'"timeout": 10.0', b'"timeout": true'),
        (b'"expires": 1000000.5', b'"expires": "soon"'),
        (b'"X-Synapse-Sender"', b'"X-Synapse:Sender"'),
        (b"synapse-codex-8120", b"synapse-codex-8120\\r\\nHost: elsewhere"),
        (b'{"X-Synapse-Sender": "synapse-codex-8120"}', b'["a"]'),
        (b"{", b"["),
        (b"\n", b" "),
        (b"{", b" " * messages.MAX_HEAD + b"{"),
        (b"{", b"[" * 60_000 + b"{"),
    ],
)
def test_what_is_no_request_says_so(old: bytes, new: bytes) -> None:
    data = REQUEST.encode()
    assert old in data
    with pytest.raises(ValueError, match=r".+"):
        SpoolRequest.decode(data.replace(old, new))


@pytest.mark.parametrize("head", [b'{"v": 1}', b'{"status": true}', b'{"status": 999}', b'{"status": 200}'])
def test_what_is_no_answer_says_so(head: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        SpoolAnswer.decode(head + b"\n{}")


def test_a_file_appears_whole_and_private(tmp_path: Path) -> None:
    write_whole(tmp_path, "file", b"content")
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none", "file", b"")


def test_nothing_is_left_of_a_file_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path, "file", b"content")
    assert not list(tmp_path.iterdir())


def link(path: Path) -> None:
    target = path.parent.with_name("target")
    target.write_bytes(REQUEST.encode())
    path.symlink_to(target)


def hard_link(path: Path) -> None:
    target = path.parent.with_name("target")
    target.write_bytes(REQUEST.encode())
    path.hardlink_to(target)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_bytes(b"")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(messages.MAX_REQUEST + 1)


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff\x00 no JSON\n")


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path must be short
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize("make", [link, hard_link, pipe, folder, huge, garbage, bound_socket])
def test_what_is_no_plain_small_request_is_taken_out_and_refused(
    spool: SpoolFolder, make: Callable[[Path], None]
) -> None:
    make(spool.path / f"{NAME}.request")
    (taken,) = spool.take(10)
    assert taken.name == NAME
    assert taken.request is None
    assert taken.problem
    files = spool.answer(taken, SpoolAnswer(400), "secret")
    assert names(spool) == {"host", *files}
    assert f"{NAME}.answer" in files, "a client of another version looks there"
    target = spool.path.with_name("target")
    assert not target.exists() or target.read_bytes() == REQUEST.encode(), "where a link leads is untouched"


def test_a_file_of_another_user_is_refused(spool: SpoolFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(spool)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(ValueError, match="another user"):
        read_private(path, 10_000)


def test_requests_are_taken_oldest_first_and_no_more_than_asked_for(spool: SpoolFolder) -> None:
    ids = [f"{number:032x}" for number in (7, 3, 9, 1)]
    for age, name in enumerate(ids):
        os.utime(put(spool, name), (1_000_000 + age,) * 2)
    assert [one.name for one in spool.take(2)] == ids[:2]
    assert {f"{name}.request" for name in ids[2:]} <= names(spool), (
        "the others are left for whoever withdraws"
    )
    assert [one.name for one in spool.take(9)] == ids[2:]
    assert spool.take(9) == []


def test_an_answer_takes_the_place_of_its_request(spool: SpoolFolder) -> None:
    put(spool)
    (taken,) = spool.take(1)
    assert taken.request == REQUEST
    assert names(spool) == {"host", f"{NAME}.taken"}
    (file,) = spool.answer(taken, SpoolAnswer(200, b"{}"), "secret")
    assert names(spool) == {"host", file}
    assert NAME not in file
    assert spool.answers() == [file]
    spool.discard([file, "collected.answer"])
    assert names(spool) == {"host"}


def test_what_has_no_business_there_goes_and_what_may_be_needed_stays(spool: SpoolFolder) -> None:
    needed = {"host", f"{NAME}.answer", f"{NAME}.taken", f".{NAME}.request.1f2e"}
    for name in (*needed, "notes.txt", "short.request", f"{NAME.upper()}.request"):
        (spool.path / name).write_bytes(b"")
    (spool.path / "folder").mkdir()
    (spool.path / "link").symlink_to("/etc/hostname")
    assert spool.take(9) == []
    assert names(spool) == needed
    for name in needed:
        os.utime(spool.path / name, (0, 0))
    spool.take(9)
    assert names(spool) == {"host"}


def test_a_spool_is_private_and_locked_from_the_moment_it_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    rename = Path.rename

    def watched(self: Path, target: Path) -> Path:
        seen.append(is_abandoned(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    spool = SpoolFolder.create(tmp_path / "spool")
    assert seen == [False]
    assert stat.S_IMODE(spool.path.stat().st_mode) == 0o700
    assert not is_abandoned(spool.path)
    spool.leave()
    assert is_abandoned(spool.path)


def test_nothing_is_left_of_a_spool_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(folder_module, "lock", fail)
    with pytest.raises(OSError, match="Input/output"):
        SpoolFolder.create(tmp_path / "spool")
    assert not list(tmp_path.iterdir())


def test_a_spool_that_was_swept_away_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    spool = SpoolFolder.create(tmp_path / "spool" / "agent")
    spool.remove()
    assert not list(tmp_path.iterdir()), "the folder of spools goes with the last one"
    spool.restore()
    assert spool.locked
    put(spool)
    assert len(spool.take(1)) == 1
    spool.remove()


def test_a_spool_is_not_made_again_where_somebody_elses_lies(tmp_path: Path) -> None:
    spool = SpoolFolder.create(tmp_path / "agent")
    spool.remove()
    (tmp_path / "other").mkdir()
    spool.path.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="no folder of this user"):
        spool.restore()


def test_a_spool_that_another_host_has_locked_is_not_taken_over(tmp_path: Path) -> None:
    first = SpoolFolder.create(tmp_path / "agent")
    with pytest.raises(BlockingIOError):
        SpoolFolder(first.path).restore()
    first.leave()
    second = SpoolFolder(first.path)
    second.restore()
    second.remove()
