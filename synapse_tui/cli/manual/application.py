"""The manual of `synapse` itself and of the application."""

from __future__ import annotations

from synapse_tui.cli.output import ExitCode

from .page import Page

_SESSION = "A session by its name; that of the current folder's project, if it is missing."

PAGES: dict[str, Page] = {
    "synapse": Page(
        examples={
            "synapse claude": "Open the application with an agent.",
            'synapse send gemini "review src/app.py"': "Send a message and print the answer.",
            "synapse list": "Who is there.",
        },
        see=("synapse-tui",),
    ),
    "synapse-tui": Page(
        arguments={
            "PROFILE[:NAME][@DIR]": "Agents to open, each with a name and a folder of its own; "
            "none shows the session, or a list to choose from.",
        },
        examples={
            "synapse-tui": "The agents of the settings, or a list to choose from.",
            "synapse-tui claude codex gemini": "Three agents.",
            "synapse-tui claude:alice@~/api codex": "A name and a folder of its own.",
            "synapse-tui claude -- --continue": "Arguments for the agent.",
            "synapse-tui ls": "The sessions that run; also: attach, kill, upgrade.",
        },
        codes=(ExitCode.UNFIT, ExitCode.NOT_STARTED, ExitCode.NO_SESSION),
        see=("synapse", "synapse-tui ls", "synapse-tui attach", "synapse-tui kill"),
    ),
    "synapse-tui ls": Page(
        examples={"synapse-tui ls": "Sessions, their projects and agents."},
        see=("synapse-tui attach", "synapse-tui kill"),
    ),
    "synapse-tui attach": Page(
        arguments={"NAME": _SESSION},
        examples={
            "synapse-tui attach": "Show the session of this project.",
            "synapse-tui attach api": "Show another session by its name.",
        },
        codes=(ExitCode.UNFIT, ExitCode.NO_SESSION),
        see=("synapse-tui ls",),
    ),
    "synapse-tui kill": Page(
        arguments={"NAME": _SESSION},
        examples={
            "synapse-tui kill": "Stop the session of this project with all its agents.",
            "synapse-tui kill --all": "Stop all of this home; asks when a terminal shows one.",
        },
        codes=(ExitCode.NO_SESSION,),
        see=("synapse stop", "synapse-tui ls"),
    ),
    "synapse-tui upgrade": Page(
        arguments={"NAME": _SESSION},
        examples={"synapse-tui upgrade": "After synapse-tui was updated; the agents run on."},
        codes=(ExitCode.NO_SESSION,),
        see=("synapse-tui ls",),
    ),
}
