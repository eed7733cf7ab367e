"""Responses of the dummy agent: dialogs, directives in messages, and default answers."""

from __future__ import annotations

import os
import re
from dataclasses import field
from typing import Literal

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

Kind = Literal["permission", "question"]


@dataclass(frozen=True, slots=True)
class DialogAnswer:
    choice: int  # Number of the option, from 1; 0 if the dialog was canceled
    text: str  # The option's label; `denied` if the dialog was canceled
    key: str


@dataclass(slots=True)
class ScriptedDialog:
    kind: Kind
    title: str  # The subject (`Bash command`)
    question: str
    options: tuple[str, ...]
    body: str = ""  # Shown between title and question, such as the command
    selected: int = 0
    answer: DialogAnswer | None = field(default=None)  # None while it is open

    def press(self, key: str) -> None:
        """Handle a key: arrows move, a number or Enter chooses, Escape and Ctrl+C cancel."""
        if key in ("up", "ctrl+p"):
            self.selected = (self.selected - 1) % len(self.options)
        elif key in ("down", "ctrl+n", "tab"):
            self.selected = (self.selected + 1) % len(self.options)
        elif key == "enter":
            self._choose(self.selected, key)
        elif key in ("escape", "ctrl+c"):
            self.answer = DialogAnswer(0, tr("denied"), key)

    def type(self, text: str) -> None:
        if len(text) == 1 and text.isdecimal() and 1 <= int(text) <= len(self.options):
            self._choose(int(text) - 1, text)

    @property
    def allowed(self) -> bool:
        return self.answer is not None and self.answer.choice in (1, 2)

    def _choose(self, index: int, key: str) -> None:
        self.selected = index
        self.answer = DialogAnswer(index + 1, self.options[index], key)


def permission(command: str) -> ScriptedDialog:
    options = (
        tr("Yes"),
        tr("Yes, and do not ask again in this session"),
        tr("No, and tell the agent what to do instead (esc)"),
    )
    return ScriptedDialog(
        "permission", tr("Bash command"), tr("Do you want to proceed?"), options, body=command
    )


def question(text: str) -> ScriptedDialog:
    asked, *options = [part.strip() for part in text.split("|")]
    usual = (tr("Yes"), tr("No"), tr("Decide yourself"))
    return ScriptedDialog("question", tr("Question"), asked, options=tuple(options) or usual)


DIRECTIVES_HELP = """\
directives in a message (instead of a model; a message may contain several):
  %%slow:SECS%%        answer over that many seconds
  %%hang:SECS%%        work silently that long, then answer
  %%perm%%  %%perm:COMMAND%%
                       ask for permission, do nothing with it
  %%run:COMMAND%%      ask for permission, then run the command and show its output
  %%do:COMMAND%%       run the command without asking
  %%ask:QUESTION%%     ask a question; options may follow: %%ask:Which?|red|blue%%
  /menu                open a menu at once, without a turn
  %%wide%%             answer with wide characters, emoji and accents
  %%flood:SECS%%       write as fast as possible
  %%alt:SECS%%         show something on the alternate screen
  %%bell%%             ring the bell
  %%notify:TEXT%%      send a notification (OSC 9)
  %%clip:TEXT%%        write to the clipboard (OSC 52)
  %%title:TEXT%%       set the window title
  %%invalid%%          write bytes that are not UTF-8
  %%error:TEXT%%       end the turn with an error (OSC 7501 state=error)
  %%exit:CODE%%        end with that exit status
  %%crash:SIGNAL%%     end by that signal (KILL, SEGV, 15, ...)
  %%surprise:MS%%  %%surprise:MS-MS%%
                       open a permission dialog this long after the paste, sent or
                       not; with two numbers, at a random time between them

keys: Enter sends, Shift+Enter or Ctrl+J breaks the line, Escape interrupts or denies, Ctrl+U clears,
Up recalls, Ctrl+C twice ends. A message beginning with / is a command (/help), one with ! runs in a shell
without asking. The signal USR1 opens a permission dialog."""

HELP = """\
I am a scripted agent: no model, no account, nothing leaves this machine. Things to try here:

  @NAME hello         to the pane of that name
  %%slow:5%%          slowly; Esc stops
  %%perm:make all%%   ask permission
  %%run:ls%%          run a command
  %%ask:Ok?|yes|no%%  ask a question
  %%wide%%            日本語 and emoji

`python -m synapse_tui.dummy --help` lists all directives."""

TIPS = (
    "Type `@NAME hello` on an empty line to write to another pane.",
    "`%%slow:5%%` makes me answer slowly; Esc interrupts me.",
    "`%%perm:rm -rf build%%` makes me ask for permission first.",
    "`%%run:git status%%` runs a command, when you allow it.",
    "Agents can talk: `%%run:synapse send NAME hello%%`.",
)

WIDE = """\
日本語のテキスト、한국어 텍스트, 中文文本。
Emoji: 👍 👍🏽 👩‍💻 🇯🇵 ⚠️ ✅  combining: e\u0301 n\u0303 a\u0308  नमस्ते  สวัสดี
|全角|半角|ﾊﾝｶｸ|Ａ|
|two |2   |four|2 |"""

DIRECTIVE = re.compile(
    r"%%(slow|hang|perm|run|do|ask|wide|flood|alt|bell|notify|clip|title|invalid|error|exit|crash|surprise)(?::(.*?))?%%",
    re.DOTALL,
)
SENDER = re.compile(r"\[A2A:(?:[0-9a-fA-F]+:)?([\w.-]+)\]\s*")


@dataclass(frozen=True, slots=True)
class Directive:
    name: str
    argument: str = ""

    def seconds(self, default: float = 1.0) -> float:
        try:
            return max(0.0, min(float(self.argument), 3600.0))
        except ValueError:
            return default

    def instant(self) -> float:
        """Return the argument, milliseconds or a range of them, as seconds; a random instant of a range."""
        first, _, last = self.argument.partition("-")
        chance = int.from_bytes(os.urandom(4), "big") / 0xFFFFFFFF
        try:
            start, end = float(first), float(last or first)
        except ValueError:
            return 0.0
        return max(0.0, start + chance * (end - start)) / 1000


def directives(text: str) -> list[Directive]:
    return [Directive(match[1], (match[2] or "").strip()) for match in DIRECTIVE.finditer(text)]


def answer(text: str, *, turn: int, reply: str = "") -> str:
    if reply:
        return reply.replace("{text}", text)
    match = SENDER.match(text)
    who = tr(f"{match[1]} says") if match else tr("You said")
    text = text[match.end() :] if match else text
    said = DIRECTIVE.sub("", text).strip()
    chars, rows = len(text), text.count("\n") + 1
    size = tr(
        f"({chars} {'character' if chars == 1 else 'characters'}, {rows} {'line' if rows == 1 else 'lines'})"
    )
    echo = f"{tr('Only directives.')} {size}"
    if said:
        echo = f"{who}: {said[:160]}{'…' * (len(said) > 160)}\n{size}"
    if match:
        return echo
    if turn == 0:
        return f"{echo}\n\n{tr(HELP)}"
    return f"{echo}\n\n{tr(TIPS[(turn - 1) % len(TIPS)])}"


def slow_text(text: str, seconds: float) -> str:
    """Return a longer answer for a slow turn: two lines per second, and a last line that marks its end."""
    lines = "\n".join(tr(f"slow line {index} of a long answer") for index in range(int(seconds * 2)))
    return f"{text}\n{lines}\nEND-OF-SLOW"
