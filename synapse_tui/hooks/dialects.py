"""Parses the input of each agent's hooks into one vocabulary.

Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, Copilot CLI 1.0; opencode through our own plugin. Unknown
content is ignored, because a partial event is better than none.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synapse_tui.core.locks import ChangeType
from synapse_tui.system.dataclass import dataclass

from .changed_lines import lines_of_hunks, lines_of_unified


class Dialect(StrEnum):
    """The agent whose hook format is used."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    COPILOT = "copilot"


class HookKind(StrEnum):
    START = "start"  # a conversation began, so the hooks work
    PRE = "pre"  # a tool is about to run, before any permission dialog
    POST = "post"  # a tool has run
    FAILED = "failed"  # a tool failed or was not run
    PROMPT = "prompt"  # a prompt was submitted
    ASKED = "asked"  # a dialog waits for a person
    IDLE = "idle"  # the turn is over
    INTERRUPTED = "interrupted"  # the turn was stopped
    END = "end"  # the conversation is over


@dataclass(frozen=True, slots=True)
class FileWrite:
    path: str
    change: ChangeType = ChangeType.MODIFY
    lines: str = ""  # the changed lines, if the agent reports them


@dataclass(frozen=True, slots=True)
class HookEvent:
    kind: HookKind
    dialect: Dialect
    folder: Path
    tool: str = ""  # the agent's name of the tool; empty if the event concerns none
    call: str = ""  # id of the call; `call_hash` if the agent gives none
    call_hash: str = ""
    writes: tuple[FileWrite, ...] = ()
    reads: tuple[str, ...] = ()
    shell: str = ""  # command line of a shell tool, whose writes are unknown
    prompt: str = ""


_HEADER = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_CHANGES = {"Add": ChangeType.CREATE, "Update": ChangeType.MODIFY, "Delete": ChangeType.DELETE}
_BEGIN = "*** Begin Patch"


def files_of_patch(text: str) -> tuple[FileWrite, ...]:
    """Return the files written by a patch, or by a command line containing one; a move gives both names."""
    start = text.find(_BEGIN)
    if start < 0:
        return ()
    found: list[FileWrite] = []
    for change, path, moved in _HEADER.findall(text[start:]):
        if not moved:
            found.append(FileWrite(path, _CHANGES[change]))
            continue
        if found:  # the source of a move is gone afterwards
            found[-1] = FileWrite(found[-1].path, ChangeType.DELETE)
        found.append(FileWrite(moved, ChangeType.CREATE))
    return tuple(found)


Fields = Mapping[str, Any]

# Events with the same name on the command line.
_KINDS: Mapping[str, HookKind] = MappingProxyType(
    {
        "SessionStart": HookKind.START,
        "PostToolUseFailure": HookKind.FAILED,
        "postToolUseFailure": HookKind.FAILED,
        "Interrupt": HookKind.INTERRUPTED,
    }
)
_PATHS = ("file_path", "notebook_path", "filePath", "path")
# Tools that write only the file named in their arguments.
_WRITERS: Mapping[Dialect, frozenset[str]] = MappingProxyType(
    {
        Dialect.CLAUDE: frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"}),
        Dialect.CODEX: frozenset({"Write", "Edit"}),
        Dialect.GEMINI: frozenset({"write_file", "replace"}),
        Dialect.OPENCODE: frozenset({"write", "edit", "multiedit"}),
        Dialect.COPILOT: frozenset({"create", "edit", "str_replace_editor"}),
    }
)
_SHELLS = frozenset({"Bash", "bash", "run_shell_command", "shell", "exec_command", "powershell"})
_PATCHERS = frozenset({"apply_patch", "patch"})


def read_event(word: str, dialect: Dialect, data: bytes) -> HookEvent:
    fields = json.loads(data) if data.strip() else {}
    if not isinstance(fields, dict):
        raise ValueError("a hook reads a JSON object")
    kind = _KINDS.get(_text(fields, "hook_event_name"), HookKind(word))
    tool = _text(fields, "tool_name", "toolName", "tool")
    arguments = _arguments(fields)
    shell = _text(arguments, "command", "cmd") if tool in _SHELLS else ""
    writes = _writes(dialect, tool, arguments)
    call_hash = _hash_of_call(tool, arguments)
    if kind is HookKind.POST and len(writes) == 1:
        writes = (_with_lines(writes[0], fields),)
    return HookEvent(
        kind,
        dialect,
        Path(_text(fields, "cwd", "directory") or "/"),
        tool=tool,
        call=_text(fields, "tool_use_id", "callID", "toolCallId") or call_hash,
        call_hash=call_hash,
        writes=writes,
        reads=_reads(dialect, tool, arguments),
        shell=shell,
        prompt=_text(fields, "prompt"),
    )


def _arguments(fields: Fields) -> Fields:
    for name in ("tool_input", "toolArgs", "args", "toolInput"):
        found = fields.get(name)
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except (ValueError, RecursionError):
                return {"input": found}
        if isinstance(found, dict):
            return found
    return {}


def _writes(dialect: Dialect, tool: str, arguments: Fields) -> tuple[FileWrite, ...]:
    patch = _text(arguments, "command", "patchText", "input", "patch")
    if tool in _PATCHERS or (tool in _SHELLS and "apply_patch" in patch):
        return files_of_patch(patch)
    if tool in _WRITERS[dialect] and (path := _text(arguments, *_PATHS)):
        return (FileWrite(path),)
    if dialect is Dialect.CODEX and tool in _WRITERS[dialect]:
        return files_of_patch(patch)
    return ()


def _reads(dialect: Dialect, tool: str, arguments: Fields) -> tuple[str, ...]:
    path = _text(arguments, *_PATHS)
    return (path,) if path and tool not in _WRITERS[dialect] else ()


def _with_lines(write: FileWrite, fields: Fields) -> FileWrite:
    for find in (_claude_lines, _gemini_lines, _opencode_lines):
        touched = find(fields)
        if touched:
            return FileWrite(write.path, write.change, touched)
    return write


def _claude_lines(fields: Fields) -> str:
    response = fields.get("tool_response")
    patch = response.get("structuredPatch") if isinstance(response, dict) else None
    hunks = [hunk for hunk in patch if isinstance(hunk, dict)] if isinstance(patch, list) else []
    return lines_of_hunks(hunks)


def _gemini_lines(fields: Fields) -> str:
    response = fields.get("tool_response")
    display = response.get("returnDisplay") if isinstance(response, dict) else None
    return lines_of_unified(_text(display, "fileDiff")) if isinstance(display, dict) else ""


def _opencode_lines(fields: Fields) -> str:
    metadata = fields.get("metadata")
    return lines_of_unified(_text(metadata, "diff")) if isinstance(metadata, dict) else ""


def _hash_of_call(tool: str, arguments: Fields) -> str:
    if not tool:
        return ""
    data = json.dumps([tool, dict(arguments)], sort_keys=True, default=str)
    return hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()[:16]


def _text(fields: Fields, *names: str) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


# Events whose answers can add context for the model, by the agent's name of the event.
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
        # Context added by BeforeTool never reaches the model.
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


def denial_answer(dialect: Dialect, reason: str) -> bytes:
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
    return kind in _EVENTS[dialect]


def context_answer(dialect: Dialect, kind: HookKind, text: str) -> bytes:
    """Return the answer that adds context for the model; empty if it would not reach the model."""
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
