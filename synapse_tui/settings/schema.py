"""The table of all settings: key, kind, default, meaning."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from synapse_tui.model import LAYOUTS

Kind = Literal["boolean", "text", "number", "choice", "list", "table", "file", "keys", "count", "words"]

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_FILE = re.compile(r"(\w[\w.-]*)?")
_FAMILY = "instructions"
_TYPE = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        key: Dotted path in the settings file; keys below `env.` are also environment variables.
        kind: What a value must be.
        default: The value when no layer gives one.
        help: One sentence about what it does.
        choices: The allowed values of a `choice`.
        project: Whether a (trusted) file of a project may set it; never secrets or authentication.
        guard: Whether it keeps callers out: where its value cannot be read, the default must not hold.
    """

    key: str
    kind: Kind
    default: object
    help: str
    choices: tuple[str, ...] = ()
    project: bool = True
    guard: bool = False

    def convert(self, value: object) -> object:
        """Return the value in the setting's kind.

        Raises:
            ValueError: It is of another kind; the message says what is allowed.
        """
        if self.kind == "choice":
            return self._choice(value)
        return _CONVERTERS[self.kind](value)

    def _choice(self, value: object) -> object:
        if value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return value


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError("must be true or false")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
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
    if number < 0:
        raise ValueError("must not be less than 0")
    return number


def _list(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")
    return list(value)


def _table(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError("must be a table of texts")
    return {str(key): item for key, item in value.items()}


def _file(value: object) -> str:
    if not isinstance(value, str) or not _FILE.fullmatch(value):
        raise ValueError("must be the name of a file in .synapse, without folders, or empty for none")
    return value


def _words(value: object) -> list[str]:
    texts = [value] if isinstance(value, str) else _list(value)
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _keys(value: object) -> list[str]:
    from .keys import read_keys  # noqa: PLC0415 - seldom needed

    return [str(key) for key in read_keys(value)]


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
    }
)


SCHEMA: Mapping[str, Setting] = MappingProxyType(
    {
        setting.key: setting
        for setting in (
            Setting(
                "tui.agents", "list", [], "Agents to open when none are named: PROFILE[:NAME][@DIR] each."
            ),
            Setting("tui.layout", "choice", "tabs", "How panes are arranged at the start.", LAYOUTS),
            Setting("tui.leader", "text", "ctrl+]", "The key before a command; twice sends it to the agent."),
            Setting("tui.sidebar", "boolean", False, "Whether the sidebar is open at the start."),
            Setting("tui.scrollback", "number", 5000, "Lines of scrollback kept for each agent."),
            Setting(
                "tui.restore",
                "choice",
                "ask",
                "Whether the agents that a crash or a reboot has ended are opened again at the next start.",
                ("ask", "always", "never"),
            ),
            Setting(
                "tui.save_scrollback",
                "boolean",
                True,
                "Whether what the agents showed is kept in private files for that; it may hold secrets.",
                project=False,
            ),
            Setting(
                "a2a.message_format",
                "choice",
                "tagged",
                "How a message is marked when it is typed: `[A2A:task:sender] text`, or `A2A: text`.",
                ("tagged", "plain"),
            ),
            Setting(
                "a2a.flow",
                "choice",
                "auto",
                "Whether `synapse send` waits for the answer when it is not told.",
                ("auto", "roundtrip", "oneway"),
            ),
            Setting(
                "a2a.info",
                "choice",
                "type",
                "Whether messages of priority 1 are typed, or kept unread until the agent asks for them.",
                ("type", "inbox"),
            ),
            Setting(
                "a2a.card",
                "choice",
                "dual",
                "Whether agents' cards are for clients of A2A 1.0 and 0.3, or of 1.0 alone.",
                ("dual", "v1"),
            ),
            Setting(
                "a2a.bind",
                "words",
                [],
                "Addresses besides the loopback ones on which agents are served; keys are then demanded.",
                project=False,
            ),
            Setting(
                "a2a.allowed_hosts",
                "words",
                [],
                "Further names by which agents may be called (the header Host), with or without a port.",
                project=False,
            ),
            Setting(
                "a2a.allowed_origins",
                "words",
                [],
                "Web origins that may call agents, such as https://app.example.com; none is one of them.",
                project=False,
            ),
            Setting(
                "a2a.tls_cert",
                "text",
                "",
                "PEM file with the certificate chain of the agents' servers, which then speak https.",
                project=False,
            ),
            Setting("a2a.tls_key", "text", "", "PEM file with the key of that certificate.", project=False),
            Setting(
                "a2a.tls_ca",
                "text",
                "",
                "PEM file with further certificates that are trusted when others are called over https.",
                project=False,
            ),
            Setting(
                "a2a.retention_days",
                "count",
                90,
                "Days that ended tasks, and the files that came with them, are kept; 0 for ever.",
                project=False,
            ),
            Setting(
                "a2a.push_allow",
                "words",
                [],
                "Names and networks that may be told of tasks though they are private: *.lan, 10.0.0.0/8.",
                project=False,
            ),
            Setting(
                "a2a.rate_limit",
                "count",
                600,
                "Requests a minute that a caller with a key may make; 0 for any number.",
                project=False,
            ),
            Setting(
                "a2a.rate_limit_local",
                "count",
                12_000,
                "Requests a minute that the person, or an agent, may make on this machine; 0 for any number.",
                project=False,
            ),
            Setting(
                "env.SYNAPSE_AUTH_ENABLED",
                "boolean",
                False,
                "Whether callers need a key.",
                project=False,
                guard=True,
            ),
            Setting(
                "env.SYNAPSE_API_KEYS",
                "keys",
                [],
                "Keys of callers, separated by commas: [NAME=]KEY or [NAME=]sha256:HEX each.",
                project=False,
                guard=True,
            ),
            Setting(
                "env.SYNAPSE_ADMIN_KEY",
                "keys",
                [],
                "The key that may do all that the person may do.",
                project=False,
                guard=True,
            ),
            Setting(
                "env.SYNAPSE_ALLOW_LOCALHOST",
                "boolean",
                True,
                "Whether the same user on this machine needs no key.",
                project=False,
                guard=True,
            ),
            Setting(
                "instructions.default",
                "file",
                "default.md",
                "The text that every agent gets when a conversation begins; `instructions.<type>` adds one.",
            ),
            Setting(
                "delegation.enabled",
                "boolean",
                False,
                "Whether agents are told the rules of `delegate.md`, to hand tasks on by themselves.",
            ),
            Setting(
                "env.SYNAPSE_FILE_SAFETY_ENABLED",
                "boolean",
                False,
                "Whether agents are told the rules of `file-safety.md`.",
            ),
            Setting(
                "env.SYNAPSE_FILE_SAFETY_DB_PATH",
                "text",
                ".synapse/file_safety.db",
                "The database of locks and changes of files; a relative path counts from the project.",
                project=False,
            ),
            Setting(
                "env.SYNAPSE_FILE_SAFETY_RETENTION_DAYS",
                "number",
                30,
                "How many days changes of files are kept.",
            ),
            Setting("env.SYNAPSE_LOG_LEVEL", "text", "INFO", "Least severity of what is logged."),
        )
    }
)


def find_setting(key: str, types: Collection[str] = ()) -> Setting | None:
    """The setting of a key; None when there is none.

    Args:
        key: Dotted path; `instructions.<type>` is one for every type of agent.
        types: The types; empty for any.
    """
    family, _, name = key.rpartition(".")
    if key in SCHEMA or family != _FAMILY:
        return SCHEMA.get(key)
    if name not in types if types else not _TYPE.fullmatch(name):
        return None
    return Setting(key, "file", f"{name}.md", f"The text that agents of the type {name} get besides.")


def nearest_key(key: str, types: Collection[str] = ()) -> str | None:
    """The known key that looks most like one that is not known, or None."""
    known = [*SCHEMA, *(f"{_FAMILY}.{name}" for name in types)]
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    return close[0] if close else None
