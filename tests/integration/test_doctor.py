"""`synapse doctor` as a process: the dummy, profiles of it that are broken on purpose, an end by Ctrl+C."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from synapse_tui.cli.trials.checks import processes_with
from synapse_tui.cli.trials.runner import NAMES
from synapse_tui.system.paths import shipped_profiles
from tests.integration.shell_kit import Result, Shell
from tests.waiting import PATIENCE


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell.scratch(tmp_path, apart=True)


def put_profile(shell: Shell, name: str, **changes: Any) -> None:
    content = yaml.safe_load((shipped_profiles() / "dummy.yaml").read_text(encoding="utf-8"))
    folder = shell.home / ".synapse" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(
        yaml.safe_dump({**content, "name": name, **changes}), encoding="utf-8"
    )


def report_of(result: Result) -> dict[str, Any]:
    (report,) = json.loads(result.out)
    return dict(report)


def check_of(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(check for check in report["checks"] if check["check"] == name)


async def test_everything_holds_for_the_dummy_and_nothing_is_left(shell: Shell) -> None:
    put_profile(shell, "dummy", args=["-P", "-m", "synapse_tui.dummy", "--word-delay", "0"])
    result = await shell.run("doctor", "dummy", "--json")
    assert result.code == 0, result.err
    report = report_of(result)
    assert [(check["check"], check["outcome"]) for check in report["checks"]] == [
        (name, "ok") for name in NAMES
    ]
    assert (report["ok"], report["advice"]) == (True, [])
    assert "20,0" in check_of(report, "long-paste")["evidence"]
    assert "after its permission was given" in check_of(report, "reply")["evidence"]
    decided, besides, never = check_of(report, "signals")["evidence"].split("; ")
    assert "program status idle" in decided
    assert "title star" in besides
    assert "footer error" in never
    assert [line.split(":")[1].strip() for line in result.err.splitlines()] == list(NAMES)
    assert not (shell.home / ".a2a").exists()
    assert not (shell.home / ".synapse" / "history.db").exists()
    assert not (shell.home / ".synapse" / "doctor" / "dummy").exists()


async def test_its_advice_heals_profiles_that_are_broken(shell: Shell) -> None:
    await asyncio.gather(heals_one_that_never_gets_ready(shell), names_the_key_that_interrupts(shell))


async def heals_one_that_never_gets_ready(shell: Shell) -> None:
    deaf = [{"name": "other", "state": "ready", "title": "^Quite another title"}]
    args = ["-P", "-m", "synapse_tui.dummy", "--no-status"]
    put_profile(shell, "deaf", args=args, startup={"delay": 0.1, "timeout": 1}, states=deaf)
    result = await shell.run("doctor", "deaf", "--check", "submit", "--json")
    assert result.code == 11
    report = report_of(result)
    assert [check["outcome"] for check in report["checks"]] == ["failed", "skipped", "ok"]
    (advice,) = report["advice"]
    assert advice["key"] == "states"

    put_profile(shell, "deaf", args=args, states=[yaml.safe_load(advice["value"])])
    healed = await shell.run("doctor", "deaf", "--check", "start", "--json")
    assert (healed.code, check_of(report_of(healed), "start")["outcome"]) == (0, "ok"), healed.err


async def names_the_key_that_interrupts(shell: Shell) -> None:
    put_profile(shell, "endless", interrupt={"keys": ["ctrl+x"], "timeout": 0.3})
    result = await shell.run("doctor", "endless", "--check", "interrupt")
    assert result.code == 11
    table, _, advice = result.out.partition("\n\n")
    assert "[ctrl+x] did not stop the turn, [escape] did" in table
    assert (
        f"Changes to make in {shell.home}/.synapse/profiles/endless.yaml:\n  interrupt.keys: [escape]\n"
        in advice
    )


async def test_ctrl_c_ends_the_agent_and_cleans_up(shell: Shell) -> None:
    shell.environ["DOCTOR_TEST_MARK"] = mark = str(shell.home)
    process = await shell.start("doctor", "dummy", "--check", "working")
    assert process.stderr is not None
    assert b"start: ok" in await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, err.decode().strip()) == (130, "synapse: interrupted")
    assert processes_with("DOCTOR_TEST_MARK", mark) == ()
    assert not (shell.home / ".synapse" / "doctor" / "dummy").exists()


async def test_nobody_pays_unasked_and_what_is_wrong_is_told_before_anything_starts(shell: Shell) -> None:
    put_profile(shell, "paid", doctor={"free": False})
    paid = await shell.run("doctor", "paid")
    assert (paid.code, paid.out) == (2, "")
    assert "turns of your model" in paid.err
    assert "--yes" in paid.err
    put_profile(shell, "missing", command="no-such-agent", install="get it")
    assert (await shell.run("doctor", "dummy", "missing", "--yes")).code == 9
    unknown = await shell.run("doctor", "dummy", "--check", "nope")
    assert (unknown.code, "no check named 'nope'" in unknown.err) == (2, True)
