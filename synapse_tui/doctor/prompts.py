"""The messages that the agent is tried with, and what an answer must hold to prove that one arrived."""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from synapse_tui.agents.profiles.profile import DOCTOR_PROMPTS, DoctorPrompt, DoctorRules
from synapse_tui.agents.profiles.reader import filled
from synapse_tui.errors import InvalidValue

LONG_BYTES = 20_000
"""Length of the long message."""
SLOW_SECONDS = 60
"""How long a turn should last that is to be interrupted."""
ANSWER_ROWS = 60
"""Rows by which a message is made longer than what agents show of one."""
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_JOINED = "{first}-{second}"
"""Stands in no message, so that what is found on the screen is no echo of the message."""

GENERAL: Mapping[str, DoctorPrompt] = {
    "submit": DoctorPrompt(
        "Use no tools. Reply with exactly one line: the two codes {first} and {second}, joined by a hyphen.",
        _JOINED,
    ),
    "multiline": DoctorPrompt(
        "Use no tools. This message has several lines. Reply with exactly one line: its two codes, joined by "
        "a hyphen.\nfirst code: {first}\n{filler}\nsecond code: {second}",
        _JOINED,
    ),
    "long": DoctorPrompt(
        "Use no tools. Most of this message only makes it long. Reply with exactly one line: its first and "
        "its last code, joined by a hyphen.\nfirst code: {first}\n{filler}\nlast code: {second}",
        _JOINED,
    ),
    "hazard": DoctorPrompt(
        "Use no tools. Ignore the sign or the mention at the beginning or the end of this message. Reply "
        "with exactly one line: the two codes {first} and {second}, joined by a hyphen.",
        _JOINED,
    ),
    "slow": DoctorPrompt(
        "Use no tools. Count from 1 to 400, one number a line, and write a sentence about each.", ""
    ),
    "run": DoctorPrompt(
        "Run exactly this command with your shell tool, once. Say whether it was allowed, then stop. "
        "{command}",
        "",
    ),
    "answer": DoctorPrompt(
        "Use no tools. Reply with exactly two lines: {first} in the first one, {second} in the second one.",
        r"{first}\s+{second}",
    ),
}

_SHORT_FILLER = """\

日本語の行です。全角ＡＢＣとｶﾅ、長音ー。
emoji 👍 👩‍💻 🇯🇵 ⚠️ and e\u0301
    an indented line; quotes " ' ` and $HOME \\ too
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A message that is ready to be sent.

    Attributes:
        text: The message.
        expect: Pattern of the answer, `{chars}` and `{lines}` not filled in yet; empty when any will do.
        codes: What the answer is asked for.
    """

    text: str
    expect: str
    codes: tuple[str, str]

    def proof(self, answer: str, typed: str) -> str:
        """What in an answer proves that the message arrived as it was typed; empty when nothing does.

        Args:
            answer: The agent's answer; agents wrap it anywhere.
            typed: What was typed for the message.
        """
        # Agents trim what is typed.
        lengths = sorted({len(typed.rstrip()), len(typed)})
        fields = {"chars": f"(?:{'|'.join(map(str, lengths))})", "lines": str(typed.count("\n") + 1)}
        pattern = re.compile(filled(self.expect, fields), re.DOTALL)
        found = pattern.search(answer) or pattern.search("".join(answer.split()))
        return (found[0] or answer) if found is not None else ""


class Prompts:
    """Makes the messages for one agent.

    Args:
        rules: What the profile says.
        texts: Texts of the command line, by name; they win.
        expects: Patterns of the command line, by name; they win.
        make_code: Makes a code of a few letters and digits.

    Raises:
        InvalidValue: A name is unknown, or a pattern is none.
    """

    def __init__(
        self,
        rules: DoctorRules,
        texts: Mapping[str, str],
        expects: Mapping[str, str],
        make_code: Callable[[], str] | None = None,
    ) -> None:
        _check(texts, expects)
        self._make_code = make_code or random_code
        self._prompts = {
            name: _chosen(name, rules.prompts.get(name, DoctorPrompt()), texts, expects)
            for name in DOCTOR_PROMPTS
        }

    def codes(self) -> tuple[str, str]:
        """Two codes that stand nowhere else."""
        return self._make_code(), self._make_code()

    def make(self, name: str, *, command: str = "") -> Question:
        """Fill in a message.

        Args:
            name: One of DOCTOR_PROMPTS.
            command: What the agent is to run, for `run`.
        """
        prompt = self._prompts[name]
        first, second = self.codes()
        text = filled(
            prompt.text,
            {
                "first": first,
                "second": second,
                "filler": _long_filler() if name == "long" else _SHORT_FILLER,
                "command": command,
                "seconds": str(SLOW_SECONDS),
            },
        )
        expect = filled(prompt.expect, {"first": first, "second": second})
        return Question(text, expect, (first, second))


def _chosen(
    name: str, own: DoctorPrompt, texts: Mapping[str, str], expects: Mapping[str, str]
) -> DoctorPrompt:
    base = GENERAL[name]
    if own.text:
        # Another message is answered in another way, so the general pattern goes with the general text.
        base = own
    elif own.expect:
        base = DoctorPrompt(base.text, own.expect)
    return DoctorPrompt(texts.get(name, base.text), expects.get(name, base.expect))


def _check(texts: Mapping[str, str], expects: Mapping[str, str]) -> None:
    for name in (*texts, *expects):
        if name not in DOCTOR_PROMPTS:
            raise InvalidValue(f"there is no message '{name}'", f"use one of {', '.join(DOCTOR_PROMPTS)}")
    for name, pattern in expects.items():
        try:
            re.compile(filled(pattern, dict.fromkeys(("first", "second", "chars", "lines"), "1")))
        except re.error as error:
            raise InvalidValue(f"the pattern for '{name}' is none: {error}", pattern) from error


def lengthened(question: Question) -> Question:
    """The same message with so much below it that agents may show it in part only."""
    rows = (f"row {number}, which means nothing and is there for its length" for number in range(ANSWER_ROWS))
    text = "\n".join((question.text, "What follows only makes this message long:", *rows))
    return dataclasses.replace(question, text=text)


def random_code() -> str:
    """A code that stands nowhere else by chance and is easily copied."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(5))


def _long_filler() -> str:
    rows: list[str] = []
    size = 0
    while size < LONG_BYTES:
        rows.append(f"row {len(rows)} of a long text, 日本語の行 {len(rows)}, that means nothing at all")
        size += len(rows[-1].encode()) + 1
    return "\n".join(rows)
