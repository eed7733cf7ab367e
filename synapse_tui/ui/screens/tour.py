"""The tour of the first minute: three things that a person does, with two scripted agents.

Nothing in it is staged: the agents are real processes, and their messages take the way of all messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum, auto
from functools import partial
from shutil import which
from time import monotonic
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.keys import _character_to_key
from textual.timer import Timer

from synapse_tui.core.model import DEMO_AGENTS, AgentState, DeliveryState, Task, TaskState
from synapse_tui.messages.outbox import BEING_TYPED
from synapse_tui.messages.reasons import Reason
from synapse_tui.settings.keymap import key_label, leader_label
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import name_list, tr
from synapse_tui.widgets.driver.input_events import TerminalKeyRelease
from synapse_tui.widgets.fit import Hint, pad
from synapse_tui.widgets.layout import GAP, MIN_WIDTH
from synapse_tui.widgets.states import delivery_mark
from synapse_tui.widgets.terminal_view import TerminalView
from synapse_tui.widgets.text import one_line
from synapse_tui.widgets.tour import PANEL_CELLS, PANEL_EDGES, ROOMY, Runs, TourPage
from synapse_tui.widgets.views import calling

from .messages import SENDING, MessageActions
from .new_agent import Find, NewAgentActions
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.profile import Profile
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.settings.files import SettingsFiles

SETTING = "tui.tour"
LOOK_SECONDS = 0.15  # how often to look at what the agents' composers hold
KEY_SECONDS = 0.05  # between two keys that the tour types
ANSWER_SECONDS = 1.0  # after a dialog has opened: sooner, a key may not be meant for it
QUIET_SECONDS = 0.5  # after a key for an agent: until its screen shows it, the composer may not be empty
ALICE, BOB = (spec.name for spec in DEMO_AGENTS)
HELLO = "hello"
DRAFT = "half a sentence"
MEANWHILE = "are you busy?"
REQUEST = "remove the build folder"
FIRST = ("claude", "codex", "gemini", "opencode", "copilot")  # to install, where there is no room for all
STEPS = 3
NEXT = tr("next")
OPEN = "synapse-tui claude codex"
INSTALL = STEPS + 1
_KEYS = {"space": " ", "right": "→", "escape": "esc"}
_STRONG = "bold $ink"
_KEY = "bold $accent"


class Phase(Enum):
    ASKS = auto()  # the person has something to do
    RUNS = auto()  # a message is on its way, is held, or has opened a dialog
    DONE = auto()


@dataclass(slots=True)
class TourStep:
    """The step that is shown.

    Attributes:
        number: From 1; `INSTALL` after the last.
        receiver: `ALICE` or `BOB`, whom the other one writes to; empty if neither is chosen.
        entered: Whether the last key with a draft there was Enter: it was sent, and not deleted.
        message: What the step is about, as last seen.
        taken: Whether its receiver has had that message.
        asked_at: When the dialog was first seen; 0 if it was not.
        copied: How many commands of the last page were copied.
    """

    number: int
    phase: Phase = Phase.ASKS
    receiver: str = ""
    entered: bool = False
    message: Task | None = None
    taken: bool = False
    asked_at: float = 0.0
    copied: int = 0


class Tour:
    """Looks at the agents and their messages, and says what to try next."""

    def __init__(self, app: Shell, messages: MessageActions, new_agents: NewAgentActions) -> None:
        self._app = app
        self._host = app.host
        self._main = app.main
        self._messages = messages
        self._new_agents = new_agents
        self._step: TourStep | None = None
        self._ids: dict[str, str] = {}  # of the two agents, who may be renamed
        self._known: Collection[str] = ()  # ids of the messages from before the step
        self._timer: Timer | None = None
        self._keys: list[events.Key] = []  # still to be typed for the person
        self._waits = False  # whether they wait until the pane is free
        self._typist: Timer | None = None
        self._typed_at = float("-inf")
        self.clock: Callable[[], float] = monotonic
        self.find: Find = which
        self._main.watch(self._main, "covered", self.look, init=False)

    @property
    def wanted(self) -> bool:
        """Whether it has not been ended for good."""
        return self._host.settings.flag(SETTING)

    # Beginning and ending

    def action_tour(self) -> None:
        """Show the tour with its two agents, or end it."""
        if self._step is not None:
            self.end()
            return
        taken = {agent.name for agent in self._host.agents.values() if agent.agent_type != "dummy"}
        if taken & {ALICE, BOB}:
            self._app.notice("alice and bob are agents of yours: run 'synapse-tui demo --tour'", "warning")
            return
        for ended in filter(None, map(self._ended, (ALICE, BOB))):
            self._app.spawn(self._host.restart(ended.agent_id))
        missing = [
            spec for spec in DEMO_AGENTS if (self._session(spec.name) or self._ended(spec.name)) is None
        ]
        if missing:
            self._new_agents.open_soon(missing)
        show = partial(self._app.perform, "set_layout", "columns")
        if self._make_room():
            self._app.call_after_refresh(show)
        else:
            show()
        self.begin()

    def _make_room(self) -> bool:
        """Close the sidebar if the two agents have no room beside it; return whether it was closed."""
        close = self._main.has_class("-sidebar") and self._main.deck.size.width < 2 * MIN_WIDTH + GAP
        if close:
            self._main.remove_class("-sidebar")
            self._main.back_to_pane()
        return close

    def begin(self) -> None:
        self._make_room()
        if self._timer is None:
            self._timer = self._main.set_interval(LOOK_SECONDS, self.look)
        self._go(1)

    def end(self) -> None:
        self._step = None
        self._stop_typing()
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._main.tour_panel.page = None
        self._remember()

    def _remember(self) -> None:
        files = self._app.settings_files
        if files is None or not self.wanted:
            return

        async def write(files: Callable[[], SettingsFiles]) -> None:
            await asyncio.to_thread(
                lambda: files().change("user", lambda file: file.put(SETTING, value=False))
            )

        self._app.spawn(write(files))

    # Steps

    def _go(self, number: int) -> None:
        self._stop_typing()
        self._known = {task.id for task in self._host.tasks}
        self._step = TourStep(number)
        if number == STEPS:
            self._step.receiver = BOB
            self._write(ALICE, BOB, tr(REQUEST))
        elif number == INSTALL:
            self._remember()
        self.look()

    def look(self) -> None:
        """Compare the step with what has happened since, and show it."""
        step = self._step
        if step is None:
            return
        message = next(self._news(step), None)
        same = message is not None and step.message is not None and message.id == step.message.id
        step.message = message
        step.taken = (step.taken and same) or (message is not None and _taken(message))
        if step.number == 1:
            if step.message is not None:
                step.phase = Phase.DONE if step.message.state.final else Phase.RUNS
        elif step.number == 2:
            self._look_at_draft(step)
        elif step.number == STEPS:
            self._look_at_dialog(step)
        if self._waits and step.phase is not Phase.ASKS:
            self._stop_typing()  # the person has done it meanwhile
        page = self._page(step)
        if page != self._main.tour_panel.page:
            self._main.tour_panel.page = page

    def _look_at_draft(self, step: TourStep) -> None:
        if step.phase is Phase.ASKS and (self._waits or not self._keys):
            step.receiver = next((name for name in (ALICE, BOB) if self._draft(name)), "")
            if step.receiver:
                step.phase = Phase.RUNS
                self._write(_other(step.receiver), step.receiver, tr(MEANWHILE))
        ended = step.message is not None and step.message.state.final
        if step.phase is Phase.RUNS and (step.taken or ended):
            step.phase = Phase.DONE

    def _look_at_dialog(self, step: TourStep) -> None:
        bob = self._session(BOB)
        asks = bob is not None and bob.report.state is AgentState.WAITING
        if step.phase is Phase.ASKS and asks:
            step.asked_at = step.asked_at or self.clock()
            if self.clock() - step.asked_at >= ANSWER_SECONDS:
                step.phase = Phase.RUNS
        elif not asks and (step.asked_at or (step.message is not None and step.message.state.final)):
            step.phase = Phase.DONE

    def _news(self, step: TourStep) -> Iterator[Task]:
        """The messages between the two since the step began, the newest first."""
        for task in reversed(self._host.tasks):
            sender, receiver = self._part(task.sender.sender_id), self._part(task.target)
            wanted = step.receiver in ("", receiver)
            if task.id not in self._known and {sender, receiver} == {ALICE, BOB} and wanted:
                yield task

    def _session(self, part: str) -> AgentSession | None:
        """Return the agent that plays `ALICE` or `BOB`, whatever it is called by now."""
        known = self._host.agents.get(self._ids.get(part, ""))
        if known is not None and known.exit is None:
            return known
        agents = (agent for agent in self._host.agents.values() if agent.name == part and agent.exit is None)
        found = next((agent for agent in agents if agent.agent_type == "dummy"), None)
        if found is not None:
            self._ids[part] = found.agent_id
        return found

    def _ended(self, part: str) -> AgentSession | None:
        """Return the agent that plays `ALICE` or `BOB`, if its process has ended."""
        if self._session(part) is not None:
            return None
        known = self._ids.get(part, "")
        return next(
            (
                agent
                for agent in self._host.agents.values()
                if agent.agent_type == "dummy" and (agent.agent_id == known or agent.name == part)
            ),
            None,
        )

    def _part(self, agent_id: str) -> str:
        sessions = ((part, self._session(part)) for part in (ALICE, BOB))
        return next((part for part, each in sessions if each and each.agent_id == agent_id), "")

    def _name(self, part: str) -> str:
        session = self._session(part)
        return session.name if session is not None else part

    def _draft(self, part: str) -> str:
        """Return the person's draft in the composer; empty while the message is being typed there."""
        session, message = self._session(part), self._step.message if self._step is not None else None
        typed = message is not None and message.delivery in BEING_TYPED
        return "" if session is None or typed else session.reading().draft

    def _write(self, sender: str, receiver: str, text: str) -> None:
        """Send a message as if it had been written in the sender's pane."""
        session = self._session(sender)
        if session is not None:
            self._messages.send_mention(session.agent_id, self._name(receiver), text, 3)

    # Keys

    def takes(self, event: events.Key) -> bool:
        """Whether a key is for the tour: only while it cannot be part of a message to an agent."""
        if self._step is None:
            return False
        nothing = event.key in ("space", "right") and self._missing()
        if event.key in _KEYS and not nothing and self._is_free():
            self.press(event.key)
            return True
        if not isinstance(event, TerminalKeyRelease):
            self.typed()
            if self._has_keyboard(self._step.receiver):
                self._note_key(self._step, event.key)
        return False

    def _note_key(self, step: TourStep, key: str) -> None:
        if step.receiver and self._draft(step.receiver):
            step.entered = key == "enter"

    @property
    def each_key(self) -> bool:
        return self._step is not None

    def typed(self) -> None:
        self._typed_at = self.clock()

    def _is_free(self) -> bool:
        """Whether the pane in focus has an empty composer, and its agent is at rest."""
        view = self._app.active_view
        session = self._host.agents.get(self._main.active)
        if session is None or not isinstance(view, TerminalView) or not view.has_focus:
            return False
        if view.mentioning or view.scroll_mode is not None or self.clock() - self._typed_at < QUIET_SECONDS:
            return False
        reading = session.reading()
        at_rest = session.report.state is AgentState.READY and not reading.dialog
        return at_rest and reading.visible and not reading.draft

    def press(self, key: str) -> None:
        """Do what a hint of the panel says, for a key or a click."""
        step = self._step
        if step is None:
            return
        if key == "escape":
            self.end()
        elif key == "right":
            self._next(step)
        elif key == "space":
            self._do(step)
        else:
            self._type_into(step.receiver, [key_press(key)])
            self._note_key(step, key)

    def _next(self, step: TourStep) -> None:
        if step.number == INSTALL:
            self.end()
            return
        if step.number + 1 == STEPS and (alice := self._session(ALICE)) is not None:
            self._main.go_to(alice.agent_id)  # so that the person is called to the other one
        self._go(step.number + 1)

    def _do(self, step: TourStep) -> None:
        """Do the step for the person, or go on after it."""
        if step.number == INSTALL:
            command, _word = self._to_copy(step)
            step.copied += 1
            self._app.copy_to_clipboard(command)
            self._app.notice(f"copied {command}")
            self.look()
        elif step.phase is Phase.DONE:
            self._next(step)
        elif step.number == 1 and step.phase is Phase.ASKS:
            self._type_when_free(ALICE, [*map(key_press, self._hello_bob()), key_press("enter")])
        elif step.number == 2 and step.phase is Phase.ASKS:
            self._type_when_free(BOB, [key_press(character) for character in tr(DRAFT)])
        elif step.number == STEPS and step.phase is Phase.RUNS:
            bob = self._session(BOB)
            if bob is not None:
                self._main.go_to(bob.agent_id)

    def _hello_bob(self) -> str:
        return f"@{self._name(BOB)} {HELLO}"

    def _type_when_free(self, part: str, keys: Sequence[events.Key]) -> None:
        """Type into a pane once nothing else can be meant there, such as the draft of the person."""
        if not self._keys:
            self._waits = True
            self._type_into(part, keys)
            self.look()

    def _type_into(self, part: str, keys: Sequence[events.Key]) -> None:
        session = self._session(part)
        if session is not None:
            self._main.go_to(session.agent_id)
            self._type(session.agent_id, keys)

    def _type(self, agent_id: str, keys: Sequence[events.Key]) -> None:
        """Press keys in a pane, one by one, as long as it has the focus."""
        view = self._app.active_view
        if self._keys or agent_id != self._main.active or not isinstance(view, TerminalView):
            return
        self._keys = list(keys)

        def press() -> None:
            if self._app.active_view is not view:
                self._stop_typing()
            elif not self._waits or self._is_free():
                self._waits = False
                view.post_message(self._keys.pop(0))
                self.typed()
                if not self._keys:
                    self._stop_typing()

        self._typist = self._main.set_interval(KEY_SECONDS, press)

    def _stop_typing(self) -> None:
        self._keys, self._waits = [], False
        if self._typist is not None:
            self._typist.stop()
            self._typist = None

    # Pages

    def _page(self, step: TourStep) -> TourPage:
        missing = self._missing()
        if missing is not None:
            about, why = missing
            page = TourPage(tr("Two agents are needed"), [[(about, _STRONG)]], why)
        else:
            page = (self._hello, self._hold, self._dialog, self._install)[step.number - 1](step)
        # all keys are the dialog's
        hints = () if self._main.covered else (*page.hints, *self._leaving(step))
        if missing is not None or step.number == INSTALL:
            return TourPage(page.title, page.about, page.why, hints)
        return TourPage(page.title, page.about, page.why, hints, step=step.number, of=STEPS)

    def _missing(self) -> tuple[str, str] | None:
        """Return which of the two does not run though a step needs it, and what to do; None for neither."""
        if self._step is None or self._step.number == INSTALL:
            return None
        keymap = self._app.keymap
        for part in (ALICE, BOB):
            if self._session(part) is not None:
                continue
            ended = self._ended(part)
            if ended is not None:
                return tr(f"{ended.name} has ended."), tr("r in its pane starts it again.")
            if any(each.label == part for each in self._main.not_started):
                way = keymap.way("board")
                return tr(f"{part} did not start."), tr(f"{way} shows why, and R there tries again.")
            if part in self._ids:
                way = keymap.way("tour")
                return tr(f"{part} is closed."), tr(f"{way} ends the tour; once more, it begins with both.")
        return None

    def _leaving(self, step: TourStep) -> list[Hint]:
        """The hints that every step has; without its keys where those would go to an agent."""
        word = tr("close") if step.number == INSTALL else tr("end the tour")
        if self._is_free():
            over = step.phase is Phase.DONE or step.number == INSTALL
            skips = [] if over or self._missing() else [Hint("→", "skip", "right")]
            return [*skips, Hint("Esc", word, "escape")]
        keymap = self._app.keymap
        way = f"{key_label(keymap.leader)} {leader_label(keymap.find('tour'))}"
        return [Hint(way, word, "escape")]

    def _hello(self, step: TourStep) -> TourPage:
        title = tr("Let one write to the other")
        ends = (ALICE, BOB)
        if step.message is not None:  # it may as well go the other way
            ends = self._part(step.message.sender.sender_id) or ALICE, self._part(step.message.target) or BOB
        sender, receiver = map(self._name, ends)
        if step.phase is Phase.DONE:
            about: Runs = [(tr(f"It arrived, and {receiver} has answered."), _STRONG)]
            if step.message is not None and step.message.state is not TaskState.COMPLETED:
                about = self._fate(step.message)
            way, session = self._app.keymap.way("last_message"), self._session(ends[0])
            if session is not None and self._main.answers.get(session.agent_id):
                why = tr(
                    f"Its answer waits in {sender}'s pane, to take or let go; there {way} shows all of it."
                )
            else:
                why = tr(f"In {sender}'s pane, {way} shows what became of the last message.")
            return TourPage(title, [about], why, self._doing(NEXT))
        if step.phase is Phase.RUNS and step.message is not None:
            if _taken(step.message):
                why = tr(f"The answer comes back to {sender}'s pane.")
            elif self._is_parked(step):
                why = self._releasing(sender)
            else:
                why = tr(f"{receiver} gets it as soon as nothing else is going on there.")
            return TourPage(title, [self._fate(step.message)], why)
        about = [
            (tr(f"In {sender}'s pane, type "), ""),
            (f" {self._hello_bob()} ", f"{_STRONG} on $raised"),
            (tr(" and press Enter."), ""),
        ]
        why = tr(
            f"It is typed into {receiver}'s composer as soon as {receiver} is free,"
            " and the answer comes back."
        )
        return TourPage(title, [about], why, self._doing(tr("type it for me")))

    def _hold(self, step: TourStep) -> TourPage:
        title = tr("Type while a message comes")
        if step.phase is Phase.DONE:
            if step.message is not None and not step.taken:
                about: Runs = self._fate(step.message)
            elif step.entered:
                about = [(tr("Your line went first, and the message after it."), _STRONG)]
            else:
                about = [(tr("Your draft was gone, so the message came."), _STRONG)]
            why = tr("A message is typed only into an empty composer. What you write there is never touched.")
            return TourPage(title, [about], why, self._doing(NEXT))
        if step.phase is Phase.RUNS:
            sender, receiver = self._name(_other(step.receiver)), self._name(step.receiver)
            message, parked = step.message, self._is_parked(step)
            draft = self._draft(step.receiver)
            if not draft and not parked:
                about = [(tr("Your draft has left the composer."), _STRONG)]
                return TourPage(title, [about], tr(f"{sender}'s message follows by itself."))
            about = [(tr(f"{sender} writes to {receiver}."), "")]
            if message is not None and (parked or self._is_held(step)):
                about = self._fate(message)
                if Reason.of(message.reason) in (Reason.DRAFT, Reason.TYPING):
                    about = [
                        (tr(f"{sender} wrote to {receiver}, and it is held: "), ""),
                        (tr("your draft is in the composer."), _STRONG),
                    ]
            why = tr("Press Enter: your line is sent, and the message follows by itself.")
            if parked:
                why = self._releasing(sender)
                if not draft:
                    return TourPage(title, [about], why)
            word = tr("send your line")
            if not self._has_keyboard(step.receiver):
                word = f"{word}{_there(receiver)}"
            return TourPage(title, [about], why, [Hint("Enter", word, "enter")])
        pair = (self._name(ALICE), self._name(BOB))
        about = [
            (tr(f"Type a few words to {pair[0]} or {pair[1]}, "), ""),
            (tr("without Enter."), _STRONG),
        ]
        why = tr("Meanwhile the other agent writes to this one, and you see what happens.")
        return TourPage(title, [about], why, self._doing(tr("type it for me")))

    def _is_parked(self, step: TourStep) -> bool:
        """Whether the message waits until a person releases it."""
        message = step.message
        receiver = self._host.agents.get(message.target) if message is not None else None
        return message is not None and receiver is not None and receiver.outbox.is_parked(message.id)

    def _releasing(self, sender: str) -> str:
        way = self._app.keymap.way("last_message")
        return tr(f"It goes once it is released: in {sender}'s pane, {way} shows it.")

    def _fate(self, task: Task) -> Runs:
        sender, receiver = (self._name(self._part(each)) for each in (task.sender.sender_id, task.target))
        if task.state.final:
            where = tr(f"{sender}'s message to {receiver}: ")
        else:
            where = tr(f"{receiver} has it: ") if _taken(task) else tr(f"On its way to {receiver}: ")
        reason = f": {tr(one_line(task.reason))}" if task.reason else ""
        return [(where, ""), (f"{delivery_mark(task).word}{reason}", _STRONG)]

    def _is_held(self, step: TourStep) -> bool:
        """Whether the message is held; not while the sender's pane still says that it is being sent."""
        message = step.message
        pane = self._main.deck.pane(message.sender.sender_id) if message is not None else None
        sending = pane is not None and pane.delivery is not None and pane.delivery.mark is SENDING
        return message is not None and message.delivery is DeliveryState.HELD and not sending

    def _dialog(self, step: TourStep) -> TourPage:
        title = tr("An agent asks for permission")
        alice, bob = self._name(ALICE), self._name(BOB)
        if step.phase is Phase.DONE:
            about: list[Runs] = [[(tr("The dialog is closed."), _STRONG)]] if step.asked_at else []
            message = step.message
            if message is not None and message.state.final and message.state is not TaskState.COMPLETED:
                about.append(self._fate(message))
            why = tr("Messages wait while a dialog is open: only you answer it, and an interrupt denies.")
            return TourPage(title, about, why, self._doing(NEXT))
        if not step.asked_at or step.message is None:
            asks: Runs = [(tr(f"{alice} asks {bob}: {tr(REQUEST)}."), "")]
            why = tr(f"One moment: {bob} reads it.")
            if step.message is not None and step.message.delivery is DeliveryState.HELD:
                by_itself = tr("It goes by itself as soon as nothing holds it.")
                asks = self._fate(step.message)
                why = self._releasing(alice) if self._is_parked(step) else by_itself
            return TourPage(title, [asks], why)
        counts = step.phase is Phase.RUNS  # whether a key may be meant for the dialog
        if not self._has_keyboard(BOB):
            way = self._app.keymap.way("next_waiting")
            needs: Runs = [
                (tr(f"{bob} needs you"), "bold $needs"),
                (tr(": it may want to delete a folder.  "), ""),
            ]
            others = [each.agent_id for each in calling(self._main.agents, self._main.active)]
            asking = self._session(BOB)
            first = asking is not None and (others or [self._main.active])[0] == asking.agent_id
            leads = tr(" goes to the agent that asks.") if first else tr(" goes to all that ask, one by one.")
            return TourPage(
                title,
                [[*needs, (way, _KEY), (leads, "")]],
                tr("The bottom row says it, too, while another agent has the keyboard.") if first else "",
                [Hint("Space" if self._is_free() else way * first, "go there", "space")] if counts else [],
            )
        answer: Runs = [
            (tr(f"Answer as {bob}'s own screen says: "), ""),
            ("1", _KEY),
            (tr(" allows it, "), ""),
            ("3", _KEY),
            (tr(" does not."), ""),
        ]
        why = tr("Keys typed before the dialog opened do not count, so no answer is given by accident.")
        return TourPage(title, [answer], why, [Hint("1", "Yes", "1"), Hint("3", "No", "3")] if counts else [])

    def _profiles(self) -> tuple[list[Profile], list[Profile]]:
        """Return the agents that can be installed, and those of them that are missing and have room."""
        profiles = [profile for profile in self._host.profiles.profiles.values() if profile.install]
        profiles.sort(key=lambda each: FIRST.index(each.name) if each.name in FIRST else len(FIRST))
        missing = [profile for profile in profiles if self.find(profile.command) is None]
        return profiles, missing if self._main.size.height >= ROOMY else missing[: len(FIRST)]

    def _to_copy(self, step: TourStep) -> tuple[str, str]:
        """Return a command of the last page, and what it is called; each time it is copied, the next one."""
        _profiles, missing = self._profiles()
        if not missing:
            return OPEN, tr("copy the command")
        profile = missing[step.copied % len(missing)]
        return one_line(profile.install), tr(f"copy {profile.name}'s line")

    def _install(self, step: TourStep) -> TourPage:
        profiles, missing = self._profiles()
        way = self._app.keymap.way("new_agent")
        pair = (self._name(ALICE), self._name(BOB))
        about: list[Runs] = [
            [(tr(f"{pair[0]} and {pair[1]} are scripts. Install an agent of your own:"), "")]
        ]
        room = min(PANEL_CELLS, self._main.size.width) - PANEL_EDGES
        about += [_command(each, missing, room) for each in missing]
        if installed := [
            one_line(profile.name) for profile in profiles if self.find(profile.command) is not None
        ]:
            about = [
                [(tr("Ready to open: "), ""), (name_list(installed), _STRONG), (f"   {way}", _KEY)],
                *about[1:],
            ]
        why = tr(f"Then {way} opens it here, or run: {OPEN}")
        return TourPage(tr("Your own agents"), about, why, self._doing(self._to_copy(step)[1]))

    def _doing(self, word: str) -> list[Hint]:
        session = self._host.agents.get(self._main.active)
        if session is None or session.report.state is AgentState.STARTING:
            return [Hint("", "in a moment: an agent is starting", "space")]
        if self._keys and not self._waits:  # it is being done
            return []
        where = "" if self._is_free() else self._where_free(session)
        if self._waits:
            return [Hint("", f"{tr('it is typed for you')}{where}")]
        return [Hint("Space", f"{tr(word)}{where}", "space")]

    def _where_free(self, session: AgentSession) -> str:
        """Return where or when Space is for the tour, and when the tour types."""
        part = self._part(session.agent_id)
        if not part:
            return tr(f", from {self._name(ALICE)}'s pane")
        if not self._has_keyboard(part):
            return _there(session.name) if self._waits else tr(f", from {session.name}'s pane")
        view = self._app.active_view
        if isinstance(view, TerminalView) and view.scroll_mode is not None:
            return tr(", after scrolling")
        if isinstance(view, TerminalView) and view.mentioning:
            return tr(", after your message")
        if session.report.state is not AgentState.READY:
            return tr(f", once {session.name} is free")
        return tr(", after your draft") if session.reading().draft else tr(", in a moment")

    def _has_keyboard(self, part: str) -> bool:
        session, view = self._session(part), self._app.active_view
        here = session is not None and session.agent_id == self._main.active
        return here and view is not None and view.has_focus


def _taken(task: Task) -> bool:
    """Whether the agent has the message."""
    return task.delivery in (DeliveryState.SUBMITTED, DeliveryState.DONE)


def _command(profile: Profile, others: Sequence[Profile], room: int) -> Runs:
    """Show a command in one row, so that it is whole when it is copied; beneath its name if it is long."""
    name = f"  {pad(profile.name, max(len(each.name) for each in others) + 2)}"
    command = one_line(profile.install)
    if cell_len(name) + cell_len(command) > room:
        name = f"  {profile.name}\n    "
    return [(name, _STRONG), (command, "$ink")]


def _there(name: str) -> str:
    return tr(f", in {name}'s pane")


def _other(part: str) -> str:
    return BOB if part == ALICE else ALICE


def key_press(name: str) -> events.Key:
    return events.Key(_character_to_key(name), name) if len(name) == 1 else events.Key(name, None)
