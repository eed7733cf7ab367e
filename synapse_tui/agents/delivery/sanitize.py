"""What is typed for a message: cleaned, prefixed, free of what a composer takes for a command."""

from __future__ import annotations

import re
from typing import Literal

from synapse_tui.agents.profiles.profile import Hazards, Profile
from synapse_tui.instructions import HEADER
from synapse_tui.messages.text import clean
from synapse_tui.model import Task

MessageFormat = Literal["a2a", "plain"]
GUARD = "Prompt: "
"""Stands before a text without prefix whose first character would start a command."""

_FORGED = re.compile(
    r"^([^\w\n\\]*?)([\[\uff3b]\s*(?:A2A\s*[:\uff1a]|Synapse\s+A2A)|A2A\s*[:\uff1a])",
    re.IGNORECASE | re.MULTILINE,
)
_COMPLETING = re.compile(r"(?:\\|[@#/$:!+][^\s]*)\Z")
_ID = re.compile(r"[^\w.@-]", re.ASCII)


def typed_text(task: Task, profile: Profile, *, plain: bool = False, prompt: bool = False) -> str:
    """What is typed for a task.

    Args:
        task: The message.
        profile: What the agent's composer takes.
        plain: Whether the short prefix is used.
        prompt: Whether it is the user's own first prompt, which gets none.
    """
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
    """The message, which says to which of the agent's own messages it is a reply."""
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
    """What is typed for a message of another agent or program.

    Args:
        text: The message.
        task_id: UUID of its task.
        sender_id: Who sent it.
        hazards: What the agent's composer does not take.
        form: `a2a` for `[A2A:<task8>:<sender_id>] text`, `plain` for `A2A: text`.
        multiline: Whether line feeds may stay.
        head: What stands before the text as it is: words of this program, which nobody else may begin with.

    Returns:
        Text without control characters but tab and LF, that starts with the prefix and completes nothing.
    """
    body = escape_forged(clean(text))
    prefix = f"[A2A:{task_id[:8]}:{safe_id(sender_id)}]" if form == "a2a" else "A2A:"
    start = f"{head}\n" if head else ""
    return _finish(f"{prefix} {start}{body}", hazards, multiline)


def prompt_text(text: str, *, hazards: Hazards, multiline: bool = True) -> str:
    """What is typed for the first prompt of the user: no prefix, but never a command by accident."""
    body = clean(text)
    if body.startswith(hazards.leading):
        body = GUARD + body
    return _finish(body, hazards, multiline)


def escape_forged(text: str) -> str:
    """A text in which no line begins like a message of this program: a backslash stands before what does."""
    return _FORGED.sub(r"\1\\\2", text)


def safe_id(sender_id: str) -> str:
    """A sender id that cannot end the prefix early: ASCII letters, digits, `_.@-`, at most 64."""
    return _ID.sub("_", sender_id)[:64] or "unknown"


def _finish(text: str, hazards: Hazards, multiline: bool) -> str:
    if not multiline:
        text = re.sub(r"\s*\n\s*", " ", text).replace("\t", " ")
    # Enter after `@token` accepts a completion, after a backslash it makes a new line; a space ends both.
    if hazards.trailing_mention and _COMPLETING.search(text):
        text += " "
    return text
