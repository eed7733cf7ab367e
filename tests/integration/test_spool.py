"""Agents that may not connect: their requests go through files, and through their host's hands."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest

from synapse_tui.a2a import calls
from synapse_tui.core.errors import PeerUnreachable
from synapse_tui.core.model import USER, Sender
from synapse_tui.host import spool as host_spool
from synapse_tui.sessions.spool import client as spool_client
from synapse_tui.sessions.spool.files import MAX_REQUEST, SpoolRequest, is_abandoned, write_whole
from synapse_tui.system.paths import FOLDER
from tests.fake_agent import FakeAgent
from tests.integration.host_kit import make_host, open_ready
from tests.integration.host_kit import running as running_host
from tests.integration.server_kit import running
from tests.integration.spool_kit import SYNAPSE_OFFLINE, SpoolRig, changed, forbidden, spool_rig
from tests.waiting import until

__all__ = ["forbidden"]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[SpoolRig]:
    async with spool_rig(tmp_path) as found:
        yield found


@pytest.fixture
async def codex(rig: SpoolRig) -> FakeAgent:
    return await rig.open("codex")


@pytest.fixture
async def claude(rig: SpoolRig) -> FakeAgent:
    return await rig.open("claude")


def sender_of(agent: FakeAgent) -> Sender:
    return Sender(agent.agent_id, agent.agent_type, agent.endpoint)


@pytest.mark.usefixtures("forbidden")
async def test_a_message_arrives_once_and_its_sender_is_verified(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    client = rig.light(codex)
    text = "日本語\n" * 100_000
    task = await asyncio.to_thread(
        client.call, claude.endpoint, calls.send(text, sender=sender_of(codex), priority=4)
    )
    (request,) = claude.requests
    assert (request.text, request.priority) == (text, 4)
    assert (request.sender.sender_id, request.sender.verified) == (codex.agent_id, True)
    assert (
        await asyncio.to_thread(client.call, claude.endpoint, calls.task(task.task_id))
    ).task_id == task.task_id
    assert not rig.left(codex)


class Forger:
    """A sandboxed sibling: it connects to nobody, and answers every request that it sees."""

    def __init__(self, spool: Path, body: bytes, *, over: bool = False) -> None:
        self._spool, self._over = spool, over
        self._data = b'{"v": 1, "status": 200, "message": "", "hint": ""}\n' + body
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.forged = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            names = os.listdir(self._spool)  # noqa: PTH208 - as quick as can be
            wanted = {name.partition(".")[0] for name in names if name.endswith((".request", ".taken"))}
            if self._over:
                wanted |= {name.partition(".")[0] for name in names if name.endswith(".answer")}
            for name in wanted - {""}:
                write_whole(self._spool, f"{name}.answer", self._data)
                self.forged += 1


@pytest.mark.usefixtures("forbidden")
async def test_a_sibling_that_can_write_into_a_spool_forges_no_answer(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    client = rig.light(codex)
    body = json.dumps({"task": {"id": "forged", "status": "submitted", "context_id": "forged"}}).encode()
    told: list[str] = []
    with Forger(rig.spool(codex), body) as forger:
        for number in range(10):
            task = await asyncio.to_thread(
                client.call, claude.endpoint, calls.send(f"message {number}", sender=sender_of(codex))
            )
            told.append(task.task_id)
    assert forger.forged >= 10
    assert told.count("forged") == 0
    assert len(set(told)) == 10
    assert [request.text for request in claude.requests] == [f"message {number}" for number in range(10)]


@pytest.mark.usefixtures("forbidden")
async def test_a_sibling_that_writes_over_true_answers_is_never_believed(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_client, "GRACE", 0.2)
    call = signed(rig, codex, SpoolRequest("GET", claude.endpoint, "/status", b"", {}, 0.5))
    outcomes = set()
    with Forger(rig.spool(codex), b'{"forged": true}', over=True):
        for _ in range(10):
            with suppress(PeerUnreachable):  # the sibling has removed the true one
                answer = await asyncio.to_thread(rig.spool_client(codex).exchange, call)
                outcomes.add(b"forged" in answer.body)
    assert outcomes <= {False}


async def test_answers_that_nobody_collects_go_by_age_and_number(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of clients that were killed."""
    monkeypatch.setattr(host_spool, "MAX_ANSWERS", 5)
    ids = [f"{number:032x}" for number in range(20)]
    for name in ids:
        write_whole(rig.spool(codex), f"{name}.request", rig.request(codex, claude.endpoint).encode())
    await until(lambda: len(claude.requests) == 20)
    await until(lambda: not any(name.endswith((".request", ".taken")) for name in rig.left(codex)))
    await until(lambda: len(rig.left(codex)) == 5)
    # Those of a host before are found by the one that goes on, and go when their time is over.
    monkeypatch.setattr(host_spool, "ANSWER_LIFE", 0.2)
    await rig.keeper.hand_over()
    assert len(rig.left(codex)) == 5
    rig.keeper = rig.new_keeper()
    for agent in (codex, claude):
        rig.keeper.add(agent.agent_id, rig.environs[agent.agent_id])
    await until(lambda: not rig.left(codex))
    write_whole(rig.spool(codex), f"{'e' * 32}.request", rig.request(codex, claude.endpoint).encode())
    await until(lambda: len(claude.requests) == 21)
    await until(lambda: not rig.left(codex))


async def test_only_agents_of_this_host_are_believed(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    good = rig.request(codex, claude.endpoint)
    unsigned = changed(good, headers={})
    foreign = changed(good, headers={**good.headers, "X-Synapse-Sender": "synapse-codex-1"})
    person = FakeAgent(1)
    person.__class__ = type("Person", (FakeAgent,), {"agent_id": USER.sender_id})
    refused = {
        "no signature": unsigned,
        "somebody else": foreign,
        "another token": rig.request(codex, claude.endpoint, token="guessed").encode(),
        "another text": changed(good, body=good.body.replace(b"hello", b"rm -r")),
        "another target": changed(good, target=good.target.replace("3", "5")),
        "another agent": changed(good, endpoint=codex.endpoint),
        "the person": rig.request(person, claude.endpoint, token=rig.tokens(USER.sender_id) or "").encode(),
    }
    for what, data in refused.items():
        answer = await rig.put(codex, data)
        assert answer.status == 401, what
        assert json.loads(answer.body)["error"]["hint"], what
    assert (await rig.put(codex, good.encode())).status == 200
    replayed = await rig.put(codex, good.encode(), "b" * 32)
    assert json.loads(replayed.body)["error"]["code"] == "signature_replayed"
    assert len(claude.requests) == 1
    assert not rig.left(codex)


async def test_only_agents_of_this_machine_can_be_called(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    async with running("gemini") as (unknown, _):
        answer = await rig.put(codex, rig.request(codex, unknown.endpoint).encode())
        assert (answer.status, "no agent is recorded" in answer.message) == (0, True)
        assert not unknown.requests
    for endpoint in ("http://192.0.2.1:80", claude.endpoint.replace("//", "//127.0.0.1:80@"), "http://["):
        answer = await rig.put(codex, changed(rig.request(codex, claude.endpoint), endpoint=endpoint))
        assert answer.status == 400, endpoint
    below = await rig.put(codex, rig.request(codex, f"{claude.endpoint}/below").encode())
    assert (below.status, "no agent is recorded" in below.message) == (0, True)
    assert not claude.requests


async def test_agents_of_other_hosts_are_reached_without_being_believed_there(
    rig: SpoolRig, codex: FakeAgent, tmp_path: Path
) -> None:
    async with spool_rig(tmp_path, rig.shell) as other:
        gemini = await other.open("gemini")
        assert (await rig.put(codex, rig.request(codex, gemini.endpoint).encode())).status == 200
        (request,) = gemini.requests
        assert (request.sender.sender_id, request.sender.verified) == (codex.agent_id, False)
        # What one host's agent puts into a spool of another host is not carried in its name.
        answer = await other.put(gemini, rig.request(codex, gemini.endpoint).encode())
        assert answer.status == 401
        assert len(gemini.requests) == 1


async def test_what_is_no_request_does_no_harm(rig: SpoolRig, codex: FakeAgent, claude: FakeAgent) -> None:
    good = rig.request(codex, claude.endpoint)
    late = await rig.put(codex, changed(good, expires=1.0))
    assert late.status == 0
    assert "too late" in late.message
    huge = await rig.put(codex, b"{" + b" " * MAX_REQUEST)
    assert huge.status == 400
    (rig.spool(codex) / f"{'c' * 32}.request").symlink_to("/etc/hostname")
    (rig.spool(codex) / "notes.request").mkdir()
    write_whole(rig.spool(codex), f"{'d' * 32}.request", b"no JSON")
    await until(lambda: {f"{'c' * 32}.answer", f"{'d' * 32}.answer"} <= rig.left(codex))
    await until(lambda: not any(name.endswith((".request", ".taken")) for name in rig.left(codex)))
    assert (await rig.put(codex, rig.request(codex, claude.endpoint).encode())).status == 200
    assert len(claude.requests) == 1


async def test_a_spool_that_the_agent_sweeps_away_is_made_again(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    await until(lambda: not is_abandoned(rig.spool(codex)))
    shutil.rmtree(rig.shell.folder / FOLDER)
    answer = await asyncio.to_thread(rig.spool_client(codex).exchange, rig.request(codex, claude.endpoint))
    assert answer.status == 200
    assert len(claude.requests) == 1


async def test_the_next_version_of_a_host_goes_on_with_the_spools(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    """What is under way is answered, what is not taken yet is taken by the one that follows."""
    task = claude.wait("something", sender_of(codex))
    call = SpoolRequest("GET", claude.endpoint, f"/tasks/{task.id}?wait=30&seen=", b"", {}, 40.0)
    client = rig.spool_client(codex)
    poll = asyncio.create_task(asyncio.to_thread(client.exchange, signed(rig, codex, call)))
    await until(lambda: any(name.endswith(".taken") for name in rig.left(codex)))
    await rig.keeper.hand_over()
    with pytest.raises(PeerUnreachable, match="ended before"):
        await poll
    later = asyncio.create_task(asyncio.to_thread(client.exchange, rig.request(codex, claude.endpoint)))
    await until(lambda: any(name.endswith(".request") for name in rig.left(codex)))
    rig.keeper = rig.new_keeper()
    for agent in (codex, claude):
        rig.keeper.add(agent.agent_id, rig.environs[agent.agent_id])
    assert (await later).status == 200
    assert len(claude.requests) == 1
    assert not is_abandoned(rig.spool(codex))


def signed(rig: SpoolRig, agent: FakeAgent, request: SpoolRequest) -> SpoolRequest:
    call = calls.request(request.method, request.target, request.body)
    headers = call.headers(request.endpoint, agent.agent_id, rig.tokens)
    return SpoolRequest(
        request.method, request.endpoint, request.target, request.body, headers, request.timeout
    )


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    code = "\n".join((
        "import os, signal, sys; from pathlib import Path",
        "from synapse_tui.sessions.spool.folder import SpoolFolder",
        "SpoolFolder.create(Path(sys.argv[1])); print('made', flush=True); signal.pause()",
    ))  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s")], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"made\n"
        assert not is_abandoned(tmp_path / "s")
        host.kill()
        host.wait()
    assert is_abandoned(tmp_path / "s")


async def test_the_commands_work_where_connecting_is_forbidden(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    shell = rig.shell
    shell.environ |= rig.environs[codex.agent_id] | {
        "SYNAPSE_ENDPOINT": ""
    }  # nobody tells an answer to it here
    claude.answer = "fine"
    for words, out in (
        (("send", "claude", "how are you?", "--response"), "fine\n"),
        (("send", "claude", "just so", "--no-response", "--json"), '"task_id"'),
        (("list",), claude.agent_id),
        (("outbox",), ""),
    ):
        result = await shell.run(*words, program=SYNAPSE_OFFLINE)
        assert result.code == 0, result
        assert out in result.out
    assert [request.text for request in claude.requests] == ["how are you?", "just so"]
    assert all(request.sender.verified for request in claude.requests)
    refused = await shell.run("send", "claude", "", program=SYNAPSE_OFFLINE)
    assert refused.code == 4


async def test_without_a_host_the_command_says_what_to_do(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent
) -> None:
    rig.shell.environ |= rig.environs[codex.agent_id]
    await rig.keeper.hand_over()
    shutil.rmtree(rig.spool(codex))
    rig.spool(codex).write_text("")
    result = await rig.shell.run("send", "claude", "hello", program=SYNAPSE_OFFLINE)
    assert result.code == 5
    assert "not a folder of yours alone" in result.err
    rig.spool(codex).unlink()
    rig.shell.environ |= {"SYNAPSE_SPOOL": ""}
    result = await rig.shell.run("send", "claude", "hello", program=SYNAPSE_OFFLINE)
    assert result.code == 5
    assert "forbidden" in result.err
    assert not claude.requests


LOOPBACK_UP = """
import fcntl, socket, struct
with socket.socket() as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
"""
"""Brings the loopback of a new network up: connecting is refused there, and not forbidden."""


@pytest.mark.parametrize("loopback", [False, True], ids=["without loopback", "with a loopback of its own"])
async def test_the_commands_work_in_another_network_and_among_other_processes(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent, loopback: bool
) -> None:
    unshare = ("unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc")
    tried = await asyncio.create_subprocess_exec(*unshare, "true", stderr=subprocess.DEVNULL)
    if await tried.wait():
        pytest.skip("this machine lets nobody make namespaces")
    rig.shell.environ |= rig.environs[codex.agent_id]
    code = (LOOPBACK_UP if loopback else "") + "from synapse_tui.cli import main; main()"
    program = (*unshare, sys.executable, "-c", code)
    result = await rig.shell.run("list", program=program)
    assert claude.agent_id in result.out, result
    result = await rig.shell.run("send", "claude", "from far away", "--no-response", program=program)
    assert result.code == 0, result
    (request,) = claude.requests
    assert request.sender.verified


async def test_a_hosts_agents_get_a_spool_that_works(tmp_path: Path) -> None:
    async with running_host(make_host(tmp_path)) as host:
        alice, bob = await open_ready(host, "alice", "bob")
        spool = Path(alice.environ["SYNAPSE_SPOOL"])
        assert spool != Path(bob.environ["SYNAPSE_SPOOL"])
        process = await asyncio.create_subprocess_exec(
            *SYNAPSE_OFFLINE,
            *("send", "bob", "hello", "--no-response", "--json"),
            cwd=host.project,
            env={**alice.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.PIPE,
        )
        out, _ = await process.communicate()
        task = bob.tasks.get(json.loads(out)["task_id"])
        assert (task.sender.sender_id, task.sender.verified) == (alice.agent_id, True)
        await host.close(alice.agent_id)
        assert not there(spool)
    assert not there(Path(bob.environ["SYNAPSE_SPOOL"]))


def there(path: Path) -> bool:
    return path.exists()


async def test_more_than_are_carried_at_once_wait_in_the_folder(
    rig: SpoolRig, codex: FakeAgent, claude: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_spool, "MAX_AT_ONCE", 2)
    answers = await asyncio.gather(
        *(
            rig.put(codex, rig.request(codex, claude.endpoint).encode(), f"{number:032x}")
            for number in range(9)
        )
    )
    assert [answer.status for answer in answers] == [200] * 9
    assert len(claude.requests) == 9
