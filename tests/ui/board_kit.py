"""A team for the board: agents in every state, as the pictures show them."""

from __future__ import annotations

from pathlib import Path

from synapse_tui.agents.dialogs import AgentDialog, Option
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, ExitStatus, TaskState
from tests.ui.fakes import FakeHost, FakeSession

BEFORE = """\
● I moved the tax into Cart.total and kept its\r
  signature: nothing that calls it has to change.\r
\r
  \x1b[1mUpdate\x1b[0m(src/cart/totals.py)\r
  +11 −1\r
\r
● The build folder still holds the wheel of 0.8.\r
  I want it gone before I build anew.\r
\r
"""
DIALOG = """\
────────────────────────────────────────────────\r
\x1b[1mBash command\x1b[0m\r
\r
  \x1b[36mrm -rf build\x1b[0m\r
  Remove the build folder before a clean build\r
\r
\x1b[1mDo you want to proceed?\x1b[0m\r
"""
OPTIONS = (
    Option("Yes", 1, allows_once=True),
    Option("Yes, and do not ask again for rm in shop", 2),
    Option("No, and tell it what to do instead", 3, denies=True),
)


def ask(
    session: FakeSession, dialog: str = DIALOG, *, serial: int = 1, asks: str = "wants to run  rm -rf build"
) -> None:
    """Let an agent ask, as its screen then shows it."""
    session.feed(f"\x1b[2J\x1b[H{BEFORE}{dialog}\x1b[7m❯ 1. Yes\x1b[0m\r\n  2. Yes, and\r\n  3. No\r\n")
    terminal = session.terminal
    rows = [terminal.line(y).text.rstrip() for y in range(terminal.lines)]
    first = next(y for y, row in enumerate(rows) if row.startswith("────"))
    last = next(y for y, row in enumerate(rows) if row.startswith("❯ 1."))
    session.dialog = AgentDialog(
        name="permission",
        asks=asks,
        options=OPTIONS,
        marked=0,
        body=tuple(rows[first:last]),
        text=tuple(rows[first : last + 3]),
        lines=tuple(terminal.line(y).copy() for y in range(first, last + 3)),
        serial=serial,
    )
    session.become(AgentState.WAITING, asks)


def team(host: FakeHost) -> dict[str, FakeSession]:
    """Open eight agents: one asks, one has ended, one is done, one holds messages, two work, two rest."""
    host.project = Path("/home/me/code/shop")
    times = {"alice": 56, "deploy": -227, "bob": -55, "翻訳": -110, "dana": -117, "carol": 31, "docs": -3900}
    kinds = {
        "alice": "claude",
        "deploy": "claude",
        "bob": "codex",
        "翻訳": "gemini",
        "dana": "opencode",
        "carol": "gemini",
        "docs": "codex",
        "release-notes-writer": "copilot",
    }
    found: dict[str, FakeSession] = {}
    for name, kind in kinds.items():
        cwd = Path(f"/home/me/code/shop-{name}")
        found[name] = host.add(AgentSpec(kind, name=name, cwd=cwd))
    for name, session in found.items():
        at = float(times.get(name, -1025))
        host.clock = lambda at=at: at  # type: ignore[misc]
        if name in ("dana", "carol"):
            session.become(
                AgentState.PROCESSING, {"dana": "pytest -x tests/checkout", "carol": "edits parser.py"}[name]
            )
            session.feed("● I look at the heading rule.\r\n\r\n● Editing src/parser.py\r\n")
        elif name == "alice":
            ask(session)
        elif name == "deploy":
            session.become(AgentState.EXITED)
            session.end(ExitStatus(code=1))
        else:
            session.become(AgentState.READY, unseen=name == "bob")
    host.clock = lambda: 75.0
    alice, bob = found["alice"].agent_id, found["bob"].agent_id
    host.message(
        alice,
        "which tests cover totals()?",
        sender=bob,
        delivery=DeliveryState.HELD,
        reason="permission dialog open",
        minutes=0.3,
    )
    for text in ("please take the new wording of F2", "and the word for board"):
        host.message(
            found["翻訳"].agent_id,
            text,
            sender=alice,
            delivery=DeliveryState.HELD,
            reason="you have a draft",
            minutes=3,
        )
    host.message(
        bob, "add the missing tests", sender=alice, delivery=DeliveryState.DONE, state=TaskState.COMPLETED,
        answer="3 tests were missing, added; all 41 pass", minutes=2.1,
    )  # fmt: skip
    return found
