"""The schema of all settings: key, kind, default, meaning."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Literal, get_args
from urllib.parse import urlsplit

from synapse_tui.core.errors import DatabaseNameError
from synapse_tui.core.model import LAYOUTS, NOTIFICATIONS, SIGNS, THEMES
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import LANGUAGES, tr

Kind = Literal[
    "boolean",
    "text",
    "number",
    "choice",
    "list",
    "table",
    "file",
    "keys",
    "count",
    "words",
    "leader",
    "hours",
    "bindings",
]

Area = Literal["Look", "Attention", "Keys", "Agents", "Instructions", "Messages", "Access", "Files", "Logs"]
AREAS: tuple[Area, ...] = get_args(Area)

NOTHING = "none"  # the text of an empty value
TABLES: frozenset[Kind] = frozenset({"table", "bindings"})
"""Kinds whose values are tables."""

MOST = 500_000
"""Maximum of counts; this many days before today is still a valid date."""
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_HOURS = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d")
_FILE = re.compile(r"(\w[\w.-]*)?")


def read(kind: Kind, value: object, choices: tuple[str, ...] = ()) -> object:
    """Convert a value to its kind; raises ValueError with what is allowed."""
    return _choice(value, choices) if kind == "choice" else _CONVERTERS[kind](value)


def _choice(value: object, choices: tuple[str, ...]) -> str:
    word = str(value).strip().casefold()
    found = next((choice for choice in choices if choice.casefold() == word), None)
    if found is None:
        raise ValueError(f"must be one of {', '.join(choices)}")
    return found


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError("must be true or false")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    try:
        return int(str(value))
    except ValueError:
        raise ValueError("must be a whole number") from None


def _count(value: object) -> int:
    number = _number(value)
    if not 0 <= number <= MOST:
        raise ValueError(f"must be from 0 to {MOST}")
    return number


def _list(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of strings")
    return list(value)


def _table(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError("must be a table of strings")
    return {str(key): item for key, item in value.items()}


def _file(value: object) -> str:
    if not isinstance(value, str) or not _FILE.fullmatch(value):
        raise ValueError("must be the name of a file in .synapse, without folders, or empty for none")
    return value


def _words(value: object) -> list[str]:
    texts = [value] if isinstance(value, str) else _list(value)
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _keys(value: object) -> list[str]:
    from .keys import read_keys  # noqa: PLC0415 - rarely needed

    return [str(key) for key in read_keys(value)]


def _hours(value: object) -> str:
    text = str(value).replace(" ", "")
    if text and not _HOURS.fullmatch(text):
        raise ValueError("must be two times such as 22:00-08:00, or empty")
    return text


def _leader(value: object) -> str:
    from .keymap import read_leader  # noqa: PLC0415 - rarely needed

    return read_leader(value)


def _bindings(value: object) -> dict[str, list[str]]:
    from .keymap import read_bindings  # noqa: PLC0415 - rarely needed

    return read_bindings(value)


_CONVERTERS: Mapping[Kind, Callable[[object], object]] = MappingProxyType(
    {
        "boolean": _boolean,
        "text": _text,
        "number": _number,
        "count": _count,
        "list": _list,
        "table": _table,
        "file": _file,
        "keys": _keys,
        "words": _words,
        "leader": _leader,
        "hours": _hours,
        "bindings": _bindings,
    }
)


ENV = "env."
"""Prefix of keys that are environment variables as well."""
_FAMILY = "instructions"
_TYPE = re.compile(r"[a-z][a-z0-9_-]*")
_ALIKE = 0.6
"""Minimum `difflib` ratio for suggesting a key."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        key: Dotted path in the settings file; keys below `env.` are also environment variables.
        area: The heading under which people find it.
        sentence: What it says with its value, which stands at `{}`; `{VALUE=words|...}` are words for values.
        help: One sentence about what it does.
        choices: The allowed values of a `choice`.
        project: Whether a (trusted) project file may set it; never secrets or authentication.
        guard: Whether it restricts access, so that the default must not apply if its value cannot be read.
        restart: Whether a change takes effect only when the host restarts.
        check: Returns what is wrong with a value that is used regardless; empty if it is valid.
    """

    key: str
    kind: Kind
    default: object
    area: Area
    sentence: str
    help: str
    choices: tuple[str, ...] = ()
    project: bool = True
    guard: bool = False
    restart: bool = False
    check: Callable[[str], str] | None = None

    def around(self, text: str) -> tuple[str, str, str]:
        """Return the sentence's beginning, the words for a value's text, and its end."""
        start, _brace, rest = tr(self.sentence).partition("{")
        blank, _brace, end = rest.partition("}")
        words = dict(each.split("=", 1) for each in blank.split("|") if each)
        return start.strip(), words.get(text) or (tr(text) if text == NOTHING else text), end.strip()

    def convert(self, value: object) -> object:
        return read(self.kind, value, self.choices)

    def accept(self, value: object) -> object:
        """Convert a value set by a person, who can be asked for a valid one; this includes `check`."""
        found = self.convert(value)
        if fault := self.fault(found):
            raise ValueError(fault)
        return found

    def fault(self, value: object) -> str:
        """Return the error of `check`; the value is used regardless, as nothing may replace it."""
        return self.check(str(value)) if self.check is not None and value else ""

    def written(self, value: object) -> object:
        """Return a value as a file contains it: below `env` as a variable's text."""
        if not self.key.startswith(ENV):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        return ",".join(map(str, value)) if isinstance(value, list) else str(value)


VARIABLE = "SYNAPSE_DATABASE_URL"
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_FORM = "write postgresql://USER@HOST/DATABASE, the password in ~/.pgpass or as USER:PASSWORD"


def fault_of(url: str) -> str:
    """Return what is wrong with the setting, as text to follow its name; empty if it is valid."""
    problem = problem_of(url.strip()) if url.strip() else None
    return f"{problem.message.removeprefix(VARIABLE).strip()}: {problem.hint}" if problem is not None else ""


def problem_of(url: str) -> DatabaseNameError | None:
    """Return what is wrong with a URL, without quoting it, since any part could be the password."""
    scheme, _, rest = url.partition("://")
    authority, *others = re.split(r"[/?#]", rest)
    if scheme not in _SCHEMES:
        return DatabaseNameError(f"{VARIABLE} is not the URL of a PostgreSQL database", _FORM)
    if authority.count("@") > 1 or "@" in "".join(others) or "#" in rest:
        return DatabaseNameError(
            f"{VARIABLE} cannot be read: its user or password contains a reserved character",
            "write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23 and % as %25 in them",
        )
    try:
        urlsplit(url).port  # noqa: B018 - raises ValueError if invalid
    except ValueError:
        return DatabaseNameError(f"{VARIABLE} is not the URL of a PostgreSQL database", _FORM)
    return None


def own_text(agent_type: str, default: str = "") -> Setting:
    return Setting(
        f"{_FAMILY}.{agent_type}",
        "file",
        default,
        "Instructions",
        f"Agents of type {agent_type} also read {{none={agent_type}.md}}",
        f"File with additional instructions for agents of type {agent_type}; empty for {agent_type}.md.",
    )


SCHEMA: Mapping[str, Setting] = MappingProxyType(
    {
        setting.key: setting
        for setting in (
            Setting(
                "tui.theme",
                "choice",
                "auto",
                "Look",
                "Colours are {auto=like the terminal}",
                "Colours of the application; `auto` is dark or light like the terminal.",
                THEMES,
            ),
            Setting(
                "tui.agents",
                "list",
                [],
                "Agents",
                "If you name no agents, open {none=your choice}",
                "Agents to open when none are named, each as PROFILE[:NAME][@DIR].",
            ),
            Setting(
                "tui.leader",
                "leader",
                "ctrl+]",
                "Keys",
                "Commands begin with {}",
                "Prefix key of commands; pressed twice, it goes to the agent.",
            ),
            Setting(
                "tui.keys",
                "bindings",
                {},
                "Keys",
                "Keys of your own: {}",
                "Keys that replace the defaults of actions: KEY or `leader KEY`; empty for no key. "
                "`PROFILE.ACTION` holds while such an agent has the focus.",
                project=False,
            ),
            Setting(
                "tui.signs",
                "choice",
                "auto",
                "Look",
                "Signs are {auto=as the terminal can|drawn=drawn|plain=plain letters}",
                "Signs of states: `drawn` (`▲ ◆ ●`), `plain` (ASCII), or plain where the terminal needs it.",
                SIGNS,
            ),
            Setting(
                "tui.notifications",
                "choice",
                "auto",
                "Attention",
                "When an agent needs you, {auto=do what the terminal can|off=do nothing|bell=ring the bell"
                "|desktop=show a notification|both=ring, and show a notification}",
                "How the terminal alerts you when an agent asks or has finished while you look elsewhere.",
                NOTIFICATIONS,
                project=False,
            ),
            Setting(
                "tui.quiet_hours",
                "hours",
                "",
                "Attention",
                "Quiet hours, without bells and notifications: {none=none}",
                "Time of day without bells and desktop notifications, such as `22:00-08:00`.",
                project=False,
            ),
            Setting(
                "tui.layout",
                "choice",
                "tabs",
                "Look",
                "At the start, your agents are laid out as {}",
                "Layout of the panes at the start; the demo agents begin side by side.",
                LAYOUTS,
            ),
            Setting(
                "tui.sidebar",
                "boolean",
                False,
                "Look",
                "The sidebar is {true=open|false=closed} at the start",
                "Whether the sidebar is open at the start.",
            ),
            Setting(
                "tui.board",
                "count",
                3,
                "Look",
                "Show the board first with {} agents or more",
                "Show the board first with that many agents or more, if no layout was chosen; 0 never does.",
            ),
            Setting(
                "tui.language",
                "choice",
                "auto",
                "Look",
                "The language is {auto=that of the locale|en=English|ja=Japanese}",
                "Language of the application, the commands and the instructions for agents; `auto` follows"
                " LC_ALL, LC_MESSAGES and LANG.",
                ("auto", *LANGUAGES),
                project=False,
                restart=True,
            ),
            Setting(
                "tui.tour",
                "boolean",
                True,
                "Look",
                "The demo agents open {true=with|false=without} a tour",
                "Whether the demo agents, opened if none is installed, come with a tour.",
                project=False,
            ),
            Setting(
                "worktrees.always",
                "boolean",
                False,
                "Agents",
                "Agents work {true=in a git worktree each|false=in the project's folder}",
                "Whether each agent that is opened in a git repository gets a worktree of its own.",
            ),
            Setting(
                "worktrees.place",
                "text",
                "beside",
                "Agents",
                "The place of worktrees is {beside=beside the repository|inside=inside its .synapse}",
                "Where worktrees are made: `beside` the repository, `inside` its .synapse, or in a folder.",
                project=False,
            ),
            Setting(
                "spawn.by_agents",
                "choice",
                "deny",
                "Agents",
                "Agents {deny=may not open other agents|allow=may open other agents}",
                "Whether agents may open other agents (`synapse spawn`).",
                ("deny", "allow"),
                project=False,
            ),
            Setting(
                "spawn.limit",
                "count",
                4,
                "Agents",
                "At most {} agents opened by agents run at once",
                "How many agents that agents have opened may run in a session at the same time.",
                project=False,
            ),
            Setting(
                "spawn.depth",
                "count",
                1,
                "Agents",
                "Agents open agents at most {} deep",
                "How deep agents may open agents: with 1, those that an agent has opened open none.",
                project=False,
            ),
            Setting(
                "tui.scrollback",
                "count",
                5000,
                "Agents",
                "Keep {} lines of scrollback for each agent",
                "Lines of scrollback for each agent.",
            ),
            Setting(
                "tui.restore",
                "choice",
                "ask",
                "Agents",
                "After a crash, {ask=ask whether to reopen|always=reopen|never=do not reopen} the agents",
                "Whether agents that ended in a crash or reboot are opened again at the next start.",
                ("ask", "always", "never"),
            ),
            Setting(
                "tui.save_scrollback",
                "boolean",
                True,
                "Agents",
                "Scrollback is {true=saved|false=not saved} for opening them again",
                "Whether their scrollback is saved in private files for that; it may contain secrets.",
                project=False,
            ),
            Setting(
                "a2a.message_format",
                "choice",
                "tagged",
                "Messages",
                "Messages are typed {tagged=with task and sender|plain=without them}",
                "How a typed message is marked: `[A2A:task:sender] text`, or `A2A: text`.",
                ("tagged", "plain"),
            ),
            Setting(
                "a2a.flow",
                "choice",
                "auto",
                "Messages",
                "For the answer, synapse send {auto=waits by default|roundtrip=always waits"
                "|oneway=never waits}",
                "Whether `synapse send` waits for the answer if no option says so; with `oneway`, a pane"
                " shows only explicit replies to what was asked in it.",
                ("auto", "roundtrip", "oneway"),
            ),
            Setting(
                "a2a.info",
                "choice",
                "type",
                "Messages",
                "Messages of priority 1 {type=are typed|inbox=stay unread until the agent asks}",
                "Whether messages of priority 1 are typed, or stay unread until the agent asks for them.",
                ("type", "inbox"),
            ),
            Setting(
                "a2a.card",
                "choice",
                "dual",
                "Access",
                "Agent cards are for {dual=A2A 1.0 and 0.3|v1=A2A 1.0 only}",
                "Whether agent cards are for clients of A2A 1.0 and 0.3, or of 1.0 only.",
                ("dual", "v1"),
                restart=True,
            ),
            Setting(
                "a2a.bind",
                "words",
                [],
                "Access",
                "Besides loopback, agents listen on {none=no address}",
                "Addresses besides loopback on which agents listen; callers then need keys.",
                project=False,
                restart=True,
            ),
            Setting(
                "a2a.allowed_hosts",
                "words",
                [],
                "Access",
                "Agents may also be called as {none=nothing else}",
                "Additional names under which agents may be called (Host header), with or without a port.",
                project=False,
                restart=True,
            ),
            Setting(
                "a2a.allowed_origins",
                "words",
                [],
                "Access",
                "Web pages of {none=no origin} may call agents",
                "Web origins that may call agents, such as https://app.example.com; none by default.",
                project=False,
                restart=True,
            ),
            Setting(
                "a2a.tls_cert",
                "text",
                "",
                "Access",
                "The certificate for https is {none=none}",
                "PEM file with the certificate chain of the agents' servers, which then use https.",
                project=False,
                restart=True,
            ),
            Setting(
                "a2a.tls_key",
                "text",
                "",
                "Access",
                "The private key of the certificate is {none=none}",
                "PEM file with the private key of that certificate.",
                project=False,
                restart=True,
            ),
            Setting(
                "a2a.tls_ca",
                "text",
                "",
                "Access",
                "Calls over https also trust {none=no other certificates}",
                "PEM file with additional certificates to trust when calling others over https.",
                project=False,
                restart=True,
            ),
            Setting(
                "a2a.retention_days",
                "count",
                90,
                "Messages",
                "Keep ended tasks for {} days",
                "Days to keep ended tasks and their files; 0 keeps them forever.",
                project=False,
            ),
            Setting(
                "a2a.push_allow",
                "words",
                [],
                "Access",
                "Push notifications may go to {none=no private host}",
                "Private hosts and networks that may receive push notifications: *.lan, 10.0.0.0/8.",
                project=False,
            ),
            Setting(
                "a2a.rate_limit",
                "count",
                600,
                "Access",
                "A caller with a key may make {0=any number of} requests a minute",
                "Requests per minute for a caller with a key; 0 for no limit.",
                project=False,
            ),
            Setting(
                "a2a.rate_limit_local",
                "count",
                12_000,
                "Access",
                "Requests a minute of you and the agents here: {0=any number}",
                "Requests per minute for the user, or an agent, on this machine; 0 for no limit.",
                project=False,
            ),
            Setting(
                "env.SYNAPSE_AUTH_ENABLED",
                "boolean",
                False,
                "Access",
                "Callers {true=need|false=do not need} a key",
                "Whether callers need a key.",
                project=False,
                guard=True,
            ),
            Setting(
                "env.SYNAPSE_API_KEYS",
                "keys",
                [],
                "Access",
                "Keys of callers: {none=none}",
                "Keys of callers, separated by commas, each as [NAME[@MAX_PRIORITY]=]KEY or sha256:HEX.",
                project=False,
                guard=True,
            ),
            Setting(
                "env.SYNAPSE_ADMIN_KEY",
                "keys",
                [],
                "Access",
                "The key with all your permissions is {none=none}",
                "The key with all permissions of the user.",
                project=False,
                guard=True,
            ),
            Setting(
                "env.SYNAPSE_ALLOW_LOCALHOST",
                "boolean",
                True,
                "Access",
                "On this machine, you need {true=no key|false=a key}",
                "Whether the same user on this machine needs no key.",
                project=False,
                guard=True,
            ),
            Setting(
                "instructions.default",
                "file",
                "default.md",
                "Instructions",
                "At the beginning, every agent reads {none=nothing}",
                "File with the instructions for every agent when a conversation begins; empty for none.",
            ),
            own_text("claude"),
            own_text("gemini", "gemini.md"),
            own_text("codex"),
            own_text("opencode"),
            own_text("copilot"),
            Setting(
                "delegation.enabled",
                "boolean",
                False,
                "Instructions",
                "Agents are {true=told|false=not told} to delegate by themselves",
                "Whether agents get the rules of `delegate.md`, to delegate tasks by themselves.",
            ),
            Setting(
                "env.SYNAPSE_FILE_SAFETY_ENABLED",
                "boolean",
                False,
                "Files",
                "Files are {true=locked|false=not locked} while an agent writes them",
                "Whether files are locked while an agent writes them, and agents get `file-safety.md`.",
            ),
            Setting(
                "env.SYNAPSE_DATABASE_URL",
                "text",
                "",
                "Messages",
                "The team's database is {none=none}",
                "PostgreSQL database that a team shares for history and locks: postgresql://USER@HOST/DATABASE.",
                project=False,
                restart=True,
                check=fault_of,
            ),
            Setting(
                "env.SYNAPSE_FILE_SAFETY_DB_PATH",
                "text",
                ".synapse/file_safety.db",
                "Files",
                "Locks and changes are in {}",
                "Database of file locks and changes; a relative path starts at the project.",
                project=False,
                restart=True,
            ),
            Setting(
                "file_safety.without_locks",
                "choice",
                "allow",
                "Files",
                "Without locks, writes of agents are {allow=allowed|deny=denied}",
                "Whether agents may write while their locks cannot be used; they and you learn why.",
                ("allow", "deny"),
            ),
            Setting(
                "env.SYNAPSE_FILE_SAFETY_RETENTION_DAYS",
                "count",
                30,
                "Files",
                "Keep the history of file changes for {} days",
                "Days to keep the history of file changes.",
            ),
            Setting(
                "env.SYNAPSE_HISTORY_ENABLED",
                "boolean",
                True,
                "Messages",
                "Messages are {true=saved|false=not saved} once they have ended",
                "Whether messages and their answers are saved once they have ended.",
            ),
            Setting(
                "env.SYNAPSE_LOG_LEVEL",
                "choice",
                "INFO",
                "Logs",
                "Log messages of {} and more severe ones",
                "Minimum severity of log messages.",
                ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
            ),
            Setting(
                "env.SYNAPSE_LOG_FILE",
                "boolean",
                False,
                "Logs",
                "Commands {true=write|false=do not write} to the log file",
                "Whether commands log to `~/.synapse/logs/synapse.log`; hosts always do.",
                project=False,
            ),
        )
    }
)


def find_setting(key: str, types: Collection[str] = ()) -> Setting | None:
    """Return the setting of a key, or None; `instructions.<type>` exists for the given types, or for any."""
    family, _, name = key.rpartition(".")
    if key in SCHEMA or family != _FAMILY:
        return SCHEMA.get(key)
    if name not in types if types else not _TYPE.fullmatch(name):
        return None
    return own_text(name)


def words_for(key: str, text: str) -> str:
    """Return what the sentence of a setting calls a value; the value itself if it has no words for it."""
    return SCHEMA[key].around(text)[1]


def nearest_key(key: str, types: Collection[str] = ()) -> str | None:
    """Return the known key most similar to an unknown one; its last part must be similar too."""
    known = [*SCHEMA, *(f"{_FAMILY}.{name}" for name in types)]
    close = difflib.get_close_matches(key, known, n=len(known), cutoff=_ALIKE)
    return next((each for each in close if _are_alike(_name_in(key), _name_in(each))), None)


def _name_in(key: str) -> str:
    return key.rpartition(".")[2].removeprefix("SYNAPSE_")


def _are_alike(name: str, known: str) -> bool:
    return known.startswith(name) or difflib.SequenceMatcher(None, name, known).ratio() >= _ALIKE
