"""Extensions of the protocol that agents offer (A2A section 4.6); docs/a2a.md describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from synapse_tui.model import DEFAULT_PRIORITY, check_priority


@dataclass(frozen=True, slots=True)
class Extension:
    """Something that goes beyond the protocol.

    Attributes:
        uri: Names it.
        description: What it is for.
        required: Whether only callers that know it are served.
    """

    uri: str
    description: str
    required: bool = False


# Names of this kind are addresses by custom; one below `.invalid` nobody can ever own (RFC 2606).
SYNAPSE = Extension(
    "https://synapse-tui.invalid/a2a/v1",
    "How the agent is addressed; a message's metadata may hold `priority`, 1 (information) to 5 (interrupt)",
)
EXTENSIONS = (SYNAPSE,)


def missing(extensions: Iterable[Extension], requested: frozenset[str]) -> Sequence[str]:
    """The URIs of the extensions without which a caller is not served, and that it has not named."""
    return [each.uri for each in extensions if each.required and each.uri not in requested]


def activated(extensions: Iterable[Extension], requested: frozenset[str]) -> Sequence[str]:
    """The URIs of the extensions that a caller wants and the agent offers."""
    return [each.uri for each in extensions if each.uri in requested]


def priority_of(*places: Mapping[str, object]) -> int:
    """The priority that the metadata of a message or of its request names; the first that does decides.

    Raises:
        InvalidValue: It is none.
    """
    for place in places:
        extended = place.get(SYNAPSE.uri)
        for found in (place, extended if isinstance(extended, Mapping) else {}):
            if "priority" in found:
                return check_priority(found["priority"])
    return DEFAULT_PRIORITY
