"""Records a program's screen as an asciicast, and draws an asciicast as an SVG that moves without scripts.

    python docs/make_demo.py record demo.cast --size 100x34 --until "That was all" -- synapse-tui demo
    python docs/make_demo.py svg demo.cast docs/demo.svg

Rows are drawn once each, and shown and hidden by CSS keyframes; equal rows share them.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from ptyprocess import PtyProcess
from pyte.graphics import FG_BG_256

from synapse_tui.daemon.recording.asciicast import CastEncoder, Header
from synapse_tui.terminal import Terminal
from synapse_tui.terminal.style import RGB, Style

CELL, ROW, FONT = 8, 17, 13.3  # pixels; common monospaced fonts are 0.6 em wide
FAMILY = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
MARGIN = 10
INK, GROUND = "#e6e3ef", "#14131a"
PALETTE = [f"#{value}" for value in FG_BG_256]
TICK = 0.2  # seconds between frames at most
QUIET = 0.03  # seconds without output after which a frame is complete
IDLE = 2.5  # longer pauses are cut to this
END = 4.0  # seconds that the last frame stays
LINES = {"─": (0, 8, 8, 1), "━": (0, 7, 8, 3), "│": (4, 0, 1, 17), "▌": (0, 0, 4, 17)}
"""Drawn as rectangles (x, y, width, height), since fonts leave gaps between them."""

Run = tuple[str, Style, int]
Row = tuple[Run, ...]
Frame = tuple[Row, ...]
Interval = tuple[float, float]


def record(path: Path, columns: int, lines: int, until: str, command: Sequence[str]) -> None:
    """Run a command in a terminal of its own until it shows a text, or ends."""
    terminal = Terminal(columns, lines, 0)
    terminal.set_colors((0xE6, 0xE3, 0xEF), (0x14, 0x13, 0x1A), None, dark=True)
    environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    child = PtyProcess.spawn(list(command), env=environ, dimensions=(lines, columns))
    encoder, began, last = CastEncoder(), time.monotonic(), float("inf")
    with path.open("w", encoding="utf-8") as file:
        file.write(encoder.header(Header(columns, lines)))
        while time.monotonic() < last and child.isalive():
            if not select.select([child.fd], [], [], 0.1)[0]:
                continue
            try:
                data = child.read()
            except EOFError:
                break
            file.write(encoder.output(time.monotonic() - began, data))
            terminal.feed(data)
            child.write(terminal.take_replies())
            if until and last == float("inf") and until in "\n".join(terminal.display):
                last = time.monotonic() + IDLE
    child.terminate(force=True)


def frames(path: Path) -> tuple[int, int, list[tuple[float, Frame]]]:
    """Play a recording; return columns, lines, and what the screen showed from which time on."""
    header, *events = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    columns, lines = header["width"], header["height"]
    terminal = Terminal(columns, lines, 0)
    shown: list[tuple[float, Frame]] = []
    now = before = due = 0.0
    for at, code, data in events:
        quiet = at - before >= QUIET  # otherwise this may be the middle of a frame
        now += min(at - before, IDLE)
        before = at
        if (now >= due and quiet) or now >= due + IDLE:
            _add(shown, due, _look(terminal))
            due = now + TICK
        if code == "o":
            terminal.feed(data.encode("utf-8", "replace"))
    _add(shown, now, _look(terminal))
    start = next((at for at, frame in shown if any(text.strip() for row in frame for text, *_ in row)), 0.0)
    return columns, lines, [(at - start, frame) for at, frame in shown if at >= start]


def _add(shown: list[tuple[float, Frame]], at: float, frame: Frame) -> None:
    if not shown or shown[-1][1] != frame:
        shown.append((at, frame))


def _look(terminal: Terminal) -> Frame:
    return tuple(tuple(terminal.line(y).runs()) for y in range(terminal.lines))


def intervals(
    shown: Sequence[tuple[float, Frame]], end: float
) -> Mapping[tuple[Interval, ...], list[tuple[int, Row]]]:
    """Group rows (number and content) by the times at which they are visible."""
    times: defaultdict[tuple[int, Row], list[Interval]] = defaultdict(list)
    for (start, frame), (stop, _) in pairwise([*shown, (end, ())]):
        for number, row in enumerate(frame):
            spans = times[number, row]
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], stop)
            else:
                spans.append((start, stop))
    groups: defaultdict[tuple[Interval, ...], list[tuple[int, Row]]] = defaultdict(list)
    for row, spans in times.items():
        groups[tuple(spans)].append(row)
    return groups


class Picture:
    """Draws rows; styles become CSS classes."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}

    def row(self, y: int, row: Row) -> Iterator[str]:
        x, top = 0, y * ROW
        for text, style, width in row:
            ground = _colour(style.fg, INK) if style.reverse else _colour(style.bg, "")
            if ground:
                yield self._box(self._class(ground), x * CELL, top, width * CELL, ROW)
            if text.strip():
                yield from self._text(x, top, text, width, style)
            x += width

    def _text(self, x: int, top: int, text: str, width: int, style: Style) -> Iterator[str]:
        ink = _colour(style.bg, GROUND) if style.reverse else _colour(style.fg, INK)
        look = self._class(_faded(ink) if style.dim else ink, bold=style.bold, italic=style.italic)
        if set(text) <= {*LINES, " "} and width == len(text):
            for char, start, count in _runs(text):
                left, above, wide, high = LINES[char]
                whole = wide if char in "│▌" else count * CELL
                at = (x + start) * CELL + left
                yield self._box(look, at, top + above, whole, high)
            return
        lead = len(text) - len(text.lstrip())
        words = text.strip()
        cells = width - (len(text) - len(words))
        fit = f' textLength="{cells * CELL}"' if cells > 1 else ""
        place = f'x="{(x + lead) * CELL}" y="{top + 13}"{fit}'
        yield f'<text class="{look}" {place}>{escape(words, quote=False)}</text>'

    @staticmethod
    def _box(look: str, x: int, y: int, width: int, height: int) -> str:
        return f'<path class="{look}" d="M{x} {y}h{width}v{height}h-{width}z"/>'

    def _class(self, colour: str, *, bold: bool = False, italic: bool = False) -> str:
        look = f"fill:{colour}" + ";font-weight:bold" * bold + ";font-style:italic" * italic
        return self.classes.setdefault(look, f"s{len(self.classes)}")


def _runs(text: str) -> Iterator[tuple[str, int, int]]:
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and text[end] == text[start] and text[start] not in "│▌":
            end += 1
        if text[start] != " ":
            yield text[start], start, end - start
        start = end


def _colour(value: int, default: str) -> str:
    if value < 0:
        return default
    return f"#{value & 0xFFFFFF:06x}" if value & RGB else PALETTE[value]


def _faded(colour: str) -> str:
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(GROUND[1:]), strict=True)
    return "#" + "".join(f"{(3 * ink + 2 * ground) // 5:02x}" for ink, ground in pairs)


def svg(path: Path, poster: float) -> str:
    """Draw a recording; where nothing may move, it shows the frame at `poster`, a share of its length."""
    columns, lines, shown = frames(path)
    end = shown[-1][0] + END
    still = max(at for at, _ in shown if at <= poster * end)
    picture, rules, groups = Picture(), [], []
    for number, (spans, rows) in enumerate(intervals(shown, end).items()):
        drawn = "".join(part for y, row in rows for part in picture.row(y, row))
        if not drawn:
            continue
        if spans == ((0.0, end),):
            groups.append(drawn)
            continue
        rules.append(f"@keyframes k{number}{{{_keyframes(spans, end)}}}")
        seen = ' class="p"' if any(start <= still < stop for start, stop in spans) else ""
        groups.append(f'<g{seen} style="animation-name:k{number}">{drawn}</g>')
    width, height = columns * CELL + 2 * MARGIN, lines * ROW + 2 * MARGIN
    looks = "".join(f".{name}{{{look}}}" for look, name in picture.classes.items())
    style = (
        f"text{{font:{FONT}px {FAMILY};white-space:pre}}"
        f"g g{{visibility:hidden;animation:{end:.2f}s step-end infinite}}.p{{visibility:visible}}"
        f"@media(prefers-reduced-motion:reduce){{g g{{animation:none}}}}{looks}{''.join(rules)}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}">'
        f'<style>{style}</style><rect width="100%" height="100%" rx="8" fill="{GROUND}"/>'
        f'<g transform="translate({MARGIN} {MARGIN})">{"".join(groups)}</g></svg>\n'
    )


def _keyframes(spans: Sequence[Interval], end: float) -> str:
    steps = ["0%{visibility:hidden}"] if spans[0][0] else []
    for start, stop in spans:
        steps.append(f"{start / end:.2%}{{visibility:visible}}")
        if stop < end:
            steps.append(f"{stop / end:.2%}{{visibility:hidden}}")
    return "".join(steps)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run a command and record its screen")
    recording.add_argument("cast", type=Path)
    recording.add_argument("--size", default="100x34")
    recording.add_argument("--until", default="", help="end shortly after this text is shown")
    recording.add_argument("words", nargs="+", metavar="COMMAND")
    drawing = commands.add_parser("svg", help="draw a recording")
    drawing.add_argument("cast", type=Path)
    drawing.add_argument("svg", type=Path)
    drawing.add_argument("--poster", type=float, default=0.5, help="the still, as a share of the length")
    given = parser.parse_args()
    if given.command == "record":
        columns, _, lines = given.size.partition("x")
        record(given.cast, int(columns), int(lines), given.until, given.words)
    else:
        given.svg.write_text(svg(given.cast, given.poster), encoding="utf-8")


if __name__ == "__main__":
    main()
