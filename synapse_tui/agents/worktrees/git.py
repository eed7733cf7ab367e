"""Runs git without running anything that a repository brings with it.

Switched off are hooks, the file system monitor, and commands that the repository's own configuration names:
filters, merge drivers, diff and text conversion commands, programs that sign, helpers of remotes. Those of
the user's configuration stay. Submodules have a configuration of their own, so git must not look into them.
No `GIT_*` variable is passed on: inside a hook they point to another repository (githooks(5)).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from synapse_tui.core.errors import WorktreeError
from synapse_tui.system.process_times import given_umask

TIMEOUT = 300.0  # seconds; making a worktree of a very large repository takes minutes on a slow disk
_ALWAYS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "core.commentChar": "#",
    "merge.autoStash": "false",
    "rerere.enabled": "false",
    "core.preloadIndex": "false",  # threads on cores that the agents need
    "submodule.recurse": "false",
    "status.submoduleSummary": "false",
    "diff.submodule": "short",
    "log.showSignature": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_OWN = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_SSH", "GIT_SSH_COMMAND")
"""Variables of the user's configuration, which point to no repository."""
_COMMANDS = re.compile(
    r"core\.(?:editor|sshcommand|pager|askpass|gitproxy)|sequence\.editor|diff\.external|credential\..*"
    r"|(?:filter\..*\.(?:clean|smudge|process)|diff\..*\.(?:command|textconv))"
    r"|gpg\.(?:.*\.)?(?:program|defaultkeycommand)"
)
_REQUIRED = re.compile(r"filter\..*\.required")
_MERGE_DRIVER = re.compile(r"merge\..*\.driver")
_SIGNING = re.compile(r"gpg\..*|(?:commit|tag)\.gpgsign")
_VERIFYING = "merge.verifysignatures"
_PROTOCOLS = "http:https:ssh:git"
"""From which git may fetch what a partial clone lacks; `ext` and `file` run what a remote names."""
_PLAIN_MERGE = "git merge-file -q %A %O %B"
"""What git itself does: an empty merge driver would take our side without a word."""

LOCKED = (
    "another git command runs there: try again; if none does, remove the .lock file of one that was killed"
)
"""What to do where git finds a lock of its own."""
_LOCK = ".lock': File exists"
_UNKNOWN = "say who you are: git config --global user.name NAME; git config --global user.email ADDRESS"


class Git:
    """Runs git in one folder.

    Args:
        folder: A folder of the repository.
        environ: The environment to derive git's from.
        timeout: Seconds that one command may take.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        self.folder = folder
        self._environ = environ
        self._timeout = timeout
        self._ready: Mapping[str, str] | None = None

    def at(self, folder: Path) -> Git:
        return Git(folder, self._environ, self._timeout)

    def at_once(self, folder: Path) -> Git:
        """Return one for several commands in a row, for which the configuration is read only once."""
        git = self.at(folder)
        git._ready = git._environment()
        return git

    def run(
        self,
        *words: str,
        stdin: str = "",
        extra: Mapping[str, str] | None = None,
        expected: Collection[int] = (0,),
    ) -> str:
        """Return what git prints.

        Args:
            words: Its arguments.
            stdin: What it reads.
            extra: Further environment variables, such as `GIT_INDEX_FILE`.
            expected: Exit statuses that are no failure.

        Raises:
            WorktreeError: It failed, is not installed, or took too long.
        """
        return self.call(*words, stdin=stdin, extra=extra, expected=expected)[1]

    def call(
        self,
        *words: str,
        stdin: str = "",
        extra: Mapping[str, str] | None = None,
        expected: Collection[int] = (0,),
    ) -> tuple[int, str]:
        """Return the exit status of git, and what it prints; see `run`."""
        done = self._start(words, stdin, {**(self._ready or self._environment()), **(extra or {})})
        if done.returncode not in expected:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            reason = (
                said.removeprefix("fatal: ").removeprefix("error: ").splitlines() or ["no reason given"]
            )[0]
            raise WorktreeError(
                f"git {words[0]} failed in {self.folder}: {reason}",
                _UNKNOWN if "identity unknown" in reason else LOCKED if _LOCK in reason else "",
            )
        return done.returncode, done.stdout.decode(errors="surrogateescape")

    def succeeds(self, *words: str) -> bool:
        return self._start(words, "", self._environment()).returncode == 0

    def lines(self, *words: str) -> list[str]:
        return [line for line in self.run(*words).split("\n") if line]

    def paths(self, *words: str) -> list[str]:
        """Return the entries of an output separated by NUL."""
        return [each for each in self.run(*words).split("\0") if each]

    def _start(
        self, words: Sequence[str], stdin: str, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603 - the words are ours, or follow `--`
                ["git", *words],  # noqa: S607 - the person's git
                cwd=self.folder,
                env=environ,
                input=stdin.encode(errors="surrogateescape"),
                capture_output=True,
                timeout=self._timeout,
                check=False,
                umask=given_umask(),
            )
        except FileNotFoundError:
            if not self.folder.is_dir():
                raise WorktreeError(f"{self.folder} does not exist") from None
            raise WorktreeError("git is not installed", "install git 2.38 or newer") from None
        except OSError as error:
            raise WorktreeError(f"git cannot run in {self.folder}: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            raise WorktreeError(
                f"git {words[0]} took more than {self._timeout:.0f} s in {self.folder}"
            ) from None

    def _environment(self) -> dict[str, str]:
        base = {
            **{name: value for name, value in self._environ.items() if not name.startswith("GIT_")},
            **{name: self._environ[name] for name in _OWN if name in self._environ},
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
            "GIT_PAGER": "cat",
            "LC_ALL": "C",
        }
        settings = {**_ALWAYS, **dict(self._disarmed(base))}
        base["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (key, value) in enumerate(settings.items()):
            base[f"GIT_CONFIG_KEY_{number}"], base[f"GIT_CONFIG_VALUE_{number}"] = key, value
        return base

    def _disarmed(self, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield settings that override the commands of the repository's own configuration.

        They are read before each call: an agent may change them at any time.
        """
        listed = self._start(("config", "--list", "--show-scope", "-z"), "", environ).stdout
        entries = listed.decode(errors="surrogateescape").split("\0")
        for scope, entry in zip(entries[::2], entries[1::2], strict=False):
            key = entry.partition("\n")[0]
            if scope not in ("local", "worktree"):
                continue
            if _COMMANDS.fullmatch(key):
                yield key, ""
            if _REQUIRED.fullmatch(key) or key == _VERIFYING:
                yield key, "false"
            elif _MERGE_DRIVER.fullmatch(key):
                yield key, _PLAIN_MERGE
            elif _SIGNING.fullmatch(key):
                yield "commit.gpgsign", "false"
