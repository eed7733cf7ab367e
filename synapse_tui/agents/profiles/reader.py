"""One profile file to one `Profile`: names of keys, their defaults and bounds, keys of the earlier design."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from synapse_tui.errors import ProfileError
from synapse_tui.hooks import Dialect
from synapse_tui.model import AgentState

from .doctor_reader import read_doctor
from .key_names import key_bytes
from .profile import (
    DEFAULT_PORTS,
    READY_DEBOUNCE,
    ComposerRules,
    DialogKind,
    DialogRule,
    Hazards,
    Interrupt,
    Origin,
    PasteMethod,
    PlaceholderStyle,
    Profile,
    Quirks,
    Startup,
    StateRule,
    Submit,
    Transcript,
    TranscriptLines,
    WorkingInput,
)
from .yaml_nodes import Faults, Section, read_mapping

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
_RESERVED = frozenset({"all", "user", "system", "external", "synapse"})
_NOTHING = re.compile(r"(?!)")
_STATE_WORDS = tuple(state.value.lower() for state in (
    AgentState.READY, AgentState.PROCESSING, AgentState.WAITING, AgentState.ERROR, AgentState.STARTING
))  # fmt: skip
_STATUS_WORDS = ("idle", "working", "blocked", "done", "error")
_STATUS_STATES = {
    "blocked": AgentState.WAITING,
    "working": AgentState.PROCESSING,
    "error": AgentState.ERROR,
}
_PROGRESS_WORDS = ("none", "set", "error", "indeterminate", "paused")
_WITHOUT_MEANING = (
    "waiting_detection",
    "input_ready_pattern",
    "auto_approve",
    "submit_confirm_timeout",
    "submit_confirm_poll_interval",
    "submit_confirm_retries",
    "long_submit_confirm_timeout",
    "long_submit_confirm_retries",
)
"""Keys of the original synapse-a2a that change nothing here: it guesses at dialogs, and answers them."""
_CONDITIONS = ("title", "status", "progress", "screen", "dialog", "composer", "silence", "active")


def read_profile(
    path: Path, data: bytes, origin: Origin, environ: Mapping[str, str]
) -> tuple[Profile | None, list[ProfileError]]:
    """Read one profile.

    Args:
        path: Its file; the stem is the profile's name unless it gives another.
        data: The file's bytes.
        origin: Whose file it is.
        environ: Where `{shell}` in the command is looked up (SHELL); `{python}` is this interpreter.

    Returns:
        The profile and no problems, or None and all the problems that were found.
    """
    faults = Faults(path)
    top = read_mapping(path, data, faults)
    if top is None:
        return None, faults.found
    profile = _profile(top, path, origin, environ)
    top.finish()
    return (None, faults.found) if faults.found else (profile, [])


def _profile(top: Section, path: Path, origin: Origin, environ: Mapping[str, str]) -> Profile:
    name = _name(top, path)
    command, args = _command(top, environ)
    top.skip(*_WITHOUT_MEANING)
    return Profile(
        name=name,
        display=top.text("display", name.capitalize()),
        command=command,
        aliases=tuple(alias.lower() for alias in top.strings("aliases")),
        color=top.text("color"),
        description=top.text("description"),
        args=(*args, *top.strings("args")),
        env=MappingProxyType(top.mapping("env")),
        ports=_ports(top),
        install=top.text("install"),
        receives=top.flag("receives", default=True),
        instructions=top.flag("instructions", default=True),
        working_input=top.choice("working_input", get_args(WorkingInput), "hold"),
        hooks=_hooks(top),
        sandbox=top.flag("sandbox", default=False),
        startup=_startup(top),
        submit=_submit(top),
        interrupt=_interrupt(top.section("interrupt")),
        deny=top.convert("deny", key_bytes) if top.has("deny") else (b"\x1b",),
        clear=top.convert("clear", key_bytes) if top.has("clear") else (b"\x15",),
        hazards=_hazards(top.section("hazards")),
        composer=_composer(top.section("composer")) if top.has("composer") else None,
        dialogs=tuple(_dialog(section) for section in top.sections("dialogs")),
        states=_states(top),
        resume=top.strings("resume"),
        transcript=_transcript(top.section("transcript")) if top.has("transcript") else None,
        quirks=_quirks(top.section("quirks")),
        doctor=read_doctor(top.section("doctor")),
        source=path,
        origin=origin,
    )


def _hooks(top: Section) -> Dialect | None:
    name = top.choice("hooks", ("none", *Dialect), "none")
    return None if name == "none" else Dialect(name)


def _command(top: Section, environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The program, and the arguments that stand behind it in the same text."""
    text = top.text("command").strip()
    try:
        words = [text] if os.path.exists(text) else shlex.split(text)  # noqa: PTH110 - never raises
    except ValueError as error:
        top.fault("command", f"is no command line: {str(error).lower()}")
        words = [text]
    if not text:
        top.fault("command", "must name the program to start")
        words = [text]
    places = {"{python}": sys.executable, "{shell}": environ.get("SHELL") or "/bin/sh"}
    command, *args = [_filled(word, places) for word in words]
    return command, tuple(args)


def _filled(word: str, places: Mapping[str, str]) -> str:
    for place, value in places.items():
        word = word.replace(place, value)
    return word


def _name(top: Section, path: Path) -> str:
    name = top.text("name", path.stem)
    if not _NAME.fullmatch(name) or name in _RESERVED or re.search(r"-\d{4,5}$", name):
        top.fault(
            "name",
            f"'{name}' is no name for a profile: use letters, digits and '-', and none of {_reserved()}",
        )
    return name


def _reserved() -> str:
    return ", ".join(sorted(_RESERVED))


def _ports(top: Section) -> tuple[int, int]:
    text = top.text("ports")
    if not text:
        return DEFAULT_PORTS
    match = re.fullmatch(r"(\d{1,5})\s*-\s*(\d{1,5})", text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1024 <= first <= last <= 65535:
        top.fault("ports", f"'{text}' is no range of ports such as 8300-8309 (1024 to 65535)")
        return DEFAULT_PORTS
    return first, last


def _startup(top: Section) -> Startup:
    section, base = top.section("startup"), Startup()
    delay = top.number("startup_delay", base.delay)
    found = Startup(
        delay=section.number("delay", delay),
        timeout=section.number("timeout", base.timeout),
        composer=section.flag("composer", base.composer),
    )
    section.finish()
    return found


def _submit(top: Section) -> Submit:
    section, base = top.section("submit"), Submit()
    key = "enter" if section.has("enter") else "submit_sequence"
    place = section if section.has("enter") else top
    enter = b"".join(place.convert(key, _sequence))
    pause = top.number("write_delay", base.pause, 0, 10) * 1000
    method: PasteMethod = "paste" if top.flag("bracketed_paste", default=True) else "typed"
    found = Submit(
        method=section.choice("method", get_args(PasteMethod), method),
        pause=section.number("pause", pause, 0, 10_000) / 1000,
        enter=enter or base.enter,
        multiline=section.flag("multiline", base.multiline),
        chunk=section.count("chunk", base.chunk),
        chunk_pause=section.number("chunk_pause", 20, 0, 10_000) / 1000,
        verify=section.number("verify", base.verify),
        retries=section.count("retries", base.retries, 0, 5),
        settle=section.number("settle", 0, 0, 5_000) / 1000,
        begin=section.number("begin", 0, 0, 5_000) / 1000,
    )
    section.finish()
    top.text("submit_sequence")
    return found


def _sequence(text: str) -> bytes:
    """A key's name, or the characters themselves when they are control characters.

    These may be written as escapes, which YAML itself reads within double quotes only.
    """
    if text.startswith("\\"):
        try:
            text = text.encode("ascii").decode("unicode_escape")
        except ValueError:
            raise ValueError(f"'{text}' is no escape such as \\r or \\n") from None
    if text and ord(text[0]) < 0x20:
        return text.encode()
    return key_bytes(text)


def _interrupt(section: Section) -> Interrupt:
    base = Interrupt()
    section.skip("default_mode", "pty_repeat", "graceful_supported")
    number = section.convert("signal", _signal)
    keys = section.convert("keys", key_bytes) if section.has("keys") else () if number else base.keys
    stopped = section.convert("stopped", _state)
    found = Interrupt(
        keys=keys,
        gap=section.number("gap", base.gap, 0, 5),
        signal=number[0] if number else 0,
        stopped=frozenset(stopped) or base.stopped,
        screen=section.pattern("screen"),
        quiet=section.number("quiet", base.quiet, 0, 10),
        timeout=section.number("timeout", base.timeout, 0.1, 60),
        again=section.flag("again", base.again),
        restores_draft=section.flag("restores_draft", base.restores_draft),
    )
    section.finish()
    return found


def _signal(text: str) -> int:
    word = text.upper() if text.upper().startswith("SIG") else f"SIG{text.upper()}"
    try:
        return int(signal.Signals[word])
    except KeyError:
        raise ValueError(f"there is no signal '{text}'") from None


def _state(text: str) -> AgentState:
    if text.lower() not in _STATE_WORDS:
        raise ValueError(f"'{text}' is no state: use {', '.join(_STATE_WORDS)}")
    return AgentState(text.upper())


def _hazards(section: Section) -> Hazards:
    found = Hazards(
        leading=section.strings("leading", Hazards().leading),
        trailing_mention=section.flag("trailing_mention", default=True),
    )
    section.finish()
    return found


def _composer(section: Section) -> ComposerRules:
    prompt = section.pattern("prompt")
    if prompt is None:
        section.fault("prompt", "is needed to find the composer")
    above, below = section.count("margin_above", 0, 0, 10), section.count("margin_below", 0, 0, 10)
    found = ComposerRules(
        prompt=prompt or _NOTHING,
        row=section.pattern("row") or re.compile(r"^\s*"),
        above=section.pattern("above"),
        below=section.pattern("below"),
        footer=section.count("footer", 12, 0, 500),
        background=section.flag("background", default=False),
        margin=(above, below),
        hints=section.patterns("hints"),
        right=section.pattern("right"),
        absent=section.patterns("absent"),
        cursor=section.flag("cursor", default=True),
        placeholder=_placeholder(section.section("placeholder")),
        pastes=section.patterns("pastes"),
    )
    section.finish()
    return found


def _placeholder(section: Section) -> PlaceholderStyle:
    found = PlaceholderStyle(
        dim=section.flag("dim", default=True),
        grey=section.flag("grey", default=False),
        text=section.pattern("text"),
    )
    section.finish()
    return found


def _dialog(section: Section) -> DialogRule:
    screen = section.patterns("screen")
    if not screen:
        section.fault("screen", "must hold at least one pattern")
    found = DialogRule(
        name=section.text("name", "dialog"),
        screen=screen,
        kind=section.choice("kind", get_args(DialogKind), "permission"),
        tail=section.count("tail", 40, 1, 500),
        title=section.patterns("title"),
    )
    section.finish()
    return found


def _states(top: Section) -> tuple[StateRule, ...]:
    rules = tuple(_rule(section) for section in top.sections("states"))
    legacy = _legacy_rules(top)
    return _with_defaults(rules or legacy, composer=top.has("composer"))


def _with_defaults(rules: tuple[StateRule, ...], *, composer: bool) -> tuple[StateRule, ...]:
    """The rules of a profile behind those that hold for every agent: dialogs and OSC 7501.

    A profile that has a rule for one of them keeps its own. That an agent is idle is believed only behind all
    rules that tell something else than READY, and behind those before the profile's first READY: some agents
    tell it before they draw the end of the answer, and some never tell that they work.
    """
    words = frozenset[str]().union(*(rule.status for rule in rules))
    first = [
        StateRule(f"program status {word}", state, status=frozenset({word}))
        for word, state in _STATUS_STATES.items()
        if word not in words
    ]
    if not any(rule.dialog for rule in rules):
        first.insert(0, StateRule("dialog", AgentState.WAITING, dialog=True))
    idle = StateRule(
        "program status idle",
        AgentState.READY,
        status=frozenset({"idle", "done"} - words),
        dialog=False,
        composer=True if composer else None,
    )
    ready = next((place for place, rule in enumerate(rules) if rule.state is AgentState.READY), len(rules))
    others = [place + 1 for place, rule in enumerate(rules) if rule.state is not AgentState.READY]
    place = max((ready, *others))
    return (*first, *rules[:place], *([idle] if idle.status else ()), *rules[place:])


def _rule(section: Section) -> StateRule:
    state = _one(section, "state", _state, AgentState.UNKNOWN)
    if not section.has("state"):
        section.fault("state", "must be given")
    if not any(section.has(key) for key in _CONDITIONS):
        section.fault("name", f"has no condition: give one of {', '.join(_CONDITIONS)}")
    found = StateRule(
        name=section.text("name", state.value.lower()),
        state=state,
        title=section.pattern("title"),
        status=frozenset(section.convert("status", _word(_STATUS_WORDS))),
        status_kinds=frozenset(section.strings("status_kind")),
        progress=frozenset(
            _PROGRESS_WORDS.index(word) for word in section.convert("progress", _word(_PROGRESS_WORDS))
        ),
        screen=section.patterns("screen"),
        absent=section.patterns("absent"),
        tail=section.count("tail", 40, 1, 500),
        dialog=section.maybe_flag("dialog"),
        composer=section.maybe_flag("composer"),
        silence=section.maybe_number("silence"),
        active=section.maybe_number("active"),
        debounce=section.number("debounce", READY_DEBOUNCE if state is AgentState.READY else 0.0, 0, 30),
        detail=section.pattern("detail"),
    )
    section.finish()
    return found


def _one(section: Section, key: str, reader: Callable[[str], AgentState], default: AgentState) -> AgentState:
    found = section.convert(key, reader)
    return found[0] if found else default


def _word(words: tuple[str, ...]) -> Callable[[str], str]:
    def reader(text: str) -> str:
        if text not in words:
            raise ValueError(f"'{text}' is none of {', '.join(words)}")
        return text

    return reader


def _legacy_rules(top: Section) -> tuple[StateRule, ...]:
    """Rules of a profile without `states`: ready when the output rests, as in the earlier design.

    `idle_regex`, or `idle_detection` with its strategy `pattern`, asks for a text on the screen besides; the
    earlier design's BRACKETED_PASTE_MODE is none.
    """
    rest = top.number("output_idle_threshold", 1.5, 0.1, 60)
    idle = top.pattern("idle_regex")
    detection = top.section("idle_detection")
    strategy = detection.choice("strategy", ("pattern", "timeout", "hybrid"), "pattern")
    always = detection.choice("pattern_use", ("always", "startup_only", "never"), "always") == "always"
    pattern = detection.pattern("pattern")
    if top.has("idle_detection"):  # by the other strategies a rest without the text does as well
        idle = pattern if strategy == "pattern" and always else None
    rest = detection.number("timeout", rest, 0.1, 60)
    detection.skip("task_protection_timeout")
    detection.finish()
    screen = (idle,) if idle is not None and idle.pattern != "BRACKETED_PASTE_MODE" else ()
    return (
        StateRule("output rests", AgentState.READY, screen=screen, silence=rest),
        StateRule("output flows", AgentState.PROCESSING, active=rest),
    )


def _transcript(section: Section) -> Transcript:
    found = Transcript(
        path=section.text("path"),
        user=_transcript_lines(section.section("user")),
        agent=_transcript_lines(section.section("agent")),
    )
    if not (found.path and found.user.text and found.agent.text):
        section.fault("path", "needs 'path', 'user.text' and 'agent.text'")
    section.finish()
    return found


def _transcript_lines(section: Section) -> TranscriptLines:
    found = TranscriptLines(where=section.mapping("where"), text=section.text("text"))
    section.finish()
    return found


def _quirks(section: Section) -> Quirks:
    term = section.strings("term_program", ("", ""))
    if len(term) != 2:
        section.fault("term_program", "must be a list of a program and its version")
        term = ("", "")
    found = Quirks(
        term_program=(term[0], term[1]),
        alternate_screen=section.flag("alternate_screen", default=False),
        idle_output=section.flag("idle_output", default=False),
        exits_on_ctrl_c=section.flag("exits_on_ctrl_c", default=False),
        daemon=section.flag("daemon", default=False),
        hides_cursor=section.flag("hides_cursor", default=False),
        half_blanks=section.flag("half_blanks", default=False),
    )
    section.finish()
    return found
