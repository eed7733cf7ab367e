"""`synapse auth` as a process, and a server that follows what it writes."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.a2a.agent import Services
from synapse_tui.a2a.network import bind_loopback
from synapse_tui.a2a.server import AgentServer
from synapse_tui.core.events import EventBus
from synapse_tui.host.following import SettingsFollower
from synapse_tui.host.serving import AccessSettings
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import Connection, http
from tests.integration.shell_kit import Shell

STATUS = "/status"


def own(shell: Shell) -> Path:
    return shell.home / ".synapse/settings.json"


class Server:
    """An agent's server with the rules of a shell's home, and a clock that is set by hand."""

    def __init__(self, shell: Shell) -> None:
        self.now = 0.0
        environ = {"SYNAPSE_ALLOW_LOCALHOST": "false"}
        paths = UserPaths(shell.home)
        settings = load_settings(shell.folder, paths=paths, environ=environ, trusted=lambda path, data: True)
        self.following = SettingsFollower(
            settings,
            project=shell.folder,
            paths=paths,
            environ=environ,
            events=EventBus(),
        )
        reach = AccessSettings(settings, events=EventBus(), look=self.following.look, clock=lambda: self.now)
        self.following.listeners.append(reach.follow)
        sockets = bind_loopback(0)
        self.port = sockets.port
        services = Services(access=reach.access, network=reach.network)
        self.server = AgentServer(FakeAgent(self.port), sockets, services=services)

    async def ask(self, key: str = "", path: str = STATUS) -> int:
        """The status of the answer to a request, as the settings are at that moment."""
        self.now += 1.0
        connection = await Connection.open(self.port)
        headers = {"X-API-Key": key} if key else {}
        status, _ = await connection.ask(http("GET", path, self.port, headers=headers))
        await connection.close()
        return status


@pytest.fixture
async def server(shell: Shell) -> AsyncIterator[Server]:
    made = Server(shell)
    made.following.start()
    await made.server.start()
    yield made
    await made.server.stop()
    await made.following.stop()


def keys_in(out: str) -> dict[str, str]:
    found = json.loads(out)
    return {key["name"]: key["key"] for key in found["keys"]}


async def test_keys_are_made_replaced_and_taken_back(shell: Shell, server: Server) -> None:
    own(shell).parent.mkdir()
    own(shell).write_text('{"tui.layout": "grid"}')
    assert await server.ask() == 200
    made = await shell.run("auth", "setup", "--json")
    assert made.code == 0, made.err
    keys = keys_in(made.out)
    assert set(keys) == {"default", "admin"}
    kept = own(shell).read_text()
    assert not any(key in kept for key in keys.values())
    assert json.loads(kept)["tui.layout"] == "grid"
    assert stat.S_IMODE(own(shell).stat().st_mode) == 0o600
    assert [await server.ask(), await server.ask(keys["default"])] == [401, 200]
    assert [await server.ask(keys["default"], "/outbox"), await server.ask(keys["admin"], "/outbox")] == [
        403,
        200,
    ]

    newer = keys_in((await shell.run("auth", "rotate", "--keep-old", "--json")).out)["default"]
    assert [await server.ask(keys["default"]), await server.ask(newer)] == [200, 200]
    assert json.loads((await shell.run("auth", "revoke", "default", "--old", "--json")).out)["revoked"] == 1
    assert [await server.ask(keys["default"]), await server.ask(newer)] == [401, 200]
    assert (await shell.run("auth", "revoke", "default")).code == 0
    assert await server.ask(newer) == 401

    root = keys_in((await shell.run("auth", "rotate", "admin", "--json")).out)["admin"]
    assert [await server.ask(keys["admin"]), await server.ask(root)] == [401, 200]
    last = await shell.run("auth", "revoke", "admin")
    assert "no keys are left" in last.err
    assert [await server.ask(root), await server.ask()] == [401, 401]


async def test_a_key_gets_its_ceiling_and_keeps_it(shell: Shell) -> None:
    async def ceilings() -> dict[str, int]:
        status = (await shell.run("auth", "status", "--json")).json
        return {key["name"]: key["max_priority"] for key in status["keys"]}  # type: ignore[attr-defined]

    assert (await shell.run("auth", "setup", "ci")).code == 0
    assert (await shell.run("auth", "setup", "boss", "--max-priority", "5")).code == 0
    assert await ceilings() == {"ci": 4, "boss": 5, "admin": 5}
    assert (await shell.run("auth", "rotate", "boss")).code == 0
    assert (await ceilings())["boss"] == 5, "a new key of that name may do what the old one could"
    assert (await shell.run("auth", "rotate", "boss", "--max-priority", "2")).code == 0
    assert (await ceilings())["boss"] == 2
    assert (await shell.run("auth", "setup", "bad", "--max-priority", "6")).code == 2
    refused = await shell.run("auth", "rotate", "admin", "--max-priority", "3")
    assert refused.code == 2
    assert "admin" in refused.err


async def test_a_broken_file_lets_nobody_in(shell: Shell, server: Server) -> None:
    key = keys_in((await shell.run("auth", "setup", "--json")).out)["default"]
    whole = own(shell).read_text()
    own(shell).write_text(whole[:-10])
    assert [await server.ask(key), await server.ask()] == [401, 401]
    told = await shell.run("auth", "status")
    assert "not valid JSON" in told.err
    for words in (["setup", "ci"], ["rotate"], ["revoke", "default"]):
        assert (await shell.run("auth", *words)).code == 2
    own(shell).write_text(whole)
    assert await server.ask(key) == 200


async def test_keys_are_shown_once(shell: Shell) -> None:
    made = await shell.run("auth", "setup", "ci")
    [_, *rows] = made.out.splitlines()
    secrets = dict(row.split() for row in rows)
    assert set(secrets) == {"ci", "admin"}
    assert len(set(secrets.values())) == 2
    assert "$SYNAPSE_API_KEY" in made.err
    told = await shell.run("auth", "status", "--json")
    status = told.json
    assert (status["enabled"], status["allow_localhost"], status["faults"]) == (True, True, [])
    assert [key["name"] for key in status["keys"]] == ["ci", "admin"]  # type: ignore[attr-defined]
    everything = told.out + (await shell.run("auth", "status")).out + (await shell.run("config", "show")).out
    assert not any(secret in everything for secret in secrets.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["setup", "default"], "rotate default"),
        (["setup", "admin"], "not a valid key name"),
        (["setup", "a b"], "not a valid key name"),
        (["setup", "synapse-claude-8100"], "not a valid key name"),
        (["rotate", "nobody"], "admin, default"),
        (["revoke", "nobody"], "admin, default"),
    ],
)
async def test_what_makes_no_sense_changes_nothing(shell: Shell, words: list[str], said: str) -> None:
    await shell.run("auth", "setup")
    before = own(shell).read_bytes()
    result = await shell.run("auth", *words)
    assert (result.code, said in result.err) == (2, True), result.err
    assert own(shell).read_bytes() == before


async def test_an_agent_makes_no_keys(shell: Shell) -> None:
    shell.enter(FakeAgent())
    for words in (["setup"], ["rotate"], ["revoke", "default"]):
        result = await shell.run("auth", *words)
        assert (result.code, "agents cannot" in result.err) == (2, True)
    assert not own(shell).exists()
