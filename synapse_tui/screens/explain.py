"""Why an agent is in its state: the rule that decided, what it matched, and the states before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from synapse_tui.widgets.marks import exit_text, state_mark
from synapse_tui.widgets.text import age, one_line, pad

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession

SHOWN = 20


def explanation(session: AgentSession, now: float) -> Content:
    """The present state of an agent with its reason, and its last states, the newest first.

    Args:
        session: The agent.
        now: Seconds on the session's monotonic clock.
    """
    report = session.report
    mark = state_mark(report.state)
    parts: list[tuple[str, str]] = [
        (f"{mark.glyph} {report.state}", f"bold ${mark.colour}"),
        (f"  for {age(max(0.0, now - report.since))}\n", "$ink-muted"),
        (_row("rule", report.rule), "$ink"),
        (_row("matched", one_line(report.matched) or "nothing on the screen"), "$ink"),
        (_row("detail", one_line(report.detail) or "none"), "$ink"),
        (_row("process", exit_text(session.exit) if session.exit else f"runs, pid {session.pid}"), "$ink"),
        (_row("folder", str(session.cwd)), "$ink"),
        (_row("address", f"@{session.agent_id}  {session.endpoint}"), "$ink"),
        ("\nBefore\n", "bold $hot"),
    ]
    for past in list(session.detector.timeline)[-SHOWN - 1 : -1][::-1]:
        style = state_mark(past.state)
        parts += [
            (f"  {pad(age(max(0.0, now - past.since)), 5)}", "$ink-faint"),
            (f"{style.glyph} {pad(past.state, 11)}", f"${style.colour}"),
            (f"{past.rule}  {one_line(past.matched)[:60]}\n", "$ink-muted"),
        ]
    return Content.assemble(*parts).rstrip()


def _row(name: str, value: str) -> str:
    return f"  {pad(name, 9)}{value}\n"
