"""The manual of the commands about agents."""

from __future__ import annotations

from synapse_tui.cli.output import ExitCode

from .page import Page

_AGENT = "Its id, name, type and port (claude-8100), or type."
_ALIAS = "What the external agent is called here."
_ADDRESSED = (ExitCode.NO_RECEIVER, ExitCode.PEER)

PAGES: dict[str, Page] = {
    "synapse list": Page(
        examples={
            "synapse list": "Who is there in this project.",
            "synapse list --all --json": "Agents of all projects, for a program.",
        },
        see=("synapse status", "synapse start", "synapse external list"),
    ),
    "synapse status": Page(
        arguments={"AGENT": f"{_AGENT} All of this project, if it is missing."},
        examples={
            "synapse status": "State, since when, why, and how much waits.",
            "synapse status claude --why": "The rule behind its state, and the last 20 states.",
        },
        codes=_ADDRESSED,
        see=("synapse list", "synapse outbox"),
    ),
    "synapse start": Page(
        arguments={
            "PROFILE[:NAME][@DIR]": "Which agent, what it is called, and the folder that it works in.",
            "ARGUMENTS": "Go to the agent as they are.",
        },
        examples={
            "synapse start codex": "An agent in this project's session.",
            'synapse start claude:alice@~/api --prompt "read README.md"': "With a name, a folder, a prompt.",
            "synapse start claude -- --continue": "With arguments of its own.",
        },
        codes=(ExitCode.NOT_STARTED, ExitCode.NO_SESSION),
        see=("synapse stop", "synapse-tui"),
    ),
    "synapse stop": Page(
        arguments={"ID|NAME|PROFILE": "Which agent; one of another project by its id."},
        examples={
            "synapse stop alice": "End the agent of that name.",
            "synapse stop claude --all": "End all agents of that type in this project.",
        },
        codes=(ExitCode.NO_RECEIVER, ExitCode.NO_SESSION),
        see=("synapse start", "synapse-tui kill"),
    ),
    "synapse watch": Page(
        arguments={"AGENT": f"{_AGENT} With --list all of this project, if it is missing."},
        examples={
            "synapse watch claude": "Watch over the running task, or the newest.",
            "synapse watch claude --every 300 --times 20 --until 'ALL DONE'": "Patiently, until it says so.",
            "synapse watch claude --detach": "Return at once; the watch goes on.",
            "synapse watch --list": "The watches of this project.",
            "synapse watch claude --stop": "End that watch.",
        },
        codes=(*_ADDRESSED, ExitCode.TASK_FAILED),
        see=("synapse send", "synapse status"),
    ),
    "synapse logs": Page(
        arguments={"AGENT": f"{_AGENT} Also one that has ended."},
        examples={
            "synapse logs claude -n 200": "The last 200 lines.",
            "synapse logs claude -f": "Go on as it writes.",
            "synapse logs claude --format asciicast > claude.cast": "A recording for asciinema play.",
        },
        codes=(ExitCode.NO_RECEIVER,),
        see=("synapse history",),
    ),
    "synapse instructions": Page(
        examples={
            "synapse instructions show claude": "What claude was told of the others.",
            "synapse instructions send claude": "Tell it again.",
        },
        codes=_ADDRESSED,
        see=("synapse config", "synapse delegate"),
    ),
    "synapse instructions show": Page(
        arguments={"AGENT": f"{_AGENT} The only one of the project, if it is missing."},
        examples={
            "synapse instructions show claude --now": "What it would be told now.",
            "synapse instructions show --type gemini": "What any agent of that type would be told.",
        },
        codes=_ADDRESSED,
        see=("synapse instructions send",),
    ),
    "synapse instructions send": Page(
        arguments={"AGENT": _AGENT},
        examples={"synapse instructions send claude": "After the texts were changed."},
        codes=_ADDRESSED,
        see=("synapse instructions show",),
    ),
    "synapse external": Page(
        examples={
            "synapse external add https://docs.example --alias docs": "Add an agent by its URL.",
            'synapse send docs "where is the API described?"': "Write to it as to any other.",
        },
        see=("synapse send", "synapse list"),
    ),
    "synapse external add": Page(
        arguments={"URL": "Where the agent is, or its card itself."},
        examples={
            "synapse external add https://docs.example --alias docs": "Call it docs.",
            "synapse external add https://docs.example --token-env DOCS_TOKEN": "With a bearer token.",
        },
        codes=(ExitCode.PEER,),
        see=("synapse external info", "synapse external remove"),
    ),
    "synapse external list": Page(
        examples={"synapse external list": "Aliases, names and URLs."},
        see=("synapse external add",),
    ),
    "synapse external info": Page(
        arguments={"ALIAS": _ALIAS},
        examples={
            "synapse external info docs": "What it can do, and how it is called.",
            "synapse external info docs --card": "Its card as it was when it was added.",
        },
        codes=(ExitCode.NO_RECEIVER,),
        see=("synapse external list",),
    ),
    "synapse external send": Page(
        arguments={"ALIAS": _ALIAS, "MESSAGE": "The text; `-` reads it from standard input."},
        examples={'synapse external send docs "what is new?"': "Send it, wait for the answer and print it."},
        codes=(
            ExitCode.NO_RECEIVER,
            ExitCode.NOT_TAKEN,
            ExitCode.PEER,
            ExitCode.TASK_FAILED,
            ExitCode.TIMED_OUT,
        ),
        see=("synapse send", "synapse result"),
    ),
    "synapse external remove": Page(
        arguments={"ALIAS": _ALIAS},
        examples={"synapse external remove docs": "Forget it."},
        codes=(ExitCode.NO_RECEIVER,),
        see=("synapse external add",),
    ),
    "synapse doctor": Page(
        arguments={"AGENT": "Types of agents (claude, codex); none only lists what is installed."},
        examples={
            "synapse doctor": "Which agents are installed, in which versions.",
            "synapse doctor claude": "Try one; some short turns of your model are used.",
            "synapse doctor codex --check interrupt --check blocked --yes": "Only these checks, unasked.",
        },
        codes=(ExitCode.NOT_STARTED, ExitCode.UNPROVED),
        see=("synapse status", "synapse start"),
    ),
}
