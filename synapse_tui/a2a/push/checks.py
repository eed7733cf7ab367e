"""What may be asked for, and by whom."""

from __future__ import annotations

import re

from synapse_tui.errors import InvalidValue, TargetRefused
from synapse_tui.model import USER

from .model import PushConfig

MAX_FIELD = 4096
"""Characters of a token, of credentials, of a secret."""
_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_ID = re.compile(r"[\x21-\x7e]{1,128}")


def check_asker(sender_id: str) -> None:
    """Refuse agents: one in a sandbox could have what it reads sent anywhere by this program.

    Args:
        sender_id: Whose signature the request carries; empty for none.

    Raises:
        TargetRefused: It is an agent's.
    """
    if sender_id not in ("", USER.sender_id):
        raise TargetRefused(
            f"{sender_id} asks for pushes: an agent in a sandbox would get around it so",
            "agents wait for answers by 'synapse send'; a person or a program may ask for pushes",
        )


def check_fields(config: PushConfig) -> None:
    """Look whether all of a configuration can be sent.

    Raises:
        InvalidValue: Some of it cannot; the value is not told.
    """
    check_header(config.token, "token")
    check_header(config.credentials, "credentials")
    if config.scheme and not _SCHEME.fullmatch(config.scheme):
        raise InvalidValue("the authentication scheme is not valid", "use a word such as Bearer")
    if config.config_id and not _ID.fullmatch(config.config_id):
        raise InvalidValue("the id of the push configuration is not valid", "use at most 128 characters")


def check_header(value: str, name: str) -> None:
    """Look whether a value can stand in a header.

    Raises:
        InvalidValue: It cannot.
    """
    if len(value) > MAX_FIELD or not _PRINTABLE.fullmatch(value):
        raise InvalidValue(f"the {name} is not valid", f"use at most {MAX_FIELD} printable ASCII characters")
