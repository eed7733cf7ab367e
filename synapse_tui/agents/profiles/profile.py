"""What is known of one kind of agent: how to start it, type to it, stop it and read its state. Data only."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from synapse_tui.hooks import Dialect
from synapse_tui.model import AgentState

Origin = Literal["shipped", "user", "project"]
PasteMethod = Literal["paste", "typed"]
WorkingInput = Literal["hold", "queue", "steer"]
DialogKind = Literal["permission", "question", "notice"]

DEFAULT_PORTS = (8200, 8289)
DOCTOR_PROMPTS = ("submit", "multiline", "long", "hazard", "slow", "run", "answer")
"""Names of the messages of `synapse doctor`."""
READY_DEBOUNCE = 0.25
"""Seconds that READY must hold: agents show their idle screen for some 0.1 s between a turn and a dialog."""


@dataclass(frozen=True, slots=True)
class Startup:
    """When a new process may be believed to be ready.

    Attributes:
        delay: Seconds after the spawn before READY is believed.
        timeout: Seconds after which an agent that gave no signal is UNKNOWN in place of STARTING.
        composer: Whether the first READY also needs the composer on the screen.
    """

    delay: float = 3.0
    timeout: float = 60.0
    composer: bool = False


@dataclass(frozen=True, slots=True)
class Submit:
    """How a message is put into the composer and sent.

    Attributes:
        method: `paste`: as one bracketed paste; `typed`: as plain characters.
        pause: Seconds between the text and the enter sequence, which is a write of its own.
        enter: The bytes that submit.
        multiline: Whether line feeds may stand in the text; else they become spaces.
        chunk: Characters a write for `typed`; 0 for one write.
        chunk_pause: Seconds between two chunks.
        verify: Seconds in which the screen must show that the text was submitted, after each enter sequence.
        retries: How often the enter sequence may be repeated, each time under the same proof.
        settle: Seconds for which the composer must stand empty afterwards before the user's keys follow: some
            agents make it anew, and lose what was typed into the old one. 0 for no wait.
        begin: Seconds in which the agent shows that a turn begins. It drops a prompt that it is given before
            that, so the user's keys wait for it after a message, and messages after the user's prompt. 0 for
            no wait.
    """

    method: PasteMethod = "paste"
    pause: float = 0.4
    enter: bytes = b"\r"
    multiline: bool = True
    chunk: int = 0
    chunk_pause: float = 0.02
    verify: float = 2.0
    retries: int = 1
    settle: float = 0.0
    begin: float = 0.0


@dataclass(frozen=True, slots=True)
class Interrupt:
    """How a running turn is stopped, and how it is seen that it did.

    Attributes:
        keys: Byte strings, one a key press; empty when `signal` is used.
        gap: Seconds between two of the keys.
        signal: Number of the signal for the foreground process group; 0 for none.
        stopped: States that prove that the turn has stopped.
        screen: Text on the screen that proves it too; None for none.
        quiet: Seconds that one of `stopped` must last.
        timeout: Seconds after which the interrupt has failed.
        again: Whether the keys may be sent once more after the timeout.
        restores_draft: Whether the agent puts the stopped message back into its composer.
    """

    keys: tuple[bytes, ...] = (b"\x1b",)
    gap: float = 0.25
    signal: int = 0
    stopped: frozenset[AgentState] = frozenset({AgentState.READY})
    screen: re.Pattern[str] | None = None
    quiet: float = 0.3
    timeout: float = 2.0
    again: bool = True
    restores_draft: bool = False


@dataclass(frozen=True, slots=True)
class Hazards:
    """Texts that the agent's composer takes for something else than a message.

    Attributes:
        leading: First characters of a text that start a command or a mode (`!`, `/`, `#`).
        trailing_mention: Whether Enter after a final `@token` accepts a completion and submits nothing.
    """

    leading: tuple[str, ...] = ("!", "/", "#")
    trailing_mention: bool = True


@dataclass(frozen=True, slots=True)
class PlaceholderStyle:
    """How a suggestion, which is no draft, is told: its style, its words if known, the cursor before it.

    Attributes:
        dim: It may be drawn faint (SGR 2).
        grey: It may be drawn in a middle grey (RGB or palette, channels nearly equal).
        text: Its own words besides; None when they change.
    """

    dim: bool = True
    grey: bool = False
    text: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class ComposerRules:
    """Where the composer stands on the rendered screen. All patterns are tried on one row each.

    Attributes:
        prompt: Start of the first row, with the prompt's glyph; what follows is the draft.
        row: Start of a row after the first one; what follows is the draft.
        above: The row over the composer (its frame); None for none.
        below: The row under the composer (its frame); None when a blank row or its background ends it.
        footer: At most so many rows with text stand under it; what is farther up is the conversation.
        background: Whether its rows are told by the background colour of its prompt, where that has one.
        margin: Rows between the frame and the draft: above it, below it.
        right: A frame at the end of each row, cut off; None for none.
        hints: Rows over the frame that belong to it and are no part of the conversation.
        absent: None of these stands in the composer or below it: signs of a mode (a shell, a search) in
            which it takes no message.
        cursor: Whether the cursor stands in the composer whenever it takes keys: a second proof of it.
        placeholder: How a suggestion is told from a draft.
        pastes: Stand-ins for a long paste, with groups `lines`, `more` (lines but one) or `chars` as proof.
    """

    prompt: re.Pattern[str]
    row: re.Pattern[str]
    above: re.Pattern[str] | None = None
    below: re.Pattern[str] | None = None
    footer: int = 12
    background: bool = False
    margin: tuple[int, int] = (0, 0)
    right: re.Pattern[str] | None = None
    hints: tuple[re.Pattern[str], ...] = ()
    absent: tuple[re.Pattern[str], ...] = ()
    cursor: bool = True
    placeholder: PlaceholderStyle = field(default_factory=PlaceholderStyle)
    pastes: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class DialogRule:
    """A dialog that waits for a human, as it looks at the bottom of the screen.

    Attributes:
        name: Names the dialog in the pane's "why".
        kind: What it asks.
        screen: All of these must match; each is tried on the last `tail` rows, joined by line feeds, with
            `^` and `$` at each row.
        tail: So many rows, counted up from the last one with text.
        title: Tell a person what is asked: the first group of each, or all of its match, joined.
    """

    name: str
    screen: tuple[re.Pattern[str], ...]
    kind: DialogKind = "permission"
    tail: int = 40
    title: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class StateRule:
    """One ordered rule: when all of its conditions hold, it decides the state.

    Attributes:
        name: Names the rule in the pane's "why".
        state: What it decides.
        title: The window title matches.
        status: The last OSC 7501 state is one of these.
        status_kinds: And its `kind` is one of these; empty for any.
        progress: The last OSC 9;4 state is one of these (0 none, 1 set, 2 error, 3 indeterminate, 4 paused).
        screen: All of these match the last `tail` rows of the screen.
        absent: None of these does.
        tail: So many rows, counted up from the last one with text.
        dialog: Whether one of the profile's dialogs is (or is not) on the screen; None for no matter.
        composer: Whether the composer is (or is not) on the screen; None for no matter.
        silence: Nothing changed on the screen and in the title for so many seconds; None for no matter.
        active: Something changed within so many seconds; None for no matter.
        debounce: Seconds that the state must hold before it is reported.
        detail: Its first group on the screen tells a person more; None for none.
    """

    name: str
    state: AgentState
    title: re.Pattern[str] | None = None
    status: frozenset[str] = frozenset()
    status_kinds: frozenset[str] = frozenset()
    progress: frozenset[int] = frozenset()
    screen: tuple[re.Pattern[str], ...] = ()
    absent: tuple[re.Pattern[str], ...] = ()
    tail: int = 40
    dialog: bool | None = None
    composer: bool | None = None
    silence: float | None = None
    active: float | None = None
    debounce: float = 0.0
    detail: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class TranscriptLines:
    """Which lines of an agent's own log of the conversation are meant, and where their text stands.

    Attributes:
        where: Values that a line must have, by dotted path (`payload.role`), as JSON writes them.
        text: Dotted path of the text: a string, or a list of blocks with a `text` each.
    """

    where: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """Where the agent writes its conversation, as JSON lines.

    Attributes:
        path: Glob below the user's home folder; `{cwd}` is the working folder with `-` for all but letters
            and digits, `${NAME:-folder}` a variable of the agent's environment.
        user: What the user said.
        agent: What the agent answered.
    """

    path: str
    user: TranscriptLines
    agent: TranscriptLines


@dataclass(frozen=True, slots=True)
class Quirks:
    """What differs from other terminal programs.

    Attributes:
        term_program: TERM_PROGRAM and its version for the agent; empty for none; some tell it more.
        alternate_screen: Whether it draws on the alternate screen (so nothing scrolls into the scrollback).
        idle_output: Whether it draws while idle, so that silence means nothing.
        exits_on_ctrl_c: Whether Ctrl+C ends it.
        daemon: Whether it leaves a process behind that outlives its terminal.
        hides_cursor: Whether it takes the cursor out of its composer when it hears that nobody looks; it is
            not told then, since the composer is known by the cursor.
        half_blanks: Whether it writes the second cell of an emoji with a variation selector as a blank, which
            is not to be taken for the next cell (`terminal/half_blanks.py`).
    """

    term_program: tuple[str, str] = ("", "")
    alternate_screen: bool = False
    idle_output: bool = False
    exits_on_ctrl_c: bool = False
    hides_cursor: bool = False
    daemon: bool = False
    half_blanks: bool = False


@dataclass(frozen=True, slots=True)
class DoctorPrompt:
    """A message of `synapse doctor`, in words that this agent's model follows; empty for the general ones.

    Attributes:
        text: The message; `{first}`, `{second}`, `{filler}`, `{command}`, `{seconds}` are filled in.
        expect: Pattern of an answer that proves it, filled in likewise, with `{chars}` and `{lines}` of what
            was typed.
    """

    text: str = ""
    expect: str = ""


@dataclass(frozen=True, slots=True)
class DoctorYes:
    """A question that `synapse doctor` answers with yes, in its own scratch folder.

    Attributes:
        screen: Matches the screen while it is asked, as it must look when the keys are pressed.
        keys: Keys that say yes to it, or choose "yes" in it.
    """

    screen: re.Pattern[str]
    keys: tuple[bytes, ...] = (b"\r",)


@dataclass(frozen=True, slots=True)
class DoctorRules:
    """What `synapse doctor` needs to know to try the other rules on the installed agent.

    Attributes:
        version: The version that the profile was last proved with; empty when it was with none.
        version_args: Arguments with which the command tells its version.
        free: Whether its turns cost nothing, so that the person need not be asked.
        args: Arguments with which it asks before it runs a command, whatever the person has configured.
        trust: How it asks whether it may trust its folder: the first that is shown counts.
        approve: How it asks whether it may run `synapse reply`; None when that is not known.
        prompts: Messages in place of the general ones, by their names.
    """

    version: str = ""
    version_args: tuple[str, ...] = ("--version",)
    free: bool = False
    args: tuple[str, ...] = ()
    trust: tuple[DoctorYes, ...] = ()
    approve: DoctorYes | None = None
    prompts: Mapping[str, DoctorPrompt] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of agent.

    Attributes:
        name: Its type: the `claude` of `synapse-claude-8100` and of `@claude`.
        display: Its name for people.
        command: The executable, on PATH or with a folder.
        aliases: Other names it is addressed by, in lower case.
        color: A colour name or `#rrggbb` for the user interface; empty for one by its place.
        description: One line for the launcher.
        args: Arguments of the command.
        env: Variables set for it.
        ports: First and last port of its servers.
        install: The command that installs it; empty when unknown.
        receives: Whether messages may be typed into it at all (a shell would run them).
        instructions: Whether it is told of the other agents when a conversation begins.
        working_input: Whether a message for a working agent is held back, queued by it, or steers its turn.
        hooks: In whose words it calls hooks of its own; None for an agent without.
        sandbox: Whether it may run its tools in a sandbox, without connections and in its folder only.
        startup: When it is ready.
        submit: How a message gets in.
        interrupt: How a turn is stopped.
        deny: Keys that answer a permission dialog with no.
        clear: Keys that empty the composer.
        hazards: What a message must not begin or end with.
        composer: Where its composer stands; None when that is not known.
        dialogs: Its dialogs.
        states: Its state rules, in order.
        resume: Arguments that continue its last conversation.
        transcript: Where it writes its conversation.
        quirks: What else is special.
        doctor: What `synapse doctor` needs to know besides.
        source: The file it was read from.
        origin: Whose file that is.
    """

    name: str
    display: str
    command: str
    aliases: tuple[str, ...] = ()
    color: str = ""
    description: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ports: tuple[int, int] = DEFAULT_PORTS
    install: str = ""
    receives: bool = True
    instructions: bool = True
    working_input: WorkingInput = "hold"
    hooks: Dialect | None = None
    sandbox: bool = False
    startup: Startup = field(default_factory=Startup)
    submit: Submit = field(default_factory=Submit)
    interrupt: Interrupt = field(default_factory=Interrupt)
    deny: tuple[bytes, ...] = (b"\x1b",)
    clear: tuple[bytes, ...] = (b"\x15",)
    hazards: Hazards = field(default_factory=Hazards)
    composer: ComposerRules | None = None
    dialogs: tuple[DialogRule, ...] = ()
    states: tuple[StateRule, ...] = ()
    resume: tuple[str, ...] = ()
    transcript: Transcript | None = None
    quirks: Quirks = field(default_factory=Quirks)
    doctor: DoctorRules = field(default_factory=DoctorRules)
    source: Path = field(default_factory=Path)
    origin: Origin = "shipped"

    @property
    def type(self) -> str:
        """Another word for the name: the agent type in ids and addresses."""
        return self.name


_NAMED = {
    "escape": b"\x1b",
    "esc": b"\x1b",
    "enter": b"\r",
    "cr": b"\r",
    "lf": b"\n",
    "tab": b"\t",
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
    r"""The bytes of a key as xterm sends them in its default modes (ctlseqs, "PC-Style Function Keys").

    Agents take these also after they have pushed the kitty keyboard or modifyOtherKeys modes.

    Args:
        name: `escape`, `enter`, `ctrl+c`, `up`, a single character, or a text that starts with the escape
            character (`"\e[1;2A"` in YAML), which is taken as it is.

    Raises:
        ValueError: There is no such key.
    """
    word = name.lower()
    if word in _NAMED:
        return _NAMED[word]
    if word.startswith("ctrl+") and len(word) == 6 and "a" <= word[5] <= "z":
        return bytes([ord(word[5]) - 0x60])
    if len(name) == 1 or name[:1] == "\x1b":
        return name.encode()
    near = difflib.get_close_matches(word, _NAMED, 1)
    raise ValueError(f"there is no key '{name}'" + (f": did you mean '{near[0]}'?" if near else ""))


def key_names(keys: tuple[bytes, ...]) -> str:
    """Keys as a profile names them, `[escape, ctrl+c]`: the reverse of `key_bytes`."""
    return f"[{', '.join(map(_name, keys))}]"


def _name(key: bytes) -> str:
    for name, data in _NAMED.items():
        if data == key:
            return name
    if len(key) == 1 and 1 <= key[0] <= 26:
        return f"ctrl+{chr(key[0] + 0x60)}"
    text = key.decode("utf-8", "replace")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\x1b", "\\e") + '"'
