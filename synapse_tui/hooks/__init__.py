"""The agents' own hooks: what they tell of their tools, in one vocabulary, and what they are answered."""

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
