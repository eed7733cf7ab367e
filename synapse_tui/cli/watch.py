"""`synapse watch`: an agent that is left alone is kept going until its task is done."""

from __future__ import annotations

from typing import Any

import click

from synapse_tui.a2a import dialect
from synapse_tui.addresses import Address
from synapse_tui.agents.watch import WatchOrder, check_order
from synapse_tui.errors import InvalidValue, PeerRefused, SynapseError

from .caller import Caller
from .commands import Command
from .completing import complete_agents
from .options import ToldOption, json_option
from .output import TaskEnded, exit_code_for, fail, note, plain, show, show_json
from .tables import one_line, show_table
from .watch_follower import Follower, Watch, label

HEADS = ("AGENT", "TASK", "NUDGES", "EVERY", "WAITS FOR")


@click.command(name="watch", cls=Command)
@click.argument("agent", required=False, default="", shell_complete=complete_agents)
@click.option(
    "--every",
    cls=ToldOption,
    metavar="S",
    type=float,
    show_default="60",
    help="Seconds of rest before a nudge.",
)
@click.option(
    "--nudge", cls=ToldOption, metavar="TEXT", show_default="continue", help="What the agent is told."
)
@click.option(
    "--times", cls=ToldOption, metavar="N", type=int, show_default="5", help="How many nudges at most."
)
@click.option("--until", metavar="REGEX", default=None, help="An answer that matches ends the task.")
@click.option("--task", metavar="ID", default=None, help="The task; else the running or newest one.")
@click.option("--detach", is_flag=True, help="Return at once; the watch goes on.")
@click.option("--list", "listing", is_flag=True, help="List the watches.")
@click.option("--stop", is_flag=True, help="End the watch over AGENT.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    agent: str,
    detach: bool,
    listing: bool,
    stop: bool,
    as_json: bool,
    **order: Any,
) -> None:
    """Keep AGENT going until its task is done, and tell what happens.

    When it has rested for --every seconds with its task not done, it is told to go on, at most --times times.
    Its task is done when it says so (`synapse reply`), or when an answer matches --until. Ctrl+C ends the
    watch.
    """
    given = {name: value for name, value in order.items() if value is not None}
    _check(agent, given, detach=detach, listing=listing, stop=stop)
    check_order(WatchOrder(**given))
    desk = Desk(Caller.of(), as_json=as_json)
    if listing:
        code = desk.list(agent)
    elif stop:
        desk.stop(desk.one(agent))
        code = 0
    else:
        code = desk.watch(desk.one(agent), given, follow=not detach)
    if code:
        context.exit(code)


def _check(agent: str, given: dict[str, Any], *, detach: bool, listing: bool, stop: bool) -> None:
    """See whether the words fit together.

    Raises:
        InvalidValue: They do not.
    """
    if listing + stop + bool(given or detach) > 1:
        raise InvalidValue("--list and --stop take no other options", "use one of them at a time")
    for name in ("nudge", "until"):
        if not given.get(name, "text").strip():
            raise InvalidValue(f"--{name} is empty", "give it a text, or leave it out")
    if not agent and not listing:
        raise InvalidValue("no agent is named", "say: synapse watch AGENT, or synapse watch --list")


class Desk:
    """Asks the agents' servers, and tells what they answer.

    Args:
        caller: Who asks.
        as_json: Whether the data is JSON.
    """

    def __init__(self, caller: Caller, *, as_json: bool) -> None:
        self._caller = caller
        self._client = caller.client()
        self._json = as_json

    def one(self, address: str) -> Address:
        """The one agent that an address means.

        Raises:
            AddressError: Nobody, or several.
            InvalidValue: It means all.
        """
        found = self._caller.find(address)
        if len(found) != 1 or address.removeprefix("@").casefold() == "all":
            raise InvalidValue(f"'{address}' means {len(found)} agents", "watch over one at a time")
        return found[0]

    def list(self, address: str) -> int:
        """Tell of the watches that are on; gives the exit code."""
        agents = self._caller.find(address) if address else self._caller.here()
        watches, errors = [], []
        for agent in agents:
            try:
                watch = self._client.watch(agent.endpoint, dialect.watch_call())
            except SynapseError as error:
                errors.append(error)
                fail(error, name="synapse")
            else:
                watches += [watch] if watch is not None and watch["state"] == "on" else []
        if self._json:
            show_json(watches)
        elif watches:
            show_table(HEADS, [_row(watch) for watch in watches], shrinking=("WAITS FOR",))
        elif not errors:
            note("nobody is watched")
        return int(exit_code_for(errors[0])) if errors else 0

    def stop(self, agent: Address) -> None:
        """End the watch over an agent.

        Raises:
            PeerError: It cannot be reached, or is not watched.
        """
        watch = self._client.watch(agent.endpoint, dialect.END_WATCH, sender_id=self._caller.agent_id)
        if self._json:
            show_json(watch)
        else:
            show(f"{agent.agent_id}: {label(watch or {})}")

    def watch(self, agent: Address, given: dict[str, Any], *, follow: bool) -> int:
        """Begin a watch and, as a rule, follow it to its end.

        Raises:
            PeerError: It cannot be begun.
            AgentExited: The agent ended.
        """
        call = dialect.begin_watch_call(given)
        watch = self._client.watch(agent.endpoint, call, sender_id=self._caller.agent_id)
        if watch is None:
            raise PeerRefused(f"{agent.agent_id} has begun no watch", 502, "is it an agent of this version?")
        if not follow:
            self._begun(agent, watch)
            return 0
        follower = Follower(
            self._client,
            agent,
            note,
            alive=lambda: self._caller.lives(agent.agent_id),
            sender_id=self._caller.agent_id,
        )
        try:
            watch = follower.follow(watch)
        except KeyboardInterrupt:
            follower.end(watch)
            raise
        return self._over(agent, watch)

    def _begun(self, agent: Address, watch: Watch) -> None:
        if self._json:
            show_json(watch)
        else:
            every, times = watch.get("every", 0), watch.get("times", 0)
            task = str(watch.get("task", ""))[:8]
            show(f"{agent.agent_id}: watched (task {task}, every {every:g} s, at most {times} nudges)")

    def _over(self, agent: Address, watch: Watch) -> int:
        """Tell how it ended; gives the exit code."""
        task = self._client.task(agent.endpoint, str(watch.get("task", "")))
        text = task.texts[-1] if task.texts else ""
        if self._json:
            show_json({**watch, "text": text, "status": task.state.value})
        elif text:
            show(plain(text))
        if watch["state"] == "done":
            return 0
        ended = TaskEnded(f"{agent.agent_id}: {label(watch)}")
        fail(ended, name="synapse")
        return int(exit_code_for(ended))


def _row(watch: Watch) -> tuple[str, ...]:
    row = (
        watch.get("agent", ""),
        str(watch.get("task", ""))[:8],
        f"{watch.get('sent', 0)}/{watch.get('times', 0)}",
        f"{watch.get('every', 0):g} s",
        watch.get("waits_for", ""),
    )
    return tuple(one_line(str(cell)) for cell in row)
