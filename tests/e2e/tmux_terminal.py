"""A real terminal for end-to-end tests: a tmux pane on a private server, driven by keys and read as text."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.waiting import PATIENCE, wait_until


class TmuxTerminal:
    """One pane that runs one command.

    Args:
        command: What to run, with arguments.
        cwd: Its working folder.
        environ: Its whole environment.
        columns: Width in cells.
        lines: Height in cells.
        term: `default-terminal` of tmux, which sets the colours the command may use.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        columns: int = 120,
        lines: int = 40,
        term: str = "tmux-256color",
    ) -> None:
        self.socket = f"synapse-test-{uuid.uuid4().hex[:8]}"
        self._environ = dict(environ)
        # The pane first shows a shell, so that what the command leaves behind on the screen can be looked at.
        shell = "env PS1='SHELL$ ' bash --norc --noprofile -i"
        options = (("default-terminal", term), ("escape-time", "0"), ("status", "off"), ("mouse", "on"))
        settings = [word for name, value in options for word in ("set", "-g", name, value, ";")]
        size = ("-x", str(columns), "-y", str(lines))
        self._tmux(
            "-f",
            "/dev/null",
            "start-server",
            ";",
            *settings,
            "new-session",
            "-d",
            *size,
            "-c",
            str(cwd),
            shell,
        )
        self._tmux("set", "-g", "window-size", "manual")
        self.wait_for("SHELL$")
        self.keys(shlex.join(command), "Enter")

    def _tmux(self, *arguments: str) -> str:
        # Not that of this process, which commands that are called in it replace, perhaps in another thread.
        environ = {"LANG": "C.UTF-8", **self._environ}
        done = subprocess.run(
            ["tmux", "-L", self.socket, *arguments], env=environ, capture_output=True, text=True, check=False
        )
        if done.returncode and "no server" not in done.stderr:
            raise AssertionError(f"tmux {arguments}: {done.stderr}")
        return done.stdout

    def keys(self, *names: str) -> None:
        self._tmux("send-keys", *names)

    def enter_dialog(self, title: str) -> None:
        """Move the focus into a dialog that nobody asked for: it takes no key until it has been quiet."""
        self.wait_for(title, "Tab to answer")
        while "Tab to answer" in self.screen:
            time.sleep(1.5)
            self.keys("Tab")
            self.wait(lambda: title in self.screen, title)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def raw(self, data: bytes) -> None:
        """Send bytes as the terminal would (mouse reports, bracketed pastes)."""
        self._tmux("send-keys", "-H", *[f"{byte:02x}" for byte in data])

    def click(self, column: int, line: int) -> None:
        self.raw(f"\x1b[<0;{column + 1};{line + 1}M".encode())
        self.raw(f"\x1b[<0;{column + 1};{line + 1}m".encode())

    def paste(self, text: str) -> None:
        subprocess.run(["tmux", "-L", self.socket, "load-buffer", "-"], input=text.encode(), check=True)
        self._tmux("paste-buffer", "-p")

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    @property
    def rows(self) -> list[str]:
        return self._tmux("capture-pane", "-p").split("\n")[:-1]

    @property
    def screen(self) -> str:
        return "\n".join(self.rows)

    @property
    def ansi(self) -> str:
        return self._tmux("capture-pane", "-e", "-p")

    @property
    def cursor(self) -> tuple[int, int]:
        x, y = self._tmux("display-message", "-p", "#{cursor_x} #{cursor_y}").split()
        return int(x), int(y)

    def flag(self, name: str) -> str:
        """A format variable of tmux (`alternate_on`, `mouse_any_flag`, `pane_pid`)."""
        return self._tmux("display-message", "-p", f"#{{{name}}}").strip()

    def find(self, text: str) -> tuple[int, int]:
        for y, row in enumerate(self.rows):
            x = row.find(text)
            if x >= 0:
                return x, y
        raise AssertionError(f"{text!r} is not on the screen:\n{self.screen}")

    def wait(self, condition: Callable[[], bool], what: str, timeout: float = PATIENCE) -> None:
        """Wait until a condition holds."""
        wait_until(condition, lambda: f"{what}; the screen:\n{self.screen}", timeout)

    def wait_for(self, *texts: str, timeout: float = PATIENCE) -> None:
        for text in texts:
            self.wait(lambda text=text: text in self.screen, repr(text), timeout)  # type: ignore[misc]

    def wait_gone(self, text: str, timeout: float = PATIENCE) -> None:
        self.wait(lambda: text not in self.screen, f"{text!r} to go", timeout)

    @property
    def command_pid(self) -> int | None:
        shell = self.flag("pane_pid")
        children = subprocess.run(
            ["pgrep", "-P", shell], capture_output=True, text=True, check=False
        ).stdout.split()
        return int(children[0]) if children else None

    def kill_command(self, number: signal.Signals) -> None:
        pid = self.command_pid
        assert pid is not None, "the command has ended"
        os.kill(pid, number)

    def close(self) -> None:
        with contextlib.suppress(AssertionError):
            self._tmux("kill-server")
