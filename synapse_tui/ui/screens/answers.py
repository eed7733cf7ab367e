"""Answers to messages that a person wrote in a pane: shown there as cards, until taken or let go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from textual import events
from textual.timer import Timer

from synapse_tui.core.model import AgentState, DeliveryState, Task, TaskState
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.service import by_person, reply_of
from synapse_tui.system.language import tr
from synapse_tui.widgets.answer_card import AnswerView
from synapse_tui.widgets.fit import Hint
from synapse_tui.widgets.states import DONE, ENDED, NEEDS_YOU, State
from synapse_tui.widgets.terminal_view import TerminalView

from .messages import MessageActions
from .shell import Shell

LOOK_SECONDS = 0.5
PLAIN_SECONDS = 1.0  # how long a card must have been in view before plain keys are for it
MOST_KNOWN = 500  # messages whose shown answer is remembered
_VERBS: dict[TaskState, tuple[State, str]] = {
    TaskState.COMPLETED: (DONE, tr("answers you")),
    TaskState.INPUT_REQUIRED: (NEEDS_YOU, tr("asks you")),
    TaskState.FAILED: (ENDED, tr("could not do it")),
    TaskState.REJECTED: (ENDED, tr("refuses")),
}


class Answers:
    """The cards of all panes; those of a pane lie on each other, the latest on top."""

    def __init__(self, app: Shell, messages: MessageActions) -> None:
        self._app = app
        self._messages = messages
        self._host = app.host
        self._main = app.main
        self._cards: dict[str, list[AnswerView]] = {}  # by the id of the agent in whose pane was asked
        self._known: dict[str, str] = {}  # answers that have been shown, by task id
        self._timer: Timer | None = None
        self._front: AnswerView | None = None  # the card over the composer that has the keyboard
        self._front_at = 0.0
        self._plain = False  # whether the hints of that card show plain keys
        self.clock: Callable[[], float] = monotonic
        self._main.watch(self._main, "covered", self.look, init=False)

    def task_changed(self, task: Task) -> None:
        """Show the answer of a message that was written in a pane, once it has one."""
        asker, text = task.sender.sender_id, self._text(task)
        if not text or asker not in self._host.agents or self._known.get(task.id) == text:
            return
        self._known.pop(task.id, None)
        self._known[task.id] = text
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        mark, verb = _VERBS[task.state]
        label, composed = self._app.label(task.target), _composed(task)
        card = AnswerView(task.id, task.target, mark, label, verb, text, self.clock(), composed=composed)
        others = [each for each in self._cards.get(asker, ()) if each.task_id != task.id]
        self._set(asker, [*others, card])

    def _text(self, task: Task) -> str:
        """Return the answer to show; empty for none. With `oneway` only explicit ones are shown."""
        if not by_person(task) or task.delivery is not DeliveryState.DONE or task.state not in _VERBS:
            return ""
        explicit = _composed(task)
        wanted = task.state is TaskState.COMPLETED and self._host.settings.text("a2a.flow") != "oneway"
        return reply_of(task).text.strip() if explicit or wanted else ""

    def agent_removed(self, agent_id: str) -> None:
        self._set(agent_id, [])

    def agent_renamed(self, agent_id: str) -> None:
        """Call the agent by its new name on the cards of its answers."""
        name = self._app.label(agent_id)
        for asker, cards in tuple(self._cards.items()):
            renamed = [replace(card, name=name) if card.agent_id == agent_id else card for card in cards]
            if renamed != cards:
                self._set(asker, renamed)

    def _set(self, agent_id: str, cards: list[AnswerView]) -> None:
        if cards:
            self._cards[agent_id] = cards
        else:
            self._cards.pop(agent_id, None)
        self._main.answers = {each: len(found) for each, found in self._cards.items()}
        if self._cards and self._timer is None:
            self._timer = self._main.set_interval(LOOK_SECONDS, self.look)
        elif not self._cards and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.look()
        self._main.show_agents()

    def look(self) -> None:
        """Show the latest card of each pane, with its age and the keys that work now."""
        view = self._app.active_view
        front = self._top(self._main.active)
        covered = self._main.covered
        if covered or not isinstance(view, TerminalView) or not view.has_focus or not view.answer.display:
            front = None
        elif view.answer.folded:
            front = None  # it shows no keys
        if front != self._front:
            self._front, self._front_at = front, self.clock()
        # Enter and Esc can then mean nothing else: not a draft, not the agent's turn, not the tour.
        session = self._host.agents.get(self._main.active)
        old = self._front is not None and self.clock() - self._front_at >= PLAIN_SECONDS
        self._plain = old and session is not None and session.resting and self._main.tour_panel.page is None
        for pane in self._main.deck.panes:
            top = self._top(pane.agent_id)
            if top is not None or pane.answer is not None:
                active = pane.agent_id == self._main.active
                keys = () if covered else self._keys(plain=self._plain and active)
                if not active:  # keys are for the active pane; its buttons can be clicked
                    keys = [hint._replace(key="") for hint in keys]
                pane.show_answer(top, keys, self.clock() - top.since if top else 0.0)

    def _top(self, agent_id: str) -> AnswerView | None:
        cards = self._cards.get(agent_id)
        return replace(cards[-1], earlier=len(cards) - 1) if cards else None

    def _keys(self, *, plain: bool) -> list[Hint]:
        way = self._app.keymap.way
        return [
            Hint("Enter" if plain else way("take_answer"), "take", "take_answer"),
            Hint(way("last_message"), "read", "last"),
            Hint("Esc" if plain else way("let_go"), "let go", "let_go"),
        ]

    # Keys

    each_key = False

    def takes(self, event: events.Key) -> bool:
        """Whether a key without the leader is for the card: only one whose hints say so."""
        action = {"enter": self.action_take_answer, "escape": self.action_let_go}.get(event.key)
        if action is None or not self._plain:
            return False
        self.look()
        if self._plain:
            action()
            return True
        return False

    def action_take_answer(self, agent_id: str = "") -> None:
        """Put the answer into the composer of the agent in whose pane was asked, for the user to send."""
        agent_id = agent_id or self._main.active
        card = self._top(agent_id)
        session, pane = self._host.agents.get(agent_id), self._main.deck.pane(agent_id)
        if card is None or session is None or pane is None or not isinstance(pane.view, TerminalView):
            self._app.notice("no answer to take here")
            return
        reading = session.reading()
        if session.report.state is AgentState.WAITING or reading.dialog is not None:
            why = tr("it asks something: answer that first")
        elif session.exit is not None or not reading.visible:
            why = tr("its composer is not visible")
        elif pane.view.mentioning:
            why = tr("finish your message first")
        else:
            why = Reason.VI_NORMAL if reading.vi_normal else ""
        if why:
            self._app.notice(f"not taken into {self._app.label(agent_id)}: {why}", "warning")
            return
        self._main.go_to(agent_id)
        pane.view.paste(f"\n{card.text}" if reading.draft else card.text)
        self._drop(agent_id)

    def action_last_message(self, agent_id: str = "") -> None:
        """Show the message whose answer the pane shows, or else the last one that was sent from it."""
        agent_id = agent_id or self._main.active
        card = self._top(agent_id)
        if card is not None:
            self._messages.action_show(card.task_id)
        else:
            self._messages.show_last(agent_id)

    def action_let_go(self, agent_id: str = "") -> None:
        agent_id = agent_id or self._main.active
        if self._top(agent_id) is not None and not self._main.board_shown:
            self._drop(agent_id)

    def _drop(self, agent_id: str) -> None:
        self._set(agent_id, self._cards[agent_id][:-1])


def _composed(task: Task) -> bool:
    """Whether what is shown of a task was written for the one who asked, and is not what a turn wrote."""
    return task.replied or task.state is TaskState.INPUT_REQUIRED
