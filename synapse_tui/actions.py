"""The one table of what a person can do: it feeds bindings, hints, palette, help and docs/keys.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from .themes import THEME_NAMES

Group = Literal["Agents", "Messages", "View", "Application"]
GROUPS: tuple[Group, ...] = ("Agents", "Messages", "View", "Application")

DEFAULT_LEADER = "ctrl+]"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do.

    Attributes:
        id: Name of the action; the application has a method `do_<id>`.
        title: What it does, in a few words.
        help: What it does, in a sentence.
        group: Heading in help and documentation.
        key: Function key in Textual's words (`f1`); empty for none.
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
    key: str = ""
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
        key="f4",
        leader=("right", "tab"),
        hint="next",
        words="switch focus tab forward",
    ),
    Action(
        "previous_agent",
        "Previous agent",
        "Before the first one comes the last.",
        "Agents",
        key="f3",
        leader=("left", "shift+tab"),
        hint="previous",
        words="switch focus tab back",
    ),
    Action(
        "go_to_agent",
        "Go to an agent by its number",
        "The numbers stand in the bar of tabs.",
        "Agents",
        leader=tuple("123456789"),
        palette=False,
    ),
    Action(
        "next_waiting",
        "Next agent that needs you",
        "One that waits for an answer, has finished unseen, or has ended.",
        "Agents",
        leader=("a",),
        words="attention permission question waiting unseen",
    ),
    Action(
        "new_agent",
        "New agent",
        "Asks for profile, name, folder, arguments and first prompt.",
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
        key="f2",
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
        "interrupt",
        "Interrupt agent",
        "Stops its turn (priority 5), with a message if you like.",
        "Messages",
        key="f8",
        leader=("i",),
        hint="interrupt",
        words="stop abort cancel turn priority",
    ),
    Action(
        "interrupt_all",
        "Interrupt all agents",
        "A second press within three seconds confirms.",
        "Messages",
        key="f9",
        leader=("I",),
        hint="interrupt all",
        words="stop abort everyone panic",
    ),
    Action(
        "sidebar",
        "Sidebar",
        "Agents and messages: shows it, goes to it, hides it.",
        "View",
        key="f6",
        leader=("s",),
        hint="sidebar",
        words="messages outbox agents list panel show hide",
    ),
    Action(
        "layout",
        "Next layout",
        "Tabs, columns, grid, one large pane with a stack beside it.",
        "View",
        key="f5",
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
        key="f7",
        leader=("c",),
        hint="scroll",
        words="copy search find history scrollback select",
    ),
    Action(
        "theme",
        "Next colours",
        f"Takes the next theme: {THEME_NAMES}.",
        "View",
        leader=("t",),
        words="theme colour color dark light",
    ),
    Action(
        "help",
        "Help",
        "All keys, and how to address an agent.",
        "Application",
        key="f1",
        leader=("?",),
        hint="help",
        words="keys shortcuts manual",
    ),
    Action(
        "palette",
        "Command palette",
        "Finds actions and agents by a part of their name.",
        "Application",
        key="f10",
        leader=("p",),
        hint="palette",
        words="commands search",
        palette=False,
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
        "quit",
        "Quit",
        "Asks whether to stop all agents or to leave them running.",
        "Application",
        leader=("q",),
        words="exit leave stop end",
    ),
)

_NAMES = {
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
}
_TEXTUAL_NAMES = {
    "]": "right_square_bracket",
    "[": "left_square_bracket",
    "\\": "backslash",
    "^": "circumflex_accent",
}
_TEXTUAL_NAMES |= {"_": "underscore", "@": "at", "space": "space", "`": "grave_accent"}


def find_action(action_id: str) -> Action:
    """The action of that id.

    Raises:
        KeyError: There is none.
    """
    for action in ACTIONS:
        if action.id == action_id:
            return action
    raise KeyError(action_id)


def by_leader_key(key: str) -> Action | None:
    """The action of a key after the leader, or None.

    Args:
        key: The character typed, or Textual's name of a key without one (`left`).
    """
    return next((action for action in ACTIONS if key in action.leader), None)


def with_function_keys() -> Iterator[Action]:
    """Actions that have a function key, by its number."""
    yield from sorted((action for action in ACTIONS if action.key), key=lambda action: int(action.key[1:]))


def in_group(group: Group) -> Iterator[Action]:
    """Actions under one heading, in the order of the table."""
    return (action for action in ACTIONS if action.group == group)


def key_label(key: str) -> str:
    """A key as people write it: `F1`, `^]`, `→`, `n`."""
    if key in _NAMES:
        return _NAMES[key]
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+").upper()
    return key.upper() if len(key) > 1 else key


def leader_label(action: Action) -> str:
    """The leader keys of an action as shown: the first one, or a range."""
    if len(action.leader) == 9:
        return f"{action.leader[0]}-{action.leader[-1]}"
    return key_label(action.leader[0]) if action.leader else ""


def textual_key(key: str) -> str:
    """Textual's name of a key that people call `ctrl+]` (`ctrl+right_square_bracket`)."""
    *modifiers, name = key.rsplit("+", 1) if not key.endswith("+") else [key[:-2], "plus"]
    return "+".join([*modifiers, _TEXTUAL_NAMES.get(name, name)])


def keys_markdown(leader: str = DEFAULT_LEADER, actions: Iterable[Action] = ACTIONS) -> str:
    """The tables of docs/keys.md.

    Args:
        leader: The leader in the settings' words.
        actions: What to list.
    """
    listed = list(actions)
    lines: list[str] = []
    for group in GROUPS:
        lines += [
            f"## {group}",
            "",
            f"| Key | After `{leader}` | Action | What it does |",
            "|---|---|---|---|",
        ]
        for action in (item for item in listed if item.group == group):
            key = f"`{key_label(action.key)}`" if action.key else ""
            lines.append(f"| {key} | {_leader_cell(action)} | {action.title} | {action.help} |")
        lines.append("")
    return "\n".join(lines)


def _leader_cell(action: Action) -> str:
    if len(action.leader) == 9:
        return f"`{leader_label(action)}`"
    return ", ".join(f"`{key_label(key)}`" for key in action.leader)
