"""All that keeps the tasks and messages of one agent, through all its processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from synapse_tui.events import EventBus
from synapse_tui.messages.follow_ups import FollowUps
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.service import TaskDesk
from synapse_tui.messages.streams import TaskFeed
from synapse_tui.messages.tasks import TaskBook, TaskFinder
from synapse_tui.model import MessageRequest, Task

from .delivery.briefing import Briefing
from .delivery.intake import Intake, MessageStyle
from .delivery.outbox_control import OutboxControl
from .profiles.profile import Profile
from .turns import TurnTracker
from .watcher import Watcher


@dataclass(frozen=True, slots=True)
class Acts:
    """What an agent's session does with messages, and what it tells of itself.

    Attributes:
        take: Takes a message, and gives its own task.
        cancel: Takes a message back.
        wake: Lets everyone who waits for a change of the agent look again.
        turns: Gives the turns of its process; None while there is none.
    """

    take: Callable[[MessageRequest], Task]
    cancel: Callable[[str], Awaitable[Task]]
    wake: Callable[[], None]
    turns: Callable[[], TurnTracker | None]


class Tasking:
    """The tasks of one agent, what waits for it, and those who work with them.

    Args:
        book: Its tasks.
        agent_id: The agent.
        profile: What is known of it.
        events: Told of what happens.
        acts: What its session does.
        style: How messages reach it.
        told_as: Agent id under which its conversation got its instructions; empty for not yet.
        began: When that conversation began, in seconds since the epoch; 0 for now.
    """

    def __init__(
        self,
        book: TaskBook,
        agent_id: str,
        profile: Profile,
        events: EventBus,
        acts: Acts,
        *,
        style: MessageStyle,
        told_as: str,
        began: float,
    ) -> None:
        self._turns = acts.turns
        self.outbox = Outbox(book)
        self.control = OutboxControl(book, self.outbox, cancel=acts.cancel, wake=acts.wake)
        self.feed = TaskFeed(book)
        self.finder = TaskFinder(book)
        self.intake = Intake(agent_id, profile, book, self.outbox, style)
        self.briefing = Briefing(
            book,
            self.outbox,
            accept=acts.take,
            wake=acts.wake,
            wanted=profile.instructions and profile.receives,
            told_as=told_as,
            began=began,
        )
        self.watcher = Watcher(
            agent_id,
            profile,
            book=book,
            outbox=self.outbox,
            events=events,
            accept=acts.take,
            cancel=acts.cancel,
            wake=acts.wake,
        )
        self.follow_ups = FollowUps(book, self.outbox, self.watcher, self._works_on)
        self.desk = TaskDesk(
            book,
            self.outbox,
            agent_id,
            running=self.running,
            newest=self._newest,
            goes_on=lambda task_id: bool(self.follow_ups.waiting(task_id)),
            answered=self._answered,
        )

    def use(self, profile: Profile) -> None:
        """Go by another profile."""
        self.intake.profile = self.watcher.profile = profile
        self.briefing.wanted = profile.instructions and profile.receives

    def running(self) -> str:
        """Id of the task on which the agent works, or that is watched; empty for none."""
        turns = self._turns()
        return (turns.running if turns is not None else "") or self.watcher.task_id

    def _newest(self) -> str:
        turns = self._turns()
        return turns.newest if turns is not None else ""

    def _works_on(self, task_id: str) -> bool:
        turns = self._turns()
        return turns is not None and turns.works_on(task_id)

    def _answered(self, task_id: str) -> None:
        turns = self._turns()
        if turns is not None:
            turns.answered(task_id)
