"""The manual of the commands about messages."""

from __future__ import annotations

from synapse_tui.cli.output import ExitCode

from .page import Page

_MESSAGE = "The text; `-` reads it from standard input. 1,000,000 bytes at most."
_TASK = "The id of a task, or its first 8 characters."
_AGENT = "Its id, name, type and port (claude-8100), or type."
_ADDRESSED = (ExitCode.NO_RECEIVER, ExitCode.PEER)
_SENT = (ExitCode.NO_RECEIVER, ExitCode.NOT_TAKEN, ExitCode.PEER, ExitCode.TASK_FAILED, ExitCode.TIMED_OUT)

PAGES: dict[str, Page] = {
    "synapse send": Page(
        arguments={
            "TARGET": "An agent id (synapse-claude-8100), type and port (claude-8100), a name, a type, "
            "`all`, or the alias of an external agent.",
            "MESSAGE": _MESSAGE,
        },
        examples={
            'synapse send gemini "review src/app.py"': "Send it, wait for the answer and print it.",
            "git diff | synapse send codex - --no-response": "Send what another command prints, and go on.",
            'synapse send claude-8100 "stop, wrong branch" -p 5': "Interrupt the agent first.",
            'synapse send alice "use main" --task 25ea4569': "Answer what the agent asked in that task.",
            'synapse send docs "what is new?" --json': "Ask an external agent; print its answer as JSON.",
        },
        codes=_SENT,
        see=("synapse result", "synapse broadcast", "synapse reply", "synapse outbox"),
    ),
    "synapse broadcast": Page(
        arguments={"MESSAGE": _MESSAGE},
        examples={
            'synapse broadcast "tests are red, hold your commits"': "Tell all; print their receipts.",
            'synapse broadcast "who touches the parser?" --response': "Print the answers of all.",
        },
        codes=_SENT,
        see=("synapse send", "synapse list"),
    ),
    "synapse delegate": Page(
        arguments={"TASK": "What is to be done; `-` reads it from standard input."},
        examples={
            'synapse delegate "write tests for the parser"': "Send it to whom the rules name.",
            'synapse delegate "fix the layout" --dry-run': "Only tell who would get it.",
        },
        codes=_SENT,
        see=("synapse send", "synapse instructions"),
    ),
    "synapse reply": Page(
        arguments={"MESSAGE": f"{_MESSAGE} May be missing where a file, a URL or data is given."},
        examples={
            'synapse reply "looks fine, one typo in line 12"': "Answer the task that the agent works on.",
            'synapse reply "which branch?" --state input-required': "Ask back; the task stays open.",
            'synapse reply "see the plan" --file plan.md': "Give a file with the answer.",
            'synapse reply "no access" --fail --to 25ea4569': "Say that a certain task failed.",
            "synapse reply --list": "List the tasks that await a reply.",
        },
        codes=(ExitCode.NOT_TAKEN, ExitCode.PEER),
        see=("synapse send", "synapse inbox"),
    ),
    "synapse result": Page(
        arguments={"TASK": f"{_TASK} `synapse send` prints it."},
        examples={
            "synapse result 25ea4569": "Print the answer, if it is there.",
            "synapse result 25ea4569 --wait-timeout 600": "Wait ten minutes for it.",
        },
        codes=_SENT,
        see=("synapse send", "synapse history"),
    ),
    "synapse outbox": Page(
        arguments={
            "AGENT": f"{_AGENT} All of this project, if it is missing.",
            "ACTION": "`list` (if it is missing); `cancel` takes messages back, `hold` keeps them until they "
            "are released, `release` lets them go on, `retry` too where one may have been sent already, "
            "`now` puts them before all others, `move TASK PLACE` puts one at another place, from 1.",
            "TASK": "Messages by the beginnings of their ids (4 characters or more), or `all`.",
        },
        examples={
            "synapse outbox": "List what waits in this project.",
            "synapse outbox cancel 25ea4569": "Take a message back.",
            "synapse outbox claude hold all": "Keep all that waits for an agent.",
            "synapse outbox claude release all": "Let it go on.",
            "synapse outbox move 25ea4569 1": "Put a message first.",
        },
        codes=(ExitCode.NO_RECEIVER, ExitCode.NOT_TAKEN, ExitCode.PEER),
        see=("synapse send", "synapse status"),
    ),
    "synapse inbox": Page(
        examples={
            "synapse inbox": "Inside an agent: read its messages. In a shell: look into all inboxes.",
            "synapse inbox --agent claude --keep": "Look into one, and leave the messages unread.",
        },
        codes=_ADDRESSED,
        see=("synapse send", "synapse outbox"),
    ),
    "synapse history": Page(
        examples={
            "synapse history list --agent claude --since 2h": "What claude was asked in the last two hours.",
            "synapse history search parser crash": "Find tasks by words of message or answer.",
            "synapse history show 25ea4569": "Print one task whole.",
        },
        see=("synapse result", "synapse logs"),
    ),
    "synapse history list": Page(
        examples={
            "synapse history list -n 10": "The last ten tasks of this project.",
            "synapse history list --status failed --since 3d --all": "What failed in three days, anywhere.",
        },
        see=("synapse history search", "synapse history show"),
    ),
    "synapse history search": Page(
        arguments={"WORDS": "All of them must stand in message or answer; one in quotes may have spaces."},
        examples={
            "synapse history search 日本": "Any part of a text is found, in every script.",
            'synapse history search "null pointer" --agent codex': "A phrase, in the tasks of one type.",
        },
        see=("synapse history list", "synapse history show"),
    ),
    "synapse history show": Page(
        arguments={"TASK": _TASK},
        examples={
            "synapse history show 25ea4569": "Print message, answer, and the steps between.",
            "synapse history show 25ea4569 --json": "The same as JSON.",
        },
        codes=(ExitCode.NOT_TAKEN,),
        see=("synapse history list", "synapse result"),
    ),
    "synapse history stats": Page(
        examples={"synapse history stats --since 7d": "How many tasks of each state each agent had."},
        see=("synapse history list",),
    ),
    "synapse history export": Page(
        examples={
            "synapse history export --format md -o week.md --since 7d": "Write this week into a file.",
            "synapse history export --format jsonl --all": "All that is known, a task a line.",
        },
        see=("synapse history list",),
    ),
    "synapse history cleanup": Page(
        examples={
            "synapse history cleanup --days 90 --dry-run": "Count what is older than 90 days.",
            "synapse history cleanup --days 90 --yes": "Remove it, without a question.",
        },
        see=("synapse history stats",),
    ),
    "synapse webhook": Page(
        examples={
            "synapse webhook add claude https://ci.example/hook": "Have a URL told of claude's tasks.",
            "synapse webhook list claude": "Which URLs are told.",
        },
        codes=_ADDRESSED,
        see=("synapse auth",),
    ),
    "synapse webhook add": Page(
        arguments={"AGENT": _AGENT, "URL": "Where the events are sent by POST; https, or http on loopback."},
        examples={
            "synapse webhook add claude https://ci.example/hook": "Told when a task ends well or ill.",
            "synapse webhook add claude https://ci.example/hook --event '*' --persist": "Of all, for good.",
            "synapse webhook add claude https://ci.example/hook --secret-env HOOK_SECRET": "Signed.",
        },
        codes=_ADDRESSED,
        see=("synapse webhook log", "synapse webhook remove"),
    ),
    "synapse webhook list": Page(
        arguments={"AGENT": _AGENT},
        examples={"synapse webhook list claude": "Ids, URLs and events."},
        codes=_ADDRESSED,
        see=("synapse webhook add",),
    ),
    "synapse webhook log": Page(
        arguments={"AGENT": _AGENT, "WEBHOOK": "The id of one; all of the agent, if it is missing."},
        examples={"synapse webhook log claude --limit 5": "The last five, and what became of them."},
        codes=_ADDRESSED,
        see=("synapse webhook list",),
    ),
    "synapse webhook remove": Page(
        arguments={"AGENT": _AGENT, "WEBHOOK": "Its id, or the whole URL."},
        examples={"synapse webhook remove claude https://ci.example/hook": "Tell that URL no more."},
        codes=_ADDRESSED,
        see=("synapse webhook list",),
    ),
}
