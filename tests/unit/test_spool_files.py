"""The files of a spool, and the host's handling of one folder."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import stat
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from synapse_tui.sessions.spool import files as messages
from synapse_tui.sessions.spool import folder as folder_module
from synapse_tui.sessions.spool import folder as watch_module
from synapse_tui.sessions.spool.files import (
    SpoolAnswer,
    SpoolRequest,
    is_abandoned,
    read_private,
    write_whole,
)
from synapse_tui.sessions.spool.folder import AgentPlace, SpoolFolder, SpoolWatch, new_spool, remove_abandoned
from synapse_tui.system.paths import FOLDER, IGNORED, find_project, make_project_folder, remove_project_folder
from tests.waiting import PATIENCE

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


# -- Where spools lie, what is made for them, and what is removed again ---


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def spool_of(temporary: Path, cwd: Path, project: Path | None = None, *, sandboxed: bool = True) -> Path:
    place = AgentPlace(
        "synapse-codex-8120",
        cwd,
        project or cwd,
        temporary.parent / "home",
        sandboxed,
        {"TMPDIR": str(temporary)},
    )
    return new_spool(place).path


def repository(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return tmp_path / "work"


def test_a_sandboxed_agents_spool_lies_in_its_repository_and_leaves_no_trace_in_it(
    tmp_path: Path, temporary: Path
) -> None:
    work = repository(tmp_path)
    spool = spool_of(temporary, work)
    assert spool.parent == work / FOLDER / "spool"
    assert (work / FOLDER / ".gitignore").read_bytes() == IGNORED
    for folder in (spool, spool.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert spool_of(temporary, work) != spool, "no two agents share one"


def test_of_others_nothing_is_made_in_the_repository(tmp_path: Path, temporary: Path) -> None:
    work = repository(tmp_path)
    assert spool_of(temporary, work, sandboxed=False).parent == temporary
    assert not (work / FOLDER).exists()
    (work / FOLDER).mkdir()
    assert spool_of(temporary, work, sandboxed=False).parent == work / FOLDER / "spool"


@pytest.mark.parametrize("git", [True, False])
def test_what_a_project_is_never_changes_by_a_spool(tmp_path: Path, temporary: Path, git: bool) -> None:
    work = repository(tmp_path) if git else tmp_path / "work"
    below = work / "below"
    below.mkdir(parents=True)
    before = find_project(below), find_project(work)
    assert spool_of(temporary, below, work if git else below).parent == temporary
    spool_of(temporary, work)
    assert (find_project(below), find_project(work)) == before


def test_a_spool_for_temporary_files_cannot_be_guessed_and_is_private(
    tmp_path: Path, temporary: Path
) -> None:
    (tmp_path / "plain").mkdir()
    spools = {spool_of(temporary, tmp_path / "plain") for _ in range(3)}
    assert len(spools) == 3
    for spool in spools:
        assert spool.name.startswith(f"synapse-spool-{os.getuid()}-synapse-codex-8120-")
        assert len(spool.name.rpartition("-")[2]) == 16
        assert stat.S_IMODE(spool.stat().st_mode) == 0o700


def test_in_the_home_folder_the_users_own_settings_are_left_alone(tmp_path: Path, temporary: Path) -> None:
    home = tmp_path / "home"
    (home / FOLDER).mkdir(parents=True)
    (home / ".git").mkdir()
    assert spool_of(temporary, home).parent == temporary
    assert not list((home / FOLDER).iterdir())


@pytest.mark.parametrize("what", ["link", "file", "linked spool"])
def test_a_cloned_repository_cannot_lead_the_spool_elsewhere(
    tmp_path: Path, temporary: Path, what: str
) -> None:
    work = repository(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if what == "link":
        (work / FOLDER).symlink_to(elsewhere)
    elif what == "file":
        (work / FOLDER).write_text("")
    else:
        (work / FOLDER).mkdir()
        (work / FOLDER / "spool").symlink_to(elsewhere)
    assert spool_of(temporary, work).parent == temporary
    assert not list(elsewhere.iterdir())


def test_an_edited_gitignore_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    ignore = tmp_path / FOLDER / ".gitignore"
    ignore.write_text("mine\n")
    make_project_folder(tmp_path)
    assert ignore.read_text() == "mine\n"
    remove_project_folder(tmp_path / FOLDER)
    assert ignore.exists()


def test_no_part_of_a_gitignore_is_left_on_a_full_disk(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            make_project_folder(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (make_project_folder(tmp_path) / ".gitignore").read_bytes() == IGNORED


@pytest.mark.parametrize("other", ["", "profiles", ".gitkeep"])
def test_a_project_folder_goes_only_with_nothing_but_ours_in_it(tmp_path: Path, other: str) -> None:
    folder = make_project_folder(tmp_path)
    if other:
        (folder / other).mkdir()
    remove_project_folder(folder)
    assert folder.exists() == bool(other)
    if other:
        assert (folder / ".gitignore").read_bytes() == IGNORED


def test_spools_of_killed_hosts_are_removed_and_those_of_live_ones_are_not(
    tmp_path: Path, temporary: Path
) -> None:
    work = repository(tmp_path)
    prefix = f"synapse-spool-{os.getuid()}-"
    for parent, start in ((temporary, prefix), (work / FOLDER / "spool", "")):
        parent.mkdir(parents=True, exist_ok=True)
        live, left = (SpoolFolder.create(parent / f"{start}{name}") for name in ("live", "left"))
        (left.path / f"{'0' * 32}.request").write_bytes(b"")
        left.leave()
        (parent / f".{start}being-made").mkdir()
        (parent / f".{start}half-made").mkdir()
        os.utime(parent / f".{start}half-made", (0, 0))
        remove_abandoned(parent)
        kept = {live.path.name, f".{start}being-made"}
        assert {path.name for path in parent.iterdir()} == kept
        live.leave()


def test_in_a_folder_for_temporary_files_only_our_own_spools_are_touched(temporary: Path) -> None:
    prefix = f"synapse-spool-{os.getuid()}-"
    (temporary / "synapse-spool-notes").mkdir()
    (temporary / "other").mkdir()
    (temporary / f"{prefix}link").symlink_to(temporary / "other")
    (temporary / f"{prefix}file").write_text("")
    remove_abandoned(temporary)
    remove_abandoned(temporary / "none")
    assert len(list(temporary.iterdir())) == 4


# -- Watching spools: by the kernel, and by looking where it has nothing left ---


class Watched:
    """Folders and what was told of them."""

    def __init__(self, tmp_path: Path, *, native: bool) -> None:
        self.told: list[Path] = []
        self.news = asyncio.Event()
        self.watch = SpoolWatch(self._on_change, native=native)
        self.one, self.two = tmp_path / "one", tmp_path / "two"
        for folder in (self.one, self.two):
            folder.mkdir()
            (folder / "host").write_bytes(b"")
            self.watch.add(folder)

    def _on_change(self, folder: Path) -> None:
        self.told.append(folder)
        self.news.set()

    async def next(self) -> Path:
        async with asyncio.timeout(PATIENCE):
            await self.news.wait()
        self.news.clear()
        return self.told[-1]


@pytest.fixture(params=[True, False], ids=["native", "looking"])
async def watched(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Watched]:
    found = Watched(tmp_path, native=request.param)
    yield found
    found.watch.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "spool" and not _ends(thread)]


def _ends(thread: threading.Thread) -> bool:
    thread.join(10)
    return not thread.is_alive()


async def test_a_request_is_told_with_its_folder(watched: Watched) -> None:
    write_whole(watched.two, "a.request", b"")
    assert await watched.next() == watched.two
    (watched.two / "a.request").unlink()
    write_whole(watched.one, "b.request", b"")
    while await watched.next() != watched.one:
        pass


async def test_answers_are_not_told(watched: Watched) -> None:
    write_whole(watched.one, "a.answer", b"")
    write_whole(watched.two, "b.request", b"")
    assert await watched.next() == watched.two
    assert watched.one not in watched.told


async def test_a_folder_that_is_gone_is_told_and_can_be_watched_again(watched: Watched) -> None:
    shutil.rmtree(watched.one)
    assert await watched.next() == watched.one
    watched.one.mkdir()
    (watched.one / "host").write_bytes(b"")
    watched.watch.add(watched.one)
    watched.told.clear()
    write_whole(watched.one, "a.request", b"")
    while not watched.told:
        await watched.next()
    assert set(watched.told) == {watched.one}


async def test_a_folder_that_is_swept_while_a_file_of_it_is_open_is_told(watched: Watched) -> None:
    with (watched.one / "host").open():
        shutil.rmtree(watched.one)
        assert await watched.next() == watched.one


async def test_where_the_kernel_has_no_watch_left_the_folder_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watch_module._Inotify, "add", full)
    watched = Watched(tmp_path, native=True)
    write_whole(watched.one, "a.request", b"")
    assert await watched.next() == watched.one
    watched.watch.close()
