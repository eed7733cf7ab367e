"""The agents' own hooks: what they tell of their tools, in one vocabulary, and what they are answered."""

from .answers import context_answer, denial_answer, takes_context
from .dialects import read_event
from .events import Dialect, FileWrite, HookEvent, HookKind

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
