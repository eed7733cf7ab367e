"""Tries an unknown agent in a scratch folder, records its screens, and proposes a profile for it."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import shlex
import termios
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from synapse_tui.agents.answers import after_echo
from synapse_tui.agents.composer import Proof
from synapse_tui.agents.delivery.typist import TICKS
from synapse_tui.agents.profiles.profile import key_bytes, key_names
from synapse_tui.agents.profiles.reader import filled
from synapse_tui.agents.profiles.writer import Plain, block
from synapse_tui.cli.trials.checks import DENIALS, DENY_KEYS, INTERRUPTS
from synapse_tui.cli.trials.examination import ENTERS, Examination, Prompts
from synapse_tui.cli.trials.inference import (
    Answered,
    ComposerFound,
    Evidence,
    Finding,
    Shot,
    TypedText,
    WatchedTurn,
    approval,
    consents_to_folder,
    find_composer,
    find_dialog,
    find_states,
    looks_like_dialog,
    profile_with,
    with_hints,
)
from synapse_tui.cli.trials.runner import ExaminationOrder, Scratch, opened
from synapse_tui.cli.trials.versions import installed_version
from synapse_tui.core.errors import SynapseError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import UserPaths
from synapse_tui.terminal import ProgramStatus, ProgressChanged
from synapse_tui.terminal.input import encode_paste

ONE = "zulu bruggle fordo"
SEVERAL = "zulu first of four\nbruggle second\n\nfordo fourth of four"
LONG = "zulu " + " ".join(f"longish{number:02}" for number in range(1, 25))
TWELVE = "\n".join(f"zulu line{number:02} of twelve lines that mean nothing" for number in range(1, 13))
MANY = "\n".join(f"zulu line{number:02} of sixtytwo lines that mean nothing" for number in range(1, 63))
CLEARS = ((b"\x15",), (b"\x05", b"\x15", b"\x7f"), (b"\x1b[F", b"\x15", b"\x7f"), (b"\x7f",))
"""Keys that empty a composer in some agent: Ctrl+U first, then row by row."""
SCREENS = "screens.json"
"""The recorded screens, with `--keep`."""
_QUIET = 1.2  # Seconds without a change after which a screen is complete
_IDLE = 0.4  # Seconds that the agent must then use no processor
_STARTS = 120.0
_LINES = 90.0  # The same while its terminal is not switched to single keys: some never do that
_TAKES = 3.0  # Seconds for what was typed to appear
_LEAVES = 3.0  # Seconds for a submitted message to leave the composer
_SPEED = 2000  # Characters a second for which both may take longer
_AWAY = 0.6  # Seconds that it must be gone
_ANSWERS = 5  # Maximum questions at the start
_WATCH = 6.0  # Seconds of a turn that are recorded before it is interrupted
_PERIOD = 0.15
_BRIEF, _BRIEF_PERIOD = 1.0, 0.02  # At first more often: a short turn may last no longer
_STOPS = 6.0  # Seconds for a turn to stop
_ENDED = 2.5  # Seconds without a change after which a turn has ended, with an empty composer
_RESTED = 15.0  # The same with anything else on the screen, or an agent that is never idle
_PAUSE, _CHUNK_PAUSE = 0.4, 0.02  # The defaults of `submit.pause` and `submit.chunk_pause`
_ROWS = 40  # Maximum rows that are cleared before the agent is restarted instead
_RESTS_AGAIN = 5.0  # Maximum seconds of rest that are watched after each further turn
_WATCHED = 100  # Maximum screens of rest
_REASON = 2.5  # Seconds without a change and composer after which an agent asks why it may not
_DIALOG = 5  # Rows with text at the end of a dialog that must rest
_NEEDED = ("start", "submit", "multiline", "working", "blocked")
_ASKED = 3  # Maximum messages tried to make the agent ask for a permission


@dataclass(frozen=True, slots=True)
class Way:
    """How a message is typed and submitted."""

    pause: float = _PAUSE  # Seconds between the text and `enter`
    chunk: int = 0  # Characters that are typed at once; 0 for a paste
    enter: bytes = ENTERS[0]

    def values(self) -> dict[str, Any]:
        """Return the keys of `submit` that are not the default."""
        values: dict[str, Any] = {"method": Plain("typed"), "chunk": self.chunk} if self.chunk else {}
        values |= {"pause": round(self.pause * 1000)} if self.pause != _PAUSE else {}
        return values | ({"enter": Plain(key_names((self.enter,))[1:-1])} if self.enter != ENTERS[0] else {})


WAYS = (
    Way(),
    Way(pause=1.0),
    Way(pause=1.0, chunk=100),
    *(Way(enter=enter) for enter in ENTERS[1:]),
)
"""Tried one after another until a message was answered, the quickest first."""


class ProbeFailed(SynapseError):
    """The agent could not be tried; `rows` is the end of its screen."""

    def __init__(self, message: str, hint: str, rows: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.rows = tuple(rows)


class Person(Protocol):
    """Whoever runs the command."""

    def note(self, text: str) -> None: ...

    async def ask(self, question: str, rows: Sequence[str]) -> str:
        """Show some rows of the agent's screen and ask; the answer is empty if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent to make a profile for."""

    name: str
    words: tuple[str, ...]  # The command up to the program, such as `python3 ./agent.py`
    args: tuple[str, ...] = ()

    def values(self) -> dict[str, Any]:
        """Return the values of the profile that say how to start it."""
        command, *rest = self.words
        values: dict[str, Any] = {"name": self.name, "command": Plain(command)}
        if rest or self.args:
            values["args"] = [*rest, *self.args]
        if rest:
            values["doctor"] = {"version_args": [*rest, "--version"]}
        return values


@dataclass
class Proposal:
    subject: Subject
    version: str = ""
    findings: list[Finding] = field(default_factory=list)
    prompts: Mapping[str, Any] = field(default_factory=dict)

    def hold(self, failed: Iterable[str]) -> None:
        """Hold messages until the person allows them, if a check failed that proves where they go."""
        if unproved := [check for check in failed if check in _NEEDED]:
            why = f"`synapse doctor` failed in {', '.join(unproved)}: messages are held until you allow them"
            self.findings.append(Finding("receives", Plain("ask"), why))

    def values(self) -> dict[str, Any]:
        """Return the values of the profile, in the order of its keys."""
        values = self.subject.values()
        for finding in self.findings:
            if finding.value is not None:
                _put(values, finding.key, finding.value)
        if self.prompts:
            _put(values, "doctor.prompts", dict(self.prompts))
        return values

    def text(self, *, proved: bool = False) -> str:
        """Return the profile as YAML, with what was seen as comments."""
        of = f" {self.version}" if self.version else ""
        lines = [
            f"# {self.subject.name}{of}, proposed by `synapse profile new` on {date.today():%Y-%m-%d}.",  # noqa: DTZ011
            "# The comments say what was seen.",
        ]
        values = self.values()
        if proved and self.version:
            _put(values, "doctor.version", Plain(self.version))
        for key, value in values.items():
            comments = [_comment(finding) for finding in self.findings if finding.key.split(".")[0] == key]
            lines += ["", *comments] if comments else []
            lines += block(key, value)
        unseen = [_comment(finding) for finding in self.findings if finding.key.split(".")[0] not in values]
        lines += ["", *unseen] if unseen else []
        return "\n".join(lines) + "\n"


def _put(values: dict[str, Any], key: str, value: object) -> None:
    *tables, name = key.split(".")
    for table in tables:
        values = values.setdefault(table, {})
    if key in ("dialogs", "states", "doctor.trust"):
        values.setdefault(name, []).append(value)
    else:
        values[name] = value


def _comment(finding: Finding) -> str:
    name = finding.value.get("name", "") if isinstance(finding.value, Mapping) else ""
    what = f"{finding.key} {name}".strip() if finding.value is not None else f"{finding.key}: default"
    return f"# {what}: {' '.join(finding.why.split())}"


async def propose(
    subject: Subject, order: ExaminationOrder, person: Person, *, paths: UserPaths, environ: Mapping[str, str]
) -> Proposal:
    """Run the agent in a scratch folder and propose a profile.

    Raises:
        ProbeFailed: It did not start, or takes no text.
        SpawnError: Its command cannot be run.
    """
    profile = profile_with(subject.values())
    scratch = await asyncio.to_thread(Scratch.make, paths, subject.name)
    try:
        version = await asyncio.to_thread(installed_version, profile, environ, scratch.folder)
        prompts = Prompts(profile.doctor, order.texts, order.expects)
        async with opened(profile, scratch, prompts, order, environ) as examination:
            probe = Probe(examination, person, rest=order.rest)
            try:
                await probe.run()
            finally:
                if order.keep:
                    kept = json.dumps(probe.evidence.to_json())
                    await asyncio.to_thread((scratch.base / SCREENS).write_text, kept, "utf-8")
    finally:
        await asyncio.to_thread(scratch.close, keep=order.keep)
    own = {name: {"text": text} for name, text in (dict(order.texts) | probe.texts).items()}
    for name, expect in order.expects.items():
        own.setdefault(name, {})["expect"] = expect
    return Proposal(subject, version, probe.findings, own)


class Probe:
    """Types into one agent and records what it shows."""

    def __init__(self, examination: Examination, person: Person, *, rest: float) -> None:
        self._examination = examination
        self._person = person
        self._watches = rest
        self.evidence = Evidence()
        self.composer: ComposerFound | None = None
        self.texts: dict[str, str] = {}  # Messages that the person gave, by the names of `doctor.prompts`
        self._trust: list[Finding] = []
        self._answers: dict[tuple[str, ...], tuple[bytes, ...]] = {}  # Keys by the questions at the start
        self._found: dict[str, Finding] = {}
        self._clear: tuple[bytes, ...] = CLEARS[0]
        self._way = WAYS[0]
        self._begun = 0.0  # When the last message was sent
        self._shots: list[Shot] = []  # The screens since then
        self._dialog_rows: tuple[str, ...] = ()
        self._dialog_since = 0.0

    @property
    def findings(self) -> list[Finding]:
        found = list(self._found.values())
        if self.composer is not None:
            found += [
                _composer_finding(self.composer),
                Finding("startup.composer", True, "so it is waited for"),
            ]
        found += [*self._trust, *find_dialog(self.evidence, self.composer)]
        enters = "deny" in self._found and str(self._found["deny"].value).endswith("enter]")
        if self.evidence.asking and (yes := approval(self.evidence, enters=enters)):
            why = "the choice that allows; pressed by `synapse doctor` only for `synapse reply`"
            found.append(Finding("doctor.approve", yes, why))
        return [*found, *find_states(self.evidence, self.composer)]

    async def run(self) -> None:
        await self._start()
        early = not self._reads_keys()
        await self._drafts((ONE, SEVERAL, LONG, TWELVE, MANY))
        if early and self._reads_keys():  # what was shown was the terminal's echo
            self.evidence = Evidence(started=self.evidence.started)
            await self._drafts((ONE, SEVERAL, LONG, TWELVE, MANY))
        self.composer = find_composer(self.evidence)
        if self.composer is None:
            self._no_composer()
            return
        self._note(f"its composer was found{'' if self.composer.unread else ', and read on all screens'}")
        if not await self._first_turns():
            self._hold("no way was found to submit a message")
            return
        await self._rest(self._watches)
        await self._slow_turn()
        await self._rest(min(self._watches, _RESTS_AGAIN))
        await self._dialog()
        await self._rest(min(self._watches, _RESTS_AGAIN))
        await self._long_turn()
        self._conclude()

    # -- start ---

    async def _start(self) -> None:
        examination = self._examination
        begun = examination.now
        await self._first_screen()
        seconds = examination.now - begun - _QUIET
        await self._questions()
        delay = min(15, max(1, math.ceil(seconds)))
        why = f"its first screen was complete after {seconds:.1f} s"
        self._add("startup.delay", delay, why, self._take().end())
        if examination.session.terminal.modes.alternate_screen:
            self._add("quirks.alternate_screen", True, "it draws on the alternate screen")
        self._note(f"it started in {seconds:.1f} s")

    async def _renew(self) -> None:
        """Restart the agent, without what was left over."""
        await self._examination.host.restart(self._examination.session.agent_id)
        await self._first_screen()
        await self._questions()

    async def _first_screen(self) -> None:
        """Wait until the agent shows something, reads keys, and rests."""
        examination = self._examination
        deadline = examination.now + _STARTS

        def complete() -> bool:
            quiet = examination.recorder.take().quiet if examination.screen().strip() else 0.0
            return quiet >= (_QUIET if self._reads_keys() else _LINES)

        while await examination.until(complete, deadline - examination.now):
            # One that still loads its code shows nothing new either.
            if await self._idle() or examination.now >= deadline:
                break
        self._check_alive()
        if not examination.screen().strip():
            raise ProbeFailed(f"it showed nothing for {_STARTS:g} s", self._by_hand())

    async def _questions(self) -> None:
        """Answer what it asks at its start: yes to trust in the scratch folder, else as the person says."""
        for _ in range(_ANSWERS):
            shot = self._take()
            if not looks_like_dialog(shot):
                return
            if shot.zone not in self._answers:
                self._answers[shot.zone] = await self._answer(shot)
            await self._press(*self._answers[shot.zone])
            await self._examination.until(partial(self._changed, shot), 10.0)
            await self._first_screen()
        raise ProbeFailed("it asks one question after another at its start", self._by_hand())

    async def _answer(self, shot: Shot) -> tuple[bytes, ...]:
        if pattern := consents_to_folder(shot.zone):
            why = "it asks whether to trust the folder; answered with yes only in the scratch folder"
            self._trust.append(Finding("doctor.trust", {"screen": pattern}, why, shot.end()))
            self.evidence.started.append(shot)
            return (b"\r",)
        answer = await self._person.ask(
            "It asks something. Which keys answer it here, in the scratch folder? "
            "(such as: enter, or down enter; nothing ends this)",
            shot.end(20),
        )
        if not (keys := keys_of(answer)):
            raise ProbeFailed("it asks something at its start", self._by_hand(), shot.end(20))
        self.evidence.started.append(shot)
        return keys

    def _reads_keys(self) -> bool:
        """Whether the agent has switched its terminal to reading keys one by one."""
        try:
            return not termios.tcgetattr(self._examination.session.console.process.fd)[3] & termios.ICANON
        except (OSError, ValueError, termios.error):
            return True

    def _by_hand(self) -> str:
        session = self._examination.session
        command = shlex.join((session.profile.command, *session.profile.args))
        return f"run it once yourself, log in and answer its questions: {command}"

    # -- drafts ---

    async def _drafts(self, texts: Sequence[str]) -> None:
        if self.evidence.empty:
            await self._record_empty()
        else:
            self.evidence.empty.append(await self._rested())
        for text in dict.fromkeys(map(self._typed, texts)):
            # The screen is as it was before, wherever the composer is.
            if await self._draft(text) and not looks_like_dialog(shot := await self._rested()):
                self.evidence.empty.append(shot)

    async def _record_empty(self) -> None:
        """Record the screen at rest, unless something is in the composer, or asked."""
        shot = await self._rested()
        if self._is_empty(*self.evidence.empty) and not looks_like_dialog(shot):
            self.evidence.empty.append(shot)

    async def _draft(self, text: str) -> bool:
        """Type a text, record it, and take it out again; returns whether it was shown and is gone."""
        empty = await self._rested(0.3)
        first = not self.evidence.typed
        deadline = self._examination.now + (_STARTS if first else 3 * _TAKES)
        while self._examination.now < deadline:
            if first and looks_like_dialog(empty):
                await self._questions()  # what seemed complete was a screen of its loading
                empty = await self._rested(0.3)
            await self._write(text, Way(chunk=len(text) if first else 0))
            await self._examination.until(partial(self._changed, empty), _TAKES)
            shot = await self._rested(0.6)
            shown = _squeezed(shot.rows).count(_squeezed([text])) if first else 1
            if shot.zone == empty.zone or not shown:
                empty = shot  # what is typed before an agent is ready is lost, or shown later
            elif shown > 1:
                empty = await self._cleared(text) or shot
            else:
                if first:
                    self.evidence.empty = [empty]
                self.evidence.typed.append(TypedText(text, shot))
                return await self._cleared(text, empty) is not None
        return False

    def _typed(self, text: str) -> str:
        """Return a text as it is typed: without bracketed paste a line break would be Enter."""
        return text if self._pastes() else " ".join(text.split("\n"))

    def _pastes(self) -> bool:
        return self._examination.session.terminal.modes.bracketed_paste

    async def _write(self, text: str, way: Way) -> None:
        console = self._examination.session.console
        if not way.chunk:
            console.write(encode_paste(text, console.terminal.modes))
            return
        for start in range(0, len(text), way.chunk):
            console.write(text[start : start + way.chunk].encode())
            await asyncio.sleep(_CHUNK_PAUSE)

    async def _cleared(self, text: str, empty: Shot | None = None) -> Shot | None:
        """Find the keys that empty the composer; returns the screen without the text, None if none do."""
        first = CLEARS.index(self._clear)
        for keys in CLEARS[first:]:
            for _ in range(text.count("\n") + len(text) // 40 + 4 if len(keys) > 1 else 3):
                await self._press(*keys)
                await self._examination.quiet(0.25, 1.5)
                if self._is_empty(*([empty] if empty else ())):
                    self._clear = keys
                    why = "pressed until the composer was empty"
                    self._add("clear", Plain(key_names(keys)), why)
                    return self._take()
        self._add("clear", None, "no keys were found that empty the composer")
        await self._renew()
        return None

    def _is_empty(self, *empty: Shot) -> bool:
        """Whether no typed text is on the screen, and the cursor where it was on an empty one."""
        shot = self._take()
        at = not empty or shot.cursor[0] in {each.cursor[0] for each in empty}
        return at and not any("zulu" in row for row in shot.rows)

    def _no_composer(self) -> None:
        why = "the text that was typed was not found on the screen"
        rows = self._take().end()
        if self.evidence.typed:
            typed = self.evidence.typed[0]
            why = "no rules were found that read the typed text, and only it, on all screens"
            rows = typed.shot.end()
        self._hold(why, rows)
        self._add("composer", Plain("auto"), "and then only while one is recognized by its cursor")

    def _hold(self, why: str, rows: tuple[str, ...] = ()) -> None:
        self._add("receives", Plain("ask"), f"{why}: messages are held until you allow them", rows)

    # -- turns ---

    async def _first_turns(self) -> bool:
        """Find a way to submit a message of one line and of several."""
        if not await self._asked("submit"):
            return False
        # A conversation may have its composer elsewhere than the first screen.
        await self._drafts((ONE, SEVERAL, TWELVE))
        if (found := find_composer(self.evidence)) is not None:
            self.composer = found
        return await self._asked("multiline")

    async def _rest(self, seconds: float) -> None:
        """Watch the idle agent: what it shows from time to time is no sign of work."""
        examination = self._examination
        if not await self._ended(_RESTED):
            return  # it could not be stopped: what it shows may be signs of work
        deadline = examination.now + seconds
        while await examination.until(self._shows_more, deadline - examination.now):
            self.evidence.watched.append(self._take())

    def _shows_more(self) -> bool:
        """Whether the idle agent shows what it did not before."""
        shot, known = self._take(), self.evidence.watched
        if len(known) >= _WATCHED or any(
            (shot.zone, shot.title) == (each.zone, each.title) for each in known
        ):
            return False
        return not looks_like_dialog(shot)

    async def _long_turn(self) -> None:
        """Find a way to submit a message of 20 kB; an agent that cannot take it may be left unusable."""
        way = self._way
        answered = False
        with suppress(ProbeFailed):
            answered = await self._asked("long")
        if not answered:
            self._way = way
            why = "no way was found to type a message of 20 kB: such ones will be held"
            self._add("submit", None, why, self._take().end())

    async def _asked(self, name: str) -> bool:
        """Send a message in one way after another until it is answered."""
        for way in WAYS[WAYS.index(self._way) :]:
            question = self._examination.prompts.make(name)
            text = self._typed(question.text)
            if not await self._submits(text, way):
                await self._take_back()
                continue
            self._way = way
            await self._watch(text, self._examination.timeout)
            seconds = self._examination.now - self._begun
            await self._record_empty()
            answered = question.proof(self._examination.screen(), text)
            if answered:
                self.evidence.answers.append(Answered(text, answered, self._take()))
            if answered or self._echoes(text):
                said = "and answered " if answered else ""
                self._note(f"a message of {len(text)} characters was submitted {said}in {seconds:.1f} s")
                return True
        return False

    async def _submit(self, text: str) -> bool:
        """Send a message in the way that was found."""
        text = self._typed(text)
        if await self._submits(text, self._way):
            return True
        await self._renew()
        return await self._submits(text, self._way)

    async def _submits(self, text: str, way: Way) -> bool:
        """Type a text, press Enter, and see the text leave the composer for good."""
        self._check_alive()
        examination = self._examination
        await self._write(text, way)
        more = len(text) / _SPEED
        if not await examination.until(lambda: self._stands(text), _TAKES + more):
            return False
        await asyncio.sleep(way.pause)
        before = self._take()
        self._begun, self._shots = examination.now, []
        examination.session.console.write(way.enter)
        if not await examination.until(lambda: self._gone(text, before), _LEAVES + more):
            return False
        return not await examination.until(lambda: not self._gone(text, before), _AWAY)

    def _echoes(self, text: str) -> bool:
        """Whether a message stands in the conversation, above the composer."""
        assert self.composer is not None
        shot = self._take()
        box = shot.read(self.composer.profile).box
        # Where the composer has moved, the cursor would be in its text.
        end = box.outer if box is not None else shot.cursor[1] if shot.terminal.modes.cursor_visible else 0
        return after_echo(shot.rows[:end], text) is not None

    def _stands(self, text: str) -> bool:
        assert self.composer is not None
        reading = self._take().read(self.composer.profile)
        return Proof(text, reading.pastes).reads(reading)

    def _gone(self, text: str, before: Shot) -> bool:
        """Whether the text that stood in the composer has left it."""
        assert self.composer is not None
        shot = self._take()
        reading = shot.read(self.composer.profile)
        # Some show other words in their composer while they work.
        left = Proof(text, reading.pastes)
        stays = left.reads(reading) or left.begun(reading.draft, "") or left.contains(reading.draft)
        gone = not stays if reading.visible else shot.zone != before.zone
        if gone:
            self._record(shot)
        return gone

    def _record(self, shot: Shot) -> None:
        """Record a screen of a turn's first seconds."""
        last = self._shots[-1].at if self._shots else self._begun
        if last + self._period(shot.at) <= shot.at < self._begun + _WATCH:
            self._shots.append(shot)

    def _period(self, at: float) -> float:
        return _BRIEF_PERIOD if at < self._begun + _BRIEF else _PERIOD

    async def _slow_turn(self) -> None:
        """Watch a turn and interrupt it; asks for another message if the turn was too short."""
        text = self._examination.prompts.make("slow").text
        for _ in range(_ASKED):
            if not await self._submit(text):
                self._add(
                    "interrupt",
                    None,
                    "the message to be interrupted could not be submitted",
                    self._take().end(),
                )
                return
            if await self._watch(text, _WATCH):
                await self._interrupt(text)
                await self._record_empty()
                return
            await self._record_empty()
            text = await self._person.ask(
                "Its turn ended before it could be interrupted. Write a message that keeps it busy for "
                "a minute (nothing skips this):",
                self._take().end(),
            )
            if not text:
                break
            self.texts["slow"] = text
        self._add("interrupt", None, "the turn ended before it could be interrupted", self._take().end())

    async def _watch(self, text: str, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Record the screens of a turn until it is over, and return whether it still goes on."""
        examination = self._examination
        while not until() and examination.now - self._begun < seconds and not await self._at_end():
            await asyncio.sleep(self._period(examination.now))
            self._record(self._take())
        over = self._over()
        end = examination.now - (examination.recorder.take().quiet if over else 0.0)
        shots = tuple(shot for shot in self._shots if shot.at < end and self._works(shot))
        if shots and shots[-1].at >= self._begun + _BRIEF:  # its beginning counts no more than the rest
            slots = {int((shot.at - self._begun) / _PERIOD): shot for shot in reversed(shots)}
            shots = tuple(reversed(slots.values()))
        self.evidence.turns.append(WatchedTurn(text, self._begun, shots))
        return bool(shots) and not over

    def _works(self, shot: Shot) -> bool:
        """Whether a screen belongs to the turn: not one after it had ended."""
        return shot.zone != self.evidence.empty[-1].zone and not looks_like_dialog(shot)

    async def _interrupt(self, text: str) -> None:
        examination = self._examination
        for keys in INTERRUPTS:
            before = self._take()
            await self._press(*keys, gap=0.25)
            stopped = await examination.until(self._still, _STOPS)
            if not examination.alive:
                self._add("quirks.exits_on_ctrl_c", True, f"{key_names(keys)} ended it during a turn")
                await self._renew()
                break
            if stopped:
                why = "the screen was still afterwards, and the agent still ran"
                self._add("interrupt.keys", Plain(key_names(keys)), why, before.end(4))
                self._note(f"{key_names(keys)} interrupts a turn")
                if self._stands(self._typed(text)):
                    why = "the interrupted message was in the composer again"
                    self._add("interrupt.restores_draft", True, why, self._take().end())
                await self._take_back()
                return
        tried = ", ".join(key_names(keys) for keys in INTERRUPTS)
        self._add("interrupt", None, f"no key was found that stops a turn; tried {tried}", self._take().end())
        if examination.alive:
            await self._ended(examination.timeout)

    def _still(self) -> bool:
        shot = self._take()
        return self._examination.recorder.take().quiet >= 1.5 and shot.status != "working"

    async def _take_back(self) -> None:
        """Empty the composer if a message is in it; restart the agent if that is not possible."""
        assert self.composer is not None
        for _ in range(_ROWS):
            shot = self._take()
            if not shot.read(self.composer.profile).draft:
                return
            await self._press(*self._clear)
            await self._examination.quiet(0.25, 1.0)
            if self._take().zone == shot.zone:
                break
        await self._renew()

    # -- the dialog ---

    async def _dialog(self) -> None:
        examination = self._examination
        marker = examination.outside / f"ran-{secrets.token_hex(4)}"
        command = f"touch {shlex.quote(str(marker))}"
        text = examination.prompts.make("run", command=command).text
        for _ in range(_ASKED):
            if not await self._submit(text):
                self._add("dialogs", None, "the message that asks could not be submitted", self._take().end())
                return
            await self._watch(text, examination.timeout, self._dialog_shown)
            if await self._asks(text):
                await self._deny(marker)
                return
            ran = await asyncio.to_thread(marker.exists)
            what = "it ran the command without asking" if ran else "it did not ask"
            given = await self._person.ask(
                f"{what}. Write a message that makes it ask for a permission; {{command}} stands for "
                "a harmless command outside of its folder (nothing skips this):",
                self._take().end(),
            )
            if not given:
                why = f"{what}, so no dialog was seen; lists of choices are recognized without a rule"
                self._add("dialogs", None, why, self._take().end())
                return
            text = filled(given, {"command": command})
            if text != given:
                self.texts["run"] = given

    async def _asks(self, text: str) -> bool:
        """Whether the agent asks for a permission; records it."""
        examination = self._examination
        if not self._dialog_shown() and not (examination.alive and self._without_composer()):
            return False
        for _ in range(3):
            self.evidence.ask(text, self._take())
            await asyncio.sleep(0.3)
        return True

    def _dialog_shown(self) -> bool:
        """Whether what looks like a dialog has rested; a spinner above it may go on."""
        shot = self._take()
        rows = shot.zone[:_DIALOG] if looks_like_dialog(shot) else ()
        if rows != self._dialog_rows:
            self._dialog_rows, self._dialog_since = rows, self._examination.now
        return bool(rows) and self._examination.now - self._dialog_since >= _QUIET

    def _without_composer(self) -> bool:
        assert self.composer is not None
        return not self._take().read(self.composer.profile).visible

    async def _deny(self, marker: Path) -> None:
        asked = self.evidence.asking[-1]
        self._note("it asks for a permission")
        for tried in (*DENY_KEYS[:2], (b"n", b"\r"), *DENY_KEYS[2:]):
            if tried == (b"n", b"\r") and not self._typed_n():
                continue  # Enter might choose "yes" where "n" means nothing
            if not (keys := await self._closes(tried, asked)):
                continue
            if await asyncio.to_thread(marker.exists):
                self._add("deny", None, f"{key_names(keys)} allowed the command", asked.end())
                continue
            why = "it closed the dialog, and the command did not run"
            self._add("deny", Plain(key_names(keys)), why, asked.end())
            self._note(f"{key_names(keys)} denies")
            break
        else:
            self._add("deny", None, "no key was found that denies", asked.end())
            await self._renew()
            return
        await self._ended(self._examination.timeout)
        await self._record_empty()

    def _typed_n(self) -> bool:
        x, y = (shot := self._take()).cursor
        return y < len(shot.rows) and x > 0 and shot.rows[y][x - 1] == "n"

    async def _closes(self, keys: tuple[bytes, ...], asked: Shot) -> tuple[bytes, ...]:
        """Press keys until no dialog is open; returns the keys that closed one, nothing if it stays."""
        examination = self._examination
        for _ in range(DENIALS):
            before = self._take()
            await self._press(*(keys[-1:] if keys == (b"n", b"\r") else keys))
            if not await examination.until(partial(self._changed, before, 3), 3.0):
                return ()
            await examination.quiet(_QUIET, 5.0)
            if not examination.alive:
                await self._renew()
                return keys
            if looks_like_dialog(self._take()) or self._take().zone[:3] == asked.zone[:3]:
                continue
            if keys[-1:] != (b"\r",) and await self._wants_reason():
                await self._press(b"\r")
                closed = await examination.until(lambda: not self._without_composer(), _LEAVES)
                return (*keys, b"\r") if closed else ()
            return keys if not self._typed_n() or keys[-1:] == (b"\r",) else ()
        return ()

    async def _wants_reason(self) -> bool:
        """Whether a dialog made way for a field, which Enter leaves empty, and not for the composer."""
        await self._examination.until(lambda: not self._without_composer(), _REASON)
        return self._without_composer() and self._examination.recorder.take().quiet >= _REASON

    # -- conclusions ---

    def _conclude(self) -> None:
        found = find_composer(self.evidence)
        if found is not None:
            self.composer = found
        assert self.composer is not None
        why = "a message typed so left the composer and was answered, and no quicker one did"
        for key, value in self._way.values().items():
            self._add(f"submit.{key}", value, why)
        self.composer = with_hints(self.composer, self.evidence)
        unread = [typed for typed in self.composer.unread if "\n" in typed.text]
        if not self._pastes():
            why = "it has not asked for bracketed paste: line breaks become spaces"
            self._add("submit.multiline", False, why)
        elif any(typed.text.count("\n") < 11 for typed in unread):
            why = "several lines could not be read in the composer: line breaks become spaces"
            self._add("submit.multiline", False, why, unread[0].shot.end())
        elif unread:
            self._add("composer.pastes", None, "long messages could not be read, and will be held")

    # -- tools ---

    def _take(self) -> Shot:
        session = self._examination.session
        reported, progress = session.console.signals.get("status"), session.console.signals.get("progress")
        known = isinstance(reported, ProgramStatus) and reported.state != "clear"
        return Shot.of(
            session.terminal,
            at=self._examination.now,
            status=reported.state if known and isinstance(reported, ProgramStatus) else "",
            progress=progress.state if isinstance(progress, ProgressChanged) else None,
        )

    async def _rested(self, seconds: float = 0.8) -> Shot:
        await self._examination.quiet(seconds, 5.0)
        self._check_alive()
        return self._take()

    def _over(self, least: float = _ENDED) -> bool:
        """Whether the agent's turn has ended: the screen rests, with an empty composer."""
        quiet = self._examination.recorder.take().quiet
        if quiet < least or not self._examination.alive:
            return not self._examination.alive
        shot = self._take()
        if shot.status == "working" or looks_like_dialog(shot):
            return False
        assert self.composer is not None
        return quiet >= _RESTED or shot.read(self.composer.profile).empty

    async def _ended(self, seconds: float) -> bool:
        return await self._examination.until(self._over, seconds)

    async def _at_end(self) -> bool:
        """Whether the turn has ended, and the agent is not just too busy to draw."""
        return self._over() and (await self._idle() or self._over(_RESTED))

    async def _idle(self) -> bool:
        return await self._examination.session.console.settled(_IDLE, 2 * _IDLE, TICKS)

    async def _press(self, *keys: bytes, gap: float = 0.05) -> None:
        for key in keys:
            self._examination.session.console.write(key)
            await asyncio.sleep(gap)

    def _changed(self, shot: Shot, rows: int | None = None) -> bool:
        """Whether the screen's last rows are others."""
        return self._take().zone[:rows] != shot.zone[:rows]

    def _check_alive(self) -> None:
        session = self._examination.session
        if session.exit is not None:
            raise ProbeFailed(f"it exited: {session.exit.words}", self._by_hand(), self._take().end(20))

    def _add(self, key: str, value: object, why: str, rows: tuple[str, ...] = ()) -> None:
        self._found[key] = Finding(key, value, why, rows)

    def _note(self, text: str) -> None:
        self._person.note(f"{self._examination.session.profile.name}: {text}")


def _squeezed(rows: Sequence[str]) -> str:
    return "".join("".join(rows).split())


def keys_of(text: str) -> tuple[bytes, ...]:
    """Return the keys that a person named, separated by blanks.

    Raises:
        ProbeFailed: There is no such key.
    """
    try:
        return tuple(map(key_bytes, text.replace(",", " ").split()))
    except ValueError as error:
        raise ProbeFailed(str(error), "name keys as profiles do: enter, down, ctrl+c, y") from error


def _composer_finding(found: ComposerFound) -> Finding:
    read = len(found.read)
    why = f"reads what was typed on {read} of {read + len(found.unread)} screens"
    return Finding("composer", found.rules, why, found.rows)
