"""Who is meant by an address."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.core.addresses import (
    Address,
    agent_id_for,
    complete,
    could_be,
    identity_of,
    parse_agent_id,
    receivers,
    resolve,
)
from synapse_tui.core.errors import AgentExited, AgentNotFound, AmbiguousAddress, TakesNoMessages


def agent(
    kind: str, port: int, name: str = "", *, local: bool = True, aliases: Sequence[str] = ()
) -> Address:
    return Address(
        agent_id_for(kind, port), kind, name, port, f"http://127.0.0.1:{port}", local, "/p", tuple(aliases)
    )


CLAUDE = agent("claude", 8100, aliases=["ClaudeCode"])
CLAUDE_2 = agent("claude", 8101, "Reviewer", aliases=["ClaudeCode"])
CLAUDE_3 = agent("claude", 8102, aliases=["ClaudeCode"])
GEMINI = agent("gemini", 8110)
CODEX = agent("codex", 8120)
FOREIGN = agent("codex", 8121, "far", local=False)
ALL = [CLAUDE, CLAUDE_2, GEMINI, CODEX, FOREIGN]


def test_agent_ids():
    assert agent_id_for("claude", 8100) == "synapse-claude-8100"
    assert parse_agent_id("synapse-claude-8100") == ("claude", 8100)
    assert parse_agent_id("synapse-my-own-tool-8200") == ("my-own-tool", 8200)
    assert parse_agent_id("claude-8100") is None
    assert parse_agent_id("synapse-claude-") is None
    assert parse_agent_id("synapse--8100") is None


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("synapse-claude-8100", CLAUDE),
        ("claude-8101", CLAUDE_2),
        ("reviewer", CLAUDE_2),
        ("Reviewer", CLAUDE_2),
        ("gemini", GEMINI),
        ("@gemini", GEMINI),
        ("＠ｇｅｍｉｎｉ", GEMINI),
        ("GEMINI", GEMINI),
        ("codex", CODEX),
        ("synapse-codex-8121", FOREIGN),
        (" @gemini ", GEMINI),
    ],
)
def test_one_is_meant(address, expected):
    assert resolve(address, ALL) == [expected]


@pytest.mark.parametrize("address", ["far", "codex-8121", "nobody", "", "@", "claud", "@@gemini"])
def test_nobody_is_meant(address):
    with pytest.raises(AgentNotFound):
        resolve(address, ALL)


@pytest.mark.parametrize("address", ["claude", "claudecode", "ClaudeCode"])
def test_two_are_never_guessed(address):
    with pytest.raises(AmbiguousAddress) as caught:
        resolve(address, ALL)
    assert caught.value.candidates == ("synapse-claude-8100", "synapse-claude-8101")


def test_order_of_meanings():
    named_like_an_id = agent("gemini", 8111, "synapse-claude-8100")
    named_like_a_port = agent("gemini", 8112, "claude-8100")
    named_like_a_type = agent("gemini", 8113, "claude")
    everyone = [named_like_an_id, named_like_a_port, named_like_a_type, CLAUDE]
    assert resolve("synapse-claude-8100", everyone) == [CLAUDE]
    assert resolve("claude-8100", everyone) == [CLAUDE]
    assert resolve("claude", everyone) == [named_like_a_type]


class TestIdentity:
    WHOLE = hashlib.sha256(f"{os.uname().nodename}/pclaude".encode()).hexdigest()

    def test_is_made_of_host_folder_type_and_name(self):
        assert identity_of("/p", "claude") == self.WHOLE
        assert (
            identity_of("/p", "claude", "bob")
            == hashlib.sha256(f"{os.uname().nodename}/pclaudebob".encode()).hexdigest()
        )

    @pytest.mark.parametrize("form", [WHOLE, f"@{WHOLE}", WHOLE.upper(), WHOLE[:8], WHOLE[:40]])
    def test_finds_an_agent_again_whose_port_changed(self, form):
        for port in (8100, 8105):
            moved = agent("claude", port)
            assert resolve(form, [GEMINI, moved, CLAUDE_2]) == [moved]
            assert resolve(form, [GEMINI, replace(moved, local=False)]) != [GEMINI], "as any exact id"
            assert could_be(form.removeprefix("@"), [GEMINI, moved])

    def test_needs_eight_digits_and_yields_to_names(self):
        with pytest.raises(AgentNotFound):
            resolve(self.WHOLE[:7], [CLAUDE, GEMINI])
        named = agent("codex", 8120, self.WHOLE[:8])
        assert resolve(self.WHOLE[:8], [CLAUDE, named]) == [named]

    def test_that_two_have_is_asked_about_and_ones_own_is_told(self):
        with pytest.raises(AmbiguousAddress):
            resolve(self.WHOLE, [CLAUDE, CLAUDE_3])
        with pytest.raises(AgentNotFound, match="itself"):
            resolve(self.WHOLE, [CLAUDE, GEMINI], sender=CLAUDE.agent_id)
        with pytest.raises(AgentExited):
            resolve(self.WHOLE, [replace(CLAUDE, live=False)])

    def test_is_awaited_key_by_key(self):
        for end in range(len(self.WHOLE) + 1):
            assert could_be(self.WHOLE[:end], [CLAUDE])
        assert not could_be("zz", [CLAUDE])
        assert not could_be(self.WHOLE + "0", [CLAUDE])


def test_two_of_a_name_are_ambiguous():
    with pytest.raises(AmbiguousAddress):
        resolve("twin", [agent("claude", 8100, "twin"), agent("codex", 8120, "Twin")])


class TestSender:
    def test_never_addresses_itself(self):
        for address in ("claude", "claude-8100", "synapse-claude-8100"):
            with pytest.raises(AgentNotFound) as caught:
                resolve(address, [CLAUDE, GEMINI], sender=CLAUDE.agent_id)
            assert "itself" in caught.value.message

    def test_means_the_only_other_one_of_its_type(self):
        assert resolve("claude", [CLAUDE, CLAUDE_2], sender=CLAUDE.agent_id) == [CLAUDE_2]

    def test_is_asked_when_there_are_two_others(self):
        with pytest.raises(AmbiguousAddress) as caught:
            resolve("claude", [CLAUDE, CLAUDE_2, CLAUDE_3], sender=CLAUDE.agent_id)
        assert CLAUDE.agent_id not in caught.value.candidates


class TestAll:
    def test_means_the_others_of_the_project(self):
        assert resolve("all", ALL, sender=CLAUDE.agent_id) == [CLAUDE_2, GEMINI, CODEX]
        assert resolve("@ALL", ALL) == [CLAUDE, CLAUDE_2, GEMINI, CODEX]

    def test_wins_over_a_name(self):
        assert resolve("all", [CLAUDE, agent("codex", 8120, "all")]) == [CLAUDE, agent("codex", 8120, "all")]

    def test_leaves_out_those_that_take_no_messages(self):
        shell = replace(agent("shell", 8290), receives=False)
        assert resolve("all", [CLAUDE, shell, GEMINI]) == [CLAUDE, GEMINI]
        assert resolve("shell", [CLAUDE, shell, GEMINI]) == [shell], "its refusal says why"
        (offered,) = complete("al", [CLAUDE, shell, GEMINI])
        assert offered.targets == (CLAUDE, GEMINI)
        assert not complete("al", [CLAUDE, shell])
        with pytest.raises(AgentNotFound):
            resolve("all", [CLAUDE, shell], sender=CLAUDE.agent_id)

    def test_who_takes_no_messages_is_neither_offered_nor_sent_to(self):
        shell = replace(agent("shell", 8290), receives=False)
        assert not complete("she", [CLAUDE, shell])
        with pytest.raises(TakesNoMessages, match=r"^shell takes no messages"):
            receivers("synapse-shell-8290", [CLAUDE, shell])


class TestCompletion:
    def texts(self, start: str, candidates: Sequence[Address] = ALL, sender: str = "") -> list[str]:
        return [completion.text for completion in complete(start, candidates, sender=sender)]

    def test_offers_the_shortest_form_that_means_one(self):
        assert self.texts("") == ["claude-8100", "Reviewer", "gemini", "codex", "all", "synapse-codex-8121"]

    def test_follows_what_was_typed(self):
        assert self.texts("c") == ["claude-8100", "claude-8101", "codex"]
        assert self.texts("GE") == ["gemini"]
        assert self.texts("ｇｅ") == ["gemini"]
        assert self.texts("gemini-") == ["gemini-8110"]
        assert self.texts("synapse-g") == ["synapse-gemini-8110"]
        assert self.texts("a") == ["all"]
        assert self.texts("x") == []

    def test_leaves_out_the_sender(self):
        assert self.texts("", [CLAUDE, CLAUDE_2, GEMINI], CLAUDE.agent_id) == ["Reviewer", "gemini", "all"]
        assert self.texts("", [CLAUDE, GEMINI], CLAUDE.agent_id) == ["gemini"]

    @given(
        st.sampled_from(["", "c", "cl", "claude", "claude-", "s", "synapse-", "r", "a", "g"]),
        st.sampled_from(ALL),
    )
    def test_every_completion_means_its_target(self, start, sender):
        for completion in complete(start, ALL, sender=sender.agent_id):
            assert tuple(resolve(completion.text, ALL, sender=sender.agent_id)) == completion.targets
            assert could_be(start, ALL, sender=sender.agent_id)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("c", True),
        ("claude", True),
        ("ClaudeC", True),
        ("claude-81", True),
        ("codex-8121", False),
        ("synapse-codex-8121", True),
        ("README", False),
        ("rev", True),
        ("al", True),
        ("allo", False),
        ("far", False),
        ("gemini ", True),
    ],
)
def test_could_be(text, expected):
    assert could_be(text, ALL) is expected


def test_could_not_be_the_sender_or_anyone_when_alone():
    assert not could_be("claude", [CLAUDE, GEMINI], sender=CLAUDE.agent_id)
    assert not could_be("", [CLAUDE], sender=CLAUDE.agent_id)
    assert not could_be("a", [CLAUDE], sender=CLAUDE.agent_id)


class TestEnded:
    DEAD = replace(CLAUDE_2, live=False)
    EVERYONE = (CLAUDE, DEAD, GEMINI, CODEX, FOREIGN)

    @pytest.mark.parametrize("address", ["synapse-claude-8101", "claude-8101", "reviewer"])
    def test_is_known_and_told(self, address):
        assert could_be(address, self.EVERYONE)
        with pytest.raises(AgentExited) as caught:
            resolve(address, self.EVERYONE)
        assert str(caught.value) == "Reviewer has ended (restart it in its pane)"

    def test_a_name_of_one_that_ended_never_means_another_by_its_type(self):
        with pytest.raises(AgentExited):
            resolve("gemini", [replace(CODEX, name="gemini", live=False), GEMINI])

    def test_a_type_and_a_name_mean_the_live_one(self):
        assert resolve("claude", self.EVERYONE) == [CLAUDE]
        twin = replace(CODEX, name="Reviewer")
        assert resolve("reviewer", [self.DEAD, twin]) == [twin]

    def test_all_means_the_live_ones(self):
        assert resolve("all", self.EVERYONE) == [CLAUDE, GEMINI, CODEX]
        assert could_be("al", [CLAUDE, self.DEAD], sender=CLAUDE.agent_id)
        with pytest.raises(AgentExited):
            resolve("all", [CLAUDE, self.DEAD], sender=CLAUDE.agent_id)

    def test_is_not_offered(self):
        offered = [completion.text for completion in complete("", self.EVERYONE)]
        assert offered == ["claude", "gemini", "codex", "all", "synapse-codex-8121"]
        with pytest.raises(AgentNotFound) as caught:
            resolve("zzz", [GEMINI, self.DEAD])
        assert "8101" not in caught.value.hint


def told(address: str, candidates: Sequence[Address]) -> str:
    with pytest.raises(AgentNotFound) as caught:
        resolve(address, candidates)
    return f"{caught.value.message}: {caught.value.hint}"


@pytest.mark.parametrize("address", ["far", "@Far", "codex-8121", "codex"])
def test_an_agent_of_another_project_is_told_with_its_id(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    far = replace(FOREIGN, project="/home/me/other")
    wanted = address.removeprefix("@").casefold()
    assert told(address, [CLAUDE, far]) == f"{wanted} is in another project (~/other): use synapse-codex-8121"


def test_an_ended_agent_of_another_project_is_not_told() -> None:
    assert "no agent answers" in told("far", [CLAUDE, replace(FOREIGN, live=False)])
