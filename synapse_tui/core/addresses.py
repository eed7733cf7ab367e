"""Agent ids and addresses (`@claude`, `@claude-8100`, `@reviewer`, `@all`) and their completion.

Precedence: exact id > type-port > name > type > alias of an external agent > identity. Types, names and `all`
refer to agents of this project; agents of other projects are addressed by exact id or identity. Case and
character width (`ｃｌａｕｄｅ` from a Japanese keyboard) are ignored. An agent cannot address itself.
"""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import tilde

from .errors import AgentExited, AgentNotFound, AmbiguousAddress, ConfigError, TakesNoMessages

ALL = "all"
"""Address of all other agents of the project that receive messages."""

_IDENTITY = re.compile(r"[0-9a-f]{1,64}")
_SHORTEST_IDENTITY = 8
_PORT = re.compile(r"[1-9]\d{3,4}")
_PORT_START = re.compile(r"[1-9]\d{0,4}")
_AGENT_ID = re.compile(r"synapse-(?P<type>.+)-(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """One agent and the forms by which it can be addressed.

    Attributes:
        agent_id: `synapse-{type}-{port}`.
        name: Given by the user; may be empty.
        local: Whether it belongs to this project.
        aliases: Other names of its type (`ClaudeCode`).
        live: Whether it is running; an exited agent is known but cannot receive messages.
        external: Whether it is an external A2A agent, whose id is its alias; never part of `all`.
        project: Folder of its project; empty if unknown.
        receives: Whether it receives messages; `all` omits agents that do not, such as a shell.
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

    @property
    def label(self) -> str:
        """What a person of this project calls it, and can type: its name, else its id."""
        return self.name if self.name and self.local else self.agent_id


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion of a partly typed address.

    Attributes:
        text: The address without `@`.
        targets: The agents it refers to.
    """

    text: str
    targets: tuple[Address, ...]


def agent_id_for(agent_type: str, port: int) -> str:
    return f"synapse-{agent_type}-{port}"


def parse_agent_id(agent_id: str) -> tuple[str, int] | None:
    """Split an agent id into type and port; None if it is not an agent id."""
    match = _AGENT_ID.fullmatch(agent_id)
    return (match["type"], int(match["port"])) if match else None


def identity_of(working_dir: str, agent_type: str, name: str = "") -> str:
    """Return the agent's port-independent identity: SHA-256 of host, folder, type and name, as hex."""
    import hashlib  # noqa: PLC0415 - rarely needed, and slows down command startup

    return hashlib.sha256(
        f"{os.uname().nodename}{working_dir}{agent_type}{name}".encode(errors="surrogateescape")
    ).hexdigest()


def is_identity(word: str, working_dir: str, agent_type: str, name: str = "") -> bool:
    """Whether a folded word is the identity of an agent, or a prefix of at least eight digits."""
    if len(word) < _SHORTEST_IDENTITY or not _IDENTITY.fullmatch(word):
        return False
    return identity_of(working_dir, agent_type, name).startswith(word)


def fold(text: str) -> str:
    """Normalize text for comparing addresses: case, character width and a leading `@` are ignored."""
    return unicodedata.normalize("NFKC", text).strip().removeprefix("@").casefold()


def reads_like(claimed: str, candidates: Sequence[Address]) -> bool:
    """Whether a sender's name reads like the name or the `type-port` of an agent of the project.

    Case, width and punctuation are ignored. The aliases of external agents are theirs to use: they cannot
    prove themselves otherwise.
    """
    wanted = _letters(claimed)
    return any(
        wanted in (_letters(candidate.name), _letters(f"{candidate.agent_type}{candidate.port}"))
        for candidate in candidates
        if candidate.local and not candidate.external
    )


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, fold(name)))


def resolve(address: str, candidates: Sequence[Address], *, sender: str = "") -> list[Address]:
    """Resolve an address.

    Args:
        address: With or without `@`.
        candidates: All agents, including exited ones.
        sender: Agent id of the sender, which is excluded.

    Returns:
        One live agent, or all other live agents of the project for `all`.

    Raises:
        AgentNotFound: No agent matches, or only the sender.
        AgentExited: The matching agent has exited.
        AmbiguousAddress: Two or more agents match.
    """
    wanted = fold(address)
    others = [candidate for candidate in candidates if candidate.agent_id != sender]
    if wanted == ALL:
        return _everyone(others)
    if found := _matching(wanted, others):
        return [_only_live(wanted, found)]
    raise _not_found(wanted, candidates, others)


def _matching(wanted: str, others: Sequence[Address]) -> list[Address]:
    """Return the agents that a folded address means: those of the first form by which it finds any."""
    found = ([other for other in others if matches(other, wanted)] for matches in _LEVELS)
    return next(filter(None, found), [])


def receivers(address: str, candidates: Sequence[Address], *, sender: str = "") -> list[Address]:
    """Resolve the address of a message; as `resolve`, and raises TakesNoMessages."""
    found = resolve(address, candidates, sender=sender)
    for target in found:
        if not target.receives:
            raise TakesNoMessages(shortest_form(target, candidates))
    return found


def could_be(text: str, candidates: Sequence[Address], *, sender: str = "") -> bool:
    """Whether any address, including ambiguous ones and those of exited agents, begins with the text.

    Args:
        text: The text after `@`; every address begins with the empty text.
        candidates: All agents, including exited ones.
        sender: Agent id of the sender, which is excluded.
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


def names_agent(word: str, types: Collection[str]) -> bool:
    """Whether a word can only be an agent's address, even if there is no such agent.

    That is `type-port` and `synapse-type-port`, with a known type.
    """
    start = fold(word)
    rest = next((start.removeprefix(form) for form in _before_port(types) if start.startswith(form)), "")
    return bool(_PORT.fullmatch(rest))


def would_refuse(address: str, candidates: Sequence[Address], types: Collection[str]) -> bool:
    """Whether an address is of an agent that takes no messages, also if it does not run.

    Args:
        address: With or without `@`.
        candidates: All known agents, including exited ones.
        types: The types of agents that take no messages.
    """
    if found := _matching(fold(address), candidates):
        return not all(candidate.receives for candidate in found)
    return names_agent(address, types)


def could_name_agent(text: str, types: Collection[str]) -> bool:
    """Whether a word of which `names_agent` is true begins with the text."""
    start = fold(text)
    return any(
        form.startswith(start) or (start.startswith(form) and _PORT_START.fullmatch(start.removeprefix(form)))
        for form in _before_port(types)
    )


def _before_port(types: Collection[str]) -> list[str]:
    return [fold(form) for kind in types for form in (f"{kind}-", agent_id_for(kind, 0)[:-1])]


def means_itself(address: str, candidates: Sequence[Address], sender: str) -> bool:
    """Whether an address is a form of the sender's own."""
    own = (candidate for candidate in candidates if candidate.agent_id == sender)
    return any(fold(address) in _folded_forms(candidate) for candidate in own)


def is_elsewhere(address: str, candidates: Sequence[Address]) -> bool:
    """Whether an address would mean an agent of another project there."""
    return any(_would_mean(candidate, fold(address)) for candidate in candidates)


def complete(text: str, candidates: Sequence[Address], *, sender: str = "") -> list[Completion]:
    """Return the completions of a partly typed address: the shortest unique address of each agent.

    Args:
        text: The text after `@`.
        candidates: All agents; those that have exited or take no messages are omitted.
        sender: Agent id of the sender, which is omitted.

    Returns:
        Agents of the project in the given order, then `all`, then agents of other projects.
    """
    start = fold(text)
    others = [each for each in candidates if each.agent_id != sender and each.live and each.receives]
    local = [candidate for candidate in others if candidate.local]
    found = _completions(start, local, candidates, sender)
    if len(local) > 1 and ALL.startswith(start):
        found.append(Completion(ALL, tuple(local)))
    foreign = [candidate for candidate in others if not candidate.local]
    return found + _completions(start, foreign, candidates, sender)


def forms_of(target: Address, candidates: Sequence[Address]) -> list[str]:
    """Return the addresses, without `@`, that refer to this agent only: its name, type and id, if unique."""
    return [
        form
        for form in (target.name, target.agent_type, target.agent_id)
        if form and _means(form, target, candidates, "")
    ]


def shortest_form(target: Address, candidates: Sequence[Address], *, sender: str = "") -> str:
    """Return the shortest address, without `@`, that refers to this agent only."""
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
    raise AgentExited(f"{found[0].name or found[0].agent_id} has ended", "restart it in its pane")


def _not_found(wanted: str, candidates: Sequence[Address], others: Sequence[Address]) -> AgentNotFound:
    if any(
        wanted in _folded_forms(candidate) or _has_identity(candidate, wanted)
        for candidate in candidates
        if candidate not in others
    ):
        return AgentNotFound(f"'@{wanted}' is the sender itself", "address another agent")
    foreign = [candidate for candidate in others if _would_mean(candidate, wanted)]
    if foreign:
        if len(foreign) == 1:
            where, agent_id = _place(foreign[0]), foreign[0].agent_id
            return AgentNotFound(f"{wanted} is in another project{where}", f"use {agent_id}")
        ids = ", ".join(f"{each.agent_id}{_place(each)}" for each in foreign)
        return AgentNotFound(f"'@{wanted}' means agents of other projects only", f"use one of {ids}")
    known = [form for candidate in others for form in _folded_forms(candidate)]
    begun = [form for form in known if wanted and form.startswith(wanted)]
    if near := begun[:1] or difflib.get_close_matches(wanted, known, 1):
        return AgentNotFound(f"no agent answers to '@{wanted}'", f"did you mean '@{near[0]}'?")
    live = ", ".join(f"@{candidate.label}" for candidate in others if candidate.live)
    if not live and any(candidate.live for candidate in candidates):
        return AgentNotFound(f"no agent answers to '@{wanted}'", "no other agent is running")
    return AgentNotFound(
        f"no agent answers to '@{wanted}'", f"live agents: {live}" if live else "no agent is running"
    )


def _would_mean(candidate: Address, wanted: str) -> bool:
    if candidate.local or candidate.external or not candidate.live:
        return False
    return wanted in map(fold, _names(candidate))


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
"""Maximum length of a name, in characters."""
_FORM = re.compile(r"\w[\w.-]*")
_ADDRESS = re.compile(r".+-\d+|synapse-.*")
_RESERVED = frozenset({"all", "user", "system"})


def check_name(name: str, *, taken: Collection[str] = ()) -> str:
    """Return the name if an agent may use it.

    Args:
        name: Letters and digits of any script, `_`, `.` and `-`.
        taken: Names in use (types, their aliases, other agents' names), in lower case.

    Raises:
        ConfigError: The name is invalid, in use, or could be mistaken for another address.
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
