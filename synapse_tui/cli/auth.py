"""`synapse auth`: keys for callers of the agents; shown once, stored as hashes in the user's settings."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from synapse_tui.core.errors import ConfigError, InvalidValue
from synapse_tui.core.model import INTERRUPT_PRIORITY
from synapse_tui.settings import load_settings
from synapse_tui.settings.files import SettingsFile, turn_at
from synapse_tui.settings.keys import DEFAULT_CEILING, ApiKey, digest_of, read_keys
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import check_safe, private_folder
from synapse_tui.system.language import tr

from .caller import Caller
from .commands import CommandGroup, json_option
from .output import note, say, show_json, show_table

ADMIN = "admin"
FIRST = "default"
KEYS, ADMIN_KEY = "env.SYNAPSE_API_KEYS", "env.SYNAPSE_ADMIN_KEY"
ENABLED, LOCALHOST = "env.SYNAPSE_AUTH_ENABLED", "env.SYNAPSE_ALLOW_LOCALHOST"
_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key; its secret is shown once and not stored."""

    name: str
    secret: str
    max_priority: int = DEFAULT_CEILING

    @classmethod
    def make(cls, name: str, max_priority: int = DEFAULT_CEILING) -> NewKey:
        return cls(name, f"syn_{secrets.token_urlsafe(_BYTES)}", max_priority)

    @property
    def hashed(self) -> ApiKey:
        return ApiKey(self.name, digest_of(self.secret), self.max_priority)


class KeyFile:
    def __init__(self, caller: Caller) -> None:
        if caller.acting_agent:
            raise InvalidValue(
                f"agents cannot create keys, and this command runs inside {caller.acting_agent}",
                "run it in your own shell",
            )
        self.path = caller.paths.settings
        check_safe(self.path)
        self._file = SettingsFile(self.path)
        content = load_settings(
            caller.paths.synapse, paths=caller.paths, environ={}, trusted=lambda _path, _data: False
        )
        broken = sorted(content.doubtful)
        if broken:
            raise ConfigError(
                f"{self.path}: the value of {broken[0]} cannot be read", "correct it: synapse config edit"
            )
        self.keys = read_keys(content.words(KEYS))
        self.admin_keys = tuple(
            replace(key, name=ADMIN) if key.unnamed else key for key in read_keys(content.words(ADMIN_KEY))
        )
        self.enabled = content.flag(ENABLED)

    @property
    def names(self) -> list[str]:
        return [key.name for key in (*self.admin_keys, *self.keys)]

    @property
    def admins(self) -> list[str]:
        return [key.name for key in self.admin_keys]

    def check_name(self, name: str) -> None:
        try:
            read_keys([f"{name}=key"])
        except ValueError:
            name = ""
        if not name or name == ADMIN:
            raise InvalidValue(
                "that is not a valid key name",
                f"use at most 64 letters, digits, '.', '_' or '-', but not '{ADMIN}' or an agent's id",
            )

    def change(self, name: str, change: Callable[[Sequence[ApiKey]], tuple[ApiKey, ...]]) -> None:
        """Change the keys of a name; raises InvalidValue if there are none."""
        if name not in self.names:
            hint = (
                f"existing: {', '.join(dict.fromkeys(self.names))}" if self.names else "`synapse auth setup`"
            )
            raise InvalidValue(f"no key '{name}' in {self.path}", hint)
        if name in self.admins:
            self.admin_keys = change(self.admin_keys)
        else:
            self.keys = change(self.keys)

    def save(self, *, enable: bool = False) -> None:
        """Write the keys; `enable` makes callers need a key from now on."""
        try:
            private_folder(self.path.parent)
        except OSError as error:
            raise ConfigError(
                f"{self.path.parent} cannot be created: {error.strerror or error}", "check its permissions"
            ) from error
        with turn_at(self.path.parent):
            if SettingsFile(self.path).data != self._file.data:
                raise ConfigError(f"{self.path} was changed by another program just now", "run it again")
            for place, keys in ((KEYS, self.keys), (ADMIN_KEY, self.admin_keys)):
                if keys:
                    self._file.put(place, list(keys))
                else:
                    self._file.remove(place)
            if enable:
                self._file.put(ENABLED, True)
                self.enabled = True
            self._file.save()


_name_argument = click.argument("name", default=FIRST)


def _priority_option(default: int | None, about: str = "") -> Callable[[Any], Any]:
    return click.option(
        "--max-priority",
        type=click.IntRange(1, INTERRUPT_PRIORITY),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=f"Highest priority of its messages, 1 to 5{about}",
    )


@click.group(name="auth", cls=CommandGroup)
def auth_command() -> None:
    """Create, replace and revoke the API keys of other callers.

    NAME may contain letters, digits, `.`, `_` and `-`; default: `default`.

    Examples:
      synapse auth setup ci
      synapse auth status
    """


@auth_command.command(name="setup")
@_name_argument
@_priority_option(DEFAULT_CEILING, "; 5 interrupts agents.")
@json_option
def setup_command(*, name: str, max_priority: int, as_json: bool) -> None:
    """Create a key for the caller NAME, and require keys from now on.

    The first time, it also creates an admin key, which has all your permissions. Keys are shown only once.

    Examples:
      synapse auth setup ci
    """
    file = KeyFile(Caller.of())
    file.check_name(name)
    if name in file.names:
        raise InvalidValue(f"a key '{name}' exists already", f"`synapse auth rotate {name}` replaces it")
    made = [NewKey.make(name, max_priority)]
    file.keys = (*file.keys, made[0].hashed)
    if not file.admin_keys:
        made.append(NewKey.make(ADMIN))
        file.admin_keys = (made[1].hashed,)
    file.save(enable=True)
    _show_made(made, file, as_json=as_json)


@auth_command.command(name="rotate")
@_name_argument
@click.option("--keep-old", is_flag=True, help="The old key stays valid until it is revoked.")
@_priority_option(None, ".  [default: that of the old key]")
@json_option
def rotate_command(*, name: str, keep_old: bool, max_priority: int | None, as_json: bool) -> None:
    """Replace the key NAME, or the `admin` key, with a new one, which is shown only once.

    Examples:
      synapse auth rotate ci --keep-old
    """
    file = KeyFile(Caller.of())
    if max_priority is not None and name in file.admins:
        raise InvalidValue(
            f"the admin key '{name}' may send messages of every priority", "leave --max-priority out"
        )
    before = [key.max_priority for key in file.keys if key.name == name][-1:] or [DEFAULT_CEILING]
    made = NewKey.make(name, max_priority or before[0])
    file.change(name, lambda keys: (*(key for key in keys if keep_old or key.name != name), made.hashed))
    file.save()
    _show_made([made], file, as_json=as_json)


@auth_command.command(name="revoke")
@click.argument("name")
@click.option("--old", is_flag=True, help="Only the older keys of that name.")
@json_option
def revoke_command(*, name: str, old: bool, as_json: bool) -> None:
    """Revoke the keys of NAME.

    Examples:
      synapse auth revoke ci --old
    """
    file = KeyFile(Caller.of())
    before = len(file.names)

    def left(keys: Sequence[ApiKey]) -> tuple[ApiKey, ...]:
        newest = [key for key in keys if key.name == name][-1:]
        return tuple(key for key in keys if key.name != name or (old and key in newest))

    file.change(name, left)
    file.save()
    count = before - len(file.names)
    if as_json:
        show_json({"name": name, "revoked": count, "left": file.names})
    note(f"synapse: keys of '{name}' revoked: {count}")
    if file.enabled and not file.names:
        note(
            "synapse: no keys are left: callers that need one are refused until you run `synapse auth setup`"
        )
    _warn_of_variables()


@auth_command.command(name="status")
@json_option
def status_command(*, as_json: bool) -> None:
    """Show whether keys are required, which exist, and where agents can be reached.

    Examples:
      synapse auth status --json
    """
    status = _status(Caller.of())
    if as_json:
        show_json(status)
        return
    required = "yes" if status["enabled"] else "no"
    say(f"keys are required: {required} ({status['origins']['enabled']})")
    exempt = "yes" if status["allow_localhost"] else "no"
    say(f"the same user on this machine needs no key: {exempt} ({status['origins']['allow_localhost']})")
    say(f"agents listen on: {', '.join(['127.0.0.1', '[::1]', *status['bind']])} ({status['scheme']})")
    if status["keys"]:
        rows = [
            (key["name"], tr("yes") if key["admin"] else "", str(key["max_priority"]), key["hash"])
            for key in status["keys"]
        ]
        show_table(("KEY", "ADMIN", "MAX PRIORITY", "SHA-256"), rows)
    for fault in status["faults"]:
        note(f"synapse: {fault}")


def _status(caller: Caller) -> dict[str, Any]:
    from synapse_tui.a2a.access import AccessRules
    from synapse_tui.a2a.network import Network

    settings = load_settings(
        caller.paths.synapse, paths=caller.paths, environ=os.environ, trusted=lambda _path, _data: False
    )
    rules = AccessRules.of(settings)
    faults = [*map(str, settings.problems), *([rules.fault] if rules.fault else [])]
    try:
        network = Network.of(settings)
        network.check(rules)
    except ConfigError as error:
        network = Network()
        faults.append(str(error))
    keys = [(key, False, key.max_priority) for key in rules.keys]
    keys += [(key, True, INTERRUPT_PRIORITY) for key in rules.admin_keys]
    return {
        "enabled": rules.enabled,
        "allow_localhost": rules.allow_localhost,
        "keys": [
            {"name": key.name, "admin": admin, "max_priority": ceiling, "hash": key.digest[:8]}
            for key, admin, ceiling in keys
        ],
        "bind": list(network.bind),
        "scheme": network.scheme,
        "origins": {
            "enabled": settings.origins[ENABLED],
            "allow_localhost": settings.origins[LOCALHOST],
            "keys": settings.origins[KEYS],
            "admin_keys": settings.origins[ADMIN_KEY],
        },
        "faults": faults,
    }


def _show_made(made: Sequence[NewKey], file: KeyFile, *, as_json: bool) -> None:
    if as_json:
        keys = [{"name": key.name, "key": key.secret, "admin": key.name in file.admins} for key in made]
        show_json({"keys": keys, "file": str(file.path), "enabled": file.enabled})
    else:
        show_table(("NAME", "KEY"), [(key.name, key.secret) for key in made])
    home = Path.home()
    place = f"~/{file.path.relative_to(home)}" if file.path.is_relative_to(home) else file.path
    note(
        f"synapse: save {'it' if len(made) == 1 else 'them'} now: {place} contains only the hash.\n"
        "  Callers send the header X-API-Key, or Authorization: Bearer; `synapse` sends $SYNAPSE_API_KEY.\n"
        "  Running agents apply it within a second."
    )
    if not file.enabled:
        note("synapse: keys are not required: SYNAPSE_AUTH_ENABLED is not set")
    _warn_of_variables()


def _warn_of_variables() -> None:
    # A host has the environment it was started with.
    for key in (ENABLED, KEYS, ADMIN_KEY):
        variable = key.removeprefix("env.")
        if variable in os.environ:
            note(f"synapse: ${variable} is set: agents started with it ignore the file")
