"""The SVG of the README: at every instant its visible rows are those of the recorded terminal."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from synapse_tui.daemon.recording.asciicast import CastEncoder, Header

SCRIPT = Path(__file__).parents[2] / "docs" / "make_demo.py"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def make_demo():
    spec = importlib.util.spec_from_file_location("make_demo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_demo"] = module
    spec.loader.exec_module(module)
    return module


def cast(path: Path, *events: tuple[float, str]) -> Path:
    encoder = CastEncoder()
    lines = [encoder.header(Header(20, 3)), *(encoder.output(at, text.encode()) for at, text in events)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def rows_at(text: str, seconds: float) -> dict[int, str]:
    """The text of the rows that are visible then, by their number."""
    root = ET.fromstring(text)
    style = root.find(f"{SVG}style")
    assert style is not None
    rules = style.text or ""
    length = float(re.search(r"animation:([\d.]+)s", rules)[1])  # type: ignore[index]
    found: dict[int, str] = {}
    for group in root.iterfind(f"{SVG}g/{SVG}g"):
        name = group.get("style", "").partition(":")[2]
        steps = re.search(rf"@keyframes {name}{{(.*?}})}}", rules)[1]  # type: ignore[index]
        state = "hidden"
        for at, wanted in re.findall(r"([\d.]+)%{visibility:(\w+)}", steps):
            if float(at) <= seconds / length * 100:
                state = wanted
        if state == "visible":
            _add(found, group)
    for element in root.iterfind(f"{SVG}g"):
        _add(found, element)
    return found


def _add(found: dict[int, str], parent: ET.Element) -> None:
    for element in parent.iterfind(f"{SVG}text"):
        row = int(element.get("y", "0")) // 17
        found[row] = found.get(row, "") + (element.text or "")


def test_rows_appear_and_go_as_in_the_recording(make_demo, tmp_path):
    recording = cast(
        tmp_path / "a.cast",
        (0.0, "\x1b[?25lhead"),
        (1.0, "\x1b[2;1Hone"),
        (2.0, "\x1b[2;1H\x1b[2K\x1b[1mtwo <&"),
        (3.0, "\x1b[2;1H\x1b[0m\x1b[2Kone"),
    )
    text = make_demo.svg(recording, 0.5)
    assert rows_at(text, 0.5) == {0: "head"}
    assert rows_at(text, 1.5) == {0: "head", 1: "one"}
    assert rows_at(text, 2.5) == {0: "head", 1: "two <&"}
    assert rows_at(text, 3.5) == {0: "head", 1: "one"}
    assert text.count(">head<") == text.count(">one<") == 1  # drawn once each
    assert "<script" not in text


def test_long_pauses_are_cut(make_demo, tmp_path):
    recording = cast(tmp_path / "a.cast", (0.0, "a"), (100.0, "\r\nb"))
    _columns, _lines, shown = make_demo.frames(recording)
    assert shown[-1][0] <= make_demo.IDLE


def test_the_demo_of_the_readme_is_small_and_has_no_script():
    demo = SCRIPT.with_name("demo.svg").read_text(encoding="utf-8")
    assert len(demo.encode()) < 400_000
    assert "<script" not in demo
    assert "@keyframes" in demo
