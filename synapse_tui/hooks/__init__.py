"""The agents' hooks: their events in one vocabulary, the answers to them, and their locks on files."""

from .dialects import (
    Dialect,
    FileWrite,
    HookEvent,
    HookKind,
    context_answer,
    denial_answer,
    read_event,
    takes_context,
)

__all__ = [
    "Dialect",
    "FileWrite",
    "HookEvent",
    "HookKind",
    "context_answer",
    "denial_answer",
    "read_event",
    "takes_context",
]
