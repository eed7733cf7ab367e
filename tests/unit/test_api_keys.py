"""Keys as settings write them, and who is let in by them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from synapse_tui.a2a.access import (
    FAILURES,
    LOGGED,
    Access,
    AccessRules,
    Principal,
    RequestOrigin,
    TokenBuckets,
)
from synapse_tui.a2a.agent import NO_SERVICES, Services
from synapse_tui.a2a.guard import WebGuard
from synapse_tui.a2a.network import Network, TlsFiles
from synapse_tui.a2a.problems import HttpProblem
from synapse_tui.a2a.protocol.cards import CardShape, card_security
from synapse_tui.a2a.socket_owner import Owner
from synapse_tui.core.errors import ConfigError
from synapse_tui.core.events import EventBus, Notice
from synapse_tui.host.serving import AccessSettings
from synapse_tui.settings import Settings, load_settings
from synapse_tui.settings.files import SettingsFile
from synapse_tui.settings.keys import digest_of, read_keys
from synapse_tui.system.paths import UserPaths
from tests.unit.clock import Clock

SECRET = "correct-horse-battery-staple"
HASHED = f"sha256:{digest_of(SECRET)}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("  ", []),
        (f"ci={SECRET}", ["ci"]),
        (f"ci={HASHED}, bob={HASHED.upper().replace('SHA256', 'sha256')}", ["ci", "bob"]),
        (SECRET, [f"key-{digest_of(SECRET)[:8]}"]),
        (HASHED, [f"key-{digest_of(SECRET)[:8]}"]),
    ],
)
def test_keys_have_names(text: str, names: list[str]) -> None:
    keys = read_keys(text)
    assert [key.name for key in keys] == names
    assert all(key.fits(digest_of(SECRET)) for key in keys)


@pytest.mark.parametrize(
    ("text", "ceiling"),
    [(f"ci={SECRET}", 4), (HASHED, 4), (f"ci@5={HASHED}", 5), (f"ci@1={SECRET}", 1), (f"ci@4={SECRET}", 4)],
)
def test_a_key_has_a_ceiling_of_priority(text: str, ceiling: int) -> None:
    [key] = read_keys(text)
    assert key.max_priority == ceiling
    assert read_keys([str(key)]) == (key,)


def test_an_admin_key_has_every_priority() -> None:
    access = Access(rules(admin="root-key"))
    assert access.judge(showing(REMOTE, "root-key")).max_priority == 5
    assert access.judge(showing(REMOTE, SECRET)).max_priority == 4


def test_padding_of_base64_is_part_of_a_key() -> None:
    [key] = read_keys("Zm9vYmFyYmF6cXV4Zm9vYg==")
    assert key.fits(digest_of("Zm9vYmFyYmF6cXV4Zm9vYg=="))


def test_a_key_is_written_without_its_secret_and_read_again() -> None:
    [key] = read_keys([f"ci={SECRET}"])
    assert SECRET not in str(key)
    assert SECRET not in repr(key)
    assert read_keys([str(key)]) == (key,)


@pytest.mark.parametrize(
    "text",
    [
        "a,,b",
        "ci=sha256:123",
        "sha256:xyz",
        "sha256:",
        "ci=a b",
        "two words",
        "b@d=key",
        "ci@0=key",
        "ci@6=key",
        "ci@=key",
        "@5=key",
        "user=key",
        "synapse-claude-8100=key",
        "ci=" + "k" * 513,
        "schlüssel",
        7,
        [7],
    ],
)
def test_a_broken_list_is_refused_without_telling_a_key(text: object) -> None:
    with pytest.raises(ValueError, match=r"key|must be") as caught:
        read_keys(text)
    assert "sha256:xyz" not in str(caught.value)


def rules(
    *, enabled: bool = True, keys: str = f"ci={SECRET}", admin: str = "", localhost: bool = True
) -> AccessRules:
    variables = {
        "SYNAPSE_AUTH_ENABLED": str(enabled),
        "SYNAPSE_API_KEYS": keys,
        "SYNAPSE_ADMIN_KEY": admin,
        "SYNAPSE_ALLOW_LOCALHOST": str(localhost),
    }
    nowhere = Path("/nonexistent")
    return AccessRules.of(
        load_settings(nowhere, paths=UserPaths(nowhere), environ=variables, trusted=lambda path, data: False)
    )


OURS = RequestOrigin(near=True, owner=Owner.OURS, address="127.0.0.1")
UNKNOWN = RequestOrigin(near=True, owner=Owner.UNKNOWN, address="127.0.0.1")
FOREIGN = RequestOrigin(near=True, owner=Owner.OTHER, address="127.0.0.1")
FORWARDED = RequestOrigin(near=False, owner=Owner.OURS, address="127.0.0.1")
REMOTE = RequestOrigin(near=False, owner=Owner.OTHER, address="192.0.2.7")
PERSON = Principal("", admin=True, verified=True, local=True)
CI = Principal("ci", verified=True, max_priority=4)


def showing(caller: RequestOrigin, key: str | None) -> RequestOrigin:
    return RequestOrigin(near=caller.near, owner=caller.owner, key=key, address=caller.address)


def judged(found: AccessRules, caller: RequestOrigin) -> Principal | str:
    problem: HttpProblem
    try:
        return Access(found).judge(caller)
    except HttpProblem as error:
        problem = error
    assert problem.hint
    assert (problem.status == 401) == ("www-authenticate" in problem.headers)
    return f"{problem.status} {problem.code}"


@pytest.mark.parametrize(
    ("caller", "key", "result"),
    [
        (OURS, None, PERSON),
        (UNKNOWN, None, Principal("", admin=True, verified=False, local=True)),
        (FOREIGN, None, "403 foreign_user"),
        (FORWARDED, None, "403 forwarded"),
        (OURS, "for another server", PERSON),
        (FOREIGN, "guess", "401 invalid_key"),
    ],
)
def test_without_keys_only_the_persons_processes_are_served(
    caller: RequestOrigin, key: str | None, result: object
) -> None:
    assert judged(AccessRules(), showing(caller, key)) == result


@pytest.mark.parametrize(
    ("caller", "key", "result"),
    [
        (OURS, None, PERSON),
        (FOREIGN, None, "401 key_required"),
        (FOREIGN, SECRET, CI),
        (REMOTE, SECRET, CI),
        (REMOTE, SECRET + "x", "401 invalid_key"),
    ],
)
def test_keys_let_others_in_also_where_they_are_not_demanded(
    caller: RequestOrigin, key: str | None, result: object
) -> None:
    assert judged(rules(enabled=False), showing(caller, key)) == result


@pytest.mark.parametrize(
    ("caller", "key", "result"),
    [
        (OURS, None, PERSON),
        (UNKNOWN, None, "401 key_required"),
        (FOREIGN, None, "401 key_required"),
        (FORWARDED, None, "401 key_required"),
        (REMOTE, None, "401 key_required"),
        (OURS, "wrong", "401 invalid_key"),
        (OURS, SECRET, Principal("ci", admin=True, verified=True, max_priority=4)),
        (FORWARDED, SECRET, CI),
        (UNKNOWN, SECRET, CI),
        (REMOTE, "", "401 invalid_key"),
        (REMOTE, HASHED, "401 invalid_key"),
        (REMOTE, digest_of(SECRET), "401 invalid_key"),
        (REMOTE, "root-key", Principal("admin", admin=True, verified=True)),
    ],
)
def test_with_keys_demanded_the_person_may_still_go_without(
    caller: RequestOrigin, key: str | None, result: object
) -> None:
    assert judged(rules(admin="root-key"), showing(caller, key)) == result


@pytest.mark.parametrize(
    ("caller", "key", "result"),
    [
        (OURS, None, "401 key_required"),
        (FOREIGN, None, "401 key_required"),
        (OURS, SECRET, CI),
    ],
)
def test_without_the_exception_everyone_needs_a_key(
    caller: RequestOrigin, key: str | None, result: object
) -> None:
    assert judged(rules(localhost=False), showing(caller, key)) == result


@pytest.mark.parametrize("caller", [OURS, FOREIGN, REMOTE])
@pytest.mark.parametrize("key", [None, SECRET])
@pytest.mark.parametrize(
    "broken", [rules(keys=""), rules(keys="admin=x1", admin="x2"), AccessRules(enabled=True, fault="broken")]
)
def test_what_is_broken_lets_nobody_in(broken: AccessRules, caller: RequestOrigin, key: str | None) -> None:
    assert str(judged(broken, showing(caller, key))).startswith("401 ")


def test_keys_of_one_name_are_one_caller() -> None:
    """A key can be replaced while the old one is still in use."""
    both = rules(keys="ci=old-key,ci=new-key")
    assert judged(both, showing(REMOTE, "old-key")) == judged(both, showing(REMOTE, "new-key")) == CI


def test_keys_cannot_be_guessed_fast() -> None:
    clock = Clock()
    access = Access(rules(), clock=clock)

    def tried(key: str, address: str = "192.0.2.7") -> str:
        try:
            return access.judge(RequestOrigin(near=False, owner=Owner.OTHER, key=key, address=address)).name
        except HttpProblem as problem:
            return problem.code

    assert {tried(f"guess {at}") for at in range(FAILURES)} == {"invalid_key"}
    assert tried("guess") == "too_many_requests"
    assert tried(SECRET) == "ci", "wrong keys of others do not keep a right one out"
    assert tried("guess") == "too_many_requests"
    assert tried("guess", "192.0.2.8") == "invalid_key"
    clock.now += 60 / FAILURES
    assert [tried("guess"), tried("guess")] == ["invalid_key", "too_many_requests"]


def test_an_ipv6_caller_is_its_network() -> None:
    access = Access(rules(), clock=Clock())
    codes = []
    for at in range(FAILURES + 1):
        with pytest.raises(HttpProblem) as caught:
            access.judge(RequestOrigin(near=False, owner=Owner.OTHER, key="x", address=f"2001:db8::{at:x}"))
        codes.append(caught.value.code)
    assert codes[-1] == "too_many_requests"


def test_requests_are_counted_for_each_caller() -> None:
    clock = Clock()
    access = Access(AccessRules(rate=60, local_rate=120), clock=clock)

    refusals: list[tuple[int, str]] = []

    def allowed(principal: Principal, *, signed: bool = False) -> int:
        for count in range(1000):
            try:
                access.count(principal, REMOTE, signed=signed)
            except HttpProblem as problem:
                refusals.append((problem.status, problem.headers["retry-after"]))
                return count
        return 1000

    assert allowed(CI) == 60
    assert allowed(Principal("other", verified=True)) == 60
    assert allowed(PERSON) == 120
    assert allowed(Principal("synapse-claude-8100", verified=True), signed=True) == 120
    assert allowed(CI) == 0
    clock.now += 10
    assert allowed(CI) == 10
    assert set(refusals) == {(429, "1")}
    Access(AccessRules(rate=0)).count(CI, REMOTE, signed=False)


def test_strangers_are_counted_by_their_address() -> None:
    access = Access(AccessRules(enabled=True, keys=read_keys(SECRET), rate=3), clock=Clock())

    def told(address: str) -> str:
        with pytest.raises(HttpProblem) as caught:
            access.judge(RequestOrigin(near=False, owner=Owner.OTHER, address=address))
        return caught.value.code

    assert [told("192.0.2.7") for _ in range(4)] == ["key_required"] * 3 + ["too_many_requests"]
    assert told("192.0.2.8") == "key_required"
    assert access.judge(showing(OURS, None)) == PERSON


def test_a_flood_of_refusals_does_not_fill_the_log() -> None:
    access = Access(AccessRules(), clock=Clock())
    assert [access.may_log() for _ in range(500)].count(True) == LOGGED


def test_buckets_are_not_kept_for_ever() -> None:
    buckets = TokenBuckets(clock=Clock(), most=2)
    for caller in ("a", "b", "c"):
        assert buckets.take(caller, 1) == 0
    assert (buckets.take("c", 1), buckets.take("b", 1), buckets.take("a", 1)) == (60, 60, 0)


async def test_rules_are_followed_when_they_change() -> None:
    clock = Clock()
    found = [AccessRules(), rules()]
    asked = []

    async def look() -> None:
        asked.append(1)
        access.follow(found.pop(0))

    access = Access(AccessRules(), look=look, clock=clock)
    await access.refresh()
    assert not asked, "they were just read"
    clock.now = 1.0
    await access.refresh()
    await access.refresh()
    assert (len(asked), access.rules.enabled) == (1, False)
    clock.now = 2.0
    await access.refresh()
    assert access.rules.enabled


# -- Where and how agents are served: what settings may say, and what they lead to ---


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


def reach_of(paths: UserPaths, values: dict[str, object]) -> tuple[AccessSettings, list[Notice]]:
    events, told = EventBus(), list[Notice]()
    events.subscribe(lambda event: told.append(event) if isinstance(event, Notice) else None)
    return AccessSettings(set_to(paths, values), events=events), told


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


def test_relative_certificates_start_beside_the_settings(
    paths: UserPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(paths.home))
    monkeypatch.chdir("/")
    values = {"a2a.tls_cert": "tls/c.pem", "a2a.tls_key": "~/k.pem", "a2a.tls_ca": "/ca.pem"}
    network = Network.of(set_to(paths, values))
    assert network.tls == TlsFiles(paths.synapse / "tls" / "c.pem", paths.home / "k.pem")
    assert network.ca == Path("/ca.pem")


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
