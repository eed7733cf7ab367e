"""The agent for conformance runs: the dummy's terminal program with a script for each scenario of the kits.

`python -m tests.conformance.agent [--protocol 1.0|0.3] [--pace N] [OPTIONS OF THE DUMMY]`, hosted. It
gets its messages as every agent does, typed into its composer as `[A2A:<task>:<sender>] text`. It asks its
own server for the task, whose message id says what to do, and answers as `synapse reply` does.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from synapse_tui.a2a.signing import SignedRequest, signature_headers
from synapse_tui.dummy import app as dummy
from synapse_tui.dummy.app import JsonLinesFile, Options
from synapse_tui.dummy.runner import TurnRunner
from synapse_tui.dummy.terminal import Loop, Tty
from tests.conformance.scenarios import Part, Turn, message_of, perform

_TASK = re.compile(r"\[A2A:([0-9a-f]{8}):[^\]]*\] ?", re.IGNORECASE)
PATIENCE = 10.0
"""Seconds for an answer of the own server."""


class OwnServer:
    """The agent's own server, asked with its token.

    Args:
        environ: Tells where it is and who the agent is.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._agent_id = environ["SYNAPSE_AGENT_ID"]
        self._token = environ["SYNAPSE_TOKEN"]
        url = urlsplit(environ["SYNAPSE_ENDPOINT"])
        self._host, self._port = url.hostname or "127.0.0.1", url.port or 80

    def ask(self, method: str, target: str, body: object = None) -> Any:
        """Make a request."""
        data = b"" if body is None else json.dumps(body).encode()
        request = SignedRequest(method, self._port, target, data)
        headers = signature_headers(request, agent_id=self._agent_id, token=self._token)
        connection = http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)
        try:
            connection.request(method, target, data, {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            read = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise OSError(f"{method} {target}: {answer.status} {read[:300]!r}")
        return json.loads(read)


class TaskService:
    """Answers one task.

    Args:
        server: The agent's own.
        task_id: The task.
    """

    def __init__(self, server: OwnServer, task_id: str) -> None:
        self._server = server
        self._task_id = task_id

    def reply(self, parts: Sequence[Part], state: str = "completed", *, as_message: bool = False) -> None:
        about: dict[str, object] = {"status": state}
        if as_message:
            about["as_message"] = True
        message = {"role": "agent", "parts": [dict(part) for part in parts]}
        self._server.ask("POST", f"/tasks/{self._task_id}/reply", {"message": message, "metadata": about})

    def others_wait(self) -> bool:
        return bool(self._server.ask("GET", "/outbox")["messages"])


class ScriptedRunner(TurnRunner):
    """Turns that follow the script of their message."""

    def __init__(self, app: dummy.DummyApp, server: OwnServer, protocol: str, pace: float) -> None:
        super().__init__(app)
        self._server = server
        self._protocol = protocol
        self._pace = pace

    def start(self, text: str) -> None:
        found = _TASK.match(text)
        if found is None:
            super().start(text)
            return
        self.begin(text, perform(self._script(found[1], text[found.end() :]), protocol=self._protocol))

    def _script(self, task_id: str, said: str) -> Turn:
        message_id = message_of(self._server.ask("GET", f"/tasks/{task_id}"))
        self._app.journal.write("message", task=task_id, message_id=message_id)
        return Turn(message_id, said, TaskService(self._server, task_id), self._pace)


def main(arguments: Sequence[str]) -> int:
    """Run the agent."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--protocol", default="1.0")
    parser.add_argument("--pace", type=float, default=1.0)
    own, rest = parser.parse_known_args(arguments)
    server = OwnServer(os.environ)

    def make(options: Options, tty: Tty, loop: Loop, journal: JsonLinesFile) -> dummy.DummyApp:
        app = dummy.DummyApp(options, tty, loop, journal)
        app.runner = ScriptedRunner(app, server, own.protocol, own.pace)
        return app

    return dummy.main(rest, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
