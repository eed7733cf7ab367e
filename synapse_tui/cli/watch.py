"""`synapse watch`: keeps an unattended agent working until its task is done."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client
from synapse_tui.agents.watch import WatchOrder, check_order, nudges_text
from synapse_tui.core.addresses import Address
from synapse_tui.core.errors import AgentExited, InvalidValue, PeerRefused, PeerUnreachable, SynapseError
from synapse_tui.system.language import tr

from .caller import Caller
from .commands import Command, DefaultedOption, json_option
from .completion import complete_agents
from .output import TaskEnded, end_with, fail, note, one_line, plain, show, show_json, show_table

Watch = dict[str, Any]
LONG_POLL = 30.0
"""In seconds."""
PAUSE = 0.5
MAX_FAILURES = 20
"""Consecutive polls that may fail while the agent's process is alive, such as during an upgrade."""
_FLEETING = ("begins", "a nudge is on its way")


@click.command(name="watch", cls=Command)
@click.argument("agent", required=False, default="", shell_complete=complete_agents)
@click.option(
    "--every",
    cls=DefaultedOption,
    metavar="S",
    type=float,
    show_default="60",
    help="Idle seconds before a nudge.",
)
@click.option(
    "--nudge",
    metavar="TEXT",
    default=None,
    help="Text of a nudge; by default to continue, or to reply that it is done.",
)
@click.option(
    "--times", cls=DefaultedOption, metavar="N", type=int, show_default="5", help="Maximum number of nudges."
)
@click.option("--until", metavar="REGEX", default=None, help="End the task when an answer matches.")
@click.option("--task", metavar="ID", default=None, help="The task; default: the running or newest one.")
@click.option("--detach", is_flag=True, help="Return at once; the watch continues.")
@click.option("--list", "listing", is_flag=True, help="List the watches.")
@click.option("--stop", is_flag=True, help="Stop watching AGENT.")
@json_option
@click.pass_context
def watch_command(
    context: click.Context,
    /,
    agent: str,
    detach: bool,
    listing: bool,
    stop: bool,
    as_json: bool,
    **order: Any,
) -> None:
    """Keep AGENT going until its task is done, and report what happens.

    Whenever AGENT has been idle for --every seconds and its task is not done, it gets a nudge, at most
    --times times. The task is done when AGENT says so (`synapse reply`) or when an answer matches --until.
    Ctrl+C stops the watch.

    Examples:
      synapse watch claude
      synapse watch claude --every 300 --times 20 --until 'ALL DONE'
      synapse watch --list
    """
    given = {name: value for name, value in order.items() if value is not None}
    if listing + stop + bool(given or detach) > 1:
        raise InvalidValue("--list and --stop take no other options", "use one of them at a time")
    for name in ("nudge", "until"):
        if not given.get(name, "text").strip():
            raise InvalidValue(f"--{name} is empty", "give it a text, or leave it out")
    check_order(WatchOrder(**given))
    caller = Caller.of()
    if listing:
        _list(context, caller, agent, as_json=as_json)
        return
    if not agent:
        raise InvalidValue("no agent given", "use synapse watch AGENT, or synapse watch --list")
    target = _one(caller, agent)
    if stop:
        watch = caller.client().call(target.endpoint, calls.end_watch(), sender_id=caller.agent_id)
        _show(watch, f"{target.agent_id}: {tr(label(watch or {}))}", as_json=as_json)
    else:
        end_with(context, [_watch(caller, target, given, follow=not detach, as_json=as_json)])


def _one(caller: Caller, address: str) -> Address:
    found = caller.find(address)
    if len(found) != 1 or address.removeprefix("@").casefold() == "all":
        raise InvalidValue(f"'{address}' matches {len(found)} agents", "watch one at a time")
    return found[0]


def _show(watch: Watch | None, text: str, *, as_json: bool) -> None:
    if as_json:
        show_json(watch)
    else:
        show(text)


def _list(context: click.Context, caller: Caller, address: str, *, as_json: bool) -> None:
    client, watches, errors = caller.client(), [], []
    for agent in caller.find(address) if address else caller.here():
        try:
            watch = client.call(agent.endpoint, calls.watch())
        except SynapseError as error:
            errors.append(error)
            fail(error, name="synapse")
        else:
            watches += [watch] if watch is not None and watch["state"] == "on" else []
    if as_json:
        show_json(watches)
    elif watches:
        heads = ("AGENT", "TASK", "NUDGES", "EVERY", "WAITS FOR")
        show_table(heads, [_row(watch) for watch in watches], shrinking=("WAITS FOR",))
    elif not errors:
        note("no watches")
    end_with(context, errors)


def _row(watch: Watch) -> tuple[str, ...]:
    row = (
        watch.get("agent", ""),
        str(watch.get("task", ""))[:8],
        f"{watch.get('sent', 0)}/{watch.get('times', 0)}",
        f"{watch.get('every', 0):g} s",
        tr(str(watch.get("waits_for", ""))),
    )
    return tuple(one_line(str(cell)) for cell in row)


def _watch(
    caller: Caller, agent: Address, given: dict[str, Any], *, follow: bool, as_json: bool
) -> TaskEnded | None:
    """Start a watch and, unless detached, follow it to its end; return an error if the task is not done."""
    client = caller.client()
    call = calls.begin_watch(given)
    watch = client.call(agent.endpoint, call, sender_id=caller.agent_id)
    if watch is None:
        raise PeerRefused(f"{agent.agent_id} did not start a watch", 502, "it may run in an older version")
    short = str(watch.get("task", ""))[:8]
    if not follow:
        every, times = watch.get("every", 0), watch.get("times", 0)
        begun = tr(
            f"{agent.agent_id}: watched (task {short}, every {every:g} s, at most {nudges_text(times)})"
        )
        _show(watch, begun, as_json=as_json)
        return None
    follower = Follower(
        client, agent, note, alive=lambda: caller.lives(agent.agent_id), sender_id=caller.agent_id
    )
    try:
        watch = follower.follow(watch)
    except KeyboardInterrupt:
        follower.end(watch)
        raise
    task = client.call(agent.endpoint, calls.task(str(watch.get("task", ""))))
    text = task.texts[-1] if task.texts else ""
    if as_json or text:
        _show({**watch, "text": text, "status": task.state.value}, plain(text), as_json=as_json)
    if watch["state"] == "done":
        return None
    ended = TaskEnded(f"{agent.agent_id}: {label(watch)}")
    fail(ended, name="synapse")
    return ended


class Follower:
    """Follows one watch to its end by long polling; `report` is called with a line for each event."""

    def __init__(
        self,
        client: Client,
        agent: Address,
        report: Callable[[str], None],
        *,
        alive: Callable[[], bool],
        sender_id: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._agent = agent
        self._report = report
        self._sender_id = sender_id
        self._alive = alive
        self._sleep = sleep
        self._last_step = 0
        self._standing = ""
        self._failures = 0

    def follow(self, watch: Watch) -> Watch:
        self._narrate(watch)
        while watch["state"] == "on":
            newer = self._look(watch)
            if newer is None or newer.get("task") != watch.get("task"):
                return {**watch, "state": "stopped"}
            self._narrate(newer)
            watch = newer
        return watch

    def end(self, watch: Watch) -> None:
        with contextlib.suppress(SynapseError):
            now = self._client.call(self._agent.endpoint, calls.watch())
            if now is not None and now.get("task") == watch.get("task"):
                self._client.call(self._agent.endpoint, calls.end_watch(), sender_id=self._sender_id)

    def _look(self, watch: Watch) -> Watch | None:
        call = calls.watch(seen=int(watch.get("version", -1)), seconds=LONG_POLL)
        try:
            newer = self._client.call(self._agent.endpoint, call)
        except PeerUnreachable as error:
            if not self._alive():
                raise AgentExited(
                    f"{self._agent.agent_id} ended while it was watched",
                    "if its host was killed, restore it and the watch goes on; else its task has failed",
                ) from error
            self._failures += 1
            if self._failures >= MAX_FAILURES:
                raise
            self._sleep(PAUSE)
            return watch
        self._failures = 0
        return newer

    def _narrate(self, watch: Watch) -> None:
        last = ""
        for step in watch.get("steps", ()):
            if step["number"] > self._last_step:
                self._last_step = step["number"]
                last = str(step["text"])
                self._say(datetime.fromisoformat(step["at"]), last)
        standing = str(watch.get("waits_for", ""))
        if watch.get("next_in") is not None:
            standing = standing.rpartition(" in ")[0] + f" in {watch['every']:g} s"
        if standing not in ("", *_FLEETING, self._standing) and not last.endswith(standing):
            self._say(datetime.now().astimezone(), standing)
        self._standing = standing

    def _say(self, at: datetime, text: str) -> None:
        self._report(f"{at.astimezone():%H:%M:%S}  {plain(tr(' '.join(text.split())))}")


def label(watch: Watch) -> str:
    steps = watch.get("steps") or [{"text": watch.get("state", "")}]
    return plain(str(steps[-1]["text"]))
