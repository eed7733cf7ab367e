"""The manual of the commands about files: who may write them, and the hooks that see to it."""

from __future__ import annotations

from synapse_tui.cli.output import ExitCode

from .page import Page

_FILE = "A path; every way to write a file's name means the same file."
_FILES = f"{_FILE} FILE AGENT, where no such file is there, means the file and its holder."
_HOOKED = "claude, codex, gemini, opencode or copilot"

PAGES: dict[str, Page] = {
    "synapse file-safety": Page(
        examples={
            "synapse file-safety locks": "Who holds which file.",
            "synapse file-safety history src/app.py": "Who has changed a file.",
        },
        see=("synapse hooks", "synapse config"),
    ),
    "synapse file-safety status": Page(
        examples={"synapse file-safety status": "Whether it is on, and what the database has."},
        see=("synapse file-safety debug",),
    ),
    "synapse file-safety locks": Page(
        examples={"synapse file-safety locks --agent claude": "What claude holds, how long still, what for."},
        see=("synapse file-safety lock", "synapse file-safety unlock"),
    ),
    "synapse file-safety lock": Page(
        arguments={"FILES": _FILES},
        examples={
            'synapse file-safety lock src/app.py --intent "new parser"': "Lock a file and say what for.",
            "synapse file-safety lock src/app.py claude": "For claude, whether it runs or not.",
            "synapse file-safety lock a.py b.py": "Both or none.",
        },
        codes=(ExitCode.NOT_TAKEN,),
        see=("synapse file-safety locks", "synapse file-safety unlock"),
    ),
    "synapse file-safety unlock": Page(
        arguments={"FILES": _FILES},
        examples={
            "synapse file-safety unlock src/app.py": "Give a lock back.",
            "synapse file-safety unlock src/app.py --force": "Take it away from whoever holds it.",
            "synapse file-safety unlock --all": "Give all back.",
        },
        codes=(ExitCode.NOT_TAKEN,),
        see=("synapse file-safety locks",),
    ),
    "synapse file-safety history": Page(
        arguments={"FILE": _FILE},
        examples={"synapse file-safety history src/app.py -n 5": "The last five changes of a file."},
        see=("synapse file-safety recent",),
    ),
    "synapse file-safety recent": Page(
        examples={"synapse file-safety recent --hours 2 --agent codex": "What codex changed in two hours."},
        see=("synapse file-safety history",),
    ),
    "synapse file-safety record": Page(
        arguments={
            "FILE": _FILE,
            "AGENT": "Who did it, as with --agent.",
            "TASK": "In which task, as with --task.",
        },
        examples={
            'synapse file-safety record src/app.py --lines 3-7,12 --intent "typo"': "Note a change by hand.",
        },
        see=("synapse file-safety history",),
    ),
    "synapse file-safety cleanup": Page(
        examples={"synapse file-safety cleanup --days 7": "Forget changes that are older than a week."},
        see=("synapse file-safety status",),
    ),
    "synapse file-safety debug": Page(
        examples={"synapse file-safety debug": "For a report of a fault."},
        see=("synapse file-safety status", "synapse hooks status"),
    ),
    "synapse hooks": Page(
        examples={
            "synapse hooks status": "Where hooks are installed.",
            "synapse hooks install gemini": "The one that cannot be given them for one process.",
        },
        see=("synapse file-safety",),
    ),
    "synapse hooks install": Page(
        arguments={"AGENT": f"One or more of {_HOOKED}."},
        examples={"synapse hooks install gemini": "Put them beside your own."},
        see=("synapse hooks remove", "synapse hooks status"),
    ),
    "synapse hooks remove": Page(
        arguments={"AGENT": f"Of {_HOOKED}; all, if it is missing."},
        examples={"synapse hooks remove": "Take them all out again."},
        see=("synapse hooks install",),
    ),
    "synapse hooks status": Page(
        arguments={"AGENT": f"Of {_HOOKED}; all, if it is missing."},
        examples={"synapse hooks status claude codex": "Where those two have them."},
        see=("synapse hooks install",),
    ),
    "synapse hook": Page(
        arguments={"EVENT": "start, pre, post, prompt, asked, idle or end; more stands on standard input."},
        examples={"synapse hook pre --dialect claude": "What Claude Code runs before it uses a tool."},
        see=("synapse hooks", "synapse file-safety"),
    ),
}
