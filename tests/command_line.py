"""The commands, called within this process: that takes a tenth of the time of a process of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from synapse_tui.cli import tui
from synapse_tui.cli.group import synapse
from synapse_tui.cli.output import run_command

_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        value: dict[str, object] = json.loads(self.out)
        return value


def call(program: str, *words: str, environ: Mapping[str, str], folder: Path, stdin: bytes = b"") -> Result:
    """Run `synapse` or `synapse-tui` with these words, not where it starts a process that outlives it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code = 0
    with (
        _one_at_a_time,
        mock.patch.dict(os.environ, environ, clear=True),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            if program == "synapse-tui":
                tui.main(words)
            else:
                run_command(synapse, list(words), name="synapse")
        except SystemExit as ended:
            code = int(ended.code or 0)
    said, told = (_written(stream) for stream in (out, err))
    assert "Traceback" not in told, told
    return Result(code, said, told)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
