"""Servers that demand keys, speak https, or are bound elsewhere: called by both clients and by hand."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import Services
from synapse_tui.a2a.async_client import AsyncClient
from synapse_tui.a2a.client import Client
from synapse_tui.a2a.network import Network, TlsFiles, bind_loopback
from synapse_tui.core.errors import ConfigError, PeerRefused, PeerUnreachable
from synapse_tui.core.model import USER, Sender
from synapse_tui.settings.keys import read_keys
from tests.integration.certificates import make_certificate
from tests.integration.server_kit import BODY, Connection, http, running

KEY = "a key of the tests".replace(" ", "-")
TOKENS = {"synapse-codex-8120": "secret", "user": "own"}
CODEX = Sender("synapse-codex-8120", "codex", "http://127.0.0.1:8120")
STRICT = AccessRules(
    enabled=True, keys=read_keys(f"ci={KEY}"), admin_keys=read_keys("root=root-key"), allow_localhost=False
)


def services(rules: AccessRules = STRICT, network: Network | None = None) -> Services:
    return Services(access=Access(rules), network=network or Network())


async def status_of(endpoint: str, *, light: bool, key: str = "", tokens: bool = False) -> object:
    token_of = TOKENS.get if tokens else lambda _sender: None
    if light:
        client = Client(
            token_of=token_of, environ={"SYNAPSE_API_KEY": key} if key else {}, reader=CODEX.sender_id
        )
        return (await asyncio.to_thread(client.call, endpoint, calls.status()))["status"]
    host_client = AsyncClient(token_of=token_of, key=key)
    try:
        return (await host_client.call(endpoint, calls.status()))["status"]
    finally:
        await host_client.close()


both = pytest.mark.parametrize("light", [False, True], ids=["host", "light"])


@both
async def test_clients_show_their_key(light: bool) -> None:
    async with running(services=services()) as (agent, _):
        assert await status_of(agent.endpoint, light=light, key=KEY) == "READY"
        with pytest.raises(PeerRefused, match="a key is needed"):
            await status_of(agent.endpoint, light=light)
        with pytest.raises(PeerRefused, match="does not know this key"):
            await status_of(agent.endpoint, light=light, key="wrong")


@both
async def test_who_can_sign_needs_no_key_to_read(light: bool) -> None:
    """Agents have no key, also where the person's processes need one."""
    async with running(services=services(), token_of=TOKENS.get) as (agent, _):
        assert await status_of(agent.endpoint, light=light, tokens=True) == "READY"
        assert await status_of(agent.endpoint, light=light, key="of another server", tokens=True) == "READY"


async def test_messages_of_agents_need_no_key() -> None:
    async with running(services=services(), token_of=TOKENS.get) as (agent, _):
        client = AsyncClient(token_of=TOKENS.get)
        await client.call(agent.endpoint, calls.send("hello", sender=CODEX))
        await client.call(agent.endpoint, calls.send("from the person", sender=USER))
        with pytest.raises(PeerRefused, match="a key is needed"):
            await client.call(agent.endpoint, calls.send("from nobody"))
        await client.close()
        assert [request.sender.verified for request in agent.requests] == [True, True]


@dataclass
class Caller:
    """Asks one server by hand."""

    port: int

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, dict[str, str], dict[str, object]]:
        connection = await Connection.open(self.port)
        connection.writer.write(http(method, path, self.port, body, headers))
        head = await connection.reader.readuntil(b"\r\n\r\n")
        lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:-2]]
        found = {name.lower(): value for name, _, value in lines}
        content = await connection.reader.readexactly(int(found["content-length"]))
        await connection.close()
        answer = json.loads(content)
        return int(head.split()[1]), found, answer if isinstance(answer, dict) else {"list": answer}


@pytest.fixture
async def ask() -> AsyncIterator[Caller]:
    async with running(services=services()) as (agent, _):
        yield Caller(agent.port)
        assert not agent.requests


@pytest.mark.parametrize(
    "headers",
    [
        {"X-API-Key": KEY},
        {"x-api-key": KEY},
        {"Authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer {KEY}"},
        {"X-API-Key": KEY, "Authorization": f"Bearer {KEY}"},
        {"X-API-Key": KEY, "Authorization": "Basic dXNlcjpwYXNz"},
    ],
)
async def test_a_key_comes_in_either_header(ask: Caller, headers: dict[str, str]) -> None:
    assert (await ask("GET", "/tasks", headers))[0] == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "key_required"),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, "key_required"),
        ({"X-API-Key": ""}, "invalid_key"),
        ({"X-API-Key": KEY + " "}, "list"),
        ({"X-API-Key": KEY.upper()}, "invalid_key"),
        ({"Authorization": f"Bearer {KEY}x"}, "invalid_key"),
        ({"Authorization": "Bearer"}, "invalid_key"),
        ({"X-API-Key": KEY, "Authorization": "Bearer other"}, "two_keys"),
        ({"X-API-Key": "sha256:" + read_keys(KEY)[0].digest}, "invalid_key"),
    ],
)
async def test_other_keys_are_refused(ask: Caller, headers: dict[str, str], code: str) -> None:
    status, found, answer = await ask("GET", "/tasks", headers)
    if code == "list":
        assert status == 200, "spaces around a value are no part of it"
        return
    assert (status, answer["error"]["code"]) == (401, code)  # type: ignore[index]
    assert found["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/outbox", 403),
        ("GET", "/inbox", 403),
        ("GET", "/watch", 403),
        ("GET", "/instructions", 403),
        ("GET", "/reply", 403),
        ("POST", "/tasks/create", 403),
        ("POST", "/tasks/25ea4569/reply", 403),
        ("GET", "/webhooks", 403),
        ("GET", "/external/agents", 403),
        ("GET", "//outbox", 403),
        ("GET", "/tasks/../outbox", 403),
        ("GET", "/%6futbox", 403),
        ("GET", "/status", 200),
        ("GET", "/tasks/25ea4569", 404),
        ("POST", "/tasks/25ea4569/cancel", 404),
    ],
)
async def test_a_key_is_for_messages_and_the_admin_key_for_all(
    ask: Caller, method: str, path: str, expected: int
) -> None:
    status, _, answer = await ask(method, path, {"X-API-Key": KEY})
    assert status == expected, answer
    if expected == 403:
        assert answer["error"]["code"] == "admin_only"  # type: ignore[index]
        status, _, answer = await ask(method, path, {"X-API-Key": "root-key"})
        assert "admin_only" not in str(answer)


async def test_the_screen_is_not_for_every_key(ask: Caller) -> None:
    """Other callers' tasks stand on it."""
    told = (await ask("GET", "/status?why=1", {"X-API-Key": KEY}))[2]
    assert told == {"status": "READY", "context": ""}
    told = (await ask("GET", "/status?why=1", {"X-API-Key": "root-key"}))[2]
    assert told["context"]
    assert told["why"]


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/.well-known/agent.json"])
async def test_a_card_tells_strangers_what_to_show(ask: Caller, path: str) -> None:
    status, _, card = await ask("GET", path)
    assert status == 200
    assert set(card["securitySchemes"]) == {"apiKey", "bearer"}  # type: ignore[call-overload]
    assert (await ask("GET", path, {"X-API-Key": "wrong"}))[0] == 401
    assert (await ask("POST", path))[0] == 401


async def test_without_a_usable_key_not_even_the_card_is_read() -> None:
    broken = AccessRules(enabled=True, fault="keys are demanded and none is set")
    async with running(services=services(broken)) as (agent, _):
        ask = Caller(agent.port)
        for path in ("/.well-known/agent-card.json", "/status", "/"):
            status, _, answer = await ask("GET", path, {"X-API-Key": KEY})
            assert status == 401
            assert "none is set" in str(answer)


MESSAGE = {
    "message": {
        "role": "ROLE_USER",
        "messageId": "m1",
        "parts": [{"text": "stop"}],
        "metadata": {"priority": 5},
    },
    "configuration": {"returnImmediately": True},
}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tasks/send-priority?priority=5", {"message": {"role": "user", "parts": [{"text": "stop"}]}}),
        ("/message", {"content": "stop", "priority": 5}),
        (
            "/a2a/jsonrpc",
            {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": MESSAGE},
        ),
        ("/a2a/rest/message:send", MESSAGE),
    ],
)
async def test_a_key_interrupts_only_where_the_person_allowed_it(path: str, body: dict[str, object]) -> None:
    keys = read_keys(f"ci={KEY},boss@5=boss-key")
    allowed = AccessRules(
        enabled=True, keys=keys, admin_keys=read_keys("root=root-key"), allow_localhost=False
    )
    async with running(services=services(allowed)) as (agent, _):
        ask = Caller(agent.port)
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        status, _, answer = await ask("POST", path, {**headers, "X-API-Key": KEY}, json.dumps(body).encode())
        told = json.dumps(answer)
        assert "the key 'ci' sends messages of priority 4 at most" in told
        assert "--max-priority" in told, "what the person can do"
        assert not agent.requests
        if path == "/a2a/jsonrpc":
            assert answer["id"] == 1
            assert answer["error"]["code"] == -32600  # type: ignore[index]
        else:
            assert status in (400, 403)
        for at, key in enumerate(("boss-key", "root-key"), 1):
            data = json.dumps(body).replace('"m1"', f'"m1-{at}"').encode()
            await ask("POST", path, {**headers, "X-API-Key": key}, data)
            assert [request.priority for request in agent.requests] == [5] * at


CALL = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.argv[2].encode(), {"Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


async def called(url: str, body: dict[str, object], *, shell: str) -> str:
    """Call from below a process of its own session, as agents' tools do; what was answered."""
    words = [sys.executable, "-c", CALL, url, json.dumps(body)]
    environ = {"PATH": os.environ["PATH"], "SYNAPSE_AGENT_ID": CODEX.sender_id}
    line = shell.replace("CALL", shlex.join(words)).replace("ARGUMENTS", shlex.join(words[1:]))
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", f"read go; {line}", start_new_session=True, stdin=PIPE, stdout=PIPE, env=environ
    )
    PROCESSES[process.pid] = CODEX.sender_id
    out, _ = await process.communicate(b"go\n")
    return out.decode().strip()


PROCESSES: dict[int, str] = {}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the kernel's word on sockets")
@pytest.mark.parametrize("shell", ["CALL", "setsid -w CALL; true", "(CALL &) ; sleep 1", "exec CALL"])
async def test_an_unsigned_call_from_inside_an_agent_is_that_agents(shell: str) -> None:
    PROCESSES.clear()
    both = Services(access=Access(AccessRules()), processes=lambda: PROCESSES)
    body: dict[str, object] = {"message": {"role": "user", "parts": [{"text": "hello"}]}}
    async with running(services=both) as (agent, _):
        url = f"{agent.endpoint}/tasks/send"
        told = await called(url, body, shell=shell)
        assert told == "200"
        assert agent.requests[-1].sender == Sender(CODEX.sender_id, "codex", "", verified=True)
        told = await called(url, {**body, "metadata": {"sender": {"sender_id": "user"}}}, shell=shell)
        assert told.startswith("403")
        assert "sender_mismatch" in told
        PROCESSES.clear()
        status, _, _ = await Caller(agent.port)("POST", "/tasks/send", body=json.dumps(body).encode())
        assert status == 200
        assert agent.requests[-1].sender.sender_id == "external", (
            "the person's own processes stay the person's"
        )


DAEMON = """
import os, sys, time
read_end, write_end = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.close(read_end)
    while os.getppid() == os.getsid(0):
        time.sleep(0.01)
    os.dup2(write_end, 1)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
os.wait()
os.close(write_end)
print(os.fdopen(read_end).read())
"""
GONE = """
import socket, sys, time, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
call = socket.create_connection((url.hostname, url.port))
head = f"POST {url.path} HTTP/1.1\\r\\nHost: {url.netloc}\\r\\nContent-Type: application/json\\r\\n"
call.sendall(f"{head}Content-Length: {len(sys.argv[2])}\\r\\n\\r\\n".encode())
time.sleep(0.3)
call.sendall(sys.argv[2].encode())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the kernel's word on sockets")
async def test_a_daemon_of_an_agent_is_that_agents() -> None:
    PROCESSES.clear()
    both = Services(access=Access(AccessRules()), processes=lambda: PROCESSES)
    body: dict[str, object] = {"message": {"role": "user", "parts": [{"text": "hello"}]}}
    daemon = shlex.join([sys.executable, "-c", DAEMON])
    async with running(services=both) as (agent, _):
        told = await called(f"{agent.endpoint}/tasks/send", body, shell=daemon + " ARGUMENTS")
        assert told == "200"
        assert agent.requests[-1].sender == Sender(CODEX.sender_id, "codex", "", verified=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the kernel's word on sockets")
async def test_a_caller_that_does_not_wait_is_not_taken_for_the_person() -> None:
    PROCESSES.clear()
    both = Services(access=Access(AccessRules()), processes=lambda: PROCESSES)
    body: dict[str, object] = {"message": {"role": "user", "parts": [{"text": "hello"}]}}
    async with running(services=both) as (agent, _):
        url = f"{agent.endpoint}/tasks/send"
        gone = shlex.join([sys.executable, "-c", GONE, url, json.dumps(body)])
        await called(url, body, shell=gone)
        await called(url, body, shell="CALL")
        senders = [request.sender.sender_id for request in agent.requests]
        assert senders
        assert set(senders) == {CODEX.sender_id}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the kernel's word on sockets")
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer nothing"},
        {"X-Synapse-Sender": "stranger", "X-Synapse-Signature": f"t=1,n=0123456789,v1={64 * '0'}"},
    ],
)
async def test_what_proves_nothing_hides_no_agent(headers: dict[str, str]) -> None:
    PROCESSES.clear()
    both = Services(access=Access(AccessRules()), processes=lambda: PROCESSES)
    body: dict[str, object] = {"message": {"role": "user", "parts": [{"text": "hello"}]}}
    async with running(services=both) as (agent, _):
        url = f"{agent.endpoint}/tasks/send"
        words = CALL.replace('{"Content-Type"', f'{{**{headers}, "Content-Type"')
        told = await called(url, body, shell=shlex.join([sys.executable, "-c", words, url, json.dumps(body)]))
        assert told == "200"
        assert agent.requests[-1].sender.sender_id == CODEX.sender_id


async def test_the_protocols_callers_are_refused_in_its_words(ask: Caller) -> None:
    """A2A 1.0 section 9.5 (JSON-RPC) and 11.6 (REST)."""
    status, found, answer = await ask("POST", "/", body=b'{"jsonrpc": "2.0", "id": 1}')
    assert (status, answer["jsonrpc"]) == (401, "2.0")
    assert found["www-authenticate"].startswith("Bearer ")
    assert answer["error"]["data"][0]["reason"] == "KEY_REQUIRED"  # type: ignore[index]
    status, _, answer = await ask("GET", "/a2a/rest/tasks")
    assert status == 401
    assert answer["error"]["status"] == "UNAUTHENTICATED"  # type: ignore[index]


async def test_a_caller_that_asks_too_much_is_told_when_to_come_again() -> None:
    slow = AccessRules(
        enabled=True, keys=STRICT.keys, admin_keys=STRICT.admin_keys, allow_localhost=False, rate=2
    )
    stopped = Services(access=Access(slow, clock=lambda: 0.0), network=Network())
    async with running(services=stopped) as (agent, _):
        ask = Caller(agent.port)
        statuses = [(await ask("GET", "/status", {"X-API-Key": KEY}))[0] for _ in range(2)]
        status, found, answer = await ask("GET", "/status", {"X-API-Key": KEY})
        assert (statuses, status, found["retry-after"]) == ([200, 200], 429, "30")
        assert answer["error"]["code"] == "too_many_requests"  # type: ignore[index]
        assert (await ask("GET", "/status", {"X-API-Key": "root-key"}))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "192.0.2.7"},
        {"Forwarded": "for=192.0.2.7"},
        {"Via": "1.1 tunnel"},
        {"X-Synapse-Delivery": "1"},
        {"Host": "agents.example.com"},
    ],
)
async def test_whoever_is_forwarded_is_not_the_person(headers: dict[str, str]) -> None:
    """A tunnel to the world, and a host that notifies where others ask it to, run as the person, too."""
    open_rules = AccessRules(keys=STRICT.keys)
    named = Network(allowed_hosts=("agents.example.com",))
    async with running(services=services(open_rules, named)) as (agent, _):
        ask = Caller(agent.port)
        assert (await ask("GET", "/status"))[0] == 200
        assert (await ask("GET", "/status", headers))[0] == 401
        assert (await ask("GET", "/status", {**headers, "X-API-Key": KEY}))[0] == 200


# -- certificates ----------------------------------------------------------------------------------------


Certificate = Callable[[str], TlsFiles]


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return lambda name: make_certificate(tmp_path, name)


async def test_https_is_spoken_with_the_certificate_of_the_settings(
    certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever name stands in it: agents of this machine call 127.0.0.1."""
    files, other = certificate("agents.example.com"), certificate("other.example.com")
    network = Network(tls=files)
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = tmp_path / ".synapse/settings.json"
    settings.parent.mkdir()

    def trusting(mine: TlsFiles) -> AsyncClient:
        settings.write_text(json.dumps({"a2a": {"tls_cert": str(mine.cert), "tls_key": str(mine.key)}}))
        return AsyncClient(token_of=TOKENS.get, network=Network(tls=mine))

    async with running(services=services(AccessRules(), network), token_of=TOKENS.get) as (agent, _):
        assert agent.endpoint.startswith("https://127.0.0.1:")
        client = trusting(files)
        await client.call(agent.endpoint, calls.send("hello", sender=CODEX))
        light = Client(token_of=TOKENS.get, environ={})
        await asyncio.to_thread(light.call, agent.endpoint, calls.send("hello", sender=CODEX))
        assert [request.sender.verified for request in agent.requests] == [True, True]
        await client.close()

        client = trusting(other)
        with pytest.raises(PeerUnreachable, match=r"nothing is listening|certificate"):
            await client.call(agent.endpoint, calls.status())
        with pytest.raises(PeerUnreachable):
            await asyncio.to_thread(light.call, agent.endpoint, calls.status())
        await client.close()
        connection = await Connection.open(agent.port)
        connection.writer.write(http("POST", "/tasks/send", agent.port, BODY))
        with contextlib.suppress(ConnectionError):
            assert b"HTTP" not in await connection.reader.read()
        await connection.close()
        assert len(agent.requests) == 2


@pytest.mark.parametrize("broken", ["missing", "of another certificate", "no key"])
def test_a_certificate_that_cannot_be_used_is_told_before_agents_start(
    certificate: Certificate, tmp_path: Path, broken: str
) -> None:
    files = certificate("agents.example.com")
    key = {
        "missing": tmp_path / "nowhere.key",
        "of another certificate": certificate("other.example.com").key,
        "no key": files.cert,
    }[broken]
    with pytest.raises(ConfigError, match="cannot be used"):
        Network(tls=TlsFiles(files.cert, key)).check(AccessRules())


# -- other addresses -------------------------------------------------------------------------------------


def own_address() -> str:
    """An address of this machine by which others reach it; empty where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return ""
        address: str = sock.getsockname()[0]
        return address if not address.startswith("127.") else ""


@pytest.mark.parametrize("wildcard", [False, True])
async def test_from_another_address_a_key_is_needed(wildcard: bool) -> None:
    address = own_address()
    if not address:
        pytest.skip("this machine has no address but those of the loopback interface")
    rules = AccessRules(enabled=True, keys=STRICT.keys)
    network = Network(bind=("0.0.0.0",) if wildcard else (address,))
    async with running(services=services(rules, network)) as (agent, _):

        async def ask(host: str, headers: Mapping[str, str]) -> int:
            connection = await Connection.open(agent.port, host)
            status, _ = await connection.ask(
                http("GET", "/status", agent.port, headers={"Host": f"{host}:{agent.port}", **headers})
            )
            await connection.close()
            return status

        assert await ask("127.0.0.1", {}) == 200
        assert await ask(address, {}) == 401
        assert await ask(address, {"X-API-Key": KEY}) == 200
        assert await ask(address, {"X-API-Key": KEY, "Host": "rebound.example.com"}) == 403
        assert await ask(address, {"Host": f"127.0.0.1:{agent.port}"}) == 401


@pytest.mark.parametrize(
    ("further", "bound"),
    [
        ((), {"127.0.0.1", "::1"}),
        (("0.0.0.0",), {"0.0.0.0", "::1"}),
        (("::",), {"0.0.0.0", "::"}),
        (("127.0.0.1", "::1"), {"127.0.0.1", "::1"}),
        (("127.0.0.2",), {"127.0.0.1", "::1", "127.0.0.2"}),
        (("127.0.0.2", "0.0.0.0"), {"0.0.0.0", "::1"}),
    ],
)
def test_loopback_is_always_bound(further: tuple[str, ...], bound: set[str]) -> None:
    sockets = bind_loopback(0, further)
    found = {sock.getsockname()[0] for sock in sockets.sockets}
    assert {sock.getsockname()[1] for sock in sockets.sockets} == {sockets.port}
    sockets.close()
    ipv6 = {address for address in bound if ":" in address}
    assert found in (bound, bound - ipv6 if not socket.has_ipv6 else bound)


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1 is no address of this machine"):
        bind_loopback(0, ["192.0.2.1"])
