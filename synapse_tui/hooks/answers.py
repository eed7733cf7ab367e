"""What hooks print, in each agent's words; never that a tool is allowed: that would skip the dialog."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from .events import Dialect, HookKind

_EVENTS: Mapping[Dialect, Mapping[HookKind, str]] = MappingProxyType(
    {
        Dialect.CLAUDE: {
            HookKind.PRE: "PreToolUse",
            HookKind.POST: "PostToolUse",
            HookKind.PROMPT: "UserPromptSubmit",
            HookKind.START: "SessionStart",
        },
        Dialect.CODEX: {
            HookKind.PRE: "PreToolUse",
            HookKind.POST: "PostToolUse",
            HookKind.PROMPT: "UserPromptSubmit",
            HookKind.START: "SessionStart",
        },
        # What BeforeTool adds is never told to the model.
        Dialect.GEMINI: {
            HookKind.POST: "AfterTool",
            HookKind.PROMPT: "BeforeAgent",
            HookKind.START: "SessionStart",
        },
        Dialect.OPENCODE: {HookKind.POST: "post", HookKind.PROMPT: "prompt"},
        Dialect.COPILOT: {
            HookKind.PRE: "preToolUse",
            HookKind.POST: "postToolUse",
            HookKind.PROMPT: "userPromptSubmitted",
            HookKind.START: "sessionStart",
        },
    }
)
"""Where an agent takes further words for its model, and what it calls that."""


def denial_answer(dialect: Dialect, reason: str) -> bytes:
    """What makes an agent drop a tool call and tell its model why."""
    match dialect:
        case Dialect.CLAUDE | Dialect.CODEX:
            answer: Mapping[str, object] = {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                }
            }
        case Dialect.GEMINI:
            answer = {"decision": "deny", "reason": reason}
        case Dialect.OPENCODE:
            answer = {"deny": True, "reason": reason}
        case Dialect.COPILOT:
            answer = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return _written(answer)


def takes_context(dialect: Dialect, kind: HookKind) -> bool:
    """Whether an agent tells its model what a hook of that kind adds."""
    return kind in _EVENTS[dialect]


def context_answer(dialect: Dialect, kind: HookKind, text: str) -> bytes:
    """What adds words for the model; nothing where the agent would not tell it."""
    name = _EVENTS[dialect].get(kind)
    if name is None or not text:
        return b""
    if dialect is Dialect.OPENCODE:
        return _written({"context": text})
    if dialect is Dialect.COPILOT:
        return _written({"additionalContext": text})
    return _written({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}})


def _written(answer: Mapping[str, object]) -> bytes:
    return json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
