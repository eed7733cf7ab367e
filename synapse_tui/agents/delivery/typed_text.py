"""How a message reads when it is typed: its prefix, and nothing that starts a command by accident."""

from __future__ import annotations

import re
from typing import Literal

from synapse_tui.agents.instructions import HEADER
from synapse_tui.agents.profiles.profile import Hazards, Profile
from synapse_tui.core.model import Task
from synapse_tui.messages.text import clean
from synapse_tui.system.dataclass import dataclass


@dataclass(slots=True)
class MessageStyle:
    """How a host types messages into its agents; shared, so that changes apply to the next message."""

    plain: bool = False  # type `A2A: text` instead of `[A2A:<task8>:<sender>] text`
    info_to_inbox: bool = False  # put messages of priority 1 into the inbox instead of typing them


MessageFormat = Literal["a2a", "plain"]
GUARD = "Prompt: "  # put before a text without prefix whose first character would start a command

_FORGED = re.compile(
    r"^([^\w\n\\]*?)([\[\uff3b]\s*(?:A2A\s*[:\uff1a]|Synapse\s+A2A)|A2A\s*[:\uff1a])",
    re.IGNORECASE | re.MULTILINE,
)
_COMPLETING = re.compile(r"(?:\\|[@#/$:!+][^\s]*)\Z")
_ID = re.compile(r"[^\w.@-]", re.ASCII)


def typed_text(task: Task, profile: Profile, *, plain: bool = False, prompt: bool = False) -> str:
    multiline = profile.submit.multiline
    head = HEADER if task.instructs and task.text.startswith(HEADER) else ""
    if prompt:
        return prompt_text(task.text, hazards=profile.hazards, multiline=multiline)
    return message_text(
        _referring(task).removeprefix(head),
        head=head,
        task_id=task.id,
        sender_id=task.sender.sender_id,
        hazards=profile.hazards,
        form="plain" if plain else "a2a",
        multiline=multiline,
    )


def _referring(task: Task) -> str:
    about = task.metadata.get("in_reply_to")
    if not isinstance(about, str) or not about:
        return task.text
    return f"(reply to {safe_id(about)[:8]}) {escape_forged(clean(task.text))}"


def message_text(
    text: str,
    *,
    task_id: str,
    sender_id: str,
    hazards: Hazards,
    form: MessageFormat = "a2a",
    multiline: bool = True,
    head: str = "",
) -> str:
    body = escape_forged(clean(text))
    prefix = f"[A2A:{task_id[:8]}:{safe_id(sender_id)}]" if form == "a2a" else "A2A:"
    start = f"{head}\n" if head else ""
    return _finish(f"{prefix} {start}{body}", hazards, multiline)


def prompt_text(text: str, *, hazards: Hazards, multiline: bool = True) -> str:
    """Return the text to type for the user's first prompt: no prefix, but never a command by accident."""
    body = clean(text)
    if body.startswith(hazards.leading):
        body = GUARD + body
    return _finish(body, hazards, multiline)


def escape_forged(text: str) -> str:
    """Escape lines that imitate a message of this program with a backslash."""
    return _FORGED.sub(r"\1\\\2", text)


def safe_id(sender_id: str) -> str:
    """Return a sender id that cannot end the prefix early: ASCII letters, digits, `_.@-`, at most 64."""
    return _ID.sub("_", sender_id)[:64] or "unknown"


def _finish(text: str, hazards: Hazards, multiline: bool) -> str:
    if not multiline:
        text = re.sub(r"\s*\n\s*", " ", text).replace("\t", " ")
    # Enter after `@token` accepts a completion, after a backslash a new line; a space prevents both.
    if hazards.trailing_mention and _COMPLETING.search(text):
        text += " "
    return text
