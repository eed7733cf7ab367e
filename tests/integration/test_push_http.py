"""Asking for notifications: webhooks of the dialect, configurations of the protocol, a host, the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import Services
from synapse_tui.a2a.network import bind_loopback
from synapse_tui.a2a.push import service
from synapse_tui.a2a.push.service import PushService
from synapse_tui.a2a.server import AgentServer
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.model import USER, AgentSpec, MessageRequest, TaskState
from synapse_tui.messages.history import READING, PushJournal
from synapse_tui.settings.keys import read_keys
from tests.fake_agent import FakeAgent
from tests.integration.host_kit import make_host, running
from tests.integration.push_kit import answer, receiving, telling
from tests.integration.shell_kit import Shell
from tests.unit.dialect_kit import message, signer
from tests.waiting import PATIENCE, until

TOKENS = {"synapse-codex-8120": "codex-secret", "user": "user-secret"}
EVENTS = ["task.completed", "task.failed"]


@dataclass
class Rig:
    """An agent behind its server, and its caller."""

    agent: FakeAgent
    desk: PushService
    client: httpx.AsyncClient

    async def post(self, path: str, body: object) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        return await self.client.post(path, content=json.dumps(body), headers=headers)

    async def call(self, method: str, version: str = "1.0", **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"A2A-Version": version} if version != "0.3" else {}
        return (await self.client.post("/", json=body, headers=headers)).json()


@asynccontextmanager
async def serving(path: Path | None = None, rules: AccessRules | None = None) -> AsyncIterator[Rig]:
    sockets = bind_loopback(0)
    agent = FakeAgent(sockets.port, "codex")
    client = httpx.AsyncClient(base_url=agent.endpoint, timeout=PATIENCE)
    async with telling(agent, path=path) as desk, client:
        server = AgentServer(
            agent,
            sockets,
            services=Services(push=desk, access=Access(rules) if rules else None),
            token_of=TOKENS.get,
        )
        await server.start()
        try:
            yield Rig(agent, desk, client)
        finally:
            await server.stop()


# -- the dialect ---


async def test_webhooks_are_made_listed_told_and_removed(tmp_path):
    async with receiving(answer(400)) as receiver, serving(tmp_path / "h" / "history.db") as rig:
        url = receiver.url("/hook?key=word")
        made = await rig.post("/webhooks", {"url": url, "events": None, "secret": "s3cret"})
        assert made.status_code == 200
        webhook = made.json()
        assert (webhook["url"], webhook["events"]) == (receiver.url("/hook?…"), EVENTS)
        assert (webhook["enabled"], webhook["signed"], webhook["persist"]) == (True, True, False)
        assert "s3cret" not in made.text
        assert (await rig.client.get("/webhooks")).json() == [webhook]
        rig.agent.answer = "Hi!"
        await rig.post("/tasks/send", message())
        await rig.post("/tasks/send", message())
        got = await receiver.until(2)
        path = f"/webhooks/{webhook['id']}/deliveries"
        log = (await rig.client.get(path)).json()
        while not all(each["status_code"] for each in log):
            log = (await rig.client.get(path)).json()
        assert [(each["success"], each["status_code"], each["state"], each["error"]) for each in log] == [
            (True, 200, "delivered", None), (False, 400, "dead", "it answered 400"),
        ]  # fmt: skip
        assert [each["event_id"] for each in log] == [each.json["event_id"] for each in reversed(got)]
        assert log[0]["webhook_url"] == webhook["url"]
        assert (await rig.client.get("/webhooks/deliveries?limit=1")).json() == log[:1]
        gone = await rig.client.delete(f"/webhooks/{webhook['id']}")
        assert gone.json() == {"status": "removed", "id": webhook["id"], "url": webhook["url"]}
        assert (await rig.client.delete(f"/webhooks/{webhook['id']}")).status_code == 404
        assert (await rig.client.delete("/webhooks?url=x")).status_code == 404
        assert (await rig.client.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"url": "ftp://h.example/"}, 422),
        ({"url": "http://169.254.169.254/latest/meta-data"}, 422),
        ({"url": "http://10.0.0.1/"}, 422),
        ({"url": "http://127.0.0.1/", "events": ["task.done"]}, 422),
        ({"url": "http://127.0.0.1/", "secret": "a\nb"}, 422),
        ({"url": "http://127.0.0.1/", "more": 1}, 422),
        ({"url": "http://127.0.0.1/\ud800"}, 422),
    ],
)
async def test_webhooks_that_are_refused(body, status):
    async with serving() as rig:
        told = await rig.post("/webhooks", body)
        assert told.status_code == status
        assert told.json()["error"]["hint"]
        assert (await rig.client.get("/webhooks")).json() == []


async def test_webhooks_are_not_for_agents():
    async with serving() as rig:
        for method, path in (("POST", "/webhooks"), ("GET", "/webhooks"), ("GET", "/webhooks/deliveries")):
            body = {"url": "http://127.0.0.1/"} if method == "POST" else None
            request = rig.client.build_request(method, path, json=body)
            signer("synapse-codex-8120", rig.agent.port, "codex-secret")(request)
            told = await rig.client.send(request)
            assert (told.status_code, told.json()["error"]["code"]) == (403, "not_for_agents")
        request = rig.client.build_request("GET", "/webhooks")
        signer("user", rig.agent.port, "user-secret")(request)
        assert (await rig.client.send(request)).status_code == 200


# -- programs of this machine ---


KEYS = AccessRules(keys=read_keys("ci=ci-key"), admin_keys=read_keys("root=root-key"))
AFAR = {"X-Forwarded-For": "192.0.2.7"}


@pytest.mark.parametrize(
    ("headers", "may"),
    [
        ({}, True),
        ({"X-API-Key": "ci-key"}, False),
        ({"X-API-Key": "root-key"}, False),
        ({"X-API-Key": "ci-key", **AFAR}, False),
        ({"X-API-Key": "root-key", **AFAR}, False),
        ({"X-API-Key": "of another server"}, True),
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost.", "a.localhost", "[::1]"])
async def test_only_the_person_on_this_machine_may_name_its_programs(headers, may, host):
    async with serving(rules=KEYS) as rig:
        rig.client.headers.update(headers)
        url = f"http://{host}:9"
        configuration = {"taskPushNotificationConfig": {"url": url}, "returnImmediately": True}
        told = await rig.call("SendMessage", message=user_message(), configuration=configuration)
        assert (told.get("error", {}).get("code"), len(rig.agent.requests)) == (
            (None, 1) if may else (-32602, 0)
        )
        made = await rig.post("/webhooks", {"url": url})
        barred = 403 if AFAR.items() <= headers.items() and "ci-key" in headers.values() else 422
        assert made.status_code == (200 if may else barred)


async def test_a_notification_has_no_rights_of_the_person_on_another_host(tmp_path):
    """Otherwise who may have a host notified could act as the person on agents of another home."""
    async with running(make_host(tmp_path)) as host, serving() as rig:
        session = await host.open(AgentSpec("dummy"), columns=80, lines=24)
        url = f"{session.endpoint}/outbox/all/release"
        made = (await rig.post("/webhooks", {"url": url, "events": ["*"]})).json()
        await rig.post("/tasks/send", message())
        path = f"/webhooks/{made['id']}/deliveries"
        log: list[dict[str, Any]] = []
        while not log or not all(each["status_code"] for each in log):
            log = (await rig.client.get(path)).json()
        assert {each["status_code"] for each in log} == {403}


# -- the protocol ---


def user_message(text: str = "Hello!") -> dict[str, object]:
    return {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}


async def test_a_push_to_where_nothing_may_go_is_an_error_of_the_protocol_and_makes_no_task():
    async with serving() as rig:
        push = {"url": "http://169.254.169.254/latest/meta-data"}
        told = await rig.call(
            "SendMessage", message=user_message(), configuration={"taskPushNotificationConfig": push}
        )
        assert told["error"]["code"] == -32602
        assert rig.agent.requests == []


# -- the command ---


async def test_the_command_makes_lists_tells_and_removes_webhooks(tmp_path):
    shell = Shell.scratch(tmp_path)
    shell.environ["HOOK"] = "s3cret"
    async with receiving() as receiver, serving(tmp_path / "h" / "history.db") as rig:
        shell.register(rig.agent)
        url = receiver.url("/hook?key=word")
        assert "no webhooks" in (await shell.run("webhook", "list", "codex")).err
        more = ("--event", "*", "--persist", "--secret-env", "HOOK", "--json")
        made = (await shell.run("webhook", "add", "codex", url, *more)).json
        assert (made["signed"], made["persist"], made["url"]) == (True, True, receiver.url("/hook?…"))
        rig.agent.answer = "Hi!"
        await rig.post("/tasks/send", message())
        got = await receiver.until(2)
        assert "x-synapse-signature" in got[0].headers
        listed = await shell.run("webhook", "list", "@codex")
        assert str(made["id"]) in listed.out
        log = await shell.run("webhook", "log", "codex", str(made["id"]))
        assert log.out.splitlines()[1].split()[1] == "task.completed"
        assert json.loads((await shell.run("webhook", "log", "codex", "--limit", "1", "--json")).out)
        assert "key=word" not in listed.out + log.out
        gone = await shell.run("webhook", "remove", "codex", url)
        assert (gone.code, gone.out) == (0, f"removed {made['id']}: {made['url']}\n")


# -- a host ---


async def test_a_host_tells_what_becomes_of_a_task_and_of_its_agent(tmp_path):
    async with receiving() as receiver, running(make_host(tmp_path)) as host:
        session = await host.open(AgentSpec("dummy"), columns=80, lines=24)
        async with httpx.AsyncClient(base_url=session.endpoint, timeout=PATIENCE) as client:
            told = await client.post("/webhooks", json={"url": f"{session.endpoint}/tasks/create"})
            assert (told.status_code, told.json()["error"]["code"]) == (422, "target_refused")
            await client.post("/webhooks", json={"url": receiver.url(), "events": ["*"]})
            await client.post("/tasks/send", json=message("hello"))
            got = await receiver.until(3)
        assert [each.json["event"] for each in got] == ["task.submitted", "task.working", "task.completed"]
        assert "hello" in got[-1].json["data"]["artifacts"][0]["data"]


async def test_nothing_is_delivered_before_the_webhooks_of_the_agent_are_read(tmp_path, monkeypatch):
    """Otherwise a task that ends before, in a host that is then killed, would never be reported."""
    read, release = PushJournal.webhooks, asyncio.Event()

    async def slow(*args: Any, **options: Any) -> Any:
        await release.wait()
        return await read(*args, **options)

    monkeypatch.setattr(PushJournal, "webhooks", slow)
    async with running(make_host(tmp_path)) as host:
        await host.history.unfinished()  # opens the database
        session = await host.open(AgentSpec("dummy"), columns=80, lines=24)
        await session.tasks.journal.restored(0.5)
        task = session.accept(MessageRequest("hello", USER))
        assert session.tasks.journal.problem == READING
        release.set()
        await until(lambda: session.tasks.get(task.id).state is TaskState.COMPLETED)


async def test_webhooks_that_cannot_be_read_hold_no_messages_for_long(tmp_path, monkeypatch):
    async def broken(*_: Any, **__: Any) -> None:
        raise HistoryError("history cannot be read: a damaged row")

    monkeypatch.setattr(PushJournal, "webhooks", broken)
    monkeypatch.setattr(service, "LOAD_AGAIN", 0.1)
    async with running(make_host(tmp_path)) as host:
        session = await host.open(AgentSpec("dummy"), columns=80, lines=24)
        task = session.accept(MessageRequest("hello", USER))
        await until(lambda: session.tasks.get(task.id).state is TaskState.COMPLETED)
