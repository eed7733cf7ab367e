"""Agents as words of the command line and of the settings: `PROFILE[:NAME][@DIR]`."""

from __future__ import annotations

import re
from pathlib import Path

from synapse_tui.addresses import check_name
from synapse_tui.errors import ConfigError
from synapse_tui.model import AgentSpec

_SPEC = re.compile(r"(?P<profile>[A-Za-z0-9][\w.-]*)(?::(?P<name>[\w.-]+))?(?:@(?P<folder>.+))?")


def parse_spec(text: str, *, base: Path) -> AgentSpec:
    """Read one `PROFILE[:NAME][@DIR]`."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"'{text}' names no agent", "write PROFILE[:NAME][@FOLDER], such as claude:alice@~/api"
        )
    name = check_name(match["name"]) if match["name"] else ""
    folder = (base / Path(match["folder"]).expanduser()) if match["folder"] else None
    return AgentSpec(match["profile"], name, folder)
