"""Tries an unknown agent in a scratch folder, records its screens, and proposes a profile for it."""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import shlex
import termios
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from synapse_tui.agents.profiles.profile import key_bytes, key_names
from synapse_tui.agents.profiles.reader import filled
from synapse_tui.agents.profiles.writer import Plain, block
from synapse_tui.dataclass import dataclass
from synapse_tui.errors import SynapseError
from synapse_tui.paths import UserPaths
from synapse_tui.terminal import ProgramStatus, ProgressChanged
from synapse_tui.terminal.input import encode_paste

from .checks import DENIALS, DENY_KEYS, INTERRUPTS
from .examination import ENTERS, Examination, Prompts
from .inference import (
    ComposerFound,
    Evidence,
    Finding,
    Shot,
    Typed,
    approval,
    chosen_yes,
    find_composer,
    find_dialog,
    find_states,
    looks_like_dialog,
    profile_with,
)
from .runner import Order, Scratch, opened
from .versions import installed_version

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
_STARTS = 60.0
_LINES = 10.0  # The same for one that has not switched its terminal to single keys, and may never do so
_ANSWERS = 5  # Maximum questions at the start
_WATCH = 6.0  # Seconds of a turn that are recorded before it is interrupted
_PERIOD = 0.15
_STOPS = 6.0  # Seconds for a turn to stop
_ENDED = 2.5  # Seconds without a change after which a turn has ended, with an empty composer
_RESTED = 6.0  # The same with anything else on the screen
_ASKED = 3  # Maximum messages tried to make the agent ask for a permission


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
    subject: Subject, order: Order, person: Person, *, paths: UserPaths, environ: Mapping[str, str]
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
            probe = Probe(examination, person)
            try:
                await probe.run()
            finally:
                if order.keep:
                    kept = json.dumps(probe.evidence.to_json(), ensure_ascii=False)
                    await asyncio.to_thread((scratch.base / SCREENS).write_text, kept, "utf-8")
    finally:
        await asyncio.to_thread(scratch.close, keep=order.keep)
    own = {name: {"text": text} for name, text in (dict(order.texts) | probe.texts).items()}
    for name, expect in order.expects.items():
        own.setdefault(name, {})["expect"] = expect
    return Proposal(subject, version, probe.findings, own)


class Probe:
    """Types into one agent and records what it shows."""

    def __init__(self, examination: Examination, person: Person) -> None:
        self._examination = examination
        self._person = person
        self.evidence = Evidence()
        self.composer: ComposerFound | None = None
        self.texts: dict[str, str] = {}  # Messages that the person gave, by the names of `doctor.prompts`
        self._trust: list[Finding] = []
        self._answers: dict[tuple[str, ...], tuple[bytes, ...]] = {}  # Keys by the questions at the start
        self._found: dict[str, Finding] = {}
        self._clear: tuple[bytes, ...] = CLEARS[0]
        self._enter = ENTERS[0]
        self._begun = 0.0  # When the last message was sent

    @property
    def findings(self) -> list[Finding]:
        found = list(self._found.values())
        if self.composer is not None:
            found.append(_composer_finding(self.composer))
        found += [*self._trust, *find_dialog(self.evidence, self.composer)]
        enters = "deny" in self._found and str(self._found["deny"].value).endswith("enter]")
        if self.evidence.asking and (yes := approval(self.evidence, enters=enters)):
            why = "the choice that allows; pressed by `synapse doctor` only for `synapse reply`"
            found.append(Finding("doctor.approve", yes, why))
        return [*found, *find_states(self.evidence, self.composer)]

    async def run(self) -> None:
        await self._start()
        await self._drafts((ONE, SEVERAL, LONG, TWELVE, MANY))
        self.composer = find_composer(self.evidence)
        if self.composer is None:
            self._no_composer()
            return
        self._note(f"its composer was found{'' if self.composer.unread else ', and read on all screens'}")
        await self._first_turn()
        await self._slow_turn()
        await self._dialog()
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
        self._add("startup", {"delay": delay, "composer": True}, why, self._take().end())
        modes = examination.session.terminal.modes
        if modes.alternate_screen:
            self._add("quirks.alternate_screen", True, "it draws on the alternate screen")
        if not modes.bracketed_paste:
            why = "it has not asked for bracketed paste: line breaks become spaces"
            self._add("submit.multiline", False, why)
        self._note(f"it started in {seconds:.1f} s")

    async def _renew(self) -> None:
        """Restart the agent, without what was left over."""
        await self._examination.host.restart(self._examination.session.agent_id)
        await self._first_screen()
        await self._questions()

    async def _first_screen(self) -> None:
        """Wait until the agent shows something, reads keys, and rests."""
        examination = self._examination

        def complete() -> bool:
            quiet = examination.recorder.take().quiet if examination.screen().strip() else 0.0
            return quiet >= (_QUIET if self._reads_keys() else _LINES)

        await examination.until(complete, _STARTS)
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
        trusts = any("trust" in row.lower() for row in shot.zone)
        if trusts and (pattern := chosen_yes(shot.zone)):
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
        for text in texts:
            paste = self._examination.session.terminal.modes.bracketed_paste
            if ("\n" in text and not paste) or not await self._draft(text):
                continue
            await self._record_empty()

    async def _record_empty(self) -> None:
        """Record the screen at rest, unless something is in the composer, or asked."""
        shot = await self._rested()
        if self._is_empty(self.evidence.empty[0]) and not looks_like_dialog(shot):
            self.evidence.empty.append(shot)

    async def _draft(self, text: str) -> bool:
        """Type a text, record it, and take it out again; returns whether it was shown and is gone."""
        empty = await self._rested(0.3)
        for _ in range(3):
            self._type(text)
            await self._examination.until(lambda: self._take().zone != empty.zone, 3.0)
            shot = await self._rested(0.6)
            if shot.zone != empty.zone:
                break
        else:
            return False
        self.evidence.typed.append(Typed(text, shot))
        return await self._clear_draft(text, empty)

    def _type(self, text: str) -> None:
        session = self._examination.session
        single = text == ONE
        session.console.write(text.encode() if single else encode_paste(text, session.terminal.modes))

    async def _clear_draft(self, text: str, empty: Shot) -> bool:
        first = CLEARS.index(self._clear)
        for keys in CLEARS[first:]:
            for _ in range(text.count("\n") + 4 if len(keys) > 1 else 3):
                await self._press(*keys)
                await self._examination.quiet(0.25, 1.5)
                if self._is_empty(empty):
                    self._clear = keys
                    why = "pressed until the composer was empty"
                    self._add("clear", Plain(key_names(keys)), why)
                    return True
        self._add("clear", None, "no keys were found that empty the composer")
        await self._renew()
        return False

    def _is_empty(self, empty: Shot) -> bool:
        shot = self._take()
        return shot.cursor[0] == empty.cursor[0] and not any("zulu" in row for row in shot.rows)

    def _no_composer(self) -> None:
        why = "the text that was typed was not found on the screen"
        rows = self._take().end()
        if self.evidence.typed:
            typed = self.evidence.typed[0]
            why = "no rules were found that read the typed text, and only it, on all screens"
            rows = typed.shot.end()
        self._add("receives", Plain("ask"), f"{why}: messages are held until you allow them", rows)
        self._add("composer", Plain("auto"), "and then only while one is recognized by its cursor")
        startup = self._found["startup"]
        if isinstance(startup.value, dict):
            self._add("startup", {"delay": startup.value["delay"]}, startup.why, startup.rows)

    # -- turns ---

    async def _first_turn(self) -> None:
        question = self._examination.prompts.make("submit")
        if not await self._submit(question.text):
            return
        begun = self._examination.now
        await self._ended(self._examination.timeout)
        answered = bool(question.proof(self._examination.screen(), question.text))
        seconds = self._examination.now - begun
        self._note(f"a message was submitted{' and answered' if answered else ''} in {seconds:.1f} s")
        await self._drafts((ONE, SEVERAL, TWELVE))
        if (found := find_composer(self.evidence)) is not None:
            self.composer = found

    async def _submit(self, text: str) -> bool:
        """Paste a text and press Enter; records the key that submitted it."""
        self._check_alive()
        session = self._examination.session
        session.console.write(encode_paste(text.replace("\n", " "), session.terminal.modes))
        await self._examination.quiet(0.4, 3.0)
        before = self._take()
        for times, key in enumerate((self._enter, self._enter, *ENTERS[1:])):
            session.console.write(key)
            if await self._examination.until(lambda: self._gone(before), 3.0):
                self._submitted(key, times)
                return True
        self._add("submit.enter", None, "no key was found that submits", before.end())
        await self._renew()
        return False

    def _submitted(self, key: bytes, times: int) -> None:
        self._enter = key
        if times == 1:
            self._add("submit.pause", 1000, "Enter only submitted when pressed again, later")
        elif key != ENTERS[0]:
            self._add("submit.enter", Plain(key_names((key,))[1:-1]), "it submits; Enter does not")

    def _gone(self, before: Shot) -> bool:
        """Whether the text that stood in the composer has left it."""
        assert self.composer is not None
        shot, profile = self._take(), self.composer.profile
        reading = shot.read(profile)
        if reading.visible:
            return reading.empty or reading.draft != before.read(profile).draft
        return shot.zone != before.zone and shot.cursor != before.cursor

    async def _slow_turn(self) -> None:
        """Watch a turn and interrupt it; asks for another message if the turn was too short."""
        examination = self._examination
        text = examination.prompts.make("slow").text
        for _ in range(_ASKED):
            if not await self._submit(text):
                return
            self._begun = examination.now
            shots = await self._watched()
            if shots and not self._over():
                self._worked(shots, text)
                await self._interrupt(text)
                await self._record_empty()
                return
            await self._record_empty()
            if shots and len(shots) > len(self.evidence.working):
                self._worked(shots, text)
            text = await self._person.ask(
                "Its turn ended before it could be interrupted. Write a message that keeps it busy for "
                "a minute (nothing skips this):",
                self._take().end(),
            )
            if not text:
                break
            self.texts["slow"] = text
        self._add("interrupt", None, "the turn ended before it could be interrupted", self._take().end())

    def _worked(self, shots: list[Shot], text: str) -> None:
        self.evidence.working, self.evidence.sent, self.evidence.begun = shots, text, self._begun

    async def _watched(self) -> list[Shot]:
        """Record the screens of a turn, without those after its end."""
        examination = self._examination
        begun = self._begun
        shots: list[Shot] = []
        while examination.now - begun < _WATCH and examination.alive and not self._over():
            await asyncio.sleep(_PERIOD)
            shots.append(self._take())
        end = examination.now - (examination.recorder.take().quiet if self._over() else 0.0)
        return [shot for shot in shots if begun + 0.6 < shot.at < end and self._works(shot)]

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
                await self._take_back(text)
                return
        tried = ", ".join(key_names(keys) for keys in INTERRUPTS)
        self._add("interrupt", None, f"no key was found that stops a turn; tried {tried}", self._take().end())
        if examination.alive:
            await self._ended(examination.timeout)

    def _still(self) -> bool:
        shot = self._take()
        return self._examination.recorder.take().quiet >= 1.5 and shot.status != "working"

    async def _take_back(self, text: str) -> None:
        """Empty the composer if the interrupted message was put back into it."""
        assert self.composer is not None
        shot = self._take()
        reading = shot.read(self.composer.profile)
        if not reading.draft:
            return
        if reading.shows(text):
            why = "the interrupted message was in the composer again"
            self._add("interrupt.restores_draft", True, why, shot.end())
        for _ in range(8):
            await self._press(*self._clear)
            await self._examination.quiet(0.25, 1.0)
            if self._take().read(self.composer.profile).empty:
                return

    # -- the dialog ---

    async def _dialog(self) -> None:
        examination = self._examination
        marker = examination.outside / f"ran-{secrets.token_hex(4)}"
        command = f"touch {shlex.quote(str(marker))}"
        text = examination.prompts.make("run", command=command).text
        for _ in range(_ASKED):
            if not await self._submit(text):
                return
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
        """Wait until the agent asks for a permission, or its turn is over."""
        examination = self._examination
        await examination.until(lambda: self._dialog_shown() or self._over(), examination.timeout)
        if not self._dialog_shown() and not (examination.alive and self._without_composer()):
            return False
        self.evidence.asked = text
        for _ in range(3):
            self.evidence.asking.append(self._take())
            await asyncio.sleep(0.3)
        return True

    def _dialog_shown(self) -> bool:
        return self._examination.recorder.take().quiet >= _QUIET and looks_like_dialog(self._take())

    def _without_composer(self) -> bool:
        assert self.composer is not None
        return not self._take().read(self.composer.profile).visible

    async def _deny(self, marker: Path) -> None:
        asked = self.evidence.asking[-1]
        self._note("it asks for a permission")
        for keys in (*DENY_KEYS[:2], (b"n", b"\r"), *DENY_KEYS[2:]):
            if keys == (b"n", b"\r") and not self._typed_n():
                continue  # Enter might choose "yes" where "n" means nothing
            if not await self._closes(keys, asked):
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

    async def _closes(self, keys: tuple[bytes, ...], asked: Shot) -> bool:
        examination = self._examination
        for _ in range(DENIALS):
            before = self._take()
            await self._press(*(keys[-1:] if keys == (b"n", b"\r") else keys))
            if not await examination.until(partial(self._changed, before, 3), 3.0):
                return False
            await examination.quiet(_QUIET, 5.0)
            if not examination.alive:
                await self._renew()
                return True
            if not looks_like_dialog(self._take()) and self._take().zone[:3] != asked.zone[:3]:
                return not self._typed_n() or keys[-1:] == (b"\r",)
        return False

    # -- conclusions ---

    def _conclude(self) -> None:
        found = find_composer(self.evidence)
        if found is not None:
            self.composer = found
        assert self.composer is not None
        unread = [typed for typed in self.composer.unread if "\n" in typed.text]
        if any(typed.text.count("\n") < 11 for typed in unread) and "submit.multiline" not in self._found:
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

    def _over(self) -> bool:
        """Whether the agent's turn has ended: the screen rests, with an empty composer."""
        quiet = self._examination.recorder.take().quiet
        if quiet < _ENDED or not self._examination.alive:
            return not self._examination.alive
        shot = self._take()
        if shot.status == "working" or looks_like_dialog(shot):
            return False
        assert self.composer is not None
        return quiet >= _RESTED or shot.read(self.composer.profile).empty

    async def _ended(self, seconds: float) -> bool:
        return await self._examination.until(self._over, seconds)

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
