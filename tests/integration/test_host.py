"""The host with real agents in PTYs, real servers and a registry of its own."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from synapse_tui.a2a.async_client import AsyncClient
from synapse_tui.a2a.server import AgentServer
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.addresses import agent_id_for, identity_of
from synapse_tui.core.errors import (
    AgentExited,
    AgentNotFound,
    CommandNotFound,
    ConfigError,
    FolderUnusable,
    PortsExhausted,
    UnknownProfile,
)
from synapse_tui.core.events import AgentAdded, AgentProcessExited, AgentRemoved, Event, Notice, TaskChanged
from synapse_tui.core.model import (
    USER,
    AgentSpec,
    AgentState,
    DeliveryState,
    MessageRequest,
    Reply,
    ReplyState,
    Sender,
    Task,
    TaskState,
)
from synapse_tui.host.host import Host
from synapse_tui.messages import tasks as module
from synapse_tui.messages.quick import agents_of_waiting
from synapse_tui.messages.records import Addressee
from synapse_tui.messages.service import by_person, reply_of
from synapse_tui.sessions.registry import Registry, RegistryEntry
from synapse_tui.widgets.views import view_agents
from synapse_tui.workspace import Handover
from tests.integration.host_kit import make_host, open_published, open_ready, records, running
from tests.waiting import PATIENCE, until
from tests.work import work


async def test_an_agent_is_bound_recorded_and_served_and_all_that_ends_with_it(host: Host) -> None:
    heard: list[Event] = []
    host.events.subscribe(heard.append)
    (agent,) = await open_published(host, "alice")
    await until(lambda: records(host).get(agent.agent_id, {}).get("status") == "READY")
    record = records(host)[agent.agent_id]
    assert record["pid"] == agent.pid
    assert record["name"] == "alice"
    assert record["project"] == str(host.project)
    with socket.create_connection(("127.0.0.1", agent.port), timeout=5):
        pass
    await host.close(agent.agent_id)
    assert not records(host)
    assert not host.agents
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", agent.port), timeout=5)
    assert [type(event) for event in heard if isinstance(event, AgentAdded | AgentRemoved)] == [
        AgentAdded,
        AgentRemoved,
    ]


async def test_a_closed_agent_is_opened_again_with_what_it_was(host: Host) -> None:
    with pytest.raises(AgentNotFound, match="no closed agent to open again"):
        await host.reopen(columns=80, lines=24)
    first, second = await open_ready(host, "alice", "bob")
    (receipt,) = await host.send("alice", "hello")
    await until(lambda: first.tasks.get(receipt.task_id).state.final, "its answer")
    shown: list[list[str]] = []
    host.events.subscribe(lambda _event: shown.append([task.id for task in host.tasks]))
    for agent in (second, first):
        await host.close(agent.agent_id)
    assert len(shown) >= 2
    assert all(ids == [receipt.task_id] for ids in shown), "it is shown all the time"
    again = await host.reopen(columns=80, lines=24)
    assert [task.id for task in host.tasks] == [receipt.task_id]
    assert host.task(receipt.task_id) in host.tasks
    assert (again.agent_id, again.name, again.cwd) == (first.agent_id, "alice", first.cwd)
    assert again.spec.resume
    await until(lambda: again.report.state is AgentState.READY, "its start")
    rows = [again.terminal.scrollback[at].text for at in range(len(again.terminal.scrollback))]
    assert any("hello" in row for row in rows)
    assert (await host.reopen(columns=80, lines=24)).agent_id == second.agent_id


@dataclass(frozen=True, slots=True)
class _Ports:
    """The ports that agents of the next session get, as the places that they had in the last one."""

    last: tuple[str, str]  # names in the last session; the second has written to the first
    opened: tuple[str, ...]
    ports: tuple[int, ...]
    reserved: tuple[int, ...] = ()
    renamed: str = ""  # what the second is called after it has written


@pytest.mark.parametrize(
    "case",
    [
        _Ports(("alice", "bob"), ("solo", "alice", "bob"), (2, 0, 1)),
        _Ports(("alice", "bob"), ("BOB", "Alice"), (1, 0)),
        _Ports(("alice", "bob"), ("solo", "", "alice"), (2, 3, 0)),
        _Ports(("", "bob"), ("", "alice"), (0, 2)),
        _Ports(("", ""), ("alice", ""), (2, 0)),
        _Ports(("alice", ""), ("alice", "bob", ""), (0, 2, 1)),
        _Ports(("alice", "bob"), ("alice", "solo"), (2, 3), reserved=(0, 1)),
        _Ports(("alice", "bob"), ("alice", "bob", "rob"), (0, 2, 1), renamed="rob"),
    ],
    ids=str,
)
async def test_no_other_agent_gets_the_id_of_one_that_a_waiting_message_is_from_or_to(
    tmp_path: Path, case: _Ports
) -> None:
    """It would be shown as the sender of what waits for itself, and get the answer."""
    async with running(make_host(tmp_path)) as host:
        receiver, sender = await open_ready(host, *case.last)
        await host.send(receiver.agent_id, "%%slow:60%%")
        await until(lambda: receiver.report.state is AgentState.PROCESSING, "its turn")
        who = Sender(sender.agent_id, "dummy", sender.endpoint, verified=True)
        waits = receiver.accept(MessageRequest("from the second", who))
        if case.renamed:
            host.rename(sender.agent_id, case.renamed)
            renamed = Addressee(sender.agent_id, case.renamed)
            read = partial(agents_of_waiting, host.paths.history, host.history._project)
            await until(lambda: renamed in read().get(sender.agent_id, ()), "its new name in the database")
        profiles = host.profiles
    again = make_host(tmp_path)
    again.profiles = profiles  # the same ports
    lowest = receiver.port
    async with running(again) as host:
        host.reserve([lowest + place for place in case.reserved])
        agents = {agent.name.casefold(): agent for agent in await open_ready(host, *case.opened)}
        assert tuple(agent.port - lowest for agent in agents.values()) == case.ports
        await until(lambda: waits.id in agents[receiver.name].tasks, "the message")


async def test_the_ports_of_ended_agents_are_given_before_those_of_waiting_messages(host: Host) -> None:
    factory, profile = host._factory, host.profiles.profiles["dummy"]
    lowest, highest = profile.ports
    known = {"alice": agent_id_for("dummy", lowest), None: agent_id_for("dummy", lowest + 1)}
    factory.waiting = {agent_id: {Addressee(agent_id, name)} for name, agent_id in known.items()}
    ended = range(highest, lowest + 1, -1)  # all others
    factory._last_ports = {("dummy", host.project, f"other{port}"): port for port in ended}
    given = []
    with contextlib.ExitStack() as bound:
        for name in ("new", "carol", "dave", "alice"):  # whose name is not recorded, may be any
            sockets = factory.bind(profile, AgentSpec("dummy", name), host.project)
            bound.callback(sockets.close)
            given.append(sockets.port)
    assert given == [lowest + 1, highest, highest - 1, lowest]


async def test_closed_agents_are_known_to_the_next_version(tmp_path: Path) -> None:
    before = make_host(tmp_path)
    await before.start()
    before.load_servers()
    (alice,) = await open_ready(before, "alice")
    (receipt,) = await before.send("alice", "hello")
    await until(lambda: alice.tasks.get(receipt.task_id).state.final, "its answer")
    await before.close(alice.agent_id)
    handover = Handover.read((await before.hand_over()).write())
    async with running(make_host(tmp_path)) as host:
        host.adopt(handover)
        (task,) = host.tasks
        assert (task.id, task.text) == (receipt.task_id, "hello")
        again = await host.reopen(columns=80, lines=24)
        assert (again.agent_id, again.name) == (alice.agent_id, "alice")
        rows = [again.terminal.scrollback[at].text for at in range(len(again.terminal.scrollback))]
        assert any("hello" in row for row in rows)


async def test_what_another_version_says_of_closed_agents_is_no_error(tmp_path: Path) -> None:
    async with running(make_host(tmp_path)) as host:
        host.adopt(Handover("9.9", extra={"closed": [{"agent_id": 1}], "remembered": []}))
        assert not host.can_reopen


async def test_another_agent_does_not_get_the_id_of_a_closed_one_while_other_ports_are_free(
    host: Host,
) -> None:
    """Messages are from and to an id: the new agent would be shown what the other one has sent."""
    first, second = await open_published(host, "alice", "bob")
    for agent in (second, first):
        await host.close(agent.agent_id)
    (carol,) = await open_published(host, "carol")
    assert carol.agent_id not in (first.agent_id, second.agent_id)
    (again,) = await open_published(host, "bob")
    assert again.agent_id == second.agent_id, "an agent of that name"
    lowest, highest = carol.profile.ports
    taken = {carol.port, again.port, first.port}
    for number in range(highest - lowest + 1 - len(taken)):
        await open_published(host, f"other{number}")
    (last,) = await open_published(host, "last")
    assert last.agent_id == first.agent_id, "no other port is free"


async def test_what_waits_for_an_agent_finds_it_on_another_port_though_its_own_is_taken(host: Host) -> None:
    (bob,) = await open_ready(host, "bob")
    (receipt,) = await host.send("bob", "%%slow:60%%")
    await until(lambda: bob.report.state is AgentState.PROCESSING, "its turn")
    (waits,) = await host.send("bob", "for bob")
    heard: list[str] = []
    host.events.subscribe(lambda event: heard.append(event.text) if isinstance(event, Notice) else None)
    await host.close(bob.agent_id)
    eve = await host.open(AgentSpec("dummy", "eve", port=bob.port), columns=80, lines=24)
    await until(lambda: "1 for bob is kept until that agent is opened" in heard, "the notice")
    assert waits.task_id not in eve.tasks
    assert not host.tasks, "none of those of the agent that had this port"
    again = await host.reopen(columns=80, lines=24)
    assert again.port != bob.port
    await until(lambda: waits.task_id in again.tasks, "the message")
    assert receipt.task_id not in again.tasks


async def test_what_an_agent_without_a_name_was_asked_is_not_shown_of_the_next_one_on_its_port(
    host: Host,
) -> None:
    (unnamed,) = await open_ready(host, "")
    (receipt,) = await host.send(unnamed.agent_id, "hello")
    await until(lambda: unnamed.tasks.get(receipt.task_id).state.final, "its answer")
    await host.close(unnamed.agent_id)
    assert receipt.task_id in [task.id for task in host.tasks]
    await host.open(AgentSpec("dummy", port=unnamed.port), columns=80, lines=24)
    assert receipt.task_id not in [task.id for task in host.tasks]


async def test_an_agent_is_opened_again_once_it_is_closed(host: Host) -> None:
    (alice,) = await open_ready(host, "alice")
    closing = asyncio.create_task(host.close(alice.agent_id))
    await asyncio.sleep(0)
    assert host.can_reopen
    assert (await host.reopen(columns=80, lines=24)).agent_id == alice.agent_id
    await closing


async def test_an_agent_is_found_by_its_identity_at_another_port(host: Host) -> None:
    asker, first = await open_published(host, "asker", "worker")
    identity = records(host)[first.agent_id]["identity"]
    assert identity == identity_of(str(first.cwd), "dummy", "worker")
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        card = (await client.get(f"{first.endpoint}/.well-known/agent.json")).json()
    assert card["extensions"]["synapse"]["identity"] == identity
    with socket.socket() as taken:
        await host.close(first.agent_id)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", first.port))
        taken.listen()
        (again,) = await open_published(host, "worker")
    assert again.port != first.port
    assert records(host)[again.agent_id]["identity"] == identity
    for form in (identity, identity[:8]):
        (receipt,) = await host.send(str(form), "hello", sender=asker.agent_id)
        assert receipt.target == again.agent_id
    host.rename(again.agent_id, "other")
    renamed = identity_of(str(again.cwd), "dummy", "other")
    await until(lambda: records(host)[again.agent_id]["identity"] == renamed)


async def test_a_message_of_the_early_form_may_name_its_agent(tmp_path: Path) -> None:
    """`POST /message` of `@ClaudeCode go on` is how the framework's documents nudge an agent."""
    host = make_host(tmp_path)
    dummy = host.profiles.profiles["dummy"]
    called = dataclasses.replace(dummy, aliases=("claudecode",))
    host.profiles = dataclasses.replace(host.profiles, profiles={"dummy": called})
    async with running(host), httpx.AsyncClient(timeout=PATIENCE) as client:
        alice, bob = await open_published(host, "alice", "bob")
        for content, agent, text in (
            ("@ClaudeCode go on", alice, "go on"),
            ("＠ｃｌａｕｄｅｃｏｄｅ　続きをお願い", alice, "続きをお願い"),
            ("@alice go on", alice, "go on"),
            ("@bob go\non", bob, "go\non"),
            ("@README.md go on", alice, "@README.md go on"),
            ("mail me@bob now", alice, "mail me@bob now"),
            ("@bob", alice, "@bob"),
            ("@all go on", alice, "@all go on"),
        ):
            answer = (await client.post(f"{alice.endpoint}/message", json={"content": content})).json()
            assert agent.tasks.get(answer["task_id"]).text == text
        assert [len(list(each.tasks)) for each in (alice, bob)] == [7, 1]


async def test_a_message_that_names_an_agent_of_another_host_says_where_that_is(
    host: Host, tmp_path: Path
) -> None:
    (agent,) = await open_published(host, "one")
    always = 1  # a process that runs, and is not this one
    other = RegistryEntry("synapse-codex-8120", "codex", 8120, "http://127.0.0.1:8120", always)
    Registry(host.paths.registry).register(dataclasses.replace(other, project=str(host.project)))
    await until(lambda: [each for each in host.addresses() if each.agent_id == other.agent_id])
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        answer = await client.post(f"{agent.endpoint}/message", json={"content": "@codex go on"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "served_elsewhere")
    assert "http://127.0.0.1:8120/message" in answer.json()["error"]["hint"]
    assert not list(agent.tasks)


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """When it is set, servers start: until then what serves HTTP counts as not imported."""
    event = asyncio.Event()
    start = AgentServer.start

    async def late(server: AgentServer) -> None:
        await event.wait()
        await start(server)

    monkeypatch.setattr(AgentServer, "start", late)
    yield event
    event.set()


async def test_an_agent_is_recorded_before_it_is_ready_and_as_ready_once_its_server_answers(
    host: Host, imported: asyncio.Event
) -> None:
    (agent,) = await open_ready(host, "alice")
    await host._records.written(agent.agent_id)
    assert records(host)[agent.agent_id]["status"] == "STARTING", "whoever calls it waits"
    published = asyncio.create_task(host.published(agent.agent_id))
    await asyncio.sleep(0)
    assert not published.done()
    imported.set()
    await published
    assert records(host)[agent.agent_id]["status"] == "READY"
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        assert (await client.get(f"{agent.endpoint}/status")).status_code == 200


async def test_an_agent_that_is_closed_before_it_was_served_leaves_no_record(
    host: Host, imported: asyncio.Event
) -> None:
    alice, bob = await open_ready(host, "alice", "bob")
    published = asyncio.create_task(host.published(alice.agent_id))
    closing = asyncio.create_task(host.close(alice.agent_id))
    await asyncio.wait_for(published, 20)
    imported.set()
    await closing
    await host.published(bob.agent_id)
    assert set(records(host)) == {bob.agent_id}


async def test_messages_within_a_host_need_no_http(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncClient, "call", Mock(side_effect=AssertionError("a call over HTTP")))
    alice, bob = await open_ready(host, "alice", "bob")
    (receipt,) = await host.send("bob", "hello", sender=alice.agent_id)
    assert receipt.error is None
    await until(lambda: bob.tasks.get(receipt.task_id).state is TaskState.COMPLETED)
    task = bob.tasks.get(receipt.task_id)
    assert task.sender.sender_id == alice.agent_id
    assert task.sender.verified
    assert "hello" in task.artifacts[0].text
    assert task.metadata["author"] == "user", "a person wrote it in her pane: she is not told of the answer"
    assert [known.id for known in host.tasks] == [task.id]
    (own,) = await host.send("alice", "from the person", priority=4)
    await until(lambda: alice.tasks.get(own.task_id).delivery is DeliveryState.DONE)
    assert alice.tasks.get(own.task_id).sender.verified


async def test_answers_to_a_person_are_changes_of_the_task_and_are_never_typed(host: Host) -> None:
    alice, bob = await open_ready(host, "alice", "bob")
    changes: list[Task] = []

    def changed(event: Event) -> None:
        assert isinstance(event, TaskChanged)
        changes.append(event.task)

    host.events.subscribe(changed, TaskChanged)
    (receipt,) = await host.send("bob", "hello", sender=alice.agent_id)
    await until(lambda: bob.tasks.get(receipt.task_id).state is TaskState.COMPLETED)
    assert by_person(changes[-1])
    assert "hello" in reply_of(changes[-1]).text
    bob.service.reply(receipt.task_id, Reply("what I meant"))
    assert reply_of(changes[-1]).text == "what I meant"
    assert changes[-1].reply is ReplyState.NONE, "nobody types it"
    assert not list(alice.tasks)


async def test_an_agent_rests_only_before_an_empty_composer(host: Host) -> None:
    (alice,) = await open_ready(host, "alice")
    await until(lambda: alice.resting)
    alice.user_input(b"a")
    assert not alice.resting, "its screen may not show the key yet"
    await until(lambda: alice.reading().draft == "a")
    assert not alice.resting
    alice.user_input(b"\x7f")
    await until(lambda: alice.resting)
    await alice.stop()
    assert not alice.resting


async def test_ended_tasks_of_many_agents_take_no_more_memory_than_those_of_one(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talk(agent: AgentSession) -> None:
        for _ in range(30):
            task = agent.tasks.create_outgoing(MessageRequest("x" * 10_000, USER), "elsewhere")
            agent.tasks.change(task.id, state=TaskState.COMPLETED, reply=ReplyState.GIVEN)

    monkeypatch.setattr(module, "MAX_FINISHED_SIZE", 240_000)
    one, *others = [await host.open(AgentSpec("dummy", f"a{n}"), columns=80, lines=24) for n in range(4)]
    for agent in (one, *others):
        talk(agent)
    assert [len(agent.tasks) for agent in (one, *others)] == [4] * 4, "of 12 kB each"
    for agent in others:
        await host.close(agent.agent_id)
    talk(one)
    assert len(one.tasks) == 19
    await host.open(AgentSpec("dummy", "another"), columns=80, lines=24)
    assert len(one.tasks) == 9


async def test_what_is_shown_of_tasks_is_as_much_work_after_many_of_them(host: Host) -> None:
    (agent,) = await open_ready(host, "a")

    def lines_after(count: int) -> int:
        while len(agent.tasks) < count:
            task = agent.tasks.create(MessageRequest("hello", USER))
            agent.tasks.change(task.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
        with work() as counted:
            assert host.tasks
            assert host.task(task.id)
            view_agents([agent])
        return counted.lines

    lines_after(20)  # what is done and imported once
    few, many = lines_after(220), lines_after(490)
    assert many <= 1.1 * few, f"{few} lines with 220 tasks, {many} with 490"


async def test_an_alias_of_its_own_type_may_name_an_agent(host: Host) -> None:
    with pytest.raises(ConfigError, match="'sh' already addresses"):
        await host.open(AgentSpec("dummy", "sh"), columns=80, lines=24)
    named = await host.open(AgentSpec("shell", "sh"), columns=80, lines=24)
    other = await host.open(AgentSpec("shell"), columns=80, lines=24)
    assert [target.agent_id for target in host.resolve("sh")] == [named.agent_id]
    host.rename(named.agent_id, "")
    host.rename(other.agent_id, "sh")


async def test_a_name_is_given_once(host: Host) -> None:
    alice, bob = await open_published(host, "alice", "bob")
    with pytest.raises(ConfigError, match="already"):
        await host.open(AgentSpec("dummy", "Alice"), columns=80, lines=24)
    with pytest.raises(ConfigError, match="already"):
        host.rename(bob.agent_id, "ALICE")
    host.rename(alice.agent_id, "Alice")
    for bad in (
        "all",
        "claude",
        "ClaudeCode",
        "dummy-8191",
        "synapse-x",
        "a/b",
        "!bad name",
        "x y",
        "x" * 40,
    ):
        with pytest.raises(ConfigError) as caught:
            host.rename(bob.agent_id, bad)
        assert caught.value.hint
    host.rename(bob.agent_id, "robert")
    await until(lambda: records(host)[bob.agent_id]["name"] == "robert")
    assert [target.agent_id for target in host.resolve("robert")] == [bob.agent_id]


async def test_what_cannot_be_opened_says_why_and_holds_no_port(host: Host, tmp_path: Path) -> None:
    for spec, error in (
        (AgentSpec("dumy"), UnknownProfile),
        (AgentSpec("claude"), CommandNotFound),
        (AgentSpec("dummy", cwd=tmp_path / "none"), FolderUnusable),
    ):
        with pytest.raises(error) as caught:
            await host.open(spec, columns=80, lines=24)
        assert caught.value.hint
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortsExhausted):
        await host.open(AgentSpec("dummy", port=taken.getsockname()[1]), columns=80, lines=24)
    assert not host.agents
    assert not records(host)


async def test_an_agent_that_ended_is_started_anew_under_the_same_id(host: Host) -> None:
    (agent,) = await open_published(host, "alice")
    heard: list[Event] = []
    host.events.subscribe(heard.append)
    await host.send("alice", "%%exit:3%%")
    await until(lambda: any(isinstance(event, AgentProcessExited) for event in heard))
    assert agent.exit is not None
    assert agent.exit.code == 3
    await until(lambda: records(host)[agent.agent_id]["status"] == "EXITED")
    with pytest.raises(AgentExited, match="ended"):
        await host.send("alice", "are you there?")
    restarted = await host.restart(agent.agent_id)
    await until(lambda: restarted.report.state is AgentState.READY)
    assert restarted.agent_id == agent.agent_id
    (receipt,) = await host.send("alice", "are you there?")
    await until(lambda: restarted.tasks.get(receipt.task_id).state is TaskState.COMPLETED)


async def test_a_restart_goes_by_the_profile_as_it_is_now(host: Host) -> None:
    def marked() -> bool:
        return "MARK=new" in Path(f"/proc/{agent.pid}/environ").read_text().split("\0")

    (agent,) = await open_ready(host, "alice")
    before = host.profiles.profiles["dummy"]
    changed = dataclasses.replace(before, env={"MARK": "new", "SYNAPSE_AGENT_ID": "another"}, receives=False)
    for profile in (changed, before):
        host.profiles = dataclasses.replace(host.profiles, profiles={"dummy": profile})
        assert agent.profile is not profile, "it runs by the one that it was started with"
        await host.restart(agent.agent_id)
        await until(lambda: agent.report.state is AgentState.READY)
        assert agent.profile is profile
        assert marked() is (profile is changed)
        assert agent.environ["SYNAPSE_AGENT_ID"] == agent.agent_id
    (receipt,) = await host.send("alice", "hello again")
    await until(lambda: agent.tasks.get(receipt.task_id).state is TaskState.COMPLETED)


async def test_interrupting_all_stops_every_turn(host: Host) -> None:
    alice, bob = await open_ready(host, "alice", "bob")
    await host.send("all", "count %%slow:30%%")
    await until(lambda: all(agent.report.state is AgentState.PROCESSING for agent in (alice, bob)))
    await host.interrupt_all()
    await until(lambda: all(agent.report.state is AgentState.READY for agent in (alice, bob)))
    assert alice.exit is None
    assert bob.exit is None
