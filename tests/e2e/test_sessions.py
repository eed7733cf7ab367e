"""Sessions: agents outlive their terminals, and every terminal is given back clean."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.asciicast import play
from tests.e2e.conftest import Launch, Ready, Run, alive, wait_for_end
from tests.e2e.test_signals import assert_clean, grow
from tests.e2e.tmux_terminal import TmuxTerminal
from tests.waiting import PATIENCE, wait_until


def sessions(run: Run) -> list[dict[str, object]]:
    """Return the sessions once each of them answers, which a busy host may not do in time for `ls`."""

    def answering() -> list[list[dict[str, object]]]:
        done = run("synapse-tui", "ls", "--json")
        assert done.returncode == 0, done.stderr
        listed: list[dict[str, object]] = json.loads(done.stdout)
        return [listed] if all(session["pid"] is not None for session in listed) else []

    (listed,) = wait_until(answering, "the sessions to answer")
    return listed


def programs_of(run: Run) -> list[psutil.Process]:
    programs = host_of(run).children(recursive=True)
    return [program for program in programs if "synapse_tui.dummy" in program.cmdline()]


def kill(process: psutil.Process) -> None:
    process.kill()
    process.wait(30)  # as a zombie its other threads may still hold its ports and files


def saved(run: Run, home: Path, count: int = 2) -> bool:
    """Whether the workspace of the host that runs is on the disk, with so many agents."""
    found = [json.loads(path.read_text()) for path in home.glob(".synapse/workspaces/*/workspace.json")]
    return [(each["pid"], len(each["agents"])) for each in found] == [(host_of(run).pid, count)]


def records(home: Path) -> list[dict[str, object]]:
    with contextlib.suppress(OSError, ValueError):  # one is being written
        return [json.loads(path.read_text()) for path in (home / ".a2a/registry").glob("synapse-*.json")]
    return []


def are_recorded(home: Path, count: int) -> bool:
    return len(records(home)) == count


def leader(terminal: TmuxTerminal, key: str) -> None:
    terminal.keys("C-]")
    terminal.wait_for("detach")
    terminal.keys(key)


def detach(terminal: TmuxTerminal) -> None:
    leader(terminal, "d")
    terminal.wait_for("[detached from session")
    terminal.wait_for("synapse-tui attach ")  # with its folder where PATH does not find it
    assert_clean(terminal)


def test_detach_and_attach_show_the_same_screens(launch: Launch, agents: Ready, run: Run) -> None:
    terminal = launch("dummy", "dummy")
    first, second = agents(terminal, 2)
    terminal.type("日本語 stays")
    terminal.wait_for("日本語 stays")
    terminal.keys("F5")
    terminal.wait_for("layout: columns")
    terminal.wait(lambda: f"2 {second}" in terminal.rows[1], "two columns")
    detach(terminal)
    (session,) = sessions(run)
    assert session["attached"] is False
    assert run("synapse", "send", second, "hello there", "--response").returncode == 0
    terminal.keys("clear; synapse-tui", "Enter")
    terminal.wait_for("日本語 stays", f"1 {first}", "hello there")
    terminal.wait(lambda: f"2 {second}" in terminal.rows[1], "two columns")
    assert sessions(run)[0]["attached"] is True


def test_a_client_that_is_killed_leaves_agents_and_a_clean_terminal(
    launch: Launch, agents: Ready, run: Run
) -> None:
    terminal = launch()
    agents(terminal, 2)
    for number in (signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        if number is not signal.SIGKILL:
            terminal.keys("clear; synapse-tui", "Enter")
        terminal.wait_for("❯")
        terminal.kill_command(number)
        assert_clean(terminal)
        (session,) = sessions(run)
        assert [agent["state"] for agent in session["agents"]] == ["READY", "READY"]  # type: ignore[attr-defined]
        assert session["attached"] is False


def test_quit_stops_everything(launch: Launch, agents: Ready, run: Run, home: Path) -> None:
    terminal = launch(columns=80, lines=24)
    agents(terminal, 2)
    grow(terminal)
    (session,) = sessions(run)
    path = Path(str(session["socket"]))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(path)) < 104
    host, programs = host_of(run), programs_of(run)
    leader(terminal, "q")
    terminal.wait_for("Leave synapse-tui?")
    terminal.keys("y")
    terminal.wait_for("all agents are stopped")
    assert not alive(programs), "it is true when it is told"
    assert_clean(terminal)
    assert sessions(run) == []
    assert last_end(home).endswith("at the terminal")
    wait_for_end(host)
    assert not list((home / ".a2a" / "registry").glob("synapse-*.json"))


def test_kill_names_and_ends_a_session(launch: Launch, agents: Ready, run: Run, home: Path) -> None:
    terminal = launch()
    agents(terminal, 2)
    assert run("synapse-tui", "kill", "no-such").returncode == 10
    programs = programs_of(run)
    done = run("synapse-tui", "kill")
    assert done.returncode == 0, done.stderr
    assert not alive(programs), "it returns when they have ended"
    terminal.wait_for("all agents are stopped")
    assert_clean(terminal)
    assert re.search(r"session 'project' is ended: 'synapse-tui kill' \(process \d+\)", last_end(home))
    again = run("synapse-tui", "kill")
    assert again.returncode == 10
    assert "no session" in again.stderr


@pytest.mark.timeout(300)  # several hosts or agents, one after the other
def test_sessions_of_another_home_are_their_own(
    run: Run, environ: dict[str, str], home: Path, tmp_path: Path
) -> None:
    assert run("synapse", "start", "dummy").returncode == 0
    host = host_of(run)
    (tmp_path / "linked").symlink_to(home)
    environ["HOME"] = str(tmp_path / "linked")
    assert host_of(run).pid == host.pid, "by whatever path it is the same home"
    other = tmp_path / "other"
    (other / ".synapse" / "profiles").mkdir(parents=True)
    (other / ".synapse" / "profiles" / "dummy.yaml").write_bytes(
        (home / ".synapse" / "profiles" / "dummy.yaml").read_bytes()
    )
    environ["HOME"] = str(other)
    assert sessions(run) == []
    done = run("synapse-tui", "kill", "--all")
    assert (done.returncode, done.stderr) == (0, "synapse-tui: no sessions are running\n")
    assert run("synapse-tui", "kill").returncode == 10
    assert alive([host])
    assert run("synapse", "start", "dummy").returncode == 0
    assert host_of(run).pid != host.pid, "the same project, but other settings, history and agents"
    assert run("synapse-tui", "kill", "--all").returncode == 0
    environ["HOME"] = str(home)
    assert host_of(run).pid == host.pid
    assert run("synapse-tui", "kill", "--all").returncode == 0
    assert not alive([host])


@pytest.mark.timeout(300)  # several hosts or agents, one after the other
def test_a_session_from_before_the_home_was_part_of_its_key_is_still_found(
    run: Run, environ: dict[str, str], home: Path, project: Path, runtime: Path, tmp_path: Path
) -> None:
    folder = runtime / "synapse-tui"
    folder.mkdir(mode=0o700)
    key = hashlib.sha256(f"{project}\0".encode()).hexdigest()[:12]
    path = folder / f"{key}.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(64)
        words = ("--project", str(project), "--name", "project", "--folder", str(project))
        started = subprocess.Popen(
            [sys.executable, "-m", "synapse_tui.daemon", "--socket-fd", str(listener.fileno()), *words],
            env=environ,
            cwd=project,
            pass_fds=(listener.fileno(),),
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))  # a host without agents ends when its last client is gone
        wait_until(lambda: [session["pid"] for session in sessions(run)] == [started.pid], "the host")
        assert run("synapse", "start", "dummy").returncode == 0
    (session,) = sessions(run)
    assert (session["pid"], len(session["agents"])) == (started.pid, 1)  # type: ignore[arg-type]
    environ["HOME"] = str(tmp_path)
    assert sessions(run) == [], "another home has no part in it"
    environ["HOME"] = str(home)
    done = run("synapse-tui", "kill")
    assert done.returncode == 0, done.stderr
    assert started.wait(timeout=30) == 0


def test_a_host_that_is_stopped_is_woken_and_ended(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapse_tui.cli.sessions.ANSWER_SECONDS", 1.0)
    monkeypatch.setattr("synapse_tui.cli.sessions.TERM_SECONDS", PATIENCE)
    assert run("synapse", "start", "dummy").returncode == 0
    host, programs = host_of(run), programs_of(run)
    host.send_signal(signal.SIGSTOP)
    done = run("synapse-tui", "kill", "--all", "--json")
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)
    assert (told["pid"], told["ended"]) == (host.pid, "terminated")
    assert not alive([host, *programs])
    assert sessions(run) == []


@pytest.mark.timeout(300)  # several hosts or agents, one after the other
def test_a_host_that_hangs_for_good_is_killed_with_its_agents(
    launch: Launch, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapse_tui.cli.sessions.ANSWER_SECONDS", 1.0)
    monkeypatch.setattr("synapse_tui.cli.sessions.TERM_SECONDS", 1.0)
    hang = tmp_path / "hang"
    start_with(run, launch, tmp_path, HANGING, SYNAPSE_TEST_HANG=str(hang))
    host, programs = host_of(run), programs_of(run)
    assert programs
    hang.touch()
    wait_until(lambda: not hang.exists(), "the host to hang")
    done = run("synapse-tui", "kill")
    assert done.returncode == 0, done.stderr
    assert f"had to be killed (process {host.pid})" in done.stdout
    assert not alive([host, *programs])
    assert run("synapse", "start", "dummy").returncode == 0, "nothing is in the way of the next"


HANGING = """
import os, sys, threading, time
if "synapse_tui.daemon" in " ".join(sys.orig_argv):
    import asyncio
    begin = asyncio.BaseEventLoop.run_forever
    def look(loop, path=os.environ["SYNAPSE_TEST_HANG"]):
        if os.path.exists(path):
            os.unlink(path)
            while True:
                time.sleep(60)
        loop.call_later(0.1, look, loop)
    def run_forever(loop):
        loop.call_soon(look, loop)
        begin(loop)
    asyncio.BaseEventLoop.run_forever = run_forever
"""


def last_end(home: Path) -> str:
    """Who ended the last session that has ended, as the host's log says it."""
    (log,) = home.glob(".synapse/logs/host-*.log")
    return [line for line in log.read_text().splitlines() if "is ended: " in line][-1]


def start_with(run: Run, launch: Launch, tmp_path: Path, site: str, **extra: str) -> None:
    """Start a host without a screen, in which some code of a test runs."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(site)
    terminal = launch("start", "dummy", command=("synapse",), PYTHONPATH=str(folder), **extra)
    terminal.wait(lambda: [len(each["agents"]) for each in sessions(run)] == [1], "the agent")  # type: ignore[arg-type]


@pytest.mark.timeout(300)  # several hosts or agents, one after the other
def test_a_running_host_follows_profiles(launch: Launch, agents: Ready, run: Run, home: Path) -> None:
    def write(text: str) -> None:
        path = home / ".synapse" / "profiles" / "newtype.yaml"
        path.with_name(".new").write_text(text)
        path.with_name(".new").replace(path)

    def marks() -> list[str]:
        return sorted(process.environ().get("MARK", "") for process in programs_of(run))

    terminal = launch("dummy")
    agents(terminal, 1)
    host = host_of(run)
    dummy = (home / ".synapse" / "profiles" / "dummy.yaml").read_text()
    dummy = re.sub(r"(?m)^(name|display|aliases):.*\n", "", dummy)
    write(f"{dummy}\nenv: {{MARK: one}}\n")
    started = run("synapse", "start", "newtype:n1")
    assert started.returncode == 0, started.stderr
    agents(terminal, 2)
    answered = run("synapse", "send", "newtype", "hello new kind", "--response")
    assert "hello new kind" in answered.stdout, answered.stderr
    write(f"{dummy}\nenv: {{MARK: two}}\n")
    assert run("synapse", "start", "newtype:n2").returncode == 0
    agents(terminal, 3)
    assert marks() == ["", "one", "two"], "what runs goes on as it was started"
    write(f"{dummy}\nenv: {{MARK: three}}\nnonsense: 1\n")
    terminal.wait_for("newtype.yaml:", "previous")  # single words: where a notice breaks depends on the path
    broken = run("synapse", "start", "newtype:n3")
    assert broken.returncode == 0
    assert "newtype.yaml:" in broken.stderr
    assert "its previous values stay in effect" in broken.stderr
    assert len(broken.stdout.splitlines()) == 1
    other = run("synapse", "start", "dummy:n4")
    assert (other.returncode, "newtype" in other.stderr) == (0, False)
    assert run("synapse", "stop", "n4").returncode == 0
    agents(terminal, 4)
    assert marks() == ["", "one", "two", "two"]
    assert host_of(run).pid == host.pid
    leader(terminal, "n")
    terminal.wait_for("newtype")


def test_starts_at_the_same_moment_make_one_session(launch: Launch, run: Run) -> None:
    terminals = [launch("dummy") for _ in range(3)]
    terminals[0].wait(lambda: [len(s["agents"]) for s in sessions(run)] == [3], "one session of three agents")  # type: ignore[arg-type]
    for terminal in terminals:
        terminal.wait_for("3 dummy")


def test_two_terminals_show_a_session_in_the_size_of_the_smaller(
    launch: Launch, agents: Ready, run: Run
) -> None:
    first = launch("dummy:one", columns=120, lines=40, COLORTERM="truecolor")
    agents(first, 1)
    second = launch("attach", columns=80, lines=24, COLORTERM="truecolor")
    second.wait_for("the size of pts/")
    first.wait(lambda: "the size of pts/" in first.rows[23] and not any(first.rows[24:]), "the smaller size")
    first.type("from one")
    second.wait_for("from one")
    second.type(" and two")
    first.wait_for("from one and two")
    assert [row.rstrip() for row in first.rows[1:22]] == [row.rstrip() for row in second.rows[1:22]]
    second.resize(100, 30)
    first.wait(lambda: "the size of pts/" in first.rows[29] and not any(first.rows[30:]), "the new size")
    second.resize(140, 50)
    second.wait(
        lambda: "the size of pts/" in second.rows[39] and not any(second.rows[40:]), "now of the other"
    )
    leader(first, "b")
    first.wait(
        lambda: "all keys" in first.rows[39] and "the size of pts/" in first.rows[39], "also on the board"
    )
    leader(second, "b")
    first.wait(lambda: "F10" in first.rows[39], "the panes again")
    assert run("synapse-tui", "upgrade").returncode == 0
    second.resize(140, 38)
    first.wait(lambda: "the size of pts/" in first.rows[37] and not any(first.rows[38:]), "both come back")
    second.wait(lambda: "the size of pts/" in second.rows[37], "both come back")
    second.type(" again")
    first.wait_for("from one and two again")
    plain = launch("attach", columns=140, lines=50, term="screen")
    plain.wait_for("from one and two again")
    assert "38;2;" not in plain.ansi
    first.wait(lambda: "38;2;" not in first.ansi, "the colours that all have")
    detach(plain)
    first.wait(lambda: "38;2;" in first.ansi, "its own colours")
    detach(second)
    assert_clean(second)
    first.wait(lambda: "F10" in first.rows[39] and "the size of" not in first.screen, "its own size")
    first.type(" alone")
    first.wait_for("from one and two again alone")
    third = launch("attach", "--take")
    first.wait_for("taken over by another terminal")
    assert_clean(first)
    third.wait_for("from one and two again alone")
    third.type("!")
    third.wait_for("alone!")


def test_a_recording_of_the_screen_is_whole_at_detach(
    launch: Launch, agents: Ready, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "screen.cast"
    terminal = launch("--record", str(path))
    agents(terminal, 2)
    terminal.type("日本語 recorded")
    terminal.wait_for("日本語 recorded")
    detach(terminal)
    lines = path.read_text().splitlines()
    assert json.loads(lines[0])["version"] == 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert "日本語 recorded" in "\n".join(play(path).display)
    terminal.keys(f"clear; synapse-tui --record {path}", "Enter")
    terminal.wait_for("screen.cast")
    terminal.wait_for("--overwrite")


def test_a_start_without_a_screen_waits_for_no_terminal(
    run: Run, environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(PATIENT)
    environ["PYTHONPATH"] = str(tmp_path)
    started = run("synapse", "start", "dummy")
    assert started.returncode == 0, started.stderr
    assert run("synapse-tui", "kill", "--all").returncode == 0


PATIENT = """
import sys
if "synapse_tui.daemon" in sys.orig_argv:
    import synapse_tui.daemon.process
    synapse_tui.daemon.process.FIRST_REQUEST = 1000.0  # for the terminal of a client
"""


def test_start_and_stop_without_a_screen(launch: Launch, run: Run, agents: Ready, home: Path) -> None:
    started = run("synapse", "start", "dummy", "--json", "--", "--word-delay", "0")
    assert started.returncode == 0, started.stderr
    agent_id = json.loads(started.stdout)["agent_id"]
    second = run("synapse", "start", "dummy:two")
    assert second.returncode == 0, second.stderr
    answered = run("synapse", "send", agent_id, "hello unseen", "--response")
    assert "hello unseen" in answered.stdout, answered.stderr
    terminal = launch()
    agents(terminal, 2)
    terminal.wait_for("hello unseen", "2 two")
    ambiguous = run("synapse", "stop", "dummy")
    assert ambiguous.returncode == 3
    assert run("synapse", "stop", "two").returncode == 0
    terminal.wait(lambda: "2 two" not in terminal.screen, "its end")
    detach(terminal)
    assert run("synapse", "stop", agent_id).returncode == 0
    terminal.wait(lambda: sessions(run) == [], "the end of a host that has nothing to do")
    assert last_end(home).endswith("its last agent is closed and no terminal shows it")
    (log,) = home.glob(".synapse/logs/host-*.log")
    assert re.search(rf"{agent_id} is stopped: 'synapse stop' \(process \d+\)", log.read_text())


def test_the_application_is_made_anew_when_it_fails(
    launch: Launch, agents: Ready, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAILING)
    fail = str(tmp_path / "fail")
    terminal = launch("dummy", "dummy", PYTHONPATH=str(folder), SYNAPSE_TEST_FAIL=fail)
    agents(terminal, 2)
    terminal.keys("F5")
    terminal.wait_for("layout: columns")
    pids = [process.pid for process in host_of(run).children()]
    (tmp_path / "fail").touch()
    terminal.wait(lambda: not (tmp_path / "fail").exists(), "the failure")
    terminal.wait_for("❯", "2 dummy")
    terminal.wait(lambda: "│" in terminal.rows[1], "the two columns of before")
    assert [process.pid for process in host_of(run).children()] == pids, "the agents live"

    def typed() -> bool:
        terminal.type("z")  # what is typed while the application is made anew goes nowhere
        time.sleep(0.3)
        return any(row.startswith("❯ z") for row in terminal.rows)

    terminal.wait(typed, "keys to reach the agent")


FAILING = """
import os, sys
path = os.environ.get("SYNAPSE_TEST_FAIL", "")
if path and "synapse_tui.daemon" in " ".join(sys.orig_argv):
    import importlib.abc, importlib.machinery
    class Hook(importlib.abc.MetaPathFinder):
        def find_spec(self, name, where, target=None):
            if name != "synapse_tui.ui.app":
                return None
            spec = importlib.machinery.PathFinder.find_spec(name, where)
            execute = spec.loader.exec_module
            def exec_module(module):
                execute(module)
                change(module.SynapseApp)
            spec.loader.exec_module = exec_module
            return spec
    def change(app):
        mount = app.on_mount
        def on_mount(self):
            mount(self)
            def fail():
                if os.path.exists(path):
                    os.unlink(path)
                    self.exit()
                    self._exception = RuntimeError("the application broke")
            self.set_interval(0.1, fail)
        app.on_mount = on_mount
    sys.meta_path.insert(0, Hook())
"""


def host_of(run: Run) -> psutil.Process:
    (session,) = sessions(run)
    return psutil.Process(int(str(session["pid"])))


def test_another_version_goes_on_with_the_agents(launch: Launch, agents: Ready, run: Run) -> None:
    terminal = launch("dummy", "dummy")
    first, second = agents(terminal, 2)
    terminal.type("日本語 a draft")
    terminal.wait_for("日本語 a draft")
    terminal.keys("F5")
    terminal.wait(lambda: f"2 {second}" in terminal.rows[1], "two columns")
    host = host_of(run)
    pids = sorted(process.pid for process in host.children())
    assert run("synapse", "send", second, "%%slow:3%% go on", "--no-response").returncode == 0
    terminal.wait_for("slow line")
    done = run("synapse-tui", "upgrade")
    assert done.returncode == 0, done.stderr
    terminal.wait_for("日本語 a draft", "slow line")
    terminal.wait(lambda: f"2 {second}" in terminal.rows[1], "two columns again")
    assert host_of(run).pid == host.pid
    assert sorted(process.pid for process in host_of(run).children()) == pids, "the very same processes"
    terminal.wait_for("END-OF-SLOW")
    terminal.type("!")
    terminal.wait_for("日本語 a draft!")
    answered = run("synapse", "send", second, "after the upgrade", "--response")
    assert "after the upgrade" in answered.stdout, answered.stderr
    assert first in run("synapse", "list").stdout
    detach(terminal)


def test_keys_typed_during_an_upgrade_reach_the_agent(
    launch: Launch,
    agents: Ready,
    run: Run,
    dummy_log: Callable[..., list[dict[str, object]]],
) -> None:
    terminal = launch("dummy:one")
    agents(terminal, 1)
    typed = ""

    def type_more() -> None:
        nonlocal typed
        word = f"{len(typed)} "
        terminal.type(word)
        typed += word

    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            upgrade = pool.submit(run, "synapse-tui", "upgrade")
            while not upgrade.done():
                type_more()
            assert upgrade.result().returncode == 0, upgrade.result().stderr
            for _ in range(20):  # the terminal is attached again after the command
                type_more()
            terminal.wait(lambda: arrived(dummy_log) == typed, "all that was typed")
    detach(terminal)
    assert_clean(terminal)


def arrived(log: Callable[..., list[dict[str, object]]]) -> str:
    return "".join(str(entry.get("text", "")) for entry in log("key"))


def test_an_upgrade_keeps_the_language(launch: Launch, agents: Ready, run: Run) -> None:
    terminal = launch("dummy:one", LC_ALL="C.UTF-8")
    agents(terminal, 1)
    other = launch("attach", LC_ALL="ja_JP.UTF-8")
    other.wait_for("^] menu")
    assert run("synapse-tui", "upgrade").returncode == 0
    assert run("synapse", "send", "one", "are you the next version?", "--response").returncode == 0
    for each in (terminal, other):
        each.wait_for("says: are you the next version?", "^] ")
        assert "^] menu" in each.screen


def test_a_newer_client_offers_to_hand_over(launch: Launch, agents: Ready, run: Run, tmp_path: Path) -> None:
    terminal = launch("dummy", "dummy")
    agents(terminal, 2)
    detach(terminal)
    folder = tmp_path / "newer"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import synapse_tui\nsynapse_tui.__version__ = '99.0.0'\n")
    newer = launch(PYTHONPATH=str(folder))
    newer.wait_for("this is 99.0.0", "Hand its agents over")
    newer.type("y\r")
    newer.wait_for("❯", "2 dummy")
    detach(newer)


def test_a_version_that_does_not_start_is_not_given_the_agents(
    launch: Launch, agents: Ready, run: Run, tmp_path: Path
) -> None:
    terminal = launch()
    agents(terminal, 2)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "python3").write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    (broken / "python3").chmod(0o755)
    code = (
        "import sys; sys.executable = sys.argv.pop(1);from synapse_tui.cli.tui import main; main(['upgrade'])"
    )
    done = run(sys.executable, "-c", code, str(broken / "python3"))
    assert done.returncode != 0
    assert "does not start: no such module" in done.stderr
    terminal.type("still here")
    terminal.wait_for("still here")


def test_a_lost_workspace_is_offered_and_opened_again(
    launch: Launch, agents: Ready, run: Run, home: Path
) -> None:
    terminal = launch("dummy:one", "dummy:two")
    agents(terminal, 2)
    answered = run("synapse", "send", "one", "remember the 日本語 words", "--response")
    assert answered.returncode == 0, answered.stderr
    terminal.keys("F5")
    terminal.wait(lambda: "2 two" in terminal.rows[1], "two columns")
    host_of(run).terminate()  # as a system does that shuts down
    terminal.wait_for("all agents are stopped")
    assert last_end(home).endswith("SIGTERM")
    terminal.keys("clear; synapse-tui", "Enter")
    terminal.wait_for("Reopen the last workspace?", "dummy 'one'", "dummy 'two'")
    terminal.enter_dialog("Reopen the last workspace?")
    terminal.keys("y")
    agents(terminal, 2)
    terminal.wait(lambda: "1 one" in terminal.rows[1] and "2 two" in terminal.rows[1], "names and layout")
    terminal.wait(lambda: "╮│╭" in terminal.rows[2], "both programs at their new width, which ends scrolling")
    terminal.keys("F7")
    terminal.keys("PageUp")
    terminal.wait(lambda: "scroll" in terminal.rows[1], "the older rows")
    terminal.wait_for("above: until")
    terminal.wait_for("remember the 日本語 words")
    terminal.keys("Escape")
    terminal.wait(lambda: "scroll" not in terminal.rows[1], "the live screen")
    leader(terminal, "q")
    terminal.wait_for("Leave synapse-tui?")
    terminal.keys("y")
    terminal.wait_for("all agents are stopped")
    terminal.keys("clear; synapse-tui dummy", "Enter")
    terminal.wait_for("❯")
    assert "Reopen the last workspace" not in terminal.screen, "it was closed by a person"


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("restarted", "count"), [("dummy:one", 2), ("dummy", 3)], ids=["restored", "new"])
def test_messages_go_on_by_themselves_however_a_killed_session_is_started_again(
    run: Run, home: Path, dummy_log: Callable[..., list[dict[str, object]]], restarted: str, count: int
) -> None:
    (home / ".synapse" / "settings.json").write_text(json.dumps({"tui": {"restore": "always"}}))
    try:
        for agent in ("dummy:one", "dummy"):
            assert run("synapse", "start", agent).returncode == 0
        ports = sorted(str(record["port"]) for record in records(home))
        wait_until(lambda: all(record["status"] == "READY" for record in records(home)), "two ready agents")
        for port in ports:
            for text in ("%%perm:may I?%%", f"first to {port}", f"second to {port}"):
                assert run("synapse", "send", f"dummy-{port}", text, "--no-response").returncode == 0
        # A question that is not asked yet would be asked after the restart, and hold what follows.
        wait_until(lambda: len(dummy_log("dialog-open")) == 2, "both questions")
        wait_until(partial(saved, run, home, 2), "the workspace to be saved")
        kill(host_of(run))
        started = run("synapse", "start", restarted)
        assert started.returncode == 0, started.stderr
        wait_until(
            partial(are_recorded, home, count), "two restored agents, and a new one where it is asked for"
        )
        assert set(ports) <= {str(record["port"]) for record in records(home)}
        wanted = {f"{place} to {port}" for place in ("first", "second") for port in ports}
        wait_until(
            lambda: wanted <= {str(entry["text"]).partition("] ")[2] for entry in dummy_log("submit")},
            lambda: f"{wanted} to be typed; {run('synapse', 'history', '--json').stdout}",
        )
    finally:
        run("synapse-tui", "kill", "--all")


@pytest.mark.timeout(240)
def test_a_watch_goes_on_after_its_host_was_killed(
    run: Run, home: Path, dummy_log: Callable[..., list[dict[str, object]]]
) -> None:
    (home / ".synapse" / "settings.json").write_text(json.dumps({"tui": {"restore": "always"}}))
    order = ("--every", "1", "--times", "2", "--nudge", "%%slow:1%% go on", "--detach", "--json")

    def watch_row() -> tuple[str, int, str]:
        with contextlib.closing(sqlite3.connect(next(home.glob(".synapse/**/history.db")))) as database:
            found: tuple[str, int, str] = database.execute(
                "SELECT task_id, sent, state FROM watches"
            ).fetchone()
            return found

    try:
        assert run("synapse", "start", "dummy:one").returncode == 0
        wait_until(lambda: all(record["status"] == "READY" for record in records(home)), "a ready agent")
        wait_until(partial(saved, run, home, 1), "the workspace to be saved")
        assert run("synapse", "send", "one", "a long job", "--no-response").returncode == 0
        task_id = json.loads(run("synapse", "watch", "one", *order).stdout)["task"]
        wait_until(lambda: watch_row() == (task_id, 1, "on"), "the first nudge")
        kill(host_of(run))
        assert run("synapse", "start", "dummy:one").returncode == 0
        wait_until(lambda: watch_row() == (task_id, 2, "gave up"), "one more nudge")
        nudges = [entry["text"] for entry in dummy_log("submit") if str(entry["text"]).endswith("go on")]
        assert len(nudges) == 2
        shown = json.loads(run("synapse", "history", "show", task_id, "--json").stdout)
        assert shown["status"] == "completed", shown
    finally:
        run("synapse-tui", "kill", "--all")


def test_another_size_and_kind_of_terminal(launch: Launch, agents: Ready) -> None:
    terminal = launch()
    agents(terminal, 2)
    detach(terminal)
    small = launch(columns=80, lines=24, term="screen")
    small.wait_for("❯")
    assert len(small.rows) == 24
    assert "38;2;" not in small.ansi, "a terminal without true colour gets none"
    small.resize(100, 30)
    small.wait(lambda: len(small.rows) == 30 and "F10" in small.rows[-1], "the new size")


def test_a_second_command_opens_its_agent_in_the_session_with_its_own_environment(
    launch: Launch, agents: Ready, run: Run, project: Path
) -> None:
    terminal = launch("dummy:one")
    agents(terminal, 1)
    folder = project / "below"
    folder.mkdir()
    second = launch(
        "-c", "cd below && exec synapse-tui dummy:two", command=("bash",), MARKER_FOR_TEST="second"
    )
    second.wait_for("2 two")
    terminal.wait_for("2 two")
    agents(second, 2)
    second.type("typed here")
    second.wait_for("typed here")
    programs = programs_of(run)
    marked = [process for process in programs if process.environ().get("MARKER_FOR_TEST") == "second"]
    assert len(programs) == 2
    assert [process.cwd() for process in marked] == [str(folder)]


def test_kill_returns_when_the_host_is_gone(launch: Launch, run: Run, tmp_path: Path) -> None:
    start_with(run, launch, tmp_path, "import atexit, time; atexit.register(time.sleep, 2)")
    host = host_of(run)
    done = run("synapse-tui", "kill", "--all", "--json")
    assert not alive([host])
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)
    assert (told["session"], told["pid"], told["ended"]) == ("project", host.pid, "asked")


def test_kill_all_asks_where_somebody_is_attached(launch: Launch, agents: Ready, run: Run) -> None:
    shown = launch("dummy")
    agents(shown, 1)
    other = launch(command=("bash", "--norc"))
    other.keys("synapse-tui kill --all", "Enter")
    other.wait_for("project", "is attached", "[y/N]")
    other.keys("n", "Enter")
    other.wait_for("nothing was stopped")
    assert len(sessions(run)) == 1
    other.keys("clear; synapse-tui kill --all", "Enter")
    other.wait_gone("nothing was stopped")
    other.wait_for("[y/N]")
    other.keys("y", "Enter")
    other.wait_for("stopped project")
    shown.wait_for("all agents are stopped")


def test_a_killed_host_leaves_a_clean_terminal_and_a_workspace_that_can_be_declined(
    launch: Launch, agents: Ready, run: Run, home: Path
) -> None:
    terminal = launch(columns=80, lines=24)
    agents(terminal, 2)
    grow(terminal)
    terminal.wait(lambda: saved(run, home), "the workspace to be saved")
    host = host_of(run)
    children = host.children(recursive=True)
    host.kill()
    terminal.wait_for("the host of session 'project' ended")
    terminal.wait_for("can restore its agents")
    assert_clean(terminal)
    wait_for_end(*children)
    assert sessions(run) == []
    terminal.keys("clear; synapse-tui", "Enter")
    terminal.wait_for("Reopen the last workspace?")
    terminal.wait(lambda: saved(run, home), "what is offered to be saved, for the host after this one")
    host_of(run).kill()
    terminal.wait_for("the host of session 'project' ended")
    terminal.keys("clear; synapse-tui", "Enter")
    terminal.wait_for("Reopen the last workspace?")
    terminal.kill_command(signal.SIGTERM)  # and when nobody answers, so that the host ends
    terminal.wait_for("detached from session")
    terminal.wait(lambda: not sessions(run), "the end of the host")
    terminal.keys("clear; synapse-tui dummy:fresh", "Enter")
    terminal.enter_dialog("Reopen the last workspace?")
    terminal.keys("n")
    terminal.wait_for("1 fresh", "❯")
