"""@xterm/headless as a reference terminal, where it is installed: its `node_modules` is in XTERM_HEADLESS."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from synapse_tui.terminal import RGB
from tests.terminal.recordings import Recording
from tests.terminal.tmux_screen import Look, Seen

_SCRIPT = """
const { Terminal } = require('@xterm/headless');
const color = (mode, value) => (mode === 0 ? -1 : mode === 0x3000000 ? RGB + value : value);
const styleOf = (cell) => JSON.stringify([
  color(cell.getFgColorMode(), cell.getFgColor()),
  color(cell.getBgColorMode(), cell.getBgColor()),
  [
    cell.isBold() && 'bold', cell.isDim() && 'dim', cell.isItalic() && 'italic', cell.isBlink() && 'blink',
    cell.isInverse() && 'reverse', cell.isInvisible() && 'hidden', cell.isStrikethrough() && 'strike',
    cell.isOverline() && 'overline',
  ].filter(Boolean),
  cell.fg & 0x10000000 ? (cell.extended._ext >> 26) & 7 || 1 : 0,
]);
const textOf = (cell) => (cell.getWidth() === 0 ? '' : cell.getChars() || ' ');
const frame = (terminal, size, marker) => {
  const buffer = terminal.buffer.active, rows = [], wrapped = [], styles = {}, above = [];
  for (let y = 0; y < terminal.rows; y++) {
    const line = buffer.getLine(buffer.baseY + y), texts = [], looks = [];
    for (let x = 0; x < terminal.cols; x++) {
      const cell = line.getCell(x), style = styleOf(cell);
      texts.push(textOf(cell));
      looks.push((styles[style] ??= Object.keys(styles).length));
    }
    rows.push([texts, looks]);
    wrapped.push(line.isWrapped);
  }
  for (let y = 0; size && y < buffer.baseY; y++) above.push(buffer.getLine(y).translateToString(true));
  return {
    rows, wrapped, styles: Object.keys(styles).map(JSON.parse), cursor: [buffer.cursorX, buffer.cursorY],
    above: buffer.baseY, scrollback: above, marker: marker ? marker.line - buffer.baseY : buffer.cursorY,
  };
};
(async () => {
  const job = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  const options = { cols: job.columns, rows: job.lines, scrollback: 5000, allowProposedApi: true };
  const terminal = new Terminal(options);
  for (const [data, size] of job.steps) {
    await new Promise((done) => terminal.write(Buffer.from(data, 'base64'), done));
    const marker = size ? terminal.registerMarker(0) : undefined;
    if (size) terminal.resize(...size);
    console.log(JSON.stringify(frame(terminal, size, marker)));
    if (marker) marker.dispose();
  }
})();
""".replace("RGB", str(RGB))
"""The style of an underline is read where xterm.js keeps it: what it gives out is dashed for every link."""


_NODE, _MODULES = shutil.which("node"), os.environ.get("XTERM_HEADLESS")
HEADLESS = bool(_NODE and _MODULES and Path(_MODULES, "@xterm", "headless").is_dir())


class Frame(NamedTuple):
    """What is shown at one moment.

    Attributes:
        rows: The cells of every row, one a column; the right half of a wide character has no text.
        wrapped: For every row whether it continues the one above it.
        cursor: Column, at most the last one, and row.
        above: Rows in the scrollback.
        scrollback: Their text; only after a change of size.
        marker: Row of the text that the cursor stood on before a change of size.
    """

    rows: list[list[Seen]]
    wrapped: list[bool]
    cursor: tuple[int, int]
    above: int
    scrollback: list[str]
    marker: int


def frames(recording: Recording) -> list[Frame]:
    """What @xterm/headless shows after each step of a recording; it must be installed (`HEADLESS`)."""
    assert _NODE
    assert _MODULES
    steps = [(base64.b64encode(step.data).decode(), step.size) for step in recording.steps]
    job = {"columns": recording.columns, "lines": recording.lines, "steps": steps}
    done = subprocess.run(
        [_NODE, "-e", _SCRIPT],
        input=json.dumps(job),
        env=os.environ | {"NODE_PATH": _MODULES},
        capture_output=True,
        check=True,
        text=True,
    )
    return [_frame(line) for line in done.stdout.splitlines()]


def _frame(line: str) -> Frame:
    found = json.loads(line)
    looks = [Look(fg, bg, frozenset(names), underline) for fg, bg, names, underline in found["styles"]]
    rows = [[Seen(text, looks[style]) for text, style in zip(*row, strict=True)] for row in found["rows"]]
    x, y = found["cursor"]
    scrollback = [text.rstrip() for text in found["scrollback"]]
    return Frame(
        rows, found["wrapped"], (min(x, len(rows[0]) - 1), y), found["above"], scrollback, found["marker"]
    )
