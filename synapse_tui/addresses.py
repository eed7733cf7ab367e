"""Who is meant by `@claude`, `@claude-8100`, `@reviewer`, `@all`: agent ids, addresses and their completion.

The order is exact id > type-port > name > type > alias of an external agent > identity. Types, names and
`all` mean agents of this project; those of others are reached by their exact id or identity. Letters' case
and width (a Japanese keyboard's `ｃｌａｕｄｅ`) do not matter. A sender never addresses itself.
"""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from .errors import AgentExited, AgentNotFound, AmbiguousAddress, ConfigError
from .paths import tilde

ALL = "all"
"""The address of every other agent of the project that takes messages."""

_IDENTITY = re.compile(r"[0-9a-f]{1,64}")
_SHORTEST_IDENTITY = 8
_AGENT_ID = re.compile(r"synapse-(?P<type>.+)-(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """One agent, and what it can be called.

    Attributes:
        agent_id: `synapse-{type}-{port}`.
        agent_type: Name of its profile.
        name: Name given by the user; empty for none.
        port: Port of its server.
        endpoint: URL of its server.
        local: Whether it belongs to this project.
        working_dir: Its working folder.
        aliases: Other words for its type (`ClaudeCode`).
        live: Whether it runs; one that has ended is known, but can be sent nothing.
        external: Whether it is an A2A agent elsewhere, whose id is its alias; `all` never means it.
        project: Folder of its project; empty where it is not known.
        receives: Whether it takes messages; `all` leaves out those that do not, such as a shell.
    """

    agent_id: str
    agent_type: str
    name: str
    port: int
    endpoint: str
    local: bool = True
    working_dir: str = ""
    aliases: tuple[str, ...] = ()
    live: bool = True
    external: bool = False
    project: str = ""
    receives: bool = True


@dataclass(frozen=True, slots=True)
class Completion:
    """A way to finish an address.

    Attributes:
        text: The address without `@`.
        targets: Whom it means.
    """

    text: str
    targets: tuple[Address, ...]


def agent_id_for(agent_type: str, port: int) -> str:
    return f"synapse-{agent_type}-{port}"


def parse_agent_id(agent_id: str) -> tuple[str, int] | None:
    """Type and port of an agent id, or None when it is none."""
    match = _AGENT_ID.fullmatch(agent_id)
    return (match["type"], int(match["port"])) if match else None


def identity_of(working_dir: str, agent_type: str, name: str = "") -> str:
    """What an agent is whatever its port: SHA-256 of host, folder, type and name, in hexadecimal."""
    import hashlib  # noqa: PLC0415 - seldom needed, and the command line starts without it

    return hashlib.sha256(f"{os.uname().nodename}{working_dir}{agent_type}{name}".encode()).hexdigest()


def is_identity(word: str, working_dir: str, agent_type: str, name: str = "") -> bool:
    """Whether a folded word is the identity of an agent, or at least its first eight digits."""
    if len(word) < _SHORTEST_IDENTITY or not _IDENTITY.fullmatch(word):
        return False
    return identity_of(working_dir, agent_type, name).startswith(word)


def fold(text: str) -> str:
    """The text as addresses are compared: without regard to case and width, without `@` in front."""
    return unicodedata.normalize("NFKC", text).strip().removeprefix("@").casefold()


def resolve(address: str, candidates: Sequence[Address], *, sender: str = "") -> list[Address]:
    """Find out whom an address means.

    Args:
        address: With or without `@`.
        candidates: All agents, also those that have ended.
        sender: Agent id of who sends; it is never meant itself.

    Returns:
        One live agent, or all live others of the project for `all`.

    Raises:
        AgentNotFound: It means nobody, or the sender itself.
        AgentExited: Whom it means has ended.
        AmbiguousAddress: It means two or more.
    """
    wanted = fold(address)
    others = [candidate for candidate in candidates if candidate.agent_id != sender]
    if wanted == ALL:
        return _everyone(others)
    for matches in _LEVELS:
        found = [candidate for candidate in others if matches(candidate, wanted)]
        if found:
            return [_only_live(wanted, found)]
    raise _not_found(wanted, candidates, others)


def could_be(text: str, candidates: Sequence[Address], *, sender: str = "") -> bool:
    """Whether an address begins with the text; also when it is ambiguous or that of an agent that has ended.

    Args:
        text: What was typed after `@`; the empty text begins every address.
        candidates: All agents, also those that have ended.
        sender: Agent id of who types.
    """
    start = fold(text)
    others = [candidate for candidate in candidates if candidate.agent_id != sender]
    if any(candidate.local and candidate.receives for candidate in others) and ALL.startswith(start):
        return True
    if any(form.startswith(start) for candidate in others for form in _folded_forms(candidate)):
        return True
    return bool(_IDENTITY.fullmatch(start)) and any(
        _identity(candidate).startswith(start) for candidate in others if not candidate.external
    )


def complete(text: str, candidates: Sequence[Address], *, sender: str = "") -> list[Completion]:
    """The addresses that begin with the text: for each agent the shortest one that means it alone.

    Args:
        text: What was typed after `@`.
        candidates: All agents; those that have ended are not offered.
        sender: Agent id of who types; it is not offered.

    Returns:
        Agents of the project in the given order, then `all`, then agents of other projects.
    """
    start = fold(text)
    others = [candidate for candidate in candidates if candidate.agent_id != sender and candidate.live]
    local = [candidate for candidate in others if candidate.local]
    found = _completions(start, local, candidates, sender)
    receiving = [candidate for candidate in local if candidate.receives]
    if len(receiving) > 1 and ALL.startswith(start):
        found.append(Completion(ALL, tuple(receiving)))
    foreign = [candidate for candidate in others if not candidate.local]
    return found + _completions(start, foreign, candidates, sender)


def forms_of(target: Address, candidates: Sequence[Address]) -> list[str]:
    """All that means this agent alone, without `@`: its name, its type, its id, as far as they do."""
    return [
        form
        for form in (target.name, target.agent_type, target.agent_id)
        if form and _means(form, target, candidates, "")
    ]


def shortest_form(target: Address, candidates: Sequence[Address], *, sender: str = "") -> str:
    """The shortest address, without `@`, that means this agent alone."""
    found = _completions("", [target], candidates, sender)
    return found[0].text if found else target.agent_id


def _forms(candidate: Address) -> list[str]:
    return [*_names(candidate), candidate.agent_id] if candidate.local else [candidate.agent_id]


def _names(candidate: Address) -> list[str]:
    kind = candidate.agent_type
    names = [candidate.name, kind, *candidate.aliases, f"{kind}-{candidate.port}"]
    return [name for name in names if name]


def _folded_forms(candidate: Address) -> list[str]:
    return [fold(form) for form in _forms(candidate)]


def _has_id(candidate: Address, wanted: str) -> bool:
    return not candidate.external and fold(candidate.agent_id) == wanted


def _has_type_and_port(candidate: Address, wanted: str) -> bool:
    return candidate.local and fold(f"{candidate.agent_type}-{candidate.port}") == wanted


def _has_name(candidate: Address, wanted: str) -> bool:
    return candidate.local and bool(candidate.name) and fold(candidate.name) == wanted


def _has_type(candidate: Address, wanted: str) -> bool:
    return candidate.local and wanted in map(fold, (candidate.agent_type, *candidate.aliases))


def _has_alias(candidate: Address, wanted: str) -> bool:
    return candidate.external and fold(candidate.agent_id) == wanted


def _identity(candidate: Address) -> str:
    return identity_of(candidate.working_dir, candidate.agent_type, candidate.name)


def _has_identity(candidate: Address, wanted: str) -> bool:
    about = (candidate.working_dir, candidate.agent_type, candidate.name)
    return not candidate.external and is_identity(wanted, *about)


_LEVELS: tuple[Callable[[Address, str], bool], ...] = (
    _has_id,
    _has_type_and_port,
    _has_name,
    _has_type,
    _has_alias,
    _has_identity,
)


def _everyone(others: Sequence[Address]) -> list[Address]:
    found = [candidate for candidate in others if candidate.local and candidate.receives]
    if not found:
        raise AgentNotFound("no other agent of this project takes messages", "open one first")
    live = [candidate for candidate in found if candidate.live]
    if not live:
        raise AgentExited("all other agents of this project have ended", "restart one in its pane")
    return live


def _only_live(wanted: str, found: Sequence[Address]) -> Address:
    live = [candidate for candidate in found if candidate.live]
    if len(live) > 1:
        raise AmbiguousAddress(wanted, sorted(candidate.agent_id for candidate in live))
    if live:
        return live[0]
    if len(found) > 1:
        raise AgentExited(f"all agents that '@{wanted}' means have ended", "restart one in its pane")
    raise AgentExited(f"{found[0].agent_id} has ended", "restart it in its pane")


def _not_found(wanted: str, candidates: Sequence[Address], others: Sequence[Address]) -> AgentNotFound:
    if any(
        wanted in _folded_forms(candidate) or _has_identity(candidate, wanted)
        for candidate in candidates
        if candidate not in others
    ):
        return AgentNotFound(f"'@{wanted}' is the sender itself", "address another agent")
    foreign = [candidate for candidate in others if _would_mean(candidate, wanted)]
    if foreign:
        return _in_other_projects(wanted, foreign)
    known = [form for candidate in others for form in _folded_forms(candidate)]
    begun = [form for form in known if wanted and form.startswith(wanted)]
    if near := begun[:1] or difflib.get_close_matches(wanted, known, 1):
        return AgentNotFound(f"no agent answers to '@{wanted}'", f"did you mean '@{near[0]}'?")
    live = ", ".join(f"@{candidate.agent_id}" for candidate in others if candidate.live)
    return AgentNotFound(
        f"no agent answers to '@{wanted}'", f"live agents: {live}" if live else "no agent is running"
    )


def _would_mean(candidate: Address, wanted: str) -> bool:
    if candidate.local or candidate.external or not candidate.live:
        return False
    return wanted in map(fold, _names(candidate))


def _in_other_projects(wanted: str, found: Sequence[Address]) -> AgentNotFound:
    if len(found) == 1:
        where, agent_id = _place(found[0]), found[0].agent_id
        return AgentNotFound(f"{wanted} is in another project{where}", f"use {agent_id}")
    ids = ", ".join(f"{each.agent_id}{_place(each)}" for each in found)
    return AgentNotFound(f"'@{wanted}' means agents of other projects only", f"use one of {ids}")


def _place(candidate: Address) -> str:
    folder = candidate.project or candidate.working_dir
    return f" ({tilde(folder)})" if folder else ""


def _completions(
    start: str, targets: Sequence[Address], candidates: Sequence[Address], sender: str
) -> list[Completion]:
    found = []
    for target in targets:
        form = next(
            (
                form
                for form in _forms(target)
                if fold(form).startswith(start) and _means(form, target, candidates, sender)
            ),
            None,
        )
        if form is not None:
            found.append(Completion(form, (target,)))
    return found


def _means(form: str, target: Address, candidates: Sequence[Address], sender: str) -> bool:
    try:
        return resolve(form, candidates, sender=sender) == [target]
    except (AgentNotFound, AgentExited, AmbiguousAddress):
        return False


MAX_NAME = 32
"""The longest name, in characters."""
_FORM = re.compile(r"\w[\w.-]*")
_ADDRESS = re.compile(r".+-\d+|synapse-.*")
_RESERVED = frozenset({"all", "user", "system"})


def check_name(name: str, *, taken: Collection[str] = ()) -> str:
    """Return a name if an agent may have it.

    Args:
        name: The name; any letters and digits of any script, `_`, `.` and `-`.
        taken: Words that mean something else already: types, their aliases, other names; in lower case.

    Raises:
        ConfigError: It is no name, or could be taken for another address.
    """
    word = name.lower()
    if len(name) > MAX_NAME:
        raise ConfigError(
            f"'{name[:MAX_NAME]}…' cannot be an agent's name: it has {len(name)} characters",
            f"a name has at most {MAX_NAME}",
        )
    if not _FORM.fullmatch(name):
        raise ConfigError(
            f"'{name}' cannot be an agent's name",
            f"use up to {MAX_NAME} letters, digits, '_', '.' or '-', beginning with a letter or digit",
        )
    if word in _RESERVED or _ADDRESS.fullmatch(word):
        raise ConfigError(
            f"'{name}' cannot be an agent's name", "it has a meaning in addresses; choose another"
        )
    if word in taken:
        raise ConfigError(f"'{name}' already addresses another agent or type", "choose another name")
    return name
