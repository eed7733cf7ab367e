"""External agents without a network: their texts, cards, registry, conversations, files."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from synapse_tui.a2a.external import transport
from synapse_tui.a2a.external.conversation import Conversation, remote_id
from synapse_tui.a2a.external.discovery import card_warnings, choose_interface, parse_card
from synapse_tui.a2a.external.peer import (
    MAX_STREAMED,
    Budget,
    Outgoing,
    ReadLimit,
    TaskUpdate,
    artifact_of,
    piece_of,
)
from synapse_tui.a2a.external.registry import (
    ExternalAgent,
    ExternalStore,
    Interface,
    alias_from,
    check_alias,
    read_header,
)
from synapse_tui.a2a.external.transport import Bounds, Forbidden, GuardedTransport, MessageSize
from synapse_tui.a2a.external.untrusted import check_url, clean_text, is_allowed, origin_of
from synapse_tui.a2a.external.worker import Exchange, SavedFiles
from synapse_tui.core.content import Part, TaskMessage
from synapse_tui.core.errors import (
    AgentNotFound,
    BudgetSpent,
    CardRefused,
    InvalidValue,
    PeerRefused,
    TaskEnded,
)
from synapse_tui.core.model import USER, Sender, Task, TaskState
from synapse_tui.messages.conversations import ConversationEntry, SavedConversation
from synapse_tui.widgets.text import wrapped

CARD_URL = "https://agent.example/.well-known/agent-card.json"
START = datetime(2026, 1, 2, tzinfo=UTC)


# -- texts ---


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("plain\ttext\r\nsecond", "plain\ttext\nsecond"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]52;c;QUJD\x07copied", "copied"),
        ("\x9b31mC1\x9d0;title\x9c", "C1"),
        ("a\u202eb\u2066c\u200bd\ufeff", "abcd"),
        ("tag\U000e0041\U000e0042s", "tags"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("a" + "\u0301" * 50, "a" + "\u0301" * 8),
        ("👨\u200d👩\u200d👧 写真", "👨\u200d👩\u200d👧 写真"),
        (None, ""),
        (7, ""),
    ],
)
def test_texts_are_made_harmless(given, clean):
    assert clean_text(given) == clean


@given(st.text())
def test_nothing_acts_after_cleaning(text):
    cleaned = clean_text(text)
    assert not set(cleaned) & {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}
    assert clean_text(cleaned) == cleaned
    cleaned.encode()


# -- URLs and cards ---


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("agent.example", "https://agent.example"),
        ("localhost:9999", "http://localhost:9999"),
        ("[::1]:9999/x", "http://[::1]:9999/x"),
        ("HTTPS://Agent.Example/Path", "https://agent.example/Path"),
    ],
)
def test_urls_are_completed(url, checked):
    assert check_url(url) == checked


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x", "http://", "http://a b", "http://u:p@x", "http://x:0", "http://x:99999", "file:///etc"],
)
def test_urls_that_are_none(url):
    with pytest.raises(InvalidValue):
        check_url(url)


def test_origins():
    assert origin_of("https://x") == origin_of("https://X:443/path")
    assert origin_of("http://localhost:1") == origin_of("http://127.0.0.1:1") == origin_of("http://[::1]:1")
    assert not is_allowed("https://x.evil", "https://x", ())
    assert not is_allowed("http://x", "https://x", ())
    assert not is_allowed("https://x:444", "https://x", ())
    assert not is_allowed("http://localhost.evil:1", "http://localhost:1", ())
    assert is_allowed("https://y/path", "https://x", ("https://y",))


def v1(**card: Any) -> dict[str, Any]:
    way = {"url": "https://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {"name": "A", "supportedInterfaces": [way], **card}


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (v1(), "1.0 JSONRPC"),
        (
            v1(
                supportedInterfaces=[
                    {"url": "https://agent.example/g", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                    {
                        "url": "https://agent.example/o",
                        "protocolBinding": "JSONRPC",
                        "protocolVersion": "0.3",
                    },
                    {
                        "url": "https://agent.example/r",
                        "protocolBinding": "HTTP+JSON",
                        "protocolVersion": "1.0.1",
                    },
                ]
            ),
            "1.0 HTTP+JSON",
        ),
        ({"name": "A", "url": "https://agent.example/", "protocolVersion": "0.3.0"}, "0.3 JSONRPC"),
        ({"name": "A", "url": "https://agent.example/", "protocolVersion": "0.2.6"}, "0.3 JSONRPC"),
        ({"name": "A", "url": "https://agent.example/", "preferredTransport": "HTTP+JSON"}, "0.3 HTTP+JSON"),
        ({"name": "A", "url": "https://agent.example/", "extensions": {"synapse": {}}}, "dialect"),
    ],
)
def test_cards_say_how_an_agent_is_called(card, words):
    assert choose_interface(card, CARD_URL).label == words


@pytest.mark.parametrize(
    "card",
    [
        {"name": "A"},
        v1(supportedInterfaces=[{"url": "https://agent.example", "protocolBinding": "GRPC"}]),
        v1(
            supportedInterfaces=[
                {"url": "https://agent.example", "protocolBinding": "JSONRPC", "protocolVersion": "2.0"}
            ]
        ),
        v1(supportedInterfaces=[{"url": "http://u:p@agent.example", "protocolBinding": "JSONRPC"}]),
        v1(supportedInterfaces=[{"url": "https://evil.example", "protocolBinding": "JSONRPC"}]),
        {"name": "A", "url": 7, "additionalInterfaces": "x"},
    ],
)
def test_cards_that_offer_no_way(card):
    with pytest.raises(CardRefused):
        choose_interface(card, CARD_URL)


def test_an_allowed_interface_of_another_origin_does_not_go_before_an_own_one():
    ways = [
        {"url": "https://evil.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "https://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
    ]
    assert choose_interface(v1(supportedInterfaces=ways), CARD_URL).url == "https://agent.example/rpc"


def test_cards_warn():
    card = v1(
        securityRequirements=[{}],
        capabilities={"extensions": [{"uri": "urn:x", "required": True}, {"uri": "urn:y"}]},
    )
    warnings = " ".join(card_warnings(card, CARD_URL))
    assert "--" not in warnings, "the form has fields, not options"
    assert "credentials" in warnings
    assert "urn:x" in warnings
    assert "urn:y" not in warnings
    assert "not encrypted" in " ".join(card_warnings(v1(), "http://far/c"))
    assert not card_warnings(v1(), "http://localhost:9/c")


def test_cards_are_bounded():
    deep: dict[str, Any] = {"name": "A"}
    inner = deep
    for _ in range(40):
        inner["x"] = {}
        inner = inner["x"]
    with pytest.raises(CardRefused, match="nested"):
        parse_card(json.dumps(deep).encode(), "there")


# -- the registry ---


@pytest.mark.parametrize(
    "alias", ["all", "user", "Synapse-Claude-8100", "claude", "a.b", "ü", "x" * 33, "-a", ""]
)
def test_words_that_are_no_alias(alias):
    with pytest.raises(InvalidValue):
        check_alias(alias, taken=("claude",))


def test_aliases_are_made_of_names():
    assert check_alias("@Docs_2") == "docs_2"
    assert alias_from("Currency Agent!", ()) == "currency-agent"
    assert alias_from("Currency Agent", ("currency-agent", "currency-agent-2")) == "currency-agent-3"
    assert alias_from("日本", ()) == "agent"
    assert alias_from("all", ()) == "x-all"


@pytest.mark.parametrize(
    "header", ["X", "X:", ": y", "a b: c", "Host: x", "content-length: 1", "X: a\nb", "X: ü"]
)
def test_headers_that_are_none(header):
    with pytest.raises(InvalidValue):
        read_header(header)


def agent(alias: str = "docs", **fields: Any) -> ExternalAgent:
    made = ExternalAgent(
        alias, "https://agent.example", card=v1(), interface=Interface("https://agent.example/rpc")
    )
    import dataclasses

    return dataclasses.replace(made, **fields)


def test_the_registry_keeps_secrets_private(tmp_path):
    store = ExternalStore(tmp_path / "external")
    kept = agent(headers={"X-Key": "secret"}, token_env="TOKEN", allowed=("https://other.example",))
    store.put(kept)
    assert store.list() == [kept]
    path = tmp_path / "external" / "docs.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert "secret" not in repr(kept) + json.dumps(kept.as_json())
    store.touch("docs", "2026-01-03")
    assert store.get("@DOCS").last_seen == "2026-01-03"
    assert store.remove("docs").alias == "docs"
    store.touch("docs", "2026-01-04")
    assert store.list() == [], "what was removed does not come back"
    with pytest.raises(AgentNotFound):
        store.get("docs")


def test_files_of_the_original_are_read(tmp_path):
    original = {
        "name": "Remote",
        "url": "http://remote.example:8000",
        "description": "d",
        "capabilities": {"streaming": True},
        "skills": [{"name": "chat"}],
        "added_at": "2025-01-01T00:00:00",
        "last_seen": "",
        "alias": "remote",
    }
    (tmp_path / "remote.json").write_text(json.dumps(original))
    (found,) = ExternalStore(tmp_path).list()
    assert (found.alias, found.name, found.protocol, found.skills()) == (
        "remote",
        "Remote",
        "not read yet",
        [("chat", "")],
    )


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"url": "ftp://x"}', '{"url": "http://x", "alias": "other"}', "[" * 5000]
)
def test_files_that_are_none_are_left_out(tmp_path, content):
    (tmp_path / "docs.json").write_text(content)
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe.json")
    assert ExternalStore(tmp_path).list() == []


# -- conversations ---


def talk(alias: str = "docs") -> Conversation:
    ids, times = itertools.count(1), itertools.count()
    return Conversation(
        alias,
        make_id=lambda: f"{next(ids):08x}-0000-4000-8000-000000000000",
        now=lambda: START + timedelta(seconds=next(times)),
    )


def said(text: str, message_id: str = "") -> TaskMessage:
    return TaskMessage(message_id, "agent", (Part(text=text),))


def status(state: TaskState, text: str = "", message_id: str = "") -> TaskUpdate:
    return TaskUpdate("r1", "c1", state, said(text, message_id) if text else None)


def piece(text: str, *, append: bool = True, last: bool = False) -> TaskUpdate:
    return piece_of("r1", "c1", artifact_of((Part(text=text),), artifact_id="a"), append=append, last=last)


def begun(conversation: Conversation, text: str = "hello", sender: Sender = USER) -> Task:
    return conversation.begin(text, sender, expected=False)


def told(conversation: Conversation) -> list[tuple[str, str]]:
    return [(entry.kind, entry.text) for entry in conversation.entries]


def test_pieces_become_one_answer_whatever_comes_again():
    conversation = talk()
    task = begun(conversation)
    for text in ("one", " two"):
        conversation.apply(task.id, piece(text))
    whole = artifact_of((Part(text="one"), Part(text=" two")), artifact_id="a")
    snapshot = TaskUpdate("r1", "c1", TaskState.WORKING, artifacts=(whole,))
    conversation.apply(task.id, snapshot)
    conversation.apply(task.id, snapshot)
    assert conversation.entries[-1].growing is False
    conversation.apply(task.id, piece(" three", last=True))
    ended = conversation.apply(task.id, status(TaskState.COMPLETED))
    assert told(conversation) == [("sent", "hello"), ("answer", "one two three")]
    assert (ended.answer, ended.state, remote_id(ended), conversation.context_id) == (
        "one two three",
        TaskState.COMPLETED,
        "r1",
        "c1",
    )


def test_what_was_told_of_the_work_is_the_answer_where_there_is_no_other():
    conversation = talk()
    task = begun(conversation)
    conversation.apply(task.id, status(TaskState.WORKING, "the answer is 5", "m1"))
    assert told(conversation)[-1] == ("progress", "the answer is 5")
    ended = conversation.apply(task.id, status(TaskState.INPUT_REQUIRED))
    assert (told(conversation)[-1], ended.answer) == (("answer", "the answer is 5"), "the answer is 5")

    other = begun(conversation, "again")
    conversation.apply(other.id, status(TaskState.WORKING, "thinking", "m2"))
    done = conversation.apply(other.id, status(TaskState.COMPLETED, "5", "m3"))
    assert (told(conversation)[-2:], done.answer) == ([("progress", "thinking"), ("answer", "5")], "5")


def test_credentials_cannot_be_given_and_late_events_change_nothing():
    conversation = talk()
    task = begun(conversation)
    asked = conversation.apply(task.id, TaskUpdate("r1", "c1", TaskState.INPUT_REQUIRED, auth=True))
    assert "credentials" in asked.reason
    conversation.apply(task.id, status(TaskState.COMPLETED, "5"))
    assert conversation.apply(task.id, status(TaskState.WORKING)).state is TaskState.COMPLETED


def test_the_last_piece_of_an_answer_costs_no_more_than_the_first(monkeypatch):
    built: list[int] = []
    make = ConversationEntry.__init__

    def counted(entry: ConversationEntry, *values: Any, **named: Any) -> None:
        make(entry, *values, **named)
        built.append(len(entry.text))

    monkeypatch.setattr(ConversationEntry, "__init__", counted)
    conversation = talk()
    task = begun(conversation)
    for _ in range(2000):
        conversation.apply(task.id, piece("a hundred bytes " * 6))
    whole = conversation.entries[-1].text
    assert whole == "a hundred bytes " * 12_000
    assert sum(built) < 3 * len(whole), "characters that were copied into entries"
    assert conversation.entries is conversation.entries, "nothing has changed: nothing is copied"


@pytest.mark.parametrize(("parts", "size"), [(5000, 10), (40, 900_000)])
def test_an_agent_cannot_send_more_for_a_task_than_is_kept(parts, size):
    conversation = talk()
    task = begun(conversation)

    def send(to: Conversation, numbers: range) -> None:
        for number in numbers:
            text = artifact_of((Part(text="x" * size),), artifact_id=str(number))
            to.apply(task.id, piece_of("r1", "c1", text))

    with pytest.raises(BudgetSpent):
        send(conversation, range(parts))
    failed = conversation.fail(task.id, "too much")
    assert (failed.state, failed.reason) == (TaskState.FAILED, "too much")
    assert sum(len(entry.text) for entry in conversation.entries) < 5_000_000

    again = talk()
    again.restore(SavedConversation("docs", tasks=(task,), entries=tuple(conversation.entries)))
    with pytest.raises(BudgetSpent):
        send(again, range(parts, 2 * parts))
    other = begun(conversation, "another message")
    conversation.apply(other.id, piece("has a budget of its own"))


async def test_streams_are_read_at_a_pace_that_leaves_the_loop_to_others():
    now, waits = 0.0, 0

    async def sleep(seconds: float) -> None:
        nonlocal now, waits
        now, waits = now + seconds, waits + 1

    pace = ReadLimit(clock=lambda: now, sleep=sleep)
    several = [Budget(pace) for _ in range(3)]
    for _ in range(1000):
        for budget in several:
            await budget.event()
    assert waits == 3000, "everything else has its turn after every event"
    assert now >= 10, "three agents are read no faster than one"
    before = now
    for _ in range(200):
        await several[0].streamed(b"\n" * 4096)
    assert now - before > 10, "empty lines are work as well"

    async def endless(receive: Callable[[], Awaitable[None]]) -> None:
        while True:
            await receive()

    with pytest.raises(BudgetSpent):
        await endless(lambda: several[0].streamed(b"\n" * 4096))
    with pytest.raises(BudgetSpent):
        await endless(several[1].event)


@pytest.mark.parametrize(("piece", "nodes"), [(b"\n" * 4096, 0), (b"\r" * 4096, 0), (b"[" * 4096, 4096)])
async def test_lines_and_values_use_up_the_budget_of_a_stream_sooner_than_text(piece, nodes):
    async def sleep(_: float) -> None:
        pass

    budget = Budget(ReadLimit(clock=lambda: 0.0, sleep=sleep))
    taken = 0

    async def read_all() -> None:
        nonlocal taken
        while True:
            await budget.streamed(piece, nodes)
            taken += len(piece)

    with pytest.raises(BudgetSpent):
        await read_all()
    assert 0 < taken < MAX_STREAMED / 10


@pytest.mark.parametrize("sent", [b": ping\n\n", b"x"])
async def test_a_stream_without_events_is_read_seldom_and_ends(sent):
    """Comments, or one huge event: a byte costs far more alone than among others."""
    now, reads = 0.0, 0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self):
            nonlocal now
            while True:
                yield sent
                now += 0.001

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Endless())

    budget = Budget(ReadLimit(clock=lambda: now, sleep=sleep))
    guarded = GuardedTransport(httpx.MockTransport(answer), Bounds("http://127.0.0.1:1", budget=budget))

    async def read_all() -> None:
        nonlocal reads
        async with (
            httpx.AsyncClient(transport=guarded) as client,
            client.stream("GET", "http://127.0.0.1:1/") as response,
        ):
            async for _ in response.aiter_raw():
                reads += 1
                assert reads < 300_000, "the stream goes on"

    with pytest.raises(Forbidden, match="disconnected"):
        await read_all()
    assert reads / now < 150, "reads a second"


# -- files ---


def test_files_get_names_that_are_harmless_and_never_replace_any(tmp_path):
    kept = SavedFiles(tmp_path / "files")
    names = ["../../.bashrc", "a/b\\c.txt", "", "x" * 300, "a/b\\c.txt"]
    for number, name in enumerate(names):
        part = Part("file", data=bytes([number]), name=name, metadata={"size": 1})
        update = piece_of("r", "c", artifact_of((part,)))
        assert kept.has_work(update)
        changed = kept.save(update)
        path = Path(changed.artifacts[0].parts[0].path)
        assert path.parent == tmp_path / "files"
        assert path.read_bytes() == bytes([number])
        assert not path.name.startswith(".")
    assert len(list((tmp_path / "files").iterdir())) == 5


# -- how it is shown ---


@given(st.text(max_size=300), st.integers(min_value=4, max_value=60))
def test_lines_fit_and_lose_nothing_but_blanks(text, width):
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)


def nodes_of(*pieces: bytes, streams: bool) -> int:
    size = MessageSize(streams=streams)
    return sum(size.add(piece) for piece in pieces)


def test_what_stands_in_strings_is_no_value_of_an_answer():
    answer = json.dumps({"a": ["x, y: {[", 'say "hi", \\', {"b\\": 1}], "c": None}, indent=1).encode()
    assert nodes_of(answer, streams=False) == 9
    assert nodes_of(*(bytes([byte]) for byte in answer), streams=False) == 9
    assert nodes_of("{'\u2028': ".replace("'", '"').encode() + b"[1, 2]}", streams=False) == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_each_event_of_a_stream_is_measured_by_itself(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_NODES", 9)
    event = f': "{end}data: [1, 2, 3]{end}{end}'.encode()
    for at in range(1, len(event)):
        size = MessageSize(streams=True)
        for _ in range(10):
            assert size.add(event[:at]) + size.add(event[at:]) == 5
    with pytest.raises(BudgetSpent, match="one event of more than 9 values"):
        nodes_of(*[f": comment{end}data: [1, 2, 3]{end}".encode()] * 10, streams=True)


def test_an_answer_in_another_encoding_is_refused() -> None:
    with pytest.raises(BudgetSpent, match="UTF-8"):
        nodes_of('{"a": 1}'.encode("utf-16"), streams=False)


# -- streams that misbehave ---


class ScriptedPeer:
    """An agent whose stream says what a test wants; asked for, its task is completed."""

    streaming = True

    def __init__(self, *said: TaskUpdate | Exception) -> None:
        self._said: Sequence[TaskUpdate | Exception] = said
        self.asked = 0

    async def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[TaskUpdate, None]:
        for update in self._said:
            if isinstance(update, Exception):
                raise update
            yield update

    async def subscribe(self, task_id: str) -> AsyncGenerator[TaskUpdate, None]:
        return
        yield  # a stream that ends at once

    async def get(self, task_id: str) -> TaskUpdate:
        self.asked += 1
        return TaskUpdate(task_id, "c", TaskState.COMPLETED)

    async def cancel(self, task_id: str) -> TaskUpdate:
        return TaskUpdate(task_id, "c", TaskState.CANCELED)

    async def close(self) -> None:
        pass


async def sent(peer: ScriptedPeer) -> list[TaskUpdate]:
    updates: list[TaskUpdate] = []

    async def emit(update: TaskUpdate) -> None:
        updates.append(update)

    await Exchange(peer, emit).send(Outgoing("hello", "m"))
    return updates


OURS = TaskUpdate("t1", "c", TaskState.WORKING)


async def test_what_is_told_of_other_tasks_is_left_out() -> None:
    foreign = TaskUpdate("t2", "c", TaskState.COMPLETED)
    done = TaskUpdate("t1", "c", TaskState.COMPLETED)
    peer = ScriptedPeer(OURS, foreign, done)
    assert await sent(peer) == [OURS, done]
    assert not peer.asked


async def test_a_stream_that_breaks_once_the_task_is_known_is_replaced_by_asking() -> None:
    peer = ScriptedPeer(OURS, PeerRefused("Invalid JSON-RPC response", 0, ""))
    updates = await sent(peer)
    assert updates[0] == OURS
    assert updates[-1].state is TaskState.COMPLETED
    assert peer.asked


def test_questions_are_answered_by_whom_they_were_asked():
    conversation = talk()
    codex = Sender("synapse-codex-8120", "codex", verified=True)
    task = begun(conversation, sender=codex)
    assert conversation.asked_of(codex) is None
    asked = conversation.apply(task.id, status(TaskState.INPUT_REQUIRED, "which?"))
    assert (asked.reason, told(conversation)[-1]) == ("which?", ("question", "which?"))
    assert conversation.asked_of(Sender("synapse-claude-8100", "claude", verified=True)) is None
    assert conversation.asked_of(codex) == conversation.asked_of(USER) == asked
    conversation.go_on(task.id, "red", codex)
    assert conversation.asked_of(USER) is None
    ended = conversation.apply(task.id, status(TaskState.COMPLETED, "red it is"))
    assert ended.answer == "red it is", "the answer is what came after the last question"
    with pytest.raises(TaskEnded):
        conversation.go_on(task.id, "more", codex)


def test_a_long_conversation_is_shed_from_its_beginning(monkeypatch):
    from synapse_tui.a2a.external import conversation as module

    monkeypatch.setattr(module, "MAX_ENTRIES", 10)
    conversation = talk()
    for number in range(20):
        task = begun(conversation, str(number))
        conversation.apply(task.id, TaskUpdate("", "c1", TaskState.COMPLETED, said("ok", f"m{number}")))
    assert len(conversation.entries) <= 12
    assert conversation.tasks[-1].text == "19"
