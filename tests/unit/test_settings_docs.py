"""The table of all settings in the documents is that of the schema."""

from __future__ import annotations

import json
from pathlib import Path

from synapse_tui.settings import SCHEMA, Setting

PAGE = Path(__file__).parents[2] / "docs/settings.md"
KINDS = {
    "boolean": "`true`, `false`",
    "text": "a string",
    "count": "a whole number",
    "number": "a whole number",
    "list": "a list of strings",
    "words": "a list of strings, or one with commas",
    "file": "name of a file in `.synapse`",
    "keys": "keys",
    "table": "a table of strings",
    "leader": "a key with Ctrl or Alt, or a function key",
    "bindings": "a table of keys by action",
}
"""What the table says of kinds; any other is what it is called."""


def row(setting: Setting) -> str:
    """A setting as a row of the table."""
    default = setting.written(setting.default)
    text = default if isinstance(default, str) and default else json.dumps(default)
    values = ", ".join(f"`{choice}`" for choice in setting.choices) or KINDS.get(setting.kind, setting.kind)
    where = "yours" if not setting.project else "yours, project"
    counts = "restart" if setting.restart else ""
    return f"| `{setting.key}` | `{text}` | {values} | {where} | {counts} | {setting.help} |"


def test_the_table_of_all_settings_is_the_schema() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    told = [line for line in page if line.startswith(tuple(f"| `{part}." for part in ("tui", "a2a", "env")))]
    told += [line for line in page if line.startswith(("| `instructions.", "| `delegation."))]
    wanted = [row(setting) for setting in SCHEMA.values()]
    missing = [line for line in wanted if line not in told]
    odd = [line for line in told if line not in wanted]
    assert not missing, "to be written into docs/settings.md:\n" + "\n".join(missing)
    assert not odd, "not so in the schema:\n" + "\n".join(odd)
