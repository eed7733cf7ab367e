"""Notifications to a real receiver: what it is told, when it fails, and what is never called."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import sqlite3
import ssl
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.a2a.push.policy import TargetPolicy
from synapse_tui.a2a.push.sender import PushSender
from synapse_tui.a2a.push.worker import Attempt
from synapse_tui.core.content import Artifact
from synapse_tui.core.errors import HistoryError, InvalidValue, PushLimit, PushNotFound, TargetRefused
from synapse_tui.core.model import MessageRequest, Sender, TaskState
from synapse_tui.messages.records import PushDelivery, PushProtocol, PushState, PushSubscription
from tests.fake_agent import FakeAgent
from tests.integration.push_kit import ENDLESS, Names, Receiver, answer, receiving, telling
from tests.waiting import PATIENCE

ASKER = Sender("external")
TASK = "25ea4569-d796-4673-9852-5a6eef8e6f0d"


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent(8190, "dummy")


def config(agent: FakeAgent, url: str, *, protocol: Any = PushProtocol.V1, **fields: Any) -> PushSubscription:
    return PushSubscription(agent.agent_id, protocol, url, task_id=TASK, **{"local": True, **fields})


def webhook_of(agent_id: str, url: str, events: tuple[str, ...] = (), **fields: Any) -> PushSubscription:
    return PushSubscription(agent_id, PushProtocol.DIALECT, url, events=events, **{"local": True, **fields})


def ask(agent: FakeAgent, text: str = "Hello!") -> str:
    agent.ids = iter((TASK,))
    return agent.accept(MessageRequest(text, ASKER)).id


# -- what is told ---


async def test_a_task_of_1_0_is_told_as_a_stream_tells_it(agent):
    async with receiving() as receiver, telling(agent) as desk:
        made = await desk.add(
            config(agent, receiver.url("/a?b=c"), token="tok", scheme="Bearer", credentials="cred")
        )
        task = ask(agent)
        agent.give(task)
        agent.tasks.change(task, reason="nothing that is told")
        agent.tasks.change(task, artifacts=(Artifact("one"),))
        agent.finish(task, "two")
        got = await receiver.until(5)
        assert [next(iter(each.json)) for each in got] == [
            "task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate",
        ]  # fmt: skip
        assert got[0].json["task"]["id"] == TASK
        assert got[0].json["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
        assert got[1].json["statusUpdate"]["status"]["state"] == "TASK_STATE_WORKING"
        update = got[3].json["artifactUpdate"]
        assert (update["taskId"], update["lastChunk"]) == (TASK, True)
        assert update["artifact"]["parts"] == [{"text": "two"}]
        assert got[4].json["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        told = got[0].headers
        assert told["host"] == f"127.0.0.1:{receiver.port}"
        assert (got[0].target, told["content-type"]) == ("/a?b=c", "application/json")
        assert told["authorization"] == "Bearer cred"
        assert told["x-a2a-notification-token"] == told["a2a-notification-token"] == "tok"
        assert told["a2a-version"] == "1.0"
        assert len({each.headers["x-synapse-delivery"] for each in got}) == 5
        (found,) = (await desk.subscriptions()).of_task(TASK)
        assert found == replace(made, ended_at=found.ended_at)


async def test_a_task_of_0_3_is_told_as_a_whole(agent):
    async with receiving() as receiver, telling(agent) as desk:
        await desk.add(config(agent, receiver.url(), protocol=PushProtocol.V03))
        agent.finish(ask(agent), "Hi!")
        first, last = await receiver.until(2)
        assert (first.json["kind"], first.json["id"], first.json["status"]["state"]) == (
            "task", TASK, "submitted",
        )  # fmt: skip
        assert last.json["status"]["state"] == "completed"
        assert last.json["artifacts"][0]["parts"] == [{"kind": "text", "text": "Hi!"}]
        assert "contextId" in last.json
        assert (await desk.subscriptions()).config(TASK, "").config_id == TASK


async def test_who_asks_later_begins_with_the_whole_task(agent):
    async with receiving() as receiver, telling(agent) as desk:
        task = ask(agent)
        await desk.add(config(agent, receiver.url()))
        agent.give(task)
        agent.finish(task, "Hi!")
        got = await receiver.until(3)
        assert [next(iter(each.json)) for each in got] == ["task", "artifactUpdate", "statusUpdate"]


async def test_a_webhook_is_told_of_the_events_it_wants_signed(agent):
    async with receiving() as receiver, telling(agent) as desk:
        request = webhook_of(agent.agent_id, receiver.url(), secret="s3cret")
        webhook = await desk.add(request)
        before = int(time.time())
        one, other = ask(agent, "é"), agent.accept(MessageRequest("two", ASKER)).id
        agent.give(one)
        agent.finish(one, "Hi!")
        agent.tasks.change(one, reason="told")  # what is over is over
        agent.finish(other, "no", TaskState.FAILED)
        first, second = await receiver.until(2)
        assert [each.json["event"] for each in (first, second)] == ["task.completed", "task.failed"]
        assert first.json["data"]["task_id"] == first.json["data"]["id"] == one
        assert first.json["data"]["message"]["parts"] == [{"type": "text", "text": "é"}]
        assert first.json["event_id"] == first.headers["x-synapse-event-id"]
        assert first.headers["x-synapse-delivery"] == first.headers["x-synapse-event-id"]
        assert first.headers["x-synapse-event"] == "task.completed"
        assert first.headers["x-synapse-timestamp"] == first.json["timestamp"]
        stamp, code = (each.partition("=")[2] for each in first.headers["x-synapse-signature"].split(","))
        assert before <= int(stamp) <= time.time()
        signed = hmac.new(b"s3cret", f"{stamp}.{first.body}".encode(), hashlib.sha256).hexdigest()
        assert hmac.compare_digest(code, signed)
        assert webhook.events == ("task.completed", "task.failed")
        subscriptions = await desk.subscriptions()
        desk.remove(subscriptions.webhook(agent.agent_id, receiver.url()))
        assert subscriptions.of_agent(agent.agent_id) == []


async def test_what_is_no_task_of_others_is_told_to_nobody(agent):
    async with receiving() as receiver, telling(agent) as desk:
        await desk.add(webhook_of(agent.agent_id, receiver.url(), ("*",)))
        await desk.add(webhook_of("synapse-dummy-8191", receiver.url("/other"), ("*",)))
        agent.service.open(MessageRequest("how?", ASKER), "synapse-dummy-8191")
        followed = ask(agent)
        agent.tasks.create(MessageRequest("more", ASKER, follows=followed))
        agent.finish(followed)
        got = await receiver.until(2)
        assert [(each.target, each.json["event"]) for each in got] == [
            ("/hook", "task.submitted"), ("/hook", "task.completed"),
        ]  # fmt: skip


# -- receivers that fail ---


async def test_a_receiver_that_fails_is_told_again_in_order_with_the_same_id(agent):
    answers = [answer(500), answer(503, "Retry-After: 0"), answer(429)]
    async with receiving(*answers) as receiver, telling(agent) as desk:
        await desk.add(config(agent, receiver.url()))
        agent.give(ask(agent))
        got = await receiver.until(5)
        ids = [each.headers["x-synapse-delivery"] for each in got]
        assert len(set(ids[:4])) == 1
        assert ids[4] != ids[0]
        assert [next(iter(each.json)) for each in got] == ["task"] * 4 + ["statusUpdate"]


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (answer(404), "it answered 404"),
        (answer(302, "Location: http://127.0.0.1:1/elsewhere"), "redirects are not followed"),
        (answer(307, "Location: /other"), "redirects are not followed"),
    ],
)
async def test_what_another_attempt_would_not_change_is_given_up(agent, tmp_path, told, problem):
    async with receiving(told) as receiver, telling(agent, path=tmp_path / "h" / "history.db") as desk:
        webhook = await desk.add(webhook_of(agent.agent_id, receiver.url(), ("*",)))
        agent.finish(ask(agent), "Hi!")
        await receiver.until(2)
        log = await wait_for_log(desk, webhook, 2)
        assert [(each.state, each.status) for each in log][1] == (PushState.DEAD, int(told.split()[1]))
        assert problem in log[1].problem
        assert [each.target for each in receiver.got] == ["/hook", "/hook"]
        assert log[0].state is PushState.DELIVERED


async def wait_for_log(desk, webhook, count):
    while True:
        log = await desk.log(webhook, 20)
        if sum(each.state is not PushState.PENDING for each in log) >= count:
            return log
        await asyncio.sleep(0.01)


async def test_a_receiver_that_hangs_is_left_after_a_while_and_delays_nobody(agent):
    async with receiving(None) as slow, receiving() as quick, telling(agent, timeout=2) as desk:
        for receiver in (slow, quick):
            await desk.add(webhook_of(agent.agent_id, receiver.url(), ("*",)))
        started = asyncio.get_running_loop().time()
        task = ask(agent)
        agent.finish(task, "Hi!")
        await quick.until(2)
        assert len(slow.got) <= 1
        got = await slow.until(3)  # the one that hung again, then the next
        assert asyncio.get_running_loop().time() - started >= 2
        assert [each.json["event"] for each in got] == ["task.submitted", "task.submitted", "task.completed"]


async def test_an_endless_answer_is_not_read(agent):
    async with receiving(ENDLESS) as receiver, telling(agent) as desk:
        await desk.add(config(agent, receiver.url()))
        agent.give(ask(agent))
        got = await receiver.until(2)
        assert [next(iter(each.json)) for each in got] == ["task", "statusUpdate"]
        assert receiver.flooded < 32 * 1024 * 1024  # what the kernel takes, not what a second would bring


# -- what is never called ---


async def test_a_name_that_means_something_else_when_it_is_called_is_not_called(agent, tmp_path):
    names = Names(rebind=["93.184.216.34"])
    policy = TargetPolicy(names)
    async with receiving() as receiver, telling(agent, policy=policy, path=tmp_path / "h.db") as desk:
        url = receiver.url(host="rebind")
        webhook = await desk.add(webhook_of(agent.agent_id, url, ("*",), local=False))
        names.names["rebind"] = ["127.0.0.1"]
        ask(agent)
        (log,) = await wait_for_log(desk, webhook, 1)
        assert (log.state, log.attempts) == (PushState.DEAD, 1)
        assert log.problem.startswith("refused: rebind is this machine")
        assert receiver.got == []


async def test_the_address_that_was_looked_at_is_called_under_the_name(agent):
    names = Names(**{"hooks.lan": ["127.0.0.1"]})
    async with receiving() as receiver, telling(agent, policy=TargetPolicy(names)) as desk:
        await desk.add(config(agent, receiver.url(host="hooks.lan")))
        ask(agent)
        (got,) = await receiver.until(1)
        assert got.headers["host"] == f"hooks.lan:{receiver.port}"
        assert names.asked == ["hooks.lan", "hooks.lan"]


async def test_proxies_of_the_environment_are_ignored(agent, monkeypatch):
    async with receiving() as proxy, receiving() as receiver, telling(agent) as desk:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, proxy.url(""))
        await desk.add(config(agent, receiver.url()))
        ask(agent)
        await receiver.until(1)
        assert proxy.got == []


async def test_https_checks_the_certificate_for_the_name(agent, tmp_path):
    server, trusted = certificates(tmp_path, "hooks.lan")
    names = Names(**{"hooks.lan": ["127.0.0.1"], "other.lan": ["127.0.0.1"]})
    async with (
        receiving(ssl=server) as receiver,
        telling(
            agent, policy=TargetPolicy(names), certificates=trusted, path=tmp_path / "h" / "history.db"
        ) as desk,
    ):
        other = await desk.add(
            webhook_of(agent.agent_id, receiver.url(host="other.lan"), ("task.submitted",))
        )
        await desk.add(config(agent, receiver.url(host="hooks.lan")))
        ask(agent)
        (got,) = await receiver.until(1)
        assert got.headers["host"] == f"hooks.lan:{receiver.port}"
        (log,) = await wait_for_log(desk, other, 1)
        assert log.state is PushState.DEAD
        assert "certificate is not trusted" in log.problem


def certificates(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", cert, "-days", "1", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName=DNS:{name}"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))


# -- after the end of a process ---


async def test_what_was_not_told_is_told_by_the_next_process(agent, tmp_path):
    path = tmp_path / "h" / "history.db"
    async with receiving(None) as receiver:
        async with telling(agent, path=path, timeout=30) as desk:
            await desk.add(config(agent, receiver.url(), token="tok"))
            task = ask(agent)
            agent.finish(task, "Hi!")
            await receiver.until(1)
        async with telling(FakeAgent(8190, "dummy"), path=path, owner="2:2", settled=False) as desk:
            got = await receiver.until(4)
            ids = [each.headers["x-synapse-delivery"] for each in got]
            assert ids[0] == ids[1]  # at least once: nobody knows whether the first had been taken
            assert len(set(ids)) == 3
            assert [next(iter(each.json)) for each in got[1:]] == ["task", "artifactUpdate", "statusUpdate"]
            assert got[3].headers["x-a2a-notification-token"] == "tok"
            assert (await desk.subscriptions()).config(TASK, "").url == receiver.url()


async def test_what_an_older_version_has_told_is_not_told_again(agent, tmp_path):
    path = tmp_path / "h" / "history.db"
    async with receiving() as receiver:
        async with telling(agent, path=path) as desk:
            await desk.add(webhook_of(agent.agent_id, receiver.url(), ("*",)))
            agent.finish(ask(agent), "Hi!")
            await receiver.until(2)
        async with telling(agent, path=path):
            agent.tasks.change(TASK, reason="the sender was told")
            other = agent.accept(MessageRequest("more", ASKER))
            got = await receiver.until(3)
        assert [each.json["data"]["id"] for each in got] == [TASK, TASK, other.id]


@pytest.mark.parametrize(
    ("persist", "goes_on", "told"), [(False, True, 1), (True, False, 1), (False, False, 0)]
)
async def test_webhooks_go_on_with_an_agent_that_goes_on_or_when_they_persist(
    agent, tmp_path, persist, goes_on, told
):
    path = tmp_path / "h" / "history.db"
    async with receiving() as receiver:
        async with telling(agent, path=path) as desk:
            await desk.add(webhook_of(agent.agent_id, receiver.url(), ("task.submitted",), persist=persist))
        again = FakeAgent(8190, "dummy")
        async with telling(again, path=path, owner="2:2", goes_on=goes_on, settled=False) as desk:
            ask(again)  # before it is known who is to be told
            await desk.add(webhook_of(again.agent_id, receiver.url("/last"), ("task.failed",)))
            again.finish(TASK, "no", TaskState.FAILED)
            got = await receiver.until(told + 1)
            assert [each.target for each in got] == ["/hook"] * told + ["/last"]


# -- asking ---


async def test_what_cannot_be_sent_or_asked_for_is_refused(agent):
    async with receiving() as receiver, telling(agent) as desk:
        url = receiver.url()
        with pytest.raises(TargetRefused, match="sandbox"):
            await desk.add(config(agent, url), sender_id="synapse-codex-8120")
        await desk.add(config(agent, url), sender_id="user")
        for field, value in (("token", "a\r\nb"), ("credentials", "é"), ("token", "x" * 5000)):
            with pytest.raises(InvalidValue) as told:
                await desk.add(config(agent, url, **{field: value}))
            assert value not in str(told.value)
        for fields in ({"scheme": "Bea rer"}, {"config_id": "a b"}):
            with pytest.raises(InvalidValue):
                await desk.add(config(agent, url, **fields))
        with pytest.raises(InvalidValue, match="unknown event"):
            await desk.add(webhook_of(agent.agent_id, url, ("task.done",)))
        assert len((await desk.subscriptions()).of_task(TASK)) == 1


async def test_no_secret_is_in_a_log_or_an_error(agent, tmp_path, caplog):
    secrets = ("tok3n", "cr3d", "qu3ry", "s3cret")
    with caplog.at_level(logging.DEBUG):
        async with receiving(answer(400, body=b"tok3n"), None) as receiver:
            url = receiver.url("/hook?key=qu3ry")
            async with telling(agent, timeout=0.1, path=tmp_path / "h" / "history.db") as desk:
                made = await desk.add(config(agent, url, token="tok3n", scheme="Bearer", credentials="cr3d"))
                hook = await desk.add(webhook_of(agent.agent_id, url, ("*",), secret="s3cret"))
                agent.finish(ask(agent), "Hi!")
                await receiver.until(4)
                log = await wait_for_log(desk, hook, 2)
                text = f"{made!r} {hook!r} {log!r} {receiver_free(caplog, receiver)}"
    assert not [each for each in secrets if each in text]
    assert "a push was given up" in caplog.text


def receiver_free(caplog: pytest.LogCaptureFixture, receiver: Receiver) -> str:
    assert receiver.got
    return " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)


async def test_configurations_are_kept_by_their_ids(agent):
    async with receiving() as receiver, telling(agent) as desk:
        first = await desk.add(config(agent, receiver.url("/1"), config_id="a"))
        await desk.add(config(agent, receiver.url("/2")))
        again = await desk.add(config(agent, receiver.url("/3"), config_id="a"))
        assert first.config_id == again.config_id == "a"
        subscriptions = await desk.subscriptions()
        assert sorted(each.url for each in subscriptions.of_task(TASK)) == [
            receiver.url("/2"), receiver.url("/3"),
        ]  # fmt: skip
        assert subscriptions.config(TASK, "a").url == receiver.url("/3")
        desk.remove(subscriptions.config(TASK, "a"))
        for task_id, config_id in ((TASK, "a"), ("another", "")):
            with pytest.raises(PushNotFound):
                subscriptions.config(task_id, config_id)
        for _ in range(19):
            await desk.add(config(agent, receiver.url()))
        with pytest.raises(PushLimit):
            await desk.add(config(agent, receiver.url()))


async def test_a_notification_leaves_once_its_change_is_on_disk(agent):
    async with receiving() as receiver, telling(agent) as desk:
        await desk.add(config(agent, receiver.url()))
        waiting, release, flush = asyncio.Event(), asyncio.Event(), desk._journal.flush

        async def slow() -> None:
            waiting.set()
            await release.wait()
            await flush()

        desk._journal.flush = slow
        ask(agent)
        await asyncio.wait_for(waiting.wait(), 10)
        assert receiver.got == []
        release.set()
        await receiver.until(1)


async def test_what_cannot_be_written_down_is_not_promised(agent, tmp_path):
    (tmp_path / "file").write_text("no folder")
    async with receiving() as receiver, telling(agent) as desk:

        async def fails() -> None:
            raise HistoryError("the disk is full")

        desk._journal.flush = fails
        with pytest.raises(HistoryError):
            await desk.add(config(agent, receiver.url()))
        assert (await desk.subscriptions()).of_task(TASK) == []


async def test_configurations_end_with_their_task_after_a_day(agent):
    now = [datetime(2026, 1, 2, tzinfo=UTC)]
    async with receiving() as receiver, telling(agent, clock=lambda: now[0]) as desk:
        await desk.add(config(agent, receiver.url()))
        agent.finish(ask(agent), "Hi!")
        await receiver.until(3)
        await desk.sweep()
        assert len((await desk.subscriptions()).of_task(TASK)) == 1
        now[0] = now[0].replace(day=3)
        while (await desk.subscriptions()).of_task(TASK):  # the last answer may be on its way
            await desk.sweep()
            await asyncio.sleep(0.001)


async def test_what_is_reported_is_committed(agent, tmp_path, monkeypatch):
    """Otherwise a host that is killed has reported an end, and the next one reports another."""
    file = tmp_path / "h" / "history.db"
    stored: list[tuple[int]] = []
    looked = asyncio.Event()

    async def look(_sender: PushSender, _webhook: PushSubscription, delivery: PushDelivery) -> Attempt:
        with closing(sqlite3.connect(file)) as database:
            query = "SELECT COUNT(*) FROM push_deliveries WHERE id = ?"
            stored.extend(database.execute(query, (delivery.id,)))
        looked.set()
        return Attempt(200)

    monkeypatch.setattr(PushSender, "__call__", look)
    async with telling(agent, path=file) as desk:
        await desk.add(webhook_of(agent.agent_id, "http://127.0.0.1:9/"))
        agent.finish(ask(agent), "Hi!")
        await asyncio.wait_for(looked.wait(), PATIENCE)
    assert stored == [(1,)]
