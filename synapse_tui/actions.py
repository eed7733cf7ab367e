"""The one table of what a person can do: it feeds bindings, hints, palette, help and docs/keys.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["Agents", "Messages", "View", "Application"]
GROUPS: tuple[Group, ...] = ("Agents", "Messages", "View", "Application")

DEFAULT_LEADER = "ctrl+]"
DIGITS = "go_to_agent"  # the action whose keys are the digits: it is told which


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do.

    Attributes:
        id: Name of the action; the application has a method `do_<id>`.
        title: What it does, in a few words.
        help: What it does, in a sentence.
        group: Heading in help and documentation.
        keys: Keys of its own, the first one is shown.
        leader: Keys after the leader, the first one is shown.
        hint: One or two words for the status bar; empty keeps it out of there.
        words: Further words that find it in the palette.
        palette: Whether the palette offers it.
        anywhere: Whether it can be done while a dialog is open.
    """

    id: str
    title: str
    help: str
    group: Group
    keys: tuple[str, ...] = ()
    leader: tuple[str, ...] = ()
    hint: str = ""
    words: str = ""
    palette: bool = True
    anywhere: bool = False


ACTIONS: tuple[Action, ...] = (
    Action(
        "next_agent",
        "Next agent",
        "After the last one comes the first.",
        "Agents",
        keys=("f4",),
        leader=("right", "tab"),
        hint="next",
        words="switch focus tab forward",
    ),
    Action(
        "previous_agent",
        "Previous agent",
        "Before the first one comes the last.",
        "Agents",
        keys=("f3",),
        leader=("left", "shift+tab"),
        hint="previous",
        words="switch focus tab back",
    ),
    Action(
        DIGITS,
        "Go to an agent by its number",
        "The numbers stand in the bar of tabs.",
        "Agents",
        leader=tuple("123456789"),
        palette=False,
    ),
    Action(
        "next_waiting",
        "Next agent that needs you",
        "One that waits for an answer, has finished unseen, has ended, or holds a message for long.",
        "Agents",
        leader=("a",),
        words="attention permission question waiting unseen",
    ),
    Action(
        "new_agent",
        "New agent",
        "Asks for profile, name, folder, arguments, first prompt and port.",
        "Agents",
        leader=("n",),
        hint="new",
        words="open start add spawn launch",
    ),
    Action(
        "add_external",
        "Add external agent",
        "An A2A agent elsewhere, by its URL: shows its card before it is added.",
        "Agents",
        leader=("e",),
        words="a2a url remote connect card discover http",
    ),
    Action(
        "close_agent",
        "Close agent",
        "Ends the agent in focus; asks first while it works.",
        "Agents",
        leader=("x",),
        words="stop end kill remove",
    ),
    Action(
        "restart_agent",
        "Restart agent",
        "Starts it anew with the same id, folder and messages.",
        "Agents",
        leader=("R",),
        words="again reload respawn",
    ),
    Action(
        "rename_agent",
        "Rename agent",
        "A name to address the agent in focus by.",
        "Agents",
        leader=("r",),
        words="name alias title",
    ),
    Action(
        "explain_state",
        "Why this state",
        "The rule that decided, what it matched, the states before.",
        "Agents",
        leader=("w",),
        words="explain detect rule doctor reason",
    ),
    Action(
        "watch_agent",
        "Watch this agent",
        "Keeps it going until its task is done: it is told to go on whenever it rests.",
        "Agents",
        leader=("W",),
        words="watchdog nudge continue unattended keep going stop",
    ),
    Action(
        "compose",
        "Write a message",
        "To whom, with what priority, any number of lines.",
        "Messages",
        keys=("f2",),
        leader=("m",),
        hint="message",
        words="send compose tell ask mail",
    ),
    Action(
        "send_instructions",
        "Send instructions again",
        "Tells the agent in focus anew how it reaches the others.",
        "Messages",
        words="brief tell onboard protocol identity default.md delegate",
    ),
    Action(
        "last_message",
        "Last message from here",
        "What became of the message last sent from this pane, for each who got it.",
        "Messages",
        leader=("v",),
        words="receipt delivered answered broadcast all sent status",
    ),
    Action(
        "history",
        "History",
        "All messages and answers, found by any word, by agent, state and time.",
        "Messages",
        leader=("h",),
        words="search tasks past find answers export log archive",
    ),
    Action(
        "interrupt",
        "Interrupt agent",
        "Stops its turn (priority 5), with a message if you like.",
        "Messages",
        keys=("f8",),
        leader=("i",),
        hint="interrupt",
        words="stop abort cancel turn priority",
    ),
    Action(
        "interrupt_all",
        "Interrupt all agents",
        "A second press within three seconds confirms.",
        "Messages",
        keys=("f9",),
        leader=("I",),
        hint="interrupt all",
        words="stop abort everyone panic",
    ),
    Action(
        "sidebar",
        "Sidebar",
        "Agents and messages: shows it, goes to it, hides it.",
        "View",
        keys=("f6",),
        leader=("s",),
        hint="sidebar",
        words="messages outbox agents list panel show hide",
    ),
    Action(
        "layout",
        "Next layout",
        "Tabs, columns, grid, one large pane with a stack beside it.",
        "View",
        keys=("f5",),
        leader=("l",),
        hint="layout",
        words="tabs columns grid main tile split arrange",
    ),
    Action(
        "zoom",
        "Zoom",
        "The whole window for the agent in focus, and back.",
        "View",
        leader=("z",),
        words="maximize full large",
    ),
    Action(
        "main_pane",
        "Make it the main pane",
        "The agent in focus gets the large pane of the layout main.",
        "View",
        leader=("enter",),
        words="large promote swap",
    ),
    Action(
        "scroll",
        "Scroll, copy, search",
        "Moves through what the agent wrote before.",
        "View",
        keys=("f7",),
        leader=("c",),
        hint="scroll",
        words="copy search find history scrollback select",
    ),
    Action(
        "theme",
        "Next colours",
        "Takes the next theme; `tui.theme` in the settings, or the palette, keeps one.",
        "View",
        leader=("t",),
        words="theme colour color dark light",
    ),
    Action(
        "help",
        "Help",
        "All keys, and how to address an agent.",
        "Application",
        keys=("f1",),
        leader=("?",),
        hint="help",
        words="keys shortcuts manual",
    ),
    Action(
        "palette",
        "Command palette",
        "Finds actions and agents by a part of their name.",
        "Application",
        keys=("f10",),
        leader=("p",),
        hint="palette",
        words="commands search",
        palette=False,
    ),
    Action(
        "settings",
        "Settings",
        "All settings, where each comes from, and how to change them.",
        "Application",
        leader=(",",),
        words="config preferences options theme keys colours configure",
    ),
    Action(
        "problems",
        "Profile problems",
        "Files that could not be read, with line and reason.",
        "Application",
        leader=("!",),
        words="errors broken yaml configuration",
    ),
    Action(
        "read_project",
        "Read project files again",
        "Looks into .synapse for changed profiles and instructions, and asks whether to trust them.",
        "Application",
        words="trust reload refresh profiles settings",
    ),
    Action(
        "detach",
        "Detach",
        "Gives the terminal back; agents go on, and synapse-tui shows them again.",
        "Application",
        leader=("d",),
        words="leave background disconnect session tmux",
        anywhere=True,
    ),
    Action(
        "dismiss_tip",
        "Hide the tip",
        "The line at the first start that says what to try.",
        "Application",
        leader=(".",),
        words="hint demo first dismiss",
    ),
    Action(
        "quit",
        "Quit",
        "Asks whether to stop all agents or to leave them running.",
        "Application",
        leader=("q",),
        words="exit leave stop end",
    ),
)
