"""An agent that is opened again: its last conversation, and what its terminal showed before."""

from __future__ import annotations

import dataclasses
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from synapse_tui.agents.adoption import read_handover
from synapse_tui.agents.console import Past
from synapse_tui.core.errors import SpawnError
from synapse_tui.core.model import AgentState, TaskState
from synapse_tui.sessions.client import START_SECONDS, HostSilent, reach_or_start
from synapse_tui.sessions.places import SessionPlace
from synapse_tui.sessions.wire import encode
from synapse_tui.terminal import Terminal, capture_history
from synapse_tui.workspace import Handover
from tests.integration.session_rig import Rig, open_rig, until
from tests.waiting import PATIENCE

BEFORE = datetime(2026, 11, 21, 18, 3, tzinfo=UTC)
MARK = f"── above: until {BEFORE.astimezone():%Y-%m-%d %H:%M}"


async def opened(rig: Rig, **changes: object) -> None:
    rig.session.spec = dataclasses.replace(rig.session.spec, **changes)  # type: ignore[arg-type]
    rig.session.start(100, 30)


def lines(terminal: Terminal) -> list[str]:
    return [line.text for line in terminal.scrollback]


async def test_a_resumed_agent_says_so_and_a_restart_begins_anew(tmp_path):
    rig = Rig(tmp_path, "--word-delay", "0")
    await opened(rig, resume=True)
    try:
        await until(lambda: "Resumed the last conversation." in rig.session.recent_text(), "the note")
        await rig.ready()
        await rig.session.restart()
        await rig.ready()
        assert "Resumed" not in rig.session.recent_text()
    finally:
        await rig.session.stop()


async def test_a_restart_that_fails_leaves_a_session_that_can_be_restarted(tmp_path):
    rig = Rig(tmp_path, "--word-delay", "0")
    await opened(rig, resume=True)
    try:
        await rig.ready()
        with pytest.raises(SpawnError):
            await rig.session.restart(dataclasses.replace(rig.profile, command="no-such-command"))
        assert rig.session.report.state is AgentState.EXITED
        await rig.session.restart(rig.profile)
        await rig.ready()
        assert "Resumed" not in rig.session.recent_text()
    finally:
        await rig.session.stop()


async def test_the_lines_of_before_stand_above(tmp_path):
    async with open_rig(tmp_path) as first:
        task = await first.done(first.send("hello"))
        answer = task.artifacts[0].text.splitlines()[0]
        history = capture_history(first.session.terminal).render()
    assert answer.encode() in history
    rig = Rig(tmp_path, before=Past(history, BEFORE))
    rig.session.start(100, 30)
    try:
        assert not rig.session.recent_text(), "nothing of before is on the screen"
        await rig.ready()
        back = lines(rig.session.terminal)
        assert back[-1] == MARK
        assert any(answer in line for line in back)
        style = rig.session.terminal.scrollback[len(back) - 1].cell(0).style
        assert (style.dim, style.fg) == (True, -1)
        again = await rig.done(rig.send("hello"))
        assert again.state is TaskState.COMPLETED
        assert again.artifacts == task.artifacts, "the answer holds nothing of before"
        assert lines(rig.session.terminal)[: len(back)] == back
        await rig.session.stop()
        raw = (rig.logs / f"{rig.session.agent_id}.log").read_bytes()
        assert MARK.encode() not in raw
    finally:
        await rig.session.stop()


async def test_the_lines_of_before_stay_when_the_agent_draws_all_anew(tmp_path):
    rig = Rig(tmp_path, before=Past(b"\r\n".join(b"line %d" % number for number in range(9)), BEFORE))
    rig.session.start(100, 30)
    try:
        await rig.ready()
        back = lines(rig.session.terminal)
        await rig.done(rig.send("hello"))
        rig.session.resize(60, 12)
        await until(lambda: rig.records("resize"), "the agent to see its size")
        answered = await rig.done(rig.send("hello"))  # what it draws after the resize comes before
        assert answered.state is TaskState.COMPLETED
        assert lines(rig.session.terminal)[: len(back)] == back
        handover = Handover.read(Handover("test", agents=(await rig.session.hand_over(),)).write()).agents[0]
        second = Rig(tmp_path, adopted=read_handover(handover))
        second.session.start(handover.columns, handover.lines)
        try:
            second.session.resize(100, 40)
            await second.done(second.send("hello"))
            assert lines(second.session.terminal)[: len(back)] == back
            assert MARK not in second.session.recent_text()
        finally:
            await second.session.stop()
    finally:
        await rig.session.stop()


async def test_a_dialog_of_before_is_none(tmp_path):
    async with open_rig(tmp_path) as first:
        first.send("%%perm:rm -r build%%")
        await first.state(AgentState.WAITING)  # reported before all of the dialog is drawn
        await until(lambda: "❯ 1." in first.session.recent_text(), "the dialog")
        history = capture_history(first.session.terminal).render()
    assert any("❯ 1." in line for line in lines(seeded(history, 100)))
    rig = Rig(tmp_path, before=Past(history, BEFORE))
    rig.session.start(100, 30)
    try:
        await rig.ready()
        assert not rig.session.reading().dialog
        assert (await rig.done(rig.send("hello"))).state is TaskState.COMPLETED
    finally:
        await rig.session.stop()


def seeded(history: bytes, columns: int = 60, height: int = 5, scrollback: int = 100) -> Terminal:
    terminal = Terminal(columns, height, scrollback)
    Past(history, BEFORE).show(terminal)
    return terminal


def test_nothing_but_lines_is_taken_from_the_file():
    terminal = seeded(b"a\x1b[?1049hb\x1b]2;title\x07\x1b[5nc\x1b[2J\x07\r\nd\x1b[31")
    assert not terminal.modes.alternate_screen
    assert terminal.title == ""
    assert terminal.take_replies() == b""
    assert len(terminal.scrollback) == 3
    assert lines(terminal)[-1] == MARK


def test_only_as_many_lines_as_are_kept():
    history = b"\r\n".join(f"line {number}".encode() for number in range(500))
    terminal = seeded(history, scrollback=50)
    back = lines(terminal)
    assert len(back) == 50
    assert back[-2:] == ["line 499", MARK]


ASK_SECONDS = 0.05


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SessionPlace]:
    """A session whose socket is bound, and whose host does not answer so far."""
    with tempfile.TemporaryDirectory(prefix="syn-") as folder, socket.socket(socket.AF_UNIX) as listener:
        place = SessionPlace(tmp_path, "project", Path(folder) / "project.sock")
        listener.bind(str(place.socket))
        listener.listen()

        def answer_late() -> None:
            held, _ = listener.accept()  # what the client keeps
            asking, _ = listener.accept()
            with held, asking:
                asking.recv(65536)
                asking.settimeout(4 * ASK_SECONDS)
                try:
                    asking.recv(1)  # in which a client that gives up is gone
                except TimeoutError:
                    asking.sendall(encode({"is": "info"}))

        host = threading.Thread(target=answer_late)
        host.start()
        yield place
        host.join(PATIENCE)


def reach(place: SessionPlace, on_silence: Callable[[], None] | None = None) -> object:
    connection, info = reach_or_start(
        place,
        folder=place.project,
        logs=place.project,
        environ={},
        timeout=ASK_SECONDS,
        on_silence=on_silence,
    )
    connection.close()
    return info


def test_a_host_that_was_just_started_is_given_time(place: SessionPlace) -> None:
    assert reach(place) == {"is": "info"}


def test_a_person_is_informed_that_a_host_is_waited_for(
    place: SessionPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synapse_tui.sessions.client.SILENCE_SECONDS", ASK_SECONDS)
    noted: list[str] = []
    assert reach(place, lambda: noted.append("silent")) == {"is": "info"}
    assert noted == ["silent"]


def test_a_host_that_should_have_started_long_ago_is_not(place: SessionPlace) -> None:
    began = place.socket.stat().st_mtime - START_SECONDS
    os.utime(place.socket, (began, began))
    with pytest.raises(HostSilent):
        reach(place)
