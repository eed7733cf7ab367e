"""The documents name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synapse_tui.a2a.routes import build_app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
MODULES = {path.name for folder in ("synapse_tui", "tests") for path in (ROOT / folder).rglob("*.py")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("name", ["AGENTS.md", "docs/design.md"])
def test_modules_and_folders_that_are_named_exist(name: str) -> None:
    named = set(re.findall(r"`(\w[\w./]*\.py|\w[\w./]*/)`", (ROOT / name).read_text()))
    assert len(named) > 20
    assert not [
        each
        for each in named
        if each not in MODULES
        and not any((ROOT / base / each).exists() for base in ("", "synapse_tui", "tests"))
    ]


def test_the_map_names_every_package() -> None:
    packages = {path.parent.name for path in (ROOT / "synapse_tui").glob("*/__init__.py")}
    text = (ROOT / "AGENTS.md").read_text()
    assert not [name for name in sorted(packages) if f"`{name}/`" not in text]


def test_the_manual_of_http_names_every_route() -> None:
    named = re.sub(r"\{[^}]*\}", "{}", (ROOT / "docs" / "http.md").read_text())
    routes = {
        f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"
        for path, methods in build_app().openapi()["paths"].items()
        for method in methods
    }
    assert len(routes) > 30
    assert not [each for each in sorted(routes) if not re.search(rf"`{re.escape(each)}[`?]", named)]
