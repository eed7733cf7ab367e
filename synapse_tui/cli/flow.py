"""Whether a send waits for the answer (design, decision 6)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from .output import note_left_out

if TYPE_CHECKING:
    from .caller import Caller

Flow = Literal["auto", "roundtrip", "oneway"]


def waits(flow: str, response: bool | None) -> bool:
    """Whether to wait.

    Args:
        flow: The setting `a2a.flow`.
        response: True for `--response`, False for `--no-response`, None for neither.
    """
    if flow == "roundtrip":
        return True
    if flow == "oneway":
        return False
    return response is not False


def insists(flow: str, response: bool | None) -> bool:
    """Whether to wait also for a message that lies in an inbox: it was asked for.

    Args:
        flow: The setting `a2a.flow`.
        response: True for `--response`, False for `--no-response`, None for neither.
    """
    return waits(flow, response) and (flow == "roundtrip" or response is True)


def flow_of(caller: Caller) -> str:
    """The setting `a2a.flow`; what is wrong with the settings is told on stderr."""
    from synapse_tui.agents.profiles.finding import TrustStore
    from synapse_tui.paths import find_project
    from synapse_tui.settings import load_settings

    trust = TrustStore(caller.paths.trusted)
    settings = load_settings(
        find_project(caller.folder),
        paths=caller.paths,
        environ=os.environ,
        trusted=trust.trusts,
    )
    note_left_out(settings.problems, settings.untrusted)
    return settings.text("a2a.flow")
