"""What `synapse doctor` shows: progress on stderr, tables on stdout."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from synapse_tui.doctor.report import Advice, Outcome, Report, Result
from synapse_tui.doctor.versions import Glance

from .output import note, plain, show
from .tables import cells, columns, cut, one_line, show_table

HEADS = ("CHECK", "RESULT", "TIME", "EVIDENCE")
GLANCE_HEADS = ("AGENT", "INSTALLED", "PROVED WITH", "REMARKS")
_CLEAR = "\r\x1b[K"


class Progress:
    """Tells on stderr which check goes on, and what came of each.

    Args:
        agent: The agent.
        verbose: Whether the agent's screen is shown where something did not hold.
    """

    def __init__(self, agent: str, *, verbose: bool) -> None:
        self._agent = agent
        self._verbose = verbose
        self._open = False
        self._terminal = sys.stderr.isatty()

    def begun(self, check: str) -> None:
        """A check has begun; on a terminal its line stands until its result takes its place."""
        if self._terminal:
            click.echo(f"{self._agent}: {check} …", err=True, nl=False)
            self._open = True

    def done(self, result: Result) -> None:
        """A check has ended."""
        self._end_line(_CLEAR)
        verdict = result.verdict
        text = one_line(verdict.evidence)
        line = f"{self._agent}: {result.check}: {verdict.outcome} ({result.seconds:.1f} s) {text}"
        # The table tells the whole of it.
        note(cut(line, shutil.get_terminal_size().columns) if self._terminal else line)
        if self._verbose and result.screen:
            note("\n".join(f"    | {row}" for row in plain(result.screen).split("\n")))

    def close(self) -> None:
        """Leave the terminal at the beginning of a line."""
        self._end_line("\n")

    def _end_line(self, how: str) -> None:
        if self._open:
            click.echo(how, err=True, nl=False)
        self._open = False


def show_glances(found: Sequence[Glance]) -> None:
    """One row for every profile."""
    show_table(GLANCE_HEADS, [_glance_row(entry) for entry in found])


def _glance_row(entry: Glance) -> tuple[str, ...]:
    installed = entry.version or ("yes" if entry.installed else "-")
    return (entry.agent, installed, entry.proved or "-", "; ".join(entry.remarks))


def show_report(report: Report, *, kept: bool) -> None:
    """The table of one agent, and what to change in its profile."""
    proved = f", profile proved with {report.proved}" if report.proved else ""
    show(f"{report.agent} {report.version or '(version unknown)'}{proved}")
    rows = [_row(result) for result in report.results]
    widths = [max(cells(row[at]) for row in (HEADS, *rows)) for at in range(3)]
    left = columns() - sum(widths) - 2 * len(widths)
    for row in (HEADS, *rows):
        first, *rest = _wrapped(row[3], left) if left >= 20 else [row[3]]
        start = (text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=False))
        show("  ".join((*start, first)).rstrip())
        for more in rest:
            show(" " * (sum(widths) + 2 * len(widths)) + more)
    _show_advice(report)
    if kept:
        note(f"kept: {Path(report.folder).parent}")


def _row(result: Result) -> tuple[str, str, str, str]:
    seconds = "" if result.verdict.outcome is Outcome.SKIPPED else f"{result.seconds:.1f} s"
    return (result.check, result.verdict.outcome.value, seconds, one_line(result.verdict.evidence))


def _show_advice(report: Report) -> None:
    keyed = [advice for advice in report.advice if advice.key]
    other = [advice for advice in report.advice if not advice.key]
    if keyed:
        show(f"\nTo change in {_where(report)}:")
        for advice in keyed:
            _show_one(f"{advice.key}: {advice.value}", advice)
    if other:
        show("\nTo do:")
        for advice in other:
            _show_one(advice.value, advice)
    if not report.failed and report.version and report.proved and report.version != report.proved:
        show(f"\nNothing failed with this version. To note it in {_where(report)}:")
        show(f"  doctor.version: {report.version}")


def _where(report: Report) -> str:
    """The file to edit: a copy of a shipped profile, which the next installation would replace."""
    if not report.shipped:
        return report.source
    return f"~/.synapse/profiles/{report.agent}.yaml (a copy of {report.source})"


def _show_one(text: str, advice: Advice) -> None:
    show(f"  {plain(text)}")
    for row in plain(advice.why).split("\n") if advice.why else ():
        show(f"      {row}")


def _wrapped(text: str, width: int) -> list[str]:
    """A text in rows of so many cells."""
    return list(_rows(text.split(" "), width)) or [""]


def _rows(words: Sequence[str], width: int) -> Iterator[str]:
    row = ""
    for word in words:
        if row and cells(row) + 1 + cells(word) > width:
            yield row
            row = word
        else:
            row = f"{row} {word}" if row else word
        while cells(row) > width:
            end = max(at for at in range(1, len(row)) if cells(row[:at]) <= width)
            yield row[:end]
            row = row[end:]
    if row:
        yield row
