"""Who a message is from: what the caller claims, held against what its signature proves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from synapse_tui.addresses import fold
from synapse_tui.errors import MessageError
from synapse_tui.model import USER, Sender

from .external.untrusted import clean_line
from .problems import HttpProblem
from .wire import WireSender

RESERVED = "synapse-system"
"""The id of synapse's own messages; nobody from outside may use it."""
_AGENT_ID = re.compile(r"synapse-(.+)-\d+")
_SIGNS = re.compile(r"[^a-z0-9]+")
_OWN_TYPES = {"user": "user", RESERVED: "system"}


def sender_of(
    metadata: Mapping[str, Any], verified_id: str, *, is_ours: Callable[[str], bool] = lambda _id: False
) -> Sender:
    """The sender of a message.

    A claim that no signature proves stays a claim (`verified` is False); agents of this very host can always
    prove themselves, so nobody else may claim to be one.

    Args:
        metadata: The message's metadata; its `sender` is the claim.
        verified_id: Who sends it, as a signature or the kernel proves; empty for nobody known.
        is_ours: Tells whether an id is that of an agent of this host.

    Raises:
        MessageError: The claim is malformed.
        HttpProblem: It names another sender than the signature, a reserved one, or an agent of this host.
    """
    claim = _claim(metadata.get("sender"))
    if verified_id:
        if claim.sender_id not in (verified_id, "external"):
            raise HttpProblem(
                403,
                "sender_mismatch",
                f"the request comes from '{verified_id}' but says that it is from '{claim.sender_id}'",
                "leave metadata.sender.sender_id out, or name the agent that sends",
            )
        return Sender(verified_id, type_of(verified_id), claim.sender_endpoint, verified=True)
    names = _names_like(claim.sender_id)
    if RESERVED in names or claim.sender_type.lower() == "system" or _is_false_user(claim.sender_id):
        raise HttpProblem(
            403,
            "sender_reserved",
            f"'{claim.sender_id}' reads like a reserved name",
            "send under a name of your own",
        )
    if any(map(is_ours, names)):
        raise HttpProblem(
            403,
            "sender_not_proved",
            f"the request says that it is from {claim.sender_id}, and is not signed by it",
            "send from inside that agent, or under a name of your own",
        )
    return Sender(claim.sender_id, claim.sender_type, claim.sender_endpoint, verified=False)


def _names_like(claimed: str) -> set[str]:
    """The ids for which a name may be read: case, signs and leading zeros tell a reader nothing."""
    words = _SIGNS.sub("-", fold(clean_line(claimed))).strip("-")
    found = {claimed, words, re.sub(r"-0+(?=\d+$)", "-", words)}
    compact = words.replace("-", "")
    if compact == _SIGNS.sub("", RESERVED):
        found.add(RESERVED)
    if match := re.fullmatch(r"synapse(.*?)(\d+)", compact):
        kind, digits = match.groups()  # a type may end with digits too
        found |= {f"synapse-{kind}{digits[:at]}-{int(digits[at:])}" for at in range(len(digits))}
    return found


def _is_false_user(claimed: str) -> bool:
    """Whether a name reads like the person's without being it."""
    return claimed != USER.sender_id and _SIGNS.sub("", fold(clean_line(claimed))) == USER.sender_id


def type_of(sender_id: str) -> str:
    """The type in a sender's id: that of an agent, `user`, `system`, else `external`."""
    match = _AGENT_ID.fullmatch(sender_id)
    return match[1] if match else _OWN_TYPES.get(sender_id, "external")


def _claim(value: object) -> WireSender:
    if value is None:
        return WireSender()
    try:
        return WireSender.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(("metadata.sender", *map(str, first["loc"])))
        raise MessageError(
            f"{where} is not valid: {first['msg']}",
            "ids are letters, digits, '.', '_', '-', '@'; endpoints are http URLs",
        ) from error
