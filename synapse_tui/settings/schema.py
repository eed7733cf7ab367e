"""The table of all settings: key, kind, default, meaning."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from synapse_tui.model import LAYOUTS

Kind = Literal["boolean", "text", "number", "choice", "list", "table"]

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


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
    """

    key: str
    kind: Kind
    default: object
    help: str
    choices: tuple[str, ...] = ()
    project: bool = True

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


def _list(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")
    return list(value)


def _table(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError("must be a table of texts")
    return {str(key): item for key, item in value.items()}


_CONVERTERS: Mapping[Kind, Callable[[object], object]] = MappingProxyType(
    {"boolean": _boolean, "text": _text, "number": _number, "list": _list, "table": _table}
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
            Setting("env.SYNAPSE_LOG_LEVEL", "text", "INFO", "Least severity of what is logged."),
        )
    }
)


def nearest_key(key: str) -> str | None:
    """The known key that looks most like one that is not known, or None."""
    close = difflib.get_close_matches(key, SCHEMA, n=1, cutoff=0.6)
    return close[0] if close else None
