"""Starts an agent with our hooks for this process only, without editing the user's files."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import private_folder, read_own, write_private

from . import client
from .dialects import Dialect

log = logging.getLogger(__name__)

NAME = "synapse"
VERSION = "1.0.0"
ABOUT = "Locks files while an agent writes them"
TIMEOUT = 10  # the agents' timeout for a hook in seconds; ours ends long before
LAYER = "/<session-flags>/config.toml"  # the source that Codex reports for hooks on its command line

# opencode first has npm's library install a package, which without a network is retried for more than a
# minute
# and delays the first turn. In milliseconds; our plugin unsets these variables afterwards.
NPM: Mapping[str, str] = MappingProxyType(
    {
        "npm_config_fetch_retries": "1",
        "npm_config_fetch_retry_mintimeout": "1000",
        "npm_config_fetch_retry_maxtimeout": "2000",
        "npm_config_fetch_timeout": "20000",
    }
)

_CLAUDE_WRITERS = "Write|Edit|MultiEdit|NotebookEdit|Bash|Read"
_COPILOT_TOOLS = "create|edit|str_replace_editor|apply_patch|bash|view"
_GEMINI_TOOLS = "write_file|replace|run_shell_command|read_file"


@dataclass(frozen=True, slots=True)
class LaunchHooks:
    """What to add to the start of an agent."""

    args: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


NO_HOOKS = LaunchHooks()


def command_line(event: str, dialect: Dialect) -> str:
    """Return a hook's shell command; it is silent and always succeeds, even without this program."""
    words = [sys.executable, "-S", "-E", str(Path(client.__file__)), event, "--dialect", dialect.value]
    return f"{shlex.join(words)} 2>/dev/null || true"


def prepare(
    dialect: Dialect,
    folder: Path,
    environ: Mapping[str, str],
    *,
    trusted: Mapping[str, str] = MappingProxyType({}),
) -> LaunchHooks:
    """Write the hook files of an agent and return how to start it with them."""
    private_folder(folder)
    match dialect:
        case Dialect.CLAUDE:
            place = folder / "claude"
            _write(place / ".claude-plugin" / "plugin.json", _about())
            _write(place / "hooks" / "hooks.json", {"hooks": claude_hooks()})
            return LaunchHooks(args=("--plugin-dir", str(place)))
        case Dialect.COPILOT:
            place = folder / "copilot"
            _write(place / "plugin.json", {**_about(), "hooks": "hooks.json"})
            _write(place / "hooks.json", {"version": 1, "hooks": copilot_hooks()})
            return LaunchHooks(args=("--plugin-dir", str(place)))
        case Dialect.OPENCODE:
            plugin = folder / "opencode" / "synapse.js"
            private_folder(plugin.parent)
            write_private(plugin, opencode_plugin())
            return LaunchHooks(environ=_opencode_environ(plugin, environ))
        case Dialect.CODEX:
            return LaunchHooks(args=("-c", codex_setting(trusted))) if trusted else NO_HOOKS
        case Dialect.GEMINI:  # uses an extension that is installed once (`gemini_extension`)
            return NO_HOOKS


def claude_hooks() -> dict[str, object]:
    def call(event: str, matcher: str = "") -> list[object]:
        hook = {"type": "command", "command": command_line(event, Dialect.CLAUDE), "timeout": TIMEOUT}
        return [{**({"matcher": matcher} if matcher else {}), "hooks": [hook]}]

    return {
        "SessionStart": call("start"),
        "PreToolUse": call("pre", _CLAUDE_WRITERS),
        "PostToolUse": call("post", _CLAUDE_WRITERS),
        "PostToolUseFailure": call("post", _CLAUDE_WRITERS),
        "UserPromptSubmit": call("prompt"),
        "PermissionRequest": call("asked"),
        "Stop": call("idle"),
        "SessionEnd": call("end"),
    }


_CODEX: Sequence[tuple[str, str, str]] = (
    ("SessionStart", "start", ""),
    ("PreToolUse", "pre", "apply_patch|Bash"),
    ("PostToolUse", "post", ""),
    ("UserPromptSubmit", "prompt", ""),
    ("PermissionRequest", "asked", ""),
    ("Stop", "idle", ""),
    ("Interrupt", "idle", ""),
    ("SessionEnd", "end", ""),
)
_CODEX_SHORT = frozenset({"Stop", "Interrupt", "SessionEnd"})  # Codex allows these at most three seconds


def codex_hooks() -> dict[str, object]:
    hooks: dict[str, object] = {}
    for name, event, matcher in _CODEX:
        timeout = 3 if name in _CODEX_SHORT else TIMEOUT
        hook = {"type": "command", "command": command_line(event, Dialect.CODEX), "timeout": timeout}
        hooks[name] = [{**({"matcher": matcher} if matcher else {}), "hooks": [hook]}]
    return hooks


def codex_keys() -> list[str]:
    """Return the ids under which Codex records trust in our command-line hooks."""
    return [f"{LAYER}:{_snake(name)}:0:0" for name, _, _ in _CODEX]


def codex_setting(trusted: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the value of Codex's option `-c`: an inline TOML table that trusts our own hooks only."""
    content: dict[str, object] = dict(codex_hooks())
    if trusted:
        content["state"] = {key: {"trusted_hash": digest} for key, digest in trusted.items()}
    return f"hooks={_toml(content)}"


def gemini_hooks() -> dict[str, object]:
    """Return the hooks in Gemini CLI's format, for an extension or settings file; timeouts are in ms."""

    def call(event: str, matcher: str = "") -> list[object]:
        hook = {
            "name": f"{NAME}-{event}",
            "type": "command",
            "command": command_line(event, Dialect.GEMINI),
            "timeout": TIMEOUT * 1000,
        }
        return [{**({"matcher": matcher} if matcher else {}), "hooks": [hook]}]

    return {
        "SessionStart": call("start"),
        "BeforeTool": call("pre", _GEMINI_TOOLS),
        "AfterTool": call("post", _GEMINI_TOOLS),
        "BeforeAgent": call("prompt"),
        "Notification": call("asked"),
        "AfterAgent": call("idle"),
        "SessionEnd": call("end"),
    }


def gemini_extension() -> Mapping[str, object]:
    return {
        "gemini-extension.json": {"name": NAME, "version": VERSION, "description": ABOUT},
        "hooks/hooks.json": {"hooks": gemini_hooks()},
    }


def copilot_hooks() -> dict[str, object]:

    def call(event: str, matcher: str = "") -> list[object]:
        hook = {"type": "command", "bash": command_line(event, Dialect.COPILOT), "timeoutSec": TIMEOUT}
        return [{**({"matcher": matcher} if matcher else {}), **hook}]

    return {
        "sessionStart": call("start"),
        "preToolUse": call("pre", _COPILOT_TOOLS),
        "postToolUse": call("post"),
        "postToolUseFailure": call("post"),
        "userPromptSubmitted": call("prompt"),
        "permissionRequest": call("asked"),
        "agentStop": call("idle"),
        "sessionEnd": call("end"),
    }


def opencode_plugin() -> bytes:
    return (Path(__file__).parent / "opencode_plugin.js").read_bytes()


def _opencode_environ(plugin: Path, environ: Mapping[str, str]) -> dict[str, str]:
    own = {name.lower() for name in environ}
    retries = {name: value for name, value in NPM.items() if name not in own}
    names = {"SYNAPSE_NPM": " ".join(retries)} if retries else {}
    return {**retries, **names, "OPENCODE_CONFIG_CONTENT": _opencode_config(plugin, environ)}


def _opencode_config(plugin: Path, environ: Mapping[str, str]) -> str:
    try:
        content = json.loads(environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
    except (ValueError, RecursionError):
        content = {}
    content = content if isinstance(content, dict) else {}
    plugins = content.get("plugin")
    others = [each for each in plugins if each != plugin.as_uri()] if isinstance(plugins, list) else []
    return json.dumps({**content, "plugin": [*others, plugin.as_uri()]})


def _about() -> dict[str, object]:
    return {"name": NAME, "version": VERSION, "description": ABOUT}


def _write(path: Path, content: object) -> None:
    private_folder(path.parent)
    write_private(path, (json.dumps(content, indent=1) + "\n").encode())


def _toml(value: object) -> str:
    """Format a value as inline TOML 1.0; JSON strings are valid TOML basic strings."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_toml_key(str(key))}={_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_toml(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if key.isidentifier() and key.isascii() else json.dumps(key)


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


CODEX_ANSWERS = 15.0  # timeout in seconds
_INITIALIZE = {"method": "initialize", "id": 1, "params": {"clientInfo": {"name": "synapse", "version": "1"}}}


async def trusted_hashes(
    command: Path, cache: Path, *, environ: Mapping[str, str], cwd: Path
) -> Mapping[str, str]:
    file = cache / f"codex-{_identity(command)}.json"
    known = _load(file)
    if known:
        return known
    try:
        async with asyncio.timeout(CODEX_ANSWERS):
            found = await _ask(command, environ=environ, cwd=cwd)
    except (OSError, TimeoutError, ValueError) as error:
        log.warning("codex does not report the hashes of hooks: %s", str(error) or "no answer")
        return {}
    hashes = {key: found[key] for key in codex_keys() if key in found}
    if len(hashes) < len(codex_keys()):
        log.warning("codex does not know all hooks: %s of %s", len(hashes), len(codex_keys()))
        return {}
    with contextlib.suppress(OSError):
        private_folder(cache)
        write_private(file, json.dumps(hashes).encode())
    return hashes


async def _ask(command: Path, *, environ: Mapping[str, str], cwd: Path) -> dict[str, str]:
    process = await asyncio.create_subprocess_exec(
        str(command),
        "app-server",
        "-c",
        codex_setting(),
        env=dict(environ),
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for message in (
            _INITIALIZE,
            {"method": "initialized"},
            {"method": "hooks/list", "id": 2, "params": {"cwds": [str(cwd)]}},
        ):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        await process.stdin.drain()
        while line := await process.stdout.readline():
            answer = json.loads(line)
            if isinstance(answer, dict) and answer.get("id") == 2:
                return _hashes(answer)
        raise ValueError("it ended without an answer")
    finally:
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # The npm package's launcher does not end the program it started.
            os.killpg(process.pid, signal.SIGTERM)
        await process.wait()


def _hashes(answer: Mapping[str, Any]) -> dict[str, str]:
    """Read `result.data[].hooks[].{key, currentHash}`."""
    result = answer.get("result")
    data = result.get("data") if isinstance(result, dict) else None
    hooks = [hook for each in data or () if isinstance(each, dict) for hook in each.get("hooks") or ()]
    return {
        str(hook["key"]): str(hook["currentHash"])
        for hook in hooks
        if isinstance(hook, dict) and "key" in hook and hook.get("currentHash")
    }


def _identity(command: Path) -> str:
    real = command.resolve()
    try:
        status = real.stat()
        mark = f"{real}:{status.st_size}:{status.st_mtime_ns}"
    except OSError:
        mark = str(real)
    return hashlib.sha256(f"{mark}\n{codex_setting()}".encode()).hexdigest()[:16]


def _load(file: Path) -> dict[str, str]:
    try:
        content = json.loads(read_own(file))
    except (OSError, ValueError, RecursionError):
        return {}
    found = content if isinstance(content, dict) else {}
    return found if set(found) == set(codex_keys()) else {}
