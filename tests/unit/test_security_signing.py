"""Signatures: what they prove, and what they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from synapse_tui.a2a.signing import (
    MAX_AGE,
    SENDER_HEADER,
    SIGNATURE_HEADER,
    SignatureChecker,
    SignedRequest,
    Verdict,
    signature_headers,
)

TOKENS = {"synapse-claude-8100": "secret-1", "synapse-codex-8120": "secret-2", "user": "secret-3"}
REQUEST = SignedRequest("POST", 8110, "/tasks/send-priority?priority=3", b'{"a": 1}')


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def checker(clock: Clock) -> SignatureChecker:
    return SignatureChecker(TOKENS.get, clock=clock)


def signed(
    clock: Clock,
    request: SignedRequest = REQUEST,
    token: str = "secret-1",
    sender: str = "synapse-claude-8100",
) -> str:
    return signature_headers(request, agent_id=sender, token=token, clock=clock)[SIGNATURE_HEADER]


def check(
    checker: SignatureChecker,
    signature: str,
    request: SignedRequest = REQUEST,
    sender: str = "synapse-claude-8100",
) -> Verdict:
    return checker.check(request, sender=sender, signature=signature)


def test_the_sender_is_verified(checker: SignatureChecker, clock: Clock) -> None:
    headers = signature_headers(REQUEST, agent_id="synapse-claude-8100", token="secret-1", clock=clock)
    assert headers[SENDER_HEADER] == "synapse-claude-8100"
    assert "secret-1" not in str(headers), "the token itself is never sent"
    assert check(checker, headers[SIGNATURE_HEADER]) is Verdict.VERIFIED


@pytest.mark.parametrize(
    "changed",
    [
        replace(REQUEST, method="GET"),
        replace(REQUEST, port=8111),
        replace(REQUEST, target="/tasks/send-priority?priority=5"),
        replace(REQUEST, body=b'{"a": 2}'),
        replace(REQUEST, body=b""),
    ],
    ids=["method", "port", "priority", "body", "no body"],
)
def test_a_changed_request_is_wrong(checker: SignatureChecker, clock: Clock, changed: SignedRequest) -> None:
    assert check(checker, signed(clock), changed) is Verdict.WRONG


def test_another_agents_token_is_wrong(checker: SignatureChecker, clock: Clock) -> None:
    assert check(checker, signed(clock, token="secret-2")) is Verdict.WRONG


def test_an_agent_of_another_host_is_a_stranger(checker: SignatureChecker, clock: Clock) -> None:
    assert check(checker, signed(clock), sender="synapse-gemini-8119") is Verdict.STRANGER


def test_the_user_of_another_host_is_a_stranger(checker: SignatureChecker, clock: Clock) -> None:
    assert check(checker, signed(clock, token="another host's"), sender="user") is Verdict.STRANGER


def test_a_signature_works_once(checker: SignatureChecker, clock: Clock) -> None:
    signature = signed(clock)
    assert check(checker, signature) is Verdict.VERIFIED
    assert check(checker, signature) is Verdict.REPLAYED
    assert check(checker, signed(clock)) is Verdict.VERIFIED


@pytest.mark.parametrize("drift", [MAX_AGE + 1, -MAX_AGE - 1])
def test_an_old_or_early_signature_is_expired(checker: SignatureChecker, clock: Clock, drift: float) -> None:
    signature = signed(clock)
    clock.now += drift
    assert check(checker, signature) is Verdict.EXPIRED


def test_a_replay_is_known_as_long_as_the_signature_lives(checker: SignatureChecker, clock: Clock) -> None:
    clock.now += MAX_AGE - 1
    signature = signed(clock)
    clock.now -= MAX_AGE - 1
    assert check(checker, signature) is Verdict.VERIFIED
    clock.now += 2 * MAX_AGE - 3
    check(checker, signed(clock))
    assert check(checker, signature) is Verdict.REPLAYED


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "x",
        "t=1,n=aaaaaaaa",
        "t=1,n=aaaaaaaa,v1=zz",
        "t=x,n=aaaaaaaa,v1=" + "0" * 64,
        "v1=" + "0" * 64,
        "t=1,n=a,v1=" + "0" * 64,
    ],
)
def test_what_is_no_signature_is_malformed(checker: SignatureChecker, signature: str) -> None:
    assert check(checker, signature) is Verdict.MALFORMED


def test_a_signature_without_a_sender_is_malformed(checker: SignatureChecker, clock: Clock) -> None:
    assert check(checker, signed(clock), sender="") is Verdict.MALFORMED


def test_nonces_are_forgotten_when_their_time_is_over(checker: SignatureChecker, clock: Clock) -> None:
    for _ in range(50):
        check(checker, signed(clock))
        clock.now += MAX_AGE
    assert len(checker._seen) <= 4
