"""The agents' hooks: their events in one vocabulary, and the answers to them."""

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
