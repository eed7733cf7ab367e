"""An agent of a saved workspace, to be opened again."""

from __future__ import annotations

from pathlib import Path

from synapse_tui.model import AgentSpec
from synapse_tui.workspace import SavedAgent

from .profiles.profile import Profile


def resumed_spec(saved: SavedAgent, profile: Profile) -> AgentSpec:
    """What to open for an agent that was saved.

    Args:
        saved: The agent.
        profile: Its profile as it is now.

    Returns:
        The same agent in its folder, with its last conversation when its profile says how and its own
        arguments do not say it already; what it was told there it knows then.
    """
    own = saved.args[: len(profile.resume)] == profile.resume
    return AgentSpec(
        profile.name,
        name=saved.name,
        cwd=Path(saved.cwd),
        args=saved.args,
        restore=True,
        resume=bool(profile.resume) and not own,
        last_port=saved.port,
        told_as=saved.told_as if profile.resume else "",
        began=saved.began if profile.resume else 0.0,
    )
