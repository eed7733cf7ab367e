"""The client's side of a spool: what it waits for, when it gives up, and that it gives up for good."""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client, PlainConnection
from synapse_tui.core.errors import PeerUnreachable
from synapse_tui.sessions.spool.client import SpoolClient, forbidden
from synapse_tui.sessions.spool.files import SpoolAnswer, SpoolRequest, write_whole
from synapse_tui.sessions.spool.folder import SpoolFolder, Taken

REQUEST = SpoolRequest("POST", "http://127.0.0.1:8100", "/tasks/send", b"{}", {}, 5.0)
TOKEN = "secret"
DENIED = PermissionError(errno.EPERM, "Operation not permitted")


@pytest.fixture
def spool(tmp_path: Path) -> SpoolFolder:
    return SpoolFolder.create(tmp_path / "spool")


def names(spool: SpoolFolder) -> set[str]:
    return {path.name for path in spool.path.iterdir()}


class Clock:
    """Time that passes only by sleeping; something may happen while it does."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []
        self.events: dict[int, Callable[[], object]] = {}

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        self.events.pop(len(self.pauses), lambda: None)()


def client_of(spool: SpoolFolder, clock: Clock) -> SpoolClient:
    return SpoolClient(
        spool.path, TOKEN, pickup_timeout=2.0, clock=clock, now=lambda: 1_000_000.0, sleep=clock.sleep
    )


def test_what_nobody_takes_is_taken_back(spool: SpoolFolder) -> None:
    clock = Clock()
    with pytest.raises(PeerUnreachable, match="will not be sent") as caught:
        client_of(spool, clock).exchange(REQUEST)
    assert caught.value.hint
    assert names(spool) == {"host"}
    assert spool.take(1) == []
    assert 2.0 <= clock.now - 100 < 2.1
    assert max(clock.pauses) == 0.05
    assert clock.pauses[0] <= 0.002


def test_a_killed_clients_request_says_when_it_is_too_late(spool: SpoolFolder) -> None:
    clock = Clock()
    found: list[Taken] = []
    clock.events[1] = lambda: found.extend(spool.take(1))
    clock.events[2] = lambda: spool.answer(found[0], SpoolAnswer(200), TOKEN)
    client_of(spool, clock).exchange(REQUEST)
    assert found[0].request is not None
    assert found[0].request.expires == 1_000_003.0


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_taken_request_without_an_answer_may_have_arrived(spool: SpoolFolder, method: str) -> None:
    clock = Clock()
    clock.events[3] = lambda: spool.take(1)
    with pytest.raises(PeerUnreachable, match="no answer came") as caught:
        client_of(spool, clock).exchange(
            SpoolRequest(method, REQUEST.endpoint, REQUEST.target, b"", {}, 30.0)
        )
    assert 30 <= clock.now - 100 < 35
    assert ("not known" in caught.value.hint) == (method == "POST")


def test_a_host_that_ends_is_noticed(spool: SpoolFolder) -> None:
    clock = Clock()
    clock.events[3] = lambda: spool.take(1)
    clock.events[5] = spool.leave
    with pytest.raises(PeerUnreachable, match="host has ended"):
        client_of(spool, clock).exchange(REQUEST)
    assert clock.now - 100 < 2


def test_the_answer_of_a_host_that_ends_is_read(spool: SpoolFolder) -> None:
    clock = Clock()

    def answer_and_end() -> None:
        (one,) = spool.take(1)
        spool.answer(one, SpoolAnswer(200), TOKEN)
        spool.leave()

    clock.events[3] = answer_and_end
    assert client_of(spool, clock).exchange(REQUEST).status == 200


def test_a_spool_that_was_swept_away_is_awaited(spool: SpoolFolder) -> None:
    clock = Clock()
    spool.remove()
    clock.events[5] = spool.restore

    def answer() -> None:
        (one,) = spool.take(1)
        spool.answer(one, SpoolAnswer(200), TOKEN)

    clock.events[9] = answer
    assert client_of(spool, clock).exchange(REQUEST).status == 200
    spool.remove()
    with pytest.raises(PeerUnreachable, match="is gone"):
        client_of(spool, clock).exchange(REQUEST)


def test_an_interrupted_client_takes_its_request_back(spool: SpoolFolder) -> None:
    clock = Clock()

    def interrupt() -> None:
        raise KeyboardInterrupt

    clock.events[2] = interrupt
    with pytest.raises(KeyboardInterrupt):
        client_of(spool, clock).exchange(REQUEST)
    assert names(spool) == {"host"}


def test_a_spool_that_cannot_be_written_says_what_to_allow(
    spool: SpoolFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("synapse_tui.sessions.spool.client.write_whole", read_only)
    with pytest.raises(PeerUnreachable, match="Read-only file system") as caught:
        SpoolClient(spool.path, TOKEN).exchange(REQUEST)
    assert "writable_roots" in caught.value.hint


@pytest.mark.parametrize("what", ["open", "foreign", "link"])
def test_a_spool_that_others_could_read_gets_nothing(
    spool: SpoolFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path = spool.path
    if what == "open":
        path.chmod(0o755)
    elif what == "foreign":
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    else:
        path = tmp_path / "link"
        path.symlink_to(spool.path)
    with pytest.raises(PeerUnreachable, match="not a folder of yours alone"):
        SpoolClient(path, TOKEN).exchange(REQUEST)
    assert names(spool) == {"host"}


def garbage(answer: Path, other: bytes) -> None:
    answer.write_bytes(b"what?")


def truncated(answer: Path, other: bytes) -> None:
    answer.write_bytes(answer.read_bytes()[:-1])


def altered(answer: Path, other: bytes) -> None:
    answer.write_bytes(answer.read_bytes().replace(b"200", b"404"))


def unsigned(answer: Path, other: bytes) -> None:
    answer.write_bytes(SpoolAnswer(200, b"forged").encode())


def of_another_request(answer: Path, other: bytes) -> None:
    answer.write_bytes(other)


def link(answer: Path, other: bytes) -> None:
    target = answer.parent.with_name("target")
    answer.rename(target)
    answer.symlink_to(target)


def pipe(answer: Path, other: bytes) -> None:
    answer.unlink()
    os.mkfifo(answer)


def a_folder(answer: Path, other: bytes) -> None:
    answer.unlink()
    answer.mkdir()


@pytest.mark.parametrize(
    "forge", [garbage, truncated, altered, unsigned, of_another_request, link, pipe, a_folder]
)
def test_an_answer_that_is_not_the_hosts_is_ignored_until_that_comes(
    spool: SpoolFolder, forge: Callable[[Path, bytes], None]
) -> None:
    """Whatever stands in the very place of the answer, which takes knowing its name."""
    clock = Clock()
    found: list[Taken] = []
    files: list[Path] = []

    def answer_another() -> None:
        (one,) = spool.take(1)
        (name,) = spool.answer(one, SpoolAnswer(200, b"another"), TOKEN)
        files.append(spool.path / name)

    def answer_and_forge() -> None:
        found.extend(spool.take(1))
        other = files[0].read_bytes()
        (name,) = spool.answer(found[0], SpoolAnswer(200, b"true"), TOKEN)
        files.append(spool.path / name)
        forge(files[1], other)

    def answer_again() -> None:
        if files[1].is_dir() and not files[1].is_symlink():
            files[1].rmdir()
        spool.answer(found[0], SpoolAnswer(200, b"true"), TOKEN)

    client = client_of(spool, clock)
    write_whole(spool.path, f"{'b' * 32}.request", replace(REQUEST, expires=2.0**33).encode())
    clock.events[1] = answer_another
    clock.events[2] = answer_and_forge
    clock.events[40] = answer_again
    assert client.exchange(REQUEST) == SpoolAnswer(200, b"true")
    assert len(clock.pauses) >= 40


def test_the_hosts_answer_is_taken_whatever_lies_beside_it(spool: SpoolFolder) -> None:
    """Others in the folder may give it more names, which is no reason to throw it away."""
    clock = Clock()

    def answer_and_link() -> None:
        (one,) = spool.take(1)
        (name,) = spool.answer(one, SpoolAnswer(200, b"true"), TOKEN)
        for number in range(20):
            os.link(spool.path / name, spool.path / f"{number:032x}.answer")
        (spool.path / f"{one.name}.answer").write_bytes(SpoolAnswer(200, b"forged").encode())

    clock.events[2] = answer_and_link
    assert client_of(spool, clock).exchange(REQUEST) == SpoolAnswer(200, b"true")


def test_that_only_forged_answers_came_is_told(spool: SpoolFolder) -> None:
    clock = Clock()

    def forge() -> None:
        (one,) = spool.take(1)
        (spool.path / f"{one.name}.answer").write_bytes(SpoolAnswer(200, b"forged").encode())

    clock.events[2] = forge
    with pytest.raises(PeerUnreachable, match="was ignored: the agent's host has not signed it") as caught:
        client_of(spool, clock).exchange(REQUEST)
    assert "not known whether" in caught.value.hint
    assert not list(spool.path.glob("*.answer"))


def test_an_answer_to_something_else_that_was_put_in_place_of_the_request_is_not_taken(
    spool: SpoolFolder,
) -> None:
    """Who may write there could have the host sign what came of a request of their own."""
    clock = Clock()

    def replace_request() -> None:
        (request,) = spool.path.glob("*.request")
        other = SpoolRequest("GET", REQUEST.endpoint, "/elsewhere", b"", {}, 5.0, 2.0**33)
        write_whole(spool.path, request.name, other.encode())
        (one,) = spool.take(1)
        spool.answer(one, SpoolAnswer(200, b"of the other request"), TOKEN)

    clock.events[1] = replace_request
    with pytest.raises(PeerUnreachable, match="no answer came"):
        client_of(spool, clock).exchange(REQUEST)


@pytest.mark.parametrize("said", ["net:[1]\n", "\n", "net:[1]\n1\n"])
def test_a_host_of_another_version_gets_nothing(spool: SpoolFolder, said: str) -> None:
    (spool.path / "host").write_text(said)
    with pytest.raises(PeerUnreachable, match=r"another version .* nothing was sent") as caught:
        SpoolClient(spool.path, TOKEN).exchange(REQUEST)
    assert "synapse-tui upgrade" in caught.value.hint
    assert names(spool) == {"host"}


def test_a_host_that_is_just_writing_its_version_is_awaited(spool: SpoolFolder) -> None:
    clock = Clock()
    said = (spool.path / "host").read_bytes()
    (spool.path / "host").write_bytes(b"")
    clock.events[3] = lambda: (spool.path / "host").write_bytes(said)

    def answer() -> None:
        (one,) = spool.take(1)
        spool.answer(one, SpoolAnswer(200), TOKEN)

    clock.events[6] = answer
    assert client_of(spool, clock).exchange(REQUEST).status == 200


def test_of_taking_back_and_taking_exactly_one_wins(spool: SpoolFolder) -> None:
    """Clients that give up at about the moment at which the host looks."""
    chance = random.Random(7)
    delivered: set[str] = set()
    end = threading.Event()

    def host() -> None:
        dice = random.Random(11)
        while not end.is_set():
            time.sleep(dice.random() * 0.002)
            for one in spool.take(100):
                delivered.add(one.name)
                spool.answer(one, SpoolAnswer(200), TOKEN)

    thread = threading.Thread(target=host)
    thread.start()
    outcomes = {True: 0, False: 0}
    try:
        for number in range(200):
            name = f"{number:032x}"
            patience = chance.random() * 0.002
            client = SpoolClient(spool.path, TOKEN, pickup_timeout=patience, make_id=partial(str, name))
            try:
                answered = client.exchange(REQUEST).status == 200
            except PeerUnreachable as error:
                answered = "will not be sent" not in error.message
            outcomes[answered] += 1
            assert (name in delivered) == answered
    finally:
        end.set()
        thread.join()
    assert not spool.take(100)
    assert min(outcomes.values()) > 5, outcomes


@pytest.mark.parametrize(
    ("number", "is_forbidden"),
    [
        (errno.EPERM, True),
        (errno.EACCES, True),
        (errno.ENETUNREACH, True),
        (errno.EAFNOSUPPORT, True),
        (errno.ECONNREFUSED, False),
        (errno.ETIMEDOUT, False),
        (None, False),
    ],
)
def test_which_failures_mean_that_connecting_is_forbidden(
    spool: SpoolFolder, number: int | None, is_forbidden: bool
) -> None:
    error = OSError(number, "") if number else OSError("timed out")
    assert forbidden(error, spool.path) is is_forbidden


def test_a_refusal_in_another_network_is_none(spool: SpoolFolder) -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    (spool.path / "host").write_text("net:[1]\n")
    assert forbidden(refused, spool.path)
    assert not forbidden(refused, None)
    (spool.path / "host").unlink()
    assert not forbidden(refused, spool.path)


@pytest.mark.parametrize(
    ("error", "environ", "message", "hint"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, ""), {}, "nothing is listening", "synapse list"),
        (DENIED, {}, "forbidden here: Operation not permitted; nothing was sent", "the network"),
        (DENIED, {"SYNAPSE_SPOOL": "."}, "forbidden here", "keeps SYNAPSE_AGENT_ID or SYNAPSE_TOKEN"),
    ],
)  # fmt: skip
def test_without_a_way_out_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: OSError, environ: dict[str, str], message: str, hint: str
) -> None:
    monkeypatch.setattr(PlainConnection, "connect", Mock(side_effect=error))
    with pytest.raises(PeerUnreachable, match=message) as caught:
        Client(environ=environ).call("http://127.0.0.1:8100", calls.status())
    assert hint in caught.value.hint
