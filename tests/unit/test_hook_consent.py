"""Asking for hooks that only a person can have installed: once, and the answer is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.errors import ConfigError
from synapse_tui.hooks import Dialect
from synapse_tui.hooks.install import FILE, Consent, HookConsent, HookInstaller, HookStatus, place_of


class User:
    """A user, whose host may begin anew."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.place = place_of(Dialect.GEMINI, home, {})

    def host(self) -> HookConsent:
        return HookConsent(self.home / ".synapse/hooks", self.home, {})

    def standing(self) -> HookStatus:
        return HookInstaller(self.home / "state").standing(self.place)


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


async def test_only_agents_that_need_it_are_asked_for_and_only_once(user: User) -> None:
    host = user.host()
    for dialect in (None, *(each for each in Dialect if each is not Dialect.GEMINI)):
        assert not await host.wanted(dialect)
    assert await host.wanted(Dialect.GEMINI)
    assert not await host.wanted(Dialect.GEMINI)


async def test_yes_installs_and_is_remembered_also_when_it_is_taken_out_again(user: User) -> None:
    place = await user.host().answer(Dialect.GEMINI, Consent.YES)
    assert place == user.place.path
    assert user.standing() is HookStatus.INSTALLED
    assert not await user.host().wanted(Dialect.GEMINI)
    HookInstaller(user.home / "state").remove(user.place)
    assert not await user.host().wanted(Dialect.GEMINI), "it was taken out on purpose"
    assert user.standing() is HookStatus.MISSING


async def test_what_was_agreed_to_is_brought_up_to_date(user: User) -> None:
    await user.host().answer(Dialect.GEMINI, Consent.YES)
    (user.place.path / "hooks/hooks.json").write_text("{}")
    assert user.standing() is HookStatus.OLD
    assert not await user.host().wanted(Dialect.GEMINI)
    assert user.standing() is HookStatus.INSTALLED


async def test_never_is_remembered_and_not_now_is_not(user: User) -> None:
    assert await user.host().answer(Dialect.GEMINI, Consent.LATER) is None
    assert await user.host().wanted(Dialect.GEMINI)
    assert await user.host().answer(Dialect.GEMINI, Consent.NEVER) is None
    assert not await user.host().wanted(Dialect.GEMINI)
    assert user.standing() is HookStatus.MISSING


async def test_what_a_command_has_installed_is_not_asked_for(user: User) -> None:
    HookInstaller(user.home / "state").install(user.place)
    assert not await user.host().wanted(Dialect.GEMINI)


async def test_a_broken_memory_asks_again_and_a_folder_that_cannot_be_written_is_told(user: User) -> None:
    folder = user.home / ".synapse/hooks"
    folder.mkdir(parents=True)
    (folder / FILE).write_text("[broken")
    assert await user.host().wanted(Dialect.GEMINI)
    (user.home / ".gemini").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be written"):
        await user.host().answer(Dialect.GEMINI, Consent.YES)
