"""The screens in Japanese: all of ours is translated, nothing is cut, and they look as before."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_textual_snapshot import SVGImageExtension

from tests.texts import CATALOGUES
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
CATALOGUE: dict[str, str] = json.loads((CATALOGUES / "ja.json").read_text(encoding="utf-8"))
WORDS = {"accepted", "held", "none", "priority", "unread", "process", "address", "waits", "arrows"}
"""Single words that no agent of the scenes says; others are also theirs."""
OF_AGENTS = {
    *("permission dialog", "edits parser.py", "wants to run rm -rf build", "which tests"),
    *("Bash command", "Do you want to proceed?"),
}
"""The name of a rule, and what agents of the scenes do, ask and say."""
CUT = re.compile(r"(?!ン…)[\u3041-\u30fa\u4e00-\u9fff]…")  # 「コマンドライン…」 opens a field
LISTED = re.compile(r"(claude|codex|gemini|alice|bob|shell|[\u3041-\u30fa\u4e00-\u9fff]), ")
"""Names in a sentence have the comma of its language."""
MAY_BE_CUT = {"splits"}
"""Where a reason or a name that does not fit is shortened."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("japanese")
    environ = {
        "LC_ALL": "ja_JP.UTF-8",
        "HOME": "/home/me",
        "TZ": "UTC",
        "PATH": os.environ["PATH"],
        "COLORTERM": "truecolor",
        "TERM": "xterm-256color",
    }
    command = [sys.executable, "-m", "tests.ui.japanese", str(folder)]
    done = subprocess.run(
        command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=20 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return folder


def english_in(text: str) -> list[str]:
    said = [key for key in CATALOGUE if "{" not in key and (" " in key or key in WORDS)]
    found = (key for key in said if key in text and re.search(rf"(?<![\w.-]){re.escape(key)}(?![\w-])", text))
    return sorted(key for key in found if key not in OF_AGENTS and CATALOGUE[key] != key)


def test_screens_in_japanese(drawn: Path, snapshot: Any) -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(drawn.glob("*.txt"))}
    english = {name: found for name, text in texts.items() if (found := english_in(text))}
    assert not english
    cut = {
        name: rows
        for name, text in texts.items()
        if name.rpartition("-")[0] not in MAY_BE_CUT
        and (rows := [row for row in text.splitlines() if CUT.search(row)])
    }
    assert not cut
    listed = {
        name: rows for name, text in texts.items() if (rows := [*filter(LISTED.search, text.splitlines())])
    }
    assert not listed
    pictures = snapshot.use_extension(SVGImageExtension)
    different = [
        path.stem
        for path in sorted(drawn.glob("*.svg"))
        if pictures(name=path.stem) != path.read_text(encoding="utf-8")
    ]
    assert not different
