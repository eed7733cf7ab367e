"""Parses the words that name an agent to open; finds the program of a command line behind launchers."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from synapse_tui.core.addresses import check_name
from synapse_tui.core.errors import ConfigError
from synapse_tui.core.model import AgentSpec
from synapse_tui.system.dataclass import dataclass

# Programs that start another one: the words between their name and its name, if not options.
_LAUNCHERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("env", "exec", "nohup", "npx", "bunx", "pnpx", "uvx", "tsx", "ts-node"), ()),
        "uv": ("run", "tool"),
        "pipx": ("run",),
        "poetry": ("run",),
        "npm": ("exec", "x"),
        "pnpm": ("dlx", "exec"),
        "yarn": ("dlx", "exec", "run"),
        "deno": ("run",),
        "bun": ("run", "x"),
    }
)
# Interpreters: alone they read commands, with a script they are that script.
# fmt: off
_SHELLS = frozenset({
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "powershell", "pwsh", "sh", "tcsh",
    "xonsh", "zsh",
})
_LANGUAGES = frozenset({
    "bpython", "bun", "clj", "deno", "erl", "ghci", "groovy", "guile", "iex", "ipython", "irb", "jshell",
    "julia", "lua", "luajit", "node", "perl", "php", "pry", "ptpython", "pypy", "python", "r", "racket",
    "ruby", "sbcl", "scala", "tclsh",
})
# These act on what is typed whatever their arguments are.
_INTERACTIVE = frozenset({
    "atop", "bc", "btop", "byobu", "duckdb", "ed", "emacs", "ex", "ftp", "fzf", "gdb", "gitui", "helix",
    "htop", "hx", "info", "joe", "kak", "lazygit", "less", "lf", "lldb", "login", "man", "mariadb", "mc",
    "mcedit", "micro", "mongosh", "more", "most", "mysql", "nano", "nnn", "nvim", "pdb", "pico", "psql",
    "ranger", "redis-cli", "screen", "sftp", "sqlite3", "su", "tail", "telnet", "tig", "tmux", "top", "vi",
    "view", "vim", "vimdiff", "watch", "yazi", "zellij",
})
# fmt: on
_CODE = ("-c", "-e", "--eval", "-p", "--command")
_VERSION = re.compile(r"[\d.]+$")
_SUFFIX = re.compile(r"\.(?:py|pyz|js|mjs|cjs|ts|mts|sh|bash|zsh|rb|pl|lua|php|exe|bin|AppImage)$")
_ASSIGNMENT = re.compile(r"\w+=")
_SPEC = re.compile(r"(?P<profile>[A-Za-z0-9][\w.-]*)?(?::(?P<name>[\w.-]+))?(?:@(?P<folder>.+))?")
_RESERVED = frozenset({"all", "user", "system", "external", "synapse"})


@dataclass(frozen=True, slots=True)
class Program:
    """A parsed command line.

    Attributes:
        name: A valid name for its type of agent, such as `myagent` for `python3 ./myagent.py --fast`.
        words: The command up to the program: `python3 ./myagent.py`.
        args: The program's own arguments.
        runs_text: Whether it is known to act on whatever is typed: a shell, an editor, a pager.
        prompts: Whether it only waits for what is typed: a shell, an interpreter.
    """

    name: str
    words: tuple[str, ...]
    args: tuple[str, ...] = ()
    runs_text: bool = False
    prompts: bool = False


def read_command(command: Sequence[str]) -> Program:
    """Find the program that a command line runs."""
    words = tuple(command)
    place = _skip_launchers(words)
    base = _base(words[place])
    bare = _VERSION.sub("", base)
    if base in _INTERACTIVE:
        return Program(_valid(base), words[: place + 1], words[place + 1 :], runs_text=True)
    if bare in _SHELLS or bare in _LANGUAGES:
        return _interpreted(words, place, base)
    return Program(_valid(_stem(words[place])), words[: place + 1], words[place + 1 :])


def _skip_launchers(words: Sequence[str]) -> int:
    place = 0
    while (between := _LAUNCHERS.get(_base(words[place]))) is not None:
        following = place + 1
        while following < len(words) and (
            words[following].startswith("-")
            or _ASSIGNMENT.match(words[following])
            or words[following] in between
        ):
            following += 1
        named = between and not any(word in between for word in words[place + 1 : following])
        if following == len(words) or named:
            break
        place = following
    return place


def _interpreted(words: tuple[str, ...], place: int, base: str) -> Program:
    rest = words[place + 1 :]
    for number, word in enumerate(rest, 1):
        if word == "-m" and number < len(rest):
            name = rest[number].partition(".")[0]
            return Program(_valid(name), words[: place + number + 2], rest[number + 1 :])
        if word in _CODE or (word[:1] == "-" and word[1:2] != "-" and word[-1:] == "c"):
            return Program(_valid(base), words)
        if not word.startswith("-"):
            return Program(_valid(_stem(word)), words[: place + number + 1], rest[number:])
    return Program(_valid(base), words, runs_text=True, prompts=True)


def _base(word: str) -> str:
    return os.path.basename(word).lower()  # noqa: PTH119 - also for words that are no paths


def _stem(word: str) -> str:
    package = re.sub(r"(?<=.)@[^/]*$", "", word)  # a version, as in `@scope/package@latest`
    path = Path(package)
    if path.stem in ("__main__", "main", "cli", "index") and path.parent.name not in ("", "."):
        parents = [
            parent.name for parent in path.parents if parent.name not in ("src", "dist", "bin", "build", "")
        ]
        return parents[0] if parents else path.stem
    return _SUFFIX.sub("", path.name)


def _valid(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:24].strip("-")
    if not name[:1].isalpha():
        name = f"agent-{name}".strip("-")
    if name in _RESERVED or re.search(r"-\d{4,5}$", name):
        name = f"{name}-agent"
    return name


def split_words(text: str) -> tuple[str, ...]:
    """Split a command line as a shell does, without expanding anything; raises ConfigError."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(f"'{text}' cannot be read: {error}", "close the quotes as in a shell") from None


_PATH = re.compile(r"(?P<command>[^\s:@]*/[^\s:@]*)(?P<place>(?::[\w.-]+)?(?:@.+)?)")


def parse_spec(text: str, *, base: Path) -> AgentSpec:
    """Parse `PROFILE[:NAME][@DIR]`."""
    spec = parse_place(text, base=base)
    if spec is None or not spec.profile:
        raise ConfigError(
            f"'{text}' names no agent", "write PROFILE[:NAME][@FOLDER], such as claude:alice@~/api"
        )
    return spec


def parse_place(text: str, *, base: Path) -> AgentSpec | None:
    """Parse `[PROFILE][:NAME][@DIR]`; without a profile, the command has to come from elsewhere."""
    match = _SPEC.fullmatch(text)
    if match is None or not text:
        return None
    name = check_name(match["name"]) if match["name"] else ""
    folder = (base / Path(match["folder"]).expanduser()) if match["folder"] else None
    return AgentSpec(match["profile"] or "", name, folder)


def parse_agent(text: str, *, base: Path) -> AgentSpec:
    """Parse `[PROFILE][:NAME][@DIR]`, `PATH[:NAME][@DIR]`, or a command line with blanks."""
    if "/" not in (head := re.split("[:@]", text, maxsplit=1)[0]) and not re.search(r"\s", head):
        return parse_place(text, base=base) or parse_spec(text, base=base)
    path = _PATH.fullmatch(text)
    if Path(text).expanduser().exists():
        return command_spec((text,))
    if path is None:
        words = split_words(text)
        return command_spec(words) if words else parse_spec(text, base=base)
    place = parse_place(path["place"], base=base) or AgentSpec("")
    return command_spec((path["command"],), place)


def place_text(spec: AgentSpec) -> str:
    """Return `[:NAME][@DIR]`."""
    return (f":{spec.name}" if spec.name else "") + (f"@{spec.cwd}" if spec.cwd is not None else "")


def start_words(spec: AgentSpec, port: int) -> tuple[str, ...]:
    """Return the arguments of `synapse start` for an agent."""
    first = ("" if spec.command else spec.profile) + place_text(spec)
    program = (*spec.command, *spec.args)
    return (*((first,) if first else ()), "--port", str(port), *(("--", *program) if program else ()))


def command_spec(
    command: Sequence[str], place: AgentSpec | None = None, *, base: Path | None = None
) -> AgentSpec:
    """Return how to start a command line, under the name and in the folder of `place`.

    A relative path to the program or its script means `base`, the current folder by default, as in a shell,
    whatever folder the program runs in.
    """
    first, *rest = command
    if "/" in first:
        path = os.path.join(base or "", os.path.expanduser(first))  # noqa: PTH111, PTH118 - `./program` and
        first = os.path.abspath(path) if os.path.exists(path) else first  # noqa: PTH100, PTH110 - links stay
    program = read_command((first, *rest))
    *before, script = program.words
    if before and before[-1] != "-m" and ("/" in script or _SUFFIX.search(script)):
        path = os.path.join(base or "", script)  # noqa: PTH118 - links stay
        script = os.path.abspath(path) if os.path.isfile(path) else script  # noqa: PTH100, PTH113
    return replace(place or AgentSpec(""), profile=program.name, command=(*before, script), args=program.args)
