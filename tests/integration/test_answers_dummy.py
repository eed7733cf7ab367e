"""Answers as they are read off a real terminal: what the dummy said, without what it draws around that."""

from pathlib import Path

import pytest

from tests.integration.session_rig import Rig, open_rig

QUICK = ("--word-delay", "0")
SAYS = "synapse-claude-8100 says: "


async def answer(rig: Rig, text: str, *keys: str) -> str:
    task = rig.send(text)
    for key in keys:
        await rig.answer(key)
    (artifact,) = (await rig.done(task)).artifacts
    assert not artifact.truncated
    return artifact.text


@pytest.mark.parametrize(
    "message",
    [
        "\n".join(f"line {number} of it" for number in range(1, 21)),
        "\n\n".join(f"paragraph {number}" for number in range(1, 21)),
        "word " * 200,
        "日本語の行👍と絵文字👩‍💻です " * 60,
        "\n".join(f"● item {number}" for number in range(1, 41)),
    ],
)
async def test_a_long_message_leaves_nothing_of_its_echo(tmp_path: Path, message: str) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        text = await answer(rig, message)
        # It says the first 160 characters again, wrapped.
        assert "".join(text.split()).startswith("".join((SAYS + message[:60]).split()))
        assert text.splitlines()[-1].startswith("(")


async def test_pieces_of_an_answer_have_no_bullets(tmp_path: Path) -> None:
    async with open_rig(tmp_path, *QUICK) as rig:
        ran = await answer(rig, "%%perm:make all%% done", "1")
        assert ran.startswith("Bash(make all)\n⎿  allowed")
        assert f"\n\n{SAYS}done\n(" in ran
        raw = await answer(rig, "%%invalid%% done")
        assert raw.startswith("bytes that are no text: ")
        assert f"\n\n{SAYS}done\n(" in raw
