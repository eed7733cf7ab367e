"""Profiles: what the files say, what is reported of broken ones, who overrides whom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.finding import ProfileSet, load_profiles
from synapse_tui.core.errors import ProfileError, UnknownProfile
from synapse_tui.core.model import AgentState
from synapse_tui.system.paths import shipped_profiles
from synapse_tui.system.trust import TrustStore
from tests.odd_files import KINDS, put_odd

EVERY_AGENT = (
    "dialog",
    "program status blocked",
    "program status working",
    "program status error",
    "progress",
    "output mark",
    "program status idle",
    "prompt mark",
)
SHIPPED = (
    *("aider", "claude", "cline", "codex", "copilot", "dummy", "gemini", "opencode", "pi", "qwen", "shell"),
)


def load(folder: Path, text: str, name: str = "probe.yaml") -> ProfileSet:
    (folder / name).write_text(text, encoding="utf-8")
    return load_profiles(folder, environ={})


def fault(folder: Path, text: str) -> ProfileError:
    """The only problem of a profile that must not load."""
    found = load(folder, text)
    assert not found.profiles
    assert len(found.problems) == 1, [str(problem) for problem in found.problems]
    return found.problems[0]


def test_every_shipped_profile_loads() -> None:
    found = load_profiles(shipped_profiles(), environ={})
    assert [str(problem) for problem in found.problems] == []
    assert tuple(found.profiles) == SHIPPED


def test_shipped_interrupts_are_the_ones_that_were_seen_to_work() -> None:
    profiles = load_profiles(shipped_profiles()).profiles
    once, twice = (b"\x1b",), (b"\x1b", b"\x1b")
    seen = {name: profile.interrupt.keys for name, profile in profiles.items()}
    assert seen == {
        "claude": once,
        "codex": once,
        "gemini": once,
        "dummy": once,
        "opencode": twice,
        "copilot": twice,
        "qwen": once,
        "pi": once,
        "cline": once,
        "aider": (b"\x03",),
        "shell": (b"\x03",),
    }
    assert profiles["opencode"].interrupt.gap == 0.25
    others = {name: profile.deny for name, profile in profiles.items() if profile.deny != once}
    assert others == {"shell": (), "cline": (b"n",), "aider": (b"\x15", b"n", b"\r")}


def test_facts_that_keep_messages_safe() -> None:
    profiles = load_profiles(shipped_profiles()).profiles
    assert "--no-daemon" in profiles["codex"].args
    assert profiles["gemini"].startup.delay == 8
    assert profiles["claude"].startup.delay == 3
    assert not profiles["shell"].receives
    assert {name for name, profile in profiles.items() if profile.sandbox} == {"codex"}
    assert all(profile.submit.pause >= 0.05 for profile in profiles.values())
    assert all(profile.composer is not None for name, profile in profiles.items() if name != "shell")


def test_no_shipped_agent_is_ready_by_silence_alone() -> None:
    for name, profile in load_profiles(shipped_profiles()).profiles.items():
        silent = [index for index, rule in enumerate(profile.states) if rule.silence is not None]
        if name != "shell":
            assert silent in ([], [len(profile.states) - 1]), f"{name}: silence comes last"
            assert all(profile.states[index].composer for index in silent), name
            assert all(profile.states[index].dialog is False for index in silent), name


def test_a_minimal_profile_has_defaults(tmp_path: Path) -> None:
    profile = load(tmp_path, "command: probe\n").profiles["probe"]
    assert (profile.name, profile.type, profile.display) == ("probe", "probe", "Probe")
    assert profile.ports == (8200, 8289)
    assert profile.submit.enter == b"\r"
    assert profile.submit.pause == 0.4
    assert profile.startup.delay == 3
    assert [rule.name for rule in profile.states] == [
        *EVERY_AGENT[:6],
        "output rests",
        "output flows",
        *EVERY_AGENT[6:],
    ]


def test_rules_of_every_agent_come_first_and_idle_behind_what_tells_that_it_works(tmp_path: Path) -> None:
    text = (
        "command: x\nstates:\n"
        "- {name: spinner, state: processing, title: '^⠂'}\n"
        "- {name: footer, state: processing, screen: esc}\n"
        "- {name: rests, state: ready, silence: 1}\n"
    )
    names = [rule.name for rule in load(tmp_path, text).profiles["probe"].states]
    assert names == [*EVERY_AGENT[:6], "spinner", "footer", *EVERY_AGENT[6:], "rests"]


def test_rules_of_its_own_for_a_dialog_or_a_status_stand_where_the_profile_puts_them(tmp_path: Path) -> None:
    text = (
        "command: x\nstates:\n"
        "- {name: title, state: processing, title: '^x'}\n"
        "- {name: asks, state: waiting, dialog: true}\n"
        "- {name: stopped, state: error, status: [blocked, done]}\n"
        "- {name: bar, state: ready, progress: [set]}\n"
        "- {name: marked, state: ready, prompt: [input]}\n"
    )
    rules = load(tmp_path, text).profiles["probe"].states
    assert [rule.name for rule in rules] == [
        "program status working",
        "program status error",
        "output mark",
        "title",
        "asks",
        "stopped",
        "program status idle",
        "bar",
        "marked",
    ]
    assert rules[6].status == {"idle"}


def test_keys_of_the_earlier_design(tmp_path: Path) -> None:
    text = (
        'command: old\nargs: ["-x"]\nenv:\n  A: 1\nidle_regex: "^> $"\nsubmit_sequence: "\\n"\n'
        "startup_delay: 5\noutput_idle_threshold: 2.5\n"
    )
    profile = load(tmp_path, text).profiles["probe"]
    assert profile.args == ("-x",)
    assert dict(profile.env) == {"A": "1"}
    assert profile.submit.enter == b"\n"
    assert profile.startup.delay == 5
    (ready,) = (rule for rule in profile.states if rule.name == "output rests")
    assert (ready.state, ready.silence, ready.screen[0].pattern) == (AgentState.READY, 2.5, "^> $")


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('"\\r"', b"\r"),
        ("'\\r'", b"\r"),
        ("\\n", b"\n"),
        ("'\\r\\n'", b"\r\n"),
        ("'\\x0a'", b"\n"),
        ("enter", b"\r"),
    ],
)
def test_a_submit_sequence_is_read_however_it_is_quoted(tmp_path: Path, written: str, sent: bytes) -> None:
    found = load(tmp_path, f"command: x\nsubmit_sequence: {written}\n")
    assert not found.problems
    assert found.profiles["probe"].submit.enter == sent


def test_a_command_may_bring_its_arguments(tmp_path: Path) -> None:
    found = load(tmp_path, "command: python3 -u 'my agent.py'\nargs: [--fast]\n").profiles["probe"]
    assert (found.command, found.args) == ("python3", ("-u", "my agent.py", "--fast"))
    program = tmp_path / "my agent"
    program.touch()
    assert load(tmp_path, f"command: {program}\n").profiles["probe"].command == str(program)
    (problem,) = load(tmp_path, "command: python3 'open\n").problems
    assert "quotation" in str(problem)


OLD = """
command: "tool"
submit_sequence: "\\r"
startup_delay: 8
write_delay: 0.5
bracketed_paste: false
submit_confirm_timeout: 1.5
submit_confirm_poll_interval: 0.05
submit_confirm_retries: 3
long_submit_confirm_timeout: 3.0
long_submit_confirm_retries: 5
env:
  TERM: "xterm-256color"
interrupt:
  default_mode: pty
  pty_repeat: 2
  graceful_supported: false
idle_detection:
  strategy: "STRATEGY"
  pattern: "tool> $"
  pattern_use: "USE"
  timeout: 0.7
  task_protection_timeout: 15
input_ready_pattern: ">"
waiting_detection:
  regex: "[yY]/[nN]"
  require_idle: true
  idle_timeout: 0.5
auto_approve:
  cli_flag: "--yes-to-all"
  runtime_response: "y\\r"
"""
"""The keys of a profile of synapse-a2a 0.35."""


@pytest.mark.parametrize(
    ("strategy", "use", "patterns"),
    [
        ("pattern", "always", ["tool> $"]),
        ("hybrid", "startup_only", []),
        ("timeout", "never", []),
        ("hybrid", "always", []),
    ],
)
def test_a_whole_profile_of_synapse_a2a_is_translated(
    tmp_path: Path, strategy: str, use: str, patterns: list[str]
) -> None:
    found = load(tmp_path, OLD.replace("STRATEGY", strategy).replace("USE", use))
    assert not found.problems
    profile = found.profiles["probe"]
    assert (profile.submit.enter, profile.submit.pause, profile.submit.method) == (b"\r", 0.5, "typed")
    assert (profile.startup.delay, profile.args) == (8, ()), "no flag that answers dialogs is added"
    dialog, ready, busy = [
        rule for rule in profile.states if not (rule.status or rule.progress or rule.prompt)
    ]
    assert (ready.silence, busy.active, dialog.state) == (0.7, 0.7, AgentState.WAITING)
    assert [pattern.pattern for pattern in ready.screen] == patterns
    assert profile.interrupt.keys == (b"\x1b",)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('command: "/bin/tr\\0ue"\n', 1, "'command' contains a NUL character"),
        ('command: x\nargs: ["-a", "b\\0c"]\n', 2, "'args' contains a NUL character"),
        ('command: x\nenv: {A: "b\\0c"}\n', 2, "'env.A' contains a NUL character"),
        ('command: x\nenv: {"A\\0B": "c"}\n', 2, "'env' has a name that no variable can have: 'A\\x00B'"),
        ('command: x\nenv: {"A=B": c}\n', 2, "'env' has a name that no variable can have: 'A=B'"),
        ('command: x\nenv: {"": c}\n', 2, "'env' has a name that no variable can have: ''"),
        ('command: x\nresume: ["\\0"]\n', 2, "'resume' contains a NUL character"),
        ("command: x\ncolour: red\n", 2, "unknown key 'colour': did you mean 'color'?"),
        ("command: x\nsubmit:\n  methd: paste\n", 3, "unknown key 'submit.methd': did you mean 'method'?"),
        ("command: x\nsubmit: {method: post}\n", 2, "'submit.method' must be"),
        ("name: probe\n", 1, "'command' must name the program to start"),
        ("command: x\nports: 80-90\n", 2, "'80-90' is not a range of ports"),
        ("command: x\nports: 9000-8000\n", 2, "not a range of ports"),
        ("command: x\nstartup: {delay: soon}\n", 2, "'startup.delay' must be a number from 0 to 600"),
        ("command: x\nstartup: 3\n", 2, "'startup' must be a mapping"),
        ("command: x\nstates:\n  - {state: redy, title: a}\n", 3, "'redy' is not a state"),
        ("command: x\nstates:\n  - {state: ready}\n", 3, "has no condition"),
        ("command: x\nstates:\n  - {state: ready, screen: '('}\n", 3, "not a regular expression"),
        ("command: x\nstates:\n  - {state: ready, status: busy}\n", 3, "'busy' is not one of idle, working"),
        ("command: x\ndialogs:\n  - {name: d}\n", 3, "must hold at least one pattern"),
        ("command: x\ninterrupt: {keys: [escpe]}\n", 2, "did you mean 'escape'?"),
        ("command: x\ninterrupt: {signal: SIGNONE}\n", 2, "no signal named 'SIGNONE'"),
        ("command: x\ncommand: y\n", 2, "'command' is given twice"),
        ("command: x\nquirks: {term_program: iTerm.app}\n", 2, "a program and its version"),
        ("command: x\nname: claude-8100\n", 2, "is not a name for a profile"),
        ("command: x\nname: all\n", 2, "is not a name for a profile"),
        ("command: x\nreceives: maybe\n", 2, "must be true or false"),
        ("command: [a, b]\nargs: {a: b}\n", 1, "'command' must be a text"),
        ("command: 'x\n", 2, "invalid YAML"),
        ("command: x\n\tbad: 1\n", 2, "invalid YAML"),
        ("- a\n- b\n", 1, "must hold one mapping"),
        (f"command: x\nargs: {'[' * 2000}{']' * 2000}\n", 2, "levels of nesting, where"),
        (f"command: x\nargs:\n  {'- ' * 2000}a\n", 3, "levels of nesting, where"),
        (f"command: x\nargs: {'[' * 60}{']' * 60}\n", 2, "levels of nesting, where"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    found = load(tmp_path, text)
    assert not found.profiles
    told = [(problem.line, problem.reason) for problem in found.problems]
    assert any(where == line and words in reason for where, reason in told), told


def test_an_empty_file_and_one_that_is_not_utf8(tmp_path: Path) -> None:
    assert "one mapping" in fault(tmp_path, "").reason
    (tmp_path / "probe.yaml").write_bytes(b"command: x\ndisplay: \xff\n")
    (problem,) = load_profiles(tmp_path).problems
    assert (problem.line, problem.reason) == (2, "the file is not UTF-8")


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_too_long_or_cannot_be_read(tmp_path: Path, kind: str) -> None:
    put_odd(tmp_path / "odd.yaml", kind)
    found = load(tmp_path, "command: x\n")
    assert list(found.profiles) == ["probe"]
    (problem,) = found.problems
    assert "longer than" in problem.reason if kind == "long" else "cannot be read" in problem.reason


def test_a_broken_profile_leaves_the_others_alone(tmp_path: Path) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / "broken.yaml").write_text("command: [\n")
    (user / "claude.yaml").write_text("comand: claude\n")
    found = load_profiles(shipped_profiles(), user, environ={})
    assert set(found.profiles) == set(SHIPPED)
    assert found.profiles["claude"].origin == "shipped"
    assert {problem.path.name for problem in found.problems} == {"broken.yaml", "claude.yaml"}
    assert all(problem.hint for problem in found.problems)


def test_the_user_overrides_by_name_and_adds(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: claude\ncommand: my-claude\n")
    (tmp_path / "extra.yml").write_text("command: extra\n")
    (tmp_path / ".hidden.yaml").write_text("command: hidden\n")
    found = load_profiles(shipped_profiles(), tmp_path, environ={})
    assert (found.profiles["claude"].command, found.profiles["claude"].origin) == ("my-claude", "user")
    assert set(found.profiles) == {*SHIPPED, "extra"}


def test_a_project_profile_needs_trust(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "claude.yaml").write_text("command: evil\n")
    trust = TrustStore(tmp_path / "home" / "trusted.json")

    untrusting = load_profiles(shipped_profiles(), None, project, trust=trust)
    assert untrusting.profiles["claude"].command == "claude"
    assert [file.content for file in untrusting.untrusted] == ["command: evil\n"]
    assert load_profiles(shipped_profiles(), None, project).profiles["claude"].command == "claude"

    trust.trust(untrusting.untrusted)
    trusting = load_profiles(shipped_profiles(), None, project, trust=trust)
    assert (trusting.profiles["claude"].command, trusting.profiles["claude"].origin) == ("evil", "project")
    assert trusting.untrusted == []

    (project / "claude.yaml").write_text("command: worse\n")
    changed = load_profiles(shipped_profiles(), None, project, trust=trust)
    assert changed.profiles["claude"].command == "claude"
    assert changed.untrusted[0].changed


def test_profiles_are_found_by_alias_and_whatever_their_case() -> None:
    found = load_profiles(shipped_profiles())
    assert found.find("ClaudeCode").name == "claude"
    assert found.find("GEMINI").name == "gemini"
    with pytest.raises(UnknownProfile, match="did you mean 'gemini'"):
        found.find("gemni")


@pytest.mark.parametrize(
    "text",
    [
        "zzzzzz: 1\n",
        *(f"{name}: {{zzzzzz: 1}}\n" for name in ("startup", "submit", "interrupt", "hazards", "quirks")),
        "transcript: {path: x, user: {text: x}, agent: {text: x}, zzzzzz: 1}\n",
        "doctor: {zzzzzz: 1}\n",
        "doctor: {trust: {zzzzzz: 1}}\n",
        "doctor: {approve: {zzzzzz: 1}}\n",
        "doctor: {prompts: {zzzzzz: 1}}\n",
        "doctor: {prompts: {submit: {zzzzzz: 1}}}\n",
        "composer: {prompt: x, zzzzzz: 1}\n",
        "composer: {prompt: x, placeholder: {zzzzzz: 1}}\n",
        "dialogs: [{screen: x, zzzzzz: 1}]\n",
        "states: [{state: ready, title: x, zzzzzz: 1}]\n",
    ],
)
def test_every_key_is_documented(tmp_path: Path, text: str) -> None:
    documentation = (Path(__file__).parents[2] / "docs" / "profiles.md").read_text(encoding="utf-8")
    reason = fault(tmp_path, "command: x\n" + text).reason
    known = reason.split("known keys: ")[1].split(", ")
    missing = [key for key in known if not re.search(rf"(?<![\w-]){key}(?![\w-])", documentation)]
    assert missing == []
