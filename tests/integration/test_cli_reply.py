"""`synapse reply`, `send --reply-to`, `send --response` inside an agent, and `broadcast`, as processes."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

import pytest

from synapse_tui.core.model import AgentState, MessageRequest, Reply, Sender, Task, TaskState
from tests.fake_agent import FakeAgent
from tests.integration.shell_kit import SYNAPSE, Shell, opened

ASKER = Sender("synapse-claude-8101", "claude", "http://127.0.0.1:8101", verified=True)


@pytest.fixture
async def codex(shell: Shell, stack: AsyncExitStack) -> FakeAgent:
    agent = await opened(stack, shell, "codex")
    agent.answer = None
    shell.enter(agent)
    return agent


def given(agent: FakeAgent, text: str = "review\nthis", *, expected: bool = True) -> Task:
    task = agent.accept(MessageRequest(text, ASKER, response_expected=expected))
    agent.give(task.id)
    return task


async def test_a_reply_is_for_the_task_that_the_agent_works_on(shell: Shell, codex: FakeAgent) -> None:
    task = given(codex)
    result = await shell.run("reply", "-", stdin="fine\nそう".encode())
    assert (result.code, result.out) == (0, f"{ASKER.sender_id}: done (task {task.id[:8]})\n")
    assert codex.tasks.get(task.id).answer == "fine\nそう"
    again = await shell.run("reply", "more")
    assert again.code == 4
    assert "has its answer already" in again.err
    assert f"synapse send {ASKER.sender_id}" in again.err


@pytest.mark.parametrize(("option", "state"), [("--fail", "failed"), ("--reject", "rejected")])
async def test_a_task_is_named_and_refused(shell: Shell, codex: FakeAgent, option: str, state: str) -> None:
    task = given(codex)
    given(codex)
    told = await shell.run("reply", "no such branch", "--to", task.id[:8], option, "--json")
    assert told.json == {"target": ASKER.sender_id, "task_id": task.id, "status": state}
    assert codex.tasks.get(task.id).reason == "no such branch"


@pytest.mark.parametrize("command", [("reply", "fine", "--to"), ("send", "asker", "fine", "--reply-to")])
@pytest.mark.parametrize("length", [36, 8])
async def test_a_task_is_named_by_the_id_that_its_sender_knows(
    shell: Shell, codex: FakeAgent, command: tuple[str, ...], length: int
) -> None:
    theirs = ["5b5fcc07-0000-4000-8000-000000000001", "5b5fcc08-0000-4000-8000-000000000002"]
    tasks = [
        codex.accept(
            MessageRequest("review", ASKER, response_expected=True, metadata={"sender_task_id": each})
        )
        for each in theirs
    ]
    for task in tasks:
        codex.give(task.id)
    assert (await shell.run(*command, theirs[0][:length])).code == 0
    assert codex.tasks.get(tasks[0].id).answer == "fine"
    assert codex.tasks.get(tasks[1].id).answer == ""
    unclear = await shell.run(*command, theirs[0][:7])
    assert unclear.code != 0
    assert codex.tasks.get(tasks[1].id).answer == ""


async def test_a_reply_to_an_ambiguous_address_names_who_got_it(
    shell: Shell, stack: AsyncExitStack, codex: FakeAgent
) -> None:
    asker, other = await opened(stack, shell, "claude"), await opened(stack, shell, "claude")
    sender = Sender(asker.agent_id, "claude", asker.endpoint, verified=True)
    task = codex.accept(MessageRequest("review", sender, response_expected=True))
    codex.give(task.id)
    sent = await shell.run("send", "claude", "fine", "--reply-to", task.id[:8])
    assert sent.code == 0
    assert f"the reply went to {asker.agent_id}" in sent.err
    assert "not to claude" not in sent.err
    assert other.agent_id in sent.err


async def test_an_answer_with_files_urls_and_data(shell: Shell, codex: FakeAgent) -> None:
    codex.cwd = shell.folder
    task = given(codex)
    plan = shell.folder / "a plan.md"
    plan.write_bytes(b"# \xff plan")
    (shell.folder / "other").touch()
    await shell.run(
        "reply", "see", "--file", "a plan.md", "--file", str(plan), "--file", "other", "--url", "https://example.org/x",
        "--data", '{"count": [3]}', "--message",
    )  # fmt: skip
    (artifact,) = codex.tasks.get(task.id).artifacts
    text, first, second, url, data = artifact.parts
    assert (artifact.text, artifact.as_message, text.text) == ("see", True, "see")
    assert (url.text, data.data) == ("https://example.org/x", {"count": [3]})
    assert (first.name, first.media_type) == ("a plan.md", "text/markdown")
    kept = shell.folder / ".synapse" / "files" / task.short_id
    kept = shell.folder / ".synapse" / "files" / task.short_id
    assert [first.path, second.path] == [str(kept / "a_plan.md"), str(kept / "other")]
    assert [path.read_bytes() for path in sorted(kept.iterdir())] == [b"# \xff plan", b""]


async def test_what_cannot_be_answered_is_told_and_nothing_is_sent(shell: Shell, codex: FakeAgent) -> None:
    task = given(codex)
    for words, told in (
        (["x", "--file", "/nowhere/x"], "/nowhere/x cannot be read: No such file"),
        (["--fail", "--data", "1"], "the reply is empty"),
    ):
        result = await shell.run("reply", *words)
        assert result.code == 2
        assert told in result.err, words
    assert not codex.tasks.get(task.id).state.final


async def test_an_agent_whose_folder_was_removed_can_still_speak(shell: Shell, codex: FakeAgent) -> None:
    task = given(codex)
    removing = ("sh", "-c", 'rm -r "$PWD"; exec "$@"', "sh", *SYNAPSE)
    result = await shell.run("reply", "done", program=removing)
    assert (result.code, result.err) == (0, "")
    assert codex.tasks.get(task.id).answer == "done"
    assert not shell.folder.exists()


async def test_what_awaits_a_reply(shell: Shell, codex: FakeAgent) -> None:
    assert "no tasks await a reply" in (await shell.run("reply", "--list")).err
    task = given(codex)
    table = (await shell.run("reply", "--list")).out.splitlines()
    assert [line.split() for line in table] == [
        ["TASK", "FROM", "STATE", "TEXT"],
        [task.id[:8], ASKER.sender_id, "working", "review", "this"],
    ]
    [listed] = json.loads((await shell.run("reply", "--list", "--json")).out)
    assert (listed["task_id"], listed["text"]) == (task.id, "review\nthis")


async def test_an_unknown_task_is_told_and_a_plain_message_offered(shell: Shell, codex: FakeAgent) -> None:
    task = given(codex)
    named = await shell.run("reply", "fine", "--to", "ffffffff")
    assert named.code == 4
    assert f"{codex.agent_id} has no task 'ffffffff'" in named.err
    assert f"awaiting a reply: {task.id[:8]} (from {ASKER.sender_id})" in named.err
    sent = await shell.run("send", "claude 1", "fine", "--reply-to", "ffffffff", "--json")
    assert sent.code == 4
    error: dict[str, str] = sent.json["error"]  # type: ignore[assignment]
    assert error["type"] == "TaskNotFound"
    assert "as a plain message: synapse send 'claude 1' MESSAGE" in error["hint"]
    assert not codex.tasks.get(task.id).state.final


async def test_an_agent_waits_for_a_task_of_its_own(
    shell: Shell, stack: AsyncExitStack, codex: FakeAgent
) -> None:
    gemini = await opened(stack, shell)
    gemini.answer = None
    process = await shell.start("send", "gemini", "review this", "--json")
    assert process.stderr is not None
    await process.stderr.readline()
    [own], [request], [sent] = list(codex.tasks), gemini.requests, list(gemini.tasks)
    assert request.metadata["sender_task_id"] == own.id
    assert (own.outgoing, own.target) == (True, gemini.agent_id)
    codex.service.answered(own.id, Reply("fine", in_reply_to=sent.id), verified=True)
    out, _ = await process.communicate()
    told = json.loads(out)
    assert (process.returncode, told["text"], told["status"]) == (0, "fine", "completed")
    assert told["task_id"] == sent.id, "the task that can be looked at, canceled, replied to"
    assert codex.tasks.get(own.id).reply == "told"


async def test_broadcast_gives_a_receipt_for_each_agent(
    shell: Shell, stack: AsyncExitStack, codex: FakeAgent
) -> None:
    gemini, claude = await opened(stack, shell), await opened(stack, shell, "claude")
    claude.state = AgentState.EXITED
    elsewhere = await opened(stack, shell, "claude", project="/other")
    gemini.answer = None
    result = await shell.run("broadcast", "lunch")
    [task] = list(gemini.tasks)
    assert (result.code, result.out) == (3, f"{gemini.agent_id}: queued (task {task.id[:8]})\n")
    assert "has exited" in result.err
    assert not elsewhere.requests
    assert not codex.requests
    told = json.loads((await shell.run("broadcast", "lunch", "--json")).out)
    assert {each["target"] for each in told} == {gemini.agent_id, claude.agent_id}


async def test_nobody_waits_for_a_message_that_lies_in_an_inbox(shell: Shell, stack: AsyncExitStack) -> None:
    agent = await opened(stack, shell)
    agent.answer = None
    agent.to_inbox = True
    result = await shell.run("send", "gemini", "by the way", "-p", "1")
    [task_id] = agent.task_ids
    assert (result.code, result.out) == (0, ""), "what stands there is an answer"
    assert f"{agent.agent_id}: queued: in the inbox (task {task_id[:8]})" in result.err
    assert "use --response to wait for its answer" in result.err
    receipt = (await shell.run("send", "gemini", "by the way", "-p", "1", "--no-response")).out
    assert receipt.startswith(f"{agent.agent_id}: queued: in the inbox (task ")
    assert [agent.outbox.read(task).state for task in agent.task_ids] == [TaskState.COMPLETED] * 2


async def test_who_asks_for_an_answer_waits_until_the_inbox_is_read_and_answered(
    shell: Shell, stack: AsyncExitStack
) -> None:
    agent = await opened(stack, shell, "codex")
    agent.answer = None
    agent.to_inbox = True
    asking = ("send", "codex", "which one?", "-p", "1", "--response")
    over = await shell.run(*asking, "--wait-timeout", "0.2")
    assert (over.code, over.out) == (7, "")
    assert "still open (queued: in the inbox)" in over.err
    await agent.cancel(next(iter(agent.tasks)).id)
    agent.outbox.take(next(iter(agent.tasks)).id)
    waiting = await shell.start(*asking)
    assert waiting.stderr is not None
    await waiting.stderr.readline()
    task = list(agent.tasks)[-1]
    shell.enter(agent)
    read = await shell.run("inbox")
    assert read.out.endswith(" which one?\n")
    assert f'user expects an answer: synapse reply "..." --to {task.short_id}' in read.err
    assert not agent.tasks.get(task.id).state.final, "it was read, not answered"
    assert (await shell.run("reply", "the blue one")).code == 0
    out, _ = await waiting.communicate()
    assert (waiting.returncode, out) == (0, b"the blue one\n")


async def test_a_question_ends_the_waiting_and_is_answered(
    shell: Shell, stack: AsyncExitStack, codex: FakeAgent
) -> None:
    gemini = await opened(stack, shell)
    gemini.answer = None
    process = await shell.start("send", "gemini", "review this")
    assert process.stderr is not None
    await process.stderr.readline()
    [own], [sent] = list(codex.tasks), list(gemini.tasks)
    gemini.give(sent.id)
    codex.service.answered(
        own.id, Reply("which file?\nof two", TaskState.INPUT_REQUIRED, in_reply_to=sent.id), verified=True
    )
    out, err = await process.communicate()
    assert (process.returncode, out.decode()) == (0, "which file?\nof two\n")
    assert f'answer it: synapse send {gemini.agent_id} "..." --task {sent.short_id}' in err.decode()
    assert codex.tasks.get(own.id).reply == "told", "nobody needs to be told of it again"

    process = await shell.start("send", "gemini", "the blue one", "--task", sent.short_id, "--json")
    assert process.stderr is not None
    await process.stderr.readline()
    follow_up = list(gemini.tasks)[-1]
    assert (follow_up.text, follow_up.follows) == ("the blue one", sent.id)
    assert gemini.tasks.get(sent.id).messages[-1].parts[0].text == "the blue one"
    codex.service.answered(own.id, Reply("done", in_reply_to=sent.id), verified=True)
    out, _ = await process.communicate()
    told = json.loads(out)
    assert (told["text"], told["status"], told["task_id"]) == ("done", "completed", sent.id)
    assert len(list(codex.tasks)) == 1, "one answer is waited for, not two"


async def test_agents_go_on_with_their_own_tasks_only(
    shell: Shell, stack: AsyncExitStack, codex: FakeAgent
) -> None:
    gemini = await opened(stack, shell)
    task = gemini.wait("a task of claude's", ASKER)
    refused = await shell.run("send", "gemini", "mine now", "--task", task.short_id, "--no-response")
    assert refused.code != 0
    assert f"task {task.short_id} was sent by {ASKER.sender_id}" in refused.err
    gemini.finish(task.id)
    shell.environ["SYNAPSE_AGENT_ID"] = ""
    ended = await shell.run("send", "gemini", "more", "--task", task.short_id, "--no-response")
    assert f"task {task.short_id} is completed already" in ended.err


async def test_a_shell_is_sent_nothing(shell: Shell, stack: AsyncExitStack) -> None:
    pane = await opened(stack, shell, "shell")
    shell.register(pane, receives=False)
    result = await shell.run("send", pane.agent_id, "ls")
    assert (result.code, result.err.splitlines()[0]) == (
        4,
        "synapse: shell takes no messages: it would run them",
    )
    assert not pane.requests


async def test_broadcast_leaves_out_a_shell(shell: Shell, stack: AsyncExitStack) -> None:
    gemini, pane = await opened(stack, shell), await opened(stack, shell, "shell")
    shell.register(pane, receives=False)
    result = await shell.run("broadcast", "lunch", "--no-response", "--json")
    assert (result.code, [each["target"] for each in json.loads(result.out)]) == (0, [gemini.agent_id])
    assert not pane.requests
