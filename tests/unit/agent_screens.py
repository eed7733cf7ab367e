"""Hand-written screens of the agents, small but true to how each of them draws."""

from __future__ import annotations

from collections.abc import Sequence

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.state import StateDetector, Timeline
from synapse_tui.core.model import StateReport
from synapse_tui.terminal import Terminal
from tests.profiles import shipped

DIM, OFF = "\x1b[2m", "\x1b[22m"
GREY, NORMAL = "\x1b[38;2;153;153;153m", "\x1b[39m"
WIDE = 60


def profile(name: str) -> Profile:
    return shipped().profiles[name]


def osc(text: str) -> str:
    return f"\x1b]{text}\x1b\\"


def paint(rows: Sequence[str], cursor: tuple[int, int] | None = None) -> str:
    """Bytes that draw rows from the top of an empty screen and put the cursor (column, row) somewhere."""
    text = "\x1b[H\x1b[2J" + "\r\n".join(rows)
    x, y = cursor if cursor is not None else (0, len(rows))
    return text + f"\x1b[{y + 1};{x + 1}H"


class Screen:
    """A terminal and the detector that listens to it, under a clock of the test's own."""

    def __init__(
        self,
        agent: str | Profile,
        *,
        columns: int = WIDE,
        lines: int = 24,
        age: float = 100.0,
        timeline: Timeline | None = None,
        report: StateReport | None = None,
    ) -> None:
        self.profile = profile(agent) if isinstance(agent, str) else agent
        self.now = 0.0
        self.command = False  # whether a command runs in the foreground
        self.detector = StateDetector(
            self.profile, now=0.0, timeline=timeline, report=report, runs_command=lambda: self.command
        )
        self.terminal = Terminal(columns, lines, listener=lambda event: self.detector.event(event, self.now))
        self.now = age

    def feed(self, text: str) -> None:
        self.terminal.feed(text.encode())
        self.detector.update(self.terminal, self.now)

    def show(self, rows: Sequence[str], cursor: tuple[int, int] | None = None) -> None:
        self.feed(paint(rows, cursor))

    def wait(self, seconds: float) -> None:
        """Let time pass as a session does: an update at each deadline, none besides."""
        end = self.now + seconds
        while self.detector.deadline is not None and self.detector.deadline <= end:
            self.now = self.detector.deadline
            self.detector.update(self.terminal, self.now)
        self.now = end

    @property
    def state(self) -> str:
        return self.detector.report.state.value

    @property
    def rule(self) -> str:
        return self.detector.report.rule


def claude(
    *draft: str, above: Sequence[str] = (), cursor: int | None = None
) -> tuple[list[str], tuple[int, int]]:
    """Claude's composer with these rows; its cursor stands behind them, or in a column of the first."""
    frame = "─" * WIDE
    body = [f"❯\xa0{draft[0] if draft else ''}", *(f"  {row}" for row in draft[1:])]
    rows = [*above, frame, *body, frame, f"  {GREY}? for shortcuts{NORMAL}"]
    y = len(above) + len(body)
    return (
        (rows, (2 + cursor, len(above) + 1))
        if cursor is not None
        else (rows, (2 + len(draft[-1] if draft else ""), y))
    )


CLAUDE_DIALOG = [
    "● Bash(rm -r build)",
    "  ⎿  Waiting…",
    "",
    "─" * WIDE,
    " Bash command",
    "",
    "   rm -r build",
    f"   {GREY}Run shell command{NORMAL}",
    "",
    " Do you want to proceed?",
    " ❯ 1. Yes",
    "   2. Yes, and don't ask again",
    "   3. No",
    "",
    " Esc to cancel · Tab to amend",
]
CLAUDE_KEYS = [
    "  Running curl -s http://example.com/x",
    "  ⎿  $ curl -s http://example.com/x",
    "",
    "─" * WIDE,
    "  Auto mode can't check actions in this session",
    "",
    "  Auto mode's safety check runs on the server, and the check isn't getting through.",
    "",
    "  You can stay in auto mode and approve each action that needs the check yourself.",
    "",
    "  To get the check back, ask whoever runs your gateway to pass it through:",
    "  https://code.claude.com/docs/en/permission-modes#server-side-classifier-review",
    "",
    "  Enter to stay in auto mode · shift+Tab to leave for accept edits mode and stop · Esc to cancel",
]
CLAUDE_UNCHECKED = [
    "─" * WIDE,
    " Bash command",
    " Send the file",
    "╌" * WIDE,
    " curl -s http://example.com/x",
    "╌" * WIDE,
    " Auto mode can't check actions in this session, so this one needs your approval",
    "",
    " Do you want to proceed?",
    " ❯ No",
    "   Yes",
    "",
    " Esc to cancel · Tab to amend",
]
CLAUDE_QUESTION = [
    "─" * WIDE,
    " ☐ Colour",
    "",
    "Which colour do you want?",
    "",
    "❯ 1. Red",
    "  2. Blue",
    "",
    "Enter to select · ↑/↓ to navigate · Esc to cancel",
]


def codex(
    *draft: str, above: Sequence[str] = (), background: bool = True
) -> tuple[list[str], tuple[int, int]]:
    tint, plain = ("\x1b[48;2;57;57;57m\x1b[K", "\x1b[49m") if background else ("", "")
    shown = list(draft) or [f"{DIM}Ask Codex to do anything{OFF}"]
    body = [f"{tint}› {shown[0]}{plain}", *(f"{tint}  {row}{plain}" for row in shown[1:])]
    rows = [*above, f"{tint}{plain}", *body, f"{tint}{plain}", "  gpt · ~/proj", "  ? for shortcuts"]
    return rows, (2 + (len(draft[-1]) if draft else 0), len(above) + len(body))


CODEX_DIALOG = [
    "• Running rm -r build",
    "",
    "  Would you like to run the following command?",
    "",
    "  $ rm -r build",
    "",
    "› 1. Yes, proceed (y)",
    "  2. Yes, and don't ask again (p)",
    "  3. No, and tell Codex what to do differently (esc)",
    "",
    "  Press enter to confirm or esc to cancel",
]


def gemini(*draft: str, above: Sequence[str] = ()) -> tuple[list[str], tuple[int, int]]:
    shown = list(draft) or [f"\x1b[7m \x1b[27m{GREY} Type your message or @path/to/file{NORMAL}"]
    body = [f" > {shown[0]}", *(f"   {row}" for row in shown[1:])]
    rows = [
        *above,
        " Shift+Tab to accept edits",
        "▄" * WIDE,
        *body,
        "▀" * WIDE,
        " ~/proj   no sandbox   Auto",
    ]
    return rows, (3 + (len(draft[-1]) if draft else 0), len(above) + 1 + len(body))


GEMINI_DIALOG = [
    "▄" * WIDE,
    " > remove the build",
    "▀" * WIDE,
    "╭" + "─" * (WIDE - 2) + "╮",
    "│ ? Shell  rm -r build" + " " * (WIDE - 23) + "│",
    "│ Allow execution of [Shell]?" + " " * (WIDE - 30) + "│",
    "│" + " " * (WIDE - 2) + "│",
    "│ ● 1. Allow once" + " " * (WIDE - 18) + "│",
    "│   2. Allow for this session" + " " * (WIDE - 30) + "│",
    "│   3. No, suggest changes (esc)" + " " * (WIDE - 33) + "│",
    "╰" + "─" * (WIDE - 2) + "╯",
]
GEMINI_QUESTION = [
    "╭" + "─" * (WIDE - 2) + "╮",
    "│ ?  A potential loop was detected" + " " * (WIDE - 35) + "│",
    "│" + " " * (WIDE - 2) + "│",
    "│ ● 1. Keep loop detection enabled (esc)" + " " * (WIDE - 41) + "│",
    "│   2. Disable it for this session" + " " * (WIDE - 35) + "│",
    "╰" + "─" * (WIDE - 2) + "╯",
]


def opencode(*draft: str, above: Sequence[str] = (), footer: str = "") -> tuple[list[str], tuple[int, int]]:
    grey = "\x1b[38;2;128;128;128m"
    shown = list(draft) or [f'{grey}Ask anything… "Fix a TODO"{NORMAL}']
    rows = [
        *above,
        "  ┃",
        *(f"  ┃  {row}" for row in shown),
        "  ┃",
        "  ┃  Build · Model",
        "  ╹" + "▀" * (WIDE - 4),
        f"   {footer}".ljust(WIDE - 20) + "ctrl+p commands",
    ]
    return rows, (5 + (len(draft[-1]) if draft else 0), len(above) + len(shown))


OPENCODE_DIALOG = [
    "  ┃",
    "  ┃  △ Permission required",
    "  ┃    # Shell command",
    "  ┃",
    "  ┃  $ rm -r build",
    "  ┃",
    "  ┃   Allow once   Allow always   Reject   ⇆ select  enter confirm",
    "  ┃",
]


def copilot(*draft: str, above: Sequence[str] = (), footer: str = "") -> tuple[list[str], tuple[int, int]]:
    shown = list(draft) or [""]
    rows = [
        *above,
        "╻" + "▄" * (WIDE - 1),
        *(f"┃ {row}" for row in shown),
        "╹" + "▀" * (WIDE - 1),
        footer or " Interactive · Manual Approval · / commands · ? help",
    ]
    return rows, (2 + len(shown[-1]), len(above) + len(shown))


COPILOT_DIALOG = [
    "╭" + "─" * (WIDE - 2) + "╮",
    "│ run a command" + " " * (WIDE - 16) + "│",
    "│ " + "─" * (WIDE - 4) + " │",
    "│ Do you want to run this command?" + " " * (WIDE - 35) + "│",
    "│" + " " * (WIDE - 2) + "│",
    "│ ❯ 1. Yes" + " " * (WIDE - 11) + "│",
    "│   2. No (Esc to stop)" + " " * (WIDE - 24) + "│",
    "│" + " " * (WIDE - 2) + "│",
    "│ ↑/↓ to navigate · enter to select · esc to cancel" + " " * (WIDE - 52) + "│",
    "╰" + "─" * (WIDE - 2) + "╯",
]


def dummy(*draft: str, above: Sequence[str] = ()) -> tuple[list[str], tuple[int, int]]:
    frame = "─" * WIDE
    shown = list(draft) or [f"{DIM}Type a message{OFF}"]
    body = [f"❯ {shown[0]}", *(f"  {row}" for row in shown[1:])]
    rows = [*above, frame, *body, frame, "  dummy"]
    return rows, (2 + (len(draft[-1]) if draft else 0), len(above) + len(body))


DUMMY_DIALOG = [
    " Bash command",
    "   rm -r build",
    " Do you want to proceed?",
    " ❯ 1. Yes",
    "   2. No",
    " Esc to cancel",
]

COMPOSERS = {
    "claude": claude,
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
    "copilot": copilot,
    "dummy": dummy,
}
DIALOGS = {
    "claude": CLAUDE_DIALOG,
    "codex": CODEX_DIALOG,
    "gemini": GEMINI_DIALOG,
    "opencode": OPENCODE_DIALOG,
    "copilot": COPILOT_DIALOG,
    "dummy": DUMMY_DIALOG,
}
