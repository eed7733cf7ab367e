"""Runs every kit, client and server of docs/conformance.md: `tests/conformance/run CACHE` calls it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conformance.hosted import ROOT, Hosted, hosted
from tests.conformance.independent import a2a_handler, external_agents, javascript_clients
from tests.conformance.toolbox import Result, Toolbox, tell

TESTBED, LINT, PROOF = "0.3.0a3", "0.1.1", "0.16.0"
HEAD = "| tool | agent | passed | skipped | failed |\n|---|---|---:|---:|---:|"

Kit = Callable[[Toolbox, Hosted], Iterator[Result]]


def testbed(tools: Toolbox, host: Hosted) -> Iterator[Result]:
    """The sweep of a2a-testbed: 1.0 and the surface of 0.3."""
    program = str(tools.python("a2a-testbed", TESTBED) / "a2a-testbed")
    for name, url in zip(AGENTS, host.endpoints, strict=True):
        for version in ("1.0", "0.3"):
            options = ["--protocol-version", version, "--format", "json", "--no-step-summary"]
            done = tools.run([program, "conformance", url, *options], check=False)
            report = json.loads(done.stdout)
            found = {outcome: [] for outcome in ("skip", "fail", "error", "warn")}
            for each in report["results"]:
                found.get(each["outcome"], []).append(f"{each['id']}: {each['detail']}")
            yield Result(
                f"a2a-testbed {TESTBED}, {version}",
                name,
                report["summary"]["pass"],
                tuple(found["skip"]),
                tuple(found["fail"] + found["error"] + found["warn"]),
            )


def lint(tools: Toolbox, host: Hosted) -> Iterator[Result]:
    program = str(tools.python("a2a-lint", LINT) / "a2a-lint")
    for name, url in zip(AGENTS, host.endpoints, strict=True):
        report = json.loads(tools.run([program, url, "--live", "--json"], check=False).stdout)
        told = {level: [] for level in ("error", "warn", "info")}
        for finding in report["findings"]:
            told[finding["level"]].append(f"{finding['field']}: {finding['message']}")
        grade = report["summary"]["grade"]
        tool = f"a2a-lint {LINT} --live, grade {grade}"
        yield Result(tool, name, int(report["ok"]), tuple(told["info"]), tuple(told["error"] + told["warn"]))


def proof(tools: Toolbox, host: Hosted) -> Iterator[Result]:
    program = str(tools.python("a2a-proof", PROOF) / "a2a-proof")
    for name, url in zip(AGENTS, host.endpoints, strict=True):
        contract = tools.cache / f"proof-{name}.yaml"
        tools.run([program, "init", url, "--force", "-o", str(contract)])
        for binding in ("JSONRPC", "HTTP+JSON"):
            done = tools.run([program, "run", str(contract), "--transport", binding], check=False)
            wrong = () if done.returncode == 0 else (done.stdout + done.stderr,)
            yield Result(f"a2a-proof {PROOF}, {binding}", name, int(not wrong), (), wrong)


def scenarios(_tools: Toolbox, _host: Hosted) -> Iterator[Result]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=line",
        "tests/conformance",
    ]
    environ = {**os.environ, "CONFORMANCE": "full"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    failed = tuple(line.partition(" ")[2] for line in lines if line.startswith(("FAILED", "ERROR")))
    words = lines[-1].split() if lines else []
    passed = int(words[words.index("passed,") - 1 if "passed," in words else words.index("passed") - 1])
    yield Result("tests/conformance (1.0 over both bindings, 0.3)", "conformance", passed, (), failed)


KITS: dict[str, Kit] = {
    "testbed": testbed,
    "lint": lint,
    "proof": proof,
    "handler": a2a_handler,
    "javascript": javascript_clients,
    "external": external_agents,
    "scenarios": scenarios,
}
AGENTS = ("dummy", "conformance")


def run(cache: Path, wanted: list[str]) -> list[Result]:
    """Run kits against a host of two agents."""
    tools = Toolbox(cache)
    results = []
    with hosted(cache / "host", *AGENTS) as host:
        for name in wanted:
            tell(f"== {name}")
            for result in KITS[name](tools, host):
                results.append(result)
                tell(result.row)
    return results


def main() -> None:
    """Print the table; the status is 1 when something failed that is not known."""
    parser = argparse.ArgumentParser(prog="tests/conformance/run CACHE", description=__doc__)
    parser.add_argument("cache", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("kits", nargs="*", default=list(KITS), metavar="KIT", help=", ".join(KITS))
    parser.add_argument("--serve", type=int, metavar="PORT", help="only host the scripted agent there")
    parser.add_argument("--protocol", default="1.0", choices=("1.0", "0.3"), help="of the agent of --serve")
    parser.add_argument("--card", default="dual", choices=("v1", "dual"), help="of the agent of --serve")
    given = parser.parse_args()
    if given.serve:
        serve(given.cache, given.serve, given.protocol, given.card)
        return
    results = run(given.cache.absolute(), given.kits)
    print("\n".join([HEAD, *(result.row for result in results)]))
    for result in results:
        for kind, names in (("skipped", result.skipped), ("failed", result.failed)):
            print("".join(f"\n{kind}: {result.tool}, {result.subject}: {name}" for name in names), end="")
    print()
    sys.exit(any(result.failed for result in results))


def serve(cache: Path, port: int, protocol: str, card: str) -> None:
    """Host the scripted agent for a kit that is run from outside, until Ctrl+C."""
    name = "conformance" if protocol == "1.0" else "conformance-0.3"
    with hosted(cache / "served", f"{name}:{port}", settings={"a2a": {"card": card}}) as host:
        print(host.endpoints[0], flush=True)
        try:
            sys.stdin.read()
        except KeyboardInterrupt:
            tell("stopped")


if __name__ == "__main__":
    main()
