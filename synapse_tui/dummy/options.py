"""Command line of the dummy agent."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from synapse_tui import __version__

from .script import DIRECTIVES_HELP

WhileWorking = Literal["ignore", "queue", "steer"]


@dataclass(frozen=True, slots=True)
class Options:
    """How the agent behaves; times are in seconds.

    Attributes:
        name: What it calls itself.
        reply: Its answer to everything; `{text}` stands for what was asked. Empty for the built-in answers.
        prompt: Submitted as soon as it has started; empty for none.
        log: File of JSON lines that tells everything it was given; empty for none.
        alternate_screen: Whether it draws on the alternate screen.
        title: Whether it tells its state by the window title.
        status: Whether it tells its state by OSC 7501.
        progress: Whether it tells its state by OSC 9;4.
        paste: Whether it asks for bracketed paste (mode 2004).
        kitty: Whether it asks for unambiguous keys (kitty keyboard protocol, flag 1).
        color: Whether it uses colours.
        startup: How long it is deaf and blank at first.
        word_delay: Pause between two words of an answer.
        while_working: What becomes of a message that is submitted while a turn runs.
        requeue: Whether an interrupted message goes back into the composer.
        dialog_after_paste: After so long a paste into the idle agent is followed by a dialog; negative for
            never.
        swallow_enter: So many carriage returns after each paste are ignored.
        stubborn: Whether SIGHUP and SIGTERM are ignored.
        burst: An Enter so soon after typed text is taken for a line of a paste.
        read_rate: Bytes that it reads a second; 0 for as fast as it can.
        lag: How much later than it happens everything is shown, as in agents that draw in frames.
        resume: Whether it says that it goes on with its last conversation.
    """

    name: str = "dummy"
    reply: str = ""
    prompt: str = ""
    log: str = ""
    alternate_screen: bool = False
    title: bool = True
    status: bool = True
    progress: bool = False
    paste: bool = True
    kitty: bool = True
    color: bool = True
    startup: float = 0.0
    word_delay: float = 0.02
    while_working: WhileWorking = "queue"
    requeue: bool = False
    dialog_after_paste: float = -1.0
    swallow_enter: int = 0
    stubborn: bool = False
    burst: float = 0.0
    read_rate: int = 0
    lag: float = 0.0
    resume: bool = False


def make_parser() -> argparse.ArgumentParser:
    """The parser; its help documents every option and every directive."""
    parser = argparse.ArgumentParser(
        prog="python -m synapse_tui.dummy",
        description="A scripted agent in the manner of a coding agent's terminal program. It needs no model.",
        epilog=DIRECTIVES_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("prompt", nargs="?", default="", help="submitted as soon as it has started")
    add("--name", default="", help="what it calls itself (default: its address, or dummy)")
    add("--reply", default="", metavar="TEXT", help="answer everything with this; {text} is what was asked")
    add("--version", action="version", version=f"dummy {__version__}")
    add("--resume", action="store_true", help="say that the last conversation goes on")
    add(
        "--log",
        default="",
        metavar="FILE",
        help="write everything it is given as JSON lines; also $SYNAPSE_DUMMY_LOG",
    )
    look = parser.add_argument_group("screen")
    look.add_argument("--alt-screen", action="store_true", help="draw on the alternate screen")
    look.add_argument(
        "--word-delay",
        type=float,
        default=20,
        metavar="MS",
        help="pause between words (default: %(default)s)",
    )
    look.add_argument("--startup", type=float, default=0, metavar="SECS", help="be deaf and blank at first")
    signals = parser.add_argument_group("signals of its state")
    signals.add_argument("--no-title", action="store_true", help="leave the window title alone")
    signals.add_argument("--no-status", action="store_true", help="send no program status (OSC 7501)")
    signals.add_argument("--progress", action="store_true", help="send progress (OSC 9;4) too")
    keys = parser.add_argument_group("input, and ways of real agents to go wrong")
    keys.add_argument("--no-paste", action="store_true", help="do not ask for bracketed paste")
    keys.add_argument("--no-kitty", action="store_true", help="do not ask for the kitty keyboard protocol")
    keys.add_argument(
        "--while-working",
        choices=("ignore", "queue", "steer"),
        default="queue",
        help="what becomes of a message submitted while a turn runs (default: %(default)s)",
    )
    keys.add_argument(
        "--requeue-on-interrupt", action="store_true", help="put interrupted text back into the composer"
    )
    keys.add_argument(
        "--dialog-after-paste",
        type=float,
        default=-1,
        metavar="MS",
        help="open a dialog so long after a paste",
    )
    keys.add_argument(
        "--swallow-enter", type=int, default=0, metavar="N", help="ignore N Enters after each paste"
    )
    keys.add_argument(
        "--burst",
        type=float,
        default=0,
        metavar="MS",
        help="take Enter so soon after typed text for a line of a paste",
    )
    keys.add_argument(
        "--read-rate", type=float, default=0, metavar="KB", help="read no more than so many kB a second"
    )
    keys.add_argument(
        "--lag", type=float, default=0, metavar="MS", help="show everything so much later than it happens"
    )
    keys.add_argument("--stubborn", action="store_true", help="ignore SIGHUP and SIGTERM")
    return parser


def parse_options(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> Options:
    """Read the command line; wrong arguments end the program with status 2 and a usage line.

    Args:
        arguments: Without the program's name.
        environ: Gives `SYNAPSE_DUMMY_LOG`, `NO_COLOR`, and within synapse-tui `SYNAPSE_AGENT_ID`.
    """
    given = make_parser().parse_args(arguments)
    own = environ.get("SYNAPSE_AGENT_ID", "").removeprefix("synapse-")
    return Options(
        name=given.name or own or "dummy",
        reply=given.reply,
        prompt=given.prompt,
        log=given.log or environ.get("SYNAPSE_DUMMY_LOG", ""),
        alternate_screen=given.alt_screen,
        title=not given.no_title,
        status=not given.no_status,
        progress=given.progress,
        paste=not given.no_paste,
        kitty=not given.no_kitty,
        color=not environ.get("NO_COLOR"),
        startup=given.startup,
        word_delay=given.word_delay / 1000,
        while_working=cast("WhileWorking", given.while_working),
        requeue=given.requeue_on_interrupt,
        dialog_after_paste=given.dialog_after_paste / 1000,
        swallow_enter=given.swallow_enter,
        stubborn=given.stubborn,
        burst=given.burst / 1000,
        read_rate=int(given.read_rate * 1000),
        lag=given.lag / 1000,
        resume=given.resume,
    )
