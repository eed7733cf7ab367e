"""The table of actions and their keys, from which bindings, hints, palette, help and docs/keys.md are made.

To add an action: a row here, an `action_<id>` method in `ui/screens/`, and a row in docs/keys.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from synapse_tui.system.dataclass import dataclass

Group = Literal["Agents", "Messages", "View", "Application"]
GROUPS: tuple[Group, ...] = ("Agents", "Messages", "View", "Application")

DEFAULT_LEADER = "ctrl+]"
DIGITS = "go_to_agent"


@dataclass(frozen=True, slots=True)
class Action:
    """A command that the user can run by key.

    Attributes:
        group: Heading in help and documentation.
        keys: Direct keys; the first one is displayed.
        leader: Keys after the leader; the first one is displayed.
        help: One sentence.
        hint: One or two words for the status bar; defaults to the title.
        words: Additional search words for the palette.
        palette: Whether the palette lists it.
        anywhere: Whether it also works while a dialog is open.
        of_agent: Whether it is about the agent in focus, or on the board the chosen one.
        takes_key: Whether it gets the key that was pressed as its argument; such keys cannot be changed.
    """

    id: str
    group: Group
    keys: tuple[str, ...]
    leader: tuple[str, ...]
    title: str
    help: str
    hint: str = ""
    words: str = ""
    palette: bool = True
    anywhere: bool = False
    of_agent: bool = False
    takes_key: bool = False


def _arrows(modifier: str = "") -> tuple[str, ...]:
    return tuple(modifier + name for name in ("left", "right", "up", "down"))


# fmt: off
ACTIONS: tuple[Action, ...] = (
    Action("next_agent", "Agents", ("f4",), ("tab",), "Next agent",
           "Wraps around after the last one.", hint="next", words="switch focus tab forward"),
    Action("previous_agent", "Agents", ("f3",), ("shift+tab",), "Previous agent",
           "Wraps around before the first one.", hint="previous", words="switch focus tab back"),
    Action(DIGITS, "Agents", (), tuple("123456789"), "Go to an agent by its number",
           "The numbers are shown in the tab bar.", palette=False, takes_key=True),
    Action("next_waiting", "Agents", (), ("a",), "Next agent that needs you",
           "One that asks something, has finished or ended unseen, or has held a message for long.",
           words="attention permission question waiting unseen"),
    Action("new_agent", "Agents", (), ("n",), "New agent",
           "Asks for profile or command line, name, folder, arguments, first prompt and port.",
           hint="new", words="open start add spawn launch"),
    Action("open_team", "Agents", (), (), "Open a team",
           "Opens the agents that a file names, after showing it if it comes with the project.",
           words="team group roles several start yaml"),
    Action("save_team", "Agents", (), (), "Save as a team",
           "Writes the agents that run, with names, folders, roles and layout, to a file.",
           words="team group roles yaml workspace"),
    Action("add_external", "Agents", (), ("e",), "Add external agent",
           "Adds an A2A agent by its URL, after showing its card.",
           words="a2a url remote connect card discover http"),
    Action("close_agent", "Agents", (), ("x",), "Close agent",
           "Ends the focused agent, after asking; it can be reopened.", words="stop end kill remove",
           of_agent=True),
    Action("reopen_agent", "Agents", (), ("u",), "Reopen closed agent",
           "Opens the agent that was closed last, in its place, and resumes its conversation if it can.",
           words="undo closed again back restore resume"),
    Action("restart_agent", "Agents", (), ("R",), "Restart agent",
           "Starts it again with the same id, folder and messages.", words="again reload respawn",
           of_agent=True),
    Action("continue_agent", "Agents", (), ("f",), "Continue agent",
           "Lets a program that has suspended itself, as by Ctrl+Z, go on with its conversation.",
           words="resume stopped fg foreground sigcont ctrl+z frozen", of_agent=True),
    Action("rename_agent", "Agents", (), ("r",), "Rename agent",
           "Sets the name by which the focused agent is addressed.", words="name alias title", of_agent=True),
    Action("explain_state", "Agents", (), ("w",), "Why this state",
           "Shows the rule that decided, what it matched, and earlier states.",
           words="explain detect rule doctor reason", of_agent=True),
    Action("watch_agent", "Agents", (), ("W",), "Watch this agent",
           "Keeps it working until its task is done: it gets a nudge whenever it is idle.",
           words="watchdog nudge continue unattended keep going stop", of_agent=True),
    Action("changes", "Agents", (), ("g",), "Changes",
           "Shows what the agent has changed in files, and merges its worktree.",
           words="git diff worktree branch merge commit hunks conflicts files", of_agent=True),
    Action("compose", "Messages", ("f2",), ("m",), "Write a message",
           "A text of any number of lines to one agent or several, now or when it suits.",
           hint="message", words="send compose tell ask mail"),
    Action("send_instructions", "Messages", (), (), "Send instructions again",
           "Explains to the focused agent again how to reach the others.",
           words="brief tell onboard protocol identity default.md delegate", of_agent=True),
    Action("last_message", "Messages", (), ("v",), "Last message from here",
           "Shows the answer over the composer in full, or what became of the last message sent from here.",
           words="receipt delivered answered read card broadcast all sent status", of_agent=True),
    Action("take_answer", "Messages", (), ("y",), "Take the answer",
           "Puts the answer over the composer into it, as a draft.",
           words="card paste insert draft reply", of_agent=True),
    Action("let_go", "Messages", (), ("escape",), "Let the answer go",
           "Removes its card; the history keeps it.",
           words="card dismiss close reply", of_agent=True),
    Action("history", "Messages", (), ("h",), "History",
           "Searches all messages and answers by word, agent, state and time.",
           words="search tasks past find answers export log archive"),
    Action("interrupt", "Messages", ("f8",), ("i",), "Interrupt agent",
           "Stops its turn (priority 5), optionally with a message.",
           hint="interrupt", words="stop abort cancel turn priority", of_agent=True),
    Action("interrupt_all", "Messages", ("f9",), ("I",), "Interrupt all agents",
           "A second press within three seconds confirms.",
           hint="interrupt all", words="stop abort everyone panic"),
    Action("board", "View", (), ("b",), "Board",
           "All agents by urgency; what they ask is answered there.",
           words="dashboard overview agents answer permission list all"),
    Action("sidebar", "View", ("f6",), ("s",), "Sidebar and board",
           "Shows agents and messages beside the panes, then the board, then neither.",
           hint="sidebar", words="messages outbox agents list panel show hide"),
    Action("layout", "View", ("f5",), ("l",), "Next layout",
           "Tabs, columns, grid, one large pane with a stack beside it, then those you made.",
           hint="layout", words="tabs columns grid main tile split arrange custom saved"),
    Action("focus_pane", "View", (), _arrows(), "Focus the pane there",
           "Where there is none, `←` and `→` go to the previous and the next agent.", palette=False,
           takes_key=True),
    Action("split_right", "View", (), ("%", "|"), "Split to the right",
           "Shows the next agent out of view beside the focused one, or asks for a new one.",
           hint="right", words="pane divide vertical side by side tile"),
    Action("split_below", "View", (), ('"', "-"), "Split below",
           "Shows the next agent out of view below the focused one, or asks for a new one.",
           hint="below", words="pane divide horizontal stack tile"),
    Action("hide_pane", "View", (), ("H",), "Hide the pane",
           "Takes it out of the layout; its agent goes on in its tab.",
           hint="hide", words="close pane view unsplit remove"),
    Action("resize_pane", "View", (), _arrows("ctrl+"), "Resize the pane",
           "Moves the rule beside it; the same arrows go on without the leader.", hint="resize",
           palette=False, takes_key=True),
    Action("swap_pane", "View", (), _arrows("shift+"), "Swap panes",
           "Exchanges the focused pane with the one there.", hint="swap", palette=False, takes_key=True),
    Action("equalize", "View", (), ("=",), "Equal sizes",
           "Gives the panes of each row and column the same size.", hint="equal",
           words="balance even resize panes"),
    Action("arrange", "View", (), ("o",), "Arrange panes",
           "Arrows resize, and the keys of panes need no leader, until `Esc`.",
           words="resize mode swap split panes layout mouse drag"),
    Action("name_layout", "View", (), ("N",), "Name this layout",
           "Saves the panes as they are, to be shown again like the other layouts.", hint="name",
           words="save layout group workspace agents"),
    Action("zoom", "View", (), ("z",), "Zoom",
           "Gives the whole window to the focused agent, and back.", words="maximize full large",
           of_agent=True),
    Action("main_pane", "View", (), ("enter",), "Make it the main pane",
           "Gives the focused agent the large pane of the layout main.", words="large promote swap",
           of_agent=True),
    Action("scroll", "View", ("f7",), ("c",), "Scroll, copy, search",
           "Moves through the agent's earlier output.",
           hint="scroll", words="copy search find history scrollback select", of_agent=True),
    Action("reset_terminal", "View", (), ("T",), "Reset terminal",
           "Ends what a program that died has left on: mouse, alternate screen, keys, colours.",
           words="modes garbled broken stuck sane tty", of_agent=True),
    Action("theme", "View", (), ("t",), "Next colours",
           "Switches to the next theme; set one permanently by `tui.theme` or the palette.",
           words="theme colour color dark light"),
    Action("help", "Application", ("f1",), ("?",), "Help",
           "Shows all keys, those of the place in focus first.", hint="help",
           words="keys shortcuts manual address", anywhere=True),
    Action("palette", "Application", ("f10",), ("p",), "Command palette",
           "Finds actions and agents by part of their names.",
           hint="palette", words="commands search", palette=False),
    Action("settings", "Application", (), (",",), "Settings",
           "Shows and changes all settings, and where each comes from.",
           words="config preferences options theme keys colours configure"),
    Action("problems", "Application", (), ("!",), "Profile problems",
           "Lists the files that could not be read, with line and reason.",
           words="errors broken yaml configuration"),
    Action("read_project", "Application", (), (), "Read project files again",
           "Looks for changed profiles and instructions in .synapse, and asks whether to trust them.",
           words="trust reload refresh profiles settings"),
    Action("detach", "Application", (), ("d",), "Detach",
           "Gives the terminal back; a session's agents keep running, and synapse-tui attaches again.",
           words="leave background disconnect session tmux", anywhere=True),
    Action("tour", "Application", (), (".",), "Tour",
           "Shows what to try first, with two demo agents; again, ends it.",
           words="hint demo first learn tutorial alice bob dismiss"),
    Action("quit", "Application", (), ("q",), "Quit",
           "Asks whether to stop all agents or, in a session, to leave them running.",
           words="exit leave stop end"),
)
# what needs no leader while panes are being arranged, the most useful first
ARRANGING = (
    "swap_pane", "split_right", "split_below", "equalize", "hide_pane", "zoom", "next_agent",
    "previous_agent", "name_layout",
)
# fmt: on
BETWEEN_PANES = ("swap_pane", "equalize", "hide_pane")  # those of them that need two panes in view
OF_AGENT = frozenset(action.id for action in ACTIONS if action.of_agent)


@dataclass(frozen=True, slots=True)
class BoardKey:
    """A key of the board, which needs no leader there.

    Attributes:
        id: What it does: an action (on the chosen agent, if it is of one), or what only the board does.
        keys: Names or characters; the first one stands for a click on its hint.
        label: The keys as people read them.
        hint: One or two words for the bottom row; empty for none.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    hint: str
    help: str


# fmt: off
BOARD_KEYS: tuple[BoardKey, ...] = (  # the most useful ones first: those that do not fit are left out
    BoardKey("focus_agent", ("enter",), "Enter", "open",
             "opens the agent's pane, as a click on the chosen row does"),
    BoardKey("answer", tuple("yn123456789"), "y, n, 1-9", "answer",
             "answers the dialog as it is shown: `y` allows once, `n` denies, a digit takes its option"),
    BoardKey("compose", ("m",), "m", "message", "writes a message to the agent"),
    BoardKey("changes", ("d",), "d", "changes", "shows what the agent has changed, and merges its worktree"),
    BoardKey("next", ("a",), "a", "next", "chooses the next agent that needs you"),
    BoardKey("interrupt", ("i",), "i", "interrupt", "interrupts the agent, optionally with a message"),
    BoardKey("restart_agent", ("R",), "R", "restart",
             "restarts the agent; tries one again that did not start"),
    BoardKey("close_agent", ("x",), "x", "close",
             "closes the agent, after asking if it runs; takes the row of one away that did not start"),
    BoardKey("find", ("/",), "/", "find", "shows only agents in whose row the text occurs"),
    BoardKey("new_agent", ("+",), "+", "new agent", "opens another agent"),
    BoardKey("help", ("?",), "?", "all keys", "shows all keys"),
    BoardKey("board", ("escape",), "Esc", "back", "returns to the panes"),
    BoardKey("rename_agent", ("r",), "r", "", "sets the name by which the agent is addressed"),
    BoardKey("up", ("up", "k"), "↑, k", "", "chooses the agent above"),
    BoardKey("down", ("down", "j"), "↓, j", "", "chooses the agent below"),
    BoardKey("first", ("home", "pageup", "g"), "Home, g", "", "chooses the first agent"),
    BoardKey("last", ("end", "pagedown", "G"), "End, G", "", "chooses the last agent"),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the application that has keys of its own, without the leader.

    Attributes:
        title: Its heading in help and in docs/keys.md.
        keys: Keys as people read them, and what they do there.
    """

    title: str
    keys: tuple[tuple[str, str], ...]


# fmt: off
PLACES: Mapping[str, Place] = MappingProxyType({
    "board": Place("On the board", tuple((key.label, key.help) for key in BOARD_KEYS)),
    "sidebar": Place("In the sidebar", (
        ("Tab", "moves from agents to messages, locks and agents elsewhere"),
        ("Enter",
         "goes to the agent, shows the whole message or the locked file, or writes to the agent elsewhere"),
        ("c", "cancels the message; shows the card of the external agent"),
        ("h", "holds the message until it is released, or releases it"),
        ("s", "sends it before all others, as soon as it is safe"),
        ("Shift+↑, Shift+↓", "moves it up or down in the queue"),
        ("r, t", "on a lock: asks, then releases it, or takes it for you, whoever holds it"),
        ("x", "removes the external agent"),
        ("?", "shows all keys"),
        ("Esc", "returns to the agent"),
    )),
    "scroll": Place("While scrolling", (
        ("↑, ↓, ←, →", "moves the pointer, as `k`, `j`, `h`, `l` do"),
        ("PgUp, PgDn", "scrolls by a page, as `b` and `Space` do; `u`, `d` by half of one"),
        ("Home, End", "goes to the oldest and the newest line, as `g` and `G` do"),
        ("0, $", "goes to the first and the last column of the line"),
        ("/", "searches as you type; case counts only if you type a capital"),
        ("n, N", "goes to the next older and newer match"),
        ("v, V", "selects from here on, by cells or by lines"),
        ("Enter, y", "copies what is selected"),
        ("?", "shows all keys"),
        ("Esc, q", "ends the selection, then returns to the live screen"),
    )),
    "arrange": Place("Arranging panes", (
        ("arrows", "move the rule beside the pane"),
        ("Shift+arrow", "swaps the pane with the one there"),
        ('%, ", H, =, z, Tab, N', "do what they do after the leader"),
        ("?", "shows all keys"),
        ("Esc, Enter", "ends it, as a click does"),
    )),
    "ended": Place("Below an agent that has exited", (
        ("r", "restarts it"),
        ("x", "closes it"),
        ("?", "shows all keys"),
    )),
    "external": Place("In the tab of an external agent", (
        ("Enter", "sends the message"),
        ("Shift+Enter, Alt+Enter, ^J", "starts a new line"),
        ("↑", "in an empty message: recalls the last one"),
        ("PgUp, PgDn", "scroll"),
        ("F7",
         "selects from the conversation: `↑`, `↓`, `Home`, `End` select, `c` copies, `Esc` leaves"),
        ("F8", "cancels the newest task"),
    )),
    "compose": Place("Writing a message", (
        ("Enter, Ctrl+Enter", "sends"),
        ("Shift+Enter, Alt+Enter, Ctrl+J", "starts a new line"),
        ("Tab", "takes the selected receiver; goes to the next field"),
        ("Comma, Space", "in \"To\": takes the selected receiver; another one may follow"),
        ("Backspace", "in an empty \"To\": removes the last receiver"),
        ("←, →, 1-5", "in \"How\": choose when it is sent, the priority in words"),
        ("@", "in the text: offers files; `Tab` or `Enter` puts the path there, `Esc` closes the list"),
        ("Ctrl+T", "inserts a template, a file `~/.synapse/templates/NAME.md`"),
        ("Esc", "leaves without sending, and keeps the text as a draft"),
    )),
    "history": Place("In the history", (
        ("letters", "in the field at the top: find tasks whose message or answer has all words"),
        ("↑, ↓, PgUp, PgDn", "select a task, also from the search field"),
        ("Enter", "shows the whole task; `Esc` returns"),
        ("Tab", "next field; the letters below work in all but the search field"),
        ("/", "back to the search"),
        ("p", "this project, or all"),
        ("g, s, t", "filter by receiver, state, time"),
        ("r", "sends again: opens the composer with the message"),
        ("c, m", "copies the answer, the message"),
        ("e", "exports the listed tasks to a new private file"),
    )),
})
# fmt: on
