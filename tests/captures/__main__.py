"""Makes the recordings of this folder again: `python -m tests.captures [NAME ...]`, all without a name.

A program runs in a folder of its own, with an environment that says nothing of this machine, and is asked
for what its script asks. Those of vim, less, htop and git need the program; tests never do. Those of Claude
Code were made with it, and are not made again here.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.integration import composer_agent, odd_agent
from tests.integration.composer_agent import HINT, Shape
from tests.terminal.recorder import Recorder
from tests.terminal.recordings import OWN

Play = Callable[[Recorder], Awaitable[None]]

REPOSITORY = Path(__file__).parents[2]
SIZE = (80, 24)
SIZES = ((50, 14), (100, 30), SIZE)
SECONDS = 1.5
"""How long a turn takes that is to be seen working."""
DRAWN = 0.8
"""Seconds that a state is left to be seen."""
TEXT = """\
# Notes

{}

日本語の行、全角ＡＢＣと半角ｶﾅ。
한국어 텍스트 and 中文文本
é ñ ü, ｶﾞ
a\ttab, and the end""".format(
    "\n".join(f"{number:3} The quick brown fox jumps over the lazy dog." for number in range(50))
)
LINES = "first line\n\n  - indented\nlast line"
LONG = "\n".join(f"line {number} of a message that is longer than a composer is high" for number in range(20))


# -- the built-in agent, asked for what the recordings of real agents were


async def rested(run: Recorder, text: str) -> None:
    await run.shows(text)
    await run.wait(DRAWN)


async def scene(run: Recorder, name: str, text: str, answer: str = "") -> None:
    """A message and its answer."""
    run.mark(name)
    await run.submit(text)
    await rested(run, answer or f"({len(text)} characters, ")


async def asked(run: Recorder, name: str, text: str, question: str, *keys: str) -> None:
    """A message that opens a dialog, and keys that answer it."""
    run.mark(name)
    await run.submit(text)
    await rested(run, question)
    for key in keys:
        run.press(key)
        await run.rest(0.05)
    await rested(run, f"({len(text)} characters, ")


async def interrupted(run: Recorder, text: str) -> None:
    await run.submit(text)
    await run.shows("Working…")
    await run.wait(DRAWN)
    run.press("\x1b")
    await run.wait(DRAWN)


async def dummy(run: Recorder) -> None:
    run.mark("startup")
    await rested(run, "enter sends")
    run.mark("idle0")
    await run.wait(DRAWN)
    await messages(run)
    await asked(run, "perm", "%%run:printf 'it %s' ran%% %%hang:1%%", "Do you want to proceed?", "\r")
    await asked(run, "perm-deny", "%%run:touch denied%% %%hang:1%%", "Do you want to proceed?", "\x1b")
    await asked(run, "sbox", "%%ask:Which one?|red|blue%% %%hang:1%%", "Which one?", "\x1b[B", "\r")
    run.mark("int-esc")
    await interrupted(run, "%%hang:60%%")
    await interrupted(run, "%%hang:61%% again")
    run.mark("resize")
    for columns, lines in SIZES:
        run.resize(columns, lines)
        await rested(run, "─" * columns)
    await run.submit("%%wide%%")
    await rested(run, "|two")
    run.mark("exit")
    await run.submit("/quit")
    await run.ends()


async def messages(run: Recorder) -> None:
    run.mark("submit-onewrite")
    run.press("\x1b[200~tokone hello\x1b[201~\r")
    await rested(run, "You said: tokone")
    await scene(run, "submit-twowrites", "toktwo hello")
    await scene(run, "paste-delay", "tokdelay 日本語 é")
    await scene(run, "long-paste", LONG)
    await scene(run, "long-line", "toklong " + "words that go on " * 12)
    run.mark("raw-lf")
    run.press("tokraw one\ntokraw two")
    await run.rest()
    run.press("\r")
    await rested(run, "You said: tokraw")
    await scene(run, "slow", f"%%slow:{SECONDS}%%", "END-OF-SLOW")
    await scene(run, "hang", f"%%hang:{SECONDS}%% now")
    run.mark("queue")
    await run.submit(f"%%hang:{SECONDS}%% first")
    await run.shows("Working…")
    run.paste("tokqueued message")
    await run.rest(0.05)
    run.press("\r")
    await rested(run, "You said: tokqueued")


# -- composers of other shapes


async def composer(run: Recorder) -> None:
    async def submit(text: str) -> None:
        run.paste(text)
        await run.rest(HINT / 2)
        run.press("\r")

    run.mark("startup")
    await run.rest(HINT / 2)
    for name, text in (("line", "one line"), ("lines", LINES), ("long", LONG)):
        run.mark(name)
        await submit(text)
        await run.shows(f"You said {len(text)} characters")
        await run.rest(HINT / 2)
    run.mark("draft")
    run.press("mine")
    await run.rest(HINT / 2)
    run.press("\x15")
    await run.rest(HINT / 2)
    run.mark("dialog")
    await submit("%%ask%%")
    await run.shows("Do you want to run this?")
    await run.rest(HINT / 2)
    run.press("\x1b")
    await run.shows("Answered")
    await run.rest(HINT / 2)
    run.mark("resize")
    for columns, lines in SIZES:
        run.resize(columns, lines)
        await run.rest(HINT / 2)
        run.press("x")
        await run.rest(HINT / 2)
    run.mark("exit")


async def odd(run: Recorder) -> None:
    run.mark("startup")
    await rested(run, "Yes, I trust it")
    run.mark("trusted")
    run.press("\r")
    await run.rest()
    for name, text, answer in (
        ("line", "hello", "● Yes."),
        ("lines", "ABCDE and\nFGHJK", "● ABCDE-FGHJK"),
        ("wide", "日本語 QRSTU", "● QRSTU-QRSTU"),
    ):
        run.mark(name)
        await run.submit(text)
        await rested(run, answer)
    run.mark("dialog")
    await run.submit("Do it, then stop. printf done")
    await rested(run, "(y/n)")
    run.press("n")
    await rested(run, "Not allowed")
    run.mark("interrupt")
    await run.submit("Count from 1 to 400")
    await run.shows("Pondering 1s")
    run.press("\x03")
    await run.wait(DRAWN)
    run.mark("exit")


# -- other programs


async def keys(run: Recorder, *scenes: tuple[str, str]) -> None:
    """Press keys, one scene after another, each until the program rests."""
    run.mark("startup")
    await run.rest()
    for name, pressed in scenes:
        run.mark(name)
        run.press(pressed)
        await run.rest()


async def resized(run: Recorder) -> None:
    run.mark("resize")
    for size in SIZES:
        run.resize(*size)
        await run.rest()


async def vim(run: Recorder) -> None:
    await keys(
        run, ("move", "5j3w"), ("page", "\x06"), ("insert", "Oa new line, 日本語\x1b"),
        ("change", "wcwother\x1b"), ("visual", "Vjj"), ("delete", "d"), ("search", "/tab\r"), ("undo", "u"),
        ("split", ":split\r"), ("substitute", ":%s/fox/cat/g\r"), ("end", "G"),
    )  # fmt: skip
    await resized(run)
    run.mark("exit")
    run.press(":qa!\r")
    await run.ends()


async def less(run: Recorder) -> None:
    await keys(
        run,
        ("page", " "),
        ("line", "jjj"),
        ("back", "b"),
        ("search", "/lazy\r"),
        ("next", "nn"),
        ("end", "G"),
    )
    await resized(run)
    run.mark("exit")
    run.press("q")
    await run.ends()


async def htop(run: Recorder) -> None:
    await keys(run, ("select", "j"), ("sort", ">"), ("leave", "\x1b"), ("invert", "I"))
    await run.wait(2)
    await resized(run)
    run.mark("exit")
    run.press("q")
    await run.ends()


async def bash(run: Recorder) -> None:
    await keys(
        run, ("echo", "echo hello\r"), ("wide", "echo 日本語 é 👍🏽\r"),
        ("edit", "echo one three\x1bbtwo \x05\r"), ("long", "echo " + "words " * 20), ("home", "\x01"),
        ("clear", "\x0b"), ("complete", "cat no\t\r"), ("search", "\x12hel"), ("found", "\r"),
        ("history", "\x1b[A\x1b[A\x15"), ("lines", "for n in 1 2 3\rdo echo $n\rdone\r"),
        ("interrupt", "never\x03"), ("colors", "ls -l --color=always notes.txt | cut -c1-10\r"),
    )  # fmt: skip
    run.mark("resize")
    for size in SIZES:
        run.resize(*size)
        await run.wait(DRAWN)
        run.press("\x0c")
        await run.rest()
    run.mark("exit")
    run.press("exit\r")
    await run.ends()


DUMMY = (sys.executable, "-m", "synapse_tui.dummy", "--word-delay", "0")
VIM = ("vim", "-u", "NONE", "-N", "-i", "NONE", "-n", "+syntax on", "+set ruler hlsearch showcmd")


def shaped(shape: Shape) -> tuple[Sequence[str], Play]:
    return (sys.executable, composer_agent.__file__, shape.json, "--log", "log"), composer


PROGRAMS: dict[str, tuple[Sequence[str], Play]] = {
    "dummy": (DUMMY, dummy),
    "dummy-alternate": ((*DUMMY, "--alt-screen"), dummy),
    "dummy-progress": ((*DUMMY, "--no-title", "--no-status", "--progress"), dummy),
    "dummy-quiet": ((*DUMMY, "--no-title", "--no-status"), dummy),
    "composer-bar": shaped(Shape("bar", prompt="", more="")),
    "composer-box": shaped(Shape("box", min_rows=4, footer="? for help")),
    "composer-cursor": shaped(Shape("box", drawn_cursor=True)),
    "composer-lines": shaped(Shape("lines", prompt="❯ ", hints=["Ask anything", "Try /help", "What next?"])),
    "composer-moves": shaped(Shape("lines", moves=True)),
    "composer-odd": ((sys.executable, odd_agent.__file__), odd),
    "composer-prompt": shaped(Shape(echoes=True)),
    "composer-repeated": shaped(Shape(prompt="diff> ", more="diff> ")),
    "bash": (("bash", "--norc", "--noprofile", "-i"), bash),
    "git-diff": (("git", "diff", "--color=always"), less),
    "git-log": (("git", "log", "--graph", "--stat", "--color=always"), less),
    "htop": (("sh", "-c", "sleep 1000 & exec htop --readonly -p $!"), htop),
    "less": (("less", "notes.txt"), less),
    "vim": ((*VIM, "notes.txt"), vim),
}


def environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "PS1": "$ ",
        "LESS": "",
        "GIT_PAGER": "less -R",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Ann" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ann@example.org" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": "2026-01-02T03:04:05Z" for who in ("AUTHOR", "COMMITTER")},
    }


def prepare(folder: Path, env: dict[str, str]) -> None:
    """A repository with notes, a few commits, and changes that are not committed."""
    notes = folder / "notes.txt"
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, env=env, check=True)
    rows = TEXT.split("\n")
    for number in range(12):
        notes.write_text("\n".join(rows[: len(rows) - 11 + number]) + "\n", encoding="utf-8")
        subprocess.run(["git", "add", "notes.txt"], cwd=folder, env=env, check=True)
        commit = ["git", "commit", "-qm", f"Note {number}: もう一行\n\nAnd why."]
        subprocess.run(commit, cwd=folder, env=env, check=True)
    notes.write_text(TEXT.replace("lazy", "sleepy") + "\n", encoding="utf-8")


async def record(name: str) -> None:
    argv, play = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder))
        prepare(Path(folder), env)
        run = Recorder(argv, Path(folder), env, SIZE)
        try:
            await play(run)
        finally:
            await run.close()
    run.write(OWN / name)
    print(f"{name}: {len(run.data)} bytes, {len(run.events)} events")


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.captures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    for name in parser.parse_args().names or PROGRAMS:
        await record(name)


if __name__ == "__main__":
    asyncio.run(main())
