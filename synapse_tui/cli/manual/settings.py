"""The manual of the commands about settings, keys and the shell."""

from __future__ import annotations

from .page import Page

_KEY = "A setting, such as a2a.flow; `synapse config keys` lists all."
_NAME = "Whose key; letters, digits, `.`, `_` and `-`."

PAGES: dict[str, Page] = {
    "synapse init": Page(
        examples={
            "synapse init --dry-run": "What would be written, and where.",
            "synapse init": "The project's files; a line for CLAUDE.md and GEMINI.md is asked about.",
            "synapse init --user --no-input": "Your own files, in a script.",
        },
        see=("synapse reset", "synapse config", "synapse instructions"),
    ),
    "synapse reset": Page(
        examples={
            "synapse reset --dry-run": "What would be put back, and where edited files would be kept.",
            "synapse reset --yes": "Without being asked.",
        },
        see=("synapse init",),
    ),
    "synapse trust": Page(
        arguments={"FILE": "Files of the project's .synapse; all that wait to be trusted, if it is missing."},
        examples={
            "synapse trust": "Read all that waits, and answer.",
            "synapse trust .synapse/delegate.md --yes": "A file that you have just edited.",
            "synapse trust --list": "Only see what waits.",
        },
        see=("synapse init", "synapse config", "synapse instructions"),
    ),
    "synapse config": Page(
        examples={
            "synapse config show --origin": "What holds here, and where it comes from.",
            "synapse config set a2a.flow oneway": "Change a setting of yours.",
        },
        see=("synapse auth",),
    ),
    "synapse config show": Page(
        arguments={"KEY": f"{_KEY} The beginning of one (`tui`) means all below it; none means all."},
        examples={
            "synapse config show tui": "All settings of the application.",
            "synapse config show --set --origin": "Only what is set, and where.",
        },
        see=("synapse config get", "synapse config keys"),
    ),
    "synapse config get": Page(
        arguments={"KEY": _KEY},
        examples={"synapse config get a2a.flow": "Print one value."},
        see=("synapse config show",),
    ),
    "synapse config set": Page(
        arguments={"KEY": _KEY, "VALUE": "The value; several, or JSON, for a list."},
        examples={
            "synapse config set a2a.flow oneway": "In your own file.",
            "synapse config set tui.agents claude codex:tester@backend": "A list.",
            "synapse config set --project delegation.enabled true": "For everybody who works on the project.",
        },
        see=("synapse config unset", "synapse config edit"),
    ),
    "synapse config unset": Page(
        arguments={"KEY": _KEY},
        examples={"synapse config unset a2a.flow": "Back to what other layers say."},
        see=("synapse config set",),
    ),
    "synapse config edit": Page(
        examples={"synapse config edit --local": "Your own file of this project, in your editor."},
        see=("synapse config validate",),
    ),
    "synapse config validate": Page(
        arguments={"FILE": "Files to check; those that count here, if it is missing."},
        examples={
            "synapse config validate": "Check all that counts here.",
            "synapse config validate .synapse/settings.json": "Check one file, in CI for instance.",
        },
        see=("synapse config edit",),
    ),
    "synapse config keys": Page(
        examples={"synapse config keys": "Every setting with kind, default and meaning."},
        see=("synapse config show",),
    ),
    "synapse auth": Page(
        examples={
            "synapse auth setup ci": "Make a key for a caller, and demand keys from now on.",
            "synapse auth status": "Whether keys are demanded, and whose there are.",
        },
        see=("synapse config", "synapse webhook"),
    ),
    "synapse auth setup": Page(
        arguments={"NAME": f"{_NAME} `default`, if it is missing."},
        examples={"synapse auth setup ci": "The key is shown this once."},
        see=("synapse auth rotate", "synapse auth status"),
    ),
    "synapse auth rotate": Page(
        arguments={"NAME": f"{_NAME} `default`, if it is missing; `admin` for the admin key."},
        examples={"synapse auth rotate ci --keep-old": "A new key; the old one counts until it is revoked."},
        see=("synapse auth revoke",),
    ),
    "synapse auth revoke": Page(
        arguments={"NAME": _NAME},
        examples={"synapse auth revoke ci --old": "All but the newest key of that caller."},
        see=("synapse auth rotate",),
    ),
    "synapse auth status": Page(
        examples={"synapse auth status --json": "For a program."},
        see=("synapse auth setup",),
    ),
    "synapse completion": Page(
        arguments={"SHELL": "bash, zsh or fish."},
        examples={
            'eval "$(synapse completion bash)"': "For ~/.bashrc.",
            'eval "$(synapse completion zsh)"': "For ~/.zshrc, after compinit.",
            "synapse completion fish | source": "For ~/.config/fish/config.fish.",
        },
    ),
}
