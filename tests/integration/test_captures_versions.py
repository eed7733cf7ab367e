"""Recordings of agents as another version might have written them: other glyphs and words, fewer signals.

What no rule knows any more may be UNKNOWN, which holds messages; it must never look READY.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

import pytest

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.model import AgentState
from tests.integration.capture_replay import (
    Change,
    Replay,
    profile,
    replay,
    replays,
)
from tests.terminal.recordings import case

READY, WORKING, WAITING = AgentState.READY, AgentState.PROCESSING, AgentState.WAITING
UNKNOWN = AgentState.UNKNOWN
BUSY = (WORKING, WAITING)
GRACE = 0.6
"""Seconds after Enter in which the agent's screen does not tell yet that it works."""
TITLE = rb"\x1b\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)"
STATUS = rb"\x1b\]7501;state=%s[^\x07\x1b]*(?:\x07|\x1b\\)"


def text(old: str, new: str) -> Change:
    """Other characters, as many as before: the rest is painted where it was."""
    assert len(re.sub(r"\(\?:.*\)", "x", old)) == len(new), (old, new)
    return old.encode(), new.encode()


def title(old: str, new: str) -> Change:
    return TITLE, lambda match: re.sub(old.encode(), new.encode(), match[0])


def without_status(states: bytes = b"") -> Change:
    return STATUS % states, b""


def told(match: re.Match[bytes]) -> bytes:
    """A title, and whether the turn goes on: it does while the title turns and in dialogs."""
    asks = b"proceed?" in match.string[match.end() : match.end() + 3000]
    idle = "✳".encode() in match[1] and not asks
    return match[0] + (b"\x1b]9;4;0\x07" if idle else b"\x1b]9;4;3\x07")


NO_TITLE: Change = (TITLE, b"")
NO_PROGRESS: Change = (rb"\x1b\]9;4;[^\x07\x1b]*(?:\x07|\x1b\\)", b"")
FOOTER = text(" · working", " · at work")
PROGRESS: tuple[Change, ...] = ((TITLE, told), (rb"Interrupted", b"\x1b]9;4;0\x07Interrupted"))
"""What Claude Code tells besides where it knows the terminal: OSC 9;4 from Enter to the end of the turn."""
SPINNER = "(?:⠂|⠐)"
BRAILLE = f"(?:{'|'.join('⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏')})"


@dataclass(frozen=True)
class Version:
    """What is other in a version.

    Attributes:
        agent: Whose.
        name: What is other.
        changes: In the bytes.
        same: Whether all states must be as before; else some may be unknown.
        stale: Whether a signal that nothing takes back may last: then only READY is looked for.
    """

    agent: str
    name: str
    changes: tuple[Change, ...]
    same: bool = False
    stale: bool = False


def v(agent: str, name: str, *changes: Change, same: bool = False, stale: bool = False) -> Version:
    return Version(agent, name, changes, same, stale)


VERSIONS = (
    v("claude", "half circles", title(SPINNER, "◐"), same=True),
    v("claude", "other spinner", title(SPINNER, "◴")),
    v("claude", "other star", title("✳", "✶")),
    v("claude", "no title", NO_TITLE),
    v("claude", "title always idle", *PROGRESS, title(SPINNER, "✳"), same=True),
    v("claude", "no title, other footer", NO_TITLE, text("interrupt", "leave off")),
    v("claude", "other footer", text("interrupt", "leave off"), same=True),
    v("claude", "other dialog keys", text("Esc", "Key")),
    v("claude", "other dialog keys, progress", *PROGRESS, text("Esc", "Key"), same=True),
    v("codex", "no status", without_status()),
    v("codex", "other status words", text("state=working", "state=running"), same=True),
    v("codex", "never tells that it works", without_status(b"working"), stale=True),
    v("codex", "never tells that it is blocked", without_status(b"blocked")),
    v("codex", "no title", NO_TITLE, same=True),
    v("codex", "no status, other spinner", without_status(), title(BRAILLE, "◴")),
    v("codex", "no status, no title", without_status(), NO_TITLE),
    v("codex", "no title, footer", without_status(), NO_TITLE, text("interrupt", "leave off")),
    v("codex", "other dialog keys", text("Press", "Smash"), same=True),
    v("codex", "no title, dialog keys", without_status(), NO_TITLE, text("Press", "Smash")),
    v("gemini", "other glyphs", title("✦", "✱"), title("◇", "○"), title("✋", "☞"), same=True),
    v("gemini", "other words", title("Working", "Busy"), title("Ready|Action", "Idle"), same=True),
    v("gemini", "no title", NO_TITLE),
    v("gemini", "title always ready", title("(?:✦  Working…|✋  Action Required)", "◇  Ready")),
    v("gemini", "no title, other spinner", NO_TITLE, text("esc to cancel", "key to cancel")),
    v("gemini", "other dialog", text("●", "◉")),
    v("gemini", "no title, other dialog", NO_TITLE, text("●", "◉")),
    v("opencode", "other spinner", text("■", "●"), text("⬝", "○"), same=True),
    v("opencode", "other word", text("interrupt", "leave off"), same=True),
    v("opencode", "other spinner and word", text("■", "●"), text("⬝", "○"), text("interrupt", "leave off")),
    v("opencode", "other key", (rb"ctrl\+p", b"ctrl+k")),
    v("opencode", "other dialog", text("△", "▽"), same=True),
    v("opencode", "other dialog and keys", text("△", "▽"), text("enter", "press")),
    v("copilot", "other spinner", text("(?:●|◎|◉|○)", "◐"), same=True),
    v("copilot", "no spinner", text("(?:●|◎|◉|○)", " "), same=True),
    v("copilot", "other word", text("Working", "Musing…"), same=True),
    v("copilot", "other spinner and word", text("(?:●|◎|◉|○)", "◐"), text("Working", "Musing…"), same=True),
    v("copilot", "other dialog", text("❯", "▶")),
    v("copilot", "other mode", text("Interactive", "interactive")),
    v("dummy", "no title", NO_TITLE, same=True),
    v("dummy", "other spinner", title(SPINNER, "◴"), same=True),
    v("dummy", "other star and hand", title("✳", "✶"), title("✋", "☞"), same=True),
    v("dummy", "title always idle", title(f"{SPINNER} Working", "✳ Ready"), same=True),
    v("dummy", "no status", without_status(), same=True),
    v("dummy", "other status words", text("state=working", "state=running"), same=True),
    v("dummy", "never tells that it works", without_status(b"working"), stale=True),
    v("dummy", "never tells that it is blocked", without_status(b"blocked"), same=True),
    v("dummy", "no status, other spinner", without_status(), title(SPINNER, "◴")),
    v("dummy", "no status, no title, other footer", without_status(), NO_TITLE, FOOTER),
    v("dummy", "other dialog", text("❯ 1", "▶ 1")),
    v("dummy-alternate", "no title", NO_TITLE, same=True),
    v("dummy-alternate", "no status, no title", without_status(), NO_TITLE),
    v("dummy-progress", "no progress", NO_PROGRESS, same=True),
    v("dummy-progress", "no progress, other footer", NO_PROGRESS, FOOTER, same=True),
    v("dummy-quiet", "other word", text("Working…", "Ponders…"), same=True),
    v("dummy-quiet", "other footer", FOOTER, same=True),
    v("dummy-quiet", "other word and footer", text("Working…", "Ponders…"), FOOTER),
    v("dummy-quiet", "other dialog", text("❯ 1", "▶ 1")),
    v("dummy-quiet", "other question", text("proceed", "venture"), same=True),
)  # fmt: skip


def busy(found: Replay) -> list[tuple[float, float]]:
    """From when to when the agent of the unchanged recording worked or asked."""
    joined: list[tuple[float, float]] = []
    for start, end, state in found.spans():
        if state in BUSY and joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        elif state in BUSY:
            joined.append((start, end))
    return [(start + GRACE, end - 0.05) for start, end in joined if end - start > GRACE + 0.1]


def wrongly_ready(agent: str, found: Replay) -> list[str]:
    return [
        f"{moment.rule} at {max(start, moment.time):.2f}"
        for start, end in busy(replay(agent))
        for moment in found.between(start, end)
        if moment.state is READY
    ]


def probes(agent: str) -> list[tuple[float, AgentState]]:
    """A moment near the end of each state of the unchanged recording that lasted, before the next key."""
    found = replay(agent)
    keys = [time for time, _ in found.inputs]
    times = []
    for start, end, state in found.spans():
        until = min([key for key in keys if start < key < end] + [end])
        if state in (READY, *BUSY) and until - start > 1.0:
            times.append((until - 0.05, state))
    return times


@pytest.mark.parametrize(
    ("agent", "version"), [case(each.agent, each, name=f"{each.agent}: {each.name}") for each in VERSIONS]
)
def test_another_version_is_right_or_unknown(agent: str, version: Version) -> None:
    (found,) = replays(agent, [profile(agent)], version.changes)
    assert wrongly_ready(agent, found) == []
    first_key = found.inputs[0][0]
    assert found.at(first_key).state is READY, "it rested for seconds"
    expected = [] if version.stale else probes(agent)
    wrong = [
        f"{moment.state} by {moment.rule} at {time:.2f}, not {state}"
        for time, state in expected
        if (moment := found.at(time)).state is not state and (version.same or moment.state is not UNKNOWN)
    ]
    assert wrong == []


def without_each(known: Profile) -> list[tuple[str, Profile]]:
    dialogs, states = known.dialogs, known.states
    return [
        *(
            (f"dialog {rule.name}", dataclasses.replace(known, dialogs=(*dialogs[:at], *dialogs[at + 1 :])))
            for at, rule in enumerate(dialogs)
        ),
        *(
            (f"state {rule.name}", dataclasses.replace(known, states=(*states[:at], *states[at + 1 :])))
            for at, rule in enumerate(states)
        ),
    ]


@pytest.mark.parametrize("agent", [case(agent) for agent in dict.fromkeys(each.agent for each in VERSIONS)])
def test_no_rule_is_needed_to_tell_that_an_agent_is_not_ready(agent: str) -> None:
    variants = without_each(profile(agent))
    found = replays(agent, [variant for _, variant in variants])
    wrong = {
        name: errors
        for (name, _), seen in zip(variants, found, strict=True)
        if (errors := wrongly_ready(agent, seen))
    }
    assert wrong == {}
