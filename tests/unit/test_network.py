"""Where and how agents are served: what settings may say, and what they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from synapse_tui.a2a.access import Access, AccessRules
from synapse_tui.a2a.agent import NO_SERVICES, Services
from synapse_tui.a2a.card_security import CardShape, card_security
from synapse_tui.a2a.guard import WebGuard
from synapse_tui.a2a.network import Network
from synapse_tui.a2a.problems import HttpProblem
from synapse_tui.errors import ConfigError
from synapse_tui.events import EventBus, Notice
from synapse_tui.host.serving import Reach
from synapse_tui.paths import UserPaths
from synapse_tui.settings import Settings, load_settings
from synapse_tui.settings.files import SettingsFile

KEYS = {"env.SYNAPSE_AUTH_ENABLED": True, "env.SYNAPSE_API_KEYS": "ci=secret"}


@pytest.fixture
def paths(tmp_path: Path) -> UserPaths:
    found = UserPaths(tmp_path)
    found.synapse.mkdir()
    return found


def set_to(paths: UserPaths, values: Mapping[str, object]) -> Settings:
    file = SettingsFile(paths.synapse / "settings.json")
    for key, value in values.items():
        file.put(key, value)
    file.save()
    return load_settings(paths.home / "nowhere", paths=paths, environ={}, trusted=lambda path, data: False)


def reach_of(paths: UserPaths, values: dict[str, object]) -> tuple[Reach, list[Notice]]:
    events, told = EventBus(), list[Notice]()
    events.subscribe(lambda event: told.append(event) if isinstance(event, Notice) else None)
    return Reach(set_to(paths, values), events=events), told


def test_nobody_else_reaches_agents_where_nothing_is_set(paths: UserPaths) -> None:
    reach, told = reach_of(paths, {})
    reach.check()
    reach.tell()
    assert (reach.network, told) == (Network(), [])
    assert reach.network.endpoint(8100) == "http://127.0.0.1:8100"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5", "2001:db8::5"])
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "SYNAPSE_AUTH_ENABLED is not set"),
        ({"env.SYNAPSE_API_KEYS": "ci=secret"}, "SYNAPSE_AUTH_ENABLED is not set"),
        ({"env.SYNAPSE_AUTH_ENABLED": True}, "none is set"),
        ({**KEYS, "env.SYNAPSE_API_KEYS": "a,,b"}, "SYNAPSE_API_KEYS cannot be read"),
        (KEYS, ""),
    ],
)
def test_other_machines_need_keys(paths: UserPaths, address: str, keys: dict[str, object], said: str) -> None:
    reach, told = reach_of(paths, {"a2a.bind": [address], **keys})
    if said:
        with pytest.raises(ConfigError, match=said) as caught:
            reach.check()
        assert "synapse auth setup" in caught.value.hint
    else:
        reach.check()
        reach.tell()
        reach.tell()
        [notice] = told
        assert address in notice.text
        assert "clear text" in notice.text


def test_another_address_of_the_loopback_interface_is_no_other_machine(paths: UserPaths) -> None:
    reach, told = reach_of(paths, {"a2a.bind": "127.0.0.2"})
    reach.check()
    reach.tell()
    assert told == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"a2a.bind": "eth0"}, "'eth0' is no address"),
        ({"a2a.bind": "192.168.1.5:8100"}, "is no address"),
        ({"a2a.allowed_hosts": "https://agents.example.com"}, "cannot be one"),
        ({"a2a.allowed_hosts": "*"}, "cannot be one"),
        ({"a2a.allowed_origins": "app.example.com"}, "cannot be one"),
        ({"a2a.allowed_origins": "null"}, "cannot be one"),
        ({"a2a.tls_cert": "/c.pem"}, "a2a.tls_key is not set"),
        ({"a2a.tls_key": "/k.pem"}, "a2a.tls_cert is not set"),
        ({"a2a.tls_key": "/k.pem", "a2a.tls_cert": "/c.pem"}, "cannot be used"),
    ],
)
def test_what_cannot_be_served_is_told_before_agents_start(
    paths: UserPaths, values: dict[str, object], said: str
) -> None:
    reach, _ = reach_of(paths, values)
    with pytest.raises(ConfigError, match=said):
        reach.check()


@pytest.mark.parametrize(
    ("host", "served"),
    [
        ("agents.example.com", True),
        ("agents.example.com:8100", True),
        ("AGENTS.example.com:8100", True),
        ("agents.example.com:9000", False),
        ("proxy.example.com:9000", True),
        ("proxy.example.com", False),
        ("sub.agents.example.com", False),
        ("192.168.1.5:8100", True),
        ("192.168.1.6:8100", False),
        ("[2001:db8::5]:8100", False),
    ],
)
def test_further_names(paths: UserPaths, host: str, served: bool) -> None:
    names = {"a2a.allowed_hosts": "Agents.example.com, proxy.example.com:9000"}
    guard = WebGuard(8100, Network.of(set_to(paths, names)))
    try:
        near = guard.check({"host": [host]}, ("192.168.1.5", 8100))
    except HttpProblem:
        assert not served
    else:
        assert served
        assert not near


@pytest.mark.parametrize(
    ("headers", "served"),
    [
        ({"origin": ["https://app.example.com"], "sec-fetch-site": ["cross-site"]}, True),
        ({"origin": ["https://app.example.com", "https://evil.example"]}, False),
        ({"origin": ["https://app.example.com.evil.example"]}, False),
        ({"origin": ["http://app.example.com"]}, False),
        ({"sec-fetch-site": ["cross-site"]}, False),
    ],
)
def test_pages_that_may_call(paths: UserPaths, headers: dict[str, list[str]], served: bool) -> None:
    network = Network.of(set_to(paths, {"a2a.allowed_origins": ["https://app.example.com"]}))
    try:
        assert WebGuard(8100, network).check({"host": ["127.0.0.1:8100"], **headers}, ("127.0.0.1", 8100))
    except HttpProblem:
        assert not served
    else:
        assert served


@pytest.mark.parametrize("shape", ["1.0", "0.3", "dual"])
def test_a_card_names_what_is_demanded(shape: CardShape) -> None:
    from a2a.client.card_resolver import parse_agent_card

    assert card_security(NO_SERVICES, shape) == {}
    assert card_security(Services(access=Access(AccessRules())), shape) == {}
    fields = card_security(Services(access=Access(AccessRules(enabled=True))), shape)
    assert ("security" in fields, "securityRequirements" in fields) == (shape != "1.0", shape != "0.3")
    card = parse_agent_card(fields)
    assert card.security_schemes["apiKey"].api_key_security_scheme.name == "X-API-Key"
    assert card.security_schemes["apiKey"].api_key_security_scheme.location == "header"
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "Bearer"
    assert [set(each.schemes) for each in card.security_requirements] == [{"apiKey"}, {"bearer"}]
