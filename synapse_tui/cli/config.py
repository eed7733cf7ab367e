"""`synapse config`: the settings, where each comes from, and how to change them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from synapse_tui.errors import ConfigError
from synapse_tui.settings import Setting
from synapse_tui.settings.files import Layer, check_place, shown

from .commands import CommandGroup
from .completing import complete_settings, complete_values
from .options import json_option, one_of
from .output import ExitCode, note, note_left_out, show, show_json
from .settings_layers import LAYERS, Layers
from .tables import show_table

_KIND_CELLS = 30
_KEY = click.argument("key", shell_complete=complete_settings)
_layer_options = one_of(
    "layer", *((f"--{name}", name, f"{about.capitalize()}.") for name, about in LAYERS.items())
)
"""The options that name one of the files."""


@click.group(name="config", cls=CommandGroup)
def command() -> None:
    """Show, change and check the settings.

    A value comes from the last of these that gives one: default, ~/.synapse/settings.json,
    .synapse/settings.json of the project, .synapse/settings.local.json, environment variables
    (keys below env).
    """


@command.command(name="show")
@click.argument("keys", nargs=-1, metavar="[KEY]...", shell_complete=complete_settings)
@click.option("--origin", is_flag=True, help="Also where each value comes from.")
@click.option("--set", "only_set", is_flag=True, help="Only what a file or a variable sets.")
@json_option
def show_command(*, keys: tuple[str, ...], origin: bool, only_set: bool, as_json: bool) -> None:
    """Print the settings that hold in this folder, or those of KEY or below it (`tui`)."""
    layers = Layers.here()
    settings = layers.load()
    note_left_out(settings.problems, settings.untrusted)
    wanted = layers.matching(settings, keys)
    if only_set:
        wanted = [key for key in wanted if settings.origins[key] != "default"]
    if as_json:
        data: dict[str, object] = {key: shown(key, settings.values[key]) for key in wanted}
        if origin:
            data = {key: {"value": data[key], "origin": settings.origins[key]} for key in wanted}
        show_json(data)
        return
    rows = [(key, _text(shown(key, settings.values[key])), settings.origins[key]) for key in wanted]
    for row in [] if origin else rows:
        show(f"{row[0]} = {row[1]}")
    if origin and rows:
        show_table(("KEY", "VALUE", "ORIGIN"), rows)


@command.command(name="get")
@_KEY
@json_option
def get_command(*, key: str, as_json: bool) -> None:
    """Print the value of one setting."""
    layers = Layers.here()
    settings = layers.load()
    setting = layers.setting(key)
    value = shown(setting.key, settings.values.get(setting.key, setting.default))
    if as_json:
        show_json(
            {"key": setting.key, "value": value, "origin": settings.origins.get(setting.key, "default")}
        )
    else:
        show(value if isinstance(value, str) else _text(value))


@command.command(name="keys")
@json_option
def keys_command(*, as_json: bool) -> None:
    """List all settings with their kinds, defaults and meanings."""
    from synapse_tui.settings import SCHEMA

    if as_json:
        about = [
            {
                "key": setting.key,
                "kind": setting.kind,
                "default": setting.written(setting.default),
                "choices": list(setting.choices),
                "project": setting.project,
                "help": setting.help,
            }
            for setting in SCHEMA.values()
        ]
        show_json(about)
        return
    rows = [_row(setting) for setting in SCHEMA.values()]
    show_table(("KEY", "KIND", "DEFAULT", "MEANING"), rows)


def _row(setting: Setting) -> tuple[str, ...]:
    """A setting in a table; many choices are told behind its meaning."""
    default = _text(setting.written(setting.default))
    choices = "|".join(setting.choices)
    if len(choices) <= _KIND_CELLS:
        return (setting.key, choices or setting.kind, default, setting.help)
    return (setting.key, "choice", default, f"{setting.help} ({', '.join(setting.choices)})")


@command.command(name="set", context_settings={"ignore_unknown_options": True})
@_KEY
@click.argument("value", nargs=-1, required=True, shell_complete=complete_values)
@_layer_options
def set_command(*, key: str, value: tuple[str, ...], layer: Layer | None) -> None:
    """Set KEY to VALUE in one of the files, by default your own.

    A list takes several VALUEs, or one that is JSON; a table one that is JSON.
    """
    from synapse_tui.settings.files import value_of

    layers = Layers.here()
    setting = layers.setting(key)
    name: Layer = layer or "user"
    check_place(setting, name)
    converted = value_of(setting, value)
    path = layers.change(name, lambda file: file.put(setting.key, converted))
    _narrate(layers, setting.key, path, converted)


@command.command(name="unset")
@_KEY
@_layer_options
def unset_command(*, key: str, layer: Layer | None) -> None:
    """Take KEY out of one of the files, by default your own; also one that is no setting (any more)."""
    layers = Layers.here()
    name: Layer = layer or "user"
    removed: list[bool] = []
    path = layers.change(name, lambda file: removed.append(file.remove(key)))
    if not removed[0]:
        raise ConfigError(f"{path} does not set '{key}'", "synapse config show --origin tells what does")
    note(f"synapse: '{key}' was taken out of {path}")


@command.command(name="edit")
@_layer_options
def edit_command(*, layer: Layer | None) -> None:
    """Open one of the files, by default your own, in $VISUAL or $EDITOR; it is checked before it counts."""
    from .settings_editor import edit

    edit(Layers.here(), layer or "user")


@command.command(name="validate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False), metavar="[FILE]...")
@json_option
@click.pass_context
def validate_command(context: click.Context, *, files: tuple[Path, ...], as_json: bool) -> None:
    """Check the files that count here, trusted or not, or each FILE.

    The exit code is 2 when something is wrong.
    """
    layers = Layers.here()
    problems = layers.problems(files)
    if as_json:
        show_json([{"message": problem.message, "hint": problem.hint} for problem in problems])
    else:
        for problem in problems:
            show(f"{problem.message}" + (f"; {problem.hint}" if problem.hint else ""))
        note("synapse: " + ("nothing is wrong" if not problems else f"{len(problems)} to correct"))
    if problems:
        context.exit(ExitCode.USAGE.value)


def _narrate(layers: Layers, key: str, path: Path, value: object) -> None:
    """Say what was set, and when it does not count, why."""
    note(f"synapse: {key} = {_text(shown(key, value))} in {path}")
    if layers.setting(key).restart:
        note("synapse: running sessions live by it when they are stopped and started again")
    settings = layers.load()
    if path in settings.untrusted:
        note(f"synapse: it counts once {path} has been trusted: synapse trust")
    elif settings.origins.get(key) != str(path):
        note(f"synapse: it does not count here: {settings.origins[key]} sets it to something else")


def _text(value: object) -> str:
    """A value in one line; texts as they are."""
    if isinstance(value, str):
        return value if value and value == value.strip() and value.isprintable() else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)
