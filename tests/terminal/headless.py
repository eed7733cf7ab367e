"""@xterm/headless as a reference terminal, where it is installed: its `node_modules` is in XTERM_HEADLESS."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Sequence

from tests.terminal.recordings import Recording

_SCRIPT = """
const { Terminal } = require('@xterm/headless');
const look = (terminal) => {
  const buffer = terminal.buffer.active;
  const rows = [];
  for (let y = 0; y < terminal.rows; y++) rows.push(buffer.getLine(buffer.baseY + y).translateToString(true));
  return { rows, cursor: [buffer.cursorX, buffer.cursorY] };
};
(async () => {
  const job = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  const options = { cols: job.columns, rows: job.lines, scrollback: 5000, allowProposedApi: true };
  const terminal = new Terminal(options);
  const looks = [];
  for (const [data, size] of job.steps) {
    await new Promise((done) => terminal.write(Buffer.from(data, 'base64'), done));
    if (size) terminal.resize(...size);
    looks.push(look(terminal));
  }
  console.log(JSON.stringify(looks));
})();
"""


class Look:
    """The text and the cursor of one moment."""

    def __init__(self, rows: Sequence[str], cursor: Sequence[int]) -> None:
        self.rows = [row.rstrip() for row in rows]
        self.cursor = tuple(cursor)


def looks(recording: Recording) -> list[Look] | None:
    """What @xterm/headless shows after each step of a recording; None where it is not installed."""
    modules, node = os.environ.get("XTERM_HEADLESS"), shutil.which("node")
    if not modules or node is None:
        return None
    steps = [(base64.b64encode(step.data).decode(), step.size) for step in recording.steps]
    job = {"columns": recording.columns, "lines": recording.lines, "steps": steps}
    done = subprocess.run(
        [node, "-e", _SCRIPT],
        input=json.dumps(job),
        env=os.environ | {"NODE_PATH": modules},
        capture_output=True,
        check=True,
        text=True,
    )
    return [Look(found["rows"], found["cursor"]) for found in json.loads(done.stdout)]
