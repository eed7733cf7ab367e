"""Fixtures of the tests of the application."""

import difflib
import pickle
import re
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import textual.app
import textual.pilot
from pytest_textual_snapshot import node_to_report_path
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from synapse_tui.ui.screens import main
from synapse_tui.widgets import bars, terminal_view
from tests.ui.idle import FRAME, wait_for_idle


@pytest.fixture(autouse=True, scope="package")
def _idle_is_known() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (textual.app, textual.pilot):
            patch.setattr(module, "wait_for_idle", wait_for_idle)
        yield


@pytest.fixture(autouse=True, scope="package")
def _style_sheets_are_parsed_once() -> Iterator[None]:
    """Share parsed rules between applications, which never change them: parsing is a third of a start."""
    parse, parse_rules = Stylesheet.parse, Stylesheet._parse_rules
    sheets: dict[tuple[object, ...], tuple[list[RuleSet], dict[str, list[RuleSet]]]] = {}
    known: dict[tuple[object, ...], list[RuleSet]] = {}

    def parse_once(sheet: Stylesheet) -> None:
        key = (tuple(sheet.source.items()), frozenset(sheet._variables.items()))
        if key not in sheets:
            parse(sheet)
            sheets[key] = sheet._rules, sheet.rules_map
        sheet._rules, sheet._rules_map = sheets[key]
        sheet._require_parse = False

    def parse_rules_once(sheet: Stylesheet, css: str, *where: Any, **how: Any) -> list[RuleSet]:
        key = (css, where, frozenset(how.items()), frozenset(sheet._variables.items()))
        if key not in known:
            known[key] = parse_rules(sheet, css, *where, **how)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "parse", parse_once)
        patch.setattr(Stylesheet, "_parse_rules", parse_rules_once)
        patch.setattr(RuleSet, "__hash__", object.__hash__)  # the same, without a call of a function
        yield


@pytest.fixture(autouse=True)
def notices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice does not vanish before a test has looked, however busy the machine is."""
    for name in ("NOTICE_SECONDS", "LONG_SECONDS"):
        monkeypatch.setattr(bars, name, 3600.0)


@pytest.fixture
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    # A picture shows terminals in their final size: what is due within a frame is waited for.
    monkeypatch.setattr(terminal_view, "SETTLE_TIME", FRAME / 4)
    monkeypatch.setattr(main, "SETTLE_SECONDS", FRAME / 2)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def snap_compare(snap_compare: Any, request: pytest.FixtureRequest) -> Callable[..., bool]:
    """`snap_compare` of pytest-textual-snapshot that also prints how the pictures differ."""

    def compare(*args: Any, **options: Any) -> bool:
        same: bool = snap_compare(*args, **options)
        if not same:
            _, expected, actual, *_ = pickle.loads(node_to_report_path(request.node).read_bytes())
            # Names of styles and clips have a hash of the whole picture.
            old, new = (re.sub(r"terminal-\d+-", "", svg).splitlines() for svg in (expected, actual))
            changes = difflib.unified_diff(old, new, "expected", "actual", n=0, lineterm="")
            print(*islice(changes, 80), sep="\n")
        return same

    return compare


@pytest.fixture(params=["16", "NO_COLOR"])
def plain_theme(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, same_everywhere: None
) -> str:
    """The theme for a terminal with sixteen colours, then that for one without colours."""
    if request.param == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
        return "dark"
    return "16"
