"""What each agent writes on the standard input of its hooks, read into one vocabulary.

Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, Copilot CLI 1.0; opencode by our own plugin. What is not known
is left out: an event that says less is better than none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synapse_tui.file_safety import lines

from .events import Dialect, FileWrite, HookEvent, HookKind
from .patches import files_of_patch

Fields = Mapping[str, Any]

_KINDS: Mapping[str, HookKind] = MappingProxyType(
    {
        "SessionStart": HookKind.START,
        "PostToolUseFailure": HookKind.FAILED,
        "postToolUseFailure": HookKind.FAILED,
        "Interrupt": HookKind.INTERRUPTED,
    }
)
"""Events that share the word of the command line with another one."""
_PATHS = ("file_path", "notebook_path", "filePath", "path")
_WRITERS: Mapping[Dialect, frozenset[str]] = MappingProxyType(
    {
        Dialect.CLAUDE: frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"}),
        Dialect.CODEX: frozenset({"Write", "Edit"}),
        Dialect.GEMINI: frozenset({"write_file", "replace"}),
        Dialect.OPENCODE: frozenset({"write", "edit", "multiedit"}),
        Dialect.COPILOT: frozenset({"create", "edit", "str_replace_editor"}),
    }
)
"""Tools that write the one file that their arguments name."""
_SHELLS = frozenset({"Bash", "bash", "run_shell_command", "shell", "exec_command", "powershell"})
_PATCHERS = frozenset({"apply_patch", "patch"})


def read_event(word: str, dialect: Dialect, told: bytes) -> HookEvent:
    """Read what a hook was told.

    Args:
        word: The event as the command line names it.
        dialect: Which agent speaks.
        told: What the agent wrote on standard input.

    Raises:
        ValueError: It is no JSON object, or there is no such event.
    """
    fields = json.loads(told) if told.strip() else {}
    if not isinstance(fields, dict):
        raise ValueError("a hook is told a JSON object")
    kind = _KINDS.get(_text(fields, "hook_event_name"), HookKind(word))
    tool = _text(fields, "tool_name", "toolName", "tool")
    arguments = _arguments(fields)
    shell = _text(arguments, "command", "cmd") if tool in _SHELLS else ""
    writes = _writes(dialect, tool, arguments)
    deed = _deed(tool, arguments)
    if kind is HookKind.POST and len(writes) == 1:
        writes = (_with_lines(writes[0], fields),)
    return HookEvent(
        kind,
        dialect,
        Path(_text(fields, "cwd", "directory") or "/"),
        tool=tool,
        call=_text(fields, "tool_use_id", "callID", "toolCallId") or deed,
        deed=deed,
        writes=writes,
        reads=_reads(dialect, tool, arguments),
        shell=shell,
        prompt=_text(fields, "prompt"),
    )


def _arguments(fields: Fields) -> Fields:
    """The arguments of a tool; Copilot may write them as a text."""
    for name in ("tool_input", "toolArgs", "args", "toolInput"):
        found = fields.get(name)
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError:
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
    """A write with the lines that the agent tells after the tool."""
    for find in (_claude_lines, _gemini_lines, _opencode_lines):
        touched = find(fields)
        if touched:
            return FileWrite(write.path, write.change, touched)
    return write


def _claude_lines(fields: Fields) -> str:
    response = fields.get("tool_response")
    patch = response.get("structuredPatch") if isinstance(response, dict) else None
    hunks = [hunk for hunk in patch if isinstance(hunk, dict)] if isinstance(patch, list) else []
    return lines.of_hunks(hunks)


def _gemini_lines(fields: Fields) -> str:
    response = fields.get("tool_response")
    display = response.get("returnDisplay") if isinstance(response, dict) else None
    return lines.of_unified(_text(display, "fileDiff")) if isinstance(display, dict) else ""


def _opencode_lines(fields: Fields) -> str:
    metadata = fields.get("metadata")
    return lines.of_unified(_text(metadata, "diff")) if isinstance(metadata, dict) else ""


def _deed(tool: str, arguments: Fields) -> str:
    """A name for what a call does: its arguments come again unchanged in its dialog and after it."""
    if not tool:
        return ""
    told = json.dumps([tool, dict(arguments)], sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:16]


def _text(fields: Fields, *names: str) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")
