"""Snapshots of agents for the widgets, with the marks and words for their states."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from synapse_tui.agents.delivery.interrupt import IDLE
from synapse_tui.agents.watch import WatchState
from synapse_tui.core.model import USER, AgentSpec, AgentState, DeliveryState, ExitStatus, Sender, Task
from synapse_tui.core.wording import called, sender_called
from synapse_tui.messages.reasons import Reason
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .states import DONE, ENDED, ENDED_SEEN, HOLDS, NEEDS_YOU, NOT_STARTED, State, state_mark
from .text import one_line, plural

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession

HELD_LONG = 120.0  # seconds after which a held message needs the user's attention
_KINDS = {"permission": tr("permission"), "question": tr("question"), "notice": tr("notice")}
_KIND = re.compile(rf"^(?:{'|'.join(_KINDS)}|dialog): ")
_PARTS = re.compile(r"\s+[·|–—-]\s+")
# state words that agents add to their titles; the pane shows its own
_STATE_WORDS = ("ready", "working", "waiting", "idle", "starting", "error", "done")
_SPINNER = re.compile(r"^(?:[^\x00-\x7f\w]+\s*)+")


def subject(detail: str) -> str:
    """Return what a dialog is about: of `permission: Bash command · rm -rf build · Proceed?` the command."""
    parts = _KIND.sub("", detail).split(" · ")
    return ([part for part in parts if not part.endswith(("?", "？"))] or parts)[-1]


def in_words(detail: str) -> str:
    """Return a detail with the kind of dialog in the language of the person."""
    kind, colon, about = detail.partition(": ")
    return f"{_KINDS[kind]}{colon}{about}" if kind in _KINDS else detail


@dataclass(frozen=True, slots=True)
class AgentView:
    agent_id: str
    number: int  # position, from 1
    label: str  # name or type, with the port if ambiguous
    agent_type: str
    state: AgentState = AgentState.STARTING
    detail: str = ""  # one line about the state for the user
    since: float = 0.0  # start of what its mark says, in seconds of the session's clock
    unseen: bool = False  # whether it has finished or started waiting since it was last focused
    rang: bool = False  # whether it has rung the bell since then
    title: str = ""  # window title, one line
    exit: ExitStatus | None = None  # None while it runs
    end_seen: bool = False  # whether the user has looked at it since it exited
    cwd: Path = Path()
    port: int = 0  # of its HTTP server
    held: int = 0  # messages waiting to be typed
    held_reason: str = ""  # why the first of them waits
    held_task: str = ""  # task id of the first of them
    held_seconds: float = 0.0
    answers: int = 0  # to messages written in its pane, while that is not in view
    unread: int = 0  # unread messages in its inbox
    unread_task: str = ""  # task id of the first of them
    watch: str = ""  # state of its watch: `watched 2/5`, `gave up 5/5`
    gave_up: bool = False  # whether the watch gave up and nothing has happened since
    external: bool = False  # whether it is an external A2A agent
    receives: bool = True  # whether it takes messages; a shell does not
    # why it did not start; empty while that is tried again, None if it did
    failed: str | None = None
    # whether none of its hooks has run yet, so that locks are not enforced
    unproved: bool = False

    @property
    def needs_attention(self) -> bool:
        """Whether the user should look: it is stuck, finished unseen, or has held a message for long."""
        return self.stuck or self.done or self.held_long

    @property
    def done(self) -> bool:
        """Whether it has finished unseen and does nothing since."""
        return self.mark is DONE

    @property
    def stuck(self) -> bool:
        """Whether it needs the user to continue: it waits, has failed or exited, or its watch gave up."""
        if self.exit is not None:
            return not self.end_seen
        return (
            bool(self.failed)
            or self.gave_up
            or self.state in (AgentState.WAITING, AgentState.ERROR, AgentState.SUSPENDED)
        )

    @property
    def held_long(self) -> bool:
        return self.held_seconds > HELD_LONG and self.exit is None

    @property
    def call(self) -> str:
        """Return the shortest reason for needing the user, without the kind of dialog."""
        if self.exit is not None:
            return tr(self.exit.words)
        if self.state in (AgentState.WAITING, AgentState.ERROR):
            return in_words(subject(self.detail)) or self.mark.word
        return self.watch if self.gave_up else self.mark.word

    @property
    def asks(self) -> bool:
        return self.exit is None and self.state is AgentState.WAITING

    @property
    def interruptible(self) -> bool:
        """Whether an interrupt has a turn or a question to stop."""
        return self.exit is None and not self.external and self.state not in IDLE

    @property
    def mark(self) -> State:
        """Return its state as the user sees it; a held message may outrank its own."""
        if self.exit is not None:
            return ENDED_SEEN if self.end_seen else ENDED
        if self.failed:
            return NOT_STARTED
        if self.gave_up:
            return NEEDS_YOU
        own = state_mark(self.state, unseen=self.unseen)
        # What waits for the end of a turn waits for nothing that a person has to do, unless for long.
        stays = self.state is not AgentState.PROCESSING or self.held_long
        return HOLDS if self.held and stays and own.rank > HOLDS.rank else own

    @property
    def state_text(self) -> str:
        if self.exit is not None:
            return tr(self.exit.words)
        word = self.mark.word
        if self.mark is HOLDS:
            word = tr(f"{state_mark(self.state).word}, holds messages")
        return f"{word}: {in_words(self.detail)}" if self.detail else word


def calling(agents: Sequence[AgentView], active: str) -> list[AgentView]:
    """Return the other agents that need the user, most urgent first; of equals those after the active one."""
    ordered = sorted(agents, key=lambda each: (each.mark.rank, each.since, each.number))
    place = next((place for place, each in enumerate(ordered) if each.agent_id == active), -1)
    others = [*ordered[place + 1 :], *ordered[: max(place, 0)]]
    return sorted((each for each in others if each.needs_attention), key=lambda each: each.mark.rank)


def still_title(title: str, known: Collection[str] = ()) -> str:
    """Return a window title without spinner symbols and words that the pane already shows."""
    words = {word.casefold() for word in (*known, *_STATE_WORDS)}
    parts = _PARTS.split(_SPINNER.sub("", one_line(title)))
    return " · ".join(part for part in parts if part and part.casefold() not in words)


class Numbers:
    """Gives agents their numbers: the lowest that is free, for as long as the agent is there.

    One that comes back gets its number again, unless another has it.
    """

    def __init__(self, given: Mapping[str, int] | None = None) -> None:
        self._earlier = dict(given or {})
        self.given: dict[str, int] = {}

    def follow(self, ids: Sequence[str]) -> None:
        self._earlier |= self.given
        self.given = {each: number for each, number in self.given.items() if each in ids}
        new = [each for each in ids if each not in self.given]
        for each in sorted(new, key=lambda one: one not in self._earlier):
            number = self._earlier.get(each, 0)
            self.given[each] = number if self._is_free(number) else self.free(1)[0]

    def free(self, count: int) -> list[int]:
        """Return the lowest numbers that no agent has."""
        return list(itertools.islice(filter(self._is_free, itertools.count(1)), count))

    def _is_free(self, number: int) -> bool:
        return number > 0 and number not in self.given.values()


def expected_view(spec: AgentSpec, number: int) -> AgentView:
    return AgentView("", number, one_line(spec.name or spec.profile), spec.profile)


def progress(agents: Sequence[AgentView], expected: int = 0) -> str:
    """Return how many agents have started: `10 agents, 4 ready`; empty once all have."""
    alive = [agent for agent in agents if agent.exit is None and not agent.external]
    ready = sum(agent.state is not AgentState.STARTING for agent in alive)
    count = len(alive) + expected
    return tr(f"{plural(count, 'agent')}, {ready} ready") if ready < count and count > 1 else ""


def view_agents(
    sessions: Sequence[AgentSession],
    *,
    numbers: Mapping[str, int] | None = None,
    rang: AbstractSet[str] = frozenset(),
    seen_ends: AbstractSet[str] = frozenset(),
    unproved: AbstractSet[str] = frozenset(),
    answers: Mapping[str, int] | None = None,
    now: datetime | None = None,
    clock: float | None = None,
) -> list[AgentView]:
    names = Counter(session.name.lower() for session in sessions if session.name)
    names += Counter(session.agent_type.lower() for session in sessions)
    places = numbers or {session.agent_id: place for place, session in enumerate(sessions, 1)}
    views = []
    for session in sessions:
        agent_id = session.agent_id
        view = _view(
            session,
            places[agent_id],
            names,
            now,
            rang=agent_id in rang,
            end_seen=agent_id in seen_ends,
            unproved=agent_id in unproved and session.exit is None,
            answers=answers.get(agent_id, 0) if answers else 0,
        )
        views.append(view if now is None or clock is None else _since_held(view, session, now, clock))
    return views


def _since_held(view: AgentView, session: AgentSession, now: datetime, clock: float) -> AgentView:
    """Let the age of an agent that holds messages be that of the hold, not of its last turn's end."""
    if view.mark is not HOLDS:
        return view
    began = min(task.since for task in _held(session))
    return replace(view, since=clock - (now - began).total_seconds())


def _held(session: AgentSession) -> list[Task]:
    return [task for task in session.tasks.unfinished() if task.delivery is DeliveryState.HELD]


def _held_reason(held: Sequence[Task]) -> str:
    """Return why the first message waits, and whether others wait for something else than for it."""
    if not held:
        return ""
    reason = tr(one_line(held[0].reason))
    others = any(task.reason not in (held[0].reason, Reason.BEHIND) for task in held)
    return tr(f"{reason}, among other reasons") if others else reason


def _view(
    session: AgentSession,
    number: int,
    names: Counter[str],
    now: datetime | None,
    *,
    rang: bool,
    end_seen: bool,
    unproved: bool,
    answers: int,
) -> AgentView:
    name = session.name or session.agent_type
    report = session.report
    unread = session.control.unread()
    watch, gave_up_at = _watch(session)
    held = _held(session)
    kind = session.agent_type
    known = (
        name,
        session.spec.name,
        kind,
        session.profile.display,
        f"{kind}-{session.port}",
        f"{name}-{session.port}",
    )
    unparked = [task.since for task in held if Reason.of(task.reason) is not Reason.HELD_BY_USER]
    return AgentView(
        agent_id=session.agent_id,
        number=number,
        label=one_line(name if names[name.lower()] == 1 else f"{name}-{session.port}"),
        agent_type=session.agent_type,
        state=AgentState.EXITED if session.exit is not None else report.state,
        detail=one_line(report.detail),
        since=report.since if gave_up_at is None else gave_up_at,
        unseen=session.unseen,
        rang=rang,
        title=still_title(session.terminal.title, known),
        exit=session.exit,
        end_seen=end_seen,
        cwd=session.cwd,
        port=session.port,
        held=len(held),
        held_reason=_held_reason(held),
        held_task=held[0].id if held else "",
        held_seconds=(now - min(unparked)).total_seconds() if now is not None and unparked else 0.0,
        unread=len(unread),
        unread_task=unread[0].task.id if unread else "",
        watch=watch,
        gave_up=gave_up_at is not None,
        unproved=unproved,
        answers=answers,
        receives=session.profile.receives,
    )


def _watch(session: AgentSession) -> tuple[str, float | None]:
    """Return a few words on an agent's watch, and when it gave up if nothing has happened since."""
    report = session.watcher.report
    if report is not None and report.on:
        return tr(f"watched {report.count}"), None
    if report is None or report.state is not WatchState.GAVE_UP or report.ended is None:
        return "", None
    rests = session.exit is None and session.report.since <= report.ended
    return (tr(f"gave up {report.count}"), report.ended) if rests else ("", None)


WAITING = (DeliveryState.QUEUED, DeliveryState.HELD)
SEND_NOW, SEND_AGAIN_NOW, SEND_AGAIN = tr("send now"), tr("send again now"), tr("send again")
HOLD, RELEASE, CANCEL = tr("hold"), tr("release"), tr("cancel")


def commands_of(task: Task, *, parked: bool) -> dict[str, str]:
    """Return what a person can do with a message: the commands, each with its words.

    Args:
        task: The message.
        parked: Whether it waits until a person releases it.
    """
    commands: dict[str, str] = {}
    if task.delivery in WAITING and not task.state.final:
        reason = Reason.of(task.reason)
        commands["send_now"] = SEND_AGAIN_NOW if reason is Reason.UNCERTAIN else SEND_NOW
        if reason not in (Reason.UNCERTAIN, Reason.IN_INBOX):
            commands["hold"] = RELEASE if parked or reason is Reason.NO_PROFILE else HOLD
    if task.state.final:
        commands["again"] = SEND_AGAIN
    else:
        commands["cancel"] = CANCEL
    return commands


def party(agent_id: str, labels: Mapping[str, str]) -> str:
    """Return what a person calls an agent or a sender in the application."""
    return _short(called(agent_id, labels))


_OF_SYNAPSE = re.compile(r"synapse-(?:[\w-]+-\d{1,5}|system)(?:@.*)?\Z", re.DOTALL)


def _short(name: str) -> str:
    """Return an id without what all begin with; a name stays as it is."""
    return one_line(name.removeprefix("synapse-") if _OF_SYNAPSE.match(name) else name)


def sender_name(sender: Sender, labels: Mapping[str, str]) -> str:
    """Return who sent a message, with a `?` if that is not proved; see `proof`."""
    return _short(sender_called(sender, labels))


def named(agent_id: str, labels: Mapping[str, str]) -> str:
    """Return an agent's name and kind: `alice (claude)`."""
    name, kind = party(agent_id, labels), kind_of(agent_id)
    shown = agent_id.startswith("synapse-") and not name.startswith(kind)
    return f"{name} ({kind})" if shown else name


def proof(sender: Sender) -> str:
    """Explain the `?` after a sender's name; empty if the sender is verified."""
    if sender.verified:
        return ""
    if sender.sender_id == USER.sender_id:
        return tr("  (unverified: your shell, or a program that does not sign)")
    return tr("  (unverified)")


def kind_of(agent_id: str) -> str:
    """Return the type in an agent id (`synapse-<type>-<port>`)."""
    return agent_id.partition("@")[0].removeprefix("synapse-").rsplit("-", 1)[0]
