"""Hosts whose agents are served on other addresses, or over https."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from synapse_tui.a2a.access import REFRESH, RequestOrigin
from synapse_tui.a2a.problems import HttpProblem
from synapse_tui.a2a.socket_owner import Owner
from synapse_tui.core.errors import ConfigError
from synapse_tui.core.events import Event, EventBus, Notice
from synapse_tui.core.model import AgentSpec, TaskState
from synapse_tui.host.following import SettingsFollower
from synapse_tui.host.serving import AccessSettings
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths
from tests.integration.certificates import make_certificate
from tests.integration.host_kit import make_host, open_published, records, running
from tests.waiting import until


def set_to(tmp_path: Path, **values: object) -> None:
    file = tmp_path / "home/.synapse/settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({key.replace("__", "."): value for key, value in values.items()}))


async def test_no_agent_is_opened_for_other_machines_without_keys(tmp_path: Path) -> None:
    set_to(tmp_path, a2a__bind="0.0.0.0")
    async with running(make_host(tmp_path)) as host:
        with pytest.raises(ConfigError, match=r"0\.0\.0\.0 \(a2a\.bind\) without keys"):
            await host.open(AgentSpec("dummy"), columns=80, lines=24)
        assert not host.agents
        assert not records(host)


async def test_with_keys_they_are_and_the_person_is_told(tmp_path: Path) -> None:
    set_to(tmp_path, a2a__bind="0.0.0.0", env__SYNAPSE_AUTH_ENABLED=True, env__SYNAPSE_API_KEYS="ci=secret")
    host = make_host(tmp_path)
    heard: list[Event] = []
    host.events.subscribe(heard.append)
    async with running(host):
        alice, _ = await open_published(host, "alice", "bob")
        [receipt] = await host.send("bob", "hello", sender=alice.agent_id)
        assert receipt.task_id
        assert records(host)[alice.agent_id]["endpoint"] == f"http://127.0.0.1:{alice.port}"
    [told] = [event for event in heard if isinstance(event, Notice) and event.level == "warning"]
    assert "other machines can reach the agents" in told.text


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("left", ["", "[]", '{"tui.layout": "gr'])
async def test_a_file_that_lost_its_end_takes_no_key_away(tmp_path: Path, left: str, native: bool) -> None:
    """Keys are demanded until a file that can be read says otherwise, or is removed by hand."""
    keys = {"SYNAPSE_AUTH_ENABLED": True, "SYNAPSE_API_KEYS": "ci=secret", "SYNAPSE_ALLOW_LOCALHOST": False}
    set_to(tmp_path, env=keys)
    file = tmp_path / "home/.synapse/settings.json"
    whole = file.read_text()
    now = 0.0
    paths = UserPaths(tmp_path / "home")
    settings = load_settings(tmp_path, paths=paths, environ={}, trusted=lambda _path, _data: False)
    following = SettingsFollower(
        settings,
        project=tmp_path,
        paths=paths,
        environ={},
        events=EventBus(),
        native=native,
    )
    reach = AccessSettings(settings, events=EventBus(), look=following.look, clock=lambda: now)
    following.listeners.append(reach.follow)
    following.start()
    access = reach.access
    stranger = RequestOrigin(near=True, owner=Owner.OURS)

    file.write_text(left)
    now += REFRESH
    await access.refresh()
    with pytest.raises(HttpProblem, match="cannot be read"):
        access.judge(stranger)

    file.write_text(whole + " ")
    now += REFRESH
    await access.refresh()
    assert access.judge(replace(stranger, key="secret")).name == "ci"
    file.unlink()
    now += REFRESH
    await access.refresh()
    assert access.judge(stranger).admin
    await following.stop()


async def test_agents_message_one_another_over_https(tmp_path: Path) -> None:
    files = make_certificate(tmp_path, "agents.example.com")
    set_to(tmp_path, a2a__tls_cert=str(files.cert), a2a__tls_key=str(files.key))
    async with running(make_host(tmp_path)) as host:
        alice, bob = await open_published(host, "alice", "bob")
        assert bob.endpoint == bob.environ["SYNAPSE_ENDPOINT"] == f"https://127.0.0.1:{bob.port}"
        assert records(host)[bob.agent_id]["endpoint"] == bob.endpoint
        [receipt] = await host.send("bob", "hello", sender=alice.agent_id)
        await until(lambda: bob.tasks.get(receipt.task_id).state is TaskState.COMPLETED)
        assert bob.tasks.get(receipt.task_id).sender.verified
