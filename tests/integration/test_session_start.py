"""Clients that come while another client's host starts."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapse_tui.sessions.client import START_SECONDS, HostSilent, reach_or_start
from synapse_tui.sessions.places import SessionPlace
from synapse_tui.sessions.wire import encode
from tests.waiting import PATIENCE

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


def reach(place: SessionPlace) -> object:
    connection, info = reach_or_start(
        place, folder=place.project, logs=place.project, environ={}, timeout=ASK_SECONDS
    )
    connection.close()
    return info


def test_a_host_that_was_just_started_is_given_time(place: SessionPlace) -> None:
    assert reach(place) == {"is": "info"}


def test_a_host_that_should_have_started_long_ago_is_not(place: SessionPlace) -> None:
    began = place.socket.stat().st_mtime - START_SECONDS
    os.utime(place.socket, (began, began))
    with pytest.raises(HostSilent):
        reach(place)
