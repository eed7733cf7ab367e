"""Fork and exec of a program on a new PTY.

The forking process has threads and an event loop. Between fork and exec the child therefore runs with all
signals blocked and the garbage collector off, takes no lock, and leaves only by exec or `_exit`: an escaping
exception would run the parent's loop twice.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import signal
import struct
import termios
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import ptyprocess

from synapse_tui.core.errors import CommandNotFound, FolderUnusable, SpawnError
from synapse_tui.system.process_times import given_open_files, given_umask


def find_command(command: str, *, env: Mapping[str, str], cwd: Path) -> Path | None:
    """Find an executable as execvp(3) would with a child's environment and folder."""
    if not command or "\0" in command:
        return None
    if "/" in command:
        candidate = cwd / command
        return candidate if _executable(candidate) else None
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        candidate = cwd / folder / command
        if _executable(candidate):
            return candidate
    return None


def check_folder(cwd: Path) -> None:
    if not cwd.exists():
        raise FolderUnusable(f"the working folder {cwd} does not exist", "create it or choose another one")
    if not cwd.is_dir():
        raise FolderUnusable(f"{cwd} is a file, not a folder", "choose a folder to work in")
    if not os.access(cwd, os.R_OK | os.X_OK):
        raise FolderUnusable(
            f"the working folder {cwd} cannot be read", "check its permissions or choose another one"
        )


def resolve_command(command: str, *, env: Mapping[str, str], cwd: Path) -> Path:
    """Find an executable. Raises CommandNotFound or SpawnError."""
    found = find_command(command, env=env, cwd=cwd)
    if found is not None:
        return found
    if "/" not in command:
        raise CommandNotFound(command, command)
    path = cwd / command
    if path.is_file():
        raise SpawnError(f"{path} is not executable", f"make it so with: chmod +x {path}")
    raise SpawnError(f"there is no program {path}", "check the command of the profile")


def _executable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


IUTF8 = 0x4000
"""Input flag of Linux and macOS to erase whole characters in cooked mode (termios(3)); not in Python 3.11."""

_FAILURE = struct.Struct("=Bi")
_STEPS = ("set up the terminal for", "enter the working folder of", "execute")


def spawn(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], columns: int, lines: int
) -> tuple[int, int]:
    """Start a program as leader of a new session on a new PTY.

    Takes some milliseconds, until the exec has succeeded or failed. Only the standard descriptors are
    inherited. Returns its pid and the PTY's master side, close-on-exec and non-blocking.
    """
    if not argv:
        raise SpawnError("there is no command to run", "give the profile a command")
    check_folder(cwd)
    program = resolve_command(argv[0], env=env, cwd=cwd)
    report, child_end = _prepare(program)
    try:
        enter = _entry(program, list(argv), cwd, dict(env), child_end)
        try:
            pid, master = _fork(program, list(argv), enter, (lines, columns), child_end)
        finally:
            os.close(child_end)
        failure = os.read(report, _FAILURE.size)
    finally:
        os.close(report)
    if failure:
        os.close(master)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        raise _error(program, failure)
    os.set_blocking(master, False)
    return pid, master


def _prepare(program: Path) -> tuple[int, int]:
    """Return the pipe for the child's report, checking that descriptors and PTYs are available.

    ptyprocess leaks descriptors when it runs out of them, so the required number is allocated first.
    """
    taken: list[int] = []
    try:
        for take in (os.openpty, os.pipe, os.pipe, os.pipe):
            taken += take()
    except OSError as error:
        raise _no_resources(program, error) from error
    finally:
        for descriptor in taken:
            os.close(descriptor)
    return os.pipe()


def _no_resources(program: Path, error: OSError) -> SpawnError:
    full = error.errno in (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE)
    hint = "end some agents or other programs, or raise the limits (ulimit)" if full else ""
    return SpawnError(f"cannot start {program}: {error.strerror or error}", hint)


def _fork(
    program: Path, argv: list[str], enter: Callable[[], NoReturn], size: tuple[int, int], child_end: int
) -> tuple[int, int]:
    with _quiet():
        try:
            process = ptyprocess.PtyProcess.spawn(
                [os.fspath(program), *argv[1:]], preexec_fn=enter, dimensions=size, pass_fds=(child_end,)
            )
        except OSError as error:
            raise _no_resources(program, error) from error
    # Its destructor would end the program and sleep; only the descriptor is needed.
    master = os.dup(process.fd)
    process.fileobj.close()
    process.closed = True
    return int(process.pid), master


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with warnings.catch_warnings():
            # The child is safe with threads: see the module docstring.
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if collecting:
            gc.enable()


def _entry(
    program: Path, argv: list[str], cwd: Path, env: dict[str, str], report: int
) -> Callable[[], NoReturn]:
    path = os.fspath(program)
    folder = os.fspath(cwd)
    limits, umask = given_open_files(), given_umask()
    numbers = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]

    def enter() -> NoReturn:
        step = 0
        try:
            _clean_terminal()
            step = 1
            os.chdir(folder)
            step = 2
            for number in numbers:
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            if umask >= 0:
                os.umask(umask)
            if limits is not None:
                with contextlib.suppress(OSError, ValueError):
                    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            os.execve(path, argv, env)  # noqa: S606
        except OSError as error:
            os.write(report, _FAILURE.pack(step, error.errno or 0))
        except BaseException:  # The child must leave only by _exit.
            os.write(report, _FAILURE.pack(step, errno.EINVAL))
        finally:
            os._exit(127)

    return enter


def _clean_terminal() -> None:
    with contextlib.suppress(termios.error):
        attributes = termios.tcgetattr(0)
        attributes[0] |= IUTF8
        termios.tcsetattr(0, termios.TCSANOW, attributes)


def _error(program: Path, failure: bytes) -> SpawnError:
    step, number = _FAILURE.unpack(failure)
    hints = {
        errno.ENOEXEC: "a script needs a first line such as #!/bin/sh",
        errno.ENOENT: "the interpreter that its first line names is missing",
        errno.E2BIG: "the environment or the arguments are too large",
        errno.EACCES: "check the permissions of the file and its folder",
        errno.EINVAL: "arguments and environment must not hold NUL characters",
    }
    return SpawnError(f"cannot {_STEPS[step]} {program}: {os.strerror(number)}", hints.get(number, ""))
