"""The rules for one type of agent, as data: how to start it, type into it, stop it and read its state."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from synapse_tui.core.model import AgentState
from synapse_tui.hooks import Dialect
from synapse_tui.system.dataclass import dataclass

Origin = Literal["shipped", "user", "project"]
PasteMethod = Literal["paste", "typed"]
WorkingInput = Literal["hold", "queue", "steer"]
DialogKind = Literal["permission", "question", "notice"]
Signal = Literal["status", "progress", "prompt", "hooks"]  # OSC 7501, OSC 9;4, OSC 133, the agent's own hooks

MAX_FILE_BYTES = 256 * 1024
DEFAULT_PORTS = (8200, 8289)
# messages of `synapse doctor`
DOCTOR_PROMPTS = ("submit", "multiline", "long", "hazard", "slow", "run", "ask", "answer")
# seconds that READY must hold: agents look idle for about 0.1 s between a turn and a dialog
READY_DEBOUNCE = 0.25


@dataclass(frozen=True, slots=True)
class Startup:
    """When a new process may count as ready."""

    delay: float = 3.0  # seconds after the start before READY is believed
    timeout: float = 60.0  # seconds after which an agent without a signal is UNKNOWN instead of STARTING
    composer: bool = False
    prompt: bool = False  # whether what it draws before it gets a key is its prompt, not work


@dataclass(frozen=True, slots=True)
class Submit:
    method: PasteMethod = "paste"  # `paste`: one bracketed paste; `typed`: plain characters
    pause: float = 0.4  # seconds between the text and `enter`, which is a separate write
    enter: bytes = b"\r"  # the bytes that submit
    multiline: bool = True
    chunk: int = 0  # characters per write if `typed`; 0 for one write
    chunk_pause: float = 0.02  # seconds between two chunks
    verify: float = 2.0
    retries: int = 1
    settle: float = 0.0
    begin: float = 0.0


@dataclass(frozen=True, slots=True)
class Interrupt:
    """How a running turn is stopped, and how that is recognized."""

    keys: tuple[bytes, ...] = (b"\x1b",)  # one per key press; empty if `signal` is used
    gap: float = 0.25  # seconds between keys
    signal: int = 0  # signal number for the foreground process group; 0 for none
    stopped: frozenset[AgentState] = frozenset({AgentState.READY})
    screen: re.Pattern[str] | None = None  # text on the screen that also proves it
    quiet: float = 0.3  # seconds that one of `stopped` must last
    timeout: float = 2.0  # seconds after which the interrupt has failed
    again: bool = True
    restores_draft: bool = False


@dataclass(frozen=True, slots=True)
class Hazards:
    """Texts that the agent's composer treats specially."""

    leading: tuple[str, ...] = ("!", "/", "#")
    trailing_mention: bool = True


@dataclass(frozen=True, slots=True)
class PlaceholderStyle:
    """How a suggestion differs from a draft: style, known words, the cursor before it."""

    dim: bool = True  # it may be faint (SGR 2)
    grey: bool = False
    text: re.Pattern[str] | None = None  # its fixed text; None if it varies


@dataclass(frozen=True, slots=True)
class ViModes:
    """How normal mode shows, in or below the composer; keys are commands in it."""

    normal: re.Pattern[str] | None = None  # shown in normal mode
    insert: re.Pattern[str] | None = None  # shown only in insert mode
    keys: tuple[bytes, ...] = ()  # enter insert mode at the end of an empty composer; empty to hold messages


@dataclass(frozen=True, slots=True)
class ComposerRules:
    """Where the composer is on the rendered screen. Each pattern matches within one row.

    `AUTO_COMPOSER` (`composer: auto`) has no patterns: the composer is found by its cursor, see
    `agents/composer_box.py`. Like any other rules they make the gate hold what is not proved.
    """

    prompt: re.Pattern[str]
    row: re.Pattern[str]
    above: re.Pattern[str] | None = None  # the row above the composer (its frame)
    below: re.Pattern[str] | None = None
    footer: int = 12  # maximum rows of text below it; anything higher is the conversation
    background: bool = False
    margin: tuple[int, int] = (0, 0)  # rows between frame and draft: above, below
    right: re.Pattern[str] | None = None  # frame at the end of each row, which is cut off
    hints: tuple[re.Pattern[str], ...] = ()
    absent: tuple[re.Pattern[str], ...] = ()
    cursor: bool = True
    placeholder: PlaceholderStyle = field(default_factory=PlaceholderStyle)
    pastes: tuple[re.Pattern[str], ...] = ()
    vi: ViModes | None = None
    auto: bool = False


# placeholders for long pastes as agents word them; their numbers must prove that the text is ours
_ANY_PASTES = (
    r"\[Past(?:ed|e)\b[^\]\n]*?\+(?P<more>\d+) lines?[^\]\n]*\]",
    r"\[Past(?:ed|e)\b[^\]\n]*?(?<![+\d])(?P<lines>\d+) lines?[^\]\n]*\]",
    r"\[Past(?:ed|e)\b[^\]\n]*?(?<!\d)(?P<chars>\d+) char[^\]\n]*\]",
)
AUTO_COMPOSER = ComposerRules(
    prompt=re.compile("(?!)"),
    row=re.compile(r"^\s*"),
    placeholder=PlaceholderStyle(dim=True, grey=True),
    pastes=tuple(map(re.compile, _ANY_PASTES)),
    auto=True,
)


@dataclass(frozen=True, slots=True)
class DialogRule:
    """A dialog that waits for a person, as shown at the bottom of the screen."""

    name: str
    screen: tuple[re.Pattern[str], ...]
    kind: DialogKind = "permission"
    tail: int = 40  # number of rows, ending with the last one with text
    title: tuple[re.Pattern[str], ...] = ()
    buttons: re.Pattern[str] | None = None  # row of options side by side, in its first group
    keys: re.Pattern[str] | None = None  # options named with their keys, in its first group


@dataclass(frozen=True, slots=True)
class StateRule:
    """An ordered rule: it decides the state if all of its conditions hold."""

    name: str
    state: AgentState
    title: re.Pattern[str] | None = None
    status: frozenset[str] = frozenset()  # the last OSC 7501 state is one of these
    status_kinds: frozenset[str] = frozenset()  # and its `kind` is one of these; empty for any
    progress: frozenset[int] = frozenset()
    prompt: frozenset[str] = frozenset()  # the last OSC 133 mark is one of these letters
    screen: tuple[re.Pattern[str], ...] = ()  # all match the last `tail` rows of the screen
    absent: tuple[re.Pattern[str], ...] = ()  # none matches them
    tail: int = 40  # number of rows, ending with the last one with text
    dialog: bool | None = None
    composer: bool | None = None  # whether the composer is on the screen; None for either
    command: bool = False  # whether a command runs in the foreground, and takes no single keys
    silence: float | None = None
    active: float | None = None  # something changed within this many seconds
    debounce: float = 0.0  # seconds that the state must hold before it is reported
    detail: re.Pattern[str] | None = None  # its first group on the screen is shown to people


@dataclass(frozen=True, slots=True)
class TranscriptLines:
    """Selects lines of an agent's conversation log, and the text in them."""

    where: Mapping[str, str]
    text: str  # dotted path of the text: a string, or a list of blocks with a `text` each


@dataclass(frozen=True, slots=True)
class TranscriptUsage:
    """Selects the lines of an agent's conversation log that state tokens, and the numbers in them."""

    where: Mapping[str, str]
    tokens: tuple[str, ...]  # dotted paths of numbers that are added up
    cached: tuple[str, ...] = ()  # and of those among them that were only read again from a cache
    id: str = ""  # dotted path: a line replaces the one with the same value
    running: bool = False  # whether each line states the sum so far


@dataclass(frozen=True, slots=True)
class TranscriptRules:
    """Where the agent logs its conversation, as JSON lines."""

    path: str
    user: TranscriptLines
    agent: TranscriptLines
    usage: TranscriptUsage | None = None


@dataclass(frozen=True, slots=True)
class Quirks:
    term_program: tuple[str, str] = ("", "")
    alternate_screen: bool = False
    idle_output: bool = False
    exits_on_ctrl_c: bool = False
    hides_cursor: bool = False
    daemon: bool = False
    half_blanks: bool = False


@dataclass(frozen=True, slots=True)
class DoctorPrompt:
    """A message of `synapse doctor`, worded for this agent's model; empty for the default."""

    text: str = ""  # may contain `{first}`, `{second}`, `{filler}`, `{command}`, `{seconds}`
    expect: str = ""


@dataclass(frozen=True, slots=True)
class DoctorYes:
    """A question that `synapse doctor` answers with yes, in its own scratch folder."""

    screen: re.Pattern[str]
    keys: tuple[bytes, ...] = (b"\r",)


@dataclass(frozen=True, slots=True)
class DoctorRules:
    """What `synapse doctor` needs to test the other rules on the installed agent."""

    version: str = ""  # version with which the profile was last verified
    version_args: tuple[str, ...] = ("--version",)
    free: bool = False
    permissions: bool = True  # whether it asks for permissions
    args: tuple[str, ...] = ()
    trust: tuple[DoctorYes, ...] = ()
    approve: DoctorYes | None = None
    prompts: Mapping[str, DoctorPrompt] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Profile:
    name: str  # its type: the `claude` of `synapse-claude-8100` and of `@claude`
    display: str
    command: str
    aliases: tuple[str, ...] = ()
    color: str = ""  # a colour name or `#rrggbb`; empty for one by position
    description: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ports: tuple[int, int] = DEFAULT_PORTS
    install: str = ""  # installation command; empty if unknown
    receives: bool = True
    # whether messages are held until it reports its state by OSC 7501 or a person allows them
    asks: bool = False
    instructions: bool = True
    working_input: WorkingInput = "hold"
    hooks: Dialect | None = None  # dialect of its hooks
    sandbox: bool = False
    startup: Startup = field(default_factory=Startup)
    submit: Submit = field(default_factory=Submit)
    interrupt: Interrupt = field(default_factory=Interrupt)
    deny: tuple[bytes, ...] = (b"\x1b",)
    clear: tuple[bytes, ...] = (b"\x15",)  # keys that empty the composer
    hazards: Hazards = field(default_factory=Hazards)
    composer: ComposerRules | None = None  # None if its place is unknown
    dialogs: tuple[DialogRule, ...] = ()
    states: tuple[StateRule, ...] = ()
    ignores: frozenset[str] = frozenset()  # signals of the agent that count for nothing
    resume: tuple[str, ...] = ()
    transcript: TranscriptRules | None = None
    usage_database: str = ""  # path of an SQLite file that states tokens as opencode's does
    quirks: Quirks = field(default_factory=Quirks)
    doctor: DoctorRules = field(default_factory=DoctorRules)
    source: Path = field(default_factory=Path)
    origin: Origin = "shipped"

    @property
    def type(self) -> str:
        """The agent type in ids and addresses, which is the name."""
        return self.name

    @property
    def command_line(self) -> str:
        """The command to start it, as typed into a shell."""
        return shlex.join((self.command, *self.args))


_NAMED = {
    "escape": b"\x1b",
    "esc": b"\x1b",
    "enter": b"\r",
    "cr": b"\r",
    "lf": b"\n",
    "tab": b"\t",
    "shift+tab": b"\x1b[Z",
    "space": b" ",
    "backspace": b"\x7f",
    "delete": b"\x1b[3~",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "home": b"\x1b[H",
    "end": b"\x1b[F",
}


def key_bytes(name: str) -> bytes:
    """Return the bytes of a key as xterm sends them in its default modes (ctlseqs, "PC-Style Function Keys").

    Agents accept these even after enabling the kitty keyboard or modifyOtherKeys modes.
    """
    word = name.lower()
    if word in _NAMED:
        return _NAMED[word]
    if word.startswith("ctrl+") and len(word) == 6 and "a" <= word[5] <= "z":
        return bytes([ord(word[5]) - 0x60])
    if len(name) == 1 or name[:1] == "\x1b":
        return name.encode()
    near = difflib.get_close_matches(word, _NAMED, 1)
    raise ValueError(f"no key named '{name}'" + (f": did you mean '{near[0]}'?" if near else ""))


def key_names(keys: tuple[bytes, ...]) -> str:
    """Format keys as in a profile, `[escape, ctrl+c]`: the reverse of `key_bytes`."""
    return f"[{', '.join(map(_name, keys))}]"


def _name(key: bytes) -> str:
    for name, data in _NAMED.items():
        if data == key:
            return name
    if len(key) == 1 and 1 <= key[0] <= 26:
        return f"ctrl+{chr(key[0] + 0x60)}"
    text = key.decode("utf-8", "replace")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\x1b", "\\e") + '"'
