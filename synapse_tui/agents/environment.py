"""The environment of an agent's process: adds our variables, removes those of outer agents and secrets."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.errors import UnsafePath
from synapse_tui.messages.storage.location import without_password
from synapse_tui.settings.schema import VARIABLE as DATABASE_VARIABLE
from synapse_tui.system.files import private_folder, read_own, write_private
from synapse_tui.system.language import VARIABLE as LANGUAGE_VARIABLE
from synapse_tui.system.language import language
from synapse_tui.system.paths import UserPaths

_START_UP = """\
# Written by synapse-tui, and read by bash as BASH_ENV: start-up files may have set PATH anew before.
if [ -n "${{{own}-}}" ] && [ -r "${own}" ]; then . "${own}"; fi
case "${{PATH-}}" in
  {folder}|{folder}:*) ;;
  *)
    PATH=":${{PATH-}}:"; PATH=${{PATH//:{folder}:/:}}; PATH=${{PATH#:}}; PATH={folder}:${{PATH%:}}
    export PATH ;;
esac
"""
_BASH_ENV = "BASH_ENV"
_OWN_BASH_ENV = "SYNAPSE_BASH_ENV"  # the user's BASH_ENV, which ours sources first; empty for none
HOOKS_VARIABLE = "SYNAPSE_HOOKS"  # the socket that the agent's hooks call

_OUTER_TERMINAL = frozenset({
    "LINES", "COLUMNS", "TERMCAP",
    "TMUX", "TMUX_PANE", "STY", "WINDOW",
    "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TERM_FEATURES", "COLORFGBG",
    "LC_TERMINAL", "LC_TERMINAL_VERSION", "WINDOWID", "VTE_VERSION", "TERMINAL_EMULATOR", "ZED_TERM",
    "WT_SESSION", "WT_PROFILE_ID",
})  # fmt: skip
# set by an agent for its tools: this program may run inside one, its own agents do not
_OUTER_AGENT = frozenset({
    "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID",
    "GEMINI_CLI", "OPENCODE", "COPILOT_CLI",
})  # fmt: skip
# preferences for the outer screen; agents' colours are adapted when painted
_OUTER_COLORS = frozenset({"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"})
_REMOVED = _OUTER_TERMINAL | _OUTER_AGENT | _OUTER_COLORS
_REMOVED_PREFIXES = (
    "KITTY_", "WEZTERM_", "ITERM_", "ALACRITTY_", "GHOSTTY_", "KONSOLE_", "ZELLIJ", "VSCODE_",
    "GNOME_TERMINAL_", "WARP_",
)  # fmt: skip
_TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
# our own identity, and secrets that agents must not see
_OURS = re.compile(
    r"SYNAPSE_(?:AGENT_ID|ENDPOINT|TOKEN|BIN|SPOOL|HOOKS|OPEN_FILES|UMASK|BASH_ENV|LANGUAGE)$|SYNAPSE_.*(?:KEY|SECRET|PASSWORD|DATABASE)"
)


def installed_command() -> Path:
    """Return the `synapse` command of this installation, whether or not it is on PATH."""
    beside = Path(sys.executable).parent / "synapse"
    if beside.exists():
        return beside
    found = shutil.which("synapse")
    return Path(found).absolute() if found else beside


def command_folder(command: Path, paths: UserPaths) -> Path:
    """Return a folder that contains only `synapse`, to be put on PATH.

    The command's own folder would also expose the interpreter and tools of our virtual environment.
    """
    digest = hashlib.sha256(str(command).encode()).hexdigest()[:12]
    folder = paths.synapse / "bin" / digest
    link = folder / "synapse"
    try:
        private_folder(folder)
        for found in folder.iterdir():  # created while others could write to a parent folder
            if found != link:
                shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()
        if not link.is_symlink() or link.readlink() != command:
            link.unlink(missing_ok=True)
            link.symlink_to(command)
    except FileExistsError:
        return folder  # another process created it at the same moment
    except OSError:
        return command.parent
    return folder


def bash_start_up(folder: Path) -> Path | None:
    """Return a BASH_ENV file that puts a folder first on PATH.

    Agents run commands with `bash -c` and `bash -lc`. Start-up files of a login shell often reset PATH;
    BASH_ENV is read after them.
    """
    path = folder.with_suffix(".bash")
    text = _START_UP.format(own=_OWN_BASH_ENV, folder=_quoted(str(folder))).encode()
    try:
        if read_own(path) == text:
            return path
    except (OSError, UnsafePath):
        pass  # missing, or to be replaced
    try:
        write_private(path, text)
    except OSError:
        return None
    return path


def child_environment(
    base: Mapping[str, str],
    *,
    profile: Profile,
    agent_id: str,
    endpoint: str,
    token: str,
    spool: Path | None = None,
    hooks: Path | None = None,
    paths: UserPaths | None = None,
) -> dict[str, str]:
    command = installed_command()
    folder = command_folder(command, paths or UserPaths.of_environment())
    env = {name: value for name, value in base.items() if not _removed(name)}
    env.update(_TERMINAL)
    program, version = profile.quirks.term_program
    if program:
        env["TERM_PROGRAM"] = program
        env["TERM_PROGRAM_VERSION"] = version
    env.update(profile.env)
    env["PATH"] = _path_with(folder, env.get("PATH", os.defpath))
    if folder != command.parent and (start_up := bash_start_up(folder)) is not None:
        own = base.get(_OWN_BASH_ENV, base.get(_BASH_ENV, ""))
        env[_OWN_BASH_ENV] = Template(profile.env.get(_BASH_ENV, own)).safe_substitute(base)
        env[_BASH_ENV] = re.sub(r'([\\$`"])', r"\\\1", str(start_up))  # bash expands the value
        # A bash at SHLVL 0 whose input is a socket believes that it was started by rshd, and reads .bashrc
        # instead.
        env["SHLVL"] = "1" if env.get("SHLVL", "0") == "0" else env["SHLVL"]
    env["SYNAPSE_AGENT_ID"] = agent_id
    env["SYNAPSE_ENDPOINT"] = endpoint
    env["SYNAPSE_TOKEN"] = token
    env["SYNAPSE_BIN"] = str(command)
    env[LANGUAGE_VARIABLE] = language()
    if url := base.get(DATABASE_VARIABLE, ""):  # same database, without a password that an agent could print
        env[DATABASE_VARIABLE] = without_password(url)
    if spool is not None:
        env["SYNAPSE_SPOOL"] = str(spool)
    if hooks is not None:
        env[HOOKS_VARIABLE] = str(hooks)
    return env


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def with_profile(environ: Mapping[str, str], before: Profile, profile: Profile) -> dict[str, str]:
    gone = {name for name in before.env if name not in profile.env and not _ours(name)}
    env = {name: value for name, value in environ.items() if name not in gone}
    env |= {name: _TERMINAL[name] for name in gone & _TERMINAL.keys()}
    return env | {name: value for name, value in profile.env.items() if not _ours(name)}


def _ours(name: str) -> bool:
    return name in ("PATH", _BASH_ENV) or _OURS.match(name) is not None


def _removed(name: str) -> bool:
    return name in _REMOVED or name.startswith(_REMOVED_PREFIXES) or _OURS.match(name) is not None


def _path_with(folder: Path, path: str) -> str:
    rest = [entry for entry in path.split(os.pathsep) if entry and entry != str(folder)]
    return os.pathsep.join([str(folder), *rest])
