"""`synapse config`: the settings, where each comes from, and how to change them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click

from synapse_tui.core.errors import ConfigError
from synapse_tui.settings import Setting, Settings, load_settings
from synapse_tui.settings.files import Layer, SettingsFile, SettingsFiles, check_place, in_order, parse, shown
from synapse_tui.settings.layers import check_file
from synapse_tui.system.files import read_advice, read_regular
from synapse_tui.system.language import tr
from synapse_tui.system.paths import find_project
from synapse_tui.system.trust import TrustStore

from .caller import Caller
from .commands import CommandGroup, json_option, one_of
from .completion import complete_settings, complete_values
from .editor import edited
from .group import profile_names
from .output import ExitCode, note, note_left_out, show, show_json, show_table

LAYERS: Mapping[Layer, str] = MappingProxyType(
    {
        "user": "your own file, ~/.synapse/settings.json (the default)",
        "project": "the project's file, .synapse/settings.json, shared by everyone who works on it",
        "local": "your own file for this project, .synapse/settings.local.json, ignored by git",
    }
)
_EMPTY = b"{\n}\n"
_KIND_CELLS = 30
_KEY = click.argument("key", shell_complete=complete_settings)
_layer_options = one_of(
    "layer", *((f"--{name}", name, f"{about.capitalize()}.") for name, about in LAYERS.items())
)


class Layers(SettingsFiles):
    """The settings files that apply to a folder, as the command line reads and changes them."""

    def __init__(self, caller: Caller, project: Path) -> None:
        super().__init__(
            project,
            paths=caller.paths,
            environ=os.environ,
            trust=TrustStore(caller.paths.trusted),
            types=profile_names,
            may_trust=not caller.acting_agent,
        )

    @classmethod
    def here(cls) -> Layers:
        caller = Caller.of()
        return cls(caller, find_project(caller.folder))

    def matching(self, settings: Settings, keys: Sequence[str]) -> list[str]:
        """Return the keys at or below those given, in the order of the schema; all if none are given."""
        known = in_order(settings.values)
        if not keys:
            return known
        found: list[str] = []
        for wanted in keys:
            below = [key for key in known if key.startswith(f"{wanted.removesuffix('.')}.")]
            found += below or [self.setting(wanted).key]
        return [key for key in dict.fromkeys(found) if key in settings.values]

    def write(self, layer: Layer, change: Callable[[SettingsFile], object]) -> Path:
        """Change the file of a layer and return its path; a trusted or new file is trusted afterwards."""
        written = self.change(layer, change)
        if written.trouble:
            note(f"synapse: {written.trouble}")
        return written.path

    def problems(self, files: Sequence[Path]) -> list[ConfigError]:
        types = profile_names()
        if files:
            own = self.paths.settings.resolve()
            return [
                problem
                for path in files
                for problem in check_file(path, own=path.resolve() == own, types=types)
            ]
        settings = load_settings(
            self.project, paths=self.paths, environ=os.environ, trusted=lambda _path, _data: True, types=types
        )
        return list(settings.problems)


@click.group(name="config", cls=CommandGroup)
def config_command() -> None:
    """Show, change and check the settings.

    A value comes from the last of these that has one: default, ~/.synapse/settings.json,
    .synapse/settings.json of the project, .synapse/settings.local.json, environment variables
    (keys below env). KEY is a setting such as a2a.flow; `synapse config keys` lists all.

    Examples:
      synapse config show --origin
      synapse config set a2a.flow oneway
    """


@config_command.command(name="show")
@click.argument("keys", nargs=-1, metavar="[KEY]...", shell_complete=complete_settings)
@click.option("--origin", is_flag=True, help="Also show where each value comes from.")
@click.option("--set", "only_set", is_flag=True, help="Only values set by a file or a variable.")
@json_option
def show_command(*, keys: tuple[str, ...], origin: bool, only_set: bool, as_json: bool) -> None:
    """Print the settings in effect in this folder, or only KEY, or a group of keys such as `tui`.

    Examples:
      synapse config show tui
      synapse config show --set --origin
    """
    layers = Layers.here()
    settings = layers.load()
    note_left_out(settings.problems, settings.untrusted)
    wanted = layers.matching(settings, keys)
    if only_set:
        wanted = [key for key in wanted if settings.origins[key] != "default"]
    values = {key: shown(key, settings.values[key]) for key in wanted}
    if as_json and origin:
        show_json({key: {"value": values[key], "origin": settings.origins[key]} for key in wanted})
    elif as_json:
        show_json(values)
    elif not origin:
        for key in wanted:
            show(f"{key} = {_text(values[key])}")
    elif wanted:
        rows = [(key, _text(values[key]), settings.origins[key]) for key in wanted]
        show_table(("KEY", "VALUE", "ORIGIN"), rows)


@config_command.command(name="get")
@_KEY
@json_option
def get_command(*, key: str, as_json: bool) -> None:
    """Print the value of one setting.

    Examples:
      synapse config get a2a.flow
    """
    layers = Layers.here()
    settings = layers.load()
    note_left_out(settings.problems, settings.untrusted)
    setting = layers.setting(key)
    value = shown(setting.key, settings.values.get(setting.key, setting.default))
    if as_json:
        origin = settings.origins.get(setting.key, "default")
        show_json({"key": setting.key, "value": value, "origin": origin})
    else:
        show(value if isinstance(value, str) else _text(value))


@config_command.command(name="keys")
@json_option
def keys_command(*, as_json: bool) -> None:
    """List all settings with their kinds, defaults and meanings.

    Examples:
      synapse config keys
    """
    from synapse_tui.settings import SCHEMA

    if as_json:
        about = [
            {
                "key": setting.key,
                "kind": setting.kind,
                "default": setting.written(setting.default),
                "choices": list(setting.choices),
                "project": setting.project,
                "area": setting.area,
                "sentence": setting.sentence,
                "help": setting.help,
            }
            for setting in SCHEMA.values()
        ]
        show_json(about)
        return
    show_table(("KEY", "KIND", "DEFAULT", "MEANING"), [_row(setting) for setting in SCHEMA.values()])


def _row(setting: Setting) -> tuple[str, ...]:
    default = _text(setting.written(setting.default))
    choices = "|".join(setting.choices)
    if len(choices) <= _KIND_CELLS:
        return (setting.key, choices or setting.kind, default, setting.help)
    return (setting.key, "choice", default, f"{setting.help} ({', '.join(setting.choices)})")


@config_command.command(name="set", context_settings={"ignore_unknown_options": True})
@_KEY
@click.argument("value", nargs=-1, required=True, shell_complete=complete_values)
@_layer_options
def set_command(*, key: str, value: tuple[str, ...], layer: Layer | None) -> None:
    """Set KEY to VALUE in one of the files, by default your own.

    A list takes several VALUEs or one JSON array; a table takes one JSON object.

    Examples:
      synapse config set a2a.flow oneway
      synapse config set tui.agents claude codex:tester@backend
      synapse config set --project delegation.enabled true
    """
    from synapse_tui.settings.files import value_of

    layers = Layers.here()
    setting = layers.setting(key)
    name: Layer = layer or "user"
    check_place(setting, name)
    converted = value_of(setting, value)
    path = layers.write(name, lambda file: file.put(setting.key, converted))
    note(f"synapse: {setting.key} = {_text(shown(setting.key, converted))} in {path}")
    if setting.restart:
        note("synapse: it takes effect in a session when that is stopped and started again")
    settings = layers.load()
    if path in settings.untrusted:
        note(f"synapse: it has no effect until you trust {path}: synapse trust")
    elif settings.origins.get(setting.key) != str(path):
        note(f"synapse: it has no effect here: {settings.origins[setting.key]} overrides it")


@config_command.command(name="unset")
@_KEY
@_layer_options
def unset_command(*, key: str, layer: Layer | None) -> None:
    """Remove KEY from one of the files, by default your own; it need not be a known setting.

    Examples:
      synapse config unset a2a.flow
    """
    layers = Layers.here()
    removed: list[bool] = []
    path = layers.write(layer or "user", lambda file: removed.append(file.remove(key)))
    if not removed[0]:
        raise ConfigError(f"{path} does not set '{key}'", "synapse config show --origin shows what does")
    note(f"synapse: '{key}' was removed from {path}")


@config_command.command(name="edit")
@_layer_options
def edit_command(*, layer: Layer | None) -> None:
    """Open one of the files, by default your own, in $VISUAL or $EDITOR; it is checked before it is saved.

    Examples:
      synapse config edit --local
    """
    edit(Layers.here(), layer or "user")


@config_command.command(name="validate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False), metavar="[FILE]...")
@json_option
@click.pass_context
def validate_command(context: click.Context, *, files: tuple[Path, ...], as_json: bool) -> None:
    """Check the settings files of this folder, trusted or not, or each FILE.

    The exit code is 2 if there are problems.

    Examples:
      synapse config validate
      synapse config validate .synapse/settings.json
    """
    problems = Layers.here().problems(files)
    if as_json:
        show_json([{"message": problem.message, "hint": problem.hint} for problem in problems])
    else:
        for problem in problems:
            show(tr(problem.message) + (f"; {tr(problem.hint)}" if problem.hint else ""))
        note("synapse: " + (f"problems: {len(problems)}" if problems else "no problems"))
    if problems:
        context.exit(ExitCode.USAGE.value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value if value and value == value.strip() and value.isprintable() else json.dumps(value)
    return json.dumps(value, ensure_ascii=False)


def edit(layers: Layers, layer: Layer, environ: Mapping[str, str] = os.environ) -> None:
    path = layers.path(layer)
    layers.check_may_change(layer)
    try:
        before = read_regular(path)
    except FileNotFoundError:
        before = b""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", read_advice(error)) from error
    data = edited(
        path,
        before or _EMPTY,
        lambda copy, data: _faults(copy, data, own=layer == "user"),
        again="synapse config edit",
        environ=environ,
    )
    if data is None:
        return
    layers.write(layer, lambda file: _replace(file, before, data))
    note(f"synapse: {path} was changed")


def _replace(file: SettingsFile, before: bytes, data: bytes) -> None:
    import tempfile

    if file.data == before:
        file.replace(data)
        return
    descriptor, kept = tempfile.mkstemp(prefix="synapse-", suffix=".json")
    with os.fdopen(descriptor, "wb") as copy:
        copy.write(data)
    raise ConfigError(
        f"{file.path} was changed by another program in the meantime and is not overwritten",
        f"your edit is in {kept}",
    )


def _faults(copy: Path, data: bytes, *, own: bool) -> list[ConfigError]:
    try:
        parse(copy, data)
    except ConfigError as error:
        return [error]
    return check_file(copy, own=own, types=profile_names())
