"""Clients and servers of others: clients talk to a hosted agent, servers are used as external agents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.conformance.hosted import ROOT, Hosted
from tests.conformance.toolbox import Checks, Result, Toolbox, json_lines
from tests.ports import free_ports

HANDLER, DUMMY_A2A = "0.4.0", "0.6.4"
JAVASCRIPT = {"1.3.0": "client_v1.mjs", "0.3.13": "client_v03.mjs"}
JAVASCRIPT_AGENTS = {"1.3.0": "agent_v1.mjs", "0.3.13": "agent_v03.mjs"}


def a2a_handler(tools: Toolbox, host: Hosted) -> Iterator[Result]:
    program = str(tools.python("a2a-handler", HANDLER) / "handler")
    url = host.endpoints[0]
    checks = Checks()

    def ask(*words: str, output: str = "json") -> str:
        done = tools.run([program, "--output", output, *words, "--url", url], check=False)
        checks.note(" ".join(words[:2]) + f" ({output})", done.returncode == 0, done.stdout + done.stderr)
        return done.stdout

    ask("card", "get")
    sent = ask("message", "send", "--text", "Hello from a2a-handler.")
    checks.note("the answer is shown", "Hello from a2a-handler." in sent, sent)
    streamed = ask("message", "send", "--text", "Streamed.", "--stream", output="ndjson")
    checks.note("the stream has events", len(json_lines(streamed)) >= 2, streamed)
    listed = ask("task", "list")
    checks.note("the tasks are listed", "TASK_STATE_COMPLETED" in listed or "completed" in listed, listed)
    yield checks.result(f"a2a-handler {HANDLER}", "dummy")


def javascript_clients(tools: Toolbox, host: Hosted) -> Iterator[Result]:
    """The clients of two major versions of the JavaScript SDK, over each binding."""
    for version, script in JAVASCRIPT.items():
        folder = tools.javascript(version)
        for binding in ("JSONRPC", "HTTP+JSON") if folder else ():
            done = tools.run(["node", script, host.endpoints[0], binding], cwd=folder, check=False)
            checks = Checks()
            for line in json_lines(done.stdout):
                checks.note(line["name"], line["ok"], str(line["detail"]))
            if not checks.passed:
                checks.note("the client", ok=False, detail=done.stderr)
            yield checks.result(f"@a2a-js/sdk {version}, {binding}", "dummy")


def external_agents(tools: Toolbox, host: Hosted) -> Iterator[Result]:
    port = free_ports()
    program = str(tools.python("dummy-a2a", DUMMY_A2A) / "dummy-a2a")
    command = [program, "--host", "127.0.0.1", "--port", str(port), "--sdk-log-level", "CRITICAL"]
    says = {"echo hello": ("completed", "hello"), "fail now": ("failed", ""), "ask me": ("input", "")}
    yield _external(tools, host, command, port, says, f"dummy-a2a {DUMMY_A2A}")
    says = {
        "hello": ("completed", "You said: hello"),
        "fail": ("failed", "did not work"),
        "ask": ("input", "Which one?"),
        "message": ("", "Only a message"),
    }
    for version, script in JAVASCRIPT_AGENTS.items():
        folder = tools.javascript(version)
        if folder is not None:
            port = free_ports()
            command = ["node", str(folder / script), str(port)]
            yield _external(tools, host, command, port, says, f"@a2a-js/sdk {version} agent")


def _external(
    tools: Toolbox,
    host: Hosted,
    command: list[str],
    port: int,
    says: dict[str, tuple[str, str]],
    subject: str,
) -> Result:
    url = f"http://127.0.0.1:{port}"
    checks = Checks()
    with ExitStack() as stack:
        stack.enter_context(tools.serving(command, ready=f"{url}/.well-known/agent-card.json"))
        synapse = Synapse(tools, host.folder)
        checks.note("add", *synapse.ask("external", "add", url, "--alias", "peer")[:2])
        checks.note("info", *synapse.ask("external", "info", "peer")[:2])
        ok, told, _ = synapse.ask("external", "list")
        checks.note("list", ok and "peer" in told, told)
        for text, (state, part) in says.items():
            _, told, answer = synapse.ask("external", "send", "peer", text)
            found = json.dumps(answer, ensure_ascii=False) if answer else told
            checks.note(f"send {text!r}", state in found and part in found and bool(answer), told)
        checks.note("remove", *synapse.ask("external", "remove", "peer")[:2])
    return checks.result("synapse external", subject)


class Synapse:
    """The command line of this product, as the user of a host.

    Args:
        tools: Run it.
        folder: Of the host.
    """

    def __init__(self, tools: Toolbox, folder: Path) -> None:
        self._tools = tools
        self._folder = folder

    def ask(self, *words: str) -> tuple[bool, str, Any]:
        """Run a command with `--json`."""
        code = "from synapse_tui.cli import main; main()"
        done = self._tools.run(
            [sys.executable, "-c", code, *words, "--json"],
            cwd=self._folder / "project",
            environ={"HOME": str(self._folder / "home"), "PYTHONPATH": str(ROOT)},
            check=False,
        )
        try:
            data = json.loads(done.stdout)
        except ValueError:
            data = None
        return done.returncode == 0, done.stdout + done.stderr, data
