"""Which URLs may be told of tasks: addresses, names that change their mind, URLs with two meanings."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from synapse_tui.a2a.push.policy import Allowed, Reach, Resolver, TargetPolicy, destination_of, reach_of
from synapse_tui.errors import ConfigError, TargetRefused


@pytest.mark.parametrize(
    ("address", "reach"),
    [
        ("93.184.216.34", Reach.PUBLIC),
        ("2606:2800:220:1:248:1893:25c8:1946", Reach.PUBLIC),
        ("::ffff:93.184.216.34", Reach.PUBLIC),
        ("64:ff9b::93.184.216.34", Reach.PUBLIC),
        ("127.0.0.1", Reach.LOOPBACK),
        ("127.8.9.10", Reach.LOOPBACK),
        ("::1", Reach.LOOPBACK),
        ("::ffff:127.0.0.1", Reach.LOOPBACK),
        ("64:ff9b::7f00:1", Reach.LOOPBACK),
        ("10.1.2.3", Reach.PRIVATE),
        ("172.31.255.255", Reach.PRIVATE),
        ("192.168.0.1", Reach.PRIVATE),
        ("100.64.0.1", Reach.PRIVATE),
        ("198.18.0.1", Reach.PRIVATE),
        ("203.0.113.7", Reach.PRIVATE),
        ("fd12:3456::1", Reach.PRIVATE),
        ("2001:db8::1", Reach.PRIVATE),
        ("::ffff:10.0.0.1", Reach.PRIVATE),
        ("64:ff9b::10.0.0.1", Reach.PRIVATE),
        ("0.0.0.0", Reach.NEVER),
        ("0.1.2.3", Reach.NEVER),
        ("::", Reach.NEVER),
        ("::ffff:0.0.0.0", Reach.NEVER),
        ("::10.0.0.1", Reach.NEVER),
        ("169.254.169.254", Reach.NEVER),
        ("::ffff:169.254.169.254", Reach.NEVER),
        ("64:ff9b::169.254.169.254", Reach.NEVER),
        ("64:ff9b:1::1", Reach.NEVER),
        ("2002:a9fe:a9fe::1", Reach.NEVER),
        ("2001:0:7f00:1::1", Reach.NEVER),
        ("168.63.129.16", Reach.NEVER),
        ("100.100.100.200", Reach.NEVER),
        ("192.0.0.192", Reach.NEVER),
        ("fd00:ec2::254", Reach.NEVER),
        ("fd20:ce::254", Reach.NEVER),
        ("fe80::1", Reach.NEVER),
        ("fe80::1%eth0", Reach.NEVER),
        ("224.0.0.251", Reach.NEVER),
        ("255.255.255.255", Reach.NEVER),
        ("240.0.0.1", Reach.NEVER),
        ("ff02::1", Reach.NEVER),
        ("fec0::1", Reach.NEVER),
        ("no address", Reach.NEVER),
    ],
)
def test_where_an_address_lies(address, reach):
    assert reach_of(address) is reach


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h.example/",
        "file:///etc/passwd",
        "gopher://h.example/",
        "//h.example/",
        "h.example",
        "http://",
        "http:///path",
        "http://user@h.example/",
        "http://user:hunter2@h.example/",
        "http://@h.example/",
        "http://h.example:0/",
        "http://h.example:99999/",
        "http://h.example:x/",
        "http://h.exa mple/",
        "http://h.example/\r\nX: y",
        "http://h.example\\@evil.example/",
        "http://[::1/",
        "http://[v1.x]/",
        "http://h..example/",
        "http://-h.example/",
        "http://h%2eexample/",
        "http://h.example/" + "x" * 2048,
        "http://" + "a" * 64 + ".example/",
        "http://h.example,evil.example/",
    ],
)
def test_urls_that_are_refused_whatever_they_lead_to(url):
    with pytest.raises(TargetRefused) as told:
        destination_of(url)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://h.example", ("https", "h.example", 443, "/")),
        ("HTTP://H.Example:8080/a/b?c=d&e=%20f#g", ("http", "h.example", 8080, "/a/b?c=d&e=%20f")),
        ("http://[::1]:9/", ("http", "::1", 9, "/")),
        ("http://bücher.example/ü?q=ä", ("http", "xn--bcher-kva.example", 80, "/%C3%BC?q=%C3%A4")),
        ("http://host_name/", ("http", "host_name", 80, "/")),
        ("http://h.example?x", ("http", "h.example", 80, "/?x")),
    ],
)
def test_a_url_is_taken_apart(url, parts):
    found = destination_of(url)
    assert (found.scheme, found.host, found.port, found.target) == parts


class Names:
    """A resolver that gives a name other addresses each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return answer


@pytest.mark.parametrize(
    ("addresses", "allow", "fine"),
    [
        (["93.184.216.34"], [], True),
        (["127.0.0.1"], [], True),
        (["10.0.0.1"], [], False),
        (["93.184.216.34", "10.0.0.1"], [], False),
        (["10.0.0.1"], ["10.0.0.0/8"], True),
        (["::ffff:10.0.0.1"], ["10.0.0.0/8"], True),
        (["10.0.0.1"], ["10.0.0.1"], True),
        (["10.0.0.1"], ["192.168.0.0/16"], False),
        (["10.0.0.1", "192.168.0.1"], ["10.0.0.0/8"], False),
        (["10.0.0.1"], ["hooks.lan"], True),
        (["10.0.0.1"], ["*.lan"], True),
        (["10.0.0.1"], [".lan"], True),
        (["10.0.0.1"], ["lan"], False),
        (["10.0.0.1"], ["ooks.lan"], False),
        (["169.254.169.254"], ["169.254.0.0/16", "hooks.lan"], False),
        (["0.0.0.0"], ["0.0.0.0/0"], False),
        (["fd00:ec2::254"], ["::/0"], False),
    ],
)
async def test_what_may_be_connected_to(addresses, allow, fine):
    policy = TargetPolicy(Names(addresses), allowed=Allowed.parse(allow))
    if fine:
        assert await policy.addresses("hooks.lan", 80) == addresses
        assert (await policy.check("http://hooks.lan/")).host == "hooks.lan"
        return
    with pytest.raises(TargetRefused):
        await policy.addresses("hooks.lan", 80)
    with pytest.raises(TargetRefused):
        await policy.check("http://hooks.lan/")


async def test_this_machine_only_for_callers_on_it():
    policy = TargetPolicy(Names(["127.0.0.1"]), loopback=lambda: False)
    with pytest.raises(TargetRefused, match="this machine"):
        await policy.check("http://localhost:9000/")
    allowed = Allowed.parse(["localhost"])
    await TargetPolicy(Names(["::1"]), loopback=lambda: False, allowed=allowed).check("http://localhost:9/")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.168.7.7", "93.184.216.34"])
async def test_never_an_agent_of_this_machine(address):
    policy = TargetPolicy(
        Names([address]),
        allowed=Allowed.parse(["0.0.0.0/0", "::/0", "h.example"]),
        own_ports=lambda: {8100},
        is_here=lambda each: each in ("192.168.7.7", "93.184.216.34"),
    )
    with pytest.raises(TargetRefused, match="agent's"):
        await policy.check("http://h.example:8100/tasks/send")
    await policy.check("http://h.example:8200/")


async def test_an_address_of_this_machine_is_known_by_the_system():
    policy = TargetPolicy(Names(["127.0.0.9"]), own_ports=lambda: {8100})
    with pytest.raises(TargetRefused):
        await policy.check("http://x:8100/")


async def test_a_name_server_that_hangs_holds_who_asks_for_a_while_only(monkeypatch):
    async def hang(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr("synapse_tui.a2a.push.policy.LOOKUP_TIMEOUT", 0.01)
    assert (await TargetPolicy(hang).check("http://slow.example/")).host == "slow.example"


async def test_a_name_that_changes_its_mind_is_refused_when_it_is_called():
    policy = TargetPolicy(Names(["93.184.216.34"], ["127.0.0.1"]), loopback=lambda: False)
    await policy.check("http://rebind.example/")
    with pytest.raises(TargetRefused):
        await policy.addresses("rebind.example", 80)


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "a b", "", "http://x/", "*", "**.lan", "10.0.0.1:80"])
def test_what_cannot_be_allowed_is_told(entry):
    with pytest.raises(ConfigError, match="push_allow"):
        Allowed.parse([entry])


# -- the resolver ---


async def test_odd_ways_to_write_an_address_are_resolved_and_so_looked_at():
    policy = TargetPolicy(Resolver(), loopback=lambda: False)
    for host in ("2130706433", "0x7f000001", "127.1"):
        with pytest.raises((TargetRefused, OSError)):
            await policy.addresses(host, 80)


async def test_a_name_server_that_hangs_holds_nobody_else():
    hang = threading.Event()
    asked: list[str] = []

    def ask(host: str, port: int, **_options: Any) -> list[tuple[Any, ...]]:
        asked.append(host)
        if host == "hangs":
            hang.wait(10)
        if host == "unknown":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(0, 0, 0, "", ("93.184.216.34", port)), (0, 0, 0, "", ("93.184.216.34", port))]

    resolver = Resolver(ask, limit=2)
    waits = asyncio.ensure_future(resolver("hangs", 80))
    assert await resolver("h.example", 80) == ("93.184.216.34",)
    with pytest.raises(OSError, match="unknown"):
        await resolver("unknown", 80)
    waits.cancel()
    second = asyncio.ensure_future(resolver("hangs", 80))
    third = asyncio.ensure_future(resolver("h.example", 80))
    while asked.count("hangs") < 2:  # noqa: ASYNC110 - a thread sets no event of the loop
        await asyncio.sleep(0)
    assert asked.count("h.example") == 1  # the one that was given up holds its thread
    hang.set()
    assert await third == await second == ("93.184.216.34",)
