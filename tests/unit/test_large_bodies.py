"""Bodies of up to 32 MiB: their files go to the disk as they come, the limits hold, all else is as before."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import tracemalloc
from collections.abc import AsyncIterator, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import NO_SERVICES, Services
from synapse_tui.a2a.bodies import (
    LONG,
    MAX_AT_ONCE,
    MAX_BODY,
    PIECE,
    BodyFiles,
    BodyReader,
    FileExtractor,
    LargeBodies,
)
from synapse_tui.a2a.problems import HttpProblem
from synapse_tui.agents.delivery.incoming import MAX_FILES
from synapse_tui.core.errors import MessageError
from synapse_tui.settings.keys import read_keys
from tests.a2a_kit import AT_ONCE, V1, GivenAgent
from tests.unit.dialect_kit import TOKENS, message, served, signer
from tests.waiting import until

MIB = 1024 * 1024
KEY = "a-key-that-is-long-enough"
CONTENT = bytes(range(256)) * 4 * 1024 * 3  # 3 MiB: over what is taken at once


@pytest.fixture
def agent(tmp_path: Path) -> GivenAgent:
    agent = GivenAgent()
    agent.cwd = tmp_path
    (tmp_path / ".git").mkdir()
    return agent


def keyed() -> Services:
    """Demands a key of everyone."""
    rules = AccessRules(enabled=True, keys=read_keys([f"ci={KEY}"]), allow_localhost=False)
    return Services(access=Access(rules))


def dialect(content: bytes) -> dict[str, Any]:
    file = {"name": "a.bin", "mimeType": "application/zip", "bytes": base64.b64encode(content).decode()}
    return {"message": {"role": "user", "parts": [{"type": "file", "file": file}]}}


def filled(size: int) -> bytes:
    """A body of the dialect with a file, of just so many bytes."""
    room = size - len(json.dumps(dialect(b"")))
    body = json.dumps(dialect(b"\0" * (room // 4 * 3)))
    return body.encode() + b" " * (size - len(body))


def kept(agent: GivenAgent) -> list[Path]:
    """The files in the agent's project."""
    return sorted(path for path in (agent.cwd / ".synapse" / "files").glob("*/*"))


# -- the limits ---


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": KEY}], ids=["local", "key"])
async def test_a_body_of_32_mib_is_taken_and_one_byte_more_is_not(
    agent: GivenAgent, headers: dict[str, str]
) -> None:
    services = keyed() if headers else NO_SERVICES
    async with served(agent, services=services, max_body=MAX_BODY) as client:
        sent = {**headers, "Content-Type": "application/json"}
        for size in (MAX_BODY - 1, MAX_BODY):
            answer = await client.post("/tasks/send", content=filled(size), headers=sent)
            assert answer.status_code == 200, answer.text
            (path,) = kept(agent)
            assert path.stat().st_size > 23 * MIB
            path.unlink()
        refused = await client.post("/tasks/send", content=filled(MAX_BODY + 1), headers=sent)
        assert refused.status_code == 413
        assert refused.json()["error"]["message"] == "the body has over 33,554,432 bytes (32 MiB)"
        assert not kept(agent)


async def test_what_is_no_file_has_the_limit_of_before(agent: GivenAgent) -> None:
    async with served(agent, max_body=MAX_BODY) as client:
        for body in (message("x" * MAX_AT_ONCE), {"noise": [1] * MAX_AT_ONCE}, [0] * MAX_AT_ONCE):
            refused = await client.post("/tasks/send", json=body)
            assert refused.status_code == 413, refused.text
            told = refused.json()["error"]["message"]
            assert told == "the body has over 2,097,152 bytes (2 MiB) besides its files"
        rpc = await client.post("/", json={"params": "x" * 3 * MIB}, headers=V1)
        assert (rpc.status_code, rpc.json()["error"]["code"]) == (413, -32600)


async def stream_of(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_without_a_length_the_limits_are_the_same(agent: GivenAgent) -> None:
    async with served(agent, max_body=4 * MIB) as client:
        for size, status in ((4 * MIB, 200), (4 * MIB + 1, 413)):
            whole = filled(size)
            chunks = (whole[at : at + 60_000] for at in range(0, len(whole), 60_000))
            answer = await client.post(
                "/tasks/send", content=stream_of(chunks), headers={"Content-Type": "application/json"}
            )
            assert answer.status_code == status, answer.text


# -- the same in every protocol ---


async def test_files_of_1_0(agent: GivenAgent) -> None:
    raw = {"raw": base64.b64encode(CONTENT).decode(), "filename": "a.zip", "mediaType": "application/zip"}
    parts = [{"text": "Look."}, raw, {**raw, "filename": "b.zip"}]
    params = {
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": parts},
        "configuration": AT_ONCE,
    }
    async with served(agent, max_body=MAX_BODY) as client:
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        answer = await client.post("/", json=call, headers=V1)
        assert "task" in answer.json()["result"], answer.text
        rest = await client.post("/a2a/rest/message:send", json=params, headers=V1)
        assert rest.status_code == 200, rest.text
        assert rest.json()["task"]["id"] == answer.json()["result"]["task"]["id"], "the same message again"
    assert [path.name for path in kept(agent)] == ["a.zip", "b.zip"]
    assert all(path.read_bytes() == CONTENT for path in kept(agent))


async def test_files_of_0_3(agent: GivenAgent) -> None:
    file = {"name": "a.zip", "mimeType": "application/zip", "bytes": base64.b64encode(CONTENT).decode()}
    words = {
        "kind": "message",
        "messageId": "m",
        "role": "user",
        "parts": [{"kind": "file", "file": file}],
    }
    params = {"message": words, "configuration": {"blocking": False}}
    async with served(agent, max_body=MAX_BODY) as client:
        call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
        answer = await client.post("/", json=call)
        assert answer.json()["result"]["kind"] == "task", answer.text
    assert [path.read_bytes() == CONTENT for path in kept(agent)] == [True]


async def test_an_agents_own_answer(agent: GivenAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its signature is over the whole body."""
    monkeypatch.setitem(TOKENS, agent.agent_id, "own-secret")
    async with served(agent, max_body=MAX_BODY) as client:
        sent = (await client.post("/tasks/send", json=message("Pack it."))).json()["task"]
        agent.give(sent["id"])
        for content, status in ((CONTENT, 200), (CONTENT[::-1], 401)):
            request = client.build_request("POST", f"/tasks/{sent['id']}/reply", json=dialect(content))
            signer(agent.agent_id, token="own-secret")(request)
            if status == 401:
                request = httpx.Request(
                    "POST", request.url, content=filled(3 * MIB), headers=dict(request.headers)
                )
                request.headers["Content-Length"] = str(3 * MIB)
            answer = await client.send(request)
            assert answer.status_code == status, answer.text
    assert [path.read_bytes() == CONTENT for path in kept(agent)] == [True]


@pytest.mark.parametrize(
    "body",
    [
        {**dialect(b""), "metadata": {"raw": "AAAA" * MIB}},
        {
            "message": {"parts": [{"type": "data", "data": {"bytes": "AAAA" * MIB}}]},
        },
    ],
)
async def test_long_base64_elsewhere_is_refused(agent: GivenAgent, body: dict[str, Any]) -> None:
    async with served(agent, max_body=MAX_BODY) as client:
        answer = await client.post("/tasks/send", json=body)
        assert answer.status_code == 422, answer.text
        assert "no file of a message part" in answer.json()["error"]["message"]
    assert not kept(agent)
    assert not agent.requests


async def test_what_is_no_base64_is_refused(agent: GivenAgent) -> None:
    body = dialect(b"")
    body["message"]["parts"][0]["file"]["bytes"] = "*" * 3 * MIB
    async with served(agent, max_body=MAX_BODY) as client:
        answer = await client.post("/tasks/send", json=body)
        assert answer.status_code == 400
        assert "no base64" in answer.json()["error"]["message"]


# -- memory and disk ---


def receiving(chunks: Iterator[bytes]) -> Any:
    async def receive() -> MutableMapping[str, Any]:
        chunk = next(chunks, b"")
        return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}

    return receive


async def test_a_large_body_is_never_in_memory_as_a_whole() -> None:
    piece = b"A" * 64 * 1024
    chunks = iter([b'{"raw": "', *[piece] * 480, b'"}'])
    tracemalloc.start()
    try:
        body = await BodyReader().read({}, receiving(chunks))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert body.files is not None
    word = base64.b64decode(json.loads(body.content)["raw"])
    file = body.files.find(word)
    assert file is not None
    assert file.seek(0, 2) == 480 * len(piece) // 4 * 3
    assert peak < 10 * MIB, f"{peak:,} bytes for a body of 30 MiB"
    body.files.close()


async def test_only_so_many_are_taken_at_the_same_time() -> None:
    reader = BodyReader(large=LargeBodies(2))

    def one() -> asyncio.Task[Any]:
        chunks = iter([b'{"raw": "', *[b"A" * 64 * 1024] * 40, b'"}'])
        return asyncio.ensure_future(reader.read({}, receiving(chunks)))

    first, second = await one(), await one()
    third = one()
    done, _ = await asyncio.wait({third}, timeout=0.2)
    assert not done, "it waits for room, and its connection holds the rest of it back"
    first.files.close()
    taken = await third
    for body in (second, taken):
        body.files.close()
    small = await reader.read({}, receiving(iter([b"{}"])))
    assert small.files is None


async def test_the_wait_for_room_is_not_counted_as_the_callers_slowness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("synapse_tui.a2a.bodies.SLOWEST", 1 << 40)
    loop, passed = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)
    reader = BodyReader(timeout=60, large=LargeBodies(1))
    parts = [b'{"raw": "', *[b"A" * 64 * 1024] * 40, b'"}']
    first = await BodyReader(large=reader.large).read({}, receiving(iter(parts)))
    second = asyncio.ensure_future(reader.read({}, receiving(iter(parts))))
    await until(lambda: reader.large._room._waiters)
    passed += 1.5 * reader.timeout
    done, _ = await asyncio.wait({second}, timeout=0.01)
    assert not done, "it waits, and is not told that its body did not come"
    assert first.files is not None
    first.files.close()
    taken = await second
    assert taken.files is not None
    taken.files.close()


async def test_room_is_given_back_when_a_body_is_refused(agent: GivenAgent) -> None:
    services = Services(large=LargeBodies(1))
    async with served(agent, services=services, max_body=4 * MIB) as client:
        for _ in range(3):
            assert (await client.post("/tasks/send", json=message("x" * 3 * MIB))).status_code == 413
            assert (await client.post("/tasks/send", json=dialect(CONTENT[: 2 * MIB]))).status_code == 200
            assert (await client.post("/nowhere", json=dialect(CONTENT[: 2 * MIB]))).status_code == 404


async def test_room_is_given_back_before_the_answer(agent: GivenAgent) -> None:
    """A call that waits for its turn keeps no file open."""
    raw = {"raw": base64.b64encode(CONTENT).decode(), "filename": "a.zip"}
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [raw]}}
    async with served(agent, services=Services(large=LargeBodies(1)), max_body=8 * MIB) as client:
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        waits = asyncio.ensure_future(client.post("/", json=call, headers=V1))
        task = await agent.works()
        assert (await client.post("/tasks/send", json=dialect(CONTENT))).status_code == 200
        agent.finish(task.id, "Done.")
        assert (await waits).status_code == 200


async def test_room_is_given_back_when_a_message_comes_again(agent: GivenAgent) -> None:
    """A client that asks anew waits for the same turn, also without a file open."""
    raw = {"raw": base64.b64encode(CONTENT).decode(), "filename": "a.zip"}
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [raw]}}
    services = Services(large=LargeBodies(1))
    async with served(agent, services=services, max_body=8 * MIB) as client:
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        first, again = (asyncio.ensure_future(client.post("/", json=call, headers=V1)) for _ in range(2))
        task = await agent.works()
        await until(lambda: len(agent.tasks.changes._readers[task.id]) == 2, "both wait")
        assert (await client.post("/tasks/send", json=dialect(CONTENT))).status_code == 200
        agent.finish(task.id, "Done.")
        for answer in (await first, await again):
            assert answer.json()["result"]["task"]["id"] == task.id


# -- the sieve ---


def sieved(body: bytes, cuts: list[int]) -> tuple[Any, BodyFiles]:
    files = BodyFiles()
    sieve = FileExtractor(files, MAX_AT_ONCE)
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        sieve.feed(body[start:end])
    return json.loads(sieve.end()), files


@pytest.mark.parametrize("seed", range(20))
def test_a_body_is_the_same_however_it_is_cut(seed: int) -> None:
    chance = random.Random(seed)
    long = chance.randbytes(LONG * 2 + chance.randrange(5))
    encoded = base64.b64encode(long).decode()
    value = {
        "raw": encoded,
        'a"b\\': ["raw", encoded, {"bytes": "short"}, "\\", '"', "é\u2028"],
        "text": encoded,
        "bytes": {"raw": None, "x": 1.5e3},
    }
    body = json.dumps(value, ensure_ascii=bool(seed % 2), indent=seed % 3 or None).encode()
    if seed % 4 == 0:
        body = body.replace(b"/", b"\\/")
    cuts = sorted(chance.randrange(len(body)) for _ in range(chance.randrange(40)))
    found, files = sieved(body, cuts)
    file = files.find(base64.b64decode(found["raw"]))
    assert file is not None
    file.seek(0)
    assert file.read() == long
    files.check()
    assert {**found, "raw": encoded} == value, "all else is as it was"
    files.close()


@pytest.mark.parametrize("size", [LONG // 4 * 3, 30_000, 45_000, 90_000])
def test_as_many_files_as_a_message_may_have_are_taken_whatever_their_size(size: int) -> None:
    body = json.dumps([{"raw": base64.b64encode(bytes(size)).decode()}] * MAX_FILES).encode()
    found, files = sieved(body, [])
    for each in found:
        file = files.find(base64.b64decode(each["raw"]))
        assert file is not None
        assert file.seek(0, 2) == size
    files.check()
    files.close()


def test_more_files_than_a_message_may_have_are_never_opened() -> None:
    body = json.dumps([{"raw": "AAAA" * LONG}] * (MAX_FILES + 1)).encode()
    files = BodyFiles()
    with pytest.raises(HttpProblem) as refused:
        FileExtractor(files, MAX_AT_ONCE).feed(body)
    files.close()
    assert (refused.value.status, refused.value.code) == (413, "too_many_files")


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("padded", [True, False])
def test_both_alphabets_with_and_without_padding(encode: Any, padded: bool) -> None:
    content = random.Random(1).randbytes(3 * PIECE + 1)
    text = encode(content).decode()
    found, files = sieved(json.dumps({"raw": text if padded else text.rstrip("=")}).encode(), [])
    file = files.find(base64.b64decode(found["raw"]))
    assert file is not None
    file.seek(0)
    assert file.read() == content
    files.close()


@pytest.mark.parametrize("broken", ["=AAA", "A\\nAA", "A\\u0041", 'A\\"', "AAAAA"])
def test_broken_base64(broken: str) -> None:
    body = b'{"raw": "' + b"A" * LONG * 2 + broken.encode() + b'"}'
    files = BodyFiles()
    with pytest.raises((HttpProblem, MessageError)):
        FileExtractor(files, MAX_AT_ONCE).feed(body)
    files.close()
