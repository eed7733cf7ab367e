"""Reads an agent's answer, and the tokens it has used, from its own conversation log (JSON lines).

The log has the complete, unformatted text; the screen shows it wrapped and decorated. The profile defines
where the log is and which lines are the user's and the agent's, so a new agent needs no code.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import stat
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from synapse_tui.agents.profiles.profile import TranscriptLines, TranscriptRules
from synapse_tui.core.content import Artifact

from .answers import without_note
from .composer import skeleton

log = logging.getLogger(__name__)

TAIL = 8 * 1024 * 1024  # bytes read from the end of a file: one turn, not the whole conversation
FILES = 4  # newest files to search: other agents of the same type may write beside ours
SLACK = 2.0  # seconds that a file may seem older than its content: file system timestamps are coarse
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")
_OTHERS = re.compile(r"[\W_]+")
# content block types with text, as opposed to tool calls and results
_TEXTS = frozenset({"", "text", "input_text", "output_text"})


def read_answer(
    transcript: TranscriptRules, text: str, *, since: float, cwd: Path, environ: Mapping[str, str]
) -> str:
    """Return the agent's answer to a text, as far as its log has it; blocks."""
    want = skeleton(text)
    for path in _newest(transcript, since=since, cwd=cwd, environ=environ):
        try:
            found = _answer(transcript, _lines(path), want)
        except OSError as error:
            log.debug("transcript not read: %s", error)
            continue
        if found is not None:
            return "\n\n".join(found)
    return ""


def read_prompts(
    transcript: TranscriptRules, *, since: float, cwd: Path, environ: Mapping[str, str]
) -> Iterator[str]:
    for path in _newest(transcript, since=since, cwd=cwd, environ=environ):
        try:
            yield from filter(None, (_text(transcript.user, line) for line in _lines(path)))
        except OSError as error:
            log.debug("transcript not read: %s", error)


def agrees(answer: str, screen: str) -> bool:
    """Whether an answer from a log matches the screen: its end, and most of its rows.

    The screen may also show tool output in between: then most of the answer's lines must be on it.
    """
    rows = [row for row in map(_letters, screen.splitlines()) if row]
    whole = _letters(answer)
    if not rows or not whole:
        return bool(whole)
    if rows[-1] not in whole:
        return False
    shown, lines = "".join(rows), [line for line in map(_letters, answer.splitlines()) if line]
    found = 2 * sum(row in whole for row in rows) >= len(rows)
    return found or 2 * sum(line in shown for line in lines) >= len(lines)


def _letters(text: str) -> str:
    return _OTHERS.sub("", unicodedata.normalize("NFC", text))


def _root(path: str, cwd: Path, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Return the folder that a path of a profile starts from, and the rest with its variables filled in."""
    pattern = _VARIABLE.sub(lambda found: environ.get(found[1]) or found[2], path)
    pattern = pattern.replace("{cwd}", re.sub(r"[^A-Za-z0-9]", "-", str(cwd)))
    if pattern.startswith("/"):
        return Path("/"), pattern.lstrip("/")
    return Path(environ.get("HOME") or Path.home()), pattern


def _newest(
    transcript: TranscriptRules, *, since: float, cwd: Path, environ: Mapping[str, str]
) -> list[Path]:
    root, pattern = _root(transcript.path, cwd, environ)
    times: list[tuple[float, Path]] = []
    for path in root.glob(pattern):
        try:
            status = path.stat()
        except OSError:
            continue
        changed = status.st_mtime
        if not stat.S_ISREG(status.st_mode):
            continue  # a pipe would never end
        if changed >= since - SLACK:
            times.append((changed, path))
    return [path for _, path in sorted(times, reverse=True)[:FILES]]


def _lines(path: Path) -> Iterator[Mapping[str, object]]:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > TAIL:
            file.seek(size - TAIL)
            file.readline()
        for line in file:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def _answer(
    transcript: TranscriptRules, lines: Iterator[Mapping[str, object]], want: str
) -> list[str] | None:
    found: list[str] | None = None
    over = False
    for line in lines:
        if said := _text(transcript.user, line):
            over = want not in skeleton(said)
            found = found if over else []
        elif found is not None and not over and (said := _text(transcript.agent, line)):
            found.append(said)
    return found


def _text(wanted: TranscriptLines, line: Mapping[str, object]) -> str:
    if not _fits(wanted.where, line):
        return ""
    return _joined(_at(line, wanted.text)).strip()


def _at(value: object, path: str) -> object:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _joined(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text for text in map(_block, value) if text)
    return ""


def _block(value: object) -> str:
    if isinstance(value, dict) and value.get("type", "") in _TEXTS:
        value = value.get("text")
    return value if isinstance(value, str) else ""


# seconds before each read of the log: some agents write it shortly after they are ready
PAUSES = (0.0, 0.1, 0.2, 0.4)


class AnswerReader:
    def __init__(
        self,
        transcript: TranscriptRules | None,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._transcript = transcript
        self._cwd = cwd
        self._environ = environ
        self._clock = clock
        self._reading: set[asyncio.Task[None]] = set()

    def read(
        self, text: str, screen: Artifact, *, whole: str = "", age: float, done: Callable[[Artifact], None]
    ) -> None:
        """Find the answer to a text and pass it to `done`; immediately if there is no log to read."""
        if self._transcript is None:
            done(screen)
            return
        since = self._clock() - age
        task = asyncio.get_running_loop().create_task(
            self._read(self._transcript, text, screen, whole, since, done), name="read-answer"
        )
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def settle(self) -> None:
        await asyncio.gather(*self._reading, return_exceptions=True)

    async def _read(
        self,
        transcript: TranscriptRules,
        text: str,
        screen: Artifact,
        whole: str,
        since: float,
        done: Callable[[Artifact], None],
    ) -> None:
        artifact = screen
        try:
            shown = {screen.text, whole or screen.text}
            for look, pause in enumerate(PAUSES, 1):
                await asyncio.sleep(pause)
                if look == len(PAUSES):  # what is still missing is a note that is never logged
                    shown |= set(map(without_note, shown))
                found = await asyncio.to_thread(
                    read_answer, transcript, text, since=since, cwd=self._cwd, environ=self._environ
                )
                if found and any(agrees(found, seen) for seen in shown):
                    artifact = Artifact(found)
                    break
            else:
                log.info("the answer is the screen's: it is not in the agent's file")
        except Exception:
            log.exception("the agent's file could not be read")
        finally:
            done(artifact)


# bytes of a log that are counted at most; one that is longer when first seen is not counted
COUNTED = 64 * 1024 * 1024
_PROMPTS = 20  # last prompts of a log that are remembered, to know whose it is


class UsageReader:
    """Counts the tokens that an agent has used, as its own conversation log or database states them.

    Agents of the same type may share a folder of logs. A log is the agent's if it has the text that was
    submitted last. Of a log that has been read, only what was added is read.
    """

    def __init__(
        self,
        transcript: TranscriptRules | None,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
        database: str = "",
    ) -> None:
        self._transcript = transcript if transcript is not None and transcript.usage is not None else None
        self._database = database
        self._cwd = cwd
        self._environ = environ
        self._since = clock()
        self._logs: dict[Path, _CountedLog] = {}
        self._own: Path | None = None
        self._reading: asyncio.Task[None] | None = None
        self.tokens: int | None = None  # without those read again from a cache; None if unknown

    def look(self, submitted: str) -> None:
        """Count in a thread; `submitted` is the text of the turn that has ended."""
        stated = self._database or self._transcript is not None
        if stated and (self._reading is None or self._reading.done()):
            work = self._look(skeleton(submitted))
            self._reading = asyncio.get_running_loop().create_task(work, name="count-tokens")

    async def settle(self) -> None:
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _look(self, want: str) -> None:
        try:
            for pause in PAUSES:
                await asyncio.sleep(pause)
                tokens = await asyncio.to_thread(self._count, want)
                if tokens is not None and tokens != self.tokens:
                    self.tokens = tokens
                    break
        except Exception:
            log.exception("the agent's tokens could not be counted")

    def _count(self, want: str) -> int | None:
        transcript = self._transcript
        if transcript is None:
            root, name = _root(self._database, self._cwd, self._environ)
            return _database_tokens(root / name, self._cwd, self._since)
        for path in _newest(transcript, since=self._since, cwd=self._cwd, environ=self._environ):
            counted = self._logs.setdefault(path, _CountedLog(transcript))
            try:
                counted.read(path)
            except OSError as error:
                log.debug("transcript not read: %s", error)
                continue
            if want and any(want in prompt for prompt in counted.prompts):
                self._own = path
                break
        return self._logs[self._own].tokens if self._own in self._logs else None


def _database_tokens(path: Path, folder: Path, since: float) -> int | None:
    """Return the tokens of the conversation in a folder that changed since a time, if it is the only one."""
    import sqlite3  # noqa: PLC0415 - few need it

    query = (
        "select id, tokens_input + tokens_output + tokens_reasoning + tokens_cache_write from session"
        " where directory = ? and parent_id is null and time_updated >= ?"
    )
    children = (
        "select sum(tokens_input + tokens_output + tokens_reasoning + tokens_cache_write) from session"
        " where parent_id = ?"
    )
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)) as found:
            rows = found.execute(query, (str(folder), since * 1000)).fetchall()
            if len(rows) != 1:
                return None
            (more,) = found.execute(children, (rows[0][0],)).fetchone()
            return int(rows[0][1]) + int(more or 0)
    except sqlite3.Error as error:
        log.debug("database not read: %s", error)
        return None


class _CountedLog:
    def __init__(self, transcript: TranscriptRules) -> None:
        assert transcript.usage is not None
        self._usage = transcript.usage
        self._user = transcript.user
        self._read = 0
        self._too_long = False
        self._counts: dict[object, int] = {}
        self.prompts: deque[str] = deque(maxlen=_PROMPTS)

    @property
    def tokens(self) -> int | None:
        return sum(self._counts.values()) if self._counts and not self._too_long else None

    def read(self, path: Path) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < self._read:  # written anew
                self._read = 0
                self._counts.clear()
            self._too_long = self._too_long or size - self._read > COUNTED
            if self._too_long:
                return
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        if said := _text(self._user, value):
            self.prompts.append(skeleton(said))
        if _fits(self._usage.where, value):
            tokens = _sum(value, self._usage.tokens) - _sum(value, self._usage.cached)
            key = _at(value, self._usage.id) if self._usage.id else self._read
            self._counts["" if self._usage.running else str(key)] = max(0, tokens)


def _sum(value: object, paths: Sequence[str]) -> int:
    numbers = (_at(value, path) for path in paths)
    return sum(int(number) for number in numbers if isinstance(number, int | float))


def _fits(where: Mapping[str, str], line: Mapping[str, object]) -> bool:
    return all(_written(_at(line, key)) == value for key, value in where.items())
